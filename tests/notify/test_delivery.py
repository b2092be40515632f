"""The worker: nothing lost, nothing twice, in order, and what it does when receivers or the outbox are unwell."""

import logging
import socket
import struct
import threading
import time
from datetime import timedelta

import pytest

from databox_contracts.errors import DeliveryError
from databox_contracts.notifications import State
from databox_contracts.notify import Channels, Delivery, MemoryOutbox, Pace, Settings, Totals
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Severity

SECRET = "topsecret-4711"


class Recorder(Channels):
    """Channels that only take note; `failing` are errors for the next messages."""

    def __init__(self):
        super().__init__(Settings(environ={"TOKEN": SECRET}))
        self.messages = []
        self.failing = []

    def send(self, message, contact):
        if self.failing:
            error = self.failing.pop(0)
            if error is not None:
                raise error
        self.messages.append((contact, message))

    @property
    def sent(self):
        return [(contact, one.event) for contact, message in self.messages for one in message.notifications]


@pytest.fixture(params=["memory", "sqlite"])
def outbox(request, clock, tmp_path):
    if request.param == "memory":
        yield MemoryOutbox(clock=clock)
        return
    registry = Registry.open(str(tmp_path / "registry.db"), clock=clock)
    yield registry.outbox
    registry.close()


@pytest.fixture
def recorder():
    return Recorder()


def worker(outbox, channels, clock, **facts):
    return Delivery(outbox, channels, **{"clock": clock, "random": lambda: 0.0, "digest_from": None, **facts})


def down(**facts):
    return DeliveryError("x", "it is down", **facts)


def test_what_waits_is_sent_once_in_order(outbox, recorder, clock, notification):
    assert worker(outbox, recorder, clock).step() is None
    many = [notification(n, contact=contact) for n in range(5) for contact in ("a@x", "b@x")]
    assert outbox.enqueue(many) == 10
    assert outbox.enqueue(many) == 0
    assert worker(outbox, recorder, clock).drain() == Totals(sent=10)
    assert worker(outbox, recorder, clock).drain() == Totals()
    for contact in ("a@x", "b@x"):
        assert [event for to, event in recorder.sent if to == contact] == [f"event {n}" for n in range(5)]
    assert outbox.counts() == {State.WAITING: 0, State.SENT: 10, State.DEAD: 0}


def test_one_that_waits_for_its_next_attempt_holds_up_its_contact_and_nobody_else(
    outbox, recorder, clock, notification
):
    outbox.enqueue([notification(1, contact="a@x"), notification(2, contact="a@x"), notification(1, contact="b@x")])
    recorder.failing = [down()]
    assert worker(outbox, recorder, clock).drain() == Totals(sent=1, failed=1)
    assert len(recorder.sent) == 1
    first = recorder.sent[0][0]
    clock.move(seconds=9)
    assert worker(outbox, recorder, clock).drain() == Totals()
    clock.move(seconds=1)
    assert worker(outbox, recorder, clock).drain() == Totals(sent=2)
    rest = {"a@x": "b@x", "b@x": "a@x"}[first]
    assert {to for to, _ in recorder.sent[1:]} == {rest}


def test_a_receiver_is_left_alone_for_as_long_as_it_asks(outbox, recorder, clock, notification):
    outbox.enqueue([notification(1)])
    recorder.failing = [down(retry_after=600.0)]
    worker(outbox, recorder, clock).drain()
    clock.move(seconds=599)
    assert worker(outbox, recorder, clock).step() is None
    clock.move(seconds=1)
    assert worker(outbox, recorder, clock).step() == Totals(sent=1)


def test_what_is_refused_for_good_is_given_up_and_holds_nobody_up(outbox, recorder, clock, notification):
    first, second = notification(1), notification(2)
    outbox.enqueue([first, second])
    recorder.failing = [down(permanent=True)] * 3
    totals = []
    for _ in range(3):
        totals.append(worker(outbox, recorder, clock).drain())
        clock.move(hours=1)
    assert totals == [Totals(failed=1), Totals(failed=1), Totals(dead=1, sent=1)]
    assert recorder.sent == [("log:", "event 2")]
    assert [(one.id, error) for one, error in outbox.dead()] == [(first.id, "x: it is down")]
    assert outbox.retry([first.id, second.id, "nobody"]) == 1
    assert worker(outbox, recorder, clock).drain() == Totals(sent=1)
    assert outbox.counts() == {State.WAITING: 0, State.SENT: 2, State.DEAD: 0}


