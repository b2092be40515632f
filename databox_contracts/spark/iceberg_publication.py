"""Publishing to Iceberg tables through the package `pyiceberg`; Spark needs no jar for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from databox_contracts.errors import DataboxError, PublicationError, UnreadableTableError
from databox_contracts.spark.iceberg_types import STORABLE, iceberg_schema, iceberg_type, spark_schema
from databox_contracts.spark.storable import added, not_storable

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

PUBLISHED_BY: Final = "databox_contracts.version"
"""The table's property that names the last publish; the snapshot's has its facts."""
_EMPTY: Final = "empty"


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


class IcebergTarget:
    """What an Iceberg table does for a publish."""

    format = "Iceberg"

    def __init__(self, place: IcebergPlace, spark: SparkSession, mode: Literal["overwrite", "append"]) -> None:
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
        if not table.spec().is_unpartitioned():
            raise PublicationError(str(self), "the table is partitioned", hint="Publish to one without partitions.")
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
        if more is None or (more and self.mode == "append"):
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

    def commit(self, files: list[Path], schema: StructType, ticket: str, facts: Mapping[str, Any]) -> str:
        """One transaction of the catalog; on an overwrite readers never see its first step, the removal."""
        from pyiceberg.expressions import AlwaysTrue

        summary = {
            f"databox_contracts.{key}": str(value) for key, value in json.loads(json.dumps(facts, default=str)).items()
        }
        uris = [file.as_uri() for file in files]
        with self._refusals(facts["previous"]):
            table = _load(self.place)
            if table is None:
                new = self._new(schema)
                if uris:
                    new.add_files(uris, snapshot_properties=summary)
                new.set_properties({PUBLISHED_BY: ticket})
                return _snapshot(new.commit_transaction())
            if _snapshot(table) != facts["previous"]:
                raise self._overtaken()
            with table.transaction() as transaction:
                more = added(schema_of(table), schema) or ()
                if more:
                    with transaction.update_schema() as update:
                        for field in more:
                            update.add_column(field.name, iceberg_type(field.dataType))
                if self.mode == "overwrite" and table.current_snapshot() is not None:
                    transaction.delete(AlwaysTrue(), snapshot_properties=summary)
                if uris:
                    transaction.add_files(uris, snapshot_properties=summary)
                transaction.set_properties({PUBLISHED_BY: ticket})
            return _snapshot(table.refresh())

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

    def _new(self, schema: StructType) -> Any:
        location = self.place.location.absolute().as_uri() if self.place.location is not None else None
        return self.place.catalog.create_table_transaction(self.place.name, iceberg_schema(schema), location)

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

    Raises `UnreadableTableError` where there is no table, or one with partitions, deleted rows or columns that were
    renamed, dropped or changed in type: the files alone are not the table then.
    """
    table = _load(place)
    if table is None:
        raise UnreadableTableError(str(place), "nothing was published there yet", hint="Materialize it first.")
    tasks = list(table.scan().plan_files())
    reason = _unlistable(table, tasks)
    if reason is not None:
        raise UnreadableTableError(str(place), reason, hint="Read it with a Spark that has Iceberg's runtime.")
    schema = schema_of(table)
    if not tasks:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*sorted(_local(task.file.file_path) for task in tasks))


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


def _local(uri: str) -> str:
    return unquote(urlsplit(uri).path) if uri.startswith("file:") else uri


def _unlistable(table: Table, tasks: list[Any]) -> str | None:
    """Why the files alone are not the table, None if they are."""
    if not table.spec().is_unpartitioned():
        return "it is partitioned, and its files may not have the columns of the partitions"
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
