"""A contract that was made from a table lints clean, the table keeps it, and it is the same however rows are split."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from databox_contracts.errors import DataboxError
from databox_contracts.formats import read
from databox_contracts.formats.canonical import canonical
from databox_contracts.formats.guesses import dump_inferred
from databox_contracts.inferred import Inferred
from databox_contracts.model import Contract, Field
from databox_contracts.rules import Enum, Freshness, PrimaryKey, Rule, Unique
from databox_contracts.spark import infer_contract, infer_with_guesses
from databox_contracts.spark.reading import read_table
from databox_contracts.spark.verification import verify

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLES = PROJECT / "examples" / "nyc_weather"
SHARED = PROJECT.parent / "shared" / "data" / "nyc_weather"
TABLES = ("weather", "airports", "planes", "airlines")


def kept(df: DataFrame, *, untyped: bool = False, **facts: Any) -> Inferred:
    """What was inferred of a table, after it has been written, read, and held against the table."""
    inferred = infer_with_guesses(df, **{"id": "t", "untyped": untyped, **facts})
    text = dump_inferred(inferred)
    contract, findings = read(text)
    assert [str(finding) for finding in findings if finding.level in ("error", "warning")] == [], text
    assert contract is not None
    assert canonical(contract, carried=False) == canonical(inferred.contract, carried=False)
    verdict = verify(df, contract, untyped=untyped)
    assert [(result.id, result.message) for result in verdict.results if result.status == "failed"] == []
    assert verdict.passed, verdict.summary()
    return inferred


def field(inferred: Inferred | Contract, *names: str) -> Field:
    contract = inferred.contract if isinstance(inferred, Inferred) else inferred
    trail = contract.datasets[0].trail(".".join(names))
    assert trail is not None
    return trail[-1]


def kinds(found: Field) -> list[str]:
    return [rule.kind for rule in found.rules]


def key(inferred: Inferred) -> tuple[str, ...]:
    return next((rule.fields for rule in inferred.contract.datasets[0].rules if isinstance(rule, PrimaryKey)), ())


def one(found: Field, kind: type[Rule]) -> Any:
    return next(rule for rule in found.rules if isinstance(rule, kind))


# --- real tables ------------------------------------------------------------------------------------------------------

KEYS = {
    "weather": ("origin", "time_hour"),
    "airports": ("faa",),
    "planes": ("tailnum",),
    "airlines": ("carrier",),
}
# Of a table of 26,000 rows and fifteen columns much can be guessed, and it takes long.
SOME = [pytest.param(name, marks=pytest.mark.full) if name == "weather" else name for name in TABLES]


@pytest.mark.parametrize("name", SOME)
def test_a_real_table_keeps_the_contract_made_from_it(spark: SparkSession, name: str) -> None:
    df = read_table(spark, str(EXAMPLES / f"{name}.csv.gz"), options={"nullValue": "NA"})
    inferred = kept(df, untyped=True, id=name)
    assert key(inferred) == KEYS[name]


@pytest.mark.parametrize("name", SOME)
def test_so_does_one_in_which_missing_values_were_not_declared(spark: SparkSession, name: str) -> None:
    path = SHARED / f"{name}.csv"
    if not path.exists():
        pytest.skip("the shared tables are not here")
    assert key(kept(read_table(spark, str(path)), untyped=True, id=name)) == KEYS[name]


def test_the_key_that_three_rows_violate_is_not_claimed(spark: SparkSession) -> None:
    df = read_table(spark, str(EXAMPLES / "weather.csv.gz"), options={"nullValue": "NA"})
    columns = ["origin", "year", "month", "day", "hour"]
    assert key(kept(df.select(columns), untyped=True)) == ()
    assert key(kept(df.select(columns).distinct(), untyped=True)) == ("origin", "month", "day", "hour")


def test_what_was_guessed_of_the_weather(spark: SparkSession) -> None:
    df = read_table(spark, str(EXAMPLES / "weather.csv.gz"), options={"nullValue": "NA"})
    inferred = infer_with_guesses(df, id="weather", untyped=True)
    types = {one.name: str(one.type) for one in inferred.contract.datasets[0].fields}
    assert types["origin"] == "string"
    assert types["wind_dir"] == "integer(32)"
    assert types["temp"] == types["visib"] == "number(64)"
    assert types["time_hour"] == "timestamp with zone"
    assert one(field(inferred, "origin"), Enum).values == ("EWR", "JFK", "LGA")
    assert not field(inferred, "temp").required
    assert field(inferred, "hour").required
    temp = {rule.kind: rule.limit for rule in field(inferred, "temp").rules}  # type: ignore[attr-defined]
    assert temp == {"minimum": Decimal("10.94"), "maximum": Decimal("100.04")}


# --- passes -----------------------------------------------------------------------------------------------------------


def rows_read(spark: SparkSession) -> dict[int, int]:
    """How many rows of files Spark read in each of its latest stages, by its own account; it forgets older ones."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[union-attr]
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages?status=complete"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return {stage["stageId"]: stage["inputRecords"] for stage in json.load(answer)}


