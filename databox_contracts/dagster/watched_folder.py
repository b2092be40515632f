"""A folder of contract files as it is at a moment, told from what it was by looking at no file's content."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from databox_contracts.formats import contract_files

_YOUNG_NS: Final = 2_000_000_000
"""A file that is younger may change once more and look the same: file systems count time in steps."""


@dataclass(frozen=True, slots=True)
class Look:
    """The files by their path below the folder, each with what tells that it changed, "" where that cannot be told.

    `fingerprint` is of all of them, None while one of them is so young that it has to be looked at again.
    """

    files: dict[str, str]
    fingerprint: str | None


def look_at(folder: Path, now: datetime) -> Look:
    """The folder at that time. Raises `ContractError` if it cannot be read."""
    now_ns = int(now.timestamp() * 1e9)
    files: dict[str, str] = {}
    below = len(str(folder)) + 1
    for path in contract_files(folder):
        try:
            found = os.stat(path)
        except FileNotFoundError:
            # It was removed meanwhile, or a link leads nowhere.
            continue
        if stat.S_ISREG(found.st_mode):
            changed = max(found.st_mtime_ns, found.st_ctime_ns)
            is_young = abs(now_ns - changed) < _YOUNG_NS
            told = "" if is_young else f"{found.st_mtime_ns}-{found.st_ctime_ns}-{found.st_size}-{found.st_ino}"
            # Quicker than to ask each path for it.
            files[str(path)[below:]] = told
    if not all(files.values()):
        return Look(files, None)
    text = "\n".join(f"{name}\0{told}" for name, told in files.items())
    return Look(files, hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32])
