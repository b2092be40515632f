"""Types and rules of fields as keywords of JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.export.losses import Place
from databox_contracts.export.row_promises import NoneOf, Promise

_DAY: Final = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?"
_ZONE: Final = r"(Z|[+-]([01]\d|2[0-3]):?[0-5]\d)"

# The formats date-time and time of JSON Schema both ask for a zone, so without one the pattern says it.
_TYPES: Final[dict[Family, dict[str, Any]]] = {
    Family.STRING: {"type": "string"},
    Family.BOOLEAN: {"type": "boolean"},
    Family.INTEGER: {"type": "integer"},
    Family.NUMBER: {"type": "number"},
    Family.DECIMAL: {"type": "number"},
    Family.DATE: {"type": "string", "format": "date"},
    Family.TIMESTAMP: {"type": "string", "pattern": f"^{_DAY}[T ]{_CLOCK}{_ZONE}?$"},
    Family.TIME: {"type": "string", "pattern": f"^{_CLOCK}$"},
    Family.BINARY: {"type": "string", "contentEncoding": "base64"},
    Family.ARRAY: {"type": "array"},
    Family.MAP: {"type": "object"},
    Family.OBJECT: {"type": "object"},
    Family.VARIANT: {},
}
_ZONED: Final = {"type": "string", "format": "date-time", "pattern": f"^{_DAY}[T ]{_CLOCK}{_ZONE}$"}
_ZONELESS: Final = {"type": "string", "pattern": f"^{_DAY}[T ]{_CLOCK}$"}


def type_keywords(type_: DataType | None, *, or_null: bool) -> dict[str, Any]:
    """The keywords of a type; a width and digits are bounds. What an array, map or object holds is not in them."""
    if type_ is None:
        return {} if or_null else {"not": {"type": "null"}}
    found = dict(_TYPES[type_.family])
    if type_.family is Family.TIMESTAMP and type_.zone is not None:
        found = dict(_ZONED if type_.zone else _ZONELESS)
    if type_.family is Family.INTEGER and type_.bits is not None:
        found |= {"minimum": -(2 ** (type_.bits - 1)), "maximum": 2 ** (type_.bits - 1) - 1}
    if type_.family is Family.DECIMAL and type_.precision is not None:
        most = Decimal(10) ** (type_.precision - (type_.scale or 0))
        found |= {"exclusiveMinimum": -most, "exclusiveMaximum": most}
        if not type_.scale:
            found["type"] = "integer"
    if type_.length is not None:
        found["maxLength"] = type_.length
    if not found:
        return {} if or_null else {"not": {"type": "null"}}
    return found | ({"type": [found["type"], "null"]} if or_null else {})


def type_doubts(place: Place) -> Iterator[tuple[str, str]]:
    """What the keywords of a type do not say, and why."""
    type_ = place.field.type if place.field is not None else None
    key = place.holds("key")
    match type_:
        case DataType(family=Family.NUMBER, bits=int()):
            yield "the width", "JSON has one kind of number"
        case DataType(family=Family.DECIMAL, scale=int() as scale) if scale:
            yield "the scale", "JSON's numbers are binary to most validators, which takes 0.07 for no multiple of 0.01"
        case DataType(family=Family.MAP) if key is not None and not _is_text(key):
            yield "the type of the keys", "the names in a JSON object are texts"


def _is_text(place: Place) -> bool:
    return place.field is not None and place.field.type is not None and place.field.type.family is Family.STRING


# --- rules ------------------------------------------------------------------------------------------------------------

_NUMERIC: Final = (Family.INTEGER, Family.NUMBER, Family.DECIMAL)
_HEX: Final = "[0-9a-fA-F]"
_UUID: Final = f"^{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}$"

# The standard's formats that JSON Schema has under the same name, and `byte`.
_FORMATS: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "uuid": ({"format": "uuid"}, {"pattern": _UUID}),
    **{
        name: ({"format": name},)
        for name in ("email", "uri", "hostname", "ipv4", "ipv6", "date", "date-time", "time", "duration")
    },
    "byte": ({"contentEncoding": "base64"},),
}


def keywords(promise: Promise, type_: DataType | None, *, or_null: bool) -> tuple[dict[str, Any], ...]:
    """The keywords that say a rule of a row, each set for itself; none where JSON Schema cannot say it.

    `or_null` says whether null is a value of the field; it is never one that a rule refuses, but in `NoneOf`.
    """
    write = _WRITERS.get(type(promise))
    return tuple(write(promise, type_, or_null)) if write is not None else ()


_Writer = Callable[[Any, "DataType | None", bool], Iterable[dict[str, Any]]]


def _enum(rule: rules.Enum, type_: DataType | None, or_null: bool) -> Iterator[dict[str, Any]]:
    if all(_is_finite(value) for value in rule.values):
        values = [value for value in rule.values if value is not None] + ([None] if or_null else [])
        # An enumeration has at least one value.
        yield {"enum": values} if values else {"not": {}}


def _none_of(promise: NoneOf, type_: DataType | None, or_null: bool) -> Iterator[dict[str, Any]]:
    if all(_is_finite(value) for value in promise.values):
        yield {"not": {"enum": list(promise.values)}}


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float | Decimal) or Decimal(str(value)).is_finite()


def _bound(keyword: str) -> _Writer:
    def write(rule: Any, type_: DataType | None, or_null: bool) -> Iterator[dict[str, Any]]:
        is_number = isinstance(rule.limit, int | float | Decimal) and _is_finite(rule.limit)
        if is_number and (type_ is None or type_.family in _NUMERIC):
            yield {keyword: rule.limit}

    return write


def _multiple(rule: rules.MultipleOf, type_: DataType | None, or_null: bool) -> Iterator[dict[str, Any]]:
    if _is_finite(rule.divisor) and rule.divisor > 0:
        yield {"multipleOf": rule.divisor}


def _format(rule: rules.Format, type_: DataType | None, or_null: bool) -> Iterable[dict[str, Any]]:
    return _FORMATS.get(rule.format, ())


def _said(keyword: str, value: Callable[[Any], Any]) -> _Writer:
    return lambda rule, type_, or_null: ({keyword: value(rule)},)


_WRITERS: Final[dict[type, _Writer]] = {
    rules.Enum: _enum,
    NoneOf: _none_of,
    rules.Pattern: _said("pattern", lambda rule: rule.pattern),
    rules.Format: _format,
    rules.Minimum: _bound("minimum"),
    rules.Maximum: _bound("maximum"),
    rules.ExclusiveMinimum: _bound("exclusiveMinimum"),
    rules.ExclusiveMaximum: _bound("exclusiveMaximum"),
    rules.MultipleOf: _multiple,
    rules.MinLength: _said("minLength", lambda rule: rule.length),
    rules.MaxLength: _said("maxLength", lambda rule: rule.length),
    rules.MinItems: _said("minItems", lambda rule: rule.count),
    rules.MaxItems: _said("maxItems", lambda rule: rule.count),
    rules.UniqueItems: _said("uniqueItems", lambda rule: True),
}
