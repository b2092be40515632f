"""Versions of contracts as texts: how far one is from another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

_VERSION: Final = re.compile(
    r"v?(?P<major>0|[1-9]\d{0,9})(?:\.(?P<minor>0|[1-9]\d{0,9}))?(?:\.(?P<patch>0|[1-9]\d{0,9}))?"
    r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
)


class Bump(IntEnum):
    """How far a version moves; a greater one includes the smaller ones."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3

    def __str__(self) -> str:
        return self.name.lower()


# Of the parts of a pre-release, numbers come before words; what has no pre-release comes after all that have one.
_RELEASE: Final = ((2, 0, ""),)


def _part(text: str) -> tuple[int, int, str]:
    return (0, int(text), "") if text.isdigit() else (1, 0, text)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A semantic version; of two with the same numbers, the one with a pre-release is the earlier."""

    major: int
    minor: int
    patch: int
    release: tuple[tuple[int, int, str], ...]

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """The version of a text: `3.2` means 3.2.0, and `3.10` is not 3.1. None for what is no semantic version."""
        match = _VERSION.fullmatch(text.strip())
        if match is None:
            return None
        pre = match["pre"]
        parts = tuple(_part(part) for part in pre.split(".")) if pre else _RELEASE
        return cls(int(match["major"]), int(match["minor"] or 0), int(match["patch"] or 0), parts)

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Major, minor and patch."""
        return self.major, self.minor, self.patch

    @property
    def is_prerelease(self) -> bool:
        """Whether it comes before the release of its numbers."""
        return self.release != _RELEASE

    def bump_to(self, new: Version) -> Bump | None:
        """How far it is to a later version; NONE for the same numbers, None where the other one is earlier."""
        if new < self:
            return None
        if new.major != self.major:
            return Bump.MAJOR
        if new.minor != self.minor:
            return Bump.MINOR
        return Bump.PATCH if new != self else Bump.NONE

    def bumped(self, bump: Bump) -> Version:
        """The next release that is that far away."""
        match bump:
            case Bump.MAJOR:
                numbers = (self.major + 1, 0, 0)
            case Bump.MINOR:
                numbers = (self.major, self.minor + 1, 0)
            case Bump.PATCH:
                numbers = (self.major, self.minor, self.patch + 1)
            case Bump.NONE:
                return self
        return Version(*numbers, release=_RELEASE)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"
