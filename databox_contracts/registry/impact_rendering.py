"""Whom a change reaches, as text and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from databox_contracts.evolution.rendering import markdown_text
from databox_contracts.registry.impact import Impact, Kind, Reached


def as_text(found: Impact) -> Iterator[str]:
    """The lines for a terminal: a heading, then one thing that is reached after the other, the nearest first."""
    yield f"{_heading(found)}: {_count(found)}"
    for one in found.reached:
        yield f"  {one.distance}  {one.kind} {one.name}{_owner(one)}"
        yield from (f"     {line}" for line in _facts(one))
        if len(one.path) > 2:
            yield f"     by way of {' > '.join(one.path)}"
    if found.owners:
        yield f"Ask: {', '.join(found.owners)}"


def as_markdown(found: Impact) -> Iterator[str]:
    """The lines of a table for a pull request."""
    yield f"## {markdown_text(_heading(found))}"
    yield ""
    yield f"{_count(found)}."
    if found.reached:
        yield ""
        yield "| distance | what | name | owner | facts | by way of |"
        yield "|---|---|---|---|---|---|"
        for one in found.reached:
            cells = (str(one.distance), str(one.kind), one.name, one.owner or "", "; ".join(_facts(one)))
            way = " > ".join(one.path) if len(one.path) > 2 else ""
            yield "| " + " | ".join(markdown_text(cell) for cell in (*cells, way)) + " |"


def _heading(found: Impact) -> str:
    owner = f", owned by {found.owner}" if found.owner is not None else ""
    return f"A change of {found.target} ({found.contract} {found.version}{owner}) reaches"


def _count(found: Impact) -> str:
    if not found.reached:
        return "nobody that is known"
    counts = {kind: sum(one.kind is kind for one in found.reached) for kind in reversed(Kind)}
    return ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items() if count)


def _owner(one: Reached) -> str:
    return f" ({one.owner})" if one.owner is not None else ""


def _facts(one: Reached) -> Iterator[str]:
    fields = ", ".join(one.fields) or "all fields"
    if one.kind is not Kind.CONSUMER:
        yield f"{fields}{f' of version {one.version}' if one.version is not None else ''}"
        return
    yield f"reads {', '.join(f'{one.contract}.{dataset}' for dataset in one.reads)}: {fields}"
    if one.pin is not None:
        meant = f"version {one.version}" if one.version is not None else "no version there is"
        yield f"pins {one.pin}, which is {meant}"
    if one.purpose is not None:
        yield f"for {one.purpose}"
    if one.criticality is not None:
        yield f"criticality {one.criticality}"
