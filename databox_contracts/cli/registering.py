"""`registry register`: consumers of files become those of a registry."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from databox_contracts.cli.impact import tell
from databox_contracts.cli.known import approvals_of, declared_in_files
from databox_contracts.errors import ConsumersError, Level

if TYPE_CHECKING:
    from databox_contracts.registry.api import RegistryApi


def add_files(parser: argparse.ArgumentParser) -> None:
    """Declare the files."""
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="a file of consumers, or a folder of them")


def run_in(registry: RegistryApi, args: argparse.Namespace) -> int:
    """0 all are registered; one who may not read what it declares raises, and nobody is.

    Who reads a contract that is not published yet is registered under that name.
    """
    from databox_contracts.registry.consumer_checks import check_consumers
    from databox_contracts.registry.consumers import ProblemKind, resolve
    from databox_contracts.registry.published import published
    from databox_contracts.registry.records import Origin

    declared, _ = declared_in_files(args.paths, ())
    contracts = published(registry, declared)
    names = {one.consumer.name for one in declared}
    found = check_consumers(contracts, declared, approvals_of(registry)).problems
    unknown = [problem for problem in found if problem.kind is ProblemKind.UNKNOWN]
    others = [problem for problem in found if problem.consumer in names and problem not in unknown]
    errors = [problem for problem in others if problem.level is Level.ERROR]
    if errors:
        raise ConsumersError(errors)
    tell(others)
    early = {(problem.place, problem.producer) for problem in unknown}
    # What the contracts say of their consumers is registered with them.
    alone = [one.model_copy(update={"consumers": ()}) for one in contracts]
    wanted = [(reading.contract, reading.consumer) for reading in resolve(alone, declared).readings]
    wanted += [(one.producer, one.consumer) for one in declared if (one.place, one.producer) in early]
    done = [registry.register(contract, consumer, by=args.by, origin=Origin.FILE) for contract, consumer in wanted]
    if args.format == "json":
        print(json.dumps({"registered": [one.to_dict() for one in done]}, indent=2, ensure_ascii=False))
        return 0
    for one in done:
        note = ", which is not published yet" if any(one.contract_id == problem.producer for problem in unknown) else ""
        print(f"{one.consumer.name} is a consumer of {one.contract_id}{note}")
    return 0
