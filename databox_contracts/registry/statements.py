"""Statements that the two databases spell differently, and rows that several parts of the registry write."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from databox_contracts.registry.records import AuditEntry
from databox_contracts.registry.schema import AUDIT
from databox_contracts.registry.texts import named


def inserting(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An insert that may say `on_conflict_do_nothing` and `on_conflict_do_update`."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def insert_missing(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose keys are not there yet."""
    if rows:
        connection.execute(inserting(connection, table).on_conflict_do_nothing(), list(rows))


def put(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Insert the row, or replace the one with its primary key."""
    keys = [column.name for column in table.primary_key]
    statement = inserting(connection, table).values(**row)
    rest = {name: statement.excluded[name] for name in row if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=rest))


class Scribe:
    """Writes down who did what: once, however often its transaction is repeated."""

    def __init__(self, who: str, clock: Callable[[], datetime]) -> None:
        self.who = named("the name of who does it", who)
        self.at = clock()
        self._mark = uuid4().hex

    def note(self, connection: Connection, action: str, subject: str, **details: Any) -> None:
        """One entry; within a call there is one of each action, subject and version."""
        entry = json.dumps([action, subject, details.get("version")])
        row = {
            "id": f"{self._mark}:{hashlib.sha256(entry.encode()).hexdigest()[:16]}",
            "at": self.at,
            "who": self.who,
            "action": action,
            "subject": subject,
            "details": {name: value for name, value in details.items() if value is not None},
        }
        insert_missing(connection, AUDIT, [row])

    @property
    def mark(self) -> str:
        """What tells this call from all others."""
        return self._mark


def audit_entry(row: Any) -> AuditEntry:
    """An entry from its row."""
    return AuditEntry(at=row.at, who=row.who, action=row.action, subject=row.subject, details=row.details)
