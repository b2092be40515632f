"""Types of columns in Soda contracts: one spelling, and the sizes that may stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from databox_contracts.datatypes import DataType, Family, parse_type
from databox_contracts.errors import UnknownTypeError
from databox_contracts.formats.reading import Section
from databox_contracts.formats.soda_sql import quoted
from databox_contracts.model import Field

SPELLING: Final = (
    "data_type",
    "character_maximum_length",
    "numeric_precision",
    "numeric_scale",
    "datetime_precision",
)
"""The entries of a column that say its type."""

# What a type spelling may mean to the warehouse where Spark does not know it.
_WAREHOUSES: Final = (None, "postgres", "snowflake", "bigquery", "duckdb", "tsql")

# Spellings that mean just this type. A whole number of any width has none.
_WORDS: Final[dict[tuple[Family, int | bool | None], str]] = {
    (Family.STRING, None): "string",
    (Family.BOOLEAN, None): "boolean",
    (Family.INTEGER, 8): "tinyint",
    (Family.INTEGER, 16): "smallint",
    (Family.INTEGER, 32): "int",
    (Family.INTEGER, 64): "bigint",
    (Family.NUMBER, None): "number",
    (Family.NUMBER, 32): "float",
    (Family.NUMBER, 64): "double",
    (Family.DECIMAL, None): "decimal",
    (Family.DATE, None): "date",
    (Family.TIMESTAMP, None): "timestamp",
    (Family.TIMESTAMP, True): "timestamp with time zone",
    (Family.TIMESTAMP, False): "timestamp without time zone",
    (Family.TIME, None): "time",
    (Family.BINARY, None): "binary",
    (Family.VARIANT, None): "variant",
}

_BARE: Final = {Family.ARRAY: "array", Family.MAP: "map", Family.OBJECT: "struct"}
_ZONES: Final[dict[bool | None, str]] = {True: "timestamp", False: "timestamp_ntz"}


def read_type(section: Section) -> tuple[DataType | None, dict[str, Any]]:
    """The type of a column, None where it has none that is known; and its entries where we would write others."""
    spelling = section.text("data_type")
    length = section.count("character_maximum_length")
    precision, scale = section.count("numeric_precision", 1), section.count("numeric_scale")
    section.not_enforced("datetime_precision")
    given = {"character_maximum_length": length, "numeric_precision": precision, "numeric_scale": scale}
    written = {key: value for key, value in given.items() if value is not None}
    written |= section.carried("datetime_precision")
    if spelling is None or not spelling.strip():
        if length is not None:
            section.note("a length without a data_type is not enforced", None, "character_maximum_length")
        return None, written
    entries = {"data_type": spelling, **written}
    type_ = meant(entries)
    if type_ is None:
        section.error(f"unknown data_type {spelling[:60]!r}", _hint(spelling), "data_type")
    return type_, entries if entries != spelled(type_) else {}


def meant(entries: Mapping[str, Any]) -> DataType | None:
    """The type that those entries of a column mean, without a remark; None for what nobody knows."""
    written = entries.get("data_type")
    type_ = _parsed(written) if isinstance(written, str) and written.strip() else None
    if type_ is None:
        return None
    length, precision = entries.get("character_maximum_length"), entries.get("numeric_precision")
    if length is not None and type_.family is Family.STRING and type_.length is None:
        type_ = replace(type_, length=length)
    if precision is not None and type_.family is Family.DECIMAL and type_.precision is None:
        type_ = replace(type_, precision=precision, scale=entries.get("numeric_scale") or 0)
    return type_


def _parsed(spelling: str) -> DataType | None:
    for dialect in _WAREHOUSES:
        try:
            return parse_type(spelling, dialect)
        except UnknownTypeError:
            continue
    return None


def _hint(spelling: str) -> str | None:
    return UnknownTypeError(spelling).hint


# --- the way back -----------------------------------------------------------------------------------------------------


def spelled(type_: DataType | None) -> dict[str, Any]:
    """The entries that say a type; none where no spelling means just this type, as for a whole number of any width.

    What an array, map or object holds is said whole or not at all.
    """
    if type_ is None:
        return {}
    bare = _BARE.get(type_.family)
    text = _spelling(type_)
    if text is not None and (text == bare or meant({"data_type": text}) == type_):
        return {"data_type": text}
    return {"data_type": bare} if bare is not None else {}


def whole_type(field: Field) -> DataType | None:
    """The type of a field with the types of all that it holds, under the names that its columns have."""
    type_ = field.type
    if type_ is None:
        return None
    item, key, value = (whole_type(part) if part is not None else None for part in (field.item, field.key, field.value))
    found = replace(type_, item=item or type_.item, key=key or type_.key, value=value or type_.value)
    if not field.fields:
        return found
    inner = [(part.column, whole_type(part)) for part in field.fields]
    known = tuple((name, part) for name, part in inner if part is not None)
    return replace(found, fields=known if len(known) == len(inner) else None)


def _spelling(type_: DataType) -> str | None:
    match type_.family:
        case Family.STRING if type_.length is not None:
            return f"varchar({type_.length})"
        case Family.DECIMAL if type_.precision is not None:
            return f"decimal({type_.precision}, {type_.scale or 0})"
        case Family.ARRAY if type_.item is not None:
            return _with_parts("array", [_inner(type_.item)])
        case Family.MAP if type_.key is not None and type_.value is not None:
            return _with_parts("map", [_inner(type_.key), _inner(type_.value)])
        case Family.OBJECT if type_.fields:
            texts = [(name, _inner(part)) for name, part in type_.fields]
            return _with_parts("struct", [text and f"{quoted(name)}: {text}" for name, text in texts])
    facet = type_.zone if type_.family is Family.TIMESTAMP else type_.bits
    return _BARE.get(type_.family) or _WORDS.get((type_.family, facet))


def _inner(type_: DataType) -> str | None:
    # Inside another type the spelling is Spark's alone, to which a plain timestamp has a zone.
    if type_.family is Family.TIMESTAMP:
        return _ZONES.get(type_.zone)
    return _spelling(type_)


def _with_parts(word: str, texts: list[str | None]) -> str:
    said = [text for text in texts if text is not None]
    return f"{word}<{', '.join(said)}>" if len(said) == len(texts) else word
