"""Telling consumers: the bus, the messages, one file per channel, and the worker that empties the outbox."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from databox_contracts.notify.bus import Handler, NotificationBus, OutboxHandler
    from databox_contracts.notify.channels.kafka import KafkaNotificationHandler
    from databox_contracts.notify.delivery import Delivery, Pace, Totals
    from databox_contracts.notify.memory_outbox import MemoryOutbox
    from databox_contracts.notify.message import Message
    from databox_contracts.notify.sending import Channels
    from databox_contracts.notify.settings import Settings

# Resolved on first use: a channel's client is loaded only where something is sent through it.
_HOMES = {
    **dict.fromkeys(("Handler", "NotificationBus", "OutboxHandler"), "bus"),
    "KafkaNotificationHandler": "channels.kafka",
    **dict.fromkeys(("Delivery", "Pace", "Totals"), "delivery"),
    "MemoryOutbox": "memory_outbox",
    "Message": "message",
    "Channels": "sending",
    "Settings": "settings",
}

__all__ = [
    "Channels",
    "Delivery",
    "Handler",
    "KafkaNotificationHandler",
    "MemoryOutbox",
    "Message",
    "NotificationBus",
    "OutboxHandler",
    "Pace",
    "Settings",
    "Totals",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
