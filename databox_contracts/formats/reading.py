"""Asking a document for what it should hold: every entry is asked for once, and what nobody asked for is reported."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

import yaml

from databox_contracts.errors import Finding, Level, Position
from databox_contracts.formats.positions import DataPath, Document, position_of, text_of
from databox_contracts.rules import Number

_MOST_UNKNOWN: Final = 20

_SIXTIES: Final = ":"

# What YAML 1.2 and JSON call a number and YAML 1.1 does not, such as 1e3.
_NUMBER: Final = re.compile(r"[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][-+]?\d{1,3})?")


class Report:
    """The findings about one document, and which of its places have been looked at."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.findings: list[Finding] = list(document.findings)
        # Where something is wrong; a note says only that something is not enforced.
        self.places: set[DataPath] = set()
        self.asked: defaultdict[DataPath, set[str]] = defaultdict(set)

    def add(
        self,
        level: Level,
        path: DataPath,
        message: str,
        hint: str | None = None,
        *,
        field: str | None,
        position: Position,
    ) -> None:
        """One remark about what stands at `path`."""
        if level is not Level.NOTE:
            self.places.add(path)
        self.findings.append(Finding(self.document.source, level, message, position, hint, field))

    @property
    def has_errors(self) -> bool:
        """Whether the document cannot be used as a contract."""
        return any(finding.level is Level.ERROR for finding in self.findings)

    def in_order(self) -> list[Finding]:
        """All findings, from the top of the document to its end."""
        return sorted(self.findings, key=lambda found: _line_and_column(found.position))


def _line_and_column(position: Position | None) -> tuple[int, int]:
    return (0, 0) if position is None else (position.line, position.column)


