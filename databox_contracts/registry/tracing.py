"""Where personal data went: from its fields to everybody who holds them, and what has to be deleted where."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Field
from databox_contracts.registry.deletion_plans import StoredPlan, StoredStep
from databox_contracts.registry.impact import Dependencies, Kind, Reached, order
from databox_contracts.registry.places import Place, Places

KEY_VARIABLE: Final = "DATABOX_SUBJECT_KEY"
"""The environment's variable with the secret that subjects are digested with."""

_SHORTEST_KEY: Final = 16


@dataclass(frozen=True)
class Holder:
    """A dataset, an asset or a consumer that holds traced fields; `held` has each field, and what it is called there.

    No name means that it is held under its own name, or nobody knows under which.
    """

    reached: Reached
    held: tuple[tuple[str, tuple[str, ...]], ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {**self.reached.to_dict(), "held": [{"field": field, "as": list(names)} for field, names in self.held]}


@dataclass(frozen=True)
class Excluded:
    """Who was reached and left out, and why."""

    name: str
    contract: str | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"name": self.name, "contract": self.contract, "reason": self.reason}


@dataclass(frozen=True)
class Trace:
    """The traced fields, and everybody who holds one of them, the nearest first."""

    target: str
    fields: tuple[str, ...]
    holders: tuple[Holder, ...]
    purpose: str | None = None
    excluded: tuple[Excluded, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "target": self.target,
            "purpose": self.purpose,
            "fields": list(self.fields),
            "holders": [holder.to_dict() for holder in self.holders],
            "excluded": [one.to_dict() for one in self.excluded],
        }


EVERYTHING: Final = "*"
"""The target of a trace of all personal data of all contracts."""


def trace(dependencies: Dependencies, target: str | None = None, *, purpose: str | None = None) -> Trace:
    """Everybody who holds a field, or the personal data of a dataset or a contract, or all that there is (None).

    Personal is what must not be shown: PII, under a `pii_class`, or classified as anything but public or internal. With
    `purpose`, those who use the data for something else only are left out, and told; whoever says no purpose stays.
    Raises `UnknownPlaceError` for a target that is not there, and `DataboxError` where it has no personal data.
    """
    places = dependencies.places
    traced = _traced(places, target)
    if not traced:
        what = f"{target!r} has" if target is not None else "the contracts have"
        raise DataboxError(f"{what} no field with personal data", hint="Mark fields with `pii: true`, or name a field.")
    found: dict[tuple[Kind, str, str | None], Holder] = {}
    for place in traced:
        for one in (_source(places, place), *dependencies.impact(place).reached):
            key = (one.kind, one.name, one.contract)
            held = ((str(place), one.fields if one.distance else (place.field or "",)),)
            if key in found:
                known = found[key]
                nearest = min(known.reached, one, key=lambda each: each.distance)
                found[key] = Holder(nearest, (*known.held, *held))
            else:
                found[key] = Holder(one, held)
    holders = sorted(found.values(), key=lambda holder: order(holder.reached))
    kept, excluded = [], []
    for holder in holders:
        reason = _other_purpose(holder.reached, dependencies, purpose)
        if reason is None:
            kept.append(holder)
        else:
            excluded.append(Excluded(holder.reached.name, holder.reached.contract, reason))
    fields = tuple(str(place) for place in traced)
    return Trace(target or EVERYTHING, fields, tuple(kept), purpose, tuple(excluded))


def _traced(places: Places, target: str | None) -> list[Place]:
    if target is None:
        return [place for contract in places for place in personal_fields(contract)]
    place = places.find(target)
    if place.field is not None:
        return [place]
    of_contract = personal_fields(places.versions(place.contract)[0])
    return [one for one in of_contract if place.dataset in (None, one.dataset)]


def personal_fields(contract: Contract) -> Iterator[Place]:
    """The outermost fields whose values must not be shown, in order."""
    for dataset in contract.datasets:
        for path in _personal(dataset.fields, "", contract.governance.pii_class):
            yield Place(contract.id, dataset.name, path)


def _personal(fields: Sequence[Field], before: str, pii_class: str | None) -> Iterator[str]:
    for field in fields:
        path = f"{before}{field.name}"
        if field.conceals(pii_class) or any(part.conceals(pii_class) for part in _others(field)):
            yield path
        else:
            yield from _personal(_objects(field), f"{path}.", pii_class)


def _others(field: Field) -> Iterator[Field]:
    """The parts of arrays and maps that have no name of their own."""
    item = field.item
    while item is not None:
        yield item
        item = item.item
    yield from (part for part in (field.key, field.value) if part is not None)


def _objects(field: Field) -> Sequence[Field]:
    found = list(field.fields)
    for part in _others(field):
        found += part.fields
    return found


