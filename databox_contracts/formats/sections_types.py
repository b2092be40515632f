"""Types in the words of contracts in six sections, both ways."""

from __future__ import annotations

import re
from typing import Final

from databox_contracts.datatypes import DataType, Family, parse_type
from databox_contracts.errors import UnknownTypeError
from databox_contracts.formats.canonical import canonical
from databox_contracts.model import Contract, Dataset, Field

_WHOLE_NUMBER: Final = "WHOLE_NUMBER"
"""An integer of any width, for which SQL has no word: its INTEGER has 32 bits."""

_WORDS: Final[dict[DataType, str]] = {
    DataType(Family.STRING): "STRING",
    DataType(Family.BOOLEAN): "BOOLEAN",
    DataType(Family.INTEGER): _WHOLE_NUMBER,
    # INT8 has eight bytes in SQL.
    DataType(Family.INTEGER, bits=8): "TINYINT",
    DataType(Family.INTEGER, bits=16): "INT16",
    DataType(Family.INTEGER, bits=32): "INT32",
    DataType(Family.INTEGER, bits=64): "INT64",
    DataType(Family.NUMBER): "NUMBER",
    DataType(Family.NUMBER, bits=32): "FLOAT32",
    DataType(Family.NUMBER, bits=64): "FLOAT64",
    DataType(Family.DECIMAL): "DECIMAL",
    DataType(Family.DATE): "DATE",
    DataType(Family.TIMESTAMP): "TIMESTAMP",
    DataType(Family.TIMESTAMP, zone=True): "TIMESTAMP_LTZ",
    DataType(Family.TIMESTAMP, zone=False): "TIMESTAMP_NTZ",
    DataType(Family.TIME): "TIME",
    DataType(Family.BINARY): "BINARY",
    DataType(Family.VARIANT): "VARIANT",
    DataType(Family.ARRAY): "ARRAY",
    DataType(Family.MAP): "MAP",
    DataType(Family.OBJECT): "STRUCT",
}

# Inside brackets a spelling is Spark's, in which a bare TIMESTAMP has a zone.
_INSIDE: Final = {
    "INT16": "SMALLINT",
    "INT32": "INT",
    "INT64": "BIGINT",
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    **dict.fromkeys((_WHOLE_NUMBER, "NUMBER", "TIMESTAMP")),
}


def read_word(spelling: str) -> DataType:
    """The type that a spelling means: the form's own words, else any of SQL or Spark. Raises `UnknownTypeError`."""
    if spelling.strip().upper() == _WHOLE_NUMBER:
        return DataType(Family.INTEGER)
    return parse_type(spelling)


def word(type_: DataType) -> str:
    """The form's word for a type, without what it contains."""
    match type_.family:
        case Family.DECIMAL if type_.precision is not None:
            return f"DECIMAL({type_.precision}, {type_.scale or 0})"
        case Family.STRING if type_.length is not None:
            return f"VARCHAR({type_.length})"
    return _WORDS.get(DataType(type_.family, bits=type_.bits, zone=type_.zone)) or _WORDS[DataType(type_.family)]


def whole_word(field: Field) -> str | None:
    """The spelling of a type with all that it contains, None where that says less than the field's parts do."""
    spelling = _spelled(field)
    if spelling is None:
        return None
    try:
        meant = Field(name=field.name, type=read_word(spelling)).completed()
    except UnknownTypeError:
        return None
    bare = Field(
        name=field.name, type=field.type, fields=field.fields, item=field.item, key=field.key, value=field.value
    )
    return spelling if _shown(meant) == _shown(bare) else None


def _shown(field: Field) -> object:
    contract = Contract(id="-", version="1", datasets=(Dataset(name="-", fields=(field,)),))
    return canonical(contract, carried=False)


def _spelled(field: Field | None) -> str | None:
    if field is None or field.type is None:
        return None
    outer = word(field.type)
    if not field.parts:
        return _INSIDE.get(outer, outer)
    if field.fields:
        named = [(_quoted(part.name), _spelled(part)) for part in field.fields]
        found = [f"{name}: {spelling}" for name, spelling in named if spelling is not None]
        return f"STRUCT<{', '.join(found)}>" if len(found) == len(named) else None
    inner = [_spelled(part) for part in ((field.item,) if outer == "ARRAY" else (field.key, field.value))]
    known = [spelling for spelling in inner if spelling is not None]
    return f"{outer}<{', '.join(known)}>" if len(known) == len(inner) else None


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"
