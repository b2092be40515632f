from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from databox_contracts import rules
from databox_contracts.baselines import DirectoryBaselineStore
from databox_contracts.drift import DriftReport
from databox_contracts.errors import DataboxError, DriftError, SchemaDriftError, UnreadableTableError
from databox_contracts.results import Status
from databox_contracts.rules import Operator, Severity, Threshold
from databox_contracts.spark import TablePlace, publish, sample_drift
from databox_contracts.spark.recent import sample_frame, sample_path, sample_table
from databox_contracts.testing import MemoryBaselineStore, build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.model import Contract

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "marked-secret"


def make_contract(**facts: Any) -> Contract:
    return build_contract(
        build_field("id", "bigint", rules.Required()),
        build_field("price", "double", rules.Minimum(limit=0)),
        build_field("state", "string", rules.Enum(values=("open", "done", "void"))),
        build_field("note", "string"),
        build_field("at", "timestamp"),
        build_field("mail", "string", pii=True),
        build_field("salary", "double", pii=True),
        build_field("who", "struct<country:string,tags:array<string>>"),
        rules=(
            rules.PrimaryKey(fields=("id",)),
            rules.RowCount(threshold=Threshold(Operator.GREATER_OR_EQUAL, 10**9)),
        ),
        dataset="orders",
        id="urn:shop:orders",
        **facts,
    )


SCHEMA = (
    "id bigint, price double, state string, note string, at timestamp, mail string, salary double, "
    "who struct<country: string, tags: array<string>>"
)


def row(at: int, day: int = 1, **changes: Any) -> tuple[Any, ...]:
    """A row of a table that looks the same every day."""
    facts = {
        "id": day * 10_000 + at,
        "price": float(at % 50),
        "state": ("open", "done")[at % 2],
        "note": None,
        "at": datetime(2026, 3, 1) + timedelta(days=day, seconds=at),
        "mail": f"{SECRET}-{at % 5}@example.com",
        "salary": 777_000.0 + at % 7,
        "who": (("DE", "FR", "PL")[at % 3], ["a", "b"][: at % 3]),
        **changes,
    }
    return tuple(facts.values())


def frame(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA)


def append(spark: SparkSession, path: Path, rows: list[tuple[Any, ...]], *, written: int) -> None:
    """One more file, of that time."""
    before = set(path.glob("*.parquet")) if path.is_dir() else set()
    frame(spark, rows).coalesce(1).write.mode("append").parquet(str(path))
    for file in sorted(set(path.glob("*.parquet")) - before):
        os.utime(file, (written, written))


def statuses(report: DriftReport) -> dict[str, Status]:
    return {result.id: result.status for result in report.verdict.results}


def kinds(report: DriftReport) -> list[tuple[str, str | None, Any]]:
    return [(one.kind, one.field, json.loads(one.value) if one.value else None) for one in report.findings]


