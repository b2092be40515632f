"""Publishing: a version is stored once and stays, together with its consumers and with those who are to be told."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, select, update

from databox_contracts.contact_secrets import contacts_of, refuse_secrets
from databox_contracts.errors import ContractConflictError, ContractError, DataboxError, RegistryError
from databox_contracts.formats import dump_contract, load_contract
from databox_contracts.lifecycle import EFFECTIVE, SUNSET, effective_date, sunset_date
from databox_contracts.model import Contract
from databox_contracts.notifications import Notification
from databox_contracts.registry.api import Announce, AnnounceEnd
from databox_contracts.registry.consumers_of import declare_consumers, registered_in
from databox_contracts.registry.enqueuing import enqueue_in
from databox_contracts.registry.records import Outcome, Publication, Status, StoredVersion
from databox_contracts.registry.schema import CONTRACTS, VERSIONS
from databox_contracts.registry.signing import refuse_misuse, refuse_unsigned
from databox_contracts.registry.statements import Scribe, insert_missing
from databox_contracts.registry.texts import named, ordinal, storable
from databox_contracts.registry.transitions import deprecated, retired
from databox_contracts.registry.versions_of import before, stored, versions_in

_STATUSES: Final = {
    "proposed": Status.DRAFT,
    "draft": Status.DRAFT,
    "active": Status.ACTIVE,
    "deprecated": Status.DEPRECATED,
    "retired": Status.RETIRED,
}
_ORDER: Final = tuple(Status)


@dataclass(frozen=True)
class Prepared:
    """A contract as it is to be stored."""

    contract: Contract
    ordinal: str
    content: str
    digest: str
    status: Status

    @property
    def key(self) -> tuple[str, str]:
        """Its contract's id and its version in the one spelling."""
        return self.contract.id, self.ordinal


def prepare(contract: Contract) -> Prepared:
    """The contract's canonical text and digest. Raises `RegistryError` for what cannot be stored."""
    named("the contract's id", contract.id)
    named(f"the version of {contract.id}", contract.version)
    for consumer in contract.consumers:
        named(f"the name of a consumer of {contract.id}", consumer.name)
        refuse_secrets(consumer.name, contacts_of(consumer))
    content = storable(f"the text of {contract.id}", dump_contract(contract))
    _read_again(contract, content)
    return Prepared(
        contract,
        ordinal(contract.version),
        content,
        digest_of(contract, content),
        _STATUSES.get(contract.status.strip().lower(), Status.ACTIVE),
    )


def _read_again(contract: Contract, content: str) -> None:
    """What nobody could read from the registry again must not get into it."""
    try:
        load_contract(content)
    except ContractError as error:
        raise RegistryError(
            f"{contract.id} {contract.version} cannot be kept, since it cannot be read again: {error.message}",
            hint=error.hint or "`databox-contracts lint` tells what is wrong with it.",
        ) from error


def digest_of(contract: Contract, content: str | None = None) -> str:
    """SHA-256 of what the contract promises: without its status and its days, which move on while it stays the same.

    `content` is its canonical text where that is known.
    """
    custom = {name: value for name, value in contract.custom.items() if name not in (EFFECTIVE, SUNSET)}
    # Most contracts are active and say no day: then their own text is the one that counts, and need not be made twice.
    if content is None or contract.status != Status.ACTIVE or len(custom) < len(contract.custom):
        content = dump_contract(contract.model_copy(update={"status": str(Status.ACTIVE), "custom": custom}))
    return hashlib.sha256(content.encode()).hexdigest()


def publish_in(
    connection: Connection,
    prepared: Sequence[Prepared],
    scribe: Scribe,
    notifications: Sequence[Notification] | Announce,
    announce_end: AnnounceEnd | None,
) -> list[Publication]:
    """Publish all in the connection's transaction, or raise."""
    ids = sorted({one.contract.id for one in prepared})
    insert_missing(connection, CONTRACTS, [{"id": one} for one in ids])
    # Whoever publishes another version of the same contract waits; in this order nobody waits for each other.
    connection.execute(select(CONTRACTS).where(CONTRACTS.c.id.in_(ids)).order_by(CONTRACTS.c.id).with_for_update())
    done: list[Publication] = []
    seen: set[tuple[str, str]] = set()
    told: list[Notification] = []
    for one in prepared:
        known = registered_in(connection, one.contract.id)
        publication, previous = _publish_one(connection, one, scribe, is_first=one.key not in seen)
        seen.add(one.key)
        outcome, is_ending = publication.outcome, publication.stored.is_ending
        is_coming = outcome is Outcome.PUBLISHED or (outcome is Outcome.CHANGED and not is_ending)
        if is_coming:
            refuse_unsigned(connection, one.contract, previous)
            refuse_misuse(connection, one.contract)
        if is_coming and callable(notifications):
            consumers = dict(sorted({**known, **registered_in(connection, one.contract.id)}.items()))
            fresh = list(notifications(one.contract, previous, list(consumers.values())))
            told += fresh
            publication = replace(publication, notified=len(fresh))
        elif outcome is Outcome.CHANGED and is_ending and announce_end is not None:
            fresh = list(announce_end(publication.stored, list(known.values())))
            told += fresh
            publication = replace(publication, notified=len(fresh))
        done.append(publication)
    if not callable(notifications) and any(one.outcome is not Outcome.UNCHANGED for one in done):
        told += notifications
        done[0] = replace(done[0], notified=done[0].notified + len(notifications))
    enqueue_in(connection, told, scribe.at)
    return done


