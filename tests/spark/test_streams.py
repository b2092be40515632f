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
    source.add()
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
    ] == [(0, 3, 1, 2, 0, 0), (1, 4, 1, 3, 0, 0), (2, 0, 0, 0, 0, 0)]
    assert [one.violations for one in seen] == [
        {"orders.price.minimum": 1, "orders.price.required": 1, "orders.state.enum": 1},
        {"orders.id.required": 1, "orders.price.minimum": 1, "orders.primary_key": 1, "orders.freshness": None},
        {"orders.freshness": None},
    ]
    assert [one.lag_seconds for one in seen] == [600.0, 3600.0, None]
    assert [one.lags for one in seen] == [{"orders.freshness": lag} for lag in (600.0, 3600.0, None)]
    assert stream.reports() == seen
    assert [one.version for one in seen][-1] == place.current_version()
    assert [one.quarantine is not None and one.quarantine.is_dir() for one in seen] == [True, True, False]
    held = spark.read.parquet(str(seen[0].quarantine))
    assert held.columns == [
        *("id", "price", "state", "at", "_quarantine_reason"),
        *("_quarantine_timestamp", "_contract_id", "_contract_version", "_run_id"),
    ]
    assert stream.isActive is False
