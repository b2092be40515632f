"""What is registered, read once: contracts by version, and whom a change of them reaches."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from databox_contracts.declarations import Declaration
from databox_contracts.evolution.affected import allowed
from databox_contracts.lineage import Lineage
from databox_contracts.model import Contract
from databox_contracts.registry.consumers import Resolved, resolve
from databox_contracts.registry.impact import Dependencies, Reached
from databox_contracts.registry.places import Place
from databox_contracts.registry.records import Status, StoredVersion
from databox_contracts.registry.store import Registry

_MOST_CONTRACTS: Final = 2000


class Readings:
    """Contracts of stored versions; what was read lately is not read again, since a version's text stays as it is."""

    def __init__(self, most: int = _MOST_CONTRACTS) -> None:
        self._most = most
        self._read: OrderedDict[tuple[str, str, str, str], Contract] = OrderedDict()
        self._lock = threading.Lock()

    def contract(self, stored: StoredVersion) -> Contract:
        """As `StoredVersion.contract`."""
        key = (stored.contract_id, stored.version, stored.digest, str(stored.status))
        with self._lock:
            if key in self._read:
                self._read.move_to_end(key)
                return self._read[key]
        found = stored.contract()
        with self._lock:
            self._read[key] = found
            while len(self._read) > self._most:
                self._read.popitem(last=False)
        return found


def dependencies(registry: Registry, readings: Readings, lineage: Lineage) -> tuple[Dependencies, Resolved]:
    """What depends on what is registered, and what is wrong with what consumers say."""
    declared = [
        Declaration(one.contract_id, one.consumer, "the registry", str(one.origin)) for one in registry.consumers()
    ]
    contracts = _as_read(registry, readings, declared)
    resolved = resolve(contracts, declared)
    return Dependencies(contracts, resolved.readings, lineage.edges, assets=lineage.assets), resolved


class Reaching:
    """Whom a change of a place reaches, made ready when it is first asked; a place that is not registered reaches none.

    What is judged need not be what is registered.
    """

    def __init__(self, registry: Registry, readings: Readings, lineage: Lineage) -> None:
        self._known = (registry, readings, lineage)

    def __call__(self, place: Place) -> Sequence[Reached]:
        """The nearest first."""
        found = self._found
        return found.impact(place).reached if place.contract in found.places else ()

    @cached_property
    def _found(self) -> Dependencies:
        return dependencies(*self._known)[0]


def _as_read(registry: Registry, readings: Readings, declared: Sequence[Declaration]) -> list[Contract]:
    """The contracts as readers get them, and the older versions of those that one of the consumers pins."""
    newest = [readings.contract(stored) for stored in registry.contracts()]
    readers = resolve(newest, declared).by_contract()
    found: list[Contract] = []
    for contract in newest:
        found.append(contract)
        if all(allowed(consumer, contract.version) for consumer in readers.get(contract.id, ())):
            continue
        others = (one for one in registry.versions(contract.id) if one.version != contract.version)
        found += [readings.contract(one) for one in others if one.status in (Status.ACTIVE, Status.DEPRECATED)]
    return found
