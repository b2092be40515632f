"""Stage, move and commit with the real formats and without Spark: two writers, other writers, kills at each point."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql.types import StructType

from databox_contracts.errors import PublicationError
from databox_contracts.spark import DeltaPlace, IcebergPlace
from databox_contracts.spark.delta_publication import DeltaTarget
from databox_contracts.spark.iceberg_publication import IcebergTarget
from databox_contracts.spark.iceberg_types import iceberg_schema, spark_schema
from databox_contracts.spark.parquet_statistics import delta_statistics
from databox_contracts.spark.partitioning import Partitioning
from databox_contracts.spark.staging import Staged
from databox_contracts.spark.storable import added, not_storable
from databox_contracts.spark.transactions import Change, TransactionStore

KINDS = ("delta", "iceberg")
POINTS = ("staged", "noted", "held", "moved", "committed")
NO_SPARK: Any = None


def columns(**types: str) -> StructType:
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()]
    return StructType.fromJson({"type": "struct", "fields": fields})


SCHEMA = columns(id="integer", at="timestamp")


def lake(root: Path) -> SqlCatalog:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=(root / "warehouse").as_uri())
    catalog.create_namespace_if_not_exists("shop")
    return catalog


def store(kind: str, root: Path, mode: Any = "overwrite") -> TransactionStore:
    if kind == "delta":
        return TransactionStore(DeltaTarget(DeltaPlace(root / "orders"), NO_SPARK, mode))
    return TransactionStore(IcebergTarget(IcebergPlace(lake(root), "shop.orders"), NO_SPARK, mode))


def written(path: Path, *ids: int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    times = [datetime(2026, 1, 1, tzinfo=UTC)] * len(ids)
    found = {"id": pa.array(ids, pa.int32()), "at": pa.array(times, pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(found), path / f"part-{len(list(path.iterdir()))}.parquet")


def change(directory: Path) -> Change:
    files = dict.fromkeys(directory.iterdir(), ())
    return Change(directory, files, SCHEMA, Partitioning(), lambda _: False, {})


def put(to: TransactionStore, *ids: int, run: str = "r", held: int | None = None) -> Staged:
    with to.stage() as staged:
        written(staged.data, *ids)
        if held is not None:
            written(staged.held, held)
        to.commit(staged, {"run_id": run}, SCHEMA)
    return staged


def ids(kind: str, root: Path) -> list[int]:
    if kind == "delta":
        found = DeltaTable(str(root / "orders")).to_pyarrow_table()
    else:
        found = lake(root).load_table("shop.orders").scan().to_arrow()
    return sorted(found["id"].to_pylist())


def held_runs(root: Path) -> list[str]:
    return sorted(json.loads((b / "_databox.json").read_text())["run_id"] for b in root.rglob("batch=*"))


@pytest.mark.parametrize("kind", KINDS)
def test_versions_follow_each_other(tmp_path: Path, kind: str) -> None:
    one = store(kind, tmp_path)
    assert one.current_version() is None
    first = put(one, 1, 2, held=9)
    assert ids(kind, tmp_path) == [1, 2]
    assert one.version_of(first) == one.current_version()
    put(store(kind, tmp_path), held=9)
    assert ids(kind, tmp_path) == [], "no rows are a table too"
    put(store(kind, tmp_path, "append"), 3, run="s", held=9)
    put(store(kind, tmp_path, "append"), 4)
    put(store(kind, tmp_path, "append"))
    assert ids(kind, tmp_path) == [3, 4]
    assert held_runs(tmp_path) == ["s"], "a later try of a run replaces what it held, by nothing if it held nothing"
    assert list(tmp_path.rglob("pending-*")) == []
    assert [list(staging.iterdir()) for staging in tmp_path.rglob("staging")] == [[]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_of_two_writers_one_wins(tmp_path: Path, kind: str, mode: str) -> None:
    for before in (None, [5]):
        with pytest.raises(PublicationError, match=r"another writer finished first.* stays"):  # noqa: PT012, SIM117
            with store(kind, tmp_path, mode).stage() as staged:
                written(staged.data, 1)
                written(staged.held, 1)
                put(store(kind, tmp_path), 5)
                store(kind, tmp_path, mode).commit(staged, {"run_id": "late"}, SCHEMA)
        assert ids(kind, tmp_path) == [5], before
        assert held_runs(tmp_path) == []


def test_a_writer_of_other_origin_is_noticed_by_the_format_itself(tmp_path: Path) -> None:
    put(store("delta", tmp_path), 1)
    target = DeltaTarget(DeltaPlace(tmp_path / "orders"), NO_SPARK, "overwrite")
    stale = DeltaTable(str(tmp_path / "orders"))
    target._table = lambda: stale  # type: ignore[method-assign]
    more = pa.table({"id": pa.array([7], pa.int32()), "at": pa.array([None], pa.timestamp("us", "UTC"))})
    write_deltalake(str(tmp_path / "orders"), more, mode="append")
    written(target.directory("v1"), 2)
    with pytest.raises(PublicationError):
        target.commit(change(target.directory("v1")), "2", {"previous": "0"})
    assert ids("delta", tmp_path) == [1, 7]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("first", "points"),
    [
        pytest.param(False, ("moved", "committed"), id="some"),
        pytest.param(False, POINTS, id="again", marks=pytest.mark.full),
        pytest.param(True, POINTS, id="first", marks=pytest.mark.full),
    ],
)
def test_killed_at_each_point(tmp_path: Path, kind: str, first: bool, points: tuple[str, ...]) -> None:
    for number, point in enumerate(points, start=1):
        root = tmp_path / point
        root.mkdir()
        if not first:
            put(store(kind, root), 0, run="0", held=9)
        command = [sys.executable, "-W", "ignore", __file__, point, kind, str(root), str(number)]
        killed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        done = point == "committed"
        if done or not first:
            assert ids(kind, root) == [number if done else 0], point
        else:
            assert store(kind, root).current_version() is None, point
        put(store(kind, root), 50, run="last", held=9)
        assert ids(kind, root) == [50]
        of_it = [str(number)] if done else []
        assert held_runs(root) == sorted([*of_it, *([] if first else ["0"]), "last"]), point
        assert all((batch / "_published").exists() for batch in root.rglob("batch=*"))
        data = [directory for directory in root.rglob("databox-v*") if directory.is_dir()]
        assert len(data) == len(of_it) + (not first) + 1, f"{point}: files that nobody names are gone"
        assert list(root.rglob("pending-*")) == []


def die_at(point: str, kind: str, root: Path, number: int) -> None:
    """In a process of its own: publish, and be killed."""
    one = store(kind, root)
    target, rename, renamed = one.target, os.rename, 0

    def dead(*_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    def rename_or_die(*where: Any) -> None:
        nonlocal renamed
        if renamed == ("noted", "held").index(point):
            dead()
        renamed += 1
        rename(*where)

    if point == "staged":
        one.commit = dead  # type: ignore[method-assign]
    elif point == "committed":
        commit = target.commit
        target.commit = lambda *args: (commit(*args), dead())[0]  # type: ignore[method-assign]
    elif point == "moved":
        target.commit = dead  # type: ignore[method-assign]
    else:
        os.rename = rename_or_die  # type: ignore[assignment]
    put(one, number, run=str(number), held=9)


# --- what the formats know --------------------------------------------------------------------------------------------


def test_statistics_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    table = pa.table(
        {
            "i": pa.array([3, None, -1, 0], pa.int64()),
            "s": ["b", "", None, "é"],
            "long": ["x" * 65, "a", "a", "a"],
            "f": [float("nan"), 1.0, 2.0, None],
            "d": [date(2026, 1, 2), None, None, date(1969, 12, 31)],
            "none": pa.array([None] * 4, pa.int32()),
            "st": [{"a": 1}, None, None, None],
        }
    )
    pq.write_table(table, file, row_group_size=2)
    assert delta_statistics(file) == {
        "numRecords": 4,
        "minValues": {"i": -1, "s": "", "d": "1969-12-31"},
        "maxValues": {"i": 3, "s": "é", "d": "2026-01-02"},
        "nullCount": {"i": 1, "s": 1, "long": 0, "f": 1, "d": 2, "none": 4},
    }


def test_types_go_to_iceberg_and_back() -> None:
    nested = StructType.fromJson(
        {
            "type": "struct",
            "fields": [
                {"name": name, "type": kind, "nullable": True, "metadata": {}}
                for name, kind in {
                    "d": "decimal(20,3)",
                    "zoned": "timestamp",
                    "local": "timestamp_ntz",
                    "m": {
                        "type": "map",
                        "keyType": "string",
                        "valueType": {"type": "array", "elementType": SCHEMA.jsonValue(), "containsNull": True},
                        "valueContainsNull": True,
                    },
                    **{n: n for n in ("string", "long", "integer", "float", "double", "boolean", "binary", "date")},
                }.items()
            ],
        }
    )
    assert spark_schema(iceberg_schema(nested)) == nested
    ids_of = iceberg_schema(nested)._lazy_id_to_name
    assert len(ids_of) == len(set(ids_of))


def test_columns_added_at_the_end() -> None:
    assert added(SCHEMA, SCHEMA) == ()
    more = columns(id="integer", at="timestamp", x="string")
    assert [field.name for field in added(SCHEMA, more) or ()] == ["x"]
    for other in (columns(id="integer"), columns(at="timestamp", id="integer"), columns(id="long", at="timestamp")):
        assert added(SCHEMA, other) is None
    assert added(columns(), SCHEMA) == tuple(SCHEMA.fields)


def test_what_cannot_be_stored_is_named() -> None:
    assert not_storable(SCHEMA, {"int", "timestamp"}, forbidden=" ", name="X") is None
    assert not_storable(SCHEMA, {"int"}, forbidden="", name="X") == (
        "the column at is of type timestamp, which X does not have"
    )
    spaced = columns(**{"a b": "integer"})
    assert not_storable(spaced, {"int"}, forbidden=" ", name="X") == (
        "the column a b has ' ' in its name, which X does not allow"
    )


if __name__ == "__main__":
    die_at(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
