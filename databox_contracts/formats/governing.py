"""Who reads the data, how strictly a contract holds, what becomes of data it does not know: in any form of document."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any, Final

from databox_contracts.errors import VersionRangeError
from databox_contracts.formats.reading import Section, described, nearest
from databox_contracts.model import Consumer, Enforcement, Mode, SchemaModes
from databox_contracts.rules import Severity
from databox_contracts.version_ranges import VersionRange

CONSUMER_TEXTS: Final = ("contact", "owner", "versions", "purpose", "justification", "criticality")
CONSUMER_LISTS: Final = ("contacts", "datasets", "fields", "assets")
CONSUMER_FACTS: Final = (*CONSUMER_TEXTS, *CONSUMER_LISTS, "severity", "digest")
"""What a document says of a consumer beside its name, in the words of the model."""

ENFORCEMENT_MODES: Final = ("fail", "warn")

MODE_KEYS: Final = ("tables", "columns", "data_type")


def consumers_of(entries: Iterable[Section]) -> tuple[Consumer, ...]:
    """Who reads the data, each with a name."""
    found: list[Consumer] = []
    for entry in entries:
        name = entry.needed("name", "a consumer")
        facts = consumer_facts(entry)
        entry.close()
        if name is not None:
            found.append(Consumer(name=name, **facts))
    return tuple(found)


def consumer_facts(entry: Section) -> dict[str, Any]:
    """What the entry says of a consumer, by the model's names; a severity that is none is an error and left out."""
    found: dict[str, Any] = {key: entry.texts(key) for key in CONSUMER_LISTS}
    found |= {key: entry.text(key) for key in CONSUMER_TEXTS}
    found["severity"] = _severity(entry)
    found["versions"] = _range(entry, found["versions"])
    found["digest"] = entry.flag("digest") or False
    return found


def _severity(entry: Section) -> Severity | None:
    written = entry.text("severity")
    if written is None or written in tuple(Severity):
        return Severity(written) if written is not None else None
    near = nearest(written, [one.value for one in Severity])
    hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(Severity)}"
    entry.error(f"unknown severity {written[:60]!r}", hint, "severity")
    return None


def _range(entry: Section, written: str | None) -> str | None:
    if written is not None:
        try:
            VersionRange.parse(written)
        except VersionRangeError as error:
            entry.error(f"{error.message[:100]}", error.hint, "versions")
            return None
    return written


def written_consumers(consumers: Iterable[Consumer]) -> list[dict[str, Any]]:
    """The entries of a document that say who reads the data; what a consumer does not say is left out."""
    entries = ({"name": one.name, **{key: getattr(one, key) for key in CONSUMER_FACTS}} for one in consumers)
    return [
        {
            key: str(value) if key == "severity" else value
            for key, value in entry.items()
            if value not in (None, (), False)
        }
        for entry in entries
    ]


def extra_consumers(section: Section) -> tuple[Consumer, ...]:
    """`consumers` of a document whose dialect has no such word.

    Anything but a list of mappings is somebody else's, and so is one in which nobody has a name.
    """
    entries = section.data.get("consumers")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return ()
    if not any("name" in entry for entry in entries):
        return ()
    return consumers_of(section.sections("consumers"))


def enforcement_of(section: Section | None) -> Enforcement:
    """`{mode, until}`: a grace period, which has to end."""
    if section is None:
        return Enforcement()
    mode = section.text("mode") or "fail"
    if mode not in ENFORCEMENT_MODES:
        section.error(f"unknown enforcement mode {mode!r}", f"use {' or '.join(ENFORCEMENT_MODES)}", "mode")
        mode = "fail"
    until = None
    if "until" in section:
        written = section.report.document.text((*section.path, "until")) or ""
        try:
            until = date.fromisoformat(written)
        except ValueError:
            shown = described(section.data["until"])
            section.error(f"'until' must be a date, not {shown}", "write 2026-01-31", "until")
    elif mode == "warn":
        section.error("a grace period has no end", "give it `until: 2026-01-31`")
    section.close()
    return Enforcement(mode=mode, until=until)


def modes_of(holder: Section, key: str) -> SchemaModes | None:
    """What happens to data that the contract does not know: one word for all of `MODE_KEYS`, or a word for each.

    `data_type` may be written `dataType`. What is left out, or is no mode, is as usual.
    """
    if holder.data.get(key) is None:
        return None
    if not isinstance(holder.data[key], dict):
        mode = mode_of(holder, key)
        return SchemaModes(**dict.fromkeys(MODE_KEYS, mode)) if mode is not None else None
    section = holder.section(key)
    if section is None:
        return None
    found = {name: mode_of(section, name) for name in MODE_KEYS}
    found["data_type"] = mode_of(section, "dataType") or found["data_type"]
    section.close()
    return SchemaModes(**{name: mode for name, mode in found.items() if mode is not None})


def mode_of(section: Section, key: str) -> Mode | None:
    """One of the modes; None where there is none, or something else, which is an error."""
    written = section.text(key)
    if written is None or written in tuple(Mode):
        return Mode(written) if written is not None else None
    near = nearest(written, [mode.value for mode in Mode])
    hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(Mode)}"
    section.error(f"unknown schema mode {written[:60]!r}", hint, key)
    return None
