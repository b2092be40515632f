"""Messages that were given up are a failing check."""

from datetime import UTC, datetime

import dagster as dg
import pytest

from databox_contracts.dagster import build_outbox_check
from databox_contracts.errors import DataboxError
from databox_contracts.notifications import EventKind, Failed, Notification, State
from databox_contracts.notify.dead_letters import outbox_state
from databox_contracts.notify.memory_outbox import MemoryOutbox
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OUTBOX = dg.AssetSpec("databox_outbox")


def message(number, consumer="quant"):
    return Notification(
        consumer=consumer,
        contract="trades",
        event=f"event {number}",
        kind=EventKind.CHECK,
        severity=Severity.ERROR,
        contact=f"https://u:${{PASSWORD}}@example.com/hook/geheim-{number}",
        title=f"trade {number}",
        occurred_at=NOON.replace(hour=number),
    )


def give_up(outbox, *messages):
    outbox.enqueue(messages)
    while (lease := outbox.lease("w")) is not None:
        error = Failed(error="https://example.com: the receiver answered 404 Not Found", retry_at=None)
        outbox.settle(lease, failed={one.notification.id: error for one in lease.items})


@pytest.fixture(scope="module")
def instance():
    with dg.instance_for_test() as made:
        yield made


@pytest.fixture
def evaluated(instance):
    """What the check says in a run; the run itself where that fails."""

    def run(check, *, succeeds=True):
        definitions = dg.Definitions(assets=[OUTBOX], asset_checks=[check])
        job = definitions.resolve_implicit_global_asset_job_def()
        done = job.execute_in_process(instance=instance, raise_on_error=False)
        assert done.success is succeeds
        return done.get_asset_check_evaluations()[0] if succeeds else done

    return run


def test_it_fails_while_messages_lie_there_as_given_up(database_url, evaluated):
    check = build_outbox_check(database_url, asset=OUTBOX)
    with Registry.open(database_url) as registry:
        found = evaluated(check)
        assert (found.passed, found.check_name) == (True, "outbox_has_no_dead_letters")
        assert found.description == "No message was given up; 0 waiting and 0 sent."
        give_up(registry.outbox, message(2), message(1, "risk"))
        registry.outbox.enqueue([message(3)])
        found = evaluated(check)
        assert (found.passed, found.severity, found.asset_key) == (False, dg.AssetCheckSeverity.ERROR, OUTBOX.key)
        assert found.description == (
            "2 messages were given up, for quant, risk, the oldest about 2026-03-01 01:00 UTC; 1 waiting and 0 sent. "
            "`databox-contracts outbox dead` lists them; when the cause is gone, `outbox retry --all` sends them again."
        )
        facts = found.metadata
        assert [facts[name].value for name in ("waiting", "sent", "dead")] == [1, 0, 2]
        assert facts["oldest"].value == NOON.replace(hour=1).timestamp()
        assert [row.data["title"] for row in facts["dead_letters"].records] == ["trade 2", "trade 1"]
        assert facts["dead_letters"].records[0].data["error"].endswith("the receiver answered 404 Not Found")
        # A path may be a secret that nobody has taken out.
        assert "geheim" not in repr(found)
        assert "PASSWORD" not in repr(found)
        registry.outbox.retry([one.id for one, _ in registry.outbox.dead()])
        assert evaluated(check).passed


def test_it_warns_or_bears_some_where_asked(tmp_path, evaluated):
    file = tmp_path / "r.db"
    with Registry.open(file) as registry:
        give_up(registry.outbox, message(1))
    found = evaluated(build_outbox_check(file, asset="databox_outbox", severity="warn", name="told"))
    assert (found.passed, found.severity, found.check_name) == (False, dg.AssetCheckSeverity.WARN, "told")
    assert evaluated(build_outbox_check(file, asset=OUTBOX.key, most=1)).passed


def test_the_registry_is_found_as_everywhere(tmp_path, monkeypatch, evaluated):
    monkeypatch.setenv("DATABOX_REGISTRY", str(tmp_path / "r.db"))
    with Registry.open(tmp_path / "r.db") as registry:
        give_up(registry.outbox, message(1))
    assert not evaluated(build_outbox_check(asset=OUTBOX)).passed


def test_a_registry_that_cannot_be_opened_is_an_error_of_the_run(tmp_path, evaluated):
    (tmp_path / "r.db").write_text("no database at all, but a text that is long enough to be looked at" * 20)
    done = evaluated(build_outbox_check(tmp_path / "r.db", asset=OUTBOX), succeeds=False)
    (failed,) = [event for event in done.all_events if event.is_step_failure]
    assert "The outbox cannot be looked at: the registry" in failed.step_failure_data.user_failure_data.description


@pytest.mark.parametrize("url", ["https://registry.example.com", "HTTP://h"])
def test_a_service_shows_nobody_its_outbox(url, monkeypatch, evaluated):
    with pytest.raises(DataboxError, match="does not show its outbox"):
        build_outbox_check(url, asset=OUTBOX)
    monkeypatch.setenv("DATABOX_REGISTRY", url)
    done = evaluated(build_outbox_check(asset=OUTBOX), succeeds=False)
    (failed,) = [event for event in done.all_events if event.is_step_failure]
    assert "does not show its outbox" in failed.step_failure_data.user_failure_data.description


def test_an_unknown_severity_is_refused():
    with pytest.raises(DataboxError, match="one of error, warn"):
        build_outbox_check(asset=OUTBOX, severity="info")  # type: ignore[arg-type]


def test_of_very_many_the_first_are_told_and_all_are_counted():
    outbox = MemoryOutbox(clock=lambda: NOON)
    give_up(outbox, *(message(number % 24, f"consumer {number}") for number in range(30)))
    state = outbox_state(outbox, most=7)
    assert (state.dead, len(state.letters), state.passed) == (30, 7, False)
    assert "for consumer 0, consumer 1, consumer 2, consumer 3, consumer 4 and 2 more" in state.summary()
    assert state.letters[0].to_dict()["contact"] == "https://example.com"
    assert state.counts == {State.WAITING: 0, State.SENT: 0, State.DEAD: 30}
