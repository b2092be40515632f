"""Opening tables that something else wrote: the format, its options, and errors in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeGuard

from pyspark.sql import DataFrame, SparkSession

from databox_contracts.errors import UnreadableTableError
from databox_contracts.spark.failures import SPARK_ERRORS, unreadable

FORMATS: Final = ("parquet", "orc", "csv")
UNTYPED: Final = ("csv",)
"""Formats whose values are text; the contract says what they mean."""

_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    # A row with too many or too few values must not pass with the rest of them dropped or null, which is what Spark
    # does by default and, when only some columns are read, in every mode.
    "csv": {"header": "true", "escape": '"', "mode": "FAILFAST", "columnPruning": "false", "inferSchema": "false"},
}
_ENDINGS: Final = {".parquet": "parquet", ".orc": "orc", ".csv": "csv", ".tsv": "csv"}
_COMPRESSIONS: Final = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")


def guess_format(path: str) -> str:
    """The format of a file by its ending, of a directory by the endings in it; Parquet where nothing tells."""
    name = Path(path)
    candidates = sorted(name.rglob("*")) if name.is_dir() else [name]
    for candidate in candidates:
        stem = candidate.name.lower()
        for compression in _COMPRESSIONS:
            stem = stem.removesuffix(compression)
        found = _ENDINGS.get(Path(stem).suffix)
        if found is not None and not stem.startswith((".", "_")):
            return found
    return "parquet"


def read_table(
    spark: SparkSession, path: str, *, format: str | None = None, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Open a table, text values of CSV as text. Raises `UnreadableTableError`."""
    chosen = format or guess_format(path)
    if chosen not in FORMATS:
        raise UnreadableTableError(path, f"unknown format {chosen!r}", hint=f"Use one of {', '.join(FORMATS)}.")
    try:
        df = spark.read.format(chosen).options(**{**_OPTIONS.get(chosen, {}), **(options or {})}).load(path)
        df.schema  # noqa: B018  (over Connect a missing table is noticed only here)
    except SPARK_ERRORS as error:
        raise unreadable(path, error) from error
    return df


def is_dataframe(value: object) -> TypeGuard[DataFrame]:
    """Whether it is a Spark DataFrame, of a classic session or over Connect."""
    return isinstance(value, DataFrame)
