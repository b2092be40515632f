"""Promises about time, held against a clock that the test sets, in a session whose time zone skips hours."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError
from databox_contracts.results import CheckResult, Status
from databox_contracts.spark.publication import publish
from databox_contracts.spark.tables import TablePlace
from databox_contracts.spark.timeliness import seconds_text
from databox_contracts.spark.verification import enforce, verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

# Half an hour after the clocks of Paris went forward.
AS_OF = datetime(2024, 3, 31, 1, 30, tzinfo=UTC)
HOUR = 3600.0


@pytest.fixture(autouse=True, scope="module")
def paris(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def ago(hours: float, *, zoned: bool = True) -> datetime:
    moment = AS_OF - timedelta(hours=hours)
    return moment if zoned else moment.replace(tzinfo=None)


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    rows: list[Any] = [
        (ago(2), ago(1, zoned=False), date(2024, 3, 31), [ago(1)], "x"),
        (ago(3), ago(2.5, zoned=False), date(2024, 3, 30), [ago(1), ago(30)], "y"),
        (ago(26), None, None, None, None),
        (None, None, date(2024, 3, 29), [None], None),
    ]
    return spark.createDataFrame(rows, "at timestamp, came timestamp_ntz, day date, seen array<timestamp>, s string")


def judged(df: DataFrame, *held: rules.Rule, required: tuple[str, ...] = ("at",), **facts: Any) -> list[CheckResult]:
    contract = build_contract(
        *(
            build_field(name, type_, *([rules.Required(severity=rules.Severity.INFO)] if name in required else []))
            for name, type_ in (("at", "timestamp"), ("came", "timestamp_ntz"), ("day", "date"), ("s", "string"))
        ),
        build_field("seen", "array<timestamp>"),
        rules=held,
    )
    kinds = [rule.kind for rule in held]
    return [r for r in verify(df, contract, **{"as_of": AS_OF, **facts}).results if r.rule in kinds]


def test_freshness(events: DataFrame) -> None:
    found = judged(
        events,
        rules.Freshness(seconds=2 * HOUR),
        rules.Freshness(seconds=2 * HOUR - 1),
        rules.Freshness(seconds=HOUR, element="came"),
        rules.Freshness(seconds=HOUR - 1, element="came"),
        rules.Freshness(seconds=1.5 * HOUR, element="day"),
        rules.Freshness(seconds=1.5 * HOUR - 1, element="day"),
    )
    assert [r.status.value for r in found] == ["passed", "failed"] * 3
    assert [r.observed for r in found] == [7200, 7200, 3600, 3600, 5400, 5400]
    assert found[1].message == "the newest row is 2 h old; promised is at most 2 h"
    assert found[3].threshold == "<= 60 min"


NO_COLUMN = [
    ((), {}, {}, "no field is a required timestamp; name the field in the rule, or give `timestamp_field`"),
    (("at", "came"), {}, {}, "of the required timestamps at, came any could be meant"),
    ((), {"timestamp_field": "nope"}, {}, "the table has no column nope"),
    (("at",), {}, {"element": "s"}, "it is about times, and the column is string"),
    (("at",), {}, {"element": "nope"}, "the table has no column nope"),
]


@pytest.mark.parametrize(("required", "facts", "named", "reason"), NO_COLUMN)
def test_without_a_time_it_is_not_evaluated(
    events: DataFrame, required: tuple[str, ...], facts: dict[str, Any], named: dict[str, Any], reason: str
) -> None:
    held = (rules.Freshness(seconds=1, **named), rules.Retention(seconds=1, **named))
    for found in judged(events, *held, required=required, **facts):
        assert (found.status, reason in found.message) == (Status.NOT_EVALUATED, True)


def test_the_argument_names_the_time_and_the_promise_comes_first(events: DataFrame) -> None:
    held = (rules.Freshness(seconds=1), rules.Freshness(seconds=1, element="day"))
    found = judged(events, *held, required=(), timestamp_field="came")
    assert [r.observed for r in found] == [3600, 5400]
    assert judged(events, held[0], as_of=AS_OF.replace(tzinfo=None))[0].observed == 7200


def test_an_empty_table_is_not_fresh_and_keeps_nothing_too_long(events: DataFrame) -> None:
    found = judged(events.limit(0), rules.Freshness(seconds=10**9), rules.Retention(seconds=1))
    assert [r.status.value for r in found] == ["failed", "passed"]
    assert "a table without one is not fresh" in found[0].message


def test_retention_counts_the_rows_that_are_too_old(events: DataFrame) -> None:
    found = judged(
        events,
        rules.Retention(seconds=26 * HOUR),
        rules.Retention(seconds=26 * HOUR - 1),
        rules.Retention(seconds=2 * HOUR, element="came"),
        rules.Retention(seconds=24 * HOUR, element="day"),
    )
    assert [r.failed_count for r in found] == [0, 1, 1, 2]
    assert found[1].samples == ("2024-03-29T23:30:00.000Z",)
    assert found[1].message == "1 of 4 rows (25 %) are older than they may be kept"


def test_retention_of_times_in_an_array(events: DataFrame) -> None:
    item = build_field("item", "timestamp", rules.Retention(seconds=2 * HOUR))
    contract = build_contract(build_field("seen", "array", item=item))
    [found] = [r for r in verify(events, contract, as_of=AS_OF).results if r.rule == "retention"]
    assert (found.failed_count, found.samples) == (1, ("2024-03-29T19:30:00.000Z",))


def test_latency_is_a_percentile_of_arrival_minus_event(events: DataFrame) -> None:
    def latency(percentile: float, seconds: float) -> rules.Rule:
        return rules.Latency(percentile=percentile, seconds=seconds, element="at", arrival_field="came")

    found = judged(events, latency(100, 3600), latency(100, 3599), latency(50, 2700), latency(0, 1799))
    assert [r.status.value for r in found] == ["passed", "failed", "passed", "failed"]
    assert [r.observed for r in found] == [3600, 3600, 2700, 1800]
    assert found[1].message.startswith("the 100th percentile of the time from event to arrival is 1 h; promised is")
    [empty] = judged(events.limit(0), latency(50, 1))
    assert (empty.status, empty.message) == (Status.FAILED, "there is no row with both times")
    [backwards] = judged(
        events, rules.Latency(percentile=100, seconds=0, element="came", arrival_field="at"), required=()
    )
    assert backwards.observed == -1800


def test_the_age_of_a_masked_time_is_not_shown(spark: SparkSession) -> None:
    df = spark.createDataFrame([(ago(5),)], "born timestamp")  # type: ignore[type-var]
    held = (rules.Freshness(seconds=1), rules.Retention(seconds=1), rules.Freshness(seconds=1, element="born"))
    contract = build_contract(build_field("born", "timestamp", rules.Required(), pii=True), rules=held)
    verdict = verify(df, contract, as_of=AS_OF)
    assert [(r.observed, r.samples) for r in verdict.violations] == [(None, ()), (1, ()), (None, ())]
    assert verdict.violations[0].message == "the newest row is older than promised; promised is at most 1 s"


def test_enforce_and_publish_take_the_clock_too(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(ago(1),), (ago(9),)], "at timestamp")  # type: ignore[type-var]
    contract = build_contract(build_field("at", "timestamp"), rules=(rules.Retention(seconds=5 * HOUR),))
    assert enforce(df, contract, as_of=ago(4), timestamp_field="at") is df
    with pytest.raises(ContractViolationError):
        enforce(df, contract, as_of=AS_OF, timestamp_field="at")
    place = TablePlace(tmp_path, "t")
    held = publish(df, contract, place=place, on_violation="quarantine", as_of=AS_OF, timestamp_field="at")
    assert (held.rows_published, held.rows_quarantined) == (1, 1)
    ticking = publish(df, contract, place=place, clock=lambda: ago(4), timestamp_field="at")
    assert ticking.rows_published == 2


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (-2, "-2 s"), (90, "1.5 min"), (129_600, "1.5 d"), (86_400 * 365, "365 d")]
)
def test_lengths_of_time_in_words(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
