from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError, PublicationError, UnreadableTableError
from databox_contracts.rules import Operator, Threshold
from databox_contracts.spark import TablePlace, enforce_stream, publish, read_published, replay
from databox_contracts.spark.quarantine_batches import open_batches
from databox_contracts.spark.versions import MANIFEST, PUBLISHED
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.model import Contract
    from databox_contracts.spark import Replay

FIRST, SECOND = date(2024, 1, 1), date(2024, 1, 2)
COLUMNS = "id int, day date, v string, m decimal(38,18)"
HELD_AT = datetime(2024, 5, 1, 12, tzinfo=UTC)
LATER = datetime(2024, 6, 1, tzinfo=UTC)


def contract(*values: str, version: str = "1.0.0", most: int | None = None, others: tuple[Any, ...] = ()) -> Contract:
    """Keyed by id; `values` are those that v may have, `most` is the largest m."""
    bound = (rules.Maximum(limit=most),) if most is not None else ()
    return build_contract(
        build_field("id", "int"),
        build_field("day", "date"),
        build_field("v", "string", rules.Enum(values=values)),
        build_field("m", "decimal(38,18)", *bound),
        rules=(rules.PrimaryKey(fields=("id",)), *others),
        version=version,
        dataset="t",
    )


def days(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    full = [(*row[:3], Decimal(row[3]) if len(row) > 3 else None) for row in rows]
    return spark.createDataFrame(full, COLUMNS).coalesce(1)


def held_back(spark: SparkSession, place: TablePlace, by: Contract, *rows: tuple[Any, ...], **options: Any) -> Any:
    options = {"on_violation": "quarantine", "clock": lambda: HELD_AT, **options}
    return publish(days(spark, *rows), by, place=place, **options)


def published(spark: SparkSession, place: TablePlace) -> list[Any]:
    return sorted((row["id"] for row in read_published(spark, place).select("id").collect()), key=repr)


def held(spark: SparkSession, place: TablePlace) -> list[tuple[Any, ...]]:
    """Id, reasons, contract version and run of all held rows of live batches."""
    paths = [str(batch.path) for batch in open_batches(place)]
    if not paths:
        return []
    columns = ("id", "_quarantine_reason", "_contract_version", "_run_id")
    found = spark.read.parquet(*paths).select(*columns, "_quarantine_timestamp").collect()
    assert {row["_quarantine_timestamp"].replace(tzinfo=UTC) for row in found} <= {HELD_AT}
    return sorted(((row[0], row[1], row[2], row[3]) for row in found), key=repr)


def replayed(spark: SparkSession, place: TablePlace, by: Contract, **options: Any) -> Replay:
    """A replay after which there are the same rows as before, in the table and held."""
    before = sorted([*published(spark, place), *(row[0] for row in held(spark, place))], key=repr)
    done = replay(spark, by, place=place, clock=lambda: LATER, **options)
    after = sorted([*published(spark, place), *(row[0] for row in held(spark, place))], key=repr)
    assert after == before
    assert done.rows == done.rows_released + done.rows_held
    return done


# --- what is released -------------------------------------------------------------------------------------------------


def test_rows_that_a_corrected_contract_accepts_join_the_table(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path, "shop/t")
    start = contract("x", most=10)
    held_back(spark, place, start, (1, FIRST, "x"), (2, FIRST, "y"), (3, FIRST, "z"), (5, FIRST, "x", 11), run_id="r1")
    second = [(4, SECOND, "y"), (2, SECOND, "y"), (1, SECOND, "x"), (None, SECOND, "y"), (6, SECOND, "x", 99)]
    held_back(spark, place, start, *second, mode="append", run_id="r2")
    by_run = {str(batch.facts["run_id"]): batch for batch in open_batches(place)}
    before = {file.name for file in place.link.glob("part-*")}
    assert published(spark, place) == [1]
    # The enum is wider and the bound is relaxed, for which two rows of the key 2 are two too many.
    done = replayed(spark, place, contract("x", "y", version="1.1.0", most=50))
    found = {batch.run_id: (batch.rows, batch.released, batch.held, batch.reasons) for batch in done.batches}
    assert found == {
        "r1": (3, 1, 2, {"t.primary_key": 1, "t.v.enum": 1}),
        "r2": (5, 1, 4, {"t.id.required": 1, "t.m.maximum": 1, "t.primary_key": 2}),
    }
    assert (done.rows_released, done.rows_held, done.table_rows) == (2, 6, 3)
    assert done.version == place.current_version()
    assert done.verdict is not None
    assert done.verdict.row_count == 8
    assert published(spark, place) == [1, 4, 5]
    # What was there are the same files; the values are the same to the last digit.
    assert before < {file.name for file in place.link.glob("part-*")}
    assert [str(row[0]) for row in read_published(spark, place).where("id = 5").select("m").collect()] == [
        "11.000000000000000000"
    ]
    assert held(spark, place) == sorted(
        [
            (2, ["t.primary_key"], "1.1.0", "r1"),
            (3, ["t.v.enum"], "1.1.0", "r1"),
            (2, ["t.primary_key"], "1.1.0", "r2"),
            (1, ["t.primary_key"], "1.1.0", "r2"),
            (None, ["t.id.required"], "1.1.0", "r2"),
            (6, ["t.m.maximum"], "1.1.0", "r2"),
        ],
        key=repr,
    )
    facts = json.loads((by_run["r1"].path / MANIFEST).read_text())
    assert (facts["run_id"], facts["rows_quarantined"], facts["contract_version"]) == ("r1", 2, "1.1.0")
    assert [(one["released"], one["version"]) for one in facts["replays"]] == [(1, "1.1.0")]
    # Again: nothing more, nothing twice, and not a file is touched.
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock")
    again = replayed(spark, place, contract("x", "y", version="1.1.0", most=50))
    assert (again.rows_released, again.rows_held, again.version) == (0, 6, done.version)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock") == files
    # A publish goes on from there.
    held_back(spark, place, start, (7, SECOND, "x"), mode="append", run_id="r3")
    assert published(spark, place) == [1, 4, 5, 7]


def test_a_contract_as_it_was_releases_nothing_and_other_reasons_are_written_down(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = TablePlace(tmp_path, "t")
    # The good one of a repeated key stays held although the bad one does too.
    rows = [(1, FIRST, "x"), (2, FIRST, "x"), (2, FIRST, "bad"), (3, FIRST, "y")]
    held_back(spark, place, contract("x"), *rows, run_id="r")
    old = [(2, ["t.primary_key"]), (2, ["t.v.enum", "t.primary_key"]), (3, ["t.v.enum"])]
    version = place.current_version()
    done = replayed(spark, place, contract("x"))
    assert (done.rows_released, done.rows_held, done.version) == (0, 3, version)
    assert [row[:2] for row in held(spark, place)] == old
    # Stricter: nothing is released, and the table is not touched for what is written anew.
    strict = contract("x", version="2.0.0", others=(rules.Expression(sql="id > 2"),))
    done = replayed(spark, place, strict)
    assert (done.rows_released, done.rows_held, done.version) == (0, 3, version)
    assert place.current_version() == version
    assert held(spark, place) == [
        (2, ["t.primary_key", "t.expression"], "2.0.0", "r"),
        (2, ["t.v.enum", "t.primary_key", "t.expression"], "2.0.0", "r"),
        (3, ["t.v.enum"], "2.0.0", "r"),
    ]
    # All that is left is released, and its batch is gone.
    free = contract("x", "y", "bad", version="3.0.0").model_copy(update={"id": "test"})
    bare = free.model_copy(update={"datasets": (free.datasets[0].model_copy(update={"rules": ()}),)})
    done = replayed(spark, place, bare)
    assert (done.rows_released, done.rows_held, done.table_rows) == (3, 0, 4)
    assert list(place.quarantine.iterdir()) == []
    done = replayed(spark, place, bare)
    assert (done.rows, done.batches, done.verdict, done.version) == (0, (), None, place.current_version())


def test_a_partitioned_table_takes_rows_into_their_partitions(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path, "t")
    first = [(1, FIRST, "x"), (2, FIRST, "y"), (1, SECOND, "y"), (4, None, "y")]
    held_back(spark, place, contract("x"), *first, partition_by=("day",), mode="append", run_id="r1")
    held_back(spark, place, contract("x"), (5, SECOND, "y"), (6, SECOND, "z"), mode="append", run_id="r2")
    wider = contract("x", "y", version="1.1.0")
    [later] = [batch for batch in open_batches(place) if batch.facts["run_id"] == "r2"]
    # Only one batch: the other one is not looked at.
    done = replayed(spark, place, wider, batches=[f"batch={later.name}"])
    assert [(batch.name, batch.released, batch.held) for batch in done.batches] == [(later.name, 1, 1)]
    # The key 1 is the table's, unless it is said to be a partition's.
    done = replayed(spark, place, wider)
    assert (done.rows_released, done.rows_held) == (2, 2)
    assert sorted(entry.name for entry in place.link.iterdir() if entry.is_dir()) == [
        "day=2024-01-01",
        "day=2024-01-02",
        "day=__HIVE_DEFAULT_PARTITION__",
    ]
    done = replayed(spark, place, wider, scope="partition")
    assert (done.rows_released, done.rows_held) == (1, 1)
    rows = [tuple(row) for row in read_published(spark, place).select("id", "day").collect()]
    assert sorted(rows, key=repr) == [(1, FIRST), (1, SECOND), (2, FIRST), (4, None), (5, SECOND)]
    assert json.loads((place.link / MANIFEST).read_text())["table"]["rows"] == {
        "day=2024-01-01": 2,
        "day=2024-01-02": 2,
        "day=__HIVE_DEFAULT_PARTITION__": 1,
    }


def test_promises_of_the_whole_table_are_held_with_the_released_rows(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path, "t")
    held_back(spark, place, contract("x"), *((at, FIRST, "x") for at in range(4)), (7, FIRST, "y"), (8, FIRST, "y"))
    most = rules.RowCount(threshold=Threshold(Operator.LESS_OR_EQUAL, 5))
    with pytest.raises(ContractViolationError, match="Nothing was released, all held rows stay as they were") as error:
        replay(spark, contract("x", "y", version="1.1.0", others=(most,)), place=place)
    assert [(result.id, result.observed) for result in error.value.verdict.violations] == [("t.row_count", 6)]
    assert [row[:3] for row in held(spark, place)] == [(7, ["t.v.enum"], "1.0.0"), (8, ["t.v.enum"], "1.0.0")]
    # Two of two would be far too many, two of six are not.
    half = rules.InvalidCount(valid_values=("x",), threshold=Threshold(Operator.LESS_OR_EQUAL, 2))
    tolerant = build_contract(
        build_field("id", "int"),
        build_field("day", "date"),
        build_field("v", "string", half),
        build_field("m", "decimal(38,18)"),
        version="1.2.0",
    )
    done = replayed(spark, place, tolerant)
    assert (done.rows_released, done.rows_held, done.table_rows) == (2, 0, 6)


def test_a_row_may_refer_to_published_rows_and_to_those_released_with_it(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path, "t", "json")

    def tree(*values: str) -> Contract:
        parent = rules.ForeignKey(fields=(), to="t", to_fields=("id",))
        return build_contract(
            build_field("id", "int", rules.Unique()),
            build_field("parent", "int", parent),
            build_field("v", "string", rules.Enum(values=values)),
        )

    rows = [(1, None, "x"), (2, 1, "y"), (3, 2, "x"), (4, 3, "x"), (5, 9, "y"), (6, 5, "y")]
    df = spark.createDataFrame(rows, "id int, parent int, v string").coalesce(1)
    publication = publish(df, tree("x"), place=place, on_violation="quarantine", clock=lambda: HELD_AT)
    assert publication.rows_quarantined == 5
    # Whoever replays need not know what the table's files are.
    done = replayed(spark, TablePlace(tmp_path, "t"), tree("x", "y"))
    assert not list(place.link.glob("*.parquet"))
    assert (done.rows_released, done.rows_held) == (3, 2)
    assert [row[:2] for row in held(spark, place)] == [
        (5, ["t.parent.foreign_key"]),
        (6, ["t.parent.foreign_key"]),
    ]


def test_rows_that_a_stream_held_are_replayed_and_the_stream_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    place, folder = TablePlace(tmp_path, "t"), tmp_path / "source"

    def stream(*rows: tuple[Any, ...]) -> None:
        days(spark, *rows).write.mode("append").parquet(str(folder))
        read = spark.readStream.schema(COLUMNS).parquet(str(folder))
        once = {"availableNow": True}
        options: dict[str, Any] = {"place": place, "checkpoint": tmp_path / "cp", "trigger": once}
        enforce_stream(read, by, clock=lambda: HELD_AT, **options).awaitTermination()

    def free(*values: str, version: str) -> Contract:
        return build_contract(
            *(build_field(name) for name in ("id", "day", "m")),
            build_field("v", "string", rules.Enum(values=values)),
            version=version,
        )

    by = free("x", version="1.0.0")
    stream((1, FIRST, "x"), (2, FIRST, "y"), (3, FIRST, "z"))
    done = replayed(spark, place, free("x", "y", version="1.1.0"))
    assert (done.rows_released, done.rows_held, done.table_rows) == (1, 1, 2)
    stream((4, FIRST, "x"), (5, FIRST, "y"))
    assert published(spark, place) == [1, 2, 4]
    assert [(row[0], row[2]) for row in held(spark, place)] == [(3, "1.1.0"), (5, "1.0.0")]


# --- what is not replayed ---------------------------------------------------------------------------------------------


def test_what_a_later_publish_replaced_is_released_only_if_it_is_named(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path, "t", "orc")
    held_back(spark, place, contract("x"), (1, FIRST, "x"), (2, FIRST, "y"), run_id="monday")
    # The table comes again as a whole: what was held on Monday is of a table that is no more.
    held_back(spark, place, contract("x"), (1, FIRST, "x"), (2, FIRST, "y"), (3, FIRST, "y"), run_id="tuesday")
    monday, tuesday = sorted(open_batches(place), key=lambda batch: str(batch.facts["run_id"]))
    assert (monday.superseded_by, tuesday.superseded_by) == (place.current_version(), None)
    wider = contract("x", "y")
    done = replayed(spark, place, wider)
    [passed, looked] = sorted(done.batches, key=lambda batch: str(batch.run_id))
    assert "replaced what its rows were held back from" in str(passed.passed_over)
    assert (passed.released, passed.held, looked.released, looked.held) == (0, 0, 2, 0)
    assert published(spark, place) == [1, 2, 3]
    done = replayed(spark, place, wider, batches=[monday.name])
    assert (done.rows_released, done.rows_held) == (0, 1)


def test_copies_and_batches_of_others_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path, "t")
    held_back(spark, place, contract("x"), (1, FIRST, "x"), (2, FIRST, "y"))
    [own] = open_batches(place)
    for name, facts in (("drift-1", {"copied_from_table": True}), ("stream-000000000001", {"stream": "s"})):
        batch = place.quarantine / f"batch={name}"
        batch.mkdir()
        days(spark, (1, FIRST, "x")).write.mode("append").parquet(str(batch))
        (batch / MANIFEST).write_text(json.dumps({**facts, "contract": "test", "dataset": "t"}))
        (batch / PUBLISHED).touch()
    wider = contract("x", "y")
    for name, reason in (
        ("drift-1", "its rows are copies, the table has them already"),
        ("stream-000000000001", "not"),
    ):
        with pytest.raises(PublicationError, match=f"batch {name} cannot be replayed: .*{reason}"):
            replay(spark, wider, place=place, batches=[name])
    done = replay(spark, wider, place=place)
    assert [(batch.name, batch.released, batch.passed_over is None) for batch in done.batches] == [
        ("drift-1", 0, False),
        ("stream-000000000001", 0, False),
        (own.name, 1, True),
    ]
    assert published(spark, place) == [1, 2]


def test_what_cannot_be_replayed_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path, "t")
    for missing in (place, TablePlace(tmp_path / "no" / "root", "t")):
        with pytest.raises(UnreadableTableError, match="nothing was published there yet"):
            replay(spark, contract("x"), place=missing)
        assert not missing.home.exists()
    assert held_back(spark, place, contract("x"), (1, FIRST, "x")).rows_quarantined == 0
    done = replay(spark, contract("x"), place=place)
    assert (done.batches, done.version, done.table_rows) == ((), place.current_version(), None)
    held_back(spark, place, contract("x"), (2, FIRST, "y"), mode="append")
    [batch] = open_batches(place)
    with pytest.raises(PublicationError, match=f"no rows are held in a batch 'v0'. There are: {batch.name}"):
        replay(spark, contract("x", "y"), place=place, batches=["v0"])
    with pytest.raises(PublicationError, match="held under test, dataset t, and the contract given is other"):
        replay(spark, contract("x", "y").model_copy(update={"id": "other"}), place=place)
    with pytest.raises(PublicationError, match="scope is 'row'"):
        replay(spark, contract("x", "y"), place=place, scope="row")  # type: ignore[arg-type]
    # A rule that cannot be judged: nobody knows which rows it would hold.
    unknown = contract("x", "y", others=(rules.Expression(sql="nowhere > 0"),))
    with pytest.raises(ContractViolationError, match=r"could not be evaluated.*Nothing was released"):
        replay(spark, unknown, place=place)
    assert held(spark, place)[0][:2] == (2, ["t.v.enum"])
    # The table has another column since.
    more = days(spark, (1, FIRST, "x")).selectExpr("*", "1 as extra")
    publish(more, build_contract(*map(build_field, more.columns)), place=place)
    with pytest.raises(
        PublicationError, match=f"batch {batch.name} has other columns than the table: the rows have no"
    ):
        replay(spark, contract("x", "y"), place=place, batches=[batch.name])


