"""Promises about time: which column tells it, and what is measured there in the one pass over the rows.

Times are compared as microseconds since 1970 in UTC, whatever the session's time zone: a time without a zone is read as
UTC, a date as the beginning of its day there.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql import Column, functions as F
from pyspark.sql.types import DataType as SparkType, DateType, TimestampNTZType, TimestampType

from databox_contracts.datatypes import Family
from databox_contracts.model import Dataset, Field
from databox_contracts.plan import Check, Path, path_inside
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import Freshness, Latency, Retention
from databox_contracts.spark.predicates import NotEvaluableError, Test
from databox_contracts.spark.schema import type_text

MICROS: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST: Final = 10**12


def as_instant(moment: datetime) -> datetime:
    """A point in time; one without a zone is read as UTC."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (as_instant(moment) - _EPOCH) // timedelta(microseconds=1)


def clock_path(check: Check, dataset: Dataset, timestamp_field: str | None) -> Path:
    """The column whose times a rule is about: its own, else `timestamp_field`, else the only required timestamp.

    Raises `NotEvaluableError`, which names the way out.
    """
    named = getattr(check.rule, "element", None)
    if named is None and check.path:
        return check.path
    if named is None:
        named = timestamp_field
    if named is not None:
        return path_of(dataset, named)
    found = [field.name for field in dataset.fields if _is_clock(field)]
    if len(found) == 1:
        return path_of(dataset, found[0])
    several = f"of the required timestamps {', '.join(found)} any could be meant" if found else _NO_CLOCK
    raise NotEvaluableError(f"{several}; name the field in the rule, or give `timestamp_field`")


_NO_CLOCK: Final = "no field is a required timestamp"


def _is_clock(field: Field) -> bool:
    return field.type is not None and field.type.family is Family.TIMESTAMP and field.required


def path_of(dataset: Dataset, dotted: str) -> Path:
    """Where a named field is in the table; a name that the contract does not declare is looked for in the table."""
    trail = dataset.trail(dotted)
    if trail is not None:
        return tuple(step.column for step in trail)
    return path_inside(dataset.fields, dotted) or (dotted,)


def micros(actual: SparkType) -> Test:
    """What turns a time of that type into microseconds since 1970. Raises `NotEvaluableError` for what is no time."""
    if isinstance(actual, TimestampType):
        return F.unix_micros
    if isinstance(actual, DateType):
        return lambda value: F.unix_date(value).cast("bigint") * (86_400 * MICROS)
    if isinstance(actual, TimestampNTZType):
        # A cast would go through the session's time zone, which skips an hour a year.
        start = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        return lambda value: ((value - start).cast("interval second").cast("decimal(20,6)") * F.lit(MICROS)).cast(
            "bigint"
        )
    raise NotEvaluableError(f"it is about times, and the column is {type_text(actual)}")


# --- freshness --------------------------------------------------------------------------------------------------------


def fresh(check: Check, newest: int | None, as_of: datetime, *, masked: bool) -> CheckResult:
    """The result of a freshness rule whose newest time is `newest` microseconds; None where there is none."""
    rule = check.rule
    assert isinstance(rule, Freshness)
    promised = f"<= {seconds_text(rule.seconds)}"
    if newest is None:
        message = "there is no row with a time, and a table without one is not fresh"
        return check.result(Status.FAILED, threshold=promised, message=message)
    age = (micros_of(as_of) - newest) / MICROS
    holds = age <= rule.seconds
    shown = "older than promised" if masked else f"{seconds_text(age)} old"
    message = "" if holds else f"the newest row is {shown}; promised is at most {seconds_text(rule.seconds)}"
    observed = None if masked else age
    return check.result(
        Status.PASSED if holds else Status.FAILED, observed=observed, threshold=promised, message=message
    )


# --- retention --------------------------------------------------------------------------------------------------------


def too_old(rule: Retention, actual: SparkType, as_of: datetime) -> Test:
    """The test that a time is longer ago than the promise keeps it; of rows without a time nothing is known."""
    since_1970 = micros(actual)
    if not 0 <= rule.seconds < _LONGEST:
        raise NotEvaluableError(f"a retention of {rule.seconds} seconds is no length of time")
    earliest = cutoff(rule, as_of)
    return lambda value: since_1970(value) < F.lit(earliest)


def cutoff(rule: Retention, as_of: datetime) -> int:
    """The earliest time that the promise still keeps, in microseconds since 1970."""
    return micros_of(as_of) - round(rule.seconds * MICROS)


# --- latency ----------------------------------------------------------------------------------------------------------


def delay(event: Column, event_type: SparkType, arrival: Column, arrival_type: SparkType) -> Column:
    """Microseconds from event to arrival; null where one of them is."""
    return micros(arrival_type)(arrival) - micros(event_type)(event)


def percentile_of(delays: Column, percentile: float) -> Column:
    """The exact percentile, interpolated between the two nearest rows; the 100th is the longest delay."""
    return F.max(delays).cast("double") if percentile == 100 else F.percentile(delays, F.lit(percentile / 100))


def arrived(check: Check, found: float | None, *, masked: bool) -> CheckResult:
    """The result of a latency rule whose percentile is so many microseconds; None where no row has both times."""
    rule = check.rule
    assert isinstance(rule, Latency)
    promised = f"<= {seconds_text(rule.seconds)}"
    if found is None:
        return check.result(Status.FAILED, threshold=promised, message="there is no row with both times")
    took = round(found / MICROS, 6)
    holds = took <= rule.seconds
    shown = "longer than promised" if masked else seconds_text(took)
    share = f"the {rule.percentile:g}th percentile of the time from event to arrival"
    message = "" if holds else f"{share} is {shown}; promised is at most {seconds_text(rule.seconds)}"
    observed = None if masked else took
    return check.result(
        Status.PASSED if holds else Status.FAILED, observed=observed, threshold=promised, message=message
    )


_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def seconds_text(seconds: float) -> str:
    """A length of time in its largest unit, to three digits: `36 h`, `1.5 min`, `-2 s`."""
    size, unit = next(((size, unit) for size, unit in _UNITS if abs(seconds) >= size), (1, "s"))
    value = seconds / size
    return f"{value:.0f} {unit}" if abs(value) >= 100 else f"{value:.3g} {unit}"
