"""Columns as Iceberg has them, and as Spark has them, each from the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

_SPARK: Final[dict[str, DataType]] = {
    "string": StringType(),
    "long": LongType(),
    "int": IntegerType(),
    "float": FloatType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamptz": TimestampType(),
    "timestamp": TimestampNTZType(),
}
"""By Iceberg's names."""
_ICEBERG: Final = {kind.simpleString(): name for name, kind in _SPARK.items()}
STORABLE: Final = frozenset([*_ICEBERG, "decimal"])
"""Spark's simple names of the types that Iceberg has, among those that hold no others."""


def iceberg_schema(schema: StructType) -> Schema:
    """The columns as Iceberg has them, all optional, numbered as they come."""
    from pyiceberg.schema import Schema

    return Schema(*_fields(schema, count(1)))


def iceberg_type(kind: DataType) -> Any:
    """A type as Iceberg has it; Iceberg itself numbers its fields anew."""
    return _iceberg(kind, count(1))


def spark_schema(schema: Schema) -> StructType:
    """An Iceberg table's columns. Raises `ValueError` with the name of a type that Spark's files do not have."""
    found = _spark(schema.as_struct())
    assert isinstance(found, StructType)
    return found


def _fields(kind: StructType, ids: Iterator[int]) -> list[Any]:
    from pyiceberg.types import NestedField

    numbered = [(next(ids), field) for field in kind.fields]
    return [NestedField(id_, field.name, _iceberg(field.dataType, ids), required=False) for id_, field in numbered]


def _iceberg(kind: DataType, ids: Iterator[int]) -> Any:
    from pyiceberg import types

    if isinstance(kind, StructType):
        return types.StructType(*_fields(kind, ids))
    if isinstance(kind, ArrayType):
        return types.ListType(next(ids), _iceberg(kind.elementType, ids), element_required=False)
    if isinstance(kind, MapType):
        key, value = next(ids), next(ids)
        return types.MapType(
            key, _iceberg(kind.keyType, ids), value, _iceberg(kind.valueType, ids), value_required=False
        )
    if isinstance(kind, DecimalType):
        return types.DecimalType(kind.precision, kind.scale)
    plain = {
        "string": types.StringType,
        "long": types.LongType,
        "int": types.IntegerType,
        "float": types.FloatType,
        "double": types.DoubleType,
        "boolean": types.BooleanType,
        "binary": types.BinaryType,
        "date": types.DateType,
        "timestamptz": types.TimestamptzType,
        "timestamp": types.TimestampType,
    }
    return plain[_ICEBERG[kind.simpleString()]]()


def _spark(kind: Any) -> DataType:
    from pyiceberg import types

    if isinstance(kind, types.StructType):
        return StructType([StructField(field.name, _spark(field.field_type)) for field in kind.fields])
    if isinstance(kind, types.ListType):
        return ArrayType(_spark(kind.element_type))
    if isinstance(kind, types.MapType):
        return MapType(_spark(kind.key_type), _spark(kind.value_type))
    if isinstance(kind, types.DecimalType):
        return DecimalType(kind.precision, kind.scale)
    if str(kind) not in _SPARK:
        raise ValueError(str(kind))
    return _SPARK[str(kind)]
