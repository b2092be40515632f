"""The example of a trade feed, alone, over Kafka, and by mail."""

import json
import os
import subprocess
import sys
from pathlib import Path

import databox_contracts

ROOT = Path(databox_contracts.__file__).parent.parent
TOLD = (
    "Notified Quant team: breaking change in 'TradeSchemaV1'\n"
    "Notified Risk system: breaking change in 'TradeSchemaV1'\n"
    "Notified ML pipeline: breaking change in 'TradeSchemaV1'\n"
    "3 of 4 consumers were notified.\n"
)


def run(**environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DATABOX_")}
    return subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "trade_pipeline.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
    )


def test_three_of_four_consumers_are_told():
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(TOLD)
    assert "[FIELD_RENAMED] price" in done.stdout
    assert "Reporting svc" not in done.stdout


def test_over_kafka_and_by_mail(cluster, mailbox):
    done = run(
        DATABOX_KAFKA=cluster.bootstrap,
        DATABOX_SMTP_URL=f"smtp://127.0.0.1:{mailbox.port}",
        DATABOX_MAIL_FROM="contracts@example.com",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(TOLD)
    (message,) = cluster.messages("schema.breaking-changes", 1)
    body = json.loads(message.value())
    assert (body["schema"], body["from_version"], body["to_version"]) == ("TradeSchemaV1", "1.0.0", "2.0.0")
    assert body["breaking_fields"] == ["price"]
    assert [mail["To"] for mail in mailbox.mails] == ["quant@example.com", "risk@example.com", "ml@example.com"]
    assert {mail["Subject"] for mail in mailbox.mails} == {"Breaking change in TradeSchemaV1: 1.0.0 -> 2.0.0"}
    assert len({mail["Message-ID"] for mail in mailbox.mails}) == 3


def test_what_nobody_took_is_an_exit_code_and_a_line():
    done = run(DATABOX_SMTP_URL="smtp://127.0.0.1:1", DATABOX_MAIL_FROM="contracts@example.com")
    assert done.returncode == 1
    assert "nothing listens there" in done.stderr
    assert "Traceback" not in done.stderr
