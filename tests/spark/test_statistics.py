"""Statistics and queries: numbers of a whole table."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import Operator, Threshold
from databox_contracts.spark.verification import verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAN, INF = float("nan"), float("inf")
ANY = Threshold(Operator.GREATER_OR_EQUAL, -INF)


def stat(name: str, threshold: Threshold = ANY, quantile: float | None = None) -> rules.Statistic:
    return rules.Statistic(statistic=name, threshold=threshold, quantile=quantile)


def all_of(df: DataFrame, type_: str, *held: rules.Rule, **facts: Any) -> list[CheckResult]:
    found = verify(df, build_contract(build_field("v", type_, *held, **facts))).results
    return [r for r in found if r.rule == "statistic"]


NUMBERS: list[tuple[str, list[Any], dict[str, float]]] = [
    ("int", [1, 2, 4, None], {"avg": 7 / 3, "sum": 7, "min": 1, "max": 4, "stddev": 1.52752523165}),
    ("bigint", [2**63 - 1, 2**63 - 1], {"avg": 2**63 - 1, "sum": 2**64 - 2, "min": 2**63 - 1, "stddev": 0}),
    ("tinyint", [127, 127], {"sum": 254, "avg": 127}),
    ("double", [0.1, 0.2, None], {"avg": 0.15, "sum": 0.3, "min": 0.1, "max": 0.2, "stddev": 0.0707106781187}),
    ("double", [1.0, -INF], {"sum": -INF, "min": -INF, "max": 1}),
    ("float", [0.5, 1.5], {"avg": 1, "sum": 2}),
    ("decimal(38,2)", [Decimal("0.10"), Decimal("0.20")], {"avg": 0.15, "sum": 0.3, "max": 0.2}),
    ("decimal(38,0)", [Decimal(-(10**38) + 1)] * 2 + [None], {"avg": -1e38, "sum": -2e38, "max": -1e38}),
    ("decimal(38,38)", [Decimal("0.75"), Decimal("0.75")], {"avg": 0.75, "sum": 1.5}),
]


@pytest.mark.parametrize(("type_", "values", "expected"), NUMBERS, ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("partitions", [1, 3])
def test_numbers(
    spark: SparkSession, type_: str, values: list[Any], expected: dict[str, float], partitions: int
) -> None:
    df = spark.createDataFrame([(value,) for value in values], f"v {type_}").repartition(partitions)
    found = all_of(df, type_, *(stat(name) for name in expected))
    assert [r.observed for r in found] == pytest.approx(list(expected.values()), rel=1e-11)
    assert {r.status for r in found} == {Status.PASSED}


LARGE = [
    ("decimal(38,10)", "9999999999999999999999999999.9999999999", ["0.0000000001", "-3.5"], "-3.4999999999"),
    ("decimal(38,0)", "99999999999999999999999999999999999999", ["7", "-1"], "6"),
    (
        "decimal(38,38)",
        "0.99999999999999999999999999999999999999",
        ["-0.25", "1e-38"],
        "-0.24999999999999999999999999999999999999",
    ),
    ("decimal(33,28)", "99999.9999999999999999999999999999", ["1e-28", "0"], "1e-28"),
    ("decimal(29,29)", "0.99999999999999999999999999999", ["1e-29", "-0.5"], "-0.49999999999999999999999999999"),
]


@pytest.mark.parametrize(("type_", "large", "others", "total"), LARGE, ids=lambda value: str(value)[:20])
def test_a_sum_is_exact_whatever_it_passes_on_the_way(
    spark: SparkSession, type_: str, large: str, others: list[str], total: str
) -> None:
    # One after the other they pass what any decimal of Spark can be, and end well within.
    values = [Decimal(large)] * 12 + [Decimal(other) for other in others] + [None] + [Decimal(large).copy_negate()] * 12
    df = spark.createDataFrame([(value,) for value in values], f"v {type_}")
    exact, mean = Decimal(total), Context(prec=80).divide(Decimal(total), Decimal(26))
    for spread in (df.coalesce(1), df.repartition(5)):
        found = all_of(
            spread,
            type_,
            stat("sum", Threshold(Operator.MUST_BE, exact)),
            stat("avg", Threshold(Operator.MUST_BE, mean)),
            stat("sum", Threshold(Operator.MUST_NOT_BE, exact)),
        )
        assert [r.status.value for r in found] == ["passed", "passed", "failed"]


def test_quantiles_are_exact_and_interpolated(spark: SparkSession) -> None:
    df = spark.range(1, 101).selectExpr("id v")
    found = all_of(df, "bigint", *(stat("quantile", quantile=q) for q in (0, 0.25, 0.5, 0.95, 1)))
    assert [r.observed for r in found] == [1, 25.75, 50.5, 95.05, 100]


def test_thresholds_and_messages(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1,), (4,)], "v int")  # type: ignore[type-var]
    found = all_of(
        df,
        "int",
        stat("avg", Threshold(Operator.BETWEEN, 2.5, 3)),
        stat("max", Threshold(Operator.LESS_THAN, 4)),
        stat("quantile", Threshold(Operator.MUST_BE, 1), quantile=0.5),
    )
    assert [(r.status.value, r.observed, r.message) for r in found] == [
        ("passed", 2.5, ""),
        ("failed", 4, "the max of v is 4; promised is < 4"),
        ("failed", 2.5, "the quantile at 0.5 of v is 2.5; promised is = 1"),
    ]
    hidden = all_of(df, "int", stat("max", Threshold(Operator.LESS_THAN, 4)), pii=True)
    assert [(r.observed, r.message) for r in hidden] == [(None, "the max of v is not as promised")]


NO_NUMBER: list[tuple[str, list[Any], str, str]] = [
    ("int", [], "avg", "there is no value to take the avg of"),
    ("int", [None], "max", "there is no value to take the max of"),
    ("int", [1], "stddev", "one value has no stddev"),
    ("double", [1.0, NAN], "min", "1 values are NaN, and so is the min"),
    ("double", [INF, -INF], "sum", "the sum is NaN"),
]


@pytest.mark.parametrize(("type_", "values", "name", "reason"), NO_NUMBER)
def test_no_number_keeps_no_promise(spark: SparkSession, type_: str, values: list[Any], name: str, reason: str) -> None:
    df = spark.createDataFrame([(value,) for value in values], f"v {type_}")
    for threshold in (ANY, Threshold(Operator.MUST_NOT_BE, 5)):
        [found] = all_of(df, type_, stat(name, threshold))
        assert (found.status, found.observed) == (Status.FAILED, None)
        assert found.message.startswith(reason)


NOT_EVALUATED = [
    ("string", stat("avg"), "it is for numeric values, and the column is string"),
    ("int", stat("mode"), "knows no statistic 'mode'; it knows avg, sum, min, max, stddev, quantile"),
    ("int", stat("quantile"), "None is no quantile"),
    ("int", stat("quantile", quantile=95), "95 is no quantile"),
]


@pytest.mark.parametrize(("type_", "rule", "reason"), NOT_EVALUATED)
def test_what_has_no_meaning_is_not_evaluated(spark: SparkSession, type_: str, rule: rules.Rule, reason: str) -> None:
    [found] = all_of(spark.createDataFrame([], f"v {type_}"), type_, rule)
    assert (found.status, reason in found.message) == (Status.NOT_EVALUATED, True)


# --- queries ----------------------------------------------------------------------------------------------------------

QUERIES: list[tuple[str, str, Any, str]] = [
    ("select count(*) from t where v > 1", "passed", 2, ""),
    ("SELECT count(*) FROM ${table} WHERE v > 1", "passed", 2, ""),
    (
        "select count(*) from {object} x join {object} y on x.v = y.v",
        "failed",
        3,
        "the query returns 3; promised is = 2",
    ),
    ("select count(*) from t a where a.v > (select min(t.v) from t)", "passed", 2, ""),
    ("with big as (select * from t where t.v > 1) select count(*) from big", "passed", 2, ""),
    ("select count(*) from phys where `odd name` = 'x'", "failed", 1, "the query returns 1; promised is = 2"),
    ("select avg(v) from t", "passed", 2, ""),
    ("select max(v) from t where false", "failed", None, "the query returns null; promised is = 2"),
    ("select v from t order by v limit 1", "failed", 1, "the query returns 1; promised is = 2"),
    ("select count(*) from other", "not_evaluated", None, "it reads other, and only t is at hand"),
    ("select count(*) from parquet.`/etc`", "not_evaluated", None, "it reads parquet./etc, and only t"),
    ("select count(*) from db.t", "not_evaluated", None, "it reads db.t"),
    ("drop table t", "not_evaluated", None, "it is a statement that is not one SELECT"),
    ("select v from t", "not_evaluated", None, "it is a query that may return many rows"),
    ("select max(nope) from t", "not_evaluated", None, "UNRESOLVED_COLUMN"),
    ("select 1 / 0 from t limit 1", "not_evaluated", None, "its query fails: Spark says DIVIDE_BY_ZERO"),
    ("select max(`odd name`) from t", "not_evaluated", None, "the query returns no number but a str"),
    ("select count(*) from t where {nothing} > 1", "not_evaluated", None, "nothing is known to stand for {nothing}"),
]


def test_queries_of_one_number(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, "x"), (2, "y"), (3, None)], ["v", "odd name"])
    before = [table.name for table in spark.catalog.listTables()]
    held = tuple(rules.Query(sql=sql, threshold=Threshold(Operator.MUST_BE, 2)) for sql, *_ in QUERIES)
    contract = build_contract(build_field("v", "bigint"), build_field("odd name", "string"), rules=held)
    dataset = contract.datasets[0].model_copy(update={"physical_name": "phys"})
    found = verify(df, contract.model_copy(update={"datasets": (dataset,)})).results[-len(QUERIES) :]
    wrong = [
        (sql, r.status.value, r.observed, r.message)
        for (sql, status, observed, message), r in zip(QUERIES, found, strict=True)
        if (r.status.value, r.observed) != (status, observed) or message not in r.message
    ]
    assert wrong == []
    assert [table.name for table in spark.catalog.listTables()] == before


def test_a_query_of_a_field_and_masked_numbers(spark: SparkSession) -> None:
    df = spark.createDataFrame([(7,)], "v int")  # type: ignore[type-var]
    zero = Threshold(Operator.MUST_BE, 0)
    held = (
        rules.Query(sql="select max({column}) from {table}", threshold=zero),
        rules.Query(sql="select count(*) from t where ${field} = 7", threshold=zero),
    )
    found = [r for r in verify(df, build_contract(build_field("v", "int", *held))).results if r.rule == "query"]
    assert [r.observed for r in found] == [7, 1]
    hidden = verify(df, build_contract(build_field("v", "int", *held, pii=True))).violations
    assert [r.observed for r in hidden] == [None, 1]
    assert hidden[0].message == "the query returns another number; promised is = 0"
