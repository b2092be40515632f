"""Many contract files at once: in several processes where that is worth starting them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final, TypeAlias

from databox_contracts.errors import Finding, Position
from databox_contracts.formats import examine
from databox_contracts.formats.remarks_patterns import patterns_of

_MANY: Final = 300
_CHUNK: Final = 25
_MOST_PROCESSES: Final = 8

PlacedPattern: TypeAlias = tuple[str, Position | None, str | None]


@dataclass(frozen=True)
class Examined:
    """What is to be known of one file: whose contract it is, where there is one, its findings, and its patterns.

    Each pattern comes with its place and the field it is for.
    """

    path: Path
    identity: tuple[str, str] | None
    findings: tuple[Finding, ...]
    patterns: tuple[PlacedPattern, ...] = ()


def examine_files(files: Sequence[Path]) -> list[Examined]:
    """The files in their order, each as `examine` sees it."""
    processes = min(_processors(), _MOST_PROCESSES)
    if len(files) >= _MANY and processes > 1:
        try:
            # Started afresh: a fork would take over whatever threads the caller has.
            with ProcessPoolExecutor(processes, get_context("spawn"), initializer=gc.disable) as pool:
                return list(pool.map(_examined, files, chunksize=_CHUNK))
        except (BrokenProcessPool, OSError):
            # No room for more processes; one will do.
            pass
    with _without_garbage_collection():
        return [_examined(file) for file in files]


def _processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _examined(file: Path) -> Examined:
    contract, findings = examine(file)
    if contract is None:
        return Examined(file, None, tuple(findings))
    return Examined(file, (contract.id, contract.version), tuple(findings), tuple(patterns_of(contract)))


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    # What a document leaves behind is freed as it goes; looking for cycles among it takes a quarter of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