def test_the_first_sampling_pins_a_baseline_and_what_drifts_from_it_is_told_with_since_when(
    spark: SparkSession, tmp_path: Path
) -> None:
    contract, store, table = make_contract(), DirectoryBaselineStore(tmp_path / "store"), tmp_path / "t"
    append(spark, table, [row(at) for at in range(300)], written=1000)

    def sample(day: int, **options: Any) -> DriftReport:
        return sample_drift(
            spark, contract, store=store, path=table, rows=300, as_of=AT + timedelta(days=day), **options
        )

    first = sample(0)
    assert (first.findings, first.baseline, first.stored) == ((), None, True)
    assert first.notes == ("no baseline yet: this sample is the baseline from now on",)
    assert first.verdict.row_count == first.sampled.rows == 300
    skipped = {name for name, status in statuses(first).items() if status is Status.SKIPPED}
    assert skipped == {"orders.primary_key", "orders.row_count"}
    pinned = store.get("urn:shop:orders", "orders")
    assert pinned is not None

    again = sample(1)
    assert (again.findings, again.baseline, again.stored) == ((), pinned.id, False)

    # Only the newest file drifts; the older one is not looked at.
    drifted = [
        row(
            at,
            day=2,
            price=float(at % 50) + 30,
            state="lost" if at < 9 else "open",
            note="x" if at % 4 == 0 else None,
            who=("XX" if at < 3 else "DE", ["a", "new"] if at < 2 else []),
        )
        for at in range(300)
    ]
    append(spark, table, drifted, written=2000)
    third = sample(2, quarantine=tmp_path / "held")
    newest = third.sampled.files[0]
    assert third.sampled.how == "all rows of the newest file"
    assert third.sampled.files == (newest,)
    assert kinds(third) == [
        ("rule", "state", None),
        ("distribution", "price", None),
        ("quantile", "price", None),
        ("quantile", "price", None),
        ("quantile", "price", None),
        ("new_value", "state", "lost"),
        ("vanished_value", "state", "done"),
        ("distribution", "state", None),
        ("null_rate", "note", None),
        ("new_value", "who.country", "XX"),
        ("vanished_value", "who.country", "FR"),
        ("vanished_value", "who.country", "PL"),
        ("distribution", "who.country", None),
        ("distribution", "who.tags.length", None),
        ("quantile", "who.tags.length", None),
        ("quantile", "who.tags.length", None),
        ("new_value", "who.tags.item", "new"),
        ("distribution", "who.tags.item", None),
    ]
    lost = third.of("new_value", "state")[0]
    assert (lost.count, lost.share, lost.place) == (9, 0.03, newest)
    assert lost.to_dict()["value"] == "lost"
    assert (lost.first_seen, lost.seen.times) == ("2026-03-03T12:00:00+00:00", 1)  # type: ignore[union-attr]
    rule = third.of("rule")[0]
    assert (rule.rule, rule.count, rule.share, rule.severity) == ("orders.state.enum", 9, 0.03, Severity.ERROR)
    nulls = third.of("null_rate")[0]
    assert (nulls.observed, nulls.expected) == (0.75, 1.0)
    with pytest.raises(DriftError, match="18 findings") as raised:
        third.raise_for_drift()
    assert raised.value.report is third

    # The baseline is still the first one, so that a drift stays one; since when is known.
    fourth = sample(3)
    assert store.get("urn:shop:orders", "orders") == pinned
    seen = fourth.of("new_value", "state")[0].seen
    assert seen is not None
    assert (seen.first_seen, seen.last_seen, seen.times) == (
        "2026-03-03T12:00:00+00:00",
        "2026-03-04T12:00:00+00:00",
        2,
    )

    # The rows that break a rule or have a new value are copied once, in the form of held rows.
    assert third.quarantined == 9
    assert sample(2, quarantine=tmp_path / "held").to_json() == third.to_json().replace(
        '"times_seen": 1', '"times_seen": 2'
    ).replace('"last_seen": "2026-03-03T12:00:00+00:00"', '"last_seen": "2026-03-04T12:00:00+00:00"')
    batches = list((tmp_path / "held").iterdir())
    assert [str(one) for one in batches] == [third.quarantine]
    held = pq.read_table(batches[0]).to_pylist()
    assert {one["id"]: one["_quarantine_reason"] for one in held} == {
        20_000 + at: [
            "orders.state.enum",
            "orders.state.new_value",
            *(["orders.who.country.new_value"] if at < 3 else []),
            *(["orders.who.tags.item.new_value"] if at < 2 else []),
        ]
        for at in range(9)
    }
    assert {one["_contract_id"] for one in held} == {"urn:shop:orders"}
    assert json.loads((batches[0] / "_databox.json").read_text())["copied_from_table"] is True

    # Accepting it ends it, but for the broken rule.
    accepted = sample(4, update_baseline=True)
    assert accepted.stored
    assert kinds(sample(5)) == [("rule", "state", None)]

    # Nothing of a masked field is anywhere.
    written = "".join(file.read_text() for file in (tmp_path / "store").rglob("*.json"))
    for text in (written, third.to_json(), first.to_json(), third.summary(), str(raised.value)):
        assert SECRET not in text
        assert "77700" not in text
    assert "lost" in written
    mail = pinned.field("mail")
    assert mail is not None
    assert (mail.masked, mail.rows, mail.nulls, mail.distinct) == (True, 300, 0, 5)


# --- what is read -----------------------------------------------------------------------------------------------------


