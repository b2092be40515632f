"""Writing Parquet files where this process can then move them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from databox_contracts.errors import PublicationError

_TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"
_OPEN_FILES: Final = "spark.sql.maxConcurrentOutputFileWriters"
_FEW: Final = 4


def write_parquet(df: DataFrame, directory: Path, *, partition: str | None = None) -> None:
    """Add the rows to a directory of Parquet files, one job. Raises `PublicationError` where they went elsewhere.

    `partition` is the name of a column of few values.
    """
    writer = df.write.mode("append")
    # With a file open for each value, no task has to sort its rows by the value first.
    at_once = {_OPEN_FILES: str(_FEW)} if partition is not None else {}
    with _set_while_writing(df.sparkSession, {_TIMESTAMPS: "TIMESTAMP_MICROS", **at_once}):
        (writer.partitionBy(partition) if partition is not None else writer).parquet(str(directory))
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
