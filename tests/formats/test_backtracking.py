"""Which expressions a text can keep busy for ever, written down by hand."""

from __future__ import annotations

import time

import pytest

from databox_contracts.formats.backtracking import is_exponential

EXPONENTIAL = [
    "(a+)+",
    "(a*)*",
    "(a|a)*",
    "(a|ab|b)*",
    "(a?a?)*",
    "(a{1,3})*",
    "(a{2,})+",
    "(a+){2,}",
    "(a+b?)+",
    "(b?a+)+",
    "((a+)b?)*",
    r"^(\w+\s?)*$",
    r"(\s*\w+\s*)+",
    "(.*,)*x",
    "(?:a|[ab])+",
    r"(\d+|\w)+",
    "(?=(a+)+)b",
]
HARMLESS = [
    "",
    "a+",
    "a*b*",
    "(a+b)+",
    "(a|b)*",
    "(ab|cd)+",
    "(a+)?",
    "(a+){2}",
    r"^([a-z0-9-]+\.)+[a-z]{2,}$",
    "[a-z]+(-[a-z]+)*",
    r"(\d{1,3}\.){3}\d{1,3}",
    r"[^@\s]+@[^@\s]+\.[^@\s]+",
    r'("[^"]*"|x)*',
    r"(\$|\^)+",
    "(|a)+",
    "(a",
    ")",
    "[",
    "\\",
]


@pytest.mark.parametrize("pattern", EXPONENTIAL)
def test_a_loop_that_reads_a_text_in_two_ways(pattern: str) -> None:
    assert is_exponential(pattern) is True


@pytest.mark.parametrize("pattern", HARMLESS)
def test_a_loop_that_reads_every_text_in_one_way(pattern: str) -> None:
    assert is_exponential(pattern) is False


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 200 + "a" + "+)" * 200,
        "(" + "|".join(f"[a-{chr(98 + at % 20)}]x{at}y" for at in range(60)) + ")*",
        "(" * 40 + "a" + "{1,9})" * 39 + ")*",
        "(a|b)*" * 400,
    ],
)
def test_a_large_one_is_given_up_in_time(pattern: str) -> None:
    before = time.process_time()
    is_exponential(pattern)
    assert time.process_time() - before < 1
