from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import textwrap
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from databox_contracts import rules
from databox_contracts.errors import (
    ContractViolationError,
    PublicationError,
    SparkUnavailableError,
    UnreadableTableError,
)
from databox_contracts.model import Contract, Enforcement
from databox_contracts.rules import Operator, Severity, Threshold
from databox_contracts.spark import Publication, TablePlace, publish, read_published
from databox_contracts.spark.compat import require_connect
from databox_contracts.spark.server import stop_server
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
AT_LEAST_3 = rules.RowCount(threshold=Threshold(Operator.GREATER_OR_EQUAL, 3))


@pytest.fixture
def place(tmp_path: Path) -> TablePlace:
    return TablePlace(tmp_path / "root", "shop/orders")


@pytest.fixture
def contract() -> Contract:
    return build_contract(
        build_field("id", "int"),
        build_field("price", "double", rules.Minimum(limit=0), rules.Required(severity=Severity.WARNING)),
        build_field("state", "string", rules.Enum(values=("open", "done"))),
        rules=(rules.PrimaryKey(fields=("id",)), AT_LEAST_3),
        dataset="orders",
        id="urn:shop:orders",
        version="2.1.0",
    )


def orders(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id int, price double, state string").repartition(3)  # type: ignore[type-var]


GOOD = [(at, float(at), "open") for at in range(10)]
MIXED = [*GOOD, (3, 1.0, "done"), (20, -1.0, "lost"), (21, 1.0, "lost"), (22, None, "done"), (None, 1.0, "open")]


def rejected(df: DataFrame, contract: Contract, place: TablePlace, **options: Any) -> Publication:
    with pytest.raises(ContractViolationError) as error:
        publish(df, contract, place=place, **options)
    publication = error.value.publication
    assert isinstance(publication, Publication)
    return publication


def ids(df: DataFrame) -> list[Any]:
    return sorted((row["id"] for row in df.select("id").collect()), key=lambda value: (value is None, value))


def test_a_good_table_is_published_and_readable(spark: SparkSession, contract: Contract, place: TablePlace) -> None:
    publication = publish(orders(spark, *GOOD), contract, place=place, run_id="r1", clock=lambda: AT)
    assert publication.published
    assert (publication.rows_in, publication.rows_published, publication.rows_quarantined) == (10, 10, 0)
    assert publication.version == place.current_version()
    table = read_published(spark, place)
    assert ids(table) == list(range(10))
    assert table.columns == ["id", "price", "state"]
    facts = json.loads((place.link / "_databox.json").read_text())
    assert facts == {
        "contract": "urn:shop:orders",
        "contract_version": "2.1.0",
        "dataset": "orders",
        "run_id": "r1",
        "passed": True,
        "on_violation": "fail",
        "rows_in": 10,
        "rows_published": 10,
        "rows_quarantined": 0,
        "published_at": "2026-03-01T12:30:15.250000+00:00",
        "mode": "overwrite",
        "replaced": None,
        "version": publication.version,
        "previous": None,
        "table": {
            "format": "parquet",
            "schema": json.loads(table.schema.json()),
            "partition_by": [],
            "options": {},
            "rows": {"": 10},
            "table_rows": 10,
        },
    }


def test_a_violation_publishes_nothing_and_the_old_table_stays(
    spark: SparkSession, contract: Contract, place: TablePlace
) -> None:
    first = rejected(orders(spark, *MIXED), contract, place)
    assert (first.published, first.version, first.rows_in, first.rows_rejected) == (False, None, 15, 15)
    assert not place.link.exists()
    with pytest.raises(UnreadableTableError, match="nothing was published there yet"):
        read_published(spark, place)
    publish(orders(spark, *GOOD), contract, place=place)
    second = rejected(orders(spark, *MIXED), contract, place)
    assert second.version == place.current_version()
    assert ids(read_published(spark, place)) == list(range(10))
    assert [(result.id, result.failed_count) for result in second.verdict.violations] == [
        ("orders.id.required", 1),
        ("orders.price.minimum", 1),
        ("orders.price.required", 1),
        ("orders.state.enum", 2),
        ("orders.primary_key", 1),
    ]
    assert not any(place.staging.iterdir())


def test_warn_publishes_everything_and_says_so(spark: SparkSession, contract: Contract, place: TablePlace) -> None:
    publication = publish(orders(spark, *MIXED), contract, place=place, on_violation="warn")
    assert publication.published
    assert not publication.verdict.passed
    assert publication.rows_published == read_published(spark, place).count() == 15


def test_quarantine_holds_violating_rows_with_their_own_reasons(
    spark: SparkSession, contract: Contract, place: TablePlace
) -> None:
    publication = publish(
        orders(spark, *MIXED), contract, place=place, on_violation="quarantine", run_id="r7", clock=lambda: AT
    )
    assert (publication.rows_in, publication.rows_published, publication.rows_quarantined) == (15, 10, 5)
    assert not publication.verdict.passed
    # A row that breaks a warning stays.
    assert ids(read_published(spark, place)) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 22]
    assert publication.quarantine is not None
    held = spark.read.parquet(str(publication.quarantine)).orderBy("id", "price")
    assert held.columns == [
        "id",
        "price",
        "state",
        "_quarantine_reason",
        "_quarantine_timestamp",
        "_contract_id",
        "_contract_version",
        "_run_id",
    ]
    assert [tuple(row)[:4] for row in held.collect()] == [
        (None, 1.0, "open", ["orders.id.required"]),
        (3, 1.0, "done", ["orders.primary_key"]),
        (3, 3.0, "open", ["orders.primary_key"]),
        (20, -1.0, "lost", ["orders.price.minimum", "orders.state.enum"]),
        (21, 1.0, "lost", ["orders.state.enum"]),
    ]
    stamps = held.selectExpr("unix_micros(_quarantine_timestamp)", "_contract_id", "_contract_version", "_run_id")
    assert {tuple(row) for row in stamps.collect()} == {
        (int(AT.timestamp() * 1e6), "urn:shop:orders", "2.1.0", "r7"),
    }


