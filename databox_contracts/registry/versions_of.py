"""Finding versions: all of a contract, the one that is meant, and the names nearest to one that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any, Final

from sqlalchemy import Connection, select

from databox_contracts.errors import UnknownContractError, VersionRangeError
from databox_contracts.registry.records import Status, StoredVersion
from databox_contracts.registry.schema import CONTRACTS, VERSIONS
from databox_contracts.registry.texts import ascending, ordinal
from databox_contracts.version_ranges import VersionRange
from databox_contracts.versions import Version

# Status, and whether it is in effect; drafts and retired versions are looked at where there is nothing else.
_PREFERRED: Final = (
    (Status.ACTIVE, True),
    (Status.DEPRECATED, True),
    (Status.ACTIVE, False),
    (Status.DEPRECATED, False),
    (Status.DRAFT, True),
    (Status.DRAFT, False),
)
_MOST_NAMES: Final = 10


def stored(row: Any) -> StoredVersion:
    """A version from its row."""
    return StoredVersion(
        contract_id=row.contract,
        version=row.version,
        title=row.title,
        status=Status(row.status),
        digest=row.digest,
        published_at=row.published_at,
        published_by=row.published_by,
        effective=row.effective,
        sunset=row.sunset,
        content=row.content,
    )


def versions_in(connection: Connection, contract_id: str | None = None, one: str | None = None) -> list[StoredVersion]:
    """The versions of a contract (None: of all) in ascending order; the one of that ordinal alone where it is given."""
    query = select(VERSIONS)
    if contract_id is not None:
        query = query.where(VERSIONS.c.contract == contract_id)
    if one is not None:
        query = query.where(VERSIONS.c.ordinal == one)
    found = [stored(row) for row in connection.execute(query)]
    return sorted(found, key=lambda version: (version.contract_id, *ascending(version.version, version.published_at)))


def known_versions(connection: Connection, contract_id: str) -> list[StoredVersion]:
    """As `versions_in`. Raises `UnknownContractError` where there is none."""
    found = versions_in(connection, contract_id)
    if not found:
        ids = list(connection.execute(select(CONTRACTS.c.id).order_by(CONTRACTS.c.id)).scalars())
        near = get_close_matches(contract_id, ids, n=_MOST_NAMES, cutoff=0.5) or ids[:_MOST_NAMES]
        raise UnknownContractError(contract_id, known=near)
    return found


def exactly(connection: Connection, contract_id: str, version: str) -> StoredVersion:
    """The version of that text in any of its spellings. Raises `UnknownContractError`."""
    known = known_versions(connection, contract_id)
    for one in known:
        if ordinal(one.version) == ordinal(version):
            return one
    raise UnknownContractError(contract_id, version, known=_names(known))


def newest(versions: Sequence[StoredVersion], today: date) -> StoredVersion:
    """The greatest of those of the best status that are in effect; there is at least one, in ascending order."""
    for status, in_effect in _PREFERRED:
        found = [one for one in versions if one.status is status and one.in_effect(today) is in_effect]
        if found:
            return found[-1]
    return versions[-1]


def before(versions: Sequence[StoredVersion], version: str, published_at: datetime) -> StoredVersion | None:
    """The version that readers had before that one: the greatest below it that is or was in force."""
    own = ascending(version, published_at)
    below = [
        one
        for one in versions
        if ordinal(one.version) != ordinal(version)
        and one.status is not Status.DRAFT
        and ascending(one.version, one.published_at) < own
    ]
    return below[-1] if below else None


def meant(connection: Connection, contract_id: str, version: str | None, today: date) -> StoredVersion:
    """The version that a text or a range means, or the newest. Raises `UnknownContractError`."""
    known = known_versions(connection, contract_id)
    if version is None:
        return newest(known, today)
    for one in known:
        if ordinal(one.version) == ordinal(version):
            return one
    try:
        wanted = VersionRange.parse(version)
    except VersionRangeError:
        raise UnknownContractError(contract_id, version, known=_names(known)) from None
    usable = [one for one in known if one.status in (Status.ACTIVE, Status.DEPRECATED)]
    fitting = [one for one in usable if (parsed := Version.parse(one.version)) is not None and wanted.allows(parsed)]
    if not fitting:
        raise UnknownContractError(contract_id, version, known=_names(known))
    return ([one for one in fitting if one.in_effect(today)] or fitting)[-1]


def _names(versions: Sequence[StoredVersion]) -> list[str]:
    return [f"{one.version} ({one.status})" for one in versions[-_MOST_NAMES:]]
