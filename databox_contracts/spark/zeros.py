"""0.0 and -0.0: one value to every comparison and hash of Spark's, two as a text, and two items of an array to 3.5."""

from __future__ import annotations

from pyspark.sql import Column, functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType


def one_zero(value: Column, actual: DataType) -> Column:
    """The value of that type with 0.0 for -0.0; any other value, NaN and null stay, and so does what has parts."""
    return value + F.lit(0.0).cast(actual) if isinstance(actual, DoubleType | FloatType) else value
