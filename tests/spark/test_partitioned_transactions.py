"""Partitions of Delta and Iceberg tables without Spark: what a commit replaces, and held rows that it releases."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import DayTransform
from pyspark.sql.types import StructType

from databox_contracts.errors import PublicationError
from databox_contracts.spark import DeltaPlace, IcebergPlace
from databox_contracts.spark.delta_publication import DeltaTarget
from databox_contracts.spark.iceberg_publication import IcebergTarget
from databox_contracts.spark.iceberg_types import iceberg_schema
from databox_contracts.spark.partitioning import Partitioning, matches
from databox_contracts.spark.replacing import Request
from databox_contracts.spark.staging import Staged
from databox_contracts.spark.table_files import Layout
from databox_contracts.spark.transactions import TransactionStore

KINDS = ("delta", "iceberg")
NO_SPARK: Any = None
SCHEMA = StructType.fromJson(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("day", "date"), ("id", "integer"), ("part", "string"))
        ],
    }
)
NAMES = ("day", "part")
PARTITIONING = Partitioning.of(SCHEMA, NAMES, "t")
NULL = "__HIVE_DEFAULT_PARTITION__"
FIRST, SECOND = "2024-01-01", "2024-01-02"
# What Spark calls the directories of a text with signs in it, and of null.
ODD = "c d%2Fü+%25"


def lake(root: Path) -> SqlCatalog:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=(root / "warehouse").as_uri())
    catalog.create_namespace_if_not_exists("shop")
    return catalog


def store(kind: str, root: Path, mode: Any = "overwrite_partitions") -> TransactionStore:
    if kind == "delta":
        return TransactionStore(DeltaTarget(DeltaPlace(root / "orders"), NO_SPARK, mode))
    return TransactionStore(IcebergTarget(IcebergPlace(lake(root), "shop.orders"), NO_SPARK, mode))


def written(directory: Path, rows: dict[tuple[str, str], list[int]]) -> None:
    directory.mkdir(parents=True)
    for at, ((day, part), ids) in enumerate(rows.items()):
        inside = directory / f"day={day}" / f"part={part}"
        inside.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array(ids, pa.int32())}), inside / f"part-{at}.parquet")


def put(
    to: TransactionStore, rows: dict[tuple[str, str], list[int]], *wanted: dict[str, Any], held: int | None = None
) -> Staged:
    """Publish as `Attempt` does: the partitions that rows come in for are replaced, and those named."""
    mode = to.target.mode  # type: ignore[attr-defined]
    named = PARTITIONING.wanted(wanted, "t")
    come = {PARTITIONING.at(f"day={day}/part={part}") for day, part in rows}

    def stays(inside: str) -> bool:
        partition = PARTITIONING.at(inside)
        return mode == "append" or (
            mode != "overwrite" and partition not in come and not any(matches(partition, one) for one in named)
        )

    with to.stage() as staged:
        written(staged.data, rows)
        if held is not None:
            hold(staged.held, held)
        to.commit(staged, {"run_id": "r", "replaced": []}, SCHEMA, table={"partition_by": NAMES}, stays=stays)
    return staged


def hold(path: Path, *ids: int) -> None:
    path.mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.int32())}), path / "part-0.parquet")


def found(kind: str, root: Path) -> list[tuple[Any, ...]]:
    """What readers that are none of ours see."""
    if kind == "delta":
        table = DeltaTable(str(root / "orders")).to_pyarrow_table()
    else:
        table = lake(root).load_table("shop.orders").scan().to_arrow()
    rows = [(None if row["day"] is None else str(row["day"]), row["part"], row["id"]) for row in table.to_pylist()]
    return sorted(rows, key=repr)


def held(root: Path) -> list[int]:
    return sorted(id_ for batch in root.rglob("*.quarantine/batch=*") for id_ in pq.read_table(batch)["id"].to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_are_replaced_emptied_and_added_to(tmp_path: Path, kind: str) -> None:
    first = {(FIRST, "a"): [1], (FIRST, ODD): [2], (SECOND, "a"): [3], (NULL, NULL): [4], (SECOND, NULL): [5]}
    put(store(kind, tmp_path), first)
    a, odd, null = (FIRST, "a", 1), (FIRST, "c d/ü+%", 2), (None, None, 4)
    assert found(kind, tmp_path) == sorted([a, odd, (SECOND, "a", 3), null, (SECOND, None, 5)], key=repr)
    assert store(kind, tmp_path).target.partition_by() == NAMES
    # One is written to, one is named and comes out empty, and it is one version.
    before = store(kind, tmp_path).current_version()
    put(store(kind, tmp_path), {(FIRST, ODD): [20, 21]}, {"day": SECOND, "part": "a"})
    now = [a, (FIRST, "c d/ü+%", 20), (FIRST, "c d/ü+%", 21), null, (SECOND, None, 5)]
    assert found(kind, tmp_path) == sorted(now, key=repr)
    if kind == "delta":
        assert int(store(kind, tmp_path).current_version() or 0) == int(before or 0) + 1
    else:
        assert len(lake(tmp_path).load_table("shop.orders").snapshots()) == 2
    put(store(kind, tmp_path), {}, {"part": None})
    assert found(kind, tmp_path) == sorted(now[:3], key=repr)
    put(store(kind, tmp_path, "append"), {(FIRST, "a"): [7]})
    assert found(kind, tmp_path) == sorted([*now[:3], (FIRST, "a", 7)], key=repr)
    beside = store(kind, tmp_path, "append").target.beside()
    assert beside is not None
    assert dict(beside.rows) == {f"day={FIRST}/part=a": 2, f"day={FIRST}/part=c%20d%2F%C3%BC%2B%25": 2}
    put(store(kind, tmp_path, "overwrite"), {(SECOND, "z"): [9]})
    assert found(kind, tmp_path) == [(SECOND, "z", 9)]
    put(store(kind, tmp_path, "overwrite"), {})
    assert found(kind, tmp_path) == []
    assert store(kind, tmp_path).target.partition_by() == NAMES


@pytest.mark.parametrize("kind", KINDS)
def test_readers_find_partitions_by_their_values(tmp_path: Path, kind: str) -> None:
    put(store(kind, tmp_path), {(FIRST, "a"): [1], (SECOND, "a"): [3], (NULL, NULL): [4]})
    if kind == "delta":
        rows = DeltaTable(str(tmp_path / "orders")).to_pyarrow_table(filters=[("day", "=", date(2024, 1, 2))])
    else:
        rows = lake(tmp_path).load_table("shop.orders").scan(row_filter=f"day = '{SECOND}'").to_arrow()
    assert rows["id"].to_pylist() == [3]


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_other_than_the_tables_are_refused(tmp_path: Path, kind: str) -> None:
    put(store(kind, tmp_path), {(FIRST, "a"): [1]})
    one = store(kind, tmp_path, "append")
    with one.stage() as staged:
        kept, _, _ = store(kind, tmp_path, "overwrite").begin(staged, Request("overwrite"), Layout("parquet", SCHEMA))
        assert kept.partition_by == NAMES
        for names in (("day",), ("part", "day")):
            with pytest.raises(PublicationError, match="it is partitioned by day, part, and the rows would be by"):
                one.begin(staged, Request("append", names), Layout("parquet", SCHEMA, names))


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_writers_to_one_table_one_wins(tmp_path: Path, kind: str) -> None:
    put(store(kind, tmp_path), {(FIRST, "a"): [1], (SECOND, "a"): [2]})
    late = store(kind, tmp_path)
    with pytest.raises(PublicationError, match=r"another writer finished first.* stays"), late.stage() as staged:  # noqa: PT012
        written(staged.data, {(SECOND, "a"): [5]})
        put(store(kind, tmp_path), {(FIRST, "a"): [6]})
        late.commit(staged, {"run_id": "late"}, SCHEMA, table={"partition_by": NAMES})
    assert found(kind, tmp_path) == [(FIRST, "a", 6), (SECOND, "a", 2)]


def test_an_iceberg_writer_of_other_origin_is_not_followed(tmp_path: Path) -> None:
    """pyiceberg by itself brings an append to the snapshot that somebody else has made."""
    put(store("iceberg", tmp_path), {(FIRST, "a"): [1]})
    one = store("iceberg", tmp_path, "append")
    add = one.target._add  # type: ignore[attr-defined]

    def rival(*what: Any) -> None:
        add(*what)
        foreign = {"day": pa.array([None], pa.date32()), "id": pa.array([9], pa.int32()), "part": pa.array(["z"])}
        lake(tmp_path).load_table("shop.orders").append(pa.table(foreign))

    one.target._add = rival  # type: ignore[attr-defined]
    with pytest.raises(PublicationError, match="another writer finished first"):
        put(one, {(FIRST, "a"): [2]})
    assert found("iceberg", tmp_path) == [(FIRST, "a", 1), (None, "z", 9)]


def test_what_pyiceberg_cannot_write_is_refused_first(tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, DayTransform(), "day_of"))
    lake(tmp_path).create_table("shop.orders", iceberg_schema(SCHEMA), partition_spec=spec)
    for mode in ("overwrite", "append", "overwrite_partitions"):
        with pytest.raises(PublicationError, match=r"partitioned by day\(day\), and only partitions by a column's own"):
            store("iceberg", tmp_path, mode).check(SCHEMA)


def test_a_delta_table_of_another_writer(tmp_path: Path) -> None:
    rows = {
        "day": pa.array([date(2024, 1, 1)] * 2, pa.date32()),
        "id": pa.array([1, 2], pa.int32()),
        "part": ["a", None],
    }
    write_deltalake(str(tmp_path / "orders"), pa.table(rows), partition_by=list(NAMES))
    put(store("delta", tmp_path), {(FIRST, NULL): [5]})
    assert found("delta", tmp_path) == [(FIRST, "a", 1), (FIRST, None, 5)]
    odd = pa.table({**rows, "part": ["c d/ü", "c d/ü"]})
    write_deltalake(str(tmp_path / "orders"), odd, mode="append", partition_by=list(NAMES))
    with pytest.raises(PublicationError, match="unusual signs in its name"):
        put(store("delta", tmp_path), {(FIRST, ODD): [6]}, {"part": "c d/ü"})
    assert len(found("delta", tmp_path)) == 4


# --- held rows that are released --------------------------------------------------------------------------------------


def release(to: TransactionStore, batch: str, rows: list[int], rest: list[int]) -> None:
    """Release as `Releasing` does: rows into the table, and the rest of the batch in its place."""
    with to.stage() as staged:
        written(staged.data, {(FIRST, "a"): rows})
        if rest:
            hold(staged.rest / batch, *rest)
        facts = {"run_id": "r", "version": batch.removeprefix("batch="), "replaced": [], "replays": [{}]}
        to.commit(
            staged,
            {"run_id": "again", "replaced": [], "replayed": [batch]},
            SCHEMA,
            table={"partition_by": NAMES},
            stays=lambda _: True,
            replayed={batch: facts if rest else None},
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_one_commit_that_says_so(tmp_path: Path, kind: str) -> None:
    staged = put(store(kind, tmp_path), {(FIRST, "a"): [1]}, held=9)
    batch = f"batch={staged.version}"
    release(store(kind, tmp_path, "append"), batch, [9], [])
    assert (found(kind, tmp_path), held(tmp_path)) == ([(FIRST, "a", 1), (FIRST, "a", 9)], [])
    assert store(kind, tmp_path).target.released(batch) == 1
    if kind == "delta":
        facts = json.loads(DeltaTable(str(tmp_path / "orders")).history(1)[0]["databox_contracts"])
        assert facts["replayed"] == [batch]
    else:
        now = lake(tmp_path).load_table("shop.orders").current_snapshot()
        assert now is not None
        assert now.summary is not None
        assert now.summary["databox_contracts.replayed"] == f"['{batch}']"
    # The batch is there again, as from a backup; the table knows better.
    [quarantine] = tmp_path.rglob("orders.quarantine")
    hold(quarantine / batch, 9)
    with pytest.raises(PublicationError, match="were released before"):
        release(store(kind, tmp_path, "append"), batch, [9], [])
    assert [row[2] for row in found(kind, tmp_path)] == [1, 9]


POINTS = ("staged", "noted", "moved", "committed", "replacing")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "points", [("moved", "committed"), pytest.param(POINTS, marks=pytest.mark.full)], ids=["some", "all"]
)
def test_a_release_that_is_killed_loses_nothing_and_adds_nothing_twice(
    tmp_path: Path, kind: str, points: tuple[str, ...]
) -> None:
    for point in points:
        root = tmp_path / point
        root.mkdir()
        put(store(kind, root), {(FIRST, "a"): [1], (SECOND, "a"): [2]})
        with (one := store(kind, root, "append")).stage() as staged:
            written(staged.data, {(SECOND, "a"): [3]})
            hold(staged.held, 8, 9)
            one.commit(
                staged, {"run_id": "h", "replaced": []}, SCHEMA, table={"partition_by": NAMES}, stays=lambda _: True
            )
        batch = f"batch={staged.version}"
        command = [sys.executable, "-W", "ignore", __file__, point, kind, str(root), batch]
        killed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        done = point in ("committed", "replacing")
        # Whoever looks next finishes it, or finds that nothing has happened.
        again = store(kind, root, "append")
        again.recover()
        assert [row[2] for row in found(kind, root)] == ([1, 9, 2, 3] if done else [1, 2, 3]), point
        assert held(root) == ([8] if done else [8, 9]), point
        if not done:
            release(again, batch, [9], [8])
        assert sorted([*(row[2] for row in found(kind, root)), *held(root)]) == [1, 2, 3, 8, 9], point
        assert again.target.released(batch) == 1
        assert list(root.rglob("pending-*")) == list(root.rglob("replay-*")) == []


def die_at(point: str, kind: str, root: Path, batch: str) -> None:
    """In a process of its own: release, and be killed."""
    from databox_contracts.spark import transactions

    one = store(kind, root, "append")
    target, commit = one.target, one.target.commit

    def dead(*_: Any, **__: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    if point == "staged":
        one.commit = dead  # type: ignore[method-assign]
    elif point == "noted":
        target.directory = dead  # type: ignore[method-assign]
    elif point == "moved":
        target.commit = dead  # type: ignore[method-assign]
    elif point == "committed":
        target.commit = lambda *args: (commit(*args), dead())[0]  # type: ignore[method-assign]
    else:
        transactions.drop_older = dead
    release(one, batch, [9], [8])


if __name__ == "__main__":
    die_at(*sys.argv[1:3], Path(sys.argv[3]), sys.argv[4])  # type: ignore[call-arg]