# --- kills ------------------------------------------------------------------------------------------------------------

KILLED_AT_EVERY_STEP = textwrap.dedent(
    """
    import json, os, shutil, signal, sys
    from pathlib import Path
    from databox_contracts.spark.quarantine_batches import open_batches
    from databox_contracts.spark.tables import TablePlace
    from databox_contracts.spark.versions import VersionStore

    def write(directory, *texts):
        directory.mkdir(parents=True)
        for text in texts:
            (directory / f"part-{text}.parquet").write_text(text)

    def publish(place, table, held):
        store = VersionStore(place)
        with store.stage() as staged:
            write(staged.data, *table)
            write(staged.held, *held)
            store.commit(staged, {"run_id": table[-1], "mode": "append", "replaced": []})

    def replay(place, releasing):
        # Of the first batch one row goes and one stays, of the second one all rows go.
        store = VersionStore(place)
        first, second = sorted(batch.name for batch in place.quarantine.iterdir())
        with store.stage() as staged:
            write(staged.rest / first, *(["h2"] if releasing else ["h1", "h2"]))
            if not releasing:
                store.replace_batches(staged, {first: {"version": first[6:]}})
                return
            write(staged.data, "t1", "t2", "h1", "h3")
            replayed = {first: {"version": first[6:]}, second: None}
            store.commit(staged, {"run_id": "replay", "replaced": []}, replayed=replayed)

    def kill_before(step):
        count = 0
        for name in ("rename", "replace", "symlink", "mkdir", "unlink", "rmdir", "open", "utime", "link"):
            real = getattr(os, name)
            def counting(*args, real=real, **kwargs):
                nonlocal count
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)
            setattr(os, name, counting)

    def rows(place):
        table = sorted(file.stem[5:] for file in place.link.glob("part-*"))
        held = sorted(file.stem[5:] for batch in open_batches(place) for file in batch.path.glob("part-*"))
        return table, held

    root, releasing = Path(sys.argv[1]), sys.argv[2] == "releasing"
    found = []
    for step in range(1, 300):
        place = TablePlace(root / str(step), "t")
        publish(place, ["t1"], ["h1", "h2"])
        publish(place, ["t1", "t2"], ["h3"])
        child = os.fork()
        if child == 0:
            kill_before(step)
            replay(place, releasing)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            break
        seen = rows(place)
        with VersionStore(place).stage():
            pass
        left = sorted(entry.name for entry in place.home.iterdir() if entry.name.startswith(("replay", "link-")))
        staging = [entry.name for entry in place.staging.iterdir()]
        found.append({"seen": seen, "after": rows(place), "left": left + staging})
    print(json.dumps(found))
    """
)


