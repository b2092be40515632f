"""What a consumer agreed to: a break of a contract, or a further purpose; who gave the consent, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from databox_contracts.errors import DataboxError
from databox_contracts.versions import Version


@dataclass(frozen=True)
class Approval:
    """A stored consent: who gave it, and when.

    `dataset` is None for the whole contract, `version` for whatever version comes next. With a `purpose` it is consent
    that the consumer uses the data for that, and none to a break.
    """

    contract: str
    consumer: str
    approver: str
    on: date
    dataset: str | None = None
    version: str | None = None
    purpose: str | None = None

    def covers(self, contract: str, dataset: str | None, version: str) -> bool:
        """Whether it is consent to a break of that dataset in that version."""
        if self.purpose is not None or self.contract != contract or self.dataset not in (None, dataset):
            return False
        return self.version is None or _same(self.version, version)

    def allows(self, contract: str, consumer: str, purpose: str, version: str) -> bool:
        """Whether it is consent that the consumer uses that version of the contract for that purpose."""
        named = (self.contract, self.consumer, self.purpose) == (contract, consumer, purpose)
        return named and (self.version is None or _same(self.version, version))

    def to_dict(self) -> dict[str, Any]:
        """As JSON, without what it does not say."""
        facts = {
            "contract": self.contract,
            "consumer": self.consumer,
            "approver": self.approver,
            "on": self.on.isoformat(),
            "dataset": self.dataset,
            "version": self.version,
            "purpose": self.purpose,
        }
        return {name: value for name, value in facts.items() if value is not None}


def _same(one: str, other: str) -> bool:
    """Whether two texts mean the same version: 2.0 is 2.0.0."""
    parsed = Version.parse(one)
    return one == other or (parsed is not None and parsed == Version.parse(other))


_NEEDED: Final = ("contract", "consumer", "approver", "on")
_OPTIONAL: Final = ("dataset", "version", "purpose")


def approvals_in(entries: Any, source: str) -> tuple[Approval, ...]:
    """The approvals of a file's data: a list of `{contract, consumer, approver, on[, dataset, version, purpose]}`.

    Raises `DataboxError` for anything else; it names the entry.
    """
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise DataboxError(f"{source} holds no list of approvals", hint=f"Write a list of mappings with {_NEEDED}.")
    return tuple(_approval(entry, f"{source}, entry {number}") for number, entry in enumerate(entries, 1))


def _approval(entry: Any, place: str) -> Approval:
    if not isinstance(entry, Mapping):
        raise DataboxError(f"{place} is no mapping", hint=f"Give it {', '.join(_NEEDED)}.")
    unknown = [str(name) for name in entry if name not in (*_NEEDED, *_OPTIONAL)]
    missing = [name for name in _NEEDED if not entry.get(name)]
    if unknown or missing:
        what = f"has no {missing[0]!r}" if missing else f"has the unknown key {unknown[0]!r}"
        raise DataboxError(f"{place} {what}", hint=f"An approval has {', '.join((*_NEEDED, *_OPTIONAL))}.")
    try:
        on = date.fromisoformat(str(entry["on"]))
    except ValueError:
        raise DataboxError(f"{place}: {str(entry['on'])!r} is no date", hint="Write it as 2026-01-31.") from None
    optional = {name: str(entry[name]) for name in _OPTIONAL if entry.get(name) is not None}
    return Approval(str(entry["contract"]), str(entry["consumer"]), str(entry["approver"]), on, **optional)
