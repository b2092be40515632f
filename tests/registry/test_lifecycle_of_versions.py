"""From draft to retired: what is refused, and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest

from databox_contracts.errors import LifecycleError, UnknownContractError
from databox_contracts.model import Consumer, Contract, Evolution
from databox_contracts.notifications import EventKind, Notification, State
from databox_contracts.registry.records import Outcome, Status, StoredVersion
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity
from databox_contracts.testing import build_contract, build_field


def contract(version: str = "1.0.0", **facts: Any) -> Contract:
    return build_contract(build_field("a", "int"), version=version, **{"id": "c", "status": "active", **facts})


def test_a_version_goes_its_way(registry: Registry, clock: Any) -> None:
    registry.publish(contract(), by="ci")
    registry.publish(contract("2.0.0"), by="ci")
    registry.register("c", Consumer(name="quant", versions="^1 || ^2"), by="quant team")
    found = registry.deprecate("c", "1.0.0", by="ann", sunset=date(2026, 4, 1))
    assert (found.status, found.sunset) == (Status.DEPRECATED, date(2026, 4, 1))
    assert registry.deprecate("c", "1.0.0", by="bob") == found
    assert registry.deprecate("c", "v1", by="bob", sunset=date(2026, 4, 1)) == found
    clock.pass_by(days=30)
    with pytest.raises(LifecycleError, match="it is to stay until 2026-04-01, and today is 2026-03-31"):
        registry.retire("c", "1.0.0", by="ann")
    clock.pass_by(days=1)
    assert registry.retire("c", "1.0.0", by="ann").status is Status.RETIRED
    assert registry.retire("c", "1.0.0", by="ann").status is Status.RETIRED
    assert registry.get("c").version == "2.0.0"
    assert [(one.who, one.action) for one in registry.audit("c")][2:] == [
        ("quant team", "register quant"),
        ("ann", "deprecate"),
        ("ann", "retire"),
    ]


@pytest.mark.parametrize(
    ("facts", "earliest"),
    [
        ({}, date(2026, 3, 31)),
        ({"notice_period": "P90D"}, date(2026, 5, 30)),
        ({"notice_period": "36h"}, date(2026, 3, 3)),
        ({"notice_period": "P0D"}, date(2026, 3, 1)),
        ({"evolution": Evolution(deprecation_window_days=10)}, date(2026, 3, 11)),
        ({"evolution": Evolution(policy="none")}, date(2026, 3, 1)),
    ],
    ids=["strict", "90 days", "hours", "none", "window", "no policy"],
)
def test_the_end_keeps_the_notice_period(registry: Registry, facts: dict[str, Any], earliest: date) -> None:
    registry.publish(contract(**facts), by="ci")
    day_before = earliest.replace(day=earliest.day - 1) if earliest.day > 1 else date(2026, 2, 28)
    with pytest.raises(LifecycleError, match=f"Choose {earliest} or later"):
        registry.deprecate("c", "1.0.0", by="ann", sunset=day_before)
    assert registry.get("c").status is Status.ACTIVE
    assert registry.deprecate("c", "1.0.0", by="ann").sunset == earliest


def test_the_contracts_own_day_is_taken_if_it_is_late_enough(registry: Registry) -> None:
    registry.publish(contract("1.0.0", custom={"sunsetDate": "2027-01-01"}), by="ci")
    registry.publish(contract("2.0.0", custom={"sunsetDate": "2026-03-02"}), by="ci")
    assert registry.deprecate("c", "1.0.0", by="ann").sunset == date(2027, 1, 1)
    assert registry.deprecate("c", "2.0.0", by="ann").sunset == date(2026, 3, 31)


def test_an_active_version_is_not_retired_and_all_reasons_are_told(registry: Registry) -> None:
    registry.publish(contract(consumers=(Consumer(name="risk"), Consumer(name="quant", versions="~1.0"))), by="ci")
    with pytest.raises(LifecycleError) as error:
        registry.retire("c", "1.0.0", by="ann")
    assert error.value.reasons == (
        "it cannot be retired: it is active and was never deprecated",
        "'quant' is pinned to ~1.0, which no other version satisfies",
        "'risk' reads it, and no other version is left",
    )
    assert registry.get("c").status is Status.ACTIVE


def test_its_last_consumer_keeps_a_version(registry: Registry, clock: Any) -> None:
    for version in ("1.0.0", "1.1.0", "2.0.0"):
        registry.publish(contract(version), by="ci")
    registry.register("c", Consumer(name="quant", versions="^1"), by="q")
    for version in ("1.0.0", "1.1.0"):
        registry.deprecate("c", version, by="ann")
    clock.pass_by(days=40)
    # There still is 1.1.0 for it.
    registry.retire("c", "1.0.0", by="ann")
    with pytest.raises(LifecycleError, match="'quant' is pinned to"):
        registry.retire("c", "1.1.0", by="ann")
    # What takes effect later helps nobody now.
    registry.publish(contract("1.2.0", custom={"effectiveDate": "2026-12-01"}), by="ci")
    with pytest.raises(LifecycleError, match="'quant' is pinned to"):
        registry.retire("c", "1.1.0", by="ann")
    assert registry.remove_consumer("c", "quant", by="q")
    assert registry.retire("c", "1.1.0", by="ann").status is Status.RETIRED


def test_whoever_must_move_on_is_told_with_the_deprecation_itself(registry: Registry, clock: Any) -> None:
    asked: list[tuple[str, str, list[str]]] = []

    def announce(version: StoredVersion, consumers: Sequence[Consumer]) -> list[Notification]:
        asked.append((version.version, f"{version.status} {version.sunset}", [one.name for one in consumers]))
        return [
            Notification(
                consumer=one.name,
                contract=version.contract_id,
                event=f"{version.version} {version.status} {version.sunset}",
                kind=EventKind.DEPRECATION,
                severity=Severity.WARNING,
                contact="log:",
                title="t",
                occurred_at=clock.now,
            )
            for one in consumers
        ]

    both = (Consumer(name="risk", versions=">=1"), Consumer(name="quant", versions=">=1"))
    registry.publish_all([contract(), contract("2.0.0", consumers=both)], by="ci", announce_end=announce)
    with pytest.raises(LifecycleError):
        registry.deprecate("c", "1.0.0", by="ann", sunset=date(2026, 3, 2), announce_end=announce)
    for _ in range(2):
        registry.deprecate("c", "1.0.0", by="ann", announce_end=announce)
    ending = contract(status="deprecated", custom={"sunsetDate": "2026-05-01"})
    for outcome, count in ((Outcome.CHANGED, 2), (Outcome.UNCHANGED, 0)):
        done = registry.publish(ending, by="ci", announce_end=announce)
        assert (done.outcome, done.notified) == (outcome, count)
    clock.pass_by(days=100)
    for _ in range(2):
        registry.retire("c", "1.0.0", by="ann", announce_end=announce)
    assert asked == [
        ("1.0.0", "deprecated 2026-03-31", ["quant", "risk"]),
        ("1.0.0", "deprecated 2026-05-01", ["quant", "risk"]),
        ("1.0.0", "retired 2026-05-01", ["quant", "risk"]),
    ]
    assert registry.outbox.counts()[State.WAITING] == 6


def test_a_draft_is_activated_or_retired_and_nothing_comes_back_from_retirement(registry: Registry) -> None:
    registry.publish(contract("1.0.0", status="draft"), by="ci")
    registry.publish(contract("2.0.0", status="draft"), by="ci")
    with pytest.raises(LifecycleError, match="it is a draft"):
        registry.deprecate("c", "1.0.0", by="ann")
    assert registry.activate("c", "1.0.0", by="ann").status is Status.ACTIVE
    registry.retire("c", "2.0.0", by="ann")
    for again in (registry.activate, registry.deprecate):
        with pytest.raises(LifecycleError, match="it is retired"):
            again("c", "2.0.0", by="ann")
    registry.deprecate("c", "1.0.0", by="ann")
    back = registry.activate("c", "1.0.0", by="ann")
    assert (back.status, back.sunset) == (Status.ACTIVE, None)


def test_a_version_that_is_not_there_is_named_with_those_that_are(registry: Registry) -> None:
    registry.publish(contract(), by="ci")
    for call in (registry.activate, registry.deprecate, registry.retire):
        with pytest.raises(UnknownContractError, match=r"There is: 1\.0\.0 \(active\)"):
            call("c", "^1", by="ann")
        with pytest.raises(UnknownContractError, match="There is: c"):
            call("d", "1.0.0", by="ann")


def test_history_may_be_published_as_it_stands(registry: Registry) -> None:
    registry.publish_all(
        [
            contract("1.0.0", status="retired"),
            contract("2.0.0", status="deprecated", custom={"sunsetDate": "2026-03-02"}),
        ],
        by="ci",
    )
    assert [(one.status, one.sunset) for one in registry.versions("c")] == [
        (Status.RETIRED, None),
        (Status.DEPRECATED, date(2026, 3, 2)),
    ]
