"""From a dataset to the checks it asks for: every rule bound to its place and its id, grouped by what it looks at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, TypeAlias

from databox_contracts.datatypes import DataType, Family
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import (
    Completeness,
    Dimension,
    DuplicateCount,
    ForeignKey,
    Freshness,
    HasType,
    Latency,
    MaxLength,
    Present,
    PrimaryKey,
    Query,
    Required,
    RowCount,
    Rule,
    Scope,
    Severity,
    Statistic,
    Undeclared,
    Unique,
)


class Hop(Enum):
    """A step of a path that is not a field's name."""

    ITEM = "item"
    KEY = "key"
    VALUE = "value"


Path: TypeAlias = tuple[str | Hop, ...]
"""From the table's column down: names of fields as the table has them, and hops into arrays and maps."""


_MAYBE_OWN_KEYS: Final = (Unique, DuplicateCount, ForeignKey)
_OF_NO_ROW: Final = (Completeness, Freshness, Latency, Query, RowCount, Statistic)


@dataclass(frozen=True, slots=True)
class Check:
    """A rule at its place.

    `path` is empty for a rule about the whole dataset. `keys` are the paths of a key's parts. `type` is what the
    contract declares for the field, None where it declares nothing. `masked` says that no value of it may be shown.
    """

    id: str
    rule: Rule
    path: Path = ()
    field: str | None = None
    keys: tuple[Path, ...] = ()
    key_names: tuple[str, ...] = ()
    type: DataType | None = None
    masked: bool = False

    @property
    def severity(self) -> Severity:
        """The rule's."""
        return self.rule.severity

    @property
    def of_no_row(self) -> bool:
        """Whether the rule is about all rows together, so that no row by itself breaks it."""
        return isinstance(self.rule, _OF_NO_ROW)

    @property
    def dimension(self) -> Dimension:
        """What the author said, else what is usual for such a rule."""
        return self.rule.dimension or self.rule.usual_dimension

    def result(self, status: Status, **facts: object) -> CheckResult:
        """A result of this check; `facts` are the remaining attributes of `CheckResult`."""
        return CheckResult(
            id=self.id,
            rule=self.rule.kind,
            field=self.field,
            severity=self.severity,
            dimension=self.dimension,
            status=status,
            **facts,  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """All checks of a dataset in declaration order.

    The schema alone answers `schema`; one pass over the rows answers `counted` (row rules, and aggregates); `keys` need
    the rows grouped by a key. What no part of the engine takes is in none of them and has to be reported as such.
    """

    contract: Contract
    dataset: Dataset
    checks: tuple[Check, ...]

    def of(self, *scopes: Scope) -> tuple[Check, ...]:
        """The checks of those scopes, in order."""
        return tuple(check for check in self.checks if check.rule.scope in scopes)

    @property
    def schema(self) -> tuple[Check, ...]:
        """Checks the table's schema answers."""
        return self.of(Scope.SCHEMA)

    @property
    def counted(self) -> tuple[Check, ...]:
        """Checks that count rows."""
        return self.of(Scope.ROW, Scope.AGGREGATE)

    @property
    def keys(self) -> tuple[Check, ...]:
        """Checks that compare rows with each other."""
        return self.of(Scope.KEY)


def build_plan(contract: Contract, dataset: Dataset) -> Plan:
    """The checks of one dataset of a contract. The same contract always gives the same ids in the same order."""
    pii_class = contract.governance.pii_class
    ids = _Ids(dataset)
    checks: list[Check] = []
    keyed = _primary_key_fields(dataset)
    for field in dataset.fields:
        checks += _field_checks(field, (field.column,), (field.name,), pii_class, inherited=False, keyed=keyed, ids=ids)
    undeclared = Undeclared()
    checks.append(Check(id=ids.next(undeclared), rule=undeclared))
    checks.extend(_dataset_check(dataset, rule, pii_class, ids) for rule in dataset.rules)
    return Plan(contract, dataset, tuple(checks))


def path_inside(fields: Sequence[Field], dotted: str) -> Path | None:
    """The path of a field by the name that results give it, such as `items.at`; None where there is none."""
    way = _way_inside(fields, dotted)
    return way[0] if way is not None else None


def _way_inside(fields: Sequence[Field], dotted: str) -> tuple[Path, tuple[Field, ...]] | None:
    """As `path_inside`, with the fields that it leads through, the one it leads to last."""
    return next((way for name, *way in _named(fields, (), (), ()) if name == dotted), None)  # type: ignore[return-value]


def _named(
    fields: Sequence[Field], names: tuple[str, ...], path: Path, over: tuple[Field, ...]
) -> Iterator[tuple[str, Path, tuple[Field, ...]]]:
    for field in fields:
        yield from _parts(field, (*names, field.name), (*path, field.column), over)


def _parts(
    field: Field, names: tuple[str, ...], path: Path, over: tuple[Field, ...]
) -> Iterator[tuple[str, Path, tuple[Field, ...]]]:
    way = (*over, field)
    yield ".".join(names), path, way
    yield from _named(field.fields, _without_trailing_item(path, names), path, way)
    for hop, part in ((Hop.ITEM, field.item), (Hop.KEY, field.key), (Hop.VALUE, field.value)):
        if part is not None:
            yield from _parts(part, (*names, hop.value), (*path, hop), way)


def _primary_key_fields(dataset: Dataset) -> frozenset[str]:
    named = (name for rule in dataset.rules if isinstance(rule, PrimaryKey) for name in rule.fields)
    return frozenset(_plain(name) if dataset.trail(name) is None else name for name in named)


def _plain(name: str) -> str:
    """`items.sku` for `items[].sku`."""
    return name.replace("[]", "")


def _field_checks(
    field: Field,
    path: Path,
    names: tuple[str, ...],
    pii_class: str | None,
    *,
    inherited: bool,
    keyed: frozenset[str],
    ids: _Ids,
) -> Iterator[Check]:
    hidden = inherited or field.conceals(pii_class)
    dotted = ".".join(names)
    # A value of an object shows its parts, so it is hidden when any of them is.
    masked = hidden or any(_hides_a_part(part, pii_class) for part in field.parts)

    place = ids.place(dotted)
    type_ = field.type

    def check(rule: Rule) -> Check:
        own_key = isinstance(rule, _MAYBE_OWN_KEYS) and not rule.fields
        keys, key_names = ((path,), (dotted,)) if own_key else ((), ())
        return Check(ids.next(rule, place), rule, path, dotted, keys, key_names, type_, masked)

    if not isinstance(path[-1], Hop):
        yield check(Present(position=field.position))
    if field.type is not None:
        yield check(HasType(type=field.type, position=field.position))
    if dotted in keyed and not field.required:
        yield check(Required(position=field.position))
    for rule in field.rules:
        yield check(rule)
    longest = field.type.length if field.type is not None and field.type.family is Family.STRING else None
    if longest is not None and not any(isinstance(rule, MaxLength) and rule.length <= longest for rule in field.rules):
        yield check(MaxLength(length=longest, position=field.position))

    for part in field.fields:
        inside = (*_without_trailing_item(path, names), part.name)
        yield from _field_checks(part, (*path, part.column), inside, pii_class, inherited=hidden, keyed=keyed, ids=ids)
    for hop, part_or_none in ((Hop.ITEM, field.item), (Hop.KEY, field.key), (Hop.VALUE, field.value)):
        if part_or_none is not None:
            inside = (*names, hop.value)
            yield from _field_checks(
                part_or_none, (*path, hop), inside, pii_class, inherited=hidden, keyed=keyed, ids=ids
            )


def _without_trailing_item(path: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    # `items.sku`, not `items.item.sku`: the fields of an array's objects read as the array's own.
    return names[:-1] if path[-1] is Hop.ITEM else names


def _hides_a_part(part: Field, pii_class: str | None) -> bool:
    return part.conceals(pii_class) or any(_hides_a_part(inner, pii_class) for inner in part.parts)


def _dataset_check(dataset: Dataset, rule: Rule, pii_class: str | None, ids: _Ids) -> Check:
    names: tuple[str, ...] = getattr(rule, "fields", ())
    ways = [way_to(dataset, name) for name in names]
    trails = [way[1] if way is not None else None for way in ways]
    # A name the contract does not declare is looked for in the table, and reported when it is not there.
    keys = tuple(way[0] if way is not None else (name,) for name, way in zip(names, ways, strict=True))
    masked = any(
        trail is not None
        and (
            any(step.conceals(pii_class) for step in trail) or any(_hides_a_part(p, pii_class) for p in trail[-1].parts)
        )
        for trail in trails
    )
    return Check(
        id=ids.next(rule),
        rule=rule,
        field=", ".join(names) or None,
        keys=keys,
        key_names=names,
        masked=masked or (bool(names) and pii_class is not None and any(trail is None for trail in trails)),
    )


def way_to(dataset: Dataset, name: str) -> tuple[Path, tuple[Field, ...]] | None:
    """The path of a field that a rule of the dataset names, and the fields that it leads through, that one last.

    What is inside an array is named as results name it, `items.sku`, or `items[].sku`. None where there is none.
    """
    trail = dataset.trail(name)
    if trail is not None:
        return tuple(step.column for step in trail), trail
    return _way_inside(dataset.fields, _plain(name))


class _Ids:
    """The ids of a dataset's checks in turn: `dataset.field.rule`, in characters a Dagster check name may have.

    A repeated one gets a number.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = _legal(dataset.name)
        self._taken: set[str] = set()

    def place(self, field: str) -> str:
        """How the ids of a field's checks begin; `field` is its dotted name."""
        return ".".join([self._dataset, *(_legal(part) for part in field.split("."))]) if field else self._dataset

    def next(self, rule: Rule, place: str | None = None) -> str:
        """The id of the next check, whose rule is about the dataset if it is not at a place of a field."""
        base = f"{self._dataset if place is None else place}.{_legal(rule.kind)}"
        chosen, count = base, 1
        while chosen in self._taken:
            count += 1
            chosen = f"{base}_{count}"
        self._taken.add(chosen)
        return chosen


@lru_cache(maxsize=65536)
def _legal(part: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", part)
