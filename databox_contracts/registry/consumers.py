"""Who reads what: every declaration of consumers, wherever it was made, as one ordered list without repetitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from databox_contracts.declarations import IN_CODE, Declaration, declared_in
from databox_contracts.errors import Level, UnknownPlaceError
from databox_contracts.evolution.affected import trail_of
from databox_contracts.model import Consumer, Contract
from databox_contracts.registry.places import Place, Places


class ProblemKind(StrEnum):
    """What can be wrong with a consumer."""

    UNKNOWN = "unknown_producer"
    CONFLICT = "conflicting_declarations"
    DATASET = "unknown_dataset"
    VERSION = "version_not_allowed"
    FIELD = "field_not_promised"
    PURPOSE = "purpose_not_allowed"
    TEAM = "team_may_not_read"
    CLOSED = "list_is_closed"
    SECRET = "secret_in_contact"


@dataclass(frozen=True)
class Problem:
    """One reason why a consumer may not read what it declares, and the way out.

    `version` is that of the producer, where the matter depends on it. A warning keeps nobody out.
    """

    kind: ProblemKind
    producer: str
    consumer: str
    message: str
    hint: str
    place: str
    version: str | None = None
    field: str | None = None
    level: Level = Level.ERROR

    def __str__(self) -> str:
        return f"{self.place}: {self.level}: {self.message} ({self.hint})"

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kind": str(self.kind),
            "level": str(self.level),
            "producer": self.producer,
            "version": self.version,
            "consumer": self.consumer,
            "field": self.field,
            "message": self.message,
            "hint": self.hint,
            "place": self.place,
        }


@dataclass(frozen=True)
class Reading:
    """One consumer of one contract, with all that was said of it; `places` are where, `declarations` by whom."""

    contract: str
    consumer: Consumer
    places: tuple[str, ...]
    declarations: tuple[Declaration, ...] = field(default=(), compare=False, repr=False)

    @property
    def place(self) -> str:
        """The first of the places."""
        return self.places[0]

    def each(self) -> Iterator[Reading]:
        """What each declaration says by itself, with what only another one says of the consumer."""
        for one in self.declarations:
            own = {key: getattr(one.consumer, key) for key in _SINGLE if getattr(one.consumer, key) is not None}
            scope = {"datasets": one.consumer.datasets, "fields": one.consumer.fields}
            yield Reading(self.contract, self.consumer.model_copy(update=own | scope), (one.place,))


@dataclass(frozen=True)
class Resolved:
    """All consumers of a set of contracts: by contract in their order, then as declared. `problems` keep some out."""

    readings: tuple[Reading, ...]
    problems: tuple[Problem, ...] = ()

    def of(self, contract_id: str) -> list[Consumer]:
        """The consumers of a contract."""
        return [reading.consumer for reading in self.readings if reading.contract == contract_id]

    def by_contract(self) -> dict[str, list[Consumer]]:
        """The consumers of each contract that has any."""
        found: dict[str, list[Consumer]] = {}
        for reading in self.readings:
            found.setdefault(reading.contract, []).append(reading.consumer)
        return found


def resolve(contracts: Iterable[Contract], declarations: Iterable[Declaration] = ()) -> Resolved:
    """The consumers that the contracts and the declarations name.

    Of a contract and a name there is one consumer, whoever declared it how often. What only one declaration says
    holds; lists are joined; a digest that one wants is sent. Where two say differently who owns it, which versions it
    pins, for what it uses the data, how critical it is or from which severity on it is told, that is a problem, and the
    first holds. One that names no datasets or fields reads them all, but in code, where fields cannot be named.
    Of several versions of a contract, the newest says who its consumers are.
    """
    places = contracts if isinstance(contracts, Places) else Places(contracts)
    problems: list[Problem] = []
    said: dict[tuple[str, str], list[tuple[Declaration, Place]]] = {}
    for declaration in (*_of_contracts(places), *declarations):
        try:
            place = places.find(declaration.producer)
        except UnknownPlaceError as error:
            problems.append(_unknown(declaration, error))
            continue
        said.setdefault((place.contract, declaration.consumer.name), []).append((declaration, place))
    order = {contract.id: at for at, contract in enumerate(places)}
    readings = [
        _merged(contract, [_placed(one, place) for one, place in found], places, problems)
        for (contract, _), found in said.items()
    ]
    readings.sort(key=lambda reading: order[reading.contract])
    return Resolved(tuple(readings), tuple(problems))


def _of_contracts(places: Places) -> Iterator[Declaration]:
    for newest in places:
        known: set[str] = set()
        for version in places.versions(newest.id):
            found = list(declared_in([version]))
            yield from (one for one in found if one.consumer.name not in known)
            known.update(one.consumer.name for one in found)


def _unknown(declaration: Declaration, error: UnknownPlaceError) -> Problem:
    name = declaration.consumer.name
    return Problem(
        ProblemKind.UNKNOWN,
        declaration.producer,
        name,
        f"{name} reads {declaration.producer!r}: {error.message}",
        error.hint or "name a contract",
        declaration.place,
    )


def _placed(declaration: Declaration, place: Place) -> Declaration:
    """The declaration with the dataset and the field that it names behind the contract among its own."""
    update: dict[str, Any] = {}
    if place.dataset is not None:
        update["datasets"] = tuple(dict.fromkeys((*declaration.consumer.datasets, place.dataset)))
    if place.field is not None:
        update["fields"] = tuple(dict.fromkeys((*declaration.consumer.fields, f"{place.dataset}.{place.field}")))
    if not update:
        return declaration
    consumer = declaration.consumer.model_copy(update=update)
    return Declaration(declaration.producer, consumer, declaration.place, declaration.origin)


# --- merging ----------------------------------------------------------------------------------------------------------

_SINGLE: Final = ("owner", "versions", "purpose", "justification", "criticality", "severity")


def _merged(contract: str, said: Sequence[Declaration], places: Places, problems: list[Problem]) -> Reading:
    first = said[0]
    consumers = [one.consumer for one in said]
    facts: dict[str, Any] = {}
    for key in _SINGLE:
        values = [(getattr(one.consumer, key), one.place) for one in said if getattr(one.consumer, key) is not None]
        if not values:
            continue
        facts[key] = values[0][0]
        for value, place in values[1:]:
            if value != values[0][0]:
                problems.append(_conflict(contract, first.consumer.name, key, values[0], (value, place)))
    contacts = [one for consumer in consumers for one in (consumer.contact, *consumer.contacts) if one]
    facts["contact"] = contacts[0] if contacts else None
    facts["contacts"] = tuple(one for one in dict.fromkeys(contacts) if one != facts["contact"])
    facts["assets"] = _joined(consumer.assets for consumer in consumers)
    facts["digest"] = any(consumer.digest for consumer in consumers)
    facts["datasets"], facts["fields"] = _scope(contract, said, places)
    consumer = first.consumer if len(said) == 1 else Consumer(first.consumer.name, **facts)
    return Reading(contract, consumer, _joined([one.place] for one in said), tuple(said))


def _conflict(contract: str, name: str, key: str, kept: tuple[Any, str], other: tuple[Any, str]) -> Problem:
    return Problem(
        ProblemKind.CONFLICT,
        contract,
        name,
        f"{name} is declared as a consumer of {contract} with the {key} {str(other[0])!r} here and {str(kept[0])!r} "
        f"in {kept[1]}",
        "say the same in both places, remove one of them, or give one another name",
        other[1],
    )


def _scope(contract: str, said: Sequence[Declaration], places: Places) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The datasets and the fields that any of the declarations reads."""
    stated = [one.consumer for one in said if one.origin != IN_CODE or one.consumer.fields]
    scopes = [one.consumer for one in said if _adds(one.consumer, stated)]
    if any(not one.datasets and not one.fields for one in scopes):
        return (), ()
    if len({frozenset(one.datasets) for one in scopes}) == 1:
        fields = () if any(not one.fields for one in scopes) else _joined(one.fields for one in scopes)
        return scopes[0].datasets, fields
    datasets = _joined(_datasets(one, contract, places) for one in scopes)
    return datasets, _joined(_fields(one, contract, places) for one in scopes)


def _adds(consumer: Consumer, stated: Sequence[Consumer]) -> bool:
    """Whether it is among those that say what they read, or reads a dataset that these do not tell of."""
    if consumer in stated or not stated:
        return True
    if not consumer.datasets:
        return False
    return not any(not one.datasets or set(consumer.datasets) <= set(one.datasets) for one in stated)


def _datasets(consumer: Consumer, contract: str, places: Places) -> list[str]:
    if consumer.datasets:
        return list(consumer.datasets)
    return [dataset.name for dataset in places.versions(contract)[0].datasets]


def _fields(consumer: Consumer, contract: str, places: Places) -> list[str]:
    """The fields with their datasets before them; a dataset alone is all of its fields."""
    datasets = _datasets(consumer, contract, places)
    if not consumer.fields:
        return datasets
    found: list[str] = []
    for name in consumer.fields:
        owners = [
            one.name
            for one in places.versions(contract)[0].datasets
            if (one.name in datasets or one.table_name in datasets) and trail_of(one, name)
        ]
        found += [f"{owner}.{name}" for owner in owners] or [name]
    return found


def _joined(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in lists for name in names))
