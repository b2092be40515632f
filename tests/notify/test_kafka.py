"""Kafka, as librdkafka's mock broker has it: a TCP server that other clients talk to, and that is taken down and up."""

import json
from datetime import UTC, datetime

import pytest

import databox_contracts as dbc
from databox_contracts.errors import DeliveryError
from databox_contracts.notify import Channels, Delivery, KafkaNotificationHandler, MemoryOutbox, Settings, Totals
from databox_contracts.notify.building import from_report, report_key
from databox_contracts.notify.message import render

REPORT = dbc.SchemaDiff(
    dbc.SchemaVersion("TradeSchemaV1", "1.0.0", {"symbol": str, "price": float}),
    dbc.SchemaVersion("TradeSchemaV2", "2.0.0", {"symbol": str, "close_price": float}),
).generate_report()


@pytest.fixture
def channels():
    made = Channels(Settings(environ={"PW": "s3cret-4711"}, timeout=5.0))
    yield made
    made.close()


def test_a_breaking_change_is_published_with_its_versions_and_fields(cluster, channels):
    consumer = dbc.Consumer("Quant team", f"kafka://{cluster.bootstrap}", ["TradeSchemaV1"])
    one = from_report(REPORT, [consumer], occurred_at=datetime(2026, 3, 1, tzinfo=UTC))[0]
    channels.send(render(one, channels.settings), one.contact)
    (message,) = cluster.messages("schema.breaking-changes", 1)
    assert message.key() == b"TradeSchemaV1"
    assert message.headers() == [("Idempotency-Key", one.key.encode())]
    body = json.loads(message.value())
    assert {name: body[name] for name in ("schema", "from_version", "to_version", "breaking_fields", "timestamp")} == {
        "schema": "TradeSchemaV1",
        "from_version": "1.0.0",
        "to_version": "2.0.0",
        "breaking_fields": ["price"],
        "timestamp": "2026-03-01T00:00:00+00:00",
    }
    assert (body["key"], body["consumer"]) == (one.key, "Quant team")


def test_other_news_has_the_same_entries(cluster, channels, notification):
    one = notification(contact=f"kafka://{cluster.bootstrap}/other-topic", facts={"version": "3.1.0"})
    channels.send(render(one, channels.settings), one.contact)
    body = json.loads(cluster.messages("other-topic", 1)[0].value())
    assert (body["schema"], body["from_version"], body["to_version"]) == ("trades", None, "3.1.0")
    assert body["breaking_fields"] == []


def test_the_handler_of_the_bus_publishes_a_report_once(cluster):
    handler = KafkaNotificationHandler(cluster.bootstrap, timeout=5, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC))
    bus = dbc.NotificationBus([handler])
    bus.register(dbc.Consumer("A", None, ["TradeSchemaV1"]))
    bus.register(dbc.Consumer("B", None, ["TradeSchemaV1"]))
    bus.notify(REPORT)
    handler.close()
    (message,) = cluster.messages("schema.breaking-changes", 1)
    assert json.loads(message.value()) == {
        "schema": "TradeSchemaV1",
        "from_version": "1.0.0",
        "to_version": "2.0.0",
        "breaking_fields": ["price"],
        "timestamp": "2026-03-01T00:00:00+00:00",
        "key": report_key(REPORT),
    }
    assert bus.failures == ()


def test_a_broker_that_goes_down_and_comes_back(cluster, notification):
    channels = Channels(Settings(environ={}, timeout=1.5))
    first, second = (notification(n, contact=f"kafka://{cluster.bootstrap}/t") for n in (1, 2))
    channels.send(render(first, channels.settings), first.contact)
    cluster.down()
    with pytest.raises(DeliveryError, match="the brokers did not take it: msg timed out") as caught:
        channels.send(render(second, channels.settings), second.contact)
    assert not caught.value.permanent
    cluster.up()
    channels.send(render(second, channels.settings), second.contact)
    channels.close()
    assert [json.loads(one.value())["key"] for one in cluster.messages("t", 2)] == [first.key, second.key]


def test_what_waits_for_a_broker_arrives_in_order(cluster, notification, clock):
    outbox = MemoryOutbox(clock=clock)
    many = [notification(n, contact=f"kafka://{cluster.bootstrap}/t") for n in range(8)]
    channels = Channels(Settings(environ={}, timeout=3.0))
    delivery = Delivery(outbox, channels, clock=clock)
    outbox.enqueue(many[:3])
    assert delivery.drain() == Totals(sent=3)
    cluster.down()
    outbox.enqueue(many[3:])
    assert delivery.drain() == Totals(failed=1)
    cluster.up()
    clock.move(minutes=1)
    assert delivery.drain() == Totals(sent=5)
    channels.close()
    found = cluster.messages("t", 8)
    # The mock broker spreads keys over partitions; one contract has one.
    assert [json.loads(one.value())["key"] for one in found] == [one.key for one in many]
    assert len({one.partition() for one in found}) == 1


def test_no_broker_there(serve, notification, capfd):
    gone = serve(lambda connection: None)
    gone.close()
    channels = Channels(Settings(environ={"PW": "s3cret-4711"}, timeout=1.0))
    one = notification(contact=f"kafka://me:${{PW}}@127.0.0.1:{gone.port}/t")
    with pytest.raises(DeliveryError) as caught:
        channels.send(render(one, channels.settings), one.contact)
    channels.close()
    assert not caught.value.permanent
    assert str(caught.value).startswith(f"kafka://127.0.0.1:{gone.port}: the brokers did not take it")
    assert "s3cret" not in str(caught.value) + "".join(capfd.readouterr())


@pytest.mark.parametrize("contact", ["kafka://", "kafka:///topic", "kafka://me:x@h:1/t?mechanism=NOPE"])
def test_a_contact_that_cannot_work_is_refused_for_good(channels, notification, contact):
    with pytest.raises(DeliveryError) as caught:
        channels.send(render(notification(), channels.settings), contact)
    assert caught.value.permanent
