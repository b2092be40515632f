"""Fields against their baselines; every expected number is literal or computed here in another way."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest

from databox_contracts.drift import DriftFinding, DriftThresholds
from databox_contracts.drift_comparison import compare_field, stability_index
from databox_contracts.profiles import FieldProfile


def field(**facts: Any) -> FieldProfile:
    return FieldProfile(**{"field": "f", "type": "string", "rows": 1000, **facts})


def found(now: FieldProfile, then: FieldProfile, **limits: Any) -> list[tuple[str, str | None]]:
    told = compare_field(now, then, DriftThresholds(**limits), {})
    return [(one.kind, one.value) for one in told if isinstance(one, DriftFinding)]


def notes(now: FieldProfile, then: FieldProfile) -> list[str]:
    return [one for one in compare_field(now, then, DriftThresholds(), {}) if isinstance(one, str)]


def slow_index(sample: list[str], baseline: list[str], bins: list[str]) -> float:
    """The definition, value by value, half a value more in every bin."""
    total = 0.0
    for name in bins:
        share = (sum(one == name for one in sample) + 0.5) / (len(sample) + 0.5 * len(bins))
        before = (sum(one == name for one in baseline) + 0.5) / (len(baseline) + 0.5 * len(bins))
        total += share * math.log(share / before) + before * math.log(before / share)
    return total


def test_the_stability_index_is_the_definition() -> None:
    chance = random.Random(7)
    for _ in range(50):
        bins = ["a", "b", "c", "d", "e"][: chance.randint(1, 5)]
        sample = [chance.choice(bins) for _ in range(chance.randint(1, 40))]
        baseline = [chance.choice(bins[:3]) for _ in range(chance.randint(1, 40))]
        counts = [[Counter(of)[name] for name in bins] for of in (sample, baseline)]
        assert stability_index(*counts, smoothing=0.5) == pytest.approx(slow_index(sample, baseline, bins), abs=1e-12)
    # By hand: shares 0.75 and 0.25 against 0.5 and 0.5.
    assert stability_index([3, 1], [2, 2], smoothing=0) == pytest.approx(0.25 * math.log(3), abs=1e-12)
    assert stability_index([5, 5], [500, 500], smoothing=0.5) == 0


@pytest.mark.parametrize(
    ("now", "then", "expected"),
    [
        # Four points of 1000 are below the limit, six are not.
        ({"nulls": 40}, {"nulls": 0}, []),
        ({"nulls": 60}, {"nulls": 0}, [("null_rate", None)]),
        ({"nulls": 0}, {"nulls": 60}, [("null_rate", None)]),
        # Of ten rows one null more is chance.
        ({"rows": 10, "nulls": 1}, {"nulls": 0}, [("null_rate", None)]),
        ({"rows": 10, "nulls": 1}, {"rows": 10, "nulls": 0}, []),
        ({"nulls": 1000}, {"nulls": 1000}, []),
        ({"not_finite": 100}, {}, [("not_finite", None)]),
        ({"values": {'"a"': 1000}}, {"values": {'"a"': 500, '"b"': 500}}, None),
        # Nine rows of a value that is gone were to be expected: too few to tell. Then eleven.
        ({"values": {'"a"': 1000}}, {"values": {'"a"': 991, '"b"': 9}}, []),
        ({"values": {'"a"': 1000}}, {"values": {'"a"': 989, '"b"': 11}}, [("vanished_value", '"b"')]),
        # One row of a new value is one.
        ({"values": {'""': 1, '"a"': 999}}, {"values": {'"a"': 1000}}, [("new_value", '""')]),
        # A field without a value has not said yet which it has.
        ({"values": {'"a"': 1000}}, {"values": {}, "nulls": 1000}, [("null_rate", None)]),
        ({"values": {}, "nulls": 1000}, {"values": {}, "nulls": 1000}, []),
        # More values than are compared one by one, where there were few.
        ({"distinct": 101}, {"distinct": 2, "values": {'"a"': 1, '"b"': 999}}, [("distinct", None)]),
        ({"distinct": 300}, {"distinct": 200}, []),
        ({"distinct": 400}, {"distinct": 200}, [("distinct", None)]),
        ({"distinct": 200}, {"distinct": 400}, [("distinct", None)]),
        ({"distinct": 0, "nulls": 1000}, {"distinct": 400}, [("null_rate", None)]),
        # A masked field is compared by its rates alone.
        ({"masked": True, "nulls": 100, "distinct": 9}, {"masked": True, "distinct": 2}, "rates"),
    ],
)
def test_what_is_drift_and_what_is_chance(now: dict[str, Any], then: dict[str, Any], expected: Any) -> None:
    if expected is None:
        assert found(field(**now), field(**then)) == [("vanished_value", '"b"'), ("distribution", None)]
    elif expected == "rates":
        assert found(field(**now), field(**then)) == [("null_rate", None), ("distinct", None)]
    else:
        assert found(field(**now), field(**then)) == expected


def test_what_is_not_compared_is_said() -> None:
    assert notes(field(type="int"), field()) == ["f was string in the baseline and is int: not compared"]
    assert notes(field(rows=0), field()) == ["f has no values in the sample: not compared"]
    assert notes(field(), field(rows=0)) == ["f has no values in the baseline: not compared"]
    assert notes(field(distinct=900), field(rows=50, distinct=45)) == [
        "f: too few values to compare how many are different"
    ]
    assert notes(field(values={'"a"': 1000}), field(masked=True)) == [
        "f was masked in the baseline: its values are not compared"
    ]
    # Ten times the rows, so that ten times as many different values may be the same data.
    assert notes(field(distinct=900), field(rows=100, distinct=100)) == [
        "f: samples of 1000 and 100 values: how many differ was not compared"
    ]


def numbers(bins: tuple[int, ...], low: float, high: float) -> FieldProfile:
    levels = {level: low + (high - low) * float(level) for level in ("0.05", "0.1", "0.5", "0.9", "0.95")}
    return field(type="double", quantiles=levels, edges=(0.0, 50.0), high=100.0, bins=bins)


def test_numbers_are_compared_by_bins_and_quantiles() -> None:
    then = numbers((0, 500, 500, 0), 0, 100)
    assert found(numbers((0, 520, 480, 0), 0, 100), then) == []
    moderate = compare_field(numbers((0, 680, 320, 0), 0, 100), then, DriftThresholds(), {})
    assert [(one.kind, str(one.severity)) for one in moderate if isinstance(one, DriftFinding)] == [
        ("distribution", "warning")
    ]
    assert found(numbers((0, 480, 480, 40), 0, 100), then) == [("distribution", None)]
    assert found(numbers((0, 480, 480, 40), 0, 100), then, psi_major=9, psi_moderate=9) == []
    # Three quantiles up by 60, of a usual range of 90; then by 40.
    assert found(numbers((0, 500, 500, 0), 60, 160), then) == [("quantile", None)] * 3
    assert found(numbers((0, 500, 500, 0), 40, 140), then) == []
    # What was one value and is another.
    assert found(numbers((0, 500, 500, 0), 1, 1), numbers((0, 500, 500, 0), 0, 0)) == [("quantile", None)] * 3
    assert found(numbers((0, 500, 500, 0), 0, 0), numbers((0, 500, 500, 0), 0, 0)) == []
