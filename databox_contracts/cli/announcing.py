"""Who is told of a version that begins or ends: the registry asks, and the notifications go into its outbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from databox_contracts.registry.api import RegistryApi


def announced_by(registry: RegistryApi, *arguments: str) -> dict[str, Any]:
    """What `Registry` is given under these names, so that consumers are told; a service announces by itself."""
    from databox_contracts.notify.announcing import announcement, end_announcement
    from databox_contracts.registry.store import Registry

    if not isinstance(registry, Registry):
        return {}
    return {name: end_announcement() if name == "announce_end" else announcement() for name in arguments}
