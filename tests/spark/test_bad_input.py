"""What an author or a table may do wrong, on every way in: a correct verdict, or an error that names the rule."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from databox_contracts import dump_contract, rules
from databox_contracts.cli import main
from databox_contracts.errors import ContractViolationError, DataboxError, PublicationError
from databox_contracts.results import Status
from databox_contracts.spark import (
    TablePlace,
    enforce_stream,
    publish,
    quarantine,
    read_published,
    sample_drift,
    verify,
)
from databox_contracts.testing import MemoryBaselineStore, build_contract, build_field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.model import Contract


@pytest.fixture(params=["true", "false"], ids=["ansi", "not ansi"])
def ansi(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param
    spark.conf.set("spark.sql.ansi.enabled", str(before))


def command(capsys: pytest.CaptureFixture[str], contract: Contract, df: DataFrame, root: Path) -> tuple[int, str, str]:
    """What the command line says of the same table and contract."""
    (root / "contract.yaml").write_text(dump_contract(contract), encoding="utf-8")
    df.write.parquet(str(root / "data.parquet"))
    capsys.readouterr()
    code = main(["verify", str(root / "contract.yaml"), "--data", str(root / "data.parquet")])
    return code, *capsys.readouterr()


def held(df: DataFrame, key: str) -> dict[Any, list[str]]:
    return {row[0]: [why.split(".", 1)[1] for why in row[1]] for row in df.select(key, "_quarantine_reason").collect()}


# --- what cannot be run -----------------------------------------------------------------------------------------------

CANNOT_RUN: Final = {
    "v in (select max(v) from t)": "holds a query or a statement",
    "exists (select 1)": "holds a query or a statement",
    "drop table t": "no condition that can be read",
    "v > 1; delete from t": "no condition that can be read",
    "create table x as select 1": "no condition that can be read",
    "v >": "no condition that can be read",
    "nobody > 1": "names nobody, which the table does not have",
}


def test_sql_that_may_not_run_is_told_by_its_rule_on_every_way_in(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contract = build_contract(
        build_field("v", "int", rules.Maximum(limit=5), rules.RequiredWhen(condition="(select true)")),
        build_field("s", "string", rules.Pattern(pattern=r"^(a+)+\1$"), rules.Pattern(pattern="(")),
        rules=tuple(rules.Expression(sql=sql) for sql in CANNOT_RUN),
    )
    df = spark.createDataFrame([(1, "a" * 60 + "!"), (9, None)], "v int, s string")  # type: ignore[type-var]
    verdict = verify(df, contract)
    conditions = [result for result in verdict.results if result.rule == "expression"]
    told = [
        (result.status, reason in result.message)
        for result, reason in zip(conditions, CANNOT_RUN.values(), strict=True)
    ]
    assert told == [(Status.NOT_EVALUATED, True)] * len(CANNOT_RUN), [result.message for result in conditions]
    others = {result.id: result for result in verdict.results if result.rule in ("pattern", "required_when", "maximum")}
    assert {id_: result.status.value for id_, result in others.items()} == {
        "t.v.maximum": "failed",
        "t.v.required_when": "not_evaluated",
        "t.s.pattern": "not_evaluated",
        "t.s.pattern_2": "not_evaluated",
    }
    assert "'^(a+)+\\\\1$' has a backreference" in others["t.s.pattern"].message
    assert "its pattern '(' has a group that is not closed" in others["t.s.pattern_2"].message
    wanted = {result.id for result in verdict.results if result.status is Status.NOT_EVALUATED}

    for how in ("fail", "quarantine"):
        with pytest.raises(ContractViolationError) as refused:
            publish(df, contract, place=TablePlace(tmp_path, how), on_violation=how)  # type: ignore[arg-type]
        assert refused.value.verdict is not None
        assert {one.id for one in refused.value.verdict.with_status(Status.NOT_EVALUATED)} == wanted
        assert "t.v.required_when" in str(refused.value)
        assert not TablePlace(tmp_path, how).link.exists()
    warned = publish(df, contract, place=TablePlace(tmp_path, "warn"), on_violation="warn")
    assert (warned.rows_published, warned.verdict.passed) == (2, False)
    assert {one.id for one in warned.verdict.with_status(Status.NOT_EVALUATED)} == wanted
    with pytest.raises(ContractViolationError, match=r"nobody knows which rows to hold: t\.v\.required_when"):
        quarantine(df, contract)


def test_sql_that_may_not_run_on_the_command_line(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contract = build_contract(
        build_field("v", "int"),
        rules=(rules.Expression(sql="v in (select max(v) from t)"), rules.Expression(sql="1 / v > 0 or v = 0")),
    )
    code, out, err = command(capsys, contract, spark.range(2).selectExpr("cast(id as int) v"), tmp_path)
    assert (code, err) == (1, "")
    assert "NOT EVALUATED error    t.expression: could not be evaluated: its SQL holds a query" in out
    assert "rules: 4 passed, 0 failed, 1 not evaluated" in out


def test_an_expression_that_java_refuses_or_runs_out_of_stack_with(spark: SparkSession, tmp_path: Path) -> None:
    contract = build_contract(
        build_field("v", "int", rules.Maximum(limit=5)),
        build_field("s", "string", rules.Pattern(pattern="(?<=(a|b)*)c"), rules.Pattern(pattern="^(a|b)*$")),
    )
    df = spark.createDataFrame([(1, "ab" * 100_000), (9, None)], "v int, s string")  # type: ignore[type-var]
    wanted = {"t.s.pattern", "t.s.pattern_2"}
    verdict = verify(df, contract)
    assert {one.id for one in verdict.with_status(Status.NOT_EVALUATED)} == wanted
    assert [one.id for one in verdict.violations] == ["t.v.maximum"]
    for how in ("fail", "quarantine"):
        with pytest.raises(ContractViolationError) as refused:
            publish(df, contract, place=TablePlace(tmp_path, how), on_violation=how)  # type: ignore[arg-type]
        assert {one.id for one in refused.value.verdict.with_status(Status.NOT_EVALUATED)} == wanted
    assert publish(df, contract, place=TablePlace(tmp_path, "warn"), on_violation="warn").rows_published == 2
    with pytest.raises(ContractViolationError, match=r"t\.s\.pattern"):
        quarantine(df, contract)


# --- what could end the job on a row ----------------------------------------------------------------------------------


def test_divisions_by_zero_and_expressions_that_backtrack(
    spark: SparkSession, tmp_path: Path, ansi: str, capsys: pytest.CaptureFixture[str]
) -> None:
    contract = build_contract(
        build_field("v", "int", rules.Required()),
        build_field(
            "s",
            "string",
            # Each takes for ever in an engine that does not remember where it was.
            rules.Pattern(pattern="^(a+)+$"),
            rules.Pattern(pattern=r"^(\w+\s?)*$"),
            rules.RequiredWhen(condition="10 % v = 0"),
        ),
        rules=(rules.Expression(sql="10 / v > 2"), rules.Expression(sql="v div 0 = 1 or v * 1000000000 < 0 or v < 9")),
    )
    rows = [(1, "aa"), (0, "a" * 5000), (0, "a" * 60 + "!"), (9, "a"), (5, None), (2_000_000_000, "a"), (None, "a")]
    df = spark.createDataFrame(rows, "v int, s string")  # type: ignore[type-var]
    # Of 9: ten ninths is not above two. The other condition is true, or nobody knows.
    expected = {
        0: ["s.pattern", "s.pattern_2"],
        9: ["expression"],
        5: ["s.required_when", "expression"],
        2_000_000_000: ["expression"],
        None: ["v.required"],
    }
    counts = Counter(why for reasons in expected.values() for why in reasons)

    def counted(verdict: Any) -> dict[str, int]:
        assert verdict.settings["ansi"] == ansi
        assert verdict.with_status(Status.NOT_EVALUATED) == ()
        return {result.id.removeprefix("t."): result.failed_count for result in verdict.violations}

    assert counted(verify(df, contract)) == counts
    with pytest.raises(ContractViolationError) as refused:
        publish(df, contract, place=TablePlace(tmp_path, "fail"))
    assert counted(refused.value.verdict) == counts
    assert counted(publish(df, contract, place=TablePlace(tmp_path, "warn"), on_violation="warn").verdict) == counts
    done = publish(df, contract, place=TablePlace(tmp_path, "held"), on_violation="quarantine")
    assert counted(done.verdict) == counts
    assert held(spark.read.parquet(str(done.quarantine)), "v") == expected
    parts = quarantine(df, contract)
    assert held(parts.quarantined, "v") == expected
    assert sorted(row["v"] for row in parts.valid.collect()) == [0, 1]
    code, out, err = command(capsys, contract, df, tmp_path)
    assert (code, err) == (1, "")
    assert all(f"t.{id_}: {count} of 7 rows" in out for id_, count in counts.items())


# --- names ------------------------------------------------------------------------------------------------------------

NAMES: Final = (
    "select",
    "a.b",
    "a b",
    "q`q",
    'it\'s "x"',
    "Δ",
    "1st",
    "c0",
    "reasons",
    "order by",
    "k0",
    "hash",
    "rows",
)


def test_columns_of_any_name_on_every_way_in(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def sql(name: str) -> str:
        return f"`{name.replace('`', '``')}` <> 3"

    own = (rules.Required(), rules.Maximum(limit=3))
    contract = build_contract(
        build_field("id", "int"),
        *(build_field(name, "int", *own) for name in NAMES),
        rules=(
            rules.PrimaryKey(fields=NAMES[:4]),
            rules.DuplicateCount(fields=NAMES[4:], threshold=rules.NO_ROWS),
            *(rules.Expression(sql=sql(name)) for name in NAMES),
            rules.ForeignKey(fields=NAMES[1:4], to="t", to_fields=NAMES[1:4]),
        ),
    )
    # Every column of a row has the same value; 2 is there twice.
    values = (1, 2, 2, 3, 4, None)
    schema = ", ".join(f"`{name.replace('`', '``')}` int" for name in ("id", *NAMES))
    df = spark.createDataFrame([(at, *[v] * len(NAMES)) for at, v in enumerate(values)], schema)  # type: ignore[type-var]
    verdict = verify(df, contract)
    assert verdict.with_status(Status.NOT_EVALUATED) == ()
    assert Counter((result.rule, result.failed_count) for result in verdict.violations) == {
        ("required", 1): len(NAMES),
        ("maximum", 1): len(NAMES),
        ("duplicate_count", 1): 1,
        ("primary_key", 1): 1,
        ("expression", 1): len(NAMES),
    }
    done = publish(df, contract, place=TablePlace(tmp_path, "t"), on_violation="quarantine")
    published = read_published(spark, TablePlace(tmp_path, "t"))
    assert published.columns == ["id", *NAMES]
    assert [tuple(row) for row in published.collect()] == [(0, *[1] * len(NAMES))]
    found = held(spark.read.parquet(str(done.quarantine)), "id")
    assert found == held(quarantine(df, contract).quarantined, "id")
    assert {key: (len(why), why[-1]) for key, why in found.items()} == {
        1: (2, "duplicate_count"),
        2: (2, "duplicate_count"),
        3: (len(NAMES), f"expression_{len(NAMES)}"),
        4: (len(NAMES), "rows.maximum"),
        5: (len(NAMES), "rows.required"),
    }
    code, out, err = command(capsys, contract, df, tmp_path)
    assert (code, err) == (1, "")
    assert f"{len(verdict.violations)} failed, 0 not evaluated" in out


def test_columns_that_differ_in_case_alone(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    df = spark.createDataFrame([(1, 9, 1), (2, 1, 1)], "id int, v int, V int")  # type: ignore[type-var]
    contract = build_contract(
        build_field("id", "int"),
        build_field("v", "int", rules.Maximum(limit=5), rules.Unique()),
        rules=(rules.Expression(sql="v < 5"),),
    )
    verdict = verify(df, contract)
    # The contract means the column of that very name; the other one is nobody's.
    assert {result.id: result.observed for result in verdict.violations if result.rule == "undeclared"} == {
        "t.undeclared": ["V"]
    }
    assert {
        result.id: result.status.value
        for result in verdict.results
        if result.rule in ("maximum", "expression", "unique")
    } == {
        "t.v.maximum": "failed",
        "t.v.unique": "passed",
        "t.expression": "failed",
    }
    for how in ("fail", "quarantine", "warn"):
        with pytest.raises((ContractViolationError, PublicationError)) as refused:
            publish(df, contract, place=TablePlace(tmp_path, how), on_violation=how)  # type: ignore[arg-type]
        assert "V is in the table and not in the contract" in str(refused.value)
        assert not TablePlace(tmp_path, how).link.exists()
    with pytest.raises(ContractViolationError, match=r"t\.undeclared: V is in the table"):
        quarantine(df, contract)
    near = verify(df.toDF("id", "Vv", "VV"), build_contract(build_field("id"), build_field("vv", "int")))
    assert {result.id: result.message for result in near.violations} == {
        "t.vv.present": "the table has 2 columns named vv; the contract promises vv"
    }


def test_two_columns_of_one_name(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1, 9)], "a int, b int").toDF("v", "v")  # type: ignore[type-var]
    contract = build_contract(build_field("v", "int", rules.Maximum(limit=5)), rules=(rules.Expression(sql="v < 5"),))
    verdict = verify(df, contract)
    assert not verdict.passed
    for how in ("fail", "quarantine", "warn"):
        with pytest.raises((ContractViolationError, PublicationError)):
            publish(df, contract, place=TablePlace(tmp_path, how), on_violation=how)  # type: ignore[arg-type]
    with pytest.raises(ContractViolationError):
        quarantine(df, contract)


@pytest.mark.parametrize("name", ["_quarantine_reason", "_Run_Id"])
def test_a_column_of_a_name_that_held_rows_get(spark: SparkSession, tmp_path: Path, name: str) -> None:
    contract = build_contract(build_field("n", "int", rules.Maximum(limit=1)), build_field(name, "string"))
    df = spark.createDataFrame([(1, "a"), (0, None)], f"n int, `{name}` string")
    told = f"it has a column {name}, which is what held rows have beside their own.*[Rr]ename it"
    place = TablePlace(tmp_path / "lake", "t")
    with pytest.raises(PublicationError, match=told):
        publish(df, contract, place=place, on_violation="quarantine")
    assert not place.link.exists()
    with pytest.raises(DataboxError, match=told):
        quarantine(df, contract)
    with pytest.raises(DataboxError, match=told):
        sample_drift(df, contract, store=MemoryBaselineStore(), quarantine=tmp_path / "drifted")
    df.write.parquet(str(tmp_path / "in"))
    with pytest.raises(PublicationError, match=told):
        enforce_stream(
            spark.readStream.schema(df.schema).parquet(str(tmp_path / "in")),
            contract,
            place=place,
            checkpoint=tmp_path / "checkpoint",
            on_violation="quarantine",
            trigger={"availableNow": True},
        )
    assert not (tmp_path / "checkpoint").exists()
    # Where no row is held, it is a column like any other.
    assert publish(df, contract, place=place).rows_published == 2
    assert [row[name] for row in read_published(spark, place).orderBy("n").collect()] == [None, "a"]
