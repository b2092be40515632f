"""Java's own word about regular expressions, asked through Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from databox_contracts.patterns import to_java
from databox_contracts.spark.regexes import refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What ECMA-262 has; each is translated so that Java takes it.
TAKEN = [
    "",
    "^a$",
    "a{2,}b{3}",
    "a{",
    "{}",
    "a{,3}",
    "[a[b]",
    "[a&&b]",
    "[]",
    "[^]",
    r"[\b]",
    r"\v\0\cj",
    r"\x4 \u12",
    r"\u{1f600}",
    r"(?<the_name>x)\k<the_name>",
    "(?<=a)b(?!c)",
    r"\p{Letter}\p{Lu}\P{White_Space}",
    r"[a-z-0]",
]


def test_what_is_translated_is_taken(spark: SparkSession) -> None:
    assert refused(spark, [to_java(pattern) for pattern in TAKEN]) == {}


def test_without_patterns_nothing_is_refused(spark: SparkSession) -> None:
    assert refused(spark, []) == {}


def test_each_that_is_refused_has_its_reason_and_the_others_have_none(spark: SparkSession) -> None:
    assert refused(spark, ["a", "(b", r"\p{Nonsense}", "[c]"]) == {
        "(b": "Unclosed group near character 3",
        r"\p{Nonsense}": "Unknown character property name {Nonsense} near character 12",
    }


@pytest.mark.parametrize(
    ("pattern", "keeps", "breaks"),
    [
        (r"^\v$", "\x0b", "\n"),
        (r"^\cj$", "\n", "*"),
        (r"^[\b]$", "\x08", "b"),
        (r"^a{$", "a{", "a"),
        (r"^(?<a_b>x)\k<a_b>$", "xx", "x"),
        (r"^\p{Letter}$", "\u00e9", "1"),
    ],
)
def test_a_translation_means_the_same(spark: SparkSession, pattern: str, keeps: str, breaks: str) -> None:
    texts = spark.createDataFrame([(keeps,), (breaks,)], "v string")
    assert [row[0] for row in texts.select(texts["v"].rlike(to_java(pattern))).collect()] == [True, False]
