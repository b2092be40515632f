from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError, UnknownDatasetError
from databox_contracts.model import Governance, Mode, SchemaModes
from databox_contracts.results import Status
from databox_contracts.rules import Operator, Severity, Threshold, Unit
from databox_contracts.spark.verification import enforce, verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.results import Verdict

NOTHING = Threshold(Operator.MUST_BE, 0)


def statuses(verdict: Verdict) -> dict[str, str]:
    return {result.id: str(result.status) for result in verdict.results}


def stages(spark: SparkSession) -> list[dict[str, Any]]:
    """Every stage that Spark ran so far, by its own account."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[union-attr]
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages?status=complete"
    with urllib.request.urlopen(url, timeout=30) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    rows = [(1, "Ada", 36), (2, "Bob", -1), (2, None, 200), (3, "", 0), (None, "Ada", None)]
    return spark.createDataFrame(rows, "id int, name string, age int")  # type: ignore[type-var]


def test_every_rule_has_a_result_in_declaration_order(people: DataFrame) -> None:
    contract = build_contract(
        build_field("id", "int", rules.Required()),
        build_field("name", "string", rules.MinLength(length=1), rules.Required(severity=Severity.WARNING)),
        build_field("age", "int", rules.Minimum(limit=0), rules.Maximum(limit=120)),
        rules=(
            rules.PrimaryKey(fields=("id",)),
            rules.RowCount(threshold=Threshold(Operator.BETWEEN, 1, 5)),
            rules.NotEnforced(reason="it is prose"),
        ),
        dataset="people",
    )
    verdict = verify(people, contract)
    assert statuses(verdict) == {
        "people.id.present": "passed",
        "people.id.type": "passed",
        "people.id.required": "failed",
        "people.name.present": "passed",
        "people.name.type": "passed",
        "people.name.min_length": "failed",
        "people.name.required": "failed",
        "people.age.present": "passed",
        "people.age.type": "passed",
        "people.age.minimum": "failed",
        "people.age.maximum": "failed",
        "people.undeclared": "passed",
        "people.primary_key": "failed",
        "people.row_count": "passed",
        "people.not_enforced": "skipped",
    }
    by_id = {result.id: result for result in verdict.results}
    assert verdict.row_count == 5
    assert by_id["people.age.minimum"].failed_count == 1
    assert by_id["people.age.minimum"].samples == (-1,)
    assert by_id["people.age.minimum"].message == "1 of 5 rows (20 %) are below 0"
    assert by_id["people.name.min_length"].samples == ("",)
    assert by_id["people.primary_key"].failed_count == 1
    assert by_id["people.primary_key"].samples == (2,)
    assert not verdict.passed
    assert json.loads(verdict.to_json())["results"][9] == {
        "id": "people.age.minimum",
        "rule": "minimum",
        "field": "age",
        "severity": "error",
        "dimension": "accuracy",
        "status": "failed",
        "failed_count": 1,
        "observed": 1,
        "threshold": "= 0",
        "samples": [-1],
        "message": "1 of 5 rows (20 %) are below 0",
    }


def test_a_failed_warning_does_not_stop_the_table(people: DataFrame) -> None:
    contract = build_contract(
        build_field("id", "int"),
        build_field("name", "string", rules.Required(severity=Severity.WARNING)),
        build_field("age", "int", rules.Minimum(limit=0, severity=Severity.INFO)),
    )
    verdict = verify(people, contract)
    assert verdict.passed
    assert [result.id for result in verdict.violations] == ["t.name.required", "t.age.minimum"]
    assert enforce(people, contract) is people


def test_enforce_raises_with_the_verdict(people: DataFrame) -> None:
    contract = build_contract(build_field("id", "int", rules.Required()), build_field("name"), build_field("age"))
    with pytest.raises(ContractViolationError) as error:
        enforce(people, contract)
    assert [result.id for result in error.value.verdict.violations] == ["t.id.required"]
    assert str(error.value) == (
        "t against test 1.0.0: 1 of 6 rules violated: t.id.required: 1 of 5 rows (20 %) are null"
    )


@pytest.mark.parametrize(
    ("declared", "had", "holds"),
    [
        ("int", "int", True),
        ("int", "bigint", False),
        ("bigint", "int", False),
        ("decimal(10,2)", "decimal(10,2)", True),
        ("decimal(10,2)", "decimal(12,2)", False),
        ("decimal", "decimal(3,1)", True),
        ("number", "int", True),
        ("number", "string", False),
        ("varchar(3)", "string", True),
        ("timestamp", "timestamp_ntz", True),
        ("timestamp_ntz", "timestamp", False),
        ("array<int>", "array<bigint>", False),
        ("array", "array<bigint>", True),
        ("struct<a:int>", "struct<a:int>", True),
        ("map<string,int>", "map<string,string>", False),
    ],
)
def test_types_count_with_width_and_precision(spark: SparkSession, declared: str, had: str, holds: bool) -> None:
    verdict = verify(spark.createDataFrame([], f"v {had}"), build_contract(build_field("v", declared)))
    assert verdict.passed is holds


def test_missing_and_undeclared_columns(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, 2, (3, 4))], "a int, extra int, o struct<x:int,y:int>")  # type: ignore[type-var]
    contract = build_contract(
        build_field("a", "int"),
        build_field("gone", "int", rules.Required()),
        build_field("o", "struct<x:int,z:int>"),
        rules=(rules.Unique(fields=("a", "gone")),),
    )
    verdict = verify(df, contract)
    by_id = {result.id: result for result in verdict.results}
    assert by_id["t.gone.present"].status is Status.FAILED
    assert by_id["t.gone.present"].message == "the table has no column gone; the contract promises gone"
    assert by_id["t.gone.required"].status is Status.NOT_EVALUATED
    assert by_id["t.o.z.present"].status is Status.FAILED
    assert by_id["t.unique"].status is Status.NOT_EVALUATED
    assert by_id["t.undeclared"].observed == ["extra", "o.y"]
    allowed = build_contract(build_field("a", "int"), build_field("o", "object")).model_copy()
    evolving = allowed.model_copy(
        update={"datasets": (allowed.datasets[0].model_copy(update={"modes": SchemaModes(columns=Mode.EVOLVE)}),)}
    )
    assert not verify(df, allowed).passed
    assert verify(df, evolving).passed


def test_a_rule_on_a_column_of_another_type_is_not_evaluated_and_fails(spark: SparkSession) -> None:
    df = spark.createDataFrame([("5",)], "v string")  # type: ignore[type-var]
    verdict = verify(df, build_contract(build_field("v", "int", rules.Minimum(limit=0), rules.Required())))
    assert statuses(verdict)["t.v.minimum"] == "not_evaluated"
    assert statuses(verdict)["t.v.required"] == "passed"
    assert not verdict.passed


def test_what_this_version_cannot_judge_at_all_is_skipped_and_said(spark: SparkSession) -> None:
    df = spark.createDataFrame([("x",)], "v string")  # type: ignore[type-var]
    contract = build_contract(
        build_field("v", "string", rules.Format(format="morse")),
        rules=(rules.Latency(percentile=99, seconds=60),),
    )
    verdict = verify(df, contract)
    assert verdict.passed
    assert {result.id: result.message for result in verdict.with_status(Status.SKIPPED)} == {
        "t.v.format": "not enforced: this version does not evaluate the format 'morse'",
        "t.latency": "not enforced: it names no field of a row's arrival",
    }


def test_counts_against_thresholds_in_rows_and_percent(spark: SparkSession) -> None:
    df = spark.range(1000).selectExpr("if(id < 10, null, id) v", "id % 500 k")
    at_most_1_percent = Threshold(Operator.LESS_OR_EQUAL, 1, unit=Unit.PERCENT)
    contract = build_contract(
        build_field(
            "v",
            "bigint",
            rules.NullCount(threshold=at_most_1_percent),
            rules.NullCount(threshold=Threshold(Operator.LESS_THAN, 1, unit=Unit.PERCENT)),
            rules.NullCount(threshold=Threshold(Operator.MUST_BE, 10)),
            rules.NullCount(threshold=Threshold(Operator.NOT_BETWEEN, 9, 11)),
        ),
        build_field("k", "bigint", rules.DuplicateCount(threshold=Threshold(Operator.MUST_BE, 500))),
        rules=(rules.DuplicateCount(fields=("k", "v"), threshold=Threshold(Operator.MUST_BE, 1)),),
    )
    verdict = verify(df, contract)
    by_id = {result.id: result for result in verdict.results}
    assert by_id["t.v.null_count"].status is Status.PASSED
    assert by_id["t.v.null_count"].observed == 1.0
    assert by_id["t.v.null_count_2"].status is Status.FAILED
    assert by_id["t.v.null_count_2"].message == "10 of 1000 rows (1 %) are null; promised is < 1%"
    assert by_id["t.v.null_count_3"].status is Status.PASSED
    assert by_id["t.v.null_count_4"].status is Status.FAILED
    assert by_id["t.k.duplicate_count"].status is Status.PASSED
    assert by_id["t.duplicate_count"].failed_count == 0
    assert by_id["t.duplicate_count"].status is Status.FAILED


def test_an_empty_table_keeps_row_rules_and_fails_a_row_count(spark: SparkSession) -> None:
    df = spark.createDataFrame([], "v int")
    contract = build_contract(
        build_field("v", "int", rules.Required(), rules.NullCount(threshold=NOTHING), rules.Unique()),
        rules=(rules.RowCount(threshold=Threshold(Operator.GREATER_THAN, 0)),),
    )
    verdict = verify(df, contract)
    assert [result.id for result in verdict.violations] == ["t.row_count"]
    assert verdict.row_count == 0


def test_a_table_without_columns(spark: SparkSession) -> None:
    df = spark.range(3).select()
    assert verify(df, build_contract()).row_count == 3
    assert [result.id for result in verify(df, build_contract(build_field("v"))).violations] == ["t.v.present"]


def test_an_unknown_dataset_is_named_with_those_there_are(people: DataFrame) -> None:
    with pytest.raises(UnknownDatasetError, match=r"has no dataset 'nope'\. Name one of: t"):
        verify(people, build_contract(), "nope")


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 7])
def test_keys_count_surplus_rows_and_skip_null_parts(spark: SparkSession, partitions: int) -> None:
    rows = [(1, "a"), (1, "a"), (1, "a"), (1, "b"), (2, None), (2, None), (None, None), (3, "c"), (3, "c")]
    df = spark.createDataFrame(rows, "x int, y string").repartition(partitions)  # type: ignore[type-var]
    contract = build_contract(
        build_field("x", "int", rules.Unique()), build_field("y", "string"), rules=(rules.Unique(fields=("x", "y")),)
    )
    by_id = {result.id: result for result in verify(df, contract).results}
    assert by_id["t.x.unique"].failed_count == 5
    assert by_id["t.x.unique"].samples == (1, 2, 3)
    assert by_id["t.unique"].failed_count == 3
    assert by_id["t.unique"].samples == ({"x": 1, "y": "a"}, {"x": 3, "y": "c"})
    assert by_id["t.unique"].message == ("3 of 9 rows (33.3 %) repeat a key: 2 keys of (x, y) occur more than once")


def test_more_repeated_keys_than_can_be_named_in_a_query(spark: SparkSession) -> None:
    df = spark.range(3000).selectExpr("id % 1500 v", "id % 2 w")
    contract = build_contract(build_field("v", "bigint", rules.Unique()), build_field("w", "bigint"))
    [result] = verify(df, contract).violations
    assert (result.failed_count, result.samples) == (1500, (0, 1, 2, 3, 4))
    assert "1500 keys of (v)" in result.message


def test_equal_hashes_of_different_keys_are_no_duplicates(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    # No two short keys with one 64-bit hash are known, so the hash is made a poor one.
    monkeypatch.setattr(F, "xxhash64", lambda *parts: F.length(F.concat(*parts)).cast("bigint"))
    df = spark.createDataFrame([("aa",), ("bb",), ("cc",), ("cc",), ("d",)], "v string")  # type: ignore[type-var]
    [result] = verify(df, build_contract(build_field("v", "string", rules.Unique()))).violations
    assert (result.failed_count, result.samples) == (1, ("cc",))
    other = spark.createDataFrame([("aa",), ("bb",)], "v string")  # type: ignore[type-var]
    assert verify(other, build_contract(build_field("v", "string", rules.Unique()))).passed


def test_floating_point_keys_are_compared_as_values(spark: SparkSession) -> None:
    df = spark.createDataFrame([(0.0,), (-0.0,), (float("nan"),), (float("nan"),)], "v double")  # type: ignore[type-var]
    result = verify(df, build_contract(build_field("v", "double", rules.Unique()))).results[-2]
    assert (result.id, result.failed_count) == ("t.v.unique", 2)


def test_a_key_may_have_parts_inside_objects_and_not_inside_arrays(spark: SparkSession) -> None:
    df = spark.createDataFrame([((1,), [1]), ((1,), [2])], "o struct<n:int>, a array<int>")  # type: ignore[type-var]
    contract = build_contract(
        build_field("o", "struct<n:int>"),
        build_field("a", "array<int>"),
        rules=(rules.Unique(fields=("o.n",)), rules.Unique(fields=("a",))),
    )
    by_id = {result.id: result for result in verify(df, contract).results}
    assert by_id["t.unique"].failed_count == 1
    assert by_id["t.unique_2"].failed_count == 0


# --- samples and masking ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 5])
def test_samples_are_five_distinct_values_however_rows_lie(spark: SparkSession, partitions: int) -> None:
    df = spark.range(1000).selectExpr("id % 9 + 1 v", "repeat('x', 300) s").repartition(partitions)
    contract = build_contract(
        build_field("v", "bigint", rules.Maximum(limit=0)), build_field("s", "string", rules.MaxLength(length=3))
    )
    by_id = {result.id: result for result in verify(df, contract).results}
    assert by_id["t.v.maximum"].samples == (1, 2, 3, 4, 5)
    assert by_id["t.s.max_length"].samples == ("x" * 200,)
    assert verify(df, contract, samples=0).violations[0].samples == ()


@pytest.mark.parametrize(
    ("facts", "governance", "shown"),
    [
        ({}, {}, True),
        ({"pii": True}, {}, False),
        ({"classification": "restricted"}, {}, False),
        ({"classification": "Internal"}, {}, True),
        ({"classification": "public"}, {}, True),
        ({"tags": ("PII",)}, {}, False),
        ({}, {"pii_class": "B"}, False),
        ({"pii": False}, {"pii_class": "B"}, True),
        ({"pii": False, "classification": "secret"}, {}, False),
    ],
)
def test_values_of_masked_fields_are_absent_and_counts_stay(
    spark: SparkSession, facts: dict[str, Any], governance: dict[str, Any], shown: bool
) -> None:
    df = spark.createDataFrame([("s3cret",), ("s3cret",)], "v string")  # type: ignore[type-var]
    contract = build_contract(
        build_field("v", "string", rules.MaxLength(length=1), rules.Unique(), rules.Enum(values=("a",)), **facts),
        rules=(rules.Unique(fields=("v",)),),
        governance=Governance(**governance),
    )
    verdict = verify(df, contract)
    assert [result.failed_count for result in verdict.violations] == [2, 1, 2, 1]
    assert ("s3cret" in verdict.to_json()) is shown


def test_an_object_is_masked_with_any_of_its_parts(spark: SparkSession) -> None:
    df = spark.createDataFrame([([("s3cret", 1)],)], "a array<struct<s:string,n:int>>")  # type: ignore[type-var]
    item = build_field(
        "item", "object", fields=(build_field("s", "string", pii=True), build_field("n", "int", rules.Minimum(limit=5)))
    )
    contract = build_contract(build_field("a", "array", rules.MaxItems(count=0), item=item))
    verdict = verify(df, contract)
    assert {result.id: result.samples for result in verdict.violations} == {"t.a.max_items": (), "t.a.n.minimum": (1,)}
    assert "s3cret" not in verdict.to_json()


# --- names ------------------------------------------------------------------------------------------------------------


def test_any_column_name_can_be_verified(spark: SparkSession) -> None:
    names = ["select", "a.b", "c`d", "e f", "ü", "c0", "x'y", "0"]
    df = spark.createDataFrame([tuple(range(len(names)))], [*names])
    contract = build_contract(
        *(build_field(name, "bigint", rules.Maximum(limit=-1), rules.Unique()) for name in names),
        rules=(rules.PrimaryKey(fields=("a.b", "c`d")),),
    )
    verdict = verify(df, contract)
    assert [(result.rule, result.failed_count, result.samples) for result in verdict.violations] == [
        ("maximum", 1, (at,)) for at in range(len(names))
    ]


def test_columns_that_differ_in_case_alone(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, 2)], ["a", "A"])
    verdict = verify(df, build_contract(build_field("a", "bigint", rules.Maximum(limit=1))))
    assert [(result.id, result.observed) for result in verdict.violations] == [("t.undeclared", ["A"])]
    ambiguous = verify(spark.createDataFrame([(1, 2)], ["aB", "Ab"]), build_contract(build_field("ab", "bigint")))
    assert ambiguous.results[0].message == "the table has 2 columns named ab; the contract promises ab"


# --- cost -------------------------------------------------------------------------------------------------------------


@pytest.mark.classic
def test_a_clean_verification_of_thirty_columns_is_one_scan(spark: SparkSession, tmp_path: Any) -> None:
    names = [f"c{at:02}" for at in range(30)]
    clock = datetime(2024, 1, 1, tzinfo=UTC)
    table = str(tmp_path / "wide")
    spark.range(5000, numPartitions=3).selectExpr(
        *(f"id + {at} {name}" for at, name in enumerate(names)), "timestamp'2023-12-31 00:00:00Z' at"
    ).write.parquet(table)
    contract = build_contract(
        *(
            build_field(
                name,
                "bigint",
                rules.Required(),
                rules.Minimum(limit=0),
                rules.Maximum(limit=10_000),
                rules.MultipleOf(divisor=1),
                rules.NullCount(threshold=Threshold(Operator.LESS_THAN, 5, unit=Unit.PERCENT)),
                rules.Statistic(statistic="avg", threshold=Threshold(Operator.GREATER_THAN, 0)),
            )
            for name in names
        ),
        build_field("at", "timestamp", rules.Required()),
        rules=(
            rules.RowCount(threshold=Threshold(Operator.MUST_BE, 5000)),
            rules.Freshness(seconds=90_000),
            rules.Retention(seconds=90_000),
            rules.Latency(percentile=95, seconds=0, arrival_field="at"),
            rules.Expression(sql="c01 / c00 > 0"),
        ),
    )
    df = spark.read.parquet(table)
    before = {stage["stageId"] for stage in stages(spark)}
    verdict = verify(df, contract, as_of=clock)
    assert [result.id for result in verdict.results if not result.passed] == []
    new = [stage for stage in stages(spark) if stage["stageId"] not in before]
    scans = [stage for stage in new if stage["inputRecords"] > 0]
    assert [stage["inputRecords"] for stage in scans] == [5000]


@pytest.mark.full
def test_a_contract_of_a_thousand_fields(spark: SparkSession) -> None:
    df = spark.range(10).selectExpr(*(f"id v{at}" for at in range(1000)))
    contract = build_contract(*(build_field(f"v{at}", "bigint", rules.Required()) for at in range(1000)))
    verdict = verify(df, contract)
    assert verdict.passed
    assert len(verdict.results) == 3001


def test_samples_of_a_rule_that_many_rows_break(spark: SparkSession) -> None:
    """The same five whatever the partitions are, and all there are where they are fewer."""
    table = spark.range(30_000).selectExpr(
        "cast(id as string) many",
        "if(id = 7, 'rare', 'often') few",
        "array(id, -1) items",
        "map('k', id % 2) dictionary",
    )
    contract = build_contract(
        build_field("many", "string", rules.Pattern(pattern="^x")),
        build_field("few", "string", rules.Enum(values=("never",))),
        build_field("items", "array<bigint>", item=build_field("item", "bigint", rules.Minimum(limit=100_000))),
        build_field("dictionary", "map<string,bigint>", rules.Expression(sql="size(dictionary) > 1")),
    )
    shown = []
    for partitions in (1, 7):
        by_id = {result.id: result for result in verify(table.repartition(partitions), contract).results}
        assert {by_id[id_].failed_count for id_ in by_id if by_id[id_].status is Status.FAILED} == {30_000}
        assert by_id["t.few.enum"].samples == ("often", "rare")
        assert by_id["t.dictionary.expression"].samples == ({"k": 0}, {"k": 1})
        many, items = by_id["t.many.pattern"].samples, by_id["t.items.item.minimum"].samples
        assert len(set(many)) == len(set(items)) == 5
        assert all(0 <= int(text) < 30_000 for text in many)
        assert all(-1 <= item < 30_000 for item in items)
        assert list(many) == sorted(many)
        shown.append((many, items))
    assert shown[0] == shown[1]
