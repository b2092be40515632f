"""The reader of the Data Contract Specification, 0.9.3 to 1.2."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from databox_contracts.errors import ContractError
from databox_contracts.formats.attaching import attached, logical_types
from databox_contracts.formats.datacontract_fields import DOCUMENT, read_model
from databox_contracts.formats.datacontract_levels import read_service_levels
from databox_contracts.formats.durations import read_duration
from databox_contracts.formats.identity import extensions, joined_description, read_version
from databox_contracts.formats.odcs_types import server_dialect
from databox_contracts.formats.positions import parse_yaml
from databox_contracts.formats.reading import Report, Section, nearest
from databox_contracts.formats.sodacl import SodaRule, Table, read_checks
from databox_contracts.model import Contract, Dataset, Server
from databox_contracts.rules import NotEnforced

_READ_VERSION: Final = re.compile(r"0\.9\.3|1\.[0-2](?:\.\d+)?")
_SERVER_ENTRIES: Final = ("type", "environment", "description")
_CHECKS_FOR: Final = re.compile(r"checks for\s+(\S+)(\s*\[.*\])?", re.IGNORECASE)


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
    _check_version(section)
    contract_id = section.needed("id", "the contract")
    info = section.section("info")
    if info is None and section.data.get("info") is None:
        section.error("the contract has no 'info'", "write `info:` with a title and a version")
    version = read_version(info, "'info'") if info is not None else None
    servers = tuple(_servers(section))
    datasets = _quality(section, _models(section, server_dialect(server.type for server in servers)))
    levels = [found for key in ("servicelevels", "serviceLevels") if (found := section.section(key)) is not None]
    for found in levels:
        datasets = read_service_levels(found, datasets)
    carried = section.carried(
        "dataContractSpecification",
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
        notice_period=notice_period,
        custom={DOCUMENT: carried},
        dialect="datacontract",
        source=report.document.source,
    )


def _check_version(section: Section) -> None:
    written = section.report.document.text(("dataContractSpecification",))
    section.raw("dataContractSpecification")
    if written is None:
        section.warning(
            "the contract has no 'dataContractSpecification' and is read as 1.2.0",
            "write `dataContractSpecification: 1.2.0`",
        )
    elif not _READ_VERSION.fullmatch(written):
        section.warning(
            f"the specification's version {written[:40]!r} is not known and is read as 1.2.0",
            "0.9.3 to 1.2.x are",
            "dataContractSpecification",
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
    found = []
    for name in models.data if models is not None else ():
        model = models.section(name) if models is not None else None
        if models is not None and model is None and models.data[name] is None:
            model = Section(section.report, ("models", name), {})
        if model is not None and models is not None:
            found.append(read_model(model, section, name, dialect, tuple(models.data)))
    if not found and not any(place[:1] == ("models",) for place in section.report.places):
        section.warning("the contract declares no model, so it promises nothing", "list them under `models`", "models")
    return tuple(found)


# --- `quality` of 0.9.3 -----------------------------------------------------------------------------------------------


def _quality(section: Section, datasets: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
    """The datasets with the rules of the document's own `quality`: SodaCL as YAML, or as a text that is YAML."""
    quality = section.section("quality")
    if quality is None:
        return datasets
    kind = quality.needed("type", "'quality'")
    specification = quality.raw("specification")
    extensions(quality)
    if kind is None or specification is None:
        if kind is not None:
            quality.error("'quality' has no 'specification'", "write the checks below `specification:`")
        return datasets
    if kind.strip().lower() != "sodacl":
        return _unread(quality, datasets, f"the quality block is for another engine, {kind[:40]}")
    if isinstance(specification, str):
        return _quality_of_text(quality, specification, datasets)
    checks = quality.section("specification")
    if checks is None:
        return datasets
    if "$ref" in checks:
        checks.text("$ref")
        return _unread(quality, datasets, "the quality block stands in another document")
    found = _soda_rules(checks, datasets)
    return tuple(attached(dataset, found[dataset.name]) for dataset in datasets)


def _unread(quality: Section, datasets: tuple[Dataset, ...], reason: str) -> tuple[Dataset, ...]:
    quality.warning(f"not enforced: {reason}", "it is shown as skipped in every verdict", "specification")
    rule = NotEnforced(name="quality", reason=reason, position=quality.at("specification"))
    return tuple(attached(dataset, [SodaRule(None, rule)]) for dataset in datasets)


def _soda_rules(checks: Section, datasets: tuple[Dataset, ...]) -> dict[str, list[SodaRule]]:
    """The rules of all `checks for MODEL`, by the model."""
    found: dict[str, list[SodaRule]] = {dataset.name: [] for dataset in datasets}
    for key in checks.data:
        match = _CHECKS_FOR.fullmatch(key.strip())
        if match is None:
            checks.raw(key)
            checks.warning(f"not enforced: {key[:60]!r} is Soda's own", "only `checks for MODEL` are read", key)
            continue
        name = match[1].strip('"`')
        dataset = next((one for one in datasets if one.name == name), None)
        if dataset is None:
            near = nearest(name, found)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(list(found)[:10]) or 'none'}"
            checks.raw(key)
            checks.error(f"there are checks for {name[:60]!r}, which is no model", hint, key)
        elif match[2]:
            checks.raw(key)
            reason = f"checks for a part of the rows, {match[2].strip()[:40]}"
            checks.warning(f"not enforced: {reason}", "it is shown as skipped in every verdict", key)
            found[name].append(SodaRule(None, NotEnforced(reason=reason, position=checks.at(key))))
        else:
            found[name].extend(read_checks(checks, key, Table(name, logical_types(dataset))))
    return found


def _quality_of_text(quality: Section, text: str, datasets: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
    """The datasets with the checks of a text; all are placed where it begins, since it has no lines of its own."""
    report = quality.report
    try:
        inner = Report(parse_yaml(text, report.document.source))
    except ContractError as error:
        quality.error(f"the checks cannot be read: {error.message}", error.hint, "specification")
        return datasets
    if not isinstance(inner.document.data, dict):
        quality.error("the checks are no mapping", "write `checks for MODEL:` and the list below", "specification")
        return datasets
    found = _soda_rules(Section(inner, (), inner.document.data), datasets)
    place, path = quality.at("specification"), (*quality.path, "specification")
    for finding in inner.findings:
        line = f"line {finding.position.line} of the checks: " if finding.position is not None else ""
        report.add(finding.level, path, line + finding.message, finding.hint, field=finding.field, position=place)
    return tuple(
        attached(dataset, [replace(one, rule=replace(one.rule, position=place)) for one in found[dataset.name]])
        for dataset in datasets
    )
