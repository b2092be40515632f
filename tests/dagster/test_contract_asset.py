"""Runs of contracted assets: what is published, what is recorded, and what stops."""

from typing import Any

import dagster as dg
import pytest
from pyspark.sql import DataFrame

from databox_contracts.dagster import ContractIOManager, SharedSparkResource, contract_asset
from databox_contracts.model import Enforcement

KEY = dg.AssetKey(["nyc", "hourly"])
BAD = [("EWR", 3.5, "555-0100"), ("LGA", -50.0, "secret"), ("JFK", 4.0, None), ("JFK", 5.0, None)]
ALL = {"contract_accuracy", "contract_completeness", "contract_conformity", "contract_uniqueness"}


def plain(metadata: Any) -> dict[str, Any]:
    return {name: value.value for name, value in metadata.items()}


def rules(evaluation: Any) -> dict[str, dict[str, Any]]:
    return {record.data["rule"]: dict(record.data) for record in evaluation.metadata["rules"].records}


def downstream(calls: list[int]) -> dg.AssetsDefinition:
    @dg.asset(io_manager_key="plain", ins={"hourly": dg.AssetIn(key=KEY)})
    def rows(hourly: DataFrame) -> int:
        calls.append(hourly.count())
        return calls[-1]

    return rows


def test_what_keeps_its_contract_is_published_and_read_downstream(run, hourly, manager, source):
    calls: list[int] = []
    done = run(hourly(), downstream(calls), plain=dg.InMemoryIOManager())
    assert done.success
    assert calls == [2]
    assert source.calls == 1
    assert set(done.checks) == ALL
    assert done.failed_checks == {}
    facts = plain(done.materialized["nyc/hourly"])
    assert facts.pop("duration_seconds") > 0
    assert facts == {
        "dagster/row_count": 2,
        "path": str(manager.place(KEY).link),
        "contract_holds": True,
        "contract_id": "weather-hourly",
        "contract_version": "1.10",
        "contract_owner": "Weather Team",
        "rules_passed": 12,
        "rules_failed": 0,
        "rules_not_evaluated": 0,
        "rules_skipped": 1,
        "published": True,
        "on_violation": "fail",
        "rows_in": 2,
        "rows_published": 2,
        "rows_quarantined": 0,
        "rows_rejected": 0,
        "rows_discarded": 0,
        "scans": 2,
        "readable_version": manager.place(KEY).current_version(),
    }
    assert done.checks["contract_conformity"].description == "8 rules hold, 1 not enforced"


def test_a_violation_fails_the_run_and_leaves_the_old_version_readable(run, hourly, manager, source, instance):
    calls: list[int] = []
    asset = hourly(retry_policy=dg.RetryPolicy(max_retries=2))
    assert run(asset, downstream(calls), plain=dg.InMemoryIOManager()).success
    version = manager.place(KEY).current_version()
    source.rows = BAD

    done = run(asset, downstream(calls), plain=dg.InMemoryIOManager())

    assert not done.success
    assert done.attempts == 1, "the same data breaks the same promise: no retry"
    assert source.calls == 2
    assert done.materialized == {}
    assert calls == [2], "what is downstream did not run"
    assert manager.read(KEY).count() == 2
    assert manager.place(KEY).current_version() == version
    assert done.failed_checks == {
        "contract_accuracy": "ERROR",
        "contract_conformity": "ERROR",
        "contract_uniqueness": "ERROR",
    }
    assert done.checks["contract_completeness"].passed
    facts = plain(done.checks["contract_uniqueness"].metadata)
    assert (facts["published"], facts["readable_version"]) == (False, version)
    assert (facts["rows_in"], facts["rows_published"], facts["rows_rejected"]) == (4, 0, 4)
    assert (facts["rules_passed"], facts["rules_failed"]) == (0, 1)
    key = rules(done.checks["contract_uniqueness"])["hourly.primary_key"]
    assert (key["status"], key["failed_rows"], key["failed_percent"]) == ("failed", 1, 25.0)
    assert key["samples"] == '"JFK"'
    (error,) = done.errors
    assert "nyc/hourly was not published, its 4 rows break 3 of 13 rules of contract Weather 1.10" in error
    assert "owned by Weather Team" in error
    assert "hourly.temp.minimum: 1 of 4 rows (25 %) are below -40" in error
    assert f"Version {version} stays readable." in error
    assert len(instance.fetch_materializations(KEY, limit=9).records) == 1


