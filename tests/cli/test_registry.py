"""`registry` and `outbox`: what they print, what they refuse, their exit codes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from databox_contracts.cli import main
from databox_contracts.notifications import EventKind, Failed, Notification
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: urn:demo:{name}
version: "{version}"
status: {status}
schema:
  - name: hourly
    properties:
      - name: temp
        logicalType: number
{more}"""


def write(folder: Path, name: str, version: str = "1.0.0", status: str = "active", more: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{version}.yaml"
    file.write_text(CONTRACT.format(name=name, version=version, status=status, more=more))
    return file


@pytest.fixture(autouse=True)
def place(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DATABOX_REGISTRY", database_url)
    monkeypatch.setenv("LOGNAME", "ann")
    return database_url


class Said:
    """What one command printed, and its exit code."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        assert main(list(arguments)) == code
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return out or err

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--format", "json", code=code))


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def test_a_folder_is_published_in_one_call_and_again_without_effect(tmp_path: Path, said: Said) -> None:
    for name in ("wind", "rain"):
        write(tmp_path / "contracts", name)
    folder = str(tmp_path / "contracts")
    assert said("registry", "publish", folder) == (
        "published  urn:demo:rain 1.0.0 (active)\npublished  urn:demo:wind 1.0.0 (active)\n"
    )
    assert said("registry", "publish", folder, folder) == (
        "unchanged  urn:demo:rain 1.0.0 (active)\nunchanged  urn:demo:wind 1.0.0 (active)\n" * 2
    )
    write(tmp_path / "contracts", "wind", "1.1.0", "draft")
    write(tmp_path / "contracts", "snow", "0.1.0", "draft")
    done = said.json("registry", "publish", folder, "--by", "ci")["publications"]
    assert [(one["contract"], one["version"], one["outcome"], one["previous"], one["status"]) for one in done] == [
        ("urn:demo:rain", "1.0.0", "unchanged", None, "active"),
        ("urn:demo:snow", "0.1.0", "published", None, "draft"),
        ("urn:demo:wind", "1.0.0", "unchanged", None, "active"),
        ("urn:demo:wind", "1.1.0", "published", "1.0.0", "draft"),
    ]
    assert said("registry", "list") == (
        "urn:demo:rain  1.0.0  active  -  urn:demo:rain\n"
        "urn:demo:snow  0.1.0  draft   -  urn:demo:snow\n"
        "urn:demo:wind  1.0.0  active  -  urn:demo:wind\n"
    )
    assert "changed" in said("registry", "publish", folder, "--activate")
    assert [one["version"] for one in said.json("registry", "list", "urn:demo:wind")["contracts"]] == ["1.0.0", "1.1.0"]
    assert said.json("registry", "list", "urn:demo:wind")["contracts"][1]["status"] == "active"


def test_other_content_under_a_published_version_is_refused(tmp_path: Path, said: Said) -> None:
    file = write(tmp_path, "wind")
    said("registry", "publish", str(file))
    file.write_text(file.read_text().replace("temp", "temperature"))
    other = write(tmp_path, "rain")
    text = said("registry", "publish", str(other), str(file), code=1)
    assert text.startswith("urn:demo:wind 1.0.0 is published already with other content: published ")
    assert "Give the changed contract a new version" in text
    assert said.json("registry", "publish", str(file), code=1)["refused"].startswith("urn:demo:wind 1.0.0 is published")
    assert [one["contract"] for one in said.json("registry", "list")["contracts"]] == ["urn:demo:wind"]


def test_what_is_shown_is_the_contract_again(tmp_path: Path, said: Said) -> None:
    said("registry", "publish", str(write(tmp_path, "wind")), "--by", "ci")
    text = said("registry", "show", "urn:demo:wind", "--version", "^1")
    assert text.startswith("# urn:demo:wind 1.0.0 is active\n# published 2")
    shown = tmp_path / "shown.yaml"
    shown.write_text(text)
    assert said("registry", "publish", str(shown)).startswith("unchanged")
    facts = said.json("registry", "show", "urn:demo:wind")
    assert (facts["version"], facts["published_by"], facts["status"]) == ("1.0.0", "ci", "active")
    assert facts["content"] in text
    for arguments in (["urn:demo:win"], ["urn:demo:wind", "--version", "^2"]):
        assert "There is: " in said("registry", "show", *arguments, code=2)


def test_consumers_and_their_consents(tmp_path: Path, said: Said, place: str) -> None:
    more = """
customProperties:
  - property: consumers
    value:
      - name: quant
        contact: mailto:q@example.com
        versions: ^1
"""
    said("registry", "publish", str(write(tmp_path, "wind", more=more)))
    assert said("registry", "consumers", "urn:demo:wind") == (
        "urn:demo:wind  quant  ^1  all of it  mailto:q@example.com  contract\n"
    )
    assert said.json("registry", "consumers")["consumers"][0]["contact"] == "mailto:q@example.com"
    assert said("registry", "consumers", "urn:demo:rain") == "No consumer is registered.\n"
    text = said("registry", "approve", "urn:demo:wind", "--consumer", "quant", "--version", "2.0.0", "--by", "bob")
    assert text.startswith("urn:demo:wind: bob approved version 2.0.0 for quant on 20")
    facts = said.json("registry", "approve", "urn:demo:wind", "--consumer", "risk", "--purpose", "ads")
    assert (facts["consumer_is_registered"], facts["approver"], facts["purpose"]) == (False, "ann", "ads")
    assert "there is: quant" in said("registry", "approve", "urn:demo:wind", "--consumer", "qant")
    assert "has no consumer 'quant' of origin registry" in said(
        "registry", "remove-consumer", "urn:demo:wind", "quant", code=1
    )
    gone = said("registry", "remove-consumer", "urn:demo:wind", "quant", "--origin", "contract")
    assert gone == "quant is no consumer of urn:demo:wind any more.\n"
    assert said.json("registry", "consumers") == {"consumers": []}
    with Registry.open(place) as registry:
        assert [(one.consumer, one.approver, one.version) for one in registry.approvals()] == [
            ("quant", "bob", "2.0.0"),
            ("risk", "ann", None),
            ("qant", "ann", None),
        ]


def test_a_version_is_led_to_its_end(tmp_path: Path, said: Said) -> None:
    said("registry", "publish", str(write(tmp_path, "wind", status="draft")))
    assert said("registry", "deprecate", "urn:demo:wind", "1.0.0", code=1).startswith(
        "urn:demo:wind 1.0.0: it is a draft"
    )
    assert said("registry", "activate", "urn:demo:wind", "1.0.0") == "urn:demo:wind 1.0.0 is active.\n"
    text = said("registry", "deprecate", "urn:demo:wind", "1.0.0", "--sunset", "2020-01-01", code=1)
    assert "its consumers have 30 days of notice. Choose " in text
    earliest = (datetime.now(UTC) + timedelta(days=30)).date()
    assert str(earliest)[:7] in said("registry", "deprecate", "urn:demo:wind", "1.0.0")
    assert "it is to stay until" in said.json("registry", "retire", "urn:demo:wind", "1.0.0", code=1)["refused"]
    assert "deprecated  until 2" in said("registry", "list")
    with pytest.raises(SystemExit):
        said("registry", "deprecate", "urn:demo:wind", "1.0.0", "--sunset", "soon")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["publish", "missing.yaml"], "missing.yaml"),
        (["publish", "EMPTY"], "there is no contract in"),
        (["show", "urn:demo:wind"], "the registry has no contract 'urn:demo:wind'"),
        (["retire", "urn:demo:wind", "1"], "the registry has no contract"),
        (["list", "--registry", "mysql://u:hunter2@h/d"], "a registry is not kept in 'mysql'"),
        (["approve", "c", "--consumer", ""], "the consumer's name is empty"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    tmp_path: Path, said: Said, arguments: list[str], words: str
) -> None:
    (tmp_path / "empty").mkdir()
    text = said("registry", *[str(tmp_path / "empty") if one == "EMPTY" else one for one in arguments], code=2)
    assert words in text
    assert "hunter2" not in text


def test_an_empty_registry_lists_nothing(said: Said) -> None:
    assert said("registry", "list") == "No contract is published.\n"
    assert said.json("registry", "list") == {"contracts": []}
    assert said("outbox", "list") == "0 waiting, 0 sent, 0 dead\n"
    assert said("outbox", "dead") == "0 given up\n"


def test_messages_that_were_given_up_are_seen_and_sent_again(said: Said, place: str) -> None:
    several = [
        Notification(
            consumer="quant",
            contract="c",
            event=event,
            kind=EventKind.RUN,
            severity=Severity.ERROR,
            contact="slack://${A}/${B}/${C}",
            title=f"title {event}",
            occurred_at=datetime(2026, 3, 1, tzinfo=UTC),
        )
        for event in "123"
    ]
    with Registry.open(place, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)) as registry:
        registry.outbox.enqueue(several)
        lease = registry.outbox.lease("w")
        assert lease is not None
        failed = {one.id: Failed(error="404 not found", retry_at=None) for one in several[:2]}
        registry.outbox.settle(lease, failed=failed)
    assert said("outbox", "list").endswith("1 waiting, 0 sent, 2 dead\n")
    assert said.json("outbox", "list")["counts"] == {"waiting": 1, "sent": 0, "dead": 2}
    assert said("outbox", "dead", code=1) == (
        f"{several[0].id}  quant (slack://${{A}}/${{B}}/${{C}}): title 1\n    404 not found\n"
        f"{several[1].id}  quant (slack://${{A}}/${{B}}/${{C}}): title 2\n    404 not found\n"
        "2 given up; send again with `outbox retry ID`\n"
    )
    assert said.json("outbox", "dead", "--limit", "1", code=1)["dead"][0]["error"] == "404 not found"
    assert said("outbox", "retry", several[0].id) == "1 of 1 will be sent again\n"
    assert said("outbox", "retry", several[0].id, "unknown", code=1) == "0 of 2 will be sent again\n"
    assert said.json("outbox", "retry", "--all") == {"retried": 1}
    for wrong in ([], ["--all", several[0].id]):
        assert "Name ids, or --all" in said("outbox", "retry", *wrong, code=2)
    with Registry.open(place) as registry:
        lease = registry.outbox.lease("w")
        assert lease is not None
    with Registry.open(place, clock=lambda: datetime(2026, 3, 2, tzinfo=UTC)) as registry:
        assert registry.outbox.settle(lease, sent=[one.id for one in several])
    assert said("outbox", "prune", "--older-than", "1") == "3 removed\n"
    assert said.json("outbox", "prune") == {"removed": 0}
