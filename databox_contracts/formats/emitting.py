"""Plain data to YAML text that every reader of YAML 1.1 and 1.2 takes for the same data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import yaml

_STRING: Final = "tag:yaml.org,2002:str"

# What some reader of YAML takes for something else than text: `y` and `n` (1.1), octal and exponents (1.2), versions.
_MISREAD: Final = re.compile(r"[yYnN]|0o[0-7]+|[-+.]?\d[\d_.,:eExXa-fA-F+-]*|[-+]?\.(?:inf|nan)", re.IGNORECASE)
_LINE: Final = 120


class _Dumper(yaml.SafeDumper):
    """Block style, lists indented below their key, no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        # Lists below a key are indented, as people write them.
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    if "\n" in value and _fits_a_block(value):
        return dumper.represent_scalar(_STRING, value, style="|")
    tag = dumper.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]
    misread = _MISREAD.fullmatch(value) or tag != _STRING
    if misread or not value.isprintable():
        return dumper.represent_scalar(_STRING, value, style='"')
    return dumper.represent_scalar(_STRING, value)


def _fits_a_block(value: str) -> bool:
    # A block says its indentation by its first line; what ends in a space is not a block to libyaml.
    lines = value.split("\n")
    return all(line.isprintable() and line == line.rstrip() for line in lines) and lines[0][:1] not in ("", " ")


def _decimal(dumper: yaml.SafeDumper, value: Decimal) -> yaml.Node:
    # Written out: an exponent without a dot is text to YAML 1.1.
    written = format(value.normalize(), "f")
    kind = "float" if "." in written else "int"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{kind}", written)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Decimal, _decimal)


def plain(value: Any) -> Any:
    """The value as dicts with text keys, lists and scalars, in the same order; moments become ISO 8601 text."""
    match value:
        case bool() | None | Decimal():
            return value
        case str():
            return str.__str__(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return str(value)


def to_yaml(data: Mapping[str, Any]) -> str:
    """The YAML text of plain data, entries in their own order.

    Text that any reader would take for a number, a date, a truth value or nothing is in quotes, so `NO` stays a country
    and `3.10` a version.
    """
    text: str = yaml.dump(
        plain(data),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=_LINE,
    )
    return text
