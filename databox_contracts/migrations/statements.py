"""SQL text -> its statements, each parsed on its own, with the place where it begins."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError, TokenError

from databox_contracts.errors import ContractError, DataboxError, Position

USUAL_DIALECT: Final = "spark"

MYSQL_FAMILY: Final = ("mysql", "doris", "starrocks", "singlestore")
"""The dialects that share MySQL's data definition."""

# What MySQL runs although it looks like a comment; settings of the session are no concern of a schema.
_RUN_COMMENT: Final = re.compile(r"/\*!\d*+\s*+(?!SET\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    """One statement: its tree, its text, and where it begins."""

    tree: exp.Expr
    text: str
    position: Position

    @property
    def shown(self) -> str:
        """Its beginning in one short line."""
        line = " ".join(self.text.split())
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


_LONGEST: Final = 60


def chosen_dialect(dialect: str | None) -> str:
    """The dialect by sqlglot's name, Spark's if None. Raises `DataboxError`, which lists the names there are."""
    chosen = (dialect or USUAL_DIALECT).lower()
    if chosen not in Dialect.classes:
        known = ", ".join(sorted(name for name in Dialect.classes if name))
        raise DataboxError(f"unknown SQL dialect {dialect!r}", hint=f"use one of: {known}")
    return chosen


def statements(sql: str, dialect: str, source: str) -> Iterator[Statement]:
    """The statements in their order.

    Raises `ContractError` with the line for what is no SQL of the dialect. A statement that is not known to sqlglot is
    an opaque command.
    """
    if dialect in MYSQL_FAMILY and (run := _RUN_COMMENT.search(sql)) is not None:
        line = sql.count("\n", 0, run.start()) + 1
        raise ContractError(
            "a comment that MySQL runs is not followed",
            hint="write the statement without /*! */",
            source=source,
            position=Position(line, run.start() - sql.rfind("\n", 0, run.start())),
        )
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    except TokenError as error:
        place = re.search(r"(\d+):\d+", str(error.__cause__))
        raise ContractError(
            "this is no SQL: a quote or a comment does not end",
            hint="check its quotes",
            source=source,
            position=Position(int(place[1]), 1) if place is not None else None,
        ) from None
    start: list[Any] = []
    for token in [*tokens, None]:
        if token is not None and not _ends_statement(token, dialect):
            start.append(token)
        elif start:
            yield _parsed(sql, start, dialect, source)
            start = []


def _ends_statement(token: Any, dialect: str) -> bool:
    # The tools of T-SQL take a line of its own, GO, for the end of a batch.
    return token.token_type.name == "SEMICOLON" or (dialect == "tsql" and token.text.upper() == "GO")


def _parsed(sql: str, tokens: list[Any], dialect: str, source: str) -> Statement:
    position = Position(tokens[0].line, max(tokens[0].col - (tokens[0].end - tokens[0].start), 1))
    text = _without_comments(sql, tokens)
    log = logging.getLogger("sqlglot")
    level = log.level
    # It would warn on the terminal of what it reads as an opaque command, which is an error here anyway.
    log.setLevel(logging.CRITICAL)
    try:
        tree = sqlglot.parse_one(text, read=dialect)
    except ParseError as error:
        found = error.errors[0] if error.errors else {}
        line = position.line + int(found.get("line") or 1) - 1
        message = str(found.get("description") or _first_line(error)).rstrip(".").lower()
        near = f" near {found['highlight'][:40]!r}" if found.get("highlight") else ""
        raise ContractError(
            f"this is no SQL of the dialect {dialect}: {message}{near}",
            hint="correct it, or name its dialect",
            source=source,
            position=Position(line, int(found.get("col") or 1)),
        ) from None
    except (SqlglotError, RecursionError, ValueError) as error:
        raise ContractError(
            f"this statement cannot be read: {_first_line(error)}",
            hint="simplify it",
            source=source,
            position=position,
        ) from None
    finally:
        log.setLevel(level)
    return Statement(tree, text, position)


# sqlglot trips over some that stand in a definition.
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/|#[^\n]*", re.DOTALL)


def _without_comments(sql: str, tokens: list[Any]) -> str:
    """The text of the tokens with blanks for what stands in comments between them, so that places stay the same."""
    parts = [sql[tokens[0].start : tokens[0].end + 1]]
    for before, token in pairwise(tokens):
        gap = sql[before.end + 1 : token.start]
        parts.append(_COMMENT.sub(lambda found: re.sub(r"\S", " ", found[0]), gap))
        parts.append(sql[token.start : token.end + 1])
    return "".join(parts)


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:120] if text else type(error).__name__
