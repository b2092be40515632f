"""What a value of a field may be, in the words of the Data Contract Specification: bounds, lengths, patterns, lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.datatypes import DataType
from databox_contracts.formats.bounds import check_ranges
from databox_contracts.formats.datacontract_types import DOCUMENT, Source
from databox_contracts.formats.odcs_options import check_pattern, unenforced
from databox_contracts.formats.odcs_values import TEMPORAL, read_limit, read_values
from databox_contracts.formats.reading import Section
from databox_contracts.rules import Rule

# Formats of text that are promises of ours.
FORMATS: Final = (
    "byte",
    "date",
    "date-time",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uri",
    "uuid",
)


BOUNDS: Final[dict[str, Callable[..., Rule]]] = {
    "minimum": rules.Minimum,
    "maximum": rules.Maximum,
    "exclusiveMinimum": rules.ExclusiveMinimum,
    "exclusiveMaximum": rules.ExclusiveMaximum,
}
LENGTHS: Final[dict[str, Callable[..., Rule]]] = {"minLength": rules.MinLength, "maxLength": rules.MaxLength}
_OF_NUMBERS: Final = ("integer", "number", *TEMPORAL, None)
_OF_TEXT: Final = ("string", None)

APPLIES: Final[dict[str, tuple[str | None, ...]]] = {
    **dict.fromkeys(BOUNDS, _OF_NUMBERS),
    **dict.fromkeys((*LENGTHS, "pattern", "format"), _OF_TEXT),
}
"""The logical types that an entry says something of; None is a type that is not said."""


def without_effect(entries: Mapping[str, Any], logical: str | None) -> dict[str, Any]:
    """The entries that say nothing of a field of that logical type, such as the length of a number."""
    return {key: entries[key] for key, to in APPLIES.items() if entries.get(key) is not None and logical not in to}


def read_field_values(source: Source, type_: DataType | None, logical: str | None) -> list[Rule]:
    """The rules on single values of a field of that type; what has no effect on the type is a warning."""
    found: list[Rule] = []
    for key, make in BOUNDS.items():
        holder = source.of(key)
        if _applies(holder, key, logical, "numbers, dates and timestamps"):
            limit = read_limit(holder, key, logical)
            if limit is not None:
                found.append(make(limit=limit, position=holder.at(key)))
    for key, make in LENGTHS.items():
        holder = source.of(key)
        if _applies(holder, key, logical, "text"):
            length = holder.count(key)
            if length is not None:
                found.append(make(length=length, position=holder.at(key)))
    holder = source.of("pattern")
    if _applies(holder, "pattern", logical, "text"):
        pattern = holder.text("pattern")
        if pattern is not None and check_pattern(holder, pattern, "pattern"):
            found.append(rules.Pattern(pattern=pattern, position=holder.at("pattern")))
    found.extend(_format(source.of("format"), logical))
    found.extend(_enum(source.of("enum"), logical))
    check_ranges(source.own, found, logical)
    return found


def _applies(holder: Section, key: str, logical: str | None, what: str) -> bool:
    if key not in holder:
        return False
    if logical not in APPLIES[key]:
        holder.warning(f"{key!r} has no effect on the type {logical}", f"it is about {what}", key)
        return False
    return True


def _format(holder: Section, logical: str | None) -> Iterator[Rule]:
    written = holder.text("format")
    if written is None:
        return
    if logical in TEMPORAL:
        holder.note(f"the format {written[:60]!r} of a {logical} is not enforced", None, "format")
    elif logical not in _OF_TEXT:
        holder.warning(f"'format' has no effect on the type {logical}", "it is about text", "format")
    elif written.strip().lower() in FORMATS:
        yield rules.Format(format=written.strip().lower(), position=holder.at("format"))
    else:
        reason = f"the format {written[:60]!r}, which is not known here"
        yield unenforced(holder, reason, "format", custom={DOCUMENT: {"format": written}})


def _enum(holder: Section, logical: str | None) -> Iterator[Rule]:
    if "enum" not in holder:
        return
    entries = holder.listed("enum")
    if not entries:
        if isinstance(holder.data["enum"], list):
            holder.error("'enum' allows no value at all", "list the allowed values, or leave it out", "enum")
        return
    values = read_values(holder, [("enum", at) for at in range(len(entries))], logical)
    seen: set[tuple[type, object]] = set()
    for at, value in enumerate(values):
        if (type(value), value) in seen:
            holder.warning("a value of 'enum' is listed twice", "remove one", "enum", at)
        seen.add((type(value), value))
    if values:
        yield rules.Enum(values=values, position=holder.at("enum"))
