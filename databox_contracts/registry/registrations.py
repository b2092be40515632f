"""Consumers and their consents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select

from databox_contracts.contact_secrets import contacts_of, refuse_secrets
from databox_contracts.model import Consumer
from databox_contracts.registry.consumers_of import by_origin, consumer_of
from databox_contracts.registry.database import Database
from databox_contracts.registry.records import Origin, RegisteredConsumer, StoredApproval
from databox_contracts.registry.schema import APPROVALS, CONSUMERS
from databox_contracts.registry.signing import refuse_unfit
from databox_contracts.registry.statements import Scribe, insert_missing, put
from databox_contracts.registry.texts import named, storable
from databox_contracts.version_ranges import VersionRange


class Registrations:
    """The consumers of all contracts, and what they consented to."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def consumers(self, contract_id: str | None = None) -> list[RegisteredConsumer]:
        """As `RegistryApi.consumers`."""
        query = select(CONSUMERS).order_by(CONSUMERS.c.contract, CONSUMERS.c.name)
        if contract_id is not None:
            query = query.where(CONSUMERS.c.contract == contract_id)
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return sorted(
            map(_registered, rows), key=lambda one: (one.contract_id, one.consumer.name, by_origin(one.origin))
        )

    def register(
        self, contract_id: str, consumers: Sequence[Consumer], *, by: str, origin: Origin, replacing: bool = False
    ) -> list[RegisteredConsumer]:
        """Register consumers of one contract; with `replacing` those of that origin that are not among them go."""
        named("the contract's id", contract_id)
        for consumer in consumers:
            _checked(contract_id, consumer)
        scribe = Scribe(by, self._clock)
        names = [consumer.name for consumer in consumers]

        def work(connection: Connection) -> None:
            refuse_unfit(connection, contract_id, consumers, str(origin))
            if replacing:
                gone = (CONSUMERS.c.contract == contract_id) & (CONSUMERS.c.origin == str(origin))
                connection.execute(delete(CONSUMERS).where(gone, CONSUMERS.c.name.not_in(names)))
            for consumer in consumers:
                declared = consumer.model_dump(mode="json")
                key = (
                    (CONSUMERS.c.contract == contract_id)
                    & (CONSUMERS.c.name == consumer.name)
                    & (CONSUMERS.c.origin == str(origin))
                )
                if connection.execute(select(CONSUMERS.c.declared).where(key)).scalar() == declared:
                    continue
                row = {
                    "contract": contract_id,
                    "name": consumer.name,
                    "origin": str(origin),
                    "declared": declared,
                    "registered_at": scribe.at,
                    "registered_by": scribe.who,
                }
                put(connection, CONSUMERS, row)
                scribe.note(connection, f"register {consumer.name}", contract_id, origin=str(origin))

        self._database.write(work)
        return [one for one in self.consumers(contract_id) if one.origin is origin and one.consumer.name in names]

    def remove(self, contract_id: str, name: str, *, by: str, origin: Origin) -> bool:
        """As `RegistryApi.remove_consumer`."""
        scribe = Scribe(by, self._clock)

        def work(connection: Connection) -> bool:
            key = (
                (CONSUMERS.c.contract == contract_id) & (CONSUMERS.c.name == name) & (CONSUMERS.c.origin == str(origin))
            )
            if not connection.execute(delete(CONSUMERS).where(key)).rowcount:
                return False
            scribe.note(connection, f"remove {name}", contract_id, origin=str(origin))
            return True

        return self._database.write(work)

    def approve(self, approval: StoredApproval) -> StoredApproval:
        """As `RegistryApi.approve`."""
        named("the contract's id", approval.contract_id)
        named("the consumer's name", approval.consumer)
        named("the approver's name", approval.approver)
        for what in ("dataset", "version", "purpose", "note"):
            storable(f"the approval's {what}", getattr(approval, what) or "")
        key = [
            getattr(approval, one) for one in ("contract_id", "consumer", "approver", "dataset", "version", "purpose")
        ]
        id_ = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]
        scribe = Scribe(approval.approver, self._clock)
        row = {
            "id": id_,
            "contract": approval.contract_id,
            "consumer": approval.consumer,
            "approver": approval.approver,
            "at": approval.at,
            "dataset": approval.dataset,
            "version": approval.version,
            "purpose": approval.purpose,
            "note": approval.note,
        }

        def work(connection: Connection) -> StoredApproval:
            query = select(APPROVALS).where(APPROVALS.c.id == id_)
            if connection.execute(query).one_or_none() is None:
                insert_missing(connection, APPROVALS, [row])
                facts = {name: row[name] for name in ("dataset", "version", "purpose")}
                scribe.note(connection, f"approve for {approval.consumer}", approval.contract_id, **facts)
            return StoredApproval.from_row(connection.execute(query).one())

        return self._database.write(work)

    def approvals(self, contract_id: str | None = None) -> list[StoredApproval]:
        """As `RegistryApi.approvals`."""
        query = select(APPROVALS).order_by(APPROVALS.c.at, APPROVALS.c.id)
        if contract_id is not None:
            query = query.where(APPROVALS.c.contract == contract_id)
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return [StoredApproval.from_row(row) for row in rows]


def _checked(contract_id: str, consumer: Consumer) -> None:
    named(f"the name of a consumer of {contract_id}", consumer.name)
    refuse_secrets(consumer.name, contacts_of(consumer))
    if consumer.versions is not None:
        VersionRange.parse(consumer.versions)


def _registered(row: Any) -> RegisteredConsumer:
    return RegisteredConsumer(
        contract_id=row.contract,
        consumer=consumer_of(row.declared),
        origin=Origin(row.origin),
        registered_at=row.registered_at,
        registered_by=row.registered_by,
    )
