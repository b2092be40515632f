"""Markdown as GitHub reads it: one page whose texts are texts, whatever marks they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from databox_contracts.export.contract_page import contract_page, left_out
from databox_contracts.export.page import (
    Block,
    Cell,
    Code,
    Facts,
    Items,
    Line,
    Link,
    Page,
    Prose,
    Section,
    Span,
    Table,
    clean,
)
from databox_contracts.export.targets import Exported, Target

__all__ = ["export_markdown", "render_markdown"]


def export_markdown(target: Target) -> Exported:
    """The contract as one page of Markdown. Every text of the contract is escaped."""
    return Exported(render_markdown(contract_page(target)), left_out(target))


def render_markdown(page: Page) -> str:
    """The page in GitHub's Markdown: of HTML it holds `<br>` and `<code>` alone. Whatever its texts hold is text."""
    parts = [f"# {_text(page.title)}", *_blocks(page.lead)]
    for section in page.sections:
        parts += _section(section, 2)
    return "\n\n".join(parts) + "\n"


def _section(section: Section, level: int) -> Iterator[str]:
    yield f"{'#' * min(level, 6)} {_text(section.title)}"
    yield from _blocks(section.blocks)
    for inner in section.sections:
        yield from _section(inner, level + 1)


def _blocks(blocks: Iterable[Block]) -> Iterator[str]:
    blocks = tuple(blocks)
    # One table is what its heading says.
    captions = sum(isinstance(block, Facts | Table) for block in blocks) > 1
    for block in blocks:
        if captions and isinstance(block, Facts | Table):
            yield f"**{_text(block.caption)}**"
        match block:
            case Prose():
                yield from (_line(line) for line in block.lines)
            case Items():
                yield "\n".join(f"- {_line(line)}" for line in block.lines)
            case Facts():
                rows = [(_text(label), _cell(cell)) for label, cell in block.rows]
                yield _table(("", ""), rows)
            case Table():
                yield _table(
                    tuple(_text(column) for column in block.columns),
                    [tuple(_cell(cell) for cell in row.cells) for row in block.rows],
                )


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(cell: Cell) -> str:
    return "<br>".join(_line(line) for line in cell)


def _line(line: Line) -> str:
    return _begun("".join(_span(span) for span in line))


def _span(span: Span) -> str:
    match span:
        case Code(text):
            return _code(clean(text))
        case Link(text, url):
            return f"[{_marks(text)}]({_address(url)})"
        case str():
            return _marks(span)
        case _:
            return _marks(span.text)


# --- texts of unknown origin ------------------------------------------------------------------------------------------

_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKS: Final = re.compile(r"[\\`*_\[\]|~#$&<>]")
_BLANKS: Final = re.compile(r"\s+")

# What makes a list, a rule or a heading of a line that begins with it, and blanks that make a block of code.
_BEGINNING: Final = re.compile(r"^\s*(\d{1,9}(?=[.)](?:\s|$)))?([-+=.)])?")

# What ends a code span, or a cell, or is not kept in one.
_NO_SPAN: Final = re.compile(r"[`|\n\t]|^\s|\s$|^$|  ")
_PUNCTUATION: Final = re.compile(r"[^\w \n]")


def _text(text: str) -> str:
    return _begun(_marks(text))


def _begun(line: str) -> str:
    """The line with a mark that only counts at the beginning made harmless."""
    return _BEGINNING.sub(lambda match: (match[1] or "") + (f"\\{match[2]}" if match[2] else ""), line)


def _marks(text: str) -> str:
    """The text with every mark of Markdown and HTML made harmless; line breaks become spaces."""
    flat = _BLANKS.sub(" ", clean(text))
    return _MARKS.sub(lambda match: _ENTITIES.get(match[0]) or f"\\{match[0]}", flat)


def _code(text: str) -> str:
    if not _NO_SPAN.search(text):
        return f"`{text}`"
    inner = _PUNCTUATION.sub(lambda match: f"&#{ord(match[0])};", text.replace("\t", "    "))
    kept = re.sub(r"^ | $|(?<= ) ", "&#160;", inner.replace("\n", "<br>"))
    return f"<code>{kept}</code>"


def _address(url: str) -> str:
    # Brackets end an address, and a bar the cell; the rest has been looked at by `Link`.
    return re.sub(r"[()|<>\\`\[\]]", lambda match: f"%{ord(match[0]):02X}", clean(url)).replace("&", "&amp;")
