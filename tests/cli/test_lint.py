"""`databox-contracts lint`: what it prints and how it exits."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

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
WARNED = GOOD.replace("id: a", "id: b") + "      - {name: b, logicalType: string, requird: true}\n"
BAD = WARNED.replace("id: b", "id: c") + "      - {name: c, physicalType: nonsense}\nslaDefaultElement: t.a\n"


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


# --- several files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        (GOOD, "other.yaml:3:5: error: the contract 'a' 1.0.0 is that of good.yaml:3:5 too"),
        (GOOD.replace("1.0.0", '"1.0"'), "other.yaml:3:5: error: the contract 'a' 1.0 is that of good.yaml:3:5 too"),
        (
            "dataset: a\nversion: 1.0.0\ncolumns: [{name: b, data_type: int}]\n",
            "other.yaml:1:10: error: the contract 'a' 1.0.0 is that of good.yaml:3:5 too",
        ),
    ],
)
def test_two_files_of_one_contract_and_version(folder, capsys, text, beginning):
    (folder / "other.yaml").write_text(text)
    assert main(["lint", "good.yaml", "other.yaml"]) == 1
    errors = [line for line in capsys.readouterr().out.splitlines() if " error: " in line]
    assert len(errors) == 1
    assert errors[0].startswith(beginning)


@pytest.mark.parametrize("text", [GOOD.replace("1.0.0", "1.0.1"), GOOD.replace("id: a", "id: z")])
def test_another_version_or_id_is_another_contract(folder, text):
    (folder / "other.yaml").write_text(text)
    assert main(["lint", "good.yaml", "other.yaml"]) == 0


def test_a_file_named_twice_is_one(folder):
    assert main(["lint", "good.yaml", "./good.yaml", str(folder / "good.yaml")]) == 0


# --- Java -------------------------------------------------------------------------------------------------------------


def test_without_patterns_java_is_not_started(folder, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert main(["lint", "good.yaml", "--java"]) == 0


def test_without_java_it_could_not_run(folder, monkeypatch, capsys):
    pytest.importorskip("pyspark")
    from databox_contracts.spark import quiet

    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(quiet, "runs_classic", lambda: False)
    monkeypatch.setattr("databox_contracts.spark.session.runs_classic", lambda: False)
    (folder / "pattern.yaml").write_text(GOOD.replace("string}", "string, logicalTypeOptions: {pattern: a}}"))
    assert main(["lint", "pattern.yaml", "--java"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("databox-contracts: Spark needs Java")
    assert printed.err.count("\n") == 1


def test_what_java_refuses_is_an_error_at_its_line(folder, monkeypatch, capsys):
    from contextlib import nullcontext

    monkeypatch.setattr("databox_contracts.spark.quiet.command_session", lambda master: nullcontext())
    monkeypatch.setattr(
        "databox_contracts.spark.regexes.refused", lambda spark, patterns: dict.fromkeys(patterns, "it is odd")
    )
    (folder / "pattern.yaml").write_text(GOOD.replace("string}", "string, logicalTypeOptions: {pattern: a}}"))
    assert main(["lint", "pattern.yaml", "--java"]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("pattern.yaml:8:70: error: Java refuses the pattern 'a': it is odd")


# --- the hook of pre-commit -------------------------------------------------------------------------------------------

REPOSITORY = Path(databox_contracts.__file__).parents[1]


def test_the_hook_says_what_pre_commit_needs_and_its_entry_runs(folder):
    hook, *_ = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())
    assert set(hook) == {"id", "name", "description", "entry", "language", "types", "files", "require_serial"}
    assert (hook["id"], hook["language"], hook["types"]) == ("databox-contracts-lint", "python", ["yaml"])
    assert re.search(hook["files"], "contracts/weather/hourly.yaml")
    assert not re.search(hook["files"], "docs/contracts/hourly.yaml")
    program, *arguments = hook["entry"].split()
    scripts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts[program] == "databox_contracts.cli:main"
    for name, code in (("good.yaml", 0), ("warned.yaml", 0), ("bad.yml", 1)):
        assert run("-m", "databox_contracts", *arguments, name).returncode == code


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
    assert [command.name for command in COMMANDS] == [
        "lint",
        "show",
        "convert",
        "diff",
        "generate",
        "gate",
        "check-migration",
        "consumers",
        "impact",
        "trace",
        "verify",
        "quarantine",
        "registry",
        "deliver",
        "outbox",
    ]


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