def rows_read_since(spark: SparkSession, before: dict[int, int]) -> int:
    return sum(rows for stage, rows in rows_read(spark).items() if stage not in before)


def test_rows_are_read_twice_and_once_where_nothing_is_compared(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(1000).select(
        "id", (F.col("id") % 3).cast("string").alias("group"), *(F.rand(7).alias(f"v{at}") for at in range(60))
    )
    rows.write.parquet(str(tmp_path / "t"))
    df = spark.read.parquet(str(tmp_path / "t"))
    before = rows_read(spark)
    inferred = infer_with_guesses(df, id="t")
    assert rows_read_since(spark, before) == 2000
    assert key(inferred) == ("id",)
    before = rows_read(spark)
    infer_with_guesses(df.select("v0", "v1"), id="t")
    assert rows_read_since(spark, before) == 1000


def test_the_text_does_not_depend_on_partitions_or_the_order_of_rows(spark: SparkSession) -> None:
    df = read_table(spark, str(EXAMPLES / "airports.csv.gz"), options={"nullValue": "NA"})
    texts = {
        dump_inferred(infer_with_guesses(rows, id="airports", untyped=True))
        for rows in (df, df.repartition(7), df.orderBy(F.desc("name")).coalesce(1), df.repartition(3, "tz"))
    }
    assert len(texts) == 1


# --- types of texts ---------------------------------------------------------------------------------------------------

TEXTS: list[tuple[list[str | None], str]] = [
    (["0", "-7", "12"], "integer(32)"),
    (["2147483648", "1"], "integer(64)"),
    (["9223372036854775808"], "string"),
    (["007", "008"], "string"),
    (["1", "007"], "string"),
    (["+1", "2"], "string"),
    ([" 1", "2"], "string"),
    (["1.5", "2", None], "number(64)"),
    (["1e3", "2.5"], "number(64)"),
    (["NaN", "1.5"], "number(64)"),
    (["Infinity", "1.5"], "string"),
    (["1e999", "1.5"], "string"),
    (["1.", "1.5"], "string"),
    (["1.0d", "1.5"], "string"),
    (["01.5", "1.5"], "string"),
    (["0.123456789012345678", "2"], "decimal(38, 18)"),
    (["0.1234567890123456789"], "string"),
    (["2.50"] * 10 + ["3.25"], "decimal(18, 2)"),
    (["2.5"] * 10 + ["3.25"], "number(64)"),
    (["true", "False"], "boolean"),
    (["true", "1"], "string"),
    (["yes", "no"], "string"),
    (["2024-02-29", "2013-01-01"], "date"),
    (["2023-02-29", "2013-01-01"], "string"),
    (["2024-02-29", "2013-01-01T10:00:00"], "string"),
    (["2013-01-01T10:00:00", "2013-01-01 10:00:00.123456"], "timestamp without zone"),
    (["2013-01-01T10:00:00.1234567"], "string"),
    (["2013-01-01T10:00:00Z", "2013-01-01 10:00:00+02:00"], "timestamp with zone"),
    (["2013-01-01T10:00:00Z", "2013-01-01T10:00:00"], "string"),
    (["", "1"], "string"),
    (["1\n", "2"], "string"),
    ([None, None], "string"),
]


@pytest.mark.parametrize(("texts", "type_"), TEXTS)
def test_a_text_column_is_of_a_type_only_if_every_text_is(
    spark: SparkSession, texts: list[str | None], type_: str
) -> None:
    df = spark.createDataFrame([(text,) for text in texts], "v string")  # type: ignore[type-var]
    assert str(field(kept(df, untyped=True), "v").type) == type_


def test_texts_of_a_typed_table_are_texts(spark: SparkSession) -> None:
    df = spark.createDataFrame([(str(at),) for at in range(20)], "v string")
    assert str(field(kept(df), "v").type) == "string"


FORMATS = [
    ("uuid", [f"123e4567-e89b-12d3-a456-4266141740{at}" for at in range(10, 30)]),
    ("uri", [f"https://example.com/a/{at}" for at in range(20)]),
    ("email", [f"user{at}@example.com" for at in range(20)]),
    ("ipv4", [f"10.0.0.{at}" for at in range(20)]),
    ("ipv6", [f"2001:db8:0:0:0:0:0:{at}" for at in range(20)]),
]


@pytest.mark.parametrize(("name", "values"), FORMATS)
def test_a_format_is_guessed_if_every_value_has_it(spark: SparkSession, name: str, values: list[str]) -> None:
    df = spark.createDataFrame([(value,) for value in values], "v string")
    assert "format" in kinds(field(kept(df), "v"))
    assert f"format: {name}" in dump_inferred(infer_with_guesses(df, id="t"))
    spoilt = spark.createDataFrame([(value,) for value in [*values, "x"]], "v string")
    assert "format" not in kinds(field(kept(spoilt), "v"))


# --- what is never said -----------------------------------------------------------------------------------------------


def test_values_that_look_personal_are_nowhere(spark: SparkSession) -> None:
    rows = [
        (f"Secret{at % 2}", f"secret{at}@example.com", 777000 + at, ("Secret Lane", at), f"10.7.7.{at}", at % 2)
        for at in range(40)
    ]
    schema = "first_name string, contact string, phone long, address struct<street: string, no: int>, src string, n int"
    inferred = kept(spark.createDataFrame(rows, schema))
    text = dump_inferred(inferred)
    assert re.findall(r"secret|7770|10\.7\.7", text, re.IGNORECASE) == []
    for name in ("first_name", "contact", "phone", "address", "src"):
        assert field(inferred, name).pii is True
        assert not {"enum", "minimum", "maximum", "max_length"} & set(kinds(field(inferred, name)))
    assert kinds(field(inferred, "address", "no")) == ["required"]
    assert field(inferred, "n").pii is None
    assert text.count("- property: pii  # guess: ") == 5


# --- odd tables -------------------------------------------------------------------------------------------------------


def test_an_empty_table_promises_its_types_alone(spark: SparkSession) -> None:
    df = spark.createDataFrame([], "a int, b decimal(9,3), c struct<d: string>, e array<int>, f map<string, double>")
    inferred = kept(df)
    assert inferred.guesses == ()
    assert [str(one.type) for one in inferred.contract.datasets[0].fields][:2] == ["integer(32)", "decimal(9, 3)"]
    assert all(one.rules == () for one in inferred.contract.datasets[0].fields)


def test_so_do_few_rows(spark: SparkSession) -> None:
    inferred = kept(spark.createDataFrame([(1, "a", None)], "a int, b string, c string"))
    assert inferred.guesses == ()
    assert inferred.contract.datasets[0].rules == ()


def test_columns_of_nulls_and_of_types_without_a_word(spark: SparkSession) -> None:
    df = spark.range(20).select(
        F.lit(None).cast("string").alias("nothing"),
        F.lit(None).alias("void"),
        F.expr("interval 1 day").alias("length"),
        F.expr("array()").alias("empty"),
    )
    inferred = kept(df)
    assert kinds(field(inferred, "nothing")) == []
    assert field(inferred, "void").type is None
    assert kinds(field(inferred, "length")) == ["required"]


def test_what_is_inside_objects_is_looked_at(spark: SparkSession) -> None:
    rows = [((at, None if at % 2 else "ab"), [(at, "x")], {"k": at}) if at else (None, None, None) for at in range(30)]
    df = spark.createDataFrame(
        rows,
        "o struct<n: int, s: string>, items array<struct<sku: int, `e mail`: string>>, m map<string, int>",
    )
    inferred = kept(df)
    assert kinds(field(inferred, "o")) == []
    assert kinds(field(inferred, "o", "n")) == ["required", "minimum", "maximum"]
    assert kinds(field(inferred, "o", "s")) == ["enum"]
    item = field(inferred, "items").item
    assert item is not None
    assert [(one.name, one.pii) for one in item.fields] == [("sku", None), ("e mail", True)]


ODD = ("a b", "a.b", "a`b", "ä€", "a'b", 'a"b', "a: #b", "- a", "#", "item", "no", "1", "a\tb", "a\nb", "select", "%t")


def test_names_may_be_odd(spark: SparkSession) -> None:
    names = ", ".join(f"`{name.replace('`', '``')}` string" for name in ODD)
    df = spark.createDataFrame([tuple(f"{at}" for _ in ODD) for at in range(20)], names)
    df = df.withColumn("o", F.struct(*(df[f"`{name.replace('`', '``')}`"] for name in ODD)))
    inferred = kept(df, untyped=True)
    assert [one.name for one in inferred.contract.datasets[0].fields] == [*ODD, "o"]
    assert all("required" in kinds(one) for one in inferred.contract.datasets[0].fields)


REFUSED = [
    ("a int, A int", r"the table has the columns 'a' and 'A', which Spark takes for the same"),
    ("s struct<x: int, X: int>", r"'s' has the columns 'x' and 'X'"),
    ("s array<struct<x: int, X: int>>", r"'item' has the columns 'x' and 'X'"),
    ("` ` int", "the table has a column without a name"),
]


@pytest.mark.parametrize(("schema", "sentence"), REFUSED)
def test_columns_that_cannot_be_told_apart_are_refused(spark: SparkSession, schema: str, sentence: str) -> None:
    with pytest.raises(DataboxError, match=sentence):
        infer_contract(spark.createDataFrame([], schema), id="t")


def test_a_table_without_columns_is_refused(spark: SparkSession) -> None:
    with pytest.raises(DataboxError, match="the table has no columns"):
        infer_contract(spark.range(3).select(), id="t")


# --- bounds -----------------------------------------------------------------------------------------------------------

BOUNDS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("int", [0, 5], {"minimum": 0, "maximum": 5}),
    ("long", [-(2**63), 2**63 - 1], {"minimum": float(-(2**63)), "maximum": float(2**63)}),
    ("float", [0.1, -0.5], {"minimum": Decimal("-0.5"), "maximum": Decimal("0.1")}),
    ("double", [0.1, float("nan")], {}),
    ("double", [0.1, float("inf")], {"minimum": Decimal("0.1")}),
    ("double", [-0.0, 1e300], {"minimum": 0, "maximum": 1e300}),
    ("decimal(38,18)", [Decimal("1.5"), Decimal(2)], {"minimum": Decimal("1.5"), "maximum": 2}),
    ("decimal(38,0)", [Decimal(1), Decimal(10**37)], {}),
    ("date", [date(2020, 1, 1), date(2021, 1, 1)], {"minimum": "2020-01-01"}),
    ("timestamp_ntz", [datetime(2020, 1, 1, 1), datetime(2021, 1, 1)], {"minimum": "2020-01-01T01:00:00"}),
    ("boolean", [True, False], {}),
]


