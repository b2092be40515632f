"""What a long verification is doing, in the log of its run."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from databox_contracts.spark.progress import OnProgress, Progress

SECONDS: Final = 15.0
"""A line at most every so many seconds, and none for what takes less."""


def logged_progress(log: logging.Logger, table: str) -> OnProgress:
    """Tells the log of a run about the table's verification."""
    from databox_contracts.spark.progress import paced

    return paced(lambda progress: log.info(f"{table}: {progress}"), SECONDS)


class Scans:
    """Counts how often a verification reads rows or columns, by the steps that it tells of; the write is none."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.count = 0
        self._on_progress = on_progress
        self._last: tuple[str, float] = ("", 0.0)

    def __call__(self, progress: Progress) -> None:
        """Told by the verification, when a step begins and from time to time."""
        from databox_contracts.spark.attempts import WRITING

        doing, seconds = self._last
        # Another verification begins its clock anew.
        if progress.doing != WRITING and (progress.doing != doing or progress.seconds < seconds):
            self.count += 1
        self._last = (progress.doing, progress.seconds)
        if self._on_progress is not None:
            self._on_progress(progress)
