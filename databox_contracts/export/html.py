"""HTML: one page that needs nothing but itself, for light and dark screens and for paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final
from urllib.parse import quote

from databox_contracts.export.contract_page import contract_page, left_out
from databox_contracts.export.page import (
    Block,
    Cell,
    Code,
    Facts,
    Items,
    Jump,
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

__all__ = ["export_html", "render_html"]


def export_html(target: Target) -> Exported:
    """The contract as one self-contained page without scripts. Every text of the contract is escaped."""
    return Exported(render_html(contract_page(target)), left_out(target))


_STYLE: Final = """\
:root { color-scheme: light dark; --ink: #1d2330; --paper: #ffffff; --soft: #f3f5f8; --line: #c9d0da; --link: #0b57a4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --paper: #14181f; --soft: #1e242e; --line: #3c4655; --link: #8ab8f0; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 80rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); padding-bottom: 0.25rem; }
a { color: var(--link); }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: 0.925rem; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.25rem; }
th, td { border: 1px solid var(--line); padding: 0.35rem 0.6rem; text-align: left; vertical-align: top;
  overflow-wrap: anywhere; min-width: 5rem; }
thead th { background: var(--soft); }
tbody th { font-weight: 600; }
td p, th p { margin: 0 0 0.25rem; }
code { font: 0.9em/1.4 ui-monospace, monospace; white-space: pre-wrap; background: var(--soft); padding: 0 0.2em; }
:target { outline: 2px solid var(--link); }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  .scroll { overflow: visible; }
  tr, li { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
}
"""


def render_html(page: Page) -> str:
    """The page as a document of HTML. Whatever its texts hold, they end up as text."""
    title = _escaped(page.title)
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # Should a text ever slip through, nothing runs and nothing is fetched.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="referrer" content="no-referrer">',
        f"<title>{title}</title>",
        f"<style>\n{_STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{title}</h1>",
        *_contents(page.sections),
        *_blocks(page.lead),
        *(line for section in page.sections for line in _section(section, 2)),
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _contents(sections: tuple[Section, ...]) -> Iterator[str]:
    if sections:
        yield '<nav aria-label="Contents">'
        yield "<ul>"
        yield from (f"<li>{_jump(section.title, section.anchor)}</li>" for section in sections)
        yield "</ul>"
        yield "</nav>"


def _section(section: Section, level: int) -> Iterator[str]:
    heading = f"h{min(level, 6)}"
    anchor = _escaped(section.anchor)
    yield f'<section aria-labelledby="{anchor}">'
    yield f'<{heading} id="{anchor}">{_escaped(section.title)}</{heading}>'
    yield from _blocks(section.blocks)
    for inner in section.sections:
        yield from _section(inner, level + 1)
    yield "</section>"


def _blocks(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Prose():
                yield from (f"<p>{_line(line)}</p>" for line in block.lines)
            case Items():
                yield "<ul>"
                yield from (f"<li>{_line(line)}</li>" for line in block.lines)
                yield "</ul>"
            case Facts():
                rows = (f'<tr><th scope="row">{_escaped(label)}</th>{_data(cell)}</tr>' for label, cell in block.rows)
                yield from _framed(block.caption, "", rows)
            case Table():
                head = "".join(f'<th scope="col">{_escaped(column)}</th>' for column in block.columns)
                yield from _framed(block.caption, head, (_row(row.cells, row.anchor) for row in block.rows))


def _framed(caption: str, head: str, rows: Iterable[str]) -> Iterator[str]:
    # What scrolls can be reached by keyboard, and says what it is.
    yield f'<div class="scroll" role="region" tabindex="0" aria-label="{_escaped(caption)}">'
    yield "<table>"
    yield f"<caption>{_escaped(caption)}</caption>"
    if head:
        yield f"<thead><tr>{head}</tr></thead>"
    yield "<tbody>"
    yield from rows
    yield "</tbody>"
    yield "</table>"
    yield "</div>"


def _row(cells: tuple[Cell, ...], anchor: str | None) -> str:
    name, *rest = cells
    place = f' id="{_escaped(anchor)}"' if anchor is not None else ""
    return f'<tr{place}><th scope="row">{_lines(name)}</th>{"".join(_data(cell) for cell in rest)}</tr>'


def _data(cell: Cell) -> str:
    return f"<td>{_lines(cell)}</td>"


def _lines(cell: Cell) -> str:
    return _line(cell[0]) if len(cell) == 1 else "".join(f"<p>{_line(line)}</p>" for line in cell)


def _line(line: Line) -> str:
    return "".join(_span(span) for span in line)


def _span(span: Span) -> str:
    match span:
        case Code(text):
            return f"<code>{_escaped(text)}</code>"
        case Link(text, url):
            return f'<a href="{_escaped(url)}" rel="noopener noreferrer nofollow">{_escaped(text)}</a>'
        case Jump(text, anchor):
            return _jump(text, anchor)
        case _:
            return _escaped(span)


def _jump(text: str, anchor: str) -> str:
    return f'<a href="#{_escaped(quote(clean(anchor)))}">{_escaped(text)}</a>'


def _escaped(text: str) -> str:
    return escape(clean(text), quote=True)
