"""Rules and thresholds: plain facts, and which numbers hold."""

import dataclasses
from decimal import Decimal

import pytest

from databox_contracts import rules
from databox_contracts.rules import NO_ROWS, Operator, Rule, Scope, Severity, Threshold, Unit

HOLDS = [
    (Threshold(Operator.MUST_BE, 0), 0, True),
    (Threshold(Operator.MUST_BE, 0), 1, False),
    (Threshold(Operator.MUST_BE, 0), 0.0, True),
    (Threshold(Operator.MUST_BE, 0.1), Decimal("0.1"), True),
    (Threshold(Operator.MUST_NOT_BE, 0), 0, False),
    (Threshold(Operator.MUST_NOT_BE, 0), 1, True),
    (Threshold(Operator.GREATER_THAN, 0), 0, False),
    (Threshold(Operator.GREATER_THAN, 0), 1, True),
    (Threshold(Operator.GREATER_OR_EQUAL, 0), 0, True),
    (Threshold(Operator.GREATER_OR_EQUAL, 1), 0, False),
    (Threshold(Operator.LESS_THAN, 1), 0, True),
    (Threshold(Operator.LESS_THAN, 1), 1, False),
    (Threshold(Operator.LESS_OR_EQUAL, 0), 0, True),
    (Threshold(Operator.LESS_OR_EQUAL, 0), 1, False),
    (Threshold(Operator.BETWEEN, 0, 2), 0, True),
    (Threshold(Operator.BETWEEN, 0, 2), 2, True),
    (Threshold(Operator.BETWEEN, 0, 2), 3, False),
    (Threshold(Operator.BETWEEN, 1, 2), 0, False),
    (Threshold(Operator.BETWEEN, 0, 0), 0, True),
    (Threshold(Operator.NOT_BETWEEN, 0, 2), 0, False),
    (Threshold(Operator.NOT_BETWEEN, 0, 2), 2, False),
    (Threshold(Operator.NOT_BETWEEN, 0, 2), 3, True),
    (Threshold(Operator.LESS_THAN, 0.5, unit=Unit.PERCENT), 0.499, True),
    (Threshold(Operator.LESS_THAN, 0.5, unit=Unit.PERCENT), 0.5, False),
    (Threshold(Operator.BETWEEN, 0, 100, Unit.PERCENT), 100, True),
]


@pytest.mark.parametrize(("threshold", "observed", "holds"), HOLDS)
def test_which_numbers_hold(threshold, observed, holds):
    assert threshold.holds(observed) is holds


@pytest.mark.parametrize(
    ("threshold", "none"),
    [
        (NO_ROWS, True),
        (Threshold(Operator.LESS_OR_EQUAL, 0), True),
        (Threshold(Operator.LESS_OR_EQUAL, 1), False),
        (Threshold(Operator.LESS_THAN, 1), True),
        (Threshold(Operator.LESS_THAN, 0.5), True),
        (Threshold(Operator.LESS_THAN, 0), False),
        (Threshold(Operator.LESS_THAN, 2), False),
        (Threshold(Operator.LESS_THAN, 1, unit=Unit.PERCENT), False),
        (Threshold(Operator.MUST_BE, 0, unit=Unit.PERCENT), True),
        (Threshold(Operator.MUST_BE, 1), False),
        (Threshold(Operator.MUST_NOT_BE, 0), False),
        (Threshold(Operator.GREATER_OR_EQUAL, 0), False),
        (Threshold(Operator.BETWEEN, 0, 5), False),
        (Threshold(Operator.BETWEEN, 0, 0), True),
        (Threshold(Operator.BETWEEN, 0, 0, unit=Unit.PERCENT), True),
        (Threshold(Operator.BETWEEN, -1, 0), True),
        (Threshold(Operator.BETWEEN, 1, 0), False),
        (Threshold(Operator.NOT_BETWEEN, 1, 5), False),
    ],
)
def test_which_thresholds_allow_no_row_at_all(threshold, none):
    assert threshold.allows_none is none


@pytest.mark.parametrize(
    ("threshold", "shown"),
    [
        (Threshold(Operator.MUST_BE, 0), "= 0"),
        (Threshold(Operator.MUST_NOT_BE, 0), "!= 0"),
        (Threshold(Operator.GREATER_THAN, 0), "> 0"),
        (Threshold(Operator.GREATER_OR_EQUAL, 0), ">= 0"),
        (Threshold(Operator.LESS_THAN, 5, unit=Unit.PERCENT), "< 5%"),
        (Threshold(Operator.LESS_OR_EQUAL, 0), "<= 0"),
        (Threshold(Operator.BETWEEN, 0, 5), "between 0 and 5"),
        (Threshold(Operator.NOT_BETWEEN, 0, 5, Unit.PERCENT), "not between 0% and 5%"),
    ],
)
def test_a_threshold_is_shown_as(threshold, shown):
    assert str(threshold) == shown


CLASSES = [
    value for value in vars(rules).values() if isinstance(value, type) and issubclass(value, Rule) and value is not Rule
]


def test_kinds_are_the_listed_vocabulary():
    assert sorted(rule.kind for rule in CLASSES) == [
        "completeness",
        "duplicate_count",
        "enum",
        "exclusive_maximum",
        "exclusive_minimum",
        "expression",
        "foreign_key",
        "format",
        "freshness",
        "invalid_count",
        "latency",
        "max_items",
        "max_length",
        "maximum",
        "min_items",
        "min_length",
        "minimum",
        "missing_count",
        "multiple_of",
        "not_enforced",
        "null_count",
        "pattern",
        "present",
        "primary_key",
        "query",
        "required",
        "required_when",
        "retention",
        "row_count",
        "statistic",
        "type",
        "undeclared",
        "unique",
        "unique_items",
    ]


@pytest.mark.parametrize("rule", CLASSES, ids=lambda rule: rule.kind)
def test_every_rule_is_frozen_and_says_what_it_is(rule):
    assert dataclasses.is_dataclass(rule)
    assert rule.__dataclass_params__.frozen
    assert isinstance(rule.scope, Scope)
    assert rule.usual_dimension is not None
    assert rule.__doc__


def test_a_rule_is_an_error_until_it_says_otherwise():
    assert rules.Required().severity is Severity.ERROR
    assert rules.Required(severity=Severity.INFO).severity is Severity.INFO


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (rules.Required(), "are null"),
        (rules.Minimum(limit=0), "are below 0"),
        (rules.MaxLength(length=0), "are longer than 0 characters"),
        (rules.Enum(values=()), "are none of the 0 allowed values"),
        (rules.Enum(values=("",)), "are none of the 1 allowed values"),
        (rules.Pattern(pattern="{0}"), "do not match {0}"),
    ],
)
def test_what_is_wrong_quotes_the_rule(rule, text):
    assert rule.broken == text
