"""The thresholds of SodaCL: `> 10000`, `< 5%`, `between 1 and 10`, `not between 0 and 5`."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import Final

from databox_contracts.errors import DataboxError
from databox_contracts.rules import Number, Operator, Threshold, Unit

_HINT: Final = "write one such as `= 0`, `< 5%` or `between 1 and 10`"

_OPERATORS: Final = {
    "=": Operator.MUST_BE,
    "==": Operator.MUST_BE,
    "!=": Operator.MUST_NOT_BE,
    "<>": Operator.MUST_NOT_BE,
    ">": Operator.GREATER_THAN,
    ">=": Operator.GREATER_OR_EQUAL,
    "<": Operator.LESS_THAN,
    "<=": Operator.LESS_OR_EQUAL,
}

_OPPOSITES: Final = {
    Operator.MUST_BE: Operator.MUST_NOT_BE,
    Operator.MUST_NOT_BE: Operator.MUST_BE,
    Operator.GREATER_THAN: Operator.LESS_OR_EQUAL,
    Operator.LESS_OR_EQUAL: Operator.GREATER_THAN,
    Operator.GREATER_OR_EQUAL: Operator.LESS_THAN,
    Operator.LESS_THAN: Operator.GREATER_OR_EQUAL,
    Operator.BETWEEN: Operator.NOT_BETWEEN,
    Operator.NOT_BETWEEN: Operator.BETWEEN,
}

_NUMBER: Final = r"([-+]?(?:\d{1,18}(?:\.\d{1,18})?|\.\d{1,18})(?:[eE][-+]?\d{1,2})?)\s*(%?)"
_COMPARISON: Final = re.compile(rf"(==?|!=|<>|>=?|<=?)\s*{_NUMBER}")
_RANGE: Final = re.compile(rf"(not\s+)?between\s+([(\[]?)\s*{_NUMBER}\s+and\s+{_NUMBER}\s*([)\]]?)", re.IGNORECASE)


class ThresholdError(DataboxError):
    """A text that is no threshold."""

    def __init__(self, written: str, reason: str) -> None:
        super().__init__(f"the threshold {written[:60]!r}: {reason}", hint=_HINT)
        self.written = written
        self.reason = reason


def parse_thresholds(written: str, unit: Unit = Unit.ROWS) -> tuple[Threshold, ...]:
    """What must hold, all of it; two where a range leaves one of its bounds out, else one.

    A `%` makes it a percentage whatever `unit` is. Raises `ThresholdError`.
    """
    text = written.strip()
    if match := _COMPARISON.fullmatch(text):
        operator, value, percent = match.groups()
        return (Threshold(_OPERATORS[operator], _number(value), unit=Unit.PERCENT if percent else unit),)
    if match := _RANGE.fullmatch(text):
        negation, left, low, low_percent, high, high_percent, right = match.groups()
        in_unit = Unit.PERCENT if low_percent or high_percent else unit
        return _range(written, left + right, (_number(low), _number(high)), in_unit, outside=negation is not None)
    raise ThresholdError(written, "it is none")


def negated(threshold: Threshold) -> Threshold:
    """The threshold that holds exactly where this one does not."""
    return replace(threshold, operator=_OPPOSITES[threshold.operator])


def _range(
    written: str, brackets: str, bounds: tuple[Number, Number], unit: Unit, *, outside: bool
) -> tuple[Threshold, ...]:
    low, high = bounds
    if len(brackets) == 1:
        raise ThresholdError(written, "one of its brackets is missing")
    if low > high:
        raise ThresholdError(written, "its bounds are reversed")
    if brackets in ("", "[]"):
        return (Threshold(Operator.NOT_BETWEEN if outside else Operator.BETWEEN, low, high, unit),)
    if outside:
        raise ThresholdError(written, "a range to stay out of has its bounds in it")
    from_low = Operator.GREATER_THAN if brackets[0] == "(" else Operator.GREATER_OR_EQUAL
    to_high = Operator.LESS_THAN if brackets[1] == ")" else Operator.LESS_OR_EQUAL
    return Threshold(from_low, low, unit=unit), Threshold(to_high, high, unit=unit)


def _number(written: str) -> Number:
    exact = Decimal(written)
    if exact == exact.to_integral_value():
        return int(exact)
    near = float(exact)
    return near if Decimal(repr(near)) == exact else exact