def _publish_one(
    connection: Connection, one: Prepared, scribe: Scribe, *, is_first: bool
) -> tuple[Publication, StoredVersion | None]:
    """What became of it, and the version before; `is_first` where this call did not publish it already."""
    known = versions_in(connection, one.contract.id)
    previous = before(known, one.contract.version, scribe.at)
    name = previous.version if previous is not None else None
    row: Any = connection.execute(
        select(VERSIONS).where(VERSIONS.c.contract == one.contract.id, VERSIONS.c.ordinal == one.ordinal)
    ).one_or_none()
    if row is None:
        found = _insert(connection, one, scribe)
        declare_consumers(connection, one.contract.id, scribe, one.contract)
        return Publication(outcome=Outcome.PUBLISHED, stored=found, previous=name), previous
    found = stored(row)
    if one.digest != row.digest and one.digest != _digest_today(row.content):
        raise ContractConflictError(
            one.contract.id, one.contract.version, row.digest, one.digest, published_as=row.version
        )
    if row.publication == scribe.mark and is_first:
        # This very call stored it, and the answer to its commit was lost.
        return Publication(outcome=Outcome.PUBLISHED, stored=found, previous=name), previous
    moved = _move_on(connection, one, found, scribe)
    outcome = Outcome.CHANGED if moved != found else Outcome.UNCHANGED
    return Publication(outcome=outcome, stored=moved, previous=name), previous


def _insert(connection: Connection, one: Prepared, scribe: Scribe) -> StoredVersion:
    contract = one.contract
    row = {
        "contract": contract.id,
        "ordinal": one.ordinal,
        "version": contract.version,
        "title": storable("the contract's name", contract.title),
        "status": str(one.status),
        "digest": one.digest,
        "content": one.content,
        "published_at": scribe.at,
        "published_by": scribe.who,
        "publication": scribe.mark,
        "effective": effective_date(contract),
        "sunset": sunset_date(contract),
    }
    connection.execute(VERSIONS.insert().values(**row))
    scribe.note(connection, "publish", contract.id, version=contract.version, digest=one.digest)
    return versions_in(connection, contract.id, one.ordinal)[0]


def _move_on(connection: Connection, one: Prepared, found: StoredVersion, scribe: Scribe) -> StoredVersion:
    """A published version whose document has got another status or day meanwhile; it never goes back."""
    contract = one.contract
    effective = effective_date(contract)
    values: dict[str, Any] = {}
    if effective is not None and effective != found.effective:
        values["effective"] = effective
    if one.status is Status.ACTIVE and found.status is Status.DRAFT:
        values["status"] = str(Status.ACTIVE)
    if values:
        connection.execute(
            update(VERSIONS)
            .where(VERSIONS.c.contract == contract.id, VERSIONS.c.ordinal == one.ordinal)
            .values(**values)
        )
        scribe.note(
            connection,
            "restate",
            contract.id,
            version=found.version,
            **{key: str(value) for key, value in values.items()},
        )
        found = versions_in(connection, contract.id, one.ordinal)[0]
        declare_consumers(connection, contract.id, scribe, contract)
    ahead = _ORDER.index(one.status) > _ORDER.index(found.status)
    sunset = sunset_date(contract)
    is_later = found.status is one.status and sunset is not None and (found.sunset is None or sunset > found.sunset)
    if one.status is Status.DEPRECATED and (ahead or is_later):
        return deprecated(connection, found, sunset, scribe, contract=contract)
    if one.status is Status.RETIRED and ahead:
        return retired(connection, found, scribe)
    return found


def _digest_today(content: str) -> str | None:
    """The digest of what was stored as this version of the package would take it; its text may be another by now."""
    try:
        return digest_of(load_contract(content))
    except DataboxError:
        return None
