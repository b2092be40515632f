"""Writing files where this process can then move them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from databox_contracts.errors import PublicationError
from databox_contracts.spark.table_files import Layout

_TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"


def write_parquet(df: DataFrame, directory: Path, *, partition: str | None = None) -> None:
    """Add the rows to a directory of Parquet files, one job. Raises `PublicationError` where they went elsewhere."""
    _write(df, directory, "parquet", {}, [partition] if partition is not None else [])


def write_table(df: DataFrame, directory: Path, layout: Layout, *, flag: str | None = None) -> None:
    """As `write_parquet`, in the table's format and partitions, below directories of the column `flag` if there is one.

    The rows are those of the DataFrame as it stands: names, types and order are the caller's to have made the layout's.
    """
    partitions = [*([flag] if flag is not None else []), *layout.partition_by]
    _write(df, directory, layout.format, layout.options, partitions)


def _write(df: DataFrame, directory: Path, format: str, options: Mapping[str, str], partitions: Sequence[str]) -> None:
    writer = df.write.mode("append").format(format).options(**options)
    with _timestamps_in_microseconds(df.sparkSession):
        (writer.partitionBy(*partitions) if partitions else writer).save(str(directory))
    if not directory.is_dir():
        raise PublicationError(
            str(directory),
            "Spark wrote it on another file system than this process sees",
            hint="Put the tables on a file system that the publishing process and Spark share.",
        )


@contextmanager
def _timestamps_in_microseconds(spark: SparkSession) -> Iterator[None]:
    """INT96, Spark's default, has no minimum and maximum in the footers. The option touches nothing but writing."""
    before = spark.conf.get(_TIMESTAMPS)
    if before == "TIMESTAMP_MICROS":
        yield
        return
    spark.conf.set(_TIMESTAMPS, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(_TIMESTAMPS, str(before))
