"""Completeness: in so many percent of the periods, so many percent of the rows that were expected have arrived.

Periods are minutes, hours, days, weeks (from Monday) and months of UTC, by the time that the row itself tells; a row
without one is in none. Expected is what another table has in the same period, or a fixed number. Against another table
the periods are those in which it has rows. Against a number they are all from the first that a row tells to the last,
empty ones included, except the last while it is not over at `as_of`: that rows have stopped coming is for a freshness
rule to say, and a table of the past would otherwise never be complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from databox_contracts.plan import Check
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import Completeness, Operator, Threshold, Unit
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.timeliness import MICROS, micros_of

_MINUTE: Final = 60 * MICROS
_SIZES: Final = {"minute": _MINUTE, "hour": 60 * _MINUTE, "day": 1440 * _MINUTE, "week": 7 * 1440 * _MINUTE}
_MONTH: Final = "month"
_MONDAY: Final = 4 * 1440 * _MINUTE
"""From the first Monday of 1970-01-05; weeks are counted from there."""
_MOST_PERIODS: Final = 100_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Periods:
    """One length of a period, each of them known by a whole number that grows by one from period to period."""

    name: str

    def number(self, since_1970: Column) -> Column:
        """The period of a time in microseconds since 1970 in UTC."""
        if self.name == _MONTH:
            day = F.date_add(F.lit("1970-01-01").cast("date"), _whole(since_1970, _SIZES["day"]).cast("int"))
            return (F.year(day) * 12 + F.month(day) - 1).cast("bigint")
        return _whole(since_1970 - F.lit(self._offset), _SIZES[self.name])

    def number_of(self, moment: datetime) -> int:
        """As `number`."""
        if self.name == _MONTH:
            at = moment.astimezone(UTC)
            return at.year * 12 + at.month - 1
        return (micros_of(moment) - self._offset) // _SIZES[self.name]

    def start(self, number: int) -> str:
        """When the period begins, as results show it: a date, with the time for less than a day."""
        try:
            if self.name == _MONTH:
                return date(number // 12, number % 12 + 1, 1).isoformat()
            begins = _EPOCH + timedelta(microseconds=number * _SIZES[self.name] + self._offset)
        except (ValueError, OverflowError):
            return f"a {self.name} outside the years 1 to 9999"
        return f"{begins:%Y-%m-%dT%H:%MZ}" if self.name in ("minute", "hour") else begins.date().isoformat()

    @property
    def _offset(self) -> int:
        return _MONDAY if self.name == "week" else 0


def _whole(value: Column, size: int) -> Column:
    # Exact where a quotient in floating point is not, and downwards before 1970 too.
    return F.call_function("div", value - F.pmod(value, F.lit(size)), F.lit(size))


def periods_of(rule: Completeness) -> Periods:
    """The periods of a rule. Raises `NotEvaluableError` for a rule that cannot be judged."""
    if rule.period not in (*_SIZES, _MONTH):
        known = ", ".join([*_SIZES, _MONTH])
        raise NotEvaluableError(f"the period {rule.period!r} is none of {known}")
    if rule.expected is None:
        raise NotEvaluableError("it has nothing to hold the number of rows against; name a dataset or a number")
    if isinstance(rule.expected, int) and rule.expected < 1:
        raise NotEvaluableError(f"{rule.expected} rows in a period are nothing to expect")
    if rule.threshold.unit is not Unit.PERCENT:
        raise NotEvaluableError("its threshold is no percentage of the rows expected")
    if rule.percent_of_periods is not None and not 0 <= rule.percent_of_periods <= 100:
        raise NotEvaluableError(f"{rule.percent_of_periods} is no percentage of periods")
    return Periods(rule.period)


def reference_clock(name: str, schema: StructType) -> str:
    """The column of the reference that tells a row's time: the one of that name, else its only timestamp."""
    if name in schema.names:
        return name
    found = [one.name for one in schema.fields if isinstance(one.dataType, TimestampType | TimestampNTZType | DateType)]
    times = [one for one in found if not isinstance(schema[one].dataType, DateType)] or found
    if len(times) == 1:
        return times[0]
    has = f"{', '.join(times)} could each be meant" if times else "it has no timestamp"
    raise NotEvaluableError(f"in the reference, {has}; give it a column {name}")


