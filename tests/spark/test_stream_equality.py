"""The same rows in one table and in many micro-batches: the same ones are valid, and held for the same reasons."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.rules import Operator, Severity, Threshold
from databox_contracts.spark import TablePlace, enforce_stream, publish, read_published
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMA = (
    "n int, text string, price double, state string, kind string, at timestamp,"
    " lines array<struct<sku: string, q: int>>, attrs map<string, int>"
)
SOME = Threshold(Operator.LESS_OR_EQUAL, 100, unit=rules.Unit.PERCENT)
CONTRACT = build_contract(
    build_field("n", "int", rules.Required()),
    build_field("text", "string", rules.Pattern(pattern="^a"), rules.MinLength(length=2), pii=True),
    build_field("price", "double", rules.Minimum(limit=0), rules.NullCount(threshold=SOME)),
    build_field("state", "string", rules.Enum(values=("open", "", None)), rules.Required(severity=Severity.WARNING)),
    build_field("kind", "string", rules.RequiredWhen(condition="price > 5")),
    build_field("at", "timestamp", rules.Retention(seconds=3600)),
    build_field("lines", "array<struct<sku: string, q: int>>", rules.MaxItems(count=2)),
    build_field("attrs", "map<string, int>"),
    rules=(rules.Expression(sql="price <> 3 OR state = 'open'"), rules.Freshness(seconds=10, element="at")),
    dataset="t",
)


def random_row(dice: random.Random, n: int) -> tuple[Any, ...]:
    return (
        n if dice.random() > 0.1 else None,
        dice.choice([None, "", "a", "ab", "ba", "a\n"]),
        dice.choice([None, 0.0, -0.0, -1.0, 3.0, 6.0, float("nan"), float("inf")]),
        dice.choice([None, "", "open", "shut"]),
        dice.choice([None, "k"]),
        dice.choice([None, datetime(2026, 3, 1, 11, 30, tzinfo=UTC), datetime(2026, 3, 1, 10, 59, 59, tzinfo=UTC)]),
        dice.choice([None, [], [("x", 1)], [("x", 1), None, (None, None)]]),
        dice.choice([None, {}, {"k": 1}, {"k": None}]),
    )


def split_of(spark: SparkSession, place: TablePlace) -> tuple[list[str], list[str]]:
    """Every valid row, and every held one with its reasons, as texts."""
    columns = read_published(spark, place).columns

    def texts(df: DataFrame, *names: str) -> list[str]:
        return sorted(str(tuple(row)) for row in df.select(*columns, *names).collect())

    held = texts(spark.read.parquet(str(place.quarantine)), "_quarantine_reason") if place.quarantine.is_dir() else []
    return texts(read_published(spark, place)), held


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8))])
def test_the_same_rows_are_valid_and_held(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    import pyarrow.parquet as pq

    dice = random.Random(seed)
    rows = [random_row(dice, n) for n in range(dice.choice([12, 40]))]
    table = spark.createDataFrame(rows, SCHEMA)
    source = tmp_path / "source"
    source.mkdir()
    arrow = table.toArrow()
    for at in range(6):
        begin, end = at * len(rows) // 6, (at + 1) * len(rows) // 6
        pq.write_table(arrow.slice(begin, end - begin), source / f"{at}.parquet")
        os.utime(source / f"{at}.parquet", (1_700_000_000 + at, 1_700_000_000 + at))
    batch = TablePlace(tmp_path / "batch", "t")
    # The promise about the whole table would reject it, and holds no row.
    judged = CONTRACT.model_copy(
        update={"datasets": (CONTRACT.datasets[0].model_copy(update={"rules": CONTRACT.datasets[0].rules[:1]}),)}
    )
    publication = publish(table.repartition(3), judged, place=batch, on_violation="quarantine", clock=lambda: AT)
    expected = split_of(spark, batch)
    assert len(expected[0]) + len(expected[1]) == len(rows)
    counts = {one.id: one.failed_count for one in publication.verdict.violations}
    for files in (2,) if seed == 1 else (6, 2, 1):
        place = TablePlace(tmp_path / f"stream{files}", "t")
        stream = enforce_stream(
            spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(str(source)),
            CONTRACT,
            place=place,
            checkpoint=tmp_path / f"cp{files}",
            trigger={"availableNow": True},
            clock=lambda: AT,
        )
        stream.awaitTermination()
        assert split_of(spark, place) == expected
        reports = stream.reports()
        assert len(reports) == 6 // files
        assert [one.rows_in for one in reports] == [one.rows_published + one.rows_quarantined for one in reports]
        for id_, count in counts.items():
            assert sum(one.violations.get(id_) or 0 for one in reports) == count
        assert not any(one.samples for report in reports for one in report.verdict.results if one.field == "text")
