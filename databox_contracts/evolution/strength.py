"""Which of two rules of a kind asks for more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields as facts_of
from decimal import Decimal
from enum import Enum
from typing import Any, Final, TypeAlias

from databox_contracts.rules import Operator, Rule, Severity, Threshold


class Strength(Enum):
    """How a new rule compares with the old one of its kind."""

    SAME = "same"
    TIGHTER = "tighter"
    LOOSER = "looser"
    OTHER = "other"


def compare_rules(old: Rule, new: Rule) -> Strength:
    """Whether the new rule asks for more, for less, or for something that cannot be compared.

    A rule whose violation no longer stops the table asks for less. What a rule has beside its promise (a name, a
    description) does not count.
    """
    facts = _compare_facts(own_facts(old), own_facts(new), old.kind)
    before, after = _SEVERITIES.index(old.severity), _SEVERITIES.index(new.severity)
    if before == after:
        return facts
    by_severity = _ordered(after > before)
    return by_severity if facts in (Strength.SAME, by_severity) else Strength.OTHER


def own_facts(rule: Rule) -> dict[str, Any]:
    """What the rule itself promises, without what every rule has."""
    return {fact.name: getattr(rule, fact.name) for fact in facts_of(rule) if fact.name not in _BESIDE}


def subject_of(rule: Rule) -> tuple[Any, ...]:
    """What the rule is about, whatever number it asks for: rules of a kind and a subject are the same promise."""
    return tuple((name, value) for name, value in own_facts(rule).items() if name not in _AMOUNTS)


_BESIDE: Final = tuple(fact.name for fact in facts_of(Rule))
_AMOUNTS: Final = ("threshold", "seconds", "percent_of_periods")
_SEVERITIES: Final = (Severity.INFO, Severity.WARNING, Severity.ERROR)


def _ordered(tighter: bool) -> Strength:
    return Strength.TIGHTER if tighter else Strength.LOOSER


def _compare_facts(old: Mapping[str, Any], new: Mapping[str, Any], kind: str) -> Strength:
    found: list[Strength] = []
    for name, before in old.items():
        if before != new[name]:
            judge = _JUDGES.get((kind, name)) or _JUDGES.get(("", name))
            found.append(judge(before, new[name]) if judge is not None else Strength.OTHER)
    different = [strength for strength in found if strength is not Strength.SAME]
    if not different:
        return Strength.SAME
    return different[0] if different.count(different[0]) == len(different) else Strength.OTHER


# --- amounts ----------------------------------------------------------------------------------------------------------

Judge: TypeAlias = Callable[[Any, Any], Strength]


def _more_is_tighter(old: Any, new: Any) -> Strength:
    if old is None or new is None or isinstance(old, str) != isinstance(new, str):
        return Strength.OTHER
    if isinstance(old, str):
        return _ordered(new > old)
    before, after = Decimal(str(old)), Decimal(str(new))
    return Strength.SAME if before == after else _ordered(after > before)


def _less_is_tighter(old: Any, new: Any) -> Strength:
    return {Strength.TIGHTER: Strength.LOOSER, Strength.LOOSER: Strength.TIGHTER}.get(
        turned := _more_is_tighter(old, new), turned
    )


def _multiple(old: Any, new: Any) -> Strength:
    before, after = Decimal(str(old)), Decimal(str(new))
    if before == after:
        return Strength.SAME
    if before and after % before == 0:
        return Strength.TIGHTER
    return Strength.LOOSER if after and before % after == 0 else Strength.OTHER


def _threshold(old: Threshold, new: Threshold) -> Strength:
    if old.unit is not new.unit and not (old.allows_none and new.allows_none):
        return Strength.OTHER
    if old.allows_none and new.allows_none:
        return Strength.SAME
    before, after = _allowed(old), _allowed(new)
    inside, around = _within(after, before), _within(before, after)
    if inside and around:
        return Strength.SAME
    if inside or around:
        return _ordered(inside)
    return Strength.OTHER


_JUDGES: Final[dict[tuple[str, str], Judge]] = {
    ("minimum", "limit"): _more_is_tighter,
    ("exclusive_minimum", "limit"): _more_is_tighter,
    ("maximum", "limit"): _less_is_tighter,
    ("exclusive_maximum", "limit"): _less_is_tighter,
    ("multiple_of", "divisor"): _multiple,
    ("min_length", "length"): _more_is_tighter,
    ("max_length", "length"): _less_is_tighter,
    ("min_items", "count"): _more_is_tighter,
    ("max_items", "count"): _less_is_tighter,
    ("", "seconds"): _less_is_tighter,
    ("", "percent_of_periods"): _more_is_tighter,
    ("", "threshold"): _threshold,
}
"""How one fact of a rule is compared; a fact that is not here cannot be. ("", name) is for every kind."""


# --- thresholds -------------------------------------------------------------------------------------------------------

_Interval: TypeAlias = tuple[Decimal, bool, Decimal, bool]

_LOWEST: Final = Decimal("-Infinity")
_HIGHEST: Final = Decimal("Infinity")


def _allowed(threshold: Threshold) -> list[_Interval]:
    """The numbers that hold, as intervals: from, whether that belongs to it, to, whether that does."""
    value = Decimal(str(threshold.value))
    high = Decimal(str(threshold.high)) if threshold.high is not None else value
    match threshold.operator:
        case Operator.MUST_BE:
            return [(value, True, value, True)]
        case Operator.MUST_NOT_BE:
            return [(_LOWEST, False, value, False), (value, False, _HIGHEST, False)]
        case Operator.GREATER_THAN:
            return [(value, False, _HIGHEST, False)]
        case Operator.GREATER_OR_EQUAL:
            return [(value, True, _HIGHEST, False)]
        case Operator.LESS_THAN:
            return [(_LOWEST, False, value, False)]
        case Operator.LESS_OR_EQUAL:
            return [(_LOWEST, False, value, True)]
        case Operator.BETWEEN:
            return [(value, True, high, True)]
        case Operator.NOT_BETWEEN:
            return [(_LOWEST, False, value, False), (high, False, _HIGHEST, False)]


def _within(inner: list[_Interval], outer: list[_Interval]) -> bool:
    """Whether every number of the first is one of the second, whose intervals do not touch."""
    return all(any(_is_inside(one, other) for other in outer) for one in inner)


def _is_inside(one: _Interval, other: _Interval) -> bool:
    low, has_low, high, has_high = one
    outer_low, outer_has_low, outer_high, outer_has_high = other
    from_below = low > outer_low or (low == outer_low and (outer_has_low or not has_low))
    from_above = high < outer_high or (high == outer_high and (outer_has_high or not has_high))
    return from_below and from_above
