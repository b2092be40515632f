"""Whether a regular expression can take exponential time: a text that one of its loops can read in several ways.

The expression becomes the automaton of its characters (each character of the expression a state, its followers the
states that may come next). A loop is dangerous when the same text leads from a state back to it in two ways.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field as attribute
from functools import lru_cache
from typing import Final

_LAST: Final = 0x10FFFF
_MOST_STATES: Final = 400
_MOST_IN_A_LOOP: Final = 80
_MOST_DEEP: Final = 60

# Counted repetitions are written out so many times at most: enough to see whether their copies overlap.
_MOST_COPIES: Final = 2

_Ranges = tuple[tuple[int, int], ...]

_DIGITS: Final[_Ranges] = ((48, 57),)
_WORD: Final[_Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final[_Ranges] = ((9, 13), (32, 32), (160, 160), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029))
_ANY: Final[_Ranges] = ((0, _LAST),)
_NOT_A_LINE_END: Final[_Ranges] = ((0, 9), (11, 12), (14, 0x2027), (0x202A, _LAST))
_CONTROLS: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
_QUANTIFIER: Final = re.compile(r"(?:([*+?])|\{(\d{1,9})(,(\d{0,9}))?\})\??")
_GROUP: Final = re.compile(r"\?(?:<(?![=!])[^>]*>|<?[=!]|[a-zA-Z-]*:|>)")
_REPEATS: Final = re.compile(r"[*+}]")
_REPEATED_GROUP: Final = re.compile(r"\)[*+{]")


def is_exponential(pattern: str) -> bool | None:
    """Whether a text exists that takes time exponential in its length; None for an expression too large to tell.

    Lookarounds, backreferences and anchors are taken for nothing. What is no expression counts as harmless, for it is
    refused elsewhere.
    """
    # Only a repeated group can be read in several ways.
    return _judged(pattern) if _REPEATED_GROUP.search(pattern) else False


def unbounded_repetitions(pattern: str) -> int:
    """At most how many repetitions without an end there are: the power of a text's length that a match may take."""
    return len(_REPEATS.findall(pattern))


@lru_cache(maxsize=1024)
def _judged(pattern: str) -> bool | None:
    if len(pattern) > 2_000:
        return None
    reader = _Reader(pattern)
    try:
        reader.alternatives(0)
    except _TooLargeError:
        return None
    return reader.automaton.is_ambiguous()


class _TooLargeError(Exception):
    """More states than are looked at."""


@dataclass
class _Part:
    """A part of the expression: the states it may begin and end in, and whether it may be empty."""

    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    empty: bool = True


@dataclass
class _Automaton:
    """States with their characters; followers are counted, since two ways to the same one are what is looked for."""

    ranges: list[_Ranges] = attribute(default_factory=list)
    followers: list[Counter[int]] = attribute(default_factory=list)

    def state(self, ranges: _Ranges) -> _Part:
        if len(self.ranges) >= _MOST_STATES:
            raise _TooLargeError
        self.ranges.append(ranges)
        self.followers.append(Counter())
        own = (len(self.ranges) - 1,)
        return _Part(own, own, empty=False)

    def joined(self, left: _Part, right: _Part) -> _Part:
        self.link(left.last, right.first)
        first = left.first + right.first if left.empty else left.first
        last = right.last + left.last if right.empty else right.last
        return _Part(first, last, empty=left.empty and right.empty)

    def link(self, ends: Iterable[int], starts: Iterable[int]) -> None:
        starts = tuple(starts)
        for end in ends:
            self.followers[end].update(starts)

    def is_ambiguous(self) -> bool | None:
        judged = [self._loop_is_ambiguous(loop) for loop in self._loops()]
        return True if True in judged else None if None in judged else False

    def _loop_is_ambiguous(self, loop: frozenset[int]) -> bool | None:
        if any(ways > 1 and state in loop for one in loop for state, ways in self.followers[one].items()):
            return True
        if len(loop) > _MOST_IN_A_LOOP:
            return None
        # Pairs of different states that one text leads to, both from one state; and whether they meet again.
        next_of = {one: sorted(state for state in self.followers[one] if state in loop) for one in sorted(loop)}
        seen: set[tuple[int, int]] = set()
        waiting = [pair for one in sorted(loop) for pair in self._pairs(next_of[one], next_of[one])]
        while waiting:
            pair = waiting.pop()
            if pair in seen or pair[0] == pair[1]:
                continue
            seen.add(pair)
            for after in self._pairs(next_of[pair[0]], next_of[pair[1]]):
                if after[0] == after[1]:
                    # Within a loop every state leads to every other, so this closes the circle.
                    return True
                waiting.append(after)
        return False

    def _pairs(self, left: list[int], right: list[int]) -> list[tuple[int, int]]:
        return [
            (min(one, other), max(one, other))
            for one in left
            for other in right
            if _overlap(self.ranges[one], self.ranges[other])
        ]

    def _loops(self) -> list[frozenset[int]]:
        """The sets of states that lead to each other, found by Tarjan's algorithm without recursion."""
        index: dict[int, int] = {}
        low: dict[int, int] = {}
        stack: list[int] = []
        on_stack: set[int] = set()
        found: list[frozenset[int]] = []
        for root in range(len(self.ranges)):
            if root in index:
                continue
            work = [(root, iter(self.followers[root]))]
            index[root] = low[root] = len(index)
            stack.append(root)
            on_stack.add(root)
            while work:
                state, after = work[-1]
                step = next(after, None)
                if step is None:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[state])
                    if low[state] == index[state]:
                        members = set()
                        while state not in members:
                            member = stack.pop()
                            on_stack.discard(member)
                            members.add(member)
                        if len(members) > 1 or state in self.followers[state]:
                            found.append(frozenset(members))
                elif step not in index:
                    index[step] = low[step] = len(index)
                    stack.append(step)
                    on_stack.add(step)
                    work.append((step, iter(self.followers[step])))
                elif step in on_stack:
                    low[state] = min(low[state], index[step])
        return found


