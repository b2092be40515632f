"""The IO manager on its own: where its session comes from, and what plain assets may do with it."""

from pathlib import Path

import dagster as dg
import pytest
from dagster_pyspark import LazyPySparkResource, PySparkResource
from pyspark.sql import DataFrame

from databox_contracts.dagster import ContractIOManager, SharedSparkResource
from databox_contracts.errors import DataboxError, PublicationError

CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: planes
version: 1.0.0
status: active
schema:
  - name: planes
    properties:
      - name: tailnum
        logicalType: string
        required: true
"""
KEY = dg.AssetKey("planes")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "planes.yaml"
    path.write_text(CONTRACT)
    return str(path)


# Dagster itself asks for it when it sets up a resource inside another one.
@pytest.mark.filterwarnings("ignore:InitResourceContext.dagster_run is deprecated:DeprecationWarning")
@pytest.mark.parametrize("kind", [PySparkResource, LazyPySparkResource])
def test_a_spark_resource_of_dagster_pyspark_will_do(kind, hourly, tmp_path, instance, spark):
    manager = ContractIOManager(root=str(tmp_path / "tables"), spark=kind(spark_config={}))
    result = dg.materialize([hourly()], resources={"io_manager": manager}, instance=instance)
    assert result.success
    assert (tmp_path / "tables" / "nyc" / "hourly").is_symlink()


def test_settings_may_come_from_the_environment(hourly, tmp_path, monkeypatch):
    monkeypatch.setenv("DATABOX_TEST_ROOT", str(tmp_path))
    shared = SharedSparkResource(directory=dg.EnvVar("DATABOX_TEST_ROOT"))
    definitions = dg.Definitions(
        assets=[hourly()],
        resources={"io_manager": ContractIOManager(root=dg.EnvVar("DATABOX_TEST_ROOT"), spark=shared)},
    )
    dg.Definitions.validate_loadable(definitions)
    assert list(tmp_path.iterdir()) == [], "loading starts nothing"


def test_what_has_no_session_is_refused(tmp_path):
    manager = ContractIOManager(root=str(tmp_path), spark=object())
    with pytest.raises(DataboxError, match=r"has no spark_session\. Use SharedSparkResource"):
        _ = manager.spark_session


def test_a_key_that_leads_out_of_the_root_is_refused(manager):
    with pytest.raises(PublicationError, match="is no name for a table"):
        manager.place(dg.AssetKey(["..", "x"]))


def planes(spark, rows, metadata):
    @dg.asset(metadata=metadata, retry_policy=dg.RetryPolicy(max_retries=1))
    def planes() -> DataFrame:
        return spark.createDataFrame(rows, "tailnum string")

    return planes


def test_a_plain_asset_is_published_under_the_contract_it_names(run, manager, spark, file):
    done = run(planes(spark, [("N10156",)], {"contract": file}))
    assert done.success
    facts = done.materialized["planes"]
    assert (facts["dagster/row_count"].value, facts["published"].value) == (1, True)
    assert facts["contract_version"].value == "1.0.0"
    assert manager.read(KEY).count() == 1


def test_a_plain_asset_that_breaks_its_contract_is_not_published(run, manager, spark, file):
    done = run(planes(spark, [(None,)], {"contract": file}))
    assert not done.success
    assert done.attempts == 1
    assert done.materialized == {}
    assert "planes was not published, its 1 row breaks 1 of" in done.errors[0]
    assert not manager.place(KEY).link.exists()
    lenient = run(planes(spark, [(None,)], {"contract": dg.MetadataValue.path(file), "on_violation": "warn"}))
    assert lenient.success
    assert lenient.materialized["planes"]["contract_holds"].value is False


def test_a_plain_asset_without_a_contract_is_refused_with_the_way_out(run, spark, manager):
    done = run(planes(spark, [("N10156",)], {}))
    assert not done.success
    assert "publishes only tables with a contract, and planes has none" in done.errors[0]
    assert not manager.place(KEY).link.exists()


def test_a_partition_of_a_plain_asset_does_not_replace_the_table(manager, instance, spark, file):
    @dg.asset(metadata={"contract": file}, partitions_def=dg.StaticPartitionsDefinition(["a"]))
    def planes() -> DataFrame:
        return spark.createDataFrame([("N10156",)], "tailnum string")

    result = dg.materialize(
        [planes], resources={"io_manager": manager}, instance=instance, partition_key="a", raise_on_error=False
    )
    (failure,) = result.get_step_failure_events()
    said = failure.step_failure_data.error_display_string
    assert "nobody says which column of planes tells a row's partition" in said
    assert not manager.place(KEY).link.exists()


def test_a_plain_asset_that_returns_something_else_is_told(run, file):
    @dg.asset(metadata={"contract": file})
    def planes() -> int:
        return 1

    done = run(planes)
    assert "planes returned builtins.int where a Spark DataFrame is due" in done.errors[0]
