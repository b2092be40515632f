"""Values that a contract writes down: allowed ones, limits, moments. Each is read as its field's type wants it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Final

from databox_contracts.errors import Level
from databox_contracts.formats.reading import Section, described
from databox_contracts.rules import Limit, Scalar

TEMPORAL: Final = ("date", "timestamp", "time")
NUMERIC: Final = ("integer", "number")
_NO_LIST_OF: Final = ("object", "array", "map", "vector")

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_EXAMPLES: Final = {"date": "2026-01-31", "timestamp": "2026-01-31T12:00:00Z", "time": "12:00:00"}


def parse_moment(written: str, logical: str) -> date | datetime | time:
    """The date, timestamp or time of an ISO 8601 text. Raises ValueError."""
    if logical == "date":
        if not _DATE.fullmatch(written):
            raise ValueError(written)
        return date.fromisoformat(written)
    if logical == "timestamp":
        moment = datetime.fromisoformat(written)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return time.fromisoformat(written).replace(tzinfo=None)


def read_limit(section: Section, key: str, logical: str | None) -> Limit | None:
    """A bound: a number, or the ISO 8601 text of a moment. What is neither is an error."""
    if section.raw(key) is None:
        return None
    if logical not in TEMPORAL:
        return section.number(key)
    written = section.written(key)
    try:
        if written is not None:
            parse_moment(written, logical)
            return written
    except ValueError:
        pass
    shown = described(section.data[key]) if written is None else repr(written[:40])
    section.error(f"{key!r} must be a {logical}, not {shown}", f'write it as "{_EXAMPLES[logical]}"', key)
    return None


def comparable(limit: Limit, logical: str | None) -> int | Decimal | date | datetime | time:
    """The limit in a form that compares with others of its field."""
    if isinstance(limit, str):
        return parse_moment(limit, logical or "date")
    return limit if type(limit) is int else Decimal(str(limit))


def read_values(
    section: Section, places: Iterable[tuple[str | int, ...]], logical: str | None, *, unfit: Level = Level.ERROR
) -> tuple[Scalar, ...]:
    """The values at `places` below the section, in order; None is null.

    A text field's values are what was written, so that `NO` is a country and `1.0` a version. What cannot be a value of
    the field is a finding of the level `unfit` and left out.
    """
    found: list[Scalar] = []
    for steps in places:
        path = (*section.path, *steps)
        value = section.report.document.text(path)
        data = _at(section, steps)
        if data is None:
            found.append(None)
        elif value is None:
            section.error(f"a value must be a scalar, not {described(data)}", "list single values", *steps)
        else:
            problem, fitting = _fitted(data, value, section, steps, logical)
            if problem is None:
                found.append(fitting)
            elif unfit is Level.ERROR:
                section.error(problem, "correct the value or the field's type", *steps)
            else:
                section.warning(f"{problem} and never occurs", "leave it out", *steps)
    return tuple(found)


def _fitted(
    data: object, written: str, section: Section, steps: tuple[str | int, ...], logical: str | None
) -> tuple[str | None, Scalar]:
    """Why the value does not fit (or None), and the value."""
    problem = f"{described(data)} is not a value of {_article(logical)} field"
    match logical:
        case "string":
            return None, written
        case "boolean":
            return (None, data) if isinstance(data, bool) else (problem, None)
        case "integer" | "number":
            number = section.tried_number(*steps)
            if number is None or (logical == "integer" and number != int(number)):
                return problem, None
            return None, number
        case "date" | "timestamp" | "time":
            try:
                parse_moment(written, logical)
            except ValueError:
                return problem, None
            return None, written
        case _ if logical in _NO_LIST_OF:
            return f"{_article(logical)} field cannot be held to a list of values", None
        case _:
            return None, data if isinstance(data, bool | int | float) else written


def _article(logical: str | None) -> str:
    return f"{'an' if (logical or '')[:1] in 'aeio' else 'a'} {logical}"


def _at(section: Section, steps: tuple[str | int, ...]) -> object:
    value: object = section.data
    for step in steps:
        match value:
            case dict():
                value = value.get(step)
            case list() if isinstance(step, int):
                value = value[step]
    return value
