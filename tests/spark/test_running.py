"""Wide tables are counted in chunks, each column in one of them, with the results of a single job."""

from __future__ import annotations

import random
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from databox_contracts import rules
from databox_contracts.plan import build_plan
from databox_contracts.results import Status
from databox_contracts.rules import Operator, Threshold
from databox_contracts.spark.failures import SPARK_ERRORS
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.running import COLUMNS, WIDE, chunked, columns_of, run_counts
from databox_contracts.spark.scans import is_a_scan, reads_by_column
from databox_contracts.spark.verification import verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.model import Contract
    from databox_contracts.spark.progress import Progress

WIDTH = WIDE + 15
SOME = Threshold(Operator.GREATER_THAN, 0)


@contextmanager
def job_group(spark: SparkSession) -> Iterator[Callable[[], list[int]]]:
    """The ids of the jobs that run inside."""
    context, name = spark.sparkContext, secrets.token_hex(4)

    def jobs() -> list[int]:
        context._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[union-attr]
        return context.statusTracker().getJobIdsForGroup(name)

    context.setJobGroup(name, "a test")
    try:
        yield jobs
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def wide(spark: SparkSession, width: int = WIDTH) -> DataFrame:
    """Column `vN` has the values N, N + 1, N + 2."""
    return spark.range(3).selectExpr(*(f"id + {at} v{at}" for at in range(width)))


def contract_of(width: int = WIDTH, *more: rules.Rule) -> Contract:
    return build_contract(
        *(
            build_field(f"v{at}", "bigint", rules.Required(), rules.Maximum(limit=at + 1), rules.Minimum(limit=0))
            for at in range(width)
        ),
        rules=more,
    )


def test_chunks_share_no_column_and_leave_no_check_out(spark: SparkSession) -> None:
    far = f"v{WIDTH - 1}"
    contract = contract_of(
        WIDTH,
        rules.Expression(sql=f"v0 <= {far} and v30 >= 0"),
        rules.Expression(sql="1 = 1"),
        rules.RowCount(threshold=SOME),
    )
    verification = Verification(wide(spark), build_plan(contract, contract.dataset(None)))
    checks = [*verification.counted, *verification.measured]
    chunks = chunked(checks)
    assert sorted(check.check.id for chunk in chunks for check in chunk) == sorted(check.check.id for check in checks)
    looked_at = [frozenset().union(*map(columns_of, chunk)) for chunk in chunks]
    assert sorted(name for names in looked_at for name in names) == sorted(f"c{at}" for at in range(WIDTH))
    assert max(map(len, looked_at)) <= COLUMNS
    assert [{"c0", "c30", f"c{WIDTH - 1}"} <= names for names in looked_at] == [True] + [False] * (len(chunks) - 1)
    assert [len(chunked(checks, wide=WIDTH)), len(chunked([]))] == [1, 1]


def test_what_a_statistic_and_a_latency_look_at_is_known(spark: SparkSession) -> None:
    df = spark.sql("select 1 n, now() placed, struct(now() at) o")
    contract = build_contract(
        build_field("n", "int", rules.Statistic(statistic="avg", threshold=SOME)),
        build_field("placed", "timestamp"),
        build_field("o", "struct<at:timestamp>"),
        rules=(
            rules.Freshness(seconds=60, element="placed"),
            rules.Latency(percentile=50, seconds=60, element="placed", arrival_field="o.at"),
        ),
    )
    measured = Verification(df, build_plan(contract, contract.dataset(None))).measured
    assert [sorted(columns_of(one)) for one in measured] == [["c0"], ["c1"], ["c1", "c2"]]


@pytest.mark.classic
def test_a_wide_table_has_the_results_of_a_narrow_one(spark: SparkSession) -> None:
    contract = contract_of(
        WIDTH,
        rules.Expression(sql="concat(v0, 'x') > v70"),
        rules.Expression(sql="v5 < 7"),
        rules.RequiredWhen(condition="v1 / v0 > 1"),
    )
    seen: list[Progress] = []
    with job_group(spark) as jobs:
        verdict = verify(wide(spark), contract, progress=seen.append)
    by_id = {result.id: result for result in verdict.results}
    assert verdict.row_count == 3
    for at in range(WIDTH):
        assert by_id[f"t.v{at}.required"].status is Status.PASSED
        assert by_id[f"t.v{at}.minimum"].failed_count == 0
        assert (by_id[f"t.v{at}.maximum"].failed_count, by_id[f"t.v{at}.maximum"].samples) == (1, (at + 2,))
    assert by_id["t.expression"].message == "could not be evaluated: it fails on a row: Spark says CAST_INVALID_INPUT"
    assert (by_id["t.expression_2"].status, by_id["t.expression_2"].failed_count) == (Status.FAILED, 1)
    assert by_id["t.required_when"].message == "could not be evaluated: a required_when rule is about one field"
    parts = {(one.done, one.parts) for one in seen if one.doing == "counting rows"}
    assert {done for done, _ in parts} == set(range(max(of for _, of in parts) + 1))
    # Chunks of at most ten columns; jobs of other threads are still this one's.
    assert len(jobs()) >= WIDTH // COLUMNS


