"""Publishing to Delta tables through the package `deltalake`; Spark needs no jar for it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from databox_contracts.errors import PublicationError, UnreadableTableError
from databox_contracts.spark.listed import Listed, ListedFile, read_files
from databox_contracts.spark.parquet_statistics import delta_statistics
from databox_contracts.spark.partitioning import Partition
from databox_contracts.spark.replacing import PublishMode
from databox_contracts.spark.storable import added, loose, not_storable
from databox_contracts.spark.table_files import Layout
from databox_contracts.spark.transactions import Change

if TYPE_CHECKING:
    from deltalake import DeltaTable

TYPES: Final = frozenset(
    [
        *("string", "boolean", "binary", "date", "timestamp", "timestamp_ntz"),
        *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    ]
)
APPLICATION: Final = "databox_contracts"
"""Under this name each of our transactions leaves its number in the table's log, and the facts of its publish."""
_INSTALL: Final = "Install it: pip install 'databox_contracts[delta]'."


@dataclass(frozen=True, slots=True)
class DeltaPlace:
    """A Delta table: the directory on a file system that this process and Spark share, made by the first publish.

    Rows held back are beside it, in `quarantine`. Needs the extra `delta`.
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).absolute())

    def __str__(self) -> str:
        return str(self.path)

    @property
    def quarantine(self) -> Path:
        """Held rows, one directory `batch=…` per publish that held any."""
        return self.path.with_name(f"{self.path.name}.quarantine")


class DeltaTarget:
    """What a Delta table does for a publish."""

    format = "Delta"
    asks_spark = False

    def __init__(self, place: DeltaPlace, spark: SparkSession, mode: PublishMode) -> None:
        self.place = place
        self.spark = spark
        self.mode = mode
        self.home = place.path.with_name(f".{place.path.name}.databox")
        self.quarantine = place.quarantine

    def __str__(self) -> str:
        return str(self.place)

    def unwritable(self, schema: StructType) -> str | None:
        """Why Delta cannot hold the columns, None if it can."""
        return not_storable(schema, TYPES, forbidden=" ,;{}()\n\t=", name="Delta")

    def base(self) -> str | None:
        """The table's version."""
        table = self._table()
        if table is None:
            return None
        reason = _unpublishable(table, self.mode)
        if reason is not None:
            raise PublicationError(str(self), reason, hint="Publish to another table, or rewrite this one without it.")
        return str(table.version())

    def check_schema(self, schema: StructType) -> None:
        """Rows come to others of the same columns; an overwrite of all of them brings its own."""
        table = self._table()
        if table is None:
            return
        published = schema_of(table)
        if self.mode != "overwrite" and added(published, schema) != ():
            wanted = "append" if self.mode == "append" else "publish"
            raise PublicationError(
                str(self),
                f"its columns are others than those to {wanted}",
                hint="Overwrite the table, or cast the rows.",
            )
        if "timestamp_ntz" in loose(schema).json() and "timestampNtz" not in (table.protocol().writer_features or ()):
            raise PublicationError(
                str(self),
                "its protocol has no timestamp without a zone",
                hint="Cast to timestamp, or give the table the feature timestampNtz.",
            )

    def directory(self, version: str) -> Path:
        """Below the table's root, where the log can name files."""
        return self.place.path / f"databox-{version}"

    def ticket(self, version: str) -> str:
        """The number of our next transaction, which the log keeps for good."""
        table = self._table()
        return str((table.transaction_version(APPLICATION) or 0) + 1 if table is not None else 1)

    def is_committed(self, ticket: str) -> bool:
        """Whether our last transaction in the log has that number."""
        table = self._table()
        return table is not None and str(table.transaction_version(APPLICATION)) == ticket

    def forget(self, ticket: str) -> None:
        """Nothing: there is no more than the files."""

    def commit(self, change: Change, ticket: str, facts: Mapping[str, Any]) -> str:
        """One Delta transaction; it is not tried again on a newer version, which nobody has audited."""
        from deltalake import CommitProperties, Schema, Transaction
        from deltalake.exceptions import DeltaError
        from deltalake.transaction import create_table_with_add_actions

        columns = Schema.from_json(loose(change.schema).json())
        names = list(change.partitioning.names)
        actions = [self._action(file, names, partition) for file, partition in change.files.items()]
        releases = [Transaction(_release(batch), number) for batch, number in sorted(change.releases.items())]
        properties = CommitProperties(
            custom_metadata={APPLICATION: json.dumps(dict(facts), default=str)},
            max_commit_retries=0,
            app_transactions=[Transaction(APPLICATION, int(ticket)), *releases],
        )
        table = self._table()
        try:
            if table is None:
                create_table_with_add_actions(
                    str(self.place.path),
                    columns,
                    actions,
                    mode="error",
                    partition_by=names,
                    commit_properties=properties,
                )
            elif str(table.version()) == facts["previous"]:
                # Removals are named where something stays; an overwrite removes all, and may bring other columns.
                removed = list(self._removals(table, change)) if self.mode == "overwrite_partitions" else []
                table.create_write_transaction(
                    [*actions, *removed],
                    "overwrite" if self.mode == "overwrite" else "append",
                    columns,
                    partition_by=names,
                    commit_properties=properties,
                )
            else:
                raise self._overtaken()
        except DeltaError as error:
            now = self._table()
            if now is not None and str(now.version()) != facts["previous"]:
                raise self._overtaken() from error
            raise PublicationError(str(self), f"deltalake refused the transaction ({type(error).__name__})") from error
        committed = self._table()
        assert committed is not None
        return str(committed.version())

    def partition_by(self) -> tuple[str, ...] | None:
        """The table's partition columns."""
        table = self._table()
        return tuple(table.metadata().partition_columns) if table is not None else None

    def beside(self) -> Listed | None:
        """The files of now."""
        table = self._table()
        return listed(self.spark, table, self.place.path) if table is not None else None

    def released(self, batch: str) -> int:
        """The number that the last release of the batch left in the log."""
        table = self._table()
        return (table.transaction_version(_release(batch)) or 0) if table is not None else 0

    def rows(self) -> DataFrame | None:
        """What readers see now, None without a table."""
        return None if self._table() is None else read_delta(self.spark, self.place)

    def _overtaken(self) -> PublicationError:
        return PublicationError(
            str(self), "another writer finished first; its version stays", hint="Run again, one publish at a time."
        )

    def _table(self) -> DeltaTable | None:
        path = self.place.path
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise PublicationError(str(path), "it is a link or a file", hint="Name another path, or move it away.")
        table = _open(path, lambda reason: PublicationError(str(path), reason, hint=_INSTALL))
        if table is None and path.is_dir():
            # Files that an unfinished transaction left below the root are no table of somebody else's.
            strangers = [entry.name for entry in sorted(path.iterdir()) if not entry.name.startswith("databox-v")]
            if strangers and strangers != ["_delta_log"]:
                raise PublicationError(
                    str(path), f"the directory is no Delta table, it holds {strangers[0]}", hint="Name another path."
                )
        return table

    def _action(self, file: Path, names: list[str], partition: Partition) -> Any:
        from deltalake.transaction import AddAction

        status = file.stat()
        return AddAction(
            path=file.relative_to(self.place.path).as_posix(),
            size=status.st_size,
            partition_values=dict(zip(names, partition, strict=True)),
            modification_time=status.st_mtime_ns // 1_000_000,
            data_change=True,
            stats=json.dumps(delta_statistics(file)),
        )

    def _removals(self, table: DeltaTable, change: Change) -> Iterator[Any]:
        from deltalake.transaction import RemoveAction

        names, now = change.partitioning.names, int(time.time() * 1000)
        for action in _actions(table):
            partition = _partition(action, names)
            if change.keeps(partition):
                continue
            path = unquote(action["path"])
            if not path.startswith("databox-v") and not _PLAIN_PATH.fullmatch(path):
                # Its name in the log may be spelled in more than one way, and only the right one removes it.
                raise PublicationError(
                    str(self),
                    "a partition to replace has a file that something else wrote, with unusual signs in its name",
                    hint='Publish the whole table once, with mode="overwrite".',
                )
            yield RemoveAction(path, True, now, action["size_bytes"], dict(zip(names, partition, strict=True)))


