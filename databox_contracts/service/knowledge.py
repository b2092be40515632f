"""What is registered, read once: contracts by version, and whom a change of them reaches."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from databox_contracts.lineage import Lineage
from databox_contracts.model import Contract
from databox_contracts.registry.consumers import Resolved, resolve
from databox_contracts.registry.impact import Dependencies, Reached
from databox_contracts.registry.places import Place
from databox_contracts.registry.published import declared_at, published
from databox_contracts.registry.records import StoredVersion
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
    declared = declared_at(registry)
    contracts = published(registry, declared, readings.contract)
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
