"""Contracted tables are sampled by a schedule: what drifted is a failing check, and its owner is told."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from databox_contracts.baselines import DirectoryBaselineStore
from databox_contracts.dagster import ContractIOManager, build_drift_schedule
from databox_contracts.errors import DataboxError
from databox_contracts.model import Consumer, Member, Team
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Enum
from databox_contracts.testing import MemoryBaselineStore, build_contract, build_field

ROOT = Path(__file__).parents[2]
NOON = datetime(2026, 4, 14, 12, 0, tzinfo=UTC)
SCHEMA = "currency string, owner string, amount int"
USUAL = [(("INR", "USD", "EUR")[at % 3], "Ann", at) for at in range(30)]
DRIFTED = [*USUAL, ("JPY", "Bob", 4), ("JPY", "Bob", 5)]


@pytest.fixture
def payments():
    """Currencies are listed; who paid must not be shown."""
    return build_contract(
        build_field("currency", "string", Enum(values=("INR", "USD", "EUR"))),
        build_field("owner", "string", Enum(values=("Ann",)), pii=True),
        build_field("amount", "int"),
        id="payments",
        domain="pay",
        dataset="transactions",
        team=Team(name="Payments", members=(Member(username="ann@example.com", role="owner"),)),
        consumers=(Consumer("Reconciliation", "recon@example.com"),),
    )


class Clock:
    """A day passes whenever it is looked at."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(days=1)
        return self.now


class Table:
    """A table of files, written by somebody else, and the runs of its drift job."""

    def __init__(self, spark: Any, path: Any, instance: dg.DagsterInstance) -> None:
        self.spark = spark
        self.path = path
        self.instance = instance

    def write(self, rows: list[tuple[Any, ...]], schema: str = SCHEMA) -> None:
        self.spark.createDataFrame(rows, schema).coalesce(1).write.mode("overwrite").parquet(str(self.path))

    def sample(self, defs: dg.Definitions, job: str = "contract_drift", **tags: str) -> dg.ExecuteInProcessResult:
        whole = dg.Definitions.merge(
            dg.Definitions(assets=[dg.AssetSpec(["pay", "transactions"])], resources={"spark": self.spark}), defs
        )
        dg.Definitions.validate_loadable(whole)
        job_def = whole.resolve_job_def(job)
        named = {name.replace("__", "/"): value for name, value in tags.items()}
        return job_def.execute_in_process(instance=self.instance, raise_on_error=False, tags=named)


@pytest.fixture
def table(spark, tmp_path, instance):
    made = Table(spark, tmp_path / "transactions", instance)
    made.write(USUAL)
    return made


@pytest.fixture
def registry(tmp_path):
    with Registry.open(tmp_path / "registry.db") as opened:
        yield opened


def result_of(done: dg.ExecuteInProcessResult) -> Any:
    (evaluation,) = done.get_asset_check_evaluations()
    return evaluation


def failure_of(done: dg.ExecuteInProcessResult) -> str:
    (failed,) = [event for event in done.all_events if event.is_step_failure]
    return str(failed.step_failure_data.user_failure_data.description)


def drift_of(evaluation: Any) -> list[dict[str, Any]]:
    return [record.data for record in evaluation.metadata["drift"].records]


def test_a_new_value_is_a_failing_check_and_its_owner_is_told_once(payments, table, registry, tmp_path):
    clock = Clock()
    defs = build_drift_schedule(
        payments,
        "*/15 * * * *",
        location=table.path,
        registry=registry.location,
        quarantine=tmp_path / "q",
        clock=clock,
    )
    first = result_of(table.sample(defs))
    assert (first.passed, first.check_name) == (True, "contract_drift")
    assert first.description.startswith("no drift in 30 sampled rows; no baseline yet")
    assert registry.outbox.waiting() == []

    table.write(DRIFTED)
    done = table.sample(defs)
    assert done.success
    found = result_of(done)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert found.asset_key == dg.AssetKey(["pay", "transactions"])
    by_rule = {(one["field"], one["what"]): one for one in drift_of(found)}
    assert by_rule["currency", "rule"]["rule"] == "transactions.currency.enum"
    assert (by_rule["currency", "new_value"]["value"], by_rule["currency", "new_value"]["rows"]) == ('"JPY"', 2)
    assert by_rule["currency", "new_value"]["since"] == "2026-04-16T12:00:00+00:00"
    assert by_rule["owner", "rule"]["rows"] == 2
    # Values of a field that must not be shown are nowhere.
    assert "Bob" not in repr(found)
    assert found.metadata["contract_version"].value == "1.0.0"
    assert found.metadata["contract_owner"].value == "Payments"
    assert found.metadata["rows_sampled"].value == 32
    assert found.metadata["rows_copied"].value == 2
    assert found.metadata["quarantine"].value.startswith(str(tmp_path / "q" / "pay" / "transactions" / "batch="))

    waiting = [one for one, _ in registry.outbox.waiting()]
    assert {one.consumer for one in waiting} == {"owner of payments"}
    assert {one.contact for one in waiting} == {"mailto:ann@example.com"}
    assert found.metadata["told"].value == "owner of payments"
    assert len(waiting) == len(drift_of(found))
    assert "Bob" not in repr(waiting)
    new = next(one for one in waiting if one.facts["drift"] == "new_value" and one.facts["field"] == "currency")
    assert (new.facts["value"], new.facts["run_id"]) == ("JPY", done.run_id)

    # Seen again, it is the same event: nobody is told a second time.
    again = result_of(table.sample(defs))
    assert len(registry.outbox.waiting()) == len(waiting)
    assert {one["samplings"] for one in drift_of(again)} == {2}

    # Gone, it is said once.
    table.write(USUAL)
    assert result_of(table.sample(defs)).passed
    gone = [one for one, _ in registry.outbox.waiting() if one.resolves]
    assert len(gone) == len(waiting)
    assert result_of(table.sample(defs)).passed
    assert len(registry.outbox.waiting()) == 2 * len(waiting)


