"""Texts as contracts compare them: by their code points, whatever collation a column has (Spark 4).

A file, a row of Python and another engine know of no collation, so a verdict that followed one would depend on where
the rows are.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql.types import ArrayType, DataType as SparkType, MapType, StringType, StructField, StructType


def by_code_points(value: Column, actual: SparkType) -> Column:
    """The value of that type, its texts without a collation; as it is where they have none."""
    plain = without_collations(actual)
    return value if plain == actual else value.cast(plain)


def without_collations(actual: SparkType) -> SparkType:
    """The type with plain texts in place of collated ones, at every depth."""
    match actual:
        # PySpark 3.5 has no collations, and types that stand for texts have a length of their own.
        case StringType() if type(actual) is StringType:
            return StringType()
        case ArrayType():
            return ArrayType(without_collations(actual.elementType), actual.containsNull)
        case MapType():
            key, held = without_collations(actual.keyType), without_collations(actual.valueType)
            return MapType(key, held, actual.valueContainsNull)
        case StructType():
            return StructType(
                [StructField(one.name, without_collations(one.dataType), one.nullable) for one in actual.fields]
            )
    return actual
