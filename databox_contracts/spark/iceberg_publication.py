"""Publishing to Iceberg tables through the package `pyiceberg`; Spark needs no jar for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from databox_contracts.errors import DataboxError, PublicationError, UnreadableTableError
from databox_contracts.spark.iceberg_files import (
    data_files,
    listed_files,
    partition_columns,
    partition_spec,
    partition_texts,
)
from databox_contracts.spark.iceberg_types import STORABLE, iceberg_schema, iceberg_type, spark_schema
from databox_contracts.spark.listed import Listed, read_files
from databox_contracts.spark.replacing import PublishMode
from databox_contracts.spark.storable import added, not_storable
from databox_contracts.spark.table_files import Layout
from databox_contracts.spark.transactions import Change

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

PUBLISHED_BY: Final = "databox_contracts.version"
"""The table's property that names the last publish; the snapshot's has its facts."""
RELEASE: Final = "databox_contracts.release."
"""Before a batch's name, the table's property that says how often rows of it were released."""
_EMPTY: Final = "empty"
_NO_RETRIES: Final = {"commit.retry.num-retries": "0"}


@dataclass(frozen=True, slots=True, eq=False)
class IcebergPlace:
    """An Iceberg table `namespace.table` of a pyiceberg catalog, made by the first publish.

    Its files have to be on a file system that this process and Spark share: `location` is where a new table is to be,
    if not where the catalog would have it. Rows held back are beside it. Needs the extra `iceberg`.
    """

    catalog: Catalog
    name: str
    location: Path | None = None

    def __str__(self) -> str:
        return f"{self.catalog.name}.{self.name}"


def named_place(catalog: str, name: str) -> IcebergPlace:
    """A table of a catalog of that name, as pyiceberg's configuration has it (`.pyiceberg.yaml` or its variables).

    Raises `UnreadableTableError` where there is none that can be opened.
    """
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError:
        raise UnreadableTableError(
            name, "the package pyiceberg is not installed", hint="Install it: pip install 'databox_contracts[iceberg]'."
        ) from None
    try:
        return IcebergPlace(load_catalog(catalog), name)
    except Exception as error:
        # Whatever a catalog's own client raises; what it says may have an address with a password.
        raise UnreadableTableError(
            f"{catalog}.{name}",
            f"pyiceberg cannot open the catalog ({type(error).__name__})",
            hint="Describe it in .pyiceberg.yaml, or by PYICEBERG_CATALOG__NAME__URI and the like.",
        ) from None


class IcebergTarget:
    """What an Iceberg table does for a publish."""

    format = "Iceberg"
    asks_spark = False

    def __init__(self, place: IcebergPlace, spark: SparkSession, mode: PublishMode) -> None:
        self.place = place
        self.spark = spark
        self.mode = mode
        self.root = self._root()
        self.home = self.root.with_name(f".{self.root.name}.databox")
        self.quarantine = self.root.with_name(f"{self.root.name}.quarantine")

    def __str__(self) -> str:
        return str(self.place)

    def unwritable(self, schema: StructType) -> str | None:
        """Why Iceberg cannot hold the columns, None if it can."""
        # A dot in a name is a path in Iceberg's own index of columns.
        return not_storable(schema, STORABLE, forbidden=".", name="Iceberg")

    def base(self) -> str | None:
        """The id of the table's snapshot."""
        table = _load(self.place)
        if table is None:
            return None
        self._columns(table)
        if self.mode == "overwrite_partitions":
            reason = _unlistable(table, list(table.scan().plan_files()))
            if reason is not None:
                raise PublicationError(str(self), reason, hint='Publish the whole table once, with mode="overwrite".')
        return _snapshot(table)

    def check_schema(self, schema: StructType) -> None:
        """The table's columns stay; an overwrite may add others at the end."""
        table = _load(self.place)
        if table is None:
            return
        required = next((field.name for field in table.schema().fields if field.required), None)
        if required is not None:
            raise PublicationError(
                str(self), f"its column {required} takes no nulls", hint="Make it optional; a contract can require it."
            )
        more = added(schema_of(table), schema)
        if more is None or (more and self.mode != "overwrite"):
            raise PublicationError(
                str(self),
                "its columns are others than those to publish",
                hint="Keep them in their order and add new ones at the end, by an overwrite; or use a new table.",
            )

    def directory(self, version: str) -> Path:
        """Where Iceberg keeps data."""
        return self.root / "data" / f"databox-{version}"

    def ticket(self, version: str) -> str:
        """The version, which the table's properties name from then on."""
        return version

    def is_committed(self, ticket: str) -> bool:
        """Whether the table's properties name it."""
        table = _load(self.place)
        return table is not None and table.properties.get(PUBLISHED_BY) == ticket

    def forget(self, ticket: str) -> None:
        """Nothing: there is no more than the files."""

    def commit(self, change: Change, ticket: str, facts: Mapping[str, Any]) -> str:
        """One transaction of the catalog with one snapshot; it is not tried again on one that nobody has audited."""
        summary = {
            f"databox_contracts.{key}": str(value) for key, value in json.loads(json.dumps(facts, default=str)).items()
        }
        properties = {PUBLISHED_BY: ticket, **{f"{RELEASE}{name}": str(at) for name, at in change.releases.items()}}
        with self._refusals(facts["previous"]):
            table = _load(self.place)
            if table is None:
                new = self._new(change.schema, change.partitioning.names)
                self._add(new, change, summary)
                new.set_properties(properties)
                return _snapshot(new.commit_transaction())
            if _snapshot(table) != facts["previous"]:
                raise self._overtaken()
            # Of this copy alone: pyiceberg would bring the files to the table that another writer has made meanwhile.
            table.metadata.properties.update(_NO_RETRIES)
            with table.transaction() as transaction:
                more = added(schema_of(table), change.schema) or ()
                if more:
                    with transaction.update_schema() as update:
                        for field in more:
                            update.add_column(field.name, iceberg_type(field.dataType))
                self._add(transaction, change, summary, self._removed(table, change))
                transaction.set_properties(properties)
            return _snapshot(table.refresh())

    def _add(self, transaction: Any, change: Change, summary: dict[str, str], removed: Iterable[Any] = ()) -> None:
        from pyiceberg.table import TableProperties

        gone = list(removed)
        if not change.files and not gone:
            return
        if transaction.table_metadata.name_mapping() is None:
            # Spark wrote the files, which do not have Iceberg's numbers of the columns.
            names = transaction.table_metadata.schema().name_mapping.model_dump_json()
            transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: names})
        update = transaction.update_snapshot(snapshot_properties=summary)
        with update.overwrite() if gone else update.fast_append() as snapshot:
            for file in gone:
                snapshot.delete_data_file(file)
            for file in data_files(transaction.table_metadata, change.files, change.partitioning):
                snapshot.append_data_file(file)

    def _removed(self, table: Table, change: Change) -> Iterator[Any]:
        kinds = [column.dataType for column in change.partitioning.columns]
        for task in table.scan().plan_files() if self.mode != "append" else ():
            if self.mode == "overwrite" or not change.keeps(partition_texts(task.file, kinds)):
                yield task.file

    def partition_by(self) -> tuple[str, ...] | None:
        """The columns that the table is partitioned by."""
        table = _load(self.place)
        return self._columns(table) if table is not None else None

    def beside(self) -> Listed | None:
        """The files of now."""
        table = _load(self.place)
        return listed(self.spark, self.place, table) if table is not None else None

    def released(self, batch: str) -> int:
        """What the table's properties say."""
        table = _load(self.place)
        return int(table.properties.get(f"{RELEASE}{batch}", 0)) if table is not None else 0

    def _columns(self, table: Table) -> tuple[str, ...]:
        try:
            return partition_columns(table)
        except ValueError as error:
            raise PublicationError(
                str(self),
                f"the table is partitioned by {error}, and only partitions by a column's own values are written",
                hint="Publish to a table that is partitioned by columns, or use a SessionIcebergPlace.",
            ) from None

    def rows(self) -> DataFrame | None:
        """What readers see now, None without a table."""
        return None if _load(self.place) is None else read_iceberg(self.spark, self.place)

    def _root(self) -> Path:
        with self._refusals(None):
            table = _load(self.place)
            uri = table.location() if table is not None else self._new(StructType()).table_metadata.location
        parts = urlsplit(uri)
        if parts.scheme not in ("", "file"):
            raise PublicationError(
                str(self.place),
                f"its files are at {parts.scheme}://, where this process cannot move them",
                hint="Use a table whose files are on a file system that the publishing process and Spark share.",
            )
        return Path(unquote(parts.path))

    def _new(self, schema: StructType, partition_by: Iterable[str] = ()) -> Any:
        location = self.place.location.absolute().as_uri() if self.place.location is not None else None
        columns = iceberg_schema(schema)
        spec = partition_spec(columns, partition_by)
        return self.place.catalog.create_table_transaction(self.place.name, columns, location, spec)

    def _overtaken(self) -> PublicationError:
        return PublicationError(
            str(self), "another writer finished first; its snapshot stays", hint="Run again, one publish at a time."
        )

    @contextmanager
    def _refusals(self, previous: str | None) -> Iterator[None]:
        from pyiceberg import exceptions

        try:
            yield
        except DataboxError:
            raise
        except (exceptions.CommitFailedException, exceptions.TableAlreadyExistsError) as error:
            raise self._overtaken() from error
        except exceptions.ValidationException as error:
            # What pyiceberg calls it when an overwrite finds files that it did not know of.
            raise self._overtaken() from error
        except exceptions.NoSuchNamespaceError as error:
            raise PublicationError(
                str(self.place), "the catalog has no such namespace", hint="Create the namespace first."
            ) from error
        except (ValueError, NotImplementedError) as error:
            raise PublicationError(str(self.place), f"pyiceberg refused: {str(error).splitlines()[0][:200]}") from error


