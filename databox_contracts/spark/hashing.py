"""Keys hashed beside another job: while one of the two is planned or ends, the other has the processors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeAlias

from databox_contracts.spark.keys import Key, fit_here, sorted_here
from databox_contracts.spark.running import inheriting
from databox_contracts.spark.scans import reads_by_column

Hashed: TypeAlias = Callable[[int], Sequence[Sequence[int]] | None]


@contextmanager
def hashing(keys: Sequence[Key], rows: int | None) -> Iterator[Hashed]:
    """Hash the keys of one view while the block runs, where that is read by column and their hashes fit here.

    `rows` is the number of its rows where it is known. What the block is given waits for the colliding hashes of each
    key; it gives None where they were not hashed, or where the table turned out to have another number of rows.
    """
    view = keys[0].view if keys else None
    if view is None or not reads_by_column(view):
        yield lambda counted: None
        return
    # Reads no column.
    expected = view.count() if rows is None else rows
    if not fit_here(keys, expected):
        yield lambda counted: None
        return
    with ThreadPoolExecutor(1, thread_name_prefix="hashing") as pool:
        work = pool.submit(inheriting(view.sparkSession, sorted_here), keys)
        yield lambda counted: work.result() if counted == expected else None
