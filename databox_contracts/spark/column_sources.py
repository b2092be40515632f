"""Which column of which table a column was taken from: a mark that Spark hands on with it.

The mark is metadata of the column. Spark keeps it where a column is selected, renamed, joined or grouped by, and drops
it where something is computed of it, so what is still marked holds the values of just that column. Of a union, the
marks are those of the first side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql import functions as F

from databox_contracts.spark.sql_safety import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE: Final = "databox_contracts.source"

Sources: TypeAlias = "dict[str, tuple[tuple[str, ...], str]]"
"""The parts of the name of a table, and its column, by the name that the column has now."""


def marked(df: DataFrame, table: Sequence[str]) -> DataFrame:
    """The same rows, each column marked as that table's column of its name. Nothing is run."""
    return _told(df, [{**field.metadata, SOURCE: [*table, field.name]} for field in df.schema.fields])


def sources(df: DataFrame) -> Sources:
    """Where each column was taken from that is still marked."""
    marks = {field.name: field.metadata[SOURCE] for field in df.schema.fields if SOURCE in field.metadata}
    return {name: (tuple(mark[:-1]), mark[-1]) for name, mark in marks.items()}


def unmarked(df: DataFrame) -> DataFrame:
    """The same rows without marks, which would be written into files; other metadata of the columns stays."""
    fields = df.schema.fields
    if not any(SOURCE in field.metadata for field in fields):
        return df
    if len({field.name.lower() for field in fields}) < len(fields):
        # Which column a name means is for whoever publishes them to find out.
        return df
    kept = [{key: value for key, value in field.metadata.items() if key != SOURCE} for field in fields]
    return _told(df, kept)


def _told(df: DataFrame, metadata: Sequence[Mapping[str, Any]]) -> DataFrame:
    return df.select(
        *(F.col(quoted(name)).alias(name, metadata=dict(told)) for name, told in zip(df.columns, metadata, strict=True))
    )
