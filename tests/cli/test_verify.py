from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[2]
WEATHER = PROJECT / "examples" / "nyc_weather" / "weather.csv.gz"
HOURLY = PROJECT / "contracts" / "weather" / "hourly.yaml"
AIRLINES = PROJECT / "contracts" / "aviation" / "airlines.yaml"


@pytest.fixture(autouse=True)
def one_session(spark: SparkSession) -> SparkSession:
    """The command takes the session that runs, so that not every test starts a Java process."""
    return spark


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main(["verify", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_clock_change_is_found_in_the_weather(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, HOURLY, "--data", WEATHER, "--option", "nullValue=NA", "--format", "json")
    assert (code, err) == (1, "")
    verdict = json.loads(out)
    assert list(verdict) == ["contract", "version", "dataset", "passed", "row_count", "results"]
    assert verdict["passed"] is False
    assert verdict["row_count"] == 26115
    [key] = [result for result in verdict["results"] if result["rule"] == "primary_key"]
    assert key["failed_count"] == 3
    assert key["samples"] == [
        {"origin": origin, "year": 2013, "month": 11, "day": 3, "hour": 1} for origin in ("EWR", "JFK", "LGA")
    ]


def test_clean_data_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, AIRLINES, "--data", WEATHER.with_name("airlines.csv.gz"))
    assert (code, err) == (0, "")
    assert out == (
        "urn:databox:aviation:airlines 1.0.0, dataset airlines: holds. 16 rows; rules: 12 passed, 0 failed,"
        " 0 not evaluated, 0 skipped. Session: time zone UTC, ansi true, case sensitive false.\n"
    )


def test_the_server_of_the_contract_says_where_the_data_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PROJECT)
    code, out, _ = run(capsys, HOURLY, "--server", "source", "--option", "nullValue=NA")
    assert code == 1
    assert "hourly.wind_speed.maximum: 1 of 26115 rows (0.00383 %) are above 200" in out
    assert "e.g. 1048.36058" in out


COULD_NOT_RUN: list[tuple[list[str], str]] = [
    (["gone.yaml", "--data", "x"], "gone.yaml"),
    (["broken.yaml", "--data", "x"], "broken.yaml:2:1: not valid YAML"),
    ([str(AIRLINES)], "nothing to verify was named"),
    ([str(AIRLINES), "--data", "gone.parquet"], "gone.parquet': there is nothing. Check the path"),
    ([str(AIRLINES), "--data", "junk.parquet"], "damaged or of another format"),
    ([str(AIRLINES), "--data", "short.csv"], "a row has too many or too few values"),
    ([str(AIRLINES), "--data", "short.csv", "--data-format", "tea"], "unknown format 'tea'. Use one of"),
    ([str(AIRLINES), "--data", "x", "--dataset", "nope"], "has no dataset 'nope'"),
    ([str(AIRLINES), "--data", "x", "--option", "header"], "--option 'header' is not KEY=VALUE"),
    ([str(AIRLINES), "--server", "nope"], "has no server 'nope'"),
    ([str(AIRLINES), "--data", "x", "--schema-modes", "frozen"], "--schema-modes is 'frozen'. Use one of evolve,"),
    ([str(AIRLINES), "--data", "x", "--schema-modes", "columns=x"], "--schema-modes: columns is 'x'. Use one of"),
    ([str(AIRLINES), "--data", "x", "--schema-modes", "rows=freeze"], "--schema-modes names 'rows'"),
    ([str(AIRLINES), "--data", "x", "--schema-modes", "columns=freeze,"], "cannot be read. Write columns=freeze"),
]


