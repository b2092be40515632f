"""Datasets and fields back into models and fields of the Data Contract Specification, at any depth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field as attribute
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.formats.datacontract_carried import carried_by
from databox_contracts.formats.datacontract_fields import parse_reference
from databox_contracts.formats.datacontract_types import (
    CONTAINERS,
    DOCUMENT,
    SPELLING,
    meant,
    spelled,
    without_contents,
)
from databox_contracts.formats.datacontract_values import APPLIES, without_effect
from databox_contracts.formats.datacontract_writer_definitions import (
    example_entries,
    inherited_entries,
    referring_entries,
)
from databox_contracts.formats.datacontract_writer_quality import write_rules
from databox_contracts.formats.odcs_custom import DOCUMENT as STANDARD
from databox_contracts.formats.odcs_types import logical_name
from databox_contracts.model import Contract, Dataset, Field, Mode
from databox_contracts.rules import Rule, Severity


@dataclass(frozen=True)
class Whole:
    """What a field needs to know of its document.

    `dialect` is that of SQL types, `definitions` those that a field may refer to, `models` the names of all, `pii` what
    holds for a field that does not say whether it is personal, `old` whether `primary` and `example` are its words.
    """

    dialect: str | None
    definitions: Mapping[str, Any]
    models: tuple[str, ...]
    pii: bool | None
    old: bool


@dataclass(frozen=True)
class _Model:
    """The document, and what the model says of its fields: its key, and rules by the field that they are about."""

    whole: Whole
    key: tuple[str, ...] = ()
    rules: Mapping[str, list[Rule]] = attribute(default_factory=dict)


_FLAGS_OF_MODES: Final = {Mode.EVOLVE: True, Mode.FREEZE: False}


def model_entries(dataset: Dataset, whole: Whole) -> dict[str, Any]:
    """The entries of a model; `servicelevels` are told elsewhere."""
    carried = carried_by(dataset)
    standard = _standard(dataset)
    key = next((rule for rule in dataset.rules if _is_sayable_key(rule, dataset)), None)
    names: tuple[str, ...] = getattr(key, "fields", ())
    at_fields, own = _placed(dataset)
    written = write_rules(own, None, of_field=False)
    # The order of the fields is that of a key that they mark themselves.
    marked = len(names) == 1 or (whole.old and [name for name in _dotted(dataset.fields) if name in names] == [*names])
    model = _Model(whole, names if marked else (), at_fields)
    fields = {field.name: field_entries(field, model, (field.name,)) for field in dataset.fields if field.name.strip()}
    title = {"title": dataset.business_name} if dataset.business_name is not None else {}
    found = {
        "type": carried.get("type", standard.get("physicalType")),
        "description": dataset.description,
        "tags": dataset.tags,
        "additionalFields": _FLAGS_OF_MODES.get(dataset.modes.columns) if dataset.modes is not None else None,
        "primaryKey": () if marked else names,
        "fields": fields,
        "quality": written.quality,
        "links": links(dataset),
    }
    return title | said(found) | dict(carried)


def said(found: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that say something: no text, no list and no mapping that is empty."""
    return {name: value for name, value in found.items() if value is not None and value not in ("", (), [], {})}


def links(element: Contract | Dataset | Field) -> dict[str, str]:
    """What the standard calls authoritative definitions, by their type."""
    entries = _standard(element).get("authoritativeDefinitions")
    found: dict[str, str] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and all(isinstance(entry.get(key), str) for key in ("type", "url")):
            found.setdefault(entry["type"], entry["url"])
    return found


def _standard(element: Contract | Dataset | Field) -> Mapping[str, Any]:
    carried = element.custom.get(STANDARD)
    return carried if isinstance(carried, Mapping) else {}


def _is_sayable_key(rule: Rule, dataset: Dataset) -> bool:
    return (
        isinstance(rule, rules.PrimaryKey)
        and rule.severity is Severity.ERROR
        and bool(rule.fields)
        and all(_is_whole_path(name, dataset) for name in rule.fields)
    )


def _is_whole_path(name: str, dataset: Dataset) -> bool:
    trail = dataset.trail(name)
    # A name with a dot in it would be found twice.
    return trail is not None and ".".join(step.name for step in trail) == name


def _dotted(fields: tuple[Field, ...], before: str = "") -> list[str]:
    return [
        name for field in fields for name in (f"{before}{field.name}", *_dotted(field.fields, f"{before}{field.name}."))
    ]


def _placed(dataset: Dataset) -> tuple[dict[str, list[Rule]], list[Rule]]:
    """The rules that the specification says at the field they are about, by its path, and the others."""
    at_fields: dict[str, list[Rule]] = {}
    own: list[Rule] = []
    for rule in dataset.rules:
        names = rule.fields if isinstance(rule, rules.Unique | rules.ForeignKey) else ()
        if len(names) == 1 and rule.severity is Severity.ERROR and _is_whole_path(names[0], dataset):
            at_fields.setdefault(names[0], []).append(rule)
        else:
            own.append(rule)
    return at_fields, own


