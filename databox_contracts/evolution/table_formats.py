"""What the specifications of table formats let a table become: a second gate, beside the contract's policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from databox_contracts.evolution.changes import ChangeType, Difference, Variant
from databox_contracts.evolution.policies import Policy, variant_of_types
from databox_contracts.evolution.widening import Widening

C: TypeAlias = ChangeType
V: TypeAlias = Variant


class TableFormat(StrEnum):
    """The formats with rules of their own."""

    ICEBERG = "iceberg"
    DELTA = "delta"

    @property
    def brand(self) -> str:
        """The format's name as it writes it."""
        return {"iceberg": "Iceberg", "delta": "Delta"}[self.value]


@dataclass(frozen=True, slots=True)
class FormatRule:
    """Whether a format makes such a change to a table that is there, and on what condition, or why not."""

    allowed: bool
    text: str = ""


_YES: Final = FormatRule(True)
_DELTA_MAPPING: Final = FormatRule(True, "the table needs column mapping: delta.columnMapping.mode = name")
_DELTA_WIDENING: Final = FormatRule(True, "the table needs type widening: delta.enableTypeWidening = true")
_NEW_REQUIRED_ICEBERG: Final = FormatRule(
    False, "a new column is optional, or has a default for the rows there are, which only format version 3 knows"
)
_NEW_REQUIRED_DELTA: Final = FormatRule(False, "a new column holds nulls for the rows there are")
_TIGHTENED: Final = FormatRule(False, "an optional column does not become required")
_TYPES: Final = {
    TableFormat.ICEBERG: FormatRule(
        False, "it promotes int to long, float to double, and decimals to more digits of the same scale, no other type"
    ),
    TableFormat.DELTA: FormatRule(False, "its type widening has no such step; the table has to be written again"),
}

RULES: Final[Mapping[TableFormat, Mapping[tuple[ChangeType, Variant | None], FormatRule]]] = {
    # The chapter "Schema Evolution" of the specification of Iceberg tables.
    TableFormat.ICEBERG: {
        (C.FIELD_ADDED, V.OPTIONAL): _YES,
        (C.FIELD_ADDED, V.REQUIRED): _NEW_REQUIRED_ICEBERG,
        (C.FIELD_REMOVED, V.OPTIONAL): _YES,
        (C.FIELD_REMOVED, V.REQUIRED): _YES,
        (C.FIELD_RENAMED, None): _YES,
        (C.FIELD_REORDERED, None): _YES,
        (C.TYPE_CHANGED, V.WIDENED): _YES,
        (C.TYPE_CHANGED, V.NARROWED): _TYPES[TableFormat.ICEBERG],
        (C.TYPE_CHANGED, V.OTHERWISE): _TYPES[TableFormat.ICEBERG],
        (C.NULLABILITY_RELAXED, None): _YES,
        (C.NULLABILITY_TIGHTENED, None): _TIGHTENED,
    },
    # The protocol of Delta tables: its schema, column mapping, and the feature typeWidening.
    TableFormat.DELTA: {
        (C.FIELD_ADDED, V.OPTIONAL): _YES,
        (C.FIELD_ADDED, V.REQUIRED): _NEW_REQUIRED_DELTA,
        (C.FIELD_REMOVED, V.OPTIONAL): _DELTA_MAPPING,
        (C.FIELD_REMOVED, V.REQUIRED): _DELTA_MAPPING,
        (C.FIELD_RENAMED, None): _DELTA_MAPPING,
        (C.FIELD_REORDERED, None): _YES,
        (C.TYPE_CHANGED, V.WIDENED): _DELTA_WIDENING,
        (C.TYPE_CHANGED, V.NARROWED): _TYPES[TableFormat.DELTA],
        (C.TYPE_CHANGED, V.OTHERWISE): _TYPES[TableFormat.DELTA],
        (C.NULLABILITY_RELAXED, None): _YES,
        (C.NULLABILITY_TIGHTENED, None): _TIGHTENED,
    },
}
"""Every change of columns; of anything else (keys, rules, words) a format says nothing."""

_WIDENINGS: Final = {TableFormat.ICEBERG: Widening.ICEBERG, TableFormat.DELTA: Widening.DELTA}


@dataclass(frozen=True, slots=True)
class FormatVerdict:
    """One change of a table's columns as the format sees it, beside what the contract says of it."""

    kind: ChangeType
    place: str
    dataset: str | None
    format: TableFormat
    allowed: bool
    by_contract: bool
    text: str = ""

    @property
    def told_apart(self) -> str:
        """Who allows it, in one sentence."""
        title = self.format.brand
        who = {
            (True, True): f"the contract and {title} allow it",
            (True, False): f"{title} allows it, the contract does not",
            (False, True): f"the contract allows it, {title} does not",
            (False, False): f"neither the contract nor {title} allows it",
        }[self.allowed, self.by_contract]
        return f"{self.kind} {self.place}: {who}" + (f" ({self.text})" if self.text else "")

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "kind": str(self.kind),
            "place": self.place,
            "format": str(self.format),
            "allowed_by_format": self.allowed,
            "allowed_by_contract": self.by_contract,
            "message": self.told_apart,
        }


@dataclass(frozen=True, slots=True)
class FormatGate:
    """What a table format says of every change of columns."""

    format: TableFormat
    verdicts: tuple[FormatVerdict, ...] = ()

    @property
    def refused(self) -> list[FormatVerdict]:
        """The changes that a table of the format cannot make."""
        return [verdict for verdict in self.verdicts if not verdict.allowed]

    def to_dict(self) -> dict[str, Any]:
        """The gate as plain data."""
        return {"format": str(self.format), "changes": [verdict.to_dict() for verdict in self.verdicts]}


def gate_of(differences: Sequence[Difference], policy: Policy, table_format: TableFormat) -> FormatGate:
    """What the format says of each difference that it has a rule for, in their order; a rename is one change to it."""
    return FormatGate(table_format, tuple(_verdicts(differences, policy, table_format)))


def _verdicts(differences: Sequence[Difference], policy: Policy, table_format: TableFormat) -> Iterator[FormatVerdict]:
    for difference in differences:
        rule = rule_of(difference, table_format)
        if rule is not None:
            yield FormatVerdict(
                difference.kind,
                difference.place,
                difference.dataset,
                table_format,
                rule.allowed,
                not policy.breaks(difference),
                rule.text,
            )


def rule_of(difference: Difference, table_format: TableFormat) -> FormatRule | None:
    """The format's rule for a change, None for one that is not about columns."""
    rules = RULES[table_format]
    variant = difference.variant
    if difference.kind is C.TYPE_CHANGED:
        variant = variant_of_types(difference, _WIDENINGS[table_format])
        old, new = difference.types or (None, None)
        if old is None or new is None:
            # What no type is declared for cannot be promoted.
            variant = V.OTHERWISE
    return rules.get((difference.kind, variant)) or rules.get((difference.kind, None))