def read_iceberg(spark: SparkSession, place: IcebergPlace) -> DataFrame:
    """Open the table's snapshot of now by the list of its files; what is published later does not disturb the reader.

    Raises `UnreadableTableError` where there is no table, or one with deleted rows, partitions that are not columns, or
    columns that were renamed, dropped or changed in type: the files alone are not the table then.
    """
    table = _load(place)
    if table is None:
        raise UnreadableTableError(str(place), "nothing was published there yet", hint="Materialize it first.")
    found = listed(spark, place, table)
    return read_files(spark, found.layout, found.files)


def listed(spark: SparkSession, place: IcebergPlace, table: Table) -> Listed:
    """The files of a table's snapshot. Raises `UnreadableTableError` as `read_iceberg` does."""
    tasks = list(table.scan().plan_files())
    reason = _unlistable(table, tasks)
    if reason is not None:
        raise UnreadableTableError(str(place), reason, hint="Read it with a Spark that has Iceberg's runtime.")
    schema = schema_of(table)
    layout = Layout("parquet", schema, partition_columns(table))
    return Listed(spark, layout, listed_files(tasks, [schema[name].dataType for name in layout.partition_by]))


def schema_of(table: Table) -> StructType:
    """An Iceberg table's columns as Spark has them. Raises `UnreadableTableError` for a type that it does not have."""
    try:
        return spark_schema(table.schema())
    except ValueError as error:
        raise UnreadableTableError(
            ".".join(table.name()), f"it has a column of type {error}", hint="Leave it out, or change its type."
        ) from error


