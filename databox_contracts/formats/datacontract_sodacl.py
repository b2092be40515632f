"""`quality` of the whole document, as 0.9.3 has it: SodaCL, as rules of the models and fields that it is about."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from databox_contracts.errors import ContractError
from databox_contracts.formats.attaching import attached, logical_types
from databox_contracts.formats.identity import extensions
from databox_contracts.formats.positions import parse_yaml
from databox_contracts.formats.reading import Report, Section, nearest
from databox_contracts.formats.sodacl import SodaRule, Table, read_checks
from databox_contracts.model import Dataset
from databox_contracts.rules import NotEnforced

_CHECKS_FOR: Final = re.compile(r"checks for\s+(\S+)(\s*\[.*\])?", re.IGNORECASE)


def read_quality_block(section: Section, datasets: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
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
