"""`customProperties`: what the standard has no word for, and the few of them that change what is enforced."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, Final

from databox_contracts.formats.reading import Section, described, nearest
from databox_contracts.model import Enforcement, Mode, SchemaModes

DOCUMENT: Final = "$odcs"
"""The name under which `custom` carries the standard's own entries that the model has no place for."""

_DOCUMENTATION: Final = ("id", "description", "vendor")
_ENFORCEMENT_MODES: Final = ("fail", "warn")
_MODE_KEYS: Final = {"tables": "tables", "columns": "columns", "data_type": "data_type", "dataType": "data_type"}


class CustomProperties:
    """The custom properties of one element by name, each with the section that it stands in."""

    def __init__(self, owner: Section) -> None:
        self._sections: dict[str, Section] = {}
        for section in owner.sections("customProperties"):
            name = section.needed("property", "a custom property")
            section.carried("value", *_DOCUMENTATION)
            section.close()
            if name is None:
                continue
            if name in self._sections:
                section.error(f"the custom property {name!r} stands here again", "remove one", "property")
                continue
            self._sections[name] = section

    @property
    def values(self) -> dict[str, Any]:
        """Every property and its value, as written."""
        return {name: section.data.get("value") for name, section in self._sections.items()}

    def holder(self, name: str) -> Section | None:
        """The section whose `value` is the property's, where it has one."""
        section = self._sections.get(name)
        return section if section is not None and section.data.get("value") is not None else None

    def text(self, name: str) -> str | None:
        """The property as text."""
        section = self.holder(name)
        return section.text("value") if section is not None else None

    def flag(self, name: str) -> bool | None:
        """The property as true or false. It decides what may be shown, so anything unclear is an error."""
        section = self.holder(name)
        if section is None:
            return None
        written = section.report.document.text((*section.path, "value"))
        if written is not None and written.strip().lower() in ("true", "false"):
            return written.strip().lower() == "true"
        shown = described(section.data["value"])
        section.error(f"{name!r} must be true or false, not {shown}", "write `value: true`", "value")
        return None

    def unenforced(self, *names: str, hint: str) -> None:
        """Notes those of the properties that mean something elsewhere and nothing here."""
        for section in self._found(names):
            section.warning(f"{section.data['property']!r} has no effect here", hint, "property")

    def _found(self, names: tuple[str, ...]) -> Iterator[Section]:
        yield from (section for name in names if (section := self.holder(name)) is not None)


def read_modes(properties: CustomProperties) -> SchemaModes | None:
    """`schemaModes`: one word for all three, or a word each for `tables`, `columns` and `data_type`."""
    holder = properties.holder("schemaModes")
    if holder is None:
        alone = properties.holder("columns")
        mode = _mode(alone, "value") if alone is not None else None
        return SchemaModes(columns=mode) if mode is not None else None
    if not isinstance(holder.data["value"], dict):
        mode = _mode(holder, "value")
        return SchemaModes(tables=mode, columns=mode, data_type=mode) if mode is not None else None
    section = holder.section("value")
    if section is None:
        return None
    found: dict[str, Mode] = {}
    for key, name in _MODE_KEYS.items():
        mode = _mode(section, key)
        if mode is not None:
            found[name] = mode
    section.close()
    return SchemaModes(**found)


def _mode(section: Section, key: str) -> Mode | None:
    written = section.text(key)
    if written is None:
        return None
    if written in tuple(Mode):
        return Mode(written)
    near = nearest(written, [mode.value for mode in Mode])
    section.error(
        f"unknown schema mode {written!r}", f"did you mean {near!r}?" if near else f"use one of {', '.join(Mode)}", key
    )
    return None


def read_enforcement(properties: CustomProperties) -> Enforcement:
    """`enforcement: {mode, until}`: a grace period, which has to end."""
    holder = properties.holder("enforcement")
    section = holder.section("value") if holder is not None else None
    if section is None:
        return Enforcement()
    mode = section.text("mode") or "fail"
    if mode not in _ENFORCEMENT_MODES:
        section.error(f"unknown enforcement mode {mode!r}", f"use {' or '.join(_ENFORCEMENT_MODES)}", "mode")
        mode = "fail"
    until = None
    if "until" in section:
        written = section.report.document.text((*section.path, "until")) or ""
        try:
            until = date.fromisoformat(written)
        except ValueError:
            section.error(
                f"'until' must be a date, not {described(section.data['until'])}", "write 2026-01-31", "until"
            )
    elif mode == "warn":
        section.error("a grace period has no end", "give it `until: 2026-01-31`")
    section.close()
    return Enforcement(mode=mode, until=until)
