"""A stream whose process is killed, at every step and at random: a restart loses and repeats nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databox_contracts.spark import TablePlace

FILES = 4
ROWS = 8
# In every file: a good row, one that is no row of its own, the key of the file before, and a key twice; a row that a
# schema mode discards, and one of which it discards a value.

PROGRAM = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from databox_contracts import rules
    from databox_contracts.spark import TablePlace, enforce_stream
    from databox_contracts.spark import stream_batches, stream_journal, stream_keys, versions
    from databox_contracts.spark.session import local_session
    from databox_contracts.testing import build_contract, build_field

    folder, step, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

    def die_at(owner, name, *, after):
        original = getattr(owner, name)
        left = [count]

        def dying(*arguments, **options):
            left[0] -= 1
            if left[0] == 0 and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*arguments, **options)
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(owner, name, dying)

    OWNERS = {
        "written": (stream_batches, "write_parquet"),
        "judged": (stream_batches._Batch, "_judge"),
        "split": (stream_batches._Batch, "_split"),
        "kept": (stream_keys.SeenKeys, "keep"),
        "intended": (stream_journal.StreamJournal, "intend"),
        "held": (versions.VersionStore, "_commit_batch"),
        "pointed": (versions.VersionStore, "_point_to"),
        "marked": (versions.VersionStore, "_mark_published"),
        "finished": (stream_journal.StreamJournal, "finish"),
        "processed": (stream_batches.Batches, "process"),
    }
    stream_keys.MERGE_AFTER = 1
    if step in OWNERS:
        die_at(*OWNERS[step], after=True)
    contract = build_contract(
        build_field("id", "int"),
        build_field("price", "int", rules.Minimum(limit=0)),
        build_field("n", "int"),
        rules=(rules.PrimaryKey(fields=("id",)),),
        dataset="t",
    )
    spark = local_session("killed", master="local[1]", conf={"spark.sql.shuffle.partitions": 1})
    df = spark.readStream.schema("id int, price string, n int, extra string").option("maxFilesPerTrigger", 1)
    print("ready", flush=True)
    stream = enforce_stream(
        df.parquet(str(folder / "source")),
        contract,
        place=TablePlace(folder / "root", "t"),
        checkpoint=folder / "cp",
        trigger={"availableNow": True},
        schema_modes={"columns": "discard_row", "data_type": "discard_value"},
    )
    stream.awaitTermination()
    for one in stream.reports():
        counts = (one.rows_in, one.rows_published, one.rows_quarantined, one.rows_discarded, one.values_discarded)
        print(one.batch, *counts)
    spark.stop()
    """
)


def make_source(folder: Path) -> None:
    for at in range(FILES):
        ids = [10 * at, 10 * at + 1, 10 * at + 2, 10 * at + 2, 10 * (at - 1), None, 10 * at + 3, 10 * at + 4]
        prices = ["0", "-1", "1", "1", "1", "1", "1", "much"]
        table = pa.table(
            {
                "id": pa.array(ids, pa.int32()),
                "price": pa.array(prices),
                "n": pa.array([ROWS * at + one for one in range(ROWS)], pa.int32()),
                "extra": pa.array([*[None] * 6, "x", None]),
            }
        )
        path = folder / "source" / f"{at}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))


def expected() -> tuple[Counter[int], Counter[tuple[int, tuple[str, ...]]]]:
    """The row numbers that are valid, and those that are held with their reasons."""
    key = ("t.primary_key",)
    valid = [4, *(at * ROWS + one for at in range(FILES) for one in (0, 7))]
    held = [(at * ROWS + 1, ("t.price.minimum",)) for at in range(FILES)]
    held += [(at * ROWS + two, key) for at in range(FILES) for two in (2, 3)]
    held += [(at * ROWS + 4, key) for at in range(1, FILES)]
    held += [(at * ROWS + 5, ("t.id.required",)) for at in range(FILES)]
    return Counter(valid), Counter(held)


def found(folder: Path) -> tuple[Counter[int], Counter[tuple[int, tuple[str, ...]]]]:
    """The same of what is on disk; read without Spark or anything of ours."""
    place = TablePlace(folder / "root", "t")
    valid: Counter[int] = Counter()
    if place.link.exists():
        valid.update(pq.read_table(place.link.resolve())["n"].to_pylist())
    held: Counter[tuple[int, tuple[str, ...]]] = Counter()
    for batch in place.quarantine.glob("batch=*") if place.quarantine.is_dir() else ():
        if (batch / "_published").exists():
            rows = pq.read_table(batch, columns=["n", "_quarantine_reason"], partitioning=None).to_pylist()
            held.update((row["n"], tuple(row["_quarantine_reason"])) for row in rows)
    return valid, held


def start(folder: Path, step: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(folder), step, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(folder: Path) -> None:
    process = start(folder, "nowhere", 0)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    reports = [f"{at} {ROWS} {3 if at == 0 else 2} {4 if at == 0 else 5} 1 1" for at in range(FILES)]
    assert out.splitlines() == ["ready", *reports]


STEPS = [
    ("written", 2),
    ("judged", 2),
    ("split", 2),
    ("kept", 3),
    ("intended", 2),
    ("held", 3),
    ("pointed", 1),
    ("pointed", 2),
    ("marked", 3),
    ("finished", 2),
    ("processed", 2),
]


def be_killed(folder: Path, step: str, count: int) -> None:
    process = start(folder, step, count)
    _, err = process.communicate(timeout=600)
    assert process.returncode == -signal.SIGKILL, err


@pytest.mark.full
def test_a_stream_killed_twice_goes_on_where_it_was(tmp_path: Path) -> None:
    make_source(tmp_path)
    be_killed(tmp_path, "held", 2)
    be_killed(tmp_path, "pointed", 2)
    finish(tmp_path)
    assert found(tmp_path) == expected()


@pytest.mark.full
@pytest.mark.parametrize(("step", "count"), STEPS)
def test_a_stream_killed_at_any_step(tmp_path: Path, step: str, count: int) -> None:
    make_source(tmp_path)
    be_killed(tmp_path, step, count)
    finish(tmp_path)
    assert found(tmp_path) == expected()


@pytest.mark.full
def test_a_stream_killed_at_random_again_and_again(tmp_path: Path) -> None:
    make_source(tmp_path)
    dice = random.Random(5)
    oracle_valid, oracle_held = expected()
    for _ in range(8):
        process = start(tmp_path, "nowhere", 0)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(dice.uniform(0.5, 12))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        # Never a row twice, never one that does not belong there.
        valid, held = found(tmp_path)
        assert valid <= oracle_valid
        assert held <= oracle_held
    finish(tmp_path)
    assert found(tmp_path) == (oracle_valid, oracle_held)
