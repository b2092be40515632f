"""`log:` writes messages to a logger: the package's own, or Dagster's where it is passed."""

from __future__ import annotations

import logging
from typing import Final

from databox_contracts.notify.contacts import Address
from databox_contracts.notify.message import Message
from databox_contracts.notify.settings import Settings
from databox_contracts.rules import Severity

_LEVELS: Final = {Severity.ERROR: logging.ERROR, Severity.WARNING: logging.WARNING, Severity.INFO: logging.INFO}


class LogChannel:
    """One record for each message, at the level of its severity; good news is info."""

    def __init__(self, settings: Settings) -> None:
        self._logger = settings.logger

    def send(self, message: Message, address: Address) -> None:
        """As `Channel.send`."""
        level = logging.INFO if message.resolves else _LEVELS[message.severity]
        self._logger.log(level, "for %s: %s", message.first.consumer, message.text)

    def close(self) -> None:
        """As `Channel.close`."""
