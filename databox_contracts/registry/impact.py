"""Whom a change reaches: the consumers of what changes, what they make of it, and so on to the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from databox_contracts.errors import VersionRangeError
from databox_contracts.lineage import Edge
from databox_contracts.model import Consumer, Contract
from databox_contracts.registry.consumers import Reading
from databox_contracts.registry.links import Links
from databox_contracts.registry.places import Place, Places
from databox_contracts.registry.tables import Table, Tables
from databox_contracts.version_ranges import VersionRange


class Kind(StrEnum):
    """What is reached: a dataset of a contract, a table that no contract promises, or a consumer."""

    DATASET = "dataset"
    ASSET = "asset"
    CONSUMER = "consumer"


@dataclass(frozen=True)
class Reached:
    """One thing that a change reaches, by its shortest way.

    `distance` is 1 for what reads the changed data itself. `path` has the names from there to this, both included.
    `fields` are those that are reached of a table, or that a consumer reads of those; none means all. `reads` are the
    datasets that a consumer reads of `contract`, `pin` its range and `version` the newest there is in that; of a
    dataset, `version` is its contract's.
    """

    kind: Kind
    name: str
    distance: int
    path: tuple[str, ...]
    owner: str | None = None
    contract: str | None = None
    version: str | None = None
    pin: str | None = None
    reads: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    purpose: str | None = None
    criticality: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kind": str(self.kind),
            "name": self.name,
            "distance": self.distance,
            "path": list(self.path),
            "owner": self.owner,
            "contract": self.contract,
            "version": self.version,
            "pin": self.pin,
            "reads": list(self.reads),
            "fields": list(self.fields),
            "purpose": self.purpose,
            "criticality": self.criticality,
        }


@dataclass(frozen=True)
class Impact:
    """All that a change of the target reaches: the nearest first, of these datasets, assets, consumers, by name."""

    target: str
    contract: str
    version: str
    owner: str | None
    reached: tuple[Reached, ...]

    @property
    def consumers(self) -> tuple[Reached, ...]:
        """The consumers alone."""
        return tuple(one for one in self.reached if one.kind is Kind.CONSUMER)

    @property
    def tables(self) -> tuple[Reached, ...]:
        """The datasets and assets alone."""
        return tuple(one for one in self.reached if one.kind is not Kind.CONSUMER)

    @property
    def owners(self) -> tuple[str, ...]:
        """Whose things are reached, each once."""
        return tuple(dict.fromkeys(one.owner for one in self.reached if one.owner is not None))

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "target": self.target,
            "contract": self.contract,
            "version": self.version,
            "owner": self.owner,
            "owners": list(self.owners),
            "reached": [one.to_dict() for one in self.reached],
        }


def impact(
    contracts: Iterable[Contract],
    consumers: Sequence[Reading],
    edges: Iterable[Edge] = (),
    *,
    target: str,
    assets: Mapping[str, str] | None = None,
) -> Impact:
    """The closure over consumers, assets and columns of what `contract[.dataset][.field]` names.

    A consumer is reached by what it reads of a reached table, and its assets with it; a table by an edge from one.
    Where columns are known between two tables (as edges, or as what a contract says its fields are made of), only
    columns made of reached ones are reached, otherwise the whole table. Cycles are harmless. `assets` are as in
    `Lineage`. Raises `UnknownPlaceError` for a target that is not there.
    """
    return Dependencies(contracts, consumers, edges, assets=assets).impact(target)


class Dependencies:
    """What `impact` asks, made ready once for many targets."""

    def __init__(
        self,
        contracts: Iterable[Contract],
        consumers: Sequence[Reading],
        edges: Iterable[Edge] = (),
        *,
        assets: Mapping[str, str] | None = None,
    ) -> None:
        self.places = contracts if isinstance(contracts, Places) else Places(contracts)
        self._tables = Tables(self.places, assets or {})
        self._links = Links(self.places, self._tables, consumers, edges)

    def impact(self, target: str | Place) -> Impact:
        """As the function `impact`, for a name or for a place among the contracts."""
        place = target if isinstance(target, Place) else self.places.find(target)
        newest = self.places.versions(place.contract)[0]
        walk = _Walk(self._links)
        for table in self._tables.of_place(place):
            walk.start(table, place.field)
        walk.run()
        reached = [*_tables(walk, self.places), *_consumers(walk, self.places)]
        reached.sort(key=order)
        return Impact(str(place), newest.id, newest.version, newest.owning_team, tuple(reached))

    def maker(self, asset: str) -> Consumer | None:
        """The consumer who makes the asset, None where nobody says so."""
        return self._links.maker(self._tables.find(asset))


def order(one: Reached) -> tuple[int, int, str, str]:
    """The nearest first, of these datasets, assets, consumers, by name."""
    return one.distance, list(Kind).index(one.kind), one.name, one.contract or ""


@dataclass(frozen=True)
class _Stop:
    """A table, or one column of it, as the walk came to it."""

    table: Table
    column: str | None
    distance: int
    path: tuple[str, ...]


class _Walk:
    """Every stop once, in the order of distance; a column of a table that is reached as a whole is no further stop."""

    def __init__(self, links: Links) -> None:
        self.links = links
        self._seen: set[tuple[Table, str | None]] = set()
        self.stops: list[_Stop] = []
        self.starts: set[Table] = set()
        self.readers: list[tuple[Reading, _Stop]] = []

    def start(self, table: Table, column: str | None) -> None:
        """Begins at a table, or one of its columns."""
        self.starts.add(table)
        self._add(table, column, 0, (table.name if column is None else f"{table.name}.{column}",))

    def run(self) -> None:
        """Goes on until nothing new is reached."""
        at = 0
        while at < len(self.stops):
            stop = self.stops[at]
            self.readers += [(reading, stop) for reading in self.links.readers(stop.table, stop.column)]
            for table, column in self.links.onwards(stop.table, stop.column):
                self._add(table, column, stop.distance + 1, (*stop.path, table.name))
            at += 1

    def _add(self, table: Table, column: str | None, distance: int, path: tuple[str, ...]) -> None:
        if (table, None) in self._seen or (table, column) in self._seen:
            return
        self._seen.add((table, column))
        self.stops.append(_Stop(table, column, distance, path))


def _tables(walk: _Walk, places: Places) -> Iterator[Reached]:
    found: dict[Table, list[_Stop]] = {}
    for stop in walk.stops:
        if stop.table not in walk.starts:
            found.setdefault(stop.table, []).append(stop)
    for table, stops in found.items():
        maker = walk.links.maker(table)
        contract = places.versions(table.contract)[0] if table.contract is not None else None
        whole = any(stop.column is None for stop in stops)
        yield Reached(
            Kind.ASSET if contract is None else Kind.DATASET,
            table.name,
            stops[0].distance,
            stops[0].path,
            owner=contract.owning_team if contract is not None else (maker.owner or maker.name) if maker else None,
            contract=table.contract,
            version=contract.version if contract is not None else None,
            fields=() if whole else tuple(stop.column for stop in stops if stop.column is not None),
        )


def _consumers(walk: _Walk, places: Places) -> Iterator[Reached]:
    found: dict[tuple[str, str], list[tuple[Reading, _Stop]]] = {}
    for reading, stop in walk.readers:
        found.setdefault((reading.contract, reading.consumer.name), []).append((reading, stop))
    for (contract, name), stops in found.items():
        reading, first = stops[0]
        consumer = reading.consumer
        columns = [stop.column for _, stop in stops]
        yield Reached(
            Kind.CONSUMER,
            name,
            first.distance + 1,
            (*first.path, name),
            owner=consumer.owner,
            contract=contract,
            version=_version(reading, places),
            pin=consumer.versions,
            reads=tuple(dict.fromkeys(stop.table.dataset or "" for _, stop in stops)),
            fields=consumer.fields if None in columns else tuple(dict.fromkeys(one for one in columns if one)),
            purpose=consumer.purpose,
            criticality=consumer.criticality,
        )


def _version(reading: Reading, places: Places) -> str | None:
    """The newest version that the consumer's pin allows, None where there is none."""
    written = reading.consumer.versions
    try:
        pin = VersionRange.parse(written) if written is not None else None
    except VersionRangeError:
        return None
    suiting = places.suiting(reading.contract, pin)
    return suiting.version if suiting is not None else None
