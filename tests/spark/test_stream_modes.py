"""Schema modes on streams: what each batch is made, what a restart with other columns does, and what is refused."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError, DataboxError, DataValidationError, PublicationError
from databox_contracts.model import Contract, Mode
from databox_contracts.spark import BatchReport, TablePlace, enforce_stream, publish, read_published
from databox_contracts.spark.modes import Discarded
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ITEM = build_field("item", "object", fields=(build_field("n", "int"),))
CONTRACT = build_contract(
    build_field("id", "int"),
    build_field("price", "int", rules.Minimum(limit=0)),
    build_field("items", "array", item=ITEM),
    rules=(rules.PrimaryKey(fields=("id",)),),
    dataset="t",
)
SCHEMA = "id int, price string, items array<struct<n:int,odd:string>>, extra string"
ROWS: list[tuple[Any, ...]] = [
    (1, "1", [(1, None), (2, "x")], None),
    (2, "x", [], None),
    (3, "-3", None, None),
    (4, "", [(3, "")], ""),
    (5, "5", [(4, None)], "y"),
    (1, "0", None, None),
]


class Source:
    """A directory that a stream reads, a file a batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.files = 0
        folder.mkdir()

    def add(self, rows: list[tuple[Any, ...]], schema: str) -> None:
        target = self.folder / f"{self.files:03}.parquet"
        pq.write_table(self.spark.createDataFrame(rows, schema).toArrow(), target)
        os.utime(target, (1_700_000_000 + self.files, 1_700_000_000 + self.files))
        self.files += 1

    def read(self, schema: str) -> DataFrame:
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.folder))


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Source:
    return Source(spark, tmp_path / "source")


@pytest.fixture
def place(tmp_path: Path) -> TablePlace:
    return TablePlace(tmp_path / "root", "t")


def run(df: DataFrame, contract: Contract = CONTRACT, **options: Any) -> list[BatchReport]:
    stream = enforce_stream(df, contract, trigger={"availableNow": True}, clock=lambda: AT, **options)
    stream.awaitTermination()
    return stream.reports()


def contents(spark: SparkSession, place: TablePlace) -> tuple[list[str], Counter[str], Counter[str]]:
    """Columns, and rows of the table and of the quarantine without their stamps, in any order."""
    table = read_published(spark, place)
    held: Counter[str] = Counter()
    for batch in place.quarantine.iterdir():
        rows = spark.read.parquet(str(batch)).select(*table.columns, "_quarantine_reason").collect()
        held.update(map(repr, rows))
    return table.columns, Counter(map(repr, table.collect())), held


def kept_by(*reports: BatchReport) -> Counter[tuple[Any, ...]]:
    return Counter(
        {(one.entity, one.mode, one.field, one.unit): one.count for report in reports for one in report.discarded}
    )


@pytest.mark.parametrize(
    "mode",
    [
        "evolve",
        pytest.param("discard_row", marks=pytest.mark.full),
        pytest.param("discard_value", marks=pytest.mark.full),
    ],
)
def test_batches_become_what_one_publish_of_all_rows_becomes(
    spark: SparkSession, source: Source, place: TablePlace, tmp_path: Path, mode: str
) -> None:
    modes = {"columns": mode, "data_type": mode}
    # A key that batches share is not in it: a publish would hold the first one too.
    rows = [*ROWS[:5], (7, "0", None, None), (7, "1", None, None)]
    for part in (rows[:2], rows[2:4], rows[4:]):
        source.add(part, SCHEMA)
    reports = run(source.read(SCHEMA), place=place, checkpoint=tmp_path / "cp", schema_modes=modes)
    whole = TablePlace(tmp_path / "whole", "t")
    done = publish(
        spark.createDataFrame(rows, SCHEMA), CONTRACT, place=whole, on_violation="quarantine", schema_modes=modes
    )
    assert contents(spark, place) == contents(spark, whole)
    totals = (
        "rows_in",
        "rows_published",
        "rows_quarantined",
        "rows_discarded",
        "elements_discarded",
        "values_discarded",
    )
    assert {name: sum(getattr(one, name) for one in reports) for name in totals} == {
        name: getattr(done, name) for name in totals
    }
    for one in reports:
        assert one.rows_in == one.rows_published + one.rows_quarantined + one.rows_discarded
    summed: Counter[tuple[Any, ...]] = Counter()
    for one in reports:
        summed += kept_by(one)
    assert summed == {(one.entity, one.mode, one.field, one.unit): one.count for one in done.discarded}
    assert {"evolve": 0, "discard_row": 3, "discard_value": 0}[mode] == done.rows_discarded
    if mode == "evolve":
        assert read_published(spark, place).columns == ["id", "price", "items", "extra", "price__v_string"]


NARROW, WIDE = "id int, n string", "id int, n int, extra string"
PLAIN = build_contract(build_field("id", "int"), build_field("n", "int"), dataset="t")


