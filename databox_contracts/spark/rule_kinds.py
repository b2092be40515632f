"""Rules that are not the test of one value, made ready to run: conditions, statistics, times, references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column, functions as F
from pyspark.sql.types import DataType as SparkType

from databox_contracts import rules
from databox_contracts.plan import Check
from databox_contracts.results import CheckResult
from databox_contracts.rules import Rule
from databox_contracts.spark.aggregates import statistic, statistic_columns
from databox_contracts.spark.completeness import against_number, against_table, judged, periods_of, reference_clock
from databox_contracts.spark.counting import Condition, Counted, positional
from databox_contracts.spark.expressions import (
    Leaf,
    Place,
    all_violating,
    any_violating,
    as_json_text,
    is_false,
    is_null_where,
)
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.references import given_table, matching, not_given, own_dataset
from databox_contracts.spark.sampling import LONGEST
from databox_contracts.spark.sql_safety import quoted
from databox_contracts.spark.timeliness import (
    arrived,
    clock_path,
    delay,
    fresh,
    micros,
    path_of,
    percentile_of,
    too_old,
)

if TYPE_CHECKING:
    from databox_contracts.spark.preparing import Preparation


def _expression(prepared: Preparation, check: Check, rule: rules.Expression) -> None:
    _condition(prepared, check, is_false(rule.sql, prepared.given.as_of), shows=True)


def _required_when(prepared: Preparation, check: Check, rule: rules.RequiredWhen) -> None:
    if not check.path:
        raise NotEvaluableError("a required_when rule is about one field")
    _condition(prepared, check, is_null_where(rule.condition, prepared.given.as_of), shows=False)


def _condition(prepared: Preparation, check: Check, test: Leaf, *, shows: bool) -> None:
    found = prepared.locate(check.path) if check.path else None
    place = Place(
        schema=prepared.schema,
        fields=prepared.plan.dataset.fields,
        path=check.path,
        steps=found.steps if found is not None else (),
        column=found.column if found is not None else None,
        table=tuple(n for n in (prepared.plan.dataset.name, prepared.plan.dataset.physical_name) if n is not None),
        case_sensitive=prepared.case_sensitive,
        called=positional,
    )
    values = all_violating(place, test, as_json_text(found.type, LONGEST)) if found is not None and shows else None
    prepared.counted.append(Condition(check, any_violating(place, test), values))


def _statistic(prepared: Preparation, check: Check, rule: rules.Statistic) -> None:
    if not check.path:
        raise NotEvaluableError("a statistic rule is about one field")

    def columns(value: Column, actual: SparkType) -> tuple[Column, ...]:
        return statistic_columns(rule, value, actual)

    prepared.measure(check, (check.path,), columns, lambda found: statistic(check, *found, masked=check.masked))


def _freshness(prepared: Preparation, check: Check, rule: rules.Freshness) -> None:
    path = clock_path(check, prepared.plan.dataset, prepared.given.timestamp_field)
    masked, as_of = check.masked or prepared.conceals(path), prepared.given.as_of

    def newest(value: Column, actual: SparkType) -> tuple[Column, ...]:
        return (F.max(micros(actual)(value)),)

    prepared.measure(check, (path,), newest, lambda found: fresh(check, found[0], as_of, masked=masked))


def _latency(prepared: Preparation, check: Check, rule: rules.Latency) -> None:
    if not 0 <= rule.percentile <= 100:
        raise NotEvaluableError(f"{rule.percentile} is no percentile")
    event_path = clock_path(check, prepared.plan.dataset, prepared.given.timestamp_field)
    arrival_path = path_of(prepared.plan.dataset, rule.arrival_field or "")
    masked = check.masked or prepared.conceals(event_path) or prepared.conceals(arrival_path)

    def longest(*both: Any) -> tuple[Column, ...]:
        return (percentile_of(delay(*both), rule.percentile),)

    prepared.measure(check, (event_path, arrival_path), longest, lambda took: arrived(check, took[0], masked=masked))


def _retention(prepared: Preparation, check: Check, rule: rules.Retention) -> None:
    path = clock_path(check, prepared.plan.dataset, prepared.given.timestamp_field)
    found = prepared.locate(path)
    hidden = replace(check, masked=check.masked or prepared.conceals(path))
    prepared.counted.append(Counted(hidden, found, too_old(rule, found.type, prepared.given.as_of)))


def _foreign_key(prepared: Preparation, check: Check, rule: rules.ForeignKey) -> None:
    reference = given_table(rule.to, prepared.plan.contract, prepared.given.references)
    itself = reference is None and own_dataset(rule.to, prepared.plan.contract) is prepared.plan.dataset
    if reference is None and not itself:
        raise not_given(rule.to)
    if not check.keys:
        raise NotEvaluableError("it names no field")
    values = prepared.key_values(check)
    if values is not None:
        columns, types = [values], [prepared.locate(path).type for path in check.keys]
    else:
        own = [prepared.single(path, name) for name, path in zip(check.key_names, check.keys, strict=True)]
        columns, types = [column for column, _ in own], [actual for _, actual in own]
    if reference is None:
        # Rows that are to get their reasons have columns of their own beside those of the table.
        beside = prepared.given.beside
        reference = prepared.table if beside is None else prepared.table.unionByName(beside, allowMissingColumns=True)
    prepared.matchings.append(
        matching(
            check,
            prepared.plan,
            types,
            reference,
            columns=columns,
            inside=values is not None,
            itself=itself,
            case_sensitive=prepared.case_sensitive,
        )
    )


def _completeness(prepared: Preparation, check: Check, rule: rules.Completeness) -> None:
    periods = periods_of(rule)
    path = clock_path(check, prepared.plan.dataset, prepared.given.timestamp_field)
    clock, actual = prepared.single(path, ".".join(map(str, path)))
    arrived = prepared.view.select(periods.number(micros(actual)(clock)).alias("period"))
    arrived = arrived.where("period is not null")
    masked = check.masked or prepared.conceals(path)
    expected = rule.expected
    if isinstance(expected, int):

        def by_number(samples: int) -> CheckResult:
            counts = against_number(arrived, expected, periods, prepared.given.as_of)
            return judged(check, counts, periods, masked=masked, samples=samples)

        prepared.late[check.id] = by_number
        return
    assert expected is not None
    reference = given_table(expected, prepared.plan.contract, prepared.given.references)
    if reference is None:
        raise not_given(expected)
    time = reference_clock(str(path[-1]), reference.schema)
    its = periods.number(micros(reference.schema[time].dataType)(F.col(quoted(time)))).alias("period")
    counts = against_table(arrived, reference.select(its))
    prepared.late[check.id] = lambda samples: judged(check, counts, periods, masked=masked, samples=samples)


PREPARING: Final[dict[type[Rule], Callable[[Preparation, Check, Any], None]]] = {
    rules.Expression: _expression,
    rules.RequiredWhen: _required_when,
    rules.Statistic: _statistic,
    rules.Freshness: _freshness,
    rules.Latency: _latency,
    rules.Retention: _retention,
    rules.ForeignKey: _foreign_key,
    rules.Completeness: _completeness,
}
"""The kinds of rules that are not the test of one value; all others are."""
