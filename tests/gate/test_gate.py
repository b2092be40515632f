"""The gate on real git repositories: what a branch changes in its contracts, and whether it may be merged."""

import json
import subprocess
from datetime import date
from pathlib import Path

import pytest

from databox_contracts.approvals import Approval
from databox_contracts.cli import main
from databox_contracts.errors import DataboxError
from databox_contracts.gate.acknowledging import read_acknowledgements
from databox_contracts.gate.gating import GateReport, Terms, gate
from databox_contracts.model import Consumer

TODAY = date(2026, 11, 21)
FOLDER = Path("contracts")

ORDERS = """\
apiVersion: v3.1.0
kind: DataContract
id: shop.orders
name: Orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: id, logicalType: string, required: true, unique: true}
      - {name: total, logicalType: number}
"""
BIRDS = """\
dataset: wh/main/public/birds
columns:
  - name: species
    data_type: varchar
  - name: seen
    data_type: bigint
"""


class Repository:
    """A git repository in a folder of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "tester")
        self.git("config", "user.email", "tester@example.com")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(self.place), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def write(self, name: str, text: str | bytes) -> None:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, message: str = "change", **files: str) -> str:
        for name, text in files.items():
            self.write(f"contracts/{name}.yaml", text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Repository:
    made = Repository(tmp_path / "repository")
    made.commit("start", orders=ORDERS, birds=BIRDS)
    made.git("checkout", "-q", "-b", "branch")
    monkeypatch.chdir(made.place)
    monkeypatch.delenv("ACCEPT_BREAKING_CHANGE", raising=False)
    return made


def judged(base: str = "main", head: str | None = "HEAD", body: str = "", **terms: object) -> GateReport:
    accepted = read_acknowledgements(None, None, body)
    return gate(FOLDER, base, head, Terms(**{"today": TODAY, "acknowledgements": accepted, **terms}))


def breaks(report: GateReport) -> list[str]:
    return [f"{one.dataset}: {one.change.change_type} {one.change.field_name}" for one in report.breaking]


def without_total(text: str = ORDERS, version: str = "1.0.0") -> str:
    return text.replace("      - {name: total, logicalType: number}\n", "").replace(
        "version: 1.0.0", f"version: {version}"
    )


# --- what is found ----------------------------------------------------------------------------------------------------


def test_nothing_changed(repository):
    report = judged()
    assert (report.clean, report.changes, report.remarks) == (True, (), ())


def test_an_additive_change_is_clean(repository):
    added = ORDERS.replace("1.0.0\nstatus", "1.1.0\nstatus") + "      - {name: note, logicalType: string}\n"
    repository.commit(orders=added)
    report = judged()
    assert report.clean
    assert [one.to_dict()["kind"] for one in report.additive] == ["field_added"]


def test_a_removed_column_breaks(repository):
    repository.commit(birds=BIRDS.replace("  - name: seen\n    data_type: bigint\n", ""))
    report = judged()
    assert breaks(report) == ["birds: field_removed seen"]
    assert not report.clean


def test_a_contract_that_is_removed_added_or_moved(repository):
    repository.git("mv", "contracts/orders.yaml", "contracts/sales.yaml")
    repository.git("rm", "-q", "contracts/birds.yaml")
    repository.commit(other=ORDERS.replace("shop.orders", "shop.other").replace("name: orders", "name: other"))
    report = judged()
    assert breaks(report) == ["birds: dataset_removed birds"]
    assert [one.to_dict()["kind"] for one in report.additive] == ["dataset_added"]
    assert report.remarks == ("contracts/orders.yaml moved to contracts/sales.yaml",)


def test_a_file_that_moved_and_changed_is_still_compared(repository):
    repository.git("mv", "contracts/orders.yaml", "contracts/sales.yaml")
    repository.commit(sales=without_total())
    assert breaks(judged()) == ["orders: field_removed total", "shop.orders: version_not_bumped version"]


def test_a_contract_that_changed_its_name_breaks(repository):
    repository.commit(orders=ORDERS.replace("id: shop.orders", "id: shop.sales"))
    assert breaks(judged()) == ["shop.orders: dataset_renamed id"]


def test_a_contract_that_changed_its_dialect_did_not_change(repository):
    repository.commit(
        orders="dataContractSpecification: 1.2.0\nid: shop.orders\n"
        "info: {title: Orders, version: 1.0.0, status: active}\nmodels:\n  orders:\n    fields:\n"
        "      id: {type: string, required: true, unique: true}\n      total: {type: number}\n"
    )
    report = judged()
    assert report.clean
    assert report.changes == ()


def test_what_is_no_contract_is_left_alone(repository):
    repository.write("contracts/notes.yaml", "some: notes\n")
    repository.write("contracts/.hidden/x.yaml", "a: [\n")
    repository.commit()
    assert judged().clean


def test_the_files_on_disk_can_be_judged(repository):
    repository.write("contracts/orders.yaml", without_total())
    assert judged().clean
    assert breaks(judged(head=None)) == ["orders: field_removed total", "shop.orders: version_not_bumped version"]


def test_line_ends_and_names_that_are_not_ascii(repository):
    repository.write("contracts/möwen (1).yaml", BIRDS.replace("birds", "möwen"))
    repository.commit()
    repository.git("checkout", "-q", "-b", "second")
    repository.write("contracts/orders.yaml", ORDERS.replace("\n", "\r\n"))
    repository.commit()
    assert judged("branch").changes == ()
    repository.write("contracts/möwen (1).yaml", BIRDS.replace("birds", "möwen").replace("seen", "counted"))
    repository.commit()
    assert breaks(judged("branch")) == ["möwen: field_renamed seen"]


def test_what_others_merged_meanwhile_is_not_laid_to_the_branch(repository):
    repository.git("checkout", "-q", "main")
    repository.commit(orders=ORDERS + "      - {name: note, logicalType: string}\n")
    repository.git("checkout", "-q", "branch")
    repository.commit("elsewhere")
    assert judged().changes == ()


def test_a_contract_cannot_loosen_its_own_judge(repository):
    lenient = without_total() + "customProperties:\n  - {property: evolution, value: {policy: none}}\n"
    lenient += "  - {property: enforcement, value: {mode: warn, until: 2026-12-31}}\n"
    repository.commit(orders=lenient)
    assert "orders: field_removed total" in breaks(judged())
    assert "shop.orders: governance_changed enforcement mode" in breaks(judged())
    assert judged(policy="none").clean


# --- acknowledging ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "accepted"),
    [
        ("accept-breaking-change: birds", True),
        ("Some words.\n\naccept-breaking-change: birds\r\nMore.", True),
        ("Accept-Breaking-Change:birds", True),
        ("accept-breaking-change: wh/main/public/birds", True),
        (" accept-breaking-change: birds", False),
        ("we accept-breaking-change: birds", False),
        ("accept-breaking-change: birds and others", False),
        ("accept-breaking-change: bird", False),
        ("", False),
    ],
)
def test_a_line_of_the_pull_request_accepts(repository, body, accepted):
    repository.commit(birds=BIRDS.replace("seen", "counted"))
    report = judged(body=body)
    assert report.clean is accepted
    assert [one.dataset for one in report.acknowledged] == (["birds"] if accepted else [])


def test_the_command_line_takes_the_variables_place_and_lines_add_to_it(repository, capsys, monkeypatch):
    repository.commit(birds=BIRDS.replace("seen", "counted"), orders=without_total())
    (repository.place / "body.txt").write_text("accept-breaking-change: orders\n")
    monkeypatch.setenv("ACCEPT_BREAKING_CHANGE", "birds,orders")
    assert main(["gate", "--base", "main"]) == 0
    assert main(["gate", "--base", "main", "--accept", "birds"]) == 1
    assert main(["gate", "--base", "main", "--accept", "birds", "--pr-body-file", "body.txt"]) == 0
    assert main(["gate", "--base", "main", "--accept", "", "--pr-body-file", "body.txt"]) == 1
    capsys.readouterr()


def test_what_was_accepted_stays_in_the_report(repository, capsys):
    repository.commit(birds=BIRDS.replace("seen", "counted"))
    assert main(["gate", "--base", "main", "--accept", "birds,nobody"]) == 0
    printed = capsys.readouterr().out
    assert "  birds: field_renamed seen (ACKED)\n" in printed
    assert "  'nobody' accepts nothing: no contract that changed has it\n" in printed
    assert printed.endswith("ACKNOWLEDGED: 1 breaking changes, all accepted\n")


def test_a_name_that_two_contracts_have_accepts_nothing(repository):
    repository.git("checkout", "-q", "main")
    repository.commit(second=ORDERS.replace("id: shop.orders", "id: other.orders"))
    repository.git("checkout", "-q", "-b", "second")
    changed = without_total()
    repository.commit(orders=changed, second=changed.replace("id: shop.orders", "id: other.orders"))
    report = judged(body="accept-breaking-change: orders")
    assert not report.clean
    assert report.remarks == (
        "'orders' could mean a dataset of shop.orders or other.orders and accepts nothing; write shop.orders.orders",
    )
    both = "accept-breaking-change: shop.orders.orders\naccept-breaking-change: other.orders"
    assert judged(body=both).clean


@pytest.mark.parametrize("arguments", [("--accept", "a,,b"), ("--pr-body-file", "body.txt")])
def test_an_acknowledgement_of_nothing_could_not_run(repository, capsys, arguments):
    (repository.place / "body.txt").write_text("accept-breaking-change:\n")
    assert main(["gate", "--base", "main", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# --- consumers --------------------------------------------------------------------------------------------------------

READER = Consumer(name="reports", datasets=("orders",), fields=("orders.total",))
OTHER = Consumer(name="planning", datasets=("orders",), fields=("id",))


def test_a_removal_is_refused_while_a_consumer_names_the_field(repository):
    repository.commit(orders=without_total())
    consumers = {"shop.orders": [READER, OTHER]}
    body = "accept-breaking-change: orders"
    assert judged(body=body).clean
    report = judged(body=body, consumers=consumers)
    assert not report.clean
    (removed,) = [one for one in report.breaking if one.change.field_name == "total"]
    assert (removed.change.consumers, removed.missing) == (("reports",), ("reports",))
    approval = Approval("shop.orders", "reports", "keeper", TODAY)
    assert judged(body=body, consumers=consumers, approvals=(approval,)).clean
    for wrong in (
        Approval("shop.orders", "planning", "keeper", TODAY),
        Approval("shop.other", "reports", "keeper", TODAY),
        Approval("shop.orders", "reports", "keeper", TODAY, version="9.0.0"),
        Approval("shop.orders", "reports", "keeper", TODAY, dataset="lines"),
    ):
        assert not judged(body=body, consumers=consumers, approvals=(wrong,)).clean


def test_a_branch_cannot_strike_out_a_consumer_that_is_in_its_way(repository):
    declared = "customProperties:\n  - {property: consumers, value: [{name: reports, fields: [total]}]}\n"
    repository.git("checkout", "-q", "main")
    repository.commit(orders=ORDERS + declared)
    repository.git("checkout", "-q", "-b", "second")
    repository.commit(orders=without_total())
    assert not judged(body="accept-breaking-change: orders").clean


SIGNED = (
    ORDERS
    + """\
