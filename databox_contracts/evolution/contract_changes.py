"""What changed of a contract beside its datasets: who owns it, who may have it, how it may change, what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

from databox_contracts.evolution.changes import ChangeType, Difference, Variant
from databox_contracts.model import Contract, Enforcement

_KINDS: Final = {
    "governance": ChangeType.GOVERNANCE_CHANGED,
    "consumers": ChangeType.GOVERNANCE_CHANGED,
    "evolution": ChangeType.GOVERNANCE_CHANGED,
    "enforcement": ChangeType.GOVERNANCE_CHANGED,
    "notice_period": ChangeType.GOVERNANCE_CHANGED,
    "team": ChangeType.OWNERSHIP_CHANGED,
    "owner": ChangeType.OWNERSHIP_CHANGED,
}
"""The kind of a change of each part of a contract; all other parts are documentation."""

_ELSEWHERE: Final = ("id", "version", "datasets", "dialect", "source", "findings")


def contract_differences(old: Contract, new: Contract) -> Iterator[Difference]:
    """The changes in the order of the model."""
    for name in Contract.model_fields:
        before, after = getattr(old, name), getattr(new, name)
        if name in _ELSEWHERE or _same(before, after):
            continue
        kind = _KINDS.get(name, ChangeType.DOCUMENTATION_CHANGED)
        if isinstance(before, BaseModel) and isinstance(after, BaseModel):
            yield from _parts(kind, name, before, after)
        else:
            yield Difference(kind, subject=name.replace("_", " "), old=_plain(before), new=_plain(after))


def _parts(kind: ChangeType, name: str, before: BaseModel, after: BaseModel) -> Iterator[Difference]:
    """One difference for each attribute that changed."""
    later = isinstance(before, Enforcement) and isinstance(after, Enforcement) and _is_later(before, after)
    for part in type(before).model_fields:
        had, has = getattr(before, part), getattr(after, part)
        if not _same(had, has):
            yield Difference(
                kind,
                subject=f"{name} {part}".replace("_", " "),
                old=_plain(had),
                new=_plain(has),
                variant=Variant.GRACE_EXTENDED if later else None,
            )


def _is_later(before: Enforcement, after: Enforcement) -> bool:
    """Whether violations are let through longer than before."""
    if after.mode != "warn" or after.until is None:
        return False
    return before.mode != "warn" or before.until is None or after.until > before.until


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, str) and isinstance(after, str):
        return before.strip() == after.strip()
    return bool(before == after)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return {name: _plain(part) for name, part in value if part not in (None, (), "", {}, False)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str | dict) or value is None else str(value)