def test_the_order_of_columns_and_only_they_are_published_in_every_mode(spark: SparkSession, place: TablePlace) -> None:
    contract = build_contract(build_field("b.c", "int", rules.Maximum(limit=1)), build_field("a d", "string"))
    df = spark.createDataFrame([(1, "x"), (2, "y")], "`b.c` int, `a d` string")  # type: ignore[type-var]
    publication = publish(df, contract, place=place, on_violation="quarantine")
    assert [tuple(row) for row in read_published(spark, place).collect()] == [(1, "x")]
    assert read_published(spark, place).columns == ["b.c", "a d"]
    assert publication.quarantine is not None
    assert spark.read.parquet(str(publication.quarantine)).columns[:2] == ["b.c", "a d"]


def test_every_row_of_a_repeated_key_is_held_even_if_one_of_them_breaks_another_rule(
    spark: SparkSession, contract: Contract, place: TablePlace
) -> None:
    rows = [*GOOD, (3, -1.0, "lost"), (50, -1.0, "open")]
    publication = publish(orders(spark, *rows), contract, place=place, on_violation="quarantine")
    assert publication.quarantine is not None
    held = spark.read.parquet(str(publication.quarantine)).orderBy("id", "price").collect()
    assert [(row["id"], row["price"], row["_quarantine_reason"]) for row in held] == [
        (3, -1.0, ["orders.price.minimum", "orders.state.enum", "orders.primary_key"]),
        (3, 3.0, ["orders.primary_key"]),
        (50, -1.0, ["orders.price.minimum"]),
    ]
    assert ids(read_published(spark, place)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_a_retry_of_the_same_run_does_not_double_held_rows(
    spark: SparkSession, contract: Contract, place: TablePlace
) -> None:
    for _ in range(2):
        publish(orders(spark, *MIXED), contract, place=place, on_violation="quarantine", run_id="r7")
    assert spark.read.parquet(str(place.quarantine)).count() == 5


@pytest.mark.parametrize("beside", [(), (rules.Minimum(limit=0),)], ids=["alone", "beside another rule"])
def test_rows_that_break_a_condition_are_held(spark: SparkSession, place: TablePlace, beside: tuple[Any, ...]) -> None:
    contract = build_contract(
        build_field("id", "int"),
        build_field("price", "double", *beside),
        build_field("state", "string", rules.RequiredWhen(condition="price > 1")),
        rules=(rules.Expression(sql="state <> 'lost' or id > 20"), rules.PrimaryKey(fields=("id",))),
        dataset="orders",
    )
    rows = [(1, 1.0, "open"), (2, 2.0, None), (3, -3.0, "lost"), (20, 1.0, "lost"), (21, 1.0, "lost"), (22, None, None)]
    publication = publish(orders(spark, *rows), contract, place=place, on_violation="quarantine")
    assert (publication.rows_in, publication.rows_published, publication.rows_quarantined) == (6, 3, 3)
    assert ids(read_published(spark, place)) == [1, 21, 22]
    assert publication.quarantine is not None
    held = spark.read.parquet(str(publication.quarantine)).select("id", "_quarantine_reason").collect()
    reasons = {row["id"]: row["_quarantine_reason"] for row in held}
    assert reasons == {
        2: ["orders.state.required_when"],
        3: [*(["orders.price.minimum"] if beside else []), "orders.expression"],
        20: ["orders.expression"],
    }


def test_a_condition_that_fails_on_a_row_is_a_verdict_and_the_old_table_stays(
    spark: SparkSession, place: TablePlace
) -> None:
    fields = (
        build_field("id", "int"),
        build_field("price", "double", rules.Minimum(limit=0)),
        build_field("state", "string"),
    )
    publish(orders(spark, *GOOD), build_contract(*fields, dataset="orders"), place=place)
    # Under ANSI, which is usual, a text that is no number is an error where one is compared with it.
    failing = build_contract(*fields, rules=(rules.Expression(sql="state > 5"),), dataset="orders")
    rows = orders(spark, (1, 1.0, "open"), (2, -2.0, "secret text"))
    for how in ("fail", "quarantine"):
        publication = rejected(rows, failing, place, on_violation=how)
        assert (publication.published, publication.rows_rejected) == (False, 2)
        (result,) = [result for result in publication.verdict.results if result.rule == "expression"]
        assert str(result.status) == "not_evaluated"
        assert "secret text" not in str(publication.verdict.to_dict())
        assert ids(read_published(spark, place)) == list(range(10))


def test_a_rule_that_belongs_to_no_row_fails_in_quarantine_too(
    spark: SparkSession, contract: Contract, place: TablePlace
) -> None:
    few = rejected(orders(spark, (1, 1.0, "open")), contract, place, on_violation="quarantine")
    assert [result.id for result in few.verdict.violations] == ["orders.row_count"]
    # Three rows came in, and too few would be left once two are held.
    left = rejected(
        orders(spark, (1, 1.0, "open"), (2, -1.0, "open"), (3, 1.0, "lost")), contract, place, on_violation="quarantine"
    )
    assert (left.rows_in, left.rows_rejected, left.rows_quarantined) == (3, 3, 0)
    assert [result.id for result in left.verdict.violations] == ["orders.row_count"]
    assert not place.quarantine.exists()


def test_quarantine_with_nothing_to_hold_and_with_every_row_held(spark: SparkSession, place: TablePlace) -> None:
    contract = build_contract(build_field("v", "int", rules.Maximum(limit=5)))
    good = publish(spark.createDataFrame([(1,)], "v int"), contract, place=place, on_violation="quarantine")  # type: ignore[type-var]
    assert (good.rows_published, good.rows_quarantined, good.quarantine) == (1, 0, None)
    bad = publish(spark.createDataFrame([(9,)], "v int"), contract, place=place, on_violation="quarantine")  # type: ignore[type-var]
    assert (bad.rows_published, bad.rows_quarantined) == (0, 1)
    empty = read_published(spark, place)
    assert (empty.count(), empty.schema.simpleString()) == (0, "struct<v:int>")


@pytest.mark.parametrize("mode", ["fail", "quarantine", "warn"])
def test_an_empty_table_is_published_with_its_columns(spark: SparkSession, place: TablePlace, mode: Any) -> None:
    contract = build_contract(build_field("v", "int", rules.Required(), rules.Unique()))
    publication = publish(spark.createDataFrame([], "v int"), contract, place=place, on_violation=mode)
    assert (publication.rows_in, publication.rows_published) == (0, 0)
    assert read_published(spark, place).schema.simpleString() == "struct<v:int>"


def test_the_transformation_runs_exactly_once(spark: SparkSession, place: TablePlace, tmp_path: Path) -> None:
    contract = build_contract(build_field("v", "bigint", rules.Maximum(limit=90)), rules=(rules.Unique(fields=("v",)),))
    for mode, source in (("quarantine", "a"), ("warn", "b"), ("fail", "c")):
        log = tmp_path / source

        def count(batches: Any, log: Path = log) -> Any:
            for batch in batches:
                with log.open("a") as file:
                    file.write("row\n" * batch.num_rows)
                yield batch

        counted = spark.range(100, numPartitions=4).withColumnRenamed("id", "v").mapInArrow(count, "v bigint")
        if mode == "fail":
            rejected(counted, contract, place)
        else:
            publish(counted, contract, place=place, on_violation=mode)  # type: ignore[arg-type]
        assert log.read_text().count("row") == 100


def test_a_grace_period_lets_violations_through_until_it_ends(
    spark: SparkSession, contract: Contract, place: TablePlace
) -> None:
    lenient = contract.model_copy(update={"enforcement": Enforcement(mode="warn", until=date(2026, 4, 1))})
    df = orders(spark, *MIXED)
    during = publish(df, lenient, place=place, clock=lambda: datetime(2026, 3, 31, 23, 59, tzinfo=UTC))
    assert (during.published, during.on_violation, during.verdict.passed) == (True, "warn", False)
    rejected(df, lenient, place, clock=lambda: datetime(2026, 4, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("struct<>", "has no columns"),
        ("a int, A int", "differ in case alone"),
        ("a interval day to second", "is of type interval"),
    ],
)
def test_what_parquet_cannot_hold_is_told_before_anything_is_written(
    spark: SparkSession, place: TablePlace, columns: str, reason: str
) -> None:
    df = spark.range(1).select() if columns == "struct<>" else spark.createDataFrame([], columns)
    names = () if columns == "struct<>" else tuple(dict.fromkeys(df.columns))
    with pytest.raises(PublicationError, match=reason):
        publish(df, build_contract(*(build_field(name) for name in names)), place=place)
    assert not place.root.exists()


def test_timestamps_are_written_in_microseconds_and_the_session_keeps_its_settings(
    spark: SparkSession, place: TablePlace
) -> None:
    option = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(option)
    spark.conf.set(option, "INT96")
    try:
        df = spark.sql("select timestamp'2024-01-01 00:00:00.000001' v")
        publish(df, build_contract(build_field("v", "timestamp")), place=place)
        assert spark.conf.get(option) == "INT96"
    finally:
        spark.conf.set(option, str(before))
    [file] = place.link.glob("*.parquet")
    assert pq.read_metadata(file).schema.column(0).physical_type == "INT64"


def test_an_unknown_way_to_handle_violations(spark: SparkSession, contract: Contract, place: TablePlace) -> None:
    with pytest.raises(PublicationError, match=r"on_violation is 'ignore'\. Use one of fail, quarantine, warn"):
        publish(orders(spark), contract, place=place, on_violation="ignore")  # type: ignore[arg-type]


def test_a_root_that_cannot_be_written_is_one_sentence(spark: SparkSession, contract: Contract, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PublicationError, match="the file system says Not a directory"):
        publish(orders(spark, *GOOD), contract, place=TablePlace(tmp_path / "file", "t"))


def test_a_reader_that_opened_the_table_before_a_swap_finishes(
    spark: SparkSession, contract: Contract, place: TablePlace
) -> None:
    publish(orders(spark, *GOOD), contract, place=place)
    before = read_published(spark, place)
    publish(orders(spark, *((at, 1.0, "done") for at in range(100, 150))), contract, place=place)
    assert ids(before) == list(range(10))
    assert ids(read_published(spark, place)) == list(range(100, 150))


# --- real processes, killed -------------------------------------------------------------------------------------------

PUBLISHER = textwrap.dedent(
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
        build_field("id", "bigint", rules.Maximum(limit=1900)),
        build_field("number", "int"),
        rules=(rules.PrimaryKey(fields=("id",)),),
    )
    df = spark.range(2000, numPartitions=2).selectExpr("id", f"{number} number")
    df = df.union(df.where("id < 5"))
    print("ready", flush=True)
    publish(df, contract, place=TablePlace(Path(root), "t"), on_violation="quarantine", run_id=number)
    print("done", flush=True)
    """
)
PUBLISHED, HELD = 1896, 109


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    try:
        require_connect()
    except SparkUnavailableError as error:
        pytest.skip(str(error))
    directory = tmp_path_factory.mktemp("server")
    yield directory
    stop_server(directory)


def start(server: Path, root: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PUBLISHER, str(server), str(root), str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> float:
    """Seconds from ready to done."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    began = time.monotonic()
    out, err = process.communicate(timeout=180)
    assert out == "done\n", err
    return time.monotonic() - began


def number_of(place: TablePlace) -> int:
    """Which publish the table holds, and it has to be one and whole. Read without Spark or anything of ours."""
    [number] = (
        pq.read_table(place.link.resolve(), columns=["number"])
        .group_by("number")
        .aggregate([([], "count_all")])
        .to_pylist()
    )
    assert number["count_all"] == PUBLISHED
    return int(number["number"])


@pytest.mark.full
@pytest.mark.parametrize("kills", [3, 20])
def test_a_publish_killed_at_random_leaves_the_old_or_the_new_table(server: Path, tmp_path: Path, kills: int) -> None:
    place = TablePlace(tmp_path / "root", "t")
    finish(start(server, place.root, 0))
    took = finish(start(server, place.root, 1))
    current, dice, seen = number_of(place), random.Random(kills), set()
    for attempt in range(2, 2 + kills):
        process = start(server, place.root, attempt)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(dice.uniform(0, took * 1.1))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        found = number_of(place)
        assert found in (current, attempt)
        seen.add("new" if found == attempt else "old")
        current = found
    finish(start(server, place.root, 99))
    assert number_of(place) == 99
    assert "old" in seen
    held = [pq.read_table(batch, columns=["_run_id"]) for batch in place.quarantine.iterdir()]
    assert {batch.num_rows for batch in held} == {HELD}
    assert "99" in {batch["_run_id"][0].as_py() for batch in held}
    # A killed client's job may go on in the server and write where nobody looks; it never gets among the versions.
    assert all((version / "_databox.json").exists() for version in place.versions.iterdir())


READER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from databox_contracts.spark import TablePlace, read_published
    from databox_contracts.spark.server import shared_session

    server, root = sys.argv[1:]
    rows = read_published(shared_session(Path(server)), TablePlace(Path(root), "t"))
    print("opened", flush=True)
    sys.stdin.readline()
    print(rows.count(), [row[0] for row in rows.select("number").distinct().collect()], flush=True)
    """
)


def test_a_reader_in_another_process_finishes_with_the_table_it_opened(server: Path, tmp_path: Path) -> None:
    place = TablePlace(tmp_path / "root", "t")
    finish(start(server, place.root, 1))
    command = [sys.executable, "-c", READER, str(server), str(place.root)]
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "opened\n"
    finish(start(server, place.root, 2))
    assert number_of(place) == 2
    out, _ = reader.communicate("go on\n", timeout=120)
    assert out == f"{PUBLISHED} [1]\n"


ADDING = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from databox_contracts import rules
    from databox_contracts.spark import TablePlace, publish
    from databox_contracts.spark.server import shared_session
    from databox_contracts.testing import build_contract, build_field

    server, root, number, mode = sys.argv[1:]
    spark = shared_session(Path(server))
    contract = build_contract(
        build_field("id", "bigint", rules.Maximum(limit=95)),
        build_field("number", "int"),
        build_field("part", "string"),
        rules=(rules.PrimaryKey(fields=("id", "number")),),
    )
    # Fifty rows in each of two partitions; four of them are held.
    df = spark.range(100, numPartitions=2).selectExpr("id", f"{number} number", "string(id div 50) part")
    if mode == "overwrite_partitions":
        df = df.where("part = 1")
    print("ready", flush=True)
    publish(
        df, contract, place=TablePlace(Path(root), "t"), on_violation="quarantine", run_id=number, mode=mode,
        partition_by="part", partitions=[{"part": "1"}] if mode == "overwrite_partitions" else None,
    )
    print("done", flush=True)
    """
)