def test_it_is_given_up_after_the_last_attempt(outbox, recorder, clock, notification):
    outbox.enqueue([notification(1)])
    pace = Pace(attempts=4)
    recorder.failing = [down()] * 4
    for _ in range(4):
        worker(outbox, recorder, clock, pace=pace).drain()
        clock.move(days=1)
    assert outbox.counts()[State.DEAD] == 1


def test_many_for_one_contact_go_as_one_message(outbox, recorder, clock, notification):
    outbox.enqueue([notification(n, contact="a@x") for n in range(4)])
    assert worker(outbox, recorder, clock, digest_from=5).drain() == Totals(sent=4)
    assert len(recorder.messages) == 4
    recorder.messages.clear()
    outbox.enqueue([notification(n, contact="a@x") for n in range(10, 17)])
    assert worker(outbox, recorder, clock, digest_from=5, digest_most=6).drain() == Totals(sent=7)
    assert [len(message.notifications) for _, message in recorder.messages] == [6, 1]
    assert [event for _, event in recorder.sent] == [f"event {n}" for n in range(10, 17)]


def test_who_wishes_a_digest_gets_one_of_two(outbox, recorder, clock, notification):
    outbox.enqueue([notification(n, contact="a@x", facts={"digest": True}) for n in range(2)])
    worker(outbox, recorder, clock, digest_from=5).drain()
    assert [len(message.notifications) for _, message in recorder.messages] == [2]


@pytest.mark.parametrize(
    "contact", ["https://h/x", "kafka://h:1", "log:", "ticket+https://h", "pagerduty://${TOKEN}@x"]
)
def test_machines_get_each_alone(outbox, recorder, clock, notification, contact):
    outbox.enqueue([notification(n, contact=contact) for n in range(6)])
    worker(outbox, recorder, clock, digest_from=2).drain()
    assert [len(message.notifications) for _, message in recorder.messages] == [1] * 6


def test_a_digest_that_fails_is_tried_again_whole(outbox, recorder, clock, notification):
    outbox.enqueue([notification(n, contact="a@x") for n in range(3)])
    recorder.failing = [down()]
    assert worker(outbox, recorder, clock, digest_from=2).drain() == Totals(failed=3)
    clock.move(hours=1)
    assert worker(outbox, recorder, clock, digest_from=2).drain() == Totals(sent=3)
    assert len(recorder.messages) == 1


def test_one_that_is_refused_for_good_does_not_take_the_digest_with_it(outbox, recorder, clock, notification):
    outbox.enqueue([notification(n, contact="a@x") for n in range(3)])
    poison = notification(0, contact="a@x").key

    def send(message, contact):
        if poison in message.keys:
            raise down(permanent=True)
        recorder.messages.append((contact, message))

    recorder.send = send
    for _ in range(3):
        worker(outbox, recorder, clock, digest_from=2).drain()
        clock.move(hours=1)
    assert outbox.counts() == {State.WAITING: 0, State.SENT: 2, State.DEAD: 1}
    assert [one.event for one, _ in outbox.dead()] == ["event 0"]


def test_a_digest_that_is_too_long_goes_in_parts(outbox, recorder, clock, notification):
    outbox.enqueue([notification(n, contact="a@x") for n in range(10)])

    def send(message, contact):
        if len(message.notifications) > 3:
            raise down(permanent=True)
        recorder.messages.append((contact, message))

    recorder.send = send
    assert worker(outbox, recorder, clock, digest_from=2).drain() == Totals(sent=10)
    assert [event for _, event in recorder.sent] == [f"event {n}" for n in range(10)]
    assert outbox.dead() == []


def test_a_channel_that_fails_in_an_unknown_way_loses_nothing(outbox, clock, notification, caplog):
    class Broken:
        def send(self, message, address):
            raise RuntimeError(f"cannot reach {address.url}")

        def close(self):
            pass

    channels = Channels(Settings(environ={"TOKEN": SECRET}))
    channels._made["webhook:WebhookChannel"] = Broken()
    outbox.enqueue([notification(1, contact="https://h/${TOKEN}")])
    with caplog.at_level(logging.DEBUG):
        assert worker(outbox, channels, clock).drain() == Totals(failed=1)
    assert "https://h: an unexpected RuntimeError" in caplog.text
    assert SECRET not in caplog.text


def test_a_message_that_cannot_be_made_loses_nothing(outbox, recorder, clock, notification, monkeypatch):
    from databox_contracts.notify import delivery

    outbox.enqueue([notification(1)])
    monkeypatch.setattr(delivery, "render", lambda *_: 1 / 0)
    assert worker(outbox, recorder, clock).drain() == Totals(failed=1)
    monkeypatch.undo()
    clock.move(hours=1)
    assert worker(outbox, recorder, clock).drain() == Totals(sent=1)


