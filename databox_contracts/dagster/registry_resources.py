"""Resources: the registry of contracts, and how its messages are delivered."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import dagster as dg
from pydantic import Field

from databox_contracts.errors import DataboxError

if TYPE_CHECKING:
    from databox_contracts.notify import Delivery, Settings
    from databox_contracts.registry.api import RegistryApi
    from databox_contracts.registry.store import Registry

R = TypeVar("R")

_LINKS: Final = ("dagster_url", "contracts_url", "smtp_url", "mail_from")


class ContractRegistryResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The registry of contracts: a file on this host, a PostgreSQL database, or a service that is asked over HTTP.

    A service tells versions and consumers, which is all that the checks of compatibility need; the sensors need the
    database itself. A password in the location stands there as `${NAME}`, or comes with the whole of it from
    `dg.EnvVar`; it is in no message. The token of a service is that of `DATABOX_REGISTRY_TOKEN`.
    """

    location: str | None = Field(
        default=None,
        description="A file, postgresql://USER@HOST/DATABASE, or the https:// URL of a service. Without one that of "
        "DATABOX_REGISTRY, else a file in DAGSTER_HOME.",
    )
    patience: float = Field(default=10.0, description="Seconds to wait for a database that is locked or away.")

    def open(self) -> RegistryApi:
        """The registry, to be closed. Raises `RegistryError` where there is none, or none can be opened."""
        from databox_contracts.registry.addresses import is_service

        chosen = self._chosen()
        if not is_service(chosen):
            return self._database(chosen)
        from databox_contracts.registry.client import RegistryClient

        return RegistryClient(chosen)

    def open_database(self) -> Registry:
        """As `open`; raises `DataboxError` for a service, which keeps no read positions and shows no outbox."""
        from databox_contracts.registry.addresses import is_service

        chosen = self._chosen()
        if is_service(chosen):
            raise DataboxError(
                "the registry is a service, which keeps no read positions and shows no outbox",
                hint="Give ContractRegistryResource the registry's file or its postgresql:// URL.",
            )
        return self._database(chosen)

    @classmethod
    def among(cls, resources: Any, key: str) -> ContractRegistryResource:
        """That of the key. Raises `DataboxError` where it is another resource, or none."""
        return _among(resources, key, cls)

    def _chosen(self) -> str:
        from databox_contracts.registry.addresses import default_location

        if self.location is not None and self.location.strip():
            return self.location.strip()
        try:
            return default_location(os.environ)
        except DataboxError as error:
            raise DataboxError(
                error.message, hint="Give ContractRegistryResource a location, or set DATABOX_REGISTRY or DAGSTER_HOME."
            ) from None

    def _database(self, location: str) -> Registry:
        from databox_contracts.registry.store import Registry

        return Registry.open(location, patience=self.patience)


class NotifierResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """How messages leave the outbox: what the channels are configured with, and how much is done at a time.

    What is not given comes from `DATABOX_DAGSTER_URL`, `_CONTRACTS_URL`, `_SMTP_URL` and `_MAIL_FROM`. A secret comes
    from `dg.EnvVar`, or stands in a URL as `${NAME}`, as it does in the contacts of consumers; it is looked up in the
    environment at each sending, and is in no message and no log.
    """

    dagster_url: str | None = Field(default=None, description="The root of Dagster's web server, for links to runs.")
    contracts_url: str | None = Field(
        default=None, description="Where a contract is read, with {contract} and {version} in it."
    )
    smtp_url: str | None = Field(
        default=None, repr=False, description="The mail server: smtps://user:${PASSWORD}@host."
    )
    mail_from: str | None = Field(default=None, description="Who writes the mails.")
    timeout: float = Field(default=10.0, gt=0, description="Seconds that a receiver is given.")
    digest_from: int = Field(
        default=5, ge=0, description="One message is sent when so many wait for one contact; 0 for never."
    )
    lease_seconds: float = Field(
        default=60.0, gt=0, description="Another worker takes over from one that died after so many seconds."
    )

    @classmethod
    def among(cls, resources: Any, key: str) -> NotifierResource:
        """That of the key. Raises `DataboxError` where it is another resource, or none."""
        return _among(resources, key, cls)

    def settings(self, logger: logging.Logger | None = None) -> Settings:
        """What the channels are configured with; `logger` takes the messages to `log:`."""
        from databox_contracts.notify import Settings

        given = {name: getattr(self, name) for name in _LINKS}
        found = replace(
            Settings.from_environ(),
            timeout=self.timeout,
            **{name: value for name, value in given.items() if value},
        )
        return found if logger is None else replace(found, logger=logger)

    @contextmanager
    def delivery(self, registry: Registry, logger: logging.Logger | None = None) -> Iterator[Delivery]:
        """What delivers the registry's messages; its channels are closed at the end."""
        from databox_contracts.notify import Channels, Delivery

        registry.outbox.lease_length = timedelta(seconds=self.lease_seconds)
        channels = Channels(replace(self.settings(logger), tickets=registry.tickets))
        with closing(channels):
            yield Delivery(registry.outbox, channels, digest_from=self.digest_from or None)


def _among(resources: Any, key: str, kind: type[R]) -> R:
    found = getattr(resources, key, None)
    if isinstance(found, kind):
        return found
    there = "there is none" if found is None else f"that is a {type(found).__name__}"
    raise DataboxError(
        f"a {kind.__name__} is needed as the resource {key!r}, and {there}",
        hint=f'Put one there: resources={{"{key}": {kind.__name__}(...)}}.',
    )
