"""Datasets and fields back into schema objects and properties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from databox_contracts.formats.odcs_custom import DOCUMENT, written_words
from databox_contracts.formats.odcs_references import References
from databox_contracts.formats.odcs_sla import is_service_level
from databox_contracts.formats.odcs_types import SPELLING, logical_name, meant, spelled
from databox_contracts.formats.odcs_writer_rules import Written, is_plain, write_rules
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import NotEnforced, PrimaryKey, Rule


@dataclass(frozen=True)
class _Table:
    """What a property needs to know of its dataset."""

    name: str
    dialect: str | None
    references: References
    key: tuple[str, ...]


def references_of(datasets: Iterable[Dataset]) -> References:
    """What the relationships of those datasets may be written with: their names, and the ids that they carry."""
    return References([{**_named(dataset), "properties": _all_named(dataset.fields)} for dataset in datasets])


def _all_named(fields: Iterable[Field]) -> list[dict[str, Any]]:
    return [{**_named(field), "properties": _all_named(field.fields)} for field in fields]


def _named(element: Dataset | Field) -> dict[str, Any]:
    return {"name": element.name, "id": element.custom.get(DOCUMENT, {}).get("id")}


def custom_properties(element: Contract | Dataset | Field) -> list[dict[str, Any]]:
    """The entries of `customProperties`: the model's own words, then all that is carried, of whatever dialect."""
    beside = element.custom.get(DOCUMENT, {}).get("customProperties", {})
    values = written_words(element)
    values |= {name: value for name, value in element.custom.items() if name != DOCUMENT and name not in values}
    return [{"property": name, "value": value, **beside.get(name, {})} for name, value in values.items()]


def schema_object(dataset: Dataset, dialect: str | None, references: References) -> dict[str, Any]:
    """The entries of a dataset; `dialect` is that of physical types on the contract's servers."""
    carried: Mapping[str, Any] = dataset.custom.get(DOCUMENT, {})
    key = next((rule for rule in dataset.rules if _is_written_as_flags(rule, dataset)), None)
    table = _Table(dataset.name, dialect, references, key.fields if isinstance(key, PrimaryKey) else ())
    others = [rule for rule in dataset.rules if rule is not key and not _is_elsewhere(rule)]
    written = write_rules(others, None, dataset.name, references, of_property=False)
    properties = [_property(field, field.name, table, (field.name,)) for field in dataset.fields]
    found = {
        "id": carried.get("id"),
        "name": dataset.name,
        "physicalName": dataset.physical_name,
        "physicalType": carried.get("physicalType"),
        "businessName": dataset.business_name,
        "description": dataset.description or None,
        "deprecated": carried.get("deprecated"),
        "tags": dataset.tags,
        **{name: carried[name] for name in ("synonyms", "authoritativeDefinitions", "context") if name in carried},
        "dataGranularityDescription": carried.get("dataGranularityDescription"),
        "properties": [*properties, *carried.get("measures", [])],
        "relationships": written.relationships,
        "quality": written.quality,
        "customProperties": custom_properties(dataset),
    }
    return _said(found)


def _said(found: Mapping[str, Any]) -> dict[str, Any]:
    # An item of which nothing is said is an item all the same.
    return {key: value for key, value in found.items() if key == "items" or value not in (None, [], (), {})}


def _is_elsewhere(rule: Rule) -> bool:
    """Whether the rule is written with the contract's service levels."""
    return is_service_level(rule) or (isinstance(rule, NotEnforced) and "slaProperty" in rule.custom.get(DOCUMENT, {}))


def _is_written_as_flags(rule: Rule, dataset: Dataset) -> bool:
    if not isinstance(rule, PrimaryKey) or not is_plain(rule) or len(set(rule.fields)) != len(rule.fields):
        return False
    trails = [dataset.trail(name) for name in rule.fields]
    # A name with a dot in it would be found twice.
    return bool(trails) and all(
        trail is not None and ".".join(step.name for step in trail) == name
        for trail, name in zip(trails, rule.fields, strict=True)
    )


