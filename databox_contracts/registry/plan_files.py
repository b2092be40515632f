"""A deletion plan in a file of its own, with everything that was done to it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from databox_contracts.errors import DataboxError
from databox_contracts.registry.deletion_plans import StoredPlan, StoredStep
from databox_contracts.registry.records import AuditEntry
from databox_contracts.registry.tracing import ticked

_FORMAT: Final = "databox-deletion-plan/1"


class PlanStore(Protocol):
    """Keeps deletion plans; the registry's `DeletionPlans` is one, over its database."""

    def save(self, plan: StoredPlan) -> StoredPlan:
        """Store a new plan."""
        ...

    def tick(self, plan_id: str, number: int, *, by: str, note: str = "") -> StoredPlan:
        """Note that a step is done; the first one who says so stays."""
        ...

    def plan(self, plan_id: str) -> StoredPlan | None:
        """The plan of that id, or None."""
        ...

    def plans(self) -> Sequence[StoredPlan]:
        """All plans, oldest first."""
        ...


class FilePlanStore:
    """A `PlanStore` of one plan in a JSON file, which only its owner may read; safe for several processes.

    The file is replaced by one rename. Its `audit` grows by an entry for each thing that is done, and loses none.
    """

    def __init__(self, path: str | Path, clock: Callable[[], datetime]) -> None:
        self.path = Path(path)
        self._clock = clock

    def save(self, plan: StoredPlan) -> StoredPlan:
        """As `PlanStore.save`. Raises `DataboxError` where there is a file: it may hold another plan."""
        with self._locked():
            if self.path.exists():
                raise DataboxError(
                    f"there is a file {str(self.path)!r} already", hint="Name another one for this plan."
                )
            made = AuditEntry(
                at=plan.made_at,
                who=plan.made_by,
                action="plan deletion",
                subject=plan.id,
                details={"steps": len(plan.steps)},
            )
            self._write(plan, [made])
        return plan

    def tick(self, plan_id: str, number: int, *, by: str, note: str = "") -> StoredPlan:
        """As `PlanStore.tick`. Raises `DataboxError` for another plan's id, and for a step that it does not have."""
        with self._locked():
            plan, audit = self._read()
            if plan_id != plan.id:
                raise DataboxError(
                    f"{str(self.path)!r} holds the plan {plan.id}, not {plan_id}", hint="Name its own file."
                )
            at = self._clock()
            after = ticked(plan, number, by=by, at=at, note=note)
            if after != plan:
                details: Mapping[str, Any] = {"note": note} if note else {}
                audit = [
                    *audit,
                    AuditEntry(at=at, who=by, action=f"tick step {number}", subject=plan.id, details=details),
                ]
                self._write(after, audit)
        return after

    def plan(self, plan_id: str) -> StoredPlan | None:
        """As `PlanStore.plan`."""
        found, _ = self._read()
        return found if found.id == plan_id else None

    def plans(self) -> Sequence[StoredPlan]:
        """The one plan. Raises `DataboxError` where there is no such file, or something else in it."""
        return [self._read()[0]]

    def audit(self) -> Sequence[AuditEntry]:
        """All that was done, oldest first."""
        return self._read()[1]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            with open(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600), "a") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise self._unusable(error.strerror or type(error).__name__) from error

    def _read(self) -> tuple[StoredPlan, list[AuditEntry]]:
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if not isinstance(data, dict) or data.get("format") != _FORMAT:
                raise self._unusable("it holds no deletion plan")
            return _plan(data["plan"]), [_entry(entry) for entry in data["audit"]]
        except OSError as error:
            raise self._unusable(error.strerror or type(error).__name__) from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._unusable("it holds no deletion plan, or a damaged one") from None

    def _write(self, plan: StoredPlan, audit: Sequence[AuditEntry]) -> None:
        data = {"format": _FORMAT, "plan": plan_facts(plan), "audit": [entry.to_dict() for entry in audit]}
        partial = self.path.with_name(f".{self.path.name}.part")
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as writing:
            writing.write(json.dumps(data, ensure_ascii=False, indent=1))
            writing.flush()
            os.fsync(writing.fileno())
        os.replace(partial, self.path)

    def _unusable(self, reason: str) -> DataboxError:
        return DataboxError(f"cannot use the plan {str(self.path)!r}: {reason}", hint="Name a file that `trace` wrote.")


def plan_facts(plan: StoredPlan) -> dict[str, Any]:
    """The plan as JSON."""
    return {
        "id": plan.id,
        "contract": plan.contract_id,
        "field": plan.field,
        "made_at": plan.made_at.isoformat(),
        "made_by": plan.made_by,
        "done": plan.is_done,
        "facts": dict(plan.facts),
        "steps": [
            {**asdict(step), "done_at": step.done_at.isoformat() if step.done_at is not None else None}
            for step in plan.steps
        ],
    }


def _plan(data: Mapping[str, Any]) -> StoredPlan:
    return StoredPlan(
        id=_text(data["id"]),
        contract_id=_text(data["contract"]),
        field=_text(data["field"]),
        made_at=datetime.fromisoformat(data["made_at"]),
        made_by=_text(data["made_by"]),
        steps=tuple(_step(step) for step in data["steps"]),
        facts=dict(data["facts"]),
    )


def _step(data: Mapping[str, Any]) -> StoredStep:
    done_at = data["done_at"]
    return StoredStep(
        number=int(data["number"]),
        title=_text(data["title"]),
        facts=dict(data["facts"]),
        done_at=datetime.fromisoformat(done_at) if done_at is not None else None,
        done_by=data["done_by"],
        note=_text(data["note"]),
    )


def _entry(data: Mapping[str, Any]) -> AuditEntry:
    return AuditEntry(
        at=datetime.fromisoformat(data["at"]),
        who=_text(data["who"]),
        action=_text(data["action"]),
        subject=_text(data["subject"]),
        details=dict(data["details"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
