"""Which store a place is published through, one row of a table for each kind of place."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from databox_contracts.errors import PublicationError
from databox_contracts.spark.catalog_publication import CatalogPlace, CatalogTarget, read_catalog
from databox_contracts.spark.delta_publication import DeltaPlace, DeltaTarget, read_delta
from databox_contracts.spark.home_files import read_json
from databox_contracts.spark.iceberg_publication import IcebergPlace, IcebergTarget, read_iceberg
from databox_contracts.spark.iceberg_session import SessionIcebergPlace, SessionIcebergTarget, read_session_iceberg
from databox_contracts.spark.linking import Beside, open_base, own_partitions
from databox_contracts.spark.replacing import Request
from databox_contracts.spark.staging import Staged
from databox_contracts.spark.table_files import Layout
from databox_contracts.spark.tables import TablePlace, read_published as read_directory
from databox_contracts.spark.transactions import Target, TransactionStore
from databox_contracts.spark.versions import MANIFEST, VersionStore

Place: TypeAlias = TablePlace | CatalogPlace | DeltaPlace | IcebergPlace | SessionIcebergPlace


class Store(Protocol):
    """Where a publish stages its rows, and what makes them the table."""

    @property
    def format(self) -> str:
        """What the rows are stored in, as it is called in messages."""

    @property
    def file_format(self) -> str:
        """Spark's name for what the files are written in."""

    def is_new(self) -> bool:
        """Whether nothing is published there yet."""

    def stage(self) -> AbstractContextManager[Staged]:
        """A directory to write in, gone again when the block ends."""

    def begin(self, staged: Staged, request: Request, layout: Layout) -> tuple[Layout, Beside | None, DataFrame | None]:
        """The layout of what is to be written, and what the rows come to: a table by partitions, or all of its rows.

        Raises `PublicationError` where the table has another format, other partitions or other columns.
        """

    def open(self, staged: Staged) -> Beside | None:
        """The table that held rows are released into, None where there is none."""

    def commit(
        self,
        staged: Staged,
        manifest: Mapping[str, Any],
        schema: StructType,
        *,
        table: Mapping[str, Any],
        stays: Callable[[str], bool] | None = None,
        replayed: Mapping[str, Mapping[str, Any] | None] | None = None,
    ) -> Path | None:
        """Make what was staged the table; returns the place of the held rows, None without any.

        `table` says how the files are read, for those whom nothing else tells, and `stays` which partitions are not
        replaced. `replayed` are the names of older batches whose rows were looked at again: each is replaced by what is
        in `staged.rest` under its name, which its manifest is given for, and gone where that is None.
        """

    def replace_batches(self, staged: Staged, replayed: Mapping[str, Mapping[str, Any] | None]) -> None:
        """As `commit` does with `replayed`, where the table stays as it is."""

    def unwritable(self, schema: StructType) -> str | None:
        """Why the format cannot hold the columns, None if it can."""

    def check(self, schema: StructType | None) -> None:
        """Raises `PublicationError` where the table cannot take these columns, or none at all, before a write."""

    def current_version(self) -> str | None:
        """What readers see now."""

    def version_of(self, staged: Staged) -> str:
        """The version that a commit has made of what was staged."""


