"""Which rules a stream can hold a row for, which end it, and which column tells a row's time."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts.plan import Check, Plan
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import (
    PrimaryKey,
    Scope,
)
from databox_contracts.spark.counting import positional
from databox_contracts.spark.outcomes import threshold_of
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.schema import Missing, locate
from databox_contracts.spark.timeliness import clock_path, micros


def about_the_table(check: Check) -> bool:
    """Whether the rule is about all rows together, so that no batch of them breaks or keeps it for the table."""
    return check.of_no_row or not threshold_of(check).allows_none


def stopping(plan: Plan, results: Iterable[CheckResult], on_violation: str) -> list[CheckResult]:
    """The results for which the whole stream stops.

    Where rows are held, those are the rules of which nobody knows which rows to hold for them: one that could not be
    judged, a column that is missing.
    """
    checks = {check.id: check for check in plan.checks}
    if on_violation == "warn":
        return []
    return [
        result
        for result in results
        if result.stops
        and not about_the_table(checks[result.id])
        and (
            on_violation == "fail"
            or result.status is Status.NOT_EVALUATED
            or checks[result.id].rule.scope is Scope.SCHEMA
        )
    ]


def event_time(df: DataFrame, plan: Plan, timestamp_field: str | None, *, case_sensitive: bool) -> tuple[int, Column]:
    """The position of the column that tells a row's time, and that column of a view, in microseconds since 1970.

    Raises `NotEvaluableError` where no column does.
    """
    path = clock_path(Check(id="watermark", rule=PrimaryKey(fields=())), plan.dataset, timestamp_field)
    found = locate(df.schema, path, case_sensitive=case_sensitive)
    if isinstance(found, Missing):
        raise NotEvaluableError(found.reason)
    column = F.col(positional(found.column))
    for step in found.steps:
        if not isinstance(step, str):
            raise NotEvaluableError("the field is inside an array or a map")
        column = column.getField(step)
    return found.column, micros(found.type)(column)