class Section:
    """A mapping of the document being read.

    A missing entry and one that is null give None (or nothing, for lists). An entry of the wrong kind is reported as
    an error, and gives the same. `close` reports what was never asked for. `field` names the field that findings
    are about.
    """

    def __init__(self, report: Report, path: DataPath, data: Mapping[str, Any], field: str | None = None) -> None:
        self.report = report
        self.path = path
        self.data = data
        self.field = field
        self._asked = report.asked[path]

    def __contains__(self, key: str) -> bool:
        self._asked.add(key)
        return self.data.get(key) is not None

    @property
    def position(self) -> Position:
        """Where the section begins."""
        node = self.report.document.node(self.data)
        return self.report.document.position(self.path) if node is None else position_of(node)

    def at(self, *steps: str | int) -> Position:
        """Where the value below this section stands."""
        node = self._node(steps)
        return self.report.document.position((*self.path, *steps)) if node is None else position_of(node)

    def written(self, *steps: str | int) -> str | None:
        """The scalar below this section as it was written, see `Document.text`."""
        value = self.data.get(steps[0]) if len(steps) == 1 and isinstance(steps[0], str) else None
        if isinstance(value, str):
            # Text is what was written.
            return value
        node = self._node(steps)
        return self.report.document.text((*self.path, *steps)) if node is None else text_of(node)

    def raw(self, key: str) -> Any:
        """The value as it is, of whatever kind."""
        self._asked.add(key)
        return self.data.get(key)

    def carried(self, *keys: str) -> dict[str, Any]:
        """Those of the entries that are there, as they are: documentation, which nothing is derived from."""
        self._asked.update(keys)
        data = self.data
        return {key: data[key] for key in keys if data.get(key) is not None}

    # --- scalars ------------------------------------------------------------------------------------------------------

    def text(self, key: str) -> str | None:
        """Text; a number or a boolean gives what was written, with a warning that it wants quotes."""
        self._asked.add(key)
        value = self.data.get(key)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, list | dict):
            self.error(f"{key!r} must be text, not {described(value)}", f"write {key}: some text", key)
            return None
        written = self.written(key)
        self.warning(f"{key!r} is {described(value)} and is read as the text {written!r}", "put it in quotes", key)
        return written

    def needed(self, key: str, what: str) -> str | None:
        """Text that must be there and not be empty."""
        value = self.text(key)
        if value is not None and value.strip():
            return value
        if value is None and key in self:
            # It was no text, which has been reported.
            return None
        self.error(f"{what} has no {key!r}", f"give it one: `{key}: ...`", *((key,) if key in self.data else ()))
        return None

    def flag(self, key: str) -> bool | None:
        """True or false."""
        self._asked.add(key)
        value = self.data.get(key)
        if value is None or isinstance(value, bool):
            return value
        self.error(f"{key!r} must be true or false, not {described(value)}", f"write `{key}: true`", key)
        return None

    def count(self, key: str, least: int = 0) -> int | None:
        """A whole number of at least `least`."""
        value = self.number(key)
        if value is None:
            return None
        if not least <= value < 2**31 or value != int(value):
            self.error(
                f"{key!r} must be a whole number of at least {least}, not {described(self.data[key])}",
                "correct it",
                key,
            )
            return None
        return int(value)

    def number(self, key: str) -> Number | None:
        """A finite number, exact where a float would not be."""
        self._asked.add(key)
        value = self.data.get(key)
        if value is None:
            return None
        return value if type(value) is int and not self._in_sixties(key) else self.number_at(key)

    def number_at(self, *steps: str | int) -> Number | None:
        """The finite number below this section, or an error."""
        found = self.tried_number(*steps)
        if found is None:
            shown = described(self._below(steps))
            self.error(f"{_label(steps)} must be a number, not {shown}", "write a number without quotes", *steps)
        return found

    def tried_number(self, *steps: str | int) -> Number | None:
        """The finite number below this section; None, and no finding, for anything else."""
        value, written = self._below(steps), self.written(*steps) or ""
        if isinstance(value, bool) or _SIXTIES in written:
            return None
        if isinstance(value, int):
            return value
        return None if self.report.document.quoted((*self.path, *steps)) else _number(value, written)

    # --- collections --------------------------------------------------------------------------------------------------

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of text; a lone text counts as a list of one, with a warning."""
        self._asked.add(key)
        value = self.data.get(key)
        if value is None:
            return ()
        if isinstance(value, str):
            self.warning(f"{key!r} must be a list", f"write `{key}: [{value}]`", key)
            return (value,)
        if not isinstance(value, list):
            self.error(f"{key!r} must be a list, not {described(value)}", f"write `{key}: [...]`", key)
            return ()
        found = []
        for at, item in enumerate(value):
            written = self.report.document.text((*self.path, key, at))
            if written is None:
                self.error(f"an item of {key!r} must be text, not {described(item)}", "correct it", key, at)
            else:
                found.append(written)
        return tuple(found)

    def listed(self, key: str) -> list[Any]:
        """A list of whatever."""
        self._asked.add(key)
        value = self.data.get(key)
        if value is None or isinstance(value, list):
            return value or []
        self.error(f"{key!r} must be a list, not {described(value)}", f"write `{key}: [...]`", key)
        return []

    def section(self, key: str) -> Section | None:
        """A mapping."""
        self._asked.add(key)
        value = self.data.get(key)
        if value is None or isinstance(value, dict):
            return None if value is None else Section(self.report, (*self.path, key), value, self.field)
        self.error(f"{key!r} must be a mapping, not {described(value)}", f"indent its entries below `{key}:`", key)
        return None

    def sections(self, key: str) -> Iterator[Section]:
        """The mappings of a list."""
        items = self.listed(key)
        return self._mappings(key, items) if items else _NO_SECTIONS

    def _mappings(self, key: str, items: list[Any]) -> Iterator[Section]:
        for at, item in enumerate(items):
            if isinstance(item, dict):
                yield Section(self.report, (*self.path, key, at), item, self.field)
            else:
                self.error(
                    f"an item of {key!r} must be a mapping, not {described(item)}", "write `- name: ...`", key, at
                )

    # --- findings -----------------------------------------------------------------------------------------------------

    def error(self, message: str, hint: str | None, *steps: str | int) -> None:
        """An error about the value below this section (about itself without `steps`)."""
        self._add(Level.ERROR, message, hint, steps)

    def warning(self, message: str, hint: str | None, *steps: str | int) -> None:
        """A warning about the value below this section."""
        self._add(Level.WARNING, message, hint, steps)

    def note(self, message: str, hint: str | None, *steps: str | int) -> None:
        """A note about the entry below this section, placed at its key."""
        self._add(Level.NOTE, message, hint, steps, at_key=True)

    def not_enforced(self, *keys: str) -> dict[str, Any]:
        """`carried`, with a note for each entry: it is a promise that nothing holds the data to."""
        found = {key: value for key, value in self.carried(*keys).items() if value not in ([], {}, "")}
        for key in found:
            self.note(f"{key!r} is not enforced", None, key)
        return found

    def close(self, elsewhere: Mapping[str, str] | None = None) -> None:
        """Reports every entry that nobody has asked for; `elsewhere` has the way out for misplaced keys."""
        unknown = [key for key in self.data if key not in self._asked]
        for key in unknown[:_MOST_UNKNOWN]:
            hint = (elsewhere or {}).get(key) or unknown_key_hint(key, self._asked)
            self._add(Level.WARNING, f"the unknown key {key!r} is ignored", hint, (key,), at_key=True)
        if len(unknown) > _MOST_UNKNOWN:
            self.warning(f"{len(unknown) - _MOST_UNKNOWN} more unknown keys are ignored", None)

    def _add(
        self, level: Level, message: str, hint: str | None, steps: tuple[str | int, ...], *, at_key: bool = False
    ) -> None:
        path = (*self.path, *steps)
        document = self.report.document
        position = document.key_position(path) if at_key else document.position(path)
        self.report.add(level, path, message, hint, field=self.field, position=position)

    def _node(self, steps: tuple[str | int, ...]) -> yaml.Node | None:
        """The value of an entry of the section's own as YAML has it; None for what is further below."""
        if len(steps) != 1 or not isinstance(steps[0], str):
            return None
        return self.report.document.node(self.data, steps[0])

    def _in_sixties(self, key: str) -> bool:
        """Whether the entry is a number that YAML reads from `1:30`."""
        node = self.report.document.node(self.data, key)
        return node is None or _SIXTIES in node.value

    def _below(self, steps: Iterable[str | int]) -> Any:
        value: Any = self.data
        for step in steps:
            value = value[step]
        return value


