"""Which batches of rows are held in quarantine, where they lie, and what became of them; never a row itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
        for what in ("id", "contract", "dataset", "run_id"):
            named(f"the batch's {what}", getattr(batch, what))
        storable("the batch's place", batch.place)
        row = {name: getattr(batch, name) for name in BATCHES.c.keys() if name != "reasons"}  # noqa: SIM118
        self._database.write(lambda connection: put(connection, BATCHES, {**row, "reasons": dict(batch.reasons)}))

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