_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9_./=-]+")


def _release(batch: str) -> str:
    return f"{APPLICATION}.release.{batch}"


def read_delta(spark: SparkSession, place: DeltaPlace) -> DataFrame:
    """Open the table's version of now by the list of its files; what is published later does not disturb the reader.

    Raises `UnreadableTableError` where there is no table, or one with deletion vectors or renamed columns.
    """
    table = _open(place.path, lambda reason: UnreadableTableError(str(place), reason, hint=_INSTALL))
    if table is None:
        raise UnreadableTableError(str(place), "nothing was published there yet", hint="Materialize it first.")
    reason = _unlistable(table)
    if reason is not None:
        raise UnreadableTableError(str(place), reason, hint="Read it with a Spark that has the Delta jars.")
    found = listed(spark, table, place.path)
    return read_files(spark, found.layout, found.files)


def listed(spark: SparkSession, table: DeltaTable, path: Path) -> Listed:
    """The files of a Delta table's version."""
    layout = Layout("parquet", schema_of(table), tuple(table.metadata().partition_columns))
    files = []
    for action in _actions(table):
        at = _absolute(action["path"], path)
        rows = action.get("num_records")
        # A writer need not say how many rows a file has.
        known = pq.ParquetFile(at).metadata.num_rows if rows is None else int(rows)
        files.append(ListedFile(at, _partition(action, layout.partition_by), known))
    return Listed(spark, layout, tuple(files))


