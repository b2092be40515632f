"""Pairs of rules that leave no value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from databox_contracts.errors import Level
from databox_contracts.formats.odcs_values import comparable
from databox_contracts.formats.reading import Section
from databox_contracts.rules import Rule

_OPPOSITES: Final = (
    ("min_length", "max_length", "length", True),
    ("minimum", "maximum", "limit", True),
    ("minimum", "exclusive_maximum", "limit", False),
    ("exclusive_minimum", "maximum", "limit", False),
    ("exclusive_minimum", "exclusive_maximum", "limit", False),
)


def contradictions(found: Iterable[Rule], logical: str | None) -> Iterator[tuple[str, Rule]]:
    """Each pair of bounds that no value keeps: what the two are called, and the upper one of them."""
    by_kind: dict[str, Any] = {rule.kind: rule for rule in found}
    for low, high, fact, both_inclusive in _OPPOSITES:
        if low not in by_kind or high not in by_kind:
            continue
        least: Any = comparable(getattr(by_kind[low], fact), logical)
        most: Any = comparable(getattr(by_kind[high], fact), logical)
        if least > most or (least == most and not both_inclusive):
            yield f"{low.replace('_', ' ')} and {high.replace('_', ' ')}", by_kind[high]


def check_ranges(section: Section, found: Iterable[Rule], logical: str | None) -> None:
    """An error, at the second of them, for each pair of bounds that no value keeps."""
    for names, rule in contradictions(found, logical):
        section.report.add(
            Level.ERROR,
            section.path,
            f"{names} leave no value",
            "correct one of them",
            field=section.field,
            position=rule.position or section.position,
        )
