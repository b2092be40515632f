"""What a command knows of contracts and of those who read them: from folders, files, and a registry."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from databox_contracts.approvals import Approval
    from databox_contracts.declarations import Declaration
    from databox_contracts.lineage import Lineage
    from databox_contracts.model import Contract
    from databox_contracts.registry.api import RegistryApi

FOLDER: Final = Path("contracts")
"""Where contracts are looked for where neither a folder nor a registry is named."""


@dataclass(frozen=True)
class Known:
    """Contracts, what consumers declared elsewhere, what is made of what, and what was agreed to."""

    contracts: Sequence[Contract]
    declarations: Sequence[Declaration]
    lineage: Lineage
    approvals: Sequence[Approval]


def add_known(parser: argparse.ArgumentParser, *, registry: bool = True) -> None:
    """Declare the folder, the files and the registry; with `registry` False somebody else declares that."""
    parser.add_argument("--contracts", metavar="DIR", type=Path, help=f"the folder of contracts ({FOLDER})")
    parser.add_argument(
        "--consumers", metavar="FILE", type=Path, action="append", default=[], help="a file or folder of consumers"
    )
    parser.add_argument(
        "--edges", metavar="FILE", type=Path, action="append", default=[], help="a file of lineage, YAML or JSON"
    )
    if registry:
        parser.add_argument("--registry", metavar="URL|PATH", help="a registry, in place of the folder or beside it")


def known(args: argparse.Namespace, registry: RegistryApi | None = None) -> Known:
    """All that the arguments name. A contract that folder and registry both have is the folder's."""
    from databox_contracts.formats import load_contracts

    if registry is None and args.registry is not None:
        from databox_contracts.registry.opening import open_registry

        with closing(open_registry(args.registry)) as opened:
            return known(args, opened)
    declared, lineage = declared_in_files(args.consumers, args.edges)
    folder = args.contracts if args.contracts is not None or registry is not None else FOLDER
    contracts = load_contracts(folder) if folder is not None else []
    if registry is None:
        return Known(contracts, declared, lineage, ())
    from databox_contracts.registry.published import declared_at, published

    declarations = [*declared_at(registry), *declared]
    own = {(contract.id, contract.version) for contract in contracts}
    contracts += [one for one in published(registry, declarations) if (one.id, one.version) not in own]
    return Known(contracts, declarations, lineage, approvals_of(registry))


def declared_in_files(consumers: Sequence[Path], edges: Sequence[Path]) -> tuple[list[Declaration], Lineage]:
    """What files say of consumers and lineage; all findings but the error raised are printed as errors are."""
    from databox_contracts.errors import ContractError, Level
    from databox_contracts.formats.consumer_files import read_consumers
    from databox_contracts.formats.lineage_files import read_lineage

    declared, findings = read_consumers(consumers)
    lineage, others = read_lineage(edges)
    errors = [finding for finding in (*findings, *others) if finding.level is Level.ERROR]
    for finding in (*findings, *others):
        if finding not in errors[:1]:
            print(finding, file=sys.stderr)
    if errors:
        raise ContractError.from_findings(errors)
    return declared, lineage


def approvals_of(registry: RegistryApi) -> tuple[Approval, ...]:
    """The stored consents; one to whatever version comes next is over when that has come."""
    from databox_contracts.registry.signing import approval

    since = {one.contract_id: one.published_at for one in registry.contracts()}
    return tuple(
        approval(one)
        for one in registry.approvals()
        if one.version is not None or one.purpose is not None or one.at >= since.get(one.contract_id, one.at)
    )
