"""A small contract, its tables and their runs, on a real instance."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import DataFrame, SparkSession

from databox_contracts.dagster import ContractIOManager, contract_asset
from databox_contracts.datatypes import parse_type
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import Maximum, Minimum, NotEnforced, Pattern, PrimaryKey, Required, Severity

SCHEMA = "station string, temp double, phone string"
GOOD = [("EWR", 3.5, "555-0100"), ("JFK", None, None)]


@pytest.fixture
def weather() -> Contract:
    return Contract(
        id="weather-hourly",
        name="Weather",
        version="1.10",
        status="active",
        domain="nyc",
        owner="Weather Team",
        description="Hourly observations.",
        datasets=(
            Dataset(
                name="hourly",
                fields=(
                    Field(name="station", type=parse_type("string"), rules=(Required(),), description="Its code."),
                    Field(
                        name="temp",
                        type=parse_type("double"),
                        rules=(Minimum(limit=-40), Maximum(limit=50, severity=Severity.WARNING)),
                    ),
                    Field(
                        name="phone", type=parse_type("string"), rules=(Pattern(pattern=r"^\d{3}-\d{4}$"),), pii=True
                    ),
                ),
                rules=(
                    PrimaryKey(fields=("station",)),
                    NotEnforced(reason="prose", description="Stations do not move."),
                ),
            ),
        ),
    )


@pytest.fixture
def instance(monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    # One keeper of the environment: what a test sets over it would else come back after the instance is gone.
    with dg.instance_for_test(set_dagster_home=False) as instance:
        monkeypatch.setenv("DAGSTER_HOME", instance.root_directory)
        yield instance


@pytest.fixture
def manager(tmp_path: Path, spark: SparkSession) -> ContractIOManager:
    return ContractIOManager(root=str(tmp_path / "tables"), spark=spark)


class Source:
    """The rows that an asset's function returns, and how often it was called."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.rows: list[tuple[Any, ...]] = list(GOOD)
        self.calls = 0

    def read(self) -> DataFrame:
        self.calls += 1
        return self.spark.createDataFrame(self.rows, SCHEMA)


@pytest.fixture
def source(spark: SparkSession) -> Source:
    return Source(spark)


Build = Callable[..., dg.AssetsDefinition]


@pytest.fixture
def hourly(weather: Contract, source: Source) -> Build:
    def build(contract: Contract = weather, **options: Any) -> dg.AssetsDefinition:
        @contract_asset(contract=contract, **options)
        def hourly() -> DataFrame:
            return source.read()

        return hourly

    return build


class Run:
    """What a run left in the instance."""

    def __init__(self, result: dg.ExecuteInProcessResult) -> None:
        self.success = result.success
        self.checks = {one.check_name: one for one in result.get_asset_check_evaluations()}
        self.materialized = {
            event.asset_key.to_user_string(): event.step_materialization_data.materialization.metadata
            for event in result.get_asset_materialization_events()
            if event.asset_key is not None
        }
        self.attempts = sum(event.is_step_start or event.is_step_restarted for event in result.all_events)
        self.errors = [event.step_failure_data.error_display_string for event in result.get_step_failure_events()]

    @property
    def failed_checks(self) -> dict[str, str]:
        return {name: one.severity.value for name, one in self.checks.items() if not one.passed}


@pytest.fixture
def run(manager: ContractIOManager, instance: dg.DagsterInstance) -> Callable[..., Run]:
    def run(*assets: Any, selection: Any = None, **resources: Any) -> Run:
        result = dg.materialize(
            list(assets),
            resources={"io_manager": manager, **resources},
            instance=instance,
            selection=selection,
            raise_on_error=False,
        )
        return Run(result)

    return run
