"""Partitions and replay of tables of other formats, as Spark and the command line see them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyiceberg.catalog
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.utils.config import Config

from databox_contracts import rules
from databox_contracts.cli import main
from databox_contracts.errors import ContractViolationError, PublicationError
from databox_contracts.spark import CatalogPlace, DeltaPlace, IcebergPlace, publish, read_published, replay
from databox_contracts.spark.quarantine_batches import open_batches
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.model import Contract
    from databox_contracts.spark.stores import Place

FIRST, SECOND = date(2024, 1, 1), date(2024, 1, 2)
LATER = datetime(2024, 6, 1, tzinfo=UTC)


def contract(*values: str, version: str = "1.0.0") -> Contract:
    return build_contract(
        build_field("id", "int"),
        build_field("day", "date"),
        build_field("v", "string", rules.Enum(values=values)),
        rules=(rules.PrimaryKey(fields=("id",)),),
        version=version,
        dataset="t",
    )


def days(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id int, day date, v string").coalesce(1)  # type: ignore[type-var]


def lake(root: Path) -> SqlCatalog:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=(root / "warehouse").as_uri())
    catalog.create_namespace_if_not_exists("shop")
    return catalog


@pytest.fixture
def place(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Place]:
    if request.param == "delta":
        yield DeltaPlace(tmp_path / "t")
    elif request.param == "iceberg":
        yield IcebergPlace(lake(tmp_path), "shop.t")
    else:
        spark.sql("CREATE DATABASE IF NOT EXISTS shop")
        yield CatalogPlace("shop.t", tmp_path)
        spark.sql("DROP TABLE IF EXISTS shop.t")


def published(spark: SparkSession, place: Place) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, read_published(spark, place).select("id", "day", "v").collect()), key=repr)


def held(spark: SparkSession, place: Place) -> list[tuple[Any, ...]]:
    paths = [str(batch.path) for batch in open_batches(place, spark)]
    return sorted(map(tuple, spark.read.parquet(*paths).select("id", "day", "v").collect()), key=repr) if paths else []


@pytest.mark.parametrize("place", ["delta", "iceberg"], indirect=True)
def test_partitions_of_a_table_of_another_format(spark: SparkSession, place: Place) -> None:
    start = [(1, FIRST, "x"), (2, SECOND, "x"), (3, None, "x")]
    first = publish(days(spark, *start), contract("x"), place=place, partition_by=("day",))
    assert (first.rows_published, first.table_rows) == (3, 3)
    assert published(spark, place) == sorted(start, key=repr)
    opened = read_published(spark, place)
    # The key 1 is there in another partition, the bad row is held, and the named partition becomes empty.
    second = publish(
        days(spark, (1, SECOND, "x"), (4, SECOND, "bad")),
        contract("x"),
        place=place,
        mode="overwrite_partitions",
        partitions=[{"day": SECOND}, {"day": None}],
        on_violation="quarantine",
    )
    assert (second.rows_in, second.rows_published, second.rows_quarantined, second.table_rows) == (2, 1, 1, 2)
    assert published(spark, place) == [(1, FIRST, "x"), (1, SECOND, "x")]
    assert [row["id"] for row in opened.orderBy("id").collect()] == [1, 2, 3], "a reader of before is not disturbed"
    # An append is held against the keys of the partitions that it writes to.
    with pytest.raises(ContractViolationError) as error:
        publish(days(spark, (1, SECOND, "x")), contract("x"), place=place, mode="append")
    assert [result.id for result in error.value.verdict.violations] == ["t.primary_key"]
    with pytest.raises(PublicationError, match="it is partitioned by day, and the rows would be by v"):
        publish(days(spark), contract("x"), place=place, mode="append", partition_by="v")


@pytest.mark.parametrize(
    "place",
    ["delta", pytest.param("iceberg", marks=pytest.mark.full), pytest.param("catalog", marks=pytest.mark.full)],
    indirect=True,
)
def test_held_rows_are_released_once(spark: SparkSession, place: Place) -> None:
    by_day = {} if isinstance(place, CatalogPlace) else {"partition_by": "day"}
    start = [(1, FIRST, "x"), (2, SECOND, "y"), (3, None, "z"), (1, SECOND, "y")]
    publish(
        days(spark, *start),
        contract("x"),
        place=place,
        on_violation="quarantine",
        run_id="r",
        **by_day,  # type: ignore[arg-type]
    )
    # The key 1 is repeated, so both of its rows are held.
    assert (published(spark, place), held(spark, place)) == ([], sorted(start, key=repr))
    wider = contract("x", "y", version="1.1.0")
    done = replay(spark, wider, place=place, clock=lambda: LATER)
    assert (done.rows, done.rows_released, done.rows_held, done.table_rows) == (4, 1, 3, 1)
    assert published(spark, place) == [(2, SECOND, "y")]
    assert len(held(spark, place)) == 3
    again = replay(spark, wider, place=place, clock=lambda: LATER)
    assert (again.rows_released, again.rows_held, again.version) == (0, 3, done.version)
    # Keys may be those of each partition.
    if by_day:
        done = replay(spark, wider, place=place, scope="partition", clock=lambda: LATER)
        assert (done.rows_released, done.rows_held) == (2, 1)
        assert held(spark, place) == [(3, None, "z")]
    assert sorted([*published(spark, place), *held(spark, place)], key=repr) == sorted(start, key=repr)
    # What a later publish replaces is not released unless it is named.
    publish(days(spark, (9, FIRST, "x")), contract("x"), place=place)
    [batch] = replay(spark, contract("x", "y", "z"), place=place, clock=lambda: LATER).batches
    assert "replaced what its rows were held back from" in str(batch.passed_over)
    assert published(spark, place) == [(9, FIRST, "x")]


CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: test
version: 1.1.0
status: active
schema:
  - name: t
    properties:
      - {name: id, logicalType: integer, physicalType: int, primaryKey: true}
      - {name: day, logicalType: date, physicalType: date}
      - {name: v, logicalType: string, quality: [{metric: invalidValues, arguments: {validValues: [x, y]}, mustBe: 0}]}
"""


