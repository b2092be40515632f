"""No row is lost and none is there twice: what came in is published, held, discarded or rejected, in every mode.

Random publishes to one place, one after the other, each held against a plain Python account of the table; then several
at once, and some that are killed.
"""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq
import pytest

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError, PublicationError
from databox_contracts.spark import Publication, TablePlace, publish, read_published
from databox_contracts.spark.server import stop_server
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

CONTRACT: Final = build_contract(
    build_field("id", "int", rules.Required()),
    build_field("v", "int", rules.Maximum(limit=10)),
    build_field("part", "string"),
    rules=(rules.PrimaryKey(fields=("id",)), rules.Expression(sql="v is null or v <> 7")),
)
PARTS: Final = ("a", "b", "c d/ü", None)
WAYS: Final = tuple(itertools.product(("fail", "quarantine", "warn"), ("overwrite", "append", "overwrite_partitions")))

# id, v and part; what v was as a text, and what was in a column that nobody declared.
Item = tuple[Any, Any, Any]


@dataclass
class Step:
    on_violation: str
    mode: str
    columns: str
    data_type: str
    texts: bool
    extra: bool
    named: tuple[Any, ...]
    rows: list[tuple[Any, Any, Any, Any]]


@dataclass
class Account:
    """The table as it has to be, and how many rows every publish may say it did what with."""

    partitioned: bool
    table: list[Item] = field(default_factory=list)
    held: Counter[Any] = field(default_factory=Counter)

    def take(self, step: Step) -> dict[str, int] | None:
        """The counts, None where the publish has to be refused; the table is as it is afterwards."""
        stay, discarded = [], 0
        for id_, v, part, extra in step.rows:
            odd = step.texts and v is not None and not is_int(v)
            if (step.extra and step.columns == "discard_row" and extra is not None) or (
                odd and step.data_type == "discard_row"
            ):
                discarded += 1
                continue
            whole = None if v is None or odd else int(v)
            stay.append((id_, whole, part))
        frozen = (step.texts and step.data_type == "freeze") or (step.extra and step.columns == "freeze")
        written = {part for _, _, part in stay}
        replaced = {*written, *step.named}
        base = [] if step.mode == "overwrite" else self.table
        if step.mode == "overwrite_partitions":
            base = [item for item in base if item[2] not in replaced]
        beside = [item for item in base if not self.partitioned or (item[2] in written and step.mode == "append")]
        apart = self.partitioned and step.mode != "overwrite"
        keys = Counter((item[0], item[2] if apart else None) for item in (*stay, *beside) if item[0] is not None)
        bad = [
            item
            for item in stay
            if item[0] is None
            or (item[1] is not None and (item[1] > 10 or item[1] == 7))
            or keys[item[0], item[2] if apart else None] > 1
        ]
        # Among rows that were there already a key may be repeated too.
        broken = bool(bad) or any(times > 1 for times in keys.values())
        if step.on_violation == "fail" and (broken or frozen):
            return None
        if step.on_violation == "quarantine" and frozen:
            return None
        if step.on_violation == "warn":
            bad = []
        kept = list((Counter(stay) - Counter(bad)).elements())
        if step.on_violation == "quarantine":
            left = Counter((item[0], item[2] if apart else None) for item in (*kept, *beside) if item[0] is not None)
            if any(times > 1 for times in left.values()):
                return None
        self.table = [*base, *kept]
        self.held += Counter(item[0] for item in bad)
        return {"rows_in": len(step.rows), "rows_published": len(kept), "rows_quarantined": len(bad),
                "rows_rejected": 0, "rows_discarded": discarded}  # fmt: skip


def is_int(text: str) -> bool:
    return text.lstrip("-").isdigit()


def steps(r: random.Random, ways: list[tuple[str, str]]) -> Iterator[Step]:
    for on_violation, mode in ways:
        texts, extra = r.random() < 0.4, r.random() < 0.4
        parts = r.sample(PARTS, r.randrange(1, 4))
        values = ("1", "-3", "7", "11", "x", "", None) if texts else (1, 2, -3, 10, 11, 7, None)
        calm = r.random() < 0.5
        rows = [
            (
                r.randrange(100) if calm else r.choice((0, 1, 2, 3, None, *range(10, 30))),
                r.choice(values[:2] if calm else values),
                r.choice(parts),
                r.choice((None, None, "e", "")),
            )
            for _ in range(r.choice((0, 1, 3, 9)))
        ]
        named = tuple({*parts, *r.sample(PARTS, 1)}) if mode == "overwrite_partitions" and r.random() < 0.5 else ()
        yield Step(
            on_violation,
            mode,
            # A table that takes new columns is not the same one afterwards: `evolve` is tested with the modes.
            r.choice(("freeze", "discard_row", "discard_value")),
            r.choice(("freeze", "discard_row", "discard_value")),
            texts,
            extra,
            named,
            rows,
        )


def frame(spark: SparkSession, step: Step, partitions: int) -> DataFrame:
    rows = [row if step.extra else row[:3] for row in step.rows]
    schema = f"id int, v {'string' if step.texts else 'int'}, part string{', extra string' if step.extra else ''}"
    return spark.createDataFrame(rows, schema).repartition(partitions)


