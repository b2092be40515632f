"""Foreign keys on real rows: what counts as a match, at every depth, what is shown and what it costs."""

from __future__ import annotations

import math
import random
from contextlib import redirect_stdout
from decimal import Decimal
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError
from databox_contracts.model import Contract, Dataset
from databox_contracts.plan import build_plan
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import Severity
from databox_contracts.spark.given import Given
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.publication import publish
from databox_contracts.spark.references import count_unmatched
from databox_contracts.spark.tables import TablePlace, read_published
from databox_contracts.spark.verification import verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

KEY = rules.ForeignKey(fields=(), to="u", to_fields=("k",))


def keyed(df: DataFrame, contract: Contract, **facts: Any) -> list[CheckResult]:
    return [r for r in verify(df, contract, **facts).results if r.rule == "foreign_key"]


def one(df: DataFrame, type_: str, known: DataFrame, rule: rules.Rule = KEY, **facts: Any) -> CheckResult:
    [found] = keyed(df, build_contract(build_field("v", type_, rule, **facts)), references={"u": known})
    return found


NAN = float("nan")
# The field's type and values, the reference's, how many rows have no match, and the keys that are shown.
MATCHES: list[tuple[str, list[Any], str, list[Any], int, tuple[Any, ...]]] = [
    ("int", [1, 2, 2, 3, None], "int", [1], 3, (2, 3)),
    ("int", [1, 2, None], "bigint", [2, 1, 2, None], 0, ()),
    ("int", [0, None], "int", [], 1, (0,)),
    ("int", [], "int", [], 0, ()),
    ("int", [None, None], "int", [None], 0, ()),
    ("bigint", [2**53 + 1, 2**53], "decimal(20,0)", [Decimal(2**53)], 1, (2**53 + 1,)),
    ("decimal(5,2)", [Decimal("1.50"), Decimal("1.00")], "int", [1], 1, (1.5,)),
    ("string", ["", "a", "A", "a "], "string", ["a"], 3, ("", "A", "a ")),
    ("double", [0.0, -0.0, NAN, 1.5], "double", [-0.0, NAN], 1, (1.5,)),
    ("float", [0.5, -0.0], "double", [0.5, 0.0], 0, ()),
    ("date", [], "date", [], 0, ()),
    ("boolean", [True, False], "boolean", [True], 1, (False,)),
]


def test_matches(spark: SparkSession) -> None:
    """All cases are columns of one table, filled up with nulls."""
    most = max(len(values) for _, values, *_ in MATCHES)
    columns = [values + [None] * (most - len(values)) for _, values, *_ in MATCHES]
    schema = ", ".join(f"v{at} {case[0]}" for at, case in enumerate(MATCHES))
    df = spark.createDataFrame(list(zip(*columns, strict=True)), schema).repartition(3)
    known = {
        f"u{at}": spark.createDataFrame([(value,) for value in values], f"k {other}")
        for at, (_, _, other, values, *_) in enumerate(MATCHES)
    }
    fields = [
        build_field(f"v{at}", case[0], rules.ForeignKey(fields=(), to=f"u{at}", to_fields=("k",)))
        for at, case in enumerate(MATCHES)
    ]
    found = keyed(df, build_contract(*fields), references=known)
    assert [(r.status is Status.FAILED, r.failed_count, r.samples) for r in found] == [
        (failed > 0, failed, shown) for *_, failed, shown in MATCHES
    ]


def test_what_it_says(spark: SparkSession) -> None:
    df, known = spark.range(4).selectExpr("id v"), spark.range(3).selectExpr("id k")
    assert one(df, "bigint", known).message == "1 of 4 rows (25 %) refer to nothing in u"
    hidden = one(df, "bigint", known, pii=True)
    assert (hidden.failed_count, hidden.samples, hidden.message) == (1, (), "1 of 4 rows (25 %) refer to nothing in u")
    warned = rules.ForeignKey(fields=(), to="u", to_fields=("k",), severity=Severity.WARNING)
    verdict = verify(df, build_contract(build_field("v", "bigint", warned)), references={"u": known}, samples=0)
    assert (verdict.passed, [r.samples for r in verdict.violations]) == (True, [()])


