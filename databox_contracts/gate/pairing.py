"""Which contract of the base revision became which one at the head."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from databox_contracts.gate.revisions import Parsed
from databox_contracts.model import Contract

_LINEAGE: Final = re.compile(r"(?P<name>.+?)[._-]v(?P<major>\d{1,9})(?P<rest>(?:\.[^.]+)*)", re.IGNORECASE)


@dataclass(frozen=True)
class Pair:
    """A contract before and after; None before where it is new, None after where it is gone.

    `path` is the file after, or before where there is none after. `successor_of` is the file of the version of the
    same lineage that a new one is judged against, which stays where it is. `history` are the versions before that one,
    the oldest first.
    """

    path: str
    before: Contract | None
    after: Contract | None
    moved_from: str | None = None
    successor_of: str | None = None
    history: tuple[Contract, ...] = ()


def pairs(base: Parsed, head: Parsed, unchanged: Mapping[str, Contract]) -> Iterator[Pair]:
    """Every contract that is not the same file with the same text, in the order of paths.

    First by path, then by id (a file that moved), then by dataset (a contract that changed both). A new file
    `X.v4.yaml` is judged against `X.v3.yaml`, changed or not (`unchanged`), which is the version before it.
    """
    gone = {path: contract for path, contract in base.contracts.items() if path not in head.contracts}
    new = {path: contract for path, contract in head.contracts.items() if path not in base.contracts}
    moved = _moved(gone, new)
    came_from = {after: before for before, after in moved.items()}
    earlier = {**unchanged, **base.contracts}
    for path in sorted({*base.contracts, *head.contracts}):
        before, after = base.contracts.get(path), head.contracts.get(path)
        if before is not None and after is not None:
            yield Pair(path, before, after, history=_history(path, earlier))
        elif after is not None and path in came_from:
            yield Pair(path, gone[came_from[path]], after, moved_from=came_from[path])
        elif after is not None:
            older = _older(path, earlier)
            parent = older[-1] if older else None
            history = tuple(earlier[other] for other in older[:-1])
            yield Pair(path, earlier[parent] if parent else None, after, successor_of=parent, history=history)
        elif path not in moved:
            yield Pair(path, before, None)


def _moved(gone: Mapping[str, Contract], new: Mapping[str, Contract]) -> dict[str, str]:
    """The new path of each file that moved: its contract's id came back, or its datasets did, in one file each."""
    found: dict[str, str] = {}
    for same in (_of_one_id, _of_the_same_datasets):
        for path, contract in gone.items():
            if path in found:
                continue
            candidates = [other for other in new if other not in found.values() and same(contract, new[other])]
            rivals = [other for other in gone if other not in found and same(gone[other], contract)]
            if len(candidates) == len(rivals) == 1:
                found[path] = candidates[0]
    return found


def _of_one_id(one: Contract, other: Contract) -> bool:
    return one.id == other.id


def _of_the_same_datasets(one: Contract, other: Contract) -> bool:
    names = [dataset.name for dataset in one.datasets]
    return bool(names) and names == [dataset.name for dataset in other.datasets]


def lineage(path: str) -> tuple[str, int] | None:
    """The name that versioned files share, with its folder, and the version: `a/X.v3.yaml` is 3 of `a/X`."""
    place = PurePosixPath(path)
    match = _LINEAGE.fullmatch(place.name.removesuffix(place.suffix))
    if match is None:
        return None
    return str(place.parent / f"{match['name']}{match['rest']}"), int(match["major"])


def _history(path: str, contracts: Mapping[str, Contract]) -> tuple[Contract, ...]:
    return tuple(contracts[other] for other in _older(path, contracts))


def _older(path: str, paths: Iterable[str]) -> list[str]:
    """The files of the smaller versions of the lineage, the oldest first."""
    own = lineage(path)
    if own is None:
        return []
    of_one_name = [(found[1], other) for other in paths if (found := lineage(other)) is not None and found[0] == own[0]]
    return [other for version, other in sorted(of_one_name) if version < own[1]]
