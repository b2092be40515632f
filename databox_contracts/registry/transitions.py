"""From draft to active, deprecated and retired: what a version may become, and when."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, Final

from sqlalchemy import Connection, select, update

from databox_contracts.errors import LifecycleError
from databox_contracts.evolution.policies import policy_of
from databox_contracts.formats.notice import notice_of
from databox_contracts.lifecycle import sunset_date
from databox_contracts.model import Contract
from databox_contracts.registry.consumers_of import consumer_of, declare_consumers
from databox_contracts.registry.records import Status, StoredVersion
from databox_contracts.registry.remaining import left_behind
from databox_contracts.registry.schema import CONSUMERS, CONTRACTS, VERSIONS
from databox_contracts.registry.signing import refuse_unsigned
from databox_contracts.registry.statements import Scribe
from databox_contracts.registry.texts import ordinal
from databox_contracts.registry.versions_of import before, exactly, versions_in

_DAY: Final = timedelta(days=1)


def locked(connection: Connection, contract_id: str, version: str) -> StoredVersion:
    """The version, which nobody else changes until the transaction ends. Raises `UnknownContractError`."""
    connection.execute(select(CONTRACTS).where(CONTRACTS.c.id == contract_id).with_for_update())
    return exactly(connection, contract_id, version)


def activated(connection: Connection, found: StoredVersion, scribe: Scribe) -> StoredVersion:
    """The version as an active one; a deprecation is taken back. Raises `LifecycleError` for a retired one.

    A draft needs the consents that its breaks ask for, as a version that is published.
    """
    if found.status is Status.RETIRED:
        raise _refused(found, "it is retired", "Publish what it promised as a new version.")
    if found.status is Status.ACTIVE:
        return found
    if found.status is Status.DRAFT:
        # Another version may have come between, whose readers were not asked when this one was stored.
        others = versions_in(connection, found.contract_id)
        refuse_unsigned(connection, found.contract(), before(others, found.version, found.published_at))
    scribe.note(connection, "activate", found.contract_id, version=found.version, was=str(found.status))
    changed = _changed(connection, found, status=str(Status.ACTIVE), sunset=None)
    declare_consumers(connection, found.contract_id, scribe)
    return changed


def deprecated(
    connection: Connection,
    found: StoredVersion,
    sunset: date | None,
    scribe: Scribe,
    *,
    contract: Contract | None = None,
) -> StoredVersion:
    """The version as a deprecated one that ends on that day.

    Without a day it is the one that the contract says where that is late enough, else the first that its notice period
    leaves. Raises `LifecycleError`.
    """
    if found.status is Status.DRAFT:
        raise _refused(found, "it is a draft, on which nobody relies", "Retire it, or activate it first.")
    if found.status is Status.RETIRED:
        raise _refused(found, "it is retired already", "Nothing is left to deprecate.")
    if found.status is Status.DEPRECATED and sunset in (None, found.sunset):
        return found
    own = contract if contract is not None else found.contract()
    notice = notice_of(own, policy_of(own).name) or timedelta(0)
    earliest = scribe.at.date() + _days(notice)
    if sunset is None:
        said = sunset_date(own)
        sunset = said if said is not None and said >= earliest else earliest
    if sunset < earliest:
        raise _refused(
            found,
            f"it cannot end on {sunset}: its consumers have {_days(notice).days} days of notice",
            f"Choose {earliest} or later.",
        )
    scribe.note(connection, "deprecate", found.contract_id, version=found.version, sunset=sunset.isoformat())
    return _changed(connection, found, status=str(Status.DEPRECATED), sunset=sunset)


def retired(connection: Connection, found: StoredVersion, scribe: Scribe) -> StoredVersion:
    """The version as a retired one. Raises `LifecycleError` with every reason that is against it."""
    if found.status is Status.RETIRED:
        return found
    if found.status is not Status.DRAFT:
        reasons = list(_against(connection, found, scribe.at.date()))
        if reasons:
            raise LifecycleError(
                found.contract_id,
                found.version,
                [f"it cannot be retired: {reasons[0]}", *reasons[1:]],
                hint="Deprecate it, wait for its sunset, and have its consumers move on or removed.",
            )
    scribe.note(connection, "retire", found.contract_id, version=found.version)
    changed = _changed(connection, found, status=str(Status.RETIRED))
    declare_consumers(connection, found.contract_id, scribe)
    return changed


def _against(connection: Connection, found: StoredVersion, today: date) -> list[str]:
    reasons: list[str] = []
    if found.status is Status.ACTIVE:
        reasons.append("it is active and was never deprecated")
    elif found.sunset is not None and today < found.sunset:
        reasons.append(f"it is to stay until {found.sunset}, and today is {today}")
    remaining = [
        one.version
        for one in versions_in(connection, found.contract_id)
        if ordinal(one.version) != ordinal(found.version)
        and one.status in (Status.ACTIVE, Status.DEPRECATED)
        and one.in_effect(today)
    ]
    rows = connection.execute(
        select(CONSUMERS.c.declared).where(CONSUMERS.c.contract == found.contract_id).order_by(CONSUMERS.c.name)
    ).scalars()
    consumers = [consumer_of(row) for row in rows]
    return [*reasons, *dict.fromkeys(left_behind(found.version, remaining, consumers))]


def _changed(connection: Connection, found: StoredVersion, **values: Any) -> StoredVersion:
    connection.execute(
        update(VERSIONS)
        .where(VERSIONS.c.contract == found.contract_id, VERSIONS.c.ordinal == ordinal(found.version))
        .values(**values)
    )
    return exactly(connection, found.contract_id, found.version)


def _days(notice: timedelta) -> timedelta:
    """Whole days: a part of a day is given as a day."""
    return timedelta(days=-(-notice // _DAY))


def _refused(found: StoredVersion, reason: str, hint: str) -> LifecycleError:
    return LifecycleError(found.contract_id, found.version, [reason], hint=hint)
