"""Every kind of rule has its sentence, and hidden values are in none."""

from decimal import Decimal

import pytest

from databox_contracts import rules
from databox_contracts.datatypes import parse_type
from databox_contracts.export.page import Code
from databox_contracts.export.wording import (
    SENTENCES,
    duration,
    is_plain,
    rule_line,
    rule_text,
    threshold_words,
    type_words,
    value_text,
)
from databox_contracts.rules import Dimension, Operator, Rule, Severity, Threshold, Unit
from databox_contracts.testing import build_field

NONE = Threshold(Operator.MUST_BE, 0)
FEW = Threshold(Operator.LESS_THAN, Decimal("2.5"), unit=Unit.PERCENT)

SAID = [
    (rules.Present(), "The table has this column."),
    (rules.HasType(type=parse_type("decimal(10,2)")), "Has the type decimal(10, 2)."),
    (rules.Undeclared(), "The table has no column that is not declared here."),
    (rules.Required(), "Always has a value."),
    (rules.Enum(values=("EWR", "", None, 0, False)), 'Is one of: "EWR", "", null, 0, false.'),
    (rules.Enum(values=()), "No value is allowed but null."),
    (rules.Pattern(pattern="^a|b$"), "Contains a match of ^a|b$."),
    (rules.Format(format="uuid"), "Has the format uuid."),
    (rules.Minimum(limit=0), "Is at least 0."),
    (rules.Maximum(limit="2020-01-31"), "Is at most 2020-01-31."),
    (rules.ExclusiveMinimum(limit=-1.5), "Is greater than -1.5."),
    (rules.ExclusiveMaximum(limit=Decimal("0.10")), "Is less than 0.10."),
    (rules.MultipleOf(divisor=Decimal("0.01")), "Is a multiple of 0.01."),
    (rules.MinLength(length=0), "Has at least 0 characters."),
    (rules.MaxLength(length=12), "Has at most 12 characters."),
    (rules.MinItems(count=1), "Has at least 1 items."),
    (rules.MaxItems(count=0), "Has at most 0 items."),
    (rules.UniqueItems(), "No two items are equal."),
    (rules.NullCount(threshold=FEW), "Nulls: less than 2.5 % of the rows."),
    (rules.MissingCount(missing_values=(None, ""), threshold=NONE), 'Missing values (null, ""): none.'),
    (
        rules.InvalidCount(valid_values=("a",), pattern="b", threshold=FEW),
        'Values that are not valid (valid is one of: "a" and text that matches b): less than 2.5 % of the rows.',
    ),
    (rules.InvalidCount(threshold=NONE), "Values that are not valid: none."),
    (rules.RowCount(threshold=Threshold(Operator.BETWEEN, 1, 10)), "Rows in the table: between 1 and 10."),
    (rules.Unique(), "No two rows have the same value."),
    (rules.Unique(fields=("a", "b.c")), "No two rows have the same a, b.c."),
    (rules.PrimaryKey(fields=("a",)), "Each row is identified by a."),
    (rules.DuplicateCount(threshold=NONE), "Rows that repeat a value: none."),
    (rules.DuplicateCount(fields=("a",), threshold=NONE), "Rows that repeat a: none."),
    (rules.Expression(sql="a > b"), "Holds for every row: a > b."),
    (rules.RequiredWhen(condition="a = 1"), "Always has a value where a = 1."),
    (
        rules.Completeness(
            threshold=Threshold(Operator.GREATER_OR_EQUAL, 99, unit=Unit.PERCENT),
            period="hour",
            expected=100,
            percent_of_periods=99.5,
        ),
        "Of the 100 rows expected in each hour, at least 99 % have arrived; that holds for 99.5 % of the periods.",
    ),
    (
        rules.Statistic(statistic="quantile", quantile=0.5, threshold=Threshold(Operator.GREATER_THAN, 1)),
        "The statistic quantile at 0.5 is more than 1.",
    ),
    (rules.Freshness(seconds=5400, element="at"), "The newest row is at most 1 hour 30 minutes old by at."),
    (
        rules.Latency(percentile=95, seconds=30, element="a", arrival_field="b"),
        "95 % of the rows arrive within 30 seconds of the event, measured from a to b.",
    ),
    (rules.Latency(percentile=100, seconds=0.5), "Every row arrives within 0.5 seconds of the event."),
    (rules.Retention(seconds=0), "No row is older than 0 seconds."),
    (rules.ForeignKey(fields=(), to="shops", to_fields=("id",)), "The value is found in shops (id)."),
    (
        rules.ForeignKey(fields=("a", "b"), to="shops", to_fields=("c", "d")),
        "a, b are found together in shops (c, d).",
    ),
    (rules.Query(sql="select 1", threshold=NONE), "The query select 1 gives exactly 0."),
    (rules.NotEnforced(reason="it is prose"), "A promise. Not enforced: it is prose."),
    (
        rules.NotEnforced(description="Kept for long", reason="no data shows it.", name="kept"),
        "kept: Kept for long. Not enforced: no data shows it.",
    ),
    (
        rules.NotEnforced(reason="why", custom={"$odcs": {"slaProperty": {"value": 0}}}),
        'A promise. Not enforced: why. As written: {"slaProperty": {"value": 0}}.',
    ),
]


