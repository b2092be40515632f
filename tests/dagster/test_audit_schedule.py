"""Contracts are compared with their tables and with the registry: where they diverge, the run fails."""

from datetime import date
from typing import Any

import dagster as dg
import pytest

from databox_contracts.dagster import ContractIOManager, build_contract_audit_schedule
from databox_contracts.errors import DataboxError
from databox_contracts.model import Enforcement
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Enum, Minimum, PrimaryKey, Required
from databox_contracts.testing import build_contract, build_field

KEY = dg.AssetKey(["shop", "orders"])
SCHEMA = "id bigint, state string, total decimal(10,2)"
ROWS = [(1, "new", None), (2, "paid", None)]


@pytest.fixture(autouse=True)
def no_registry(monkeypatch):
    for name in ("DATABOX_REGISTRY", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def orders():
    return build_contract(
        build_field("id", "bigint"),
        build_field("state", "varchar(4)", Required(), Enum(values=("new",))),
        build_field("total", "decimal(10,2)", Minimum(limit=0)),
        id="orders",
        domain="shop",
        dataset="orders",
        rules=(PrimaryKey(fields=("id",)),),
    )


@pytest.fixture
def audited(spark, tmp_path, instance):
    """What the audit of a table says: the failure of the run if there is one, and the result."""

    def audit(contract: Any, rows: Any = ROWS, schema: str = SCHEMA, **arguments: Any) -> tuple[str, Any]:
        path = tmp_path / "orders"
        spark.createDataFrame(rows, schema).write.mode("overwrite").parquet(str(path))
        defs = dg.Definitions.merge(
            dg.Definitions(assets=[dg.AssetSpec(KEY)], resources={"spark": spark}),
            build_contract_audit_schedule(contract, location=path, **arguments),
        )
        dg.Definitions.validate_loadable(defs)
        job = defs.resolve_job_def("contract_audit")
        done = job.execute_in_process(instance=instance, raise_on_error=False)
        failed = [event.step_failure_data.user_failure_data for event in done.get_step_failure_events()]
        said = "".join(str(one.description) for one in failed if one is not None)
        assert done.success is not bool(said)
        evaluations = done.get_asset_check_evaluations()
        return said, evaluations[0] if evaluations else None

    return audit


def divergence_of(result: Any) -> list[tuple[Any, ...]]:
    records = (record.data for record in result.metadata["divergence"].records)
    return [(one["kind"], one["field"], one["promised"], one["found"]) for one in records]


def test_a_table_that_is_as_promised_holds_whatever_its_values_are(audited, orders):
    # "paid" is no value that the contract allows, which is for other checks to say.
    said, result = audited(orders)
    assert said == ""
    assert (result.passed, result.check_name, result.asset_key) == (True, "contract_audit", KEY)
    assert result.description == "10 promises about the schema hold; it was compared with no registry"
    assert result.metadata["registry"].value == "none, so it was not compared with one"
    assert result.metadata["differences"].value == 0
    assert result.metadata["contract_version"].value == "1.0.0"


def test_whatever_diverges_is_in_the_table_and_fails_the_run(audited, orders):
    rows = [(None, "paid off", 1.5, "x"), (2, None, 2.5, "y")]
    said, result = audited(orders, rows, "id bigint, state string, total double, note string")
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert divergence_of(result) == [
        ("nulls", "id", "= 0", "1"),
        ("nulls", "state", "= 0", "1"),
        ("type", "state", "= 0", "1"),
        ("type", "total", "decimal(10, 2)", "number(64)"),
        ("column_undeclared", None, None, "note"),
    ]
    lines = said.splitlines()
    assert lines[0] == "Contract orders 1.0.0, no owner declared and shop/orders have diverged:"
    assert lines[-1] == "- orders.undeclared: note is in the table and not in the contract"
    assert len(lines) == 6
    assert "paid off" not in repr(result)


def test_a_column_that_is_missing_is_one_difference(audited, orders):
    _, result = audited(orders, [(1, None)], "id bigint, total decimal(10,2)")
    assert divergence_of(result) == [("column_missing", "state", None, None)]


def test_an_empty_table_is_as_promised(audited, orders):
    said, result = audited(orders, [])
    assert (said, result.passed, result.metadata["rows_in"].value) == ("", True, 0)


def test_columns_that_may_evolve_are_no_difference(audited, orders):
    rows, schema = [(1, "new", None, "x")], f"{SCHEMA}, note string"
    assert audited(orders, rows, schema, schema_modes={"columns": "evolve"})[1].passed
    assert not audited(orders, rows, schema, schema_modes={"columns": "discard_value"})[1].passed


@pytest.mark.parametrize("arguments", [{"on_divergence": "warn"}, {}])
def test_it_only_warns_where_asked_and_in_the_grace_period(audited, orders, arguments):
    if not arguments:
        orders = orders.model_copy(update={"enforcement": Enforcement(mode="warn", until=date(9999, 1, 1))})
    said, result = audited(orders, [(1, "new")], "id bigint, state string", **arguments)
    assert said == ""
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)