def write_days(path: Path, days: int) -> None:
    """A table of one file a day, each with five row groups of a thousand rows."""
    for day in range(days):
        start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
        ids = [day * 5000 + at for at in range(5000)]
        table = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "at": pa.array([start + timedelta(seconds=at) for at in range(5000)], pa.timestamp("us", "UTC")),
                "money": pa.array([Decimal(at) / 100 for at in ids], pa.decimal128(12, 2)),
                "parts": pa.array([[{"k": str(at % 3), "n": None}] for at in ids]).cast(
                    pa.list_(pa.struct([("k", pa.string()), ("n", pa.int32())]))
                ),
            }
        )
        place = path / f"day={start:%Y-%m-%d}"
        place.mkdir(parents=True)
        pq.write_table(table, place / "part-0.parquet", row_group_size=1000)


def bytes_read() -> int:
    facts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(facts["rchar"])


def test_a_tenfold_table_costs_no_more_and_the_newest_row_groups_are_read_as_spark_reads_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    costs = []
    for days in (3, 30):
        table = tmp_path / f"t{days}"
        write_days(table, days)
        before = bytes_read()
        recent = sample_path(spark, str(table), rows=1500, files=8)
        costs.append(bytes_read() - before)
        newest = f"day={datetime(2026, 1, days):%Y-%m-%d}/part-0.parquet"
        assert recent.files == (newest,)
        assert (recent.file_rows, recent.how) == (2000, "1500 rows of the last row groups of the newest file")
        assert recent.chosen_by == ("day",)
        start = (days - 1) * 5000
        expected = [*range(start + 3000, start + 3500), *range(start + 4000, start + 5000)]
        spark_says = spark.read.parquet(str(table)).where(F.col("id").isin(expected))
        assert recent.schema == spark_says.schema
        assert sorted(recent.rows.collect()) == sorted(spark_says.collect())
        assert recent.df.select("place").distinct().collect() == [(newest,)]
    small, large = costs
    assert large < 1.2 * small


def test_a_table_that_was_published_and_one_in_the_catalog_are_sampled_by_their_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    contract = build_contract(
        build_field("id", "bigint"), build_field("kind", "string"), build_field("day", "string"), dataset="orders"
    )
    rows = spark.range(40).selectExpr("id", "'a' AS kind", "concat('2026-01-0', id div 10 + 1) AS day").coalesce(1)
    place = TablePlace(tmp_path / "root", "shop/orders")
    publish(rows, contract, place=place, clock=lambda: AT)
    store = MemoryBaselineStore()
    report = sample_drift(spark, contract, store=store, place=place, as_of=AT)
    assert (report.sampled.rows, report.sampled.newest, report.findings) == (40, True, ())
    with pytest.raises(DataboxError, match="not published"):
        sample_drift(spark, contract, store=store, place=place, quarantine=place.quarantine)
    rows.write.partitionBy("day").saveAsTable("drifting_orders", path=str(tmp_path / "catalog"))
    try:
        shown = sample_table(spark, "drifting_orders", rows=10, files=1)
        assert [one.split("/")[0] for one in shown.files] == ["day=2026-01-04"]
        assert sorted(one["id"] for one in shown.rows.collect()) == list(range(30, 40))
        (found,) = shown.df.select("place").distinct().collect()
        assert found[0] == shown.files[0]
        # A view on it has other columns, so its rows are not those of the files.
        view = spark.table("drifting_orders").groupBy("day").count()
        other = sample_frame(view, rows=3, files=1)
        assert other.how == "at most the first 3 rows that Spark gives: it does not say which files they are from"
        assert other.rows.count() == 3
    finally:
        spark.sql("DROP TABLE drifting_orders")


# --- schema, masks, odd values ----------------------------------------------------------------------------------------