def _source(places: Places, place: Place) -> Reached:
    contract = places.versions(place.contract)[0]
    name = f"{place.contract}.{place.dataset}"
    purposes = contract.governance.purposes
    return Reached(
        Kind.DATASET,
        name,
        0,
        (name,),
        owner=contract.owning_team,
        contract=contract.id,
        version=contract.version,
        purpose=", ".join(purposes) or None,
    )


def _other_purpose(one: Reached, dependencies: Dependencies, purpose: str | None) -> str | None:
    """Why whoever holds the data does not do so for that purpose; None where it does, or where nobody knows."""
    if purpose is None:
        return None
    used: Sequence[str]
    match one.kind:
        case Kind.CONSUMER:
            used = (one.purpose,) if one.purpose is not None else ()
        case Kind.DATASET if one.contract is not None:
            used = dependencies.places.versions(one.contract)[0].governance.purposes
        case _:
            maker = dependencies.maker(one.name)
            used = (maker.purpose,) if maker is not None and maker.purpose is not None else ()
    if not used or purpose in used:
        return None
    return f"it is used for {' and '.join(used)} only"


# --- the plan ---------------------------------------------------------------------------------------------------------


def deletion_plan(
    traced: Trace, *, plan_id: str, by: str, at: datetime, subject: str | None = None, key: str | None = None
) -> StoredPlan:
    """What has to be done, whoever holds the data nearest to its source first, so that nothing is made again of it.

    The subject's identifier is personal data: with a `key` only its keyed digest (HMAC-SHA256) is in the plan, and
    without one nothing of it. Raises `DataboxError` for a key of fewer than 16 bytes.
    """
    steps = tuple(
        StoredStep(number=number, title=_title(holder, traced.purpose), facts=holder.to_dict())
        for number, holder in enumerate(traced.holders, 1)
    )
    facts: dict[str, Any] = {
        "fields": list(traced.fields),
        "purpose": traced.purpose,
        "subject_digest": subject_digest(subject, key) if subject is not None and key else None,
        "excluded": [one.to_dict() for one in traced.excluded],
    }
    contracts = list(
        dict.fromkeys(str(holder.reached.contract) for holder in traced.holders if not holder.reached.distance)
    )
    contract = contracts[0] if len(contracts) == 1 else EVERYTHING
    return StoredPlan(
        id=plan_id, contract_id=contract, field=traced.target, made_at=at, made_by=by, steps=steps, facts=facts
    )


def subject_digest(subject: str, key: str) -> str:
    """The keyed digest of a subject's identifier, blanks around it removed."""
    if len(key.encode()) < _SHORTEST_KEY:
        raise DataboxError(
            f"the key in ${KEY_VARIABLE} is too short",
            hint=f"Give it at least {_SHORTEST_KEY} bytes that nobody can guess.",
        )
    return f"hmac-sha256:{hmac.new(key.encode(), subject.strip().encode(), hashlib.sha256).hexdigest()}"


def is_about(plan: StoredPlan, subject: str, key: str | None) -> bool | None:
    """Whether the plan is about that subject; None where it holds no digest, or there is no key."""
    kept = plan.facts.get("subject_digest")
    if not isinstance(kept, str) or not key:
        return None
    return hmac.compare_digest(kept, subject_digest(subject, key))


def ticked(plan: StoredPlan, number: int, *, by: str, at: datetime, note: str = "") -> StoredPlan:
    """The plan with the step done; who was first stays. Raises `DataboxError` for a step that it does not have."""
    if not any(step.number == number for step in plan.steps):
        numbers = ", ".join(str(step.number) for step in plan.steps) or "none"
        raise DataboxError(f"the deletion plan {plan.id} has no step {number}", hint=f"It has {numbers}.")
    steps = tuple(
        replace(step, done_at=at, done_by=by, note=note) if step.number == number and step.done_at is None else step
        for step in plan.steps
    )
    return replace(plan, steps=steps)


def _title(holder: Holder, purpose: str | None) -> str:
    one = holder.reached
    names = dict.fromkeys(name for field, names in holder.held for name in (names or (field,)))
    what = f"what is there for {purpose}" if purpose is not None else "it"
    owner = f"{one.owner}: " if one.owner is not None and one.owner != one.name else ""
    where = one.name if one.kind is not Kind.CONSUMER else f"what {one.name} holds of {one.contract}"
    return f"{owner}delete {what} from {where} ({', '.join(names)})"


def progress(plan: StoredPlan) -> Mapping[str, int]:
    """How many steps there are, and how many are done."""
    return {"steps": len(plan.steps), "done": sum(step.done_at is not None for step in plan.steps)}
