"""Publishing where a table format or a catalog has the last word: stage, audit, move, one transaction."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from databox_contracts.errors import PublicationError
from databox_contracts.spark.home_files import exclusive, read_json, write_json
from databox_contracts.spark.staging import Staged, leased
from databox_contracts.spark.versions import MANIFEST, PUBLISHED


class Target(Protocol):
    """What one kind of table does for a publish; all of it is called by one process at a time."""

    @property
    def format(self) -> str:
        """What the rows are stored in, as it is called in messages."""

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

    def commit(self, files: list[Path], schema: StructType, ticket: str, facts: Mapping[str, Any]) -> str:
        """Make the files the table (or add them) and return what readers see now.

        Raises `PublicationError` where somebody else was faster.
        """

    def rows(self) -> DataFrame | None:
        """What readers see now, None without a table."""


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

    def published_rows(self) -> DataFrame | None:
        """What readers see now, None without a table."""
        return self.target.rows()

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
        self, staged: Staged, manifest: Mapping[str, Any], schema: StructType, *, table: Mapping[str, Any] | None = None
    ) -> Path | None:
        """Make what was staged part of the table; returns the place of the held rows, None without any.

        Held rows are in their place before the transaction. Raises `PublicationError`, with the table unchanged, when
        another writer got in between.
        """
        facts = {**manifest, "version": staged.version, "previous": staged.base}
        _only_data(staged.data)
        with self._locked():
            self._settle()
            if self.target.base() != staged.base:
                raise self.overtaken()
            note = self._note(staged.version)
            ticket = self.target.ticket(staged.version)
            destination = self.target.directory(staged.version)
            batch = self.target.quarantine / f"batch={staged.version}" if staged.held.is_dir() else None
            write_json(
                note,
                {"ticket": ticket, "data": str(destination), "batch": str(batch or ""), "run_id": facts["run_id"]},
            )
            try:
                if batch is not None:
                    write_json(staged.held / MANIFEST, facts)
                    batch.parent.mkdir(parents=True, exist_ok=True)
                    os.rename(staged.held, batch)
                destination.parent.mkdir(parents=True, exist_ok=True)
                os.rename(staged.data, destination)
                files = sorted(destination.glob("*.parquet"))
                self._committed[staged.version] = self.target.commit(files, schema, ticket, facts)
            finally:
                # After an error too: whether it took place is asked of the table, not guessed. What cannot be asked
                # now is asked by the next publish.
                with suppress(Exception):
                    self._settle()
        return batch

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

    def _settle(self) -> None:
        """Finish or undo a transaction that was begun: the table itself says which."""
        for note in sorted(self.target.home.glob("pending-*.json")):
            facts = read_json(note)
            data, batch = facts.get("data", ""), facts.get("batch", "")
            if facts and self.target.is_committed(facts["ticket"]):
                if batch:
                    (Path(batch) / PUBLISHED).touch()
                self._drop_older_batches(facts["run_id"], keep=batch)
            else:
                for left in filter(None, (data, batch)):
                    shutil.rmtree(left, ignore_errors=True)
            if facts:
                self.target.forget(facts["ticket"])
            note.unlink(missing_ok=True)

    def _drop_older_batches(self, run_id: str, *, keep: str) -> None:
        # The same run published again, a retry: what it held before is held again.
        if not self.target.quarantine.is_dir():
            return
        for batch in sorted(self.target.quarantine.glob("batch=*")):
            if str(batch) != keep and read_json(batch / MANIFEST).get("run_id") == run_id:
                shutil.rmtree(batch, ignore_errors=True)

    def _locked(self) -> AbstractContextManager[None]:
        return exclusive(self.target.home / "lock", str(self.target))


def _only_data(directory: Path) -> None:
    """Leave the files that have rows: a format lists its files, and one without rows is only in the way."""
    for entry in sorted(directory.iterdir()):
        if not entry.name.endswith(".parquet") or pq.ParquetFile(entry).metadata.num_rows == 0:
            entry.unlink()
