"""A registry on each database, with a clock that tests move."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from databox_contracts.registry.store import Registry


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **length: float) -> None:
        self.now += timedelta(**length)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(database_url: str, clock: Clock) -> Iterator[Registry]:
    with Registry.open(database_url, clock=clock, lease_length=timedelta(minutes=2)) as opened:
        yield opened
