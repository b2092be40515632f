"""One check of SodaCL while it is read: its text, its options, its table, and the findings about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from databox_contracts.errors import Position
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.rules import NotEnforced, Rule


@dataclass(frozen=True)
class SodaRule:
    """A rule of a check, and the column it is about; None where it is about the whole table."""

    column: str | None
    rule: Rule


@dataclass(frozen=True)
class Table:
    """What reading a check needs to know of the table: its name, and the logical type of each column by name."""

    name: str
    logical: Mapping[str, str | None]


@dataclass
class Check:
    """A check; `steps` below `holder` is where it stands, `options` are the entries indented below it."""

    text: str
    options: Section | None
    table: Table
    holder: Section
    steps: tuple[str | int, ...]

    @property
    def position(self) -> Position:
        """Where the check begins."""
        # The key of a check with options is the check; the value is only what stands below it.
        path = (*self.holder.path, *self.steps)
        return self.holder.report.document.key_position(path)

    def facts(self) -> dict[str, Any]:
        """What all rules of the check have in common."""
        name = self.options.text("name") if self.options is not None else None
        return {"name": name, "description": self.text, "position": self.position}

    def error(self, message: str, hint: str) -> None:
        """An error about the check as a whole."""
        self.holder.error(f"check {self.text[:60]!r}: {message}", hint, *self.steps)

    def skipped(self, reason: str, column: str | None = None) -> SodaRule:
        """The check as a promise that is not evaluated, and the warning that says so."""
        reason = f"the check {self.text[:80]!r}: {reason}"
        self.holder.warning(f"not enforced: {reason}", "it is shown as skipped in every verdict", *self.steps)
        return SodaRule(column, NotEnforced(reason=reason, **self.facts()))

    def column(self, written: str) -> str | None:
        """The column as the contract spells it; an error, with the near ones, where it has none of that name."""
        name = written.strip().strip('"`')
        known = self.table.logical
        if name in known or not known:
            return name
        folded = [other for other in known if other.casefold() == name.casefold()]
        if len(folded) == 1:
            return folded[0]
        near = nearest(name, known)
        hint = f"did you mean {near!r}?" if near else f"it has {', '.join(list(known)[:10])}"
        self.error(f"{name!r} is no field of {self.table.name!r}", hint)
        return None
