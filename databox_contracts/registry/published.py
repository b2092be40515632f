"""What a registry says to readers: the contracts as they get them, and what consumers told it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from databox_contracts.declarations import Declaration
from databox_contracts.evolution.affected import allowed
from databox_contracts.model import Contract
from databox_contracts.registry.api import RegistryApi
from databox_contracts.registry.consumers import resolve
from databox_contracts.registry.records import Status, StoredVersion


def declared_at(registry: RegistryApi) -> list[Declaration]:
    """What consumers said to the registry."""
    return [Declaration(one.contract_id, one.consumer, "the registry", str(one.origin)) for one in registry.consumers()]


def published(
    registry: RegistryApi,
    declarations: Sequence[Declaration],
    read: Callable[[StoredVersion], Contract] = StoredVersion.contract,
) -> list[Contract]:
    """The contracts as readers get them, and the older versions of those that one of the consumers pins."""
    newest = [read(stored) for stored in registry.contracts()]
    readers = resolve(newest, declarations).by_contract()
    found: list[Contract] = []
    for contract in newest:
        found.append(contract)
        if all(allowed(consumer, contract.version) for consumer in readers.get(contract.id, ())):
            continue
        others = (one for one in registry.versions(contract.id) if one.version != contract.version)
        found += [read(one) for one in others if one.status in (Status.ACTIVE, Status.DEPRECATED)]
    return found