@pytest.mark.parametrize(("rule", "sentence"), SAID, ids=lambda value: value.kind if isinstance(value, Rule) else "")
def test_a_rule_is_said_in_a_sentence(rule, sentence):
    assert rule_text(rule).split(" (not enforced:")[0] == sentence


def test_every_kind_of_rule_has_a_sentence_and_a_row_here():
    kinds = {
        kind for kind in vars(rules).values() if isinstance(kind, type) and issubclass(kind, Rule) and kind is not Rule
    }
    assert set(SENTENCES) == kinds
    assert {type(rule) for rule, _ in SAID} == kinds


SECRET = "jane@example.com"


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (rules.Enum(values=(SECRET,)), "Is one of: 1 value, not shown."),
        (
            rules.MissingCount(missing_values=(SECRET, ""), threshold=NONE),
            "Missing values (2 values, not shown): none.",
        ),
        (
            rules.InvalidCount(valid_values=(SECRET,), threshold=NONE),
            "Values that are not valid (valid is one of: 1 value, not shown): none.",
        ),
        (rules.NotEnforced(reason="why", custom={"$x": {"v": SECRET}}), "A promise. Not enforced: why."),
    ],
)
def test_values_that_may_not_be_shown_are_counted(rule, sentence):
    assert rule_text(rule, masked=True) == sentence
    assert SECRET in rule_text(rule)


def test_what_the_author_says_stands_beside_the_promise():
    rule = rules.Required(
        name="there", severity=Severity.WARNING, dimension=Dimension.COMPLETENESS, description="Or so."
    )
    assert rule_text(rule) == "there: Always has a value. Or so. (warning; completeness)"
    assert not is_plain(rule)
    assert is_plain(rules.Required())


def test_a_rule_that_this_version_does_not_check_says_so():
    rule = rules.Format(format="morse")
    assert rule.unenforced is not None
    assert rule_text(rule).endswith(f"({rule.unenforced})")


def test_names_patterns_and_values_are_to_be_taken_letter_by_letter():
    assert rule_line(rules.Pattern(pattern="*")) == ("Contains a match of ", Code("*"), ".")
    assert rule_line(rules.Enum(values=(1, 2))) == ("Is one of: ", Code("1"), ", ", Code("2"), ".")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (60, "1 minute"),
        (90061, "1 day 1 hour 1 minute 1 second"),
        (2 * 86400, "2 days"),
        (0.25, "0.25 seconds"),
    ],
)
def test_durations(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("threshold", "words"),
    [
        (Threshold(Operator.MUST_BE, 0), "exactly 0"),
        (Threshold(Operator.MUST_NOT_BE, 1), "anything but 1"),
        (Threshold(Operator.GREATER_THAN, 1), "more than 1"),
        (Threshold(Operator.GREATER_OR_EQUAL, 1), "at least 1"),
        (Threshold(Operator.LESS_THAN, 1, unit=Unit.PERCENT), "less than 1 %"),
        (Threshold(Operator.LESS_OR_EQUAL, 1), "at most 1"),
        (Threshold(Operator.BETWEEN, 0, 1.5, unit=Unit.PERCENT), "between 0 % and 1.5 %"),
        (Threshold(Operator.NOT_BETWEEN, 0, 1), "less than 0 or more than 1"),
    ],
)
def test_thresholds(threshold, words):
    assert threshold_words(threshold) == words


@pytest.mark.parametrize(
    ("spelling", "words"),
    [
        (None, "any type"),
        ("varchar(3)", "string(3)"),
        ("array<array<int>>", "array of array of integer(32)"),
        ("map<string, bigint>", "map of string to integer(64)"),
        ("struct<a: int>", "object"),
    ],
)
def test_types(spelling, words):
    assert type_words(build_field("x", spelling)) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", '""'),
        ("1", '"1"'),
        (1, "1"),
        (True, "true"),
        (None, "null"),
        (Decimal("1.10"), "1.10"),
        ({"a": [0]}, '{"a": [0]}'),
    ],
)
def test_values(value, text):
    assert value_text(value) == text
