"""What a new version takes over from the one before: which of its files stay, and hard links of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from databox_contracts.errors import PublicationError, UnreadableTableError
from databox_contracts.spark.home_files import read_json
from databox_contracts.spark.partitioning import Partitioning, data_files
from databox_contracts.spark.reading import read_table
from databox_contracts.spark.schema import type_text
from databox_contracts.spark.staging import Staged
from databox_contracts.spark.table_files import TEXT_FORMATS, Layout, count_rows
from databox_contracts.spark.versions import MANIFEST, VersionStore


class Beside(Protocol):
    """The rows of a table that a publish finds there, by partitions called as their directories are."""

    @property
    def layout(self) -> Layout:
        """Its columns and partitions."""

    @property
    def rows(self) -> Mapping[str, int]:
        """The number of rows by partition."""

    def read(self, directories: Iterable[str]) -> DataFrame:
        """The rows of some of its partitions."""

    def link_into(self, target: Path, keep: Callable[[str], bool]) -> None:
        """Bring the files of all partitions that are to be kept into the next version, where that is a directory."""


@dataclass(frozen=True, slots=True)
class Base:
    """The version that readers see while the next one is made, or the plain directory of a table to be adopted."""

    spark: SparkSession
    directory: Path
    layout: Layout
    rows: Mapping[str, int]

    def read(self, directories: Iterable[str]) -> DataFrame:
        """The rows of some of its partition directories; there has to be one."""
        return self.layout.read(self.spark, *(self.directory / one for one in directories), base=self.directory)

    def link_into(self, target: Path, keep: Callable[[str], bool]) -> None:
        """Hard links of the files in all directories that are to be kept, copies where there can be no links.

        Their checksums come along; a summary of all files would be one of the old ones and does not.
        """
        for inside, names in data_files(self.directory).items():
            if not keep(inside):
                continue
            (target / inside).mkdir(parents=True, exist_ok=True)
            for name in names:
                link(self.directory / inside / name, target / inside / name)
                checksum = self.directory / inside / f".{name}.crc"
                if checksum.exists():
                    link(checksum, target / inside / checksum.name)


def open_base(spark: SparkSession, store: VersionStore, staged: Staged, layout: Layout) -> Base | None:
    """What is there to be added to, or whose partitions are to be replaced; None where nothing was published.

    Raises `PublicationError` where it has another format, other partitions or other columns than the rows to publish.
    """
    directory = store.base_directory(staged)
    if directory is None:
        return None
    path = str(store.place.link)
    recorded = Layout.recorded(read_json(directory / MANIFEST))
    if recorded is None:
        recorded = _adopted(spark, directory, layout, path)
    if recorded.format != layout.format:
        raise PublicationError(
            path,
            f"its files are {recorded.format.upper()}, and the place says {layout.format.upper()}",
            hint='Publish the whole table once, with mode="overwrite".',
        )
    if recorded.partition_by != layout.partition_by:
        raise PublicationError(
            path,
            f"it is partitioned by {_named(recorded.partition_by)}, and the rows would be by"
            f" {_named(layout.partition_by)}",
            hint='Leave partition_by out, or publish the whole table once, with mode="overwrite".',
        )
    differing = difference(recorded.schema, layout.schema)
    if differing is not None:
        raise PublicationError(
            path,
            f"its columns are not those of the rows: {differing}",
            hint='Bring the rows to the table\'s columns, or publish the whole table once, with mode="overwrite".',
        )
    facts = read_json(directory / MANIFEST).get("table")
    rows = facts["rows"] if isinstance(facts, Mapping) else count_rows(spark, recorded, directory)
    return Base(spark, directory, recorded, rows)


def own_partitions(store: VersionStore, staged: Staged) -> tuple[str, ...]:
    """The partition columns of the table as it is, outermost first; none where nothing was published."""
    directory = store.base_directory(staged)
    if directory is None:
        return ()
    recorded = Layout.recorded(read_json(directory / MANIFEST))
    if recorded is not None:
        return recorded.partition_by
    first = next(iter(data_files(directory)), "")
    return tuple(unquote(part.partition("=")[0]) for part in first.split("/")) if first else ()


def link(source: Path, target: Path) -> None:
    """A second name for a file, or a copy where the file system has no such thing. Raises `OSError`."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        shutil.copy2(source, target)


def _adopted(spark: SparkSession, directory: Path, layout: Layout, path: str) -> Layout:
    """The layout of a directory that something else wrote: columns from its files, partitions from its directories."""
    if layout.format in TEXT_FORMATS:
        raise PublicationError(
            path,
            f"it was written by something else, and {layout.format.upper()} files do not say what their columns are",
            hint='Publish the whole table once, with mode="overwrite".',
        )
    files = data_files(directory)
    partitioning = Partitioning.of(layout.schema, layout.partition_by, path)
    for inside in files:
        if not partitioning.fits(inside):
            raise PublicationError(
                path,
                f"it is not partitioned by {_named(layout.partition_by)} everywhere",
                hint='Publish the whole table once, with mode="overwrite".',
            )
    if not files:
        return layout
    try:
        found = read_table(spark, str(directory), format=layout.format).schema
    except UnreadableTableError as error:
        raise PublicationError(path, f"the table that is there cannot be read: {error.reason}") from error
    own = [field for field in found.fields if field.name not in layout.partition_by]
    # What a directory's name says has no type of its own; it is read as the type of the rows to publish.
    partitions = [field for field in layout.schema.fields if field.name in layout.partition_by]
    return Layout(layout.format, StructType([*own, *partitions]), layout.partition_by)


def difference(there: StructType, new: StructType) -> str | None:
    """Why rows of the columns `new` are no rows of the table that is there, None if they are."""
    had, has = ({field.name: field.dataType for field in schema.fields} for schema in (there, new))
    for name in new.names:
        if name not in had:
            return f"the table has no {name}"
        if had[name].simpleString() != has[name].simpleString():
            return f"{name} is {type_text(had[name])} there and {type_text(has[name])} here"
    missing = [name for name in there.names if name not in has]
    return f"the rows have no {missing[0]}" if missing else None


def _named(columns: tuple[str, ...]) -> str:
    return ", ".join(columns) or "nothing"
