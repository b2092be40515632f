"""Texts and SQL for files of dbt: what a contract says stays text, where dbt would run it as Jinja or SQL."""

from __future__ import annotations

import re
from typing import Any, Final

from databox_contracts.datatypes import Family
from databox_contracts.export.losses import Place
from databox_contracts.export.sql_dialects import abilities
from databox_contracts.export.sql_types import column_type
from databox_contracts.rules import PrimaryKey

# dbt renders every text of a file, and runs an argument of a test that looks like a call of one of its functions.
_OPENING: Final = re.compile(r"\{(?=[{%#])")
_CALL: Final = re.compile(r"(\s*)(env_var|ref|var|source|doc)(?=\s*\()")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def inert(text: str) -> str:
    """The text as dbt has to be given it, so that it renders to the text itself."""
    escaped = _OPENING.sub("{{ '{' }}", text)
    return _CALL.sub(r"\1{{ '\2' }}", escaped, count=1) if _CALL.match(escaped) else escaped


def inert_data(value: Any) -> Any:
    """Plain data with every text in it made inert."""
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, dict):
        return {inert(str(key)): inert_data(item) for key, item in value.items()}
    return [inert_data(item) for item in value] if isinstance(value, list | tuple) else value


def is_plain_name(name: str) -> bool:
    """Whether SQL takes the name for one without quotes."""
    return _PLAIN_NAME.fullmatch(name) is not None


def legal_name(name: str) -> str:
    """The name in the characters that a model or a test may have."""
    legal = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return legal if legal[:1].isalpha() or legal[:1] == "_" else f"_{legal}"


def identifier(name: str, dialect: str) -> str:
    """The name as a column in SQL, in quotes where it needs them."""
    from sqlglot import exp

    return sql_text(exp.to_identifier(name, quoted=not is_plain_name(name)), dialect)


def sql_text(expression: Any, dialect: str) -> str:
    """An expression of sqlglot in the dialect, without remarks in the log: what a type does not say is a loss."""
    from sqlglot import ErrorLevel

    return str(expression.sql(dialect=dialect, unsupported_level=ErrorLevel.IGNORE))


def literal(text: str, dialect: str) -> str:
    """The text in quotes, which it cannot leave."""
    from sqlglot import exp

    return sql_text(exp.Literal.string(text), dialect)


def data_type(place: Place, dialect: str) -> str | None:
    """The column's type in the dialect; None where the contract leaves it, or what it holds, open."""
    if not _is_known(place):
        return None
    type_ = column_type(place, dialect, abilities(dialect), in_key=is_in_key(place))
    return sql_text(type_, dialect)


def is_in_key(place: Place) -> bool:
    """Whether the column is a key or a part of the primary key."""
    keys = (rule for rule in place.dataset.rules if isinstance(rule, PrimaryKey))
    return any(place.name in rule.fields for rule in keys) or (place.field is not None and place.field.unique)


_HELD: Final = {Family.ARRAY: ("item",), Family.MAP: ("key", "value")}


def _is_known(place: Place | None) -> bool:
    type_ = place.field.type if place is not None and place.field is not None else None
    if place is None or type_ is None:
        return False
    if type_.family is Family.OBJECT:
        return bool(place.fields) and all(_is_known(part) for part in place.fields)
    return all(_is_known(place.holds(part)) for part in _HELD.get(type_.family, ()))
