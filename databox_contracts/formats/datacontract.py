"""The reader of the Data Contract Specification, 0.9.3 to 1.2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from databox_contracts.formats.datacontract_fields import read_model
from databox_contracts.formats.datacontract_levels import read_service_levels
from databox_contracts.formats.datacontract_sodacl import read_quality_block
from databox_contracts.formats.datacontract_types import DOCUMENT
from databox_contracts.formats.datacontract_versions import carried_version
from databox_contracts.formats.durations import read_duration
from databox_contracts.formats.governing import extra_consumers
from databox_contracts.formats.identity import extensions, joined_description, read_version
from databox_contracts.formats.odcs_types import server_dialect
from databox_contracts.formats.reading import Report, Section
from databox_contracts.model import Contract, Dataset, Server

_SERVER_ENTRIES: Final = ("type", "environment", "description")


def recognises(data: Mapping[str, Any]) -> bool:
    """Whether a document claims to be of this specification, or can only be."""
    if "dataContractSpecification" in data:
        return True
    return isinstance(data.get("models"), dict) and isinstance(data.get("info"), dict)


def read(report: Report) -> Contract | None:
    """The contract, with what is wrong in the report; None where it has no identity.

    A contract with errors in the report lacks what the errors are about, and is for showing only.
    """
    section = Section(report, (), report.document.data)
    spoken = carried_version(section)
    contract_id = section.needed("id", "the contract")
    info = section.section("info")
    if info is None and section.data.get("info") is None:
        section.error("the contract has no 'info'", "write `info:` with a title and a version")
    version = read_version(info, "'info'") if info is not None else None
    servers = tuple(_servers(section))
    datasets = read_quality_block(section, _models(section, server_dialect(server.type for server in servers)))
    levels = [found for key in ("servicelevels", "serviceLevels") if (found := section.section(key)) is not None]
    for found in levels:
        datasets = read_service_levels(found, datasets)
    carried = spoken | section.carried(
        "definitions",
        "links",
        "examples",
        "quality",
        "servicelevels",
        "serviceLevels",
        "terms",
    )
    terms, notice_period = _terms(section)
    about: dict[str, Any] = _info(info) if info is not None else {}
    contact = about.pop("contact", {})
    if "schema" in section:
        carried |= section.not_enforced("schema")
        section.warning("'schema' has been replaced in the specification and is not read", "write `models`", "schema")
    tags = section.texts("tags")
    consumers = extra_consumers(section)
    carried |= contact | extensions(section)
    if contract_id is None or version is None:
        return None
    return Contract(
        id=contract_id,
        name=about["title"],
        version=version,
        status=about["status"] or "draft",
        description=joined_description(about["description"], *terms),
        tags=tags,
        owner=about["owner"],
        servers=servers,
        datasets=datasets,
        consumers=consumers,
        notice_period=notice_period,
        custom={DOCUMENT: carried},
        dialect="datacontract",
        source=report.document.source,
    )


def _info(info: Section) -> dict[str, Any]:
    found: dict[str, Any] = {key: info.text(key) for key in ("title", "status", "description", "owner")}
    if found["title"] is None:
        info.warning("the contract has no 'title'", "write `title: ...` under `info`")
    contact = info.section("contact")
    kept: dict[str, Any] = {}
    if contact is not None:
        for key in ("name", "url", "email"):
            contact.text(key)
        kept["contact"] = contact.data
        # Documentation of how to reach someone may hold whatever is used for that.
        contact.carried(*contact.data)
    kept |= extensions(info)
    found["contact"] = {"info": kept} if kept else {}
    return found


def _terms(section: Section) -> tuple[tuple[str | None, str | None], str | None]:
    """Usage and limitations, and the notice period as it is written."""
    terms = section.section("terms")
    if terms is None:
        return (None, None), None
    usage, limitations = terms.text("usage"), terms.text("limitations")
    notice = terms.text("noticePeriod")
    sound = read_duration(terms, "noticePeriod") is not None
    terms.carried("billing", "policies", "description")
    extensions(terms)
    return (usage, limitations), notice if sound else None


def _servers(section: Section) -> Iterator[Server]:
    servers = section.section("servers")
    for name in servers.data if servers is not None else ():
        entry = servers.section(name) if servers is not None else None
        if entry is None:
            continue
        kind = entry.needed("type", f"the server {name!r}")
        environment, description = entry.text("environment"), entry.text("description")
        settings = {key: value for key, value in entry.data.items() if key not in _SERVER_ENTRIES}
        if kind is not None:
            yield Server(
                name=name, type=kind, environment=environment, description=description or "", settings=settings
            )


def _models(section: Section, dialect: str | None) -> tuple[Dataset, ...]:
    models = section.section("models")
    found, inherited = [], count()
    for name in models.data if models is not None else ():
        model = models.section(name) if models is not None else None
        if models is not None and model is None and models.data[name] is None:
            model = Section(section.report, ("models", name), {})
        if model is not None and models is not None:
            found.append(read_model(model, section, name, dialect, tuple(models.data), inherited))
    if not found and not any(place[:1] == ("models",) for place in section.report.places):
        section.warning("the contract declares no model, so it promises nothing", "list them under `models`", "models")
    return tuple(found)