def test_a_restart_with_other_columns_widens_the_table_under_evolve_alone(
    spark: SparkSession, source: Source, place: TablePlace, tmp_path: Path
) -> None:
    source.add([(1, "1"), (2, "two")], NARROW)
    options: dict[str, Any] = {"contract": PLAIN, "place": place, "checkpoint": tmp_path / "cp"}
    run(source.read(NARROW), schema_modes="evolve", **options)
    assert read_published(spark, place).columns == ["id", "n", "n__v_string"]
    source.folder.joinpath("000.parquet").unlink()
    source.add([(3, 3, "x")], WIDE)
    with pytest.raises(DataValidationError, match="extra is in the table and not in the contract") as frozen:
        run(source.read(WIDE), **options)
    assert (frozen.value.schema_entity, frozen.value.column_name) == ("columns", "extra")
    with pytest.raises(PublicationError, match="let the schema modes be evolve"):
        run(source.read(WIDE), schema_modes={"columns": "evolve"}, **options)
    run(source.read(WIDE), schema_modes="evolve", **options)
    source.add([(4, 4, "y")], WIDE)
    reports = run(source.read(WIDE), schema_modes="evolve", **options)
    table = read_published(spark, place)
    assert table.columns == ["id", "n", "n__v_string", "extra"]
    assert sorted(map(tuple, table.collect())) == [
        (1, 1, None, None),
        (2, None, "two", None),
        (3, 3, None, "x"),
        (4, 4, None, "y"),
    ]
    assert [(one.batch, one.rows_published) for one in reports] == [(0, 2), (1, 1), (2, 1)]
    # Whoever publishes next finds the columns and the number of rows.
    more = table.where("id = 1").selectExpr("5 id", "n", "n__v_string", "extra")
    added = publish(more, PLAIN, place=place, mode="append", schema_modes="evolve")
    assert added.table_rows == 5


def test_a_function_gets_variant_columns_and_values_that_are_left(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    taken: list[Any] = []

    def take(valid: DataFrame, batch: int) -> None:
        taken.append((valid.columns, sorted(map(tuple, valid.collect()))))

    source.add([(1, "1"), (2, "two")], NARROW)
    for mode in ("evolve", "discard_value"):
        run(
            *(source.read(NARROW), PLAIN),
            foreach_batch=take,
            quarantine=tmp_path / "held",
            checkpoint=tmp_path / mode,
            schema_modes={"data_type": mode},
        )
    assert taken == [
        (["id", "n", "n__v_string"], [(1, 1, None), (2, None, "two")]),
        (["id", "n"], [(1, 1), (2, None)]),
    ]


def test_what_the_modes_refuse_does_not_start_and_a_new_table_may_be_left_out(
    spark: SparkSession, source: Source, place: TablePlace, tmp_path: Path
) -> None:
    source.add([(1, "1"), (2, "two")], NARROW)
    options: dict[str, Any] = {"contract": PLAIN, "place": place, "checkpoint": tmp_path / "cp"}
    with pytest.raises(DataValidationError, match="The stream was not started") as error:
        run(source.read(NARROW), **options)
    assert (error.value.schema_entity, error.value.column_name) == ("data_type", "n")
    with pytest.raises(ContractViolationError, match="The stream was not started"):
        run(source.read("id int, n int"), schema_modes={"tables": "freeze"}, **options)
    with pytest.raises(DataboxError, match="schema_modes: columns is 'x'"):
        run(source.read(NARROW), schema_modes={"columns": "x"}, **options)
    assert not (tmp_path / "cp").exists()
    [left] = run(source.read(NARROW), schema_modes="discard_row", **options)
    assert (left.rows_in, left.rows_discarded, left.rows_published, left.version) == (2, 2, 0, None)
    assert left.discarded == (Discarded("tables", Mode.DISCARD_ROW, "t", "rows", 2),)
    assert not place.link.exists()
    # Its batches go on where they were once the table may be there.
    source.add([(3, "3"), (4, "four")], NARROW)
    reports = run(source.read(NARROW), schema_modes={"data_type": "discard_row"}, **options)
    assert [(one.batch, one.rows_published, one.rows_discarded) for one in reports] == [(0, 0, 2), (1, 1, 1)]
    assert [row["id"] for row in read_published(spark, place).collect()] == [3]


def test_a_contract_without_columns_takes_those_of_the_first_start(
    spark: SparkSession, source: Source, place: TablePlace, tmp_path: Path
) -> None:
    contract = build_contract(dataset="t")
    source.add([(1, "1")], NARROW)
    options: dict[str, Any] = {"contract": contract, "place": place, "checkpoint": tmp_path / "cp"}
    run(source.read(NARROW), **options)
    source.add([(2, "2")], NARROW)
    assert len(run(source.read(NARROW), **options)) == 2
    assert read_published(spark, place).columns == ["id", "n"]
    with pytest.raises(DataValidationError, match="more is in the table and not in the contract"):
        run(source.read(f"{NARROW}, more int"), **options)


def test_rows_that_refer_to_nothing_are_held_with_the_reason(
    spark: SparkSession, source: Source, place: TablePlace, tmp_path: Path
) -> None:
    key = rules.ForeignKey(fields=(), to="u", to_fields=("k",))
    contract = build_contract(build_field("id", "int"), build_field("n", "string", key), dataset="t")
    source.add([(1, "a"), (2, "b"), (3, None)], NARROW)
    known = {"u": spark.createDataFrame([("a",)], "k string")}
    [report] = run(source.read(NARROW), contract, place=place, checkpoint=tmp_path / "cp", references=known)
    assert (report.rows_published, report.rows_quarantined, report.violations) == (2, 1, {"t.n.foreign_key": 1})
    [held] = spark.read.parquet(str(report.quarantine)).collect()
    assert (held["id"], held["_quarantine_reason"]) == (2, ["t.n.foreign_key"])
