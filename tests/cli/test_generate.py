from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts.cli import main
from databox_contracts.formats import examine, load_contract
from databox_contracts.spark.verification import verify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLES = PROJECT / "examples" / "nyc_weather"


@pytest.fixture(autouse=True)
def one_session(spark: SparkSession) -> SparkSession:
    """The command takes the session that runs, so that not every test starts a Java process."""
    return spark


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main(["generate", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


AIRLINES = """\
apiVersion: v3.1.0
kind: DataContract
id: airlines
version: "0.1.0"
status: draft
schema:
  - name: airlines
    properties:
      - name: carrier
        logicalType: string
        required: true  # guess: none of 16 values is null
        primaryKey: true  # guess: none of 16 values stands twice
        primaryKeyPosition: 1
        logicalTypeOptions:
          minLength: 2  # guess: every one of 16 values has 2 characters
          maxLength: 2  # guess: the longest of 16 values
      - name: name
        logicalType: string
        required: true  # guess: none of 16 values is null
        unique: true  # guess: none of 16 values stands twice
        customProperties:
          - property: pii  # guess: the name suggests a name of a person
            value: true
    quality:
      - name: not_empty  # guess: the table has 16 rows
        metric: rowCount
        mustBeGreaterThan: 0
"""


def test_a_contract_is_printed_with_its_guesses(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--data", EXAMPLES / "airlines.csv.gz") == (0, AIRLINES, "")


def test_what_is_generated_lints_clean_and_the_data_keeps_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made, data = tmp_path / "planes.yaml", EXAMPLES / "planes.csv.gz"
    code, out, err = run(capsys, "--data", data, "--option", "nullValue=NA", "-o", made, "--id", "urn:planes")
    assert (code, out) == (0, "")
    assert err == f"databox-contracts: {made}: 9 fields, 26 guesses to confirm\n"
    contract, findings = examine(made)
    assert findings == []
    assert contract is not None
    assert (contract.id, contract.datasets[0].name) == ("urn:planes", "planes")
    assert main(["verify", str(made), "--data", str(data), "--option", "nullValue=NA"]) == 0


def test_a_file_is_overwritten_only_by_force(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = tmp_path / "airlines.yaml"
    made.write_text("mine")
    arguments = ["--data", EXAMPLES / "airlines.csv.gz", "-o", made]
    assert run(capsys, *arguments) == (
        2,
        "",
        f"databox-contracts: there is {str(made)!r} already. Name another file, or give --force.\n",
    )
    assert made.read_text() == "mine"
    assert run(capsys, *arguments, "--force")[0] == 0
    assert made.read_text() == AIRLINES


def test_parquet_has_its_types(capsys: pytest.CaptureFixture[str], tmp_path: Path, spark: SparkSession) -> None:
    path = tmp_path / "day.parquet"
    df = spark.range(20).selectExpr("id", "cast(id as short) as n", "cast(id as decimal(9, 2)) as price")
    df.write.parquet(str(path))
    code, out, _ = run(capsys, "--data", path)
    assert code == 0
    assert "id: day\n" in out
    assert "logicalType: number\n        physicalType: decimal(9, 2)\n" in out
    made = tmp_path / "day.yaml"
    made.write_text(out)
    assert verify(spark.read.parquet(str(path)), load_contract(made)).passed


@pytest.mark.parametrize("name", ["events.json", "events.jsonl"])
def test_json_is_inferred_and_its_texts_are_looked_at(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    rows = [{"n": at, "day": f"2024-01-{at + 10}", "o": {"x": at / 2, "s": "5"}, "l": [at]} for at in range(20)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    code, out, _ = run(capsys, "--data", path)
    assert code == 0
    contract = load_contract(out)
    types = [(one.name, str(one.type)) for one in contract.datasets[0].fields]
    assert types == [("day", "date"), ("l", "array"), ("n", "integer(64)"), ("o", "object")]
    assert [(one.name, str(one.type)) for one in contract.datasets[0].fields[3].fields] == [
        ("s", "string"),
        ("x", "number(64)"),
    ]


def test_a_table_of_the_catalog(capsys: pytest.CaptureFixture[str], spark: SparkSession) -> None:
    spark.range(20).write.saveAsTable("generated_from")
    try:
        code, out, _ = run(capsys, "--table", "default.generated_from", "--dataset", "ids")
    finally:
        spark.sql("DROP TABLE generated_from")
    assert code == 0
    assert "id: ids\n" in out
    assert "primaryKey: true  # guess: none of 20 values stands twice" in out


def test_numbered_columns_are_not_taken_for_repeated_ones(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("v0,V1,w\n1,2,3\n")
    code, out, _ = run(capsys, "--data", path)
    assert code == 0
    assert [one.name for one in load_contract(out).datasets[0].fields] == ["v0", "V1", "w"]


def test_freshness_is_promised_when_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("at\n" + "".join(f"2024-01-01T00:00:{at}Z\n" for at in range(10, 30)))
    code, out, _ = run(capsys, "--data", path, "--freshness", "36h")
    assert code == 0
    line = "  - property: latency  # guess: at has the newest time, 2024-01-01T00:00:29Z\n    value: 36\n    unit: h\n"
    assert line in out


DDL = "CREATE TABLE sales.people (\n  id BIGINT PRIMARY KEY,\n  email VARCHAR(50) NOT NULL);\nCREATE TABLE b (x INT);"


def test_sql_is_no_guess_but_for_whose_data_it_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "ddl.sql"
    path.write_text(DDL)
    code, out, _ = run(capsys, "--ddl", path, "--dialect", "postgres", "--id", "all")
    assert code == 0
    assert [dataset.name for dataset in load_contract(out).datasets] == ["people", "b"]
    assert [line.strip() for line in out.splitlines() if "#" in line] == [
        "- property: pii  # guess: the name suggests an e-mail address"
    ]
    assert "primaryKey: true\n" in out
    assert "physicalType: varchar(50)\n        required: true\n" in out
    code, out, _ = run(capsys, "--ddl", path, "--dialect", "postgres", "--dataset", "b")
    assert [dataset.name for dataset in load_contract(out).datasets] == ["b"]


def test_a_reference_to_a_table_of_another_contract_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "ddl.sql"
    path.write_text(
        "CREATE TABLE a (x INT REFERENCES b (y), z INT REFERENCES s.gone (w));"
        "CREATE TABLE s.b (y INT PRIMARY KEY CHECK (y > 0));"
    )
    code, out, err = run(capsys, "--ddl", path)
    assert code == 0
    assert "relationships:" in out
    assert err == (
        "databox-contracts: left out, for it is to a table of another contract: a (z) REFERENCES s.gone (w)\n"
    )


JSON = {
    "type": "struct",
    "fields": [
        {"name": "a", "type": "integer", "nullable": False, "metadata": {"comment": "x"}},
        {
            "name": "b",
            "type": {
                "type": "array",
                "containsNull": True,
                "elementType": {
                    "type": "struct",
                    "fields": [{"name": "c", "type": "string", "nullable": True, "metadata": {}}],
                },
            },
            "nullable": True,
            "metadata": {},
        },
    ],
}
SCHEMAS = [
    "a INT NOT NULL COMMENT 'x', b ARRAY<STRUCT<c: STRING>>",
    "struct<a:int not null comment 'x',b:array<struct<c:string>>>",
    json.dumps(JSON),
]


@pytest.mark.parametrize("text", SCHEMAS)
def test_a_spark_schema_in_each_of_its_forms(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.schema.json"
    path.write_text(text)
    code, out, err = run(capsys, "--spark-schema", path)
    assert (code, err) == (0, "")
    a, b = load_contract(out).datasets[0].fields
    assert (a.required, a.description, str(a.type)) == (True, "x", "integer(32)")
    assert b.item is not None
    assert [(one.name, str(one.type)) for one in b.item.fields] == [("c", "string")]
    assert load_contract(out).datasets[0].name == "t"


COULD_NOT_RUN: list[tuple[list[str], str]] = [
    (["--data", "gone.parquet"], "gone.parquet': there is nothing. Check the path"),
    (["--data", "x.parquet", "--data-format", "tea"], "unknown format 'tea'. Use one of parquet, orc, csv, json"),
    (["--data", "short.csv"], "a row has too many or too few values"),
    (["--data", "bad.json"], "a record in it is malformed"),
    (["--data", "empty.json"], "the table has no columns"),
    (["--data", "twice.csv"], "names the column 'A' twice. Rename one of them"),
    (["--data", "nameless.csv", "--dataset", "a/b"], "it names a directory"),
    (["--data", "x", "--option", "header"], "--option 'header' is not KEY=VALUE"),
    (["--data", "nameless.csv", "--freshness", "soon"], "'soon' is no duration"),
    (["--table", "nope"], "cannot read table 'nope': there is no such table or view"),
    (["--ddl", "gone.sql"], "cannot read 'gone.sql': No such file or directory"),
    (["--ddl", "alter.sql"], "alter.sql:2:1: the statement 'ALTER TABLE' is not understood"),
    (["--ddl", "fine.sql", "--dialect", "klingon"], "unknown SQL dialect 'klingon'"),
    (["--ddl", "fine.sql", "--dataset", "nope"], "has no dataset 'nope'"),
    (["--ddl", "fine.sql", "--freshness", "1d"], "--freshness needs the rows"),
    (["--ddl", "fine.sql", "-o", "nowhere/x.yaml"], "cannot write 'nowhere/x.yaml'"),
    (["--spark-schema", "bad.schema"], "bad.schema: this is no Spark schema"),
    (["--spark-schema", "alter.sql"], "alter.sql:"),
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
    Path("short.csv").write_text("carrier,name\nXX\n")
    Path("bad.json").write_text('{"a": 1}\n{secret\n')
    Path("empty.json").write_text("")
    Path("twice.csv").write_text("a,A\n1,2\n")
    Path("nameless.csv").write_text("a\n1\n")
    Path("alter.sql").write_text("\nALTER TABLE t ADD COLUMN b INT")
    Path("fine.sql").write_text("CREATE TABLE t (a INT)")
    Path("bad.schema").write_text('{"type": "struct"}')
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "secret" not in err
    assert err.count("\n") == 1


@pytest.mark.full
def test_in_a_terminal_only_the_contract_is_printed() -> None:
    command = [sys.executable, "-m", "databox_contracts", "generate", "--data", str(EXAMPLES / "airlines.csv.gz")]
    answer = subprocess.run([*command, "--master", "local[2]"], capture_output=True, text=True, timeout=300)
    assert (answer.returncode, answer.stderr, answer.stdout) == (0, "", AIRLINES)
