"""Who keeps a version from being retired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from databox_contracts.errors import VersionRangeError
from databox_contracts.model import Consumer
from databox_contracts.version_ranges import VersionRange
from databox_contracts.versions import Version


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