# --- the registry -----------------------------------------------------------------------------------------------------


def kinds_of(result: Any) -> list[tuple[Any, ...]]:
    return [(kind, promised, found) for kind, _, promised, found in divergence_of(result)]


def test_the_contract_is_compared_with_what_is_registered(audited, orders, tmp_path, monkeypatch):
    file = tmp_path / "registry.db"
    monkeypatch.setenv("DATABOX_REGISTRY", str(file))
    with Registry.open(file) as registry:
        said, result = audited(orders)
        assert kinds_of(result) == [("not_registered", None, "1.0.0")]
        assert said.splitlines()[1] == "- the registry has no contract orders"

        registry.publish(orders, by="ci")
        said, result = audited(orders)
        assert (said, result.passed) == ("", True)
        assert result.description.endswith("it is as registered")
        assert result.metadata["registry"].value == str(file)

        # Another spelling is the same version; other promises under it are not.
        fields = orders.datasets[0].fields
        changed = orders.datasets[0].model_copy(update={"fields": fields[:2]})
        _, result = audited(
            orders.model_copy(update={"version": "v1.0", "datasets": (changed,)}),
            [(1, "new")],
            "id bigint, state string",
        )
        assert kinds_of(result) == [
            ("registered_field_removed", "decimal(10, 2)", None),
            ("registered_version_not_bumped", "1.0.0", "v1.0"),
        ]
        assert "total is not as registered under 1.0.0: The field is gone" in result.description

        later = orders.model_copy(update={"version": "1.1.0", "description": "All orders."})
        _, result = audited(later)
        assert kinds_of(result) == [("not_registered", None, "1.1.0")]
        assert "not in the registry, which has 1.0.0" in result.description

        registry.publish(later.model_copy(update={"status": "active"}), by="ci")
        _, result = audited(orders.model_copy(update={"status": "active"}))
        assert kinds_of(result) == [("version", "1.1.0", "1.0.0")]


def test_a_registry_that_does_not_answer_is_an_error_of_the_run(audited, orders, tmp_path):
    (tmp_path / "r.db").write_text("no database at all, but a text that is long enough to be looked at" * 20)
    said, result = audited(orders, registry=tmp_path / "r.db")
    assert result is None
    assert said.startswith("shop/orders cannot be audited: the registry")


def test_the_registry_of_the_instance_counts_where_it_is_there(audited, orders, tmp_path, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert audited(orders)[1].passed
    Registry.open(tmp_path / "databox_registry.db").close()
    assert kinds_of(audited(orders)[1]) == [("not_registered", None, "1.0.0")]


# --- how it is built --------------------------------------------------------------------------------------------------


def test_one_table_that_is_missing_does_not_keep_the_others_from_being_compared(
    spark, tmp_path, instance, weather, run, hourly
):
    manager = ContractIOManager(root=str(tmp_path / "tables"), spark=spark)
    assert run(hourly()).success
    other = build_contract(build_field("id", "bigint"), domain="nyc", dataset="gone")
    defs = dg.Definitions.merge(
        dg.Definitions(resources={"io_manager": manager}), build_contract_audit_schedule([other, weather], "@daily")
    )
    job = defs.resolve_job_def("contract_audit")
    done = job.execute_in_process(instance=instance, raise_on_error=False)
    assert not done.success
    (result,) = done.get_asset_check_evaluations()
    assert (result.asset_key.to_user_string(), result.passed) == ("nyc/hourly", True)
    (failed,) = done.get_step_failure_events()
    assert failed.step_failure_data.user_failure_data.description.startswith("nyc/gone cannot be audited: cannot read")


def test_it_runs_every_day_and_what_it_does_not_know_is_refused(orders):
    schedule = build_contract_audit_schedule(orders).resolve_schedule_def("contract_audit_schedule")
    assert (schedule.cron_schedule, schedule.default_status) == ("0 6 * * *", dg.DefaultScheduleStatus.STOPPED)
    with pytest.raises(DataboxError, match="Use one of fail, warn"):
        build_contract_audit_schedule(orders, on_divergence="shout")  # type: ignore[arg-type]
    with pytest.raises(DataboxError, match="Use one of evolve, freeze"):
        build_contract_audit_schedule(orders, schema_modes="shout")
