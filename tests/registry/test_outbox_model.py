"""The outbox against a model of it: thousands of random steps, after each of which both say the same."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from databox_contracts.notifications import EventKind, Failed, Lease, Notification, State
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity

LENGTH = timedelta(minutes=2)


@dataclass
class Message:
    notification: Notification
    due: datetime
    state: State = State.WAITING
    attempts: int = 0


@dataclass
class Lane:
    messages: list[Message] = field(default_factory=list)
    holder: str | None = None
    until: datetime = datetime(2000, 1, 1, tzinfo=UTC)

    def due(self, now: datetime) -> list[Message]:
        found = []
        for message in (one for one in self.messages if one.state is State.WAITING):
            if message.due > now:
                break
            found.append(message)
        return found


class Model:
    """What the outbox promises, in lists."""

    def __init__(self) -> None:
        self.lanes: dict[tuple[str, str], Lane] = {}
        self.known: set[str] = set()
        self.pruned = 0

    def all(self) -> list[Message]:
        return [message for lane in self.lanes.values() for message in lane.messages]

    def may_lease(self, now: datetime) -> set[tuple[str, str]]:
        return {
            place for place, lane in self.lanes.items() if lane.due(now) and (lane.holder is None or lane.until <= now)
        }


def message(number: int, lane: int) -> Notification:
    return Notification(
        consumer=f"c{lane // 2}",
        contract="c",
        event=str(number),
        kind=EventKind.RUN,
        severity=Severity.ERROR,
        contact=f"log:{lane % 2}",
        title="t",
        occurred_at=datetime(2026, 3, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("seed", "steps"),
    [(1, 300), *(pytest.param(seed, 2500, marks=pytest.mark.full) for seed in range(10, 16))],
)
def test_random_steps(registry: Registry, clock: Any, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    model = Model()
    leases: list[Lease] = []
    settled_at: dict[str, datetime] = {}
    outbox = registry.outbox

    def enqueue() -> None:
        several = [message(chance.randrange(steps), chance.randrange(6)) for _ in range(chance.randrange(5))]
        fresh = 0
        for one in several:
            if one.id not in model.known:
                fresh += 1
                model.known.add(one.id)
                model.lanes.setdefault((one.consumer, one.contact), Lane()).messages.append(Message(one, clock.now))
        assert outbox.enqueue(several) == fresh

    def lease() -> None:
        limit = chance.choice([1, 2, 100])
        allowed = model.may_lease(clock.now)
        found = outbox.lease("w", limit=limit)
        if found is None:
            assert allowed == set()
            return
        place = (found.consumer, found.contact)
        assert place in allowed
        lane = model.lanes[place]
        expected = lane.due(clock.now)[:limit]
        assert [(one.notification, one.attempts) for one in found.items] == [
            (one.notification, one.attempts) for one in expected
        ]
        assert found.expires_at == clock.now + LENGTH
        lane.holder, lane.until = found.token, found.expires_at
        leases.append(found)

    def extend() -> None:
        if leases:
            one = chance.choice(leases)
            lane = model.lanes[one.consumer, one.contact]
            assert outbox.extend(one) == (lane.holder == one.token)
            if lane.holder == one.token:
                lane.until = clock.now + LENGTH

    def settle() -> None:
        if not leases:
            return
        one = leases.pop(chance.randrange(len(leases)))
        lane = model.lanes[one.consumer, one.contact]
        sent: list[str] = []
        failed: dict[str, Failed] = {}
        for item in one.items:
            match chance.randrange(5):
                case 0 | 1:
                    sent.append(item.notification.id)
                case 2:
                    failed[item.notification.id] = Failed(error="x", retry_at=None)
                case 3:
                    later = clock.now + timedelta(seconds=chance.randrange(200))
                    failed[item.notification.id] = Failed(error="x", retry_at=later)
        is_holder = lane.holder == one.token
        assert outbox.settle(one, sent=sent, failed=failed) == (is_holder and lane.until > clock.now)
        for known in lane.messages:
            id_ = known.notification.id
            if id_ in sent and known.state is not State.SENT:
                known.state, known.attempts = State.SENT, known.attempts + 1
                settled_at[id_] = clock.now
            elif id_ in failed and is_holder and known.state is State.WAITING:
                known.attempts += 1
                retry_at = failed[id_].retry_at
                known.state = State.DEAD if retry_at is None else State.WAITING
                known.due = retry_at or known.due
        if is_holder:
            lane.holder = None

    def retry() -> None:
        dead = [one for one in model.all() if one.state is State.DEAD]
        assert {one.id for one, _ in outbox.dead()} == {one.notification.id for one in dead}
        chosen = [one for one in dead if chance.random() < 0.5]
        assert outbox.retry([one.notification.id for one in chosen]) == len(chosen)
        for one in chosen:
            one.state, one.attempts, one.due = State.WAITING, 0, clock.now

    def prune() -> None:
        before = clock.now - timedelta(seconds=chance.randrange(300))
        count = 0
        for lane in model.lanes.values():
            left = [
                one
                for one in lane.messages
                if not (one.state is State.SENT and settled_at[one.notification.id] < before)
            ]
            count += len(lane.messages) - len(left)
            lane.messages = left
        assert outbox.prune(before) == count

    def wait() -> None:
        clock.pass_by(seconds=chance.randrange(90))

    acts = [enqueue] * 6 + [lease] * 8 + [settle] * 6 + [extend, retry, prune, wait, wait]
    for _ in range(steps):
        chance.choice(acts)()
        counts = outbox.counts()
        assert counts == {state: sum(one.state is state for one in model.all()) for state in State}
    # In the end everything can be sent.
    clock.pass_by(hours=1)
    while (one := outbox.lease("w")) is not None:
        assert outbox.settle(one, sent=[item.notification.id for item in one.items])
    assert outbox.counts()[State.WAITING] == 0
