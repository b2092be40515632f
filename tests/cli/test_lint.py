"""`databox-contracts lint`: what it prints and how it exits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import databox_contracts
from databox_contracts.cli import COMMANDS, main

CASES = Path(__file__).parents[1] / "cases" / "odcs"

GOOD = """\
apiVersion: v3.1.0
kind: DataContract
id: a
version: 1.0.0
schema:
  - name: t
    properties:
      - {name: a, logicalType: string}
"""
WARNED = GOOD + "      - {name: b, logicalType: string, requird: true}\n"
BAD = WARNED + "      - {name: c, physicalType: nonsense}\nslaDefaultElement: t.a\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("good.yaml", GOOD), ("warned.yaml", WARNED), ("bad.yml", BAD)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_good_contract_exits_0(folder, capsys):
    assert main(["lint", "good.yaml"]) == 0
    assert capsys.readouterr().out == "1 file: 0 errors, 0 warnings, 0 notes\n"


def test_warnings_do_not_fail(folder, capsys):
    assert main(["lint", "warned.yaml"]) == 0
    assert capsys.readouterr().out == (
        "warned.yaml:9:40: warning: the unknown key 'requird' is ignored (did you mean 'required'?)\n"
        "1 file: 0 errors, 1 warning, 0 notes\n"
    )


def test_every_finding_is_printed_and_errors_exit_1(folder, capsys):
    assert main(["lint", "."]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in lines] == [
        "bad.yml:9:40: warning: the unknown key 'requird' is ignored",
        "bad.yml:10:33: error: unknown physicalType 'nonsense'",
        "bad.yml:11:1: note: 'slaDefaultElement' is not enforced: there are no service levels",
        "warned.yaml:9:40: warning: the unknown key 'requird' is ignored",
        "3 files: 1 error, 2 warnings, 1 note",
    ]


def test_an_unreadable_contract_is_a_finding(folder, capsys):
    (folder / "broken.yaml").write_text("a: [\n")
    assert main(["lint", "broken.yaml"]) == 1
    assert capsys.readouterr().out.startswith("broken.yaml:2:1: error: not valid YAML: ")


def test_json(folder, capsys):
    assert main(["lint", "bad.yml", "--format", "json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert {key: printed[key] for key in ("files", "errors", "warnings", "notes")} == {
        "files": 1,
        "errors": 1,
        "warnings": 1,
        "notes": 1,
    }
    assert printed["findings"][0] == {
        "file": "bad.yml",
        "line": 9,
        "column": 40,
        "severity": "warning",
        "message": "the unknown key 'requird' is ignored",
        "hint": "did you mean 'required'?",
        "field": "b",
    }


def test_json_without_findings(folder, capsys):
    assert main(["lint", "good.yaml", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []


def test_github_annotations(folder, capsys):
    (folder / "a,b.yaml").write_text(WARNED)
    assert main(["lint", "--format", "github", "bad.yml", "a,b.yaml"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "::warning file=bad.yml,line=9,col=40::the unknown key 'requird' is ignored (did you mean 'required'?)",
        "::error file=bad.yml,line=10,col=33::unknown physicalType 'nonsense' (use a Spark or SQL type such as string, "
        "int, bigint, decimal(10,2), timestamp, array<string>)",
        "::notice file=bad.yml,line=11,col=1::'slaDefaultElement' is not enforced: there are no service levels",
        "::warning file=a%2Cb.yaml,line=9,col=40::the unknown key 'requird' is ignored (did you mean 'required'?)",
    ]


@pytest.mark.parametrize("path", ["nowhere.yaml", "empty"])
def test_a_path_without_contracts_could_not_run(folder, capsys, path):
    (folder / "empty").mkdir()
    assert main(["lint", "good.yaml", path]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert path in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("name", ["orders", "first-version", "newest"])
def test_the_golden_documents_have_no_errors(capsys, name):
    assert main(["lint", str(CASES / f"{name}.odcs.yaml")]) == 0


# --- the command line as such -----------------------------------------------------------------------------------------


def test_the_commands_are_listed():
    assert [command.name for command in COMMANDS] == ["lint", "show", "convert", "verify"]


def test_no_command_and_an_unknown_one_could_not_run(capsys):
    for arguments in ([], ["unknown"], ["lint"], ["lint", "x", "--format", "xml"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("databox-contracts ")


def test_an_interruption_exits_130(folder, monkeypatch):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr("databox_contracts.cli.lint.run", interrupted)
    assert main(["lint", "good.yaml"]) == 130


# The package is found whether or not it is installed.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(databox_contracts.__file__).parents[1])}


def run(*arguments: str):
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)


def test_it_runs_as_a_module(folder):
    done = run("-m", "databox_contracts", "lint", "good.yaml")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_stops_reading_is_no_traceback(folder):
    (folder / "many.yaml").write_text(GOOD + "".join(f"key{n}: {n}\n" for n in range(10)))
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        command = [sys.executable, "-m", "databox_contracts", "lint", *["many.yaml"] * 20]
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (2, "")


def test_lint_loads_neither_spark_nor_dagster(folder):
    code = (
        "import sys; from databox_contracts.cli import main; main(['lint', 'good.yaml']); "
        "print(sorted({'pyspark', 'dagster', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    assert run("-c", code).stdout.splitlines()[-1] == "[]"
