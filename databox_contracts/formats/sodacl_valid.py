"""What the options below a check of SodaCL say about missing and valid values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.formats.odcs_options import check_pattern
from databox_contracts.formats.odcs_values import read_limit, read_values
from databox_contracts.formats.reading import Section
from databox_contracts.formats.sodacl_check import Check, SodaRule
from databox_contracts.rules import Rule, Threshold


def read_listed(options: Section, key: str, logical: str | None) -> tuple[rules.Scalar, ...]:
    """The values of a list, as the column's type wants them."""
    places = [(key, at) for at in range(len(options.listed(key)))]
    return read_values(options, places, logical)


def _valid_values(
    check: Check, options: Section, key: str, column: str, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[Rule]:
    values = read_listed(options, key, check.table.logical.get(column))
    if not values and isinstance(options.data[key], list) and not options.data[key]:
        check.error("'valid values' allows no value at all", "list them")
    elif values:
        yield rules.InvalidCount(valid_values=values, threshold=threshold, **facts)


def _valid_pattern(
    check: Check, options: Section, key: str, column: str, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[Rule]:
    pattern = options.text(key)
    if pattern is not None and check_pattern(options, pattern, key):
        # Soda matches the whole value.
        whole = pattern if pattern.startswith("^") and pattern.endswith("$") else f"^(?:{pattern})$"
        yield rules.InvalidCount(pattern=whole, threshold=threshold, **facts)


def _valid_format(
    check: Check, options: Section, key: str, column: str, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[Rule | SodaRule]:
    name = options.text(key)
    if name is None:
        return
    pattern = FORMATS.get(name.strip().lower())
    if pattern is None:
        yield check.skipped(f"the format {name[:40]!r} is not known here", column)
    else:
        yield rules.InvalidCount(pattern=pattern, threshold=threshold, **facts)


def _of_every_value(make: Callable[..., Rule], fact: str, *, length: bool) -> Any:
    def read(
        check: Check, options: Section, key: str, column: str, threshold: Threshold, facts: dict[str, Any]
    ) -> Iterator[Rule | SodaRule]:
        logical = check.table.logical.get(column)
        limit = options.count(key) if length else read_limit(options, key, logical)
        if limit is None:
            return
        if threshold.allows_none:
            yield make(**{fact: limit}, **facts)
        else:
            yield check.skipped(f"{key!r} is enforced only where no value may break it", column)

    return read


def _valid_length(
    check: Check, options: Section, key: str, column: str, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[Rule | SodaRule]:
    length = options.count(key)
    if length is None:
        return
    yield rules.InvalidCount(pattern=rf"^[\s\S]{{{length}}}$", threshold=threshold, **facts)


VALIDITY: Final[dict[str, Any]] = {
    "valid values": _valid_values,
    "valid regex": _valid_pattern,
    "valid format": _valid_format,
    "valid length": _valid_length,
    "valid min": _of_every_value(rules.Minimum, "limit", length=False),
    "valid max": _of_every_value(rules.Maximum, "limit", length=False),
    "valid min length": _of_every_value(rules.MinLength, "length", length=True),
    "valid max length": _of_every_value(rules.MaxLength, "length", length=True),
}
"""What reads each option that says what is valid: `(check, options, key, column, threshold, facts) -> rules`."""

_HEX: Final = "[0-9A-Fa-f]"

FORMATS: Final[dict[str, str]] = {
    "date eu": r"^(?:0?[1-9]|[12]\d|3[01])[-./](?:0?[1-9]|1[0-2])[-./]\d{4}$",
    "date us": r"^(?:0?[1-9]|1[0-2])[-./](?:0?[1-9]|[12]\d|3[01])[-./]\d{4}$",
    "date inverse": r"^\d{4}[-./](?:0?[1-9]|1[0-2])[-./](?:0?[1-9]|[12]\d|3[01])$",
    "date iso 8601": r"^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:T[0-9:.]+(?:Z|[+-]\d{2}:?\d{2})?)?$",
    "decimal": r"^[-+]?(?:\d+(?:[.,]\d*)?|[.,]\d+)$",
    "decimal comma": r"^[-+]?(?:\d+(?:,\d*)?|,\d+)$",
    "decimal point": r"^[-+]?(?:\d+(?:\.\d*)?|\.\d+)$",
    "email": r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}$",
    "integer": r"^[-+]?\d+$",
    "ipv4 address": r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)$",
    "negative integer": r"^-\d+$",
    "percentage": r"^[-+]?(?:\d+(?:[.,]\d*)?|[.,]\d+)\s*%$",
    "positive integer": r"^\+?\d+$",
    "uuid": rf"^{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}$",
}
"""Soda's names of formats, those that are enforced here, as patterns of ECMA-262."""
