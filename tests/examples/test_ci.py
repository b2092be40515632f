"""The jobs for continuous integration do what they say: their scripts are run as they stand, on a real repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from databox_contracts.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "ci"

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: shop.orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: id, logicalType: string, required: true}
      - {name: total, logicalType: number}
"""


def git(place: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(place), *arguments], check=True, capture_output=True)


@pytest.fixture
def branch(tmp_path) -> Path:
    """A clone with a branch that removes a field."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    (origin / "contracts").mkdir()
    (origin / "contracts" / "orders.yaml").write_text(CONTRACT)
    identity = ("-c", "user.name=tester", "-c", "user.email=tester@example.com")
    git(origin, "add", "-A")
    git(origin, *identity, "commit", "-q", "-m", "start")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(origin), str(clone))
    git(clone, "checkout", "-q", "-b", "branch")
    (clone / "contracts" / "orders.yaml").write_text(
        CONTRACT.replace("      - {name: total, logicalType: number}\n", "")
    )
    git(clone, *identity, "commit", "-qa", "-m", "change")
    return clone


def run(script: str, place: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(place), **variables}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


BODY = "Words.\n\naccept-breaking-change: orders\n$(touch injected) `touch injected`"


@pytest.mark.parametrize(("body", "code"), [("", 1), (BODY, 0)])
def test_the_workflow_for_github(branch, tmp_path, body, code):
    workflow = yaml.safe_load((EXAMPLES / "github.yaml").read_text())
    steps = {step.get("name"): step for step in workflow["jobs"]["gate"]["steps"]}
    assert workflow["jobs"]["gate"]["steps"][0]["with"] == {"fetch-depth": 0}
    assert run(steps["Lint"]["run"], branch).returncode == 0
    place = tmp_path / "temp"
    place.mkdir()
    summary = tmp_path / "summary.md"
    done = run(
        steps["Gate"]["run"],
        branch,
        BASE="origin/main",
        BODY=body,
        RUNNER_TEMP=str(place),
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert done.returncode == code, done.stderr
    level = "warning" if code == 0 else "error"
    assert f"::{level} file=contracts/orders.yaml::orders: field_removed total" in done.stdout
    assert summary.read_text() == (place / "report.md").read_text()
    assert summary.read_text().startswith("## Data contracts: " + ("ACKNOWLEDGED" if code == 0 else "BREAKING"))
    assert not list(branch.rglob("injected"))


@pytest.mark.parametrize(("body", "code"), [("", 1), (BODY, 0)])
def test_the_job_for_gitlab(branch, body, code):
    job = yaml.safe_load((EXAMPLES / "gitlab.yaml").read_text())["data-contracts"]
    assert job["variables"]["GIT_DEPTH"] == "0"
    # Everything but the installation.
    script = "\n".join([*job["before_script"][1:], *job["script"]])
    done = run(script, branch, CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main", CI_MERGE_REQUEST_DESCRIPTION=body)
    assert done.returncode == code, done.stderr
    assert (branch / "contracts.md").read_text() in done.stdout
    assert not list(branch.rglob("injected"))


def test_the_hook_for_pre_commit(branch, monkeypatch, capsys):
    hooks = yaml.safe_load((EXAMPLES.parents[1] / ".pre-commit-hooks.yaml").read_text())
    (hook,) = [hook for hook in hooks if hook["id"] == "databox-contracts-gate"]
    program, *arguments = hook["entry"].split()
    assert program == "databox-contracts"
    assert hook["pass_filenames"] is False
    monkeypatch.chdir(branch)
    monkeypatch.delenv("ACCEPT_BREAKING_CHANGE", raising=False)
    assert main(arguments) == 1
    (branch / "contracts" / "orders.yaml").write_text(CONTRACT)
    assert main(arguments) == 0
    capsys.readouterr()
