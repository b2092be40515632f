"""SQL of Soda contracts, which is the warehouse's, as Spark reads it; or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

_QUOTED: Final = re.compile(r'"([^"]+)"')
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_MOST: Final = 20_000
_NOT: Final = "NOT ("
_COMMENTS: Final = ("--", "/*", "//")


def read_condition(sql: str, columns: Iterable[str]) -> str | None:
    """A condition over the columns in Spark's SQL; None for what is no condition that Spark can be asked."""
    from sqlglot import exp

    tree, dialect = _parsed(sql, columns)
    if not isinstance(tree, exp.Condition) or isinstance(tree, exp.Query):
        return None
    if dialect == "spark" and not any(mark in sql for mark in _COMMENTS):
        return " ".join(sql.split("\n")).strip()
    return str(tree.sql(dialect="spark", comments=False))


def read_query(sql: str, columns: Iterable[str], table: str) -> str | None:
    """A read-only query in Spark's SQL, the dataset's own table under its bare name; None for anything else."""
    from sqlglot import exp

    tree, _ = _parsed(sql.replace("{table_name}", quoted(table)), columns)
    if not isinstance(tree, exp.Query) or any(tree.find_all(exp.DML, exp.DDL, exp.Into)):
        return None
    for place in tree.find_all(exp.Table):
        if place.name.casefold() == table.casefold():
            place.set("db", None)
            place.set("catalog", None)
    return str(tree.sql(dialect="spark", comments=False))


def opposite(condition: str) -> str:
    """The condition that is false just where this one is true: `NOT (...)` around it, or what stands in such."""
    return _negated(condition) or f"NOT ({condition})"


def _negated(condition: str) -> str | None:
    """What stands in the brackets of `NOT (...)`, where that is all there is."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    inner = condition[len(_NOT) : -1]
    if not (condition.startswith(_NOT) and condition.endswith(")")) or inner != inner.strip() or not inner:
        return None
    try:
        tokens = sqlglot.tokenize(condition, read="spark")
    except (SqlglotError, RecursionError, ValueError):
        return None
    depth = 0
    for token in tokens[1:]:
        depth += {"(": 1, ")": -1}.get(token.text, 0) if token.token_type.name in ("L_PAREN", "R_PAREN") else 0
        if depth == 0 and token is not tokens[-1]:
            return None
    return inner


def count_where(condition: str, table: str) -> str:
    """The query that counts the rows for which a condition is true."""
    return f"SELECT COUNT(*) FROM {quoted(table)} WHERE {condition}"


def count_of(query: str) -> str:
    """The query that counts the rows of a query."""
    return f"SELECT COUNT(*) FROM ({query}) AS failed_rows"


def _parsed(sql: str, columns: Iterable[str]) -> tuple[Any, str]:
    """The syntax tree, and the dialect it was read in.

    A text in double quotes is a name to most warehouses and a string to Spark: it is taken for a name where it is that
    of a column, or stands in a query among the names of tables.
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    if len(sql) > _MOST:
        return None, "spark"
    names = set(columns)
    texts = _QUOTED.findall(sql)
    dialect = "postgres" if texts and ('"."' in sql or all(text in names for text in texts)) else "spark"
    try:
        trees = sqlglot.parse(sql, read=dialect)
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, IndexError, KeyError):
        return None, dialect
    return (trees[0] if len(trees) == 1 else None), dialect


def quoted(name: str) -> str:
    """A name as Spark's SQL takes it."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def literal(value: object) -> str:
    """A value as a literal of Spark's SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case _:
            return str(value)
