from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.errors import PublicationError
from databox_contracts.spark import TablePlace, publish, read_published
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.model import Contract

FORMATS = ("parquet", "orc", "json", "csv")
TEXTS = [
    *(None, "", "a", "NULL", "null", "\\N", " lead", "trail ", " ", "\t", "a,b", 'q"q', '"', '""', "\\", '\\"', "a\\"),
    *(
        "line\nbreak",
        "cr\rx",
        "crlf\r\nx",
        "\n",
        "\r",
        "#c",
        "\0",
        "\0x",
        "é😀",
        "\u2028",
        "nan",
        '"a"b',
        'a"',
        "\ufeff",
    ),
    *("true", "\x1a", "\x7f", "'", "\\n", "\x85"),
]
FLOATS = [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1]
DECIMALS = [None, Decimal(0), Decimal("1e-18"), Decimal("-99999999999999999999.999999999999999999"), Decimal("1.10")]
DATES = [None, date(1, 1, 1), date(9999, 12, 31), date(1900, 1, 1)]
MICROS = [None, 0, 1, 999_999, -62_135_596_800_000_000, 253_402_300_799_999_999, -2_208_988_800_000_001]
"""Years 1 and 9999, and a moment when many time zones had offsets of odd seconds."""
COLUMNS = (
    "n int, `a d` string, `b.c` string, f float, d double, m decimal(38,18), day date, yes boolean, l bigint,"
    " b tinyint, micros bigint"
)


@pytest.fixture(scope="module")
def nasty(spark: SparkSession) -> DataFrame:
    rows = [
        (
            at,
            text,
            TEXTS[-at - 1],
            [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 0.1][at % 7],
            FLOATS[at % 9],
            DECIMALS[at % 5],
            DATES[at % 4],
            (None, True, False)[at % 3],
            (None, 2**63 - 1, -(2**63))[at % 3],
            (None, 127, -128)[at % 3],
            MICROS[at % 7],
        )
        for at, text in enumerate(TEXTS)
    ]
    df = spark.createDataFrame(rows, COLUMNS).repartition(2)  # type: ignore[type-var]
    return df.selectExpr("*", "timestamp_micros(micros) at", "cast(timestamp_micros(micros) as timestamp_ntz) there")


def values(df: DataFrame) -> list[str]:
    """Every value as text, exactly, in the order of `n`."""
    shown = df.withColumns({"at": df["at"].cast("string"), "there": df["there"].cast("string")})
    return [repr(tuple(row)) for row in shown.orderBy("n").collect()]


def contract_of(df: DataFrame, *own: Any, rules: Sequence[Any] = ()) -> Contract:
    fields = {field.name: field for field in own}
    return build_contract(*(fields.get(name) or build_field(name) for name in df.columns), rules=rules)


@pytest.mark.parametrize("format", FORMATS)
def test_every_value_is_read_back_as_it_was_given(
    spark: SparkSession, nasty: DataFrame, tmp_path: Path, format: str
) -> None:
    place = TablePlace(tmp_path / "root", "t", format)
    publication = publish(nasty, contract_of(nasty), place=place)
    assert publication.rows_in == publication.table_rows == len(TEXTS)
    files = [file for file in place.link.iterdir() if file.name.startswith("part-")]
    assert files
    assert all(file.name.endswith(f".{format}") for file in files)
    read = read_published(spark, place)
    assert read.schema.simpleString() == nasty.schema.simpleString()
    assert values(read) == values(nasty)


@pytest.mark.parametrize(
    "format", [pytest.param("orc", marks=pytest.mark.full), pytest.param("json", marks=pytest.mark.full), "csv"]
)
def test_rows_are_held_as_they_are_and_the_rest_is_published(
    spark: SparkSession, nasty: DataFrame, tmp_path: Path, format: str
) -> None:
    place = TablePlace(tmp_path / "root", "t", format)
    doubled = nasty.union(nasty.where("n = 20"))
    contract = contract_of(
        nasty, build_field("n", "int", rules.Maximum(limit=30)), rules=(rules.PrimaryKey(fields=("n",)),)
    )
    publication = publish(doubled, contract, place=place, on_violation="quarantine", partition_by=("yes",))
    assert (publication.rows_in, publication.rows_quarantined, publication.rows_published) == (38, 8, 30)
    assert publication.quarantine is not None
    assert values(read_published(spark, place)) == values(nasty.where("n <= 30 and n <> 20"))
    held = spark.read.parquet(str(publication.quarantine))
    assert values(held.select(*(f"`{name}`" for name in nasty.columns))) == values(doubled.where("n > 30 or n = 20"))
    reasons = {row[0]: row[1] for row in held.select("n", "_quarantine_reason").collect()}
    assert reasons == {20: ["t.primary_key"], **{at: ["t.n.maximum"] for at in range(31, 37)}}


NESTED = """
    select 1 n, cast(null as struct<a:int,b:string>) s, array(1, null) a, cast(array() as array<int>) e,
    array(cast(null as struct<a:int>), named_struct('a', cast(null as int))) o, map('k', null, '', 'v') m,
    cast(map() as map<string,int>) m0, array(named_struct('a', map('x', array(1.5f)))) q, X'00ff10' bin, X'' bin0,
    cast(null as binary) bin1, array(double('nan'), double('-inf')) ds, named_struct('at', array(date'2024-02-29')) dd
"""


@pytest.mark.parametrize("format", ["orc", "json"])
def test_nested_values_are_read_back_as_they_were_given(spark: SparkSession, tmp_path: Path, format: str) -> None:
    place = TablePlace(tmp_path / "root", "t", format)
    df = spark.sql(NESTED)
    publish(df, contract_of(df), place=place)
    read = read_published(spark, place)
    assert read.schema.simpleString() == df.schema.simpleString()
    assert repr(read.collect()) == repr(df.collect())


