"""`logicalType` and `physicalType`, one type: what each constrains, and where they contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from databox_contracts.datatypes import DataType, Family, parse_type
from databox_contracts.errors import UnknownTypeError
from databox_contracts.formats.odcs_options import descriptive_options
from databox_contracts.formats.odcs_values import NUMERIC
from databox_contracts.formats.reading import Section, nearest

# What a logical type alone constrains: the family. Spark has no type of its own for vectors.
LOGICAL_TYPES: Final[dict[str, DataType | None]] = {
    "string": DataType(Family.STRING),
    "date": DataType(Family.DATE),
    "timestamp": DataType(Family.TIMESTAMP),
    "time": DataType(Family.TIME),
    "number": DataType(Family.NUMBER),
    "integer": DataType(Family.INTEGER),
    "object": DataType(Family.OBJECT),
    "array": DataType(Family.ARRAY),
    "boolean": DataType(Family.BOOLEAN),
    "map": DataType(Family.MAP),
    "vector": None,
}

# How a logical type may be stored without a contradiction. The standard has no logical type for bytes.
_STORED_AS: Final[dict[str, tuple[Family, ...]]] = {
    "string": (Family.STRING, Family.BINARY),
    "date": (Family.DATE,),
    "timestamp": (Family.TIMESTAMP,),
    "time": (Family.TIME,),
    "number": (Family.NUMBER, Family.DECIMAL, Family.INTEGER),
    "integer": (Family.INTEGER, Family.DECIMAL),
    "object": (Family.OBJECT, Family.VARIANT, Family.MAP),
    "array": (Family.ARRAY, Family.VARIANT),
    "boolean": (Family.BOOLEAN,),
    "map": (Family.MAP, Family.OBJECT, Family.VARIANT),
    "vector": (Family.ARRAY, Family.BINARY),
}

_LOGICAL_OF: Final[dict[Family, str]] = {
    Family.STRING: "string",
    Family.DATE: "date",
    Family.TIMESTAMP: "timestamp",
    Family.TIME: "time",
    Family.NUMBER: "number",
    Family.DECIMAL: "number",
    Family.INTEGER: "integer",
    Family.OBJECT: "object",
    Family.ARRAY: "array",
    Family.BOOLEAN: "boolean",
    Family.MAP: "map",
}

# The SQL of a server, by its type; sqlglot's names. What is not listed is read as Spark's.
_DIALECTS: Final[dict[str, str]] = {
    "athena": "athena",
    "bigquery": "bigquery",
    "clickhouse": "clickhouse",
    "cloudsql": "postgres",
    "databricks": "databricks",
    "dremio": "dremio",
    "duckdb": "duckdb",
    "exasol": "exasol",
    "glue": "athena",
    "hive": "hive",
    "impala": "hive",
    "mysql": "mysql",
    "oracle": "oracle",
    "postgres": "postgres",
    "postgresql": "postgres",
    "presto": "presto",
    "redshift": "redshift",
    "snowflake": "snowflake",
    "sqlserver": "tsql",
    "synapse": "tsql",
    "teradata": "teradata",
    "trino": "trino",
}

# The standard's way to say a width without a physical type. Spark has no unsigned and no 128-bit integers.
_WIDTHS: Final[dict[str, DataType | None]] = {
    **{f"i{bits}": DataType(Family.INTEGER, bits=bits) for bits in (8, 16, 32, 64)},
    **{f"f{bits}": DataType(Family.NUMBER, bits=bits) for bits in (32, 64)},
    **dict.fromkeys(("i128", "u8", "u16", "u32", "u64", "u128")),
}


_MOST_DIGITS: Final = 38


def server_dialect(server_types: Iterable[str]) -> str | None:
    """The SQL dialect of the physical types, where all servers are of one kind; None is Spark's."""
    kinds = {_DIALECTS.get(kind) for kind in server_types}
    return kinds.pop() if len(kinds) == 1 else None


def read_logical_type(section: Section) -> str | None:
    """The name of the logical type, one of `LOGICAL_TYPES`; another is an error."""
    name = section.text("logicalType")
    if name is None or name in LOGICAL_TYPES:
        return name
    near = nearest(name, LOGICAL_TYPES)
    hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(LOGICAL_TYPES)}; SQL types go to physicalType"
    section.error(f"unknown logicalType {name!r}", hint, "logicalType")
    return None


def read_type(section: Section, logical: str | None, dialect: str | None) -> DataType | None:
    """The type that the table's column must have, or None where the document says none that can be checked.

    The physical type decides where it is given; a logical type that contradicts it is a warning.
    """
    spelling = section.text("physicalType")
    declared = LOGICAL_TYPES[logical] if logical is not None else None
    if spelling is None or not spelling.strip():
        return declared
    physical = _parsed(section, spelling, logical, dialect)
    if physical is None:
        return declared
    if logical is not None and not _agree(logical, physical):
        section.warning(
            f"logicalType {logical!r} contradicts physicalType {spelling!r}; {physical} is what is checked",
            "make them agree",
            "physicalType",
        )
    return physical


def _parsed(section: Section, spelling: str, logical: str | None, dialect: str | None) -> DataType | None:
    try:
        parsed = parse_type(spelling, dialect)
    except UnknownTypeError as error:
        message = f"unknown physicalType {spelling[:60]!r}"
        if logical is None:
            section.error(message, error.hint, "physicalType")
        else:
            section.warning(f"{message}; only the logicalType {logical!r} is enforced", error.hint, "physicalType")
        return None
    if parsed.precision is not None and (parsed.scale or 0) > parsed.precision:
        section.error(f"{parsed} has more fraction digits than digits", "correct it", "physicalType")
    elif parsed.precision is not None and parsed.precision > _MOST_DIGITS:
        section.warning(
            f"no Spark table can have the type {parsed}",
            f"its decimals have at most {_MOST_DIGITS} digits",
            "physicalType",
        )
    return parsed


