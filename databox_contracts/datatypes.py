"""Logical types, how they are spelled, and which actual types keep a promise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from databox_contracts.errors import UnknownTypeError


class Family(StrEnum):
    """The logical types of a contract."""

    STRING = "string"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIME = "time"
    BINARY = "binary"
    ARRAY = "array"
    MAP = "map"
    OBJECT = "object"
    VARIANT = "variant"


@dataclass(frozen=True, slots=True)
class DataType:
    """A type of a field; a facet that is None is not constrained.

    `bits` is the width of an integer (8, 16, 32, 64) or of a floating-point number (32, 64), `length` the most
    characters of a string, `zone` whether a timestamp is an instant (True) or a zone-less wall-clock time (False).
    """

    family: Family
    bits: int | None = None
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    zone: bool | None = None
    item: DataType | None = None
    key: DataType | None = None
    value: DataType | None = None
    fields: tuple[tuple[str, DataType], ...] | None = None

    def __str__(self) -> str:
        match self.family:
            case Family.INTEGER | Family.NUMBER if self.bits:
                return f"{self.family}({self.bits})"
            case Family.DECIMAL if self.precision is not None:
                return f"decimal({self.precision}, {self.scale or 0})"
            case Family.STRING if self.length is not None:
                return f"string({self.length})"
            case Family.TIMESTAMP if self.zone is not None:
                return "timestamp with zone" if self.zone else "timestamp without zone"
            case Family.ARRAY if self.item is not None:
                return f"array({self.item})"
            case Family.MAP if self.key is not None and self.value is not None:
                return f"map({self.key}, {self.value})"
            case Family.OBJECT if self.fields is not None:
                return f"object({', '.join(f'{name} {type_}' for name, type_ in self.fields)})"
        return str(self.family)

    def accepts(self, actual: DataType) -> bool:
        """Whether a column of the type `actual` keeps the promise of this type, at this level.

        Every facet that this type names has to be equal. What holds the same values belongs to the same family: an
        unconstrained integer takes a decimal without fraction digits, an unconstrained number takes every numeric
        type. A string's length is a promise about values, judged there. What an array, map or object contains is
        judged field by field.
        """
        if self.family is Family.NUMBER and self.bits is None:
            return actual.family in (Family.NUMBER, Family.INTEGER, Family.DECIMAL)
        if self.family is Family.INTEGER and self.bits is None and actual.family is Family.DECIMAL:
            return actual.scale == 0
        return self.family is actual.family and all(
            promised is None or promised == had
            for promised, had in (
                (self.bits, actual.bits),
                (self.precision, actual.precision),
                (self.scale, actual.scale),
                (self.zone, actual.zone),
            )
        )


def _integer(bits: int) -> DataType:
    return DataType(Family.INTEGER, bits=bits)


_STRING = DataType(Family.STRING)
_BINARY = DataType(Family.BINARY)
_DOUBLE = DataType(Family.NUMBER, bits=64)
_ZONED = DataType(Family.TIMESTAMP, zone=True)
_ZONELESS = DataType(Family.TIMESTAMP, zone=False)

# A bare word of no parameters. Where dialects disagree (float, timestamp), it is what Spark means or nothing narrower.
_SPELLINGS: dict[str, DataType] = {
    **dict.fromkeys(
        ("string", "str", "text", "varchar", "char", "character", "nvarchar", "nchar", "bpchar", "uuid", "enum"),
        _STRING,
    ),
    **dict.fromkeys(("character varying", "clob", "name", "xml", "ntext", "uniqueidentifier", "password"), _STRING),
    **dict.fromkeys(("boolean", "bool"), DataType(Family.BOOLEAN)),
    **dict.fromkeys(("byte", "tinyint", "int8_t"), _integer(8)),
    **dict.fromkeys(("short", "smallint", "int2", "int16", "smallserial"), _integer(16)),
    **dict.fromkeys(("int", "integer", "int4", "int32", "serial"), _integer(32)),
    **dict.fromkeys(("long", "bigint", "int8", "int64", "bigserial"), _integer(64)),
    **dict.fromkeys(("float", "real", "float4", "float32"), DataType(Family.NUMBER, bits=32)),
    **dict.fromkeys(("double", "double precision", "float8", "float64"), _DOUBLE),
    "number": DataType(Family.NUMBER),
    **dict.fromkeys(("decimal", "numeric", "dec", "money"), DataType(Family.DECIMAL)),
    "date": DataType(Family.DATE),
    **dict.fromkeys(("timestamp", "datetime", "datetime2"), DataType(Family.TIMESTAMP)),
    **dict.fromkeys(("timestamptz", "timestamp_tz", "timestamp_ltz", "timestamp with time zone"), _ZONED),
    **dict.fromkeys(("timestamp_ntz", "timestampntz", "timestamp without time zone"), _ZONELESS),
    **dict.fromkeys(("time", "time without time zone"), DataType(Family.TIME)),
    **dict.fromkeys(("binary", "bytes", "bytea", "varbinary", "blob"), _BINARY),
    **dict.fromkeys(("array", "list"), DataType(Family.ARRAY)),
    "map": DataType(Family.MAP),
    **dict.fromkeys(("object", "struct", "record", "row"), DataType(Family.OBJECT)),
    **dict.fromkeys(("variant", "json", "jsonb"), DataType(Family.VARIANT)),
}

_SIZED_TEXT = re.compile(r"(?:n?varchar2?|n?char|character(?: varying)?|bpchar|string)\s*[(\[]\s*(\d+)\s*[)\]]")
_DECIMAL = re.compile(r"(?:decimal|numeric|dec|number)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


@lru_cache(maxsize=4096)
def parse_type(spelling: str, dialect: str | None = None) -> DataType:
    """The type that a Spark, SQL or Data Contract spelling means; `dialect` is a name sqlglot knows.

    Case and white space do not matter. Raises `UnknownTypeError` for a spelling nobody knows.
    """
    text = " ".join(spelling.split()).lower()
    if (known := _SPELLINGS.get(text)) is not None:
        return known
    if match := _SIZED_TEXT.fullmatch(text):
        return DataType(Family.STRING, length=int(match[1]))
    if match := _DECIMAL.fullmatch(text):
        return DataType(Family.DECIMAL, precision=int(match[1]), scale=int(match[2] or 0))
    return _parse_with_sqlglot(spelling, dialect)


def _parse_with_sqlglot(spelling: str, dialect: str | None) -> DataType:
    import sqlglot.errors
    from sqlglot import exp

    for candidate in (dialect, "spark") if dialect else ("spark",):
        try:
            return _from_sqlglot(exp.DataType.build(spelling, dialect=candidate), spelling)
        except (sqlglot.errors.SqlglotError, ValueError, LookupError, AttributeError, RecursionError):
            continue
    raise UnknownTypeError(spelling)


_SQLGLOT_NAMES: dict[str, DataType] = {
    **dict.fromkeys(("TEXT", "VARCHAR", "NVARCHAR", "CHAR", "NCHAR", "BPCHAR", "UUID", "NAME", "XML"), _STRING),
    **dict.fromkeys(("LONGTEXT", "MEDIUMTEXT", "TINYTEXT", "ENUM", "INET", "IPADDRESS"), _STRING),
    "BOOLEAN": DataType(Family.BOOLEAN),
    "TINYINT": _integer(8),
    "SMALLINT": _integer(16),
    "SMALLSERIAL": _integer(16),
    **dict.fromkeys(("INT", "MEDIUMINT", "SERIAL"), _integer(32)),
    **dict.fromkeys(("BIGINT", "BIGSERIAL"), _integer(64)),
    "FLOAT": DataType(Family.NUMBER, bits=32),
    "DOUBLE": _DOUBLE,
    **dict.fromkeys(("DECIMAL", "MONEY", "SMALLMONEY", "BIGDECIMAL"), DataType(Family.DECIMAL)),
    **dict.fromkeys(("DATE", "DATE32"), DataType(Family.DATE)),
    **dict.fromkeys(("TIMESTAMP", "DATETIME", "DATETIME2", "DATETIME64"), DataType(Family.TIMESTAMP)),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ"), _ZONED),
    "TIMESTAMPNTZ": _ZONELESS,
    "TIME": DataType(Family.TIME),
    **dict.fromkeys(("BINARY", "VARBINARY", "BLOB", "LONGBLOB", "MEDIUMBLOB", "TINYBLOB", "IMAGE"), _BINARY),
    **dict.fromkeys(("VARIANT", "JSON", "JSONB", "SUPER"), DataType(Family.VARIANT)),
}


def _from_sqlglot(parsed: Any, spelling: str) -> DataType:
    name = parsed.this.value
    parameters = parsed.expressions
    if name in ("ARRAY", "LIST"):
        return DataType(Family.ARRAY, item=_from_sqlglot(parameters[0], spelling) if parameters else None)
    if name == "MAP":
        key, value = (_from_sqlglot(part, spelling) for part in parameters) if parameters else (None, None)
        return DataType(Family.MAP, key=key, value=value)
    if name in ("STRUCT", "OBJECT"):
        fields = tuple((part.name, _from_sqlglot(part.args["kind"], spelling)) for part in parameters)
        return DataType(Family.OBJECT, fields=fields or None)
    if name not in _SQLGLOT_NAMES:
        raise UnknownTypeError(spelling)
    known = _SQLGLOT_NAMES[name]
    numbers = [int(part.name) for part in parameters if part.name.isdigit()]
    if known.family is Family.STRING and numbers:
        return DataType(Family.STRING, length=numbers[0])
    if known.family is Family.DECIMAL and numbers:
        return DataType(Family.DECIMAL, precision=numbers[0], scale=numbers[1] if len(numbers) > 1 else 0)
    return known
