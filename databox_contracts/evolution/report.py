"""The report on what changed between two versions: judged changes, and the version that they need."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from databox_contracts.evolution.changes import ChangeType
from databox_contracts.evolution.table_formats import FormatGate
from databox_contracts.versions import Bump

_BREAK_CONSUMERS: Final = (ChangeType.FIELD_REMOVED, ChangeType.FIELD_RENAMED, ChangeType.TYPE_CHANGED)
_PATCHES: Final = (ChangeType.DOCUMENTATION_CHANGED, ChangeType.OWNERSHIP_CHANGED)
_NO_BUMP: Final = (ChangeType.FIELD_REORDERED, ChangeType.VERSION_NOT_BUMPED)


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One judged change.

    `field_name` is the dotted path in the dataset, and the dataset's own name where it is about no field. `is_breaking`
    is the policy's verdict; where none is given, a change breaks that a reader of the old schema would miss.
    `widening` is None for anything but a type. `hint` is the way that breaks nobody.
    """

    change_type: ChangeType
    field_name: str
    old_value: Any = None
    new_value: Any = None
    description: str = ""
    is_breaking: bool | None = None
    dataset: str | None = None
    widening: bool | None = None
    breaks_readers: bool = False
    breaks_writers: bool = False
    hint: str | None = None
    consumers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.is_breaking is None:
            object.__setattr__(self, "is_breaking", self.change_type in _BREAK_CONSUMERS)

    def to_dict(self) -> dict[str, Any]:
        """The change as plain data."""
        return {
            "kind": str(self.change_type),
            "dataset": self.dataset,
            "field": self.field_name,
            "old": self.old_value,
            "new": self.new_value,
            "breaking": self.is_breaking,
            "widening": self.widening,
            "message": self.description,
            "hint": self.hint,
            "breaks_readers": self.breaks_readers,
            "breaks_writers": self.breaks_writers,
            "consumers": list(self.consumers),
        }


@dataclass(frozen=True)
class MigrationReport:
    """What changed between two versions of a schema or contract, judged under one policy.

    `remarks` are what else is to be said, such as a version that moved further than it had to. `table_format` is what a
    table format says of the changes, where one was asked; it has no say in `is_breaking`.
    """

    schema_name: str
    old_version: str
    new_version: str
    changes: Sequence[FieldChange] = ()
    policy: str = "consumer"
    actual_bump: Bump | None = None
    remarks: tuple[str, ...] = ()
    title: str | None = None
    table_format: FormatGate | None = None

    @property
    def heading(self) -> str:
        """What the report calls it: the title people know, and the name behind it."""
        return f"{self.title} ({self.schema_name})" if self.title not in (None, self.schema_name) else self.schema_name

    @property
    def breaking_changes(self) -> list[FieldChange]:
        """Those that break somebody under the policy."""
        return [change for change in self.changes if change.is_breaking]

    @property
    def safe_changes(self) -> list[FieldChange]:
        """All others."""
        return [change for change in self.changes if not change.is_breaking]

    @property
    def is_breaking(self) -> bool:
        """Whether any change breaks somebody."""
        return bool(self.breaking_changes)

    @property
    def required_bump(self) -> Bump:
        """How far the version has to move: documentation a patch, what adds or relaxes a minor, a break a major one."""
        return required_bump(self.changes)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, as `diff --format json` prints it."""
        return {
            "contract": self.schema_name,
            "old_version": self.old_version,
            "new_version": self.new_version,
            "policy": self.policy,
            "is_breaking": self.is_breaking,
            "required_bump": str(self.required_bump),
            "actual_bump": str(self.actual_bump) if self.actual_bump is not None else None,
            "changes": [change.to_dict() for change in self.changes],
            "remarks": list(self.remarks),
            **({"table_format": self.table_format.to_dict()} if self.table_format is not None else {}),
        }

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def print_report(self) -> None:
        """Prints the report for a terminal."""
        from databox_contracts.evolution.rendering import as_text

        for line in as_text(self):
            print(line)


def required_bump(changes: Sequence[FieldChange]) -> Bump:
    """How far a version has to move for these changes."""
    needed = Bump.NONE
    for change in changes:
        if change.change_type in _NO_BUMP:
            continue
        if change.is_breaking:
            return Bump.MAJOR
        needed = max(needed, Bump.PATCH if change.change_type in _PATCHES else Bump.MINOR)
    return needed
