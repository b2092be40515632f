from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.errors import UnreadableTableError
from databox_contracts.spark.failures import SPARK_ERRORS, unreadable
from databox_contracts.spark.reading import guess_format, read_table
from databox_contracts.spark.verification import verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("made", "named", "found"),
    [
        ("a.csv", "a.csv", "csv"),
        ("a.csv.gz", "a.csv.gz", "csv"),
        ("A.CSV", "A.CSV", "csv"),
        ("t/part-0.snappy.parquet", "t", "parquet"),
        ("t/year=1/part-0.orc", "t", "orc"),
        ("t/_SUCCESS", "t", "parquet"),
        ("t/.part-0.csv", "t", "parquet"),
        ("unknown", "unknown", "parquet"),
    ],
)
def test_the_format_is_guessed_from_names(tmp_path: Path, made: str, named: str, found: str) -> None:
    (tmp_path / made).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / made).touch()
    assert guess_format(str(tmp_path / named)) == found


def read(spark: SparkSession, path: Path, **options: Any) -> list[tuple[Any, ...]]:
    try:
        return [tuple(row) for row in read_table(spark, str(path), **options).collect()]
    except SPARK_ERRORS as error:
        raise unreadable(str(path), error) from error


def test_csv_is_read_as_text_with_quotes_doubled(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write('a,b\n1,"x ""y"", z"\nNA,\n')
    assert read(spark, path, options={"nullValue": "NA"}) == [("1", 'x "y", z'), (None, None)]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("gone.csv", None, "there is nothing"),
        ("gone.parquet", None, "there is nothing"),
        ("short.csv", b"a,b\n1,2\nsecret\n", "a row has too many or too few values"),
        ("long.csv", b"a,b\n1,secret,3\n", "a row has too many or too few values"),
        ("junk.parquet", b"secret", "damaged or of another format"),
    ],
)
def test_an_unreadable_table_is_one_sentence_without_its_rows(
    spark: SparkSession, tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnreadableTableError) as error:
        read(spark, path)
    assert reason in str(error.value)
    assert "secret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_format_names_the_known_ones(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UnreadableTableError, match=r"unknown format 'avro'\. Use one of parquet, orc, csv"):
        read_table(spark, str(tmp_path), format="avro")


# The type a field is declared with, texts that are values of it, and texts that are not or that lose something.
TEXTS = [
    ("int", ["0", "-7", " 8 ", "2147483647"], ["2147483648", "1.5", "x", "", "1e2"]),
    ("tinyint", ["127"], ["128"]),
    ("bigint", ["9223372036854775807"], ["9223372036854775808"]),
    ("double", ["1.5", "1e3", "NaN", "Infinity", "-0.0"], ["1e999", "x", ""]),
    ("decimal(4,2)", ["12.34", "0", "12.340"], ["12.345", "123.4", "x"]),
    ("boolean", ["true", "FALSE", "t", "0"], ["maybe", "2"]),
    ("date", ["2024-02-29"], ["2023-02-29", "2024-02-29T10:00:00Z", "29.2.2024"]),
    ("timestamp", ["2024-02-29T10:00:00Z", "2024-02-29 10:00:00", "2024-02-29"], ["noon", "2023-02-29 10:00:00"]),
    ("timestamp_ntz", ["2024-02-29T10:00:00"], ["noon"]),
    ("string", ["", "anything"], []),
]


@pytest.mark.parametrize(("declared", "keeps", "loses"), TEXTS)
def test_text_that_its_type_cannot_hold_is_a_violation_and_never_a_null(
    spark: SparkSession, declared: str, keeps: list[str], loses: list[str]
) -> None:
    df = spark.createDataFrame([(text,) for text in [*keeps, *loses, None]], "v string")  # type: ignore[type-var]
    verdict = verify(df, build_contract(build_field("v", declared)), untyped=True)
    violations = {result.id: (result.failed_count, sorted(result.samples)) for result in verdict.violations}
    # A type that Spark cannot hold at all is judged like any other text, sorted as five of it are shown.
    expected = {"t.v.type": (len(loses), sorted(loses))} if loses else {}
    assert violations == expected


def test_row_rules_and_keys_judge_the_values_and_not_the_text(spark: SparkSession) -> None:
    rows = [("1", "9"), ("01", "10"), ("x", "11")]
    df = spark.createDataFrame(rows, "id string, n string")  # type: ignore[type-var]
    contract = build_contract(
        build_field("id", "int", rules.Unique(), rules.Required()), build_field("n", "int", rules.Maximum(limit=10))
    )
    verdict = verify(df, contract, untyped=True)
    assert [(result.id, result.failed_count, result.samples) for result in verdict.violations] == [
        ("t.id.type", 1, ("x",)),
        ("t.id.unique", 1, (1,)),
        ("t.id.required", 1, ()),
        ("t.n.maximum", 1, (11,)),
    ]
