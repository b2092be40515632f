"""The shared server under Dagster's own executors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import psutil
import pytest

from databox_contracts.dagster.resources import SharedSparkResource
from databox_contracts.spark.server import server_status, stop_server

if TYPE_CHECKING:
    from collections.abc import Iterator

# Steps are processes of their own and load the job by its function: it finds its directory in the environment.
PLACE = "DATABOX_TEST_PLACE"


@dg.asset
def numbers(shared: SharedSparkResource) -> None:
    spark = shared.spark_session
    assert shared.spark_session is spark
    spark.range(10).write.parquet(os.environ[PLACE] + "/numbers")


@dg.asset(deps=[numbers])
def evens(shared: SharedSparkResource) -> dg.MaterializeResult:
    return measured(shared, "id % 2 = 0")


@dg.asset(deps=[numbers])
def large(shared: SharedSparkResource) -> dg.MaterializeResult:
    return measured(shared, "id > 6")


def measured(shared: SharedSparkResource, condition: str) -> dg.MaterializeResult:
    place = os.environ[PLACE]
    rows = shared.spark_session.read.parquet(place + "/numbers").where(condition).count()
    return dg.MaterializeResult(
        metadata={"rows": rows, "servers": java_processes(place), "process": os.getpid()},
    )


def java_processes(place: str) -> int:
    commands = [process.info["cmdline"] or [""] for process in psutil.process_iter(["cmdline"])]
    return sum(Path(command[0]).name == "java" and any(place in part for part in command) for command in commands)


def shared_job() -> dg.JobDefinition:
    shared = SharedSparkResource(
        directory=os.environ[PLACE] + "/server",
        conf={"spark.master": "local[2]", "spark.driver.memory": "512m", "spark.sql.shuffle.partitions": 2},
    )
    definitions = dg.Definitions(
        assets=[numbers, evens, large],
        resources={"shared": shared},
        jobs=[dg.define_asset_job("everything", executor_def=dg.multiprocess_executor)],
    )
    return definitions.resolve_job_def("everything")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(PLACE, str(tmp_path))
    yield tmp_path
    stop_server(tmp_path / "server")


@pytest.mark.full
def test_the_steps_of_a_run_share_one_java_process(place: Path) -> None:
    with (
        dg.instance_for_test() as instance,
        dg.execute_job(dg.reconstructable(shared_job), instance=instance) as result,
    ):
        assert result.success
        found = {}
        for event in result.get_asset_materialization_events():
            if event.asset_key != dg.AssetKey("numbers"):
                found[event.asset_key.to_user_string()] = event.step_materialization_data.materialization.metadata
    assert {name: metadata["rows"].value for name, metadata in found.items()} == {"evens": 5, "large": 3}
    assert {name: metadata["servers"].value for name, metadata in found.items()} == {"evens": 1, "large": 1}
    assert found["evens"]["process"].value != found["large"]["process"].value
    (status,) = server_status(place / "server")
    assert status.clients == 0, "the steps are over and it waits for the next ones"


def test_nothing_starts_before_a_session_is_asked_for(tmp_path: Path) -> None:
    @dg.asset
    def idle(shared: SharedSparkResource) -> None:
        assert hasattr(type(shared), "spark_session")

    shared = SharedSparkResource(directory=str(tmp_path / "server"))
    assert dg.materialize([idle], resources={"shared": shared}).success
    assert not (tmp_path / "server").exists()
