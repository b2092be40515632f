"""Publishing versions: once each, never changed, all of a call or nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest
from sqlalchemy import update

from databox_contracts.errors import ContractConflictError, RegistryError, UnknownContractError
from databox_contracts.model import Consumer, Contract
from databox_contracts.notifications import EventKind, Notification, State
from databox_contracts.registry.records import (
    Outcome,
    Publication,
    RegisteredConsumer,
    Status,
    StoredApproval,
    StoredVersion,
)
from databox_contracts.registry.schema import VERSIONS
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity
from databox_contracts.testing import build_contract, build_field


def contract(version: str = "1.0.0", *fields: str, **facts: Any) -> Contract:
    built = [build_field(name, "string") for name in fields or ("a",)]
    return build_contract(*built, version=version, **{"id": "urn:a:b", "status": "active", **facts})


def message(event: str, consumer: str = "quant") -> Notification:
    return Notification(
        consumer=consumer,
        contract="urn:a:b",
        event=event,
        kind=EventKind.VERSION,
        severity=Severity.ERROR,
        contact="mailto:quant@example.com",
        title="\0 ü",
        occurred_at=datetime(2026, 3, 1, tzinfo=UTC),
        facts={"breaking": ["a"], "odd": "\0\ud800"},
    )


def test_what_was_published_comes_back(registry: Registry) -> None:
    given = contract(name="Grüße", custom={"effectiveDate": "2026-04-01"})
    done = registry.publish(given, by="ci")
    assert (done.outcome, done.previous, done.notified) == (Outcome.PUBLISHED, None, 0)
    found = registry.get("urn:a:b")
    assert found == done.stored
    assert (found.version, found.title, found.status, found.published_by) == ("1.0.0", "Grüße", Status.ACTIVE, "ci")
    assert (found.published_at, found.effective) == (datetime(2026, 3, 1, 12, tzinfo=UTC), date(2026, 4, 1))
    assert found.contract().datasets[0].fields[0].name == "a"
    assert len(found.digest) == 64


def test_records_survive_the_way_over_http(registry: Registry) -> None:
    given = contract(
        consumers=(Consumer(name="quant", contacts=("log:",), versions="^1"),), custom={"sunsetDate": "2027-01-01"}
    )
    done = registry.publish(given, by="ci")
    stored = done.stored
    assert StoredVersion.from_dict(json.loads(json.dumps(stored.to_dict(content=True)))) == stored
    assert Publication.from_dict(json.loads(json.dumps(done.to_dict()))) == replace(
        done, stored=replace(stored, content="")
    )
    (consumer,) = registry.consumers()
    assert RegisteredConsumer.from_dict(json.loads(json.dumps(consumer.to_dict()))) == consumer
    approval = registry.approve(
        StoredApproval(contract_id="c", consumer="q", approver="a", at=stored.published_at, version="2")
    )
    assert StoredApproval.from_dict(json.loads(json.dumps(approval.to_dict()))) == approval


def test_the_same_again_changes_nothing_and_other_content_is_a_conflict(registry: Registry) -> None:
    first = registry.publish(contract(), by="ci")
    assert registry.publish(contract(), by="somebody else") == type(first)(
        outcome=Outcome.UNCHANGED, stored=first.stored
    )
    with pytest.raises(
        ContractConflictError, match=r"urn:a:b 1\.0\.0 is published already with other content"
    ) as error:
        registry.publish(contract("1.0.0", "a", "b"), by="ci")
    assert error.value.published == first.stored.digest
    assert error.value.new in str(error.value)
    assert first.stored.digest in str(error.value)
    assert [one.version for one in registry.versions("urn:a:b")] == ["1.0.0"]
    assert registry.get("urn:a:b") == first.stored


@pytest.mark.parametrize(("one", "other"), [("3.2", "3.2.0"), ("v1", "1.0.0"), ("1.0.0-rc.1", "1.0.0-rc.1+build")])
def test_one_version_in_two_spellings_is_one(registry: Registry, one: str, other: str) -> None:
    registry.publish(contract(one), by="ci")
    with pytest.raises(ContractConflictError, match=f"as {one}, which is the same version"):
        registry.publish(contract(other), by="ci")
    assert registry.get("urn:a:b", other).version == one


def test_versions_are_in_their_own_order(registry: Registry) -> None:
    for version in ("3.10", "3.2", "3.9.9", "4.0.0-rc.1", "Spring", "4.0.0"):
        registry.publish(contract(version), by="ci")
    assert [one.version for one in registry.versions("urn:a:b")] == [
        "Spring", "3.2", "3.9.9", "3.10", "4.0.0-rc.1", "4.0.0",
    ]  # fmt: skip


def test_which_version_is_meant(registry: Registry) -> None:
    for version in ("1.0.0", "1.4.0", "2.0.0"):
        registry.publish(contract(version), by="ci")
    registry.publish(contract("3.0.0", status="draft"), by="ci")
    asked = {
        text: registry.get("urn:a:b", text).version for text in ("^1", "1.0.0", "1", "~1.0", "*", "3.0.0", ">=1,<2")
    }
    assert asked == {
        "^1": "1.4.0", "1.0.0": "1.0.0", "1": "1.0.0", "~1.0": "1.0.0", "*": "2.0.0", "3.0.0": "3.0.0",
        ">=1,<2": "1.4.0",
    }  # fmt: skip
    assert registry.get("urn:a:b").version == "2.0.0"
    for unknown in ("^3", "9.9.9", "'; DROP TABLE databox_versions; --"):
        with pytest.raises(UnknownContractError, match=r"1\.0\.0 \(active\), 1\.4\.0 \(active\)"):
            registry.get("urn:a:b", unknown)
    with pytest.raises(UnknownContractError, match="There is: urn:a:b"):
        registry.get("urn:a:c")


def test_a_version_counts_from_the_day_it_takes_effect(registry: Registry, clock: Any) -> None:
    registry.publish(contract("1.0.0"), by="ci")
    registry.publish(contract("1.1.0", custom={"effectiveDate": "2026-03-02"}), by="ci")
    registry.deprecate("urn:a:b", "1.0.0", by="ann")

    def asked() -> list[str]:
        (listed,) = registry.contracts()
        return [registry.get("urn:a:b", text).version for text in (None, "^1", ">1.0")] + [listed.version]

    assert asked() == ["1.0.0", "1.0.0", "1.1.0", "1.0.0"]
    clock.pass_by(days=1)
    assert asked() == ["1.1.0"] * 4


def test_a_draft_is_announced_when_it_becomes_active(registry: Registry) -> None:
    asked: list[tuple[str, str, str | None, list[str]]] = []

    def announce(new: Contract, before: StoredVersion | None, consumers: Sequence[Consumer]) -> list[Notification]:
        names = [one.name for one in consumers]
        asked.append((new.version, new.status, before.version if before is not None else None, names))
        return [message(f"to {new.version}")]

    registry.publish(contract("1.0.0", consumers=(Consumer(name="quant"),)), by="ci")
    registry.publish(contract("2.0.0", status="draft"), by="ci", notifications=announce)
    for _ in range(2):
        registry.activate("urn:a:b", "2.0.0", by="ann", announce=announce)
    registry.publish(contract("3.0.0", status="draft"), by="ci")
    registry.publish(contract("3.0.0"), by="ci", notifications=announce)
    assert asked == [
        ("2.0.0", "draft", "1.0.0", ["quant"]),
        ("2.0.0", "active", "1.0.0", ["quant"]),
        ("3.0.0", "active", "2.0.0", ["quant"]),
    ]
    assert registry.outbox.counts()[State.WAITING] == 2


def test_a_draft_is_found_where_there_is_nothing_else(registry: Registry) -> None:
    registry.publish(contract("0.1.0", status="draft"), by="ci")
    assert registry.get("urn:a:b").version == "0.1.0"
    assert [one.version for one in registry.contracts()] == ["0.1.0"]


def test_a_folder_is_published_whole_or_not_at_all(registry: Registry) -> None:
    registry.publish(contract(id="urn:a:y"), by="ci")
    several = [contract(id="urn:a:z"), contract("1.0.0", "b", id="urn:a:y"), contract(id="urn:a:x")]
    with pytest.raises(ContractConflictError):
        registry.publish_all(several, by="ci", notifications=[message("1")])
    assert [one.contract_id for one in registry.contracts()] == ["urn:a:y"]
    assert registry.outbox.counts()[State.WAITING] == 0
    several[1] = contract(id="urn:a:y")
    done = registry.publish_all(several, by="ci", notifications=[message("1")])
    assert [(one.stored.contract_id, str(one.outcome)) for one in done] == [
        ("urn:a:z", "published"),
        ("urn:a:y", "unchanged"),
        ("urn:a:x", "published"),
    ]
    assert [one.contract_id for one in registry.contracts()] == ["urn:a:x", "urn:a:y", "urn:a:z"]
    assert registry.outbox.counts()[State.WAITING] == 1
    assert registry.publish_all([], by="ci") == []
    twice = registry.publish_all([contract(id="urn:a:w"), contract(id="urn:a:w")], by="ci")
    assert [str(one.outcome) for one in twice] == ["published", "unchanged"]


def test_who_is_to_be_told_is_asked_once_for_each_new_version(registry: Registry) -> None:
    asked: list[tuple[str, str | None]] = []

    def announce(new: Contract, before: StoredVersion | None, _: Sequence[Consumer]) -> list[Notification]:
        asked.append((new.version, before.version if before is not None else None))
        return [message(new.version)] if before is not None else []

    registry.publish_all([contract("1.0.0"), contract("2.0.0")], by="ci", notifications=announce)
    registry.publish(contract("3.0.0-rc.1", status="draft"), by="ci", notifications=announce)
    registry.publish(contract("3.0.0"), by="ci", notifications=announce)
    registry.publish(contract("3.0.0"), by="ci", notifications=announce)
    registry.publish(contract("1.5.0"), by="ci", notifications=announce)
    assert asked == [
        ("1.0.0", None),
        ("2.0.0", "1.0.0"),
        ("3.0.0-rc.1", "2.0.0"),
        ("3.0.0", "2.0.0"),
        ("1.5.0", "1.0.0"),
    ]
    assert registry.outbox.counts()[State.WAITING] == 4
    lease = registry.outbox.lease("w")
    assert lease is not None
    assert [one.notification for one in lease.items] == [message(v) for v in ("2.0.0", "3.0.0-rc.1", "3.0.0", "1.5.0")]


def test_all_who_depend_on_it_are_known_to_whoever_tells_them(registry: Registry) -> None:
    asked: list[list[tuple[str, str | None]]] = []

    def announce(new: Contract, before: StoredVersion | None, consumers: Sequence[Consumer]) -> list[Notification]:
        asked.append([(one.name, one.versions) for one in consumers])
        return []

    registry.publish(contract("1.0.0", consumers=(Consumer(name="gone"), Consumer(name="quant"))), by="ci")
    registry.register("urn:a:b", Consumer(name="quant", versions="^1"), by="quant")
    registry.register("urn:other", Consumer(name="another"), by="another")
    two = contract("2.0.0", consumers=(Consumer(name="new"), Consumer(name="quant", versions="^2")))
    registry.publish(two, by="ci", notifications=announce)
    # Of what two places say differently the first holds, here as everywhere: the contract comes first.
    assert asked == [[("gone", None), ("new", None), ("quant", "^2")]]


def test_the_newest_of_each_major_version_declares_the_consumers(registry: Registry) -> None:
    def names() -> list[str]:
        return [one.consumer.name for one in registry.consumers("urn:a:b")]

    def publish(version: str, *consumers: str, status: str = "active") -> None:
        declared = tuple(Consumer(name=name, versions=f"^{version[0]}") for name in consumers)
        registry.publish(contract(version, consumers=declared, status=status), by="ci")

    publish("1.0.0", "a", "b", status="draft")
    assert names() == ["a", "b"]
    publish("1.1.0", "b", "c")
    assert names() == ["b", "c"]
    publish("2.0.0-rc.1", "d", status="draft")
    publish("1.0.1", "a")
    assert names() == ["b", "c"]
    publish("2.0.0", "c", "e")
    assert [(one.consumer.name, one.consumer.versions) for one in registry.consumers()] == [
        ("b", "^1"),
        ("c", "^2"),
        ("e", "^2"),
    ]
    registry.activate("urn:a:b", "2.0.0-rc.1", by="ann")
    assert names() == ["b", "c", "e"]
    publish("1.2.0")
    assert names() == ["c", "e"]


def test_what_an_earlier_writer_stored_is_the_same_contract(registry: Registry) -> None:
    """A later version of this package may write a contract in other words; its files did not change."""
    registry.publish(contract(), by="ci")
    earlier = update(VERSIONS).values(digest="0" * 64, content=VERSIONS.c.content + "# in other words\n")
    registry._database.write(lambda connection: connection.execute(earlier))
    assert registry.publish(contract(), by="ci").outcome is Outcome.UNCHANGED
    with pytest.raises(ContractConflictError):
        registry.publish(contract("1.0.0", "b"), by="ci")


def test_a_status_and_its_days_move_on_without_a_new_version(registry: Registry) -> None:
    registry.publish(contract(status="draft"), by="ci")
    done = registry.publish(contract(status="active"), by="ci")
    assert (done.outcome, done.stored.status) == (Outcome.CHANGED, Status.ACTIVE)
    ending = {"status": "deprecated", "custom": {"sunsetDate": "2026-06-01"}}
    done = registry.publish(contract(**ending), by="ci")
    assert (done.outcome, done.stored.status, done.stored.sunset) == (
        Outcome.CHANGED,
        Status.DEPRECATED,
        date(2026, 6, 1),
    )
    assert done.stored.contract().status == "deprecated"
    assert registry.publish(contract(**ending), by="ci").outcome is Outcome.UNCHANGED
    # It does not go back, and what was put off by hand stays so.
    registry.deprecate("urn:a:b", "1.0.0", by="ann", sunset=date(2026, 9, 1))
    assert registry.publish(contract(**ending), by="ci").outcome is Outcome.UNCHANGED
    later = {"status": "deprecated", "custom": {"sunsetDate": "2026-12-01"}}
    assert registry.publish(contract(**later), by="ci").stored.sunset == date(2026, 12, 1)
    assert registry.publish(contract(status="active"), by="ci").outcome is Outcome.UNCHANGED
    assert registry.get("urn:a:b").status is Status.DEPRECATED


@pytest.mark.parametrize(
    "facts",
    [{"id": " "}, {"id": "a\0b"}, {"id": "x" * 900}, {"version": ""}, {"id": "a\ud800"}],
    ids=["empty", "nul", "long", "no version", "surrogate"],
)
def test_what_cannot_be_a_name_is_refused_alike(registry: Registry, facts: dict[str, str]) -> None:
    with pytest.raises(RegistryError, match=r"empty|longer|no database keeps"):
        registry.publish(build_contract(**{"version": "1", **facts}), by="ci")
    assert registry.contracts() == []


def test_what_could_not_be_read_again_is_not_published(registry: Registry) -> None:
    with pytest.raises(RegistryError, match="cannot be kept, since it cannot be read again: the notice period 'soon'"):
        registry.publish(contract(notice_period="soon"), by="ci")
    assert registry.contracts() == []


def test_the_revision_tells_that_anything_changed_and_nothing_else(registry: Registry) -> None:
    seen = [registry.revision()]
    steps = (
        lambda: registry.publish(contract(), by="ci"),
        lambda: registry.publish(contract("2.0.0", status="draft"), by="ci"),
        lambda: registry.activate("urn:a:b", "2.0.0", by="ci"),
        lambda: registry.register("urn:a:b", Consumer("quant"), by="quant"),
        lambda: registry.remove_consumer("urn:a:b", "quant", by="quant"),
    )
    for step in steps:
        step()
        seen.append(registry.revision())
    assert len(set(seen)) == len(steps) + 1
    registry.publish(contract(), by="ci")
    registry.advance("a place", 1)
    assert registry.revision() == seen[-1]


def test_every_version_of_every_contract(registry: Registry) -> None:
    assert registry.every_version() == []
    registry.publish_all([contract("1.10.0"), contract("1.9.0"), contract("1.0.0", id="urn:a:a")], by="ci")
    assert [(one.contract_id, one.version) for one in registry.every_version()] == [
        ("urn:a:a", "1.0.0"),
        ("urn:a:b", "1.9.0"),
        ("urn:a:b", "1.10.0"),
    ]