def table_of(spark: SparkSession, place: TablePlace) -> Counter[Any]:
    if not place.link.exists():
        return Counter()
    # The values that were too odd for their type are texts where a warning was all they got.
    return Counter((row["id"], str(row["v"]), row["part"]) for row in read_published(spark, place).collect())


def run(spark: SparkSession, root: Path, seed: int, *, partitioned: bool, ways: list[tuple[str, str]]) -> set[str]:
    r, place = random.Random(seed), TablePlace(root, f"t{seed}{partitioned}")
    account, ends = Account(partitioned), set()
    for at, step in enumerate(steps(r, ways)):
        frozen = (step.texts and step.data_type == "freeze") or (step.extra and step.columns == "freeze")
        if step.on_violation == "warn" and frozen:
            # It would be published with other columns, and nothing could be added to it.
            whole = [(id_, v if v is None or is_int(str(v)) else None, *rest) for id_, v, *rest in step.rows]
            step.rows = [(id_, v and int(v), part, other) for id_, v, part, other in whole]
            step.texts = step.extra = False
        before, version = table_of(spark, place), place.current_version()
        expected = account.take(step)
        options: dict[str, Any] = {"partition_by": ("part",)} if partitioned else {}
        if step.named:
            options["partitions"] = [{"part": one} for one in step.named]
        try:
            done: Any = publish(
                frame(spark, step, r.choice((1, 2, 5))), CONTRACT, place=place, on_violation=step.on_violation,  # type: ignore[arg-type]
                mode=step.mode, schema_modes={"columns": step.columns, "data_type": step.data_type},  # type: ignore[arg-type]
                run_id=f"run{at}", **options,
            )  # fmt: skip
        except PublicationError as error:
            # Rows with other columns than the table's are not added to it.
            refused = str(error)
            ends.add("refused")
            assert expected is None, (seed, at, step, refused)
            assert frozen
            assert step.mode != "overwrite"
            assert "its columns are not those of the rows" in refused
            assert (place.current_version(), table_of(spark, place)) == (version, before)
            continue
        except ContractViolationError as error:
            done = error.publication
            assert isinstance(done, Publication)
            refused = str(error)
            assert (done.rows_in, done.rows_rejected) == (len(step.rows), len(step.rows)), (seed, at, step)
            assert place.current_version() == version
            assert table_of(spark, place) == before
            ends.add("rejected")
            assert expected is None, (seed, at, step, refused)
        else:
            assert expected is not None, (seed, at, step, done)
            assert {name: getattr(done, name) for name in expected} == expected, (seed, at, step)
            ends |= {name for name, count in expected.items() if count}
        assert done.rows_in == (
            done.rows_published + done.rows_quarantined + done.rows_discarded + done.rows_rejected
        ), (seed, at, step)
        assert table_of(spark, place) == Counter((id_, str(v), part) for id_, v, part in account.table), (
            seed,
            at,
            step,
        )
        batches = [pq.read_table(batch, columns=["id"]) for batch in sorted(place.quarantine.glob("*"))]
        held = Counter(one for batch in batches for one in batch.column("id").to_pylist())
        assert held == account.held, (seed, at, step)
        assert not any(place.staging.iterdir())
    return ends


def test_what_comes_in_goes_somewhere_in_every_mode(spark: SparkSession, tmp_path: Path) -> None:
    ends = run(spark, tmp_path, 47, partitioned=True, ways=random.Random(47).sample(WAYS, len(WAYS)))
    whole = [way for way in WAYS if way[1] != "overwrite_partitions"]
    ends |= run(spark, tmp_path, 107, partitioned=False, ways=random.Random(107).sample(whole, len(whole)))
    assert ends >= {"rejected", "rows_published", "rows_quarantined", "rows_discarded"}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 140))
