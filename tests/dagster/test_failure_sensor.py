"""The sensor that reads finished runs: who is told of what, once, whatever happens to a tick."""

import sqlite3
import threading
import time
from contextlib import closing
from datetime import datetime

import dagster as dg
import pytest

from databox_contracts.dagster import (
    ContractRegistryResource,
    build_contract_asset_specs,
    build_contract_failure_sensor,
)
from databox_contracts.dagster.evaluations import Evaluation
from databox_contracts.dagster.specs import check_groups, check_specs
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.errors import RegistryUnavailableError
from databox_contracts.model import Consumer
from databox_contracts.notifications import EventKind
from databox_contracts.plan import build_plan
from databox_contracts.registry.store import Registry
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Severity

CONSUMERS = (
    Consumer("thermal", "https://thermal.example.com/hook", fields=("temp",)),
    Consumer("everything", "https://all.example.com/hook"),
    Consumer("older", "https://older.example.com/hook", versions="^0.9"),
    Consumer("only errors", "https://errors.example.com/hook", severity=Severity.ERROR),
    Consumer("another table", "https://other.example.com/hook", datasets=("daily",)),
)


@pytest.fixture
def contract(weather):
    return weather.model_copy(update={"consumers": CONSUMERS})


@pytest.fixture(scope="module")
def instance():
    with dg.instance_for_test() as made:
        yield made


class Told:
    """A code location whose failure sensor ticks when it is told to, and what it put into the outbox."""

    def __init__(self, place, instance):
        self.file = place / "registry.db"
        self.instance = instance
        self.resource = ContractRegistryResource(location=str(self.file), patience=0.2)
        self.definitions = dg.Definitions(resources={"registry": self.resource})

    def tick(self, **settings):
        sensor = build_contract_failure_sensor(**settings)
        context = dg.build_sensor_context(
            instance=self.instance,
            definitions=self.definitions,
            resources={"registry": self.resource},
            sensor_name=sensor.name,
        )
        return sensor.evaluate_tick(context).skip_message

    def publish(self, *contracts):
        with Registry.open(self.file) as registry:
            registry.publish_all(contracts, by="test")

    def messages(self):
        with Registry.open(self.file) as registry:
            return [one for one, _ in registry.outbox.waiting()]

    def told(self):
        return sorted((one.consumer, one.severity.value, one.facts.get("check")) for one in self.messages())

    def run(self, *assets, tags=None, selection=None):
        self.definitions = dg.Definitions(assets=assets, resources={"registry": self.resource})
        job = self.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance, raise_on_error=False, tags=tags, asset_selection=selection
        )


@pytest.fixture
def told(tmp_path, instance, contract):
    told = Told(tmp_path, instance)
    told.publish(contract)
    assert told.tick() == "runs that end from now on are told of"
    return told


def judged(contract, failed=(), unjudged=(), *, published=None, lenient=False):
    """What a verification of the contract's only table recorded, with these rules violated or not judged."""
    dataset = contract.datasets[0]
    results = []
    for check in build_plan(contract, dataset).checks:
        status = Status.FAILED if check.id in failed else Status.PASSED
        status = Status.NOT_EVALUATED if check.id in unjudged else status
        results.append(
            CheckResult(
                id=check.id,
                rule=check.rule.kind,
                field=check.field,
                severity=check.severity,
                dimension=check.dimension,
                status=status,
                failed_count=3 if check.id in failed else None,
                samples=("555-0199",),
                message="3 rows are wrong" if status is not Status.PASSED else "",
            )
        )
    verdict = Verdict(contract.id, contract.version, dataset.name, 10, tuple(results))
    return Evaluation(contract, verdict, 0.1, lenient=lenient)


def asset(contract, evaluation=None, *, name="hourly", fails=False, raises=None, **more):
    """An asset as `@contract_asset` makes it, without Spark: it records the evaluation, then fails or is made."""
    (spec,) = build_contract_asset_specs(contract)
    spec = spec.replace_attributes(key=dg.AssetKey(["nyc", name]), skippable=True, **more)
    dataset = contract.datasets[0]
    groups = check_groups(contract, dataset, ContractTranslator())

    @dg.multi_asset(name=name, specs=[spec], check_specs=check_specs(contract, dataset, groups, spec.key))
    def compute(context):
        if raises is not None:
            raise raises
        shown = evaluation or judged(contract)
        yield from shown.results(spec.key, groups)
        if fails:
            raise shown.failure(spec.key)
        yield dg.MaterializeResult(asset_key=spec.key)

    return compute


