"""Publishing to tables of Spark's catalog: the table stays, and its location moves from version to version."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from databox_contracts.errors import PublicationError, UnreadableTableError
from databox_contracts.spark.failures import SPARK_ERRORS, in_words, unreadable
from databox_contracts.spark.home_files import read_json, write_json
from databox_contracts.spark.linking import Base
from databox_contracts.spark.replacing import PublishMode
from databox_contracts.spark.storable import added, loose
from databox_contracts.spark.table_files import Layout, count_rows
from databox_contracts.spark.tables import TablePlace
from databox_contracts.spark.transactions import Change
from databox_contracts.spark.versions import KEEP_FOR, KEEP_VERSIONS, MANIFEST, PUBLISHED

_NAME: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class CatalogPlace:
    """A Parquet table `database.table` of the session's catalog, made by the first publish as an external one.

    The files of each version are in a hidden directory below `root/database`, and so are rows held back, in
    `quarantine`. Raises `PublicationError` for a name that is not two plain words.
    """

    table: str
    root: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", Path(self.root).absolute())
        parts = self.table.split(".")
        if len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
            raise PublicationError(self.table, "it is no name of a table in a database", hint="Name it database.table.")

    def __str__(self) -> str:
        return self.table

    @property
    def files(self) -> TablePlace:
        """The directories of the table's files."""
        return TablePlace(self.root, self.table.replace(".", "/"))

    @property
    def quarantine(self) -> Path:
        """Held rows, one directory `batch=…` per publish that held any."""
        return self.files.quarantine

    @property
    def quoted(self) -> str:
        """The name for SQL."""
        return ".".join(f"`{part}`" for part in self.table.split("."))


class CatalogTarget:
    """What a table of Spark's catalog does for a publish."""

    format = "Parquet"
    asks_spark = True

    def __init__(self, place: CatalogPlace, spark: SparkSession, mode: PublishMode) -> None:
        if mode != "overwrite":
            raise PublicationError(str(place), f"a catalog table is not published to with mode={mode!r}")
        self.place = place
        self.spark = spark
        self.home = place.files.home
        self.quarantine = place.quarantine

    def __str__(self) -> str:
        return str(self.place)

    def unwritable(self, schema: StructType) -> str | None:
        """None: what Parquet can hold is asked for every place."""
        return None

    def base(self) -> str | None:
        """The table's location: the name of our version, or the path of a table that somebody else made."""
        self.place.files.ensure_inside_root()
        found = describe(self.spark, self.place)
        if found is None:
            return None
        for refused, why, hint in _REFUSED:
            if refused(found):
                raise PublicationError(str(self), why, hint=hint)
        return self._version(found["Location"])

    def check_schema(self, schema: StructType) -> None:
        """A catalog takes new columns at the end, and nothing else, without the table being made anew."""
        if describe(self.spark, self.place) is None:
            return
        if added(self.spark.table(self.place.quoted).schema, schema) is None:
            raise PublicationError(
                str(self),
                "its columns are others than those to publish",
                hint="Keep them in their order and add new ones at the end; or drop the table, its files stay.",
            )

    def directory(self, version: str) -> Path:
        """One immutable directory per version."""
        return self.place.files.versions / version

    def ticket(self, version: str) -> str:
        """The version, which is the location's last part."""
        return version

    def is_committed(self, ticket: str) -> bool:
        """Whether the catalog's location is that version."""
        found = describe(self.spark, self.place)
        return found is not None and self._version(found["Location"]) == ticket

    def forget(self, ticket: str) -> None:
        """Nothing: there is no more than the files."""

    def commit(self, change: Change, ticket: str, facts: Mapping[str, Any]) -> str:
        """Move the table's location, or make the table. The new location's manifest has what is said of releases."""
        directory, schema = self.directory(ticket), change.schema
        write_json(directory / MANIFEST, {**facts, "releases": {**self._releases(), **change.releases}})
        location = str(directory).replace("\\", "\\\\").replace("'", "\\'")
        try:
            if facts["previous"] is None:
                self.spark.catalog.createTable(
                    self.place.quoted, path=str(directory), source="parquet", schema=loose(schema)
                )
            else:
                more = added(self.spark.table(self.place.quoted).schema, schema) or ()
                if more:
                    # Before the location moves: rows of the old version have nulls in them, which is true of them.
                    columns = ", ".join(f"{_quoted(field.name)} {_sql_type(field.dataType)}" for field in more)
                    self.spark.sql(f"ALTER TABLE {self.place.quoted} ADD COLUMNS ({columns})")
                self.spark.sql(f"ALTER TABLE {self.place.quoted} SET LOCATION '{location}'")
            self.spark.catalog.refreshTable(self.place.quoted)
        except SPARK_ERRORS as error:
            raise PublicationError(str(self), f"the catalog refused: {in_words(error)}") from error
        (directory / PUBLISHED).touch()
        self._retire(directory)
        return ticket

    def rows(self) -> DataFrame | None:
        """Never asked for: rows are not appended."""
        return None

    def partition_by(self) -> tuple[str, ...] | None:
        """None of its columns: a table with partitions is refused."""
        return () if describe(self.spark, self.place) is not None else None

    def beside(self) -> Base | None:
        """The files at the table's location, which a next version takes over."""
        found = describe(self.spark, self.place)
        if found is None:
            return None
        directory = Path(local_path(found["Location"]))
        layout = Layout("parquet", loose(self.spark.table(self.place.quoted).schema))
        return Base(self.spark, directory, layout, count_rows(self.spark, layout, directory))

    def released(self, batch: str) -> int:
        """What the manifest at the table's location says."""
        return int(self._releases().get(batch, 0))

    def _releases(self) -> dict[str, Any]:
        found = describe(self.spark, self.place)
        manifest = read_json(Path(local_path(found["Location"])) / MANIFEST) if found is not None else {}
        return dict(manifest.get("releases", {}))

    def _version(self, location: str) -> str:
        path = Path(local_path(location))
        return path.name if path.parent == self.place.files.versions else str(path)

    def _retire(self, current: Path) -> None:
        """Remove versions that are neither among the newest nor young enough for a reader to be still at them."""
        now = datetime.now(UTC).timestamp()
        seen = sorted(
            (version for version in self.place.files.versions.iterdir() if (version / PUBLISHED).exists()),
            key=lambda version: ((version / PUBLISHED).stat().st_mtime_ns, version.name),
        )
        for older, newer in pairwise(seen):
            superseded = (newer / PUBLISHED).stat().st_mtime
            spare = older != current and older not in seen[-KEEP_VERSIONS:]
            if spare and now - superseded > KEEP_FOR.total_seconds():
                shutil.rmtree(older, ignore_errors=True)


