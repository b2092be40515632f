"""Which columns may identify a row, judged by estimates alone; the rows have the last word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Final

from databox_contracts.datatypes import DataType, Family
from databox_contracts.spark.guessing import FEWEST_ROWS, limits
from databox_contracts.spark.profile_facts import Facts

MOST_CANDIDATES: Final = 8
"""Keys that are looked at: each is one more way to count the rows."""
_MOST_SINGLES: Final = 5
_MOST_BESIDE_SINGLES: Final = 3
_MOST_COLUMNS: Final = 8
"""Columns that composite keys are made of; of 8 there are 210 combinations of two to five."""
_LARGEST_KEY: Final = 5
_LONGEST_PART: Final = 100

# Four standard errors of the estimate of distinct values, which is 5 % off on average.
_ESTIMATE: Final = 0.8
# As many rows would repeat by chance, were the columns independent: less than that, and being unique tells nothing.
_TELLING: Final = 5

_KEYISH: Final = re.compile(
    r"(?:^|[^a-z])(?:id|key|code|uuid|guid|number|no|nr|num|sku|isbn|ean)s?$|[a-z](?:ID|Id|Key)$"
)
_FAMILIES: Final = (Family.STRING, Family.INTEGER, Family.DECIMAL, Family.DATE, Family.TIMESTAMP)
_MOMENTS: Final = (Family.DATE, Family.TIMESTAMP)


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column that a key may be made of."""

    facts: Facts
    type: DataType
    masked: bool = False

    @property
    def name(self) -> str:
        """The table's."""
        return self.facts.leaf.path[0]

    @property
    def distinct(self) -> int:
        """An estimate, never more than there are values."""
        return min(self.facts.distinct, self.facts.present)

    @property
    def is_whole(self) -> bool:
        """Whether it is never null."""
        return self.facts.present == self.facts.rows

    @property
    def rank(self) -> tuple[bool, bool, bool, bool, int]:
        """What makes the better key sorts first: never null, nobody's data, no moment, named like one, further left."""
        return (
            not self.is_whole,
            self.masked,
            self.type.family in _MOMENTS,
            not looks_like_a_key(self.name),
            self.facts.leaf.column,
        )


def looks_like_a_key(name: str) -> bool:
    """Whether the name says so, as `order_id` and `zipCode` do."""
    return _KEYISH.search(name) is not None or _KEYISH.search(name.lower()) is not None


def may_be_part(facts: Facts, type_: DataType | None) -> bool:
    """Whether a column's type and lengths are those of a part of a key."""
    return (
        len(facts.leaf.path) == 1
        and type_ is not None
        and type_.family in _FAMILIES
        and not (type_.family is Family.DECIMAL and type_.scale)
        and facts.present >= FEWEST_ROWS
        and facts.longest <= _LONGEST_PART
    )


def key_candidates(columns: Sequence[KeyColumn], rows: int) -> list[tuple[KeyColumn, ...]]:
    """Columns and combinations of them that may be unique, the best first, single ones before composite ones.

    At most `MOST_CANDIDATES`. The same estimates always give the same answer. A combination is only tried if it would
    repeat were it by chance.
    """
    if rows < FEWEST_ROWS:
        return []
    singles = [(one,) for one in sorted(columns, key=lambda one: one.rank) if _may_be_unique(one)][:_MOST_SINGLES]
    # Beside a column that may do alone, few combinations are worth their count.
    room = _MOST_BESIDE_SINGLES if singles else MOST_CANDIDATES
    return [*singles, *_composites(columns, rows)[:room]]


def _may_be_unique(column: KeyColumn) -> bool:
    if column.distinct < _ESTIMATE * column.facts.present:
        return False
    span = _span(column)
    by_chance = column.facts.present**2 / (2 * span) if span is not None else None
    return by_chance is None or by_chance >= _TELLING or looks_like_a_key(column.name)


def _span(column: KeyColumn) -> int | None:
    """How many values an integer could have had within its range."""
    low, high = limits(column.facts, column.type)
    if column.type.family is not Family.INTEGER or not isinstance(low, int) or not isinstance(high, int):
        return None
    return high - low + 1


def _composites(columns: Sequence[KeyColumn], rows: int) -> list[tuple[KeyColumn, ...]]:
    parts = [one for one in columns if one.is_whole and one.distinct > 1]
    chosen = sorted(parts, key=lambda one: (not _helps(one), one.facts.leaf.column))[:_MOST_COLUMNS]
    chosen.sort(key=lambda one: one.facts.leaf.column)
    found: list[tuple[int, int, tuple[KeyColumn, ...]]] = []
    for size in range(2, _LARGEST_KEY + 1):
        for combination in combinations(chosen, size):
            possible = prod(one.distinct for one in combination)
            if _ESTIMATE * rows <= possible <= rows**2 / (2 * _TELLING):
                found.append((size, possible, combination))
    # `combinations` goes from left to right, and sorting keeps that order among equals.
    found.sort(key=lambda one: one[:2])
    return [combination for _, _, combination in found]


def _helps(column: KeyColumn) -> bool:
    return column.type.family in _MOMENTS or looks_like_a_key(column.name)
