"""Writing Parquet files where this process can then move them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from databox_contracts.errors import PublicationError

_TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"


def write_parquet(df: DataFrame, directory: Path, *, partition: str | None = None) -> None:
    """Add the rows to a directory of Parquet files, one job. Raises `PublicationError` where they went elsewhere."""
    writer = df.write.mode("append")
    with _timestamps_in_microseconds(df.sparkSession):
        (writer.partitionBy(partition) if partition is not None else writer).parquet(str(directory))
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
