"""A code location as users have it: a real web server launches runs whose steps are processes on one Spark server."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from databox_contracts.spark.server import stop_server

CODE = """
import json
import os
from pathlib import Path

import dagster as dg
from pyspark.sql import DataFrame

from databox_contracts.dagster import ContractIOManager, SharedSparkResource, contract_asset

HERE = Path(__file__).parent
spark = SharedSparkResource(
    directory=str(HERE / "server"),
    conf={"spark.master": "local[2]", "spark.driver.memory": "512m", "spark.sql.shuffle.partitions": 2},
    idle_timeout=60,
)


@contract_asset(contract="hourly.yaml")
def hourly(spark: SharedSparkResource) -> DataFrame:
    (HERE / "hourly.pid").write_text(str(os.getpid()))
    return spark.spark_session.createDataFrame(json.loads((HERE / "rows.json").read_text()), "id long, temp double")


@contract_asset(contract="daily.yaml", consumes={"nyc.hourly": "^1"})
def daily(context: dg.AssetExecutionContext, hourly: DataFrame) -> DataFrame:
    (HERE / "daily.pid").write_text(str(os.getpid()))
    context.log.info(f"{hourly.count()} rows came in")
    return hourly.groupBy().avg("temp").withColumnRenamed("avg(temp)", "temp")


defs = dg.Definitions(
    assets=[hourly, daily],
    resources={"io_manager": ContractIOManager(root=str(HERE / "tables"), spark=spark), "spark": spark},
)
"""

CONTRACT = """apiVersion: v3.1.0
kind: DataContract
id: {name}
name: Weather {name}
version: 1.2.0
status: active
domain: nyc
team: {{name: Weather Team}}
schema:
  - name: {name}
    description: Weather, {name}.
    properties:
{properties}
      - {{name: temp, logicalType: number, physicalType: double, logicalTypeOptions: {{minimum: -40}}}}
"""
IDENTIFIED = "      - {name: id, logicalType: integer, physicalType: bigint, required: true, unique: true}"

# Without a daemon nobody would take a run from the queue.
INSTANCE = """
telemetry: {enabled: false}
nux: {enabled: false}
run_coordinator: {module: dagster.core.run_coordinator, class: DefaultRunCoordinator}
"""

ASSET = """
query($path: [String!]!) { assetNodes(assetKeys: [{path: $path}]) {
  description groupName kinds
  owners { ... on TeamAssetOwner { team } }
  metadataEntries { label }
  assetMaterializations { runId }
  assetChecksOrError { ... on AssetChecks { checks { name blocking description
    executionForLatestMaterialization { runId status evaluation { severity success description
      metadataEntries { label
        ... on IntMetadataEntry { intValue } ... on BoolMetadataEntry { boolValue } ... on TextMetadataEntry { text }
        ... on TableMetadataEntry { table { records } } } } } } } } } }