def _load(place: IcebergPlace) -> Table | None:
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return place.catalog.load_table(place.name)
    except NoSuchTableError:
        return None


def _snapshot(table: Table) -> str:
    current = table.current_snapshot()
    return str(current.snapshot_id) if current is not None else _EMPTY


def _unlistable(table: Table, tasks: list[Any]) -> str | None:
    """Why the files alone are not the table, None if they are."""
    try:
        partition_columns(table)
    except ValueError as error:
        return f"it is partitioned by {error}, which the list of its files does not tell"
    if any(task.file.spec_id != table.spec().spec_id for task in tasks):
        return "its partitions were changed, and it has files of the old ones"
    if any(task.delete_files for task in tasks):
        return "it has rows that are deleted without their files being written again"
    now = {field_id: _described(table.schema(), field_id) for field_id in table.schema().field_ids}
    for schema in table.schemas().values():
        for field_id in schema.field_ids:
            if now.get(field_id, "dropped") != _described(schema, field_id):
                return f"its column {schema.find_column_name(field_id)} was renamed, dropped or changed in type"
    return None


def _described(schema: Schema, field_id: int) -> tuple[str, str]:
    kind = schema.find_type(field_id)
    return str(schema.find_column_name(field_id)), str(kind) if kind.is_primitive else type(kind).__name__
