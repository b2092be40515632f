"""`databox-contracts diff`: what it prints and how it exits."""

import json

import pytest

from databox_contracts.cli import main

OLD = """\
apiVersion: v3.1.0
kind: DataContract
id: shop.orders
name: Orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: id, logicalType: string, required: true}
      - {name: total, logicalType: integer, physicalType: int}
"""
RENAMED = OLD.replace("name: total", "name: amount").replace("version: 1.0.0", "version: 2.0.0")
WIDENED = OLD.replace("physicalType: int", "physicalType: bigint")
ADDED = OLD.replace("version: 1.0.0", "version: 1.1.0") + "      - {name: note, logicalType: string}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("old", OLD), ("renamed", RENAMED), ("widened", WIDENED), ("added", ADDED), ("bad", "a: [\n")):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def test_text(folder, capsys):
    assert main(["diff", "old.yaml", "renamed.yaml"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "============================================================",
        "  Schema migration report: Orders (shop.orders)",
        "  1.0.0 -> 2.0.0",
        "============================================================",
        "  Status: BREAKING",
        "  Changes: 1 (breaking: 1, safe: 0)",
        "  Version: needs major, is major",
        "  Breaking changes:",
        "    [FIELD_RENAMED] total",
        "      'total' -> 'amount'. Update all consumers.",
        "      Way out: add 'amount' beside it, mark 'total' deprecated, remove that in the next major version",
        "============================================================",
    ]


def test_what_breaks_nobody_exits_0(folder, capsys):
    assert main(["diff", "old.yaml", "added.yaml"]) == 0
    assert "  Status: SAFE\n" in capsys.readouterr().out
    assert main(["diff", "old.yaml", "old.yaml"]) == 0
    assert "  Status: UNCHANGED\n" in capsys.readouterr().out


def test_json(folder, capsys):
    assert main(["diff", "old.yaml", "widened.yaml", "--format", "json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert {key: printed[key] for key in ("contract", "old_version", "new_version", "is_breaking")} == {
        "contract": "shop.orders",
        "old_version": "1.0.0",
        "new_version": "1.0.0",
        "is_breaking": True,
    }
    assert (printed["required_bump"], printed["actual_bump"]) == ("major", "none")
    changed, version = printed["changes"]
    assert {key: changed[key] for key in ("kind", "field", "old", "new", "breaking", "widening")} == {
        "kind": "type_changed",
        "field": "total",
        "old": "integer(32)",
        "new": "integer(64)",
        "breaking": True,
        "widening": True,
    }
    assert (version["kind"], version["breaking"]) == ("version_not_bumped", True)


@pytest.mark.parametrize(
    ("policy", "code"),
    [("strict", 1), ("widening", 0), ("backward", 0), ("forward", 1), ("full", 1), ("none", 0), ("consumer", 1)],
)
def test_the_policy_decides(folder, capsys, policy, code):
    (folder / "bumped.yaml").write_text(WIDENED.replace("version: 1.0.0", "version: 1.1.0"))
    assert main(["diff", "old.yaml", "bumped.yaml", "--policy", policy]) == code
    capsys.readouterr()


def test_markdown_and_annotations(folder, capsys):
    assert main(["diff", "old.yaml", "renamed.yaml", "--format", "markdown"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "### Orders (shop.orders) 1.0.0 -\\> 2.0.0: BREAKING"
    assert "| breaks | field\\_renamed | total | 'total' -\\> 'amount'. Update all consumers. |" in lines[6]
    assert main(["diff", "old.yaml", "renamed.yaml", "--format", "github"]) == 1
    assert capsys.readouterr().out.startswith("::error file=renamed.yaml::field_renamed total: 'total' -> 'amount'.")


def test_an_earlier_version_counts_under_a_transitive_policy(folder, capsys):
    (folder / "again.yaml").write_text(RENAMED.replace("version: 2.0.0", "version: 2.0.1"))
    arguments = ["diff", "renamed.yaml", "again.yaml", "--policy", "forward_transitive"]
    assert main(arguments) == 0
    required = OLD.replace("physicalType: int}", "physicalType: int, required: true}")
    (folder / "first.yaml").write_text(required)
    assert main([*arguments, "--history", "first.yaml"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["old.yaml", "bad.yaml"], "not valid YAML"),
        (["nowhere.yaml", "old.yaml"], "there is no such file"),
        (["old.yaml", "renamed.yaml", "--policy", "strictt"], "did you mean 'strict'?"),
        (["old.yaml", "renamed.yaml", "--policy", ""], "there is no policy ''"),
    ],
)
def test_what_could_not_run(folder, capsys, arguments, message):
    assert main(["diff", *arguments]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert message.casefold() in printed.err.casefold()