def test_a_violated_rule_of_a_failed_run_is_told_to_those_who_read_what_it_is_about(told, contract):
    run = told.run(asset(contract, judged(contract, ["hourly.temp.minimum"]), fails=True))
    assert not run.success
    assert told.tick() == "1 run ended, 3 messages for consumers"
    assert told.told() == [
        ("everything", "error", "hourly.temp.minimum"),
        ("only errors", "error", "hourly.temp.minimum"),
        ("thermal", "error", "hourly.temp.minimum"),
    ]
    message = told.messages()[0]
    assert (message.contract, message.kind) == ("weather-hourly", EventKind.CHECK)
    facts = {name: message.facts[name] for name in ("run_id", "asset", "dataset", "rule", "failed_count", "row_count")}
    assert facts == {
        "run_id": run.run_id,
        "asset": "nyc/hourly",
        "dataset": "hourly",
        "rule": "minimum",
        "failed_count": 3,
        "row_count": 10,
    }
    assert told.tick() == "no run ended"


def test_what_a_succeeded_run_let_through_is_a_warning(told, contract):
    shown = judged(contract, ["hourly.temp.minimum", "hourly.temp.maximum"], lenient=True)
    assert told.run(asset(contract, shown)).success
    told.tick()
    assert told.told() == [
        ("everything", "warning", "hourly.temp.maximum"),
        ("everything", "warning", "hourly.temp.minimum"),
        ("thermal", "warning", "hourly.temp.maximum"),
        ("thermal", "warning", "hourly.temp.minimum"),
    ]


def test_when_a_rule_holds_again_it_is_told_once(told, contract):
    first = told.run(asset(contract, judged(contract, ["hourly.temp.minimum"]), fails=True))
    told.tick()
    told.run(asset(contract, judged(contract, ["hourly.temp.minimum"]), fails=True))
    told.tick()
    assert {one.resolves for one in told.messages()} == {False}
    # Since when it fails is when it failed first.
    began = told.instance.get_run_record_by_id(first.run_id).update_timestamp
    assert all(datetime.fromisoformat(one.facts["since"]) <= began for one in told.messages())
    for _ in range(2):
        told.run(asset(contract))
    assert told.tick() == "2 runs ended, 3 messages for consumers"
    good = [one for one in told.messages() if one.resolves]
    assert sorted(one.consumer for one in good) == ["everything", "only errors", "thermal"]
    assert good[0].title == "hourly.temp.minimum holds again in hourly of weather-hourly 1.10"
    assert {one.ticket for one in good} == {one.ticket for one in told.messages()}


def test_who_was_not_told_of_a_warning_is_not_told_that_it_is_over(told, contract):
    told.run(asset(contract, judged(contract, ["hourly.temp.minimum"], lenient=True)))
    told.run(asset(contract))
    told.tick()
    assert sorted((one.consumer, one.resolves) for one in told.messages()) == [
        ("everything", False),
        ("everything", True),
        ("thermal", False),
        ("thermal", True),
    ]


def test_a_rule_that_could_not_be_judged_is_told(told, contract):
    told.run(asset(contract, judged(contract, unjudged=["hourly.phone.pattern"]), fails=True))
    told.tick()
    assert told.told() == [
        ("everything", "error", "hourly.phone.pattern"),
        ("only errors", "error", "hourly.phone.pattern"),
    ]


def test_no_value_is_in_a_message(told, contract):
    told.run(asset(contract, judged(contract, ["hourly.phone.pattern", "hourly.temp.minimum"]), fails=True))
    told.tick()
    assert told.messages()
    assert "555-0199" not in repr(told.messages())


def test_a_good_run_is_told_to_nobody(told, contract):
    assert told.run(asset(contract)).success
    assert told.tick() == "1 run ended, 0 messages for consumers"
    assert told.messages() == []


