"""What SQL of contracts may say, and how it is said so that no single row ends the job."""

from __future__ import annotations

import re
from typing import Any, Final

from databox_contracts.spark.sql_functions import ALLOWED, ALLOWED_FORMS

PLACEHOLDER: Final = re.compile(r"\$?\{\s*\w+\s*\}")
"""`${column}` or `{field}`: the field that the rule is about."""

STAND_IN: Final = "placeholder_"

# They run code, read what is not a table, or end the job on purpose.
_UNSAFE: Final = frozenset(
    (
        "reflect",
        "try_reflect",
        "java_method",
        "read_files",
        "input_file_name",
        "input_file_block_start",
        "input_file_block_length",
        "raise_error",
        "assert_true",
        "from_avro",
        "to_avro",
        "from_protobuf",
        "to_protobuf",
    )
)
# They give another answer each time, so that a verdict could not be repeated.
_UNSTEADY: Final = frozenset(
    (
        "rand",
        "randn",
        "random",
        "randstr",
        "uuid",
        "shuffle",
        "monotonically_increasing_id",
        "spark_partition_id",
        "session_user",
        "current_user",
        "user",
        "uniform",
        "version",
    )
)
_CLOCKS: Final = frozenset(["now", "currenttimestamp", "current_timestamp", "localtimestamp"])
_DAYS: Final = frozenset(["currentdate", "current_date", "curdate"])

# By the name that an unknown function has for the parser.
_SAFE_NAMES: Final = {
    "element_at": "try_element_at",
    "to_number": "try_to_number",
    "to_binary": "try_to_binary",
    "parse_json": "try_parse_json",
    "variant_get": "try_variant_get",
    "parse_url": "try_parse_url",
    "url_decode": "try_url_decode",
    "make_timestamp": "try_make_timestamp",
    "make_interval": "try_make_interval",
}
_SAFE_OPERATORS: Final = {"add": "try_add", "sub": "try_subtract", "mul": "try_multiply", "div": "try_divide"}


def refusal(tree: Any) -> str | None:
    """Why a parsed condition must not be run, to follow "its SQL"; None where it may be."""
    from sqlglot import exp

    if tree.find(exp.Query, exp.DDL, exp.DML, exp.Command, exp.Into) is not None:
        return "holds a query or a statement, and a condition is about one row"
    if tree.find(exp.AggFunc, exp.Window) is not None:
        return "is not about one row"
    if tree.find(exp.Placeholder, exp.Parameter, exp.SessionParameter) is not None:
        return "has a parameter that nobody sets"
    for one in tree.find_all(exp.Func):
        name = function_name(one)
        if name in _UNSAFE:
            return f"calls {name}, which no promise needs"
        if name in _UNSTEADY:
            return f"calls {name}, whose answer is another one each time"
        if one.key not in ALLOWED_FORMS and (isinstance(one.parent, exp.Dot) or _name_in_spark(one) not in ALLOWED):
            return f"calls {_name_in_spark(one) or name}, which is not among the functions that a condition may call"
    for one in tree.find_all(exp.Lambda):
        for variable in one.expressions:
            if re.fullmatch(r"[cet]\d+", variable.name):
                return f"calls a variable {variable.name}, as columns are called here; choose another name"
    return None


def function_name(called: Any) -> str:
    """The name of a function in lower case, as its author writes it where the parser does not know it."""
    if called.key == "anonymous":
        return str(called.name).lower()
    name = str(called.sql_name()).lower()
    return name if name in _UNSAFE or name in _UNSTEADY else str(called.key)


_CALL: Final = re.compile(r"(\w+)\(.*\)", re.DOTALL)


def _name_in_spark(called: Any) -> str | None:
    """The name that Spark is given for a function, None for what is not written as a call."""
    from sqlglot import exp

    if called.key == "anonymous":
        return str(called.name).lower()
    match = _CALL.fullmatch(_sql(called)) if not isinstance(called, exp.Binary) else None
    return match[1].lower() if match is not None else None


def tried(tree: Any, now: str) -> str:
    """A condition, which this changes, as Spark's SQL: what may fail on a row is null, and `now` every clock in it."""
    # From the leaves up: what replaces a node holds its parts as they are by then.
    for node in reversed(list(tree.walk(bfs=False))):
        safe = _safe(node, now)
        if node is tree:
            tree = safe
        elif safe is not node:
            node.replace(safe)
    return _sql(tree)


def _safe(node: Any, now: str) -> Any:
    from sqlglot import exp

    if node.key in _SAFE_OPERATORS:
        return exp.Anonymous(this=_SAFE_OPERATORS[node.key], expressions=[node.this.copy(), node.expression.copy()])
    if node.key in ("mod", "intdiv"):
        zero = exp.EQ(this=exp.Paren(this=node.expression.copy()), expression=exp.Literal.number(0))
        return exp.Paren(this=exp.If(this=zero, true=exp.Null(), false=node.copy()))
    if node.key in ("cast", "trycast") and not isinstance(node.this, exp.Literal):
        # The parser takes both for one, and writes the strict one.
        return exp.Var(this=f"try_cast({_sql(node.this)} AS {_sql(node.args['to'])})")
    if node.key == "bracket" and _sql(node).startswith("ELEMENT_AT("):
        return exp.Var(this=f"try_{_sql(node)}")
    if node.key == "bracket" and _is_item(node):
        # Of a map with keys that are no texts, `element_at` is the way to a value.
        return exp.Var(this=f"get({_sql(node.this)}, {_sql(node.expressions[0])})")
    if isinstance(node, exp.TsOrDsToDate | exp.StrToTime | exp.StrToDate):
        return _read_time(node)
    if isinstance(node, exp.Func):
        name = function_name(node)
        if name in _CLOCKS:
            return exp.Var(this=now)
        if name in _DAYS:
            return exp.Var(this=f"CAST({now} AS DATE)")
        if name in _SAFE_NAMES and node.key == "anonymous":
            node.set("this", _SAFE_NAMES[name])
    return node


def _is_item(bracket: Any) -> bool:
    """Whether it may be an item of an array, by number, which ends the job where the array is too short."""
    indices = bracket.expressions
    return len(indices) == 1 and not indices[0].is_string and _sql(bracket).endswith("]")


def _read_time(node: Any) -> Any:
    """A date or time that a text says, null where it says none."""
    from sqlglot import exp

    written = _sql(node)
    call = re.fullmatch(r"(TO_DATE|TO_TIMESTAMP)\((.*)\)", written, re.DOTALL)
    if call is None:
        return node
    if call[1] == "TO_TIMESTAMP":
        return exp.Var(this=f"try_to_timestamp({call[2]})")
    if node.args.get("format") is None:
        return exp.Var(this=f"try_cast({_sql(node.this)} AS DATE)")
    return exp.Var(this=f"CAST(try_to_timestamp({call[2]}) AS DATE)")


def _sql(tree: Any) -> str:
    return str(tree.sql(dialect="spark", comments=False))


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"
