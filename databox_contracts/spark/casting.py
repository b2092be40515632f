"""Text in the types that a contract declares: the value, and whether the text says something that the type cannot."""

from __future__ import annotations

from pyspark.sql import Column, functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType as SparkType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)

from databox_contracts.datatypes import DataType, Family
from databox_contracts.spark.compat import try_cast

_INTEGERS = {8: ByteType(), 16: ShortType(), 32: IntegerType(), 64: LongType()}
_EXACT = DecimalType(38, 18)


def spark_type_of(declared: DataType) -> SparkType | None:
    """The Spark type that a text column of that declared type is cast to; None where the text stays as it is."""
    match declared.family:
        case Family.INTEGER:
            return _INTEGERS[declared.bits or 64]
        case Family.NUMBER:
            return FloatType() if declared.bits == 32 else DoubleType()
        case Family.DECIMAL:
            return DecimalType(declared.precision, declared.scale or 0) if declared.precision else _EXACT
        case Family.BOOLEAN:
            return BooleanType()
        case Family.DATE:
            return DateType()
        case Family.TIMESTAMP:
            return TimestampNTZType() if declared.zone is False else TimestampType()
        case Family.BINARY:
            return BinaryType()
        case _:
            return None


def cast_text(text: Column, target: SparkType) -> Column:
    """The value that the text stands for, null where it stands for none or for one that does not fit."""
    return F.when(~loses(text, target), try_cast(text, target))


def loses(text: Column, target: SparkType) -> Column:
    """Whether the text is there and is no value of the type, or more than the type can hold; never null."""
    value = try_cast(text, target)
    lost = value.isNull()
    if isinstance(target, DecimalType) and target != _EXACT:
        # A cast rounds to the scale; what it would round away is lost.
        lost = lost | F.coalesce(try_cast(text, _EXACT) != try_cast(value, _EXACT), F.lit(True))
    if isinstance(target, DateType):
        lost = lost | (F.length(F.trim(text)) > 10)
    if isinstance(target, FloatType | DoubleType):
        # A number too large for the type becomes infinite, which only the word may.
        lost = lost | (value.isin(float("inf"), float("-inf")) & text.rlike(r"\d"))
    return F.coalesce(text.isNotNull() & lost, F.lit(False))
