"""A place to write in that nobody else writes in: leased while its process lives, cleared away after it."""

from __future__ import annotations

import fcntl
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from databox_contracts.spark.home_files import try_lock


@dataclass(frozen=True, slots=True)
class Staged:
    """A place to write one version in; nobody else writes there, and nobody reads it."""

    version: str
    directory: Path
    base: str | None

    @property
    def data(self) -> Path:
        """What becomes the version."""
        return self.directory / "data"

    @property
    def held(self) -> Path:
        """What becomes the batch of held rows, if there are any."""
        return self.directory / "held"

    @property
    def rest(self) -> Path:
        """What stays of older batches when rows of theirs are released: a directory for each, of the batch's name."""
        return self.directory / "rest"


@contextmanager
def leased(
    staging: Path,
    now: datetime,
    locked: Callable[[], AbstractContextManager[None]],
    base: Callable[[], str | None],
) -> Iterator[Staged]:
    """A new directory below `staging`, gone again when the block ends, and those of dead processes with it.

    `base` says, under the lock, what the table is that the new version starts from.
    """
    staging.mkdir(parents=True, exist_ok=True)
    version = f"v{now:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"
    directory = staging / version
    with ExitStack() as held:
        with locked():
            # The lease is held open: it tells others that this process lives, and ends with it however it ends. It is
            # made under the lock: whoever has that clears away what is not held yet.
            lease = held.enter_context(open(f"{directory}.lock", "w"))
            fcntl.flock(lease, fcntl.LOCK_EX)
            _clear(staging)
            found = base()
            directory.mkdir()
        try:
            yield Staged(version, directory, found)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            Path(lease.name).unlink(missing_ok=True)


def _clear(staging: Path) -> None:
    for lock in sorted(staging.glob("*.lock")):
        with open(lock) as lease:
            if try_lock(lease.fileno()):
                lock.unlink(missing_ok=True)
    for directory in sorted(staging.iterdir()):
        if directory.is_dir() and not directory.with_name(f"{directory.name}.lock").exists():
            shutil.rmtree(directory, ignore_errors=True)
