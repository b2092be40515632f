"""An outbox in memory: for use without a registry, and for tests. What it holds is gone with the process."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from databox_contracts.notifications import Failed, Lease, Notification, State, Waiting


@dataclass(slots=True)
class _Entry:
    """A notification and where it stands."""

    notification: Notification
    state: State = State.WAITING
    attempts: int = 0
    due_at: datetime | None = None
    error: str = ""


class MemoryOutbox:
    """An `Outbox` of this process, safe for several threads.

    A lease is given for `lease_for`; of all contacts the one whose oldest notification came first has its turn.
    """

    def __init__(
        self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC), lease_for: timedelta = timedelta(minutes=2)
    ) -> None:
        self._clock = clock
        self._lease_for = lease_for
        self._entries: dict[str, _Entry] = {}
        self._waiting: dict[tuple[str, str], dict[str, _Entry]] = {}
        self._leases: dict[tuple[str, str], Lease] = {}
        self._lock = threading.Lock()

    def enqueue(self, notifications: Sequence[Notification]) -> int:
        """As `Outbox.enqueue`."""
        with self._lock:
            added = 0
            for one in notifications:
                if one.id not in self._entries:
                    self._entries[one.id] = entry = _Entry(one)
                    self._waiting.setdefault((one.consumer, one.contact), {})[one.id] = entry
                    added += 1
            return added

    def lease(self, worker: str, *, limit: int = 100) -> Lease | None:
        """As `Outbox.lease`."""
        with self._lock:
            now = self._clock()
            for place, entries in self._waiting.items():
                held = self._leases.get(place)
                if held is not None and held.expires_at > now:
                    continue
                items: list[Waiting] = []
                for entry in entries.values():
                    if len(items) >= limit or (entry.due_at is not None and entry.due_at > now):
                        break
                    items.append(Waiting(notification=entry.notification, attempts=entry.attempts))
                if items:
                    lease = Lease(
                        token=uuid.uuid4().hex,
                        worker=worker,
                        consumer=place[0],
                        contact=place[1],
                        expires_at=now + self._lease_for,
                        items=tuple(items),
                    )
                    # Whoever was served goes to the end of the line.
                    self._waiting[place] = self._waiting.pop(place)
                    self._leases[place] = lease
                    return lease
            return None

    def extend(self, lease: Lease) -> bool:
        """As `Outbox.extend`."""
        with self._lock:
            place = (lease.consumer, lease.contact)
            held = self._leases.get(place)
            if held is None or held.token != lease.token:
                return False
            self._leases[place] = replace(held, expires_at=self._clock() + self._lease_for)
            return True

    def settle(self, lease: Lease, *, sent: Sequence[str] = (), failed: Mapping[str, Failed] | None = None) -> bool:
        """As `Outbox.settle`."""
        with self._lock:
            place = (lease.consumer, lease.contact)
            held = self._leases.get(place)
            ours = held is not None and held.token == lease.token and held.expires_at > self._clock()
            for id in sent:
                entry = self._entries[id]
                if entry.state is not State.SENT:
                    entry.state, entry.attempts, entry.error = State.SENT, entry.attempts + 1, ""
                    self._leave(place, id)
            if ours:
                for id, one in (failed or {}).items():
                    entry = self._entries[id]
                    entry.attempts, entry.due_at, entry.error = entry.attempts + 1, one.retry_at, one.error
                    if one.retry_at is None:
                        entry.state = State.DEAD
                        self._leave(place, id)
            if held is not None and held.token == lease.token:
                del self._leases[place]
            return ours

    def _leave(self, place: tuple[str, str], id: str) -> None:
        line = self._waiting.get(place, {})
        line.pop(id, None)
        if not line:
            self._waiting.pop(place, None)

    def dead(self, *, limit: int = 1000) -> Sequence[tuple[Notification, str]]:
        """As `Outbox.dead`."""
        with self._lock:
            found = [entry for entry in self._entries.values() if entry.state is State.DEAD]
            return [(entry.notification, entry.error) for entry in found[:limit]]

    def retry(self, ids: Sequence[str]) -> int:
        """As `Outbox.retry`."""
        with self._lock:
            woken = 0
            for id, entry in self._entries.items():
                if id in ids and entry.state is State.DEAD:
                    entry.state, entry.attempts, entry.due_at = State.WAITING, 0, None
                    woken += 1
            # In the order they came in, among those that wait already.
            self._waiting = {}
            for id, entry in self._entries.items():
                if entry.state is State.WAITING:
                    place = (entry.notification.consumer, entry.notification.contact)
                    self._waiting.setdefault(place, {})[id] = entry
            return woken

    def counts(self) -> Mapping[State, int]:
        """As `Outbox.counts`."""
        with self._lock:
            return {state: sum(entry.state is state for entry in self._entries.values()) for state in State}
