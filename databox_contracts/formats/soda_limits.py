"""What a check's number is held against, in both generations of Soda contracts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from databox_contracts.formats.reading import Section
from databox_contracts.rules import Number, Operator, Severity, Threshold, Unit

# The first generation wrote `..._or_equal_to`, and before that said what fails.
_OPERATORS: Final[dict[str, Operator]] = {
    "must_be": Operator.MUST_BE,
    "must_not_be": Operator.MUST_NOT_BE,
    **dict.fromkeys(("must_be_greater_than", "fail_when_less_than_or_equal"), Operator.GREATER_THAN),
    **dict.fromkeys(
        ("must_be_greater_than_or_equal", "must_be_greater_than_or_equal_to", "fail_when_less_than"),
        Operator.GREATER_OR_EQUAL,
    ),
    **dict.fromkeys(("must_be_less_than", "fail_when_greater_than_or_equal"), Operator.LESS_THAN),
    **dict.fromkeys(
        ("must_be_less_than_or_equal", "must_be_less_than_or_equal_to", "fail_when_greater_than"),
        Operator.LESS_OR_EQUAL,
    ),
    **dict.fromkeys(("must_be_between", "fail_when_not_between"), Operator.BETWEEN),
    **dict.fromkeys(("must_be_not_between", "must_not_be_between", "fail_when_between"), Operator.NOT_BETWEEN),
}

_BOUNDS: Final[dict[str, Operator]] = {
    "greater_than": Operator.GREATER_THAN,
    "greater_than_or_equal": Operator.GREATER_OR_EQUAL,
    "less_than": Operator.LESS_THAN,
    "less_than_or_equal": Operator.LESS_OR_EQUAL,
}

_LOWER: Final = (Operator.GREATER_THAN, Operator.GREATER_OR_EQUAL)
_UPPER: Final = (Operator.LESS_THAN, Operator.LESS_OR_EQUAL)
_STRICT: Final = (Operator.GREATER_THAN, Operator.LESS_THAN)
_RANGES: Final = (Operator.BETWEEN, Operator.NOT_BETWEEN)

_UNITS: Final = {"count": Unit.ROWS, "percent": Unit.PERCENT}
_LEVELS: Final = {"fail": Severity.ERROR, "warn": Severity.WARNING}

THRESHOLD_KEYS: Final = tuple(_OPERATORS)

_UNSAYABLE: Final = "a range that is open at one end and closed at the other, outside of which the number must be"


@dataclass(frozen=True)
class Held:
    """One threshold, and what happens when it does not hold."""

    threshold: Threshold
    severity: Severity = Severity.ERROR


@dataclass(frozen=True)
class Limits:
    """All thresholds of a check, each of which must hold; `unsayable` is why there are none that say the same."""

    held: tuple[Held, ...] = ()
    unsayable: str | None = None


def read_limits(check: Section, default: Threshold | None, unit: Unit | None = None) -> Limits:
    """The thresholds of a check, under `threshold` or beside its other keys, and its `additional` one.

    `unit` is what the check's name says. A check without any has the `default`; without that either it is an error.
    """
    nested = check.section("threshold")
    holder = nested if nested is not None else check
    own = _read(holder, unit, default)
    if nested is None:
        return own
    beside = [key for key in check.data if key in _OPERATORS]
    if beside:
        check.error(f"{beside[0]!r} stands beside 'threshold'", "write it under `threshold`", beside[0])
        check.carried(*beside)
    additional = nested.section("additional")
    more = _read(additional, unit or _unit(nested), None) if additional is not None else Limits()
    if additional is not None:
        additional.close()
    nested.carried("unit")
    nested.close()
    return Limits((*own.held, *more.held), own.unsayable or more.unsayable)


def _read(holder: Section, unit: Unit | None, default: Threshold | None) -> Limits:
    written = _unit(holder)
    if written is not None and unit is not None and written is not unit:
        holder.error(f"the check's name says {unit}, and its metric {written}", "keep one of them", "metric")
    in_unit = unit or written or Unit.ROWS
    severity = _severity(holder)
    keys = [key for key in holder.data if key in _OPERATORS]
    parts: list[tuple[Operator, Number, Number | None]] = []
    sound = True
    unsayable: str | None = None
    for key in keys:
        operator = _OPERATORS[key]
        if operator in _RANGES and isinstance(holder.data[key], dict):
            range_, unsayable = _nested_range(holder, key, operator)
            parts.extend(range_)
            sound = sound and (bool(range_) or unsayable is not None)
        elif (part := _part(holder, key, operator)) is not None:
            parts.append(part)
        else:
            sound = False
    if not keys:
        if default is None:
            holder.error("the check has no threshold", "add one, such as `must_be_greater_than: 0`")
            return Limits()
        if in_unit is not default.unit:
            default = Threshold(default.operator, default.value, default.high, in_unit)
        return Limits((Held(default, severity),))
    if unsayable is not None or not sound:
        return Limits(unsayable=unsayable)
    combined, unsayable = _combined(parts)
    if unsayable is None and not combined:
        holder.error(f"{' and '.join(keys)} do not go together", "keep one of them", keys[-1])
    return Limits(
        tuple(Held(Threshold(operator, low, high, in_unit), severity) for operator, low, high in combined), unsayable
    )


def _part(holder: Section, key: str, operator: Operator) -> tuple[Operator, Number, Number | None] | None:
    if holder.raw(key) is None:
        holder.error(f"{key!r} has no value", "give it a number", key)
        return None
    if operator not in _RANGES:
        value = holder.number(key)
        return None if value is None else (operator, value, None)
    bounds = holder.listed(key)
    if len(bounds) != 2:
        if isinstance(holder.data[key], list):
            holder.error(f"{key!r} needs two numbers", f"write `{key}: [1, 5]`", key)
        return None
    low, high = holder.number_at(key, 0), holder.number_at(key, 1)
    if low is None or high is None:
        return None
    if low > high:
        holder.error(f"{key!r} has its bounds reversed", f"write [{high}, {low}]", key)
        return None
    return operator, low, high


_Parts = list[tuple[Operator, Number, "Number | None"]]


def _nested_range(holder: Section, key: str, operator: Operator) -> tuple[_Parts, str | None]:
    """`must_be_between: {greater_than: 1, less_than_or_equal: 5}`, and the same with `not`."""
    section = holder.section(key)
    assert section is not None
    parts: _Parts = []
    for name, bound in _BOUNDS.items():
        value = section.number(name)
        if value is not None:
            parts.append((bound, value, None))
    section.close()
    if not parts:
        section.error(f"{key!r} has no bounds", "write `{greater_than_or_equal: 1, less_than_or_equal: 5}`")
        return [], None
    if operator is Operator.BETWEEN:
        return parts, None
    lower = [part for part in parts if part[0] in _LOWER]
    upper = [part for part in parts if part[0] in _UPPER]
    if len(lower) != 1 or len(upper) != 1:
        section.error(f"{key!r} needs a lower and an upper bound", "write both")
        return [], None
    (low, high), strict = (lower[0], upper[0]), lower[0][0] in _STRICT and upper[0][0] in _STRICT
    closed = lower[0][0] not in _STRICT and upper[0][0] not in _STRICT
    if low[1] <= high[1] and closed:
        return [(Operator.NOT_BETWEEN, low[1], high[1])], None
    if low[1] > high[1] and strict:
        return [(Operator.NOT_BETWEEN, high[1], low[1])], None
    return [], _UNSAYABLE


def _combined(parts: _Parts) -> tuple[_Parts, str | None]:
    """Several comparisons as they are meant together: a range to be in, or one to be out of."""
    if len(parts) < 2:
        return parts, None
    lower = [part for part in parts if part[0] in _LOWER]
    upper = [part for part in parts if part[0] in _UPPER]
    if len(parts) != 2 or len(lower) != 1 or len(upper) != 1:
        return [], None
    (least, low, _), (most, high, _) = lower[0], upper[0]
    strict = least in _STRICT and most in _STRICT
    closed = least not in _STRICT and most not in _STRICT
    if low < high or (low == high and closed):
        return ([(Operator.BETWEEN, low, high)] if closed else parts), None
    return ([(Operator.NOT_BETWEEN, high, low)], None) if strict else ([], _UNSAYABLE)


def _unit(holder: Section) -> Unit | None:
    written = holder.data.get("metric")
    # The first generation's `metric` beside a check's other keys names a metric of the user's.
    if not isinstance(written, str) or (written not in _UNITS and holder.path[-1:] != ("threshold",)):
        return None
    holder.raw("metric")
    if written not in _UNITS:
        holder.error(f"unknown metric {written!r}", f"use {' or '.join(_UNITS)}", "metric")
        return None
    return _UNITS[written]


def _severity(holder: Section) -> Severity:
    written = holder.text("level")
    if written is None or written in _LEVELS:
        return _LEVELS[written or "fail"]
    holder.error(f"unknown level {written!r}", f"use {' or '.join(_LEVELS)}", "level")
    return Severity.ERROR


def allows_none(limits: Limits) -> Held | None:
    """The only threshold, where it allows nothing but zero: then each violating row is one too many."""
    if len(limits.held) == 1 and limits.held[0].threshold.allows_none:
        return limits.held[0]
    return None
