"""Rules as Spark expressions: a column in, the condition of its violation out. Running them is somebody else's job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import reduce, singledispatch
from operator import or_
from typing import Final, TypeAlias

from pyspark.sql import Column, functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType as SparkType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from databox_contracts import rules
from databox_contracts.formats.backtracking import is_exponential
from databox_contracts.patterns import PatternError, to_java
from databox_contracts.plan import Hop, Path
from databox_contracts.rules import Rule, Scalar
from databox_contracts.spark.compat import try_cast
from databox_contracts.spark.schema import type_text
from databox_contracts.spark.zeros import one_zero
from databox_contracts.text_formats import FORMATS, format_in_java

Test: TypeAlias = Callable[[Column], Column]


class NotEvaluableError(Exception):
    """A rule that cannot be judged on a column of that type; the text says why."""


@singledispatch
def violation(rule: Rule, actual: SparkType) -> Test:
    """The test of one value against a rule, for a column of the Spark type `actual`.

    The test's outcome is null or false for a value that keeps the promise; a null value does, except where the rule is
    about nulls. Raises `NotEvaluableError` for a rule that has no meaning for that type or that this engine does not
    know.
    """
    raise NotEvaluableError(f"the Spark engine does not evaluate {rule.kind} rules yet")


@violation.register
def _(rule: rules.Required | rules.NullCount, actual: SparkType) -> Test:
    return lambda value: value.isNull()


@violation.register
def _(rule: rules.MissingCount, actual: SparkType) -> Test:
    literals = _literals([value for value in rule.missing_values if value is not None], actual)
    null_is_missing = None in rule.missing_values

    def missing(value: Column) -> Column:
        among = value.isin(*literals) if literals else F.lit(False)
        return value.isNull() | F.coalesce(among, F.lit(False)) if null_is_missing else among

    return missing


@violation.register
def _(rule: rules.Enum, actual: SparkType) -> Test:
    return _none_of(rule.values, actual)


@violation.register
def _(rule: rules.InvalidCount, actual: SparkType) -> Test:
    tests: list[Test] = []
    if rule.valid_values is not None:
        tests.append(_none_of(rule.valid_values, actual))
    if rule.pattern is not None:
        tests.append(_unlike(rule.pattern, actual))
    if not tests:
        raise NotEvaluableError("it says neither which values are valid nor which pattern they have")
    return lambda value: _any(test(value) for test in tests)


@violation.register
def _(rule: rules.Pattern, actual: SparkType) -> Test:
    return _unlike(rule.pattern, actual)


@violation.register
def _(rule: rules.Format, actual: SparkType) -> Test:
    if rule.format not in FORMATS:
        raise NotEvaluableError(f"the Spark engine knows no format {rule.format!r}; it knows {', '.join(FORMATS)}")
    _want(actual, StringType)
    pattern = format_in_java(rule.format)
    return lambda value: ~value.rlike(pattern)


@violation.register
def _(rule: rules.Minimum, actual: SparkType) -> Test:
    return _bound(rule.limit, actual, lambda value, limit: value < limit, ROUND_CEILING)


@violation.register
def _(rule: rules.Maximum, actual: SparkType) -> Test:
    return _bound(rule.limit, actual, lambda value, limit: value > limit, ROUND_FLOOR)


@violation.register
def _(rule: rules.ExclusiveMinimum, actual: SparkType) -> Test:
    return _bound(rule.limit, actual, lambda value, limit: value <= limit, ROUND_FLOOR)


@violation.register
def _(rule: rules.ExclusiveMaximum, actual: SparkType) -> Test:
    return _bound(rule.limit, actual, lambda value, limit: value >= limit, ROUND_CEILING)


@violation.register
def _(rule: rules.MultipleOf, actual: SparkType) -> Test:
    _want(actual, NumericType)
    if isinstance(actual, FloatType | DoubleType):
        # In decimal, 0.3 is a multiple of 0.1; what is too large for it is compared as it is.
        exact = DecimalType(38, 18)
        divisor = F.lit(Decimal(str(rule.divisor)))
        return lambda value: F.coalesce(
            try_cast(value, exact) % divisor != 0, (value % F.lit(float(rule.divisor))) != 0
        )
    return lambda value: value % _literal(rule.divisor, actual) != 0


@violation.register
def _(rule: rules.MinLength, actual: SparkType) -> Test:
    _want(actual, StringType, BinaryType)
    return lambda value: F.length(value) < rule.length


@violation.register
def _(rule: rules.MaxLength, actual: SparkType) -> Test:
    _want(actual, StringType, BinaryType)
    return lambda value: F.length(value) > rule.length


@violation.register
def _(rule: rules.MinItems, actual: SparkType) -> Test:
    _want(actual, ArrayType)
    return lambda value: value.isNotNull() & (F.size(value) < rule.count)


@violation.register
def _(rule: rules.MaxItems, actual: SparkType) -> Test:
    _want(actual, ArrayType)
    return lambda value: value.isNotNull() & (F.size(value) > rule.count)


@violation.register
def _(rule: rules.UniqueItems, actual: SparkType) -> Test:
    _want(actual, ArrayType)
    if isinstance(actual, ArrayType) and isinstance(actual.elementType, MapType):
        raise NotEvaluableError("Spark cannot compare maps with each other")
    return lambda value: value.isNotNull() & (F.size(F.array_distinct(_items(value, actual))) < F.size(value))


def _items(value: Column, actual: SparkType) -> Column:
    if isinstance(actual, ArrayType) and isinstance(actual.elementType, FloatType | DoubleType):
        # PySpark 3.5 takes 0.0 and -0.0 for two items; inside objects and arrays it does not.
        return F.transform(value, lambda item: one_zero(item, actual.elementType))
    return value


# --- where in a row ---------------------------------------------------------------------------------------------------


def violating(row: Column, steps: Path, test: Test) -> Column:
    """Whether a column, or anything at `steps` inside it, fails the test; never null.

    Inside a null object, array or map there is nothing to judge.
    """
    value, rest, holder = _descend(row, steps)
    if not rest:
        failed = F.coalesce(test(value), F.lit(False))
        return failed if holder is None else holder.isNotNull() & failed
    return F.coalesce(F.exists(_inside(value, rest[0]), lambda item: violating(item, rest[1:], test)), F.lit(False))


def violating_values(row: Column, steps: Path, test: Test, shown: Test) -> Column:
    """An array of what fails the test at `steps` inside a column, each as `shown` makes it; empty where all is well."""
    value, rest, holder = _descend(row, steps)
    nothing = F.array().cast("array<string>")
    if not rest:
        failed = F.coalesce(test(value), F.lit(False))
        failed = failed if holder is None else holder.isNotNull() & failed
        return F.when(failed, F.array(shown(value))).otherwise(nothing)
    found = F.flatten(F.transform(_inside(value, rest[0]), lambda item: violating_values(item, rest[1:], test, shown)))
    return F.coalesce(found, nothing)


def _descend(value: Column, steps: Path) -> tuple[Column, Path, Column | None]:
    """Follow the leading field names: the value there, the steps left, and the object that holds it."""
    holder = None
    for at, step in enumerate(steps):
        if isinstance(step, Hop):
            return value, steps[at:], holder
        holder, value = value, value.getField(step)
    return value, (), holder


def _inside(value: Column, hop: str | Hop) -> Column:
    match hop:
        case Hop.KEY:
            return F.map_keys(value)
        case Hop.VALUE:
            return F.map_values(value)
        case _:
            return value


# --- literals of the column's own type --------------------------------------------------------------------------------


def _bound(limit: rules.Limit, actual: SparkType, beyond: Callable[[Column, Column], Column], rounding: str) -> Test:
    if isinstance(actual, StringType | BinaryType | BooleanType | ArrayType | MapType):
        raise NotEvaluableError(f"a value of type {type_text(actual)} has no bounds")
    if limit != limit:
        raise NotEvaluableError("the limit is not a number (NaN), and no value is above or below it")
    literal = _literal(limit, actual)
    if isinstance(actual, FloatType | DoubleType):
        return lambda value: beyond(value, literal) | F.isnan(value)
    if isinstance(actual, IntegralType | DecimalType):
        # Between two neighbours of the type, the limit says of every value what one of them says.
        exact = _rounded(Decimal(str(limit)), actual, rounding)
        if _out_of_range(exact, actual):
            # Spark takes such a comparison for true or false, even where the value is null, or fails on it. What is
            # true of one value is true of all.
            outcome = beyond(F.lit(0), F.lit(1 if exact > 0 else -1))
            return lambda value: value.isNotNull() & outcome
        literal = _number(exact, actual)
    return lambda value: beyond(value, literal)


def _rounded(number: Decimal, actual: IntegralType | DecimalType, rounding: str) -> Decimal:
    """The number with as many decimal places as the type has: of more, PySpark 3.5 makes null, or an error."""
    if not number.is_finite() or _out_of_range(number, actual):
        return number
    places = actual.scale if isinstance(actual, DecimalType) else 0
    return number.quantize(Decimal(1).scaleb(-places), rounding, Context(prec=_PLACES))


# More than any number in the range of a type has.
_PLACES: Final = 80


def _out_of_range(limit: Decimal, actual: IntegralType | DecimalType) -> bool:
    if isinstance(actual, DecimalType):
        return limit.copy_abs() >= Decimal(1).scaleb(actual.precision - actual.scale)
    return not -(2**63) <= limit < 2**63


def _none_of(values: tuple[Scalar, ...], actual: SparkType) -> Test:
    literals = _literals([value for value in values if value is not None], actual)
    if not literals:
        return lambda value: value.isNotNull()
    return lambda value: ~value.isin(*literals)


def _unlike(pattern: str, actual: SparkType) -> Test:
    _want(actual, StringType)
    try:
        java = to_java(pattern)
    except PatternError as error:
        raise NotEvaluableError(f"its pattern {pattern!r} {error.reason}") from error
    if _BACKREFERENCE.search(pattern) and is_exponential(pattern):
        raise NotEvaluableError(
            f"its pattern {pattern!r} has a backreference beside a repetition that can read one text in several ways:"
            " Java could be busy with a single value for ever; write it without the backreference"
        )
    return lambda value: ~value.rlike(java)


# Without one, Java remembers where a repetition has failed before.
_BACKREFERENCE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\(?:[1-9]|k<)")


def _literals(values: Sequence[Scalar], actual: SparkType) -> list[Column]:
    """Those of the values that a column of the type can have."""
    literals = [_literal(value, actual) for value in values]
    if not isinstance(actual, IntegralType | DecimalType):
        return literals
    return [literal for value, literal in zip(values, literals, strict=True) if _occurs(Decimal(str(value)), actual)]


def _occurs(number: Decimal, actual: IntegralType | DecimalType) -> bool:
    return number.is_finite() and not _out_of_range(number, actual) and number == _rounded(number, actual, ROUND_FLOOR)


def _literal(value: Scalar, actual: SparkType) -> Column:
    """`value` as the column's type holds it, independent of the session's time zone and ANSI mode."""
    try:
        return _typed_literal(value, actual)
    except (ValueError, ArithmeticError, TypeError) as error:
        raise NotEvaluableError(f"{value!r} is not a {type_text(actual)}") from error


def _typed_literal(value: Scalar, actual: SparkType) -> Column:
    if isinstance(actual, StringType):
        return F.lit(value if isinstance(value, str) else str(value))
    if isinstance(actual, BooleanType):
        if isinstance(value, bool):
            return F.lit(value)
        raise ValueError(value)
    if isinstance(actual, NumericType) and not isinstance(value, bool):
        return _number(Decimal(str(value)), actual)
    if isinstance(actual, DateType):
        # As text: on its way to Java a date of Python's loses the zeros of its year.
        return F.lit(date.fromisoformat(str(value)[:10]).isoformat()).cast("date")
    if isinstance(actual, TimestampType | TimestampNTZType):
        return _moment(datetime.fromisoformat(str(value)), zoned=isinstance(actual, TimestampType))
    if actual.typeName().startswith("time"):
        return F.lit(str(value)).cast(actual)
    raise ValueError(value)


def _number(value: Decimal, actual: SparkType) -> Column:
    if isinstance(actual, FloatType):
        # The limit 0.1 means the float nearest to it, or every 0.1 in the column would be above.
        return F.lit(float(value)).cast("float")
    if isinstance(actual, DoubleType) or not value.is_finite():
        return F.lit(float(value))
    digits, exponent = len(value.as_tuple().digits), int(value.as_tuple().exponent)
    if max(digits, digits + exponent, -exponent) > 38:
        return F.lit(float(value))
    if isinstance(actual, IntegralType) and value == value.to_integral_value() and -(2**63) <= value < 2**63:
        return F.lit(int(value))
    return F.lit(value.quantize(Decimal(1)) if exponent > 0 else value)


def _moment(value: datetime, *, zoned: bool) -> Column:
    """A time without a zone is read as UTC, whichever kind the column holds."""
    if not zoned:
        wall = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return F.lit(wall.isoformat(sep=" ")).cast("timestamp_ntz")
    instant = value if value.tzinfo else value.replace(tzinfo=UTC)
    micros = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // _MICROSECOND
    return F.timestamp_micros(F.lit(micros))


_MICROSECOND: Final = timedelta(microseconds=1)


def _want(actual: SparkType, *types: type[SparkType]) -> None:
    if not isinstance(actual, types):
        wanted = " or ".join(sorted(type_.__name__.removesuffix("Type").lower() for type_ in types))
        raise NotEvaluableError(f"it is for {wanted} values, and the column is {type_text(actual)}")


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions)
