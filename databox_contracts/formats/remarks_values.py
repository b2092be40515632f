"""Remarks about values and bounds: what is no value of its field, and what its other promises rule out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from itertools import product
from typing import Any, Final, NamedTuple

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import Finding, Level, Position
from databox_contracts.formats.backtracking import is_exponential, unbounded_repetitions
from databox_contracts.formats.odcs_values import parse_moment
from databox_contracts.formats.outline import Outline
from databox_contracts.model import Field
from databox_contracts.patterns import PatternError
from databox_contracts.row_rules import is_judged, keeps
from databox_contracts.rules import Rule

_NUMERIC: Final = (Family.INTEGER, Family.NUMBER, Family.DECIMAL)
_NUMBERS: Final = (int, float, Decimal)
_TEMPORAL: Final = {Family.DATE: "date", Family.TIMESTAMP: "timestamp", Family.TIME: "time"}
_PLAIN: Final = (Family.STRING, Family.BOOLEAN, *_NUMERIC, *_TEMPORAL)

# A search of a short text takes the text's length to the power of the repetitions; more steps are not worth a remark.
_MOST_STEPS: Final = 100_000
_MOST_VALUES: Final = 1_000

_Value = str | bool | int | float | Decimal | date | datetime | time


class _UnfitError(ValueError):
    """A value that is none of its field's type."""


def impossible_values(outline: Outline) -> Iterator[Finding]:
    """Allowed values, defaults and examples that are of another type, or that another promise of the field rules out.

    An allowed value of the wrong type is an error, a default that breaks a promise a warning, an example a note.
    """
    pii_class = outline.contract.governance.pii_class
    for _, name, field in outline.fields:
        listed = [rule for rule in field.rules if isinstance(rule, _LISTS)]
        if not listed and not field.examples and field.default is None:
            continue
        if field.type is not None and field.type.family not in _PLAIN:
            continue
        hidden = field.conceals(pii_class)
        for rule in listed:
            values = rule.values if isinstance(rule, rules.Enum) else rule.valid_values or ()
            place = rule.position or field.position
            yield from _allowed(outline, name, field, rule, values, place)
        if field.default is not None:
            problem = _problem(field.default, field, field.rules)
            if problem is not None and not outline.said("the default", field=name):
                shown = "the default" if hidden else f"the default {_shown(field.default)}"
                yield outline.finding(
                    Level.WARNING, f"{shown} {problem}", "correct it, or the promise", field.position, name
                )
        wrong = [(one, problem) for one in field.examples if (problem := _problem(one, field, field.rules))]
        if wrong:
            example, problem = wrong[0]
            shown = "an example" if hidden else f"the example {_shown(example)}"
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            yield outline.finding(Level.NOTE, f"{shown}{more} {problem}", "correct it", field.position, name)


_LISTS: Final = (rules.Enum, rules.InvalidCount)


def _allowed(
    outline: Outline, name: str, field: Field, rule: Rule, values: Sequence[Any], place: Position | None
) -> Iterator[Finding]:
    others = [other for other in field.rules if other is not rule and not isinstance(other, rules.Required)]
    unfit: list[str] = []
    idle: list[tuple[Any, str]] = []
    for value in values[:_MOST_VALUES]:
        if value is None:
            continue
        try:
            fitting = _fitting(value, field.type)
        except _UnfitError:
            unfit.append(_shown(value))
            continue
        reason = _ruled_out(fitting, field.type, others)
        if reason is not None:
            idle.append((value, reason))
    more = f" (and {len(unfit) - 1} more)" if len(unfit) > 1 else ""
    if unfit:
        message = f"the allowed value {unfit[0]}{more} is no value of the type {field.type}"
        yield outline.finding(Level.ERROR, message, "correct the value or the field's type", place, name)
    more = f" (and {len(idle) - 1} more)" if len(idle) > 1 else ""
    if idle:
        value, reason = idle[0]
        message = f"the allowed value {_shown(value)}{more} never occurs: {reason}"
        yield outline.finding(Level.WARNING, message, "leave it out, or correct the other promise", place, name)


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _problem(value: Any, field: Field, held: Sequence[Rule]) -> str | None:
    """What is wrong with a default or an example; None where nothing is, or it is no single value."""
    if isinstance(value, list | dict):
        return None
    if value is None:
        return "is null, and the field is required" if field.required else None
    try:
        return _ruled_out(_fitting(value, field.type, lenient=True), field.type, held)
    except _UnfitError:
        return f"is no value of the type {field.type}"


