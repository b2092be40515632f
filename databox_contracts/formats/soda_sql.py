"""SQL of Soda contracts, which is the warehouse's, as Spark reads it; or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

_QUOTED: Final = re.compile(r'"([^"]+)"')
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_MOST: Final = 20_000


def read_condition(sql: str, columns: Iterable[str]) -> str | None:
    """A condition over the columns in Spark's SQL; None for what is no condition that Spark can be asked."""
    from sqlglot import exp

    tree, dialect = _parsed(sql, columns)
    if tree is None or isinstance(tree, exp.Query | exp.Command | exp.DDL | exp.DML | exp.Alias):
        return None
    return " ".join(sql.split("\n")).strip() if dialect == "spark" else str(tree.sql(dialect="spark"))


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
    return str(tree.sql(dialect="spark"))


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
