"""The tables that contracts, consumers and an orchestrator speak of: one node each, whatever it is called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from databox_contracts.errors import DataboxError, UnknownPlaceError
from databox_contracts.model import Contract, Dataset
from databox_contracts.registry.places import Place, Places, field_in

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True, slots=True, order=True)
class Table:
    """A table by its name: that of the contract and the dataset where one promises it, else the key of its asset."""

    name: str
    contract: str | None = None
    dataset: str | None = None


class Tables:
    """Finds the table that a name means.

    That is the dataset which `assets` has for the key, the one whose asset has that key by default (domain and dataset,
    as `ContractTranslator` makes them), or the one named as contract and dataset. Everything else is a table that no
    contract promises.
    """

    def __init__(self, places: Places, assets: Mapping[str, str]) -> None:
        self._places = places
        self._named = dict(assets)
        self._known: dict[str, Table] = {}
        self._datasets: dict[Table, Dataset] = {}
        self._keys: dict[str, list[Table]] = {}
        for contract in places:
            for version in places.versions(contract.id):
                for dataset in version.datasets:
                    self._add(version, dataset)

    def _add(self, contract: Contract, dataset: Dataset) -> None:
        table = self.of(contract.id, dataset.name)
        if table not in self._datasets:
            # The newest version comes first.
            self._datasets[table] = dataset
        found = self._keys.setdefault(default_key(contract, dataset), [])
        if table not in found:
            found.append(table)

    @staticmethod
    def of(contract: str, dataset: str) -> Table:
        """The table of a contract's dataset."""
        return Table(f"{contract}.{dataset}", contract, dataset)

    def of_place(self, place: Place) -> list[Table]:
        """The tables of a place: one of a dataset, all of a contract."""
        if place.dataset is not None:
            return [self.of(place.contract, place.dataset)]
        return [table for table in self._datasets if table.contract == place.contract]

    def find(self, name: str) -> Table:
        """The table of that name. Raises `DataboxError` for a key that datasets of two contracts would have."""
        if name not in self._known:
            self._known[name] = self._found(name)
        return self._known[name]

    def _found(self, name: str) -> Table:
        if name in self._named:
            place = self._places.find(self._named[name])
            if place.dataset is None and len(self.of_place(place)) != 1:
                raise DataboxError(
                    f"the asset {name!r} is told to be of the contract {place.contract}, which has several datasets",
                    hint=f"name one of: {', '.join(table.name for table in self.of_place(place))}",
                )
            return self.of_place(place)[0]
        keyed = self._keys.get(name, [])
        if len(keyed) > 1:
            names = " or ".join(table.name for table in keyed)
            raise DataboxError(
                f"the asset {name!r} could be {names}", hint=f"say which under `assets`: `{name}: {keyed[0].name}`"
            )
        if keyed:
            return keyed[0]
        try:
            place = self._places.find(name, whole=True)
        except UnknownPlaceError:
            return Table(name)
        found = self.of_place(place)
        return found[0] if place.field is None and len(found) == 1 else Table(name)

    def column(self, table: Table, name: str) -> str:
        """The column as the contract spells it, where one promises the table."""
        dataset = self._datasets.get(table)
        return (field_in(dataset, name) if dataset is not None else None) or name

    def source(self, written: str) -> tuple[Table, str | None]:
        """What a field is made of: a table, or a column of one, which stands behind the last dot."""
        try:
            place = self._places.find(written)
        except UnknownPlaceError:
            place = None
        if place is not None and (place.dataset is not None or len(self.of_place(place)) == 1):
            return self.of_place(place)[0], place.field
        table, dot, column = written.rpartition(".")
        if dot and written not in self._keys and (table in self._keys or table in self._named):
            found = self.find(table)
            return found, self.column(found, column)
        return self.find(written), None


def default_key(contract: Contract, dataset: Dataset) -> str:
    """The key of the dataset's asset, its parts separated by slashes."""
    return "/".join(_ILLEGAL.sub("_", part.strip()) for part in (contract.domain, dataset.name) if part)
