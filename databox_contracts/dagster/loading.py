"""What keeps the load of a code location with a thousand contracts quick."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

from databox_contracts.dagster.read_ahead import ReadAhead
from databox_contracts.model import Contract, Dataset
from databox_contracts.plan import Plan, build_plan


def load_once(path: Path) -> Contract:
    """The contract of a file, read again only when the file has changed. Raises `ContractError`.

    Another process may have read it before, see `formats.kept`.
    """
    try:
        facts = path.stat()
    except OSError:
        # The loader says what is wrong.
        return _load(str(path), 0, -1)
    return _load(str(path), facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=8192)
def _load(path: str, changed: int, size: int) -> Contract:
    return _FILES.contract(Path(path), changed, size)


def _read(path: Path) -> Contract:
    # Formats are only needed where a path is given.
    from databox_contracts.formats.kept import load_kept

    return load_kept(path)


_FILES: Final = ReadAhead(_read)


def plan_of(contract: Contract, dataset: Dataset) -> Plan:
    """The dataset's plan, which an asset's metadata and its checks both ask for, one after the other."""
    global _last
    last = _last
    if last is None or last.contract is not contract or last.dataset is not dataset:
        last = _last = build_plan(contract, dataset)
    return last


_last: Plan | None = None


@contextmanager
def collection_paused() -> Iterator[None]:
    """No search for cycles among what a load makes and keeps, which takes a quarter of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _count_as_old()
            gc.enable()


def _count_as_old() -> None:
    """Moves all that there is to the oldest generation, as if searched and found to be kept.

    Otherwise the next search would begin where the pause has ended, and each load bring the one through everything
    nearer. What is garbage among it is found by that one.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()