@pytest.mark.parametrize(("type_", "values", "bounds"), BOUNDS)
def test_bounds_are_what_was_seen(spark: SparkSession, type_: str, values: list[Any], bounds: dict[str, Any]) -> None:
    df = spark.createDataFrame([(value,) for value in values * 10], f"v {type_}")
    found = field(kept(df), "v")
    assert {rule.kind: rule.limit for rule in found.rules if "imum" in rule.kind} == bounds  # type: ignore[attr-defined]


# --- keys, lists, freshness -------------------------------------------------------------------------------------------


def test_a_column_with_nulls_may_be_unique_and_is_no_key(spark: SparkSession) -> None:
    df = spark.range(100).select(F.when(F.col("id") > 5, F.concat(F.lit("c"), "id")).alias("code"))
    inferred = kept(df)
    assert key(inferred) == ()
    assert kinds(field(inferred, "code"))[-1] == "unique"


def test_of_several_unique_columns_the_one_named_like_a_key_is_it(spark: SparkSession) -> None:
    df = spark.range(100).select(F.concat(F.lit("t"), "id").alias("title"), F.col("id").alias("order_id"))
    inferred = kept(df)
    assert key(inferred) == ("order_id",)
    assert any(isinstance(rule, Unique) for rule in field(inferred, "title").rules)
    assert "maximum" not in kinds(field(inferred, "order_id"))