customProperties:
  - {property: evolution, value: {policy: strict, signOff: required}}
  - {property: consumers, value: [{name: reports, fields: [total]}, {name: planning}, {name: stock, fields: [id]}]}
"""
)


def test_a_contract_may_require_the_consent_of_everybody_affected(repository, capsys):
    repository.git("checkout", "-q", "main")
    repository.commit(orders=SIGNED)
    repository.git("checkout", "-q", "-b", "second")
    repository.commit(orders=SIGNED.replace("logicalType: number", "logicalType: string"))
    body = "accept-breaking-change: orders\napprove-breaking-change: orders by planning\n"
    (changed,) = judged(body=body).breaking
    assert changed.missing == ("reports", "planning")
    assert changed.claimed == ("planning",)
    entry = "- {contract: shop.orders, consumer: %s, approver: keeper, on: 2026-11-20}\n"
    (repository.place / "approvals.yaml").write_text(entry % "reports" + entry % "planning")
    (repository.place / "body.txt").write_text(body)
    arguments = ["gate", "--base", "main", "--pr-body-file", "body.txt"]
    assert main(arguments) == 1
    printed = capsys.readouterr().out
    assert "Needs the approval of: reports, planning" in printed
    assert "Claimed in the pull request, and not counted: planning" in printed
    assert main([*arguments, "--approvals-file", "approvals.yaml"]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b\n", "holds no list of approvals"),
        ("- x\n", "entry 1 is no mapping"),
        ("- {contract: a, consumer: b, approver: c}\n", "entry 1 has no 'on'"),
        ("- {contract: a, consumer: b, approver: c, on: soon}\n", "'soon' is no date"),
        ("- {contract: a, consumer: b, approver: c, on: 2026-01-01, who: d}\n", "has the unknown key 'who'"),
        ("a: [\n", "not valid YAML"),
        (None, "there is no such file"),
    ],
)
def test_a_file_of_approvals_that_cannot_be_read(repository, capsys, text, message):
    if text is not None:
        (repository.place / "approvals.yaml").write_text(text)
    assert main(["gate", "--base", "main", "--approvals-file", "approvals.yaml"]) == 2
    assert message in capsys.readouterr().err


# --- versions, notice and lineages ------------------------------------------------------------------------------------


def major(*properties: str) -> str:
    return without_total(version="2.0.0") + "customProperties:\n" + "".join(f"  - {{{one}}}\n" for one in properties)


@pytest.mark.parametrize(
    ("properties", "conditions"),
    [
        ((), ["no day on which it takes effect", "does not say that 2.0.0 removes total"]),
        (
            ('property: effectiveDate, value: "2026-12-20"',),
            ["takes effect on 2026-12-20, which is less than 30 days away", "does not say"],
        ),
        (('property: effectiveDate, value: "2026-12-21"',), ["does not say that 2.0.0 removes total"]),
        (
            (
                'property: effectiveDate, value: "2026-12-21"',
                "property: changelog, value: [{version: 2.0.0, removed: [total]}]",
            ),
            [],
        ),
        (
            ("property: effectiveDate, value: soon", 'property: changelog, value: {"2.0": total was removed}'),
            ["no day on which it takes effect"],
        ),
    ],
)
def test_a_major_version_needs_notice_and_a_changelog(repository, properties, conditions):
    repository.commit(orders=major(*properties))
    report = judged()
    assert breaks(report) == ["orders: field_removed total"]
    assert len(report.conditions) == len(conditions)
    for found, expected in zip(report.conditions, conditions, strict=True):
        assert expected in found
    # Whoever accepts the break is told all the same.
    accepted = judged(body="accept-breaking-change: orders")
    assert accepted.clean
    assert [remark for remark in accepted.remarks if remark in report.conditions] == list(report.conditions)


def test_the_contract_says_how_much_notice_it_gives(repository):
    notice = "customProperties:\n  - {property: noticePeriod, value: P90D}\n"
    repository.git("checkout", "-q", "main")
    repository.commit(orders=ORDERS + notice)
    repository.git("checkout", "-q", "-b", "second")
    repository.commit(
        orders=major('property: effectiveDate, value: "2027-02-18"', "property: noticePeriod, value: P90D")
    )
    assert "less than 90 days away; make it 2027-02-19 or later" in judged().conditions[0]


def test_a_new_version_in_a_file_of_its_own_is_judged_against_the_last_one(repository):
    repository.git("checkout", "-q", "main")
    repository.commit(**{"sales.v2": ORDERS.replace("shop.orders", "shop.sales.v2")})
    repository.git("checkout", "-q", "-b", "second")
    third = without_total(ORDERS.replace("shop.orders", "shop.sales.v3"), "2.0.0")
    repository.commit(**{"sales.v3": third})
    assert breaks(judged()) == ["orders: field_removed total"]


def test_a_transitive_policy_looks_at_the_whole_lineage(repository):
    def version(number: int, kind: str, policy: str) -> str:
        text = ORDERS.replace("shop.orders", f"shop.sales.v{number}").replace(
            "version: 1.0.0", f"version: {number}.0.0"
        )
        evolution = f"customProperties:\n  - {{property: evolution, value: {{policy: {policy}}}}}\n"
        return text.replace("logicalType: number", f"logicalType: {kind}") + evolution

    for policy, clean in (("backward", True), ("backward_transitive", False)):
        repository.git("checkout", "-q", "main")
        repository.commit(**{"sales.v1": version(1, "string", policy), "sales.v2": version(2, "integer", policy)})
        repository.git("checkout", "-q", "-B", "second")
        repository.commit(**{"sales.v3": version(3, "integer", policy)})
        assert judged().clean is clean, policy


@pytest.mark.parametrize(
    ("sunset", "consumers", "clean"),
    [
        ("2026-11-21", {}, True),
        ("2026-11-22", {}, False),
        (None, {}, False),
        ("2026-11-21", {"shop.orders": [READER]}, False),
    ],
)
def test_a_version_may_go_after_its_sunset_and_its_last_consumer(repository, sunset, consumers, clean):
    properties = f'customProperties:\n  - {{property: sunsetDate, value: "{sunset}"}}\n' if sunset else ""
    repository.git("checkout", "-q", "main")
    repository.commit(orders=ORDERS + properties)
    repository.git("checkout", "-q", "-b", "second")
    repository.git("rm", "-q", "contracts/orders.yaml")
    repository.commit()
    assert judged(consumers=consumers).clean is clean


# --- grace ------------------------------------------------------------------------------------------------------------


def test_breaks_may_be_let_through_for_a_while(repository):
    repository.commit(orders=without_total())
    report = judged(warn_until=date(2026, 11, 22))
    assert report.clean
    assert breaks(report) == ["orders: field_removed total", "shop.orders: version_not_bumped version"]
    assert all(one.warns for one in report.breaking)
    assert not judged(warn_until=TODAY).clean
    assert judged(warn_until=date(2027, 2, 19)).clean
    with pytest.raises(DataboxError, match=r"until 2027-02-20.*at most 90 days"):
        judged(warn_until=date(2027, 2, 20))


def test_a_contract_has_a_grace_period_of_its_own(repository):
    grace = "customProperties:\n  - {property: enforcement, value: {mode: warn, until: 2026-12-01}}\n"
    repository.git("checkout", "-q", "main")
    repository.commit(orders=ORDERS + grace)
    repository.git("checkout", "-q", "-b", "second")
    repository.commit(orders=without_total() + grace)
    assert judged().clean
    assert not judged(today=date(2026, 12, 1)).clean


# --- what cannot be judged --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("--base", "nothing"), ("--base", "main", "--head", "nothing")])
def test_an_unknown_revision(repository, capsys, arguments):
    assert main(["gate", *arguments]) == 2
    assert "there is no revision 'nothing'" in capsys.readouterr().err


def test_an_option_is_no_revision(repository, capsys):
    assert main(["gate", "--base=--all"]) == 2
    assert "'--all' is no revision" in capsys.readouterr().err


def test_no_repository(tmp_path, monkeypatch, capsys):
    place = tmp_path / "nowhere"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert main(["gate", "--base", "main"]) == 2
    assert "is not in a git repository" in capsys.readouterr().err


def test_a_shallow_clone(repository, tmp_path, monkeypatch, capsys):
    repository.commit(orders=without_total())
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", "--branch", "branch", f"file://{repository.place}", str(clone)],
        check=True,
    )
    monkeypatch.chdir(clone)
    assert main(["gate"]) == 2
    assert "This clone is shallow" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [\n", "not valid YAML"),
        (b"\xff\xfe\x00binary", "the file is not UTF-8 text"),
        (ORDERS.replace("logicalType: number", "logicalType: numbr").encode(), "unknown logicalType"),
    ],
)
@pytest.mark.parametrize("side", ["base", "head"])
def test_a_contract_that_cannot_be_read_is_named_with_its_revision(repository, capsys, content, message, side):
    if side == "base":
        repository.git("checkout", "-q", "main")
        repository.write("contracts/orders.yaml", content)
        broken = repository.commit()
        repository.git("checkout", "-q", "-b", "second")
        repository.commit(orders=ORDERS)
    else:
        repository.write("contracts/orders.yaml", content)
        broken = repository.commit()
    assert main(["gate", "--base", "main", "--format", "json"]) == 2
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert problems[0].startswith(f"contracts/orders.yaml at {broken[:12]}")
    assert message in problems[0]


def test_a_broken_file_that_did_not_change_is_not_the_branchs(repository):
    repository.git("checkout", "-q", "main")
    repository.write("contracts/broken.yaml", "a: [\n")
    repository.commit()
    repository.git("checkout", "-q", "-b", "second")
    repository.commit("elsewhere")
    assert judged().clean


def test_a_folder_that_went_altogether(repository):
    repository.git("rm", "-rq", "contracts")
    repository.commit()
    assert breaks(judged()) == ["birds: dataset_removed birds", "orders: dataset_removed orders"]


def test_a_folder_outside_the_repository(repository, tmp_path):
    with pytest.raises(DataboxError):
        gate(tmp_path, "main", "HEAD", Terms(TODAY))


# --- what is printed --------------------------------------------------------------------------------------------------


def test_json(repository, capsys):
    repository.commit(birds=BIRDS.replace("seen", "counted"))
    assert main(["gate", "--base", "main", "--format", "json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["clean"] is False
    assert {name: printed["breaking"][0][name] for name in ("dataset", "kind", "field", "detail")} == {
        "dataset": "birds",
        "kind": "field_renamed",
        "field": "seen",
        "detail": "'seen' -> 'counted'. Update all consumers.",
    }
    assert (printed["additive"], printed["acknowledged"]) == ([], [])


def test_markdown_and_annotations(repository, capsys):
    repository.commit(birds=BIRDS.replace("seen", "co|unted"))
    assert main(["gate", "--base", "main", "--format", "markdown"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "## Data contracts: BREAKING: 1 changes break consumers"
    assert lines[4].startswith("| birds | field\\_renamed | seen | 'seen' -\\> 'co\\|unted'.")
    assert "accept-breaking-change: birds" in lines
    assert main(["gate", "--base", "main", "--format", "github"]) == 1
    assert capsys.readouterr().out.startswith("::error file=contracts/birds.yaml::birds: field_renamed seen: ")


# --- how much work it is ----------------------------------------------------------------------------------------------


def test_the_number_of_git_processes_does_not_depend_on_the_contracts(repository, tmp_path, monkeypatch):
    def processes(name: str) -> int:
        trace = tmp_path / name
        monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
        judged()
        monkeypatch.delenv("GIT_TRACE2_EVENT")
        return sum('"event":"start"' in line for line in trace.read_text().splitlines())

    few = processes("few")
    for number in range(30):
        repository.write(f"contracts/{number}.yaml", ORDERS.replace("shop.orders", f"shop.{number}"))
    repository.commit()
    many = processes("many")
    assert (few, many) == (8, 8)


# --- history ----------------------------------------------------------------------------------------------------------


def test_past_commits_are_replayed(repository, capsys):
    start = repository.git("rev-parse", "HEAD")
    repository.commit("a column is gone", birds=BIRDS.replace("  - name: seen\n    data_type: bigint\n", ""))
    repository.commit("nothing of ours")
    repository.commit("orders went\n\naccept-breaking-change: orders\n", orders=without_total())
    repository.commit("broken", birds="a: [\n")
    repository.commit("mended", birds=BIRDS)
    assert main(["gate", "--history", f"{start}..HEAD"]) == 0
    printed = capsys.readouterr().out
    assert [line.partition(" ")[2] for line in printed.splitlines() if line[:1] not in ("", " ")][:-1] == [
        "a column is gone",
        "orders went",
        "broken",
        "mended",
    ]
    assert "orders: field_removed total (ACKED)" in printed
    assert "Accepted in the commit's message" in printed
    assert main(["gate", "--history", f"{start}..HEAD", "--format", "json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [entry["report"]["clean"] for entry in entries] == [False, True, False, False]
    assert main(["gate", "--history", "nonsense"]) == 2


def test_hundreds_of_commits(repository, capsys):
    start = repository.git("rev-parse", "HEAD")
    stream = []
    for number in range(200):
        text = ORDERS.replace("version: 1.0.0", f"version: 1.{number}.0").replace("total", f"total{number // 10}")
        content = text.encode()
        message = f"commit {number}"
        stream.append(
            f"commit refs/heads/long\ncommitter tester <tester@example.com> {1_700_000_000 + number * 60} +0000\n"
            f"data {len(message)}\n{message}\n"
            + (f"from {start}\n" if number == 0 else "")
            + f"M 100644 inline contracts/orders.yaml\ndata {len(content)}\n{text}\n"
        )
    subprocess.run(["git", "fast-import", "--quiet"], input="".join(stream).encode(), cwd=repository.place, check=True)
    assert main(["gate", "--history", f"{start}..long", "--format", "json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert len(entries) == 200
    assert all(entry["error"] is None for entry in entries)
    assert sum(not entry["report"]["clean"] for entry in entries) == 20
