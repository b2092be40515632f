"""Which rules a sample can answer, and where it breaks them first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts import rules
from databox_contracts.plan import Check, Plan
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Scope, Unit
from databox_contracts.spark import outcomes
from databox_contracts.spark.failures import SPARK_ERRORS, unlogged

_WHOLE: Final = "not judged on a sample: it is about the whole table"
_IN_ROWS: Final = (rules.NullCount, rules.MissingCount, rules.InvalidCount)
_SCHEMA_KIND: Final = {
    rules.Present.kind: "schema_missing",
    rules.HasType.kind: "schema_type",
    rules.Undeclared.kind: "schema_undeclared",
}


def for_sample(plan: Plan) -> Plan:
    """The plan with what a sample can answer."""
    return replace(plan, checks=tuple(check for check in plan.checks if reason_to_skip(check) is None))


def of_whole_plan(verdict: Verdict, plan: Plan, *, complete: bool) -> Verdict:
    """The verdict of `for_sample(plan)` with all rules of the plan, those about a whole table skipped.

    A sample that is fresh proves that the table is; one that is not proves nothing, unless it is `complete`: has all of
    the newest rows.
    """
    found = {result.id: result if complete else _fair(result) for result in verdict.results}
    for check in plan.checks:
        reason = reason_to_skip(check)
        if reason is not None:
            found[check.id] = check.result(Status.SKIPPED, message=reason)
    return replace(verdict, results=tuple(found[check.id] for check in plan.checks))


def _fair(result: CheckResult) -> CheckResult:
    if result.rule != rules.Freshness.kind or result.status is not Status.FAILED:
        return result
    reason = "not judged on this sample: it has not all of the newest rows, and those it has are older than promised"
    return replace(result, status=Status.SKIPPED, message=reason, observed=None)


def kind_of(result: CheckResult) -> str:
    """What a finding for a failed result is about."""
    # A column of another type shows that type, and counts the rows beside it; a text that is no value only counts.
    of_schema = result.failed_count is None or isinstance(result.observed, str)
    return _SCHEMA_KIND.get(result.rule, "rule") if of_schema else "rule"


def reason_to_skip(check: Check) -> str | None:
    """Why a rule is not judged on a sample, None where it is."""
    rule = check.rule
    if rule.unenforced is not None or isinstance(rule, rules.NotEnforced | rules.Freshness | rules.Retention):
        return None
    if rule.scope in (Scope.SCHEMA, Scope.ROW):
        return None
    if isinstance(rule, _IN_ROWS):
        threshold = outcomes.threshold_of(check)
        if threshold.allows_none or threshold.unit is Unit.PERCENT:
            return None
        return f"{_WHOLE}, of which it allows so many rows"
    return _WHOLE


def first_places(view: DataFrame, broken: Mapping[str, Column], place: Column) -> dict[str, str | None]:
    """Where each condition is met first."""
    if not broken:
        return {}
    found = [F.min(F.when(condition, place)).alias(f"m{at}") for at, condition in enumerate(broken.values())]
    try:
        with unlogged():
            row = view.agg(*found).collect()[0]
    except SPARK_ERRORS:
        # The count was possible rule by rule only; it stands without a place.
        return {}
    return dict(zip(broken, row, strict=True))