NOT_EVALUATED: list[tuple[str, str, rules.ForeignKey, str]] = [
    ("string", "k int", KEY, "v is string and what it refers to is integer(32)"),
    ("int", "k string", KEY, "v is integer(32) and what it refers to is string"),
    ("bigint", "k double", KEY, "v is integer(64) and what it refers to is"),
    ("timestamp", "k timestamp_ntz", KEY, "what it refers to is timestamp"),
    ("decimal(38,18)", "k decimal(38,0)", KEY, "what it refers to is decimal(38, 0)"),
    ("map<string,int>", "k map<string,int>", KEY, "what it refers to is map"),
    ("int", "j int", KEY, "in u, the table has no column k"),
    ("int", "k int", rules.ForeignKey(fields=(), to="u", to_fields=("k", "l")), "it has 1 field and refers to 2"),
    ("int", "k int", rules.ForeignKey(fields=(), to="u", to_fields=()), "it has 1 field and refers to 0"),
    ("int", "k int", rules.ForeignKey(fields=(), to="w.x", to_fields=("k",)), "give references={'w.x': ...}"),
]


def test_what_cannot_be_compared_is_not_evaluated(spark: SparkSession) -> None:
    for type_, schema, rule, reason in NOT_EVALUATED:
        contract = build_contract(build_field("v", type_, rule))
        given = Given.at(references={"u": spark.createDataFrame([], schema)})
        df = spark.createDataFrame([], f"v {type_}")
        found = Verification(df, build_plan(contract, contract.dataset()), given=given).answers["t.v.foreign_key"]
        assert (found.status, reason in found.message) == (Status.NOT_EVALUATED, True), found.message


def test_composite_and_nested_keys_and_names_of_the_contract(spark: SparkSession) -> None:
    df = spark.createDataFrame(
        [(1, ("x", 1)), (2, ("x", 1)), (None, ("x", 1)), (3, None), (4, ("x", None)), (1, ("y", 1))],
        "col_a int, o struct<`s.t`:string,n:int>",
    )  # type: ignore[type-var]
    known = spark.createDataFrame([(1, ("x",)), (5, ("y",))], "A bigint, in struct<name:string>")
    contract = Contract(
        id="shop",
        version="1.0.0",
        datasets=(
            Dataset(
                name="t",
                fields=(
                    build_field("a", "int", column_name="col_a"),
                    build_field("o", "object", fields=(build_field("s.t", "string"), build_field("n", "int"))),
                ),
                rules=(rules.ForeignKey(fields=("a", "o.s.t"), to="shop.u", to_fields=("a", "who.name")),),
            ),
            Dataset(
                name="u",
                physical_name="u_v1",
                fields=(
                    build_field("a", "bigint"),
                    build_field("who", "object", column_name="in", fields=(build_field("name", "string"),)),
                ),
                rules=(rules.PrimaryKey(fields=("a", "who.name")),),
            ),
        ),
    )
    failing = [(1, "y"), (2, "x"), (4, "x")]
    for name in ("u", "shop.u", "u_v1"):
        [found] = keyed(df, contract, dataset="t", references={name: known})
        assert (found.failed_count, found.samples) == (3, tuple({"a": a, "o.s.t": b} for a, b in failing))
    assert keyed(df, contract, dataset="t", references={"v": known})[0].status is Status.NOT_EVALUATED
    implied = rules.ForeignKey(fields=("a", "o.s.t"), to="u", to_fields=())
    datasets = (contract.datasets[0].model_copy(update={"rules": (implied,)}), contract.datasets[1])
    [found] = keyed(df, contract.model_copy(update={"datasets": datasets}), dataset="t", references={"u": known})
    assert found.failed_count == 3


DEEP: list[tuple[Any, ...]] = [
    ([("p", [1, 2])], {"p": 1}, [["p"], None, ["q"]]),
    ([("z", [9, 9]), ("z", None), None], {"z": 9, "p": 9}, [["z", "z"], ["y"]]),
    (None, None, None),
    ([(None, [None]), ("p", [1])], {"p": None}, [[None]]),
]


