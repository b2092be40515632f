"""What the channels are configured with: where links lead, who sends the mail, where secrets come from."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from databox_contracts.notifications import TicketStore

LOGGER: Final = "databox_contracts.notifications"
"""The logger that the log channel writes to, unless it is given another."""

DAGSTER_URL: Final = "DATABOX_DAGSTER_URL"
CONTRACTS_URL: Final = "DATABOX_CONTRACTS_URL"
SMTP_URL: Final = "DATABOX_SMTP_URL"
MAIL_FROM: Final = "DATABOX_MAIL_FROM"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Configuration of all channels.

    `dagster_url` is the root of Dagster's web server; `contracts_url` where a contract is read, with `{contract}` and
    `{version}` in it or else the contract's id behind it; None for no links. `smtp_url` is the server for addresses
    that name none (`smtps://user:${PASSWORD}@host`), `mail_from` who writes. `timeout` is in seconds and holds for
    connecting, for each read, and for a whole exchange over HTTP. `logger` takes the messages to `log:`; Dagster's is
    one too. `environ` is where `${NAME}` is looked up, at each sending. `tickets` remembers open tickets; without it
    they are remembered as long as the process lives.
    """

    dagster_url: str | None = None
    contracts_url: str | None = None
    smtp_url: str | None = field(default=None, repr=False)
    mail_from: str | None = None
    timeout: float = 30.0
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger(LOGGER))
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    tickets: TicketStore | None = None

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Those that the environment names (`DATABOX_DAGSTER_URL`, `_CONTRACTS_URL`, `_SMTP_URL`, `_MAIL_FROM`)."""
        found = os.environ if environ is None else environ
        return cls(
            dagster_url=found.get(DAGSTER_URL) or None,
            contracts_url=found.get(CONTRACTS_URL) or None,
            smtp_url=found.get(SMTP_URL) or None,
            mail_from=found.get(MAIL_FROM) or None,
            environ=found,
        )
