"""`databox-contracts impact` and `consumers`: what they print and how they exit."""

import json

import pytest

from databox_contracts.cli import main

SHOP = """\
apiVersion: v3.1.0
kind: DataContract
id: shop
version: 1.2.0
status: active
domain: sales
schema:
  - name: orders
    properties:
      - {name: id, logicalType: string}
      - {name: total, logicalType: number}
customProperties:
  - {property: owner, value: sales-team}
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
"""
CONSUMERS = """\
consumers:
  - {name: Board, contract: mart, fields: [amount]}
  - {name: Lost, contract: shpo}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "contracts").mkdir()
    for name, text in (("contracts/shop", SHOP), ("contracts/mart", MART), ("readers", CONSUMERS)):
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "edges.yaml").write_text("edges: [{upstream: sales/orders, downstream: lake/copy}]\n")
    return tmp_path


ARGUMENTS = ["impact", "shop.total", "--consumers", "readers.yaml", "--edges", "edges.yaml"]


def test_text(folder, capsys):
    assert main(ARGUMENTS) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "A change of shop.orders.total (shop 1.2.0, owned by sales-team) reaches: 2 consumers, 1 asset, 1 dataset",
        "  1  dataset mart.revenue",
        "     amount of version 3.0.0",
        "  1  asset lake/copy",
        "     all fields",
        "  1  consumer Reports (bi)",
        "     reads shop.orders: total",
        "     pins ^1, which is version 1.2.0",
        "  2  consumer Board",
        "     reads mart.revenue: amount",
        "     by way of shop.orders.total > mart.revenue > Board",
        "Ask: bi",
    ]
    assert printed.err.splitlines() == [
        "databox-contracts: readers.yaml:3:5: error: Lost reads 'shpo': no contract, dataset or field is called 'shpo' "
        "(did you mean one of: shop?)"
    ]


def test_json(folder, capsys):
    assert main([*ARGUMENTS, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["distance"]) for one in found["reached"]] == [
        ("mart.revenue", 1),
        ("lake/copy", 1),
        ("Reports", 1),
        ("Board", 2),
    ]
    assert (found["target"], found["version"], found["owners"]) == ("shop.orders.total", "1.2.0", ["bi"])
    assert [problem["kind"] for problem in found["problems"]] == ["unknown_producer"]


def test_markdown(folder, capsys):
    assert main([*ARGUMENTS, "--format", "markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "## A change of shop.orders.total (shop 1.2.0, owned by sales-team) reaches"
    assert lines[-1].startswith("| 2 | consumer | Board |")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["impact", "shop.totl"],
            "no contract, dataset or field is called 'shop.totl'. Did you mean one of: shop.orders",
        ),
        (["impact", "shop", "--contracts", "none"], "none: there is no such folder"),
        (["impact", "shop", "--consumers", "none.yaml"], "none.yaml: there is no such file"),
        (["impact", "shop", "--consumers", "edges.yaml"], "edges.yaml:1:1: a file of consumers is a mapping with"),
        (["impact", "shop", "--edges", "none.yaml"], "none.yaml: there is no such file"),
        (["impact", "shop", "--edges", "none.json"], "none.json: the file cannot be read"),
        (["impact", "shop", "--edges", "bad.yaml"], "bad.yaml:1:9: an edge has no 'downstream'"),
        (["impact", "shop", "--edges", "bad.json"], "bad.json: edge 1 is none"),
        (["impact", "shop", "--edges", "half.yaml"], "an edge has an 'upstream_column' and no 'downstream_column'"),
        (["consumers", "--approvals-file", "edges.yaml"], "edges.yaml holds no list of approvals"),
    ],
)
def test_what_cannot_be_told_is_an_error(folder, capsys, arguments, message):
    (folder / "bad.yaml").write_text("edges: [{upstream: a}]\n")
    (folder / "bad.json").write_text('{"edges": [{"upstream": 1, "downstream": "b"}]}')
    (folder / "half.yaml").write_text("edges: [{upstream: a, downstream: b, upstream_column: c}]\n")
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_every_finding_about_a_file_is_told(folder, capsys):
    (folder / "readers.yaml").write_text(
        "consumers:\n  - {name: a}\n  - {contract: b}\n  - {name: c, contract: shop, x: y}\n"
    )
    assert main(["impact", "shop", "--consumers", "readers.yaml"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "readers.yaml:3:5: error: a consumer has no 'name' (give it one: `name: ...`)",
        "readers.yaml:4:31: warning: the unknown key 'x' is ignored (remove it, or carry it in customProperties)",
        "databox-contracts: readers.yaml:2:5: the consumer 'a' reads no contract (and 1 more error) "
        "(write `contract: ...`, or a list of them under `reads`)",
    ]
    (folder / "readers.yaml").write_text("consumers:\n  - {name: c, contract: shop, x: y}\n")
    assert main(["impact", "shop", "--consumers", "readers.yaml"]) == 0
    assert "readers.yaml:2:31: warning: the unknown key 'x' is ignored" in capsys.readouterr().err


def test_lineage_in_json_is_the_same(folder, capsys):
    edges = [
        {"upstream": "raw", "upstream_column": "x", "downstream": "a", "downstream_column": "y"},
        {"upstream": "a", "downstream": "b", "upstream_column": None},
    ]
    (folder / "edges.json").write_text(json.dumps({"edges": edges, "assets": {"raw": "shop"}}))
    assert main(["impact", "shop", "--edges", "edges.json", "--format", "json"]) == 0
    names = [one["name"] for one in json.loads(capsys.readouterr().out)["reached"]]
    assert names == ["mart.revenue", "a", "Reports", "b"]


def test_consumers_are_listed_and_those_who_may_not_read_are_told(folder, capsys):
    assert main(["consumers"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "shop: Reports (bi) reads total, versions ^1",
        "1 consumer, 0 problems, 0 warnings",
    ]
    assert main(["consumers", "--consumers", "readers.yaml"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "readers.yaml:3:5: error: Lost reads 'shpo': no contract, dataset or field is called 'shpo' (did you mean one"
        " of: shop?)",
        "mart: Board reads amount, versions *",
        "shop: Reports (bi) reads total, versions ^1",
        "2 consumers, 1 problem, 0 warnings",
    ]
    assert main(["consumers", "--consumers", "readers.yaml", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["consumers"]] == ["Board", "Reports"]
    assert found["consumers"][0]["places"] == ["readers.yaml:2:5"]


def test_a_purpose_that_was_approved_in_a_file(folder, capsys):
    governed = SHOP.replace(
        "customProperties:\n", "customProperties:\n  - {property: governance, value: {purposes: [a]}}\n"
    )
    (folder / "contracts" / "shop.yaml").write_text(governed)
    (folder / "readers.yaml").write_text("consumers: [{name: X, contract: shop, purpose: b, justification: because}]\n")
    assert main(["consumers", "--consumers", "readers.yaml"]) == 1
    assert "nobody has approved it" in capsys.readouterr().out
    (folder / "approvals.yaml").write_text("- {contract: shop, consumer: X, approver: k, on: 2026-11-21, purpose: b}\n")
    assert main(["consumers", "--consumers", "readers.yaml", "--approvals-file", "approvals.yaml"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 consumers, 0 problems, 1 warning"


def test_the_same_from_a_registry(folder, capsys):
    assert main(["registry", "publish", "contracts", "--registry", "r.db", "--by", "ci"]) == 0
    (folder / "contracts" / "shop.yaml").write_text(
        SHOP.replace("version: 1.2.0", "version: 2.0.0").replace(
            "- {name: id", "- {name: new, logicalType: string}\n      - {name: id"
        )
    )
    assert main(["registry", "publish", "contracts", "--registry", "r.db", "--by", "ci"]) == 0
    capsys.readouterr()
    assert main(["registry", "impact", "shop.total", "--registry", "r.db", "--format", "json"]) == 0
    first = capsys.readouterr().out
    assert main(["impact", "shop.total", "--registry", "r.db", "--format", "json"]) == 0
    assert capsys.readouterr().out == first
    found = json.loads(first)
    assert [(one["name"], one["version"], one["pin"]) for one in found["reached"]] == [
        ("mart.revenue", "3.0.0", None),
        ("Reports", "1.2.0", "^1"),
    ]
    assert found["version"] == "2.0.0"
    assert main(["registry", "impact", "shop.total", "--registry", "r.db", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("## A change of shop.orders.total")
    assert main(["registry", "impact", "nothing", "--registry", "r.db"]) == 2
    assert main(["consumers", "--registry", "r.db"]) == 0


def test_consumers_of_files_are_registered(folder, capsys):
    assert main(["registry", "publish", "contracts", "--registry", "r.db", "--by", "ci"]) == 0
    capsys.readouterr()
    (folder / "readers.yaml").write_text(
        "consumers:\n"
        "  - {name: Board, contact: board@example.com, contract: mart.revenue, fields: [amount], versions: ^3}\n"
        "  - {name: Early, contract: not.yet, versions: ^1}\n"
    )
    register = ["registry", "register", "readers.yaml", "--registry", "r.db", "--by", "ci"]
    for _ in range(2):
        assert main(register) == 0
        assert capsys.readouterr().out.splitlines() == [
            "Board is a consumer of mart",
            "Early is a consumer of not.yet, which is not published yet",
        ]
    assert main(["registry", "consumers", "--registry", "r.db", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["consumers"]
    assert [(one["contract"], one["name"], one["datasets"], one["origin"]) for one in found] == [
        ("mart", "Board", ["revenue"], "file"),
        ("not.yet", "Early", [], "file"),
        ("shop", "Reports", [], "contract"),
    ]


def test_who_is_on_a_closed_list_may_be_registered_from_a_file(folder, capsys):
    closed = SHOP.replace(
        "customProperties:\n", "customProperties:\n  - {property: governance, value: {closed: true}}\n"
    )
    (folder / "contracts" / "shop.yaml").write_text(closed)
    assert main(["registry", "publish", "contracts", "--registry", "r.db", "--by", "ci"]) == 0
    register = ["registry", "register", "readers.yaml", "--registry", "r.db", "--by", "ci"]
    (folder / "readers.yaml").write_text("consumers: [{name: Reports, contract: shop, contact: a@example.com}]\n")
    assert main(register) == 0
    (folder / "readers.yaml").write_text("consumers: [{name: Others, contract: shop}]\n")
    assert main(register) == 1
    assert "which is closed: Reports" in capsys.readouterr().out


def test_files_with_one_who_may_not_read_register_nobody(folder, capsys):
    assert main(["registry", "publish", "contracts", "--registry", "r.db", "--by", "ci"]) == 0
    capsys.readouterr()
    (folder / "readers.yaml").write_text(
        "consumers:\n  - {name: Fine, contract: mart}\n  - {name: Wrong, contract: mart, versions: ^9}\n"
    )
    register = ["registry", "register", "readers.yaml", "--registry", "r.db", "--by", "ci"]
    assert main(register) == 1
    assert "readers.yaml:3:5: error: Wrong pins ^9 of mart, and there is only 3.0.0" in capsys.readouterr().out
    assert main(["registry", "consumers", "mart", "--registry", "r.db"]) == 0
    assert capsys.readouterr().out == "No consumer is registered.\n"


def test_a_version_that_lacks_a_consent_is_refused_by_the_registry(folder, capsys):
    signed = SHOP.replace(
        "customProperties:\n",
        "customProperties:\n  - {property: evolution, value: {policy: strict, signOff: required}}\n",
    )
    (folder / "contracts" / "shop.yaml").write_text(signed)
    assert main(["registry", "publish", "contracts/shop.yaml", "--registry", "r.db", "--by", "ci"]) == 0
    broken = signed.replace("version: 1.2.0", "version: 2.0.0").replace(
        "      - {name: total, logicalType: number}\n", ""
    )
    (folder / "contracts" / "shop.yaml").write_text(broken.replace("fields: [total], ", ""))
    assert main(["registry", "publish", "contracts/shop.yaml", "--registry", "r.db", "--by", "ci"]) == 1
    assert "shop 2.0.0: Reports has not agreed to field_removed orders.total" in capsys.readouterr().out
    approve = ["registry", "approve", "shop", "--consumer", "Reports", "--version", "2.0.0", "--by", "Ann"]
    assert main([*approve, "--registry", "r.db"]) == 0
    assert main(["registry", "publish", "contracts/shop.yaml", "--registry", "r.db", "--by", "ci"]) == 0
