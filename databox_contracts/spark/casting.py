"""Values in the types that a contract declares: the value, and whether it says something that the type cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
    NullType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from databox_contracts.datatypes import DataType, Family
from databox_contracts.spark.compat import try_cast
from databox_contracts.spark.schema import to_data_type

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
        lost = lost | ~text.rlike(_DAY)
    if isinstance(target, TimestampType):
        lost = lost | ~text.rlike(_MOMENT) | text.rlike(_TOO_FINE)
    if isinstance(target, TimestampNTZType):
        lost = lost | ~text.rlike(_LOCAL_MOMENT) | text.rlike(_TOO_FINE)
    if isinstance(target, FloatType | DoubleType):
        # A number too large for the type becomes infinite, which only the word may.
        lost = lost | (value.isin(float("inf"), float("-inf")) & text.rlike(r"\d")) | text.rlike(_JAVA_NUMBER)
    return F.coalesce(text.isNotNull() & lost, F.lit(False))


# A cast takes 1500 for the first of January of that year, 10:00 for that time today, and leaves out what follows a day,
# the zone of a time that is to have none, and what is finer than microseconds. Around a value it trims these.
_SPACE: Final = r"[\x00-\x20]*"
_DAY_PART: Final = rf"^{_SPACE}[+-]?\d{{4,}}-\d{{1,2}}-\d{{1,2}}"
_DAY: Final = rf"{_DAY_PART}{_SPACE}$"
_MOMENT: Final = rf"{_DAY_PART}(?:[T ]|{_SPACE}$)"
_LOCAL_MOMENT: Final = rf"{_DAY_PART}(?:[T ]\d[\d:.]*)?{_SPACE}$"
_TOO_FINE: Final = r"\.\d{6}\d*[1-9]"
_JAVA_NUMBER: Final = rf"[\d.][dDfF]{_SPACE}$|[xX]"
"""As Java writes 1.5 and 8.0 too, `1.5d` and `0x1p3`."""


_TARGETS_OF_NUMBERS = (Family.INTEGER, Family.NUMBER, Family.DECIMAL, Family.STRING)
_CASTS: Final[Mapping[Family, tuple[Family, ...]]] = {
    Family.STRING: (
        Family.BOOLEAN,
        Family.INTEGER,
        Family.NUMBER,
        Family.DECIMAL,
        Family.DATE,
        Family.TIMESTAMP,
        Family.BINARY,
    ),
    Family.INTEGER: _TARGETS_OF_NUMBERS,
    Family.NUMBER: _TARGETS_OF_NUMBERS,
    Family.DECIMAL: _TARGETS_OF_NUMBERS,
    Family.BOOLEAN: (Family.STRING,),
    Family.DATE: (Family.TIMESTAMP, Family.STRING),
    Family.TIMESTAMP: (Family.DATE, Family.TIMESTAMP, Family.STRING),
}
"""What values of a type may be read as, each of them judged; of any other type none fits, a 1 being no true."""

_TOO_LONG = float(2**63)
"""The least number that no long holds, and that a cast to one quietly makes the largest."""


def cast_target(actual: SparkType, declared: DataType) -> SparkType | None:
    """The Spark type that values of `actual` can be read as for a declared type; None where no value can."""
    had = to_data_type(actual)
    target = StringType() if declared.family is Family.STRING else spark_type_of(declared)
    if isinstance(actual, NullType):
        return target
    return target if had is not None and declared.family in _CASTS.get(had.family, ()) else None


def cast_value(value: Column, actual: SparkType, target: SparkType) -> Column:
    """The value in the other type, null where it does not fit."""
    if isinstance(actual, NullType):
        return value.cast(target)
    return F.when(~loses_value(value, actual, target), try_cast(value, target))


def loses_value(value: Column, actual: SparkType, target: SparkType) -> Column:
    """Whether a value is there and the other type has none that says the same; never null.

    Texts are read as `loses` says. Everything has its text. Any other value fits if it comes back unchanged: no
    fraction, no time of day and no digit may be lost, and NaN fits no decimal.
    """
    if isinstance(actual, StringType):
        return loses(value, target)
    if isinstance(actual, NullType) or isinstance(target, StringType):
        return F.lit(False)
    cast = try_cast(value, target)
    lost = cast.isNull() | ~try_cast(cast, actual).eqNullSafe(value)
    if isinstance(target, LongType) and isinstance(actual, FloatType | DoubleType):
        lost = lost | (value >= _TOO_LONG)
    if isinstance(actual, LongType) and isinstance(target, FloatType | DoubleType):
        lost = lost | (cast >= _TOO_LONG)
    return F.coalesce(value.isNotNull() & lost, F.lit(False))
