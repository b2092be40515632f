"""0.0 and -0.0: one value to a comparison, two to a hash, and to `array_distinct` before Spark 4.1."""

from __future__ import annotations

from pyspark.sql import Column, functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, StructType

from databox_contracts.spark.schema import holds


def one_zero(value: Column, actual: DataType) -> Column:
    """The value of that type with 0.0 for every -0.0, also inside objects and arrays; NaN and null stay."""
    if not (holds(actual, DoubleType) or holds(actual, FloatType)):
        return value
    match actual:
        case DoubleType() | FloatType():
            return value + F.lit(0.0).cast(actual)
        case ArrayType():
            return F.transform(value, lambda item: one_zero(item, actual.elementType))
        case StructType():
            parts = (one_zero(value.getField(part.name), part.dataType).alias(part.name) for part in actual.fields)
            return F.when(value.isNotNull(), F.struct(*parts))
    return value
