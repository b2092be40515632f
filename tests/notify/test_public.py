"""What others may rely on."""

import inspect

import pytest

from databox_contracts import notify
from databox_contracts.evolution.changes import ChangeType
from databox_contracts.evolution.report import FieldChange, MigrationReport
from databox_contracts.notify import building, building_runs
from databox_contracts.notify.sending import CHANNELS
from databox_contracts.testing import RecordingChannel


def test_the_public_names():
    assert sorted(notify.__all__) == [
        "Channels",
        "Delivery",
        "Handler",
        "KafkaNotificationHandler",
        "MemoryOutbox",
        "Message",
        "NotificationBus",
        "OutboxHandler",
        "Pace",
        "Settings",
        "Totals",
    ]
    for name in notify.__all__:
        assert getattr(notify, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = notify.nothing


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (notify.NotificationBus, "handlers, *clock"),
        (notify.OutboxHandler, "outbox, bus, clock"),
        (notify.KafkaNotificationHandler, "bootstrap_servers, topic, *config, *timeout, *clock"),
        (notify.MemoryOutbox, "*clock, *lease_for"),
        (notify.Channels, "settings, *through"),
        (
            notify.Delivery,
            "outbox, channels, *worker, *pace, *digest_from, *digest_most, *clock, *random",
        ),
        (notify.Delivery.drain, "self, *limit, *seconds"),
        (notify.Delivery.run, "self, *idle"),
        (
            notify.Settings,
            "*dagster_url, *contracts_url, *smtp_url, *mail_from, *timeout, *logger, *environ, *tickets",
        ),
        (building.from_report, "report, consumers, *occurred_at, *by, *contract, *owner"),
        (building.from_versions, "old, new, consumers, *occurred_at"),
        (
            building.from_deprecation,
            "contract, version, consumers, *occurred_at, *sunset, *successor, *retired, *owner",
        ),
        (
            building_runs.from_verdict,
            "verdict, consumers, *run_id, *occurred_at, *asset, *partition, *published, *since, *resolved, *contract, "
            "*owner",
        ),
        (
            building_runs.from_run_failure,
            "run_id, contract, consumers, *occurred_at, *asset, *partition, *job, *status, *steps, *dataset, *owner",
        ),
        (building_runs.from_drift, "report, consumers, *occurred_at, *resolved, *run_id, *asset, *contract, *owner"),
    ],
)
def test_signatures(function, parameters):
    shown = [
        f"*{name}" if one.kind is inspect.Parameter.KEYWORD_ONLY else name
        for name, one in inspect.signature(function).parameters.items()
    ]
    assert ", ".join(shown) == parameters


def test_every_channel_of_the_table_is_there():
    from importlib import import_module

    for place in sorted(set(CHANNELS.values())):
        module, _, name = place.partition(":")
        made = getattr(import_module(f"databox_contracts.notify.channels.{module}"), name)(notify.Settings())
        assert callable(made.send)
        made.close()


def test_users_test_with_a_channel_that_sends_nothing(notification, clock):
    channel = RecordingChannel()
    outbox = notify.MemoryOutbox(clock=clock)
    outbox.enqueue([notification(1, contact="slack://${NOT_SET}/x"), notification(2, contact="https://${HOST}/x")])
    channels = notify.Channels(notify.Settings(environ={"HOST": "h"}), through=channel)
    assert notify.Delivery(outbox, channels, clock=clock).drain() == notify.Totals(sent=1, failed=1)
    assert [message.first.event for message in channel.received] == ["event 2"]
    bus_channel = RecordingChannel()
    bus_channel.failing = [None, RuntimeError("down")]
    bus = notify.NotificationBus([bus_channel])
    report = MigrationReport("s", "1", "2", [FieldChange(ChangeType.FIELD_REMOVED, "a")])
    bus.notify(report)
    bus.notify(report)
    assert bus_channel.received == [report]
    assert len(bus.failures) == 1


def test_settings_come_from_the_environment_and_show_no_secret():
    environ = {
        "DATABOX_DAGSTER_URL": "http://d",
        "DATABOX_CONTRACTS_URL": "http://c",
        "DATABOX_SMTP_URL": "smtps://me:s3cret@h",
        "DATABOX_MAIL_FROM": "a@b",
        "OTHER": "s3cret",
    }
    made = notify.Settings.from_environ(environ)
    assert (made.dagster_url, made.contracts_url, made.smtp_url, made.mail_from) == tuple(environ.values())[:4]
    assert "s3cret" not in repr(made)
    assert notify.Settings.from_environ({}).smtp_url is None