def test_what_is_unique_by_chance_is_no_composite_key(spark: SparkSession) -> None:
    df = spark.range(30).select((F.col("id") % 15).alias("a"), (F.col("id") % 16).alias("b"), F.lit("x").alias("c"))
    assert key(kept(df)) == ()


def test_a_list_of_values_is_guessed_where_they_are_few(spark: SparkSession) -> None:
    rows = [(("a", "", "NO", "1.0")[at % 4], f"v{at % 20}", f"w{at % 21}") for at in range(420)]
    inferred = kept(spark.createDataFrame(rows, "s string, most string, many string"))
    assert one(field(inferred, "s"), Enum).values == ("", "1.0", "NO", "a")
    assert len(one(field(inferred, "most"), Enum).values) == 20
    assert "enum" not in kinds(field(inferred, "many"))


def test_freshness_is_promised_only_when_asked_for(spark: SparkSession) -> None:
    df = spark.range(20).select(
        F.timestamp_micros(F.col("id")).alias("old"), F.timestamp_micros(F.col("id") + 10**12).alias("new")
    )
    inferred = kept(df)
    assert "# guess: the newest time of the table, 1970-01-12T13:46:40.000019Z" in dump_inferred(inferred)
    assert not any(isinstance(rule, Freshness) for rule in inferred.contract.datasets[0].rules)
    asked = infer_with_guesses(df, id="t", freshness=3600.0)
    assert [rule for rule in asked.contract.datasets[0].rules if isinstance(rule, Freshness)] == [
        Freshness(seconds=3600.0, element="new")
    ]
    assert "property: latency  # guess: new has the newest time" in dump_inferred(asked)
    with pytest.raises(DataboxError, match="no column holds the time"):
        infer_contract(spark.range(3), id="t", freshness=1.0)


