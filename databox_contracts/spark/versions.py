"""A table's versions on a local file system: staging, the swap of one link, recovery after a kill, retention."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from databox_contracts.errors import PublicationError
from databox_contracts.spark.batch_files import (
    MANIFEST as MANIFEST,
    PUBLISHED as PUBLISHED,
    SUPERSEDED as SUPERSEDED,
    batches,
    complete_rest,
    drop_older,
    mark_superseded,
    put_in_place,
)
from databox_contracts.spark.home_files import exclusive, read_json, write_json
from databox_contracts.spark.staging import Staged, leased
from databox_contracts.spark.tables import TablePlace

KEEP_VERSIONS: Final = 2
KEEP_FOR: Final = timedelta(hours=24)


class VersionStore:
    """The versions of one table.

    A version is complete before the link names it, so a process killed at any point leaves the old version or the
    new one. What it leaves behind is cleared by the next publish.
    """

    def __init__(self, place: TablePlace, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.place = place
        self._now = now

    @contextmanager
    def stage(self) -> Iterator[Staged]:
        """A new staging directory, gone again when the block ends.

        Raises `PublicationError` where the table's path holds something that is not a table of ours or of Spark's.
        """
        self.place.ensure_inside_root()
        self.place.versions.mkdir(parents=True, exist_ok=True)
        with leased(self.place.staging, self._now(), self._locked, self._recovered_base) as staged:
            yield staged

    def _recovered_base(self) -> str | None:
        self._recover()
        return self._base()

    def commit(
        self,
        staged: Staged,
        manifest: dict[str, Any],
        *,
        table: Mapping[str, Any] | None = None,
        replayed: Mapping[str, Mapping[str, Any] | None] | None = None,
    ) -> Path | None:
        """Make what was staged the published version; returns the place of the held rows, None without any.

        `manifest` is what version and held rows have in common, `table` is how the version's files are read.
        Held rows are in their place before the link changes. `replayed` are the names of older batches whose rows were
        looked at again: each is replaced by what is in `staged.rest` under its name, which its manifest is given for,
        and gone where that is None. Raises `PublicationError`, with the table unchanged, when another publish got in
        between.
        """
        facts = {**manifest, "version": staged.version, "previous": staged.base}
        write_json(staged.data / MANIFEST, {**facts, "table": table} if table is not None else facts)
        with self._locked():
            self._require_base(staged)
            batch = self._commit_batch(staged, facts)
            if replayed:
                self._announce_replay(staged, replayed, version=staged.version)
            os.rename(staged.data, self.place.versions / staged.version)
            self._adopt_directory()
            self._point_to(staged.version)
            self._journal.unlink(missing_ok=True)
            self._mark_published(staged.version)
            self._finish_replay()
            drop_older(self.place.quarantine, facts, keep=batch)
            mark_superseded(self.place.quarantine, facts)
            self._retire()
        return batch

    def replace_batches(self, staged: Staged, replayed: Mapping[str, Mapping[str, Any] | None]) -> None:
        """As `commit` does with `replayed`, where the table stays as it is."""
        with self._locked():
            self._require_base(staged)
            self._announce_replay(staged, replayed, version=None)
            self._finish_replay()

    def base_directory(self, staged: Staged) -> Path | None:
        """Where the table is that this publish started from, None where there was none."""
        if staged.base is None:
            return None
        version = self.place.versions / staged.base
        return version if version.is_dir() else self.place.link

    def recover_adoption(self) -> None:
        """Give a table its path back whose adoption was cut off between two renames."""
        if not self._journal.exists():
            return
        with self._locked():
            self._finish_adoption()

    def recover_replay(self) -> None:
        """Finish a replay whose released rows readers see, or forget one whose rows nobody saw."""
        if not self._replay_journal.exists():
            return
        with self._locked():
            self._finish_adoption()
            self._finish_replay()

    # --- the link -----------------------------------------------------------------------------------------------------

    def _require_base(self, staged: Staged) -> None:
        if self._base() != staged.base:
            raise PublicationError(
                str(self.place.link),
                f"another publish finished first; version {self.place.current_version()} stays",
                hint="Run again, one publish at a time.",
            )

    def _base(self) -> str | None:
        link = self.place.link
        if link.is_symlink():
            if not self.place.owns(os.readlink(link)):
                raise PublicationError(str(link), "it is a link that leads elsewhere", hint="Move it away first.")
            return self.place.current_version()
        if link.is_dir():
            stranger = _stranger(link, self.place.format)
            if stranger is not None:
                called = _CALLED.get(self.place.format, self.place.format.upper())
                raise PublicationError(
                    str(link),
                    f"the directory is no {called} table, it holds {stranger}",
                    hint="Name another path, or move the directory away.",
                )
            return f"directory-{link.stat().st_ino}"
        if link.exists():
            raise PublicationError(str(link), "it is a file", hint="Name another path, or move the file away.")
        return None

    def _point_to(self, version: str) -> None:
        link = self.place.link
        fresh = self.place.home / f"link-{version}"
        fresh.symlink_to(Path(self.place.home.name, "versions", version))
        os.replace(fresh, link)
        _sync(link.parent)

    def _adopt_directory(self) -> None:
        """Move a table that was a plain directory among the versions; the journal says what a kill leaves undone."""
        link = self.place.link
        if link.is_symlink() or not link.is_dir():
            return
        adopted = f"adopted-{secrets.token_hex(4)}"
        write_json(self._journal, {"version": adopted})
        os.rename(link, self.place.versions / adopted)
        self._mark_published(adopted)

    @property
    def _journal(self) -> Path:
        return self.place.home / "adoption.json"

    def _finish_adoption(self) -> None:
        if not self._journal.exists():
            return
        if not os.path.lexists(self.place.link):
            adopted = read_json(self._journal).get("version", "")
            if (self.place.versions / adopted).is_dir():
                self._point_to(adopted)
                self._mark_published(adopted)
        self._journal.unlink(missing_ok=True)

    # --- held rows ----------------------------------------------------------------------------------------------------

    def _commit_batch(self, staged: Staged, facts: dict[str, Any]) -> Path | None:
        if not staged.held.is_dir():
            return None
        write_json(staged.held / MANIFEST, facts)
        self.place.quarantine.mkdir(exist_ok=True)
        batch = self.place.quarantine / f"batch={staged.version}"
        os.rename(staged.held, batch)
        return batch

    # --- held rows that are released ----------------------------------------------------------------------------------

    @property
    def _replay_journal(self) -> Path:
        return self.place.home / "replay.json"

    def _announce_replay(
        self, staged: Staged, replayed: Mapping[str, Mapping[str, Any] | None], *, version: str | None
    ) -> None:
        """Write down which batches are replaced, and what by, once that version is the one that readers see.

        Without a version they are from now on.
        """
        stays = complete_rest(staged.rest, replayed, self.place.quarantine)
        rest = self.place.home / f"replay-{staged.version}"
        os.rename(staged.rest, rest)
        write_json(self._replay_journal, {"version": version, "rest": rest.name, "batches": stays})

    def _finish_replay(self) -> None:
        journal = read_json(self._replay_journal)
        if journal and journal["version"] in (None, self.place.current_version()):
            for name, stays in journal["batches"].items():
                rest = self.place.home / journal["rest"] / name if stays else None
                put_in_place(rest, self.place.quarantine / name, self.place.staging)
        self._replay_journal.unlink(missing_ok=True)
        for rest in sorted(self.place.home.glob("replay-*")):
            shutil.rmtree(rest, ignore_errors=True)

    # --- recovery and retention ---------------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Clear what killed processes left: versions nobody ever saw, and the rows held for those."""
        self._finish_adoption()
        for fresh in sorted((*self.place.home.glob("link-*"), *self.place.home.glob("*.json.part"))):
            fresh.unlink(missing_ok=True)
        current = self.place.current_version()
        if current is not None:
            self._mark_published(current)
            mark_superseded(self.place.quarantine, read_json(self.place.versions / current / MANIFEST))
        self._finish_replay()
        for written in (*sorted(self.place.versions.iterdir()), *batches(self.place.quarantine)):
            if not (written / PUBLISHED).exists():
                shutil.rmtree(written, ignore_errors=True)

    def _mark_published(self, version: str) -> None:
        for written in (self.place.versions / version, self.place.quarantine / f"batch={version}"):
            marker = written / PUBLISHED
            if written.is_dir() and not marker.exists():
                marker.touch()

    def _retire(self) -> None:
        """Remove versions that are neither among the newest nor young enough for a reader to be still at them."""
        now = self._now().timestamp()
        current = self.place.current_version()
        seen = sorted(
            (version for version in self.place.versions.iterdir() if (version / PUBLISHED).exists()),
            key=lambda version: ((version / PUBLISHED).stat().st_mtime_ns, version.name),
        )
        for older, newer in pairwise(seen):
            superseded = (newer / PUBLISHED).stat().st_mtime
            spare = older.name != current and older not in seen[-KEEP_VERSIONS:]
            if spare and now - superseded > KEEP_FOR.total_seconds():
                shutil.rmtree(older, ignore_errors=True)

    def _locked(self) -> AbstractContextManager[None]:
        return exclusive(self.place.home / "lock", str(self.place.link))


_CALLED: Final = {"parquet": "Parquet"}
_COMPRESSIONS: Final = (".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate")


def _stranger(directory: Path, format: str) -> str | None:
    """The first thing in a directory that a table of that format does not hold, None if there is none."""
    endings = (f".{format}", *(f".{format}{compression}" for compression in _COMPRESSIONS), ".crc")
    for entry in sorted(directory.iterdir()):
        name = entry.name
        if entry.is_symlink() or name in ("_delta_log", "_databox.json"):
            return name
        if entry.is_dir():
            if "=" not in name:
                return f"{name}/"
            inner = _stranger(entry, format)
            if inner is not None:
                return f"{name}/{inner}"
        elif not (name.endswith(endings) or name in ("_SUCCESS", "_metadata", "_common_metadata")):
            return name
    return None


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
