"""Writing files where this process can then move them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from databox_contracts.errors import PublicationError
from databox_contracts.spark.failures import SPARK_ERRORS
from databox_contracts.spark.table_files import Layout

_TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"
_OPEN_FILES: Final = "spark.sql.maxConcurrentOutputFileWriters"
_FEW: Final = 4


def write_parquet(df: DataFrame, directory: Path, *, partition: str | None = None) -> None:
    """Add the rows to a directory of Parquet files, one job. Raises `PublicationError` where they went elsewhere."""
    _write(df, directory, "parquet", {}, partition, [])


def write_table(df: DataFrame, directory: Path, layout: Layout, *, flag: str | None = None) -> None:
    """As `write_parquet`, in the table's format and partitions, below directories of the column `flag` if there is one.

    `flag` has few values. The rows are those of the DataFrame as it stands: names, types and order are the caller's to
    have made the layout's.
    """
    _write(df, directory, layout.format, layout.options, flag, layout.partition_by)


def _write(
    df: DataFrame,
    directory: Path,
    format: str,
    options: Mapping[str, str],
    flag: str | None,
    partition_by: Sequence[str],
) -> None:
    writer = df.write.mode("append").format(format).options(**options)
    partitions = [*([flag] if flag is not None else []), *partition_by]
    # With a file open for each value of a flag, no task has to sort its rows by the value first.
    at_once = {_OPEN_FILES: str(_FEW)} if flag is not None and not partition_by else {}
    try:
        with _set_while_writing(df.sparkSession, {_TIMESTAMPS: "TIMESTAMP_MICROS", **at_once}):
            (writer.partitionBy(*partitions) if partitions else writer).save(str(directory))
    except SPARK_ERRORS as error:
        if partition_by and "FileAlreadyExistsException" in str(error):
            # Null and the text that stands for it, which Spark writes to one file of one directory.
            raise PublicationError(
                str(directory),
                f"two values of {', '.join(partition_by)} would be one directory",
                hint="Replace empty texts and __HIVE_DEFAULT_PARTITION__ in partition columns.",
            ) from error
        raise
    if not directory.is_dir():
        raise PublicationError(
            str(directory),
            "Spark wrote it on another file system than this process sees",
            hint="Put the tables on a file system that the publishing process and Spark share.",
        )


@contextmanager
def _set_while_writing(spark: SparkSession, options: Mapping[str, str]) -> Iterator[None]:
    """Options that touch nothing but writing. INT96, Spark's default, has no minimum and maximum in the footers."""
    before = {key: spark.conf.get(key, None) for key in options}
    changed = {key: value for key, value in options.items() if before[key] != value}
    for key, value in changed.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in changed:
            old = before[key]
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
