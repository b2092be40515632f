"""Which batches of rows are held in quarantine, where they lie, and what became of them; never a row itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, update

from databox_contracts.registry.database import Database
from databox_contracts.registry.schema import BATCHES
from databox_contracts.registry.statements import put
from databox_contracts.registry.texts import named, storable


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """A batch of held rows. `place` is the table's, `reasons` count rule ids; `outcome` is None while it is held."""

    id: str
    contract: str
    version: str
    dataset: str
    place: str
    run_id: str
    held: int
    held_at: datetime
    reasons: Mapping[str, int] = field(default_factory=dict)
    closed_at: datetime | None = None
    outcome: str | None = None


class HeldBatches:
    """The batches of all tables."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def record(self, batch: StoredBatch) -> None:
        """Store a batch, in place of the one with its id: a repeated run holds its rows once."""
        row = _row(batch)
        self._database.write(lambda connection: put(connection, BATCHES, row))

    def settle(self, place: str, held: Sequence[StoredBatch], *, outcome: str) -> list[str]:
        """Store the batches that a table's place holds now; those it held before and holds no more end with `outcome`.

        Gives the ids of the latter. All of it or nothing is stored.
        """
        rows = [_row(batch) for batch in held]
        ids = {batch.id for batch in held}
        now = self._clock()

        def work(connection: Connection) -> list[str]:
            is_held = (BATCHES.c.place == place) & BATCHES.c.outcome.is_(None)
            before = connection.execute(select(BATCHES.c.id).where(is_held).order_by(BATCHES.c.held_at, BATCHES.c.id))
            gone = [id_ for id_ in before.scalars() if id_ not in ids]
            for id_ in gone:
                ended = update(BATCHES).where(BATCHES.c.id == id_)
                connection.execute(ended.values(outcome=outcome, closed_at=now))
            for row in rows:
                put(connection, BATCHES, row)
            return gone

        return self._database.write(work)

    def close(self, id_: str, outcome: str) -> bool:
        """Note what became of it (`released`, `superseded`, `removed`, say); False where no such batch is held."""
        now = self._clock()

        def work(connection: Connection) -> bool:
            is_held = (BATCHES.c.id == id_) & BATCHES.c.outcome.is_(None)
            done = connection.execute(update(BATCHES).where(is_held).values(outcome=outcome, closed_at=now))
            return bool(done.rowcount)

        return self._database.write(work)

    def batches(self, contract: str | None = None, *, closed: bool = False) -> list[StoredBatch]:
        """The batches that are held (with `closed` the others too), of one contract or of all, oldest first."""
        query = select(BATCHES).order_by(BATCHES.c.held_at, BATCHES.c.id)
        if contract is not None:
            query = query.where(BATCHES.c.contract == contract)
        if not closed:
            query = query.where(BATCHES.c.outcome.is_(None))
        rows: Any = self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [StoredBatch(**row) for row in rows]


def _row(batch: StoredBatch) -> dict[str, Any]:
    for what in ("id", "contract", "dataset", "run_id"):
        named(f"the batch's {what}", getattr(batch, what))
    storable("the batch's place", batch.place)
    row = {name: getattr(batch, name) for name in BATCHES.c.keys() if name != "reasons"}  # noqa: SIM118
    return {**row, "reasons": dict(batch.reasons)}
