"""`databox-contracts show`: the same contract is shown the same, whatever it was written in."""

import json
from pathlib import Path

import pytest

from databox_contracts.cli import main

ODCS = """\
apiVersion: v3.2.0
kind: DataContract
id: shop.orders
name: Orders
version: 3.10
status: active
description: {purpose: What was ordered.}
schema:
  - name: orders
    description: One row for each order.
    properties:
      - {name: id, logicalType: string, required: true, unique: true, logicalTypeOptions: {format: uuid}}
      - name: country
        description: Where it goes.
        logicalType: string
        physicalType: varchar(2)
        enum: [{value: "NO"}, {value: SE}, {value: ""}]
      - {name: price, logicalType: number, physicalType: "decimal(10, 2)", logicalTypeOptions: {minimum: 0}}
      - {name: customer, logicalType: string, relationships: [{to: customers.id}]}
  - name: customers
    properties:
      - {name: id, logicalType: string, required: true, primaryKey: true}
customProperties:
  - {property: owner, value: checkout}
  - {property: noticePeriod, value: P30D}
"""

DATACONTRACT = """\
dataContractSpecification: 1.1.0
id: shop.orders
info:
  title: Orders
  version: 3.10
  status: active
  description: What was ordered.
  owner: checkout
terms:
  noticePeriod: P30D
models:
  orders:
    description: One row for each order.
    fields:
      id: {type: string, required: true, unique: true, format: uuid}
      country: {type: varchar(2), description: Where it goes., enum: ["NO", SE, ""]}
      price: {type: decimal, precision: 10, scale: 2, minimum: 0}
      customer: {type: string, references: customers.id}
  customers:
    fields:
      id: {type: string, required: true, primaryKey: true}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odcs.yaml").write_text(ODCS)
    (tmp_path / "datacontract.yaml").write_text(DATACONTRACT)
    (tmp_path / "bad.yaml").write_text(ODCS.replace("logicalType: number", "logicalType: numbr"))
    return tmp_path


def shown(capsys, *arguments: str) -> str:
    assert main(["show", *arguments]) == 0
    return capsys.readouterr().out


def test_text(folder, capsys):
    assert shown(capsys, "odcs.yaml").splitlines()[:12] == [
        "id: shop.orders",
        "name: Orders",
        'version: "3.10"',
        "status: active",
        "description: What was ordered.",
        "owner: checkout",
        "datasets:",
        "  - name: orders",
        "    fields:",
        "      - name: id",
        "        type: string",
        "        rules:",
    ]


def test_json(folder, capsys):
    printed = json.loads(shown(capsys, "odcs.yaml", "--format", "json"))
    assert printed["version"] == "3.10"
    assert printed["notice_period"] == "P30D"
    assert printed["datasets"][0]["fields"][1] == {
        "name": "country",
        "type": "string(2)",
        "rules": [{"rule": "enum", "values": ["NO", "SE", ""]}],
        "description": "Where it goes.",
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_each_dialect_is_shown_the_same(folder, capsys, form):
    first = shown(capsys, "odcs.yaml", "--format", form)
    assert shown(capsys, "datacontract.yaml", "--format", form) == first
    assert "odcs" not in first


def test_what_was_converted_is_shown_the_same(folder, capsys):
    assert main(["convert", "datacontract.yaml", "--to", "odcs", "-o", "again.yaml"]) == 0
    assert shown(capsys, "again.yaml") == shown(capsys, "datacontract.yaml")


def test_a_contract_with_errors_could_not_be_shown(folder, capsys):
    assert main(["show", "bad.yaml"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("databox-contracts: bad.yaml:18:36: unknown logicalType")
    assert main(["show", "nowhere.yaml"]) == 2


SAME = Path(__file__).parents[1] / "cases" / "same"

# What a contract in six sections that says nothing of its evolution means, in the standard's words.
EVOLUTION = """\
customProperties:
  - property: evolution
    value:
      policy: backwards_compatible_only
      allowed: [add_optional_field, widen_enum_values, widen_numeric_type]
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_same_contract_is_shown_the_same_from_every_dialect(tmp_path, capsys, form):
    first = shown(capsys, str(SAME / "odcs.yaml"), "--format", form)
    for other in ("datacontract", "soda"):
        assert shown(capsys, str(SAME / f"{other}.yaml"), "--format", form) == first
    evolving = tmp_path / "odcs.yaml"
    evolving.write_text((SAME / "odcs.yaml").read_text() + EVOLUTION)
    assert shown(capsys, str(SAME / "sections.yaml"), "--format", form) == shown(
        capsys, str(evolving), "--format", form
    )