def test_keys_inside_arrays_and_maps_count_a_row_once(spark: SparkSession) -> None:
    df = spark.createDataFrame(
        DEEP, "items array<struct<sku:string,ns:array<int>>>, m map<string,int>, g array<array<string>>"
    ).repartition(2)
    skus = spark.createDataFrame([("p",), ("q",), (None,)], "k string")
    numbers = spark.createDataFrame([(1,), (2,)], "k int")

    def key(to: str) -> rules.ForeignKey:
        return rules.ForeignKey(fields=(), to=to, to_fields=("k",))

    parts = (
        build_field("sku", "string", key("skus")),
        build_field("ns", "array", item=build_field("item", "int", key("numbers"))),
    )
    contract = build_contract(
        build_field("items", "array", item=build_field("item", "object", fields=parts)),
        build_field(
            "m", "map", key=build_field("key", "string", key("skus")), value=build_field("value", "int", key("numbers"))
        ),
        build_field("g", "array", item=build_field("item", "array", item=build_field("item", "string", key("skus")))),
    )
    found = keyed(df, contract, references={"skus": skus, "other.numbers": numbers})
    assert [(r.id, r.failed_count, r.samples) for r in found] == [
        ("t.items.sku.foreign_key", 1, ("z",)),
        ("t.items.ns.item.foreign_key", 1, (9,)),
        ("t.m.key.foreign_key", 1, ("z",)),
        ("t.m.value.foreign_key", 1, (9,)),
        ("t.g.item.item.foreign_key", 1, ("y", "z")),
    ]


def test_composite_keys_inside_arrays_count_a_row_once(spark: SparkSession, tmp_path: Path) -> None:
    """The parts of a key belong to one element; a part outside the array is the same in each; a null part is no key."""
    lines = [
        (1, "eu", [("a", 1), ("b", 2)]),
        (2, "eu", [("a", 2)]),
        (3, "us", [("a", 1), ("b", 9), ("z", 9)]),
        (4, "us", [("a", None), (None, 1)]),
        (5, "eu", []),
        (6, "eu", None),
        (7, None, [("q", 7)]),
    ]
    df = spark.createDataFrame(lines, "id int, region string, items array<struct<sku:string,lot:int>>").repartition(3)
    lots = spark.createDataFrame([("a", 1), ("b", 2), (None, 1)], "sku string, lot bigint")
    regional = spark.createDataFrame([("eu", "a", 1), ("eu", "b", 2), ("us", "a", 1)], "r string, s string, l int")
    parts = (build_field("sku", "string"), build_field("lot", "int"))
    contract = build_contract(
        build_field("id", "int"),
        build_field("region", "string"),
        build_field("items", "array", item=build_field("item", "object", fields=parts)),
        rules=(
            rules.ForeignKey(fields=("items.sku", "items.lot"), to="lots", to_fields=("sku", "lot")),
            rules.ForeignKey(fields=("region", "items.sku", "items.lot"), to="regional", to_fields=("r", "s", "l")),
        ),
    )
    both, all_three = keyed(df, contract, references={"lots": lots, "regional": regional})
    # The rows of a2, of b9 and z9, and of q7.
    assert (both.status, both.failed_count) == (Status.FAILED, 3)
    assert both.samples == (
        {"items.sku": "a", "items.lot": 2},
        {"items.sku": "b", "items.lot": 9},
        {"items.sku": "q", "items.lot": 7},
        {"items.sku": "z", "items.lot": 9},
    )
    # A row without a region has no whole key.
    assert (all_three.status, all_three.failed_count) == (Status.FAILED, 2)
    assert [sample["region"] for sample in all_three.samples] == ["eu", "us", "us"]
    place = TablePlace(tmp_path, "t")
    known = {"lots": lots, "regional": regional}
    published = publish(df, contract, place=place, on_violation="quarantine", references=known)
    assert held(spark, published) == {2: [both.id, all_three.id], 3: [both.id, all_three.id], 7: [both.id]}
    assert {row[0] for row in read_published(spark, place).collect()} == {1, 4, 5, 6}


def test_a_table_may_refer_to_itself(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, None), (2, 1), (3, 7), (4, 4)], "id int, parent int")  # type: ignore[type-var]
    for to in ("t", "test.t"):
        rule = rules.ForeignKey(fields=(), to=to, to_fields=("id",))
        contract = build_contract(build_field("id", "int"), build_field("parent", "int", rule))
        [found] = keyed(df, contract)
        assert (found.failed_count, found.samples) == (1, (7,))
        [found] = keyed(df, contract, references={"t": spark.range(0).selectExpr("int(id) id")})
        assert found.failed_count == 3, "what was given goes before the table itself"


