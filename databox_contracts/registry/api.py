"""What a registry offers, be it a database that is opened here or a service that is asked over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Protocol, TypeAlias

from databox_contracts.model import Consumer, Contract
from databox_contracts.notifications import Notification
from databox_contracts.registry.records import Origin, Publication, RegisteredConsumer, StoredApproval, StoredVersion

Announce: TypeAlias = Callable[[Contract, StoredVersion | None, Sequence[Consumer]], Sequence[Notification]]
"""What consumers are to be told of a version that comes after another (None: it is the first).

Asked when it is published, and when a draft becomes active; who tells the same then, tells it once.
The consumers are all that are registered with the contract, before and with this version, each name once, by name.
It is called within the transaction, perhaps more than once: it must only look at what it is given.
"""

AnnounceEnd: TypeAlias = Callable[[StoredVersion, Sequence[Consumer]], Sequence[Notification]]
"""What consumers are to be told of a version that was deprecated, or retired, just now; called like `Announce`."""


class RegistryApi(Protocol):
    """Versions of contracts, their consumers and their approvals.

    Everything that writes may be repeated: the second time it changes nothing. Errors are `RegistryError`s:
    `RegistryUnavailableError` where nobody answers, `UnknownContractError` for a name that is not there.
    """

    def publish(self, contract: Contract, *, by: str) -> Publication:
        """Publish one version. Raises `ContractConflictError` for other content under a published version."""
        ...

    def publish_all(self, contracts: Sequence[Contract], *, by: str) -> Sequence[Publication]:
        """Publish all or, where one cannot be, none."""
        ...

    def contracts(self) -> Sequence[StoredVersion]:
        """The version of each contract that `get` gives, by id."""
        ...

    def versions(self, contract_id: str) -> Sequence[StoredVersion]:
        """All versions of a contract, retired ones too, in ascending order."""
        ...

    def get(self, contract_id: str, version: str | None = None) -> StoredVersion:
        """A version by its text, or the newest of a range; without either the newest that is active and in effect.

        Where there is none it is the newest deprecated one, else one that is not in effect yet, else the newest draft.
        A range does not find drafts and retired versions, and one that is not in effect yet only if there is no other.
        """
        ...

    def activate(self, contract_id: str, version: str, *, by: str) -> StoredVersion:
        """Make a draft active, or take a deprecation back. Raises `LifecycleError` for a retired version."""
        ...

    def deprecate(self, contract_id: str, version: str, *, by: str, sunset: date | None = None) -> StoredVersion:
        """Announce that the version ends on that day, by default when its notice period is over.

        Raises `LifecycleError` for a day within the notice period, and for a draft or a retired version.
        """
        ...

    def retire(self, contract_id: str, version: str, *, by: str) -> StoredVersion:
        """End the version. Raises `LifecycleError` before its sunset, or if a consumer is left with nothing."""
        ...

    def consumers(self, contract_id: str | None = None) -> Sequence[RegisteredConsumer]:
        """The consumers of a contract, or of all, by contract, name and origin."""
        ...

    def register(
        self, contract_id: str, consumer: Consumer, *, by: str, origin: Origin = Origin.REGISTRY
    ) -> RegisteredConsumer:
        """Register a consumer, in place of the one of that name and origin. The contract need not be published yet.

        Raises `RegistryError` for a contact with a secret in it, and for a pin that is no range of versions.
        """
        ...

    def remove_consumer(self, contract_id: str, name: str, *, by: str, origin: Origin = Origin.REGISTRY) -> bool:
        """Remove the consumer of that name and origin; False where there is none."""
        ...

    def approve(self, approval: StoredApproval) -> StoredApproval:
        """Store a consent, and return the one that is stored: given twice by the same approver, it is the first."""
        ...

    def approvals(self, contract_id: str | None = None) -> Sequence[StoredApproval]:
        """The consents of a contract's consumers, or all, oldest first."""
        ...

    def close(self) -> None:
        """Give connections back; may be called again."""
        ...
