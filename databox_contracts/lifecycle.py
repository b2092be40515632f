"""When a version of a contract begins and ends, and what its changelog says: custom properties of well-known names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final

from databox_contracts.model import Contract
from databox_contracts.versions import Version

EFFECTIVE: Final = "effectiveDate"
"""The day from which a version is published."""

SUNSET: Final = "sunsetDate"
"""The day from which a version is no longer there."""

CHANGELOG: Final = "changelog"
"""What each version changed: a list of `{version, ...}` mappings, or a mapping from versions."""


def effective_date(contract: Contract) -> date | None:
    """The day the version takes effect, None where the contract says none or nothing that is a date."""
    return _day(contract.custom.get(EFFECTIVE))


def sunset_date(contract: Contract) -> date | None:
    """The day the version ends, None where the contract says none or nothing that is a date."""
    return _day(contract.custom.get(SUNSET))


def changelog_entry(contract: Contract) -> str | None:
    """What the changelog says of the contract's own version, as one text; None where it says nothing."""
    entries = contract.custom.get(CHANGELOG)
    if isinstance(entries, Mapping):
        pairs = [(str(version), entry) for version, entry in entries.items()]
    elif isinstance(entries, list):
        pairs = [
            (str(entry["version"]), {name: value for name, value in entry.items() if name != "version"})
            for entry in entries
            if isinstance(entry, Mapping) and "version" in entry
        ]
    else:
        return None
    own = Version.parse(contract.version)
    for version, entry in pairs:
        if version == contract.version or (own is not None and Version.parse(version) == own):
            return _text(entry)
    return None


def _day(value: Any) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value)[:10]) if value is not None else None
    except ValueError:
        return None


def _text(entry: Any) -> str:
    if isinstance(entry, Mapping):
        return "; ".join(f"{name}: {_text(value)}" for name, value in entry.items())
    if isinstance(entry, list):
        return ", ".join(_text(item) for item in entry)
    return str(entry)
