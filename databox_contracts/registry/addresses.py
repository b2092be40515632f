"""Where a registry is: a file, a database's URL, or a service's; and how that is said without a password."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from databox_contracts.errors import RegistryError

VARIABLE: Final = "DATABOX_REGISTRY"
"""Names the registry where a command is given none."""

FILE: Final = "databox_registry.db"

_DRIVERS: Final = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_PLACEHOLDER: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_QUOTED_PLACEHOLDER: Final = re.compile(r"%24%7B([A-Za-z_][A-Za-z0-9_]*)%7D")
_SECRET_SETTINGS: Final = ("password", "sslpassword", "passfile", "oauth_client_secret")


@dataclass(frozen=True, slots=True)
class Address:
    """A database's URL, its secrets included, and `shown`, which has none of them."""

    url: URL
    shown: str

    @property
    def file(self) -> Path | None:
        """The file of a SQLite database, None of any other."""
        return Path(str(self.url.database)) if self.url.get_backend_name() == "sqlite" else None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be in any text."""
        settings = [str(value) for name, value in self.url.query.items() if name.lower() in _SECRET_SETTINGS]
        return tuple(filter(None, (str(self.url.password or ""), *settings)))

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def is_service(location: str) -> bool:
    """Whether a registry's location is that of a service."""
    return location.lower().startswith(("http://", "https://"))


def default_location(environment: Mapping[str, str]) -> str:
    """`DATABOX_REGISTRY`, else a file in `DAGSTER_HOME`. Raises `RegistryError` where neither is set."""
    if said := environment.get(VARIABLE, "").strip():
        return said
    if home := environment.get("DAGSTER_HOME", "").strip():
        return str(Path(home) / FILE)
    raise RegistryError(
        "nobody says where the registry is",
        hint=f"Name it with --registry, or set {VARIABLE} or DAGSTER_HOME.",
    )


def read_address(location: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Address:
    """The address of a database: a file's path, `sqlite:///FILE` or `postgresql://USER@HOST/DATABASE`.

    User and password may be `${NAME}`, from the environment. Raises `RegistryError`; no password is in its text.
    """
    text = os.fspath(location)
    if not text.strip() or "\0" in text:
        raise RegistryError("the registry's location is empty or no path", hint="Name a file or a database's URL.")
    if "://" not in text:
        path = str(Path(text).expanduser().absolute())
        return Address(URL.create("sqlite+pysqlite", database=path), path)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise RegistryError(
            "the registry's location is no URL of a database",
            hint="Write postgresql://USER@HOST:PORT/DATABASE, or the path of a file.",
        ) from None
    driver = _DRIVERS.get(url.drivername.lower())
    if driver is None:
        raise RegistryError(
            f"a registry is not kept in {url.drivername!r}", hint="Use postgresql:// or a file, which is SQLite."
        )
    if driver.startswith("sqlite"):
        if not url.database or url.database == ":memory:":
            raise RegistryError("a registry in memory would be lost", hint="Name a file: sqlite:///FILE.")
        path = str(Path(url.database).expanduser().absolute())
        return Address(URL.create(driver, database=path), path)
    known = os.environ if environment is None else environment
    shown = url.set(query={name: value for name, value in url.query.items() if name.lower() not in _SECRET_SETTINGS})
    full = url.set(drivername=driver, username=_filled(url.username, known), password=_filled(url.password, known))
    text = shown.set(drivername="postgresql").render_as_string(hide_password=True)
    return Address(full, _QUOTED_PLACEHOLDER.sub(r"${\1}", text))


def _filled(part: object, environment: Mapping[str, str]) -> str | None:
    return _PLACEHOLDER.sub(lambda found: _value(found[1], environment), str(part)) if part is not None else None


def _value(name: str, environment: Mapping[str, str]) -> str:
    if name not in environment:
        raise RegistryError(
            f"the registry's URL names ${{{name}}}, which is not set", hint=f"Set {name} in the environment."
        )
    return environment[name]
