"""`databox-contracts convert`: what it writes where, and how it exits."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from databox_contracts import formats
from databox_contracts.cli import main
from databox_contracts.formats import FORMATS, load_contract
from databox_contracts.formats.canonical import canonical

CASES = Path(__file__).parents[1] / "cases"
ORDERS = str(CASES / "odcs" / "orders.odcs.yaml")
WHOLE = str(CASES / "odcs" / "whole.odcs.yaml")


def test_it_is_printed(capsys):
    assert main(["convert", ORDERS, "--to", "odcs"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert canonical(load_contract(printed.out)) == canonical(load_contract(ORDERS))
    assert printed.out.startswith("apiVersion: v3.2.0\nkind: DataContract\nid: shop.orders\n")


def test_it_is_written_to_a_file(tmp_path, capsys):
    target = tmp_path / "out.yaml"
    assert main(["convert", ORDERS, "--to", "odcs", "-o", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert load_contract(target).id == "shop.orders"
    assert main(["lint", str(target)]) == 0


@pytest.mark.parametrize("path", sorted(CASES.glob("*/*.y*ml")), ids=lambda path: path.name)
def test_every_golden_document_converts_to_odcs(path, capsys):
    assert main(["convert", str(path), "--to", "odcs"]) == 0
    assert capsys.readouterr().err == ""


def test_an_unknown_name_lists_dialects_and_targets(capsys):
    assert main(["convert", ORDERS, "--to", "paper"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("databox-contracts: no contract is converted to 'paper'. Use one of: odcs, ")
    for name in ("spark-ddl", "spark-json", "avro", "json-schema", "sql"):
        assert name in printed.err


@pytest.fixture
def lossy(monkeypatch):
    short = replace(FORMATS[0], name="short", write=lambda contract: "text\n")
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, short))
    monkeypatch.setattr(formats, "losses", lambda contract, name: ["all", "else"] if name == "short" else [])


def test_what_is_lost_is_listed(lossy, capsys):
    assert main(["convert", ORDERS, "--to", "short"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "text\n"
    assert printed.err == "databox-contracts: lost: all\ndatabox-contracts: lost: else\n"


def test_what_is_lost_exits_1_when_strict(lossy, capsys):
    assert main(["convert", ORDERS, "--to", "short", "--strict"]) == 1
    assert main(["convert", ORDERS, "--to", "odcs", "--strict"]) == 0
    assert capsys.readouterr().out.startswith("text\napiVersion")


def test_as_json_text_and_losses(lossy, tmp_path, capsys):
    target = tmp_path / "out.txt"
    assert main(["convert", ORDERS, "--to", "short", "--format", "json", "-o", str(target)]) == 0
    assert json.loads(capsys.readouterr().out) == {"to": "short", "text": "text\n", "losses": ["all", "else"]}
    assert target.read_text() == "text\n"
    assert main(["convert", ORDERS, "--to", "odcs", "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["to"], printed["losses"]) == ("odcs", [])
    assert canonical(load_contract(printed["text"])) == canonical(load_contract(ORDERS))


def test_a_target_of_another_tool(capsys):
    assert main(["convert", ORDERS, "--to", "spark-ddl"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("`order_id` BIGINT NOT NULL,\n`shop` STRING NOT NULL,\n")
    assert "databox-contracts: lost: `unique` of code: a Spark schema has no unique keys\n" in printed.err
    assert main(["convert", ORDERS, "--to", "spark-ddl", "--strict"]) == 1


def test_sql_of_a_dialect(capsys):
    assert main(["convert", ORDERS, "--to", "sql", "--dialect", "postgres"]) == 0
    assert capsys.readouterr().out.startswith('CREATE TABLE "shop"."orders_v2" (\n  "order_id" BIGINT NOT NULL,\n')
    assert main(["convert", ORDERS, "--to", "sql", "--dialect", "klingon"]) == 2
    assert "is no SQL dialect that is known here. Use one of: athena, bigquery, " in capsys.readouterr().err
    assert main(["convert", ORDERS, "--to", "avro", "--dialect", "postgres"]) == 2
    assert "'avro' has no dialects. Leave out --dialect" in capsys.readouterr().err


def test_one_of_several_datasets(capsys):
    assert main(["convert", WHOLE, "--to", "avro"]) == 2
    assert "has 2 datasets and none was named. Name one of: shops, lines" in capsys.readouterr().err
    assert main(["convert", WHOLE, "--to", "avro", "--dataset", "shops"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "shops"
    assert main(["convert", WHOLE, "--to", "sql", "--dataset", "shops"]) == 0
    assert capsys.readouterr().out.count("CREATE TABLE") == 1
    assert main(["convert", WHOLE, "--to", "sql"]) == 0
    assert capsys.readouterr().out.count("CREATE TABLE") == 2
    assert main(["convert", ORDERS, "--to", "odcs", "--dataset", "orders"]) == 0
    assert [dataset.name for dataset in load_contract(capsys.readouterr().out).datasets] == ["orders"]
    assert main(["convert", WHOLE, "--to", "odcs", "--dataset", "nowhere"]) == 2
    assert "has no dataset 'nowhere'" in capsys.readouterr().err


def test_what_cannot_be_read_or_written_could_not_run(tmp_path, capsys):
    assert main(["convert", str(tmp_path / "nowhere.yaml"), "--to", "odcs"]) == 2
    assert main(["convert", ORDERS, "--to", "odcs", "-o", str(tmp_path / "no" / "out.yaml")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"cannot write {str(tmp_path / 'no' / 'out.yaml')!r}" in printed.err
    assert os.listdir(tmp_path) == []


def test_the_dialect_has_to_be_named(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["convert", ORDERS])
    assert caught.value.code == 2