class DirectoryStore:
    """The versions of a directory behind a link."""

    def __init__(self, place: TablePlace, spark: SparkSession, now: Callable[[], datetime]) -> None:
        self.place = place
        self.spark = spark
        self.file_format = place.format
        self.format = "Parquet" if place.format == "parquet" else place.format.upper()
        self.versions = VersionStore(place, now=now)
        self.stage = self.versions.stage

    def is_new(self) -> bool:
        """Whether neither a version nor a directory to adopt is there."""
        self.versions.recover_adoption()
        return not os.path.lexists(self.place.link)

    def begin(self, staged: Staged, request: Request, layout: Layout) -> tuple[Layout, Beside | None, DataFrame | None]:
        """The version that the next one takes files over from; an overwrite takes none, whatever is there."""
        if request.mode == "overwrite":
            return layout, None, None
        layout = replace(layout, partition_by=request.partition_by or own_partitions(self.versions, staged))
        layout.partitioning(str(self.place))
        base = open_base(self.spark, self.versions, staged, layout)
        return base.layout if base is not None else layout, base, None

    def open(self, staged: Staged) -> Beside | None:
        """The version that readers see."""
        directory = self.versions.base_directory(staged)
        if directory is None:
            return None
        recorded = Layout.recorded(read_json(directory / MANIFEST))
        # A stream's version, or a plain directory that stands where the table was.
        layout = recorded or Layout(self.place.format, read_directory(self.spark, self.place).schema)
        return open_base(self.spark, self.versions, staged, layout)

    def commit(
        self,
        staged: Staged,
        manifest: Mapping[str, Any],
        schema: StructType,
        *,
        table: Mapping[str, Any],
        stays: Callable[[str], bool] | None = None,
        replayed: Mapping[str, Mapping[str, Any] | None] | None = None,
    ) -> Path | None:
        """Swap the link. What stays is in the version already."""
        return self.versions.commit(staged, dict(manifest), table=table, replayed=replayed)

    def unwritable(self, schema: StructType) -> str | None:
        """None: what Parquet can hold is asked for every place."""
        return None

    def check(self, schema: StructType | None) -> None:
        """Raises `PublicationError` where the path would lead out of the root."""
        self.place.ensure_inside_root()

    def current_version(self) -> str | None:
        """The name of the version that the link leads to."""
        return self.place.current_version()

    def version_of(self, staged: Staged) -> str:
        """Its name, which it had from the beginning."""
        return staged.version

    def replace_batches(self, staged: Staged, replayed: Mapping[str, Mapping[str, Any] | None]) -> None:
        """Replace what was held by what stays held."""
        self.versions.replace_batches(staged, replayed)


_TARGETS: Final[dict[type, Callable[[Any, Any, Any], Target]]] = {
    CatalogPlace: CatalogTarget,
    DeltaPlace: DeltaTarget,
    IcebergPlace: IcebergTarget,
    SessionIcebergPlace: SessionIcebergTarget,
}


def open_store(place: Place, spark: SparkSession, mode: str, now: Callable[[], datetime]) -> Store:
    """The store of a place. Raises `PublicationError` for what is no place, and for a mode that it does not have."""
    if isinstance(place, TablePlace):
        return DirectoryStore(place, spark, now)
    return TransactionStore(_target(place, spark, mode), now=now)


def _target(place: Place, spark: SparkSession | None, mode: str) -> Target:
    target = _TARGETS.get(type(place))
    if target is None:
        raise PublicationError(repr(place), "it is no place of a table", hint=f"Use one of {', '.join(_names())}.")
    return target(place, spark, mode)


def open_to_release(place: Place, spark: SparkSession, now: Callable[[], datetime]) -> Store:
    """The store of a place that held rows are added to.

    A catalog table gets a new version, with the old one's files. A table of directories stays what it is, whatever the
    place says of the next version.
    """
    if isinstance(place, TablePlace):
        recorded = Layout.recorded(read_json(place.link.resolve() / MANIFEST))
        return DirectoryStore(replace(place, format=recorded.format) if recorded is not None else place, spark, now)
    return TransactionStore(target_to_release(place, spark), now=now)


def target_to_release(place: Place, spark: SparkSession | None) -> Target:
    """What `open_to_release` adds rows to; without Spark only what no session is asked for can be asked of it."""
    return _target(place, spark, "overwrite" if isinstance(place, CatalogPlace) else "append")


def table_name(place: Place) -> str:
    """What a table is called beside its root or its catalog."""
    return place.name if isinstance(place, TablePlace) else str(place)


_READERS: Final[dict[type, Callable[[SparkSession, Any], DataFrame]]] = {
    TablePlace: read_directory,
    CatalogPlace: read_catalog,
    DeltaPlace: read_delta,
    IcebergPlace: read_iceberg,
    SessionIcebergPlace: read_session_iceberg,
}


def read_published(spark: SparkSession, place: Place) -> DataFrame:
    """Open the version that is published now; a publish that follows does not disturb the reader.

    Raises `UnreadableTableError` where there is no table or Spark cannot read it.
    """
    return _READERS[type(place)](spark, place)


def _names() -> list[str]:
    return [TablePlace.__name__, *(kind.__name__ for kind in _TARGETS)]