@pytest.mark.parametrize("how", ["releasing", "replacing"])
def test_killed_before_any_step_no_row_is_lost_or_doubled(tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-c", KILLED_AT_EVERY_STEP, str(tmp_path), how]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert len(found) >= 20
    before, after = [["t1", "t2"], ["h1", "h2", "h3"]], [["h1", "h3", "t1", "t2"], ["h2"]]
    for case in found:
        assert case["seen"] in ([before, after] if how == "releasing" else [before])
        assert case["after"] == case["seen"]
        assert case["left"] == []
    if how == "releasing":
        assert (found[0]["seen"], found[-1]["seen"]) == (before, after)


REPLAYING = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[3])
    from databox_contracts.spark import TablePlace, replay
    from databox_contracts.spark.session import local_session
    from test_replaying import contract

    spark = local_session("killed", master="local[1]", conf={"spark.sql.shuffle.partitions": 1})
    count = 0
    for name in ("rename", "replace", "symlink", "link"):
        real = getattr(os, name)
        def counting(*args, real=real, **kwargs):
            global count
            count += 1
            if count == int(sys.argv[2]):
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)
        setattr(os, name, counting)
    replay(spark, contract("x", "y", version="1.1.0"), place=TablePlace(Path(sys.argv[1]), "t"))
    print("steps", count)
    """
)


@pytest.mark.parametrize(
    "step", [8, *(pytest.param(at, marks=pytest.mark.full) for at in (1, 3, 5, 6, 7, 9, 10, 11, 12))]
)
def test_a_replay_that_is_killed_is_done_by_the_next_one(spark: SparkSession, tmp_path: Path, step: int) -> None:
    place = TablePlace(tmp_path, "t")
    held_back(spark, place, contract("x"), (1, FIRST, "x"), (2, FIRST, "y"), (3, FIRST, "z"))
    command = [sys.executable, "-c", REPLAYING, str(tmp_path), str(step), str(Path(__file__).parent)]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ})
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    everything = [*published(spark, place), *(row[0] for row in held(spark, place))]
    assert sorted(everything) == [1, 2, 3]
    done = replayed(spark, place, contract("x", "y", version="1.1.0"))
    assert done.rows_held == 1
    assert published(spark, place) == [1, 2]
    assert [row[:3] for row in held(spark, place)] == [(3, ["t.v.enum"], "1.1.0")]
