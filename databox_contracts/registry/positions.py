"""How far something was read, moved on in the same transaction as the notifications of what was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Final

from sqlalchemy import Connection, select

from databox_contracts.notifications import Notification
from databox_contracts.registry.database import Database
from databox_contracts.registry.enqueuing import enqueue_in
from databox_contracts.registry.schema import POSITIONS, json_text
from databox_contracts.registry.statements import insert_missing, put
from databox_contracts.registry.texts import named


class Whatever(Enum):
    """The only value that stands for any position, none included."""

    IT_IS = "whatever it is"


WHATEVER: Final = Whatever.IT_IS


class Positions:
    """Read positions by name, each any JSON data but null."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def position(self, name: str) -> Any:
        """Where reading stands, None where it has not begun."""
        query = select(POSITIONS.c.value).where(POSITIONS.c.name == name)
        return self._database.read(lambda connection: connection.execute(query).scalar())

    def advance(
        self, name: str, value: Any, *, notifications: Sequence[Notification] = (), replacing: Any = WHATEVER
    ) -> bool:
        """Move on to that value and put the notifications into the outbox, both or neither.

        False, and nothing done, when the position is not `replacing` (None: not begun): another reader moved it, and
        elsewhere than to that value.
        """
        named("the position's name", name)
        now = self._clock()
        wanted = json_text(value)

        def work(connection: Connection) -> bool:
            # So that there is a row to lock.
            insert_missing(connection, POSITIONS, [{"name": name, "value": None, "updated_at": now}])
            query = select(POSITIONS.c.value).where(POSITIONS.c.name == name).with_for_update()
            found = connection.execute(query).scalar()
            is_repeated = json_text(found) == wanted
            if replacing is not WHATEVER and json_text(found) != json_text(replacing) and not is_repeated:
                return False
            put(connection, POSITIONS, {"name": name, "value": value, "updated_at": now})
            enqueue_in(connection, notifications, now)
            return True

        return self._database.write(work)
