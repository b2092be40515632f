"""What consumers are told of a version that begins or ends, in the form in which a registry asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Final, Protocol

from databox_contracts.model import Consumer, Contract
from databox_contracts.notifications import Notification
from databox_contracts.notify.building import from_deprecation, from_versions

_DRAFTS: Final = ("draft", "proposed")


class Stored(Protocol):
    """A version as a registry keeps it."""

    @property
    def contract_id(self) -> str:
        """Whose version it is."""
        ...

    @property
    def version(self) -> str:
        """As it was published."""
        ...

    @property
    def status(self) -> str:
        """Where it stands."""
        ...

    @property
    def sunset(self) -> date | None:
        """The first day on which it may be retired."""
        ...

    def contract(self) -> Contract:
        """The contract itself."""
        ...


def announcement(
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Callable[[Contract, Stored | None, Sequence[Consumer]], Sequence[Notification]]:
    """Tells those whom a new version touches. A draft touches nobody; it is announced when it becomes active."""

    def announce(new: Contract, before: Stored | None, consumers: Sequence[Consumer]) -> Sequence[Notification]:
        if new.status.lower() in _DRAFTS:
            return ()
        return from_versions(before.contract() if before is not None else None, new, consumers, occurred_at=clock())

    return announce


def end_announcement(
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Callable[[Stored, Sequence[Consumer]], Sequence[Notification]]:
    """Tells those who may read a version that it is deprecated, or retired."""

    def announce(ended: Stored, consumers: Sequence[Consumer]) -> Sequence[Notification]:
        return from_deprecation(
            ended.contract_id,
            ended.version,
            consumers,
            occurred_at=clock(),
            sunset=ended.sunset,
            retired=ended.status == "retired",
            owner=ended.contract().owning_team,
        )

    return announce
