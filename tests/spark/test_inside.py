"""Keys and numbers of values inside arrays and maps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from databox_contracts import rules
from databox_contracts.results import CheckResult
from databox_contracts.rules import Operator, Threshold, Unit
from databox_contracts.spark.verification import verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AS_OF = datetime(2024, 1, 2, tzinfo=UTC)
ANY = Threshold(Operator.NOT_BETWEEN, -2, -1)


def stat(name: str, threshold: Threshold = ANY) -> rules.Statistic:
    return rules.Statistic(statistic=name, threshold=threshold)


def ago(minutes: float) -> datetime:
    return AS_OF - timedelta(minutes=minutes)


def test_values_of_all_rows(spark: SparkSession) -> None:
    rows: list[Any] = [
        ([("a", 1, ago(10), ago(9))], {"x": 0.5}, [[1], None, [2, None]], ago(1)),
        ([("b", 2, ago(20), None), ("a", None, ago(5), ago(1)), None], {"x": -0.0, "y": 0.0}, [], ago(1)),
        (None, None, None, None),
        ([], {}, [[]], None),
        ([("a", 4, None, None), (None, 4, None, None)], None, [[1]], None),
    ]
    df = spark.createDataFrame(
        rows,
        "items array<struct<sku:string,n:int,at:timestamp,came:timestamp>>, m map<string,double>,"
        " g array<array<int>>, done timestamp",
    ).repartition(3)
    share = Threshold(Operator.LESS_THAN, 50, unit=Unit.PERCENT)
    item = build_field(
        "item",
        "object",
        fields=(
            build_field("sku", "string", rules.Unique(), rules.DuplicateCount(threshold=share)),
            build_field("n", "int", stat("avg"), stat("sum"), stat("max", Threshold(Operator.LESS_THAN, 4))),
            build_field("at", "timestamp", rules.Freshness(seconds=300)),
            build_field("came", "timestamp"),
        ),
    )
    value = build_field("value", "double", rules.Unique(), stat("min"))
    number = build_field("item", "int", stat("stddev"), rules.Unique(), pii=True)
    contract = build_contract(
        build_field("items", "array", item=item),
        build_field("m", "map", key=build_field("key", "string", rules.Unique()), value=value),
        build_field("g", "array", item=build_field("item", "array", item=number)),
        build_field("done", "timestamp"),
        rules=(
            rules.Freshness(seconds=299, element="items.at"),
            rules.Latency(percentile=100, seconds=200, element="items.at", arrival_field="items.came"),
            rules.Latency(percentile=100, seconds=0, element="items.at", arrival_field="done"),
            rules.Latency(percentile=50, seconds=200, element="items.at", arrival_field="g.item"),
        ),
    )
    wanted = ("unique", "duplicate_count", "statistic", "freshness", "latency")
    found = [r for r in verify(df, contract, as_of=AS_OF).results if r.rule in wanted]

    def told(result: CheckResult) -> tuple[Any, ...]:
        return result.id, result.status.value, result.observed, result.samples

    assert [told(r) for r in found] == [
        ("t.items.sku.unique", "failed", 2, ("a",)),
        ("t.items.sku.duplicate_count", "failed", 50.0, ("a",)),
        ("t.items.n.statistic", "passed", 2.75, ()),
        ("t.items.n.statistic_2", "passed", 11, ()),
        ("t.items.n.statistic_3", "failed", 4, ()),
        ("t.items.at.freshness", "passed", 300, ()),
        ("t.m.key.unique", "failed", 1, ("x",)),
        ("t.m.value.unique", "failed", 1, (0.0,)),
        ("t.m.value.statistic", "passed", 0, ()),
        ("t.g.item.item.statistic", "passed", None, ()),
        ("t.g.item.item.unique", "failed", 1, ()),
        ("t.freshness", "failed", 300, ()),
        ("t.latency", "failed", 240, ()),
        ("t.latency_2", "failed", 1140, ()),
        ("t.latency_3", "not_evaluated", None, ()),
    ]
    assert found[0].message == ("2 of 4 values (50 %) repeat a key: 1 key of (items.sku) occurs more than once")
    assert "in different arrays or maps" in found[-1].message


def test_without_a_value(spark: SparkSession) -> None:
    item = build_field("item", "int", rules.Unique(), stat("avg"))
    contract = build_contract(build_field("a", "array", item=item))
    for rows in ([], [(None,)], [([],)], [([None],)]):
        found = verify(spark.createDataFrame(rows, "a array<int>"), contract).results
        assert [(r.rule, r.status.value) for r in found][-3:-1] == [("unique", "passed"), ("statistic", "failed")]
        assert "there is no value to take the avg of" in found[-2].message
