"""What a publish reads of what it wrote: nothing that is known already."""

from __future__ import annotations

import json
import re
import urllib.request
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from databox_contracts import rules
from databox_contracts.errors import DataboxError
from databox_contracts.rules import Operator, Severity, Threshold
from databox_contracts.spark import TablePlace, publish, verify
from databox_contracts.spark.footers import NAN_IS_LARGEST, data_files
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.model import Contract
    from databox_contracts.results import Verdict

AS_OF = datetime(2024, 1, 2, tzinfo=UTC)
NONE = Threshold(Operator.MUST_BE, 0)
AT_LEAST_ONE = Threshold(Operator.GREATER_OR_EQUAL, 1)
UUID = "'00000000-0000-4000-8000-000000000000'"
HELD = "the rows that the write set apart"
WRITE = "the write, which held every row against it"
FILES = "statistics of the files just written"


def asked(spark: SparkSession, what: str) -> list[dict[str, Any]]:
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    with urllib.request.urlopen(f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/{what}") as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found


class Watch:
    """The jobs that Spark ran since, and the columns that each of its queries read from files."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        # Of earlier jobs Spark remembers only the latest.
        self.last = max((job["jobId"] for job in asked(spark, "jobs")), default=-1)

    def jobs(self) -> int:
        return len([job for job in asked(self.spark, "jobs") if job["jobId"] > self.last])

    def scans(self) -> list[str]:
        """Of each query with a job since then, what it read: `held: state` where only rows that were set apart."""
        found = []
        for query in asked(self.spark, "sql?details=true&planDescription=true&length=100000"):
            plan = query.get("planDescription", "")
            read = re.search(r"ReadSchema: struct<(.*)>", plan)
            if read is not None and any(job > self.last for job in query["successJobIds"]):
                place = re.search(r"Location: \w+ ?\(?.*\[(.*)\]", plan)
                assert place is not None
                only_held = "held_" in place[1] and "," not in place[1]
                found.append(("held: " if only_held else "") + read[1])
        return found


def orders(spark: SparkSession, *, rows: int = 50, state: str = "'open'", extra: str = "0") -> DataFrame:
    return spark.sql(f"""
        select id, {UUID} as number, {state} as state, cast(id / 2 as double) as price, {extra} as late,
               timestamp'2024-01-01 12:00:00' as placed_at
        from range(0, {rows}, 1, 3)
    """)


def contract(*, values: bool, warning: str | None = None, key: bool = False) -> Contract:
    about_values = (rules.Enum(values=("open", "done")),) if values else ()
    own: tuple[rules.Rule, ...] = (rules.RowCount(threshold=AT_LEAST_ONE),)
    if warning is not None:
        own += (rules.Expression(sql=warning, severity=Severity.WARNING),)
    if key:
        own += (rules.PrimaryKey(fields=("id",)),)
    return build_contract(
        build_field("id", "bigint", rules.Required(), rules.Minimum(limit=0)),
        build_field("number", "string", rules.Required(), *([rules.Format(format="uuid")] if values else [])),
        build_field("state", "string", rules.Required(), *about_values),
        build_field("price", "double", rules.ExclusiveMaximum(limit=1000), rules.NullCount(threshold=NONE)),
        build_field("late", "int"),
        build_field("placed_at", "timestamp", rules.Required(), rules.Freshness(seconds=86_400)),
        rules=own,
        dataset="orders",
    )


def hows(verdict: Verdict) -> dict[str, str]:
    return {result.id.removeprefix("orders."): result.how for result in verdict.results}


@pytest.fixture
def place(tmp_path: Path) -> TablePlace:
    return TablePlace(tmp_path, "orders")


@pytest.fixture
def _fractions_are_told(spark: SparkSession, tmp_path: Path) -> None:
    """Skips where Spark's Parquet writer is not known to show a NaN in its footers: fractions are read again then."""
    spark.range(1).write.parquet(str(tmp_path / "writer"))
    written = next((tmp_path / "writer").glob("*.parquet"))
    if not pq.ParquetFile(written).metadata.created_by.startswith(NAN_IS_LARGEST):
        pytest.skip("this Spark's Parquet writer is not known to show a NaN: fractions are read")


@pytest.mark.classic
@pytest.mark.usefixtures("_fractions_are_told")
def test_where_no_rule_needs_the_values_the_write_is_the_only_job(spark: SparkSession, place: TablePlace) -> None:
    watch = Watch(spark)
    publication = publish(orders(spark), contract(values=False), place=place, as_of=AS_OF)
    assert watch.jobs() == 1
    assert publication.rows_published == 50
    answered = hows(publication.verdict)
    assert answered.pop("undeclared") == "the table's schema"
    assert {id_: how for id_, how in answered.items() if not id_.endswith((".type", ".present"))} == dict.fromkeys(
        [
            "id.required", "id.minimum", "number.required", "state.required", "price.exclusive_maximum",
            "price.null_count", "placed_at.required", "placed_at.freshness", "row_count",
        ],
        FILES,
    )  # fmt: skip


@pytest.mark.classic
def test_an_empty_table_and_a_nan_are_judged_as_they_are(spark: SparkSession, place: TablePlace) -> None:
    watch = Watch(spark)
    empty = publish(
        orders(spark, rows=0), contract(values=True, key=True), place=place, on_violation="warn", as_of=AS_OF
    )
    assert watch.jobs() <= 1
    assert [result.id for result in empty.verdict.violations] == ["orders.placed_at.freshness", "orders.row_count"]
    nan = orders(spark).withColumn("price", F.expr("if(id = 7, double('nan'), 1.0D)"))
    found = publish(nan, contract(values=False), place=place, on_violation="warn", as_of=AS_OF)
    assert [(result.id, result.failed_count) for result in found.verdict.violations] == [
        ("orders.price.exclusive_maximum", 1)
    ]


@pytest.mark.classic
@pytest.mark.usefixtures("_fractions_are_told")
def test_only_what_the_files_do_not_tell_is_read_and_only_in_its_columns(
    spark: SparkSession, place: TablePlace
) -> None:
    watch = Watch(spark)
    publication = publish(orders(spark), contract(values=True), place=place, as_of=AS_OF)
    assert watch.scans() == ["number:string,state:string"]
    assert hows(publication.verdict)["state.enum"] == "the scan, of state: statistics do not tell it"
    assert hows(publication.verdict)["state.required"] == FILES


@pytest.mark.classic
def test_where_the_write_sets_no_row_apart_it_is_the_only_job_too(spark: SparkSession, place: TablePlace) -> None:
    watch = Watch(spark)
    publication = publish(orders(spark), contract(values=True), place=place, on_violation="quarantine", as_of=AS_OF)
    assert watch.jobs() == 1
    assert hows(publication.verdict)["state.enum"] == hows(publication.verdict)["number.format"] == WRITE


@pytest.mark.classic
def test_rows_that_stay_are_not_read_for_rules_that_the_write_judged(spark: SparkSession, place: TablePlace) -> None:
    df = orders(spark, state="if(id % 10 = 3, concat('lost', id), 'open')", extra="cast(id as int)")
    promised = contract(values=True, warning="late < 40", key=True)
    watch = Watch(spark)
    publication = publish(df, promised, place=place, on_violation="quarantine", as_of=AS_OF)
    scans = watch.scans()
    assert (publication.rows_published, publication.rows_quarantined) == (45, 5)
    assert publication.verdict.to_dict() == verify(df, promised, as_of=AS_OF).to_dict()
    assert [result.samples for result in publication.verdict.violations if result.field == "state"] == [
        ("lost13", "lost23", "lost3", "lost33", "lost43")
    ]
    assert {id_: how for id_, how in hows(publication.verdict).items() if id_ in ("state.enum", "number.format")} == {
        "state.enum": HELD,
        "number.format": HELD,
    }
    # Of all rows only what no write can tell: the condition, twice since rows were taken out, and the key once.
    of_all = sorted(scan for scan in scans if not scan.startswith("held: "))
    assert of_all == ["id:bigint", "late:int", "late:int"]


def test_statistics_of_others_are_used_only_when_asked(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    option = "spark.sql.parquet.outputTimestampType"
    before = str(spark.conf.get(option))
    spark.conf.set(option, "INT96")
    try:
        orders(spark).write.parquet(str(path))
    finally:
        spark.conf.set(option, before)
    df = spark.read.parquet(str(path))
    promised = contract(values=False)
    plain = verify(df, promised, as_of=AS_OF)
    assert hows(plain)["id.minimum"] == "the scan, of id"
    trusted = verify(df, promised, as_of=AS_OF, trusted_files=data_files(path))
    assert trusted.to_dict() == plain.to_dict()
    assert hows(trusted)["id.minimum"] == "statistics of the files, which were to be trusted"
    # INT96, as Spark writes times unless it is told otherwise, has no maximum.
    assert hows(trusted)["placed_at.freshness"].startswith("the scan, of placed_at")
    with pytest.raises(DataboxError, match="has 50 rows, and the statistics of its files say"):
        verify(df, promised, as_of=AS_OF, trusted_files=data_files(path)[:1])


def test_the_explanation_is_no_part_of_a_result(spark: SparkSession) -> None:
    verdict = verify(orders(spark), contract(values=True, key=True), as_of=AS_OF)
    assert all("how" not in result for result in verdict.to_dict()["results"])
    explained = {result["id"]: result.pop("how") for result in verdict.to_dict(explain=True)["results"]}
    assert explained["orders.primary_key"] == "hashes of the key (id)"
    assert explained["orders.id.present"] == "the table's schema"
    assert explained["orders.row_count"] == "the scan"
    assert all(explained.values())
