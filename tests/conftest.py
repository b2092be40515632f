"""What all tests may use.

The suite's session is classic and local. `DATABOX_TEST_SPARK` moves the same tests elsewhere: `connect` to a Spark
Connect server, `cluster` to a standalone cluster of two workers, each a process of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# The suite says the same of the same code; `DATABOX_TEST_RANDOM=1` looks for examples that nobody has seen.
settings.register_profile("suite", derandomize="DATABOX_TEST_RANDOM" not in os.environ)
settings.load_profile("suite")

LANE = os.environ.get("DATABOX_TEST_SPARK", "classic")
CONF = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": 2}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if LANE == "connect":
        skip = pytest.mark.skip(reason="it asks the session's own Java process, which is elsewhere over Spark Connect")
        for item in items:
            if "classic" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The suite's one session. A classic one's REST API (`spark.sparkContext.uiWebUrl`) lists the jobs that ran."""
    warehouse = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    with LANES[LANE](tmp_path_factory.mktemp("spark"), {**CONF, **warehouse}) as session:
        yield session


@contextmanager
def classic(directory: Path, conf: dict[str, str | int], master: str = "local[2]") -> Iterator[SparkSession]:
    from databox_contracts.spark.session import local_session

    session = local_session("tests", master=master, conf={**conf, "spark.ui.enabled": True, "spark.ui.port": 0})
    yield session
    session.stop()


@contextmanager
def connect(directory: Path, conf: dict[str, str | int]) -> Iterator[SparkSession]:
    from databox_contracts.spark.server import shared_session, stop_server

    session = shared_session(directory / "server", conf={**conf, "spark.master": "local[2]"})
    yield session
    session.stop()
    stop_server(directory / "server")


@contextmanager
def cluster(directory: Path, conf: dict[str, str | int]) -> Iterator[SparkSession]:
    with ExitStack() as stack:
        master = stack.enter_context(_process(directory, "master", "--port", "0"))
        url = _said(directory / "master.log", r"Starting Spark master at (spark://\S+)")
        for name in ("one", "two"):
            arguments = ("--cores", "1", "--memory", "1g", "--work-dir", str(directory / name), url)
            stack.enter_context(_process(directory, "worker", *arguments, name=name))
            _said(directory / f"{name}.log", r"Successfully registered with master (\S+)")
        assert master.poll() is None
        sizes = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
        session = stack.enter_context(classic(directory, {**conf, **sizes}, master=url))
        yield session


LANES = {"classic": classic, "connect": connect, "cluster": cluster}


@contextmanager
def _process(directory: Path, kind: str, *arguments: str, name: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon of a standalone cluster on the loopback interface; `spark-class` becomes its Java process."""
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}.{kind.title()}"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home)}
    with open(directory / f"{name or kind}.log", "wb") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--webui-port", "0", *arguments],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=directory,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.2)
    raise AssertionError(f"{log.name}: {log.read_text(errors='replace')[-2000:]}")
