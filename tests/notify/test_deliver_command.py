"""`deliver`: its options and its exit codes; the worker itself is tested with the notifications."""

import json
from datetime import UTC, datetime

import pytest

from databox_contracts.cli import main
from databox_contracts.model import Consumer
from databox_contracts.notifications import EventKind, Notification, State
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity


def message(number, contact):
    return Notification(
        consumer="quant",
        contract="trades",
        event=f"event {number}",
        kind=EventKind.CHECK,
        severity=Severity.ERROR,
        contact=contact,
        title=f"trade {number}",
        occurred_at=datetime.now(UTC),
        facts={"run_id": "r1"},
    )


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("DATABOX_SMTP_URL", "DATABOX_MAIL_FROM", "DATABOX_DAGSTER_URL", "DATABOX_CONTRACTS_URL"):
        monkeypatch.delenv(name, raising=False)
    return str(tmp_path / "registry.db")


def fill(place, *messages):
    with Registry.open(place) as registry:
        registry.outbox.enqueue(messages)


def counts(place):
    with Registry.open(place) as registry:
        return registry.outbox.counts()


def test_once_sends_what_is_due_and_ends(place, httpserver, capsys):
    httpserver.expect_request("/hook").respond_with_data("")
    fill(place, *(message(n, httpserver.url_for("/hook")) for n in range(3)))
    assert main(["deliver", "--once", "--registry", place, "--dagster-url", "http://dagster.example.com"]) == 0
    assert capsys.readouterr().out == "3 sent, 0 to be tried again, 0 given up\n"
    assert "http://dagster.example.com/runs/r1" in json.loads(httpserver.log[0][0].data)["text"]
    assert counts(place)[State.SENT] == 3
    assert main(["deliver", "--once", "--registry", place, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"sent": 0, "failed": 0, "dead": 0}


def test_what_nobody_took_is_exit_code_1_and_a_line(place, httpserver, capsys):
    httpserver.expect_request("/hook").respond_with_data("", status=503)
    fill(place, message(1, httpserver.url_for("/hook")))
    assert main(["deliver", "--once", "--registry", place]) == 1
    shown = capsys.readouterr()
    assert shown.out == "0 sent, 1 to be tried again, 0 given up\n"
    assert "the receiver answered 503 Service Unavailable" in shown.err
    assert counts(place)[State.WAITING] == 1


def test_the_log_is_on_standard_error(place, capsys):
    fill(place, message(1, "log:"))
    assert main(["deliver", "--once", "--registry", place]) == 0
    assert "ERROR for quant: trade 1" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["registry", "directory"])
def test_tickets_are_remembered_from_one_time_to_the_next(place, httpserver, tmp_path, where):
    options = ["--tickets", str(tmp_path / "tickets")] if where == "directory" else []
    httpserver.expect_request("/issues", method="POST").respond_with_json({"id": 7})
    httpserver.expect_request("/issues/7", method="PATCH").respond_with_json({})
    for number in (1, 2):
        one = message(number, "ticket+" + httpserver.url_for("/issues"))
        fill(place, Notification(**{name: getattr(one, name) for name in one.__slots__} | {"ticket": "t"}))
        assert main(["deliver", "--once", "--registry", place, *options]) == 0
    assert [request.method for request, _ in httpserver.log] == ["POST", "PATCH"]


CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: trades
version: {version}
status: active
schema:
  - name: trades
    properties:
      - {{name: symbol, logicalType: string}}
      - {{name: {price}, logicalType: number}}
"""


def test_from_a_published_break_to_its_consumers_mail(place, tmp_path, mailbox, capsys):
    for version, price in (("1.0.0", "price"), ("2.0.0", "close_price")):
        (tmp_path / f"{version}.yaml").write_text(CONTRACT.format(version=version, price=price))
    with Registry.open(place) as registry:
        for consumer in (
            Consumer("Quant team", "quant@example.com", ["trades"], fields=("price",)),
            Consumer("Symbols", "symbols@example.com", ["trades"], fields=("symbol",)),
        ):
            registry.register("trades", consumer, by="test")
    for version in ("1.0.0", "2.0.0", "2.0.0"):
        assert (
            main(["registry", "publish", str(tmp_path / f"{version}.yaml"), "--by", "test", "--registry", place]) == 0
        )
    assert "2.0.0 (active, after 1.0.0, 1 notification)" in capsys.readouterr().out
    smtp = ["--smtp-url", f"smtp://127.0.0.1:{mailbox.port}", "--mail-from", "contracts@example.com"]
    for _ in range(2):
        assert main(["deliver", "--once", "--registry", place, *smtp]) == 0
    (mail,) = mailbox.mails
    assert (mail["To"], mail["Subject"]) == ("quant@example.com", "Breaking change in trades: 1.0.0 -> 2.0.0")
    assert "For Quant team:" in mail.get_content()
    for _ in range(2):
        assert main(["registry", "deprecate", "trades", "1.0.0", "--by", "test", "--registry", place]) == 0
        assert main(["deliver", "--once", "--registry", place, *smtp]) == 0
    assert sorted(mail["To"] for mail in mailbox.mails[1:]) == ["quant@example.com", "symbols@example.com"]
    assert mailbox.mails[1]["Subject"].startswith("trades 1.0.0 is deprecated until 20")


def test_a_draft_is_announced_when_it_becomes_active(place, tmp_path, capsys):
    for version, price, status in (("1.0.0", "price", "active"), ("2.0.0", "close_price", "draft")):
        text = CONTRACT.format(version=version, price=price).replace("status: active", f"status: {status}")
        (tmp_path / f"{version}.yaml").write_text(text)
    with Registry.open(place) as registry:
        registry.register("trades", Consumer("Quant team", "quant@example.com", ["trades"]), by="test")
    waiting = []
    for action in (["publish", str(tmp_path / "1.0.0.yaml")], ["publish", str(tmp_path / "2.0.0.yaml")]):
        assert main(["registry", *action, "--by", "test", "--registry", place]) == 0
        waiting.append(counts(place)[State.WAITING])
    for _ in range(2):
        assert main(["registry", "activate", "trades", "2.0.0", "--by", "test", "--registry", place]) == 0
        waiting.append(counts(place)[State.WAITING])
    assert waiting == [0, 0, 1, 1]


def test_a_registry_that_cannot_be_opened_is_exit_code_2(tmp_path, capsys):
    (tmp_path / "file").write_text("no database")
    assert main(["deliver", "--once", "--registry", str(tmp_path / "file")]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("databox-contracts: ")
    assert "Traceback" not in shown
