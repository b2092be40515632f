"""`databox-contracts check-migration`, and the table formats of `diff` and `gate`: what they print, how they exit."""

import json
import subprocess
from pathlib import Path

import pytest

from databox_contracts.cli import main

REFERENCE = Path(__file__).parents[1] / "cases" / "reference" / "transaction.v3.yaml"

ORDERS = """\
apiVersion: v3.1.0
kind: DataContract
id: shop.orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: id, logicalType: string, required: true, unique: true}
      - {name: total, logicalType: integer, physicalType: int}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("orders.yaml").write_text(ORDERS)
    return tmp_path


def check(sql: str | bytes, *options: str, contract: str = "orders.yaml") -> int:
    Path("m.sql").write_bytes(sql.encode() if isinstance(sql, str) else sql)
    return main(["check-migration", contract, "m.sql", *options])


def test_the_rename_of_the_reference_has_its_verdict(folder, capsys):
    text = REFERENCE.read_text(encoding="utf-8").replace("amount_paise", "txn_amt_paise")
    Path("transaction.yaml").write_text(text, encoding="utf-8")
    sql = "ALTER TABLE payments.transaction RENAME COLUMN txn_amt_paise TO amount_paise;\n"
    assert check(sql, "--dialect", "postgres", "--format", "json", contract="transaction.yaml") == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["contract"], report["policy"], report["is_breaking"]) == (
        "payments.transaction",
        "backwards_compatible_only",
        True,
    )
    assert [(one["field"], one["message"].partition(".")[0]) for one in report["changes"]] == [
        ("txn_amt_paise", "remove_field violates backwards_compatible_only"),
        ("amount_paise", "add_required_field violates backwards_compatible_only"),
    ]
    assert all("looks like a rename" in one["hint"] for one in report["changes"])


def test_a_compatible_change_exits_0(folder, capsys):
    assert check("ALTER TABLE orders ADD COLUMN note TEXT;", "--dialect", "postgres") == 0
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [
        "=" * 60,
        "Schema migration report: shop.orders",
        "1.0.0 -> 1.0.0 after m.sql",
        "=" * 60,
        "Status: SAFE",
        "Changes: 1 (breaking: 0, safe: 1)",
        "Note: the contract has to say so too: these changes need a minor version of it",
        "Safe changes:",
        "[FIELD_ADDED] note",
        "Consumers unaffected (additive change).",
        "=" * 60,
    ]


def test_other_forms(folder, capsys):
    assert check("DROP TABLE orders", "--format", "markdown") == 1
    assert "| breaks | dataset\\_removed | orders |" in capsys.readouterr().out
    assert check("DROP TABLE orders", "--format", "github") == 1
    assert capsys.readouterr().out.startswith("::error file=m.sql::dataset_removed orders: ")


BAD = [
    ("CALL p();", (), "m.sql:1:1: cannot follow 'CALL p()'"),
    ("ALTER TABLE orders DROP COLUMN 'x", (), "m.sql:1:1: this is no SQL"),
    (b"\xff\x00\xfe", (), "cannot read 'm.sql': it is not UTF-8"),
    (b"SELECT \x00", (), "m.sql: this is no text"),
    (b"x" * 3_000_000, (), "m.sql: the text has 3,000,000 characters"),
    ("SELECT 1", ("--dialect", "nobody"), "unknown SQL dialect 'nobody'"),
    ("SELECT 1", ("--policy", "nobody"), "there is no policy 'nobody'"),
    ("SELECT 1", ("--dataset", "nobody"), "has no dataset 'nobody'"),
]


@pytest.mark.parametrize(("sql", "options", "expected"), BAD, ids=range(len(BAD)))
def test_what_cannot_run_exits_2(folder, capsys, sql, options, expected):
    assert check(sql, *options) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert expected in captured.err


def test_a_missing_file_exits_2(folder, capsys):
    assert main(["check-migration", "orders.yaml", "nothing.sql"]) == 2
    assert "cannot read 'nothing.sql'" in capsys.readouterr().err


def test_an_empty_file_changes_nothing_and_says_so(folder, capsys):
    assert check("") == 0
    assert "Note: the file has no statement" in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_files_of_other_tools_are_read(folder, encoding):
    assert check("ALTER TABLE orders DROP COLUMN total\r\nGO\r\n".encode(encoding), "--dialect", "tsql") == 1


# --- table formats ----------------------------------------------------------------------------------------------------


def test_what_only_the_table_format_refuses_exits_1(folder, capsys):
    narrower = "ALTER TABLE orders ALTER COLUMN total TYPE SMALLINT"
    assert check(narrower, "--policy", "none") == 0
    capsys.readouterr()
    assert check(narrower, "--policy", "none", "--table-format", "iceberg") == 1
    lines = capsys.readouterr().out.splitlines()
    assert "  As a table of Iceberg: REFUSED (1 of 1)" in lines
    assert any("the contract allows it, Iceberg does not" in line for line in lines)


def test_diff_asks_the_table_format(folder, capsys):
    Path("new.yaml").write_text(ORDERS.replace("1.0.0", "2.0.0").replace("name: total", "name: sum"))
    options = ["--policy", "none", "--table-format", "delta"]
    assert main(["diff", "orders.yaml", "new.yaml", "--format", "json", *options]) == 0
    (found,) = json.loads(capsys.readouterr().out)["table_format"]["changes"]
    assert (found["kind"], found["allowed_by_format"], found["allowed_by_contract"]) == ("field_renamed", True, True)
    assert "columnMapping" in found["message"]
    assert main(["diff", "orders.yaml", "new.yaml", "--format", "markdown", *options]) == 0
    assert "As a table of Delta: POSSIBLE" in capsys.readouterr().out
    assert main(["diff", "orders.yaml", "new.yaml", "--format", "github", *options]) == 0
    assert "::notice file=new.yaml::field_renamed orders.total: the contract and Delta allow it" in (
        capsys.readouterr().out
    )


def test_gate_asks_the_table_format_and_has_a_door(folder, capsys, monkeypatch):
    monkeypatch.delenv("ACCEPT_BREAKING_CHANGE", raising=False)

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments], check=True)

    Path("contracts").mkdir()
    Path("contracts/orders.yaml").write_text(ORDERS)
    git("init", "-q", "-b", "main")
    git("add", "contracts")
    git("commit", "-q", "-m", "start")
    Path("contracts/orders.yaml").write_text(
        ORDERS.replace("1.0.0", "1.1.0").replace("physicalType: int", "physicalType: smallint")
    )
    gate = ["gate", "--base", "main", "--worktree", "--policy", "none"]
    assert main(gate) == 0
    assert main([*gate, "--table-format", "iceberg"]) == 1
    assert "the contract allows it, Iceberg does not" in capsys.readouterr().out
    assert main([*gate, "--table-format", "iceberg", "--accept", "shop.orders"]) == 0
