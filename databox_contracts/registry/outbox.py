"""The outbox in the registry's database: in order, one worker at a time, until a channel took each message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import Connection, delete, func, or_, select, update

from databox_contracts.errors import RegistryError
from databox_contracts.notifications import Failed, Lease, Notification, State, Waiting
from databox_contracts.registry.database import Database
from databox_contracts.registry.enqueuing import enqueue_in, lane_of, notification_of
from databox_contracts.registry.schema import LANES, OUTBOX
from databox_contracts.registry.texts import kept, named

USUAL_LEASE: Final = timedelta(minutes=2)

_LONGEST_ERROR: Final = 2_000
_CHUNK: Final = 500
_PRUNED_AT_ONCE: Final = 5_000


class SqlOutbox:
    """An `Outbox` of two tables: a lane for each contact of a consumer, and the notifications in it.

    Who holds a lane's lease is in the lane's row, by a token that is new with every lease: whoever has an older one
    changes nothing any more but what it did send. `lease_length` has to be longer than one attempt takes. Workers on
    several hosts need clocks that agree to within it.
    """

    def __init__(
        self, database: Database, clock: Callable[[], datetime], *, lease_length: timedelta = USUAL_LEASE
    ) -> None:
        self._database = database
        self._clock = clock
        self.lease_length = lease_length

    def enqueue(self, notifications: Sequence[Notification]) -> int:
        """As `Outbox.enqueue`. Raises `RegistryError` for a contact with a secret in it."""
        now = self._clock()
        return self._database.write(lambda connection: enqueue_in(connection, notifications, now))

    def lease(self, worker: str, *, limit: int = 100) -> Lease | None:
        """As `Outbox.lease`: that of the contact which waited longest."""
        named("the worker's name", worker)
        if limit < 1:
            raise RegistryError(f"a lease of {limit} notifications", hint="Ask for at least one.")
        token = uuid4().hex
        while True:
            lease, again = self._try(worker, token, limit, self._clock())
            if lease is not None or not again:
                return lease

    def _try(self, worker: str, token: str, limit: int, now: datetime) -> tuple[Lease | None, bool]:
        # Nobody is kept from writing while nothing is due.
        if not self._database.read(lambda connection: _due_lanes(connection, now)):
            return None, False
        attempts = count()

        def work(connection: Connection) -> tuple[Lease | None, bool]:
            # If the answer to a commit was lost, it may have been given already.
            given = select(LANES.c.id).where(LANES.c.token == token)
            mine = list(connection.execute(given).scalars()) if next(attempts) else []
            lanes = mine or _due_lanes(connection, now, locked=True)
            return self._lease(connection, worker, token, lanes, limit, now)

        return self._database.write(work)

    def _lease(
        self, connection: Connection, worker: str, token: str, lanes: Sequence[str], limit: int, now: datetime
    ) -> tuple[Lease | None, bool]:
        """The lease of the first lane, and whether it is worth asking again where there is none."""
        if not lanes:
            return None, False
        lane = lanes[0]
        rows = connection.execute(
            select(OUTBOX.c.notification, OUTBOX.c.attempts, OUTBOX.c.due_at)
            .where(OUTBOX.c.lane == lane, OUTBOX.c.state == str(State.WAITING))
            .order_by(OUTBOX.c.number)
            .limit(limit)
        ).all()
        items: list[Waiting] = []
        for row in rows:
            # What waits for its next attempt holds up what is behind it.
            if row.due_at > now:
                break
            items.append(Waiting(notification=notification_of(row.notification), attempts=row.attempts))
        if not items:
            _look_at_head(connection, lane)
            return None, True
        expires_at = now + self.lease_length
        connection.execute(
            update(LANES).where(LANES.c.id == lane).values(token=token, worker=worker, expires_at=expires_at)
        )
        first = items[0].notification
        lease = Lease(
            token=token,
            worker=worker,
            consumer=first.consumer,
            contact=first.contact,
            expires_at=expires_at,
            items=tuple(items),
        )
        return lease, False

    def extend(self, lease: Lease) -> bool:
        """As `Outbox.extend`: one that ran out is taken up again unless somebody else got it."""

        def work(connection: Connection) -> bool:
            expires_at = self._clock() + self.lease_length
            done = connection.execute(
                update(LANES)
                .where(LANES.c.id == lane_of(lease.consumer, lease.contact), LANES.c.token == lease.token)
                .values(expires_at=expires_at)
            )
            return bool(done.rowcount)

        return self._database.write(work)

    def settle(self, lease: Lease, *, sent: Sequence[str] = (), failed: Mapping[str, Failed] | None = None) -> bool:
        """As `Outbox.settle`. What failed is recorded while nobody else has got the lease.

        Raises `RegistryError` for an id that is none of the lease's, or is both sent and failed.
        """
        failures = dict(failed or {})
        own = {item.notification.id for item in lease.items}
        foreign = sorted({*sent, *failures} - own)
        if foreign or set(sent) & set(failures):
            wrong = foreign or sorted(set(sent) & set(failures))
            what = "is none of this lease's" if foreign else "was both sent and failed"
            raise RegistryError(f"the notification {wrong[0]} {what}", hint="Settle what was leased, each once.")
        lane = lane_of(lease.consumer, lease.contact)

        def work(connection: Connection) -> bool:
            now = self._clock()
            row = connection.execute(
                select(LANES.c.token, LANES.c.expires_at).where(LANES.c.id == lane).with_for_update()
            ).one()
            is_holder = row.token == lease.token
            _record_sent(connection, lane, sent, now)
            if is_holder:
                _record_failed(connection, lane, failures, now)
                connection.execute(
                    update(LANES).where(LANES.c.id == lane).values(token=None, worker=None, expires_at=None)
                )
            _look_at_head(connection, lane)
            return bool(is_holder and row.expires_at > now)

        return self._database.write(work)

    def dead(self, *, limit: int = 1000) -> list[tuple[Notification, str]]:
        """As `Outbox.dead`."""
        return [(one, error or "") for one, error in self._in_state(State.DEAD, limit)]

    def waiting(self, *, limit: int = 1000) -> list[tuple[Notification, str | None]]:
        """Those that wait, oldest first, each with the error of its last attempt, None where there was none."""
        return self._in_state(State.WAITING, limit)

    def _in_state(self, state: State, limit: int) -> list[tuple[Notification, str | None]]:
        query = (
            select(OUTBOX.c.notification, OUTBOX.c.error)
            .where(OUTBOX.c.state == str(state))
            .order_by(OUTBOX.c.number)
            .limit(limit)
        )
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return [(notification_of(row.notification), row.error) for row in rows]

    def retry(self, ids: Sequence[str]) -> int:
        """As `Outbox.retry`."""

        def work(connection: Connection) -> int:
            now = self._clock()
            rows = [
                row
                for chunk in _chunks(ids)
                for row in connection.execute(
                    select(OUTBOX.c.id, OUTBOX.c.lane).where(OUTBOX.c.id.in_(chunk), OUTBOX.c.state == str(State.DEAD))
                )
            ]
            retried = 0
            for lane in sorted({row.lane for row in rows}):
                connection.execute(select(LANES.c.id).where(LANES.c.id == lane).with_for_update())
                dead = [row.id for row in rows if row.lane == lane]
                for chunk in _chunks(dead):
                    done = connection.execute(
                        update(OUTBOX)
                        .where(OUTBOX.c.id.in_(chunk), OUTBOX.c.state == str(State.DEAD))
                        .values(state=str(State.WAITING), attempts=0, due_at=now, settled_at=None)
                    )
                    retried += done.rowcount
                _look_at_head(connection, lane)
            return retried

        return self._database.write(work)

    def counts(self) -> dict[State, int]:
        """As `Outbox.counts`; pruned ones are not among them."""
        query = select(OUTBOX.c.state, func.count().label("found")).group_by(OUTBOX.c.state)
        found = {
            row.state: int(row.found) for row in self._database.read(lambda connection: connection.execute(query).all())
        }
        return {state: found.get(str(state), 0) for state in State}

    def prune(self, before: datetime) -> int:
        """Removes what was sent before that time, and returns how many these were; none of them can be sent again.

        Dead ones stay until they are retried.
        """

        old = (OUTBOX.c.state == str(State.SENT)) & (OUTBOX.c.settled_at < before)
        some = select(OUTBOX.c.number).where(old).order_by(OUTBOX.c.number).limit(_PRUNED_AT_ONCE)
        removed = 0
        # In parts, so that nobody waits long for SQLite's one lock.
        while done := self._database.write(
            lambda connection: connection.execute(delete(OUTBOX).where(OUTBOX.c.number.in_(some))).rowcount
        ):
            removed += done
        return removed


def _due_lanes(connection: Connection, now: datetime, *, locked: bool = False) -> list[str]:
    """The lane that waited longest of those that are due and that nobody holds, or none."""
    query = (
        select(LANES.c.id)
        .where(LANES.c.due_at <= now, or_(LANES.c.token.is_(None), LANES.c.expires_at <= now))
        .order_by(LANES.c.due_at, LANES.c.id)
        .limit(1)
    )
    if locked:
        query = query.with_for_update(skip_locked=True)
    return list(connection.execute(query).scalars())


def _look_at_head(connection: Connection, lane: str) -> None:
    """Notes when the lane's first waiting notification is due. Only whoever has the lane's row locked may call it."""
    head = (
        select(OUTBOX.c.due_at)
        .where(OUTBOX.c.lane == lane, OUTBOX.c.state == str(State.WAITING))
        .order_by(OUTBOX.c.number)
        .limit(1)
    )
    connection.execute(update(LANES).where(LANES.c.id == lane).values(due_at=connection.execute(head).scalar()))


def _record_sent(connection: Connection, lane: str, ids: Sequence[str], now: datetime) -> None:
    for chunk in _chunks(ids):
        connection.execute(
            update(OUTBOX)
            .where(OUTBOX.c.lane == lane, OUTBOX.c.id.in_(chunk), OUTBOX.c.state != str(State.SENT))
            .values(state=str(State.SENT), attempts=OUTBOX.c.attempts + 1, settled_at=now, error=None)
        )


def _record_failed(connection: Connection, lane: str, failed: Mapping[str, Failed], now: datetime) -> None:
    for id_, failure in failed.items():
        values: dict[str, Any] = {"attempts": OUTBOX.c.attempts + 1, "error": kept(failure.error, _LONGEST_ERROR)}
        if failure.retry_at is None:
            values |= {"state": str(State.DEAD), "settled_at": now}
        else:
            values["due_at"] = failure.retry_at
        connection.execute(
            update(OUTBOX)
            .where(OUTBOX.c.lane == lane, OUTBOX.c.id == id_, OUTBOX.c.state == str(State.WAITING))
            .values(**values)
        )


def _chunks(items: Sequence[str]) -> Iterable[list[str]]:
    for start in range(0, len(items), _CHUNK):
        yield list(items[start : start + _CHUNK])
