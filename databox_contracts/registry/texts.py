"""What may stand in the tables' text columns, and the one spelling of a version."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from databox_contracts.errors import RegistryError
from databox_contracts.versions import Version

# Keys of indexes have a largest size in PostgreSQL.
MOST_BYTES: Final = 800


def named(what: str, value: str) -> str:
    """A name for a key column. Raises `RegistryError` for an empty or very long one, and as `storable`."""
    if not isinstance(value, str) or not value.strip():
        raise RegistryError(f"{what} is empty", hint="Give it a name.")
    storable(what, value)
    if len(value.encode()) > MOST_BYTES:
        raise RegistryError(f"{what} is longer than {MOST_BYTES} bytes: {value[:60]!r}...", hint="Shorten it.")
    return value


def storable(what: str, value: str) -> str:
    """A text that both databases keep as it is. Raises `RegistryError` for a NUL and for half a character."""
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise RegistryError(f"{what} has a character that no database keeps: {value[:60]!r}", hint="Remove it.")
    return value


def kept(value: str, longest: int) -> str:
    """A text for reading, with what cannot be stored replaced and what is too much cut off."""
    cleaned = value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    return cleaned if len(cleaned) <= longest else f"{cleaned[: longest - 1]}…"


def ordinal(version: str) -> str:
    """The one spelling of a version: `v3.2` and `3.2` are `3.2.0`; what is no semantic version stays as it is."""
    parsed = Version.parse(version)
    if parsed is None:
        return version.strip()
    parts = ".".join(text or str(number) for _, number, text in parsed.release)
    return f"{parsed}-{parts}" if parsed.is_prerelease else str(parsed)


def ascending(version: str, published_at: datetime) -> tuple[Any, ...]:
    """What versions of a contract are sorted by: those that are no semantic ones come first, as they were published."""
    parsed = Version.parse(version)
    return (0, published_at, version) if parsed is None else (1, parsed, version)
