"""When it is tried again."""

from datetime import timedelta

import pytest

from databox_contracts.errors import DeliveryError
from databox_contracts.notify import Pace

PACE = Pace(first=timedelta(seconds=10), longest=timedelta(hours=1), attempts=100, permanent_attempts=3)


def seconds(clock, attempts, *, random=0.0, age=None, pace=PACE, **error):
    failed = DeliveryError("x", "y", **error)
    at = pace.retry_at(
        failed,
        attempts=attempts,
        occurred_at=clock() - (age or timedelta()),
        now=clock(),
        random=lambda: random,
    )
    return None if at is None else (at - clock()).total_seconds()


@pytest.mark.parametrize(
    ("attempts", "random", "pause"),
    [
        (1, 0, 10),
        (2, 0, 20),
        (3, 0, 40),
        (9, 0, 2560),
        (10, 0, 3600),
        (99, 0, 3600),
        (1, 1, 5),
        (3, 0.5, 30),
        (50, 1, 1800),
    ],
)
def test_the_pause_doubles_up_to_its_longest_and_up_to_half_is_left_out(clock, attempts, random, pause):
    assert seconds(clock, attempts, random=random) == pause


@pytest.mark.parametrize(
    ("asked", "random", "pause"),
    [(120.0, 0, 120), (120.0, 1, 132), (0.0, 0, 5), (7.0, 0, 7), (1e12, 0, 86400), (-3.0, 0, 5)],
)
def test_what_a_receiver_asks_for_is_kept_within_bounds(clock, asked, random, pause):
    assert seconds(clock, 1, random=random, retry_after=asked) == pause
    assert seconds(clock, 9, random=random, retry_after=asked) == pause


def test_it_is_given_up_after_so_many_attempts(clock):
    assert seconds(clock, 99) is not None
    assert seconds(clock, 100) is None
    assert seconds(clock, 2, permanent=True) == 20
    assert seconds(clock, 3, permanent=True) is None
    assert seconds(clock, 3, permanent=True, retry_after=1.0) is None


def test_it_is_given_up_when_old_but_never_untried(clock):
    old = timedelta(days=6)
    assert seconds(clock, 4, age=old) is not None
    assert seconds(clock, 5, age=old) is None
    assert seconds(clock, 5, age=timedelta(days=4)) is not None


def test_an_outage_of_a_weekend_is_survived(clock):
    assert sum(seconds(clock, attempts) for attempts in range(1, 100)) > 3 * 86400
