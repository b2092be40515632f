"""Spark's names of the contract's types, in DDL and in the JSON of a schema, and what of a type they do not say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from databox_contracts.datatypes import DataType, Family
from databox_contracts.export.losses import Loss, Place, Words, places, unsaid
from databox_contracts.export.targets import Target
from databox_contracts.rules import Rule, Severity

# Family and width, and of a timestamp whether it has a zone: the name in DDL, and in JSON.
_SCALARS: Final[dict[tuple[Family, int | bool | None], tuple[str, str]]] = {
    (Family.STRING, None): ("STRING", "string"),
    (Family.BOOLEAN, None): ("BOOLEAN", "boolean"),
    (Family.INTEGER, 8): ("TINYINT", "byte"),
    (Family.INTEGER, 16): ("SMALLINT", "short"),
    (Family.INTEGER, 32): ("INT", "integer"),
    (Family.INTEGER, 64): ("BIGINT", "long"),
    (Family.INTEGER, None): ("BIGINT", "long"),
    (Family.NUMBER, 32): ("FLOAT", "float"),
    (Family.NUMBER, 64): ("DOUBLE", "double"),
    (Family.NUMBER, None): ("DOUBLE", "double"),
    (Family.DATE, None): ("DATE", "date"),
    (Family.TIMESTAMP, True): ("TIMESTAMP", "timestamp"),
    (Family.TIMESTAMP, False): ("TIMESTAMP_NTZ", "timestamp_ntz"),
    (Family.TIMESTAMP, None): ("TIMESTAMP", "timestamp"),
    (Family.TIME, None): ("TIME(6)", "time(6)"),
    (Family.BINARY, None): ("BINARY", "binary"),
    (Family.VARIANT, None): ("VARIANT", "variant"),
}
_UNTYPED: Final = ("STRING", "string")
_MOST_DIGITS: Final = 38
_USUAL_SCALE: Final = 18


def scalar(type_: DataType | None) -> tuple[str, str]:
    """The names of a type that holds no others, in DDL and in JSON. What the contract leaves open gets the widest."""
    if type_ is None:
        return _UNTYPED
    if type_.family is Family.DECIMAL:
        precision, scale = _digits(type_)
        return f"DECIMAL({precision}, {scale})", f"decimal({precision},{scale})"
    facet = type_.zone if type_.family is Family.TIMESTAMP else type_.bits
    return _SCALARS[type_.family, facet]


def _digits(type_: DataType) -> tuple[int, int]:
    if type_.precision is None:
        return _MOST_DIGITS, _USUAL_SCALE
    precision = min(type_.precision, _MOST_DIGITS)
    return precision, min(type_.scale or 0, precision)


def type_losses(target: Target) -> Iterator[Loss]:
    """What the written types say otherwise than the contract's, in declaration order."""
    for place in places(target):
        if place.field is None:
            continue
        type_ = place.field.type
        for what, reason in _doubts(type_, has_parts=bool(place.inside)):
            yield Loss(what, place, reason)


def _doubts(type_: DataType | None, *, has_parts: bool) -> Iterator[tuple[str, str]]:
    name = scalar(type_)[0] if type_ is None or type_.family not in _HOLDERS else ""
    match type_:
        case None:
            yield "the type", f"the contract says none; written as {name}"
        case DataType(family=Family.INTEGER | Family.NUMBER, bits=None):
            yield "the width", f"the contract says none; written as {name}"
        case DataType(family=Family.DECIMAL, precision=None):
            yield "the precision", f"the contract says none; written as {name}"
        case DataType(family=Family.DECIMAL, precision=int() as precision) if precision > _MOST_DIGITS:
            yield "the precision", f"Spark has at most {_MOST_DIGITS} digits; written as {name}"
        case DataType(family=Family.TIMESTAMP, zone=None):
            yield "the time zone", f"the contract says none; written as {name}"
        case DataType(family=Family.STRING, length=int()):
            yield "the length", "a Spark schema has no lengths"
        case DataType(family=Family.ARRAY | Family.MAP) if not has_parts:
            yield "what it holds", "the contract does not say it; written as STRING"
        case DataType(family=Family.OBJECT) if not has_parts:
            yield "what it holds", "the contract does not say it; written without fields"


_HOLDERS: Final = (Family.ARRAY, Family.MAP, Family.OBJECT)

# --- what both of Spark's spellings of a schema have words for --------------------------------------------------------

WORDS: Final = Words("a Spark schema", rules=("required",), field=("description",))


def table_name_losses(target: Target) -> Iterator[Loss]:
    """The name of the table, which a schema does not have."""
    for place in places(target):
        if place.field is None:
            yield Loss("the name", place, "a Spark schema describes columns only")


def judge_required(rule: Rule, place: Place, *, unsayable: tuple[str, ...]) -> str | None:
    """Why a rule is not said; `unsayable` names parts (items, values) that cannot be declared as not null."""
    if rule.kind == "primary_key" and rule.severity is Severity.ERROR:
        return "a Spark schema has no keys; its fields are written as not null"
    if rule.kind == "required" and place.part in unsayable:
        return f"Spark's DDL cannot say it of the {place.part}s of arrays and maps"
    return unsaid(rule, WORDS)
