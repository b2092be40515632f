"""Who is told of a version that begins or ends: the registry asks, and the notifications go into its outbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from databox_contracts.model import Consumer, Contract
    from databox_contracts.notifications import Notification
    from databox_contracts.registry.api import Announce, AnnounceEnd, RegistryApi
    from databox_contracts.registry.records import StoredVersion

_DRAFTS: Final = ("draft", "proposed")


def announced_by(registry: RegistryApi, *arguments: str) -> dict[str, Any]:
    """What `Registry` is given under these names, so that consumers are told; a service announces by itself."""
    from databox_contracts.registry.store import Registry

    if not isinstance(registry, Registry):
        return {}
    return {name: end_announcement() if name == "announce_end" else announcement() for name in arguments}


def announcement(clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Announce:
    """Tells those whom a new version touches. A draft touches nobody; it is announced when it becomes active."""
    from databox_contracts.notify.building import from_versions

    def announce(new: Contract, before: StoredVersion | None, consumers: Sequence[Consumer]) -> Sequence[Notification]:
        if new.status.lower() in _DRAFTS:
            return ()
        return from_versions(before.contract() if before is not None else None, new, consumers, occurred_at=clock())

    return announce


def end_announcement(clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> AnnounceEnd:
    """Tells those who may read a version that it is deprecated, or retired."""
    from databox_contracts.notify.building import from_deprecation

    def announce(ended: StoredVersion, consumers: Sequence[Consumer]) -> Sequence[Notification]:
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
