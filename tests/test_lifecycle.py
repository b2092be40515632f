"""When a version begins and ends, and what the changelog says of it."""

from datetime import date, datetime

import pytest

from databox_contracts.lifecycle import changelog_entry, effective_date, sunset_date
from databox_contracts.testing import build_contract


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-01-31", date(2026, 1, 31)),
        ("2026-01-31T10:00:00Z", date(2026, 1, 31)),
        (date(2026, 1, 31), date(2026, 1, 31)),
        (datetime(2026, 1, 31, 23, 59), date(2026, 1, 31)),
        ("2026-02-30", None),
        ("soon", None),
        ("", None),
        (0, None),
        (None, None),
        ([], None),
    ],
)
def test_the_days_of_a_version(value, expected):
    contract = build_contract(custom={"effectiveDate": value, "sunsetDate": value})
    assert (effective_date(contract), sunset_date(contract)) == (expected, expected)
    assert effective_date(build_contract()) is None


@pytest.mark.parametrize(
    ("changelog", "version", "expected"),
    [
        ([{"version": "2.0.0", "removed": ["a", "b"], "added": "c"}], "2.0.0", "removed: a, b; added: c"),
        ([{"version": "2.0", "text": "x"}], "2.0.0", "text: x"),
        ([{"version": 2.0, "text": "x"}], "2", "text: x"),
        ({"2.0.0": "x", "1.0.0": "y"}, "1.0.0", "y"),
        ({"2.0.0": ["x", {"y": "z"}]}, "2.0.0", "x, y: z"),
        ([{"version": "3.1", "text": "x"}], "3.10", None),
        ([{"version": "1.0.0", "text": "x"}], "2.0.0", None),
        ([{"text": "x"}, "x", None], "1.0.0", None),
        ([], "1.0.0", None),
        ("x", "1.0.0", None),
        (None, "1.0.0", None),
    ],
)
def test_what_the_changelog_says_of_a_version(changelog, version, expected):
    assert changelog_entry(build_contract(version=version, custom={"changelog": changelog})) == expected