def _agree(logical: str, physical: DataType) -> bool:
    if logical == "integer" and physical.family is Family.DECIMAL:
        return not physical.scale
    return physical.family in _STORED_AS[logical]


def logical_name(logical: str | None, type_: DataType | None) -> str | None:
    """Which logical type's options and values apply; of the physical type where no logical one is given."""
    if logical is not None or type_ is None:
        return logical
    return _LOGICAL_OF.get(type_.family)


def with_number_format(section: Section, logical: str, type_: DataType | None) -> tuple[DataType | None, str | None]:
    """The type with the width that the option `format` (i32, f64, ...) says, and why not where it cannot be checked."""
    written = section.text("format")
    if written is None:
        return type_, None
    if written not in _WIDTHS or (written[0] == "f") != (logical == "number"):
        allowed = [name for name in _WIDTHS if (name[0] == "f") == (logical == "number")]
        section.error(f"{written!r} is not a format of {logical}s", f"use one of {', '.join(allowed)}", "format")
        return type_, None
    width = _WIDTHS[written]
    if type_ == LOGICAL_TYPES[logical] and width is not None:
        return width, None
    if width is None:
        return type_, f"the format {written} has no type in Spark; write its bounds as minimum and maximum"
    if type_ is not None and type_ != width:
        section.warning(
            f"the format {written} and the physicalType contradict each other; {type_} is what is checked",
            "make them agree",
            "format",
        )
    return type_, None


def with_time_zone(section: Section, type_: DataType | None) -> tuple[DataType | None, str | None]:
    """The type with the zone that the option `timezone` says, and why not where it cannot be checked."""
    zoned = section.flag("timezone")
    if zoned is None or type_ is None:
        return type_, None
    if type_.family is not Family.TIMESTAMP:
        return type_, "only a timestamp can be checked for a time zone" if zoned else None
    if type_.zone is None:
        return replace(type_, zone=zoned), None
    if type_.zone is not zoned:
        section.warning(
            f"timezone and physicalType contradict each other; {type_} is what is checked",
            "make them agree",
            "timezone",
        )
    return type_, None


def read_spelling(section: Section, kind: str | None, type_: DataType | None) -> dict[str, Any]:
    """How the type is written, where we would write it otherwise; and the options that say nothing of values."""
    texts = {key: section.written(key) for key in SPELLING[:2]}
    written = {key: text for key, text in texts.items() if text is not None and text.strip()}
    beside = section.raw("logicalTypeOptions")
    options: dict[str, Any] = {}
    descriptive: dict[str, Any] = {}
    if isinstance(beside, dict):
        key = "format" if kind in NUMERIC else "timezone"
        if beside.get(key) is not None:
            options = {key: beside[key]}
        descriptive = descriptive_options(beside, kind)
    whole = {**written, **({"logicalTypeOptions": options} if options else {})}
    if whole == spelled(type_) or not whole:
        return {"logicalTypeOptions": descriptive} if descriptive else {}
    return {**written, **({"logicalTypeOptions": options | descriptive} if options or descriptive else {})}


# --- the way back: a type in the standard's words ---------------------------------------------------------------------

# Spellings that mean the same in every SQL dialect. What is not here has a logical type that says it all.
_PHYSICAL: Final[dict[tuple[Family, int | None], str]] = {
    (Family.INTEGER, 8): "tinyint",
    (Family.INTEGER, 16): "smallint",
    (Family.INTEGER, 32): "int",
    (Family.INTEGER, 64): "bigint",
    (Family.NUMBER, 32): "float",
    (Family.NUMBER, 64): "double",
    (Family.DECIMAL, None): "decimal",
    (Family.BINARY, None): "binary",
    (Family.VARIANT, None): "variant",
}
_LOGICAL_FOR_WRITING: Final = {**_LOGICAL_OF, Family.BINARY: "string", Family.VARIANT: "object"}

SPELLING: Final = ("logicalType", "physicalType", "logicalTypeOptions")
"""The entries of a property that say its type; of the options `format` of numbers and `timezone`."""


def spelled(type_: DataType | None) -> dict[str, Any]:
    """The entries that say a type; what an array, map or object contains is said by its parts."""
    if type_ is None:
        return {}
    found: dict[str, Any] = {"logicalType": _LOGICAL_FOR_WRITING[type_.family]}
    physical = _PHYSICAL.get((type_.family, type_.bits))
    if type_.family is Family.DECIMAL and type_.precision is not None:
        physical = f"decimal({type_.precision}, {type_.scale or 0})"
    elif type_.family is Family.STRING and type_.length is not None:
        physical = f"varchar({type_.length})"
    if physical is not None:
        found["physicalType"] = physical
    if type_.zone is not None:
        found["logicalTypeOptions"] = {"timezone": type_.zone}
    return found


def meant(spelling: Mapping[str, Any], dialect: str | None) -> DataType | None:
    """The type that those entries of a property mean, without a remark; a word that is not known means nothing."""
    logical, physical = spelling.get("logicalType"), spelling.get("physicalType")
    options = spelling.get("logicalTypeOptions") or {}
    type_ = declared = LOGICAL_TYPES.get(logical) if logical is not None else None
    if physical is not None and physical.strip():
        try:
            type_ = parse_type(physical, dialect)
        except UnknownTypeError:
            type_ = declared
    width = _WIDTHS.get(options.get("format", ""))
    if width is not None and type_ is not None and type_ == declared and type_.family is width.family:
        return width
    if type_ is not None and type_.family is Family.TIMESTAMP and type_.zone is None:
        return replace(type_, zone=options.get("timezone"))
    return type_
