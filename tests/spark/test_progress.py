"""What a verification says it is doing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from databox_contracts import rules
from databox_contracts.rules import Operator, Threshold
from databox_contracts.spark import TablePlace, publish
from databox_contracts.spark.progress import Progress, Steps, paced
from databox_contracts.spark.verification import verify
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from databox_contracts.spark import OnViolation


def test_each_step_is_told_once_when_nothing_takes_long() -> None:
    seen: list[Progress] = []
    times = iter([0.0, 1.0, 2.0, 3.0])
    steps = Steps(seen.append, ["one", "two"], beat=600, clock=lambda: next(times))
    with steps.step("one"):
        pass
    with steps.step("two"):
        pass
    with steps.step("not announced"):
        pass
    assert seen == [Progress("one", 1, 2, 1.0), Progress("two", 2, 2, 2.0), Progress("not announced", 3, 3, 3.0)]
    assert str(seen[0]) == "one (step 1 of 2, 1 s)"
    assert str(Progress("one", 1, 2, 75.4, 0, 9)) == "one, 0 of 9 parts (step 1 of 2, 75 s)"


def test_a_long_step_is_told_again_and_its_end_ends_that() -> None:
    again = threading.Event()
    seen: list[Progress] = []

    def tell(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) > 2:
            again.set()

    before = threading.active_count()
    with Steps(tell, ["long"], beat=0.001).step("long", parts=2):
        assert again.wait(60)
    assert {(one.doing, one.done, one.parts) for one in seen} == {("long", 0, 2)}
    assert threading.active_count() == before


def test_an_error_of_the_step_passes_and_one_of_who_is_told_does_not_beat_on() -> None:
    calls = threading.Semaphore(0)

    def refuse(progress: Progress) -> None:
        calls.release()
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("on another thread")

    def work() -> None:
        with Steps(refuse, ["one"], beat=0.001).step("one"):
            assert calls.acquire(timeout=60)
            assert calls.acquire(timeout=60)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        work()


def test_nobody_is_told_more_often_than_asked() -> None:
    times = iter([100.0, 101.0, 114.9, 115.0, 116.0, 130.0])
    seen: list[Progress] = []
    tell = paced(seen.append, 15, clock=lambda: next(times))
    for at in range(1, 6):
        tell(Progress("x", at, 5, 0.0))
    assert [one.step for one in seen] == [3, 5]


def test_the_steps_of_a_verification(spark: SparkSession) -> None:
    contract = build_contract(
        build_field("id", "bigint", rules.Unique(), rules.Maximum(limit=3)),
        rules=(rules.Query(sql="select count(*) from t", threshold=Threshold(Operator.GREATER_THAN, 0)),),
    )
    for rows, due in ((3, 3), (5, 4)):
        seen: list[Progress] = []
        verdict = verify(spark.range(rows).toDF("id"), contract, progress=seen.append)
        assert verdict.passed is (rows == 3)
        told = list(dict.fromkeys((one.doing, one.step, one.steps) for one in seen))
        names = ("counting rows", "comparing keys", "running queries", "collecting samples")
        assert told == [(name, at, 4) for at, name in enumerate(names, 1)][:due]
        assert [one.seconds for one in seen] == sorted(one.seconds for one in seen)


@pytest.mark.parametrize("on_violation", ["fail", "quarantine"])
def test_a_publish_tells_that_it_writes_before_it_verifies(
    spark: SparkSession, tmp_path: Path, on_violation: OnViolation
) -> None:
    contract = build_contract(build_field("id", "bigint", rules.Unique()))
    seen: list[Progress] = []
    place = TablePlace(tmp_path, "t")
    publish(spark.range(3).toDF("id"), contract, place=place, on_violation=on_violation, progress=seen.append)
    # What the write itself tells is not counted again.
    assert list(dict.fromkeys(one.doing for one in seen)) == ["writing rows", "comparing keys"]
    assert (seen[0].step, seen[0].steps, str(seen[0])) == (1, 1, "writing rows (0 s)")
