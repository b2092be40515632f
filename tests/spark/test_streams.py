"""Streams held to a contract: the same rows as in batch, and every row once."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError, DataboxError, PublicationError, StreamStoppedError
from databox_contracts.model import Contract
from databox_contracts.rules import Operator, Severity, Threshold
from databox_contracts.spark import BatchReport, ContractStream, TablePlace, enforce_stream, publish, read_published
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMA = "id int, price double, state string, at timestamp"
ONCE = {"availableNow": True}


def order(id: int | None, price: float | None = 1.0, state: str | None = "open", minutes: float = 0) -> tuple[Any, ...]:
    """A row whose time is so many minutes after eleven, an hour before `AT`."""
    return id, price, state, AT - timedelta(hours=1) + timedelta(minutes=minutes)


def contract_of(*more: rules.Rule) -> Contract:
    return build_contract(
        build_field("id", "int"),
        build_field("price", "double", rules.Minimum(limit=0), rules.Required(severity=Severity.WARNING)),
        build_field("state", "string", rules.Enum(values=("open", "done"))),
        build_field("at", "timestamp", rules.Required()),
        rules=(rules.PrimaryKey(fields=("id",)), rules.Freshness(seconds=1800), *more),
        dataset="orders",
        id="urn:shop:orders",
        version="2.1.0",
    )


class Source:
    """A directory that a stream reads, a file a batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.files = 0
        folder.mkdir(parents=True)

    def add(self, *rows: tuple[Any, ...], schema: str = SCHEMA) -> None:
        import pyarrow.parquet as pq

        target = self.folder / f"{self.files:03}.parquet"
        table = self.spark.createDataFrame(list(rows), schema).toArrow()  # type: ignore[type-var]
        pq.write_table(table, target)
        # Files are taken in the order of their times.
        os.utime(target, (1_700_000_000 + self.files, 1_700_000_000 + self.files))
        self.files += 1

    def read(self, schema: str = SCHEMA, files: int = 1) -> DataFrame:
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(self.folder))


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Source:
    return Source(spark, tmp_path / "source")


@pytest.fixture
def place(tmp_path: Path) -> TablePlace:
    return TablePlace(tmp_path / "root", "shop/orders")


def run(df: DataFrame, contract: Contract, **options: Any) -> ContractStream:
    stream = enforce_stream(df, contract, trigger=ONCE, clock=lambda: AT, **options)
    stream.awaitTermination()
    return stream


def held_rows(spark: SparkSession, folder: Path) -> list[tuple[Any, list[str]]]:
    if not folder.is_dir():
        return []
    rows = spark.read.option("basePath", str(folder)).parquet(str(folder)).collect()
    return sorted(((row["id"], row["_quarantine_reason"]) for row in rows), key=str)


def ids(df: DataFrame) -> list[Any]:
    return sorted(row["id"] for row in df.collect())


def test_valid_rows_go_on_and_the_others_are_held(
    spark: SparkSession, source: Source, place: TablePlace, tmp_path: Path
) -> None:
    source.add(order(1), order(2, -1.0), order(3, None, "lost", minutes=50))
    source.add(order(4), order(4, -1.0), order(None), order(5, state=None))
    seen: list[BatchReport] = []
    stream = run(source.read(), contract_of(), place=place, checkpoint=tmp_path / "cp", on_batch=seen.append)
    assert ids(read_published(spark, place)) == [1, 5]
    assert held_rows(spark, place.quarantine) == [
        (2, ["orders.price.minimum"]),
        (3, ["orders.state.enum"]),
        (4, ["orders.price.minimum", "orders.primary_key"]),
        (4, ["orders.primary_key"]),
        (None, ["orders.id.required"]),
    ]
    assert [
        (one.batch, one.rows_in, one.rows_published, one.rows_quarantined, one.rows_discarded, one.rows_rejected)
        for one in seen
    ] == [(0, 3, 1, 2, 0, 0), (1, 4, 1, 3, 0, 0)]
    assert [one.violations for one in seen] == [
        {"orders.price.minimum": 1, "orders.price.required": 1, "orders.state.enum": 1},
        {"orders.id.required": 1, "orders.price.minimum": 1, "orders.primary_key": 1, "orders.freshness": None},
    ]
    assert [one.lag_seconds for one in seen] == [600.0, 3600.0]
    assert [one.lags for one in seen] == [{"orders.freshness": lag} for lag in (600.0, 3600.0)]
    assert stream.reports() == seen
    assert [one.version for one in seen][-1] == place.current_version()
    assert [one.quarantine is not None and one.quarantine.is_dir() for one in seen] == [True, True]
    held = spark.read.parquet(str(seen[0].quarantine))
    assert held.columns == [
        *("id", "price", "state", "at", "_quarantine_reason"),
        *("_quarantine_timestamp", "_contract_id", "_contract_version", "_run_id"),
    ]
    assert stream.isActive is False


