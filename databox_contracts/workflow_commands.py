"""Annotations of a pull request, as GitHub's runner takes them from a job's output."""

from __future__ import annotations

from databox_contracts.errors import Position


def workflow_command(level: str, message: str, file: str | None = None, position: Position | None = None) -> str:
    """A line that shows the message (`error`, `warning` or `notice`) at a place of a file, or at none."""
    place: list[str] = []
    if file is not None:
        place.append(f"file={_escaped(file, in_property=True)}")
        if position is not None:
            place += [f"line={position.line}", f"col={position.column}"]
    return f"::{level}{' ' if place else ''}{','.join(place)}::{_escaped(message)}"


def _escaped(text: str, *, in_property: bool = False) -> str:
    for char in "%\r\n" + (":," if in_property else ""):
        text = text.replace(char, f"%{ord(char):02X}")
    return text