_NO_SECTIONS: Final[Iterator[Section]] = iter(())


def unknown_key_hint(key: str, known: Iterable[str]) -> str:
    """What to do about a key that is not one of the known."""
    near = nearest(key, known)
    return f"did you mean {near!r}?" if near else "remove it, or carry it in customProperties"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, or None."""
    return _nearest(word, tuple(sorted(known))) if len(word) <= 60 else None


@lru_cache(maxsize=1024)
def _nearest(word: str, known: tuple[str, ...]) -> str | None:
    folded = {name.casefold(): name for name in reversed(known)}
    found = get_close_matches(word.casefold(), folded, n=1, cutoff=0.75)
    return folded[found[0]] if found else None


def described(value: Any) -> str:
    """What a value of the document is, for a message; long ones are cut."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            shown = repr(value)
            return f"the number {shown if len(shown) <= 40 else shown[:37] + '...'}"
        case str():
            return f"the text {value if len(value) <= 40 else value[:37] + '...'!r}"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _label(steps: tuple[str | int, ...]) -> str:
    names = [step for step in steps if isinstance(step, str)]
    return f"{names[-1]!r}" if isinstance(steps[-1], str) else f"a value of {names[-1]!r}"


def _number(value: Any, written: str) -> Number | None:
    if not _NUMBER.fullmatch(written):
        return None
    exact = Decimal(written.replace("_", ""))
    if isinstance(value, str) and exact == exact.to_integral_value() and abs(exact.adjusted()) < 30:
        return int(exact)
    near = float(exact)
    return near if math.isfinite(near) and Decimal(repr(near)) == exact else exact
