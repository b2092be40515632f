"""Which columns a table format can hold, and which columns were added to a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType


def loose(schema: StructType) -> StructType:
    """The names and types alone: everything nullable, without metadata, at any depth."""
    return StructType.fromJson(_loose(schema.jsonValue()))


def not_storable(schema: StructType, types: Collection[str], *, forbidden: str, name: str) -> str | None:
    """Why a format of that name cannot hold the columns, None if it can.

    `types` are Spark's simple names of those that hold no others, `decimal` for all decimals; `forbidden` are
    characters that no column or nested field may have in its name.
    """
    for path, kind in _leaves(schema):
        for part in path:
            bad = next((character for character in forbidden if character in part), None)
            if bad is not None:
                return f"the column {'.'.join(path)} has {bad!r} in its name, which {name} does not allow"
        spelled = kind.simpleString()
        if spelled not in types and not ("decimal" in types and spelled.startswith("decimal(")):
            return f"the column {'.'.join(path)} is of type {spelled}, which {name} does not have"
    return None


def added(before: StructType, now: StructType) -> tuple[StructField, ...] | None:
    """The columns that follow those of before, which stay as they are; None where anything else has changed."""
    old, new = loose(before).fields, loose(now).fields
    if new[: len(old)] != old:
        return None
    return tuple(new[len(old) :])


def _loose(found: Any) -> Any:
    if isinstance(found, list):
        return [_loose(item) for item in found]
    if not isinstance(found, dict):
        return found
    plain = {key: _loose(value) for key, value in found.items() if key != "metadata"}
    for key in ("nullable", "containsNull", "valueContainsNull"):
        if key in plain:
            plain[key] = True
    return {**plain, "metadata": {}} if "nullable" in plain else plain


def _leaves(kind: DataType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], DataType]]:
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _leaves(field.dataType, (*path, field.name))
    elif isinstance(kind, ArrayType):
        yield from _leaves(kind.elementType, path)
    elif isinstance(kind, MapType):
        yield from _leaves(kind.keyType, path)
        yield from _leaves(kind.valueType, path)
    else:
        yield path, kind
