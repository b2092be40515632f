"""No row of a Delta or an Iceberg table is lost or there twice: writers at once, a replay among them, some are killed.

Every process says what it was told; what it did not live to say is looked for: all of a publish is there, or nothing.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql.types import StructType

from databox_contracts.errors import PublicationError
from databox_contracts.spark import DeltaPlace, IcebergPlace
from databox_contracts.spark.delta_publication import DeltaTarget
from databox_contracts.spark.home_files import read_json
from databox_contracts.spark.iceberg_publication import IcebergTarget
from databox_contracts.spark.transactions import TransactionStore

NO_SPARK: Any = None
SCHEMA = StructType.fromJson(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("id", "integer"), ("part", "string"))
        ],
    }
)
TABLE = {"partition_by": ["part"]}
# A publish brings three rows to two partitions, and two are held.
GOOD, BAD = (0, 1, 2), (3, 4)


def lake(root: Path) -> SqlCatalog:
    return SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=(root / "warehouse").as_uri())


def store(kind: str, root: Path) -> TransactionStore:
    if kind == "delta":
        return TransactionStore(DeltaTarget(DeltaPlace(root / "t"), NO_SPARK, "append"))
    return TransactionStore(IcebergTarget(IcebergPlace(lake(root), "shop.t"), NO_SPARK, "append"))


def write(path: Path, ids: list[int]) -> None:
    path.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.int32())}), path / "part-0.parquet")


def publish(to: TransactionStore, number: int) -> None:
    with to.stage() as staged:
        first, *others = (number * 10 + id_ for id_ in GOOD)
        for part, ids in (("a", [first]), ("b", others)):
            write(staged.data / f"part={part}", ids)
        write(staged.held, [number * 10 + id_ for id_ in BAD])
        facts = {"run_id": str(number), "replaced": []}
        to.commit(staged, facts, SCHEMA, table=TABLE, stays=lambda _: True)


def release(to: TransactionStore, batch: Path) -> None:
    """One of the two rows that are held, or the last one."""
    with to.stage() as staged:
        if not batch.is_dir():
            return
        first, *rest = sorted(pq.read_table(batch)["id"].to_pylist())
        write(staged.data / "part=a", [first])
        if rest:
            write(staged.rest / batch.name, rest)
        before = read_json(batch / "_databox.json")
        facts = {**before, "replays": [*before.get("replays", ()), {}]} if rest else None
        done = {"run_id": f"release-{first}", "replaced": []}
        to.commit(staged, done, SCHEMA, table=TABLE, stays=lambda _: True, replayed={batch.name: facts})


def work(kind: str, root: Path, numbers: list[int], kill: str) -> None:
    """In a process of its own: publish and release; `kill` is a point and how often it is passed before."""
    from databox_contracts.spark import transactions

    point, _, after = kill.partition(":")
    left = int(after or 0)

    def dying(function: Any, *, late: bool = False) -> Any:
        def called(*args: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0 and not late:
                signal.raise_signal(signal.SIGKILL)
            done = function(*args, **options)
            if left < 0:
                signal.raise_signal(signal.SIGKILL)
            return done

        return called

    target = DeltaTarget if kind == "delta" else IcebergTarget
    if point == "noted":
        transactions.write_json = dying(transactions.write_json, late=True)
    elif point == "renaming":
        transactions.os.rename = dying(transactions.os.rename)  # type: ignore[attr-defined]
    elif point in ("moved", "committed"):
        target.commit = dying(target.commit, late=point == "committed")  # type: ignore[method-assign]
    elif point == "settling":
        transactions.put_in_place = dying(transactions.put_in_place)
    for number in numbers:
        for what in ("publish", "release"):
            one = store(kind, root)
            try:
                if what == "publish":
                    publish(one, number)
                else:
                    batches = sorted(one.target.quarantine.glob("batch=*"))
                    if not batches:
                        continue
                    release(one, batches[number % len(batches)])
            except PublicationError as error:
                if "finished first" not in str(error):
                    raise
                print(json.dumps([what, number, False]), flush=True)
            else:
                print(json.dumps([what, number, True]), flush=True)


def seen(kind: str, root: Path) -> list[int]:
    if kind == "delta":
        return sorted(DeltaTable(str(root / "t")).to_pyarrow_table()["id"].to_pylist())
    return sorted(lake(root).load_table("shop.t").scan().to_arrow()["id"].to_pylist())


def held(to: TransactionStore) -> list[int]:
    return sorted(id_ for one in to.target.quarantine.glob("batch=*") for id_ in pq.read_table(one)["id"].to_pylist())


KILLS = ("noted", "renaming", "moved", "committed", "settling")


def account(kind: str, root: Path, rounds: int, each: int, kills: list[str]) -> None:
    if kind == "iceberg":
        root.mkdir(exist_ok=True)
        lake(root).create_namespace_if_not_exists("shop")
    publish(store(kind, root), 0)
    told: dict[int, bool | None] = {0: True}
    number = 0
    for at in range(rounds):
        processes = []
        for kill in ("never", kills[at % len(kills)]):
            mine = list(range(number + 1, number + 1 + each))
            number += each
            told |= dict.fromkeys(mine)
            command = [sys.executable, "-W", "ignore", __file__, kind, str(root), json.dumps(mine), kill]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        for process in processes:
            out, err = process.communicate(timeout=300)
            assert process.returncode in (0, -signal.SIGKILL), err
            for line in out.splitlines():
                what, which, done = json.loads(line)
                if what == "publish":
                    told[which] = done
    last = store(kind, root)
    last.recover()
    rows, kept = seen(kind, root), held(last)
    everything = sorted([*rows, *kept])
    assert len(everything) == len(set(everything)), "nothing is there twice, neither published nor held"
    for which, done in told.items():
        ours = [id_ for id_ in everything if id_ // 10 == which]
        whole = [which * 10 + id_ for id_ in (*GOOD, *BAD)]
        if done is None:
            assert ours in ([], whole), f"publish {which} was killed, and a part of it is there"
        else:
            assert ours == (whole if done else []), f"publish {which} was told {done}"
        assert not set(ours) & set(kept) & {which * 10 + id_ for id_ in GOOD}
    assert list(last.target.home.glob("pending-*")) == list(last.target.home.glob("replay-*")) == []


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_two_writers_of_which_one_is_killed(tmp_path: Path, kind: str) -> None:
    account(kind, tmp_path / "root", rounds=2, each=1, kills=["committed:1", "settling"])


@pytest.mark.full
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("seed", range(3))
def test_many_rounds_of_writers_and_kills(tmp_path: Path, kind: str, seed: int) -> None:
    r = random.Random(seed)
    kills = [f"{point}:{r.randrange(4)}" for point in KILLS for _ in range(2)]
    r.shuffle(kills)
    account(kind, tmp_path / "root", rounds=len(kills), each=3, kills=kills)


if __name__ == "__main__":
    work(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4])
