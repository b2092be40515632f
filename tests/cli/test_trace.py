"""`databox-contracts trace`: what it prints, how it exits, and the plan that it leaves."""

import io
import json

import pytest

from databox_contracts.cli import main

CRM = """\
apiVersion: v3.1.0
kind: DataContract
id: crm
version: 1.0.0
status: active
schema:
  - name: customers
    properties:
      - {name: id, logicalType: string}
      - {name: email, logicalType: string, customProperties: [{property: pii, value: true}]}
customProperties:
  - property: consumers
    value:
      - {name: Helpdesk, owner: support, purpose: support, fields: [email]}
      - {name: Mailer, purpose: ads, assets: [lake/mail]}
"""
SUBJECT = "marked.subject.5c1d@example.com"
KEY = "a key of more than sixteen bytes"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "crm.yaml").write_text(CRM)
    monkeypatch.delenv("DATABOX_SUBJECT_KEY", raising=False)
    return tmp_path


LINES = [
    "1 field: crm.customers.email",
    "held by:",
    "  0  dataset crm.customers",
    "     crm.customers.email as email",
    "  1  asset lake/mail (Mailer)",
    "     crm.customers.email",
    "  1  consumer Helpdesk (support) of crm, for support",
    "     crm.customers.email as email",
    "  1  consumer Mailer of crm, for ads",
    "     crm.customers.email as email",
]


@pytest.mark.parametrize("what", [["crm.customers.email"], ["crm"], ["--pii"]])
def test_who_holds_it(folder, capsys, what):
    assert main(["trace", *what]) == 0
    assert capsys.readouterr().out.splitlines() == LINES
    assert list(folder.iterdir()) == [folder / "contracts"]


