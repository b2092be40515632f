"""What a name means among a set of contracts: one of them, one of its datasets, or a field of that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from databox_contracts.errors import UnknownPlaceError
from databox_contracts.evolution.affected import trail_of
from databox_contracts.model import Contract, Dataset
from databox_contracts.version_ranges import VersionRange
from databox_contracts.versions import Version


@dataclass(frozen=True, order=True)
class Place:
    """A contract by its id, one of its datasets, or a field of that by its dotted path; None where none is meant."""

    contract: str
    dataset: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        return ".".join(part for part in (self.contract, self.dataset, self.field) if part is not None)


class Places:
    """The contracts by id, in the order given; of each all its versions, the newest first."""

    def __init__(self, contracts: Iterable[Contract]) -> None:
        self._versions: dict[str, list[Contract]] = {}
        self._called: dict[str, list[str]] = {}
        self._having: dict[str, list[str]] = {}
        for contract in contracts:
            self._versions.setdefault(contract.id, []).append(contract)
            for name in (contract.id, contract.name):
                _list(self._called, name, contract.id)
            for dataset in contract.datasets:
                for name in (*_plain(contract, dataset), *_with_domain(contract, dataset)):
                    _list(self._having, name, contract.id)
        for versions in self._versions.values():
            versions.sort(key=_age)

    def __contains__(self, contract_id: str) -> bool:
        return contract_id in self._versions

    def __iter__(self) -> Iterator[Contract]:
        """The newest version of each contract."""
        return (versions[0] for versions in self._versions.values())

    def versions(self, contract_id: str) -> Sequence[Contract]:
        """All versions of the contract, the newest first; empty where it is not there."""
        return self._versions.get(contract_id, ())

    def suiting(self, contract_id: str, pin: VersionRange | None) -> Contract | None:
        """The newest version that the pin allows, None where none is."""
        for contract in self.versions(contract_id):
            version = Version.parse(contract.version)
            if pin is None or (version is not None and pin.allows(version)):
                return contract
        return None

    def find(self, text: str, *, whole: bool = False) -> Place:
        """What the name means; with `whole` it has to begin with the contract or the domain.

        A contract is named by its id or its name, with a dataset and a field behind it as far as wanted; its domain and
        a dataset (`weather.hourly`, `weather/hourly`) is enough as well, or a dataset that only one contract has, and
        so is a field right behind the contract where only one dataset has it. An id is that contract, whatever else has
        the name. Raises `UnknownPlaceError` for a name that nothing has, or several have.
        """
        if text in self._versions:
            return Place(text)
        plain = self._by_dataset(text, _plain) if not whole else ()
        for candidates in (self._by_contract(text), self._by_dataset(text, _with_domain), plain):
            found = list(dict.fromkeys(candidates))
            if len(found) == 1:
                return found[0]
            if found:
                raise UnknownPlaceError(text, [str(place) for place in found], several=True)
        raise UnknownPlaceError(text, get_close_matches(text, list(self._names()), n=3, cutoff=0.6))

    def _by_contract(self, text: str) -> Iterator[Place]:
        for name in _beginnings(text):
            for contract_id in self._called.get(name, ()):
                if text == name:
                    yield Place(contract_id)
                else:
                    yield from _first(_inside(one, text[len(name) + 1 :]) for one in self._versions[contract_id])

    def _by_dataset(self, text: str, naming: _Naming) -> Iterator[Place]:
        having = (contract_id for name in _beginnings(text) for contract_id in self._having.get(name, ()))
        for contract_id in dict.fromkeys(having):
            yield from _first(_of_datasets(one, text, naming) for one in self._versions[contract_id])

    def _names(self) -> Iterator[str]:
        for contract in self:
            yield contract.id
            for dataset in contract.datasets:
                yield f"{contract.id}.{dataset.name}"
                yield from _with_domain(contract, dataset)
                yield from (f"{contract.id}.{dataset.name}.{field.name}" for field in dataset.fields)


_Naming: TypeAlias = Callable[[Contract, Dataset], list[str]]


def _plain(_: Contract, dataset: Dataset) -> list[str]:
    return list(dict.fromkeys((dataset.name, dataset.table_name)))


def _with_domain(contract: Contract, dataset: Dataset) -> list[str]:
    names = _plain(contract, dataset) if contract.domain else []
    return [f"{contract.domain}{between}{name}" for name in names for between in "./"]


def _list(index: dict[str, list[str]], name: str | None, contract_id: str) -> None:
    if name and contract_id not in (listed := index.setdefault(name, [])):
        listed.append(contract_id)


def _beginnings(text: str) -> Iterator[str]:
    """The text, and what of it stands before each of its dots, the longest first."""
    while text:
        yield text
        text = text.rpartition(".")[0]


def _age(contract: Contract) -> tuple[bool, _Newest]:
    """Semantic versions from the newest to the oldest, all others behind them."""
    version = Version.parse(contract.version)
    return version is None, _Newest(version)


@dataclass(frozen=True)
class _Newest:
    version: Version | None

    def __lt__(self, other: _Newest) -> bool:
        return self.version is not None and other.version is not None and self.version > other.version


def _first(found: Iterable[Iterable[Place]]) -> list[Place]:
    """What the newest version that has the name means by it."""
    return next((places for one in found if (places := list(one))), [])


def _inside(contract: Contract, rest: str) -> Iterator[Place]:
    """What a name within a contract means: a dataset, with a field or without, else a field of one of them."""
    named = list(_of_datasets(contract, rest, _plain))
    yield from named
    if not named:
        for dataset in contract.datasets:
            field = field_in(dataset, rest)
            if field is not None:
                yield Place(contract.id, dataset.name, field)


def _of_datasets(contract: Contract, text: str, naming: _Naming) -> Iterator[Place]:
    for dataset in contract.datasets:
        for name in naming(contract, dataset):
            if text == name:
                yield Place(contract.id, dataset.name)
            elif text.startswith(f"{name}."):
                field = field_in(dataset, text[len(name) + 1 :])
                if field is not None:
                    yield Place(contract.id, dataset.name, field)


def field_in(dataset: Dataset, dotted: str) -> str | None:
    """The field's path as the contract spells it, None where the dataset does not declare it."""
    trail = trail_of(dataset, dotted)
    return ".".join(field.name for field in trail) if trail else None