def test_a_run_that_failed_is_told_for_each_table_it_did_not_make(told, contract):
    daily = contract.model_copy(
        update={
            "id": "weather-daily",
            "consumers": (Consumer("reports", "https://reports.example.com/hook"),),
            "datasets": (contract.datasets[0].model_copy(update={"name": "daily"}),),
        }
    )
    other = daily.model_copy(update={"id": "weather-other", "consumers": (Consumer("lucky", "log:"),)})
    told.publish(daily, other)
    run = told.run(
        asset(contract, raises=ValueError("the value 555-0100 is no number")),
        asset(daily, name="daily", deps=[["nyc", "hourly"]]),
        asset(other, name="other"),
    )
    assert not run.success
    told.tick()
    assert [(one.consumer, one.kind, one.title) for one in told.messages()] == [
        ("reports", EventKind.RUN, "nyc/daily: run failed"),
        ("thermal", EventKind.RUN, "nyc/hourly: run failed"),
        ("everything", EventKind.RUN, "nyc/hourly: run failed"),
        ("only errors", EventKind.RUN, "nyc/hourly: run failed"),
    ]
    assert told.messages()[0].facts["steps"] == ["hourly"]
    assert "555-0100" not in repr(told.messages())


def test_a_canceled_run_is_told(told, contract):
    run = told.run(asset(contract, raises=OSError("stopped")))
    told.instance.report_run_canceled(told.instance.get_run_by_id(run.run_id))
    told.tick()
    assert {(one.consumer, one.title, one.severity) for one in told.messages()} == {
        ("thermal", "nyc/hourly: run canceled", Severity.WARNING),
        ("everything", "nyc/hourly: run canceled", Severity.WARNING),
    }


def test_a_violated_rule_of_a_canceled_run_is_told(told, contract):
    run = told.run(asset(contract, judged(contract, ["hourly.temp.minimum"], lenient=True)))
    told.instance.report_run_canceled(told.instance.get_run_by_id(run.run_id))
    told.tick()
    assert told.told() == [
        ("everything", "warning", "hourly.temp.minimum"),
        ("thermal", "warning", "hourly.temp.minimum"),
    ]


def test_a_run_that_will_be_retried_is_told_by_its_last_attempt(told, contract):
    told.run(asset(contract, raises=OSError("gone")), tags={"dagster/will_retry": "true"})
    assert told.tick() == "1 run ended, 0 messages for consumers"
    told.run(asset(contract, raises=OSError("gone")), tags={"dagster/will_retry": "false"})
    assert told.tick() == "1 run ended, 3 messages for consumers"


def test_another_check_and_an_asset_without_a_contract_are_told_to_nobody(told):
    @dg.asset(check_specs=[dg.AssetCheckSpec("mine", asset="plain")])
    def plain():
        yield dg.AssetCheckResult(passed=False, metadata={"rules": 3})
        raise ValueError("no")

    told.run(plain)
    assert told.tick() == "1 run ended, 0 messages for consumers"


def test_a_contract_that_the_registry_has_not_is_said(told, contract, capsys):
    lost = contract.model_copy(update={"id": "lost"})
    told.run(asset(lost, judged(lost, ["hourly.temp.minimum"]), fails=True))
    told.tick()
    assert "the registry has no contract lost, so nobody is told" in capsys.readouterr().err
    assert told.messages() == []


def test_a_version_that_is_not_published_yet_is_told_to_its_readers(told, contract):
    newer = contract.model_copy(update={"version": "1.11"})
    told.run(asset(newer, judged(newer, ["hourly.temp.minimum"]), fails=True))
    told.tick()
    assert {one.facts["version"] for one in told.messages()} == {"1.11"}


def test_what_was_before_its_first_tick_is_told_to_nobody(tmp_path, instance, contract):
    told = Told(tmp_path, instance)
    told.publish(contract)
    told.run(asset(contract, judged(contract, ["hourly.temp.minimum"]), fails=True))
    told.tick()
    assert told.tick() == "no run ended"


def test_runs_with_equal_times_at_the_border_of_a_page(told, contract):
    runs = [told.run(asset(contract, judged(contract, ["hourly.temp.minimum"]), fails=True)).run_id for _ in range(5)]
    record = told.instance.get_run_record_by_id(runs[-1])
    with closing(sqlite3.connect(f"{told.instance.root_directory}/history/runs.db")) as connection, connection:
        marks = ", ".join("?" for _ in runs)
        stamp = record.update_timestamp.replace(tzinfo=None).isoformat(" ")
        connection.execute(f"UPDATE runs SET update_timestamp = ? WHERE run_id IN ({marks})", [stamp, *runs])
    assert len({told.instance.get_run_record_by_id(run).update_timestamp for run in runs}) == 1
    assert [told.tick(most_runs=2) for _ in range(4)] == [
        "2 runs ended, 6 messages for consumers",
        "2 runs ended, 6 messages for consumers",
        "1 run ended, 3 messages for consumers",
        "no run ended",
    ]
    messages = told.messages()
    assert len(messages) == 15
    assert {one.facts["run_id"] for one in messages} == set(runs)