def test_for_one_purpose(folder, capsys):
    assert main(["trace", "--pii", "--purpose", "ads"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 field: crm.customers.email",
        "held for ads by:",
        *LINES[2:6],
        *LINES[8:],
        "  left out: Helpdesk, it is used for support only",
    ]


def test_json(folder, capsys):
    assert main(["trace", "crm.email", "--format", "json", "--plan", "plan.json", "--by", "Ann"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["holders"]] == ["crm.customers", "lake/mail", "Helpdesk", "Mailer"]
    assert found["plan"]["made_by"] == "Ann"
    assert len(found["plan"]["steps"]) == 4


def test_a_plan_is_ticked_off_and_shown(folder, capsys):
    assert main(["trace", "--pii", "--plan", "plan.json", "--by", "Ann"]) == 0
    printed = capsys.readouterr().out
    assert "4 steps: plan.json\n  the subject: none is named\n" in printed
    assert main(["trace", "tick", "plan.json", "2", "--by", "Bob", "--note", "rewritten"]) == 0
    assert "step 2 is done, by Bob on " in capsys.readouterr().out
    assert main(["trace", "tick", "plan.json", "2", "--by", "Eve"]) == 0
    assert "step 2 is done, by Bob on " in capsys.readouterr().out
    assert main(["trace", "show", "plan.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "delete *, made by Ann on " in lines[0]
    assert lines[0].endswith("; 3 of 4 steps are left")
    assert lines[1] == "  [ ] 1. delete it from crm.customers (email)"
    assert lines[2].startswith("  [x] 2. Mailer: delete it from lake/mail (crm.customers.email) - Bob, ")
    assert lines[2].endswith(" UTC: rewritten")
    assert [line.partition("UTC  ")[2] for line in lines[5:]] == ["Ann: plan deletion", "Bob: tick step 2"]
    for step in ("1", "3", "4"):
        assert main(["trace", "tick", "plan.json", step, "--by", "Bob"]) == 0
    assert "all 4 steps are done" in capsys.readouterr().out
    assert main(["trace", "show", "plan.json", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["done"], len(found["audit"])) == (True, 5)
    assert "is_about_subject" not in found


def test_the_subject_is_kept_as_a_digest_only(folder, capsys, monkeypatch):
    assert main(["trace", "--pii", "--subject", SUBJECT, "--plan", "without.json"]) == 0
    assert "the subject: not kept, since $DATABOX_SUBJECT_KEY is not set" in capsys.readouterr().out
    monkeypatch.setenv("DATABOX_SUBJECT_KEY", KEY)
    assert main(["trace", "--pii", "--subject", SUBJECT, "--plan", "with.json"]) == 0
    assert "the subject: kept as a digest" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SUBJECT}\n"))
    assert main(["trace", "show", "with.json", "--subject", "-"]) == 0
    printed = capsys.readouterr().out
    assert "It is about that subject." in printed
    assert main(["trace", "show", "with.json", "--subject", "another"]) == 0
    assert "It is about another subject." in capsys.readouterr().out
    assert main(["trace", "show", "without.json", "--subject", SUBJECT]) == 0
    assert "Nobody can tell whose it is" in capsys.readouterr().out
    for file in folder.rglob("*"):
        if file.is_file():
            assert SUBJECT.encode() not in file.read_bytes()
            assert KEY.encode() not in file.read_bytes()
    monkeypatch.setenv("DATABOX_SUBJECT_KEY", "short")
    assert main(["trace", "--pii", "--subject", SUBJECT, "--plan", "short.json"]) == 2
    assert SUBJECT not in capsys.readouterr().err
    assert not (folder / "short.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            "nobody can tell what is to be traced. Write `trace FIELD`, `trace --pii`, `trace tick PLAN STEP --by WHO`",
        ),
        (["crm", "--pii"], "nobody can tell what is to be traced"),
        (["crm", "crm"], "nobody can tell what is to be traced"),
        (["crm.phone"], "no contract, dataset or field is called 'crm.phone'"),
        (["crm", "--subject", "x"], "a subject belongs to a plan. Add --plan FILE"),
        (["crm", "--save"], "plans are kept in files, or in a registry's database; there is none"),
        (["tick", "plan.json", "1"], "a tick names the plan, the number of the step, and who did it"),
        (["tick", "plan.json", "one", "--by", "a"], "a tick names the plan, the number of the step, and who did it"),
        (["tick", "plan.json", "9", "--by", "a"], "has no step 9. It has 1, 2, 3, 4."),
        (["tick", "none.json", "1", "--by", "a"], "cannot use the plan 'none.json'"),
        (["tick", "contracts/crm.yaml", "1", "--by", "a"], "cannot use the plan 'contracts/crm.yaml': it holds no"),
        (["show"], "one plan is shown at a time"),
        (["show", "none.json"], "cannot use the plan 'none.json'"),
        (["list"], "plans are kept in files, or in a registry's database"),
        (["list", "x"], "`trace list` takes no more words"),
        (["crm", "--plan", "plan.json"], "there is a file 'plan.json' already"),
        (["crm", "--plan", "none/plan.json"], "cannot use the plan 'none/plan.json': No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_an_error(folder, capsys, arguments, message):
    assert main(["trace", "--pii", "--plan", "plan.json"]) == 0
    before = (folder / "plan.json").read_bytes()
    assert main(["trace", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert (folder / "plan.json").read_bytes() == before


@pytest.mark.parametrize("command", [["trace"], ["registry", "trace"]])
def test_a_registry_knows_and_keeps_it_all(folder, capsys, monkeypatch, command):
    monkeypatch.setenv("DATABOX_SUBJECT_KEY", KEY)
    assert main(["registry", "publish", "contracts", "--registry", "r.db", "--by", "ci"]) == 0
    (folder / "contracts" / "crm.yaml").unlink()
    capsys.readouterr()
    at = ["--registry", "r.db"]
    assert main([*command, "list", *at]) == 0
    assert capsys.readouterr().out == "There is no deletion plan.\n"
    assert main([*command, "crm.email", *at]) == 0
    assert capsys.readouterr().out.splitlines() == LINES
    assert main([*command, "--pii", "--subject", SUBJECT, "--save", "--by", "Ann", "--format", "json", *at]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert main([*command, "tick", plan["id"], "1", "--by", "Bob", "--note", "done so", *at]) == 0
    assert main([*command, "list", *at]) == 0
    assert f"{plan['id']}  " in capsys.readouterr().out
    assert main([*command, "show", plan["id"], "--subject", SUBJECT, "--format", "json", *at]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["steps"][0]["done_by"], found["steps"][0]["note"]) == ("Bob", "done so")
    assert found["is_about_subject"] is True
    assert [(entry["who"], entry["action"]) for entry in found["audit"]] == [
        ("Ann", "plan deletion"),
        ("Bob", "tick step 1"),
    ]
    assert main([*command, "show", "nothing", *at]) == 2
    assert main([*command, "tick", plan["id"], "9", "--by", "Bob", *at]) == 2
    assert "has no step 9" in capsys.readouterr().err
    assert SUBJECT.encode() not in (folder / "r.db").read_bytes()