def test_a_table_that_changes_between_chunks_is_counted_in_one_job(spark: SparkSession) -> None:
    chance = F.udf(lambda: random.random() < 0.5, "boolean").asNondeterministic()
    df = spark.range(400).where(chance()).selectExpr(*(f"id v{at}" for at in range(8)))
    contract = build_contract(*(build_field(f"v{at}", "bigint", rules.Maximum(limit=-1)) for at in range(8)))
    verification = Verification(df, build_plan(contract, contract.dataset(None)))
    chunks = [[check] for check in verification.counted]
    counts = run_counts(verification.view, chunks)
    assert [list(counts.found[f"t.v{at}.maximum"]) for at in range(8)] == [[counts.rows]] * 8


PLANS = [
    ("""== Physical Plan ==\n*(1) Project [a AS c0]\n+- *(1) Range (0, 3)""", True),
    ("""== Physical Plan ==\nAdaptiveSparkPlan isFinalPlan=false\n+- InMemoryTableScan [a, b]""", True),
    ("""== Physical Plan ==\nAdaptiveSparkPlan isFinalPlan=false\n+- HashAggregate(keys=[a])""", False),
    ("""== Physical Plan ==\n*(1) ColumnarToRow\n+- FileScan parquet [a] Batched: true""", True),
    ("""== Physical Plan ==\nFileScan csv [a] Batched: false""", False),
    ("""== Physical Plan ==\n*(1) Filter (a > 0)\n+- FileScan parquet [a]""", False),
    ("""== Physical Plan ==\nMystery\n+- FileScan parquet [a]""", False),
    ("""== Physical Plan ==\n\n""", False),
    ("", False),
]


@pytest.mark.parametrize(("plan", "cheap"), PLANS)
def test_only_a_scan_of_columns_is_read_by_several_jobs(plan: str, cheap: bool) -> None:
    assert is_a_scan(plan) is cheap


def test_which_tables_are_read_by_several_jobs(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("parquet", "orc", "json"):
        spark.range(3).selectExpr("id `a b`", "id c").write.format(name).save(str(tmp_path / name))
    files = {name: spark.read.format(name).load(str(tmp_path / name)) for name in ("parquet", "orc", "json")}
    assert {name: reads_by_column(df.toDF("x", "y")) for name, df in files.items()} == {
        "parquet": True,
        "orc": True,
        "json": False,
    }
    assert reads_by_column(files["json"].cache())
    files["json"].unpersist()
    parquet = files["parquet"]
    for costly in (
        parquet.where("c > 0"),
        parquet.join(spark.range(2).toDF("c"), "c"),
        parquet.distinct(),
        parquet.union(parquet),
        parquet.limit(1),
        parquet.select(F.udf(lambda value: value, "bigint")("c")),
    ):
        assert not reads_by_column(costly)
    assert not [table.name for table in spark.catalog.listTables() if table.name.startswith("databox_")]


def test_an_error_of_the_table_itself_passes_through(spark: SparkSession) -> None:
    df = wide(spark).withColumn("v20", F.expr("assert_true(v20 < 0)").cast("bigint"))
    with pytest.raises(SPARK_ERRORS):
        verify(df, contract_of())


@pytest.mark.full
def test_two_thousand_rules_run_over_few_columns_and_over_many(spark: SparkSession) -> None:
    for width in (20, 250):
        each = 2000 // width
        fields = (
            build_field(f"v{at}", "bigint", *(rules.Maximum(limit=at + n % 3) for n in range(each)))
            for at in range(width)
        )
        verdict = verify(wide(spark, width), build_contract(*fields), samples=1)
        counts = [result.failed_count for result in verdict.results if result.rule == "maximum"]
        assert counts == [2 - n % 3 for _ in range(width) for n in range(each)]
