"""Constraints written as SQL conditions: a bound, a list or a length where they are one, else an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.formats.odcs_values import NUMERIC, TEMPORAL, parse_moment
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.rules import Limit, Rule

MOST_CHARACTERS: Final = 2_000

_BOUNDS: Final[dict[str, Callable[..., Rule]]] = {
    "GT": rules.ExclusiveMinimum,
    "GTE": rules.Minimum,
    "LT": rules.ExclusiveMaximum,
    "LTE": rules.Maximum,
}
_TURNED: Final = {"GT": "LT", "GTE": "LTE", "LT": "GT", "LTE": "GTE"}
_WHOLE_LENGTHS: Final[dict[str, tuple[Callable[..., Rule], int]]] = {
    "GT": (rules.MinLength, 1),
    "GTE": (rules.MinLength, 0),
    "LT": (rules.MaxLength, -1),
    "LTE": (rules.MaxLength, 0),
}


def read_condition(
    section: Section, key: str, at: int, *, field: str, logical: str | None, columns: Sequence[str]
) -> list[Rule]:
    """The rules of one constraint of `field`; none where it is no condition on a row, which is an error.

    Parts joined by AND are rules of their own if each is one about the field; `columns` are all that it may name.
    """
    text = section.report.document.text((*section.path, key, at)) or ""
    parsed, mistake = _parsed(text) if len(text) <= MOST_CHARACTERS else (None, "is too long")
    if parsed is None:
        section.error(
            f"the constraint {text[:60]!r} {mistake}", "write a condition in SQL, such as `amount > 0`", key, at
        )
        return []
    unknown = [name for name in _columns(parsed) if name not in columns and name.split(".")[0] not in columns]
    if unknown:
        near = nearest(unknown[0], columns)
        hint = f"did you mean {near!r}?" if near else f"it has {', '.join(columns[:10])}"
        section.error(f"the constraint {text[:60]!r} names {unknown[0]!r}, which is no field", hint, key, at)
        return []
    position = section.at(key, at)
    found = list(_simple(parsed, field, logical))
    if found and all(make is not None for make in found):
        return [make(position=position) for make in found if make is not None]
    return [rules.Expression(sql=text.strip(), position=position)]


@lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[Any, str]:
    """The condition as sqlglot has it, or None and what is wrong with it."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(text, dialect="spark", into=exp.Condition)
        return (None, wrong) if (wrong := _mistake(parsed)) else (parsed, "")
    except (SqlglotError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return None, "cannot be read"


def _mistake(parsed: Any) -> str | None:
    from sqlglot import exp

    if parsed.find(exp.Query, exp.AggFunc, exp.Window, exp.Command, exp.DDL, exp.DML) is not None:
        return "is not about one row"
    logical = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean, exp.Column, exp.Anonymous, exp.Func, exp.Paren)
    if not isinstance(parsed, logical):
        return "is no condition"
    return None if parsed.find(exp.Column) is not None else "names no field"


def _columns(parsed: Any) -> Iterator[str]:
    from sqlglot import exp

    for column in parsed.find_all(exp.Column):
        yield ".".join(part.name for part in column.parts)


def _simple(node: Any, field: str, logical: str | None) -> Iterator[Callable[..., Rule] | None]:
    """What makes the rule of each part, None for one that is no simple promise about the field."""
    from sqlglot import exp

    match node:
        case exp.Paren():
            yield from _simple(node.this, field, logical)
        case exp.And():
            yield from _simple(node.left, field, logical)
            yield from _simple(node.right, field, logical)
        case exp.Between() if not node.args.get("symmetric"):
            for bound, name in ((node.args["low"], "GTE"), (node.args["high"], "LTE")):
                yield _bound(node.this, bound, name, field, logical)
        case exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
            name = type(node).__name__
            yield _bound(node.left, node.right, name, field, logical) or _bound(
                node.right, node.left, _TURNED[name], field, logical
            )
        case exp.In() if _is(node.this, field) and node.expressions:
            yield _listed(node.expressions, logical)
        case exp.Not() if isinstance(node.this, exp.Is) and _is(node.this.this, field):
            yield rules.Required if isinstance(node.this.expression, exp.Null) else None
        case _:
            yield None


def _is(node: Any, field: str) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Column) and ".".join(part.name for part in node.parts) == field


def _bound(left: Any, right: Any, name: str, field: str, logical: str | None) -> Callable[..., Rule] | None:
    from sqlglot import exp

    if _is(left, field):
        limit = _limit(right, logical)
        return _with(_BOUNDS[name], "limit", limit) if limit is not None else None
    if isinstance(left, exp.Length) and _is(left.this, field) and logical == "string":
        length = _number(right)
        make, step = _WHOLE_LENGTHS[name]
        if isinstance(length, int) and 0 <= length + step < 2**31:
            return _with(make, "length", length + step)
    return None


def _with(make: Callable[..., Rule], fact: str, value: Any) -> Callable[..., Rule]:
    def rule(**facts: Any) -> Rule:
        return make(**{fact: value}, **facts)

    return rule


def _limit(node: Any, logical: str | None) -> Limit | None:
    from sqlglot import exp

    if logical in NUMERIC:
        return _number(node)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        # `DATE '2020-01-01'`
        node = node.this
    if logical in TEMPORAL and isinstance(node, exp.Literal) and node.is_string:
        try:
            parse_moment(node.name, logical)
        except ValueError:
            return None
        return str(node.name)
    return None


def _number(node: Any) -> int | float | Decimal | None:
    from sqlglot import exp

    if isinstance(node, exp.Neg):
        positive = _number(node.this)
        return -positive if positive is not None else None
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    try:
        exact = Decimal(node.name)
    except InvalidOperation:
        return None
    if not exact.is_finite() or abs(exact.adjusted()) > 300:
        return None
    if exact == exact.to_integral_value() and exact.adjusted() < 40:
        return int(exact)
    near = float(exact)
    return near if Decimal(repr(near)) == exact else exact


def _listed(nodes: Sequence[Any], logical: str | None) -> Callable[..., Rule] | None:
    from sqlglot import exp

    values: list[Any] = []
    for node in nodes:
        if logical == "string" and isinstance(node, exp.Literal) and node.is_string:
            values.append(node.name)
        elif logical in NUMERIC and (number := _number(node)) is not None:
            values.append(number)
        else:
            return None
    return _with(rules.Enum, "values", tuple(values))
