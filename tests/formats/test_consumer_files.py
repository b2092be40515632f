"""Files in which consumers declare themselves, and files of approvals: every finding at its line."""

import pytest

from databox_contracts.declarations import Declaration
from databox_contracts.errors import ContractError, DataboxError
from databox_contracts.formats.approval_files import load_approvals
from databox_contracts.formats.consumer_files import examine_consumers, load_consumers
from databox_contracts.model import Consumer

WHOLE = """\
consumers:
  - name: Revenue märt
    owner: analytics
    contacts: [revenue@example.com, '#revenue']
    criticality: high
    severity: warning
    digest: true
    purpose: payment_processing
    assets: [marts/revenue]
    reads:
      - {contract: payments.transaction, fields: [amount_paise], versions: 3.10}
      - {contract: shop.orders, purpose: reports, justification: the board asks}
  - {name: Flat, contract: shop.orders, datasets: [orders], versions: ^1}
"""


def test_a_file_says_who_reads_what(tmp_path):
    file = tmp_path / "consumers.yaml"
    file.write_text(WHOLE, encoding="utf-8")
    facts = {
        "owner": "analytics",
        "contacts": ("revenue@example.com", "#revenue"),
        "criticality": "high",
        "severity": "warning",
        "digest": True,
        "assets": ("marts/revenue",),
    }
    payments = Consumer(
        "Revenue märt", fields=("amount_paise",), versions="3.10", purpose="payment_processing", **facts
    )
    orders = Consumer("Revenue märt", purpose="reports", justification="the board asks", **facts)
    assert load_consumers([file]) == [
        Declaration("payments.transaction", payments, f"{file}:11:9", "file"),
        Declaration("shop.orders", orders, f"{file}:12:9", "file"),
        Declaration("shop.orders", Consumer("Flat", None, ["orders"], versions="^1"), f"{file}:13:5", "file"),
    ]


FINDINGS = [
    ("consumers: []\n", []),
    ("consumers:\n", []),
    ("", ["<text>:1:1: error: a file of consumers is a mapping with `consumers`, not nothing"]),
    ("- a\n- b\n", ["1:1: error: a file of consumers is a mapping with `consumers`, not a list"]),
    ("id: a\nkind: b\n", ["1:1: error: a file of consumers is a mapping with `consumers`, not a mapping without"]),
    ("consumers: [a]\n", ["1:13: error: an item of 'consumers' must be a mapping, not the text 'a'"]),
    ("consumers: {a: b}\n", ["1:12: error: 'consumers' must be a list, not a mapping"]),
    ("consumers:\n  - {contract: a}\n", ["2:5: error: a consumer has no 'name'"]),
    ("consumers:\n  - {name: '', contract: a}\n", ["2:12: error: a consumer has no 'name'"]),
    ("consumers:\n  - {name: a}\n", ["2:5: error: the consumer 'a' reads no contract"]),
    ("consumers:\n  - {name: a, reads: []}\n", ["2:5: error: the consumer 'a' reads no contract"]),
    ("consumers:\n  - {name: a, reads: b}\n", ["2:22: error: 'reads' must be a list, not the text 'b'"]),
    ("consumers:\n  - {name: a, reads: [{fields: [b]}]}\n", ["2:23: error: what 'a' reads has no 'contract'"]),
    (
        "consumers:\n  - {name: a, contract: b, reads: [{contract: c}]}\n",
        ["2:25: error: 'contract' and 'reads' stand here both (write each contract under `reads`)"],
    ),
    (
        "consumers:\n  - {name: a, reads: [{contract: c, owner: d}]}\n",
        ["2:44: error: 'owner' is not said of one contract (write it beside the consumer's name)"],
    ),
    (
        "consumers:\n  - {name: a, contract: b, versions: soon}\n",
        ["2:38: error: 'soon' is no range of versions (write it as ^2.1, ~1.4, >=1.2,<2, 1.x or *;"],
    ),
    ("consumers:\n  - {name: a, contract: b, versions: ''}\n", ["2:38: error: '' is no range of versions"]),
    (
        "consumers:\n  - {name: a, contract: b, severity: loud}\n",
        ["2:38: error: unknown severity 'loud' (use one of error, warning, info)"],
    ),
    (
        "consumers:\n  - {name: a, contract: b, feilds: [c]}\n",
        ["2:28: warning: the unknown key 'feilds' is ignored (did you mean 'fields'?)"],
    ),
    (
        "consumers: []\nteams: []\n",
        ["2:1: warning: the unknown key 'teams' is ignored"],
    ),
    (
        "consumers:\n  - {name: a, contract: b, versions: 2}\n",
        ["2:38: warning: 'versions' is the number 2 and is read as the text '2' (put it in quotes)"],
    ),
    ("consumers: [\n", ["error: not valid YAML"]),
    ("consumers:\n  - !!python/object:os.system {}\n", ["error: the tag"]),
    ("a: &a [*a]\nconsumers: *a\n", ["error: an alias that contains itself"]),
]


@pytest.mark.parametrize(("text", "messages"), FINDINGS)
def test_what_is_wrong_is_said_with_its_place(text, messages):
    found = [str(finding) for finding in examine_consumers(text)[1]]
    assert len(found) == len(messages), found
    for finding, message in zip(found, messages, strict=True):
        assert message in finding


def test_a_folder_is_read_in_the_order_of_its_paths_and_errors_of_all_files_are_told(tmp_path):
    (tmp_path / "teams").mkdir()
    (tmp_path / "b.yaml").write_text("consumers: [{name: b, contract: x}]\n")
    (tmp_path / "a.yml").write_text("consumers: [{name: a, contract: x}]\n")
    (tmp_path / "teams" / "c.yaml").write_text("consumers: [{name: c, contract: x}]\n")
    (tmp_path / "notes.txt").write_text("no consumers\n")
    assert [one.consumer.name for one in load_consumers([tmp_path])] == ["a", "b", "c"]
    assert [one.consumer.name for one in load_consumers([tmp_path / "b.yaml", tmp_path / "a.yml"])] == ["b", "a"]
    (tmp_path / "a.yml").write_text("consumers: [{contract: x}]\n")
    (tmp_path / "b.yaml").write_text("consumers: [{name: b}]\n")
    with pytest.raises(ContractError) as caught:
        load_consumers([tmp_path])
    assert [finding.source for finding in caught.value.findings] == [f"{tmp_path}/a.yml", f"{tmp_path}/b.yaml"]
    assert "a consumer has no 'name' (and 1 more error)" in str(caught.value)


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(ContractError, match="there is no such file"):
        load_consumers([tmp_path / "none.yaml"])
    with pytest.raises(ContractError, match="the folder holds no"):
        load_consumers([tmp_path])


def test_a_version_that_was_approved_is_the_text_that_is_written(tmp_path):
    file = tmp_path / "approvals.yaml"
    file.write_text("- {contract: a, consumer: b, approver: c, on: 2026-11-21, version: 3.10}\n")
    assert [(one.version, str(one.on)) for one in load_approvals(file)] == [("3.10", "2026-11-21")]
    file.write_text("")
    assert load_approvals(file) == ()
    file.write_text("a: b\n")
    with pytest.raises(DataboxError, match="holds no list of approvals"):
        load_approvals(file)
    with pytest.raises(DataboxError, match="there is no such file"):
        load_approvals(tmp_path / "none.yaml")
