"""The registry itself: one database, opened by a path or a URL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, select

from databox_contracts.model import Consumer, Contract
from databox_contracts.notifications import Notification
from databox_contracts.registry.addresses import read_address
from databox_contracts.registry.api import Announce, AnnounceEnd
from databox_contracts.registry.consumers_of import registered_in
from databox_contracts.registry.database import Database, utc_now
from databox_contracts.registry.deletion_plans import DeletionPlans
from databox_contracts.registry.drift_store import SqlBaselineStore
from databox_contracts.registry.enqueuing import enqueue_in
from databox_contracts.registry.held_batches import HeldBatches
from databox_contracts.registry.migrations import migrate
from databox_contracts.registry.open_tickets import SqlTicketStore
from databox_contracts.registry.outbox import USUAL_LEASE, SqlOutbox
from databox_contracts.registry.positions import WHATEVER, Positions
from databox_contracts.registry.publishing import prepare, publish_in
from databox_contracts.registry.records import (
    AuditEntry,
    Origin,
    Publication,
    RegisteredConsumer,
    Status,
    StoredApproval,
    StoredVersion,
)
from databox_contracts.registry.registrations import Registrations
from databox_contracts.registry.schema import AUDIT
from databox_contracts.registry.statements import Scribe, audit_entry
from databox_contracts.registry.tokens import Tokens
from databox_contracts.registry.transitions import activated, deprecated, locked, retired
from databox_contracts.registry.versions_of import before, known_versions, meant, newest, versions_in


class Registry:
    """A `RegistryApi` over a database, and what only its own process may do with it.

    Threads may share one. `outbox` is an `Outbox`, `baselines` a `BaselineStore`, `tickets` a `TicketStore`; `batches`,
    `tokens` and `plans` keep what their names say.
    """

    def __init__(
        self, database: Database, clock: Callable[[], datetime], *, lease_length: timedelta = USUAL_LEASE
    ) -> None:
        self._database = database
        self._clock = clock
        self._positions = Positions(database, clock)
        self._registrations = Registrations(database, clock)
        self.outbox = SqlOutbox(database, clock, lease_length=lease_length)
        self.baselines = SqlBaselineStore(database, clock)
        self.batches = HeldBatches(database, clock)
        self.tokens = Tokens(database, clock)
        self.plans = DeletionPlans(database, clock)
        self.tickets = SqlTicketStore(database, clock)

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str],
        *,
        clock: Callable[[], datetime] = utc_now,
        patience: float = 30.0,
        lease_length: timedelta = USUAL_LEASE,
    ) -> Registry:
        """The registry of a file (SQLite, made where it is missing) or of `postgresql://USER@HOST/DATABASE`.

        Its tables are brought to the newest version. A call waits up to `patience` seconds for a database that is
        locked or away. `clock` gives aware times. Raises `RegistryUnavailableError`, `RegistryTooNewError`, and
        `RegistryError` for what is no registry; no password is in any of them.
        """
        database = Database(read_address(location), patience=patience)
        try:
            migrate(database, clock)
        except BaseException:
            database.close()
            raise
        return cls(database, clock, lease_length=lease_length)

    @property
    def location(self) -> str:
        """Where it is, without a password."""
        return self._database.address.shown

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give connections back; a later call opens new ones."""
        self._database.close()

    def check(self) -> None:
        """Ask the database for an answer. Raises `RegistryUnavailableError` where it gives none."""
        self._database.read(lambda connection: connection.execute(select(1)).scalar())

    # --- versions ---

    def publish(
        self,
        contract: Contract,
        *,
        by: str,
        notifications: Sequence[Notification] | Announce = (),
        announce_end: AnnounceEnd | None = None,
    ) -> Publication:
        """As `RegistryApi.publish`. Notifications enter the outbox in the same transaction, if anything changes."""
        return self.publish_all([contract], by=by, notifications=notifications, announce_end=announce_end)[0]

    def publish_all(
        self,
        contracts: Sequence[Contract],
        *,
        by: str,
        notifications: Sequence[Notification] | Announce = (),
        announce_end: AnnounceEnd | None = None,
    ) -> list[Publication]:
        """As `RegistryApi.publish_all`, in one transaction.

        An `Announce` is asked for every version that is new or was a draft, `announce_end` for every one that its
        document ends now.
        """
        prepared = [prepare(contract) for contract in contracts]
        scribe = Scribe(by, self._clock)
        if not prepared:
            return []
        return self._database.write(
            lambda connection: publish_in(connection, prepared, scribe, notifications, announce_end)
        )

    def contracts(self) -> list[StoredVersion]:
        """As `RegistryApi.contracts`."""
        found = self._database.read(versions_in)
        by_id: dict[str, list[StoredVersion]] = {}
        for one in found:
            by_id.setdefault(one.contract_id, []).append(one)
        today = self._clock().date()
        return [newest(versions, today) for versions in by_id.values()]

    def every_version(self) -> list[StoredVersion]:
        """All versions of all contracts, by id and then in ascending order."""
        return self._database.read(versions_in)

    def versions(self, contract_id: str) -> list[StoredVersion]:
        """As `RegistryApi.versions`."""
        return self._database.read(lambda connection: known_versions(connection, contract_id))

    def get(self, contract_id: str, version: str | None = None) -> StoredVersion:
        """As `RegistryApi.get`."""
        today = self._clock().date()
        return self._database.read(lambda connection: meant(connection, contract_id, version, today))

    def activate(self, contract_id: str, version: str, *, by: str, announce: Announce | None = None) -> StoredVersion:
        """As `RegistryApi.activate`. What `announce` gives for a draft enters the outbox with it."""
        scribe = Scribe(by, self._clock)

        def work(connection: Connection) -> StoredVersion:
            found = locked(connection, contract_id, version)
            after = activated(connection, found, scribe)
            if announce is not None and found.status is Status.DRAFT and after != found:
                previous = before(versions_in(connection, contract_id), after.version, after.published_at)
                consumers = list(registered_in(connection, contract_id).values())
                enqueue_in(connection, announce(after.contract(), previous, consumers), scribe.at)
            return after

        return self._database.write(work)

    def deprecate(
        self,
        contract_id: str,
        version: str,
        *,
        by: str,
        sunset: date | None = None,
        announce_end: AnnounceEnd | None = None,
    ) -> StoredVersion:
        """As `RegistryApi.deprecate`. What `announce_end` gives enters the outbox with it, if anything changes."""
        scribe = Scribe(by, self._clock)

        def work(connection: Connection) -> StoredVersion:
            found = locked(connection, contract_id, version)
            return _told(connection, found, deprecated(connection, found, sunset, scribe), scribe, announce_end)

        return self._database.write(work)

    def retire(
        self, contract_id: str, version: str, *, by: str, announce_end: AnnounceEnd | None = None
    ) -> StoredVersion:
        """As `RegistryApi.retire`. What `announce_end` gives enters the outbox with it, if anything changes."""
        scribe = Scribe(by, self._clock)

        def work(connection: Connection) -> StoredVersion:
            found = locked(connection, contract_id, version)
            return _told(connection, found, retired(connection, found, scribe), scribe, announce_end)

        return self._database.write(work)

    # --- consumers ---

    def consumers(self, contract_id: str | None = None) -> list[RegisteredConsumer]:
        """As `RegistryApi.consumers`."""
        return self._registrations.consumers(contract_id)

    def register(
        self, contract_id: str, consumer: Consumer, *, by: str, origin: Origin = Origin.REGISTRY
    ) -> RegisteredConsumer:
        """As `RegistryApi.register`."""
        return self._registrations.register(contract_id, [consumer], by=by, origin=origin)[0]

    def register_all(
        self, contract_id: str, consumers: Sequence[Consumer], *, by: str, origin: Origin
    ) -> list[RegisteredConsumer]:
        """Make these the contract's consumers of that origin, in one transaction: those that are not among them go."""
        return self._registrations.register(contract_id, consumers, by=by, origin=origin, replacing=True)

    def remove_consumer(self, contract_id: str, name: str, *, by: str, origin: Origin = Origin.REGISTRY) -> bool:
        """As `RegistryApi.remove_consumer`."""
        return self._registrations.remove(contract_id, name, by=by, origin=origin)

    def approve(self, approval: StoredApproval) -> StoredApproval:
        """As `RegistryApi.approve`."""
        return self._registrations.approve(approval)

    def approvals(self, contract_id: str | None = None) -> list[StoredApproval]:
        """As `RegistryApi.approvals`."""
        return self._registrations.approvals(contract_id)

    # --- read positions and the audit trail ---

    def position(self, name: str) -> Any:
        """How far something was read, None where it has not begun."""
        return self._positions.position(name)

    def advance(
        self, name: str, value: Any, *, notifications: Sequence[Notification] = (), replacing: Any = WHATEVER
    ) -> bool:
        """Move a read position on and put notifications into the outbox, both or neither.

        False, and nothing done, when the position is not `replacing` (None: not begun): another reader moved it.
        """
        return self._positions.advance(name, value, notifications=notifications, replacing=replacing)

    def revision(self) -> str:
        """Another text whenever a version, a consumer or a consent came or changed; it costs one small query."""
        # Counted, too: of two that write at once the later number may be seen first.
        query = select(func.count(), func.max(AUDIT.c.number)).select_from(AUDIT)
        count, last = self._database.read(lambda connection: tuple(connection.execute(query).one()))
        return f"{count}:{last or 0}"

    def audit(self, subject: str | None = None, *, limit: int = 1000) -> list[AuditEntry]:
        """Who did what to that subject (a contract, a token, a deletion plan), or to any; the latest, oldest first."""
        query = select(AUDIT).order_by(AUDIT.c.number.desc()).limit(limit)
        if subject is not None:
            query = query.where(AUDIT.c.subject == subject)

        def work(connection: Connection) -> list[AuditEntry]:
            return [audit_entry(row) for row in connection.execute(query)][::-1]

        return self._database.read(work)


def _told(
    connection: Connection, before: StoredVersion, after: StoredVersion, scribe: Scribe, announce: AnnounceEnd | None
) -> StoredVersion:
    if announce is not None and after != before:
        consumers = list(registered_in(connection, after.contract_id).values())
        enqueue_in(connection, announce(after, consumers), scribe.at)
    return after
