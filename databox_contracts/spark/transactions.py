"""Publishing where a table format or a catalog has the last word: stage, audit, move, one transaction."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from databox_contracts.errors import PublicationError
from databox_contracts.spark.batch_files import (
    MANIFEST,
    PUBLISHED,
    complete_rest,
    drop_older,
    mark_superseded,
    put_in_place,
)
from databox_contracts.spark.home_files import exclusive, read_json, write_json
from databox_contracts.spark.linking import Beside
from databox_contracts.spark.listed import directory_of, partition_of
from databox_contracts.spark.partitioning import Partition, Partitioning
from databox_contracts.spark.replacing import Request
from databox_contracts.spark.staging import Staged, leased
from databox_contracts.spark.table_files import Layout


@dataclass(frozen=True, slots=True)
class Change:
    """What a transaction does: `files` by the partition whose rows they have, and which partitions stay as they are.

    `directory` is the one that all the files are below, and `releases` says of each batch of held rows that rows of
    are among them how often rows of it have been released, this time included.
    """

    directory: Path
    files: Mapping[Path, Partition]
    schema: StructType
    partitioning: Partitioning
    stays: Callable[[str], bool]
    releases: Mapping[str, int]

    def keeps(self, partition: Partition) -> bool:
        """Whether what is in a partition stays there."""
        return self.stays(directory_of(self.partitioning.names, partition))


class Target(Protocol):
    """What one kind of table does for a publish; all of it is called by one process at a time."""

    @property
    def format(self) -> str:
        """What the rows are stored in, as it is called in messages."""

    @property
    def asks_spark(self) -> bool:
        """Whether nobody but Spark knows what readers see now."""

    @property
    def home(self) -> Path:
        """A directory for staging and locks, on the file system of the table's files."""

    @property
    def quarantine(self) -> Path:
        """Where batches of held rows are."""

    def unwritable(self, schema: StructType) -> str | None:
        """Why the format cannot hold the columns, None if it can."""

    def base(self) -> str | None:
        """What readers see now, None without a table. Raises `PublicationError` for one that cannot be published to."""

    def check_schema(self, schema: StructType) -> None:
        """Raises `PublicationError` where the table there cannot take rows with these columns."""

    def directory(self, version: str) -> Path:
        """Where the files of a version are to be; nothing is there yet."""

    def ticket(self, version: str) -> str:
        """What `is_committed` will know this transaction by."""

    def is_committed(self, ticket: str) -> bool:
        """Whether a transaction that was the last of ours to begin has taken place."""

    def forget(self, ticket: str) -> None:
        """Clear what a transaction, done or not, needed beside the files of the table."""

    def commit(self, change: Change, ticket: str, facts: Mapping[str, Any]) -> str:
        """Make the change and return what readers see now. Raises `PublicationError` where somebody else was faster."""

    def rows(self) -> DataFrame | None:
        """What readers see now, None without a table."""

    def partition_by(self) -> tuple[str, ...] | None:
        """The table's own partition columns, None without a table."""

    def beside(self) -> Beside | None:
        """The rows of now by partitions, None without a table."""

    def released(self, batch: str) -> int:
        """How often rows of a batch have been released, as the table itself says."""


