"""Notes and locks in a table's own directory: written whole or not at all, held by whoever lives."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from databox_contracts.errors import PublicationError

_LOCK_TIMEOUT: Final = 60.0


def write_json(path: Path, facts: Mapping[str, Any]) -> None:
    """Put facts into a file, which others see whole or as it was."""
    partial = path.with_name(f"{path.name}.part")
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1, default=str)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def read_json(path: Path) -> dict[str, Any]:
    """A manifest or a journal; empty where there is none that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@contextmanager
def exclusive(path: Path, table: str) -> Iterator[None]:
    """Hold the table's lock. Raises `PublicationError` where another process does for a minute."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as lock:
        deadline = time.monotonic() + _LOCK_TIMEOUT
        while not try_lock(lock.fileno()):
            if time.monotonic() > deadline:
                raise PublicationError(
                    table,
                    f"another process held the table's lock for {_LOCK_TIMEOUT:.0f} s",
                    hint=f"Find out who has {lock.name} open.",
                )
            time.sleep(0.02)
        yield


def try_lock(descriptor: int) -> bool:
    """Take the lock of an open file if nobody has it; it ends with the file, and with the process."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