def test_a_missing_variable_waits_until_it_is_set(outbox, clock, notification, httpserver):
    httpserver.expect_request("/hook").respond_with_data("")
    outbox.enqueue([notification(1, contact=httpserver.url_for("/hook") + "#secret=${LATER}")])
    environ: dict[str, str] = {}
    channels = Channels(Settings(environ=environ))
    assert worker(outbox, channels, clock).drain() == Totals(failed=1)
    environ["LATER"] = SECRET
    clock.move(hours=1)
    assert worker(outbox, channels, clock).drain() == Totals(sent=1)


@pytest.fixture(params=["memory", "sqlite"])
def short_leases(request, tmp_path):
    if request.param == "memory":
        yield MemoryOutbox(lease_for=timedelta(seconds=0.5))
        return
    registry = Registry.open(str(tmp_path / "registry.db"), lease_length=timedelta(seconds=0.5))
    yield registry.outbox
    registry.close()


def test_a_lease_is_extended_for_as_long_as_a_receiver_takes(notification, recorder, short_leases):
    outbox = short_leases
    outbox.enqueue([notification(1)])
    extended, may_answer = [], threading.Event()
    extend = outbox.extend

    def noted(lease):
        extended.append(extend(lease))
        if len(extended) == 6:
            may_answer.set()
        return extended[-1]

    def slow(message, contact):
        assert may_answer.wait(30)
        assert outbox.lease("another") is None
        recorder.messages.append((contact, message))

    outbox.extend = noted
    recorder.send = slow
    assert Delivery(outbox, recorder, digest_from=None).step() == Totals(sent=1)
    assert all(extended)
    assert outbox.counts()[State.SENT] == 1


def test_what_was_sent_is_recorded_once_the_outbox_is_back(outbox, recorder, clock, notification):
    outbox.enqueue([notification(1)])
    settle, refused = outbox.settle, []

    def away(*args, **kwargs):
        if len(refused) < 3:
            refused.append(1)
            raise ConnectionError("the database is restarting")
        return settle(*args, **kwargs)

    outbox.settle = away
    assert worker(outbox, recorder, clock).drain() == Totals(sent=1)
    assert (len(refused), len(recorder.sent)) == (3, 1)
    assert outbox.counts()[State.SENT] == 1


def test_an_outbox_that_is_away_is_waited_for(outbox, recorder, clock, notification):
    outbox.enqueue([notification(1)])
    lease, refused = outbox.lease, []
    delivery = worker(outbox, recorder, clock)

    def away(*args, **kwargs):
        if len(refused) < 3:
            refused.append(1)
            raise ConnectionError("the database is restarting")
        found = lease(*args, **kwargs)
        if found is None:
            delivery.stop()
        return found

    outbox.lease = away
    assert delivery.run(idle=timedelta(milliseconds=1)) == Totals(sent=1)


def test_a_tick_is_bounded(outbox, recorder, clock, notification):
    outbox.enqueue([notification(n) for n in range(10)])
    assert worker(outbox, recorder, clock).drain(limit=3) == Totals(sent=3)
    assert worker(outbox, recorder, clock).drain(limit=0) == Totals()
    assert worker(outbox, recorder, clock).drain(seconds=0) == Totals()
    assert worker(outbox, recorder, clock).drain(seconds=60) == Totals(sent=7)


def test_any_logger_takes_what_goes_to_the_log(outbox, clock, notification, caplog):
    outbox.enqueue([notification(1), notification(2, resolves=True), notification(3, severity=Severity.WARNING)])
    channels = Channels(Settings(environ={}, logger=logging.getLogger("dagster.of.mine")))
    with caplog.at_level(logging.INFO):
        worker(outbox, channels, clock).drain()
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("dagster.of.mine", level) for level in ("ERROR", "INFO", "WARNING")
    ]
    assert "for Quant team: trade 1 is broken" in caplog.text


def test_it_stops_after_the_current_message(outbox, recorder, clock, notification):
    outbox.enqueue([notification(n) for n in range(10)])
    delivery = worker(outbox, recorder, clock)

    def send(message, contact):
        recorder.messages.append((contact, message))
        if len(recorder.messages) == 3:
            delivery.stop()

    recorder.send = send
    assert delivery.run() == Totals(sent=3)
    assert outbox.counts() == {State.WAITING: 7, State.SENT: 3, State.DEAD: 0}