def test_a_violated_first_version_leaves_no_table(run, hourly, manager, source):
    source.rows = BAD
    done = run(hourly())
    assert not done.success
    assert not manager.place(KEY).link.exists()
    assert "No version has been published yet." in done.errors[0]
    assert "readable_version" not in done.checks["contract_accuracy"].metadata


def test_values_that_must_not_be_shown_reach_no_event(run, hourly, source, instance):
    source.rows = BAD
    run(hourly())
    (record,) = instance.get_runs()
    logged = [str(entry) for entry in instance.all_logs(record.run_id)]
    assert logged
    assert not any("secret" in entry for entry in logged)
    assert any("hourly.phone.pattern" in entry for entry in logged), "the count and the rule do"


def test_quarantine_publishes_the_rest_and_says_so(run, hourly, manager, source):
    source.rows = BAD
    done = run(hourly(on_violation="quarantine"))
    assert done.success
    assert manager.read(KEY).count() == 1
    assert set(done.failed_checks.values()) == {"WARN"}
    facts = plain(done.materialized["nyc/hourly"])
    assert (facts["rows_in"], facts["rows_published"], facts["rows_quarantined"]) == (4, 1, 3)
    assert facts["contract_holds"] is False
    assert facts["dagster/row_count"] == 1
    held = plain(done.checks["contract_uniqueness"].metadata)["quarantine"]
    assert manager.spark_session.read.parquet(held).count() == 3


def test_warn_publishes_all_and_says_so(run, hourly, manager, source):
    source.rows = BAD
    done = run(hourly(on_violation="warn"))
    assert done.success
    assert manager.read(KEY).count() == 4
    assert set(done.failed_checks.values()) == {"WARN"}
    assert plain(done.materialized["nyc/hourly"])["contract_holds"] is False


def test_in_the_grace_period_violations_warn(run, hourly, weather, source):
    source.rows = BAD
    graced = weather.model_copy(update={"enforcement": Enforcement(mode="warn", until="2999-01-01")})
    done = run(hourly(graced))
    assert done.success
    assert set(done.failed_checks.values()) == {"WARN"}
    assert plain(done.materialized["nyc/hourly"])["on_violation"] == "warn"


def test_a_warning_rule_alone_stops_nothing(run, hourly, source):
    source.rows = [("EWR", 60.0, None)]
    done = run(hourly())
    assert done.success
    assert done.failed_checks == {"contract_accuracy": "WARN"}


def test_a_rule_that_could_not_be_evaluated_is_never_green(run, weather, spark):
    @contract_asset(contract=weather)
    def hourly() -> DataFrame:
        return spark.createDataFrame([("EWR", None)], "station string, phone string")

    done = run(hourly)
    assert not done.success
    assert done.failed_checks == {"contract_accuracy": "ERROR", "contract_conformity": "ERROR"}
    assert done.checks["contract_accuracy"].metadata["rules_not_evaluated"].value == 2


def test_checks_alone_read_the_published_table(run, hourly, manager, source):
    asset = hourly()
    assert run(asset).success
    done = run(asset, selection=dg.AssetSelection.checks(*asset.check_keys))
    assert done.success
    assert source.calls == 1, "the function was not called again"
    assert set(done.checks) == ALL
    assert done.materialized == {}
    facts = plain(done.checks["contract_accuracy"].metadata)
    assert facts["readable_version"] == manager.place(KEY).current_version()
    assert "published" not in facts


def test_checks_alone_find_what_a_lenient_publish_let_through(run, hourly, source):
    source.rows = BAD
    assert run(hourly(on_violation="warn")).success
    strict = hourly(retry_policy=dg.RetryPolicy(max_retries=2))
    done = run(strict, selection=dg.AssetSelection.checks(*strict.check_keys))
    assert not done.success
    assert done.attempts == 1
    assert done.failed_checks["contract_uniqueness"] == "ERROR"
    assert "The published table nyc/hourly breaks 3 of 13 rules" in done.errors[0]
    holding = dg.AssetSelection.checks(dg.AssetCheckKey(KEY, "contract_completeness"))
    only = run(strict, selection=holding)
    assert only.success
    assert set(only.checks) == {"contract_completeness"}


