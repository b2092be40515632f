"""What a consumer is told, and the outbox that every message waits in until its channel has taken it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from databox_contracts.rules import Severity


class EventKind(StrEnum):
    """What a notification is about."""

    VERSION = "version"
    DEPRECATION = "deprecation"
    CHECK = "check"
    RUN = "run"
    DRIFT = "drift"


class State(StrEnum):
    """Where a notification stands: `waiting` for its first or next attempt, `sent`, or `dead` after its last."""

    WAITING = "waiting"
    SENT = "sent"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One event for one consumer, to be sent to one of its contacts.

    `event` names the event among all of that contract: the pair of versions of a change; run, asset, partition and
    check of a failure; baseline, rule and value of a drift. `contact` is a URL as declared: secrets stand in it as
    `${NAME}`, which only the channel resolves. `facts` are plain JSON data, without a value of a masked field.
    `ticket` names what a ticket is opened for (contract, rule and value), None where there is none; `resolves` says
    that it is right again.
    """

    consumer: str
    contract: str
    event: str
    kind: EventKind
    severity: Severity
    contact: str
    title: str
    occurred_at: datetime
    facts: Mapping[str, Any] = field(default_factory=dict)
    ticket: str | None = None
    resolves: bool = False

    @property
    def key(self) -> str:
        """What a receiver recognises a second copy by: the same for all contacts of the consumer, 32 hex digits."""
        return _digest(self.consumer, self.contract, self.event)

    @property
    def id(self) -> str:
        """The notification's own name: its key and its contact."""
        return _digest(self.consumer, self.contract, self.event, self.contact)


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A notification that is due, and how often it was tried before."""

    notification: Notification
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Due notifications of one consumer's contact, oldest first, which only this worker may send until `expires_at`."""

    token: str
    worker: str
    consumer: str
    contact: str
    expires_at: datetime
    items: tuple[Waiting, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An attempt that did not succeed: when to try again, None for never; `error` holds no secret."""

    error: str
    retry_at: datetime | None


class Outbox(Protocol):
    """Keeps notifications until they are sent: none is lost, and none is sent by two workers at a time.

    The notifications of one consumer's contact leave in the order they came in: while one waits for its next attempt,
    those behind it wait too; a dead one holds nobody up.
    """

    def enqueue(self, notifications: Sequence[Notification]) -> int:
        """Adds those whose `id` is not known yet, in one transaction, and returns how many these were."""
        ...

    def lease(self, worker: str, *, limit: int = 100) -> Lease | None:
        """At most `limit` due notifications of one contact, or None when nothing is due.

        A lease that ran out is as if it had never been given.
        """
        ...

    def extend(self, lease: Lease) -> bool:
        """Puts the lease's end off by its full length; False, and nothing done, when somebody else has it by now."""
        ...

    def settle(self, lease: Lease, *, sent: Sequence[str] = (), failed: Mapping[str, Failed] | None = None) -> bool:
        """Records what became of the lease's notifications, by `id`, and gives the lease back.

        Those that are in neither are due again at once, without an attempt counted. What is sent is recorded even when
        the lease has run out meanwhile, and False returned then.
        """
        ...

    def dead(self, *, limit: int = 1000) -> Sequence[tuple[Notification, str]]:
        """Those given up, oldest first, each with its last error."""
        ...

    def retry(self, ids: Sequence[str]) -> int:
        """Makes dead ones due again, with their attempts at zero, and returns how many these were."""
        ...

    def counts(self) -> Mapping[State, int]:
        """How many notifications are in each state; every state is there."""
        ...


class TicketStore(Protocol):
    """Remembers the tickets that are open, by the contact as declared (no secret in it) and the ticket's own name."""

    def find(self, contact: str, ticket: str) -> str | None:
        """The receiver's id of the open ticket, None where none is known."""
        ...

    def keep(self, contact: str, ticket: str, id: str) -> str:
        """Remembers that it was opened under this id, and returns the one that is remembered.

        Where another worker's is remembered already, that stays.
        """
        ...

    def drop(self, contact: str, ticket: str) -> None:
        """Forgets a ticket that was closed; one that is not known is no error."""
        ...
