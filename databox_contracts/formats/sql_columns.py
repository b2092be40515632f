"""Which columns a condition or a query names, in Spark's SQL."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from functools import lru_cache
from typing import Any, Final

_MOST_CHARACTERS: Final = 20_000
_OWN_TABLE: Final = re.compile(r"\$?\{\s*(?:table|object|model|dataset|table_name)\s*\}")
_OTHER: Final = re.compile(r"\$?\{\s*\w+\s*\}")
_STAND_IN: Final = "placeholder_"


@lru_cache(maxsize=1024)
def columns_of_condition(sql: str) -> tuple[tuple[str, ...], str | None]:
    """The columns in order, dotted for parts of one; and what is wrong with the text, if it is no condition on a row.

    What stands in a query inside of it is left out.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(sql) > _MOST_CHARACTERS:
        return (), "is too long to be checked"
    try:
        parsed = sqlglot.parse_one(_OTHER.sub(_STAND_IN, sql), dialect="spark", into=exp.Condition)
    except (SqlglotError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return (), "is not SQL that can be read"
    if any(found.find_ancestor(exp.Query) is None for found in parsed.find_all(exp.AggFunc, exp.Window)):
        return (), "is not about one row"
    columns = [column for column in parsed.find_all(exp.Column, bfs=False) if column.find_ancestor(exp.Query) is None]
    names = (".".join(part.name for part in column.parts) for column in columns)
    return tuple(name for name in names if name != _STAND_IN), None


def columns_of_query(sql: str, own: str, tables: Container[str]) -> Iterator[tuple[str, str]]:
    """Each column that certainly is one of those tables', with the table's name; `own` is what placeholders mean.

    Names of tables are looked for in lower case. A column without its table's name counts where all tables beside it
    are known. A text that cannot be read gives none.
    """
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    try:
        found: dict[tuple[str, str], None] = {}
        for scope in traverse_scope(_parsed(sql, own)):
            for table, name in _columns(scope, tables):
                found.setdefault((table, name))
        yield from found
    except (SqlglotError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return


def _parsed(sql: str, own: str) -> Any:
    import sqlglot

    if len(sql) > _MOST_CHARACTERS:
        raise ValueError(len(sql))
    quoted = "`" + own.replace("`", "``") + "`"
    text = _OWN_TABLE.sub(lambda match: quoted, sql)
    return sqlglot.parse_one(_OTHER.sub(_STAND_IN, text), dialect="spark")


def _columns(scope: Any, tables: Container[str]) -> Iterator[tuple[str, str]]:
    from sqlglot import exp

    known: dict[str, str | None] = {}
    for alias, source in scope.sources.items():
        is_known = isinstance(source, exp.Table) and source.name.casefold() in tables
        known[alias.casefold()] = source.name if is_known else None
    aliases = {one.alias.casefold() for one in getattr(scope.expression, "expressions", ()) if one.alias}
    # A subquery may name a column of the query around it.
    is_alone = scope.parent is None or not scope.is_correlated_subquery
    sources = list(known.values())
    only = sources[0] if len(sources) == 1 and is_alone and not scope.expression.args.get("laterals") else None
    for column in scope.columns:
        parts = [part.name for part in column.parts]
        if parts[0] == _STAND_IN or _STAND_IN in parts or isinstance(column.this, exp.Star):
            continue
        if parts[0].casefold() in known and len(parts) > 1:
            table = known[parts[0].casefold()]
            if table is not None:
                yield table, ".".join(parts[1:])
        elif only is not None and parts[0].casefold() not in aliases:
            yield only, ".".join(parts)
