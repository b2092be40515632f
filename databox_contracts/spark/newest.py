"""Which files of a table are its newest, found without listing more of it than is needed.

Directories `name=value` of a level whose values are all dates or times (`day=2026-03-01`, `hour=7`) are taken from the
last value on; those of any other level (`country=…`) are taken together. Among the files of one place the last written
are taken first, and of the files that one write left, some that are evenly spread over them: its first file alone may
hold one customer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_HIDDEN: Final = (".", "_")
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_TIME: Final = re.compile(
    r"\d{4}-\d\d(?:-\d\d(?:[T -]\d\d(?:[:.-]?\d+)*Z?)?)?|(?:19|20)\d\d(?:(?:0[1-9]|1[0-2])(?:\d\d(?:\d\d)?)?)?"
)
_PART_OF_TIME: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "yyyy", "mm", "dd", "hh")
_WRITE: Final = re.compile(r"part-\d+-([0-9a-fA-F-]{36})")
"""The files of one write of Spark have its id in their names."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a table; `written` is its modification time in nanoseconds, None where that is not known."""

    path: str
    written: int | None = None
    size: int = 0

    @property
    def name(self) -> str:
        """Its own name."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def write(self) -> str:
        """What it was written together with: Spark's id of the write, else the file alone."""
        found = _WRITE.match(self.name)
        return found[1] if found is not None else self.name


def newest_writes(batches: Iterator[list[DataFile]], *, most: int) -> Iterator[tuple[list[DataFile], bool]]:
    """The newest files of a table by the write they are of, newest first, `most` files at most in all.

    Each comes with whether these are all files of the write. `batches` are of equal age, the newest first.
    """
    left = most
    for batch in batches:
        for written in _writes(batch):
            chosen = _spread(written, left)
            yield chosen, len(chosen) == len(written)
            left -= len(chosen)
            if left <= 0:
                return


def _writes(batch: Sequence[DataFile]) -> list[list[DataFile]]:
    """The files by the write that they are of, the last write first, each in the order of their names."""
    groups: dict[str, list[DataFile]] = {}
    for file in sorted(batch, key=lambda one: one.path):
        groups.setdefault(file.write, []).append(file)
    return sorted(groups.values(), key=lambda group: (max(one.written or 0 for one in group), group[-1].path))[::-1]


def _spread(files: list[DataFile], count: int) -> list[DataFile]:
    """The last file, then others evenly apart."""
    if len(files) <= count:
        return files[::-1]
    return [files[(len(files) - 1) - at * len(files) // count] for at in range(count)]


def files_below(directory: Path) -> Iterator[list[DataFile]]:
    """The data files below a local directory in batches of equal age, the newest first; lazily."""
    files: list[DataFile] = []
    partitions: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(_HIDDEN) and "=" not in entry.name:
                continue
            if entry.is_dir():
                partitions.append(entry.name)
            else:
                facts = entry.stat()
                files.append(DataFile(entry.path, facts.st_mtime_ns, facts.st_size))
    if files:
        yield files
    if partitions:
        inside = [files_below(directory / name) for name in in_order(partitions)]
        yield from _in_turn(inside, by_time=is_time_like(partitions))


def files_listed(files: Sequence[DataFile], root: str) -> Iterator[list[DataFile]]:
    """The same for files that are known already, by what is between `root` and the file in each path."""
    here = [one for one in files if "/" not in one.path[len(root) :].lstrip("/")]
    if here:
        yield here
    inside: dict[str, list[DataFile]] = {}
    for one in files:
        first, slash, _ = one.path[len(root) :].lstrip("/").partition("/")
        if slash:
            inside.setdefault(first, []).append(one)
    if inside:
        start = root if root.endswith("/") or not root else f"{root}/"
        deeper = [files_listed(inside[name], start + name) for name in in_order(list(inside))]
        yield from _in_turn(deeper, by_time=is_time_like(list(inside)))


def _in_turn(inside: list[Iterator[list[DataFile]]], *, by_time: bool) -> Iterator[list[DataFile]]:
    if by_time:
        for one in inside:
            yield from one
        return
    for batches in zip_longest(*inside):
        yield [file for batch in batches if batch is not None for file in batch]


def in_order(partitions: Sequence[str]) -> list[str]:
    """Directories of one level, the last value first; numbers by their size."""
    return sorted(partitions, key=_order, reverse=True)


def _order(partition: str) -> tuple[list[int], str]:
    _, value = _split(partition)
    # No value is no time, and comes last.
    return [int(digits) for digits in re.findall("[0-9]+", value or "")], partition


def is_time_like(partitions: Sequence[str]) -> bool:
    """Whether the directories of one level are partitions by time."""
    found = [_split(one) for one in partitions]
    said = [(name, value) for name, value in found if value is not None]
    return all(name for name, _ in found) and bool(said) and all(_is_time(*one) for one in said)


def _is_time(name: str, value: str) -> bool:
    return bool(_TIME.fullmatch(value)) or (name.lower() in _PART_OF_TIME and value.isascii() and value.isdigit())


def _split(partition: str) -> tuple[str, str | None]:
    name, equals, value = partition.partition("=")
    return (unquote(name), None if value == _NO_VALUE else unquote(value)) if equals else ("", partition)


def partition_values(path: str, root: str) -> dict[str, str | None]:
    """The columns that a file's path below `root` gives a value to."""
    return dict(_split(part) for part in path[len(root) :].strip("/").split("/")[:-1] if "=" in part)