def test_a_registry_that_does_not_answer_fails_the_tick_and_nothing_is_lost(told, contract):
    told.run(asset(contract, judged(contract, ["hourly.temp.minimum"]), fails=True))
    with closing(sqlite3.connect(told.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RegistryUnavailableError, match="does not answer"):
            told.tick()
        other.execute("ROLLBACK")
    assert told.messages() == []
    assert told.tick() == "1 run ended, 3 messages for consumers"


def test_an_error_in_the_middle_loses_nothing_and_doubles_nothing(told, contract):
    """A contract whose stored text nobody can read stands in for any error."""
    bad = contract.model_copy(update={"id": "bad"})
    told.publish(bad)
    told.run(asset(contract, judged(contract, ["hourly.temp.minimum"]), fails=True))
    told.run(asset(bad, judged(bad, ["hourly.temp.minimum"]), fails=True))
    told.run(asset(contract, judged(contract, ["hourly.temp.minimum"]), fails=True))
    with closing(sqlite3.connect(told.file)) as connection, connection:
        (text,) = connection.execute("SELECT content FROM databox_versions WHERE contract = 'bad'").fetchone()
        connection.execute("UPDATE databox_versions SET content = 'no contract' WHERE contract = 'bad'")
    for _ in range(2):
        with pytest.raises(Exception, match="contract"):
            told.tick()
    assert len(told.messages()) == 3
    with closing(sqlite3.connect(told.file)) as connection, connection:
        connection.execute("UPDATE databox_versions SET content = ? WHERE contract = 'bad'", [text])
    assert told.tick() == "2 runs ended, 6 messages for consumers"
    assert len(told.messages()) == 9


def test_ticks_at_once_tell_once(told, contract):
    for _ in range(3):
        told.run(asset(contract, judged(contract, ["hourly.temp.minimum"]), fails=True))
    told.resource = ContractRegistryResource(location=str(told.file), patience=30)
    said = []
    threads = [threading.Thread(target=lambda: said.append(told.tick())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 4
    assert len(told.messages()) == 9


@pytest.mark.parametrize("kept", ["text", 3, [], {"version": 99}, {"version": 1, "until": "x", "seen": {}}])
def test_a_place_that_nobody_understands_is_read_again_from_the_day_before(told, contract, kept):
    told.run(asset(contract, judged(contract, ["hourly.temp.minimum"]), fails=True))
    told.tick()
    with Registry.open(told.file) as registry:
        registry.advance("dagster//contract_failures", kept)
    told.run(asset(contract, judged(contract, ["hourly.temp.minimum"]), fails=True))
    told.tick()
    mine = [one for one in told.messages() if one.occurred_at.timestamp() > time.time() - 600]
    assert len({one.facts["run_id"] for one in mine}) >= 2
    assert len({one.id for one in mine}) == len(mine)


def test_settings_of_the_sensor():
    sensor = build_contract_failure_sensor()
    assert (sensor.name, sensor.minimum_interval_seconds, sensor.default_status) == (
        "contract_failures",
        30,
        dg.DefaultSensorStatus.RUNNING,
    )
    sensor = build_contract_failure_sensor(
        name="mine", minimum_interval_seconds=5, default_status=dg.DefaultSensorStatus.STOPPED
    )
    assert (sensor.name, sensor.minimum_interval_seconds, sensor.default_status) == (
        "mine",
        5,
        dg.DefaultSensorStatus.STOPPED,
    )


def test_a_contracted_asset_on_spark_is_told_of(tmp_path, told, contract, hourly, source, manager):
    source.rows = [("EWR", -60.0, "555-0100"), ("JFK", 3.5, "no number")]
    told.definitions = dg.Definitions(
        assets=[hourly(contract)], resources={"registry": told.resource, "io_manager": manager}
    )
    job = told.definitions.resolve_implicit_global_asset_job_def()
    assert not job.execute_in_process(instance=told.instance, raise_on_error=False).success
    told.tick()
    assert told.told() == [
        ("everything", "error", "hourly.phone.pattern"),
        ("everything", "error", "hourly.temp.minimum"),
        ("only errors", "error", "hourly.phone.pattern"),
        ("only errors", "error", "hourly.temp.minimum"),
        ("thermal", "error", "hourly.temp.minimum"),
    ]
    assert "The new data was not published" in told.messages()[0].facts["what"][1]
