"""What is known of a table's rows before one is read, and which checks that answers.

An answer from here is the one that a scan would give: only counts that are certain are given, and a check whose count
is not is left to the scan. So a bound that the smallest and the largest value keep is broken by no row; of one that
they do not keep, nobody knows by how many.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from pyspark.sql.types import (
    ByteType,
    DataType as SparkType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)

from databox_contracts import rules
from databox_contracts.spark.counting import Condition, Counted, Measured, RowCheck
from databox_contracts.spark.footers import ColumnStatistics, TableStatistics
from databox_contracts.spark.timeliness import MICROS, as_instant, cutoff, micros_of

FILES_JUST_WRITTEN: Final = "statistics of the files just written"
TRUSTED_FILES: Final = "statistics of the files, which were to be trusted"
"""Where an answer came from, in the words of `verify --explain`."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The number of rows that break a rule, where that came from, and values of theirs."""

    count: int
    how: str
    samples: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """Facts about exactly the rows that are to be judged.

    `statistics` are those of their files, None without any; `source` says which those are. `decided` are counts that
    were taken elsewhere, by id; statistics come first.
    """

    statistics: TableStatistics | None = None
    source: str = FILES_JUST_WRITTEN
    decided: Mapping[str, Decided] = field(default_factory=dict)

    @property
    def rows(self) -> int | None:
        """How many rows there are, None if nobody said."""
        return self.statistics.rows if self.statistics is not None else None

    def count(self, counted: RowCheck, as_of: datetime) -> Decided | str:
        """How many rows break the rule at that time, or why that is not known."""
        found = self._from_statistics(counted, as_of)
        if isinstance(found, int):
            return Decided(found, self.source)
        return self.decided.get(counted.check.id, found)

    def aggregates(self, measured: Measured) -> tuple[Any, ...] | None:
        """What the check's columns would be aggregated to, None if that is not known."""
        rule, location = measured.check.rule, measured.location
        if self.statistics is None or location is None or location.steps:
            return None
        found = self.statistics.columns.get(location.column)
        if self.statistics.rows == 0:
            found = ColumnStatistics(0, empty=True)
        if found is None or not (found.bounded or found.empty):
            return None
        if isinstance(rule, rules.Freshness):
            newest = in_micros(found.largest, location.type) if found.bounded else None
            return (newest,) if newest is not None or found.empty else None
        if isinstance(rule, rules.Statistic):
            return _statistic(rule, found, self.statistics.rows)
        return None

    def has_no_repeats(self, check_id: str) -> Decided | None:
        """Whether no key of that check can occur twice, None if nobody knows."""
        if self.rows is not None and self.rows <= 1:
            return Decided(0, self.source)
        found = self.decided.get(check_id)
        return found if found is not None and found.count == 0 else None

    def _from_statistics(self, counted: RowCheck, as_of: datetime) -> int | str:
        if self.statistics is None:
            return "no statistics were read"
        if self.statistics.rows == 0:
            return 0
        if isinstance(counted, Condition):
            return "statistics know nothing of conditions"
        column = self.statistics.columns.get(counted.location.column)
        if counted.location.steps or counted.name is not None or column is None:
            return "no statistics are of that place"
        return _violations(counted, column, self.statistics.rows, as_of)


def _violations(counted: Counted, column: ColumnStatistics, rows: int, as_of: datetime) -> int | str:
    rule, actual = counted.check.rule, counted.location.type
    if isinstance(rule, rules.Required | rules.NullCount):
        return column.nulls if column.nulls is not None else "the statistics do not count nulls"
    if isinstance(rule, rules.MissingCount):
        return _missing(rule, column, rows)
    if column.empty and isinstance(rule, _KEPT_BY_NULL):
        return 0
    kept = _BOUNDS.get(type(rule))
    if kept is None and not isinstance(rule, rules.Retention):
        return "statistics do not tell it"
    if not column.bounded:
        return "the statistics have no minimum and maximum that can be relied on"
    if isinstance(rule, rules.Retention):
        oldest = in_micros(column.smallest, actual)
        return 0 if oldest is not None and oldest >= cutoff(rule, as_of) else "the statistics show a row that is older"
    assert kept is not None
    limit = _comparable(getattr(rule, "limit", None), actual)
    if limit is None:
        return "its limit compares in another way than statistics do"
    return 0 if kept(column, limit) else "the statistics show a value beyond the limit, and not how many"