_REFUSED: Final = (
    (lambda found: found.get("Type") == "VIEW", "it is a view", "Name another table."),
    (
        lambda found: found.get("Provider", "").lower() != "parquet",
        "it is no Parquet table",
        "Name another table; Delta and Iceberg tables have places of their own.",
    ),
    (
        lambda found: found.get("Type") != "EXTERNAL",
        "it is a managed table, whose files Spark removes and replaces on its own",
        "Publish to a new table, or drop this one first.",
    ),
    (lambda found: "# Partition Information" in found, "it is partitioned", "Publish to a table without partitions."),
    (lambda found: int(found.get("Num Buckets", "0") or 0) > 0, "it has buckets", "Publish to a table without them."),
)
"""Catalog tables whose location must not be moved: when, why, and the way out."""


def describe(spark: SparkSession, place: CatalogPlace) -> dict[str, str] | None:
    """What the catalog says of the table, by the names of `DESCRIBE TABLE EXTENDED`; None without one.

    Raises `PublicationError` where the database is missing or the catalog does not answer.
    """
    database = place.quoted.split(".")[0]
    try:
        if not spark.catalog.databaseExists(database):
            raise PublicationError(str(place), f"there is no database {database}", hint="Create the database first.")
        if not spark.catalog.tableExists(place.quoted):
            return None
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {place.quoted}").collect()
    except SPARK_ERRORS as error:
        raise PublicationError(str(place), f"the catalog does not answer: {in_words(error)}") from error
    names = [row["col_name"] for row in rows]
    at = names.index("# Detailed Table Information") if "# Detailed Table Information" in names else 0
    found = {row["col_name"]: row["data_type"] or "" for row in rows[at:] if row["col_name"]}
    return found | ({"# Partition Information": ""} if "# Partition Information" in names[:at] else {})


def read_catalog(spark: SparkSession, place: CatalogPlace) -> DataFrame:
    """Open the version that the catalog names now; a publish that follows does not disturb the reader.

    Raises `UnreadableTableError` where there is no table or Spark cannot read it.
    """
    try:
        found = describe(spark, place)
    except PublicationError as error:
        raise UnreadableTableError(str(place), error.reason, hint=error.hint) from error
    if found is None:
        raise UnreadableTableError(str(place), "nothing was published there yet", hint="Materialize it first.")
    try:
        # Another session may have moved the location since this one last looked.
        spark.catalog.refreshTable(place.quoted)
        df = spark.table(place.quoted)
        df.schema  # noqa: B018  (over Connect a missing table is noticed only here)
    except SPARK_ERRORS as error:
        raise unreadable(str(place), error) from error
    return df


def local_path(location: str) -> str:
    """The path of a location as the catalog spells it."""
    return os.path.normpath(unquote(urlsplit(location).path)) if location.startswith("file:") else location


def _sql_type(kind: DataType) -> str:
    """A type for a statement. Spark's own short form neither quotes the fields of structs nor lists them all."""
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{_quoted(field.name)}: {_sql_type(field.dataType)}' for field in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_sql_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{_sql_type(kind.keyType)}, {_sql_type(kind.valueType)}>"
    return kind.simpleString()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
