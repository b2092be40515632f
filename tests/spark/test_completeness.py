"""Completeness per period, against a number and against another table."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.results import CheckResult
from databox_contracts.rules import Operator, Threshold, Unit
from databox_contracts.spark.completeness import Periods
from databox_contracts.spark.verification import verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = datetime(2024, 3, 1, tzinfo=UTC)


def at(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2024, 1, day, hour, minute, tzinfo=UTC)


def complete(expected: str | int, percent: float, of_periods: float | None, period: str = "hour") -> rules.Completeness:
    return rules.Completeness(
        threshold=Threshold(Operator.GREATER_OR_EQUAL, percent, unit=Unit.PERCENT),
        period=period,
        expected=expected,
        percent_of_periods=of_periods,
    )


def judged(df: DataFrame, *held: rules.Rule, pii: bool = False, **facts: Any) -> list[CheckResult]:
    clock = build_field("at", "timestamp", rules.Required(severity=rules.Severity.INFO), pii=pii)
    found = verify(df, build_contract(clock, rules=held), **{"as_of": NOW, **facts}).results
    return [r for r in found if r.rule == "completeness"]


@pytest.fixture(autouse=True, scope="module")
def calcutta(spark: SparkSession) -> Any:
    """A session whose hours do not begin with those of UTC."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Calcutta")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.fixture(scope="module")
def arrived(spark: SparkSession) -> DataFrame:
    """Two rows in the first hour, none in the second, one in the third, two in the fourth, and one of no time."""
    times = [at(1, 0), at(1, 0, 59), at(1, 2, 30), at(1, 3), at(1, 3, 1), None]
    return spark.createDataFrame([(time,) for time in times], "at timestamp").repartition(2)


def test_against_a_number(arrived: DataFrame) -> None:
    found = judged(
        arrived,
        complete(2, 100, 100),
        complete(2, 100, 50),
        complete(2, 50, 75),
        complete(2, 50, 75.1),
        complete(1, 100, None),
        complete(2, 0, None),
        complete(5, 100, 100, "day"),
        complete(6, 100, 100, "month"),
        complete(2, 100, 100, "fortnight"),
    )
    assert [(r.status.value, r.observed, r.samples) for r in found] == [
        ("failed", 50.0, ("2024-01-01T01:00Z", "2024-01-01T02:00Z")),
        ("passed", 50.0, ()),
        ("passed", 75.0, ()),
        ("failed", 75.0, ("2024-01-01T01:00Z",)),
        ("failed", 75.0, ("2024-01-01T01:00Z",)),
        ("passed", 100.0, ()),
        ("passed", 100.0, ()),
        ("failed", 0.0, ("2024-01-01",)),
        ("not_evaluated", None, ()),
    ]
    assert found[3].message == ("1 of 4 hours has not arrived as promised: >= 50% of the rows in >= 75.1% of the hours")
    assert "'fortnight' is none of minute, hour, day, week, month" in found[-1].message


def test_a_period_that_is_not_over_is_not_judged_and_masked_times_are_not_shown(arrived: DataFrame) -> None:
    [during] = judged(arrived, complete(2, 100, 100), as_of=at(1, 3, 30), pii=True)
    assert (during.observed, during.samples) == (33.333333, ())
    [over] = judged(arrived, complete(2, 100, 100), as_of=at(1, 4))
    assert over.observed == 50.0


def test_without_rows(spark: SparkSession) -> None:
    empty = spark.createDataFrame([], "at timestamp")
    number, table = judged(empty, complete(1, 0, 0), complete("u", 1, None), references={"u": empty})
    assert (number.status.value, number.message) == ("failed", "there is no row with a time, so no hour is complete")
    assert (table.status.value, table.observed) == ("passed", 100.0), "nothing is expected"
    known = spark.createDataFrame([(at(1),)], "at timestamp")
    [nothing] = judged(empty, complete("u", 1, None), references={"u": known})
    assert (nothing.status.value, nothing.observed, nothing.samples) == ("failed", 0.0, ("2024-01-01T00:00Z",))


def test_against_another_table(spark: SparkSession, arrived: DataFrame) -> None:
    wall = [at(1, hour).replace(tzinfo=None) for hour in (0, 0, 0, 1, 2)]
    given = {
        "o.u": spark.createDataFrame([(time,) for time in [*wall, None]], "seen timestamp_ntz"),
        "days": spark.createDataFrame([(date(2024, 1, 1),)] * 5, "at date"),
        "two": spark.createDataFrame([], "a timestamp, b timestamp"),
        "text": spark.createDataFrame([], "at string"),
    }
    found = judged(
        arrived,
        complete("o.u", 66.6, 60),
        complete("o.u", 66.7, 60),
        complete("days", 100, None, "day"),
        complete("two", 1, None),
        complete("text", 1, None),
        complete("gone", 1, None),
        references=given,
    )
    assert [(r.status.value, r.observed, r.samples) for r in found] == [
        ("passed", 66.666667, ()),
        ("failed", 33.333333, ("2024-01-01T00:00Z", "2024-01-01T01:00Z")),
        ("passed", 100.0, ()),
        ("not_evaluated", None, ()),
        ("not_evaluated", None, ()),
        ("not_evaluated", None, ()),
    ]
    assert ["a, b could each be meant" in found[3].message, "column is string" in found[4].message] == [True, True]
    assert "give references={'gone': ...}" in found[5].message


NUMBERS = [
    ("minute", datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "1969-12-31T23:59Z"),
    ("hour", datetime(2024, 1, 1, 5, 59, tzinfo=UTC), "2024-01-01T05:00Z"),
    ("day", datetime(9999, 12, 31, 23, tzinfo=UTC), "9999-12-31"),
    ("week", datetime(2024, 1, 7, 23, tzinfo=UTC), "2024-01-01"),
    ("week", datetime(1970, 1, 4, tzinfo=UTC), "1969-12-29"),
    ("month", datetime(2024, 2, 29, 23, tzinfo=UTC), "2024-02-01"),
    ("month", datetime(1969, 12, 31, tzinfo=UTC), "1969-12-01"),
    ("month", datetime(1, 1, 1, tzinfo=UTC), "0001-01-01"),
]


def test_periods_begin_where_a_calendar_says(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    micros = [(moment - epoch).days * 86_400_000_000 + (moment - epoch).seconds * 1_000_000 for _, moment, _ in NUMBERS]
    columns = [Periods(name).number(F.lit(value)) for (name, _, _), value in zip(NUMBERS, micros, strict=True)]
    [row] = spark.range(1).select(*(column.alias(f"n{n}") for n, column in enumerate(columns))).collect()
    for number, (name, moment, begins) in zip(row, NUMBERS, strict=True):
        periods = Periods(name)
        assert (periods.start(number), periods.number_of(moment)) == (begins, number)
