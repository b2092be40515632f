"""When to try again, and when to give up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from databox_contracts.errors import DeliveryError

_FEWEST_BEFORE_AGE: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often and how long one notification is tried.

    The pause begins with `first` and doubles up to `longest`; of each up to a half is left out at random, so that many
    do not come back at once. What a receiver asks for with `Retry-After` is kept, and up to a tenth added, but never
    more than `longest_asked`. It is given up after `attempts`, after `permanent_attempts` of an error that will come
    again, or when the event is older than `age` and it was tried at least five times.
    """

    first: timedelta = timedelta(seconds=10)
    longest: timedelta = timedelta(hours=1)
    longest_asked: timedelta = timedelta(days=1)
    attempts: int = 120
    permanent_attempts: int = 3
    age: timedelta = timedelta(days=5)

    def retry_at(
        self, error: DeliveryError, *, attempts: int, occurred_at: datetime, now: datetime, random: Callable[[], float]
    ) -> datetime | None:
        """When to try again after `attempts` of them, this one included; None for never."""
        if attempts >= (self.permanent_attempts if error.permanent else self.attempts):
            return None
        if now - occurred_at > self.age and attempts >= _FEWEST_BEFORE_AGE:
            return None
        # Beyond a few dozen doublings there is nothing but overflow.
        pause = min(self.longest, self.first * float(2 ** min(attempts - 1, 32)))
        pause -= pause * 0.5 * random()
        if error.retry_after is not None:
            asked = min(timedelta(seconds=min(max(error.retry_after, 0.0), 1e9)), self.longest_asked)
            pause = max(asked + asked * 0.1 * random(), self.first / 2)
        return now + pause
