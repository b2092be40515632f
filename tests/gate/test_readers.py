"""Who reads what a branch breaks: from contracts, files and a registry, how far away, and who agreed to it."""

import json
import subprocess

import pytest

from databox_contracts.cli import main

SHOP = """\
apiVersion: v3.1.0
kind: DataContract
id: shop
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: id, logicalType: string}
      - {name: total, logicalType: number}
customProperties:
  - {property: evolution, value: {policy: strict, signOff: required}}
  - {property: consumers, value: [{name: Reports, owner: bi, fields: [total], versions: ^1}]}
"""
MART = """\
apiVersion: v3.1.0
kind: DataContract
id: mart
version: 3.0.0
status: active
schema:
  - name: revenue
    properties:
      - {name: amount, logicalType: number, transformSourceObjects: [shop.orders.total]}
customProperties:
  - {property: consumers, value: [{name: Board, fields: [amount]}]}
"""
BROKEN = SHOP.replace("version: 1.0.0", "version: 2.0.0").replace("      - {name: total, logicalType: number}\n", "")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "contracts").mkdir()

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("config", "user.name", "tester")
    git("config", "user.email", "tester@example.com")
    (tmp_path / "contracts" / "shop.yaml").write_text(SHOP)
    (tmp_path / "contracts" / "mart.yaml").write_text(MART)
    git("add", "-A")
    git("commit", "-q", "-m", "start")
    git("checkout", "-q", "-b", "branch")
    # The branch also tries to make the consumer one that does not read the field.
    (tmp_path / "contracts" / "shop.yaml").write_text(BROKEN.replace("fields: [total]", "fields: [id]"))
    git("add", "-A")
    git("commit", "-q", "-m", "break")
    (tmp_path / "readers.yaml").write_text("consumers: [{name: Planning, contract: shop.orders, versions: '>=1'}]\n")
    (tmp_path / "edges.yaml").write_text("edges: [{upstream: mart.revenue, downstream: lake/copy}]\n")
    monkeypatch.delenv("ACCEPT_BREAKING_CHANGE", raising=False)
    return tmp_path


GATE = ["gate", "--base", "main", "--accept", "shop"]
FILES = ["--consumers", "readers.yaml", "--edges", "edges.yaml"]


def test_the_report_shows_who_reads_it_and_whom_it_reaches(folder, capsys):
    assert main([*GATE, *FILES]) == 1
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    at = lines.index("orders: field_removed total (ACKED, but not approved)")
    assert lines[at + 2 : at + 6] == [
        "Read by: Reports (bi, pins ^1, stays on the old version), Planning (pins >=1)",
        "Reaches: the dataset mart.revenue, the asset lake/copy (2 steps away), Board (2 steps away)",
        "Needs the approval of: Reports, Planning",
        "Accepted in --accept",
    ]


def test_the_report_as_json_has_them_all(folder, capsys):
    assert main([*GATE, *FILES, "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (change,) = [one for one in found["breaking"] if one["kind"] == "field_removed"]
    assert change["missing_approvals"] == ["Reports", "Planning"]
    assert change["readers"][0] == {
        "kind": "consumer",
        "name": "Reports",
        "owner": "bi",
        "versions": "^1",
        "standing": "stays",
        "distance": 1,
        "path": ["Reports"],
        "approved_by": None,
        "approved_on": None,
    }
    assert [(one["kind"], one["name"], one["distance"], one["path"]) for one in change["readers"][2:]] == [
        ("dataset", "mart.revenue", 1, ["mart.revenue"]),
        ("asset", "lake/copy", 2, ["mart.revenue", "lake/copy"]),
        ("consumer", "Board", 2, ["mart.revenue", "Board"]),
    ]


def test_without_files_what_contracts_say_is_known(folder, capsys):
    assert main([*GATE, "--format", "markdown"]) == 1
    printed = capsys.readouterr().out
    assert "Read by: Reports (bi, pins ^1, stays on the old version)" in printed
    assert "Reaches: the dataset mart.revenue, Board (2 steps away)" in printed


def test_approvals_of_a_file_say_who_and_when(folder, capsys):
    entry = "- {contract: shop, consumer: %s, approver: Ann, on: 2026-11-21, version: 2.0.0}\n"
    (folder / "approvals.yaml").write_text(entry % "Reports" + entry % "Planning")
    main([*GATE, *FILES, "--approvals-file", "approvals.yaml"])
    printed = capsys.readouterr().out
    assert "Approved for Reports by Ann on 2026-11-21" in printed
    assert "Needs the approval" not in printed
    assert "(ACKED)" in printed


def test_consumers_and_approvals_of_a_registry_count(folder, capsys):
    at = ["--registry", "r.db"]
    (folder / "first").mkdir()
    (folder / "first" / "shop.yaml").write_text(SHOP)
    assert main(["registry", "publish", "first", *at, "--by", "ci"]) == 0
    capsys.readouterr()
    assert main([*GATE, *at]) == 1
    assert "Needs the approval of: Reports" in capsys.readouterr().out
    approve = ["registry", "approve", "shop", "--consumer", "Reports", "--version", "2.0.0", "--by", "Bob"]
    assert main([*approve, *at]) == 0
    main([*GATE, *at])
    printed = capsys.readouterr().out
    assert "Approved for Reports by Bob on " in printed
    assert "Needs the approval" not in printed


def test_a_consent_to_the_next_version_is_over_when_that_has_come(folder, capsys):
    at = ["--registry", "r.db", "--by", "Bob"]
    (folder / "first").mkdir()
    (folder / "first" / "shop.yaml").write_text(SHOP)
    assert main(["registry", "publish", "first", *at]) == 0
    assert main(["registry", "approve", "shop", "--consumer", "Reports", *at]) == 0
    main([*GATE, "--registry", "r.db"])
    assert "Approved for Reports by Bob on " in capsys.readouterr().out
    (folder / "first" / "shop.yaml").write_text(SHOP.replace("version: 1.0.0", "version: 1.0.1"))
    assert main(["registry", "publish", "first", *at]) == 0
    assert main([*GATE, "--registry", "r.db"]) == 1
    assert "Needs the approval of: Reports" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--consumers", "none.yaml"], "none.yaml: there is no such file"),
        (["--consumers", "edges.yaml"], "edges.yaml:1:1: a file of consumers is a mapping"),
        (["--edges", "none.yaml"], "none.yaml: there is no such file"),
    ],
)
def test_files_that_cannot_be_read_are_errors(folder, capsys, arguments, message):
    assert main([*GATE, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_consumer_of_what_nobody_knows_is_told(folder, capsys):
    (folder / "readers.yaml").write_text("consumers: [{name: Lost, contract: shpo}]\n")
    assert main([*GATE, "--consumers", "readers.yaml"]) == 1
    assert "readers.yaml:1:13: error: Lost reads 'shpo'" in capsys.readouterr().err


def test_the_past_is_replayed_with_those_who_declare_themselves_today(folder, capsys):
    assert main(["gate", "--history", "main..branch", *FILES]) == 0
    assert "Read by: Reports (bi, pins ^1, stays on the old version), Planning (pins >=1)" in capsys.readouterr().out


def test_a_dataset_that_goes_reaches_all_of_it_and_a_new_one_nobody(folder, capsys):
    (folder / "contracts" / "shop.yaml").write_text(SHOP.replace("name: orders", "name: others"))
    assert main([*GATE, *FILES, "--worktree", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    names = {one["kind"]: [reader["name"] for reader in one["readers"]] for one in found["breaking"]}
    assert names
    for readers in names.values():
        assert readers == ["Reports", "Planning", "mart.revenue", "lake/copy", "Board"]
