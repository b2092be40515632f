"""The example project from end to end: a first run in which bad data is stopped, a correction, and a second run.

Exit code 0 if both runs did what they should.
"""

from __future__ import annotations

import csv
import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
HOME = Path(os.environ.get("DATABOX_HOME", PROJECT / ".demo")).resolve()
LOG = HOME / "demo.log"
ASSETS = ("aviation/airlines", "aviation/planes", "aviation/airports", "weather/hourly", "weather/daily")
EXPECTED = (
    {
        "aviation/airlines": "published",
        "aviation/planes": "published",
        "aviation/airports": "quarantined",
        "weather/hourly": "rejected",
        "weather/daily": "not run",
    },
    {
        "aviation/airlines": "published",
        "aviation/planes": "published",
        "aviation/airports": "quarantined",
        "weather/hourly": "published",
        "weather/daily": "published",
    },
)


@dataclass
class Outcome:
    """What one run did with one asset."""

    metadata: Mapping[str, Any]
    violations: list[str]
    rules_passed: int = 0
    rules_failed: int = 0

    @property
    def word(self) -> str:
        """published, quarantined, rejected or not run."""
        if not self.metadata:
            return "not run"
        if not self.metadata["published"]:
            return "rejected"
        return "quarantined" if self.metadata["rows_quarantined"] else "published"


def main() -> int:
    """Run the project twice, with a correction between."""
    prepare()
    print("Run 1: the contracts and the data as they are.\n")
    first = run_and_report()
    print("\nRun 2: with the key put right (weather/hourly 2.0.0) and one impossible wind taken out of the data.\n")
    correct()
    second = run_and_report()
    print(f"\nTables:            {HOME / 'tables'}")
    print(f"Held rows:         {HOME / 'tables' / 'aviation' / 'airports.quarantine'}")
    print("In the Dagster UI: make ui, then Assets > weather/hourly > Checks")
    ok = True
    for number, (expected, found) in enumerate(zip(EXPECTED, (first, second), strict=True), start=1):
        for asset in ASSETS:
            if found[asset].word != expected[asset]:
                print(f"run {number}: {asset} was {found[asset].word} and should be {expected[asset]}; see {LOG}")
                ok = False
    return 0 if ok else 1


def prepare() -> None:
    """Start from nothing but the Spark server, which may still run, and Dagster's history."""
    for made in ("tables", "contracts", "sources"):
        shutil.rmtree(HOME / made, ignore_errors=True)
    dagster_home = HOME / "dagster_home"
    dagster_home.mkdir(parents=True, exist_ok=True)
    settings = dagster_home / "dagster.yaml"
    if not settings.exists():
        settings.write_text("telemetry:\n  enabled: false\nnux:\n  enabled: false\n")
    shutil.copytree(PROJECT / "contracts", HOME / "contracts")
    os.environ.update({"DATABOX_HOME": str(HOME), "DAGSTER_HOME": str(dagster_home)})


def correct() -> None:
    """Put right what the first run found: the contract's key, and one reading of 1,048 miles an hour."""
    shutil.copytree(HERE / "corrections", HOME / "contracts", dirs_exist_ok=True)
    source, corrected = HERE / "nyc_weather" / "weather.csv.gz", HOME / "sources" / "weather.csv.gz"
    corrected.parent.mkdir()
    with gzip.open(source, "rt", newline="") as before, gzip.open(corrected, "wt", newline="") as after:
        rows = csv.DictReader(before)
        writer = csv.DictWriter(after, rows.fieldnames or (), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            if row["wind_speed"] != "NA" and float(row["wind_speed"]) > 200:
                row["wind_speed"] = "NA"
            writer.writerow(row)


def run_and_report() -> dict[str, Outcome]:
    """Materialize everything with Dagster's default executor, a process for each step, and print what came of it."""
    with dg.DagsterInstance.get() as instance, LOG.open("a") as log:
        command = [sys.executable, "-m", "dagster", "job", "execute", "-f", "definitions.py", "-j", "everything"]
        subprocess.run(command, cwd=PROJECT, stdout=log, stderr=subprocess.STDOUT, check=False)
        run_id = instance.get_runs(limit=1)[0].run_id
        outcomes = {asset: outcome(instance, run_id, asset) for asset in ASSETS}
    for asset, found in outcomes.items():
        print("\n".join(lines(asset, found)))
    return outcomes


def outcome(instance: dg.DagsterInstance, run_id: str, asset: str) -> Outcome:
    """What the run's event log says of an asset's checks."""
    found = Outcome({}, [])
    for event in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION):
        evaluation = event.get_dagster_event().event_specific_data
        if evaluation.asset_key.to_user_string() != asset:
            continue
        found.metadata = {name: getattr(value, "value", value) for name, value in evaluation.metadata.items()}
        found.rules_passed += found.metadata["rules_passed"]
        found.rules_failed += found.metadata["rules_failed"] + found.metadata["rules_not_evaluated"]
        if not evaluation.passed:
            found.violations += violations_of(evaluation.metadata["rules"].records)
    return found


def violations_of(records: Sequence[dg.TableRecord]) -> Iterator[str]:
    """The failed rows of a check's table of rules, as text."""
    for record in records:
        if record.data["status"] != "passed":
            samples = f" (e.g. {record.data['samples']})" if record.data["samples"] else ""
            yield f"{record.data['severity']}: {record.data['rule']}: {record.data['message']}{samples}"


def lines(asset: str, found: Outcome) -> Iterator[str]:
    """A few lines for the terminal."""
    if not found.metadata:
        yield f"{asset:<18} NOT RUN, since something it reads was not published"
        return
    facts = found.metadata
    rules = f"{found.rules_passed} rules passed, {found.rules_failed} failed"
    yield f"{asset:<18} {found.word.upper()}  (contract {facts['contract_id']} {facts['contract_version']}; {rules})"
    yield (
        f"{'':<18} {facts['rows_in']} rows in = {facts['rows_published']} published"
        f" + {facts['rows_quarantined']} quarantined + {facts['rows_rejected']} rejected"
    )
    for violation in found.violations:
        yield f"{'':<18} {violation}"


if __name__ == "__main__":
    sys.exit(main())
