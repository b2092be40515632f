"""Tables read as their reader's contract asks: what is upgraded, what is refused, what becomes null and is counted."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.errors import (
    ContractViolationError,
    DataboxError,
    ReaderContractError,
    UnreadableTableError,
    VersionPinError,
    VersionRangeError,
)
from databox_contracts.model import Contract, Enforcement
from databox_contracts.spark import ReadReport, TablePlace, publish, read_with_contract
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def reader(*fields: Any, **facts: Any) -> Contract:
    return build_contract(*fields, dataset="orders", id="urn:bi:orders", **facts)


def read(source: Any, contract: Contract, **options: Any) -> tuple[DataFrame, ReadReport]:
    reports: list[ReadReport] = []
    df = read_with_contract(source, contract, on_report=reports.append, **options)
    return df, reports[0]


def kinds(report: ReadReport) -> list[tuple[str, str, int | None]]:
    return [(one.field, str(one.kind), one.lost_rows) for one in report.changes]


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> DataFrame:
    at = datetime(2026, 1, 2, 3, 4, 5)
    schema = (
        "`a.b` string, small tinyint, n int, f float, dec decimal(6,2), whole int, day date, at timestamp, old string,"
        " lines array<struct<qty: int, sku: string, extra: boolean>>, tags map<string, int>,"
        " deep struct<x: int, y: struct<z: float>>"
    )
    row = ("x", 1, 2, 0.5, Decimal("1.25"), 7, date(2026, 1, 2), at, "o")
    return spark.createDataFrame(
        [
            (*row, [(1, "s", True), None], {"k": 1}, (1, (0.5,))),
            (*(None,) * 9, None, None, None),
        ],
        schema,
    )


WIDER = (
    build_field("whole", "decimal(12,1)"),
    build_field("lines", "array<struct<sku: string, qty: bigint, note: string>>"),
    build_field("tags", "map<string, bigint>"),
    build_field("deep", "struct<y: struct<z: double>>"),
    build_field("a.b", "string"),
    build_field("small", "bigint"),
    build_field("n", "double"),
    build_field("f", "double"),
    build_field("dec", "decimal(8,3)"),
    build_field("fresh", "array<int>"),
    build_field("new", "string", custom={"renamedFrom": "old"}),
    build_field("DAY", "date"),
)


def test_upgrade_reads_every_value_in_the_readers_columns(spark: SparkSession, table: DataFrame) -> None:
    df, report = read(table, reader(*WIDER))
    assert df.schema.simpleString() == (
        "struct<whole:decimal(12,1),lines:array<struct<sku:string,qty:bigint,note:string>>,tags:map<string,bigint>,"
        "deep:struct<y:struct<z:double>>,a.b:string,small:bigint,n:double,f:double,dec:decimal(8,3),fresh:array<int>,"
        "new:string,DAY:date>"
    )
    first, second = (row.asDict(recursive=True) for row in df.collect())
    assert first == {
        "whole": Decimal("7.0"),
        "lines": [{"sku": "s", "qty": 1, "note": None}, None],
        "tags": {"k": 1},
        "deep": {"y": {"z": 0.5}},
        "a.b": "x",
        "small": 1,
        "n": 2.0,
        "f": 0.5,
        "dec": Decimal("1.250"),
        "fresh": None,
        "new": "o",
        "DAY": date(2026, 1, 2),
    }
    assert set(second.values()) == {None}
    assert kinds(report) == [
        ("whole", "widened", None),
        ("lines.qty", "widened", None),
        ("lines.note", "missing", None),
        ("tags.value", "widened", None),
        ("deep.y.z", "widened", None),
        ("small", "widened", None),
        ("n", "widened", None),
        ("f", "widened", None),
        ("dec", "widened", None),
        ("fresh", "missing", None),
        ("new", "renamed", None),
    ]
    assert report.warnings == ()
    with pytest.raises(ReaderContractError) as error:
        read_with_contract(table, reader(*WIDER), mode="fail")
    assert len(error.value.differences) == 11
    assert "Read it in the mode 'upgrade'" in str(error.value)


def test_a_reader_that_asks_for_what_is_there_differs_in_nothing(table: DataFrame) -> None:
    same = (build_field("at", "timestamp"), build_field("n", "int"), build_field("lines", "array<struct<sku: string>>"))
    df, report = read(table, reader(*same), mode="fail")
    assert df.columns == ["at", "n", "lines"]
    assert df.schema["lines"].dataType.simpleString() == "array<struct<sku:string>>"
    assert (report.changes, report.warnings, report.table_version) == ((), (), None)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (build_field("n", "smallint"), r"n is integer\(32\); the reader asks for integer\(16\)"),
        (build_field("n", "float"), r"n is integer\(32\); the reader asks for number\(32\)"),
        (build_field("n", "string"), r"n is integer\(32\); the reader asks for string"),
        (build_field("f", "int"), "f is"),
        (build_field("dec", "decimal(6,3)"), r"dec is decimal\(6, 2\)"),
        (build_field("day", "timestamp"), "day is date"),
        (build_field("at", "timestamp_ntz"), "at is timestamp with zone"),
        (build_field("lines", "array<int>"), r"lines.item is object"),
        (build_field("tags", "string"), "tags is map"),
        (build_field("none", "int", rules.Required()), "no column none, which the reader requires"),
    ],
)
def test_what_loses_a_value_is_refused(table: DataFrame, field: Any, message: str) -> None:
    for mode in ("upgrade", "fail"):
        with pytest.raises(ReaderContractError, match=message) as error:
            read_with_contract(table, reader(field), mode=mode)  # type: ignore[arg-type]
        assert error.value.contract == "urn:bi:orders"
        assert error.value.fields[0].startswith(field.name)


def test_permissive_reads_what_fits_and_counts_what_does_not(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [
        ("7", 1.0, 100, datetime(2026, 1, 1), [("1",), ("x",)], {"a": 1.5}, {1: "a"}),
        ("x", 1.5, 300, datetime(2026, 1, 1), [("1",)], {"a": 1.0}, {1: "a"}),
        ("", float("nan"), -1, None, None, None, None),
        (None, None, None, None, [], {}, {}),
    ]
    schema = (
        "t string, d double, i int, at timestamp, lines array<struct<q: string>>, m map<string, double>,"
        " keyed map<int, string>"
    )
    wanted = (
        build_field("t", "int"),
        build_field("d", "int"),
        build_field("i", "tinyint"),
        build_field("at", "timestamp_ntz"),
        build_field("lines", "array<struct<q: int>>"),
        build_field("m", "map<string, int>"),
        build_field("keyed", "map<string, string>"),
        build_field("gone", "int", rules.Required()),
    )
    with caplog.at_level(logging.WARNING, "databox_contracts"):
        df, report = read(spark.createDataFrame(rows, schema), reader(*wanted), mode="permissive")
    assert [tuple(row) for row in df.select("t", "d", "i", "at", "gone").collect()] == [
        (7, 1, 100, None, None),
        (None, None, None, None, None),
        (None, None, -1, None, None),
        (None, None, None, None, None),
    ]
    nested = df.selectExpr("lines.q as q", "m", "keyed").collect()
    assert [(row["q"], row["m"], row["keyed"]) for row in nested] == [
        ([1, None], {"a": None}, None),
        ([1], {"a": 1}, None),
        (None, None, None),
        ([], {}, None),
    ]
    assert kinds(report) == [
        ("t", "converted", 2),
        ("d", "converted", 2),
        ("i", "converted", 1),
        ("at", "incompatible", 2),
        ("lines.q", "converted", 1),
        ("m.value", "converted", 1),
        ("keyed", "incompatible", 3),
        ("gone", "required_missing", None),
    ]
    assert report.warnings[0].endswith("in 2 rows its value does not fit and is null")
    assert len(caplog.records) == len(report.warnings) == 8


PRODUCED = build_contract(
    build_field("id", "int"),
    build_field("price", "double", rules.Minimum(limit=0)),
    build_field("state", "string", rules.Enum(values=("open",))),
    rules=(rules.PrimaryKey(fields=("id",)), rules.Expression(sql="price < 100 OR state = 'open'")),
    dataset="orders",
    id="urn:shop:orders",
    version="2.1.0",
)


def test_a_published_table_is_held_against_the_version_that_its_reader_needs(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = TablePlace(tmp_path, "shop/orders")
    rows = spark.createDataFrame([(1, 1.0, "open"), (2, 2.0, "open")], "id int, price double, state string")
    with pytest.raises(UnreadableTableError, match="nothing was published"):
        read_with_contract(spark, PRODUCED, place=place)
    publish(rows, PRODUCED, place=place)
    for opened in (place, place.link, str(place.link)):
        df, report = read(spark, PRODUCED, place=opened, fields=("price", "id"), version_range="^2", mode="fail")
        assert df.columns == ["price", "id"]
        assert (report.table_contract, report.table_version) == ("urn:shop:orders", "2.1.0")
    for mode in ("upgrade", "fail", "permissive"):
        with pytest.raises(VersionPinError, match=r"needs version ~2\.2, and .* is of version 2\.1\.0") as error:
            read_with_contract(spark, PRODUCED, place=place, version_range="~2.2", mode=mode)  # type: ignore[arg-type]
        assert (error.value.pin, error.value.found) == ("~2.2", "2.1.0")
    with pytest.raises(VersionRangeError):
        read_with_contract(spark, PRODUCED, place=place, version_range="latest")
    with pytest.raises(VersionPinError, match="does not say its contract's version"):
        read_with_contract(rows, PRODUCED, version_range="^2", mode="fail")
    _, report = read(rows, PRODUCED, version_range="^2")
    assert report.warnings == ("the reader needs version ^2, and it does not say its version",)
    with pytest.raises(VersionPinError, match="is of version 3"):
        read_with_contract(rows, PRODUCED, version_range="^2", table_version="3")
    rows.createOrReplaceTempView("orders_view")
    assert read_with_contract(spark, PRODUCED, place="orders_view").count() == 2
    with pytest.raises(UnreadableTableError, match="no such table or view"):
        read_with_contract(spark, PRODUCED, place="nothing_there")
    with pytest.raises(ReaderContractError, match=r"no field colour\. Name some of: id, price, state"):
        read_with_contract(spark, PRODUCED, place=place, fields=("id", "colour"))
    with pytest.raises(ReaderContractError, match="no field is asked for"):
        read_with_contract(spark, PRODUCED, place=place, fields=())
    with pytest.raises(DataboxError, match="nothing to read"):
        read_with_contract(spark, PRODUCED)
    with pytest.raises(DataboxError, match="a DataFrame and a place"):
        read_with_contract(rows, PRODUCED, place=place)
    with pytest.raises(DataboxError, match="the reading mode is 'strict'"):
        read_with_contract(rows, PRODUCED, mode="strict")  # type: ignore[arg-type]


def test_the_data_is_verified_where_it_is_asked_for(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, -1.0, "lost"), (1, 200.0, "lost")], "id int, price double, state string")
    df, report = read(rows, PRODUCED)
    assert (df.count(), report.verdict) == (2, None)
    with pytest.raises(ContractViolationError) as error:
        read_with_contract(rows, PRODUCED, fields=("price",), verify_data=True)
    # The condition is about a column that is not read; the key is, and is said to be left out.
    found = [(one.id, one.failed_count) for one in error.value.verdict.violations]
    assert found == [("orders.price.minimum", 1), ("orders.expression", 1)]
    _, report = read(rows, PRODUCED, fields=("price",), verify_data=True, mode="permissive")
    assert report.left_out == ("primary_key (id)",)
    assert report.verdict is not None
    assert not report.verdict.passed
    assert any("not verified" in one and "primary_key (id)" in one for one in report.warnings)
    grace = PRODUCED.model_copy(update={"enforcement": Enforcement(mode="warn", until=date(2026, 5, 1))})
    day = datetime(2026, 4, 30, tzinfo=UTC)
    _, report = read(rows, grace, verify_data=True, as_of=day)
    assert "4 of" in report.warnings[-1]
    with pytest.raises(ContractViolationError):
        read_with_contract(rows, grace, verify_data=True, as_of=datetime(2026, 5, 1, tzinfo=UTC))
    good, report = read(rows.where("price > 0").limit(0), PRODUCED, verify_data=True, mode="fail")
    assert good.count() == 0
    assert report.verdict is not None
    assert report.verdict.passed
