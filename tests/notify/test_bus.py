"""The bus as its subscribers know it."""

import logging
from datetime import UTC, datetime

import databox_contracts as dbc
from databox_contracts.evolution.changes import ChangeType
from databox_contracts.notifications import State
from databox_contracts.notify import MemoryOutbox, OutboxHandler

OLD = dbc.SchemaVersion("TradeSchemaV1", "1.0.0", {"symbol": str, "price": float, "volume": int})
NEW = dbc.SchemaVersion(
    "TradeSchemaV2", "2.0.0", {"symbol": str, "close_price": float, "volume": int, "timestamp": str}
)
REPORT = dbc.SchemaDiff(OLD, NEW).generate_report()
SAFE = dbc.MigrationReport(
    "TradeSchemaV1", "1.0.0", "1.1.0", [dbc.FieldChange(ChangeType.FIELD_ADDED, "venue", is_breaking=False)]
)


class Recorder:
    def __init__(self):
        self.calls = []

    def send(self, report):
        self.calls.append(report)


class Broken:
    def send(self, report):
        raise RuntimeError("https://user:hunter2@example.com is down")


def full_bus(*handlers, **facts):
    bus = dbc.NotificationBus(handlers, **facts)
    bus.register(dbc.Consumer("Quant team", "quant@firm.com", ["TradeSchemaV1"]))
    bus.register(dbc.Consumer("Risk system", "risk@firm.com", ["TradeSchemaV1"]))
    bus.register(dbc.Consumer("ML pipeline", "ml@firm.com", ["TradeSchemaV1"]))
    bus.register(dbc.Consumer("Reporting svc", "bi@firm.com", ["PriceSchema"]))
    return bus


def test_a_consumer_is_given_by_position():
    consumer = dbc.Consumer("Quant team", "quant@example.com", ["TradeSchemaV1"])
    assert consumer.subscribed_schemas == ("TradeSchemaV1",)
    assert consumer == dbc.Consumer(name="Quant team", contact="quant@example.com", datasets=("TradeSchemaV1",))


def test_a_breaking_change_is_told_to_its_subscribers_and_nobody_else(capsys):
    full_bus().notify(REPORT)
    assert capsys.readouterr().out == (
        "Notified Quant team: breaking change in 'TradeSchemaV1'\n"
        "Notified Risk system: breaking change in 'TradeSchemaV1'\n"
        "Notified ML pipeline: breaking change in 'TradeSchemaV1'\n"
    )


def test_the_log_has_an_entry_for_each_that_was_told():
    bus = full_bus(clock=lambda: datetime(2026, 3, 1, tzinfo=UTC))
    assert bus.get_log() == []
    bus.notify(REPORT)
    assert [entry["consumer"] for entry in bus.get_log()] == ["Quant team", "Risk system", "ML pipeline"]
    assert bus.get_log()[0] == {
        "consumer": "Quant team",
        "contact": "quant@firm.com",
        "schema": "TradeSchemaV1",
        "from_version": "1.0.0",
        "to_version": "2.0.0",
        "breaking_fields": ["price"],
        "timestamp": "2026-03-01T00:00:00+00:00",
    }


def test_a_safe_change_makes_no_noise(capsys):
    recorder = Recorder()
    bus = full_bus(recorder)
    bus.notify(SAFE)
    assert (capsys.readouterr().out, bus.get_log(), recorder.calls) == ("", [], [])


def test_a_handler_gets_each_breaking_report_once():
    recorder = Recorder()
    bus = full_bus(recorder)
    bus.notify(REPORT)
    assert recorder.calls == [REPORT]
    lonely = dbc.NotificationBus([recorder])
    lonely.notify(REPORT)
    assert recorder.calls == [REPORT, REPORT]


def test_a_handler_that_raises_keeps_nothing_from_the_others_and_is_reported(capsys, caplog):
    before, after, broken = Recorder(), Recorder(), Broken()
    bus = full_bus(before, broken)
    bus.add_handler(after)
    with caplog.at_level(logging.ERROR):
        bus.notify(REPORT)
    assert before.calls == after.calls == [REPORT]
    assert len(bus.get_log()) == 3
    assert [(handler, type(error)) for handler, error in bus.failures] == [(broken, RuntimeError)]
    assert "Broken did not take the breaking change in 'TradeSchemaV1': RuntimeError" in caplog.text
    assert "hunter2" not in caplog.text


def test_the_same_consumer_is_registered_once(capsys):
    bus = full_bus()
    bus.register(dbc.Consumer("Quant team", "quant@firm.com", ["TradeSchemaV1"]))
    bus.notify(REPORT)
    assert capsys.readouterr().out.count("Quant team") == 1


def test_an_outbox_gets_a_message_for_each_subscriber(clock):
    outbox = MemoryOutbox(clock=clock)
    bus = full_bus()
    bus.add_handler(OutboxHandler(outbox, bus, clock))
    bus.notify(REPORT)
    bus.notify(REPORT)
    assert outbox.counts()[State.WAITING] == 3
    told = [outbox.lease("w").items[0].notification for _ in range(3)]
    assert [(one.consumer, one.contact) for one in told] == [
        ("Quant team", "mailto:quant@firm.com"),
        ("Risk system", "mailto:risk@firm.com"),
        ("ML pipeline", "mailto:ml@firm.com"),
    ]
