"""Who accepted which break: lines of a pull request, the command line, a variable, and stored approvals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract

VARIABLE: Final = "ACCEPT_BREAKING_CHANGE"

_ACCEPT: Final = re.compile(r"accept-breaking-change:[ \t]*(?P<token>[^\s,]*)[ \t]*", re.IGNORECASE)
_CLAIM: Final = re.compile(
    r"approve-breaking-change:[ \t]*(?P<token>[^\s,]+)[ \t]+by[ \t]+(?P<consumer>\S.*?)[ \t]*", re.IGNORECASE
)


@dataclass(frozen=True)
class Acknowledgements:
    """The datasets whose breaks are accepted, each with where that was said, and the approvals somebody claims."""

    tokens: Mapping[str, str]
    claims: tuple[tuple[str, str], ...] = ()

    def source_of(self, contract: Contract, dataset: str | None) -> str | None:
        """Where a break of that dataset was accepted, or None. A contract's id accepts for all of its datasets."""
        # What belongs to no dataset goes with any of them.
        datasets = [one for one in contract.datasets if dataset is None or one.name == dataset]
        names = [contract.id]
        for one in datasets:
            names += [one.name, one.table_name, f"{contract.id}.{one.name}"]
        if dataset is not None and not datasets:
            names += [dataset, f"{contract.id}.{dataset}"]
        return next((self.tokens[name] for name in names if name in self.tokens), None)

    def claimed_for(self, contract: Contract, dataset: str | None) -> tuple[str, ...]:
        """The consumers whose approval a line of the pull request claims, which counts for nothing by itself."""
        names = (contract.id, dataset, f"{contract.id}.{dataset}")
        return tuple(consumer for token, consumer in self.claims if token in names)


def read_acknowledgements(accept: str | None, variable: str | None, body: str | None) -> Acknowledgements:
    """What was accepted: `accept` (comma-separated) takes the variable's place, lines of the pull request add to it.

    Only a line that begins with `accept-breaking-change:` counts. Raises `DataboxError` for such a line, or a list,
    without a name.
    """
    tokens: dict[str, str] = {}
    source, listed = ("--accept", accept) if accept is not None else (f"${VARIABLE}", variable)
    for token in (listed or "").split(","):
        if token.strip():
            tokens.setdefault(token.strip(), source)
        elif listed and listed.strip() and accept is not None and "," in listed:
            raise DataboxError(f"{source} has an empty name: {listed!r}", hint="Separate datasets by single commas.")
    claims: list[tuple[str, str]] = []
    for number, line in enumerate((body or "").splitlines(), 1):
        if found := _ACCEPT.fullmatch(line):
            if not found["token"]:
                raise DataboxError(
                    f"line {number} of the pull request accepts nothing",
                    hint="Write `accept-breaking-change: dataset`.",
                )
            tokens.setdefault(found["token"], f"line {number} of the pull request")
        elif claim := _CLAIM.fullmatch(line):
            claims.append((claim["token"], claim["consumer"]))
    return Acknowledgements(tokens, tuple(claims))


def unused(acknowledgements: Acknowledgements, known: Iterable[str]) -> list[str]:
    """The accepted names that no contract has, at the base or at the head: most likely misspelt."""
    names = set(known)
    return [token for token in acknowledgements.tokens if token not in names]


def names_of(contract: Contract) -> list[str]:
    """Every name that a break of the contract can be accepted by, each once."""
    names = [contract.id]
    for dataset in contract.datasets:
        names += [dataset.name, dataset.table_name, f"{contract.id}.{dataset.name}"]
    return list(dict.fromkeys(names))


def without_ambiguous(
    acknowledgements: Acknowledgements, contracts: Iterable[Contract]
) -> tuple[Acknowledgements, list[str]]:
    """The acknowledgements that name one contract, and in a sentence each those that could mean several."""
    owners: dict[str, list[str]] = {}
    for contract in contracts:
        for name in names_of(contract):
            ids = owners.setdefault(name, [])
            if contract.id not in ids:
                ids.append(contract.id)
    several = {token: owners[token] for token in acknowledgements.tokens if len(owners.get(token, ())) > 1}
    sentences = [
        f"{token!r} could mean a dataset of {' or '.join(ids)} and accepts nothing; write {ids[0]}.{token}"
        for token, ids in several.items()
    ]
    kept = {token: source for token, source in acknowledgements.tokens.items() if token not in several}
    return Acknowledgements(kept, acknowledgements.claims), sentences
