"""Putting notifications into the outbox, within the transaction of the fact that they are about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, func, select, text

from databox_contracts.contact_secrets import refuse_secrets
from databox_contracts.notifications import EventKind, Notification, State
from databox_contracts.registry.schema import LANES, NOTIFICATION_IDS, OUTBOX
from databox_contracts.registry.statements import inserting
from databox_contracts.rules import Severity

T = TypeVar("T")

_CHUNK: Final = 500
_FIELDS: Final = tuple(one.name for one in fields(Notification))
_LOCK: Final = 7_460_913_502_119


def lane_of(consumer: str, contact: str) -> str:
    """The name of a consumer's contact, in whose order notifications leave."""
    return hashlib.sha256(json.dumps([consumer, contact]).encode()).hexdigest()[:32]


def enqueue_in(connection: Connection, notifications: Sequence[Notification], now: datetime) -> int:
    """Adds those that are not known yet, in their order; due at once. Returns how many these were."""
    given: dict[str, Notification] = {}
    for one in notifications:
        given.setdefault(one.id, one)
    if not given:
        return 0
    for one in given.values():
        refuse_secrets(one.consumer, [one.contact])
    if connection.dialect.name == "postgresql":
        # Numbers are given before transactions end: without the lock a later notification could be seen earlier.
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    new = set(_claim(connection, sorted(given)))
    added = [one for one in given.values() if one.id in new]
    lanes = sorted({lane_of(one.consumer, one.contact) for one in added})
    for chunk in _chunks(lanes):
        statement = inserting(connection, LANES).values([{"id": lane, "due_at": now} for lane in chunk])
        due_at = func.coalesce(LANES.c.due_at, statement.excluded.due_at)
        connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_={"due_at": due_at}))
    for rows in _chunks([_row(one, now) for one in added]):
        connection.execute(OUTBOX.insert(), rows)
    return len(added)


def _claim(connection: Connection, ids: Sequence[str]) -> Iterator[str]:
    """Those of the ids that nobody had before."""
    for chunk in _chunks(ids):
        known = set(connection.execute(select(NOTIFICATION_IDS.c.id).where(NOTIFICATION_IDS.c.id.in_(chunk))).scalars())
        new = [one for one in chunk if one not in known]
        if new:
            # On PostgreSQL the lock, on SQLite the transaction keeps others from giving the same.
            connection.execute(NOTIFICATION_IDS.insert(), [{"id": one} for one in new])
            yield from new


def _row(one: Notification, now: datetime) -> dict[str, Any]:
    return {
        "id": one.id,
        "lane": lane_of(one.consumer, one.contact),
        "state": str(State.WAITING),
        "due_at": now,
        "attempts": 0,
        "notification": notification_data(one),
        "enqueued_at": now,
    }


def notification_data(one: Notification) -> dict[str, Any]:
    """A notification as JSON data."""
    return {
        "consumer": one.consumer,
        "contract": one.contract,
        "event": one.event,
        "kind": str(one.kind),
        "severity": str(one.severity),
        "contact": one.contact,
        "title": one.title,
        "occurred_at": one.occurred_at.isoformat(),
        "facts": dict(one.facts),
        "ticket": one.ticket,
        "resolves": one.resolves,
    }


def notification_of(data: Mapping[str, Any]) -> Notification:
    """The notification of its JSON data; what only a later version of this package knows of it is left out."""
    known = {name: value for name, value in data.items() if name in _FIELDS}
    return Notification(
        **{
            **known,
            "kind": EventKind(data["kind"]),
            "severity": Severity(data["severity"]),
            "occurred_at": datetime.fromisoformat(data["occurred_at"]),
        }
    )


def _chunks(items: Sequence[T]) -> Iterator[list[T]]:
    for start in range(0, len(items), _CHUNK):
        yield list(items[start : start + _CHUNK])