def test_a_reference_that_fails_is_not_evaluated_and_the_others_are(spark: SparkSession) -> None:
    df = spark.range(4).selectExpr("id a", "id b")
    broken = spark.range(3).selectExpr("if(id = 2, raise_error('secret'), id) k")
    rule = rules.ForeignKey(fields=(), to="broken", to_fields=("k",))
    contract = build_contract(build_field("a", "bigint", rule), build_field("b", "bigint", KEY))
    first, second = keyed(df, contract, references={"broken": broken, "u": spark.range(3).selectExpr("id k")})
    assert (first.status, "secret" in first.message) == (Status.NOT_EVALUATED, False)
    assert "looking its keys up fails" in first.message
    assert (second.failed_count, second.samples) == (1, (3,))


def test_the_same_whatever_the_partitioning_as_an_oracle_says(spark: SparkSession) -> None:
    dice = random.Random(5)
    pool: list[Any] = [None, NAN, 0.0, -0.0, 1.5, -1.5, math.inf, 2.0, 3.0]
    rows = [(dice.choice(pool), dice.choice(["a", "b", None])) for _ in range(300)]
    known = [(dice.choice(pool[:5]), dice.choice(["a", None])) for _ in range(30)]

    def normal(key: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple("NaN" if part != part else part + 0.0 if isinstance(part, float) else part for part in key)

    whole = {normal(key) for key in known if None not in key}
    failing = [row for row in rows if None not in row and normal(row) not in whole]
    rule = rules.ForeignKey(fields=("x", "y"), to="u", to_fields=("x", "y"))
    contract = build_contract(build_field("x", "double"), build_field("y", "string"), rules=(rule,))
    for parts in (1, 7):
        df = spark.createDataFrame(rows, "x double, y string").repartition(parts)
        reference = spark.createDataFrame(known, "x double, y string").repartition(3)
        [found] = keyed(df, contract, references={"u": reference}, samples=100)
        assert found.failed_count == len(failing)
        assert len(found.samples) == len({normal(row) for row in failing})


def plan_of(df: DataFrame) -> str:
    with redirect_stdout(StringIO()) as printed:
        df.explain()
    return printed.getvalue()


def test_several_keys_take_one_query_and_nothing_more_where_all_match(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = spark.range(100).selectExpr("id a", "id b", "'x' wide")
    others = [rules.ForeignKey(fields=(), to=name, to_fields=("id",)) for name in ("u", "w")]
    contract = build_contract(build_field("a", "bigint", others[0]), build_field("b", "bigint", others[1]))
    given = {"u": spark.range(100), "w": spark.range(200)}
    verification = Verification(df, build_plan(contract, contract.dataset()), given=Given.at(references=given))
    collected: list[str] = []
    real = type(df).collect

    def noted(frame: Any) -> Any:
        rows = real(frame)
        collected.append(plan_of(frame))
        return rows

    monkeypatch.setattr(type(df), "collect", noted)
    assert count_unmatched(verification.view, verification.matchings) == {
        "t.a.foreign_key": 0,
        "t.b.foreign_key": 0,
    }
    assert len(collected) == 1
    assert "wide" not in collected[0]


def test_a_small_reference_is_sent_to_the_rows(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    df = spark.range(1000).selectExpr("id v")
    contract = build_contract(build_field("v", "bigint", KEY))
    for known, joined in (
        (spark.range(1).selectExpr("id k"), "BroadcastHashJoin"),
        (F.broadcast(spark.range(100).selectExpr("id k")), "BroadcastHashJoin"),
    ):
        verification = Verification(
            df, build_plan(contract, contract.dataset()), given=Given.at(references={"u": known})
        )
        [one] = verification.matchings
        missing = one.unmatched(verification.view)
        assert missing.count() in (900, 999)
        assert joined in plan_of(missing)


def held(spark: SparkSession, published: Any) -> dict[Any, list[str]]:
    rows = spark.read.parquet(str(published.quarantine)).collect()
    return {row[0]: list(row["_quarantine_reason"]) for row in rows}


def test_rows_without_a_match_are_held_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame(
        [
            (1, "a", ["p"]),
            (2, "b", ["p", "z", "z"]),
            (3, None, None),
            (4, "a", ["q"]),
            (5, "b", ["x"]),
            (6, "c", ["q"]),
        ],
        "id int, v string, skus array<string>",
    ).repartition(2)
    sku = build_field("item", "string", rules.Unique(), rules.ForeignKey(fields=(), to="s", to_fields=("sku",)))
    contract = build_contract(
        build_field("id", "int", rules.Maximum(limit=4)),
        build_field("v", "string", KEY, rules.ForeignKey(fields=(), to="u", to_fields=("j",), severity=Severity.INFO)),
        build_field("skus", "array", item=sku),
    )
    known = {
        "u": spark.createDataFrame([("a", "-"), ("c", "-")], "k string, j string"),
        "s": spark.createDataFrame([("p",), ("q",), ("x",)], "sku string"),
    }
    place = TablePlace(tmp_path, "t")
    published = publish(df, contract, place=place, on_violation="quarantine", references=known)
    assert {row[0] for row in read_published(spark, place).collect()} == {3}
    own, deep = "t.v.foreign_key", "t.skus.item"
    assert held(spark, published) == {
        1: [f"{deep}.unique"],
        2: [own, f"{deep}.unique", f"{deep}.foreign_key"],
        4: [f"{deep}.unique"],
        5: ["t.id.maximum", own],
        6: ["t.id.maximum", f"{deep}.unique"],
    }
    assert (published.rows_in, published.rows_published, published.rows_quarantined) == (6, 1, 5)


def test_rows_that_refer_to_held_rows_are_held_too(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1, None), (2, 1), (3, 9), (4, 3), (5, 4), (6, 2)], "id int, parent int")  # type: ignore[type-var]
    rule = rules.ForeignKey(fields=(), to="t", to_fields=("id",))
    contract = build_contract(build_field("id", "int"), build_field("parent", "int", rule))
    place = TablePlace(tmp_path, "t")
    published = publish(df, contract, place=place, on_violation="quarantine")
    assert held(spark, published) == {key: ["t.parent.foreign_key"] for key in (3, 4, 5)}
    assert sorted(row[0] for row in read_published(spark, place).collect()) == [1, 2, 6]


def test_an_append_may_refer_to_rows_that_are_there(spark: SparkSession, tmp_path: Path) -> None:
    rule = rules.ForeignKey(fields=(), to="t", to_fields=("id",))
    contract = build_contract(build_field("id", "int"), build_field("parent", "int", rule), build_field("day", "int"))

    def rows(*found: tuple[int, int | None, int]) -> DataFrame:
        return spark.createDataFrame(list(found), "id int, parent int, day int")

    def ids(place: TablePlace) -> list[int]:
        return sorted(row["id"] for row in read_published(spark, place).collect())

    for name, partition_by in (("plain", ()), ("days", ("day",))):
        place = TablePlace(tmp_path, name)
        options: dict[str, Any] = {"place": place, "mode": "append"}
        publish(rows((1, None, 1), (2, 1, 2)), contract, partition_by=partition_by, **options)
        publish(rows((3, 1, 3), (4, 3, 3), (5, 2, 1)), contract, **options)
        with pytest.raises(ContractViolationError, match=r"t.parent.foreign_key: 1 of 2 rows \(50 %\)"):
            publish(rows((6, 5, 1), (7, 9, 1)), contract, **options)
        assert ids(place) == [1, 2, 3, 4, 5]
        done = publish(
            rows((6, 5, 1), (7, 99, 1), (8, 7, 1), (9, 6, 4)), contract, on_violation="quarantine", **options
        )
        assert held(spark, done) == {7: ["t.parent.foreign_key"], 8: ["t.parent.foreign_key"]}
        assert ids(place) == [1, 2, 3, 4, 5, 6, 9]
    # What is replaced is no parent any more.
    with pytest.raises(ContractViolationError, match="1 of 1 rows"):
        publish(rows((10, 3, 3)), contract, place=place, mode="overwrite_partitions")
    with pytest.raises(ContractViolationError, match="1 of 1 rows"):
        publish(rows((10, 3, 3)), contract, place=place)
    publish(rows((10, 1, 3)), contract, place=place, mode="overwrite_partitions")
    assert ids(place) == [1, 2, 5, 6, 9, 10]