def test_what_comes_in_goes_somewhere_again_and_again(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    r, partitioned = random.Random(seed), seed % 3 != 0
    ways = [way for way in WAYS if partitioned or way[1] != "overwrite_partitions"]
    run(spark, tmp_path, seed, partitioned=partitioned, ways=r.choices(ways, k=12))


# --- two at once ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["overwrite", "append", "overwrite_partitions"])
def test_of_two_writers_at_once_one_wins_and_the_other_is_told(spark: SparkSession, tmp_path: Path, mode: Any) -> None:
    place, met = TablePlace(tmp_path / "root", "t"), tmp_path / "met"
    met.mkdir()
    publish(writing(spark, 0), CONTRACT, place=place, partition_by="part")
    first = place.link.resolve()
    outcomes: dict[int, Any] = {}

    def write(number: int) -> None:
        rows = writing(spark, number).coalesce(1).mapInArrow(meeting(met, number), "id int, v int, part string")
        try:
            outcomes[number] = publish(
                rows, CONTRACT, place=place, mode=mode, on_violation="quarantine", run_id=f"writer {number}"
            )
        except PublicationError as error:
            outcomes[number] = error

    threads = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [winner] = [number for number, outcome in outcomes.items() if isinstance(outcome, Publication)]
    [loser] = [outcome for outcome in outcomes.values() if isinstance(outcome, PublicationError)]
    assert "another publish finished first" in str(loser)
    assert str(outcomes[winner].version) in str(loser)
    counts = outcomes[winner]
    assert (counts.rows_in, counts.rows_published, counts.rows_quarantined) == (7, 6, 1)
    kept, old = rows_of(winner), rows_of(0)
    others = {"overwrite": [], "append": old, "overwrite_partitions": [row for row in old if row[2] != "a"]}
    assert Counter(tuple(row) for row in read_published(spark, place).collect()) == Counter([*others[mode], *kept])
    [batch] = place.quarantine.iterdir()
    assert pq.read_table(batch, columns=["_run_id"]).column(0).to_pylist() == [f"writer {winner}"]
    assert not any(place.staging.iterdir())
    # The version before is whole, for readers that are still at it.
    assert sum(pq.ParquetFile(file).metadata.num_rows for file in first.rglob("*.parquet")) == 6
    publish(writing(spark, 3), CONTRACT, place=place, mode=mode, on_violation="quarantine")


def rows_of(number: int) -> list[tuple[int, int, str]]:
    return [(100 * number + at, 1, "a" if at < 3 or number else "b") for at in range(6)]


def writing(spark: SparkSession, number: int) -> DataFrame:
    bad = [(100 * number + 50, 11, "a")] if number else []
    return spark.createDataFrame([*rows_of(number), *bad], "id int, v int, part string")  # type: ignore[type-var]


def meeting(directory: Path, number: int) -> Any:
    """Rows that are only there once both writers write theirs."""

    def wait(batches: Any) -> Any:
        (directory / str(number)).touch()
        deadline = time.monotonic() + 120
        while len(list(directory.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        yield from batches

    return wait


# --- killed -----------------------------------------------------------------------------------------------------------

ADDING = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from databox_contracts import rules
    from databox_contracts.spark import TablePlace, publish
    from databox_contracts.spark.server import shared_session
    from databox_contracts.testing import build_contract, build_field

    server, root, number = sys.argv[1:]
    spark = shared_session(Path(server))
    contract = build_contract(
        build_field("id", "bigint", rules.Maximum(limit=95)),
        build_field("number", "int"),
        rules=(rules.PrimaryKey(fields=("id", "number")),),
    )
    # Ten rows have what nobody declared, one of them besides what is not allowed. Held are three, and a key twice.
    df = spark.range(100, numPartitions=2).selectExpr("id", f"{number} number", "if(id % 10 = 8, id, null) extra")
    df = df.union(df.where("id = 5"))
    print("ready", flush=True)
    done = publish(
        df, contract, place=TablePlace(Path(root), "t"), on_violation="quarantine", run_id=number, mode="append",
        schema_modes={"columns": "discard_row"},
    )
    counts = (done.rows_in, done.rows_published, done.rows_quarantined, done.rows_discarded, done.rows_rejected)
    print(*counts, flush=True)
    """
)
IN, PUBLISHED, HELD, DISCARDED = 101, 86, 5, 10


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("server")
    yield directory
    stop_server(directory)


def begin(server: Path, root: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ADDING, str(server), str(root), str(number)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def finish(process: subprocess.Popen[str]) -> float:
    began = time.monotonic()
    out, err = process.communicate(timeout=300)
    assert out == f"{IN} {PUBLISHED} {HELD} {DISCARDED} 0\n", err
    return time.monotonic() - began


@pytest.mark.full
def test_rows_that_are_discarded_held_and_added_are_so_once_or_not_at_all_under_kills(
    server: Path, tmp_path: Path
) -> None:
    place, dice = TablePlace(tmp_path / "root", "t"), random.Random(7)

    def there() -> dict[int, int]:
        """How many rows of each publish the table has. Read without Spark or anything of ours."""
        found: Counter[int] = Counter()
        for file in sorted(place.link.resolve().glob("*.parquet")):
            found.update(pq.ParquetFile(file).read(columns=["number"]).column("number").to_pylist())
        return dict(found)

    finish(begin(server, place.root, 0))
    took = finish(begin(server, place.root, 1))
    state = {0: PUBLISHED, 1: PUBLISHED}
    assert there() == state
    for number in range(2, 17):
        process = begin(server, place.root, number)
        time.sleep(dice.uniform(0, took * 1.1))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert there() in (state, {**state, number: PUBLISHED})
        state = there()
    # What was killed is done again under its own name: it is there once, whether it had been done or not.
    last = next((number for number in range(2, 17) if number not in state), 17)
    finish(begin(server, place.root, last))
    assert there() == {**state, last: PUBLISHED}
    held = [
        pq.read_table(batch, columns=["number"]).column("number").to_pylist() for batch in place.quarantine.iterdir()
    ]
    assert {len(batch) for batch in held} == {HELD}
    assert sorted(batch[0] for batch in held) == sorted(there())
