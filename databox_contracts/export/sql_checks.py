"""Rules of rows as conditions of CHECK constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.export.row_promises import NoneOf, Promise
from databox_contracts.rules import Scalar

_NUMERIC: Final = (Family.INTEGER, Family.NUMBER, Family.DECIMAL)
_EXACT: Final = (Family.INTEGER, Family.DECIMAL)

# Where a moment's text does not become one without the session's settings, or dates are texts anyway.
_NO_DATES: Final = ("clickhouse", "oracle", "teradata")
_NO_TIMESTAMPS: Final = (*_NO_DATES, "sqlite")
_NO_INSTANTS: Final = (*_NO_TIMESTAMPS, "mysql")

# Where the remainder is that of whole numbers or of binary ones.
_NO_REMAINDER: Final = ("clickhouse", "sqlite")


class NoCheckError(Exception):
    """A rule that a dialect cannot check, and why."""


def condition(promise: Promise, column: str, type_: DataType | None, dialect: str) -> Any:
    """The condition in sqlglot's terms; it is null where the value is, which keeps a CHECK as it keeps the rule.

    Raises `NoCheckError` with the reason where the dialect cannot say it.
    """
    from sqlglot import exp

    write = _WRITERS.get(type(promise))
    if write is None:
        raise NoCheckError(
            _REASONS.get(getattr(promise, "kind", ""), "a CHECK has no words for it that all dialects share")
        )
    return write(promise, exp.column(exp.to_identifier(column, quoted=True)), type_, dialect)


_REASONS: Final[dict[str, str]] = {
    "pattern": "the dialects' regular expressions are not those of contracts",
    "format": "SQL has no formats of texts",
    "min_items": "the dialects count items in different ways",
    "max_items": "the dialects count items in different ways",
    "unique_items": "SQL has no unique items",
}


def _enum(promise: Any, column: Any, type_: DataType | None, dialect: str) -> Any:
    from sqlglot import exp

    values = [value for value in promise.values if value is not None]
    if not values:
        return exp.Is(this=column, expression=exp.null())
    return exp.In(this=column, expressions=list(_literals(values, type_, dialect)))


def _none_of(promise: Any, column: Any, type_: DataType | None, dialect: str) -> Any:
    from sqlglot import exp

    listed = exp.In(this=column, expressions=list(_literals(promise.values, type_, dialect)))
    return exp.Not(this=listed)


def _literals(values: Iterable[Scalar], type_: DataType | None, dialect: str) -> Iterable[Any]:
    return (_literal(value, type_, dialect) for value in values)


def _bound(operator: str) -> Callable[[Any, Any, DataType | None, str], Any]:
    def write(rule: Any, column: Any, type_: DataType | None, dialect: str) -> Any:
        from sqlglot import exp

        return getattr(exp, operator)(this=column, expression=_literal(rule.limit, type_, dialect))

    return write


def _length(operator: str) -> Callable[[Any, Any, DataType | None, str], Any]:
    def write(rule: Any, column: Any, type_: DataType | None, dialect: str) -> Any:
        from sqlglot import exp

        if type_ is None or type_.family is not Family.STRING:
            raise NoCheckError("only a text has a length")
        if dialect == "tsql" and operator == "GTE":
            raise NoCheckError("tsql does not count the spaces at the end of a text")
        return getattr(exp, operator)(this=exp.Length(this=column), expression=exp.Literal.number(rule.length))

    return write


def _multiple(rule: Any, column: Any, type_: DataType | None, dialect: str) -> Any:
    from sqlglot import exp

    whole = type_ is not None and type_.family is Family.INTEGER and rule.divisor == int(rule.divisor)
    if type_ is None or type_.family not in _EXACT or (dialect in _NO_REMAINDER and not whole) or rule.divisor <= 0:
        raise NoCheckError("the remainder of such a division is not exact")
    divided = exp.Mod(this=column, expression=_literal(rule.divisor, type_, dialect))
    return exp.EQ(this=divided, expression=exp.Literal.number(0))


# --- values -----------------------------------------------------------------------------------------------------------


def _literal(value: Any, type_: DataType | None, dialect: str) -> Any:
    """The value as the column's type has it."""
    from sqlglot import exp

    family = type_.family if type_ is not None else Family.STRING
    match value:
        case bool():
            if family is Family.BOOLEAN and dialect not in _NO_TRUTH:
                return exp.Boolean(this=value)
        case int() | float() | Decimal() if Decimal(str(value)).is_finite():
            if family in _NUMERIC:
                written = exp.Literal.number(format(abs(Decimal(str(value))), "f"))
                return exp.Neg(this=written) if value < 0 else written
        case str() if family is Family.STRING:
            return exp.Literal.string(value)
        case str() | date() if family in (Family.DATE, Family.TIMESTAMP):
            return _moment(str(value), type_, dialect)
    raise NoCheckError(f"a value of it is no {family} in {dialect}")


_NO_TRUTH: Final = ("tsql", "oracle", "teradata")


def _moment(text: str, type_: DataType | None, dialect: str) -> Any:
    from sqlglot import exp

    is_date = type_ is not None and type_.family is Family.DATE
    zoned = type_ is not None and type_.zone is True
    refusing = _NO_DATES if is_date else _NO_INSTANTS if zoned else _NO_TIMESTAMPS
    if dialect in refusing:
        raise NoCheckError(f"how {dialect} reads a moment depends on the session")
    try:
        if is_date:
            day = exp.Literal.string(date.fromisoformat(text[:10]).isoformat())
            return day if dialect == "sqlite" else exp.cast(day, "DATE")
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise NoCheckError("the limit is no ISO 8601 text") from None
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    written = exp.Literal.string(moment.isoformat(sep=" ") + ("+00:00" if zoned else ""))
    return exp.cast(written, "TIMESTAMPTZ" if zoned else "TIMESTAMP")


_Writer = Callable[[Any, Any, "DataType | None", str], Any]
_WRITERS: Final[dict[type, _Writer]] = {
    rules.Enum: _enum,
    NoneOf: _none_of,
    rules.Minimum: _bound("GTE"),
    rules.Maximum: _bound("LTE"),
    rules.ExclusiveMinimum: _bound("GT"),
    rules.ExclusiveMaximum: _bound("LT"),
    rules.MultipleOf: _multiple,
    rules.MinLength: _length("GTE"),
    rules.MaxLength: _length("LTE"),
}
