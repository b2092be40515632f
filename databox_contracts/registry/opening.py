"""A registry by its location, wherever that is."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime

from databox_contracts.registry.addresses import default_location, is_service
from databox_contracts.registry.api import RegistryApi
from databox_contracts.registry.database import utc_now
from databox_contracts.registry.store import Registry


def open_registry(location: str | None = None, *, clock: Callable[[], datetime] = utc_now) -> RegistryApi:
    """The registry of a path, a database's URL or a service's; the default one where no location is given."""
    chosen = location if location is not None else default_location(os.environ)
    if not is_service(chosen):
        return Registry.open(chosen, clock=clock)
    from databox_contracts.registry.client import RegistryClient

    return RegistryClient(chosen)
