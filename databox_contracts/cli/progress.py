"""What a long command is doing, in one line of a terminal that is gone at the end; nothing where output is piped."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_CLEAR = "\r\x1b[K"


@contextmanager
def terminal_progress() -> Iterator[Callable[[object], None] | None]:
    """What to call with each new state; None where standard error is no terminal."""
    terminal = sys.stderr
    if not terminal.isatty():
        yield None
        return

    def show(state: object) -> None:
        # A line that wraps could not be cleared.
        width = shutil.get_terminal_size().columns - 1
        terminal.write(f"{_CLEAR}{str(state)[:width]}")
        terminal.flush()

    try:
        yield show
    finally:
        terminal.write(_CLEAR)
        terminal.flush()