@pytest.mark.parametrize(
    ("format", "columns", "reason"),
    [
        ("csv", "a int, s struct<x:int>", "CSV cannot hold the column s: its values are single ones, and this is"),
        ("csv", "a array<int>, b int", "CSV cannot hold the column a"),
        ("csv", "a binary, b int", "CSV cannot hold the column a: it has no values of type binary"),
        ("json", "a array<map<int,string>>", "JSON cannot hold the column a: the keys of a map are text there"),
        ("json", "a struct<v:variant>", "JSON cannot hold the column a: it has no values of type variant"),
        ("orc", "a variant", "ORC cannot hold the column a"),
        ("csv", "a interval day to second", "is of type interval"),
    ],
)
def test_what_a_format_cannot_hold_is_told_before_anything_is_written(
    spark: SparkSession, tmp_path: Path, format: str, columns: str, reason: str
) -> None:
    df = spark.createDataFrame([], columns)
    place = TablePlace(tmp_path / "root", "t", format)
    with pytest.raises(PublicationError, match=reason):
        publish(df, contract_of(df), place=place)
    assert not place.root.exists()


def test_what_orc_would_move_is_noticed_and_the_old_table_stays(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path / "root", "t", "orc")
    good = spark.sql("select 1 n, timestamp_micros(0) at")
    publish(good, contract_of(good), place=place)
    bad = spark.sql("select 1 n, timestamp_micros(-1) at")
    for mode in ("fail", "quarantine", "warn"):
        with pytest.raises(PublicationError, match=r"differ from those that were written\. Nothing was published"):
            publish(bad, contract_of(bad), place=place, on_violation=mode)  # type: ignore[arg-type]
    assert read_published(spark, place).selectExpr("unix_micros(at)").collect() == [(0,)]
    assert not any(place.staging.iterdir())


def test_one_column_of_csv_holds_everything_but_null(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path / "root", "t", "csv")
    texts = [text for text in TEXTS if text is not None]
    df = spark.createDataFrame([(text,) for text in texts], "s string")
    publish(df, contract_of(df), place=place)
    assert sorted(row[0] for row in read_published(spark, place).collect()) == sorted(texts)
    with pytest.raises(PublicationError, match="differ from those"):
        publish(df.selectExpr("nullif(s, 'a') s"), contract_of(df), place=place)
    numbers = spark.createDataFrame([(1,), (None,)], "s int")
    with pytest.raises(PublicationError, match="cannot be read back"):
        publish(numbers, contract_of(numbers), place=place)


@pytest.mark.parametrize("format", ["orc", "json", "csv"])
def test_an_empty_table_has_its_columns_and_needs_no_inference(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    place = TablePlace(tmp_path / "root", "t", format)
    df = spark.createDataFrame([], "v int, t timestamp")
    for on_violation in ("fail", "quarantine"):
        publication = publish(df, contract_of(df), place=place, on_violation=on_violation)  # type: ignore[arg-type]
        assert (publication.rows_in, publication.table_rows) == (0, 0)
        read = read_published(spark, place)
        assert (read.count(), read.schema.simpleString()) == (0, "struct<v:int,t:timestamp>")
    manifest = json.loads((place.link / "_databox.json").read_text())
    assert (manifest["table"]["format"], manifest["table"]["rows"]) == (format, {"": 0})


@pytest.mark.parametrize("format", ["orc", "json", "csv"])
def test_a_table_that_spark_wrote_is_adopted_in_its_own_format_alone(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    place = TablePlace(tmp_path / "root", "t", format)
    df = spark.createDataFrame([(1, "x")], "v int, w string")  # type: ignore[type-var]
    df.write.format(format).option("header", "true").save(str(place.link))
    assert [str(row["v"]) for row in read_published(spark, place).collect()] == ["1"]
    other = TablePlace(place.root, "t")
    with pytest.raises(PublicationError, match="no Parquet table, it holds"):
        publish(df, contract_of(df), place=other)
    if format == "orc":
        assert publish(df, contract_of(df), place=place, mode="append").table_rows == 2
    else:
        with pytest.raises(PublicationError, match="files do not say what their columns are"):
            publish(df, contract_of(df), place=place, mode="append")
    publish(df, contract_of(df), place=place)
    assert len(list(place.versions.glob("adopted-*"))) == 1
    assert read_published(spark, place).collect() == df.collect()


def test_a_table_may_change_its_format_with_an_overwrite_only(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1, "x")], "v int, w string")  # type: ignore[type-var]
    publish(df, contract_of(df), place=TablePlace(tmp_path, "t", "csv"))
    place = TablePlace(tmp_path, "t", "json")
    with pytest.raises(PublicationError, match="its files are CSV, and the place says JSON"):
        publish(df, contract_of(df), place=place, mode="append")
    # What the version says goes before what the place says.
    assert read_published(spark, place).collect() == df.collect()
    publish(df, contract_of(df), place=place)
    assert read_published(spark, TablePlace(tmp_path, "t", "csv")).collect() == df.collect()
    assert list(place.link.glob("part-*.json"))


@pytest.mark.parametrize("root", ["s3://bucket/tables", "s3a://b", "hdfs://n:9000/x", "abfss://a@b/c", "file:///x"])
def test_an_object_store_is_refused(root: str) -> None:
    for given in (root, Path(root)):
        with pytest.raises(PublicationError, match="the root is a URL"):
            TablePlace(given, "t")  # type: ignore[arg-type]


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PublicationError, match=r"unknown format 'xml'\. Use one of parquet, orc, json, csv"):
        TablePlace(tmp_path, "t", "xml")
