"""Tables that are a list of files: which partition each is of, and how Spark reads them without the table's format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from databox_contracts.spark.partitioning import NULL_PARTITION, Partition, Partitioning
from databox_contracts.spark.table_files import Layout, column

_FILE: Final = "_databox file"
_VALUE: Final = "_databox value "


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A data file: where it is on this machine, the partition that the table says it is of, and its number of rows."""

    path: str
    partition: Partition
    rows: int


@dataclass(frozen=True, slots=True)
class Listed:
    """The files that readers see while the next version is made. The partitions are called as directories are."""

    spark: SparkSession
    layout: Layout
    files: tuple[ListedFile, ...]

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows by partition."""
        found: dict[str, int] = {}
        for file in self.files:
            inside = directory_of(self.layout.partition_by, file.partition)
            found[inside] = found.get(inside, 0) + file.rows
        return dict(sorted(found.items()))

    def read(self, directories: Iterable[str]) -> DataFrame:
        """The rows of some partitions."""
        wanted = set(directories)
        names = self.layout.partition_by
        return read_files(
            self.spark, self.layout, [one for one in self.files if directory_of(names, one.partition) in wanted]
        )

    def link_into(self, target: Path, keep: Callable[[str], bool]) -> None:
        """Nothing: what stays is named by the table and not by a directory."""


def directory_of(names: Iterable[str], partition: Partition) -> str:
    """What Spark would call the partition's directory; `Partitioning.at` reads it."""
    return "/".join(f"{quote(name)}={_directory(value)}" for name, value in zip(names, partition, strict=True))


def _directory(value: str | None) -> str:
    if value is None:
        return NULL_PARTITION
    # A text that happens to be the word for null is no null.
    return f"%5F{value[1:]}" if value == NULL_PARTITION else quote(value, safe="")


def partition_of(partitioning: Partitioning, file: Path, directory: Path) -> Partition:
    """The partition of a file that Spark wrote below the directory."""
    inside = file.parent.relative_to(directory).as_posix()
    return partitioning.at(inside) if partitioning.columns else ()


def read_files(spark: SparkSession, layout: Layout, files: Iterable[ListedFile]) -> DataFrame:
    """The rows of the files. What a partition's values are is the table's word: names of directories do not matter."""
    listed = sorted(files, key=lambda file: file.path)
    paths = [file.path for file in listed]
    if not paths:
        return spark.createDataFrame([], layout.schema)
    if not layout.partition_by:
        return spark.read.schema(layout.schema).parquet(*paths)
    texts = {name: f"{_VALUE}{at}" for at, name in enumerate(layout.partition_by)}
    values = spark.createDataFrame(
        [(file.path, *file.partition) for file in listed],
        f"path string, {', '.join(f'`{text}` string' for text in texts.values())}",
    )
    own = [field.name for field in layout.columns.fields]
    rows = spark.read.schema(layout.columns).parquet(*paths)
    rows = rows.select(*(column(name) for name in own), _local_path().alias(_FILE))
    # Left, so that a file which is not recognised is an error and not missing.
    joined = rows.join(F.broadcast(values), column(_FILE) == values["path"], "left")
    unknown = F.raise_error(F.lit("a file of the table was read that the table does not list"))
    return joined.select(
        *(
            F.when(column("path").isNull(), unknown)
            .otherwise(column(texts[field.name]))
            .cast(field.dataType)
            .alias(field.name)
            if field.name in texts
            else column(field.name)
            for field in layout.schema.fields
        )
    )


def _local_path() -> Column:
    # Spark's URL of a file; a plus sign in it is one.
    url = F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B"))
    return F.regexp_replace(F.url_decode(url), "^file:/+", "/")
