"""Ranges of versions, as consumers pin them: `^2.1`, `~1.4`, `>=1.2,<2`, `1.x || 3`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from databox_contracts.errors import VersionRangeError
from databox_contracts.versions import Bump, Version

_HINT: Final = "write it as ^2.1, ~1.4, >=1.2,<2, 1.x or *; alternatives are separated by ||"

_COMPARISON: Final = re.compile(r"(?P<operator>\^|~|>=|<=|>|<|==|=|)\s*(?P<version>[^\s,^~<>=]+)")
_NUMBER: Final = r"(?:0|[1-9]\d{0,9})"
_BEGINNING: Final = re.compile(rf"v?(?P<major>{_NUMBER})(?:\.(?P<minor>{_NUMBER}))?(?:\.[xX*]){{0,2}}")
_ANYTHING: Final = re.compile(r"[xX*](?:\.[xX*]){0,2}")


@dataclass(frozen=True, slots=True)
class _Bounds:
    """All versions from `low` on, up to `high` and without it; None is no bound. The flags are the other choice."""

    low: Version | None = None
    high: Version | None = None
    without_low: bool = False
    with_high: bool = False

    def contain(self, version: Version) -> bool:
        above = self.low is None or self.low < version or (self.low == version and not self.without_low)
        return above and (self.high is None or version < self.high or (version == self.high and self.with_high))


_Parts: TypeAlias = tuple[Version, Bump]
"""The first version that is meant, and the bump that leads out of what is: a major one for `1`, a minor for `1.2`."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Which versions suit a reader.

    The words are npm's: `^` allows what does not change the first number that is not zero, `~` allows patches (all of
    `1.x` in `~1`), a version with numbers left out or written as `x` or `*` means all that begin so, comparisons next
    to each other or separated by commas must all hold, and one of the parts separated by `||` must. A pre-release suits
    only where a comparison names one of the same three numbers.
    """

    text: str
    alternatives: tuple[tuple[_Bounds, ...], ...]

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """The range of a text. Raises `VersionRangeError` for what is none, an empty one included."""
        alternatives = tuple(_comparisons(part, text) for part in text.split("||"))
        return cls(text.strip(), alternatives)

    def allows(self, version: Version) -> bool:
        """Whether the version is in the range."""
        return any(
            all(bounds.contain(version) for bounds in comparisons) and _welcome(version, comparisons)
            for comparisons in self.alternatives
        )

    def __str__(self) -> str:
        return self.text


def _welcome(version: Version, comparisons: tuple[_Bounds, ...]) -> bool:
    """Nobody who asks for `^1.0` means the release candidate of 1.5."""
    if not version.is_prerelease:
        return True
    named = (bound for bounds in comparisons for bound in (bounds.low, bounds.high) if bound is not None)
    return any(bound.is_prerelease and bound.numbers == version.numbers for bound in named)


def _comparisons(part: str, text: str) -> tuple[_Bounds, ...]:
    found: list[_Bounds] = []
    at, part = 0, part.strip()
    while at < len(part):
        match = _COMPARISON.match(part, at)
        if match is None:
            raise VersionRangeError(text, hint=_HINT)
        found.append(_bounds(match["operator"], _parts(match["version"], text)))
        rest = part[match.end() :]
        separator = re.match(r"\s*,\s*(?=\S)|\s+", rest) if rest else None
        if rest and separator is None:
            raise VersionRangeError(text, hint=_HINT)
        at = match.end() + (separator.end() if separator is not None else 0)
    if not found:
        raise VersionRangeError(text, hint=_HINT)
    return tuple(found)


def _parts(spelled: str, text: str) -> _Parts:
    if _ANYTHING.fullmatch(spelled):
        return _version(0, 0), Bump.NONE
    beginning = _BEGINNING.fullmatch(spelled)
    if beginning is not None:
        span = Bump.MAJOR if beginning["minor"] is None else Bump.MINOR
        return _version(int(beginning["major"]), int(beginning["minor"] or 0)), span
    version = Version.parse(spelled)
    if version is None:
        raise VersionRangeError(text, hint=_HINT)
    return version, Bump.PATCH


def _version(major: int, minor: int) -> Version:
    version = Version.parse(f"{major}.{minor}.0")
    assert version is not None
    return version


def _bounds(operator: str, parts: _Parts) -> _Bounds:
    version, span = parts
    if span is Bump.NONE:
        # Nothing is below all versions, or above them.
        return _Bounds(high=version) if operator in ("<", ">") else _Bounds()
    whole = span is Bump.PATCH
    after = version if whole else version.bumped(span)
    match operator:
        case ">=":
            return _Bounds(low=version)
        case ">":
            return _Bounds(low=after, without_low=whole)
        case "<":
            return _Bounds(high=version)
        case "<=":
            return _Bounds(high=after, with_high=whole)
        case "~":
            return _Bounds(version, version.bumped(Bump.MAJOR if span is Bump.MAJOR else Bump.MINOR))
        case "^":
            return _Bounds(version, version.bumped(_caret(version, span)))
        case _:
            return _Bounds(version, after, with_high=whole)


def _caret(version: Version, span: Bump) -> Bump:
    if version.major or span is Bump.MAJOR:
        return Bump.MAJOR
    return Bump.MINOR if version.minor or span is Bump.MINOR else Bump.PATCH
