"""Publishing to Iceberg tables of a catalog of the Spark session, where Iceberg's runtime is configured."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.types import StructType

from databox_contracts.errors import PublicationError, UnreadableTableError
from databox_contracts.spark.failures import SPARK_ERRORS, conditions, in_words, unreadable
from databox_contracts.spark.iceberg_types import STORABLE
from databox_contracts.spark.storable import added, not_storable

PUBLISHED_BY: Final = "databox_contracts.version"
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

    def __init__(self, place: SessionIcebergPlace, spark: SparkSession, mode: Literal["overwrite", "append"]) -> None:
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
        return self._head("main") or "empty" if self._exists() else None

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

    def commit(self, files: list[Path], schema: StructType, ticket: str, facts: Mapping[str, Any]) -> str:
        """Copy to the branch, compare and move."""
        audited = (
            self.spark.read.schema(schema).parquet(*map(str, files))
            if files
            else self.spark.createDataFrame([], schema)
        )
        name = self.place.table
        with self._refusals():
            if facts["previous"] is None:
                audited.writeTo(name).using("iceberg").tableProperty(PUBLISHED_BY, ticket).create()
                return self.base() or "empty"
            if facts["previous"] == "empty":
                # A branch needs a snapshot to begin at.
                audited.limit(0).writeTo(name).append()
            self.spark.sql(f"ALTER TABLE {name} CREATE BRANCH `{ticket}`")
            writer = audited.writeTo(f"{name}.branch_{ticket}")
            if self.mode == "append":
                writer.append()
            else:
                writer.overwrite(F.lit(True))
            if facts["previous"] not in ("empty", self._head("main")):
                raise self._overtaken()
            self.spark.sql(
                f"CALL {self.catalog}.system.fast_forward('{self.local_name}', 'main', '{ticket}')"
            ).collect()
        if self._head("main") != self._head(ticket):
            raise self._overtaken()
        return str(self._head("main"))

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
