"""The same promises of a publish, held against each kind of table that has the last word on its own versions."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError, PublicationError, UnreadableTableError
from databox_contracts.spark import (
    CatalogPlace,
    DeltaPlace,
    IcebergPlace,
    Publication,
    publish,
    read_published,
)
from databox_contracts.spark.server import stop_server
from databox_contracts.spark.stores import Place
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.model import Contract

AT = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
KINDS = ("delta", "iceberg", "catalog")


@dataclass
class Table:
    """A table of one kind, and a way to look at it that is none of ours."""

    kind: str
    root: Path
    spark: SparkSession
    place: Place = field(init=False)

    def __post_init__(self) -> None:
        if self.kind == "delta":
            self.place = DeltaPlace(self.root / "orders")
        elif self.kind == "iceberg":
            self.place = IcebergPlace(iceberg_catalog(self.root), "shop.orders")
        else:
            self.spark.sql("CREATE DATABASE IF NOT EXISTS shop")
            self.spark.sql("DROP TABLE IF EXISTS shop.orders")
            self.place = CatalogPlace("shop.orders", self.root)

    @property
    def files(self) -> Path:
        """Where the kind keeps the table, with its neighbours."""
        return {"delta": self.root, "iceberg": self.root / "warehouse" / "shop", "catalog": self.root / "shop"}[
            self.kind
        ]

    def rows(self) -> pa.Table:
        """What other readers see."""
        if self.kind == "delta":
            return DeltaTable(str(self.root / "orders")).to_pyarrow_table()
        if self.kind == "iceberg":
            return iceberg_catalog(self.root).load_table("shop.orders").scan().to_arrow()
        other = self.spark.newSession()
        return other.sql("SELECT * FROM shop.orders").toArrow()

    def ids(self) -> list[Any]:
        return sorted(self.rows()["id"].to_pylist(), key=lambda value: (value is None, value))

    def data(self) -> set[str]:
        """The data files on disk that are not held rows."""
        found = self.files.rglob("*.parquet")
        kept = (file for file in found if "quarantine" not in str(file) and "_delta_log" not in str(file))
        return {str(file) for file in kept}

    def batches(self) -> list[Path]:
        return sorted((self.files / "orders.quarantine").glob("batch=*"))


def iceberg_catalog(root: Path) -> SqlCatalog:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=(root / "warehouse").as_uri())
    catalog.create_namespace_if_not_exists("shop")
    return catalog


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Table]:
    yield Table(request.param, tmp_path, spark)
    spark.sql("DROP TABLE IF EXISTS shop.orders")


@pytest.fixture
def delta(spark: SparkSession, tmp_path: Path) -> Table:
    return Table("delta", tmp_path, spark)


@pytest.fixture
def iceberg(spark: SparkSession, tmp_path: Path) -> Table:
    return Table("iceberg", tmp_path, spark)


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Iterator[Table]:
    yield Table("catalog", tmp_path, spark)
    spark.sql("DROP TABLE IF EXISTS shop.orders")


@pytest.fixture
def contract() -> Contract:
    return build_contract(
        build_field("id", "int"),
        build_field("price", "double", rules.Minimum(limit=0)),
        build_field("state", "string", rules.Enum(values=("open", "done"))),
        rules=(rules.PrimaryKey(fields=("id",)),),
        dataset="orders",
        id="urn:shop:orders",
        version="2.1.0",
    )


def orders(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id int, price double, state string").repartition(2)  # type: ignore[type-var]


def some(*ids: int) -> list[tuple[Any, ...]]:
    return [(id_, float(id_), "open") for id_ in ids]


MIXED = [*some(0, 1, 2, 3), (3, 1.0, "done"), (20, -1.0, "lost"), (22, None, "done"), (None, 1.0, "open")]


def rejected(df: DataFrame, contract: Contract, table: Table, **options: Any) -> Publication:
    with pytest.raises(ContractViolationError) as error:
        publish(df, contract, place=table.place, **options)
    publication = error.value.publication
    assert isinstance(publication, Publication)
    return publication


def version_of(table: Table) -> str:
    if table.kind == "delta":
        return str(DeltaTable(str(table.root / "orders")).version())
    if table.kind == "iceberg":
        snapshot = iceberg_catalog(table.root).load_table("shop.orders").current_snapshot()
        return str(snapshot.snapshot_id) if snapshot else "empty"
    rows = table.spark.sql("DESCRIBE TABLE EXTENDED shop.orders").collect()
    return Path(next(row["data_type"] for row in rows if row["col_name"] == "Location")).name


# --- what every kind promises -----------------------------------------------------------------------------------------


def test_published_then_violated_then_warned_about(spark: SparkSession, contract: Contract, table: Table) -> None:
    with pytest.raises(UnreadableTableError, match="nothing was published there yet"):
        read_published(spark, table.place)
    none = rejected(orders(spark, *MIXED), contract, table)
    assert (none.version, none.rows_in, none.rows_rejected) == (None, 8, 8)
    with pytest.raises(UnreadableTableError, match="nothing was published there yet"):
        read_published(spark, table.place)
    assert table.data() == set()

    first = publish(orders(spark, *some(0, 1, 2)), contract, place=table.place)
    assert (first.rows_in, first.rows_published, first.version) == (3, 3, version_of(table))
    assert table.ids() == [0, 1, 2]
    opened = read_published(spark, table.place)
    files = table.data()

    second = rejected(orders(spark, *MIXED), contract, table)
    assert second.version == first.version == version_of(table)
    assert [result.id for result in second.verdict.violations] == [
        "orders.id.required",
        "orders.price.minimum",
        "orders.state.enum",
        "orders.primary_key",
    ]
    assert table.ids() == [0, 1, 2]
    assert table.data() == files, "of what was refused, nothing stays on disk"

    third = publish(orders(spark, *MIXED), contract, place=table.place, on_violation="warn")
    assert (third.rows_published, third.verdict.passed) == (8, False)
    assert table.ids() == [0, 1, 2, 3, 3, 20, 22, None]
    assert sorted(row["id"] for row in opened.collect()) == [0, 1, 2], "a reader of before is not disturbed"
    assert read_published(spark, table.place).count() == 8


def test_quarantine_keeps_every_row(spark: SparkSession, contract: Contract, table: Table) -> None:
    options: dict[str, Any] = {"place": table.place, "on_violation": "quarantine"}
    first = publish(orders(spark, *MIXED), contract, run_id="r1", **options)
    assert (first.rows_in, first.rows_published, first.rows_quarantined) == (8, 4, 4)
    assert table.ids() == [0, 1, 2, 22]
    assert first.quarantine == table.batches()[0]
    held = spark.read.parquet(str(first.quarantine)).collect()
    assert sorted((row["id"] or 0, row["_quarantine_reason"]) for row in held) == [
        (0, ["orders.id.required"]),
        (3, ["orders.primary_key"]),
        (3, ["orders.primary_key"]),
        (20, ["orders.price.minimum", "orders.state.enum"]),
    ]
    again = publish(orders(spark, *MIXED), contract, run_id="r1", **options)
    assert table.batches() == [again.quarantine], "a retry of the run replaces what it held"
    publish(orders(spark, *MIXED), contract, run_id="r2", **options)
    assert len(table.batches()) == 2
    assert table.ids() == [0, 1, 2, 22]
    facts = json.loads((again.quarantine / "_databox.json").read_text())  # type: ignore[operator]
    assert (facts["run_id"], facts["rows_published"], facts["rows_quarantined"]) == ("r1", 4, 4)


def test_no_rows_is_a_table(spark: SparkSession, contract: Contract, table: Table) -> None:
    first = publish(orders(spark), contract, place=table.place)
    assert (first.rows_in, first.rows_published) == (0, 0)
    opened = read_published(spark, table.place)
    assert (opened.count(), opened.columns) == (0, ["id", "price", "state"])
    publish(orders(spark, *some(1)), contract, place=table.place)
    assert table.ids() == [1]
    publish(orders(spark), contract, place=table.place)
    assert table.ids() == []


def test_of_two_writers_the_second_is_told(spark: SparkSession, contract: Contract, table: Table) -> None:
    def rival() -> None:
        publish(orders(spark, *some(1)), contract, place=table.place, as_of=AT)

    for before in (None, "table"):
        with pytest.raises(PublicationError, match=r"finished first; .* stays. Run again"):
            publish(
                orders(spark, *MIXED),
                contract,
                place=table.place,
                as_of=AT,
                on_violation="quarantine",
                clock=interrupted(rival, when_called=4),
            )
        assert table.ids() == [1], before
        assert table.batches() == [], before


def interrupted(doing: Callable[[], Any], *, when_called: int) -> Callable[[], datetime]:
    """A clock; while it is asked the n-th time, something else happens."""
    calls = 0

    def clock() -> datetime:
        nonlocal calls
        calls += 1
        if calls == when_called:
            doing()
        return AT

    return clock


def test_a_column_added_at_the_end(spark: SparkSession, table: Table) -> None:
    narrow = build_contract(build_field("id", "int"))
    wide = build_contract(build_field("id", "int"), build_field("more", "string"))
    publish(spark.sql("SELECT 1 id"), narrow, place=table.place)
    opened = read_published(spark, table.place)
    publish(spark.sql("SELECT 2 id, 'x' more"), wide, place=table.place)
    assert table.rows().to_pylist() == [{"id": 2, "more": "x"}]
    assert [row["id"] for row in opened.collect()] == [1]
    if table.kind != "delta":
        with pytest.raises(PublicationError, match="its columns are others than those to publish"):
            publish(spark.sql("SELECT 3 id"), narrow, place=table.place)
        assert table.rows().num_rows == 1


NESTED = """
    SELECT 1 id, CAST(1.5 AS decimal(20, 3)) d, date'2013-01-01' day, timestamp'2013-01-01 05:00:00' at,
           timestamp_ntz'2013-01-01 05:00:00' local, named_struct('a', 1, 'b', array(named_struct('c', 'x'))) s,
           map('k', array(1.5D)) m, cast('ab' as binary) bin, true flag, 1L l,
           cast(1.5 as float) f, CAST(null AS string) x
