"""Tables that a first contract is made for: opened by place or by name, in a session of the command's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from databox_contracts.errors import DataboxError
from databox_contracts.inferred import Inferred
from databox_contracts.spark.failures import SPARK_ERRORS, unreadable
from databox_contracts.spark.profiling import infer_with_guesses
from databox_contracts.spark.quiet import command_session
from databox_contracts.spark.reading import FORMATS, INFERRED, UNTYPED, guess_format, read_table, repeated_column


def profile_file(path: str, *, format: str | None, options: Mapping[str, str], master: str, **facts: Any) -> Inferred:
    """What `infer_with_guesses` makes of a file or a directory; `facts` are its further arguments.

    Raises `UnreadableTableError`, and `DataboxError` for a header with one name twice.
    """
    chosen = format or guess_format(path)

    def opened(spark: SparkSession) -> DataFrame:
        df = read_table(spark, path, format=chosen, options=options, formats=(*FORMATS, *INFERRED))
        twice = repeated_column(df, path, options) if chosen == "csv" else None
        if twice is not None:
            raise DataboxError(f"the header of {path!r} names the column {twice!r} twice", hint="Rename one of them.")
        return df

    return _profiled(opened, path, master, untyped=chosen in (*UNTYPED, *INFERRED), **facts)


def profile_table(name: str, *, master: str, **facts: Any) -> Inferred:
    """As `profile_file`, for a table or view of Spark's catalog."""
    return _profiled(lambda spark: spark.table(name), name, master, untyped=False, **facts)


def _profiled(open_: Callable[[SparkSession], DataFrame], place: str, master: str, **facts: Any) -> Inferred:
    with command_session(master) as spark:
        try:
            return infer_with_guesses(open_(spark), **facts)
        except SPARK_ERRORS as error:
            raise unreadable(place, error) from error
