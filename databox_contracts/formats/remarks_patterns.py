"""Remarks about regular expressions: those that Java cannot be told, and those that may take for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from databox_contracts.errors import Finding, Level, Position
from databox_contracts.formats.backtracking import is_exponential
from databox_contracts.formats.outline import Outline
from databox_contracts.model import Contract
from databox_contracts.patterns import PatternError, to_java
from databox_contracts.rules import InvalidCount, Pattern

_WITH_PATTERN: Final = (Pattern, InvalidCount)


def patterns_of(contract: Contract) -> Iterator[tuple[str, Position | None, str | None]]:
    """Every regular expression of a contract with its place and its field, in declaration order."""
    yield from _patterns(Outline(contract, ""))


def _patterns(outline: Outline) -> Iterator[tuple[str, Position | None, str | None]]:
    for placed in outline.rules:
        rule = placed.rule
        if isinstance(rule, _WITH_PATTERN) and rule.pattern is not None:
            yield rule.pattern, placed.position, placed.name


def unsound_patterns(outline: Outline) -> Iterator[Finding]:
    """An error for what is no expression of ECMA-262 or none of Java's, a warning for exponential backtracking."""
    for pattern, position, field in _patterns(outline):
        try:
            to_java(pattern)
        except PatternError as error:
            message = f"the pattern {pattern[:60]!r} {error.reason}"
            if not outline.said("pattern", field=field, about=position):
                yield outline.finding(Level.ERROR, message, error.hint, position, field)
            continue
        if is_exponential(pattern):
            message = f"the pattern {pattern[:60]!r} repeats a repetition that can be read in several ways"
            hint = (
                "a text that almost matches may take for ever: repeat once, or end each round with a character that "
                "the inner repetition does not take"
            )
            yield outline.finding(Level.WARNING, message, hint, position, field)
