"""`quality` of type sql: whether a query is one that may be run as a promise, one read-only SELECT of one number."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

# `${table}`, and `{object}` as earlier pages of the standard have it; what stands for them must parse.
_PLACEHOLDER: Final = re.compile(r"\$?\{\s*\w+\s*\}")
_STAND_IN: Final = "placeholder"

# Functions that run code or read what is not a table.
_UNSAFE: Final = ("reflect", "try_reflect", "java_method", "read_files", "input_file_name")

_MOST_CHARACTERS: Final = 20_000


@lru_cache(maxsize=1024)
def why_not_a_number(query: str) -> str | None:
    """Why the query is not a single read-only SELECT that returns one number, in Spark's SQL; None when it is.

    Placeholders such as `${table}` and `{column}` may stand wherever a name may.
    """
    import sqlglot
    import sqlglot.errors

    if len(query) > _MOST_CHARACTERS:
        return "a query that is too long to be checked"
    text = _PLACEHOLDER.sub(_STAND_IN, query)
    try:
        # Looked at first: what the parser does not know at all, it takes for a command and logs.
        if not _begins_as_query(text):
            return "a statement that is not one SELECT"
        statements = sqlglot.parse(text, dialect="spark")
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError):
        return "a query that is not Spark SQL"
    found = [statement for statement in statements if statement is not None]
    if len(found) != 1:
        return f"{len(found)} queries, and a promise is one"
    return _unfit(found[0])


def _begins_as_query(text: str) -> bool:
    import sqlglot

    before = ";"
    for token in sqlglot.tokenize(text, read="spark"):
        if before == ";" and token.text.lower() not in ("select", "with", "(", ";"):
            return False
        before = token.text
    return True


def _unfit(statement: Any) -> str | None:
    from sqlglot import exp

    while isinstance(statement, exp.Subquery) and not statement.args.get("alias"):
        # A copy has nothing around it, which is looked for below.
        statement = statement.this.copy()
    if not isinstance(statement, exp.Select):
        return "a statement that is not one SELECT"
    writes = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Command, exp.Into, exp.Lock)
    if statement.find(*writes) is not None:
        return "a query that does not only read"
    for called in statement.find_all(exp.Func):
        if _name_of(called) in _UNSAFE:
            return f"a query that calls {_name_of(called)}"
    if len(statement.expressions) != 1 or isinstance(statement.expressions[0], exp.Star):
        return "a query that does not return one number"
    one_row = statement.args.get("group") is None and (
        statement.args.get("from_") is None or _is_aggregate(statement.expressions[0])
    )
    if not one_row and not _has_limit_of_one(statement):
        return "a query that may return many rows"
    return None


def _name_of(called: Any) -> str:
    return str(getattr(called, "name", "") or called.sql_name()).lower() if called.key == "anonymous" else called.key


def _is_aggregate(projection: Any) -> bool:
    """Whether an aggregate is taken over all rows; one inside a subquery or a window is not."""
    from sqlglot import exp

    return any(found.find_ancestor(exp.Subquery, exp.Window) is None for found in projection.find_all(exp.AggFunc))


def _has_limit_of_one(statement: Any) -> bool:
    limit = statement.args.get("limit")
    return limit is not None and getattr(limit.expression, "name", None) == "1"
