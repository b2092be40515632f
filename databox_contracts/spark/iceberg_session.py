"""Publishing to Iceberg tables of a catalog of the Spark session, where Iceberg's runtime is configured."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession, functions as F
from pyspark.sql.types import StructType

from databox_contracts.errors import PublicationError, UnreadableTableError
from databox_contracts.spark.failures import SPARK_ERRORS, conditions, in_words, unreadable
from databox_contracts.spark.iceberg_types import STORABLE
from databox_contracts.spark.listed import directory_of
from databox_contracts.spark.partitioning import Partitioning
from databox_contracts.spark.replacing import PublishMode
from databox_contracts.spark.storable import added, loose, not_storable
from databox_contracts.spark.table_files import Layout, column
from databox_contracts.spark.transactions import Change

PUBLISHED_BY: Final = "databox_contracts.version"
_RELEASE: Final = "databox_contracts.release."
_NAME: Final = re.compile(r"\w+(?:\.\w+){2,}")


@dataclass(frozen=True, slots=True)
class SessionIcebergPlace:
    """An Iceberg table `catalog.namespace.table` that Spark itself knows; made by the first publish.

    Rows are staged and audited below `staging`, a directory that this process and Spark share; rows held back stay
    there. The session needs Iceberg's runtime and its SQL extensions. Raises `PublicationError` for a name of another
    form.
    """

    table: str
    staging: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "staging", Path(self.staging).absolute())
        if not _NAME.fullmatch(self.table):
            raise PublicationError(
                self.table, "it is no name of a table in a catalog", hint="Name it catalog.namespace.table."
            )

    def __str__(self) -> str:
        return self.table

    @property
    def quarantine(self) -> Path:
        """Held rows, one directory `batch=…` per publish that held any."""
        return self.staging / f"{self.table}.quarantine"


class SessionIcebergTarget:
    """What such a table does for a publish: what was audited is copied to a branch, and `main` moved forward to it.

    The move is the swap: it fails where `main` has got other rows since the branch was made. The DataFrame is executed
    once; the copy reads the staged files.
    """

    format = "Iceberg"
    asks_spark = True

    def __init__(self, place: SessionIcebergPlace, spark: SparkSession, mode: PublishMode) -> None:
        self.place = place
        self.spark = spark
        self.mode = mode
        self.home = place.staging / f".{place.table}.databox"
        self.quarantine = place.quarantine
        self.catalog, self.local_name = place.table.split(".", 1)

    def __str__(self) -> str:
        return str(self.place)

    def unwritable(self, schema: StructType) -> str | None:
        """Why Iceberg cannot hold the columns, None if it can."""
        return not_storable(schema, STORABLE, forbidden=".", name="Iceberg")

    def base(self) -> str | None:
        """The id of the snapshot that `main` is at."""
        if not self._exists():
            return None
        self.partition_by()
        return self._head("main") or "empty"

    def check_schema(self, schema: StructType) -> None:
        """The table's columns stay; others are added to it by whoever owns it."""
        if self._exists() and added(self.spark.table(self.place.table).schema, schema) != ():
            raise PublicationError(
                str(self),
                "its columns are others than those to publish",
                hint="Change the table by ALTER TABLE first, or publish to a new one.",
            )

    def directory(self, version: str) -> Path:
        """The audited files; they are copied from there."""
        return self.home / "audited" / version

    def ticket(self, version: str) -> str:
        """The name of the branch."""
        return "databox_" + re.sub(r"\W", "_", version)

    def is_committed(self, ticket: str) -> bool:
        """Whether `main` has come to the branch, or the table was made by it."""
        if not self._exists():
            return False
        head = self._head(ticket)
        if head is not None:
            found = self.spark.table(f"{self.place.table}.history").where(F.col("snapshot_id") == int(head))
            return bool(found.limit(1).collect())
        rows = self.spark.sql(f"SHOW TBLPROPERTIES {self.place.table}").collect()
        return ticket in [row[1] for row in rows if row[0] == PUBLISHED_BY]

    def forget(self, ticket: str) -> None:
        """Remove the branch, and the files that were copied."""
        shutil.rmtree(self.home / "audited", ignore_errors=True)
        if self._exists():
            self.spark.sql(f"ALTER TABLE {self.place.table} DROP BRANCH IF EXISTS `{ticket}`")

    def commit(self, change: Change, ticket: str, facts: Mapping[str, Any]) -> str:
        """Copy to the branch, compare and move."""
        names = change.partitioning.names
        layout = Layout("parquet", change.schema, names)
        audited = (
            layout.read(self.spark, change.directory) if change.files else self.spark.createDataFrame([], change.schema)
        )
        name = self.place.table
        with self._refusals():
            if facts["previous"] is None:
                maker = audited.writeTo(name).using("iceberg").tableProperty(PUBLISHED_BY, ticket)
                (maker.partitionedBy(*map(column, names)) if names else maker).create()
                return self.base() or "empty"
            if facts["previous"] == "empty":
                # A branch needs a snapshot to begin at.
                audited.limit(0).writeTo(name).append()
            self.spark.sql(f"ALTER TABLE {name} CREATE BRANCH `{ticket}`")
            writer = audited.writeTo(f"{name}.branch_{ticket}")
            for batch, number in sorted(change.releases.items()):
                writer = writer.option(f"snapshot-property.{_RELEASE}{batch}", str(number))
            replaced = self._replaced(change)
            if replaced is None:
                writer.append()
            else:
                writer.overwrite(replaced)
            if facts["previous"] not in ("empty", self._head("main")):
                raise self._overtaken()
            self.spark.sql(
                f"CALL {self.catalog}.system.fast_forward('{self.local_name}', 'main', '{ticket}')"
            ).collect()
        if self._head("main") != self._head(ticket):
            raise self._overtaken()
        return str(self._head("main"))

    def _replaced(self, change: Change) -> Column | None:
        """Which rows of now are removed, None if none are."""
        if self.mode == "overwrite":
            return F.lit(True)
        beside = self.beside() if self.mode == "overwrite_partitions" else None
        gone = [one for one in (beside.rows if beside is not None else {}) if not change.stays(one)]
        conditions = [in_partition(change.partitioning, one) for one in gone]
        return reduce(or_, conditions) if conditions else None

    def partition_by(self) -> tuple[str, ...] | None:
        """The columns that the table is partitioned by.

        Raises `PublicationError` where it is partitioned by something else than columns' own values.
        """
        if not self._exists():
            return None
        with self._refusals():
            rows = self.spark.sql(f"DESCRIBE TABLE {self.place.table}").collect()
        names = [row["col_name"] for row in rows]
        if "# Partitioning" in names:
            transform = rows[names.index("# Partitioning") + 1]["data_type"]
            raise PublicationError(
                str(self),
                f"the table is partitioned by {transform}, and only partitions by a column's own values are written",
                hint="Publish to a table that is partitioned by columns.",
            )
        if "# Partition Information" not in names:
            return ()
        found = names[names.index("# Partition Information") + 1 :]
        return tuple(name for name in found if name and not name.startswith("# "))

    def beside(self) -> SessionRows | None:
        """The rows that `main` is at."""
        rows, names = self.rows(), self.partition_by()
        if rows is None or names is None:
            return None
        layout = Layout("parquet", loose(rows.schema), names)
        values = [column(name).cast("string").alias(name) for name in names]
        counted = rows.groupBy(*values).count().collect()
        counts = {directory_of(names, tuple(row)[:-1]): int(row[-1]) for row in counted}
        # Without groups Spark counts no rows at all.
        return SessionRows(rows, layout, {inside: count for inside, count in sorted(counts.items()) if count})

    def released(self, batch: str) -> int:
        """What the snapshots that `main` has come from say."""
        if not self._exists():
            return 0
        with self._refusals():
            numbers = self.spark.table(f"{self.place.table}.snapshots").select(
                column("summary").getItem(f"{_RELEASE}{batch}").cast("int").alias("number")
            )
            found = numbers.agg(F.max("number")).collect()[0][0]
        return int(found or 0)

    def rows(self) -> DataFrame | None:
        """What readers see now, None without a table."""
        return read_session_iceberg(self.spark, self.place) if self._exists() else None

    def _exists(self) -> bool:
        with self._refusals():
            return self.spark.catalog.tableExists(self.place.table)

    def _head(self, branch: str) -> str | None:
        with self._refusals():
            refs = self.spark.table(f"{self.place.table}.refs").where(F.col("name") == branch)
            rows = refs.select("snapshot_id").collect()
        return str(rows[0][0]) if rows else None

    def _overtaken(self) -> PublicationError:
        return PublicationError(
            str(self), "another writer finished first; its snapshot stays", hint="Run again, one publish at a time."
        )

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except SPARK_ERRORS as error:
            if "not an ancestor" in str(error) or "CommitFailedException" in str(error):
                raise self._overtaken() from error
            if "SCHEMA_NOT_FOUND" in conditions(error):
                raise PublicationError(str(self), "there is no such namespace", hint="Create it first.") from error
            raise PublicationError(
                str(self),
                f"the catalog refused: {in_words(error)}",
                hint="The session needs Iceberg's runtime, its SQL extensions and this catalog.",
            ) from error


