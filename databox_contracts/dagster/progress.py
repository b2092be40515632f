"""What a long verification is doing, in the log of its run."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from databox_contracts.spark.progress import OnProgress

SECONDS: Final = 15.0
"""A line at most every so many seconds, and none for what takes less."""


def logged_progress(log: logging.Logger, table: str) -> OnProgress:
    """Tells the log of a run about the table's verification."""
    from databox_contracts.spark.progress import paced

    return paced(lambda progress: log.info(f"{table}: {progress}"), SECONDS)
