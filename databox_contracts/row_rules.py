"""The row rules of a contract on single Python values."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from databox_contracts import rules
from databox_contracts.patterns import to_python
from databox_contracts.rules import Rule
from databox_contracts.text_formats import FORMATS, has_format


def is_judged(rule: Rule) -> bool:
    """Whether one value answers the rule, in Python."""
    return type(rule) in _TESTS and (not isinstance(rule, rules.Format) or rule.format in FORMATS)


def keeps(rule: Rule, value: Any) -> bool:
    """Whether the value, which is not null, keeps a rule that `is_judged`; one the rule makes no sense for does not."""
    try:
        return _TESTS[type(rule)](rule, value)
    except (TypeError, ValueError, ArithmeticError, AttributeError):
        return False


def _enum(rule: Any, value: Any) -> bool:
    # 1 == True in Python, and nowhere else.
    return any(allowed == value and isinstance(allowed, bool) is isinstance(value, bool) for allowed in rule.values)


def _format(rule: Any, value: Any) -> bool:
    return has_format(rule.format, str(value))


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(rule: Any, value: Any) -> bool:
        if isinstance(value, float) and math.isnan(value):
            return False
        return compare(*_comparable(value, rule.limit))

    return test


def _comparable(value: Any, limit: Any) -> tuple[Any, Any]:
    """Both as one kind of thing: a limit of a date or a timestamp is its ISO 8601 text, zone-less ones are UTC."""
    match value:
        case datetime():
            return _in_utc(value), _in_utc(datetime.fromisoformat(str(limit)))
        case date():
            return value, date.fromisoformat(str(limit)[:10])
        case time():
            return value.replace(tzinfo=None), time.fromisoformat(str(limit)).replace(tzinfo=None)
        case int() | float() | Decimal():
            return Decimal(str(value)), Decimal(str(limit))
        case _:
            return str(value), str(limit)


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _multiple(rule: Any, value: Any) -> bool:
    exact = Decimal(str(value))
    return exact.is_finite() and exact % Decimal(str(rule.divisor)) == 0


def _unique(rule: Any, value: Any) -> bool:
    # Items may be dicts, which have no hash.
    seen: list[Any] = []
    for item in value:
        if item in seen:
            return False
        seen.append(item)
    return True


def _text(value: Any) -> str:
    return str(value) if isinstance(value, UUID) else value


_TESTS: Final[dict[type[Rule], Callable[[Any, Any], bool]]] = {
    rules.Required: lambda rule, value: value is not None,
    rules.Enum: _enum,
    rules.Pattern: lambda rule, value: to_python(rule.pattern).search(_text(value)) is not None,
    rules.Format: _format,
    rules.Minimum: _ordered(lambda value, limit: value >= limit),
    rules.Maximum: _ordered(lambda value, limit: value <= limit),
    rules.ExclusiveMinimum: _ordered(lambda value, limit: value > limit),
    rules.ExclusiveMaximum: _ordered(lambda value, limit: value < limit),
    rules.MultipleOf: _multiple,
    rules.MinLength: lambda rule, value: len(_text(value)) >= rule.length,
    rules.MaxLength: lambda rule, value: len(_text(value)) <= rule.length,
    rules.MinItems: lambda rule, value: len(value) >= rule.count,
    rules.MaxItems: lambda rule, value: len(value) <= rule.count,
    rules.UniqueItems: _unique,
}
