"""Three contracted assets in one run: a process for each step against one process, and how many Java processes start.

Both runs start with no Spark server. The work is the example project's three reference tables.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dagster as dg
import psutil
from pyspark.sql import DataFrame

from databox_contracts.dagster import ContractIOManager, SharedSparkResource, contract_asset
from databox_contracts.spark.server import stop_server

PROJECT = Path(__file__).resolve().parent.parent
HOME = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
ROUNDS = 3


def read(spark: SharedSparkResource, name: str, columns: str) -> DataFrame:
    """A raw file of the example project."""
    path = PROJECT / "examples" / "nyc_weather" / f"{name}.csv.gz"
    return spark.spark_session.read.schema(columns).csv(str(path), header=True, nullValue="NA")


@contract_asset(contract=PROJECT / "contracts" / "aviation" / "airlines.yaml")
def airlines(spark: SharedSparkResource) -> DataFrame:
    """Sixteen rows."""
    return read(spark, "airlines", "carrier string, name string")


@contract_asset(contract=PROJECT / "contracts" / "aviation" / "planes.yaml")
def planes(spark: SharedSparkResource) -> DataFrame:
    """3,322 rows."""
    columns = "tailnum string, year int, type string, manufacturer string, model string, engines int, seats int"
    return read(spark, "planes", f"{columns}, speed int, engine string")


@contract_asset(contract=PROJECT / "contracts" / "aviation" / "airports.yaml", on_violation="quarantine")
def airports(spark: SharedSparkResource) -> DataFrame:
    """1,458 rows, three of them held."""
    columns = "faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string"
    return read(spark, "airports", columns)


def definitions(executor: dg.ExecutorDefinition) -> dg.Definitions:
    """The three assets under one executor."""
    spark = SharedSparkResource(directory=str(HOME / "spark"), conf={"spark.sql.shuffle.partitions": 2})
    return dg.Definitions(
        assets=[airlines, planes, airports],
        jobs=[dg.define_asset_job("three", executor_def=executor)],
        resources={"spark": spark, "io_manager": ContractIOManager(root=str(HOME / "tables"), spark=spark)},
    )


def job(executor: dg.ExecutorDefinition) -> dg.JobDefinition:
    """The job, resolved."""
    return definitions(executor).resolve_job_def("three")


def several_processes() -> dg.JobDefinition:
    """The default: a process for each step."""
    return job(dg.multiprocess_executor)


def one_process() -> dg.JobDefinition:
    """All steps in the run's own process."""
    return job(dg.in_process_executor)


def run(name: str) -> None:
    """One run, for a process of its own."""
    with dg.DagsterInstance.local_temp(str(HOME / "instance")) as instance:
        made = dg.reconstructable({"several": several_processes, "one": one_process}[name])
        with dg.execute_job(made, instance=instance) as result:
            assert result.success


def measure(name: str) -> tuple[float, int]:
    """Seconds of a run from nothing, and the Java processes that it started."""
    seen: set[int] = set()
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, __file__, name, str(HOME)], stderr=subprocess.DEVNULL)
    while process.poll() is None:
        for found in psutil.process_iter(["name", "cmdline", "ppid"]):
            command = found.info["cmdline"] or []
            spark = found.info["name"] == "java" and any(str(HOME) in part for part in command)
            # Not what only prints the command line, nor the copies of itself that a Java process runs commands in.
            if spark and "org.apache.spark.launcher.Main" not in command and found.info["ppid"] not in seen:
                seen.add(found.pid)
        time.sleep(0.2)
    took = time.monotonic() - began
    assert process.returncode == 0, f"the run failed: {name}"
    stop_server(HOME / "spark")
    return took, len(seen)


def main() -> None:
    """Alternate the two, so that a slow minute hits both."""
    (HOME / "instance").mkdir(parents=True, exist_ok=True)
    times: dict[str, list[float]] = {"one": [], "several": []}
    processes = set()
    for _ in range(ROUNDS):
        for name, taken in times.items():
            seconds, java = measure(name)
            taken.append(seconds)
            processes.add((name, java))
    one, several = statistics.median(times["one"]), statistics.median(times["several"])
    print(f"one process for all steps:  median {one:.1f} s of {[round(t, 1) for t in times['one']]}")
    print(f"a process for each step:    median {several:.1f} s of {[round(t, 1) for t in times['several']]}")
    print(f"ratio {several / one:.2f} (bar: 1.5); Java processes started: {sorted(processes)}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1])
    else:
        main()
