"""Constraints written as SQL conditions: a bound, a list, a length and the like where they are one, else an expression.

Each form is read here and written by `sections_writer_constraints`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.errors import Position
from databox_contracts.formats.odcs_values import NUMERIC, TEMPORAL, parse_moment
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.patterns import PatternError, to_java
from databox_contracts.rules import Limit, Rule

MOST_CHARACTERS: Final = 2_000

_BOUNDS: Final[dict[str, Callable[..., Rule]]] = {
    "GT": rules.ExclusiveMinimum,
    "GTE": rules.Minimum,
    "LT": rules.ExclusiveMaximum,
    "LTE": rules.Maximum,
}
_TURNED: Final = {"GT": "LT", "GTE": "LTE", "LT": "GT", "LTE": "GTE"}
# Of whole numbers: whether they are a least or a most, and how far that is from the bound.
_WHOLE: Final = {"GT": (0, 1), "GTE": (0, 0), "LT": (1, -1), "LTE": (1, 0)}
_LENGTHS: Final[tuple[Callable[..., Rule], ...]] = (rules.MinLength, rules.MaxLength)
_SIZES: Final[tuple[Callable[..., Rule], ...]] = (rules.MinItems, rules.MaxItems)

# The parts of ECMA-262 that Java spells otherwise.
_SPELLED_OTHERWISE: Final = {to_java(part): part for part in ("$", ".", r"\s", r"\S")}
_REQUIRED_WHEN: Final = re.compile(r"NOT\s*\((.*)\)\s*OR\s+\S+\s+IS\s+NOT\s+NULL", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Mistake:
    """Why a text is no condition on a row, and the way out."""

    message: str
    hint: str


def read_condition(
    section: Section,
    key: str,
    at: int,
    *,
    field: str | None,
    logical: str | None,
    columns: Sequence[str],
    only_simple: bool = False,
) -> list[Rule]:
    """The rules of one entry of a list of constraints, as `understood`; none where it is wrong, which is an error."""
    text = section.report.document.text((*section.path, key, at)) or ""
    position = section.at(key, at)
    found = understood(text, field=field, logical=logical, columns=columns, position=position, only_simple=only_simple)
    if isinstance(found, Mistake):
        section.error(found.message, found.hint, key, at)
        return []
    return found


def understood(
    text: str,
    *,
    field: str | None,
    logical: str | None,
    columns: Sequence[str],
    position: Position | None = None,
    only_simple: bool = False,
) -> list[Rule] | Mistake:
    """The rules that a constraint of `field` means; of the whole table where that is None.

    Parts joined by AND are rules of their own if each is one about the field; `columns` are all that it may name. With
    `only_simple` an expression is a mistake: inside an array there is no row that it could be about.
    """
    parsed, mistake = _parsed(text) if len(text) <= MOST_CHARACTERS else (None, "is too long")
    if parsed is None:
        return Mistake(f"the constraint {text[:60]!r} {mistake}", "write a condition in SQL, such as `amount > 0`")
    unknown = [name for name in _columns(parsed) if name not in columns and name.split(".")[0] not in columns]
    if unknown:
        near = nearest(unknown[0], columns)
        hint = f"did you mean {near!r}?" if near else f"it has {', '.join(columns[:10])}"
        return Mistake(f"the constraint {text[:60]!r} names {unknown[0]!r}, which is no field", hint)
    if field is not None:
        found = list(_simple(parsed, field, logical))
        if found and all(make is not None for make in found):
            return [make(position=position) for make in found if make is not None]
        condition = _required_when(parsed, text, field)
        if condition is not None and not only_simple:
            return [rules.RequiredWhen(condition=condition, position=position)]
    if only_simple:
        message = f"the constraint {text[:60]!r} compares what an array or a map contains with more than fixed values"
        return Mistake(message, "write it as a constraint of the field that holds the array or the map")
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
        case exp.EQ():
            yield _equal(node.left, node.right, field, logical)
        case exp.RegexpLike() if _is(node.this, field) and logical == "string":
            pattern = _ecma(node.expression)
            yield _with(rules.Pattern, "pattern", pattern) if pattern is not None else None
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
        return _whole(_LENGTHS, "length", right, name)
    if isinstance(left, exp.ArraySize) and _is(left.this, field) and logical == "array":
        return _whole(_SIZES, "count", right, name)
    return None


def _whole(kinds: Sequence[Callable[..., Rule]], fact: str, node: Any, name: str) -> Callable[..., Rule] | None:
    bound = _number(node)
    kind, step = _WHOLE[name]
    if isinstance(bound, int) and 0 <= bound + step < 2**31:
        return _with(kinds[kind], fact, bound + step)
    return None


def _equal(left: Any, right: Any, field: str, logical: str | None) -> Callable[..., Rule] | None:
    """`c % 5 = 0`, and `size(array_distinct(c)) = size(c)`."""
    from sqlglot import exp

    if isinstance(left, exp.Mod) and _is(left.this, field) and logical in NUMERIC:
        divisor = _number(left.expression)
        if _number(right) == 0 and divisor is not None and divisor > 0:
            return _with(rules.MultipleOf, "divisor", divisor)
    if isinstance(left, exp.ArraySize) and isinstance(left.this, exp.ArrayDistinct) and logical == "array":
        same = isinstance(right, exp.ArraySize) and _is(right.this, field)
        return rules.UniqueItems if same and _is(left.this.this, field) else None
    return None


def _ecma(node: Any) -> str | None:
    """The ECMA-262 expression of a Java one, None where it has none that means the same."""
    from sqlglot import exp

    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    java = pattern = str(node.name)
    for spelled, part in _SPELLED_OTHERWISE.items():
        pattern = pattern.replace(spelled, part)
    try:
        return pattern if to_java(pattern) == java else None
    except PatternError:
        return None


def _required_when(parsed: Any, text: str, field: str) -> str | None:
    """The condition of `NOT (condition) OR field IS NOT NULL`, as it is written."""
    from sqlglot import exp

    match parsed:
        case exp.Or(left=exp.Not(this=exp.Paren(this=condition)), right=exp.Not(this=exp.Is() as null)):
            written = _REQUIRED_WHEN.fullmatch(text.strip())
            if written is None or not _is(null.this, field) or not isinstance(null.expression, exp.Null):
                return None
            return written[1] if _parsed(written[1])[0] == condition else None
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
