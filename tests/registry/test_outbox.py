"""The outbox: nothing lost, nobody overtaken, one worker at a time for each contact."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from databox_contracts.errors import RegistryError
from databox_contracts.notifications import EventKind, Failed, Lease, Notification, State
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity


def message(event: str, consumer: str = "quant", contact: str = "mailto:q@example.com", **facts: Any) -> Notification:
    return Notification(
        consumer=consumer,
        contract="urn:a:b",
        event=event,
        kind=EventKind.RUN,
        severity=Severity.WARNING,
        contact=contact,
        title=f"title of {event}",
        occurred_at=datetime(2026, 3, 1, 9, tzinfo=UTC),
        facts=facts,
        ticket="t",
        resolves=True,
    )


def leased(registry: Registry, worker: str = "w", limit: int = 100) -> Lease:
    lease = registry.outbox.lease(worker, limit=limit)
    assert lease is not None
    return lease


def events(lease: Lease | None) -> list[str]:
    return [one.notification.event for one in lease.items] if lease is not None else []


def ids(lease: Lease) -> list[str]:
    return [one.notification.id for one in lease.items]


def counts(registry: Registry) -> tuple[int, int, int]:
    found = registry.outbox.counts()
    return found[State.WAITING], found[State.SENT], found[State.DEAD]


def test_what_is_enqueued_is_leased_once_in_its_order(registry: Registry) -> None:
    given = [message(str(number), nested={"list": [1, None, "ü\0"]}) for number in range(3)]
    assert registry.outbox.enqueue(given) == 3
    assert registry.outbox.enqueue([*given, given[0], message("3"), message("3")]) == 1
    lease = leased(registry)
    assert [one.notification for one in lease.items] == [*given, message("3")]
    assert [one.attempts for one in lease.items] == [0] * 4
    assert (lease.consumer, lease.contact) == ("quant", "mailto:q@example.com")
    assert registry.outbox.lease("other") is None
    assert registry.outbox.settle(lease, sent=ids(lease)) is True
    assert counts(registry) == (0, 4, 0)
    assert registry.outbox.lease("w") is None
    assert registry.outbox.enqueue(given) == 0


def test_an_empty_outbox_has_nothing_due(registry: Registry) -> None:
    assert registry.outbox.lease("w") is None
    assert registry.outbox.enqueue([]) == 0
    assert counts(registry) == (0, 0, 0)
    assert registry.outbox.dead() == []
    assert registry.outbox.retry(["unknown"]) == 0


def test_contacts_of_a_consumer_do_not_wait_for_each_other(registry: Registry) -> None:
    registry.outbox.enqueue([message("1"), message("1", contact="https://example.com/hook"), message("1", "risk")])
    found = [leased(registry, worker) for worker in "abc"]
    assert {(one.consumer, one.contact) for one in found} == {
        ("quant", "mailto:q@example.com"),
        ("quant", "https://example.com/hook"),
        ("risk", "mailto:q@example.com"),
    }
    assert found[0].token != found[1].token


def test_what_waits_for_its_next_attempt_holds_up_what_is_behind_it(registry: Registry, clock: Any) -> None:
    registry.outbox.enqueue([message(event) for event in "123"])
    lease = leased(registry)
    later = clock.now + timedelta(minutes=5)
    assert registry.outbox.settle(
        lease, sent=ids(lease)[:1], failed={ids(lease)[1]: Failed(error="503", retry_at=later)}
    )
    assert registry.outbox.lease("w") is None
    registry.outbox.enqueue([message("4")])
    assert registry.outbox.lease("w") is None
    assert registry.outbox.waiting(limit=1) == [(message("2"), "503")]
    clock.pass_by(minutes=5)
    lease = leased(registry)
    assert events(lease) == ["2", "3", "4"]
    assert [one.attempts for one in lease.items] == [1, 0, 0]


def test_a_later_one_that_waits_ends_the_lease_before_it(registry: Registry, clock: Any) -> None:
    registry.outbox.enqueue([message(event) for event in "123"])
    lease = leased(registry)
    later = clock.now + timedelta(minutes=5)
    registry.outbox.settle(lease, failed={ids(lease)[1]: Failed(error="x", retry_at=later)})
    lease = leased(registry)
    assert events(lease) == ["1"]
    registry.outbox.settle(lease, sent=ids(lease))
    assert registry.outbox.lease("w") is None


def test_a_dead_one_holds_nobody_up_and_can_be_retried(registry: Registry) -> None:
    registry.outbox.enqueue([message(event) for event in "12"])
    lease = leased(registry)
    text = "550 no such user \0 " + "x" * 5000
    registry.outbox.settle(lease, failed={ids(lease)[0]: Failed(error=text, retry_at=None)})
    ((dead, error),) = registry.outbox.dead()
    assert dead == message("1")
    assert error.startswith("550 no such user \N{REPLACEMENT CHARACTER} xxx")
    assert len(error) == 2000
    lease = leased(registry)
    assert events(lease) == ["2"]
    registry.outbox.settle(lease, sent=ids(lease))
    assert registry.outbox.lease("w") is None
    assert counts(registry) == (0, 1, 1)
    assert registry.outbox.retry([dead.id, dead.id, "unknown"]) == 1
    assert registry.outbox.retry([dead.id]) == 0
    lease = leased(registry)
    assert (events(lease), lease.items[0].attempts) == (["1"], 0)
    registry.outbox.settle(lease, sent=ids(lease))
    assert counts(registry) == (0, 2, 0)


def test_what_is_neither_sent_nor_failed_is_due_again_without_an_attempt(registry: Registry) -> None:
    registry.outbox.enqueue([message(event) for event in "12"])
    assert registry.outbox.settle(leased(registry)) is True
    lease = leased(registry, limit=1)
    assert (events(lease), lease.items[0].attempts) == (["1"], 0)


def test_a_lease_that_ran_out_is_as_if_it_had_never_been_given(registry: Registry, clock: Any) -> None:
    registry.outbox.enqueue([message(event) for event in "12"])
    first = leased(registry, "slow")
    clock.pass_by(seconds=119)
    assert registry.outbox.lease("quick") is None
    clock.pass_by(seconds=1)
    second = leased(registry, "quick")
    assert events(second) == ["1", "2"]
    assert registry.outbox.extend(first) is False
    # The slow one did send the first; that must not be sent again. Its failure is no longer its to tell.
    failed = {ids(first)[1]: Failed(error="mine", retry_at=None)}
    assert registry.outbox.settle(first, sent=ids(first)[:1], failed=failed) is False
    assert counts(registry) == (1, 1, 0)
    assert registry.outbox.lease("third") is None
    assert registry.outbox.settle(second, failed={ids(second)[0]: Failed(error="x", retry_at=None)}) is True
    assert counts(registry) == (1, 1, 0)
    assert events(leased(registry)) == ["2"]


def test_a_lease_is_extended_by_its_full_length(registry: Registry, clock: Any) -> None:
    registry.outbox.enqueue([message("1")])
    lease = leased(registry)
    clock.pass_by(seconds=100)
    assert registry.outbox.extend(lease) is True
    clock.pass_by(seconds=100)
    assert registry.outbox.lease("other") is None
    clock.pass_by(seconds=30)
    # It ran out, and nobody else has taken it.
    assert registry.outbox.extend(lease) is True
    assert registry.outbox.lease("other") is None
    assert registry.outbox.settle(lease, sent=ids(lease)) is True
    assert registry.outbox.extend(lease) is False
    assert registry.outbox.settle(lease, sent=ids(lease)) is False
    assert counts(registry) == (0, 1, 0)


def test_only_what_was_leased_is_settled(registry: Registry) -> None:
    registry.outbox.enqueue([message("1"), message("2")])
    lease = leased(registry, limit=1)
    for sent, failed in (
        ([message("2").id], {}),
        (["'; DELETE FROM databox_outbox; --"], {}),
        (ids(lease), {ids(lease)[0]: Failed(error="x", retry_at=None)}),
    ):
        with pytest.raises(RegistryError, match=r"was both|is none of this lease's"):
            registry.outbox.settle(lease, sent=sent, failed=failed)
    assert counts(registry) == (2, 0, 0)
    with pytest.raises(RegistryError, match="at least one"):
        registry.outbox.lease("w", limit=0)


def test_what_is_pruned_can_never_be_sent_again(registry: Registry, clock: Any) -> None:
    registry.outbox.enqueue([message(event) for event in "123"])
    lease = leased(registry)
    one, two, three = ids(lease)
    registry.outbox.settle(lease, sent=[one], failed={two: Failed(error="x", retry_at=None)})
    clock.pass_by(days=1)
    assert registry.outbox.prune(clock.now - timedelta(days=1)) == 0
    assert registry.outbox.prune(clock.now) == 1
    assert counts(registry) == (1, 0, 1)
    assert registry.outbox.enqueue([message("1")]) == 0
    assert events(leased(registry)) == ["3"]
    assert three != one


def test_a_position_moves_together_with_its_messages(registry: Registry) -> None:
    assert registry.position("runs") is None
    assert registry.advance("runs", {"at": 1}, notifications=[message("1")], replacing=None)
    assert registry.position("runs") == {"at": 1}
    # Somebody else was quicker: neither the position nor the messages.
    assert not registry.advance("runs", {"at": 2}, notifications=[message("2")], replacing={"at": 0})
    assert not registry.advance("runs", {"at": 2}, notifications=[message("2")], replacing=None)
    assert registry.position("runs") == {"at": 1}
    assert counts(registry) == (1, 0, 0)
    # A message that cannot be stored stops both.
    with pytest.raises(RegistryError, match="JSON"):
        registry.advance("runs", {"at": 3}, notifications=[message("3"), message("4", odd=object())])
    assert registry.position("runs") == {"at": 1}
    assert registry.advance("runs", {"at": 3}, notifications=[message("3")], replacing={"at": 1})
    # Told twice, since the first answer was lost.
    assert registry.advance("runs", {"at": 3}, notifications=[message("3")], replacing={"at": 1})
    assert counts(registry) == (2, 0, 0)
    for falsy in (0, "", [], False):
        assert registry.advance("other", falsy)
        assert registry.position("other") == falsy


@pytest.mark.parametrize(
    "contact",
    [
        "mailto://user:hunter2@example.com",
        "https://hooks.slack.com/services/T0/B0/hunter2",
        "slack://T0/B0/hunter2",
        "https://example.com/hook?token=hunter2",
        "https://example.com/hook?+X-Api-Key=a&api_key=hunter2",
    ],
)
def test_a_contact_with_a_secret_in_it_is_refused_without_showing_it(registry: Registry, contact: str) -> None:
    with pytest.raises(RegistryError, match=r"contact 1 of consumer 'quant' has .*Write it as \$\{NAME\}") as error:
        registry.outbox.enqueue([message("1"), message("2", contact=contact)])
    assert "hunter2" not in str(error.value)
    assert counts(registry) == (0, 0, 0)


@pytest.mark.parametrize(
    "contact",
    ["", "q@example.com", "mailto:q@example.com", "slack://${A}/${B}/${C}", "https://u:${P}@h/?token=${T}", "log:"],
)
def test_a_contact_with_names_of_secrets_is_taken(registry: Registry, contact: str) -> None:
    assert registry.outbox.enqueue([message("1", contact=contact)]) == 1
    assert leased(registry).contact == contact
