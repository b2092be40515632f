"""`consumers`: who reads which contract, and whether they may."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from databox_contracts.cli.known import add_known, known
from databox_contracts.errors import Level

if TYPE_CHECKING:
    from databox_contracts.registry.consumers import Resolved


_CONTACTS: Final = {"contact", "contacts"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where everything is known from, the approvals, and the form of the output."""
    add_known(parser)
    parser.add_argument("--approvals-file", metavar="FILE", type=Path, help="YAML: which consumers agreed to what")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how they are printed")


def run(args: argparse.Namespace) -> int:
    """0 where every consumer may read what it declares, 1 where one may not."""
    from databox_contracts.formats.approval_files import load_approvals
    from databox_contracts.registry.consumer_checks import check_consumers

    found = known(args)
    if args.approvals_file is not None:
        found = replace(found, approvals=(*found.approvals, *load_approvals(args.approvals_file)))
    resolved = check_consumers(found.contracts, found.declarations, found.approvals)
    (_print_json if args.format == "json" else _print)(resolved)
    return 1 if any(problem.level is Level.ERROR for problem in resolved.problems) else 0


def _print(resolved: Resolved) -> None:
    for problem in resolved.problems:
        print(problem)
    for reading in resolved.readings:
        one = reading.consumer
        owner = f" ({one.owner})" if one.owner is not None else ""
        what = ", ".join(one.fields or one.datasets) or "all of it"
        print(f"{reading.contract}: {one.name}{owner} reads {what}, versions {one.versions or '*'}")
    errors = sum(problem.level is Level.ERROR for problem in resolved.problems)
    counts = (len(resolved.readings), "consumer"), (errors, "problem"), (len(resolved.problems) - errors, "warning")
    print(", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts))


def _print_json(resolved: Resolved) -> None:
    consumers = [
        # A contact may hold a secret by mistake.
        {
            "contract": one.contract,
            **one.consumer.model_dump(mode="json", exclude=_CONTACTS),
            "places": list(one.places),
        }
        for one in resolved.readings
    ]
    problems = [problem.to_dict() for problem in resolved.problems]
    print(json.dumps({"consumers": consumers, "problems": problems}, indent=2, ensure_ascii=False))
