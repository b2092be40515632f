from __future__ import annotations

import pytest

from databox_contracts.patterns import PatternError, to_java, to_python

# What Java would read otherwise than ECMA-262. That Spark then matches as it should is in spark/test_predicates.py.
TRANSLATIONS = [
    ("", ""),
    ("^a$", r"^a\z"),
    (r"a\$b", r"a\$b"),
    ("[$.]", "[$.]"),
    ("a.c", r"a[^\n\r\x{2028}\x{2029}]c"),
    (r"a\.c", r"a\.c"),
    ("[a[b]", r"[a\[b]"),
    ("[a&&b]", r"[a\&\&b]"),
    ("[]", "(?!)"),
    ("[^]", r"[\s\S]"),
    (r"[^\]]", r"[^\]]"),
    (r"\/", "/"),
    (r"\u{1f600}", r"\x{1f600}"),
    (r"\u0041\d\w\b", r"\u0041\d\w\b"),
    ("(a|b)+?", "(a|b)+?"),
    (r"\v\0\cj\cJ", r"\x0b\x00\x0a\x0a"),
    (r"[\b]\b", r"[\x08]\b"),
    ("a{", r"a\{"),
    ("a{,3}", r"a\{,3}"),
    ("a{2,}b{0}", "a{2,}b{0}"),
    (r"\x4", "x4"),
    (r"(?<a_b>x)\k<a_b>", r"(?<g0xab>x)\k<g0xab>"),
    (r"(?<n1>x)\k<n1>(?<=y)(?<!z)", r"(?<n1>x)\k<n1>(?<=y)(?<!z)"),
    (r"\p{Letter}\P{Lu}\p{White_Space}", r"\p{L}\P{Lu}\p{IsWhite_Space}"),
    ("[a-z-0]", "[a-z-0]"),
]


@pytest.mark.parametrize(("ecma", "java"), TRANSLATIONS)
def test_what_java_reads_otherwise_is_rewritten(ecma: str, java: str) -> None:
    assert to_java(ecma) == java


def test_white_space_is_unicode_inside_and_outside_of_a_class() -> None:
    inside = to_java(r"[\s]").removeprefix("[").removesuffix("]")
    assert r"\x{feff}" in inside
    assert to_java(r"\s") == f"[{inside}]"
    assert to_java(r"\S") == f"[^{inside}]"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "a group that is not closed"),
        (")", "closes a group that is not open"),
        ("[a", "a character class that is not closed"),
        ("a\\", "ends in a backslash"),
        ("a++", "repeats a repetition"),
        (r"\Aa\z", "which ECMA-262 does not have"),
        (r"\u{41", "that is not closed"),
        (r"\p{L", "that is not closed"),
        ("[z-a]", "has the range z-a"),
        (r"\k<q>", "refers to a group 'q'"),
        (r"\y", "which ECMA-262 does not have"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError) as error:
        to_java(pattern)
    assert reason in str(error.value)
    assert error.value.pattern == pattern


@pytest.mark.parametrize(
    ("pattern", "keeps", "breaks"),
    [(r"^(?<a_b>x)\k<a_b>$", "xx", "x"), (r"^\v$", "\x0b", "v"), ("^a{$", "a{", "a"), ("^[+--]$", ",", "a")],
)
def test_python_reads_what_is_translated_alike(pattern: str, keeps: str, breaks: str) -> None:
    assert to_python(pattern).search(keeps)
    assert not to_python(pattern).search(breaks)