def test_a_run_with_the_tag_accepts_the_table_as_it_is(table, registry):
    contract = build_contract(build_field("currency", "string"), dataset="transactions", domain="pay")
    store = MemoryBaselineStore()
    defs = build_drift_schedule(
        contract,
        "@daily",
        load=lambda spark: spark.read.parquet(str(table.path)).select("currency"),
        baselines=store,
        notify=[],
        clock=Clock(),
    )
    assert result_of(table.sample(defs)).passed
    table.write(DRIFTED)
    found = result_of(table.sample(defs))
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert [one["value"] for one in drift_of(found)] == ['"JPY"']
    assert "told" not in found.metadata
    accepted = result_of(table.sample(defs, databox__update_baseline="true"))
    assert accepted.metadata["baseline_stored"].value is True
    assert result_of(table.sample(defs)).passed
    said = failure_of(table.sample(defs, databox__update_baseline="yes"))
    assert said == (
        'pay/transactions cannot be sampled: the tag databox/update_baseline is \'yes\'. Write "true" or "false".'
    )


def test_tables_of_the_io_manager_and_baselines_in_a_directory(weather, hourly, run, manager, instance, tmp_path):
    assert run(hourly()).success
    drift = build_drift_schedule(weather, "@hourly", baselines=tmp_path / "baselines", notify=())
    whole = dg.Definitions.merge(dg.Definitions(assets=[hourly()], resources={"io_manager": manager}), drift)
    job = whole.resolve_job_def("contract_drift")
    done = job.execute_in_process(instance=instance, raise_on_error=False)
    assert done.success
    assert {event.asset_key for event in done.get_asset_materialization_events()} == set()
    found = result_of(done)
    assert found.passed, found.description
    assert found.metadata["rows_sampled"].value == 2
    assert DirectoryBaselineStore(tmp_path / "baselines").get("weather-hourly", "hourly") is not None


def test_columns_that_may_evolve_are_no_drift(table):
    contract = build_contract(build_field("currency", "string"), dataset="transactions", domain="pay")
    arguments = {"location": table.path, "notify": [], "baselines": MemoryBaselineStore()}
    found = result_of(table.sample(build_drift_schedule(contract, "@daily", **arguments)))
    assert [(one["what"], one["severity"]) for one in drift_of(found)] == [("schema_undeclared", "error")]
    evolving = build_drift_schedule(contract, "@daily", schema_modes={"columns": "evolve"}, **arguments)
    assert result_of(table.sample(evolving)).passed
    # They would not be in the table.
    discarding = build_drift_schedule(contract, "@daily", schema_modes="discard_value", **arguments)
    assert [one["what"] for one in drift_of(result_of(table.sample(discarding)))] == ["schema_undeclared"]


def test_consumers_are_told_where_asked_and_a_masked_value_is_in_no_message(payments, table, registry):
    registry.publish(payments.model_copy(update={"consumers": ()}), by="ci")
    registry.register("payments", Consumer("Ledger", "ledger@example.com", fields=("amount",)), by="ci")
    defs = build_drift_schedule(
        payments,
        "@daily",
        location=table.path,
        registry=registry.location,
        notify=["owner", "consumers"],
        owner_contacts=["https://hooks.example.com/payments"],
    )
    assert result_of(table.sample(defs)).passed
    table.write(DRIFTED)
    table.sample(defs)
    waiting = [one for one, _ in registry.outbox.waiting()]
    assert {(one.consumer, one.contact) for one in waiting} == {
        ("owner of payments", "https://hooks.example.com/payments"),
        ("Reconciliation", "mailto:recon@example.com"),
    }


def test_an_owner_without_an_address_is_told_in_the_log(table, registry):
    contract = build_contract(build_field("currency", "string", Enum(values=("INR",))), dataset="transactions")
    defs = build_drift_schedule(
        contract,
        "@daily",
        asset_key=["pay", "transactions"],
        registry=registry.location,
        load=lambda spark: spark.read.parquet(str(table.path)).select("currency"),
    )
    assert not result_of(table.sample(defs)).passed
    (told,) = [one for one, _ in registry.outbox.waiting()]
    assert (told.consumer, told.contact) == ("owner of test", "log:")