@dataclass(frozen=True, slots=True)
class SessionRows:
    """The rows of a snapshot by partitions."""

    table: DataFrame
    layout: Layout
    rows: Mapping[str, int]

    def read(self, directories: Iterable[str]) -> DataFrame:
        """The rows of some partitions."""
        partitioning = self.layout.partitioning("")
        if not partitioning.columns:
            return self.table
        conditions = [in_partition(partitioning, one) for one in directories]
        return self.table.where(reduce(or_, conditions) if conditions else F.lit(False))

    def link_into(self, target: Path, keep: Callable[[str], bool]) -> None:
        """Nothing: what stays is in the table."""


def in_partition(partitioning: Partitioning, directory: str) -> Column:
    """The condition that a row is of the partition."""
    condition = F.lit(True)
    for field, value in zip(partitioning.columns, partitioning.at(directory), strict=True):
        here = column(field.name)
        condition = condition & (here.isNull() if value is None else here == F.lit(value).cast(field.dataType))
    return condition


def read_session_iceberg(spark: SparkSession, place: SessionIcebergPlace) -> DataFrame:
    """Open the snapshot that `main` is at now; what is published later does not disturb the reader.

    Raises `UnreadableTableError` where there is no table or Spark cannot read it.
    """
    try:
        if not spark.catalog.tableExists(place.table):
            raise UnreadableTableError(str(place), "nothing was published there yet", hint="Materialize it first.")
        heads = spark.table(f"{place.table}.refs").where("name = 'main'").select("snapshot_id").collect()
        if not heads:
            return spark.table(place.table)
        return spark.read.option("snapshot-id", heads[0][0]).table(place.table)
    except SPARK_ERRORS as error:
        raise unreadable(str(place), error) from error
