"""Who reads the data, how strictly a contract holds, what becomes of data it does not know: in any form of document."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final

from databox_contracts.formats.reading import Section, described, nearest
from databox_contracts.model import Consumer, Enforcement, Mode, SchemaModes

CONSUMER_TEXTS: Final = ("contact", "owner", "versions", "purpose", "justification", "criticality")
CONSUMER_LISTS: Final = ("contacts", "datasets", "fields")

ENFORCEMENT_MODES: Final = ("fail", "warn")

MODE_KEYS: Final = ("tables", "columns", "data_type")


def consumers_of(entries: Iterable[Section]) -> tuple[Consumer, ...]:
    """Who reads the data, each with a name."""
    found: list[Consumer] = []
    for entry in entries:
        name = entry.needed("name", "a consumer")
        lists = {key: entry.texts(key) for key in CONSUMER_LISTS}
        texts = {key: entry.text(key) for key in CONSUMER_TEXTS}
        entry.close()
        if name is not None:
            found.append(Consumer(name=name, **lists, **texts))  # type: ignore[arg-type]
    return tuple(found)


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
