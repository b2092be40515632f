"""Statistics of a column, in the one pass over the rows.

Nulls do not count. The numbers of integers and decimals are exact; those of floating-point columns are compared to 12
significant digits, since their sum depends on the order of the rows beyond that. `stddev` is that of a sample (n - 1),
`quantile` is exact (`percentile`, interpolated), which keeps each distinct value of the column in memory once. A NaN
fails every threshold, and so does a column without a value: there is no number that could keep the promise.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Final

from pyspark.sql import Column, functions as F
from pyspark.sql.types import DataType as SparkType, DecimalType, DoubleType, FloatType, IntegralType, NumericType

from databox_contracts.plan import Check
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import Statistic
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.schema import type_text

_DIGITS: Final = Context(prec=12)
_EXACT: Final = Context(prec=80)
_WIDE: Final = "decimal(38,0)"


def statistic_columns(rule: Statistic, value: Column, actual: SparkType) -> tuple[Column, ...]:
    """What has to be aggregated: the statistic (of `avg` the sum), how many values there are, how many NaN, and what
    is to be added to the number.

    Raises `NotEvaluableError` for a statistic that is unknown or has no meaning for that type.
    """
    if not isinstance(actual, NumericType):
        raise NotEvaluableError(f"it is for numeric values, and the column is {type_text(actual)}")
    if rule.statistic not in _STATISTICS:
        known = ", ".join(_STATISTICS)
        raise NotEvaluableError(f"the Spark engine knows no statistic {rule.statistic!r}; it knows {known}")
    if rule.statistic == "quantile" and (rule.quantile is None or not 0 <= rule.quantile <= 1):
        raise NotEvaluableError(f"{rule.quantile} is no quantile; name one between 0 and 1")
    none = F.max(F.lit(0))
    nans = F.count_if(F.isnan(value)) if isinstance(actual, FloatType | DoubleType) else none
    added = none
    if rule.statistic in _SUMS and isinstance(actual, DecimalType) and actual.precision > _ROOMY:
        value, added = _parted(value, actual)
    return _STATISTICS[rule.statistic](value, actual, rule), F.count(value), nans, added


def _parted(value: Column, actual: DecimalType) -> tuple[Column, Column]:
    """What of a decimal is below its first 18 digits, and the sum of those as a text with an exponent.

    Sums of whole values would be null as soon as one on the way to them has more than 38 digits, and which ones there
    are on the way is a matter of the order of the rows.
    """
    exponent = actual.precision - actual.scale - _LONG
    unit = F.lit(f"{Decimal(1).scaleb(exponent):f}").cast(
        f"decimal({abs(exponent) + (exponent >= 0)},{max(-exponent, 0)})"
    )
    wholes = F.try_sum(F.call_function("div", value, unit).cast(_WIDE))
    return value % unit, F.concat(wholes.cast("string"), F.lit(f"e{exponent}"))


# Digits of every number that a bigint holds.
_LONG: Final = 18
# Spark's sum of a decimal has ten digits more, where there are so many.
_ROOMY: Final = 28
_SUMS: Final = ("avg", "sum")


def _sum(value: Column, actual: SparkType, rule: Statistic) -> Column:
    if isinstance(actual, IntegralType):
        return F.try_sum(value.cast(_WIDE))
    return F.try_sum(value) if isinstance(actual, DecimalType) else F.sum(value.cast("double"))


_STATISTICS: Final[dict[str, Callable[[Column, SparkType, Statistic], Column]]] = {
    "avg": _sum,
    "sum": _sum,
    "min": lambda value, actual, rule: F.min(value),
    "max": lambda value, actual, rule: F.max(value),
    "stddev": lambda value, actual, rule: F.stddev_samp(value.cast("double")),
    "quantile": lambda value, actual, rule: F.percentile(value, F.lit(float(rule.quantile or 0))),
}


def statistic(check: Check, found: Any, values: int, nans: int, added: Any, *, masked: bool) -> CheckResult:
    """The result of a statistic that was found over so many values; `masked` hides the number itself."""
    rule = check.rule
    assert isinstance(rule, Statistic)
    name = rule.statistic if rule.quantile is None else f"{rule.statistic} at {rule.quantile:g}"
    promised = str(rule.threshold)
    reason = _no_number(name, found, values, nans)
    if reason is not None:
        return check.result(Status.FAILED, threshold=promised, message=f"{reason}; promised is {promised}")
    number = _number(rule, found, values, added)
    holds = rule.threshold.holds(number)
    shown = "not as promised" if masked else f"{_shown(number)}; promised is {promised}"
    message = "" if holds else f"the {name} of {check.field} is {shown}"
    observed = None if masked else _shown(number)
    return check.result(
        Status.PASSED if holds else Status.FAILED, observed=observed, threshold=promised, message=message
    )


def _no_number(name: str, found: Any, values: int, nans: int) -> str | None:
    if nans:
        return f"{nans} values are NaN, and so is the {name}"
    if not values:
        return f"there is no value to take the {name} of"
    if found != found:
        return f"the {name} is NaN"
    if found is None:
        few = name == "stddev" and values < 2
        return f"one value has no {name}" if few else f"the {name} is too large a number"
    return None


def _number(rule: Statistic, found: Any, values: int, added: Any) -> Decimal:
    exact = Decimal(repr(found)) if isinstance(found, float) else _EXACT.add(Decimal(found), Decimal(added))
    if rule.statistic == "avg" and exact.is_finite():
        exact = _EXACT.divide(exact, Decimal(values))
        return exact if not isinstance(found, float) else _DIGITS.plus(exact)
    return _DIGITS.plus(exact) if isinstance(found, float) else exact


def _shown(number: Decimal) -> int | float:
    return int(number) if number.is_finite() and number == number.to_integral_value() else float(number)