def test_a_table_that_is_not_there_is_an_error_of_the_run(payments, table, tmp_path, registry):
    defs = build_drift_schedule(payments, "@daily", location=tmp_path / "none", registry=registry.location)
    done = table.sample(defs)
    assert not done.success
    assert done.get_asset_check_evaluations() == []
    unreadable = f"cannot read table '{tmp_path / 'none'}': there is nothing. Check the path."
    assert failure_of(done) == f"pay/transactions cannot be sampled: {unreadable}"


def test_a_registry_that_is_none_is_an_error_of_the_run(payments, table, tmp_path):
    (tmp_path / "r.db").write_text("no database at all, but a text that is long enough to be looked at" * 20)
    done = table.sample(build_drift_schedule(payments, "@daily", location=table.path, registry=tmp_path / "r.db"))
    assert failure_of(done).startswith("pay/transactions cannot be sampled: the registry")


class Impatient:
    """A registry that nobody waits for."""

    def __init__(self, location: str) -> None:
        self.location = location

    def open(self) -> Registry:
        return Registry.open(self.location, patience=0.1)


def test_drift_that_nobody_can_be_told_of_is_recorded_and_fails_the_run(payments, table, registry, tmp_path):
    impatient = Impatient(registry.location)
    baselines = tmp_path / "baselines"
    defs = build_drift_schedule(payments, "@daily", location=table.path, baselines=baselines, registry=impatient)
    assert result_of(table.sample(defs)).passed
    table.write(DRIFTED)
    with closing(sqlite3.connect(registry.location)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        done = table.sample(defs)
    assert not done.success
    assert not result_of(done).passed
    assert failure_of(done).startswith("Of the drift of pay/transactions nobody could be told: the registry")
    assert registry.outbox.waiting() == []
    # The next sampling tells it.
    assert table.sample(defs).success
    assert registry.outbox.waiting() != []


def test_the_schedule_is_one_that_dagster_takes(payments):
    defs = build_drift_schedule(
        payments,
        "0 6 * * *",
        timezone="Europe/Berlin",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        name="pay_drift",
    )
    schedule = defs.resolve_schedule_def("pay_drift_schedule")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 6 * * *", "Europe/Berlin")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    with dg.build_schedule_context(scheduled_execution_time=NOON) as context:
        (request,) = schedule.evaluate_tick(context).run_requests
    # A key would be taken for a repetition for ever.
    assert request.run_key is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"cron": "every day"}, r"'contract_drift' cannot be made.*0 6 \* \* \*"),
        ({"cron": "@daily", "timezone": "Berlin"}, "'contract_drift' cannot be made.*Europe/Berlin"),
        ({"cron": "@daily", "notify": "owner"}, 'a list of "owner", "consumers"'),
        ({"cron": "@daily", "notify": ["everyone"]}, "notify names 'everyone'"),
        ({"cron": "@daily", "rows": 0}, "a sample of 0 rows"),
        ({"cron": "@daily", "registry": "https://registry.example.com"}, "takes no messages"),
        ({"cron": "@daily", "assets": [dg.AssetSpec("other")]}, r"pay/transactions, which is no known asset\."),
        ({"cron": "@daily", "location": "a", "load": len}, "both location and load"),
        (
            {"cron": "@daily", "owner_contacts": ["https://u:geheim@example.com/hook"]},
            "the owner.*has a password in it",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_refused(payments, arguments, said):
    with pytest.raises(DataboxError, match=said):
        build_drift_schedule(payments, **arguments)


def test_two_contracts_about_one_asset_and_none_at_all_are_refused(payments, tmp_path):
    with pytest.raises(DataboxError, match="contracts payments and payments are both about pay/transactions"):
        build_drift_schedule([payments, payments], "@daily")
    with pytest.raises(DataboxError, match="no contract was given"):
        build_drift_schedule([], "@daily")
    with pytest.raises(DataboxError, match=f"there is no contract in {tmp_path}"):
        build_drift_schedule(tmp_path, "@daily")


def test_a_misspelt_asset_is_seen_when_the_manager_has_no_table_of_it(payments, instance, manager):
    drift = build_drift_schedule(payments, "@daily", notify=(), baselines=MemoryBaselineStore())
    whole = dg.Definitions.merge(dg.Definitions(resources={"io_manager": manager}), drift)
    done = whole.resolve_job_def("contract_drift").execute_in_process(instance=instance, raise_on_error=False)
    assert "nothing was published there yet. Materialize it first." in failure_of(done)
    assert isinstance(manager, ContractIOManager)


def test_loading_them_loads_neither_spark_nor_the_registry():
    code = (
        "import sys, dagster as dg\n"
        "from databox_contracts.dagster import build_contract_audit_schedule, build_drift_schedule\n"
        "parts = [build_drift_schedule('contracts', '@daily', registry='r.db', baselines='b', quarantine='q'),"
        " build_contract_audit_schedule('contracts', registry='r.db')]\n"
        "assert len(dg.Definitions.merge(*parts).asset_checks) == 10\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules} & {'pyspark', 'sqlalchemy', 'pandas', 'pyarrow'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
