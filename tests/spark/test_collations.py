"""Columns with a collation (Spark 4): contracts compare texts by their code points, in every kind of rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, IntegerType, MapType, StringType, StructType

from databox_contracts import rules
from databox_contracts.results import Status
from databox_contracts.spark import TablePlace, publish, quarantine, read_published, verify
from databox_contracts.spark.collations import without_collations
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.skipif(not hasattr(StringType(), "collation"), reason="PySpark 3.5 has no collations")

LISTED: Final = rules.Enum(values=("new", "old", ""))
CONTRACT: Final = build_contract(
    build_field("n", "int", rules.Required()),
    build_field("word", "string", rules.Unique(), rules.Pattern(pattern="^[a-z]*$"), LISTED),
    build_field("tags", "array", rules.UniqueItems(), item=build_field("item", "string", LISTED)),
    build_field(
        "one",
        "object",
        fields=(build_field("of", "string", LISTED, rules.ForeignKey(fields=(), to="u", to_fields=("k",))),),
    ),
    build_field("names", "array", item=build_field("item", "string", rules.Unique())),
)
SCHEMA: Final = "n int, word string, tags array<string>, one struct<of:string>, names array<string>"
ROWS: Final[list[tuple[Any, ...]]] = [
    (1, "new", ["new", "old"], ("new",), ["a"]),
    (2, "NEW", ["new", "NEW"], ("new",), ["A"]),
    (3, "new", ["old", "old"], ("old",), ["b", "B"]),
    (4, "old", ["", None], ("NEW",), ["A"]),
    (5, "", [], None, []),
    (6, None, None, (None,), None),
]
FAILED: Final = {
    "t.word.unique": 1,
    "t.word.pattern": 1,
    "t.word.enum": 1,
    "t.tags.unique_items": 1,
    "t.tags.item.enum": 1,
    "t.one.of.enum": 1,
    "t.one.of.foreign_key": 2,
    "t.names.item.unique": 1,
}
HELD: Final = {
    1: ["t.word.unique"],
    2: ["t.word.pattern", "t.word.enum", "t.tags.item.enum", "t.names.item.unique"],
    3: ["t.word.unique", "t.tags.unique_items", "t.one.of.foreign_key"],
    4: ["t.one.of.enum", "t.one.of.foreign_key", "t.names.item.unique"],
}


@pytest.fixture(scope="module")
def words(spark: SparkSession) -> DataFrame:
    plain = spark.createDataFrame(ROWS, SCHEMA).repartition(3)
    return plain.select(*(F.col(f.name).cast(collated(f.dataType)).alias(f.name) for f in plain.schema.fields))


@pytest.fixture(scope="module")
def known(spark: SparkSession) -> dict[str, DataFrame]:
    keys = spark.createDataFrame([("new",), ("OLD",), ("other",)], "k string")
    return {"u": keys.select(F.col("k").cast(collated(StringType())).alias("k"))}


def collated(actual: DataType) -> DataType:
    """The type with texts that are equal whatever their case."""
    match actual:
        case StringType():
            return StringType("UTF8_LCASE")
        case ArrayType():
            return ArrayType(collated(actual.elementType))
        case StructType():
            found = StructType()
            for field in actual.fields:
                found.add(field.name, collated(field.dataType))
            return found
    return actual


def test_verdicts_are_those_of_plain_texts(words: DataFrame, known: dict[str, DataFrame]) -> None:
    assert words.where("word = 'new'").count() == 3
    verdict = verify(words, CONTRACT, references=known)
    assert {result.id: result.failed_count for result in verdict.with_status(Status.FAILED)} == FAILED
    assert not verdict.with_status(Status.NOT_EVALUATED)
    assert {result.samples for result in verdict.results if result.id == "t.word.enum"} == {("NEW",)}


def test_a_reference_may_have_another_collation_or_none(
    spark: SparkSession, words: DataFrame, known: dict[str, DataFrame]
) -> None:
    plain = spark.createDataFrame(known["u"].collect(), "k string")
    unicode = plain.select(F.col("k").cast(StringType("UNICODE_CI")).alias("k"))
    for keys in (plain, unicode):
        verdict = verify(words, CONTRACT, references={"u": keys})
        assert {result.id: result.failed_count for result in verdict.with_status(Status.FAILED)} == FAILED


def test_rows_are_held_with_their_reasons_and_columns_keep_their_collation(
    spark: SparkSession, tmp_path: Path, words: DataFrame, known: dict[str, DataFrame]
) -> None:
    place = TablePlace(tmp_path, "t")
    published = publish(words, CONTRACT, place=place, on_violation="quarantine", references=known)
    assert (published.rows_published, published.rows_quarantined) == (2, 4)
    table = read_published(spark, place)
    assert table.schema["word"].dataType == StringType("UTF8_LCASE")
    assert {row[0] for row in table.select("n").collect()} == {5, 6}
    assert published.quarantine is not None
    rows = spark.read.parquet(str(published.quarantine)).select("n", "_quarantine_reason").collect()
    assert {row[0]: list(row[1]) for row in rows} == HELD


def test_a_split_holds_the_same_rows(words: DataFrame, known: dict[str, DataFrame]) -> None:
    # A key inside an array is for `publish` to hold.
    flat = {n: [reason for reason in reasons if reason != "t.names.item.unique"] for n, reasons in HELD.items()}
    fields = [field for field in CONTRACT.datasets[0].fields if field.name != "names"]
    split = quarantine(words.drop("names"), build_contract(*fields), references=known)
    rows = split.quarantined.select("n", "_quarantine_reason").collect()
    assert {row[0]: list(row[1]) for row in rows} == flat
    assert {row[0] for row in split.valid.select("n").collect()} == {5, 6}


def test_types_without_a_collation_stay_as_they_are() -> None:
    types: list[DataType] = [
        IntegerType(),
        StringType(),
        ArrayType(StringType(), containsNull=False),
        MapType(StringType(), ArrayType(IntegerType()), valueContainsNull=False),
        StructType().add("a", StringType(), nullable=False),
    ]
    for actual in types:
        assert without_collations(actual) == actual
    keyed = MapType(StringType("UNICODE"), StructType().add("a", StringType("UTF8_LCASE")))
    assert without_collations(keyed) == MapType(StringType(), StructType().add("a", StringType()))
