"""The sensor that sends what waits, over real sockets, and the resources that the sensors are configured by."""

import http.server
import json
import socket
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime

import dagster as dg
import pytest

from databox_contracts.dagster import ContractRegistryResource, NotifierResource, build_delivery_sensor
from databox_contracts.errors import DataboxError, RegistryUnavailableError
from databox_contracts.notifications import EventKind, Notification, State
from databox_contracts.registry.client import RegistryClient
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity

SECRET = "topsecret-4711"


class Receiver:
    """Takes webhooks, and answers what it is told to."""

    def __init__(self):
        self.keys = []
        self.bodies = []
        self.status = 200
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.status == 200:
                    receiver.keys.append(self.headers["Idempotency-Key"])
                    receiver.bodies.append(json.loads(body))
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                """Says nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(timeout=10)


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module")
def instance():
    with dg.instance_for_test() as made:
        yield made


def message(number, contact, **facts):
    return Notification(
        consumer="quant",
        contract="trades",
        event=f"event {number}",
        kind=EventKind.CHECK,
        severity=Severity.ERROR,
        contact=contact,
        title=f"trade {number} is broken",
        occurred_at=datetime.now(UTC),
        facts=facts,
    )


@pytest.fixture
def tick(tmp_path, instance):
    def tick(registry=None, notifier=None, **settings):
        sensor = build_delivery_sensor(**settings)
        resources = {
            "registry": registry or ContractRegistryResource(location=str(tmp_path / "r.db"), patience=0.2),
            "notifier": notifier or NotifierResource(digest_from=0),
        }
        context = dg.build_sensor_context(instance=instance, resources=resources, sensor_name=sensor.name)
        return sensor.evaluate_tick(context).skip_message

    return tick


def enqueue(place, *messages):
    with Registry.open(place / "r.db") as registry:
        registry.outbox.enqueue(messages)


def counts(place):
    with Registry.open(place / "r.db") as registry:
        return registry.outbox.counts()


def test_what_waits_is_sent_once_and_in_order(tmp_path, tick, receiver):
    enqueue(tmp_path, *(message(number, receiver.url) for number in range(3)))
    assert tick() == "3 sent; none waiting"
    assert [body["event"] for body in receiver.bodies] == ["event 0", "event 1", "event 2"]
    assert tick() == "nothing was due; none waiting"
    assert len(receiver.keys) == 3


def test_what_is_not_taken_is_tried_again_later_and_said(tmp_path, tick, receiver, capsys):
    receiver.status = 500
    enqueue(tmp_path, message(1, f"{receiver.url}/path?key=${{TOKEN}}"))
    assert tick() == "1 to be tried again; 1 waiting"
    said = capsys.readouterr().err
    assert "TOKEN is not set" in said
    assert tick() == "nothing was due; 1 waiting"


def test_no_secret_is_in_what_a_tick_says(tmp_path, tick, receiver, capsys, monkeypatch):
    monkeypatch.setenv("TOKEN", SECRET)
    receiver.status = 500
    enqueue(tmp_path, message(1, f"{receiver.url}/path?key=${{TOKEN}}#secret=${{TOKEN}}"))
    assert tick() == "1 to be tried again; 1 waiting"
    said = capsys.readouterr()
    assert "attempt 1 for quant failed" in said.err
    assert SECRET not in said.err + said.out


def test_what_is_refused_for_good_is_given_up_and_said(tmp_path, tick, receiver):
    receiver.status = 404
    enqueue(tmp_path, message(1, receiver.url))
    for _ in range(3):
        with closing(sqlite3.connect(tmp_path / "r.db")) as connection, connection:
            connection.execute("UPDATE databox_outbox SET due_at = '2000-01-01T00:00:00+00:00'")
            connection.execute("UPDATE databox_lanes SET due_at = '2000-01-01T00:00:00+00:00'")
        said = tick()
    assert said == "1 given up; none waiting, 1 given up in all"


def test_a_tick_ends_in_time_and_the_next_goes_on(tmp_path, tick, receiver):
    enqueue(tmp_path, *(message(number, receiver.url) for number in range(3)))
    assert tick(seconds=0) == "nothing was due; 3 waiting"
    assert receiver.keys == []
    assert tick() == "3 sent; none waiting"


def test_a_message_to_the_log_is_in_the_tick(tmp_path, tick, capsys):
    enqueue(tmp_path, message(1, "log:", what=["the price is missing"]))
    assert tick() == "1 sent; none waiting"
    assert "trade 1 is broken" in capsys.readouterr().err


def test_links_lead_to_the_web_server(tmp_path, tick, receiver):
    enqueue(tmp_path, message(1, receiver.url, run_id="abc"))
    tick(notifier=NotifierResource(dagster_url="https://dagster.example.com/", digest_from=0))
    assert "https://dagster.example.com/runs/abc" in receiver.bodies[0]["text"]


def test_a_registry_that_is_locked_fails_the_tick_and_nothing_is_lost(tmp_path, tick, receiver):
    enqueue(tmp_path, message(1, receiver.url))
    with closing(sqlite3.connect(tmp_path / "r.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RegistryUnavailableError, match="does not answer"):
            tick()
        other.execute("ROLLBACK")
    assert counts(tmp_path)[State.WAITING] == 1
    assert tick() == "1 sent; none waiting"


def test_a_service_is_refused_with_the_way_out(tick):
    with pytest.raises(DataboxError, match="Give ContractRegistryResource the registry's file"):
        tick(registry=ContractRegistryResource(location="https://registry.example.com"))


def test_a_postgresql_that_is_away_is_said_without_its_password(tick, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("PG", f"postgresql://someone:{SECRET}@127.0.0.1:{port}/registry")
    with pytest.raises(RegistryUnavailableError, match="does not answer") as raised:
        tick(registry=ContractRegistryResource(location=dg.EnvVar("PG").get_value(), patience=0.1))
    assert SECRET not in str(raised.value)


def test_settings_of_the_sensor():
    sensor = build_delivery_sensor()
    assert (sensor.name, sensor.minimum_interval_seconds, sensor.default_status) == (
        "contract_delivery",
        15,
        dg.DefaultSensorStatus.STOPPED,
    )
    sensor = build_delivery_sensor(
        name="mine", minimum_interval_seconds=5, default_status=dg.DefaultSensorStatus.RUNNING
    )
    assert (sensor.name, sensor.minimum_interval_seconds, sensor.default_status) == (
        "mine",
        5,
        dg.DefaultSensorStatus.RUNNING,
    )


def test_the_registry_is_found_as_everywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("DATABOX_REGISTRY", str(tmp_path / "named.db"))
    with closing(ContractRegistryResource().open()) as registry:
        assert registry.location == str(tmp_path / "named.db")
    monkeypatch.delenv("DATABOX_REGISTRY")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with closing(ContractRegistryResource(location=" ").open_database()) as registry:
        assert registry.location == str(tmp_path / "databox_registry.db")
    monkeypatch.delenv("DAGSTER_HOME")
    with pytest.raises(DataboxError, match="Give ContractRegistryResource a location, or set DATABOX_REGISTRY"):
        ContractRegistryResource().open()


def test_a_service_serves_where_it_can():
    with closing(ContractRegistryResource(location="https://registry.example.com").open()) as registry:
        assert isinstance(registry, RegistryClient)


def test_every_setting_may_come_from_the_environment(tmp_path, monkeypatch, instance):
    monkeypatch.setenv("WHERE", str(tmp_path / "r.db"))
    monkeypatch.setenv("SMTP", f"smtps://user:{SECRET}@mail.example.com")
    found = {}

    @dg.asset
    def look(registry: ContractRegistryResource, notifier: NotifierResource) -> None:
        with closing(registry.open_database()) as opened:
            found["location"] = opened.location
        found["smtp"] = notifier.settings().smtp_url
        found["shown"] = repr(notifier) + repr(notifier.settings())

    resources = {
        "registry": ContractRegistryResource(location=dg.EnvVar("WHERE")),
        "notifier": NotifierResource(smtp_url=dg.EnvVar("SMTP")),
    }
    done = dg.materialize([look], resources=resources, instance=instance)
    assert found["location"] == str(tmp_path / "r.db")
    assert found["smtp"] == f"smtps://user:{SECRET}@mail.example.com"
    assert SECRET not in found["shown"]
    assert SECRET not in repr([event.message for event in done.all_events])


def test_what_is_given_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("DATABOX_DAGSTER_URL", "https://environment.example.com")
    monkeypatch.setenv("DATABOX_MAIL_FROM", "contracts@example.com")
    settings = NotifierResource(dagster_url="https://given.example.com", timeout=3).settings()
    assert (settings.dagster_url, settings.mail_from, settings.timeout) == (
        "https://given.example.com",
        "contracts@example.com",
        3.0,
    )
    assert NotifierResource().settings().dagster_url == "https://environment.example.com"


@pytest.mark.parametrize(("resources", "there"), [({}, "there is none"), ({"registry": 3}, "that is a int")])
def test_a_resource_that_lacks_is_named_with_the_way_out(instance, resources, there):
    context = dg.build_sensor_context(instance=instance, resources=resources, sensor_name="contract_delivery")
    with pytest.raises(
        DataboxError, match=f"a ContractRegistryResource is needed as the resource 'registry', .*{there}"
    ):
        build_delivery_sensor().evaluate_tick(context)
