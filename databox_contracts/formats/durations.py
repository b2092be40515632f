"""Lengths of time as contracts write them: ISO 8601 (`P30D`, `PT10M`) and plain (`30s`, `5min`, `1h 30m`, `7 days`)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from databox_contracts.errors import DataboxError
from databox_contracts.formats.reading import Section, described

_SECOND: Final = 1
_MINUTE: Final = 60
_HOUR: Final = 3_600
_DAY: Final = 86_400
_WEEK: Final = 7 * _DAY

# A month and a year have no length of their own; as a promise about data they are 30 and 365 days.
_MONTH: Final = 30 * _DAY
_YEAR: Final = 365 * _DAY

_WORDS: Final[dict[str, int | Decimal]] = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), Decimal("0.001")),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), _SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), _MINUTE),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), _HOUR),
    **dict.fromkeys(("d", "day", "days"), _DAY),
    **dict.fromkeys(("w", "week", "weeks"), _WEEK),
    **dict.fromkeys(("mo", "month", "months"), _MONTH),
    **dict.fromkeys(("y", "yr", "year", "years"), _YEAR),
}

_NUMBER: Final = r"\d{1,9}(?:[.,]\d{1,9})?"
_ISO_DATE: Final = (("Y", _YEAR), ("M", _MONTH), ("W", _WEEK), ("D", _DAY))
_ISO_TIME: Final = (("H", _HOUR), ("M", _MINUTE), ("S", _SECOND))
_ISO: Final = re.compile(
    "P"
    + "".join(f"(?:({_NUMBER}){letter})?" for letter, _ in _ISO_DATE)
    + "(?:T"
    + "".join(f"(?:({_NUMBER}){letter})?" for letter, _ in _ISO_TIME)
    + ")?"
)
_PLAIN: Final = re.compile(rf"({_NUMBER})\s*([a-z]+)\s*")

HINT: Final = "write it as PT10M, P30D, 30s, 15 minutes, 1h or 7d"


class DurationError(DataboxError):
    """A text that is no length of time."""

    def __init__(self, written: str, reason: str) -> None:
        super().__init__(f"{written[:40]!r} is no duration: {reason}", hint=HINT)
        self.written = written
        self.reason = reason


def parse_duration(written: str) -> float:
    """The seconds of a duration, in ISO 8601 or as numbers with units; a month counts 30 days, a year 365.

    `m` is minutes, `mo` months; a number without a unit, a sign and a unit that stands twice are refused. Case
    matters for neither. Raises `DurationError`.
    """
    text = written.strip()
    if not text:
        raise DurationError(written, "it is empty")
    if text.startswith(("-", "+")):
        raise DurationError(written, "it has a sign")
    total = _iso(text.upper(), written) if text[0] in "Pp" else _plain(text.lower(), written)
    return float(total)


def read_duration(section: Section, key: str) -> float | None:
    """The seconds that the entry says; None where there is none, and where it is no duration, which is an error."""
    value = section.raw(key)
    if value is None:
        return None
    text = section.written(key)
    if text is None:
        section.error(f"{key!r} must be a duration, not {described(value)}", HINT, key)
        return None
    try:
        return parse_duration(text)
    except DurationError as error:
        section.error(f"{key!r}: {error.message}", error.hint, key)
        return None


def _iso(text: str, written: str) -> Decimal:
    match = _ISO.fullmatch(text)
    if match is None or text.endswith("T") or not any(match.groups()):
        raise DurationError(written, "it starts with P and is not of ISO 8601")
    units = [unit for _, unit in (*_ISO_DATE, *_ISO_TIME)]
    return sum((_decimal(n) * unit for n, unit in zip(match.groups(), units, strict=True) if n), Decimal(0))


def _plain(text: str, written: str) -> Decimal:
    total, at, seen = Decimal(0), 0, set[object]()
    while at < len(text):
        match = _PLAIN.match(text, at)
        if match is None:
            raise DurationError(written, "a number needs a unit" if text[at].isdigit() else "it has no number")
        unit = _WORDS.get(match[2])
        if unit is None:
            raise DurationError(written, f"the unit {match[2][:20]!r} is not known")
        if unit in seen:
            raise DurationError(written, f"the unit {match[2]!r} stands twice")
        seen.add(unit)
        total += _decimal(match[1]) * unit
        at = match.end()
    return total


def _decimal(number: str) -> Decimal:
    return Decimal(number.replace(",", "."))
