"""Long verifications in the log of a run."""

import logging

import pytest

from databox_contracts.dagster import progress
from databox_contracts.dagster.progress import logged_progress
from databox_contracts.spark.progress import Progress


def test_a_run_logs_the_steps_of_a_long_verification_and_nothing_of_a_short_one(run, hourly, instance, monkeypatch):
    def logged(asset):
        before = {entry.timestamp for record in instance.get_runs() for entry in instance.all_logs(record.run_id)}
        assert run(asset).success
        entries = [entry for record in instance.get_runs() for entry in instance.all_logs(record.run_id)]
        return [entry for entry in entries if entry.timestamp not in before and "step 1 of" in entry.user_message]

    asset = hourly()
    assert logged(asset) == []
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    [first, *_] = logged(asset)
    assert first.user_message.startswith("nyc/hourly: counting rows (step 1 of 3, ")
    assert first.level == logging.INFO
    assert first.step_key == "nyc__hourly"


def test_a_line_is_logged_at_most_every_so_many_seconds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("a run")
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    often = logged_progress(log, "t")
    monkeypatch.undo()
    seldom = logged_progress(log, "t")
    with caplog.at_level(logging.INFO):
        for at in range(1, 4):
            often(Progress("counting rows", at, 3, 20.0))
            seldom(Progress("counting rows", at, 3, 20.0))
    assert caplog.messages == [f"t: counting rows (step {at} of 3, 20 s)" for at in range(1, 4)]
