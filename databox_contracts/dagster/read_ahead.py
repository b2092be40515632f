"""Contract files that are asked for one at a time, and read several at a time.

Reading one takes a millisecond after another, and two between the declarations of two assets, each of which drives the
other out of the processor's caches.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from databox_contracts.errors import ContractError
from databox_contracts.model import Contract

FEW: Final = 8
"""Of a folder from which fewer have been asked for, nothing else is read."""


class ReadAhead:
    """Reads what is asked for, and at times as many other files of its folder as have been asked for so far.

    No more than twice the files asked for are read. What is no contract is left to whoever asks for it.
    """

    def __init__(self, load: Callable[[Path], Contract]) -> None:
        self._load = load
        self._asked: Counter[Path] = Counter()
        self._read: defaultdict[Path, set[str]] = defaultdict(set)
        self._ahead: dict[tuple[Path, int, int], Contract] = {}

    def contract(self, path: Path, changed: int, size: int) -> Contract:
        """The contract of a file which has that size, and has that time of its last change in nanoseconds.

        Raises what reading it raises.
        """
        folder = path.parent
        self._asked[folder] += 1
        found = self._ahead.pop((path, changed, size), None)
        if found is not None:
            return found
        found = self._load(path)
        read, asked = self._read[folder], self._asked[folder]
        read.add(path.name)
        if asked >= FEW and len(read) < 2 * asked:
            for other in self._unread_after(path)[: 2 * asked - len(read)]:
                read.add(other.name)
                self._read_on(other)
        return found

    def _unread_after(self, path: Path) -> list[Path]:
        """The files after that one in the order of their names, then those before it."""
        unread = [name for name in _contract_names(path.parent) if name not in self._read[path.parent]]
        return [path.parent / name for name in sorted(unread, key=lambda name: (name < path.name, name))]

    def _read_on(self, path: Path) -> None:
        try:
            facts = path.stat()
            self._ahead[path, facts.st_mtime_ns, facts.st_size] = self._load(path)
        except (OSError, ContractError):
            return


def _contract_names(folder: Path) -> Iterator[str]:
    # Formats are only needed where a path is given.
    from databox_contracts.formats import SUFFIXES

    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and entry.name.lower().endswith(SUFFIXES) and entry.is_file():
                    yield entry.name
    except OSError:
        return