class TransactionStore:
    """Stages a table, and commits it by one transaction of its format.

    The files are where the table wants them before the transaction names them, and a note in `home` says which; so a
    process killed at any point leaves the old table or the new one, and the next publish clears away what nobody names.
    """

    def __init__(self, target: Target, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.target = target
        self._now = now
        self._committed: dict[str, str] = {}

    @property
    def format(self) -> str:
        """What the rows are stored in, as it is called in messages."""
        return self.target.format

    @property
    def file_format(self) -> str:
        """Spark's name for what the files are written in."""
        return "parquet"

    def is_new(self) -> bool:
        """Whether there is no table yet."""
        return self.target.base() is None

    def unwritable(self, schema: StructType) -> str | None:
        """Why the format cannot hold the columns, None if it can."""
        return self.target.unwritable(schema)

    def check(self, schema: StructType | None) -> None:
        """Raises `PublicationError` where the table cannot take these columns, or none at all, before a write."""
        self.target.base()
        if schema is not None:
            self.target.check_schema(schema)

    def current_version(self) -> str | None:
        """What readers see now."""
        return self.target.base()

    def begin(self, staged: Staged, request: Request, layout: Layout) -> tuple[Layout, Beside | None, DataFrame | None]:
        """The layout of what is to be written, and what the rows come to, if they come to any.

        Raises `PublicationError` where the table has other partitions than are asked for.
        """
        own = self.target.partition_by()
        if own is not None and request.partition_by and request.partition_by != own:
            raise PublicationError(
                str(self.target),
                f"it is partitioned by {', '.join(own) or 'nothing'}, and the rows would be by"
                f" {', '.join(request.partition_by)}",
                hint="Leave partition_by out, or publish to a new table.",
            )
        layout = replace(layout, partition_by=request.partition_by or own or ())
        if request.mode == "overwrite":
            return layout, None, None
        if request.mode == "append" and not layout.partition_by:
            return layout, None, self.target.rows()
        beside = self.target.beside()
        return beside.layout if beside is not None else layout, beside, None

    def open(self, staged: Staged) -> Beside | None:
        """The table that held rows are released into, None where there is none."""
        return self.target.beside()

    def version_of(self, staged: Staged) -> str:
        """The version that a commit has made of what was staged."""
        return self._committed[staged.version]

    @contextmanager
    def stage(self) -> Iterator[Staged]:
        """A new staging directory, gone again when the block ends."""
        with leased(self.target.home / "staging", self._now(), self._locked, self._settled_base) as staged:
            yield staged

    def _settled_base(self) -> str | None:
        self._settle()
        return self.target.base()

    def commit(
        self,
        staged: Staged,
        manifest: Mapping[str, Any],
        schema: StructType,
        *,
        table: Mapping[str, Any] | None = None,
        stays: Callable[[str], bool] | None = None,
        replayed: Mapping[str, Mapping[str, Any] | None] | None = None,
    ) -> Path | None:
        """Make what was staged part of the table; returns the place of the held rows, None without any.

        Held rows are in their place before the transaction. `stays` says which partitions stay as they are; none do if
        it is not given. `replayed` are the names of batches whose rows were looked at again: each is replaced by what
        is in `staged.rest` under its name once the transaction has taken place. Raises `PublicationError`, with the
        table unchanged, when another writer got in between.
        """
        facts = {**manifest, "version": staged.version, "previous": staged.base}
        _only_data(staged.data)
        partitioning = Partitioning.of(schema, (table or {}).get("partition_by", ()), str(self.target))
        with self._locked():
            self._settle()
            if self.target.base() != staged.base:
                raise self.overtaken()
            ticket = self.target.ticket(staged.version)
            destination = self.target.directory(staged.version)
            batch = self.target.quarantine / f"batch={staged.version}" if staged.held.is_dir() else None
            releases = {name: self._release_number(name) for name in replayed or ()}
            self._write_note(staged, facts, replayed, ticket=ticket, data=str(destination), batch=str(batch or ""))
            try:
                if batch is not None:
                    write_json(staged.held / MANIFEST, facts)
                    batch.parent.mkdir(parents=True, exist_ok=True)
                    os.rename(staged.held, batch)
                destination.parent.mkdir(parents=True, exist_ok=True)
                os.rename(staged.data, destination)
                files = sorted(file for file in destination.rglob("*.parquet") if file.is_file())
                found = {file: partition_of(partitioning, file, destination) for file in files}
                change = Change(destination, found, schema, partitioning, stays or (lambda _: False), releases)
                self._committed[staged.version] = self.target.commit(change, ticket, facts)
            finally:
                # After an error too: whether it took place is asked of the table, not guessed. What cannot be asked
                # now is asked by the next publish.
                with suppress(Exception):
                    self._settle()
        return batch

    def replace_batches(self, staged: Staged, replayed: Mapping[str, Mapping[str, Any] | None]) -> None:
        """As `commit` does with `replayed`, where the table stays as it is."""
        with self._locked():
            self._settle()
            if self.target.base() != staged.base:
                raise self.overtaken()
            self._write_note(staged, {"run_id": None, "version": staged.version}, replayed, ticket=None)
            self._settle()

    def recover(self) -> None:
        """Finish or undo what a killed process had begun."""
        if any(self.target.home.glob("pending-*.json")):
            with self._locked():
                self._settle()

    def overtaken(self) -> PublicationError:
        """The error of the second of two writers."""
        return PublicationError(
            str(self.target),
            f"another writer finished first; version {self.target.base()} stays",
            hint="Run again, one publish at a time.",
        )

    # --- recovery -----------------------------------------------------------------------------------------------------

    def _note(self, version: str) -> Path:
        return self.target.home / f"pending-{version}.json"

    def _write_note(
        self,
        staged: Staged,
        facts: Mapping[str, Any],
        replayed: Mapping[str, Mapping[str, Any] | None] | None,
        *,
        ticket: str | None,
        data: str = "",
        batch: str = "",
    ) -> None:
        """Write down what is begun, and what is left to do once it has taken place. Without a ticket it has."""
        rest = self.target.home / f"replay-{staged.version}"
        stays: dict[str, bool] = {}
        if replayed:
            stays = complete_rest(staged.rest, replayed, self.target.quarantine)
            os.rename(staged.rest, rest)
        known = {name: facts[name] for name in ("run_id", "version", "replaced") if name in facts}
        write_json(
            self._note(staged.version),
            {"ticket": ticket, "data": data, "batch": batch, **known, "rest": str(rest), "batches": stays},
        )

    def _settle(self) -> None:
        """Finish or undo a transaction that was begun: the table itself says which."""
        for note in sorted(self.target.home.glob("pending-*.json")):
            facts = read_json(note)
            data, batch = facts.get("data", ""), facts.get("batch", "")
            if facts and (facts["ticket"] is None or self.target.is_committed(facts["ticket"])):
                if batch:
                    (Path(batch) / PUBLISHED).touch()
                for name, stays in facts.get("batches", {}).items():
                    rest = Path(facts["rest"], name) if stays else None
                    put_in_place(rest, self.target.quarantine / name, self.target.home / "staging")
                if facts["ticket"] is not None:
                    drop_older(self.target.quarantine, facts, keep=Path(batch) if batch else None)
                    mark_superseded(self.target.quarantine, facts)
            else:
                for left in filter(None, (data, batch)):
                    shutil.rmtree(left, ignore_errors=True)
            if facts and facts["ticket"] is not None:
                self.target.forget(facts["ticket"])
            note.unlink(missing_ok=True)
        for rest in sorted(self.target.home.glob("replay-*")):
            shutil.rmtree(rest, ignore_errors=True)

    def _release_number(self, batch: str) -> int:
        """The number of the next release of rows of a batch.

        Raises `PublicationError` where the table has had one that the batch knows nothing of: another would be twice.
        """
        known = len(read_json(self.target.quarantine / batch / MANIFEST).get("replays", ()))
        if self.target.released(batch) > known:
            raise PublicationError(
                str(self.target),
                f"rows of {batch} were released before, by a transaction after which the batch was not replaced",
                hint="Compare the batch with the table, and move it away.",
            )
        return known + 1

    def _locked(self) -> AbstractContextManager[None]:
        return exclusive(self.target.home / "lock", str(self.target))


def _only_data(directory: Path) -> None:
    """Leave the files that have rows: a format lists its files, and one without rows is only in the way."""
    for entry in sorted(directory.rglob("*")):
        if entry.is_dir():
            continue
        if not entry.name.endswith(".parquet") or pq.ParquetFile(entry).metadata.num_rows == 0:
            entry.unlink()
