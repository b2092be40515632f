"""What can change between two versions of a contract: the kinds, and one difference as it was found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from databox_contracts.datatypes import DataType


class ChangeType(StrEnum):
    """The kinds of changes."""

    DATASET_ADDED = "dataset_added"
    DATASET_REMOVED = "dataset_removed"
    DATASET_RENAMED = "dataset_renamed"
    FIELD_ADDED = "field_added"
    FIELD_REMOVED = "field_removed"
    FIELD_RENAMED = "field_renamed"
    FIELD_REORDERED = "field_reordered"
    TYPE_CHANGED = "type_changed"
    NULLABILITY_TIGHTENED = "nullability_tightened"
    NULLABILITY_RELAXED = "nullability_relaxed"
    ENUM_VALUES_ADDED = "enum_values_added"
    ENUM_VALUES_REMOVED = "enum_values_removed"
    CONSTRAINT_ADDED = "constraint_added"
    CONSTRAINT_REMOVED = "constraint_removed"
    CONSTRAINT_TIGHTENED = "constraint_tightened"
    CONSTRAINT_RELAXED = "constraint_relaxed"
    KEY_CHANGED = "key_changed"
    RULE_ADDED = "rule_added"
    RULE_REMOVED = "rule_removed"
    RULE_TIGHTENED = "rule_tightened"
    RULE_RELAXED = "rule_relaxed"
    GUARANTEE_TIGHTENED = "guarantee_tightened"
    GUARANTEE_LOOSENED = "guarantee_loosened"
    GOVERNANCE_CHANGED = "governance_changed"
    OWNERSHIP_CHANGED = "ownership_changed"
    DOCUMENTATION_CHANGED = "documentation_changed"
    VERSION_NOT_BUMPED = "version_not_bumped"


class Variant(StrEnum):
    """What a policy may want to know of a change beyond its kind."""

    OPTIONAL = "optional"
    REQUIRED = "required"
    WIDENED = "widened"
    NARROWED = "narrowed"
    OTHERWISE = "otherwise"
    GRACE_EXTENDED = "grace extended"


@dataclass(frozen=True, slots=True)
class Difference:
    """One change, before anybody judges it.

    `field` is the dotted path in the dataset, of the old contract where it has the field; None for the dataset or the
    contract itself. `subject` names what of it changed, such as `minimum` or `description`. `old` and `new` are plain
    values, None where there is none or where they must not be shown. `types` are the two types of a type change.
    `announced` says that a field that is gone was deprecated before.
    """

    kind: ChangeType
    dataset: str | None = None
    field: str | None = None
    old: Any = None
    new: Any = None
    variant: Variant | None = None
    subject: str = ""
    types: tuple[DataType | None, DataType | None] | None = None
    old_required: bool = False
    new_required: bool = False
    announced: bool = False

    @property
    def place(self) -> str:
        """`dataset.field`, as far as there is one."""
        return ".".join(part for part in (self.dataset, self.field) if part) or "contract"
