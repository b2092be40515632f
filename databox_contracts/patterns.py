"""Regular expressions of contracts (ECMA-262) in the dialect of Java, which is what Spark runs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from databox_contracts.errors import DataboxError

_SPACES: Final = r"\s\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"
_NOT_A_LINE_END: Final = r"[^\n\r\x{2028}\x{2029}]"

# After a backslash; the other letters mean something to Java only, or nothing.
_LETTERS: Final = "bBcdDfknpPrsStuvwWx"
_COUNT: Final = re.compile(r"\{\d+(?:,\d*)?\}")
_GROUP_NAME: Final = re.compile(r"\(\?<([^>=!][^>]*)>")
_CODE: Final = re.compile(r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}")

# Java knows the general categories by their short names, and the other properties with `Is` before them.
_PROPERTIES: Final = {
    "Letter": "L",
    "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll",
    "Mark": "M",
    "Number": "N",
    "Decimal_Number": "Nd",
    "Punctuation": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Space_Separator": "Zs",
    **{name: f"Is{name}" for name in ("Alphabetic", "Ideographic", "Lowercase", "Uppercase", "White_Space")},
}


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
    so is a `{` that counts nothing; `\u{…}` is `\x{…}`, `\v`, `\0` and `\cJ` are one character each, and groups lose
    the characters of their names that Java does not take. Raises `PatternError` for what is not an ECMA-262 expression.
    """
    names = _group_names(pattern)
    out: list[str] = []
    depth, at, end = 0, 0, len(pattern)
    while at < end:
        char = pattern[at]
        if char == "\\":
            if pattern.startswith(r"\k<", at):
                piece, at = _reference(pattern, at, names)
            else:
                piece, at = _escape(pattern, at, in_class=False)
            out.append(piece)
            continue
        if char == "[":
            piece, at = _character_class(pattern, at)
            out.append(piece)
            continue
        if char == "(":
            depth += 1
            if (named := _GROUP_NAME.match(pattern, at)) is not None:
                out.append(f"(?<{names[named[1]]}>")
                at = named.end()
                continue
        elif char == "{" and _COUNT.match(pattern, at) is None:
            out.append(r"\{")
            at += 1
            continue
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


def _group_names(pattern: str) -> dict[str, str]:
    """The names of its groups, each with one that Java takes, which are of letters and digits only."""
    found: dict[str, str] = {}
    for match in _GROUP_NAME.finditer(pattern) if "(?<" in pattern else ():
        plain = "".join(char for char in match[1] if char.isascii() and char.isalnum())
        is_known = plain == match[1] and plain[0].isalpha()
        found.setdefault(match[1], plain if is_known else f"g{len(found)}x{plain}")
    return found


def _reference(pattern: str, at: int, names: Mapping[str, str]) -> tuple[str, int]:
    close = pattern.find(">", at)
    name = pattern[at + 3 : close] if close > 0 else pattern[at + 3 :]
    if name not in names:
        raise PatternError(pattern, f"refers to a group {name[:40]!r} that it does not have")
    return rf"\k<{names[name]}>", close + 1


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
    if letter in "pP" and pattern.startswith("{", at + 2):
        close = pattern.find("}", at)
        if close < 0:
            raise PatternError(pattern, rf"has a \{letter}{{ that is not closed")
        name = pattern[at + 3 : close]
        return rf"\{letter}{{{_PROPERTIES.get(name, name)}}}", close + 1
    if letter == "c" and (named := pattern[at + 2 : at + 3]).isascii() and named.isalpha():
        return rf"\x{ord(named) % 32:02x}", at + 3
    if letter in "xu" and _CODE.match(pattern, at + 1) is None:
        return letter, at + 2
    if letter in _CHARACTERS and (in_class or letter != "b"):
        return _CHARACTERS[letter], at + 2
    if letter.isascii() and letter.isalpha() and letter not in _LETTERS:
        raise PatternError(pattern, rf"uses \{letter}, which ECMA-262 does not have")
    return pattern[at : at + 2], at + 2


# What Java takes for something else, or for a mistake; `\b` stands for a character only inside a class.
_CHARACTERS: Final = {"/": "/", "v": r"\x0b", "0": r"\x00", "b": r"\x08"}


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
        if (ends := _RANGE.match(pattern, at)) is not None:
            if ends[1] > ends[2]:
                raise PatternError(pattern, f"has the range {ends[0]}, whose end comes before its beginning")
            out.append(f"{_MEMBERS.get(ends[1], ends[1])}-{_MEMBERS.get(ends[2], ends[2])}")
            at = ends.end()
            continue
        out.append(_MEMBERS.get(pattern[at], pattern[at]))
        at += 1
    if at >= len(pattern):
        raise PatternError(pattern, "has a character class that is not closed")
    return "".join([*out, "]"]), at + 1


_MEMBERS: Final = {"[": r"\[", "&": r"\&"}
_RANGE: Final = re.compile(r"([^\\\]])-([^\\\]])", re.DOTALL)

_JAVA_TOKENS: Final = re.compile(r"\\x\{([0-9a-fA-F]+)\}|\\k<(\w+)>|\\z|\(\?<(?![=!])|\\.", re.DOTALL)


@lru_cache(maxsize=4096)
def to_python(pattern: str) -> re.Pattern[str]:
    """The same expression for Python's `re`, to be searched for.

    Raises `PatternError` for what is not an ECMA-262 expression, or needs what `re` does not have.
    """

    def token(found: re.Match[str]) -> str:
        text = found[0]
        if found[1] is not None:
            return f"\\U{int(found[1], 16):08x}"
        if found[2] is not None:
            return f"(?P={found[2]})"
        return {r"\z": r"\Z", "(?<": "(?P<"}.get(text, text)

    try:
        with warnings.catch_warnings():
            # Of classes that a later Python may read otherwise.
            warnings.simplefilter("ignore", FutureWarning)
            # Digits and word characters are ASCII in ECMA-262 and in Java; the spaces are spelled out by `to_java`.
            return re.compile(_JAVA_TOKENS.sub(token, to_java(pattern)), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(pattern, f"cannot be run in Python: {error}") from None