def test_a_schema_that_is_not_the_contracts_fails_loudly_and_pins_no_baseline(spark: SparkSession) -> None:
    store = MemoryBaselineStore()
    contract = build_contract(
        build_field("id", "bigint"), build_field("gone", "string", rules.Required()), build_field("n", "int")
    )
    df = spark.createDataFrame([(1, "1", "new")], "id bigint, n string, extra string")
    report = sample_drift(df, contract, store=store, as_of=AT)
    assert [(one.kind, one.field) for one in report.findings] == [
        ("schema_missing", "gone"),
        ("not_evaluated", "gone"),
        ("not_evaluated", "gone"),
        ("schema_type", "n"),
        ("schema_undeclared", None),
    ]
    assert not report.stored
    assert store.get("test", "t") is None
    with pytest.raises(SchemaDriftError, match="extra is in the table and not in the contract") as raised:
        report.raise_for_drift()
    assert raised.value.report is report
    again = sample_drift(df, contract, store=store, as_of=AT + timedelta(days=1))
    assert {one.seen.times for one in again.findings if one.seen is not None} == {2}
    # Accepted all the same; values of what nobody declared are not kept.
    assert sample_drift(df, contract, store=store, update_baseline=True).stored
    pinned = store.get("test", "t")
    assert pinned is not None
    assert "new" not in pinned.to_json()


def test_zero_rows_nulls_and_nans_and_a_field_that_is_masked_later(spark: SparkSession) -> None:
    store = MemoryBaselineStore()
    schema = "x double, empty string, code string"
    contract = build_contract(build_field("x", "double"), build_field("empty", "string"), build_field("code", "string"))
    none = sample_drift(spark.createDataFrame([], schema), contract, store=store, as_of=AT)
    assert (none.findings, none.stored, none.sampled.rows) == ((), False, 0)
    assert none.notes == ("no baseline yet, and none was stored: the sample has no rows",)

    data: list[tuple[Any, ...]] = [(float(at), None, "" if at % 2 else "k") for at in range(200)]
    assert sample_drift(spark.createDataFrame(data, schema), contract, store=store, as_of=AT).stored
    pinned = store.get("test", "t")
    assert pinned is not None
    code, x = pinned.field("code"), pinned.field("x")
    assert code is not None
    assert x is not None
    assert code.values == {'""': 100, '"k"': 100}
    # By sorting: 200 values 0 … 199, interpolated.
    assert {level: x.quantiles[level] for level in ("0", "0.5", "0.9", "1")} == {
        "0": 0.0,
        "0.5": 99.5,
        "0.9": pytest.approx(179.1),
        "1": 199.0,
    }
    assert x.bins == (0, *[20] * 9, 20, 0)
    odd = [(float("nan") if at % 2 else float("inf"), None, None) if at < 40 else data[at] for at in range(200)]
    report = sample_drift(spark.createDataFrame(odd, schema), contract, store=store, as_of=AT)
    assert [(one.kind, one.field, one.observed, one.expected) for one in report.findings][:1] == [
        ("not_finite", "x", 0.2, 0.0)
    ]
    assert ("null_rate", "code", 0.2) in [(one.kind, one.field, one.share) for one in report.findings]

    masked = build_contract(
        build_field("x", "double"), build_field("empty", "string"), build_field("code", "string", pii=True)
    )
    strange = [(float(at), None, SECRET) for at in range(200)]
    hidden = sample_drift(spark.createDataFrame(strange, schema), masked, store=store, as_of=AT)
    assert [(one.kind, one.field, one.value) for one in hidden.findings] == [("distinct", "code", None)]
    kept = store.get("test", "t")
    assert kept is not None
    assert (kept.field("code"), code.values) == (code.without_values(), {'""': 100, '"k"': 100})
    assert '\\"k\\"' not in kept.to_json()
    assert kept.id == pinned.id
    assert SECRET not in hidden.to_json()


def test_arguments_that_contradict_and_tables_that_are_not_there_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    contract, store = build_contract(build_field("id", "bigint")), MemoryBaselineStore()
    with pytest.raises(DataboxError, match="no table"):
        sample_drift(spark, contract, store=store)
    with pytest.raises(DataboxError, match="path and table"):
        sample_drift(spark, contract, store=store, path="a", table="b")
    with pytest.raises(UnreadableTableError, match="there is nothing"):
        sample_drift(spark, contract, store=store, path=tmp_path / "none")
    with pytest.raises(UnreadableTableError, match="no data files"):
        sample_drift(spark, contract, store=store, path=tmp_path)
    (tmp_path / "t.parquet").write_bytes(b"no table")
    with pytest.raises(UnreadableTableError, match=r"t\.parquet is damaged"):
        sample_drift(spark, contract, store=store, path=tmp_path)
    with pytest.raises(DataboxError, match="no field 'nope' to ignore"):
        sample_drift(spark.range(3), contract, store=store, ignore=["nope"])
