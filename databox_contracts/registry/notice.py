"""How long before its end a version has to be announced as deprecated, and who keeps it from being retired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from databox_contracts.errors import DataboxError, VersionRangeError
from databox_contracts.evolution.policies import policy_of
from databox_contracts.formats.durations import parse_duration
from databox_contracts.model import Consumer, Contract
from databox_contracts.version_ranges import VersionRange
from databox_contracts.versions import Version

_USUAL: Final = {"strict": timedelta(days=30)}


def notice_of(contract: Contract) -> timedelta:
    """The notice period as the contract says, else as is usual under its policy, else none."""
    if contract.notice_period is not None:
        try:
            return timedelta(seconds=parse_duration(contract.notice_period))
        except DataboxError:
            # Lint reports it; no length of time counts as not said.
            pass
    if contract.evolution is not None and contract.evolution.deprecation_window_days is not None:
        return timedelta(days=contract.evolution.deprecation_window_days)
    return _USUAL.get(policy_of(contract).name, timedelta(0))


def left_behind(version: str, remaining: Sequence[str], consumers: Sequence[Consumer]) -> Iterator[str]:
    """The consumers that read this version and would find none of the remaining ones in its place, one sentence each.

    One without a pin reads whatever there is.
    """
    for consumer in consumers:
        if consumer.versions is None:
            if not remaining:
                yield f"{consumer.name!r} reads it, and no other version is left"
        elif _allows(consumer.versions, version) and not any(_allows(consumer.versions, one) for one in remaining):
            yield f"{consumer.name!r} is pinned to {consumer.versions}, which no other version satisfies"


def _allows(pin: str, version: str) -> bool:
    parsed = Version.parse(version)
    try:
        # What cannot be compared may be meant.
        return parsed is None or VersionRange.parse(pin).allows(parsed)
    except VersionRangeError:
        return True
