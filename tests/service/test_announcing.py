"""Over HTTP consumers are told exactly what they are told by the command at the database."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from databox_contracts.cli import main
from databox_contracts.formats import dump_contract
from databox_contracts.model import Consumer
from databox_contracts.registry.enqueuing import notification_data
from databox_contracts.registry.store import Registry
from databox_contracts.testing import build_contract, build_field

CONSUMERS = (
    Consumer("Quant", "quant@example.com", ["t"], fields=("price",)),
    Consumer("Digest", "digest@example.com", digest=True),
    Consumer("Pinned", None, contacts=("https://u:${PW}@example.com/hook#secret=${S}", "log:"), versions="^1"),
    Consumer("Other", "other@example.com", fields=("id",)),
)


def led_through_its_life(folder: Path, registry: str) -> None:
    """Published, added to, broken as a draft that becomes active, deprecated, brought back, published as deprecated."""
    made = {
        "1.0.0": (("id", "price"), "active"),
        "1.1.0": (("id", "price", "note"), "active"),
        "2.0.0": (("id", "note"), "draft"),
    }
    for version, (names, status) in made.items():
        fields = [build_field(name, "string") for name in names]
        one = build_contract(*fields, id="c", version=version, status=status, consumers=CONSUMERS[:2], owner="team")
        (folder / f"{version}.yaml").write_text(dump_contract(one))
        assert main(["registry", "publish", str(folder / f"{version}.yaml"), "--by", "me", "--registry", registry]) == 0
        # The same once more tells nobody anything.
        assert main(["registry", "publish", str(folder / f"{version}.yaml"), "--by", "me", "--registry", registry]) == 0
    for command in (["activate", "c", "2.0.0"], ["deprecate", "c", "1.0.0"], ["deprecate", "c", "1.0.0"]):
        assert main(["registry", *command, "--by", "me", "--registry", registry]) == 0


def told(place: str) -> list[dict[str, Any]]:
    """What waits in the outbox, without the moment at which it came there."""
    with Registry.open(place) as registry:
        found = [notification_data(one) for one, _ in registry.outbox.waiting()]
    for one in found:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*\+00:00", one.pop("occurred_at"))
        assert one["facts"].pop("since")
    return found


def test_whoever_is_told_by_the_command_is_told_by_the_service(
    database_url: str, tmp_path: Path, serving: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = str(tmp_path / "own.db")
    for place in (own, database_url):
        with Registry.open(place) as registry:
            for consumer in CONSUMERS[2:]:
                registry.register("c", consumer, by="them")
    led_through_its_life(tmp_path, own)
    with serving(database_url, tmp_path) as service:
        monkeypatch.setenv("DATABOX_REGISTRY_TOKEN", service.token())
        led_through_its_life(tmp_path, service.url)
    expected = told(own)
    assert told(database_url) == expected
    assert [(one["consumer"], one["event"].split(" until")[0]) for one in expected] == [
        ("Digest", "1.0.0 -> 1.1.0"),
        ("Digest", "1.1.0 -> 2.0.0"),
        ("Pinned", "1.1.0 -> 2.0.0"),
        ("Pinned", "1.1.0 -> 2.0.0"),
        ("Quant", "1.1.0 -> 2.0.0"),
        ("Digest", "deprecated 1.0.0"),
        ("Other", "deprecated 1.0.0"),
        ("Pinned", "deprecated 1.0.0"),
        ("Pinned", "deprecated 1.0.0"),
        ("Quant", "deprecated 1.0.0"),
    ]
