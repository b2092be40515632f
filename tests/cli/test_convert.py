"""`databox-contracts convert`: what it writes where, and how it exits."""

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


def test_an_unknown_name_lists_the_known(capsys):
    assert main(["convert", ORDERS, "--to", "paper"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("databox-contracts: no contract is written as 'paper'. Use one of: odcs")


def test_what_is_lost_is_listed_and_exits_1(monkeypatch, capsys):
    lossy = replace(FORMATS[0], name="short", write=lambda contract: "text\n", losses=lambda contract: ["all", "else"])
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, lossy))
    assert main(["convert", ORDERS, "--to", "short"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "text\n"
    assert printed.err == "databox-contracts: lost: all\ndatabox-contracts: lost: else\n"


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
