"""What a page says, in no notation: headings, facts, tables, lists and prose. Each renderer shows all of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = [
    "Anchors",
    "Block",
    "Cell",
    "Code",
    "Facts",
    "Items",
    "Jump",
    "Line",
    "Link",
    "Page",
    "Prose",
    "Row",
    "Section",
    "Span",
    "Table",
    "clean",
    "joined",
    "linked",
    "listed",
    "plain_text",
    "prose",
]

_ADDRESS: Final = re.compile(r"(?:https?://[^\s\"'<>`\\]+|mailto:[^\s\"'<>`\\]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Code:
    """Text to be taken letter by letter, such as a name, a pattern or a query."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """Text that leads to an address of http, https or mailto, as `linked` makes it. Raises `ValueError` for others."""

    text: str
    url: str

    def __post_init__(self) -> None:
        if not _ADDRESS.fullmatch(self.url):
            raise ValueError(f"no page leads to {self.url!r}")


@dataclass(frozen=True, slots=True)
class Jump:
    """Text that leads to an anchor of the same page."""

    text: str
    anchor: str


Span: TypeAlias = str | Code | Link | Jump
Line: TypeAlias = tuple[Span, ...]
Cell: TypeAlias = tuple[Line, ...]
"""The lines of a table's cell; none where there is nothing to say."""


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraphs, one line each."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list without an order of rank."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Pairs of a label and what it says; `caption` tells what they are about."""

    caption: str
    rows: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row, the first of which names it; `anchor` is where a link finds it."""

    cells: tuple[Cell, ...]
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under the same columns; `caption` tells what they are."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


Block: TypeAlias = Prose | Items | Facts | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands below it; sections of its own come after its blocks."""

    title: str
    anchor: str
    blocks: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A document with one title; `lead` stands before the first section."""

    title: str
    lead: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()


# --- texts of unknown origin ------------------------------------------------------------------------------------------

# Control characters, halves of surrogate pairs, and what turns the direction of the text that follows.
_UNSEEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_BREAKS: Final = re.compile("\r\n|[\r\u2028\u2029]")


def clean(text: str) -> str:
    """The text with line breaks as `\\n`, and U+FFFD for every character that nobody could see. Renderers apply it."""
    return _UNSEEN.sub("\ufffd", _BREAKS.sub("\n", text))


_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)


def linked(text: str) -> Span:
    """The text as a link where it is an address of http, https or mail as a whole, else the text."""
    address = clean(text).strip()
    if _ADDRESS.fullmatch(address):
        return Link(address.removeprefix("mailto:"), address)
    if _MAIL.fullmatch(address):
        return Link(address, f"mailto:{address}")
    return text


def prose(text: str) -> tuple[Line, ...]:
    """The lines of a text that are not blank."""
    return tuple((line.strip(),) for line in clean(text).split("\n") if line.strip())


def joined(parts: Iterable[Span], between: str = ", ") -> Line:
    """The parts in one line."""
    found: list[Span] = []
    for part in parts:
        found += [between, part] if found else [part]
    return tuple(found)


def listed(texts: Iterable[str]) -> Cell:
    """The texts in one line, each as a link where it is an address; nothing for none."""
    line = joined(linked(text) for text in texts)
    return (line,) if line else ()


def plain_text(line: Line) -> str:
    """The line without any marks."""
    return "".join(span if isinstance(span, str) else span.text for span in line)


class Anchors:
    """Names for places of one page, no two of them the same."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def named(self, *parts: str) -> str:
        """A name of letters, digits, dots, hyphens and underscores that tells of the parts."""
        base = "-".join(re.sub(r"[^\w.-]", "_", clean(part)) for part in parts)
        chosen, count = base, 1
        while chosen in self._taken:
            count += 1
            chosen = f"{base}-{count}"
        self._taken.add(chosen)
        return chosen
