"""Plain data to JSON text, numbers as exact as the contract has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

_INDENT: Final = "  "


def to_json(data: Any, indent: str = "") -> str:
    """The text, entries in their own order, a list of scalars on one line.

    A decimal is written with all of its digits. Raises `ValueError` for NaN and infinity, which JSON does not have.
    """
    inner = indent + _INDENT
    match data:
        case Mapping() | list() | tuple() if not data:
            return "{}" if isinstance(data, Mapping) else "[]"
        case Mapping():
            entries = (f"{inner}{_scalar(str(key))}: {to_json(value, inner)}" for key, value in data.items())
            return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
        case list() | tuple() if any(isinstance(item, Mapping | list | tuple) for item in data):
            return "[\n" + ",\n".join(f"{inner}{to_json(item, inner)}" for item in data) + f"\n{indent}]"
        case list() | tuple():
            return f"[{', '.join(_scalar(item) for item in data)}]"
    return _scalar(data)


def _scalar(value: Any) -> str:
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is no number in JSON")
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