_KEPT_BY_NULL: Final = (
    rules.Enum,
    rules.Pattern,
    rules.Format,
    rules.Minimum,
    rules.Maximum,
    rules.ExclusiveMinimum,
    rules.ExclusiveMaximum,
    rules.MultipleOf,
    rules.MinLength,
    rules.MaxLength,
    rules.InvalidCount,
    rules.Retention,
)

_BOUNDS: Final[Mapping[type[rules.Rule], Callable[[ColumnStatistics, Any], bool]]] = {
    rules.Minimum: lambda column, limit: bool(operator.ge(column.smallest, limit)),
    rules.Maximum: lambda column, limit: bool(operator.le(column.largest, limit)),
    rules.ExclusiveMinimum: lambda column, limit: bool(operator.gt(column.smallest, limit)),
    rules.ExclusiveMaximum: lambda column, limit: bool(operator.lt(column.largest, limit)),
}


def _missing(rule: rules.MissingCount, column: ColumnStatistics, rows: int) -> int | str:
    counts_nulls = None in rule.missing_values
    if column.empty:
        return rows if counts_nulls else 0
    if any(value is not None for value in rule.missing_values):
        return "statistics do not tell how often a value occurs"
    if not counts_nulls:
        return 0
    return column.nulls if column.nulls is not None else "the statistics do not count nulls"


def _statistic(rule: rules.Statistic, column: ColumnStatistics, rows: int) -> tuple[Any, ...] | None:
    """What `aggregates.statistic_columns` would be aggregated to."""
    if column.empty:
        return None, 0, 0, 0
    if column.nulls is None or rule.statistic not in ("min", "max"):
        return None
    return (column.smallest if rule.statistic == "min" else column.largest), rows - column.nulls, 0, 0


def in_micros(value: int, actual: SparkType) -> int | None:
    """A time of the statistics in microseconds since 1970, None where Spark's own count of them would overflow."""
    found = value * 86_400 * MICROS if isinstance(actual, DateType) else value
    return found if -(2**63) <= found < 2**63 else None


def _comparable(limit: Any, actual: SparkType) -> Any:
    """The limit as the statistics of such a column have values, None where Spark would compare in another way."""
    try:
        if isinstance(actual, DateType):
            return (date.fromisoformat(str(limit)[:10]) - date(1970, 1, 1)).days
        if isinstance(actual, TimestampType | TimestampNTZType):
            return micros_of(as_instant(datetime.fromisoformat(str(limit))))
        if isinstance(limit, bool):
            return None
        number = Decimal(str(limit))
        if isinstance(actual, DoubleType | FloatType):
            return None if number.is_nan() else _floating(float(number), actual)
        return number if _is_compared_exactly(number, actual) else None
    except (ValueError, ArithmeticError, TypeError, struct.error):
        return None


def _floating(number: float, actual: SparkType) -> float:
    return number if isinstance(actual, DoubleType) else float(struct.unpack("f", struct.pack("f", number))[0])


def _is_compared_exactly(number: Decimal, actual: SparkType) -> bool:
    """Whether a decimal type holds every value of the column and the limit; else Spark rounds one of them."""
    if not number.is_finite():
        return False
    whole, scale = _digits(actual)
    exponent = int(number.as_tuple().exponent)
    digits = len(number.as_tuple().digits)
    return max(whole, digits + exponent, 1) + max(scale, -exponent, 0) <= 38


def _digits(actual: SparkType) -> tuple[int, int]:
    """How many digits values of that type have before and behind the point."""
    if isinstance(actual, DecimalType):
        return actual.precision - actual.scale, actual.scale
    assert isinstance(actual, IntegralType)
    return (3 if isinstance(actual, ByteType) else 5 if isinstance(actual, ShortType) else 20), 0
