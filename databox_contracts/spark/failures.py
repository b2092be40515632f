"""Spark's own errors in one sentence; their full text quotes rows, so it never goes on."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

from databox_contracts.errors import UnreadableTableError
from databox_contracts.spark.compat import condition_of

SPARK_ERRORS: Final = (PySparkException, Py4JError)
"""What a Spark action may raise: over classic Spark, a failed task is a bare gateway error."""

_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]{3,})[.\]]")
_WORDS: Final = {
    "PATH_NOT_FOUND": "there is nothing",
    "UNABLE_TO_INFER_SCHEMA": "there are no data files",
    "MALFORMED_CSV_RECORD": "a row has too many or too few values",
    "MALFORMED_RECORD_IN_PARSING": "a row has too many or too few values",
    "TABLE_OR_VIEW_NOT_FOUND": "there is no such table or view",
    "CANNOT_READ_FILE_FOOTER": "a file in it is damaged or of another format",
    "FAILED_READ_FILE": "a file in it is damaged or of another format",
    "SESSION_CLOSED": "the Spark session was closed",
    "NO_ACTIVE_SESSION": "the Spark session was closed",
}


def conditions(error: BaseException) -> list[str]:
    """The names Spark gives to an error and its causes, such as `PATH_NOT_FOUND`, in the order they appear."""
    own = condition_of(error) if isinstance(error, PySparkException) else None
    return [*([own.split(".")[0]] if own else []), *_CONDITION.findall(str(error))]


def in_words(error: BaseException) -> str:
    """What is wrong with a query, without a value: the message of an analysis, else the name Spark gives to it."""
    if isinstance(error, AnalysisException):
        return str(error).strip().splitlines()[0][:300]
    found = conditions(error)
    return f"Spark says {found[0] if found else type(error).__name__}"


@contextmanager
def unlogged() -> Iterator[None]:
    """While it lasts PySpark does not log failed queries, which it does with the values that their messages quote."""
    logger = logging.getLogger("SQLQueryContextLogger")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def unreadable(path: str, error: BaseException) -> UnreadableTableError:
    """An error of Spark about a table, without what it quotes."""
    found = conditions(error)
    words = next((text for name, text in _WORDS.items() if name in found), None)
    reason = words or f"Spark says {found[0] if found else type(error).__name__}"
    return UnreadableTableError(path, reason, hint="Check the path, its format and the reader's options.")