"""


def test_every_kind_of_column_comes_back(spark: SparkSession, table: Table) -> None:
    df = spark.sql(NESTED)
    publish(df, contract_of(df), place=table.place)
    found = read_published(spark, table.place)
    assert [(f.name, f.dataType.simpleString()) for f in found.schema.fields] == [
        (f.name, f.dataType.simpleString()) for f in df.schema.fields
    ]
    assert found.collect() == df.collect()
    assert table.rows()["s"].to_pylist() == [{"a": 1, "b": [{"c": "x"}]}]


def contract_of(df: DataFrame) -> Contract:
    from databox_contracts.spark import infer_contract

    return infer_contract(df, id="t")


# --- appending --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_append_holds_the_rows_against_the_rules_and_all_rows_against_the_keys(
    spark: SparkSession, contract: Contract, tmp_path: Path, kind: str
) -> None:
    table = Table(kind, tmp_path, spark)
    options: dict[str, Any] = {"place": table.place, "mode": "append"}
    publish(orders(spark, *some(0, 1)), contract, **options)
    second = publish(orders(spark, *some(2, 3)), contract, **options)
    assert (second.rows_in, second.rows_published) == (2, 2)
    assert table.ids() == [0, 1, 2, 3]
    clash = rejected(orders(spark, *some(3, 4)), contract, table, mode="append")
    assert [(result.id, result.failed_count) for result in clash.verdict.violations] == [("orders.primary_key", 1)]
    assert clash.rows_in == 2
    third = publish(orders(spark, *some(5), (6, -1.0, "open")), contract, on_violation="quarantine", **options)
    assert (third.rows_published, third.rows_quarantined) == (1, 1)
    assert table.ids() == [0, 1, 2, 3, 5]
    publish(orders(spark), contract, **options)
    assert table.ids() == [0, 1, 2, 3, 5]
    with pytest.raises(PublicationError, match=r"its columns are others than those to (append|publish)"):
        publish(spark.sql("SELECT 9 id"), build_contract(build_field("id", "int")), **options)
    assert [row["id"] for row in read_published(spark, table.place).orderBy("id").collect()] == [0, 1, 2, 3, 5]


def test_what_is_not_appended_to(spark: SparkSession, contract: Contract, catalog: Table) -> None:
    with pytest.raises(PublicationError, match="not published to with mode='append'"):
        publish(orders(spark), contract, place=catalog.place, mode="append")


# --- Delta ------------------------------------------------------------------------------------------------------------


def test_delta_keeps_statistics_and_the_facts_of_the_publish(
    spark: SparkSession, contract: Contract, delta: Table
) -> None:
    publish(orders(spark, *some(4, 7)).coalesce(1), contract, place=delta.place, run_id="r1")
    found = DeltaTable(str(delta.root / "orders"))
    [action] = pa.table(found.get_add_actions(flatten=True)).to_pylist()
    assert (action["num_records"], action["min.id"], action["max.id"]) == (2, 4, 7)
    assert (action["min.state"], action["null_count.state"], action["null_count.price"]) == ("open", 0, 0)
    assert action.get("min.price") is None, "a NaN would be beyond both bounds"
    facts = json.loads(found.history(1)[0]["databox_contracts"])
    assert (facts["run_id"], facts["contract"], facts["rows_published"]) == ("r1", "urn:shop:orders", 2)
    assert found.to_pyarrow_table(filters=[("id", ">", 5)])["id"].to_pylist() == [7]


def test_delta_writers_of_other_origin_are_noticed(spark: SparkSession, contract: Contract, delta: Table) -> None:
    publish(orders(spark, *some(1)), contract, place=delta.place)
    path = str(delta.root / "orders")
    foreign = pa.table({"id": pa.array([9], pa.int32()), "price": [1.0], "state": ["open"]})

    def rival() -> None:
        write_deltalake(path, foreign, mode="append")

    with pytest.raises(PublicationError, match="finished first"):
        publish(orders(spark, *some(2)), contract, place=delta.place, as_of=AT, clock=interrupted(rival, when_called=3))
    assert delta.ids() == [1, 9]
    assert sorted(row["id"] for row in read_published(spark, delta.place).collect()) == [1, 9]
    publish(orders(spark, *some(2)), contract, place=delta.place)
    assert delta.ids() == [2]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"configuration": {"delta.appendOnly": "true"}}, "it takes appended rows only"),
    ],
)
def test_delta_tables_with_promises_of_their_own_are_refused(
    spark: SparkSession, contract: Contract, delta: Table, options: dict[str, Any], reason: str
) -> None:
    write_deltalake(str(delta.root / "orders"), pa.table({"id": [1], "price": [1.0], "state": ["open"]}), **options)
    with pytest.raises(PublicationError, match=reason):
        publish(orders(spark, *some(2)), contract, place=delta.place)
    assert delta.ids() == [1]


def test_a_delta_constraint_is_not_passed_by(spark: SparkSession, contract: Contract, delta: Table) -> None:
    publish(orders(spark, *some(1)), contract, place=delta.place)
    DeltaTable(str(delta.root / "orders")).alter.add_constraint({"few": "id < 5"})
    with pytest.raises(PublicationError, match=r"it has delta\.constraints\.few"):
        publish(orders(spark, *some(9)), contract, place=delta.place)
    assert delta.ids() == [1]


def test_a_directory_of_something_else_is_no_delta_table(spark: SparkSession, contract: Contract, delta: Table) -> None:
    (delta.root / "orders").mkdir()
    (delta.root / "orders" / "letters.txt").touch()
    with pytest.raises(PublicationError, match=r"no Delta table, it holds letters\.txt"):
        publish(orders(spark, *some(1)), contract, place=delta.place)


# --- Iceberg ----------------------------------------------------------------------------------------------------------


def test_iceberg_readers_see_one_snapshot_and_its_facts(
    spark: SparkSession, contract: Contract, iceberg: Table
) -> None:
    first = publish(orders(spark, *some(1)), contract, place=iceberg.place)
    publish(orders(spark, *some(2, 3)), contract, place=iceberg.place, run_id="r2")
    found = iceberg_catalog(iceberg.root).load_table("shop.orders")
    now = found.current_snapshot()
    assert now is not None
    assert now.summary is not None
    assert now.summary["databox_contracts.run_id"] == "r2"
    assert found.scan(row_filter="id > 2").to_arrow()["id"].to_pylist() == [3]
    assert found.scan(snapshot_id=int(str(first.version))).to_arrow()["id"].to_pylist() == [1], "time travel"


def test_an_iceberg_table_whose_files_are_not_the_table(
    spark: SparkSession, contract: Contract, iceberg: Table
) -> None:
    publish(orders(spark, *some(1)), contract, place=iceberg.place)
    with iceberg_catalog(iceberg.root).load_table("shop.orders").update_schema() as update:
        update.rename_column("state", "status")
    with pytest.raises(UnreadableTableError, match=r"its column state was renamed, dropped or changed in type"):
        read_published(spark, iceberg.place)


def test_an_iceberg_namespace_that_is_missing(spark: SparkSession, contract: Contract, iceberg: Table) -> None:
    place = IcebergPlace(iceberg_catalog(iceberg.root), "nowhere.orders")
    with pytest.raises(PublicationError, match=r"the catalog has no such namespace\. Create the namespace first"):
        publish(orders(spark, *some(1)), contract, place=place)


# --- Spark's catalog --------------------------------------------------------------------------------------------------


def test_sessions_see_the_old_or_the_new_catalog_table(spark: SparkSession, contract: Contract, catalog: Table) -> None:
    publish(orders(spark, *some(1)), contract, place=catalog.place)
    other = spark.newSession()
    cached = other.table("shop.orders")
    assert [row["id"] for row in cached.collect()] == [1]
    publish(orders(spark, *some(2)), contract, place=catalog.place)
    assert [row["id"] for row in spark.table("shop.orders").collect()] == [2]
    assert [row["id"] for row in cached.collect()] == [1], "what it opened stays"
    assert [row["id"] for row in other.table("shop.orders").collect()] in ([1], [2])
    assert [row["id"] for row in read_published(other, catalog.place).collect()] == [2]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE TABLE shop.orders (id int) USING PARQUET", "it is a managed table"),
        ("CREATE TABLE shop.orders (id int) USING JSON LOCATION '{root}/json'", "it is no Parquet table"),
        (
            "CREATE TABLE shop.orders (id int, p int) USING PARQUET PARTITIONED BY (p) LOCATION '{root}/parts'",
            "it is partitioned",
        ),
        ("CREATE VIEW shop.orders AS SELECT 1 id", "it is a view"),
    ],
)
def test_catalog_tables_whose_location_does_not_move(
    spark: SparkSession, catalog: Table, statement: str, reason: str
) -> None:
    spark.sql(statement.format(root=catalog.root))
    try:
        with pytest.raises(PublicationError, match=reason):
            publish(spark.sql("SELECT 2 id"), build_contract(build_field("id", "int")), place=catalog.place)
    finally:
        spark.sql(f"DROP {'VIEW' if 'VIEW' in statement else 'TABLE'} shop.orders")


def test_an_external_table_is_taken_over_and_its_files_stay(spark: SparkSession, catalog: Table) -> None:
    elsewhere = catalog.root / "elsewhere"
    spark.sql("SELECT 1 id").write.parquet(str(elsewhere))
    spark.sql(f"CREATE TABLE shop.orders (id int) USING PARQUET LOCATION '{elsewhere}'")
    assert catalog.ids() == [1]
    publish(spark.sql("SELECT 2 id"), build_contract(build_field("id", "int")), place=catalog.place)
    assert catalog.ids() == [2]
    assert pq.read_table(elsewhere)["id"].to_pylist() == [1]


def test_a_nested_column_with_odd_names_is_added(spark: SparkSession, catalog: Table) -> None:
    publish(spark.sql("SELECT 1 id"), build_contract(build_field("id", "int")), place=catalog.place)
    wide = spark.sql("SELECT 2 id, array(named_struct('a b', 1, '`c:d', map('k', 'v'))) `odd ``one`")
    publish(wide, contract_of(wide), place=catalog.place)
    assert read_published(spark, catalog.place).collect() == wide.collect()


def test_names_and_databases(spark: SparkSession, contract: Contract, tmp_path: Path) -> None:
    for name in ("orders", "a.b.c", "shop.or ders", "shop.`x`", ""):
        with pytest.raises(PublicationError, match=r"Name it database\.table"):
            CatalogPlace(name, tmp_path)
    with pytest.raises(PublicationError, match="there is no database `nowhere`"):
        publish(orders(spark), contract, place=CatalogPlace("nowhere.orders", tmp_path))
    with pytest.raises(UnreadableTableError, match="there is no database `nowhere`"):
        read_published(spark, CatalogPlace("nowhere.orders", tmp_path))


# --- what a format cannot hold ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "query", "reason"),
    [
        ("delta", "SELECT 1 `a b`", "the column a b has ' ' in its name, which Delta does not allow"),
        ("delta", "SELECT array(named_struct('x,y', 1)) a", "the column a.x,y has ',' in its name"),
        ("delta", "SELECT parse_json('1') v", "the column v is of type variant, which Delta does not have"),
        ("iceberg", "SELECT 1Y a", "the column a is of type tinyint, which Iceberg does not have"),
        ("iceberg", "SELECT named_struct('n', 1S) s", "the column s.n is of type smallint"),
        ("iceberg", "SELECT 1 `a.b`", r"the column a\.b has '\.' in its name"),
        ("iceberg", "SELECT map(1S, 'v') m", "the column m is of type smallint"),
    ],
)
def test_columns_that_a_format_does_not_have_are_refused_before_writing(
    spark: SparkSession, tmp_path: Path, kind: str, query: str, reason: str
) -> None:
    table, df = Table(kind, tmp_path, spark), spark.sql(query)
    with pytest.raises(PublicationError, match=reason):
        publish(df, contract_of(df), place=table.place)
    assert table.data() == set()


def test_a_place_of_no_kind(spark: SparkSession, contract: Contract) -> None:
    with pytest.raises(PublicationError, match="Use one of TablePlace, CatalogPlace, DeltaPlace, IcebergPlace"):
        publish(orders(spark), contract, place="/tmp/orders")  # type: ignore[arg-type]


# --- real processes, killed -------------------------------------------------------------------------------------------

PUBLISHER = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from pyiceberg.catalog.sql import SqlCatalog
    from databox_contracts import rules
    from databox_contracts.spark import CatalogPlace, DeltaPlace, IcebergPlace, publish, stores, transactions
    from databox_contracts.spark.server import shared_session
    from databox_contracts.testing import build_contract, build_field

    server, kind, root, number, point = sys.argv[1:]
    spark = shared_session(Path(server))
    root = Path(root)
    if kind == "delta":
        place = DeltaPlace(root / "t")
    elif kind == "iceberg":
        lake = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=(root / "warehouse").as_uri())
        lake.create_namespace_if_not_exists("shop")
        place = IcebergPlace(lake, "shop.t")
    else:
        spark.sql("CREATE DATABASE IF NOT EXISTS shop")
        place = CatalogPlace("shop.t", root)

    def dead(): os.kill(os.getpid(), signal.SIGKILL)

    target = stores._TARGETS[type(place)]
    commit, store = target.commit, transactions.TransactionStore
    if point == "staged":
        store.commit = lambda *args, **options: dead()
    elif point == "noted":
        transactions.os.rename = lambda *args: dead()
    elif point == "moved":
        target.commit = lambda *args: dead()
    elif point == "committed":
        target.commit = lambda *args: (commit(*args), dead())

    contract = build_contract(build_field("id", "bigint", rules.Maximum(limit=90)), build_field("number", "int"))
    df = spark.range(100, numPartitions=2).selectExpr("id", f"{number} number")
    publish(df, contract, place=place, on_violation="quarantine", run_id=number)
    seen = spark.table("shop.t") if kind == "catalog" else None
    rows = sorted({row[0] for row in seen.select("number").collect()}) if seen is not None else []
    print("done", rows, flush=True)
    """
)
POINTS = ("staged", "noted", "moved", "committed")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("server")
    yield directory
    stop_server(directory)