def _ruled_out(value: _Value, type_: DataType | None, held: Sequence[Rule]) -> str | None:
    """Why the value breaks a promise of its field; None where it keeps them all."""
    for rule in held:
        if not is_judged(rule) or (isinstance(rule, rules.Enum) and not rule.values):
            continue
        if isinstance(rule, rules.Pattern) and not _is_quick(rule.pattern, value):
            continue
        try:
            kept = keeps(_comparable(rule, type_), value)
        except (PatternError, ValueError):
            continue
        if not kept:
            if isinstance(rule, rules.Enum):
                return "is none of the allowed values"
            return f"values that {rule.broken} break the field's promise"
    if type_ is not None and type_.length is not None and isinstance(value, str) and len(value) > type_.length:
        return f"values that are longer than {type_.length} characters are none of the type {type_}"
    least, most = _range(type_)
    if least is not None and isinstance(value, int | float | Decimal):
        exact = Decimal(str(value))
        if not exact.is_nan() and not least <= exact <= most:
            return f"values of the type {type_} do not go so far"
    return None


def _is_quick(pattern: str, value: _Value) -> bool:
    steps = max(len(str(value)), 2) ** min(unbounded_repetitions(pattern), 20)
    return steps <= _MOST_STEPS and is_exponential(pattern) is False


def _comparable(rule: Rule, type_: DataType | None) -> Rule:
    """An enumeration with its values as the field's, so that they compare with one."""
    if isinstance(rule, rules.Enum) and type_ is not None and type_.family is not Family.STRING:
        found: list[Any] = []
        for value in rule.values:
            try:
                found.append(_fitting(value, type_) if value is not None else None)
            except _UnfitError:
                continue
        return rules.Enum(values=tuple(found))
    return rule


def _fitting(value: Any, type_: DataType | None, *, lenient: bool = False) -> _Value:
    """The value as the type has it; `lenient` takes a number for the text that it was written as."""
    family = type_.family if type_ is not None else None
    if type(value) is int and (family is None or family in _NUMERIC):
        return value
    if family is None or family not in _PLAIN:
        return value if isinstance(value, str | bool | int | float | Decimal) else str(value)
    if family is Family.STRING:
        if isinstance(value, str):
            return value
        if lenient and isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        raise _UnfitError
    if family is Family.BOOLEAN:
        if isinstance(value, bool):
            return value
        raise _UnfitError
    if family in _NUMERIC:
        return _number(value, family)
    try:
        return parse_moment(str(value), _TEMPORAL[family])
    except ValueError:
        raise _UnfitError from None


def _number(value: Any, family: Family) -> int | float | Decimal:
    if isinstance(value, str):
        try:
            value = Decimal(value)
        except InvalidOperation:
            raise _UnfitError from None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _UnfitError
    if family is Family.INTEGER and not isinstance(value, int):
        exact = Decimal(str(value))
        if not exact.is_finite() or exact != exact.to_integral_value() or abs(exact.adjusted()) > 100:
            raise _UnfitError
        return int(exact)
    return value


def _range(type_: DataType | None) -> tuple[Any, Any]:
    if type_ is None:
        return None, None
    if type_.family is Family.INTEGER and type_.bits is not None:
        return -(2 ** (type_.bits - 1)), 2 ** (type_.bits - 1) - 1
    if type_.family is Family.DECIMAL and type_.precision is not None:
        most = Decimal(10) ** (type_.precision - (type_.scale or 0)) - Decimal(10) ** -(type_.scale or 0)
        return -most, most
    return None, None


# --- bounds -----------------------------------------------------------------------------------------------------------


