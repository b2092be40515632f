"""The contract's types in SQL: which type of sqlglot says each, and what of a type a dialect does not say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from databox_contracts.datatypes import DataType, Family
from databox_contracts.export.losses import Place
from databox_contracts.export.sql_dialects import Abilities

# Family, and width or whether there is a zone: the name in sqlglot.
_NAMES: Final[dict[tuple[Family, int | bool | None], str]] = {
    (Family.STRING, None): "TEXT",
    (Family.BOOLEAN, None): "BOOLEAN",
    (Family.INTEGER, 8): "TINYINT",
    (Family.INTEGER, 16): "SMALLINT",
    (Family.INTEGER, 32): "INT",
    (Family.INTEGER, 64): "BIGINT",
    (Family.INTEGER, None): "BIGINT",
    (Family.NUMBER, 32): "FLOAT",
    (Family.NUMBER, 64): "DOUBLE",
    (Family.NUMBER, None): "DOUBLE",
    (Family.DECIMAL, None): "DECIMAL",
    (Family.DATE, None): "DATE",
    (Family.TIMESTAMP, True): "TIMESTAMPTZ",
    (Family.TIMESTAMP, False): "TIMESTAMPNTZ",
    (Family.TIMESTAMP, None): "TIMESTAMP",
    (Family.TIME, None): "TIME",
    (Family.BINARY, None): "VARBINARY",
    (Family.VARIANT, None): "VARIANT",
}
_USUAL_DIGITS: Final = (38, 18)
_KEY_LENGTH: Final = 255

# BigQuery's NUMERIC has 29 digits before the point and 9 behind it. T-SQL's TINYINT has no sign.
_BIGQUERY_DIGITS: Final = (29, 9)
_UNSIGNED_BYTE: Final = ("tsql", "fabric")


def column_type(place: Place, dialect: str, able: Abilities, *, in_key: bool) -> Any:
    """The sqlglot type of a column; what the dialect has no type for is one document (JSON or text)."""
    from sqlglot import exp

    type_ = place.field.type if place.field is not None else None
    if in_key and able.key_text and _is_text(type_) and (type_ is None or type_.length is None):
        return exp.DataType.build(f"VARCHAR({_KEY_LENGTH})")
    if not _is_native(place, able):
        return _own(able.document)
    return _type(place, dialect, able)


def _is_text(type_: DataType | None) -> bool:
    return type_ is None or type_.family is Family.STRING


def _is_native(place: Place, able: Abilities) -> bool:
    """Whether the dialect has a type for all of it. A list or an object of something unknown is none."""
    type_ = place.field.type if place.field is not None else None
    if type_ is None or type_.family not in _HOLDERS:
        return True
    held = [place.holds(part) for part in _HOLDERS[type_.family]] or list(place.fields) or [None]
    return type_.family in able.nested and all(part is not None and _is_native(part, able) for part in held)


_HOLDERS: Final[dict[Family, tuple[str, ...]]] = {
    Family.ARRAY: ("item",),
    Family.MAP: ("key", "value"),
    Family.OBJECT: (),
}


def _own(name: str) -> Any:
    from sqlglot import exp

    return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=name)


def _type(place: Place | None, dialect: str, able: Abilities) -> Any:
    from sqlglot import exp

    type_ = place.field.type if place is not None and place.field is not None else None
    if place is None or type_ is None:
        return exp.DataType.build("TEXT")
    match type_.family:
        case Family.ARRAY | Family.MAP:
            held = [_type(place.holds(part), dialect, able) for part in _HOLDERS[type_.family]]
            if type_.family is Family.MAP:
                held[0].set("nullable", False)
            return exp.DataType(this=exp.DataType.Type[type_.family.name], expressions=held, nested=True)
        case Family.OBJECT:
            fields = [
                exp.ColumnDef(this=exp.to_identifier(part.field.column, quoted=True), kind=_type(part, dialect, able))
                for part in place.fields
                if part.field is not None
            ]
            return exp.DataType(this=exp.DataType.Type.STRUCT, expressions=fields, nested=True)
        case family if family in able.types:
            return _own(able.types[family])
    return _scalar(type_, dialect)


def _scalar(type_: DataType, dialect: str) -> Any:
    from sqlglot import exp

    if type_.family is Family.STRING and type_.length is not None:
        return exp.DataType.build(f"VARCHAR({type_.length})")
    if type_.family is Family.DECIMAL:
        precision, scale = _USUAL_DIGITS if type_.precision is None else (type_.precision, type_.scale or 0)
        most_before, most_behind = _BIGQUERY_DIGITS
        if dialect == "bigquery" and (precision - scale > most_before or scale > most_behind):
            return _own(f"BIGNUMERIC({precision}, {scale})")
        return exp.DataType.build(f"DECIMAL({precision}, {scale})")
    bits = 16 if type_.bits == 8 and dialect in _UNSIGNED_BYTE else type_.bits
    return exp.DataType.build(_NAMES[type_.family, type_.zone if type_.family is Family.TIMESTAMP else bits])


def _is_never_null(place: Place, dialect: str) -> bool:
    type_ = place.field.type if place.field is not None else None
    return dialect == "clickhouse" and type_ is not None and type_.family in _HOLDERS


def type_doubts(place: Place, dialect: str, able: Abilities, *, in_key: bool) -> Iterator[tuple[str, str]]:
    """What the written type of a column says otherwise than the contract's, and how; of its parts with it."""
    type_ = place.field.type if place.field is not None else None
    if in_key and able.key_text and _is_text(type_) and (type_ is None or type_.length is None):
        yield "the length", f"the contract says none, and a key of {dialect} needs one; written as {_KEY_LENGTH}"
    if place.depth == 0 and not _is_native(place, able):
        yield "what it holds", f"{dialect} has no type for it; written as {able.document}"
        return
    if _is_never_null(place, dialect) and not place.required:
        yield "null", f"{dialect} has none in arrays, maps and objects"
    match type_:
        case None:
            yield "the type", "the contract says none; written as a text"
        case DataType(family=Family.INTEGER | Family.NUMBER, bits=None):
            yield "the width", "the contract says none; written with 64 bits"
        case DataType(family=Family.DECIMAL, precision=None):
            yield "the precision", "the contract says none; written as (38, 18)"
        case DataType(family=Family.TIMESTAMP, zone=None):
            yield "the time zone", "the contract says none; written as the dialect's usual timestamp"
        case DataType(family=Family.STRING, length=int()) if not able.lengths and not (
            able.checks and place.depth == 0
        ):
            yield "the length", f"{dialect} has none"
    for part in place.inside:
        yield from type_doubts(part, dialect, able, in_key=False)
