"""A Spark job in a process of its own, launched through Dagster Pipes, reports as an asset in Dagster does."""

import os
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from databox_contracts.dagster import (
    ContractTranslator,
    build_contract_asset_specs,
    build_contract_check_specs,
    contract_job_results,
)
from databox_contracts.dagster.evaluations import Evaluation
from databox_contracts.dagster.specs import check_groups
from databox_contracts.errors import ContractViolationError, DataboxError
from databox_contracts.formats import dump_contract
from databox_contracts.model import Enforcement
from databox_contracts.pipes import report_verdict
from databox_contracts.plan import build_plan
from databox_contracts.results import Status, Verdict
from databox_contracts.rules import Minimum, Required, Severity
from databox_contracts.testing import build_contract, build_field

ROOT = Path(__file__).parents[2]

# Dagster's own Pipes warns of itself: it asks its context for what is deprecated, and has previews in it.
pytestmark = [
    pytest.mark.filterwarnings("ignore:AssetExecutionContext.run_id is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]

JOB = """
import sys
from pathlib import Path

from dagster_pipes import open_dagster_pipes

import databox_contracts as dbc
from databox_contracts.pipes import report_verdict
from databox_contracts.spark import TablePlace, publish, verify
from databox_contracts.spark.session import local_session

with open_dagster_pipes() as pipes:
    assert "dagster" not in sys.modules
    contract = dbc.load_contract(pipes.get_extra("contract"))
    conf = {"spark.driver.memory": "512m", "spark.sql.shuffle.partitions": 1}
    spark = local_session("job", master="local[1]", conf=conf)
    df = spark.createDataFrame(pipes.get_extra("rows"), "id long, temp double, phone string")
    arguments = pipes.get_extra("arguments")
    if pipes.get_extra("root"):
        place = TablePlace(Path(pipes.get_extra("root")), "readings")
        try:
            publication = publish(df, contract, place=place, run_id=pipes.run_id, on_violation=arguments.pop("mode"))
        except dbc.ContractViolationError as error:
            publication = error.publication
        report_verdict(pipes, publication.verdict, contract=contract, publication=publication, **arguments)
    elif not pipes.get_extra("silent"):
        report_verdict(pipes, verify(df, contract), contract=contract, seconds=1.5, **arguments)
    spark.stop()
    assert "dagster" not in sys.modules
"""

GOOD = [[1, 3.5, "555"], [2, None, None]]
BAD = [[1, -50.0, "555"], [None, 1.0, "666"]]


@pytest.fixture
def readings():
    return build_contract(
        build_field("id", "bigint", Required()),
        build_field("temp", "double", Minimum(limit=-40)),
        build_field("phone", "string", Required(severity=Severity.WARNING), pii=True),
        id="readings",
        dataset="readings",
        owner="Weather",
        status="active",
    )


class Job:
    """A launched job and the run that launched it."""

    def __init__(self, contract: Any, tmp_path: Path, instance: dg.DagsterInstance) -> None:
        self.contract = contract
        self.instance = instance
        self.script = tmp_path / "job.py"
        self.script.write_text(JOB)
        self.document = tmp_path / "readings.yaml"
        self.document.write_text(dump_contract(contract))

    def launch(
        self, rows: Any, *, root: str = "", silent: bool = False, granularity: Any = "dimension", **arguments: Any
    ):
        translator = ContractTranslator(granularity=granularity)
        (spec,) = build_contract_asset_specs(self.contract, translator=translator)
        extras = {
            "contract": str(self.document),
            "rows": rows,
            "root": root,
            "silent": silent,
            "arguments": {**arguments, "granularity": granularity} if granularity != "dimension" else arguments,
        }

        @dg.multi_asset(specs=[spec], check_specs=build_contract_check_specs(self.contract, translator=translator))
        def readings(context: dg.AssetExecutionContext, client: dg.PipesSubprocessClient):
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            command = [sys.executable, str(self.script)]
            yield from contract_job_results(
                client.run(context=context, command=command, env=environment, extras=extras)
            )

        @dg.asset(deps=[spec.key])
        def after() -> None: ...

        resources = {"client": dg.PipesSubprocessClient()}
        return dg.materialize([readings, after], resources=resources, instance=self.instance, raise_on_error=False)


@pytest.fixture
def job(readings, tmp_path, instance):
    return Job(readings, tmp_path, instance)


def materialized(done: dg.ExecuteInProcessResult) -> list[str]:
    events = done.get_asset_materialization_events()
    return [event.asset_key.to_user_string() for event in events if event.asset_key is not None]


def checks_of(done: dg.ExecuteInProcessResult) -> dict[str, Any]:
    return {one.check_name: one for one in done.get_asset_check_evaluations()}


def failure_of(done: dg.ExecuteInProcessResult) -> str:
    (failed,) = done.get_step_failure_events()
    return str(failed.step_failure_data.user_failure_data.description)


def test_a_table_that_keeps_its_contract_is_reported_and_made(job):
    done = job.launch(GOOD)
    assert done.success
    assert materialized(done) == ["readings", "after"]
    made = done.asset_materializations_for_node("readings")[0].metadata
    assert made["dagster/row_count"].value == 2
    assert made["contract_holds"].value is True
    assert made["duration_seconds"].value == 1.5
    found = checks_of(done)
    assert {name: (one.passed, one.severity.value) for name, one in found.items()} == {
        "contract_conformity": (True, "ERROR"),
        "contract_completeness": (False, "WARN"),
        "contract_accuracy": (True, "ERROR"),
    }


def test_a_violation_is_reported_and_nothing_is_made(job):
    done = job.launch(BAD)
    assert not done.success
    assert materialized(done) == []
    found = checks_of(done)
    assert not any(one.passed for name, one in found.items() if name != "contract_conformity")
    accuracy = found["contract_accuracy"]
    assert accuracy.severity is dg.AssetCheckSeverity.ERROR
    assert accuracy.metadata["contract_id"].value == "readings"
    assert accuracy.metadata["rules_failed"].value == 1
    first = accuracy.metadata["rules"].records[0].data
    assert (first["rule"], first["failed_rows"], first["samples"]) == ("readings.temp.minimum", 1, "-50.0")
    assert failure_of(done).splitlines() == [
        "The job's table breaks its contract:",
        "- contract_completeness: readings.id.required: 1 of 2 rows (50 %) are null",
        "- contract_accuracy: readings.temp.minimum: 1 of 2 rows (50 %) are below -40",
    ]
    assert "666" not in repr(found)


@pytest.mark.full
def test_warned_of_a_violation_the_table_is_made(job):
    done = job.launch(BAD, on_violation="warn")
    assert done.success
    assert materialized(done) == ["readings", "after"]
    made = done.asset_materializations_for_node("readings")[0].metadata
    assert made["contract_holds"].value is False
    assert checks_of(done)["contract_accuracy"].severity is dg.AssetCheckSeverity.WARN


@pytest.mark.full
def test_a_job_that_raises_has_failed(job):
    done = job.launch(BAD, on_violation="raise")
    assert not done.success
    assert materialized(done) == []
    (failed,) = done.get_step_failure_events()
    assert "External execution process failed with code 1" in failed.step_failure_data.error_display_string


@pytest.mark.full
def test_what_became_of_the_rows_is_reported_with_the_publication(job, tmp_path):
    done = job.launch(BAD, root=str(tmp_path / "tables"), mode="fail", granularity="contract")
    assert not done.success
    (found,) = checks_of(done).values()
    facts = {name: found.metadata[name].value for name in ("published", "rows_in", "rows_rejected", "on_violation")}
    assert facts == {"published": False, "rows_in": 2, "rows_rejected": 2, "on_violation": "fail"}

    done = job.launch(BAD, root=str(tmp_path / "tables"), mode="quarantine", granularity="contract")
    assert done.success
    made = done.asset_materializations_for_node("readings")[0].metadata
    # Both rows break a rule.
    assert (made["rows_published"].value, made["rows_quarantined"].value) == (0, 2)
    assert isinstance(made["path"], dg.PathMetadataValue)
    assert made["quarantine"].value.startswith(str(tmp_path / "tables" / "readings.quarantine"))
    (found,) = checks_of(done).values()
    assert (found.check_name, found.passed, found.severity) == ("contract", False, dg.AssetCheckSeverity.WARN)


@pytest.mark.full
def test_a_job_that_reports_nothing_has_not_made_its_table(job):
    done = job.launch(GOOD, silent=True)
    assert not done.success
    assert materialized(done) == []
    assert failure_of(done).startswith("The job reported no verdict")


# --- the same as in Dagster -------------------------------------------------------------------------------------------


class Recorder:
    """What is reported, in order."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []

    def report_asset_materialization(self, metadata=None, data_version=None, asset_key=None) -> None:
        self.made.append({"metadata": metadata, "asset_key": asset_key})

    def report_asset_check(self, check_name, passed, severity="ERROR", metadata=None, asset_key=None) -> None:
        self.checks.append(
            {"name": check_name, "passed": passed, "severity": severity, "metadata": metadata, "asset_key": asset_key}
        )


def verdict_on(contract: Any, *statuses: Status, **facts: Any) -> Verdict:
    """A verdict whose rules have these statuses in turn."""
    checks = build_plan(contract, contract.datasets[0]).checks
    results = tuple(check.result(statuses[at % len(statuses)], **facts) for at, check in enumerate(checks))
    return Verdict(contract.id, contract.version, contract.datasets[0].name, 3, results)


@pytest.mark.parametrize("granularity", ["contract", "dimension", "rule"])
@pytest.mark.parametrize(
    "verdict",
    [
        ((Status.PASSED,), {}),
        ((Status.PASSED, Status.FAILED), {"failed_count": 2, "samples": (1, "a"), "observed": 0.0, "message": "bad"}),
        ((Status.SKIPPED,), {}),
        ((Status.NOT_EVALUATED, Status.PASSED), {"threshold": {"must_be": 0}}),
    ],
)
def test_names_and_metadata_are_those_of_an_asset_in_dagster(readings, granularity, verdict):
    found = verdict_on(readings, *verdict[0], **verdict[1])
    translator, key = ContractTranslator(granularity=granularity), dg.AssetKey("readings")
    evaluation = Evaluation(readings, found, 0.25)
    groups = check_groups(readings, readings.datasets[0], translator)
    expected = evaluation.results(key, groups)
    recorder = Recorder()
    assert report_verdict(recorder, found, contract=readings, granularity=granularity, seconds=0.25) is found.passed
    assert [(one["name"], one["passed"], one["severity"]) for one in recorder.checks] == [
        (one.check_name, one.passed, one.severity.value) for one in expected
    ]
    for reported, one in zip(recorder.checks, expected, strict=True):
        facts = dict(reported["metadata"])
        assert facts.pop("summary") == one.description
        table = facts.pop("rules")["raw_value"]
        in_dagster = dict(one.metadata)
        rules = in_dagster.pop("rules")
        assert facts == {name: getattr(value, "value", value) for name, value in in_dagster.items()}
        assert table["records"] == [record.data for record in rules.records]
        assert table["schema"] == [
            {"name": column.name, "type": column.type, "description": column.description}
            for column in rules.schema.columns
        ]
    assert len(recorder.made) == found.passed


def test_it_raises_where_asked_after_all_is_reported(readings):
    recorder = Recorder()
    with pytest.raises(ContractViolationError, match="rules violated"):
        report_verdict(recorder, verdict_on(readings, Status.FAILED), contract=readings, on_violation="raise")
    assert recorder.made == []
    assert len(recorder.checks) == 3


def test_checks_may_be_called_otherwise_and_belong_to_one_of_several_assets(readings):
    recorder = Recorder()
    found = verdict_on(readings, Status.PASSED)
    named = {"check_name": lambda check: f"mine_{check.severity}", "asset_key": "nyc/readings", "metadata": {"by": "x"}}
    assert report_verdict(recorder, found, contract=readings, **named)
    assert [(one["name"], one["asset_key"]) for one in recorder.checks] == [
        ("mine_error", "nyc/readings"),
        ("mine_warning", "nyc/readings"),
    ]
    assert (recorder.made[0]["metadata"]["by"], recorder.made[0]["asset_key"]) == ("x", "nyc/readings")


def test_the_grace_period_lets_a_violation_through_until_its_end(readings):
    grace = readings.model_copy(update={"enforcement": Enforcement(mode="warn", until=date(2026, 5, 1))})
    found = verdict_on(grace, Status.FAILED)
    for day, lets in ((date(2026, 4, 30), True), (date(2026, 5, 1), False)):
        now = datetime(day.year, day.month, day.day, tzinfo=UTC)
        assert report_verdict(Recorder(), found, contract=grace, clock=lambda now=now: now) is lets


def test_what_does_not_fit_together_is_refused(readings):
    found = verdict_on(readings, Status.PASSED)
    with pytest.raises(DataboxError, match="Use one of return, raise, warn"):
        report_verdict(Recorder(), found, contract=readings, on_violation="fail")  # type: ignore[arg-type]
    with pytest.raises(DataboxError, match="Use one of contract, dimension, rule"):
        report_verdict(Recorder(), found, contract=readings, granularity="rules")  # type: ignore[arg-type]
    partial = replace(found, results=found.results[1:])
    with pytest.raises(DataboxError, match=r"says nothing of readings\.id\.present"):
        report_verdict(Recorder(), partial, contract=readings)
