"""Plans of deletion as they are kept: steps that are ticked off, each once, with who did it and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, update

from databox_contracts.errors import RegistryError
from databox_contracts.registry.database import Database
from databox_contracts.registry.schema import PLANS, STEPS
from databox_contracts.registry.statements import Scribe, insert_missing
from databox_contracts.registry.texts import named, storable


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """One thing to be done; `done_at` is None while it is not. `facts` are plain JSON data."""

    number: int
    title: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    done_at: datetime | None = None
    done_by: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """What has to be deleted where. `facts` are plain JSON data, without a value of a masked field."""

    id: str
    contract_id: str
    field: str
    made_at: datetime
    made_by: str
    steps: tuple[StoredStep, ...]
    facts: Mapping[str, Any]

    @property
    def is_done(self) -> bool:
        """Whether no step is left."""
        return all(step.done_at is not None for step in self.steps)


class DeletionPlans:
    """All plans; what happened to one is in the registry's audit trail under its id."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def save(self, plan: StoredPlan) -> StoredPlan:
        """Store a new plan; a second time it changes nothing. Raises `RegistryError` for another plan of that id."""
        named("the plan's id", plan.id)
        named("the plan's contract", plan.contract_id)
        scribe = Scribe(plan.made_by, lambda: plan.made_at)
        row = {
            "id": plan.id,
            "contract": plan.contract_id,
            "field": storable("the plan's field", plan.field),
            "facts": dict(plan.facts),
            "made_at": plan.made_at,
            "made_by": plan.made_by,
        }
        steps = [
            {
                "plan": plan.id,
                "number": step.number,
                "title": storable("a step's title", step.title),
                "facts": dict(step.facts),
                "done_at": None,
                "done_by": None,
                "note": "",
            }
            for step in plan.steps
        ]

        def work(connection: Connection) -> StoredPlan:
            found = _plans(connection, plan.id)
            if not found:
                insert_missing(connection, PLANS, [row])
                insert_missing(connection, STEPS, steps)
                scribe.note(connection, "plan deletion", plan.id, contract=plan.contract_id, steps=len(steps))
                found = _plans(connection, plan.id)
            if (found[0].contract_id, found[0].field, dict(found[0].facts)) != (
                plan.contract_id,
                plan.field,
                row["facts"],
            ):
                raise RegistryError(f"there is another deletion plan {plan.id!r}", hint="Give this one its own id.")
            return found[0]

        return self._database.write(work)

    def tick(self, plan_id: str, number: int, *, by: str, note: str = "") -> StoredPlan:
        """Note that a step is done; the first one who says so stays. Raises `RegistryError` for an unknown step."""
        storable("the note", note)
        scribe = Scribe(by, self._clock)

        def work(connection: Connection) -> StoredPlan:
            step = (STEPS.c.plan == plan_id) & (STEPS.c.number == number)
            done = connection.execute(
                update(STEPS)
                .where(step, STEPS.c.done_at.is_(None))
                .values(done_at=scribe.at, done_by=scribe.who, note=note)
            )
            if done.rowcount:
                scribe.note(connection, f"tick step {number}", plan_id, note=note or None)
            found = _plans(connection, plan_id)
            if not found:
                raise RegistryError(f"there is no deletion plan {plan_id!r}", hint="List the plans there are.")
            if not any(one.number == number for one in found[0].steps):
                raise RegistryError(
                    f"the deletion plan {plan_id} has no step {number}",
                    hint=f"It has {', '.join(str(one.number) for one in found[0].steps) or 'none'}.",
                )
            return found[0]

        return self._database.write(work)

    def plan(self, plan_id: str) -> StoredPlan | None:
        """The plan of that id, or None."""
        found = self._database.read(lambda connection: _plans(connection, plan_id))
        return found[0] if found else None

    def plans(self) -> list[StoredPlan]:
        """All plans, oldest first."""
        return self._database.read(lambda connection: _plans(connection, None))


def _plans(connection: Connection, plan_id: str | None) -> list[StoredPlan]:
    plans = select(PLANS).order_by(PLANS.c.made_at, PLANS.c.id)
    steps = select(STEPS).order_by(STEPS.c.plan, STEPS.c.number)
    if plan_id is not None:
        plans, steps = plans.where(PLANS.c.id == plan_id), steps.where(STEPS.c.plan == plan_id)
    by_plan: dict[str, list[StoredStep]] = {}
    for row in connection.execute(steps):
        by_plan.setdefault(row.plan, []).append(_step(row))
    return [_plan(row, by_plan.get(row.id, ())) for row in connection.execute(plans)]


def _plan(row: Any, steps: Sequence[StoredStep]) -> StoredPlan:
    return StoredPlan(
        id=row.id,
        contract_id=row.contract,
        field=row.field,
        made_at=row.made_at,
        made_by=row.made_by,
        steps=tuple(steps),
        facts=row.facts,
    )


def _step(row: Any) -> StoredStep:
    return StoredStep(
        number=row.number, title=row.title, facts=row.facts, done_at=row.done_at, done_by=row.done_by, note=row.note
    )
