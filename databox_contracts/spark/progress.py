"""What a verification is doing, told to whoever asked: at each new step, and from time to time during a long one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """The step being taken: which of how many, counted from 1, and the seconds since the first one began.

    `doing` is a few words for people; it names no value. `done` and `parts` are of a step that is taken in parts, both
    0 where it is not.
    """

    doing: str
    step: int
    steps: int
    seconds: float
    done: int = 0
    parts: int = 0

    def __str__(self) -> str:
        parts = f", {self.done} of {self.parts} parts" if self.parts else ""
        if self.steps == 1:
            return f"{self.doing}{parts} ({self.seconds:.0f} s)"
        return f"{self.doing}{parts} (step {self.step} of {self.steps}, {self.seconds:.0f} s)"


OnProgress: TypeAlias = Callable[[Progress], None]


class Steps:
    """The steps of one verification, in order; nothing is done for them where nobody asked.

    `on_progress` is called when a step begins, when a part of it is done, and every `beat` seconds in between, by
    another thread then, never by two at once. What it raises passes through, but ends only the beat on that thread.
    """

    def __init__(
        self,
        on_progress: OnProgress | None,
        names: Sequence[str],
        *,
        beat: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_progress = on_progress
        self._names = list(names)
        self._beat = beat
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self._parts = (0, 0)

    @contextmanager
    def step(self, name: str, *, parts: int = 0) -> Iterator[None]:
        """Around the work of a step. One that was not announced is added at the end."""
        if self._on_progress is None:
            yield
            return
        if name not in self._names:
            self._names.append(name)
        self._parts = (0, parts)
        over = threading.Event()
        self._tell(name)
        beating = threading.Thread(target=self._keep_telling, args=(name, over), daemon=True)
        beating.start()
        try:
            yield
        finally:
            over.set()
            beating.join()

    def part_done(self, name: str) -> None:
        """One more part of that step is done."""
        if self._on_progress is not None:
            with self._lock:
                self._parts = (self._parts[0] + 1, self._parts[1])
            self._tell(name)

    def _keep_telling(self, name: str, over: threading.Event) -> None:
        with suppress(Exception):
            while not over.wait(self._beat):
                self._tell(name)

    def _tell(self, name: str) -> None:
        assert self._on_progress is not None
        with self._lock:
            done, parts = self._parts
            at = self._names.index(name) + 1
            self._on_progress(Progress(name, at, len(self._names), self._clock() - self._began, done, parts))


def paced(on_progress: OnProgress, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> OnProgress:
    """The same, called at most once in so many seconds, and not at all for what is over before that."""
    last = clock()

    def tell(progress: Progress) -> None:
        nonlocal last
        now = clock()
        if now - last >= seconds:
            last = now
            on_progress(progress)

    return tell