@pytest.mark.parametrize("place", ["delta", "iceberg", "catalog"], indirect=True)
def test_the_command_line_names_such_a_place(
    spark: SparkSession,
    place: Place,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish(days(spark, (1, FIRST, "x"), (2, SECOND, "y")), contract("x"), place=place, on_violation="quarantine")
    new = tmp_path / "new.yaml"
    new.write_text(CONTRACT)
    if isinstance(place, IcebergPlace):
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/catalog.db")
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", (tmp_path / "warehouse").as_uri())
        # It reads them when it is imported, which other tests have done.
        monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
        at = ["lake", "shop.t", "--place", "iceberg"]
    elif isinstance(place, DeltaPlace):
        at = [str(tmp_path), "t", "--place", "delta"]
    else:
        at = [str(tmp_path), "shop.t", "--place", "catalog"]
    assert main(["quarantine", "list", *at, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1
    assert main(["quarantine", "show", *at]) == 0
    assert "1 row held in 1 batch" in capsys.readouterr().out
    assert main(["quarantine", "replay", *at, "--contract", str(new), "--format", "json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["rows_released"], done["rows_held"], done["table_rows"]) == (1, 0, 2)
    assert published(spark, place) == [(1, FIRST, "x"), (2, SECOND, "y")]
    if isinstance(place, DeltaPlace):
        facts = json.loads(DeltaTable(str(place.path)).history(1)[0]["databox_contracts"])
        assert (facts["mode"], len(facts["replayed"])) == ("append", 1)
    assert main(["quarantine", "list", str(tmp_path), "none.such", *at[2:]]) == 2
    assert capsys.readouterr().err.count("\n") == 1
