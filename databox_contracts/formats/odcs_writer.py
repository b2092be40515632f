"""The writer of the Open Data Contract Standard: any contract as YAML that is read as the same contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from databox_contracts.formats.emitting import to_yaml
from databox_contracts.formats.identity import joined_description
from databox_contracts.formats.odcs_custom import DOCUMENT
from databox_contracts.formats.odcs_sla import sla_entries
from databox_contracts.formats.odcs_types import server_dialect
from databox_contracts.formats.odcs_writer_schema import custom_properties, references_of, schema_object
from databox_contracts.model import Contract, Server, Team

_PLAIN_VERSION: Final = "v3.1.0"
_NEWEST_VERSION: Final = "v3.2.0"

# What only the newest version of the standard has, by the name of the entry.
_NEWEST: Final = ("context", "deprecated", "enum", "map", "semanticType", "synonyms", "vendor")
_NEWEST_LOGICAL: Final = ("map", "vector")

_AFTER_SCHEMA: Final = ("support", "price", "roles", "authoritativeDefinitions", "contractCreatedTs")


def write(contract: Contract) -> str:
    """The contract as YAML, of v3.1.0 of the standard, or of v3.2.0 where it needs what only that has.

    What the standard has no word for stands in `customProperties` and in `quality` of the engine `databox`.
    """
    return to_yaml(document(contract))


def document(contract: Contract) -> dict[str, Any]:
    """The entries of the contract's document, in the order in which the standard tells them."""
    carried: Mapping[str, Any] = contract.custom.get(DOCUMENT, {})
    dialect = server_dialect(server.type for server in contract.servers)
    references = references_of(contract.datasets)
    found: dict[str, Any] = {
        "apiVersion": _PLAIN_VERSION,
        "kind": "DataContract",
        "id": contract.id,
        "name": contract.name,
        "version": contract.version,
        "status": contract.status,
        "domain": contract.domain,
        **{key: carried[key] for key in ("dataProduct", "tenant") if key in carried},
        "tags": contract.tags,
        "description": _description(contract.description, carried.get("description")),
        "context": carried.get("context"),
        "servers": [_server(server) for server in contract.servers],
        "schema": [schema_object(dataset, dialect, references) for dataset in contract.datasets],
        "slaDefaultElement": carried.get("slaDefaultElement"),
        "slaProperties": [
            *sla_entries(contract.datasets, carried.get("slaDefaultElement")),
            *carried.get("slaProperties", []),
        ],
        "team": _team(contract.team, carried.get("team", {})),
        **{key: carried[key] for key in _AFTER_SCHEMA if key in carried},
        "customProperties": custom_properties(contract),
    }
    kept = {key: value for key, value in found.items() if value not in (None, [], (), {})}
    if any(_needs_newest(value) for value in kept.values()):
        kept["apiVersion"] = _NEWEST_VERSION
    return kept


def _description(text: str, carried: Any) -> dict[str, Any] | None:
    if isinstance(carried, dict):
        parts = (carried.get(key) for key in ("purpose", "usage", "limitations"))
        if joined_description(*parts) == text:
            return carried
        kept = {key: value for key, value in carried.items() if key not in ("purpose", "usage", "limitations")}
        return {"purpose": text, **kept}
    return {"purpose": text} if text else None


def _team(team: Team, carried: Mapping[str, Any]) -> dict[str, Any]:
    beside = carried.get("members", [])
    members = []
    for at, member in enumerate(team.members):
        known = {"username": member.username, "name": member.name, "role": member.role, "dateOut": member.date_out}
        members.append(
            {key: value for key, value in known.items() if value is not None}
            | (beside[at] if len(beside) == len(team.members) else {})
        )
    found = {"name": team.name, "description": team.description or None, "members": members or None}
    return {key: value for key, value in found.items() if value is not None} | {
        key: value for key, value in carried.items() if key != "members"
    }


def _server(server: Server) -> dict[str, Any]:
    found = {
        "server": server.name,
        "type": server.type,
        "environment": server.environment,
        "description": server.description or None,
    }
    return {key: value for key, value in found.items() if value is not None} | dict(server.settings)


def _needs_newest(value: Any) -> bool:
    if isinstance(value, Mapping):
        if value.get("logicalType") in _NEWEST_LOGICAL or any(key in _NEWEST for key in value):
            return True
        # What a custom property holds is its own.
        return any(_needs_newest(part) for key, part in value.items() if key not in ("value", "implementation"))
    return isinstance(value, list | tuple) and any(_needs_newest(part) for part in value)
