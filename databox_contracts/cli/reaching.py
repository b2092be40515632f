"""Who is reached by what a branch changes: consumers and lineage from wherever they are declared, for the gate."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from databox_contracts.approvals import Approval
    from databox_contracts.declarations import Declaration
    from databox_contracts.gate.readers import Reader
    from databox_contracts.gate.revisions import Revision
    from databox_contracts.lineage import Lineage
    from databox_contracts.model import Consumer, Contract
    from databox_contracts.registry.consumers import Resolved
    from databox_contracts.registry.impact import Dependencies

# Where a contract has neither, nothing is known to depend on it beyond what files and a registry say.
_WORDS: Final = (b"consumers", b"transformSourceObjects")


def add_readers(parser: argparse.ArgumentParser) -> None:
    """Declare where consumers, lineage and approvals come from beside the contracts."""
    parser.add_argument(
        "--consumers", metavar="FILE", type=Path, action="append", default=[], help="a file or folder of consumers"
    )
    parser.add_argument(
        "--edges", metavar="FILE", type=Path, action="append", default=[], help="a file of lineage, YAML or JSON"
    )
    parser.add_argument("--registry", metavar="URL|PATH", help="a registry with consumers and approvals")


@dataclass
class Readers:
    """Everybody who reads the contracts of a folder, as far as contracts, files and a registry say.

    What the base says of a contract counts; what is new on the branch is beside it. Nothing is loaded before it is
    asked for: most branches break nobody.
    """

    before: Revision
    after: Revision
    declarations: Sequence[Declaration]
    lineage: Lineage
    approvals: Sequence[Approval] = ()
    elsewhere: Sequence[Contract] = field(default_factory=tuple)

    @classmethod
    def of(cls, args: argparse.Namespace, before: Revision, after: Revision) -> Readers:
        """What the arguments name."""
        from databox_contracts.cli.known import approvals_of, declared_in_files

        declared, lineage = declared_in_files(args.consumers, args.edges)
        if args.registry is None:
            return cls(before, after, declared, lineage)
        from databox_contracts.registry.opening import open_registry
        from databox_contracts.registry.published import declared_at, published

        with closing(open_registry(args.registry)) as registry:
            declared = [*declared_at(registry), *declared]
            return cls(before, after, declared, lineage, approvals_of(registry), published(registry, declared))

    @property
    def consumers(self) -> Mapping[str, Sequence[Consumer]] | None:
        """The consumers that declared themselves outside of the contracts, with all others, by the contract's id."""
        return self._resolved.by_contract() if self.declarations else None

    def reach(self, contract: str, dataset: str | None, field: str | None) -> Sequence[Reader]:
        """Whom a change reaches, as the gate shows it."""
        from databox_contracts.gate.readers import Reader
        from databox_contracts.registry.places import Place

        if contract not in self._dependencies.places:
            return ()
        found = self._dependencies.impact(Place(contract, dataset, field))
        return [
            Reader(one.name, one.owner, one.pin, one.distance, one.path[1:], kind=str(one.kind))
            for one in found.reached
        ]

    @cached_property
    def _contracts(self) -> list[Contract]:
        found: list[Contract] = []
        for revision in (self.before, self.after):
            known = {contract.id for contract in found}
            found += [contract for contract in self._at(revision) if contract.id not in known]
        known = {contract.id for contract in found}
        return [*found, *(contract for contract in self.elsewhere if contract.id not in known)]

    def _at(self, revision: Revision) -> Iterator[Contract]:
        from databox_contracts.gate.revisions import parse

        everything = bool(self.declarations or self.lineage.edges)
        paths = [
            path
            for path, text in revision.texts.items()
            if everything
            or any(word in text for word in _WORDS)
            or self.before.texts.get(path) != self.after.texts.get(path)
        ]
        yield from parse(revision, paths).contracts.values()

    @cached_property
    def _resolved(self) -> Resolved:
        from databox_contracts.cli.impact import tell
        from databox_contracts.registry.consumers import resolve

        resolved = resolve(self._contracts, self.declarations)
        tell(resolved.problems)
        return resolved

    @cached_property
    def _dependencies(self) -> Dependencies:
        from databox_contracts.registry.impact import Dependencies

        return Dependencies(self._contracts, self._resolved.readings, self.lineage.edges, assets=self.lineage.assets)
