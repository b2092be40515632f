"""The reader of the Open Data Contract Standard, v3.0 to v3.2."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from databox_contracts.formats.identity import joined_description, read_version
from databox_contracts.formats.odcs_custom import (
    CustomProperties,
    read_consumers,
    read_enforcement,
    read_evolution,
    read_governance,
    read_modes,
)
from databox_contracts.formats.odcs_references import References
from databox_contracts.formats.odcs_schema import read_dataset
from databox_contracts.formats.odcs_sla import read_sla
from databox_contracts.formats.odcs_standard import check_against_standard, server_entries
from databox_contracts.formats.odcs_types import server_dialect
from databox_contracts.formats.reading import Report, Section
from databox_contracts.model import Contract, Dataset, Member, Server, Team

_READ_VERSION: Final = re.compile(r"v3\.[0-2]\.\d+")

_DOCUMENTATION: Final = (
    "authoritativeDefinitions",
    "context",
    "contractCreatedTs",
    "dataProduct",
    "price",
    "roles",
    "support",
    "tenant",
)

_SERVER_ENTRIES: Final = ("server", "type", "environment", "description")

_MISPLACED: Final = {
    "schemas": "did you mean 'schema'?",
    **dict.fromkeys(("quality", "properties", "columns"), "write it in a schema object"),
    **dict.fromkeys(
        (
            *("owner", "piiClass", "pii", "enforcement", "schemaModes", "consumers", "evolution", "governance"),
            *("noticePeriod", "semantics"),
        ),
        "write it under `customProperties`",
    ),
}


def recognises(data: Mapping[str, Any]) -> bool:
    """Whether a document claims to be of this standard, or can only be."""
    if data.get("kind") == "DataContract" or str(data.get("apiVersion", "")).startswith(("v2", "v3", "3.")):
        return True
    return isinstance(data.get("schema"), list) and "dataContractSpecification" not in data


def read(report: Report) -> Contract | None:
    """The contract, with what is wrong in the report; None where it has no identity.

    A contract with errors in the report lacks what the errors are about, and is for showing only.
    """
    section = Section(report, (), report.document.data)
    if not _is_read_version(section):
        return None
    _check_kind(section)
    contract_id = section.needed("id", "the contract")
    version = read_version(section, "the contract", only_text=True)
    custom = CustomProperties(section, Contract)
    servers = _servers(section)
    description, description_parts = _description(section)
    datasets = _datasets(section, custom, server_dialect(server.type for server in servers))
    team, team_parts = _team(section)
    datasets, service_levels = read_sla(section, datasets)
    carried = section.carried(*_DOCUMENTATION) | description_parts | team_parts | service_levels
    words: dict[str, Any] = {
        "owner": custom.text("owner"),
        "consumers": read_consumers(custom),
        "evolution": read_evolution(custom),
        "enforcement": read_enforcement(custom),
        "governance": read_governance(custom),
        "notice_period": custom.text("noticePeriod"),
    }
    contract = None
    if contract_id is not None and version is not None:
        contract = Contract(
            id=contract_id,
            name=section.text("name"),
            version=version,
            status=section.text("status") or "draft",
            description=description,
            domain=section.text("domain"),
            tags=section.texts("tags"),
            team=team,
            servers=servers,
            datasets=datasets,
            custom=custom.rest(carried),
            dialect="odcs",
            source=report.document.source,
            **words,
        )
    else:
        section.carried("name", "status", "domain", "tags")
    section.close(_MISPLACED)
    check_against_standard(report)
    return contract


def _is_read_version(section: Section) -> bool:
    written = section.text("apiVersion")
    if written is None:
        section.warning("the contract has no 'apiVersion' and is read as v3.2.0", "write `apiVersion: v3.2.0`")
    elif written.startswith("v2"):
        section.error(f"the standard's version {written} is not read", "bring the document to v3", "apiVersion")
        return False
    elif not _READ_VERSION.fullmatch(written):
        section.warning(
            f"the standard's version {written!r} is not known and is read as v3.2.0",
            "v3.0.0 to v3.2.x are",
            "apiVersion",
        )
    return True


def _check_kind(section: Section) -> None:
    written = section.text("kind")
    if written is None:
        section.warning("the contract has no 'kind'", "write `kind: DataContract`")
    elif written != "DataContract":
        section.error(f"a document of the kind {written!r} is no contract", "write `kind: DataContract`", "kind")


def _description(section: Section) -> tuple[str, dict[str, Any]]:
    if isinstance(section.data.get("description"), str):
        return section.text("description") or "", {}
    parts = section.section("description")
    if parts is None:
        return "", {}
    purpose, usage, limitations = (parts.text(key) for key in ("purpose", "usage", "limitations"))
    parts.carried("authoritativeDefinitions", "customProperties")
    parts.close()
    texts = {"purpose": purpose, "usage": usage, "limitations": limitations}
    said = {key: texts.get(key, value) for key, value in parts.data.items() if texts.get(key, value) is not None}
    known = {"description": said} if set(said) - {"purpose"} else {}
    return joined_description(purpose, usage, limitations), known


_MEMBER_DOCUMENTATION: Final = (
    "id",
    "description",
    "dateIn",
    "replacedByUsername",
    "tags",
    "customProperties",
    "authoritativeDefinitions",
)


def _team(section: Section) -> tuple[Team, dict[str, Any]]:
    """The team, as v3.1 has it or as the list of members of v3.0, and what the model has no place for."""
    if isinstance(section.raw("team"), list):
        members, beside = _members(section, "team")
        return Team(members=members), _beside({}, beside)
    team = section.section("team")
    if team is None:
        return Team(), {}
    known = team.carried("id", "tags", "customProperties", "authoritativeDefinitions")
    members, beside = _members(team, "members")
    found = Team(name=team.text("name"), description=team.text("description") or "", members=members)
    team.close()
    return found, _beside(known, beside)


def _beside(team: dict[str, Any], members: list[dict[str, Any]]) -> dict[str, Any]:
    known = {**team, **({"members": members} if any(members) else {})}
    return {"team": known} if known else {}


def _members(section: Section, key: str) -> tuple[tuple[Member, ...], list[dict[str, Any]]]:
    """The members, and for each what is written beside."""
    found, beside = [], []
    for entry in section.sections(key):
        username = entry.needed("username", "a member of the team")
        known = entry.carried(*_MEMBER_DOCUMENTATION)
        member = Member(
            username=username or "", name=entry.text("name"), role=entry.text("role"), date_out=entry.text("dateOut")
        )
        entry.close()
        if username is not None:
            found.append(member)
            beside.append(known)
    return tuple(found), beside


def _servers(section: Section) -> tuple[Server, ...]:
    found: list[Server] = []
    for entry in section.sections("servers"):
        name, kind = entry.needed("server", "a server"), entry.needed("type", "a server")
        environment, description = entry.text("environment"), entry.text("description")
        # Which further entries there may be depends on the type. Unknown ones are kept: a reader may want them.
        settings = {key: value for key, value in entry.data.items() if key not in _SERVER_ENTRIES}
        entry.carried(*server_entries(kind or "custom"))
        entry.close()
        if name is None or kind is None:
            continue
        if any(server.name == name for server in found):
            entry.error(f"the server {name!r} stands here again", "rename or remove one", "server")
            continue
        found.append(
            Server(name=name, type=kind, environment=environment, description=description or "", settings=settings)
        )
    return tuple(found)


def _datasets(section: Section, custom: CustomProperties, dialect: str | None) -> tuple[Dataset, ...]:
    modes, pii = read_modes(custom), custom.flag("pii")
    references = References(section.data.get("schema"))
    found: list[Dataset] = []
    for entry in section.sections("schema"):
        dataset = read_dataset(entry, dialect, references, modes, pii)
        if dataset is None:
            continue
        if any(other.name == dataset.name for other in found):
            entry.error(f"the dataset {dataset.name!r} stands here again", "rename or remove one", "name")
        elif any(other.table_name == dataset.table_name for other in found):
            entry.warning(
                f"the table {dataset.table_name!r} belongs to another dataset too", "correct one", "physicalName"
            )
        found.append(dataset)
    if not found and not any(place[:1] == ("schema",) for place in section.report.places):
        section.warning(
            "the contract declares no dataset, so it promises nothing", "list them under `schema`", "schema"
        )
    return tuple(found)
