"""How many calls a caller may make: a bucket of tokens that fills again, one for each caller, and bounded in number."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

_MOST_CALLERS: Final = 10_000


@dataclass(frozen=True)
class Rate:
    """So many calls in a row, and then so many each second."""

    burst: int
    per_second: float


class Buckets:
    """The buckets of all callers under one rate. `now` gives seconds of a clock that never goes back."""

    def __init__(self, rate: Rate, now: Callable[[], float], *, most_callers: int = _MOST_CALLERS) -> None:
        self._rate = rate
        self._now = now
        self._most = most_callers
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str) -> int:
        """Take one call: 0, or after how many seconds to come again, where none is left."""
        with self._lock:
            now = self._now()
            left, since = self._left.pop(caller, (float(self._rate.burst), now))
            left = min(self._rate.burst, left + (now - since) * self._rate.per_second)
            wait = 0 if left >= 1 else max(1, math.ceil((1 - left) / self._rate.per_second))
            self._left[caller] = (left if wait else left - 1, now)
            # Whoever was not seen for longest has a full bucket, as a rule; forgetting it gives nothing away.
            while len(self._left) > self._most:
                self._left.popitem(last=False)
            return wait


def caller_at(address: str | None) -> str:
    """Whom an address stands for: of version 6, everybody has as many as a network of 64 bits holds."""
    if address is None:
        return "-"
    try:
        found = ip_address(address)
    except ValueError:
        return "-"
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return f"{IPv6Address(int(found) >> 64 << 64)}/64"
    return str(found)