@pytest.mark.parametrize(
    ("kills", "mode"),
    [
        pytest.param(20, "append", marks=pytest.mark.full),
        pytest.param(20, "overwrite_partitions", marks=pytest.mark.full),
    ],
)
def test_an_append_or_a_partition_killed_at_random_is_there_whole_or_not_at_all(
    server: Path, tmp_path: Path, kills: int, mode: str
) -> None:
    place = TablePlace(tmp_path / "root", "t")

    def begin(number: int, how: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", ADDING, str(server), str(place.root), str(number), how]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def there() -> dict[int, list[int]]:
        """For each publish how many rows of it are in either partition. Read without Spark or anything of ours."""
        found: dict[int, list[int]] = {}
        for part in (0, 1):
            for file in sorted(place.link.resolve().glob(f"part={part}/*.parquet")):
                # By the file alone: the name of its directory is no column here.
                for row in pq.ParquetFile(file).read(columns=["number"]).column("number").to_pylist():
                    found.setdefault(row, [0, 0])[part] += 1
        return found

    finish(begin(0, "overwrite"))
    state = there()
    assert state == {0: [50, 46]}
    took = finish(begin(1, mode))
    state = there()
    assert state == ({0: [50, 46], 1: [50, 46]} if mode == "append" else {0: [50, 0], 1: [0, 46]})
    dice = random.Random(kills)
    for number in range(2, 2 + kills):
        after = {**state, number: [50, 46]} if mode == "append" else {0: [50, 0], number: [0, 46]}
        process = begin(number, mode)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(dice.uniform(0, took * 1.1))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert there() in (state, after)
        state = there()
    finish(begin(99, mode))
    last = {**state, 99: [50, 46]} if mode == "append" else {0: [50, 0], 99: [0, 46]}
    assert there() == last
    held = {batch: pq.read_table(batch, columns=["number"]) for batch in place.quarantine.iterdir()}
    assert {batch.num_rows for batch in held.values()} == {4}
    # Whatever was published held its rows, and nothing held rows that was not.
    if mode == "append":
        assert {batch.column("number")[0].as_py() for batch in held.values()} == set(last)
