"""Where the batches of a stream go: into a table, whole and once, or to a function of the user's."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from databox_contracts.errors import PublicationError
from databox_contracts.spark.home_files import read_json
from databox_contracts.spark.staging import Staged
from databox_contracts.spark.stream_columns import Growth
from databox_contracts.spark.stream_journal import Progress
from databox_contracts.spark.table_files import Layout, count_rows
from databox_contracts.spark.tables import TablePlace, read_published
from databox_contracts.spark.versions import KEEP_FOR, MANIFEST, PUBLISHED, VersionStore
from databox_contracts.spark.writing import write_parquet


class Sink(Protocol):
    """What takes the batches of a stream."""

    def stage(self) -> AbstractContextManager[Staged]:
        """A place to write one batch in."""
        ...

    def is_new(self) -> bool:
        """Whether there is no table yet; never so where there is none to be."""
        ...

    def prepare(self, valid: DataFrame, staged: Staged) -> None:
        """Make ready what was staged; `valid` are the rows in `staged.data`, if it is there at all."""
        ...

    def commit(self, staged: Staged, valid: DataFrame, batch: int, facts: dict[str, Any]) -> Path | None:
        """Hand on what was staged; returns the place of the held rows, None without any."""
        ...

    def has(self, progress: Progress, now: datetime) -> bool:
        """Whether a batch that was about to be handed on has arrived."""
        ...

    def current(self) -> str | None:
        """The version that readers see, None where there are no versions."""
        ...

    def version(self, staged: Staged) -> str | None:
        """The version that a staged batch becomes, None where there are no versions."""
        ...

    def held_in(self, staged: Staged, batch: int) -> Path | None:
        """Where the held rows of a batch go, None where they go nowhere."""
        ...


@dataclass(frozen=True, slots=True)
class TableSink:
    """A table that grows by one version with each batch: the files of the version before, linked, and the batch's own.

    Valid and held rows of a batch become visible together, by the rename that publishes a version. Where the table has
    columns that the stream has not, or lacks some, and `growth` allows it, the version records the columns of both: its
    older files have nothing of the new ones, and are read as if they had nulls.
    """

    place: TablePlace
    clock: Callable[[], datetime]
    growth: Growth

    def stage(self) -> AbstractContextManager[Staged]:
        """As `VersionStore.stage`."""
        return VersionStore(self.place, now=self.clock).stage()

    def prepare(self, valid: DataFrame, staged: Staged) -> None:
        """Link the files of the version before beside the new ones. Raises `PublicationError` for a partitioned table.

        The table has a file, and with it a schema, even where no row of the first batch is valid.
        """
        staged.data.mkdir(exist_ok=True)
        if self.place.link.exists():
            _link_files(self.place.link.resolve(), staged.data)
        if not any(staged.data.glob("*.parquet")):
            write_parquet(valid.sparkSession.createDataFrame([], valid.schema), staged.data)

    def commit(self, staged: Staged, valid: DataFrame, batch: int, facts: dict[str, Any]) -> Path | None:
        """Publish the version and the held rows. Raises `PublicationError` where somebody gave the table other columns
        than it can have.
        """
        columns = valid.schema.simpleString()
        table = self._table(staged, valid, columns)
        return VersionStore(self.place, now=self.clock).commit(staged, {**facts, "columns": columns}, table=table)

    def has(self, progress: Progress, now: datetime) -> bool:
        """Whether readers have seen the version that the batch was to become."""
        current = self.place.current_version()
        if progress.done or progress.version is None or current == progress.version:
            return True
        version = self.place.versions / progress.version
        if (version / PUBLISHED).exists():
            return True
        if current == progress.before:
            return False
        written = datetime.strptime(progress.version[1:22], "%Y%m%dT%H%M%S%f").replace(tzinfo=now.tzinfo)
        if now - written > KEEP_FOR:
            raise PublicationError(
                str(self.place.link),
                f"nobody knows any more whether batch {progress.batch} was published: the table has been replaced since"
                f" by {current}, and version {progress.version} is gone",
                hint="See whether its rows are in the table, and start with a new checkpoint.",
            )
        return False

    def current(self) -> str | None:
        """The version that readers see."""
        return self.place.current_version()

    def version(self, staged: Staged) -> str | None:
        """The staged one."""
        return staged.version

    def held_in(self, staged: Staged, batch: int) -> Path | None:
        """Among the table's other batches of held rows."""
        return self.place.quarantine / f"batch={staged.version}"

    def is_new(self) -> bool:
        """Whether neither a version nor a directory to adopt is there."""
        return not os.path.lexists(self.place.link)

    def check(self, spark: SparkSession, df: DataFrame) -> None:
        """Raises `PublicationError` where a table is there already that cannot take the columns."""
        if not self.is_new():
            self.growth.together(read_published(spark, self.place).schema, df.schema, str(self.place.link))

    def _table(self, staged: Staged, valid: DataFrame, columns: str) -> dict[str, Any] | None:
        """How the version's files are read, where not each of them says it."""
        if self.is_new():
            return None
        manifest = read_json(self.place.link.resolve() / MANIFEST)
        recorded = Layout.recorded(manifest)
        if recorded is None and manifest.get("columns") == columns:
            return None
        there = read_published(valid.sparkSession, self.place).schema
        schema = self.growth.together(there, valid.schema, str(self.place.link))
        if recorded is None and there.names == valid.schema.names:
            return None
        layout = Layout("parquet", schema)
        rows = sum(count_rows(valid.sparkSession, layout, staged.data).values())
        return {**layout.facts(), "rows": {"": rows}, "table_rows": rows}