def test_what_the_schema_says_is_no_guess(spark: SparkSession) -> None:
    df = spark.createDataFrame([(at,) for at in range(20)], "n int not null comment 'a number'")
    inferred = kept(df)
    assert field(inferred, "n").description == "a number"
    assert "required" in kinds(field(inferred, "n"))
    assert "required" not in {guess.about for guess in inferred.guesses}
    assert "type" not in {guess.about for guess in inferred.guesses}


# --- over Connect -----------------------------------------------------------------------------------------------------

CLIENT = """
import sys
from databox_contracts.formats.guesses import dump_inferred
from databox_contracts.spark import infer_with_guesses, read_table, shared_session, stop_server
conf = {"spark.master": "local[2]", "spark.driver.memory": "512m", "spark.sql.shuffle.partitions": 2}
spark = shared_session(sys.argv[1], conf=conf)
try:
    df = read_table(spark, sys.argv[2], options={"nullValue": "NA"})
    print(dump_inferred(infer_with_guesses(df, id="planes", untyped=True)), end="")
finally:
    spark.stop()
    stop_server(sys.argv[1])
"""


@pytest.mark.full
def test_it_is_the_same_over_spark_connect(spark: SparkSession, tmp_path: Path) -> None:
    path = str(EXAMPLES / "planes.csv.gz")
    command = [sys.executable, "-c", CLIENT, str(tmp_path / "server"), path]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=PROJECT)
    assert answer.returncode == 0, answer.stderr
    df = read_table(spark, path, options={"nullValue": "NA"})
    assert answer.stdout == dump_inferred(infer_with_guesses(df, id="planes", untyped=True))
