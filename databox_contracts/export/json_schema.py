"""A JSON Schema (draft 2020-12) of one row of a dataset, as an object of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from databox_contracts.export.json_keywords import keywords, type_doubts, type_keywords
from databox_contracts.export.json_text import to_json
from databox_contracts.export.losses import Loss, Place, Words, columns, field_places, losses, unsaid
from databox_contracts.export.row_promises import VALUE_RULES, row_promises
from databox_contracts.export.targets import Exported, Target
from databox_contracts.model import Dataset, Mode, SchemaModes
from databox_contracts.rules import Required, Rule, Severity

_WORDS: Final = Words(
    "JSON Schema",
    rules=(
        "required",
        *VALUE_RULES,
        "null_count",
        "missing_count",
        "invalid_count",
    ),
    field=("description", "business_name", "deprecated", "examples", "default"),
    dataset=("description", "modes"),
    contract=("id", "version"),
)

# Whether a row may have columns that the contract does not declare: a value that is discarded costs no row.
_OPEN: Final[dict[Mode, bool]] = {
    Mode.EVOLVE: True,
    Mode.FREEZE: False,
    Mode.DISCARD_ROW: False,
    Mode.DISCARD_VALUE: True,
}


def export_json_schema(target: Target) -> Exported:
    """The schema. Only required fields have to be there: a row's JSON may leave out what is null.

    Moments are ISO 8601 texts, bytes are base64. `format` is asserted by validators that are told to; of a uuid the
    pattern is there too. Values of fields that must not be shown are in no `examples`.
    """
    (dataset,) = target.datasets
    contract = target.contract
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": f"{contract.id} {contract.version}",
        "title": dataset.table_name,
    }
    if dataset.description.strip():
        schema["description"] = dataset.description.strip()
    schema["type"] = "object"
    schema |= _properties(columns(contract, dataset), _is_open(dataset))
    more = [
        Loss(what, place, reason) for place in field_places(contract, dataset) for what, reason in type_doubts(place)
    ]
    lost = losses(target, _WORDS, judge=_judge, attributes=_attribute, more=more)
    return Exported(to_json(schema) + "\n", lost)


def _is_open(dataset: Dataset) -> bool:
    return _OPEN[(dataset.modes or SchemaModes()).columns]


def _properties(found: Iterable[Place], is_open: bool) -> dict[str, Any]:
    """The keywords of an object; one that declares no fields promises nothing about them."""
    fields = [(place, place.field) for place in found if place.field is not None]
    required = [field.column for place, field in fields if _never_null(place)]
    schema: dict[str, Any] = {"properties": {field.column: _schema(place, is_open) for place, field in fields}}
    if required:
        schema["required"] = required
    if fields:
        schema["additionalProperties"] = is_open
    else:
        del schema["properties"]
    return schema


def _never_null(place: Place) -> bool:
    return place.required or any(
        isinstance(promise, Required) for rule in place.rules for promise in row_promises(rule, depth=place.depth)
    )


def _schema(place: Place | None, is_open: bool) -> dict[str, Any]:
    if place is None or place.field is None:
        return {}
    never_null = _never_null(place)
    schema = {**_annotations(place), **type_keywords(place.field.type, or_null=not never_null)}
    schema |= _contents(place, is_open)
    promises = [promise for rule in place.rules for promise in row_promises(rule, depth=place.depth)]
    for promise in promises:
        for more in keywords(promise, place.field.type, or_null=not never_null):
            _add(schema, more)
    return schema


# Of two bounds the narrower holds.
_NARROWER: Final[dict[str, Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), min),
}


def _add(schema: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Adds keywords; where one of them is there already and says something else, both hold."""
    for name, value in more.items():
        if name in schema and name in _NARROWER:
            schema[name] = _NARROWER[name](schema[name], value)
        elif schema.get(name, value) != value:
            schema.setdefault("allOf", []).append({name: value})
        else:
            schema[name] = value


def _contents(place: Place, is_open: bool) -> dict[str, Any]:
    family = place.field.type.family if place.field is not None and place.field.type is not None else None
    match family:
        case "array" if (item := place.holds("item")) is not None:
            return {"items": _schema(item, is_open)}
        case "map":
            key = _schema(place.holds("key"), is_open) if _has_text_keys(place) else {}
            named = {name: value for name, value in key.items() if name != "type"}
            value = place.holds("value")
            found = {"propertyNames": named} if named else {}
            return found | ({"additionalProperties": _schema(value, is_open)} if value is not None else {})
        case "object":
            return _properties(place.fields, is_open)
    return {}


def _has_text_keys(place: Place) -> bool:
    key = place.holds("key")
    return (
        key is not None and key.field is not None and key.field.type is not None and key.field.type.family == "string"
    )


def _annotations(place: Place) -> dict[str, Any]:
    field = place.field
    assert field is not None
    found: dict[str, Any] = {}
    if field.business_name:
        found["title"] = field.business_name
    if field.description.strip():
        found["description"] = field.description.strip()
    if field.deprecated:
        found["deprecated"] = True
    if field.default is not None and _is_json(field.default):
        found["default"] = _plain(field.default)
    examples = [_plain(value) for value in field.examples if _is_json(value)]
    if examples and not place.masked:
        found["examples"] = examples
    return found


def _plain(value: Any) -> Any:
    match value:
        case datetime() | date():
            return value.isoformat()
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case str() | bool() | int() | float() | Decimal() | None:
            return value
    return str(value)


def _is_json(value: Any) -> bool:
    match value:
        case float() | Decimal():
            return Decimal(str(value)).is_finite()
        case Mapping():
            return all(_is_json(inner) for inner in value.values())
        case list() | tuple():
            return all(_is_json(inner) for inner in value)
    return True


def _judge(rule: Rule, place: Place) -> str | None:
    if rule.kind == "primary_key" and rule.severity is Severity.ERROR:
        return "JSON Schema has no keys; its fields are required"
    if place.part == "key" and not (rule.kind == "required" or _key_can_say(place)):
        return "the names in a JSON object are texts"
    reason = unsaid(rule, _WORDS)
    if reason is not None or place.field is None:
        return reason
    if rule.kind == "required":
        return None
    promises = row_promises(rule, depth=place.depth)
    if not promises:
        return "JSON Schema has no limits of a number of rows"
    # `keywords` is what writes them, so it knows what it cannot write.
    for promise in promises:
        if not isinstance(promise, Required) and not keywords(promise, place.field.type, or_null=True):
            return _UNSAID.get(rule.kind, "its values have no JSON")
    return None


def _key_can_say(place: Place) -> bool:
    return place.field is not None and place.field.type is not None and place.field.type.family == "string"


_BOUND: Final = "JSON Schema has bounds for numbers only"
_UNSAID: Final[dict[str, str]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusive_minimum", "exclusive_maximum"), _BOUND),
    "format": "JSON Schema has no such format",
    "multiple_of": "JSON Schema has positive divisors only",
}


def _attribute(name: str, place: Place) -> str | None:
    if place.field is None:
        modes = place.dataset.modes or SchemaModes()
        plain = modes == SchemaModes(columns=modes.columns)
        return None if name != "modes" or plain else "JSON Schema says only whether there may be other columns"
    if name == "examples" and place.masked:
        return "values of a field that is marked are not shown"
    if name == "examples" and not all(_is_json(value) for value in place.field.examples):
        return "some of them have no JSON"
    if name == "default" and not _is_json(place.field.default):
        return "it has no JSON"
    return None
