"""A real daemon with its code server: a contract is broken, and everybody concerned hears of it, killed or not."""

import http.server
import importlib.util
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import dagster as dg
import psutil
import pytest

from databox_contracts.errors import UnknownContractError
from databox_contracts.notifications import State
from databox_contracts.registry.store import Registry

CODE = """
import os
from pathlib import Path

import dagster as dg

from databox_contracts.dagster import (
    ContractRegistryResource,
    NotifierResource,
    build_compatibility_checks,
    build_contract_asset_specs,
    build_contract_checks,
    build_contract_failure_sensor,
    build_delivery_sensor,
    build_schema_diff_sensor,
)

HERE = Path(__file__).parent
RUNNING = dg.DefaultSensorStatus.RUNNING


@dg.multi_asset(specs=build_contract_asset_specs(HERE / "contracts" / "hourly.yaml"))
def hourly():
    raise ValueError("it cannot be made")


def load(spark):
    raise ValueError("there is no such table")


VERIFY = "TEST_VERIFY" in os.environ
TABLES = build_contract_checks(HERE / "contracts" / "hourly.yaml", load=load) if VERIFY else []

defs = dg.Definitions(
    assets=[hourly],
    asset_checks=[*build_compatibility_checks(HERE / "contracts", assets=[hourly]), *TABLES],
    sensors=[
        build_schema_diff_sensor(HERE / "contracts", minimum_interval_seconds=1, request_verification=VERIFY),
        build_contract_failure_sensor(minimum_interval_seconds=1),
        build_delivery_sensor(minimum_interval_seconds=1, default_status=RUNNING),
    ],
    resources={
        "registry": ContractRegistryResource(location=dg.EnvVar("TEST_REGISTRY")),
        "notifier": NotifierResource(lease_seconds=2, digest_from=0),
        "spark": dg.ResourceDefinition.none_resource(),
    },
)
"""

CONTRACT = """apiVersion: v3.1.0
kind: DataContract
id: nyc-hourly
version: {version}.0.0
status: active
domain: nyc
schema:
  - name: hourly
    properties:
      - {{name: station, logicalType: string}}
      - {{name: field_{version}, logicalType: number}}
customProperties:
  - property: consumers
    value:
      - {{name: quant, contacts: ["{url}/quant"]}}
      - {{name: risk, contacts: ["{url}/risk"]}}
      - {{name: still, contacts: ["{url}/still"], fields: [station]}}
"""
INSTANCE = "telemetry: {enabled: false}\nnux: {enabled: false}\n"
KEY = dg.AssetCheckKey(dg.AssetKey(["nyc", "hourly"]), "contract_compatibility")


class Receiver:
    """Notes what comes and takes its time to answer, so that a sender may be killed in between."""

    def __init__(self, *, slow):
        self.came = []
        chance = random.Random(4711)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.came.append((self.path[1:], self.headers["Idempotency-Key"], body["event"]))
                time.sleep(slow * chance.random())
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                """Says nothing."""

            def handle(self):
                # The sender may have been killed.
                with suppress(OSError):
                    super().handle()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(timeout=10)


class Deployment:
    """A project in a directory of its own, and its daemon."""

    def __init__(self, place, registry, *, slow=0.0):
        self.place = place
        self.home = place / "home"
        self.home.mkdir()
        (self.home / "dagster.yaml").write_text(INSTANCE)
        (place / "contracts").mkdir()
        (place / "project.py").write_text(CODE)
        (place / "workspace.yaml").write_text("load_from:\n  - python_file: {relative_path: project.py}\n")
        # Two processes that make Dagster's tables at once would be in each other's way.
        self.instance = dg.DagsterInstance.from_config(str(self.home))
        self.check()
        self.receiver = Receiver(slow=slow)
        self.registry = registry
        self.log = place / "daemon.log"
        self.log.write_bytes(b"")
        self.process = None

    def write(self, version):
        text = CONTRACT.format(version=version, url=self.receiver.url)
        whole = self.place / "contracts" / ".whole"
        whole.write_text(text)
        whole.replace(self.place / "contracts" / "hourly.yaml")

    def start(self):
        command = [Path(sys.executable).parent / "dagster-daemon", "run", "-w", "workspace.yaml"]
        environment = {
            **os.environ,
            "DAGSTER_HOME": str(self.home),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "TEST_REGISTRY": self.registry,
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.place, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def kill(self):
        """The daemon and its code server at once, by SIGKILL."""
        daemon = psutil.Process(self.process.pid)
        family = [daemon, *daemon.children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(30)
        psutil.wait_procs(family[1:], timeout=30)
        self.process = None

    def close(self):
        if self.process is not None:
            self.kill()
        self.receiver.close()
        self.instance.dispose()

    def ticks(self, sensor):
        return self.log.read_text().count(f"Checking for new runs for sensor: {sensor}")

    def wait_until(self, what, seconds=400):
        end = time.monotonic() + seconds
        while not (found := what()):
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < end, self.log.read_text()[-3000:]
            time.sleep(0.2)
        return found

    def versions(self):
        with Registry.open(self.registry) as registry:
            try:
                return [one.version for one in registry.versions("nyc-hourly")]
            except UnknownContractError:
                return []

    def counts(self):
        with Registry.open(self.registry) as registry:
            return registry.outbox.counts()

    def check(self):
        """Whether the compatibility check is green, and of which version; None where it was never recorded."""
        record = self.instance.get_latest_asset_check_evaluation_record(KEY)
        if record is None:
            return None
        evaluation = record.event.dagster_event.asset_check_evaluation_data
        return evaluation.passed, evaluation.metadata["contract_version"].value

    def fail_a_run(self):
        """A run of the asset that fails, in this process; its id."""
        spec = importlib.util.spec_from_file_location("project", self.place / "project.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        # Without its check, whose result would be that of a check that this run did not come to.
        return dg.materialize([module.hourly], instance=self.instance, raise_on_error=False).run_id


ON_BOTH = pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.full)], indirect=True
)
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def deployment(tmp_path, monkeypatch, database_url):
    monkeypatch.setenv("TEST_REGISTRY", database_url)
    made = Deployment(tmp_path, database_url, slow=0.3)
    try:
        yield made
    finally:
        made.close()


