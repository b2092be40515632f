from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from databox_contracts.errors import SparkUnavailableError
from databox_contracts.spark.session import connect_session, local_session, require_java, spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAY_OUT = "Install Java 17 or 21 and set JAVA_HOME to it, or put its bin directory on the PATH."


def run(code: str, **environment: str) -> dict[str, object]:
    """What a fresh Python process prints as JSON: this one has a classic session already."""
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def make_java(home: Path, printed: str, code: int = 0) -> Path:
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{printed}' >&2\nexit {code}\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.8", "25.0.2"])
def test_java_17_and_later_is_taken(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = make_java(tmp_path / "jdk", f'openjdk version "{version}" 2025-04-15')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert require_java() == str(java)


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "16"])
def test_an_old_java_is_refused_with_its_version(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = make_java(tmp_path / "jdk", f'openjdk version "{version}"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(SparkUnavailableError) as caught:
        require_java()
    assert str(caught.value) == f"Spark cannot run on Java {version} ({java}). {WAY_OUT}"


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailableError) as caught:
        require_java()
    assert str(caught.value) == (
        f"Spark needs Java: JAVA_HOME is {str(tmp_path)!r}, but {str(tmp_path / 'bin' / 'java')!r} does not run."
        f" {WAY_OUT}"
    )


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailableError) as caught:
        require_java()
    assert str(caught.value) == f"Spark needs Java, and none was found. {WAY_OUT}"


def test_no_bash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(tmp_path / "jdk", 'openjdk version "21"')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(SparkUnavailableError, match="need bash"):
        require_java()


def test_options_are_spelled_as_spark_spells_them() -> None:
    conf = spark_conf({"spark.ui.enabled": True, "spark.sql.shuffle.partitions": 0, "spark.x": ""}, master="yarn")
    assert conf == {
        "spark.driver.memory": "1g",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "0",
        "spark.x": "",
        "spark.master": "yarn",
    }


@pytest.mark.parametrize(("mask", "spelled"), [(0o027, "027"), (0o000, "000"), (0o077, "077")])
def test_files_of_a_local_master_get_the_users_mask(mask: int, spelled: str) -> None:
    before = os.umask(mask)
    try:
        assert spark_conf(master="local[2]")["spark.hadoop.fs.permissions.umask-mode"] == spelled
        assert os.umask(mask) == mask
    finally:
        os.umask(before)


def test_an_option_that_is_none_is_refused() -> None:
    with pytest.raises(SparkUnavailableError, match=r"'driver\.memory' is no Spark option"):
        spark_conf({"driver.memory": "2g"}, master="local")


def test_a_second_local_session_leaves_the_first_ones_configuration(spark: SparkSession) -> None:
    first = spark.conf.get("spark.sql.shuffle.partitions")
    second = local_session("other", conf={"spark.sql.shuffle.partitions": 7, "spark.driver.memory": "3g"})
    assert second.conf.get("spark.sql.shuffle.partitions") == "7"
    assert spark.conf.get("spark.sql.shuffle.partitions") == first == "2"
    assert second.sparkContext is spark.sparkContext
    assert second.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_process_with_a_classic_session_gets_no_other_kind(spark: SparkSession) -> None:
    with pytest.raises(SparkUnavailableError, match="already has a classic Spark session"):
        connect_session("sc://localhost:1")


def test_a_fresh_local_session(tmp_path: Path) -> None:
    facts = run(
        f"""
import json, os, sys
from databox_contracts.spark.session import local_session
spark = local_session("fresh", master="local[1]", conf={{"spark.driver.memory": "512m"}})
spark.sql("select timestamp'2013-01-01 05:00:00' as t").write.parquet({str(tmp_path / "table")!r})
print(json.dumps({{
    "app": spark.sparkContext.appName,
    "master": spark.sparkContext.master,
    "memory": spark.conf.get("spark.driver.memory"),
    "ui": spark.sparkContext.uiWebUrl,
    "zone": spark.conf.get("spark.sql.session.timeZone"),
    "python": os.environ["PYSPARK_PYTHON"] == sys.executable,
    "address": os.environ["SPARK_LOCAL_IP"],
}}))
spark.stop()
"""
    )
    assert facts == {
        "app": "fresh",
        "master": "local[1]",
        "memory": "512m",
        "ui": None,
        "zone": "UTC",
        "python": True,
        "address": "127.0.0.1",
    }
    (file,) = (tmp_path / "table").glob("*.parquet")
    column = pq.ParquetFile(file).schema.column(0)
    assert (column.physical_type, json.loads(column.logical_type.to_json())["timeUnit"]) == ("INT64", "microseconds")


def test_a_server_that_is_not_there_is_said_within_seconds() -> None:
    began = time.monotonic()
    facts = run(
        """
import json, os, socket
from databox_contracts.errors import SparkUnavailableError
from databox_contracts.spark.session import connect_session
closed = socket.socket()
closed.bind(("127.0.0.1", 0))
address = f"sc://localhost:{closed.getsockname()[1]}"
try:
    connect_session(address + "/;token=hidden")
except SparkUnavailableError as error:
    text = str(error).replace(address, "ADDRESS")
    print(json.dumps({"error": text, "mark": "SPARK_CONNECT_MODE_ENABLED" in os.environ}))
"""
    )
    text = str(facts["error"])
    assert text.startswith("The Spark Connect server at ADDRESS cannot be used (")
    assert text.endswith("Check that it runs, and its address and token.")
    assert "hidden" not in text
    assert facts["mark"] is False, "the process may still have a classic session"
    assert time.monotonic() - began < 30