def test_a_table_that_cannot_be_read_is_an_error_and_no_failed_check(run, hourly):
    asset = hourly()
    done = run(asset, selection=dg.AssetSelection.checks(*asset.check_keys))
    assert not done.success
    assert done.checks == {}
    assert "nothing was published there yet" in done.errors[0]


# Dagster itself asks for it when it sets up a resource inside another one.
@pytest.mark.filterwarnings("ignore:InitResourceContext.dagster_run is deprecated:DeprecationWarning")
def test_spark_that_cannot_start_is_an_error_and_no_failed_check(run, hourly, manager, instance, tmp_path):
    asset = hourly()
    assert run(asset).success
    (tmp_path / "file").touch()
    nowhere = SharedSparkResource(directory=str(tmp_path / "file" / "spark"))
    result = dg.materialize(
        [asset],
        resources={"io_manager": ContractIOManager(root=manager.root, spark=nowhere)},
        instance=instance,
        selection=dg.AssetSelection.checks(*asset.check_keys),
        raise_on_error=False,
    )
    assert not result.success
    assert result.get_asset_check_evaluations() == []
    (failure,) = result.get_step_failure_events()
    assert "SparkUnavailableError" in failure.step_failure_data.error_display_string


def test_deselected_checks_are_audited_all_the_same(run, hourly, source):
    asset = hourly()
    alone = dg.AssetSelection.assets(asset).without_checks()
    assert run(asset, selection=alone).success
    source.rows = BAD
    done = run(asset, selection=alone)
    assert not done.success
    assert (done.checks, done.materialized) == ({}, {})


def test_an_error_of_the_function_is_an_error_of_the_run(run, weather):
    @contract_asset(contract=weather, retry_policy=dg.RetryPolicy(max_retries=1))
    def hourly() -> DataFrame:
        raise OSError("the source is away")

    done = run(hourly)
    assert not done.success
    assert done.checks == {}
    assert done.attempts == 2, "such an error is retried"


@pytest.mark.parametrize(("returned", "named"), [(None, "nothing"), ([1], "builtins.list")])
def test_what_is_no_dataframe_is_named(run, weather, returned, named):
    @contract_asset(contract=weather)
    def hourly():
        return returned

    done = run(hourly)
    assert not done.success
    assert f"nyc/hourly returned {named} where a Spark DataFrame is due" in done.errors[0]
    assert "Did you forget to return the DataFrame?" in done.errors[0]


class Station(dg.ConfigurableResource):
    name: str


class Settings(dg.Config):
    temp: float = 1.0


def test_context_config_resources_and_inputs_reach_the_function(run, hourly, weather, spark):
    seen: dict[str, Any] = {}

    @contract_asset(
        contract=weather.model_copy(update={"domain": "other"}),
        key=["other", "copy"],
        consumes={"nyc.hourly": "^1"},
    )
    def copy(context: dg.AssetExecutionContext, config: Settings, station: Station, hourly: DataFrame) -> DataFrame:
        seen.update(key=context.asset_key, temp=config.temp, name=station.name, rows=hourly.count())
        return hourly

    assert run(hourly(), copy, station=Station(name="EWR")).success
    assert seen == {"key": dg.AssetKey(["other", "copy"]), "temp": 1.0, "name": "EWR", "rows": 2}


def test_inputs_may_come_as_keyword_arguments(run, hourly, weather):
    @contract_asset(contract=weather, key="copy", ins={"observed": dg.AssetIn(key=KEY)})
    def copy(**tables) -> DataFrame:
        assert set(tables) == {"observed"}
        return tables["observed"]

    assert run(hourly(), copy).success


def test_resources_by_key_still_work(run, weather, source):
    @contract_asset(contract=weather, required_resource_keys={"station"})
    def hourly(context) -> DataFrame:
        assert context.resources.station.name == "EWR"
        return source.read()

    assert run(hourly, station=Station(name="EWR")).success


def test_another_io_manager_is_refused_with_the_way_out(hourly, instance):
    result = dg.materialize([hourly()], instance=instance, raise_on_error=False)
    (failure,) = result.get_step_failure_events()
    said = str(failure.event_specific_data.error_display_string)
    assert "Put a ContractIOManager there" in said