def _link_files(source: Path, target: Path) -> None:
    for file in sorted(source.iterdir()):
        if file.is_dir():
            raise PublicationError(
                str(source), f"a stream cannot add to a table with directories: {file.name}", hint="Name another place."
            )
        # The sum that Hadoop keeps of a file is a hidden one beside it.
        if file.name.startswith(("_", ".")) and not file.name.endswith(".parquet.crc"):
            continue
        if not file.name.endswith((".parquet", ".parquet.crc")):
            raise PublicationError(
                str(source), f"a stream adds to Parquet tables, and there is {file.name}", hint="Name another place."
            )
        try:
            os.link(file, target / file.name)
        except OSError as error:
            # File systems that have no hard links, or refuse them to others than the owner.
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV):
                raise
            shutil.copy2(file, target / file.name)


@dataclass(frozen=True, slots=True)
class FunctionSink:
    """A function that takes the valid rows of a batch and its number; held rows go to a directory first.

    A batch comes again after a kill in the middle of it, with the same number and the same rows: the function has to
    know by the number what it has already taken.
    """

    call: Callable[[DataFrame, int], None]
    quarantine: Path | None
    stream: str
    work: Path

    @contextmanager
    def stage(self) -> Iterator[Staged]:
        """A directory beside the checkpoint."""
        directory = self.work / "staged"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        yield Staged(self.stream, directory, None)
        shutil.rmtree(directory, ignore_errors=True)

    def is_new(self) -> bool:
        """There is no table."""
        return False

    def prepare(self, valid: DataFrame, staged: Staged) -> None:
        """Nothing to do."""

    def commit(self, staged: Staged, valid: DataFrame, batch: int, facts: dict[str, Any]) -> Path | None:
        """Put the held rows in place of those of an earlier attempt, then call the function."""
        place = self.held_in(staged, batch)
        if place is not None:
            _replace(staged.held, place, facts)
        self.call(valid, batch)
        return place if place is not None and place.is_dir() else None

    def has(self, progress: Progress, now: datetime) -> bool:
        """Whether the function returned."""
        return progress.done

    def current(self) -> str | None:
        """There are no versions."""
        return None

    def version(self, staged: Staged) -> str | None:
        """There are no versions."""
        return None

    def held_in(self, staged: Staged, batch: int) -> Path | None:
        """A directory of the batch's own, always the same one."""
        return self.quarantine / f"batch={self.stream}-{batch:012}" if self.quarantine is not None else None


def _replace(held: Path, place: Path, facts: Mapping[str, Any]) -> None:
    shutil.rmtree(place, ignore_errors=True)
    if not held.is_dir():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    (held / MANIFEST).write_text(json.dumps(facts, indent=1, default=str), encoding="utf-8")
    (held / PUBLISHED).touch()
    # The staged batch may be on another file system; what has no final name is not read.
    partial = place.with_name(f"_{place.name}")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(held, partial)
    os.rename(partial, place)