class _End(NamedTuple):
    """One end of a range: its value, whether a value may be there, and the rule."""

    value: Any
    inclusive: bool
    rule: Rule


@dataclass(frozen=True)
class _Bound:
    """What a rule bounds, by which of its attributes, at which end, and whether the bound itself is a value."""

    what: str
    attribute: str
    is_lower: bool
    inclusive: bool = True


_BOUNDS: Final[dict[type[Rule], _Bound]] = {
    rules.Minimum: _Bound("value", "limit", is_lower=True),
    rules.Maximum: _Bound("value", "limit", is_lower=False),
    rules.ExclusiveMinimum: _Bound("value", "limit", is_lower=True, inclusive=False),
    rules.ExclusiveMaximum: _Bound("value", "limit", is_lower=False, inclusive=False),
    rules.MinLength: _Bound("length", "length", is_lower=True),
    rules.MaxLength: _Bound("length", "length", is_lower=False),
    rules.MinItems: _Bound("items", "count", is_lower=True),
    rules.MaxItems: _Bound("items", "count", is_lower=False),
}


def empty_ranges(outline: Outline) -> Iterator[Finding]:
    """An error for bounds that are none of their field's type and for those that leave no value.

    It is a warning where the bounds alone leave some, and the type has none of them.
    """
    for _, name, field in outline.fields:
        lower: dict[str, list[_End]] = {}
        upper: dict[str, list[_End]] = {}
        for rule in field.rules:
            bound = _BOUNDS.get(type(rule))
            if bound is None:
                continue
            limit = getattr(rule, bound.attribute)
            try:
                value = _fitting(limit, field.type if bound.what == "value" else None)
            except _UnfitError:
                message = f"{_words(rule)} is {_shown(limit)}, which is no value of the type {field.type}"
                yield outline.finding(Level.ERROR, message, "correct it", rule.position or field.position, name)
                continue
            ends = lower if bound.is_lower else upper
            ends.setdefault(bound.what, []).append(_End(value, bound.inclusive, rule))
        for what in dict.fromkeys((*lower, *upper)):
            both = what in lower and what in upper
            if both or (field.type is not None and (field.type.bits or field.type.precision or field.type.length)):
                yield from _emptied(outline, name, field, what, lower.get(what, []), upper.get(what, []))


def _emptied(
    outline: Outline, name: str, field: Field, what: str, lower: Sequence[_End], upper: Sequence[_End]
) -> Iterator[Finding]:
    for low, high in product(lower, upper):
        if _leave_nothing(low, high):
            if not outline.said("leave no value", field=name):
                message = f"{_words(low.rule)} and {_words(high.rule)} leave no value"
                place = high.rule.position or field.position
                yield outline.finding(Level.ERROR, message, "correct one of them", place, name)
            return
    least, most = _OF_TYPE[what](field.type)
    for end in (*lower, *upper):
        beyond = _End(most if end in lower else least, True, end.rule)
        if beyond.value is not None and (_leave_nothing(end, beyond) if end in lower else _leave_nothing(beyond, end)):
            message = f"no value of the type {field.type} is within the {_words(end.rule)}"
            place = end.rule.position or field.position
            yield outline.finding(Level.WARNING, message, "correct it, or the type", place, name)
            return


def _words(rule: Rule) -> str:
    return rule.kind.replace("_", " ")


def _leave_nothing(low: _End, high: _End) -> bool:
    least, most = low.value, high.value
    if isinstance(least, _NUMBERS) and isinstance(most, _NUMBERS):
        if type(least) is not int or type(most) is not int:
            least, most = Decimal(str(least)), Decimal(str(most))
    elif type(least) is not type(most) or isinstance(least, str):
        return False
    return bool(least > most or (least == most and not (low.inclusive and high.inclusive)))


def _longest(type_: DataType | None) -> tuple[Any, Any]:
    return None, type_.length if type_ is not None else None


_OF_TYPE: Final[dict[str, Callable[[DataType | None], tuple[Any, Any]]]] = {
    "value": _range,
    "length": _longest,
    "items": lambda type_: (None, None),
}
"""The least and the most that a type has, by what is bounded; None where there is no end."""
