"""Regular expressions of contracts (ECMA-262) in the dialect of Java, which is what Spark runs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from databox_contracts.errors import DataboxError

_SPACES: Final = r"\s\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
_NOT_A_LINE_END: Final = r"[^\n\r\x{2028}\x{2029}]"


class PatternError(DataboxError):
    """A regular expression that ECMA-262 does not know, or that Java cannot say."""

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(
            f"the pattern {pattern!r} {reason}", hint="write it in the syntax of ECMA-262, as JSON Schema does"
        )
        self.pattern = pattern
        self.reason = reason


@lru_cache(maxsize=4096)
def to_java(pattern: str) -> str:
    r"""The same expression for `java.util.regex`.

    What differs is replaced: `$` is the very end (Java's also stands before a last line feed), `.` stops at
    ECMA-262's line ends only, `\s` knows the Unicode spaces, a `[` or `&&` inside a class is a plain character, and
    `\u{…}` is `\x{…}`. Raises `PatternError` for what is not an ECMA-262 expression.
    """
    out: list[str] = []
    depth, at, end = 0, 0, len(pattern)
    while at < end:
        char = pattern[at]
        if char == "\\":
            piece, at = _escape(pattern, at, in_class=False)
            out.append(piece)
            continue
        if char == "[":
            piece, at = _character_class(pattern, at)
            out.append(piece)
            continue
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth < 0:
                raise PatternError(pattern, "closes a group that is not open")
        elif char in "*+?}" and at + 1 < end and pattern[at + 1] == "+":
            raise PatternError(pattern, "repeats a repetition")
        out.append({"$": r"\z", ".": _NOT_A_LINE_END}.get(char, char))
        at += 1
    if depth:
        raise PatternError(pattern, "has a group that is not closed")
    return "".join(out)


def _escape(pattern: str, at: int, *, in_class: bool) -> tuple[str, int]:
    if at + 1 >= len(pattern):
        raise PatternError(pattern, "ends in a backslash")
    letter = pattern[at + 1]
    if letter == "s":
        return (_SPACES if in_class else f"[{_SPACES}]"), at + 2
    if letter == "S" and not in_class:
        return f"[^{_SPACES}]", at + 2
    if letter == "u" and pattern.startswith("{", at + 2):
        close = pattern.find("}", at)
        if close < 0:
            raise PatternError(pattern, r"has a \u{ that is not closed")
        return rf"\x{{{pattern[at + 3 : close]}}}", close + 1
    if letter == "/":
        return "/", at + 2
    if letter in "AZzGQEhHXRNaeim":
        raise PatternError(pattern, rf"uses \{letter}, which ECMA-262 does not have")
    return pattern[at : at + 2], at + 2


def _character_class(pattern: str, start: int) -> tuple[str, int]:
    at = start + 1
    negated = pattern.startswith("^", at)
    at += negated
    if pattern.startswith("]", at):
        # `[]` matches nothing and `[^]` anything; Java would read on for the closing bracket.
        return (r"[\s\S]" if negated else r"(?!)"), at + 1
    out = ["[^" if negated else "["]
    while at < len(pattern) and pattern[at] != "]":
        if pattern[at] == "\\":
            piece, at = _escape(pattern, at, in_class=True)
            out.append(piece)
            continue
        out.append({"[": r"\[", "&": r"\&"}.get(pattern[at], pattern[at]))
        at += 1
    if at >= len(pattern):
        raise PatternError(pattern, "has a character class that is not closed")
    return "".join([*out, "]"]), at + 1


_JAVA_TOKENS: Final = re.compile(r"\\x\{([0-9a-fA-F]+)\}|\\z|\(\?<(?![=!])|\\.", re.DOTALL)


@lru_cache(maxsize=4096)
def to_python(pattern: str) -> re.Pattern[str]:
    """The same expression for Python's `re`, to be searched for.

    Raises `PatternError` for what is not an ECMA-262 expression, or needs what `re` does not have.
    """

    def token(found: re.Match[str]) -> str:
        text = found[0]
        if found[1] is not None:
            return f"\\U{int(found[1], 16):08x}"
        return {r"\z": r"\Z", "(?<": "(?P<"}.get(text, text)

    try:
        # Digits and word characters are ASCII in ECMA-262 and in Java; the spaces are spelled out by `to_java`.
        return re.compile(_JAVA_TOKENS.sub(token, to_java(pattern)), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(pattern, f"cannot be run in Python: {error}") from None
