"""Who is told of a version that begins or ends: the registry asks, and the notifications go into its outbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from databox_contracts.model import Consumer, Contract
    from databox_contracts.notifications import Notification
    from databox_contracts.registry.api import Announce, AnnounceEnd
    from databox_contracts.registry.records import StoredVersion


def announcement(clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Announce:
    """What `Registry.publish` takes as `notifications`, so that those are told whom the new version touches."""
    from databox_contracts.notify.building import from_versions

    def announce(new: Contract, before: StoredVersion | None, consumers: Sequence[Consumer]) -> Sequence[Notification]:
        return from_versions(before.contract() if before is not None else None, new, consumers, occurred_at=clock())

    return announce


def end_announcement(clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> AnnounceEnd:
    """What `Registry.deprecate` and `retire` take as `announce_end`."""
    from databox_contracts.notify.building import from_deprecation

    def announce(ended: StoredVersion, consumers: Sequence[Consumer]) -> Sequence[Notification]:
        contract = ended.contract()
        return from_deprecation(
            ended.contract_id,
            ended.version,
            consumers,
            occurred_at=clock(),
            sunset=ended.sunset,
            retired=ended.status == "retired",
            datasets=[dataset.name for dataset in contract.datasets],
            owner=contract.owning_team,
        )

    return announce
