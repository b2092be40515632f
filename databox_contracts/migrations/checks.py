"""What a CHECK says of a column, where it lists values or sets bounds."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from databox_contracts import rules
from databox_contracts.rules import Number, Rule, Scalar

Found = list[tuple[exp.Expr, Rule]]
"""The identifiers of columns, each with a rule that the check amounts to."""

_BOUNDS: Final[dict[type[exp.Expr], type[Rule]]] = {
    exp.GT: rules.ExclusiveMinimum,
    exp.GTE: rules.Minimum,
    exp.LT: rules.ExclusiveMaximum,
    exp.LTE: rules.Maximum,
}
_TURNED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}

SAME_PROMISE: Final[tuple[tuple[type[Rule], ...], ...]] = (
    (rules.Enum,),
    (rules.Minimum, rules.ExclusiveMinimum),
    (rules.Maximum, rules.ExclusiveMaximum),
    (rules.Required,),
)
"""Kinds of rules of which a column has one."""


def read_check(condition: exp.Expr) -> Found | None:
    """The rules of a condition, all of which must hold; None where any of it is not a list of values or a bound."""
    if condition.args.get("negate") and not isinstance(condition, exp.Is):
        return None
    match condition:
        case exp.Paren():
            return read_check(condition.this)
        case exp.And():
            left, right = read_check(condition.this), read_check(condition.expression)
            return None if left is None or right is None else left + right
        case exp.Between():
            return _between(condition)
        case exp.In() if condition.expressions:
            return _enum(condition.this, condition.expressions)
        case exp.EQ():
            return _equal(condition)
        case exp.Is() if condition.args.get("negate") and isinstance(condition.expression, exp.Null):
            column = _column(condition.this)
            return None if column is None else [(column, rules.Required())]
    if type(condition) in _BOUNDS:
        return _bound(type(condition), condition.this, condition.expression)
    return None


def _between(condition: exp.Expr) -> Found | None:
    low = _bound(exp.GTE, condition.this, condition.args["low"])
    high = _bound(exp.LTE, condition.this, condition.args["high"])
    return None if low is None or high is None else low + high


def _bound(kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> Found | None:
    column, limit = _column(left), _value(right)
    if column is None:
        column, limit, kind = _column(right), _value(left), _TURNED[kind]
    if column is None or limit is None or isinstance(limit, bool | str):
        return None
    made: Any = _BOUNDS[kind]
    return [(column, made(limit=limit))]


def _equal(condition: exp.Expr) -> Found | None:
    """`a = 'x'`, and the form in which Postgres writes a list down: `a = ANY (ARRAY['x', 'y'])`."""
    listed = condition.expression
    if not isinstance(listed, exp.Any):
        return _enum(condition.this, [listed])
    array = _bare(listed.this)
    return _enum(condition.this, array.expressions) if isinstance(array, exp.Array) else None


def _enum(left: exp.Expr, listed: list[exp.Expr]) -> Found | None:
    column, values = _column(left), [_value(one) for one in listed]
    if column is None or not values or any(value is None for value in values):
        return None
    return [(column, rules.Enum(values=tuple(values)))]


def _bare(value: exp.Expr) -> exp.Expr:
    while isinstance(value, exp.Paren | exp.Cast):
        value = value.this
    return value


def _column(value: exp.Expr) -> exp.Expr | None:
    found = _bare(value)
    return found.this if isinstance(found, exp.Column) and len(found.parts) == 1 else None


def _value(value: exp.Expr) -> Scalar:
    """A value that is written out; None for anything else."""
    found = _bare(value)
    if isinstance(found, exp.Boolean):
        return bool(found.this)
    if isinstance(found, exp.Neg):
        number = _value(found.this)
        return -number if isinstance(number, int | float) and not isinstance(number, bool) else None
    if not isinstance(found, exp.Literal):
        return None
    return str(found.this) if found.is_string else _number(str(found.this))


def _number(text: str) -> Number:
    try:
        return int(text)
    except ValueError:
        return float(text)
