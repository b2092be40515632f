"""Who accepted which break: lines of a pull request, the command line, a variable, and stored approvals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

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


@dataclass(frozen=True)
class Approval:
    """A consumer's stored consent to a version of a contract: who gave it, and when.

    `dataset` is None for the whole contract, `version` for whatever version comes next.
    """

    contract: str
    consumer: str
    approver: str
    on: date
    dataset: str | None = None
    version: str | None = None

    def covers(self, contract: str, dataset: str | None, version: str) -> bool:
        """Whether it is consent to a break of that dataset in that version."""
        return self.contract == contract and self.dataset in (None, dataset) and self.version in (None, version)


_ENTRIES: Final = ("contract", "consumer", "approver", "on", "dataset", "version")


def approvals_in(entries: Any, source: str) -> tuple[Approval, ...]:
    """The approvals of a file's data: a list of `{contract, consumer, approver, on[, dataset, version]}`.

    Raises `DataboxError` for anything else; it names the entry.
    """
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise DataboxError(
            f"{source} holds no list of approvals", hint=f"Write a list of mappings with {_ENTRIES[:4]}."
        )
    return tuple(_approval(entry, f"{source}, entry {number}") for number, entry in enumerate(entries, 1))


def _approval(entry: Any, place: str) -> Approval:
    if not isinstance(entry, dict):
        raise DataboxError(f"{place} is no mapping", hint=f"Give it {', '.join(_ENTRIES[:4])}.")
    unknown = [str(name) for name in entry if name not in _ENTRIES]
    missing = [name for name in _ENTRIES[:4] if not entry.get(name)]
    if unknown or missing:
        what = f"has no {missing[0]!r}" if missing else f"has the unknown key {unknown[0]!r}"
        raise DataboxError(f"{place} {what}", hint=f"An approval has {', '.join(_ENTRIES)}.")
    try:
        on = date.fromisoformat(str(entry["on"]))
    except ValueError:
        raise DataboxError(f"{place}: {str(entry['on'])!r} is no date", hint="Write it as 2026-01-31.") from None
    optional = {name: str(entry[name]) for name in ("dataset", "version") if entry.get(name) is not None}
    return Approval(str(entry["contract"]), str(entry["consumer"]), str(entry["approver"]), on, **optional)


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
