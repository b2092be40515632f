"""A table's schema as the fields of a contract: what it says for certain, without a look at the rows."""

from __future__ import annotations

import json
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType as SparkType,
    MapType,
    StructField,
    StructType,
    VarcharType,
)

from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import DataboxError
from databox_contracts.model import Field
from databox_contracts.rules import Required
from databox_contracts.spark.schema import to_data_type


def fields_of(schema: StructType) -> tuple[Field, ...]:
    """The fields of a contract for a table of that schema, at every depth: types with width, what is never null.

    A column of a type that contracts have no word for (an interval, void) has none. Raises `DataboxError` for two
    columns that only case tells apart, and for one without a name.
    """
    _check_names(schema, "the table")
    return tuple(_field(column) for column in schema.fields)


def fields_of_json(text: str) -> tuple[Field, ...]:
    """As `fields_of`, for a schema as Spark writes it in JSON. Raises `DataboxError` for anything else as well."""
    try:
        schema = StructType.fromJson(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, PySparkException) as error:
        raise DataboxError(
            f"this is no Spark schema ({type(error).__name__})", hint="write what df.schema.json() gives"
        ) from None
    return fields_of(schema)


def _field(column: StructField) -> Field:
    rules = () if column.nullable else (Required(),)
    comment = (column.metadata or {}).get("comment")
    described = {"description": comment} if isinstance(comment, str) else {}
    return _typed(column.name, column.dataType, rules=rules, **described)


def _typed(name: str, actual: SparkType, **facts: Any) -> Field:
    match actual:
        case StructType():
            _check_names(actual, f"{name!r}")
            fields = tuple(_field(part) for part in actual.fields)
            return Field(name=name, type=DataType(Family.OBJECT), fields=fields, **facts)
        case ArrayType():
            return Field(name=name, type=DataType(Family.ARRAY), item=_typed("item", actual.elementType), **facts)
        case MapType():
            key, value = _typed("key", actual.keyType), _typed("value", actual.valueType)
            return Field(name=name, type=DataType(Family.MAP), key=key, value=value, **facts)
        case CharType() | VarcharType():
            return Field(name=name, type=DataType(Family.STRING, length=actual.length), **facts)
    return Field(name=name, type=to_data_type(actual), **facts)


def _check_names(struct: StructType, holder: str) -> None:
    taken: dict[str, str] = {}
    for name in struct.names:
        if not name.strip():
            raise DataboxError(f"{holder} has a column without a name", hint="Give it one first.")
        if name.casefold() in taken:
            raise DataboxError(
                f"{holder} has the columns {taken[name.casefold()]!r} and {name!r}, which Spark takes for the same",
                hint="Rename one of them first.",
            )
        taken[name.casefold()] = name
