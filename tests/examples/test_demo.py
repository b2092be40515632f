from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from databox_contracts.spark.server import stop_server

PROJECT = Path(__file__).resolve().parents[2]


def java_processes(place: Path) -> set[int]:
    """Spark's processes below a directory.

    What only prints their command line is gone at once and not meant, nor is the copy that a Java process makes of
    itself for a moment to run a command of the system.
    """
    found: dict[int, int] = {}
    for process in psutil.process_iter(["cmdline", "ppid"]):
        command = process.info["cmdline"] or [""]
        ours = Path(command[0]).name == "java" and any(str(place) in part for part in command)
        if ours and "org.apache.spark.launcher.Main" not in command:
            found[process.pid] = process.info["ppid"]
    return {pid for pid, parent in found.items() if parent not in found}


def test_the_demo_stops_what_is_bad_and_publishes_it_once_it_is_put_right(tmp_path: Path) -> None:
    environment = {**os.environ, "DATABOX_HOME": str(tmp_path)}
    said = tmp_path / "said"
    java: set[int] = set()
    try:
        with said.open("w") as file:
            command = [sys.executable, str(PROJECT / "examples" / "run_demo.py")]
            demo = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT)
            while demo.poll() is None:
                java |= java_processes(tmp_path)
                time.sleep(0.2)
    finally:
        stop_server(tmp_path / "spark")
    assert demo.returncode == 0, said.read_text()
    assert len(java) == 1, "five contracted assets, each step a process of its own, twice"
    first, second = said.read_text().split("\nRun 2:")
    for line in (
        "aviation/airlines  PUBLISHED  (contract urn:databox:aviation:airlines 1.0.0; 12 rules passed, 0 failed)",
        "                   16 rows in = 16 published + 0 quarantined + 0 rejected",
        "                   1458 rows in = 1455 published + 3 quarantined + 0 rejected",
        "weather/hourly     REJECTED  (contract urn:databox:weather:hourly 1.0.0; 69 rules passed, 2 failed)",
        "                   26115 rows in = 0 published + 0 quarantined + 26115 rejected",
        "weather/daily      NOT RUN, since something it reads was not published",
    ):
        assert line in first.splitlines()
    for line in (
        "weather/hourly     PUBLISHED  (contract urn:databox:weather:hourly 2.0.0; 71 rules passed, 0 failed)",
        "                   26115 rows in = 26115 published + 0 quarantined + 0 rejected",
        "weather/daily      PUBLISHED  (contract urn:databox:weather:daily 1.0.0; 25 rules passed, 0 failed)",
    ):
        assert line in second.splitlines()
