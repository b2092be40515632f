"""Opening tables that something else wrote: the format, its options, and errors in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeGuard

from pyspark.sql import DataFrame, SparkSession

from databox_contracts.errors import UnreadableTableError
from databox_contracts.spark.failures import SPARK_ERRORS, conditions, unreadable

FORMATS: Final = ("parquet", "orc", "csv")
UNTYPED: Final = ("csv",)
"""Formats whose values are text; the contract says what they mean."""
INFERRED: Final = ("json",)
"""Formats whose types Spark finds by reading everything; for making a contract, not for holding data to one."""

_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    # A row with too many or too few values must not pass with the rest of them dropped or null, which is what Spark
    # does by default and, when only some columns are read, in every mode.
    "csv": {"header": "true", "escape": '"', "mode": "FAILFAST", "columnPruning": "false", "inferSchema": "false"},
    "json": {"mode": "FAILFAST"},
}
_ENDINGS: Final = {
    ".parquet": "parquet",
    ".orc": "orc",
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
}
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
    spark: SparkSession,
    path: str,
    *,
    format: str | None = None,
    options: Mapping[str, str] | None = None,
    formats: Sequence[str] = FORMATS,
) -> DataFrame:
    """Open a table of one of those `formats`, text values of CSV as text. Raises `UnreadableTableError`."""
    chosen = format or guess_format(path)
    if chosen not in formats:
        raise UnreadableTableError(path, f"unknown format {chosen!r}", hint=f"Use one of {', '.join(formats)}.")
    try:
        df = spark.read.format(chosen).options(**{**_OPTIONS.get(chosen, {}), **(options or {})}).load(path)
        df.schema  # noqa: B018  (over Connect a missing table is noticed only here)
    except SPARK_ERRORS as error:
        if chosen in INFERRED and any(name.startswith("MALFORMED") for name in conditions(error)):
            hint = f"Write valid {chosen.upper()}, a record a line, or give the option multiLine=true."
            raise UnreadableTableError(path, "a record in it is malformed", hint=hint) from error
        raise unreadable(path, error) from error
    return df


def repeated_column(df: DataFrame, path: str, options: Mapping[str, str]) -> str | None:
    """A name that the header of a CSV table says twice, or again in other case; Spark gives each of them a number.

    Looks at the first line only where the names leave a doubt. Errors of Spark pass through.
    """
    chosen = {**_OPTIONS["csv"], **options}
    stems = [name.removesuffix(str(at)).casefold() for at, name in enumerate(df.columns) if name.endswith(str(at))]
    if chosen["header"].lower() != "true" or len(set(stems)) == len(stems):
        return None
    lines = df.sparkSession.read.format("csv").options(**{**chosen, "header": "false"}).load(path).limit(1).collect()
    seen: set[str] = set()
    for name in lines[0] if lines else ():
        if name is not None and name.casefold() in seen:
            return str(name)
        seen.add(str(name).casefold())
    return None


def is_dataframe(value: object) -> TypeGuard[DataFrame]:
    """Whether it is a Spark DataFrame, of a classic session or over Connect."""
    return isinstance(value, DataFrame)
