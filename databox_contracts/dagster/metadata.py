"""The metadata of assets that mean something here, and how they are read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CONTRACT_METADATA: Final = "contract"
DATASET_METADATA: Final = "contract_dataset"
ON_VIOLATION_METADATA: Final = "on_violation"
REFERENCES_METADATA: Final = "references"
SCHEMA_MODES_METADATA: Final = "schema_modes"


def metadata_value(metadata: Mapping[str, Any] | None, name: str) -> Any:
    """The plain value under that name, whichever of Dagster's metadata values it is in; None where there is none."""
    value = (metadata or {}).get(name)
    return getattr(value, "data", getattr(value, "value", value))


def metadata_path(metadata: Mapping[str, Any] | None, name: str) -> str | None:
    """The path under that name, of a path's metadata value or a text."""
    value = (metadata or {}).get(name)
    found = getattr(value, "path", None) or getattr(value, "value", None) or value
    return str(found) if found is not None else None