def against_table(arrived: DataFrame, expected: DataFrame) -> DataFrame:
    """For each period that is expected, how many rows are `expected` and `arrived`; both give a column `period`."""
    counts = expected.where("period is not null").groupBy("period").agg(F.count(F.lit(1)).alias("expected"))
    return _beside(counts, arrived)


def against_number(arrived: DataFrame, expected: int, periods: Periods, as_of: datetime) -> DataFrame | None:
    """As `against_table`, for all periods from the first to the last; None where no row tells a time."""
    first, last = arrived.agg(F.min("period"), F.max("period")).collect()[0]
    if first is None:
        return None
    if last == periods.number_of(as_of):
        last -= 1
    if last - first >= _MOST_PERIODS:
        raise NotEvaluableError(f"there are {last - first + 1} periods between the first row and the last")
    between = arrived.sparkSession.range(first, last + 1).withColumnRenamed("id", "period")
    return _beside(between.withColumn("expected", F.lit(expected).cast("bigint")), arrived)


def _beside(expected: DataFrame, arrived: DataFrame) -> DataFrame:
    counts = arrived.groupBy("period").agg(F.count(F.lit(1)).alias("arrived"))
    joined = expected.join(counts, ["period"], "left")
    return joined.select("period", "expected", F.coalesce("arrived", F.lit(0)).alias("arrived"))


def judged(check: Check, counts: DataFrame | None, periods: Periods, *, masked: bool, samples: int) -> CheckResult:
    """The result from the counts of all periods; None where the table has no row with a time.

    One query, and one more for the first periods that fall short where it fails; `masked` shows none of them.
    """
    rule = check.rule
    assert isinstance(rule, Completeness)
    share = Decimal(str(rule.percent_of_periods if rule.percent_of_periods is not None else 100))
    threshold = Threshold(Operator.GREATER_OR_EQUAL, share, unit=Unit.PERCENT)
    promised = f"{rule.threshold} of the rows in {threshold} of the {periods.name}s"
    if counts is None:
        message = f"there is no row with a time, so no {periods.name} is complete"
        return check.result(Status.FAILED, threshold=promised, message=message)
    short = ~_holds(rule.threshold, F.col("arrived"), F.col("expected"))
    every, few = counts.agg(F.count(F.lit(1)), F.count_if(short)).collect()[0]
    complete = Decimal(100 * (every - few)) / every if every else Decimal(100)
    holds = threshold.holds(complete)
    shown: tuple[str, ...] = ()
    if not holds and not masked and samples > 0:
        found = counts.where(short).select("period").orderBy("period").limit(samples).collect()
        shown = tuple(periods.start(row[0]) for row in found)
    have = "has" if few == 1 else "have"
    message = "" if holds else f"{few} of {every} {periods.name}s {have} not arrived as promised: {promised}"
    return check.result(
        Status.PASSED if holds else Status.FAILED,
        observed=float(round(complete, 6)),
        threshold=promised,
        samples=shown,
        message=message,
    )


def _holds(threshold: Threshold, arrived: Column, expected: Column) -> Column:
    """Whether `arrived` in percent of `expected` keeps the promise, without dividing."""
    reached = arrived.cast("decimal(20,0)") * F.lit(Decimal(100))

    def due(value: object) -> Column:
        return expected.cast("decimal(20,0)") * F.lit(Decimal(str(value)))

    if threshold.operator in (Operator.BETWEEN, Operator.NOT_BETWEEN):
        high = threshold.high if threshold.high is not None else threshold.value
        within = (reached >= due(threshold.value)) & (reached <= due(high))
        return within if threshold.operator is Operator.BETWEEN else ~within
    return _COMPARED[threshold.operator](reached, due(threshold.value))


_COMPARED: Final[dict[Operator, Callable[[Column, Column], Column]]] = {
    Operator.MUST_BE: lambda reached, due: reached == due,
    Operator.MUST_NOT_BE: lambda reached, due: reached != due,
    Operator.GREATER_THAN: lambda reached, due: reached > due,
    Operator.GREATER_OR_EQUAL: lambda reached, due: reached >= due,
    Operator.LESS_THAN: lambda reached, due: reached < due,
    Operator.LESS_OR_EQUAL: lambda reached, due: reached <= due,
}
