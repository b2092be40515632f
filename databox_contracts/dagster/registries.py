"""The registry that a step is to use, opened when the step runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from databox_contracts.errors import DataboxError

if TYPE_CHECKING:
    from databox_contracts.registry.store import Registry


class OpensRegistry(Protocol):
    """Anything that opens a registry, such as a resource of one's own."""

    def open(self) -> Registry:
        """The registry; whoever asked for it closes it."""
        ...


RegistryGiven: TypeAlias = "str | os.PathLike[str] | OpensRegistry | None"


def require_database(given: RegistryGiven) -> None:
    """Raises `DataboxError` for a service's URL, which takes no messages and keeps no baselines."""
    # Loading definitions must stay free of sqlalchemy, which the registry's own modules import.
    if isinstance(given, str | os.PathLike) and os.fspath(given).lower().startswith(("http://", "https://")):
        raise DataboxError(
            "a registry's service takes no messages and keeps no baselines",
            hint="Name the registry's file or its postgresql:// URL.",
        )


def named_location() -> str | Path | None:
    """Where the registry is that nobody gave: as `DATABOX_REGISTRY` says, else the file in `DAGSTER_HOME`.

    None where none is named, and there is no such file: nobody uses a registry.
    """
    from databox_contracts.registry.addresses import FILE, VARIABLE

    if named := os.environ.get(VARIABLE, "").strip():
        return named
    home = os.environ.get("DAGSTER_HOME", "").strip()
    file = Path(home) / FILE
    return file if home and file.is_file() else None


@contextmanager
def opened(given: RegistryGiven) -> Iterator[Registry]:
    """The registry that is given, else that of `DATABOX_REGISTRY`, else the file in `DAGSTER_HOME`, made if missing.

    Raises `RegistryError`.
    """
    from databox_contracts.registry.addresses import default_location
    from databox_contracts.registry.store import Registry

    if given is not None and not isinstance(given, str | os.PathLike):
        with closing(given.open()) as registry:
            yield registry
        return
    location = given if given is not None else default_location(os.environ)
    require_database(location)
    with closing(Registry.open(location)) as registry:
        yield registry
