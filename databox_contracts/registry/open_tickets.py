"""Which tickets are open, and under which ids their receivers know them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, delete, select

from databox_contracts.registry.database import Database
from databox_contracts.registry.schema import TICKETS
from databox_contracts.registry.statements import insert_missing


class SqlTicketStore:
    """A `TicketStore` that all hosts share. A contact is not in it, only a digest of contact and ticket."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def find(self, contact: str, ticket: str) -> str | None:
        """As `TicketStore.find`."""
        return self._database.read(lambda connection: _known(connection, _place(contact, ticket)))

    def keep(self, contact: str, ticket: str, id: str) -> str:
        """As `TicketStore.keep`."""
        place = _place(contact, ticket)
        row = {"place": place, "ticket": ticket, "receiver_id": id, "opened_at": self._clock()}

        def work(connection: Connection) -> str:
            while True:
                insert_missing(connection, TICKETS, [row])
                known = _known(connection, place)
                # Another worker may have dropped the one that was in the way.
                if known is not None:
                    return known

        return self._database.write(work)

    def drop(self, contact: str, ticket: str) -> None:
        """As `TicketStore.drop`."""
        place = _place(contact, ticket)
        self._database.write(lambda connection: connection.execute(delete(TICKETS).where(TICKETS.c.place == place)))


def _known(connection: Connection, place: str) -> str | None:
    return connection.execute(select(TICKETS.c.receiver_id).where(TICKETS.c.place == place)).scalar()


def _place(contact: str, ticket: str) -> str:
    # A contact may be longer than what a key may be.
    return hashlib.sha256(json.dumps([contact, ticket]).encode()).hexdigest()
