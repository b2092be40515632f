"""Values of a contract as the cells of a page's tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from databox_contracts.export.page import Cell, Code, Facts, Row, Table, joined, linked, prose
from databox_contracts.export.wording import value_text

__all__ = ["address", "code", "codes", "custom_facts", "facts", "table", "text", "value"]


def text(said: str | None) -> Cell:
    """The lines of a text; nothing for none."""
    return prose(said) if said is not None else ()


def address(said: str | None) -> Cell:
    """A text that may be an address to follow."""
    return ((linked(said),),) if said else ()


def code(said: str | None) -> Cell:
    """A name, letter by letter."""
    return ((Code(said),),) if said else ()


def codes(said: Iterable[str]) -> Cell:
    """Names in one line."""
    line = joined(Code(name) for name in said)
    return (line,) if line else ()


def value(said: Any) -> Cell:
    """A value of any kind: text as its lines, anything else letter by letter, nothing for null."""
    if isinstance(said, str):
        return tuple((linked(line),) for (line,) in prose(said) if isinstance(line, str)) or code('""')
    return () if said is None else code(value_text(said))


def facts(caption: str, found: Mapping[str, Cell]) -> Facts:
    """The facts of which something is said."""
    return Facts(caption, tuple((label, cell) for label, cell in found.items() if cell))


def table(caption: str, columns: tuple[str, ...], rows: Iterable[tuple[Cell, ...]]) -> Table:
    """A table whose rows nobody links to."""
    return Table(caption, columns, tuple(Row(cells) for cells in rows))


def custom_facts(caption: str, custom: Mapping[str, Any], besides: tuple[str, ...] = ()) -> tuple[Facts, ...]:
    """The custom properties that are no dialect's own, without those of the names `besides`; no block for none.

    A property without a value is named all the same.
    """
    own = [(name, value(said)) for name, said in custom.items() if not name.startswith("$") and name not in besides]
    return (Facts(caption, tuple(own)),) if own else ()
