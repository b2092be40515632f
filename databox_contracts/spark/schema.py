"""Spark's types in the words of contracts, and where in a table's schema a check's path leads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import ArrayType, DataType as SparkType, DecimalType, MapType, StructField, StructType

from databox_contracts.datatypes import DataType, Family
from databox_contracts.model import Field
from databox_contracts.plan import Hop, Path

# By name: older versions of Spark lack some of these types.
_BY_TYPE_NAME: Final = {
    "string": DataType(Family.STRING),
    "varchar": DataType(Family.STRING),
    "char": DataType(Family.STRING),
    "boolean": DataType(Family.BOOLEAN),
    "byte": DataType(Family.INTEGER, bits=8),
    "short": DataType(Family.INTEGER, bits=16),
    "integer": DataType(Family.INTEGER, bits=32),
    "long": DataType(Family.INTEGER, bits=64),
    "float": DataType(Family.NUMBER, bits=32),
    "double": DataType(Family.NUMBER, bits=64),
    "date": DataType(Family.DATE),
    "timestamp": DataType(Family.TIMESTAMP, zone=True),
    "timestamp_ntz": DataType(Family.TIMESTAMP, zone=False),
    "time": DataType(Family.TIME),
    "binary": DataType(Family.BINARY),
    "variant": DataType(Family.VARIANT),
}


def to_data_type(actual: SparkType) -> DataType | None:
    """The contract's word for a Spark type, None for one that contracts have no word for (an interval, void)."""
    if isinstance(actual, DecimalType):
        return DataType(Family.DECIMAL, precision=actual.precision, scale=actual.scale)
    if isinstance(actual, ArrayType):
        return DataType(Family.ARRAY, item=to_data_type(actual.elementType))
    if isinstance(actual, MapType):
        return DataType(Family.MAP, key=to_data_type(actual.keyType), value=to_data_type(actual.valueType))
    if isinstance(actual, StructType):
        named = ((field.name, to_data_type(field.dataType)) for field in actual.fields)
        return DataType(Family.OBJECT, fields=tuple((name, type_) for name, type_ in named if type_ is not None))
    return _BY_TYPE_NAME.get(actual.typeName().split("(")[0])


def type_text(actual: SparkType) -> str:
    """How a message names a table's type: as contracts spell it, else as Spark does."""
    known = to_data_type(actual)
    return str(known) if known is not None else actual.simpleString()


@dataclass(frozen=True, slots=True)
class Location:
    """Where a path leads: the position of its column, the steps inside as the table spells them, and the type there."""

    column: int
    steps: Path
    type: SparkType


@dataclass(frozen=True, slots=True)
class Missing:
    """A path that leads nowhere, and why, in plain words."""

    reason: str


def locate(schema: StructType, path: Path, *, case_sensitive: bool) -> Location | Missing:
    """Follow a path through a table's schema, by name as Spark resolves names."""
    top = _find(schema, str(path[0]), case_sensitive=case_sensitive)
    if isinstance(top, Missing):
        return top
    column = schema.fields.index(top)
    actual: SparkType = top.dataType
    steps: list[str | Hop] = []
    for step in path[1:]:
        match step, actual:
            case Hop.ITEM, ArrayType():
                actual = actual.elementType
            case Hop.KEY, MapType():
                actual = actual.keyType
            case Hop.VALUE, MapType():
                actual = actual.valueType
            case str(), StructType():
                inner = _find(actual, step, case_sensitive=case_sensitive)
                if isinstance(inner, Missing):
                    return inner
                step, actual = inner.name, inner.dataType
            case _:
                wanted = "array" if step is Hop.ITEM else "map" if isinstance(step, Hop) else "object"
                return Missing(f"it is inside {type_text(actual)}, which is no {wanted}")
        steps.append(step)
    return Location(column, tuple(steps), actual)


def _find(struct: StructType, name: str, *, case_sensitive: bool) -> StructField | Missing:
    exact = [field for field in struct.fields if field.name == name]
    found = exact or ([] if case_sensitive else [f for f in struct.fields if f.name.lower() == name.lower()])
    if len(found) == 1:
        return found[0]
    if found:
        return Missing(f"the table has {len(found)} columns named {name}")
    return Missing(f"the table has no column {name}")


def claimed_columns(struct: StructType, fields: Iterable[Field], *, case_sensitive: bool) -> dict[int, Field]:
    """The declared field of each column that has one, by position.

    A field means the column of its very name, and only where there is none those that differ from it in case.
    """
    claimed: dict[int, Field] = {}
    names = [column.name for column in struct.fields]
    for field in fields:
        found = [at for at, name in enumerate(names) if name == field.column]
        if not found and not case_sensitive:
            found = [at for at, name in enumerate(names) if name.lower() == field.column.lower()]
        for at in found:
            claimed.setdefault(at, field)
    return claimed


def undeclared_columns(schema: StructType, fields: tuple[Field, ...], *, case_sensitive: bool) -> list[str]:
    """The dotted names of what the table has and the contract does not, in the table's order, at every depth.

    An object that declares no fields of its own promises nothing about them.
    """
    found: list[str] = []
    claimed = claimed_columns(schema, fields, case_sensitive=case_sensitive)
    for at, column in enumerate(schema.fields):
        if at not in claimed:
            found.append(column.name)
        else:
            inside = _undeclared_inside(column.dataType, claimed[at], case_sensitive=case_sensitive)
            found.extend(f"{column.name}.{name}" for name in inside)
    return found


def _undeclared_inside(actual: SparkType, field: Field | None, *, case_sensitive: bool) -> list[str]:
    match actual:
        case StructType() if field is not None and field.fields:
            return undeclared_columns(actual, field.fields, case_sensitive=case_sensitive)
        case ArrayType() if field is not None:
            return _undeclared_inside(actual.elementType, field.item, case_sensitive=case_sensitive)
        case MapType() if field is not None:
            keys = _undeclared_inside(actual.keyType, field.key, case_sensitive=case_sensitive)
            return keys + _undeclared_inside(actual.valueType, field.value, case_sensitive=case_sensitive)
    return []


def holds(actual: SparkType, wanted: type[SparkType]) -> bool:
    """Whether a type is of that kind, or has a part that is."""
    if isinstance(actual, wanted):
        return True
    inner = [getattr(actual, name, None) for name in ("elementType", "keyType", "valueType")]
    inner += [field.dataType for field in getattr(actual, "fields", [])]
    return any(part is not None and holds(part, wanted) for part in inner)