# --- fields -----------------------------------------------------------------------------------------------------------


def field_entries(field: Field, model: _Model, inside: tuple[str, ...] | None) -> dict[str, Any]:
    """The entries of a field; `inside` is the way to it through objects, None inside an array or a map."""
    whole, carried = model.whole, carried_by(field)
    base = inherited_entries(carried.get("$ref"), whole.definitions)
    spelling, type_ = _spelling(field, carried, base, whole.dialect)
    logical = logical_name(None, type_)
    dotted = ".".join(inside) if inside is not None else None
    at_field = model.rules.get(dotted, []) if dotted is not None else []
    unique = [rules.Unique() for rule in at_field if isinstance(rule, rules.Unique)]
    written = write_rules([*field.rules, *unique, *_length(field, type_, spelling)], logical, of_field=True)
    keyed = {"primary" if whole.old else "primaryKey": True} if dotted in model.key else {}
    found = {
        "title": field.business_name,
        **spelling,
        "description": field.description or None,
        **keyed,
        "references": _reference(field, at_field, inside, whole.models),
        **written.in_order(),
        "pii": field.pii if field.pii is not None else whole.pii,
        "classification": field.classification,
        "tags": list(field.tags) or None,
        **example_entries(field, base, whole.old),
        **_contents(field, type_, model, inside, base),
        "quality": written.quality or None,
        "links": links(field) or None,
        **{key: value for key, value in carried.items() if key not in (*SPELLING, *APPLIES)},
        **without_effect(carried, logical),
    }
    entries = {key: value for key, value in found.items() if value is not None or key in carried}
    if base is None:
        return entries
    referring = referring_entries(entries, base, carried, logical)
    if referring is not None:
        return referring
    alone = {key: value for key, value in carried.items() if key != "$ref"}
    return field_entries(field.model_copy(update={"custom": {**field.custom, DOCUMENT: alone}}), model, inside)


def _spelling(
    field: Field, carried: Mapping[str, Any], base: Mapping[str, Any] | None, dialect: str | None
) -> tuple[dict[str, Any], DataType | None]:
    """The entries of the type, as they were written where they still mean it, and what they mean."""
    own = {key: carried[key] for key in SPELLING if key in carried}
    promised = without_contents(field.type)
    if own or base:
        type_ = meant({**(base or {}), **own}, dialect)
        if without_contents(type_) == promised:
            return own, promised
    written = spelled(field.type)
    return written, meant(written, dialect) or _implied(field)


def _implied(field: Field) -> DataType | None:
    parts = {"fields": field.fields, "items": field.item, "keys": field.key, "values": field.value}
    return next((DataType(family) for key, family in CONTAINERS.items() if parts[key]), None)


def _length(field: Field, type_: DataType | None, spelling: Mapping[str, Any]) -> list[Rule]:
    """The most characters of a text, where the words for its type do not say them."""
    longest = field.type.length if field.type is not None else None
    if longest is None or type_ is None or type_.length is not None:
        return []
    known = any(isinstance(rule, rules.MaxLength) and rule.length <= longest for rule in field.rules)
    return [] if known else [rules.MaxLength(length=longest)]


def _reference(
    field: Field, at_field: list[Rule], inside: tuple[str, ...] | None, models: tuple[str, ...]
) -> str | None:
    """The first reference that can be said of the field."""
    if inside is None:
        return None
    for rule in (*field.rules, *at_field):
        if isinstance(rule, rules.ForeignKey) and rule.severity is Severity.ERROR and len(rule.to_fields) == 1:
            (target,) = rule.to_fields
            written = f"{rule.to}.{target}"
            is_own = rule in at_field or not rule.fields
            if is_own and rule.to and target and parse_reference(written, models) == (rule.to, target):
                return written
    return None


def _contents(
    field: Field, type_: DataType | None, model: _Model, inside: tuple[str, ...] | None, base: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What an object, an array or a map holds."""
    found: dict[str, Any] = {}
    family = type_.family if type_ is not None else None
    if field.fields and family in (Family.OBJECT, Family.VARIANT):
        found["fields"] = {
            part.name: field_entries(part, model, (*inside, part.name) if inside is not None else None)
            for part in field.fields
            if part.name.strip()
        }
    parts = {"items": field.item, "keys": field.key, "values": field.value}
    for key, part in parts.items():
        if part is not None and family in (CONTAINERS[key], Family.VARIANT):
            found[key] = field_entries(part, model, None)
    # Keys are text where nothing else is said.
    if family is Family.MAP and found.get("keys") == {"type": "string"} and "keys" not in (base or {}):
        del found["keys"]
    return found