def _actions(table: DeltaTable) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=False)).to_pylist()
    return actions


def _partition(action: Mapping[str, Any], names: tuple[str, ...]) -> Partition:
    values = action.get("partition") or {}
    return tuple(_text(values[name]) for name in names)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def _absolute(path: str, root: Path) -> str:
    parts = urlsplit(path)
    return unquote(parts.path) if parts.scheme == "file" else str(root / unquote(path))


def schema_of(table: DeltaTable) -> StructType:
    """A Delta table's columns; the spelling of the log is Spark's own."""
    return loose(StructType.fromJson(json.loads(table.schema().to_json())))


def _open(path: Path, refuse: Callable[[str], Exception]) -> DeltaTable | None:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ImportError:
        raise refuse("the package deltalake is not installed") from None
    if not (path / "_delta_log").is_dir():
        return None
    try:
        return DeltaTable(str(path))
    except TableNotFoundError:
        return None
    except DeltaError as error:
        raise refuse(f"its log cannot be read ({type(error).__name__})") from error


def _unlistable(table: DeltaTable) -> str | None:
    """Why the files alone are not the table, None if they are."""
    configuration = table.metadata().configuration
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        return "it maps columns to other names"
    if "deletionVectors" in (table.protocol().reader_features or ()) and _deleted(table):
        return "it has deletion vectors"
    return None


def _deleted(table: DeltaTable) -> bool:
    return any(batch.num_rows for batch in table.deletion_vectors())


def _unpublishable(table: DeltaTable, mode: str) -> str | None:
    """Why a transaction of ours would break the table's own promises, None if it would not."""
    configuration = table.metadata().configuration
    reason = _unlistable(table) if mode != "overwrite" else None
    if reason is None and configuration.get("delta.columnMapping.mode", "none") != "none":
        reason = "it maps columns to other names"
    if reason is None and configuration.get("delta.appendOnly") == "true" and mode != "append":
        reason = "it takes appended rows only"
    constrained = next((key for key in sorted(configuration) if key.startswith("delta.constraints.")), None)
    if reason is None and constrained is not None:
        reason = f"it has {constrained}, which files that are already written cannot be held against"
    if reason is None:
        reason = next(_promises(table), None)
    return reason


_PROMISED_BY: Final = ("invariants", "generationExpression", "identity")


def _promises(table: DeltaTable) -> Iterator[str]:
    for field in json.loads(table.schema().to_json())["fields"]:
        if not field["nullable"]:
            yield f"its column {field['name']} takes no nulls"
        for key in sorted(field["metadata"]):
            if any(word in key for word in _PROMISED_BY):
                yield f"its column {field['name']} has {key}"
