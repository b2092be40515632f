"""The worker that empties the outbox: leases, sends, records what became of it, and comes back for what failed."""

from __future__ import annotations

import logging
import math
import os
import random as randomness
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from databox_contracts.errors import DeliveryError
from databox_contracts.notifications import Failed, Lease, Notification, Outbox, Waiting
from databox_contracts.notify.backoff import Pace
from databox_contracts.notify.contacts import shown
from databox_contracts.notify.message import Message, render, render_digest
from databox_contracts.notify.sending import Channels

__all__ = ["Delivery", "Pace", "Totals"]

_LOG: Final = logging.getLogger(__name__)
_SETTLE_PAUSES: Final = (0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What became of notifications: taken by their receivers, to be tried again, given up."""

    sent: int = 0
    failed: int = 0
    dead: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(sent=self.sent + other.sent, failed=self.failed + other.failed, dead=self.dead + other.dead)


class Delivery:
    """Sends what waits in an outbox. Several may work on one outbox, in threads, processes or on hosts.

    After every message it is recorded what became of it, so that a worker that is killed leaves at most one message
    that is sent once more. When `digest_from` notifications or more wait for one contact, they go as one message (from
    two on, where the consumer wishes digests), at most `digest_most` of them; None for never. A lease is extended for
    as long as a receiver takes its time.
    """

    def __init__(
        self,
        outbox: Outbox,
        channels: Channels | None = None,
        *,
        worker: str | None = None,
        pace: Pace | None = None,
        digest_from: int | None = 5,
        digest_most: int = 50,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        random: Callable[[], float] = randomness.random,
    ) -> None:
        self.outbox = outbox
        self.channels = channels if channels is not None else Channels()
        self.worker = worker or f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.pace = pace if pace is not None else Pace()
        self._digest_from = digest_from
        self._limit = 1 if digest_from is None else max(digest_most, digest_from, 2)
        self._clock = clock
        self._random = random
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ends `run` and `drain` after the current message; safe in a signal handler."""
        self._stop.set()

    def run(self, *, idle: timedelta = timedelta(seconds=5)) -> Totals:
        """Works until `stop`; when nothing is due it looks again after `idle`. An outbox that is away is waited for."""
        totals = Totals()
        while not self._stop.is_set():
            try:
                done = self.step()
            except Exception as error:
                # Its database may be restarting: what waits there is not lost, and nothing else can be done.
                _LOG.error("the outbox cannot be used: %s", type(error).__name__)
                done = None
            if done is None:
                self._stop.wait(idle.total_seconds())
            else:
                totals += done
        return totals

    def drain(self, *, limit: int | None = None, seconds: float = math.inf) -> Totals:
        """Works until nothing is due, `limit` messages were tried, or no other is begun after `seconds`.

        Raises what the outbox raises.
        """
        totals, tried = Totals(), 0
        end = time.monotonic() + seconds
        while not self._stop.is_set() and (limit is None or tried < limit) and time.monotonic() < end:
            done = self.step()
            if done is None:
                break
            totals, tried = totals + done, tried + 1
        return totals

    def step(self) -> Totals | None:
        """Tries one message; None when none is due."""
        lease = self.outbox.lease(self.worker, limit=self._limit)
        if lease is None:
            return None
        with self._kept(lease):
            chosen = self._chosen(lease)
            error = self._attempt(chosen, lease)
            while error is not None and error.permanent and len(chosen) > 1:
                # It may be too long, or one of them is what is refused: the others must not die with it.
                chosen = chosen[: len(chosen) // 2]
                error = self._attempt(chosen, lease)
            if error is None:
                self._settle(lease, sent=[one.notification.id for one in chosen])
                return Totals(sent=len(chosen))
            failed = {one.notification.id: self._failed(one, error) for one in chosen}
            self._settle(lease, failed=failed)
            dead = sum(one.retry_at is None for one in failed.values())
            _report(lease, chosen, error, dead)
            return Totals(failed=len(chosen) - dead, dead=dead)

    def _chosen(self, lease: Lease) -> tuple[Waiting, ...]:
        """All of the lease's notifications where they go as a digest, else the oldest."""
        if self._digest_from is None or not lease.items:
            return lease.items[:1]
        wished = all(one.notification.facts.get("digest") is True for one in lease.items)
        fewest = min(2, self._digest_from) if wished else self._digest_from
        grouped = len(lease.items) >= max(2, fewest) and self.channels.takes_digests(lease.contact)
        return lease.items if grouped else lease.items[:1]

    def _attempt(self, chosen: tuple[Waiting, ...], lease: Lease) -> DeliveryError | None:
        try:
            self.channels.send(self._message([one.notification for one in chosen]), lease.contact)
        except DeliveryError as error:
            return error
        except Exception as error:
            return DeliveryError(shown(lease.contact), f"the message cannot be made: {type(error).__name__}")
        return None

    def _message(self, many: list[Notification]) -> Message:
        settings = self.channels.settings
        return render(many[0], settings) if len(many) == 1 else render_digest(many, settings)

    def _failed(self, one: Waiting, error: DeliveryError) -> Failed:
        retry_at = self.pace.retry_at(
            error,
            attempts=one.attempts + 1,
            occurred_at=one.notification.occurred_at,
            now=self._clock(),
            random=self._random,
        )
        return Failed(error=str(error), retry_at=retry_at)

    def _settle(self, lease: Lease, *, sent: list[str] | None = None, failed: dict[str, Failed] | None = None) -> None:
        """Records it, however long the outbox is away: what was sent and is not recorded would be sent again."""
        pauses = iter(_SETTLE_PAUSES)
        while True:
            try:
                self.outbox.settle(lease, sent=sent or (), failed=failed)
            except Exception as error:
                _LOG.error("what became of a message cannot be recorded: %s", type(error).__name__)
                pause = next(pauses, _SETTLE_PAUSES[-1])
                if self._stop.is_set() and pause == _SETTLE_PAUSES[-1]:
                    raise
                # Not `_stop.wait`, which would return at once when it is to end.
                threading.Event().wait(pause)
            else:
                return

    @contextmanager
    def _kept(self, lease: Lease) -> Iterator[None]:
        """Extends the lease for as long as the block runs."""
        over = threading.Event()
        length = (lease.expires_at - self._clock()).total_seconds()

        def keep() -> None:
            while not over.wait(max(length / 3, 0.05)):
                try:
                    if not self.outbox.extend(lease):
                        _LOG.warning("another worker has the lease for %s by now", shown(lease.contact))
                        return
                except Exception as error:
                    _LOG.error("a lease cannot be extended: %s", type(error).__name__)

        keeper = threading.Thread(target=keep, name="databox-lease", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            over.set()
            keeper.join()


def _report(lease: Lease, chosen: tuple[Waiting, ...], error: DeliveryError, dead: int) -> None:
    keys = ", ".join(one.notification.key for one in chosen[:5])
    if dead:
        _LOG.error("given up for %s after %d attempts (%s): %s", lease.consumer, chosen[0].attempts + 1, keys, error)
    else:
        _LOG.warning("attempt %d for %s failed (%s): %s", chosen[0].attempts + 1, lease.consumer, keys, error)
