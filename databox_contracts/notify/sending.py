"""From a contact to the channel that reaches it, and a message through it."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Final, Protocol

from databox_contracts.errors import DataboxError, DeliveryError
from databox_contracts.notify.contacts import Address, resolve, scheme_of, scrub, shown
from databox_contracts.notify.message import Message
from databox_contracts.notify.settings import Settings


class Channel(Protocol):
    """A way for messages to go. It is made once for a process, and closed at the end."""

    def send(self, message: Message, address: Address) -> None:
        """Hands the message over; when it returns, the receiver has taken it. Raises `DeliveryError` otherwise."""
        ...

    def close(self) -> None:
        """Lets go of connections."""
        ...


CHANNELS: Final = {
    "log": "log_lines:LogChannel",
    "http": "webhook:WebhookChannel",
    "https": "webhook:WebhookChannel",
    "ticket+http": "tickets:TicketChannel",
    "ticket+https": "tickets:TicketChannel",
    "kafka": "kafka:KafkaChannel",
    "kafkas": "kafka:KafkaChannel",
    "mailto": "mail:MailChannel",
    "smtp": "mail:MailChannel",
    "smtps": "mail:MailChannel",
}
"""The channel of each URL scheme; all other schemes are apprise's."""

OTHERS: Final = "apprise_services:AppriseChannel"

SERVICE_HOSTS: Final = (
    "hooks.slack.com",
    "discord.com",
    "webhook.office.com",
    "logic.azure.com",
    "chat.googleapis.com",
)
"""Hosts, with those below them, whose `https:` addresses take a service's own messages, not a webhook's."""

MACHINES: Final = ("http", "https", "ticket+http", "ticket+https", "kafka", "kafkas", "log", "pagerduty", "opsgenie")
"""Schemes whose receivers take one event at a time: no digests."""


class Channels:
    """All channels under one configuration; each is made when the first message goes through it.

    `through` is a channel that takes all messages instead, as tests want it.
    """

    def __init__(self, settings: Settings | None = None, *, through: Channel | None = None) -> None:
        self.settings = settings if settings is not None else Settings.from_environ()
        self._made: dict[str, Channel] = {}
        self._through = through
        self._lock = threading.Lock()

    def send(self, message: Message, contact: str) -> None:
        """Sends the message to a contact as declared. Raises `DeliveryError`, in which no secret is."""
        address = resolve(contact, self.settings.environ)
        try:
            (self._through or self._channel(address)).send(message, address)
        except DeliveryError as error:
            error.reason = scrub(error.reason, address)
            error.args = (scrub(error.message, address),)
            error.message = error.args[0]
            raise
        except DataboxError as error:
            raise DeliveryError(address.shown, scrub(error.message, address), hint=error.hint) from None
        except Exception as error:
            # Whatever a client library says may hold the URL it was given, so its type has to do.
            raise DeliveryError(address.shown, f"an unexpected {type(error).__name__}") from None

    def takes_digests(self, contact: str) -> bool:
        """Whether several notifications may go to the contact as one message."""
        try:
            return scheme_of(resolve(contact, self.settings.environ).url) not in MACHINES
        except DeliveryError:
            return False

    def close(self) -> None:
        """Closes what was opened."""
        for channel in self._made.values():
            channel.close()
        self._made.clear()

    def _channel(self, address: Address) -> Channel:
        name = channel_of(address)
        with self._lock:
            if name not in self._made:
                module, _, maker = name.partition(":")
                home = import_module(f"databox_contracts.notify.channels.{module}")
                self._made[name] = getattr(home, maker)(self.settings)
            return self._made[name]


def channel_of(address: Address) -> str:
    """The module and the class of the address's channel."""
    scheme = address.scheme
    if not scheme:
        raise DeliveryError(
            shown(address.shown),
            "the contact has no scheme",
            permanent=True,
            hint="write a URL such as https://…, slack://…, kafka://…, or an e-mail address",
        )
    if scheme == "https":
        host = address.split().hostname or ""
        if any(host == known or host.endswith(f".{known}") for known in SERVICE_HOSTS):
            return OTHERS
    return CHANNELS.get(scheme, OTHERS)
