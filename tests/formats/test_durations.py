"""Lengths of time: what each spelling is in seconds, and what is none."""

import pytest

from databox_contracts.formats.durations import DurationError, parse_duration

DAY = 86_400


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("PT10M", 600),
        ("P30D", 30 * DAY),
        ("P1M", 30 * DAY),
        ("PT1M", 60),
        ("P1Y", 365 * DAY),
        ("P2W", 14 * DAY),
        ("P1DT2H3M4.5S", DAY + 2 * 3600 + 3 * 60 + 4.5),
        ("pt24h", DAY),
        ("PT0S", 0),
        ("30s", 30),
        ("5min", 300),
        ("15 minutes", 900),
        ("1h", 3600),
        ("7d", 7 * DAY),
        ("10m", 600),
        ("1h30m", 5400),
        ("1 day 2 hours", DAY + 7200),
        ("1 year", 365 * DAY),
        ("3mo", 90 * DAY),
        ("250ms", 0.25),
        ("1,5h", 5400),
        ("0s", 0),
        (" 7 Days ", 7 * DAY),
    ],
)
def test_a_duration_in_seconds(written, seconds):
    assert parse_duration(written) == seconds


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "it is empty"),
        ("  ", "it is empty"),
        ("10", "a number needs a unit"),
        ("soon", "it has no number"),
        ("-5m", "it has a sign"),
        ("-PT5M", "it has a sign"),
        ("5 fortnights", "the unit 'fortnights' is not known"),
        ("5m 5m", "the unit 'm' stands twice"),
        ("5m 1 minute", "the unit 'minute' stands twice"),
        ("P", "it starts with P and is not of ISO 8601"),
        ("PT", "it starts with P and is not of ISO 8601"),
        ("P1DT", "it starts with P and is not of ISO 8601"),
        ("P1H", "it starts with P and is not of ISO 8601"),
        ("PT1D", "it starts with P and is not of ISO 8601"),
        ("P" + "9" * 400 + "D", "it starts with P and is not of ISO 8601"),
    ],
)
def test_what_is_no_duration_says_why_and_how_to_write_one(written, reason):
    with pytest.raises(DurationError) as caught:
        parse_duration(written)
    assert caught.value.reason == reason
    assert "PT10M" in str(caught.value)