def run(server: Path, kind: str, root: Path, number: int, point: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", PUBLISHER, str(server), kind, str(root), str(number), point]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        pytest.param("catalog", POINTS, marks=pytest.mark.full),
        pytest.param("delta", POINTS, marks=pytest.mark.full),
        pytest.param("iceberg", POINTS, marks=pytest.mark.full),
    ],
)
def test_a_publish_killed_leaves_the_old_or_the_new_table_and_its_held_rows(
    server: Path, tmp_path: Path, kind: str, points: tuple[str, ...]
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    first = run(server, kind, root, 0, "never")
    assert first.stdout.startswith("done"), first.stderr
    current = 0
    for number, point in enumerate(points, start=1):
        killed = run(server, kind, root, number, point)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        current = number if point == "committed" else current
        if kind != "catalog":
            assert seen(kind, root) == (91, [current]), point
    last = run(server, kind, root, 99, "never")
    assert last.stdout.startswith("done"), last.stderr
    if kind != "catalog":
        assert seen(kind, root) == (91, [99])
    # Held rows of every publish that took place, the killed one too, and of no other.
    batches = sorted(root.rglob("batch=*"))
    runs = sorted(pq.read_table(batch)["_run_id"][0].as_py() for batch in batches)
    assert runs == sorted(["0", "99", *([str(len(points))] if points[-1] == "committed" else [])])
    assert all(pq.read_table(batch).num_rows == 9 and (batch / "_published").exists() for batch in batches)
    assert list(root.rglob("pending-*")) == []
    [staging] = root.rglob("staging")
    assert list(staging.iterdir()) == []
    data = [
        d for d in root.rglob("*") if d.is_dir() and (d.name.startswith("databox-v") or d.parent.name == "versions")
    ]
    assert len(data) == 3, "the first, the one whose process died after the commit, and the last"


def seen(kind: str, root: Path) -> tuple[int, list[int]]:
    """How many rows, and of which publish; read without Spark or anything of ours."""
    if kind == "delta":
        rows = DeltaTable(str(root / "t")).to_pyarrow_table()
    else:
        lake = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=(root / "warehouse").as_uri())
        rows = lake.load_table("shop.t").scan().to_arrow()
    return rows.num_rows, sorted(set(rows["number"].to_pylist()))
