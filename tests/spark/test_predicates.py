"""One row a case: a rule, a column's type, values that keep it and values that break it, written down by hand."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    _parse_datatype_string,
)

from databox_contracts import rules
from databox_contracts.plan import Hop
from databox_contracts.row_rules import keeps
from databox_contracts.rules import NO_ROWS, Rule, Scope
from databox_contracts.spark.predicates import NotEvaluableError, violating, violating_values, violation
from databox_contracts.spark.rule_kinds import PREPARING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN, INF = float("nan"), float("inf")

CASES: list[tuple[Rule, str, list[Any], list[Any]]] = [
    (rules.Required(), "string", ["", "x"], [None]),
    (rules.Required(), "double", [0.0, NAN], [None]),
    (rules.NullCount(threshold=NO_ROWS), "int", [0], [None]),
    (rules.Enum(values=("a", "")), "string", ["a", "", None], ["A", "a ", "b"]),
    (rules.Enum(values=()), "string", [None], ["", "a"]),
    (rules.Enum(values=(0, 1)), "int", [0, 1, None], [2, -1]),
    (rules.Enum(values=("1", "2.50")), "decimal(4,2)", [Decimal("1"), Decimal("2.5")], [Decimal("2.51")]),
    (rules.Enum(values=(0.1,)), "float", [0.1, None], [0.2, NAN]),
    (rules.Enum(values=(True,)), "boolean", [True, None], [False]),
    (rules.Enum(values=("2024-02-29",)), "date", [date(2024, 2, 29), None], [date(2024, 3, 1)]),
    (rules.Pattern(pattern="b+"), "string", ["abc", "b", None], ["", "ac"]),
    (rules.Pattern(pattern="^a.c$"), "string", ["abc", "a\u0085c"], ["abc\n", "a\nc", "xabc"]),
    (rules.Pattern(pattern=r"^[[&&]+$"), "string", ["[", "&", "[&"], ["a", "]"]),
    (rules.Pattern(pattern=r"^\d$"), "string", ["7"], ["\u0667"]),
    (rules.Format(format="uuid"), "string", ["550E8400-e29b-41d4-a716-446655440000", None],
     ["", "550e8400e29b41d4a716446655440000", "550e8400-e29b-41d4-a716-446655440000\n",
      "550e8400-e29b-41d4-a716-44665544000g", "{550e8400-e29b-41d4-a716-446655440000}"]),
    (rules.Minimum(limit=0), "int", [0, 1, None], [-1]),
    (rules.Minimum(limit=0), "double", [0.0, -0.0, INF, None], [-0.1, -INF, NAN]),
    (rules.Maximum(limit=0), "double", [0.0, -INF, None], [5e-324, INF, NAN]),
    (rules.Maximum(limit=0.1), "float", [0.1, -1.0], [0.2, NAN]),
    (rules.Maximum(limit="0.1"), "decimal(38,18)", [Decimal("0.1")], [Decimal("0.100000000000000001")]),
    (rules.Maximum(limit=10**30), "bigint", [2**63 - 1], []),
    (rules.Minimum(limit=-(10**40)), "bigint", [-(2**63)], []),
    (rules.Minimum(limit=10**30), "int", [None], [2**31 - 1]),
    (rules.ExclusiveMinimum(limit=10**30), "tinyint", [None], [1]),
    (rules.Maximum(limit=-(2**63) - 1), "smallint", [None], [-1]),
    (rules.ExclusiveMaximum(limit=-(10**30)), "bigint", [None], [-(2**63)]),
    (rules.ExclusiveMaximum(limit=2**63), "bigint", [2**63 - 1, None], []),
    (rules.Minimum(limit=-(2**63)), "bigint", [-(2**63), None], []),
    (rules.Minimum(limit=10**30), "decimal(38,10)", [None], [Decimal("1e27"), Decimal(0)]),
    (rules.Maximum(limit=-(10**30)), "decimal(38,10)", [None], [Decimal("-1e27")]),
    (rules.ExclusiveMinimum(limit=-(10**28)), "decimal(38,10)", [Decimal("-" + "9" * 28), None], []),
    (rules.ExclusiveMaximum(limit="1000"), "decimal(5,2)", [Decimal("999.99"), None], []),
    (rules.Maximum(limit=Decimal("999.99")), "decimal(5,2)", [Decimal("999.99"), None], []),
    (rules.Minimum(limit=0.5), "decimal(2,2)", [Decimal("0.50"), None], [Decimal("0.49"), Decimal("-0.99")]),
    (rules.Maximum(limit="0.00000000001"), "decimal(38,10)", [Decimal(0), Decimal("-" + "9" * 28), None],
     [Decimal("0.0000000001"), Decimal("9" * 28)]),
    (rules.Minimum(limit="0.00000000001"), "decimal(38,10)", [Decimal("0.0000000001"), Decimal("9" * 28), None],
     [Decimal(0)]),
    (rules.ExclusiveMinimum(limit="-0.00000000001"), "decimal(38,10)", [Decimal(0), Decimal("9" * 28), None],
     [Decimal("-0.0000000001")]),
    (rules.ExclusiveMaximum(limit="-0.00000000001"), "decimal(38,10)", [Decimal("-0.0000000001"), None],
     [Decimal(0), Decimal("9" * 28)]),
    (rules.Minimum(limit="9" * 28 + ".99999999999"), "decimal(38,10)", [None], [Decimal("9" * 28 + ".9999999999")]),
    (rules.Enum(values=("0.00000000001", "1")), "decimal(38,10)", [Decimal(1), None], [Decimal(0), Decimal("9" * 28)]),
    (rules.Enum(values=("0.00000000001",)), "decimal(38,10)", [None], [Decimal(0), Decimal("9" * 28)]),
    (rules.Enum(values=(10**30, 7)), "bigint", [7, None], [8, 2**63 - 1]),
    (rules.MissingCount(missing_values=("0.00000000001", "0"), threshold=NO_ROWS), "decimal(38,10)",
     [Decimal("9" * 28), None], [Decimal(0)]),
    (rules.Minimum(limit="1e-40"), "bigint", [1, 2**63 - 1, None], [0]),
    (rules.Minimum(limit=1.5), "int", [2], [1]),
    (rules.ExclusiveMinimum(limit=0), "int", [1, None], [0, -1]),
    (rules.ExclusiveMinimum(limit=0), "double", [5e-324], [0.0, NAN]),
    (rules.ExclusiveMaximum(limit=0), "int", [-1, None], [0, 1]),
    (rules.Minimum(limit="2020-01-01"), "date", [date(2020, 1, 1)], [date(2019, 12, 31)]),
    (rules.Maximum(limit="2020-01-01T00:00:00+01:00"), "timestamp",
     [datetime(2019, 12, 31, 23, tzinfo=UTC)], [datetime(2019, 12, 31, 23, 0, 0, 1, tzinfo=UTC)]),
    (rules.Maximum(limit="2020-01-01 00:00:00"), "timestamp",
     [datetime(2020, 1, 1, tzinfo=UTC)], [datetime(2020, 1, 1, 0, 0, 1, tzinfo=UTC)]),
    (rules.Maximum(limit="2020-01-01"), "timestamp_ntz", [datetime(2020, 1, 1)], [datetime(2020, 1, 1, 0, 0, 1)]),
    (rules.MultipleOf(divisor=5), "int", [0, 10, -5, None], [1, -4]),
    (rules.MultipleOf(divisor=0.1), "double", [0.3, 0.0, None], [0.35, NAN]),
    (rules.MultipleOf(divisor=0.01), "decimal(10,4)", [Decimal("1.25")], [Decimal("1.255")]),
    (rules.MultipleOf(divisor=2), "double", [1e300], []),
    (rules.MinLength(length=0), "string", ["", None], []),
    (rules.MinLength(length=2), "string", ["ab", "\U0001f600b", None], ["", "\U0001f600"]),
    (rules.MaxLength(length=0), "string", ["", None], [" "]),
    (rules.MaxLength(length=1), "string", ["\U0001f600"], ["ab"]),
    (rules.MinItems(count=1), "array<int>", [[0], [None], None], [[]]),
    (rules.MaxItems(count=0), "array<int>", [[], None], [[0]]),
    (rules.UniqueItems(), "array<int>", [[], [1, 2], [None], None], [[1, 1], [None, None]]),
    (rules.UniqueItems(), "array<double>", [[], [0.0, 1.0, None], [-0.0], [NAN]], [[0.0, -0.0], [NAN, NAN]]),
    (rules.UniqueItems(), "array<float>", [[0.5, -0.5], None], [[1.0, -0.0, 0.0], [None, None]]),
    (rules.UniqueItems(), "array<array<float>>", [[[0.0], [0.0, -0.0], None]], [[[-0.0, 1.0], [0.0, 1.0]]]),
    (rules.UniqueItems(), "array<struct<x: double>>", [[(0.0,), (None,), None]], [[(0.0,), (-0.0,)]]),
    (rules.MissingCount(missing_values=(None, "", "N/A"), threshold=NO_ROWS), "string", ["x"], [None, "", "N/A"]),
    (rules.MissingCount(missing_values=("",), threshold=NO_ROWS), "string", ["x", None], [""]),
    (rules.InvalidCount(valid_values=("a",), threshold=NO_ROWS), "string", ["a", None], ["", "b"]),
    (rules.InvalidCount(pattern="^a$", threshold=NO_ROWS), "string", ["a", None], ["", "b"]),
    (rules.InvalidCount(valid_values=("a", "b"), pattern="^a$", threshold=NO_ROWS), "string", ["a"], ["b", "c"]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "type_", "keeps", "breaks"), CASES, ids=lambda value: getattr(value, "kind", None))
def test_a_rule_tells_keeping_from_breaking(
    spark: SparkSession, rule: Rule, type_: str, keeps: list[Any], breaks: list[Any]
) -> None:
    schema = StructType([StructField("v", _parse_datatype_string(type_)), StructField("expected", BooleanType())])
    rows = [(value, False) for value in keeps] + [(value, True) for value in breaks]
    df = spark.createDataFrame(rows, schema)
    found = df.select("v", "expected", violating(df["v"], (), violation(rule, schema[0].dataType)).alias("found"))
    wrong = [row["v"] for row in found.collect() if row["found"] is not row["expected"]]
    assert wrong == []


CASES_OF_TEXT = Path(__file__).parents[1] / "cases" / "text_formats"
VECTORS = json.loads((CASES_OF_TEXT / "vectors.json").read_text(encoding="utf-8"))
LONG = {"byte": "Q" * 40_000, "uri": f"http://a/{'%20b' * 20_000}", "email": f"{'.a' * 20_000}@b"[1:]}


def test_formats_agree_with_the_vectors_and_with_python(spark: SparkSession) -> None:
    rows = []
    for name, known in VECTORS.items():
        ends = [known["valid"][0] + end for end in ("", "\n", "\r\n", " ", "\u2028", "\x00")]
        rows += [(name, text) for text in ("", "\n", *known["valid"], *known["invalid"], *ends)]
    rows += list(LONG.items())
    df = spark.createDataFrame([*rows, ("uuid", None)], "format string, v string")  # type: ignore[type-var]
    tests = [
        F.when(F.col("format") == name, violating(df["v"], (), violation(rules.Format(format=name), StringType())))
        for name in VECTORS
    ]
    found = df.select("format", "v", F.coalesce(*tests).alias("violates")).collect()
    assert found[-1]["violates"] is False
    python = [(name, text, not keeps(rules.Format(format=name), text)) for name, text in rows]
    assert [tuple(row) for row in found[:-1]] == python
    assert [row["violates"] for row in found if row["v"] in LONG.values()] == [False, False, False]


IMPOSSIBLE: list[tuple[Rule, str, str]] = [
    (rules.Pattern(pattern="a"), "int", "for string values"),
    (rules.Minimum(limit=0), "string", "has no bounds"),
    (rules.Minimum(limit="tomorrow"), "date", "is not a date"),
    *(
        (rules.Minimum(limit=float("nan")), type_, "is not a number")
        for type_ in ("int", "decimal(9,2)", "double", "date")
    ),
    (rules.ExclusiveMaximum(limit=Decimal("NaN")), "decimal(9,2)", "is not a number"),
    (rules.MultipleOf(divisor=2), "string", "for numeric values"),
    (rules.MinItems(count=1), "string", "for array values"),
    (rules.Enum(values=("x",)), "int", "is not a integer(32)"),
    (rules.UniqueItems(), "array<map<string,int>>", "cannot compare maps"),
    (rules.Format(format="nonsense"), "string", "knows no format"),
    (rules.Expression(sql="v > 0"), "int", "does not evaluate expression rules yet"),
    (rules.InvalidCount(threshold=NO_ROWS), "int", "says neither"),
]


@pytest.mark.parametrize(("rule", "type_", "reason"), IMPOSSIBLE, ids=lambda value: getattr(value, "kind", None))
def test_what_cannot_be_judged_says_why(spark: SparkSession, rule: Rule, type_: str, reason: str) -> None:
    with pytest.raises(NotEvaluableError, match=None) as error:
        violation(rule, _parse_datatype_string(type_))
    assert reason in str(error.value)


def test_every_rule_that_counts_as_evaluated_is() -> None:
    kinds = [value for value in vars(rules).values() if isinstance(value, type) and issubclass(value, Rule)]
    by_rows = [kind for kind in kinds if kind is not Rule and kind.scope in (Scope.ROW, Scope.AGGREGATE)]
    tested = [kind for kind in by_rows if violation.dispatch(kind) is not violation.dispatch(object)]
    assert [kind for kind in by_rows if kind not in (*tested, *PREPARING, rules.RowCount)] == []
    assert [kind for kind in by_rows if not kind.evaluated] == []
    for known in rules.KNOWN_FORMATS:
        violation(rules.Format(format=known), StringType())


def test_a_rule_reaches_into_arrays_objects_and_maps(spark: SparkSession) -> None:
    schema = _parse_datatype_string(
        "expected array<string>, o struct<a:array<struct<n:int>>>, m map<string,array<array<int>>>"
    )
    rows = [
        ([], ([(1,), (None,)],), {"k": [[2], []]}),
        ([], (None,), None),
        ([], None, {}),
        (["o"], ([(1,), (9,)],), {"k": [[1]]}),
        (["m"], ([],), {"k": [[1], [7, 8]], "l": []}),
        (["o", "m"], ([(8,)],), {"a": [[9]]}),
    ]
    df = spark.createDataFrame(rows, schema)  # type: ignore[type-var]
    test = violation(rules.Maximum(limit=5), IntegerType())
    into_o, into_m = ("a", Hop.ITEM, "n"), (Hop.VALUE, Hop.ITEM, Hop.ITEM)
    found = df.select(
        "expected",
        violating(df["o"], into_o, test).alias("o"),
        violating(df["m"], into_m, test).alias("m"),
        violating_values(df["o"], into_o, test, lambda value: value.cast("string")).alias("os"),
        violating_values(df["m"], into_m, test, lambda value: value.cast("string")).alias("ms"),
    ).collect()
    assert [[name for name in ("o", "m") if row[name]] for row in found] == [row["expected"] for row in found]
    assert [row["os"] for row in found] == [[], [], [], ["9"], [], ["8"]]
    assert [row["ms"] for row in found] == [[], [], [], [], ["7", "8"], ["9"]]


def test_inside_a_null_object_nothing_is_required(spark: SparkSession) -> None:
    df = spark.createDataFrame([(None,), ((None,),), (("x",),)], "o struct<s:string>")  # type: ignore[type-var]
    found = df.select(violating(df["o"], ("s",), violation(rules.Required(), StringType()))).collect()
    assert [row[0] for row in found] == [False, True, False]


def test_map_keys_are_judged(spark: SparkSession) -> None:
    df = spark.createDataFrame([({"a": 1},), ({"b": 1, "a": 2},), ({},)], "m map<string,int>")  # type: ignore[type-var]
    found = df.select(violating(df["m"], (Hop.KEY,), violation(rules.Enum(values=("a",)), StringType()))).collect()
    assert [row[0] for row in found] == [False, True, False]


def test_an_outcome_is_never_null(spark: SparkSession) -> None:
    df = spark.range(1).select(F.lit(None).cast(ArrayType(MapType(StringType(), IntegerType()))).alias("v"))
    outcome = violating(df["v"], (Hop.ITEM, Hop.VALUE), violation(rules.Minimum(limit=0), IntegerType()))
    assert df.select(outcome).collect()[0][0] is False