@pytest.mark.parametrize(("arguments", "sentence"), COULD_NOT_RUN)
def test_what_could_not_run_exits_with_2_and_one_sentence(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.yaml").write_text("a: [1\n")
    Path("junk.parquet").write_bytes(b"junk")
    Path("short.csv").write_text("carrier,name\nXX\n")
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_in_a_terminal_only_the_verdict_is_printed(tmp_path: Path) -> None:
    data = tmp_path / "airlines.csv"
    data.write_bytes(gzip.decompress(WEATHER.with_name("airlines.csv.gz").read_bytes()).replace(b"AA,", b"aa,"))
    command = [sys.executable, "-m", "databox_contracts", "verify", str(AIRLINES), "--data", str(data)]
    answer = subprocess.run([*command, "--master", "local[2]"], capture_output=True, text=True, timeout=180)
    assert (answer.returncode, answer.stderr) == (1, "")
    said = "airlines.carrier.pattern: 1 of 16 rows (6.25 %) do not match ^[0-9A-Z]{2}$"
    assert answer.stdout.splitlines()[0] == f"FAILED        error    {said}"


REFERRING = """\
apiVersion: v3.1.0
kind: DataContract
id: shop
version: 1.0.0
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer}
      - {name: customer, logicalType: integer, relationships: [{to: customers.id}]}
  - name: customers
    properties:
      - {name: id, logicalType: integer, required: true}
"""


def test_a_foreign_key_is_held_against_the_table_that_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "c.yaml").write_text(REFERRING)
    (tmp_path / "orders.csv").write_text("id,customer\n1,7\n2,8\n3,\n")
    (tmp_path / "people.csv").write_text("id\n7\n")
    asked = [tmp_path / "c.yaml", "--dataset", "orders", "--data", tmp_path / "orders.csv", "--format", "json"]

    def key(*more: Any) -> tuple[int, Any]:
        code, out, _ = run(capsys, *asked, *more)
        return code, next(r for r in json.loads(out)["results"] if r["rule"] == "foreign_key")

    code, result = key("--reference", f"customers={tmp_path / 'people.csv'}")
    assert (code, result["failed_count"], result["samples"]) == (1, 1, [8])
    code, result = key()
    assert (code, result["status"]) == (1, "not_evaluated")
    assert "--reference customers=PATH" in result["message"]
    for wrong, reason in (("customers", "is not NAME=PATH"), ("customers=gone.parquet", "gone.parquet': there is")):
        code, out, err = run(capsys, *asked, "--reference", wrong)
        assert (code, out, reason in err) == (2, "", True), err


def test_modes_of_the_command_line_go_before_the_contract_s(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, spark: SparkSession
) -> None:
    data = tmp_path / "airlines.parquet"
    spark.sql("select 'AA' carrier, 'American' name, 1 extra union all select 'XX', 'X', null").write.parquet(str(data))
    code, out, _ = run(capsys, AIRLINES, "--data", data)
    assert code == 1
    assert "undeclared: extra is in the table and not in the contract" in out
    code, out, err = run(capsys, AIRLINES, "--data", data, "--schema-modes", "columns=discard_row,data_type=evolve")
    assert (code, err) == (0, "")
    note, last = out.splitlines()
    assert note.split(maxsplit=1) == [
        "note",
        "airlines.undeclared: extra is not declared, and left out with 1 row",
    ]
    assert " holds. 1 rows; " in last
    assert run(capsys, AIRLINES, "--data", data, "--schema-modes", "evolve")[0] == 0


def test_the_explanation_says_where_each_answer_came_from(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, spark: SparkSession
) -> None:
    data = tmp_path / "airlines.parquet"
    spark.sql("select 'AA' as carrier, 'American' as name").write.parquet(str(data))
    code, out, err = run(capsys, AIRLINES, "--data", data, "--explain")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split(maxsplit=2) == ["airlines.carrier.present", "passed", "the table's schema"]
    assert [line.split(maxsplit=2)[2] for line in lines if line.startswith("airlines.carrier.required ")] == [
        "the scan, of carrier"
    ]
    assert lines[-1].startswith("urn:databox:aviation:airlines 1.0.0, dataset airlines: holds. 1 rows;")
    code, out, err = run(capsys, AIRLINES, "--data", data, "--explain", "--trust-statistics", "--format", "json")
    assert (code, err) == (0, "")
    answered = {result["id"]: result["how"] for result in json.loads(out)["results"]}
    assert answered["airlines.carrier.required"] == "statistics of the files, which were to be trusted"
    assert answered["airlines.carrier.pattern"] == "the scan, of carrier: statistics do not tell it"


def test_only_parquet_files_here_have_statistics_to_trust(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, AIRLINES, "--data", WEATHER.with_name("airlines.csv.gz"), "--trust-statistics")
    assert (code, out) == (2, "")
    assert "has no statistics that could be believed" in err
    assert "Leave out --trust-statistics" in err


def test_a_terminal_shows_what_is_being_done_and_nothing_of_it_stays(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        code, out, _ = run(capsys, AIRLINES, "--data", WEATHER.with_name("airlines.csv.gz"))
    shown = ""
    # Nobody holds the other end any more: the terminal ends after what was written.
    with contextlib.suppress(OSError):
        while part := os.read(ours, 1 << 16):
            shown += part.decode()
    os.close(ours)
    assert (code, out.count("\n")) == (0, 1)
    clear = "\r\x1b[K"
    assert shown.startswith(f"{clear}counting rows (step 1 of 3, 0 s)")
    assert f"{clear}comparing keys (step 2 of 3, " in shown
    assert shown.endswith(clear)
    assert "\n" not in shown