"""
LAUNCH = """
mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  ... on InvalidSubsetError { message } ... on PipelineNotFoundError { message } } }
"""


class Server:
    """A web server on loopback, at a port nobody had."""

    def __init__(self, place: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.place = place
        self.url = f"http://127.0.0.1:{port}/graphql"
        self.log = (place / "server.log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dagster_webserver", "-h", "127.0.0.1", "-p", str(port), "-f", "definitions.py"],
            cwd=place,
            env={**os.environ, "DAGSTER_HOME": str(place / "home"), "PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def wait_until(self, what: Callable[[], Any], seconds: float = 120) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process.poll() is None, self.said()
            try:
                if found := what():
                    return found
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.3)
        raise AssertionError(f"nothing came of it: {self.said()}")

    def said(self) -> str:
        return (self.place / "server.log").read_text()[-3000:]

    def launch(self, paths: list[list[str]]) -> tuple[str, str]:
        """Run these assets with their checks; the run's id and what became of it."""
        selector = {
            "repositoryLocationName": "definitions.py",
            "repositoryName": "__repository__",
            "pipelineName": "__ASSET_JOB",
            "assetSelection": [{"path": path} for path in paths],
        }
        launched = self.ask(LAUNCH, params={"selector": selector, "runConfigData": {}, "mode": "default"})["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        run_id = launched["run"]["runId"]
        query = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"

        def ended() -> str | None:
            status = self.ask(query, id=run_id)["runOrError"]["status"]
            return status if status in ("SUCCESS", "FAILURE", "CANCELED") else None

        return run_id, self.wait_until(ended, 300)

    def asset(self, *path: str) -> dict[str, Any]:
        (node,) = self.ask(ASSET, path=list(path))["assetNodes"]
        return node

    def stop(self) -> None:
        family = [self.process.pid, *(child.pid for child in psutil.Process(self.process.pid).children(recursive=True))]
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(20)
        self.log.close()
        left = [psutil.Process(pid) for pid in family if psutil.pid_exists(pid)]
        _, alive = psutil.wait_procs(left, timeout=20)
        for process in alive:
            process.kill()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text(INSTANCE)
    (tmp_path / "definitions.py").write_text(CODE)
    (tmp_path / "hourly.yaml").write_text(CONTRACT.format(name="hourly", properties=IDENTIFIED))
    (tmp_path / "daily.yaml").write_text(CONTRACT.format(name="daily", properties="").replace("\n\n", "\n"))
    server = Server(tmp_path)
    try:
        server.wait_until(lambda: server.ask("{ repositoriesOrError { __typename } }"))
        yield server
    finally:
        server.stop()
        stop_server(tmp_path / "server")


def checks(node: dict[str, Any]) -> dict[str, Any]:
    return {check["name"]: check["executionForLatestMaterialization"] for check in node["assetChecksOrError"]["checks"]}


def shown(execution: dict[str, Any]) -> dict[str, Any]:
    return {
        entry["label"]: next((value for name, value in entry.items() if name != "label"), None)
        for entry in execution["evaluation"]["metadataEntries"]
    }


def java_processes(place: Path) -> int:
    commands = [process.info["cmdline"] or [""] for process in psutil.process_iter(["cmdline"])]
    return sum(Path(command[0]).name == "java" and any(str(place) in part for part in command) for command in commands)


def test_good_data_is_published_bad_data_is_stopped_and_the_web_server_shows_why(server: Server) -> None:
    rows = server.place / "rows.json"
    rows.write_text("[[1, 3.5], [2, 4.5]]")
    first, status = server.launch([["nyc", "hourly"], ["nyc", "daily"]])
    assert status == "SUCCESS", server.said()
    assert (server.place / "hourly.pid").read_text() != (server.place / "daily.pid").read_text()
    assert java_processes(server.place) == 1, "two steps, each a process of its own, on one Spark"

    node = server.asset("nyc", "hourly")
    assert (node["description"], node["groupName"]) == ("Weather, hourly.", "nyc")
    assert sorted(node["kinds"]) == ["parquet", "spark"]
    assert node["owners"] == [{"team": "Weather_Team"}]
    assert {"dagster/column_schema", "dagster/code_references", "contract_version"} <= {
        entry["label"] for entry in node["metadataEntries"]
    }
    done = checks(node)
    assert {name: (one["status"], one["runId"]) for name, one in done.items()} == {
        f"contract_{dimension}": ("SUCCEEDED", first)
        for dimension in ("accuracy", "completeness", "conformity", "uniqueness")
    }
    described = {check["name"]: check for check in node["assetChecksOrError"]["checks"]}
    assert described["contract_uniqueness"]["blocking"]
    assert "Contract Weather hourly 1.2.0, owned by Weather Team" in described["contract_uniqueness"]["description"]

    rows.write_text("[[1, 3.5], [1, 4.5], [2, -99.0]]")
    second, status = server.launch([["nyc", "hourly"], ["nyc", "daily"]])
    assert status == "FAILURE", server.said()
    node = server.asset("nyc", "hourly")
    assert [one["runId"] for one in node["assetMaterializations"]] == [first]
    assert [one["runId"] for one in server.asset("nyc", "daily")["assetMaterializations"]] == [first]
    done = checks(node)
    assert {name: (one["status"], one["runId"]) for name, one in done.items()} == {
        "contract_accuracy": ("FAILED", second),
        "contract_completeness": ("SUCCEEDED", second),
        "contract_conformity": ("SUCCEEDED", second),
        "contract_uniqueness": ("FAILED", second),
    }
    evaluation = done["contract_uniqueness"]["evaluation"]
    assert (evaluation["severity"], evaluation["success"]) == ("ERROR", False)
    facts = shown(done["contract_uniqueness"])
    assert (facts["published"], facts["rows_in"], facts["rows_rejected"], facts["rows_published"]) == (False, 3, 3, 0)
    assert (facts["contract_version"], facts["contract_owner"]) == ("1.2.0", "Weather Team")
    (record,) = facts["rules"]["records"]
    assert json.loads(record)["rule"] == "hourly.id.unique"
    assert json.loads(record)["samples"] == "1"
    link = server.place / "tables" / "nyc" / "hourly"
    assert facts["readable_version"] == link.resolve().name
    assert java_processes(server.place) == 1
