"""The outbox in memory keeps the promises of the one in the registry."""

from datetime import timedelta

import pytest

from databox_contracts.notifications import Failed, Outbox, State
from databox_contracts.notify import MemoryOutbox
from databox_contracts.registry.store import Registry


@pytest.fixture(params=["memory", "sqlite"])
def outbox(request, clock, tmp_path):
    if request.param == "memory":
        yield MemoryOutbox(clock=clock, lease_for=timedelta(minutes=2))
        return
    registry = Registry.open(str(tmp_path / "registry.db"), clock=clock, lease_length=timedelta(minutes=2))
    yield registry.outbox
    registry.close()


def events(lease):
    return [item.notification.event for item in lease.items]


def test_it_is_an_outbox():
    made: Outbox = MemoryOutbox()
    assert made.counts() == {State.WAITING: 0, State.SENT: 0, State.DEAD: 0}
    assert made.lease("w") is None
    assert made.dead() == []
    assert made.retry(["x"]) == 0
    assert made.enqueue([]) == 0


def test_a_lease_is_one_contacts_and_one_workers(outbox, notification):
    outbox.enqueue([notification(n, contact=contact) for n in (1, 2, 3) for contact in ("a@x", "b@x")])
    first, second = outbox.lease("w1", limit=2), outbox.lease("w2")
    assert {first.contact, second.contact} == {"a@x", "b@x"}
    assert (events(first), events(second)) == (["event 1", "event 2"], ["event 1", "event 2", "event 3"])
    assert outbox.lease("w3") is None


def test_a_lease_that_ran_out_is_as_if_it_had_never_been_given(outbox, clock, notification):
    outbox.enqueue([notification(1), notification(2)])
    old = outbox.lease("w1")
    clock.move(minutes=1)
    assert outbox.extend(old)
    clock.move(seconds=110)
    assert outbox.lease("w2") is None
    clock.move(seconds=20)
    new = outbox.lease("w2")
    assert events(new) == ["event 1", "event 2"]
    assert not outbox.extend(old)
    ids = [item.notification.id for item in new.items]
    assert not outbox.settle(old, sent=ids[:1], failed={ids[1]: Failed(error="x", retry_at=None)})
    assert outbox.counts() == {State.WAITING: 1, State.SENT: 1, State.DEAD: 0}
    assert outbox.settle(new, sent=ids)
    assert outbox.counts() == {State.WAITING: 0, State.SENT: 2, State.DEAD: 0}


def test_what_is_not_settled_is_due_again_without_an_attempt(outbox, clock, notification):
    outbox.enqueue([notification(n) for n in range(3)])
    lease = outbox.lease("w")
    at = clock() + timedelta(seconds=5)
    assert outbox.settle(lease, failed={lease.items[0].notification.id: Failed(error="x", retry_at=at)})
    assert outbox.lease("w") is None
    clock.move(seconds=5)
    assert [(item.notification.event, item.attempts) for item in outbox.lease("w").items] == [
        ("event 0", 1),
        ("event 1", 0),
        ("event 2", 0),
    ]


def test_a_retried_one_keeps_its_place(outbox, notification):
    outbox.enqueue([notification(1)])
    lease = outbox.lease("w")
    outbox.settle(lease, failed={lease.items[0].notification.id: Failed(error="x", retry_at=None)})
    outbox.enqueue([notification(2)])
    assert [(one.event, error) for one, error in outbox.dead()] == [("event 1", "x")]
    assert outbox.dead(limit=1)
    assert outbox.retry([lease.items[0].notification.id]) == 1
    assert events(outbox.lease("w")) == ["event 1", "event 2"]


def test_everybody_has_their_turn(outbox, clock, notification):
    outbox.enqueue([notification(n, contact=contact) for contact in ("a@x", "b@x") for n in range(3)])
    turns = []
    for _ in range(4):
        clock.move(seconds=1)
        lease = outbox.lease("w", limit=1)
        turns.append(lease.contact)
        outbox.settle(lease, sent=[lease.items[0].notification.id])
    assert set(turns) == {"a@x", "b@x"}
