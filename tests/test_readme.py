"""The README's first code is a complete code location, and works as it stands there."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from databox_contracts.spark.server import stop_server

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text()
CODE = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[0]


@pytest.fixture
def location(tmp_path: Path) -> Iterator[Path]:
    for name in ("contracts", "examples"):
        (tmp_path / name).symlink_to(PROJECT / name)
    (tmp_path / "definitions.py").write_text(CODE)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    yield tmp_path
    stop_server("/tmp/databox/spark")


def dagster(location: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "dagster", *arguments, "-f", "definitions.py"]
    env = {**os.environ, "DAGSTER_HOME": str(location / "home"), "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, cwd=location, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def test_the_first_code_is_a_code_location_that_publishes_its_table(location: Path) -> None:
    assert CODE.count("\n") <= 25
    assert "/tmp/databox/tables" in CODE
    dagster(location, "definitions", "validate")
    said = dagster(location, "asset", "materialize", "--select", "aviation/airports")
    assert "ASSET_MATERIALIZATION" in said
    assert len(re.findall(r"ASSET_CHECK_EVALUATION - ", said)) == 5
    assert Path("/tmp/databox/tables/aviation/airports").is_symlink()


@pytest.mark.parametrize("name", re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README) or ["none"])
def test_every_picture_is_there(name: str) -> None:
    assert (PROJECT / name).stat().st_size > 10_000