# --- properties -------------------------------------------------------------------------------------------------------


def _property(field: Field, name: str | None, table: _Table, inside: tuple[str, ...] | None) -> dict[str, Any]:
    """The entries of a property; `inside` is the way to it through objects, None inside an array or a map."""
    carried: Mapping[str, Any] = field.custom.get(DOCUMENT, {})
    spelling = _spelling(field, carried, table.dialect)
    logical = logical_name(spelling.get("logicalType"), field.type)
    written = write_rules(field.rules, logical, table.name, table.references, of_property=True)
    dotted = ".".join(inside) if inside is not None else None
    position = table.key.index(dotted) + 1 if dotted in table.key else None
    found = {
        "id": carried.get("id"),
        "name": name,
        "physicalName": field.column_name,
        "businessName": field.business_name,
        "description": field.description or None,
        "semanticType": carried.get("semanticType"),
        "logicalType": spelling.get("logicalType"),
        "physicalType": spelling.get("physicalType"),
        **written.flags,
        "primaryKey": True if position is not None else None,
        "primaryKeyPosition": position,
        "partitioned": True if field.partition_position is not None else None,
        "partitionKeyPosition": field.partition_position,
        "deprecated": field.deprecated or None,
        "classification": field.classification,
        "criticalDataElement": carried.get("criticalDataElement"),
        "encryptedName": carried.get("encryptedName"),
        "tags": field.tags,
        **{name: carried[name] for name in ("synonyms", "authoritativeDefinitions") if name in carried},
        "transformSourceObjects": field.sources,
        **{name: carried[name] for name in ("transformLogic", "transformDescription") if name in carried},
        "examples": field.examples,
        "logicalTypeOptions": _options(spelling, carried, written, logical),
        "enum": written.enum,
        **_contents(field, table, inside, whole=spelling.get("physicalType") is not None),
        "relationships": written.relationships,
        "quality": written.quality,
        "customProperties": custom_properties(field),
    }
    return _said(found)


def _spelling(field: Field, carried: Mapping[str, Any], dialect: str | None) -> dict[str, Any]:
    """The entries of the type, as they were written where they still mean it."""
    kept = {key: carried[key] for key in SPELLING if key in carried}
    if any(key in kept for key in SPELLING[:2]) and meant(kept, dialect) == field.type:
        return kept
    return spelled(field.type)


def _options(
    spelling: Mapping[str, Any], carried: Mapping[str, Any], written: Written, logical: str | None
) -> dict[str, Any]:
    # What says the type is in the spelling; of what is carried beside, only that which still is no rule.
    beside = carried.get("logicalTypeOptions", {})
    kept = {key: value for key, value in beside.items() if key not in written.options}
    if "logicalTypeOptions" not in spelling:
        kept.pop({"integer": "format", "number": "format", "timestamp": "timezone"}.get(logical or "", ""), None)
    return {**kept, **spelling.get("logicalTypeOptions", {}), **written.options}


def _contents(field: Field, table: _Table, inside: tuple[str, ...] | None, *, whole: bool) -> dict[str, Any]:
    """What an object, an array or a map holds, but for what its type's spelling, if there is one, says as a whole."""
    said = field.model_copy(update={"fields": (), "item": None, "key": None, "value": None}).completed()
    found: dict[str, Any] = {}
    if field.fields and not (whole and said.fields == field.fields):
        found["properties"] = [
            _property(part, part.name, table, (*inside, part.name) if inside is not None else None)
            for part in field.fields
        ]
    if field.item is not None and not (whole and said.item == field.item):
        found["items"] = _part(field.item, table)
    if (field.key is not None or field.value is not None) and not (whole and said.parts == field.parts):
        parts = {"key": field.key, "value": field.value}
        found["map"] = {name: _part(part, table) for name, part in parts.items() if part is not None}
    return found


def _part(field: Field, table: _Table) -> dict[str, Any]:
    """An item, a key or a value, which goes without a name."""
    return _property(field, field.custom.get(DOCUMENT, {}).get("name"), table, None)
