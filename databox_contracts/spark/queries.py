"""Rules that are a query of one number: each runs by itself, over a temporary view of the table and nothing else."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import DataFrame

from databox_contracts.formats.odcs_sql import why_not_a_number
from databox_contracts.plan import Check, Plan
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import Query
from databox_contracts.spark import outcomes
from databox_contracts.spark.failures import SPARK_ERRORS, in_words, unlogged
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.sql_safety import quoted

_TABLE: Final = re.compile(r"\$?\{\s*(?:table|object|model|dataset|table_name|schema)\s*\}")
_FIELD: Final = re.compile(r"\$?\{\s*(?:column|field|property|column_name)\s*\}")
_OTHER: Final = re.compile(r"\$?\{\s*(\w+)\s*\}")


def query_result(check: Check, table: DataFrame, plan: Plan) -> CheckResult:
    """The result of a query over the table under its own column names; it is not evaluated where it fails."""
    assert isinstance(check.rule, Query)
    try:
        with unlogged(), _named(table) as view:
            text = over_view(check, plan, view)
            found = table.sparkSession.sql(text).limit(2).collect()
        number = _number([tuple(row) for row in found])
    except NotEvaluableError as reason:
        return outcomes.not_evaluated(check, str(reason))
    except SPARK_ERRORS as error:
        return outcomes.not_evaluated(check, f"its query fails: {in_words(error)}")
    promised = check.rule.threshold
    masked = _may_show_values(check.rule.sql, plan)
    if number is None:
        message = f"the query returns null; promised is {promised}"
        return check.result(Status.FAILED, threshold=str(promised), message=message)
    holds = not number.is_nan() and promised.holds(number)
    shown = "another number" if masked else f"{_shown(number)}"
    message = "" if holds else f"the query returns {shown}; promised is {promised}"
    return check.result(
        Status.PASSED if holds else Status.FAILED,
        observed=None if masked else _shown(number),
        threshold=str(promised),
        message=message,
    )


def over_view(check: Check, plan: Plan, view: str) -> str:
    """The query with the dataset's name, and what stands for it, replaced by the view's.

    Raises `NotEvaluableError` for a query that may not be run, or that reads another table.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    assert isinstance(check.rule, Query)
    reason = why_not_a_number(check.rule.sql)
    if reason is not None:
        raise NotEvaluableError(f"it is {reason}")
    text = _TABLE.sub(lambda match: quoted(view), check.rule.sql)
    if check.path:
        column = ".".join(quoted(step) for step in check.path if isinstance(step, str))
        text = _FIELD.sub(lambda match: column, text)
    left = _OTHER.search(text)
    if left is not None:
        raise NotEvaluableError(f"nothing is known to stand for {left[0]}")
    own = {name.casefold() for name in (plan.dataset.name, plan.dataset.physical_name) if name is not None}
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except (SqlglotError, ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise NotEvaluableError("it is a query that is not Spark SQL") from error
    defined = {one.alias.casefold() for one in tree.find_all(exp.CTE)}
    places: list[tuple[int, int]] = []
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            raise NotEvaluableError("it reads something other than tables")
        name = table.name.casefold()
        if name == view or (name in defined and not table.db):
            continue
        whole = ".".join(part.name for part in table.parts)
        if whole.casefold() not in own and (table.db or name not in own):
            raise NotEvaluableError(f"it reads {whole}, and only {plan.dataset.name} is at hand")
        places.append((table.parts[0].meta["start"], table.parts[-1].meta["end"] + 1))
        if not table.alias:
            _rename(tree, whole, table.name, places)
    return _replaced(text, sorted(set(places)), quoted(view))


def _rename(tree: Any, whole: str, name: str, places: list[tuple[int, int]]) -> None:
    """Where columns are called by the table's name, it is the view's too."""
    from sqlglot import exp

    for column in tree.find_all(exp.Column):
        table = column.args.get("table")
        if table is not None and table.name.casefold() == name.casefold():
            places.append((column.parts[0].meta["start"], table.meta["end"] + 1))


def _replaced(text: str, places: list[tuple[int, int]], name: str) -> str:
    out, at = [], 0
    for start, end in places:
        if start >= at:
            out += [text[at:start], name]
            at = end
    return "".join([*out, text[at:]])


@contextmanager
def _named(table: DataFrame) -> Iterator[str]:
    """A temporary view of the table, of a name that nothing else has, for as long as it is needed."""
    name = f"databox_{secrets.token_hex(8)}"
    table.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        table.sparkSession.catalog.dropTempView(name)


def _number(rows: list[tuple[Any, ...]]) -> Decimal | None:
    if len(rows) != 1:
        raise NotEvaluableError(f"the query returns {'no row' if not rows else 'several rows'}, and a promise is one")
    value = rows[0][0]
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise NotEvaluableError(f"the query returns no number but a {type(value).__name__}")
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _shown(number: Decimal) -> int | float:
    return int(number) if number.is_finite() and number == number.to_integral_value() else float(number)


_COUNTS: Final = re.compile(r"\s*select\s+count\s*\([^()]*\)\s*(?:as\s+\w+\s*)?from\b", re.IGNORECASE)


def _may_show_values(sql: str, plan: Plan) -> bool:
    """Whether the number may be a value that must not be shown: a count is none."""
    return _COUNTS.match(sql) is None and any(check.masked for check in plan.checks)