@ON_BOTH
def test_a_breaking_version_is_seen_shown_and_told(deployment):
    deployment.write(1)
    deployment.start()
    deployment.wait_until(lambda: deployment.check() == (True, "1.0.0"))
    looked = deployment.ticks("contract_schema_diff")
    deployment.write(2)
    deployment.wait_until(lambda: deployment.check() == (False, "2.0.0"))
    # The tick that was under way, and two.
    assert deployment.ticks("contract_schema_diff") - looked <= 2
    assert deployment.versions() == ["1.0.0", "2.0.0"]
    sent = deployment.ticks("contract_delivery")
    deployment.wait_until(lambda: deployment.counts()[State.SENT] == 2)
    assert deployment.ticks("contract_delivery") - sent <= 2
    # Another tick of each has nothing left to do.
    before = deployment.ticks("contract_schema_diff"), deployment.ticks("contract_delivery")
    deployment.wait_until(lambda: deployment.ticks("contract_schema_diff") > before[0] + 1)
    deployment.wait_until(lambda: deployment.ticks("contract_delivery") > before[1] + 1)
    assert sorted((who, event) for who, _, event in deployment.receiver.came) == [
        ("quant", "1.0.0 -> 2.0.0"),
        ("risk", "1.0.0 -> 2.0.0"),
    ]
    assert deployment.counts()[State.WAITING] == 0


@pytest.mark.full
@ON_SQLITE
def test_a_verification_is_run_once_the_code_location_has_the_version(deployment, monkeypatch):
    monkeypatch.setenv("TEST_VERIFY", "1")
    deployment.write(1)
    deployment.start()
    deployment.wait_until(lambda: deployment.check() == (True, "1.0.0"))
    deployment.write(2)
    deployment.wait_until(lambda: deployment.check() == (False, "2.0.0"))
    looked = deployment.ticks("contract_schema_diff")
    deployment.wait_until(lambda: deployment.ticks("contract_schema_diff") > looked + 1)
    assert deployment.instance.get_run_records() == []
    deployment.kill()
    deployment.start()
    (record,) = deployment.wait_until(deployment.instance.get_run_records)
    assert record.dagster_run.asset_check_selection == {dg.AssetCheckKey(KEY.asset_key, "contract_conformity")}
    assert record.dagster_run.tags["databox/contract_version"] == "2.0.0"
    looked = deployment.ticks("contract_schema_diff")
    deployment.wait_until(lambda: deployment.ticks("contract_schema_diff") > looked + 2)
    assert len(deployment.instance.get_run_records()) == 1


@pytest.mark.full
@ON_BOTH
def test_a_daemon_that_is_killed_ten_times_loses_nothing(deployment):
    kills = 10
    chance = random.Random(20)
    deployment.write(1)
    deployment.start()
    deployment.wait_until(lambda: deployment.check() == (True, "1.0.0"))
    deployment.wait_until(lambda: deployment.ticks("contract_failures") > 1)
    version, runs = 1, []
    for _ in range(kills):
        if f"{version}.0.0" in deployment.versions():
            version += 1
            deployment.write(version)
        runs.append(deployment.fail_a_run())
        if deployment.process is None:
            ticks = deployment.log.read_text().count("Checking for new runs")
            deployment.start()
            deployment.wait_until(lambda: deployment.log.read_text().count("Checking for new runs") > ticks)  # noqa: B023
        time.sleep(6 * chance.random())
        deployment.kill()
    deployment.start()
    deployment.wait_until(lambda: deployment.check() == (False, f"{version}.0.0"))
    expected = {(who, f"{before}.0.0 -> {before + 1}.0.0") for before in range(1, version) for who in ("quant", "risk")}
    expected |= {
        (who, json.dumps([run, "nyc/hourly", None, None])) for run in runs for who in ("quant", "risk", "still")
    }
    deployment.wait_until(lambda: deployment.counts()[State.SENT] == len(expected))
    ticks = deployment.ticks("contract_delivery")
    deployment.wait_until(lambda: deployment.ticks("contract_delivery") > ticks + 1)
    assert deployment.counts() == {State.WAITING: 0, State.SENT: len(expected), State.DEAD: 0}
    assert version > 3, "too little happened between the kills"
    copies = Counter((who, event) for who, _, event in deployment.receiver.came)
    assert set(copies) == expected
    assert copies.total() - len(copies) <= kills
    assert len({key for _, key, _ in deployment.receiver.came}) == len(expected), "a copy has the same key"
    assert deployment.versions() == [f"{one}.0.0" for one in range(1, version + 1)]
