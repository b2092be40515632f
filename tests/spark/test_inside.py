"""Keys and numbers of values inside arrays and maps."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from databox_contracts import rules
from databox_contracts.model import Contract
from databox_contracts.results import CheckResult
from databox_contracts.rules import Operator, Threshold, Unit
from databox_contracts.spark import TablePlace, publish, read_published
from databox_contracts.spark.verification import verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

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


ITEMS = "id int, items array<struct<sku:string,n:int>>, m map<string,struct<n:int,x:double>>, day date"


def keyed(*keys: rules.Rule, **facts: Any) -> Contract:
    item = build_field("item", "object", fields=(build_field("sku", "string", **facts), build_field("n", "int")))
    value = build_field("value", "object", fields=(build_field("n", "int"), build_field("x", "double")))
    return build_contract(
        build_field("id", "int"),
        build_field("items", "array", item=item),
        build_field("m", "map", value=value),
        build_field("day", "date"),
        rules=keys,
    )


def test_keys_of_several_fields_inside_an_array(spark: SparkSession) -> None:
    rows: list[Any] = [
        (1, [("a", 1), ("a", 2), ("b", None), (None, 7)], {"x": (1, 0.0)}, None),
        (2, [("a", 1), None, ("b", None), ("a", 1)], {"x": (1, -0.0), "y": (None, 1.0), "z": (2, 1.0)}, None),
        (3, None, None, None),
        (None, [("a", 2)], {"x": (3, 0.5)}, None),
        (4, [], {}, None),
    ]
    df = spark.createDataFrame(rows, ITEMS).repartition(3)
    contract = keyed(
        rules.Unique(fields=("items.sku", "items.n")),
        rules.Unique(fields=("id", "items[].sku")),
        rules.Unique(fields=("m.value.n", "m.value.x")),
        rules.Unique(fields=("items.sku", "m.value.n")),
        rules.Unique(fields=("items.sku", "items.gone")),
    )
    found = [r for r in verify(df, contract).results if r.rule == "unique"]
    assert [(r.status.value, r.failed_count, r.samples) for r in found] == [
        ("failed", 3, ({"items.sku": "a", "items.n": 1}, {"items.sku": "a", "items.n": 2})),
        ("failed", 2, ({"id": 1, "items[].sku": "a"}, {"id": 2, "items[].sku": "a"})),
        ("failed", 1, ({"m.value.n": 1, "m.value.x": 0.0},)),
        ("not_evaluated", None, ()),
        ("not_evaluated", None, ()),
    ]
    assert found[0].message == (
        "3 of 5 values (60 %) repeat a key: 2 keys of (items.sku, items.n) occur more than once"
    )
    assert "its fields are in different arrays or maps" in found[3].message
    assert "no column items.gone" in found[4].message
    hidden = verify(df, keyed(rules.Unique(fields=("items.sku", "items.n")), pii=True)).results
    assert [(r.failed_count, r.samples) for r in hidden if r.rule == "unique"] == [(3, ())]


def test_rows_that_repeat_a_key_inside_an_array_are_held(spark: SparkSession, tmp_path: Path) -> None:
    contract = keyed(rules.Unique(fields=("items.sku", "items.n")), rules.Unique(fields=("id", "items.sku")))
    first, second = date(2024, 1, 1), date(2024, 1, 2)

    def rows(*found: Any) -> DataFrame:
        return spark.createDataFrame([(id_, items, None, day) for id_, items, day in found], ITEMS).repartition(2)

    def publish_to(name: str, df: DataFrame, **options: Any) -> tuple[list[int], dict[int, list[str]]]:
        place = TablePlace(tmp_path, name)
        done = publish(df, contract, place=place, on_violation="quarantine", **options)
        held = {}
        if done.quarantine is not None:
            held = {row["id"]: row["_quarantine_reason"] for row in spark.read.parquet(str(done.quarantine)).collect()}
        return sorted(row["id"] for row in read_published(spark, place).collect()), held

    one, two = "t.unique", "t.unique_2"
    start = rows(
        (1, [("a", 1), ("b", 1), ("b", 2)], first),
        (2, [("a", 1)], first),
        (3, [("c", None), (None, 1)], first),
        (4, [("c", 3), ("c", None)], first),
        (5, [("d", 4)], second),
    )
    assert publish_to("whole", start) == ([3, 5], {1: [one, two], 2: [one], 4: [two]})
    by_day = {"partition_by": ("day",), "mode": "append"}
    assert publish_to("days", start, **by_day) == ([3, 5], {1: [one, two], 2: [one], 4: [two]})
    # Another partition may have the key, the own one may not, nor one that is there already.
    more = rows((6, [("d", 4)], first), (7, [("d", 4)], second), (8, [("e", 1), ("e", 1)], first))
    assert publish_to("days", more, **by_day) == ([3, 5, 6], {7: [one], 8: [one, two]})