def _overlap(left: _Ranges, right: _Ranges) -> bool:
    return any(low <= high_ and low_ <= high for low, high in left for low_, high_ in right)


class _Reader:
    """Reads an expression into an automaton, leniently: what it does not understand is a plain character."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.automaton = _Automaton()

    def alternatives(self, depth: int) -> _Part:
        if depth > _MOST_DEEP:
            raise _TooLargeError
        found = self._sequence(depth)
        while self.text.startswith("|", self.at):
            self.at += 1
            other = self._sequence(depth)
            found = _Part(found.first + other.first, found.last + other.last, empty=found.empty or other.empty)
        return found

    def _sequence(self, depth: int) -> _Part:
        found = _Part()
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            found = self.automaton.joined(found, self._repeated(depth))
        if depth == 0 and self.at < len(self.text) and self.text[self.at] == ")":
            self.at = len(self.text)
        return found

    def _repeated(self, depth: int) -> _Part:
        start = self.at
        part = self._atom(depth)
        end = self.at
        match = _QUANTIFIER.match(self.text, end)
        if match is None:
            return part
        after = match.end()
        least, most = _counts(match)
        copies = 1 if most is None and least <= 1 else min(max(least, 1 if most is None else most), _MOST_COPIES)
        parts = [part]
        for _ in range(copies - 1):
            self.at = start
            parts.append(self._atom(depth))
        for at, one in enumerate(parts):
            if at >= least:
                one.empty = True
        if most is None:
            self.automaton.link(parts[-1].last, parts[-1].first)
        self.at = after
        found = _Part()
        for one in parts:
            found = self.automaton.joined(found, one)
        return _Part() if most == 0 else found

    def _atom(self, depth: int) -> _Part:
        char = self.text[self.at]
        if char == "(":
            return self._group(depth)
        self.at += 1
        match char:
            case "^" | "$":
                return _Part()
            case ".":
                return self.automaton.state(_NOT_A_LINE_END)
            case "[":
                return self.automaton.state(self._class())
            case "\\":
                letter = self.text[self.at : self.at + 1]
                if letter in ("b", "B") or (letter.isdigit() and letter != "0"):
                    self.at += 1
                    return _Part()
                if letter == "k" and (close := self.text.find(">", self.at)) > 0:
                    self.at = close + 1
                    return _Part()
                return self.automaton.state(self._escape())
            case _:
                return self.automaton.state(((ord(char), ord(char)),))

    def _group(self, depth: int) -> _Part:
        self.at += 1
        kind = _GROUP.match(self.text, self.at)
        if kind is not None:
            self.at = kind.end()
        inner = self.alternatives(depth + 1)
        self.at += 1
        # A lookaround consumes nothing; its own loops stay in the automaton.
        return _Part() if kind is not None and kind[0].endswith(("=", "!")) else inner

    def _class(self) -> _Ranges:
        negated = self.text.startswith("^", self.at)
        self.at += negated
        found: list[tuple[int, int]] = []
        while self.at < len(self.text) and self.text[self.at] != "]":
            low = self._member()
            is_range = self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("", "]")
            if is_range and len(low) == 1 and low[0][0] == low[0][1]:
                self.at += 1
                high = self._member()
                found.append((low[0][0], high[-1][1]))
            else:
                found.extend(low)
        self.at += 1
        return _inverted(found) if negated else tuple(found)

    def _member(self) -> _Ranges:
        char = self.text[self.at]
        self.at += 1
        if char == "\\":
            if self.text.startswith("b", self.at):
                self.at += 1
                return ((8, 8),)
            return self._escape()
        return ((ord(char), ord(char)),)

    def _escape(self) -> _Ranges:
        """The characters of what follows a backslash."""
        letter = self.text[self.at : self.at + 1]
        self.at += 1
        match = _CODE.match(self.text, self.at - 1)
        if match is not None:
            self.at = match.end()
            code = min(int(next(part for part in match.groups() if part), 16), _LAST)
            return ((code, code),)
        if letter in ("p", "P") and (close := self.text.find("}", self.at)) > 0:
            self.at = close + 1
            return _ANY
        if letter in _CLASSES:
            return _CLASSES[letter]
        code = _CONTROLS.get(letter, ord(letter) if letter else 0)
        return ((code, code),)


_CODE: Final = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,8})\}")


def _counts(match: re.Match[str]) -> tuple[int, int | None]:
    """The least and the most repetitions; None without an end."""
    if match[1] is not None:
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[match[1]]
    least = int(match[2])
    if match[3] is None:
        return least, least
    return least, int(match[4]) if match[4] else None


def _inverted(ranges: Iterable[tuple[int, int]]) -> _Ranges:
    found, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            found.append((start, low - 1))
        start = max(start, high + 1)
    return (*found, (start, _LAST)) if start <= _LAST else tuple(found)


_CLASSES: Final[dict[str, _Ranges]] = {
    "d": _DIGITS,
    "D": _inverted(_DIGITS),
    "w": _WORD,
    "W": _inverted(_WORD),
    "s": _SPACE,
    "S": _inverted(_SPACE),
}
