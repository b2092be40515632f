"""Who depends on a contract: all that are registered, and those that its own documents declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, select

from databox_contracts.declarations import Declaration
from databox_contracts.model import Consumer, Contract
from databox_contracts.registry.consumers import resolve
from databox_contracts.registry.records import Origin, Status, StoredVersion
from databox_contracts.registry.schema import CONSUMERS
from databox_contracts.registry.statements import Scribe, put
from databox_contracts.registry.versions_of import versions_in
from databox_contracts.versions import Version

_IN_FORCE: Final = (Status.ACTIVE, Status.DEPRECATED)
_PLACES: Final = {
    Origin.CONTRACT: "a published contract",
    Origin.FILE: "a file that was registered",
    Origin.CODE: "code that was registered",
    Origin.REGISTRY: "the registry",
}
_ORIGINS: Final = tuple(str(one) for one in Origin)


def by_origin(origin: str) -> int:
    """The place of an origin among all: of what several say of one consumer, the first holds."""
    return _ORIGINS.index(origin)


def declared_to(connection: Connection, contract_id: str) -> list[Declaration]:
    """What was said to the registry of a contract's consumers, by name and origin."""
    query = select(CONSUMERS.c.name, CONSUMERS.c.origin, CONSUMERS.c.declared)
    rows = connection.execute(query.where(CONSUMERS.c.contract == contract_id)).all()
    return [
        Declaration(contract_id, consumer_of(row.declared), _PLACES[Origin(row.origin)], row.origin)
        for row in sorted(rows, key=lambda row: (row.name, by_origin(row.origin)))
    ]


def registered_in(connection: Connection, contract_id: str) -> dict[str, Consumer]:
    """All by name, in its order; what several origins say of one is made one as `resolve` does."""
    said: dict[str, list[Declaration]] = {}
    for one in declared_to(connection, contract_id):
        said.setdefault(one.consumer.name, []).append(one)
    found = {name: declarations[0].consumer for name, declarations in said.items()}
    several = [
        one for name, many in said.items() for one in many if any(other.consumer != found[name] for other in many)
    ]
    if several:
        # To read the contract takes much longer than to look into the table.
        contract = bare(contract_id, *versions_in(connection, contract_id)[-1:])
        found |= {consumer.name: consumer for consumer in resolve([contract], several).of(contract_id)}
    return found


def bare(contract_id: str, *versions: StoredVersion) -> Contract:
    """The version given, without what it says of consumers; where none is given, one that promises nothing."""
    for version in versions:
        return version.contract().model_copy(update={"consumers": ()})
    return Contract(id=contract_id, version="0")


def consumer_of(declared: Mapping[str, Any]) -> Consumer:
    """The consumer of its JSON data; what only a later version of this package knows of it is left out."""
    return Consumer.model_validate({name: value for name, value in declared.items() if name in Consumer.model_fields})


def declare_consumers(connection: Connection, contract_id: str, scribe: Scribe, *known: Contract) -> None:
    """Make the contract's registered consumers of that origin those that its versions in force declare.

    `known` are versions that need not be read again. What is registered already keeps its time.
    """
    declared: dict[str, Consumer] = {}
    for version in _speaking(versions_in(connection, contract_id)):
        contract = next((one for one in known if one.version == version.version), None) or version.contract()
        declared |= {consumer.name: consumer for consumer in contract.consumers}
    place = (CONSUMERS.c.contract == contract_id) & (CONSUMERS.c.origin == str(Origin.CONTRACT))
    before = {row.name: row.declared for row in connection.execute(select(CONSUMERS).where(place))}
    wanted = {name: consumer.model_dump(mode="json") for name, consumer in declared.items()}
    for name in before:
        if name not in wanted:
            connection.execute(CONSUMERS.delete().where(place, CONSUMERS.c.name == name))
    for name, consumer in wanted.items():
        if before.get(name) != consumer:
            row = {
                "contract": contract_id,
                "name": name,
                "origin": str(Origin.CONTRACT),
                "declared": consumer,
                "registered_at": scribe.at,
                "registered_by": scribe.who,
            }
            put(connection, CONSUMERS, row)


def _speaking(versions: Sequence[StoredVersion]) -> list[StoredVersion]:
    """The newest of each major version that is in force: the others of it are superseded, another major is not.

    Where none is in force, drafts speak.
    """
    in_force = [one for one in versions if one.status in _IN_FORCE]
    newest: dict[int | str, StoredVersion] = {}
    for one in in_force or [one for one in versions if one.status is Status.DRAFT]:
        parsed = Version.parse(one.version)
        newest[parsed.major if parsed is not None else ""] = one
    return list(newest.values())