UNIQUE = build_contract(
    build_field("id", "int"),
    build_field("at", "timestamp"),
    rules=(rules.Unique(fields=("id",)),),
    dataset="t",
)
EVENTS = "id int, at timestamp"


def event(id: int | None, minutes: float | None) -> tuple[Any, ...]:
    return id, AT + timedelta(minutes=minutes) if minutes is not None else None


def test_a_key_is_unique_in_the_whole_stream_and_a_restart_remembers_it(
    spark: SparkSession, source: Source, place: TablePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("databox_contracts.spark.stream_keys.MERGE_AFTER", 1)
    checkpoint = tmp_path / "cp"
    source.add(event(0, 0), event(1, 0), event(None, 0), event(None, 1), schema=EVENTS)
    source.add(event(1, 1), event(2, 1), event(2, 1), schema=EVENTS)
    run(source.read(EVENTS), UNIQUE, place=place, checkpoint=checkpoint)
    # 2 was held both times, and was seen all the same.
    source.add(event(2, 2), event(3, 2), schema=EVENTS)
    source.add(event(0, 3), event(0, 3), event(3, 3), event(4, 3), schema=EVENTS)
    stream = run(source.read(EVENTS), UNIQUE, place=place, checkpoint=checkpoint)
    assert [row["id"] for row in read_published(spark, place).orderBy("id").collect()] == [None, None, 0, 1, 3, 4]
    reason = ["t.unique"]
    assert held_rows(spark, place.quarantine) == [(id_, reason) for id_ in (0, 0, 1, 2, 2, 2, 3)]
    results = [one.verdict.results[-1] for one in stream.reports()]
    assert [(one.id, one.failed_count, one.samples) for one in results] == [
        ("t.unique", 0, ()),
        ("t.unique", 2, (1, 2)),
        ("t.unique", 1, (2,)),
        ("t.unique", 3, (0, 3)),
    ]
    kept = sorted(path.name[:4] for path in (checkpoint / "databox" / "keys" / "t.unique").iterdir())
    assert kept == ["b000", "upto"]


def test_keys_are_forgotten_when_the_watermark_has_passed_them(
    spark: SparkSession, source: Source, place: TablePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("databox_contracts.spark.stream_keys.MERGE_AFTER", 1)
    source.add(event(1, 0), event(2, 10), event(3, None), schema=EVENTS)
    source.add(event(4, 30), schema=EVENTS)
    # The watermark is at 20: what is before 10 is forgotten, 1 and not 2; 3 counts as the newest of its batch.
    source.add(event(1, 19), event(2, 20), event(3, 31), schema=EVENTS)
    stream = run(
        *(source.read(EVENTS), UNIQUE),
        place=place,
        checkpoint=tmp_path / "cp",
        watermark=timedelta(minutes=10),
        timestamp_field="at",
    )
    assert ids(read_published(spark, place)) == [1, 1, 2, 3, 4]
    assert held_rows(spark, place.quarantine) == [(2, ["t.unique"]), (3, ["t.unique"])]
    assert [one.rows_late for one in stream.reports()] == [0, 0, 1]


def test_fail_stops_before_anything_of_the_batch_is_published(
    spark: SparkSession, source: Source, place: TablePlace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"place": place, "checkpoint": tmp_path / "cp"}
    source.add(order(1))
    source.add(order(2), order(3, -1.0))
    with pytest.raises(ContractViolationError, match=r"^batch 1: .*Nothing of the batch was published") as error:
        run(source.read(), contract_of(), on_violation="fail", **options)
    rejected = error.value.publication
    assert (rejected.rows_in, rejected.rows_published, rejected.rows_rejected) == (2, 0, 2)
    assert ids(read_published(spark, place)) == [1]
    assert [record for record in caplog.records if record.exc_info] == []
    # The same batch goes on once the rule is a warning; nothing of it is there twice.
    stream = run(source.read(), contract_of(), on_violation="warn", **options)
    assert ids(read_published(spark, place)) == [1, 2, 3]
    assert not place.quarantine.exists()
    assert [(one.batch, one.on_violation, one.verdict.passed) for one in stream.reports()] == [
        (0, "fail", False),
        (1, "warn", False),
    ]


def test_a_function_gets_the_valid_rows_and_a_directory_the_others(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    taken: list[tuple[int, list[int]]] = []

    def take(valid: DataFrame, batch: int) -> None:
        if batch == 1 and len(taken) == 1:
            taken.append((batch, ids(valid)))
            raise RuntimeError("the sink is away")
        taken.append((batch, ids(valid)))

    options = {"foreach_batch": take, "quarantine": tmp_path / "held", "checkpoint": tmp_path / "cp"}
    source.add(order(1), order(2, -1.0))
    source.add(order(3), order(1), order(5, -1.0))
    with pytest.raises(StreamStoppedError, match="a function given to it raised RuntimeError on batch 1") as error:
        run(source.read(), contract_of(), **options)
    assert str(error.value.__cause__) == "the sink is away"
    stream = run(source.read(), contract_of(), **options)
    assert taken == [(0, [1]), (1, [3]), (1, [3])]
    assert held_rows(spark, tmp_path / "held") == [
        (1, ["orders.primary_key"]),
        (2, ["orders.price.minimum"]),
        (5, ["orders.price.minimum"]),
    ]
    assert len(list((tmp_path / "held").iterdir())) == 2
    assert [(one.rows_in, one.rows_published, one.version) for one in stream.reports()] == [(2, 1, None), (3, 1, None)]


def test_it_adds_to_a_table_that_is_there(
    spark: SparkSession, source: Source, place: TablePlace, tmp_path: Path
) -> None:
    publish(
        spark.createDataFrame([order(7), order(8)], SCHEMA), contract_of(), place=place, as_of=AT - timedelta(hours=1)
    )
    source.add(order(1))
    options = {"place": place, "checkpoint": tmp_path / "cp"}
    run(source.read(), contract_of(), **options)
    assert ids(read_published(spark, place)) == [1, 7, 8]
    # What somebody else publishes in between does not confuse it, and is not lost.
    publish(spark.createDataFrame([order(9)], SCHEMA), contract_of(), place=place, as_of=AT - timedelta(hours=1))
    source.add(order(2))
    run(source.read(), contract_of(), **options)
    assert ids(read_published(spark, place)) == [2, 9]
    narrower = source.read("id int, price double, state string")
    with pytest.raises(ContractViolationError, match="The stream was not started"):
        enforce_stream(narrower, contract_of(), place=place, checkpoint=tmp_path / "other")
    with pytest.raises(PublicationError, match="the table is struct<id:int,price:double,state:string,at:timestamp>"):
        enforce_stream(source.read("id int, at timestamp"), UNIQUE, place=place, checkpoint=tmp_path / "other")


def test_what_cannot_be_started_says_why(source: Source, place: TablePlace, tmp_path: Path) -> None:
    source.add(order(1))
    df, contract, checkpoint = source.read(), contract_of(), tmp_path / "cp"
    refused: list[tuple[dict[str, Any], str]] = [
        ({}, "needs one place to go to"),
        ({"place": place, "foreach_batch": print}, "needs one place to go to"),
        ({"foreach_batch": print}, "no place for held rows"),
        ({"place": place, "quarantine": tmp_path}, "held rows of a table go beside it"),
        ({"place": place, "on_violation": "drop"}, "on_violation is 'drop'"),
        ({"place": place, "checkpoint": "s3a://bucket/cp"}, "no local path"),
    ]
    for options, reason in refused:
        with pytest.raises(PublicationError, match=reason):
            enforce_stream(df, contract, **{"checkpoint": checkpoint, **options})
    with pytest.raises(PublicationError, match="is no stream"):
        enforce_stream(source.spark.range(1), contract, place=place, checkpoint=checkpoint)
    with pytest.raises(DataboxError, match=r"the watermark has no field to look at.*`timestamp_field`"):
        enforce_stream(source.read(EVENTS), UNIQUE, place=place, checkpoint=checkpoint, watermark=timedelta(1))
    with pytest.raises(DataboxError, match="Give a delay of 0 or more"):
        enforce_stream(df, contract, place=place, checkpoint=checkpoint, watermark=timedelta(-1))
    assert not checkpoint.exists()
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / "0").touch()
    with pytest.raises(PublicationError, match="that of a query without a contract"):
        enforce_stream(df, contract, place=place, checkpoint=checkpoint)


def test_a_checkpoint_is_for_one_stream(source: Source, place: TablePlace, tmp_path: Path) -> None:
    source.add()
    checkpoint = tmp_path / "cp"
    [empty] = run(source.read(), contract_of(), place=place, checkpoint=checkpoint).reports()
    assert (empty.rows_in, empty.violations, empty.lag_seconds) == (0, {"orders.freshness": None}, None)
    assert read_published(source.spark, place).count() == 0
    with pytest.raises(
        PublicationError, match=r"made with keys .*orders.primary_key\(id integer\(32\)\).*and now it is"
    ):
        run(source.read(), contract_of(rules.Unique(fields=("at",))), place=place, checkpoint=checkpoint)
    for file in (checkpoint / "offsets").iterdir():
        file.unlink()
    with pytest.raises(PublicationError, match="has come to batch 0, and Spark's part of the checkpoint has not"):
        run(source.read(), contract_of(), place=place, checkpoint=checkpoint)


def test_an_aggregate_over_a_batch_neither_holds_nor_stops(
    spark: SparkSession, source: Source, place: TablePlace, tmp_path: Path
) -> None:
    many = rules.RowCount(threshold=Threshold(Operator.GREATER_THAN, 100))
    source.add(order(1), order(2))
    [report] = run(
        source.read(), contract_of(many), place=place, checkpoint=tmp_path / "cp", on_violation="fail"
    ).reports()
    assert (report.rows_published, report.verdict.passed) == (2, False)
    assert report.violations == {"orders.freshness": None, "orders.row_count": None}
