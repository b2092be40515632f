"""Recent rows of whatever a table is given as: a place, a path, a name in the catalog, a DataFrame."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from pyspark.sql import DataFrame, functions as F

from databox_contracts.errors import UnreadableTableError
from databox_contracts.spark.failures import SPARK_ERRORS, unlogged, unreadable
from databox_contracts.spark.newest import DataFile, files_below, files_listed
from databox_contracts.spark.newest_rows import PLACE, Recent, as_positional, below, choose, limited, of_parquet
from databox_contracts.spark.reading import FORMATS, UNTYPED, guess_format, read_table
from databox_contracts.spark.tables import TablePlace

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def sample_place(spark: Any, place: TablePlace, *, rows: int, files: int) -> Recent:
    """Recent rows of a table that was published. Raises `UnreadableTableError`."""
    from databox_contracts.spark.versions import VersionStore

    VersionStore(place).recover_adoption()
    if not place.link.exists():
        raise UnreadableTableError(str(place.link), "nothing was published there yet", hint="Materialize it first.")
    return sample_path(spark, str(place.link.resolve()), rows=rows, files=files)


def sample_path(
    spark: Any,
    path: str,
    *,
    rows: int,
    files: int,
    format: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Recent:
    """Recent rows of a file or a directory. Raises `UnreadableTableError`."""
    local = _local(path)
    if local is None:
        chosen = format or guess_format(path)
        found = sample_frame(read_table(spark, path, format=chosen, options=options), rows=rows, files=files)
        return replace(found, untyped=chosen in UNTYPED)
    if not local.exists():
        raise UnreadableTableError(path, "there is nothing", hint="Check the path.")
    local = local.resolve()
    batches = files_below(local) if local.is_dir() else iter([[_file(str(local))]])
    first = next(batches, [])
    if not first:
        raise UnreadableTableError(path, "there are no data files", hint="Check the path and its format.")
    chosen = format or guess_format(first[0].path)
    if chosen not in FORMATS:
        raise UnreadableTableError(path, f"unknown format {chosen!r}", hint=f"Use one of {', '.join(FORMATS)}.")
    root = str(local if local.is_dir() else local.parent)
    choice = choose(chain([first], batches), root, rows, files, parquet=chosen == "parquet", shown=path)
    if chosen == "parquet":
        return of_parquet(spark, choice, path, rows)
    mark = f"place_{secrets.token_hex(4)}"
    settings = {**(options or {}), "basePath": root}
    parts = [
        read_table(spark, one.path, format=chosen, options=settings).withColumn(mark, F.lit(choice.shown(one)))
        for one in choice.files
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    rest = whole.drop(mark)
    ordered = whole.select(*(whole[f"`{name.replace('`', '``')}`"] for name in (*rest.columns, mark)))
    return replace(limited(as_positional(ordered), rest.schema, choice, rows), untyped=chosen in UNTYPED)


def sample_table(spark: Any, table: str, *, rows: int, files: int) -> Recent:
    """Recent rows of a table or view of the session's catalog. Raises `UnreadableTableError`."""
    try:
        df = spark.table(table)
        df.schema  # noqa: B018  (over Connect a missing table is noticed only here)
    except SPARK_ERRORS as error:
        raise unreadable(table, error) from error
    return sample_frame(df, rows=rows, files=files)


def sample_frame(df: DataFrame, *, rows: int, files: int) -> Recent:
    """Recent rows of a DataFrame: of its newest files where it says which file a row is from, else its first rows."""
    uris: list[str] = []
    try:
        with unlogged():
            df.select(F.col("_metadata.file_path")).schema  # noqa: B018
            uris = sorted(set(df.inputFiles()))
    except SPARK_ERRORS:
        # It is no plain table.
        pass
    if not uris:
        how = f"at most the first {rows} rows that Spark gives: it does not say which files they are from"
        first = df.coalesce(1).limit(rows).select("*", F.lit(None).cast("string").alias(PLACE))
        return Recent(as_positional(first), df.schema, how)
    listed = {_listed(uri): uri for uri in uris}
    root = _common_root([one.path for one in listed])
    # Footers tell how many rows there are at most: the DataFrame may leave some out.
    parquet = all(one.written is not None and one.name.endswith(".parquet") for one in listed)
    choice = choose(files_listed(list(listed), root), root, rows, files, parquet=parquet, shown=root)
    spelled = [spelling for one in choice.files for spelling in _spellings(listed[one])]
    uri = F.col("_metadata.file_path")
    return limited(as_positional(df.where(uri.isin(*spelled)).select("*", below(uri, root))), df.schema, choice, rows)


def _local(path: str) -> Path | None:
    """The path on this machine's file system, None for one elsewhere."""
    if path.startswith("file:"):
        return Path(re.sub("^file:/+", "/", path))
    return None if _SCHEME.match(path) else Path(path)


def _file(path: str) -> DataFile:
    facts = os.stat(path)
    return DataFile(path, facts.st_mtime_ns, facts.st_size)


def _listed(uri: str) -> DataFile:
    path = re.sub("^file:/+", "/", unquote(uri))
    try:
        return _file(path)
    except OSError:
        return DataFile(path)


def _spellings(uri: str) -> tuple[str, ...]:
    # Spark says `file:///` of a table's files and `file:/` of a row's.
    return tuple(re.sub("^file:/+", start, uri) for start in ("file:/", "file:///")) if uri[:5] == "file:" else (uri,)


def _common_root(paths: list[str]) -> str:
    """The directory that a table's files are below, without those of partitions."""
    split = [path.split("/")[:-1] for path in paths]
    same = 0
    while all(len(one) > same and one[same] == split[0][same] for one in split):
        same += 1
    parts = split[0][:same]
    ends = next((at for at, part in enumerate(parts) if "=" in part), len(parts))
    return "/".join(parts[:ends])