@pytest.mark.parametrize("consumers", [20])
def test_two_workers_share_the_work_without_a_double_send(outbox, recorder, clock, notification, consumers):
    many = [notification(n, consumer=f"consumer {c}", contact=f"c{c}@x") for n in range(10) for c in range(consumers)]
    outbox.enqueue(many)
    workers = [worker(outbox, recorder, clock) for _ in range(2)]
    threads = [threading.Thread(target=one.drain) for one in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    # One may find nothing due while the other has the last lease.
    workers[0].drain()
    assert len(recorder.sent) == len(many)
    for c in range(consumers):
        assert [event for to, event in recorder.sent if to == f"c{c}@x"] == [f"event {n}" for n in range(10)]


def answer(status, *headers):
    lines = [f"HTTP/1.1 {status}", "Content-Length: 0", "Connection: close", *headers, "", ""]

    def behave(connection):
        taken(connection)
        connection.sendall("\r\n".join(lines).encode())

    return behave


def taken(connection):
    """The key of the request, which is read to its end."""
    data = connection.recv(65536)
    while data and b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    if not data:
        raise ConnectionResetError
    head, _, body = data.partition(b"\r\n\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
    while len(body) < int(headers["content-length"]):
        body += connection.recv(65536)
    return headers["idempotency-key"]


def reset(connection):
    connection.recv(10)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(connection):
    while connection.recv(65536):
        pass


def test_an_outage_of_minutes_with_real_receivers(outbox, clock, notification, serve):
    """Down, back and answering 500, 429, nothing and a reset, and well again: each arrives once, in order."""
    arrived = []

    def well(connection):
        arrived.append(taken(connection))
        connection.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")

    closed = serve(silent)
    closed.close()
    contact = f"http://127.0.0.1:{closed.port}/hook"
    many = [notification(n, contact=contact) for n in range(20)]
    outbox.enqueue(many)
    channels = Channels(Settings(environ={}, timeout=0.5))
    waited = []

    def tick():
        totals = worker(outbox, channels, clock).drain()
        clock.move(seconds=10)
        waited.append(totals)
        return totals

    for _ in range(8):
        tick()
    assert sum(one.failed for one in waited) == 4
    unwell = (answer("500 No"), answer("429 Slow", "Retry-After: 300"), silent, reset)
    serve(*unwell, well, port=closed.port)
    while not arrived and len(waited) < 500:
        tick()
    assert sum(one.failed for one in waited) == 4 + len(unwell)
    assert len(waited) > 8 + 30
    assert tick() == Totals()
    assert arrived == [one.key for one in many]
    assert outbox.counts() == {State.WAITING: 0, State.SENT: 20, State.DEAD: 0}


def test_no_secret_is_in_logs_errors_or_rows(clock, notification, httpserver, tmp_path, caplog):
    registry = Registry.open(str(tmp_path / "registry.db"), clock=clock)
    outbox = registry.outbox
    httpserver.expect_request("/hook").respond_with_data(SECRET, status=400)
    place = httpserver.url_for("/hook")
    contacts = (
        place + "?key=${TOKEN}#secret=${TOKEN}",
        place.replace("http://", "http://me:${TOKEN}@"),
        place.replace("http://", "json://me:${TOKEN}@"),
        "ticket+" + place + "#token=${TOKEN}",
        "slack://${TOKEN}/${TOKEN}/${TOKEN}",
        "smtp://me:${TOKEN}@127.0.0.1:1/?to=a@b",
        "kafka://me:${TOKEN}@127.0.0.1:1/t",
        "${TOKEN}",
        "nonsense://${TOKEN}",
    )
    outbox.enqueue([notification(1, contact=contact, ticket="t") for contact in contacts])
    settings = Settings(environ={"TOKEN": SECRET}, mail_from="a@b", timeout=1.0)
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            totals = worker(outbox, Channels(settings), clock).drain()
            clock.move(hours=2)
    assert totals.sent == 0
    registry.close()
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name != "werkzeug")
    assert "given up for Quant team" in ours
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"${TOKEN}" in stored
    for form in (SECRET, SECRET.encode().hex()):
        assert form not in ours
        assert form.encode() not in stored


def test_nothing_is_slow_when_nothing_is_due(outbox, recorder, clock):
    delivery = worker(outbox, recorder, clock)
    thread = threading.Thread(target=delivery.run)
    thread.start()
    time.sleep(0.05)
    delivery.stop()
    thread.join(timeout=30)
    assert not thread.is_alive()
