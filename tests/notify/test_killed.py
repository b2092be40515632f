"""Delivering processes that are killed: nothing is lost, and each kill leaves at most one copy too many."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import databox_contracts
from databox_contracts.notifications import State
from databox_contracts.registry.store import Registry

ROOT = Path(databox_contracts.__file__).parent.parent
SECRET = "topsecret-4711"


class Receiver:
    """Takes webhooks; now and then it is slow, or answers 500 or 429."""

    def __init__(self, *, moody):
        self.keys = []
        chance = random.Random(4711)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                mood = chance.random()
                time.sleep(0.01 * mood)
                if moody and mood < 0.02:
                    self.send_response(500 if mood < 0.01 else 429)
                    self.send_header("Retry-After", "0")
                else:
                    receiver.keys.append((self.path, self.headers["Idempotency-Key"]))
                    self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                """Says nothing."""

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    """The sender was killed."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(timeout=10)


def start(url, log, *options):
    command = [sys.executable, "-m", "databox_contracts", "deliver", "--registry", url, "--idle", "0.05"]
    return subprocess.Popen(
        [*command, "--lease", "1", "--timeout", "10", "--digest-from", "0", *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TOKEN": SECRET},
        stdout=log,
        stderr=log,
    )


def wait_until(true, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("kills", "messages", "moody"),
    [
        (3, 100, False),
        pytest.param(50, 2500, True, marks=pytest.mark.full),
    ],
)
def test_nothing_is_lost_and_a_kill_leaves_at_most_one_copy(
    database_url, notification, tmp_path, kills, messages, moody
):
    chance = random.Random(kills)
    consumers = 10
    many = []
    receiver = Receiver(moody=moody)
    for number in range(messages):
        one = number % consumers
        contact = f"{receiver.url}/{one}?key=${{TOKEN}}#secret=${{TOKEN}}"
        many.append(notification(number, consumer=f"consumer {one}", contact=contact))
    log_path = tmp_path / "deliver.log"
    with Registry.open(database_url) as registry, open(log_path, "wb") as log:
        registry.outbox.enqueue(many)
        for _ in range(kills):
            before = len(receiver.keys)
            process = start(database_url, log)
            try:
                wait_until(lambda: len(receiver.keys) > before)  # noqa: B023
                time.sleep(chance.random() * 0.1)
                assert process.poll() is None
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait(timeout=30)
        assert registry.outbox.counts()[State.WAITING] > 0, "all was sent before the last kill: it tested nothing"
        process = start(database_url, log)
        try:
            wait_until(lambda: registry.outbox.counts()[State.WAITING] == 0, 300)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 0
        assert registry.outbox.counts() == {State.WAITING: 0, State.SENT: messages, State.DEAD: 0}
    receiver.close()
    copies = Counter(key for _, key in receiver.keys)
    assert set(copies) == {one.key for one in many}
    assert copies.total() - len(copies) <= kills
    for one in range(consumers):
        arrived = list(dict.fromkeys(key for path, key in receiver.keys if path.startswith(f"/{one}?")))
        assert arrived == [it.key for it in many if it.consumer == f"consumer {one}"]
    assert SECRET.encode() not in log_path.read_bytes()


@pytest.mark.full
def test_two_workers_send_ten_thousand_in_order_and_none_twice(database_url, notification, tmp_path):
    receiver = Receiver(moody=False)
    many = [notification(n, consumer=f"consumer {n % 200}", contact=f"{receiver.url}/{n % 200}") for n in range(10_000)]
    with Registry.open(database_url) as registry, open(tmp_path / "log", "wb") as log:
        registry.outbox.enqueue(many)
        processes = [start(database_url, log) for _ in range(2)]
        try:
            wait_until(lambda: len(receiver.keys) >= len(many), 500)
            wait_until(lambda: registry.outbox.counts()[State.SENT] == len(many))
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            assert [process.wait(timeout=60) for process in processes] == [0, 0]
    receiver.close()
    assert Counter(key for _, key in receiver.keys) == Counter(one.key for one in many)
    for one in range(200):
        arrived = [key for path, key in receiver.keys if path == f"/{one}"]
        assert arrived == [it.key for it in many[one::200]]


def test_a_signal_ends_it_after_the_current_message(database_url, notification, tmp_path):
    receiver = Receiver(moody=False)
    with Registry.open(database_url) as registry, open(tmp_path / "log", "w+b") as log:
        registry.outbox.enqueue([notification(n, contact=receiver.url) for n in range(1000)])
        process = start(database_url, log)
        try:
            wait_until(lambda: len(receiver.keys) > 3)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 0
        counts = registry.outbox.counts()
        assert counts[State.SENT] == len(receiver.keys) < 1000
        assert counts[State.SENT] + counts[State.WAITING] == 1000
        log.seek(0)
        assert log.read().decode().strip() == f"{counts[State.SENT]} sent, 0 to be tried again, 0 given up"
    receiver.close()


@pytest.mark.full
def test_a_database_that_is_stopped_and_started_again(stoppable_postgresql, notification, tmp_path):
    """Without a crash of the worker each message is sent exactly once, whatever the database goes through."""
    url = stoppable_postgresql.new_database()
    receiver = Receiver(moody=False)
    many = [notification(n, consumer=f"c{n % 3}", contact=f"{receiver.url}/{n % 3}") for n in range(400)]
    with Registry.open(url) as registry:
        registry.outbox.enqueue(many)
    with open(tmp_path / "log", "w+b") as log:
        process = start(url, log)
        try:
            for _ in range(2):
                before = len(receiver.keys)
                wait_until(lambda: len(receiver.keys) > before + 20)  # noqa: B023
                stoppable_postgresql.stop()
                stoppable_postgresql.start()
                assert process.poll() is None
            wait_until(lambda: len(receiver.keys) >= len(many))
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
    with Registry.open(url) as registry:
        assert registry.outbox.counts() == {State.WAITING: 0, State.SENT: 400, State.DEAD: 0}
    receiver.close()
    assert Counter(key for _, key in receiver.keys) == Counter(one.key for one in many)


def test_a_database_that_somebody_else_has_locked(notification, tmp_path):
    path = tmp_path / "registry.db"
    receiver = Receiver(moody=False)
    many = [notification(n, contact=receiver.url) for n in range(40)]
    with Registry.open(str(path)) as registry:
        registry.outbox.enqueue(many)
    with open(tmp_path / "log", "w+b") as log:
        process = start(str(path), log)
        try:
            wait_until(lambda: len(receiver.keys) > 5)
            with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                time.sleep(0.7)
                other.execute("ROLLBACK")
            wait_until(lambda: len(receiver.keys) >= len(many))
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
    receiver.close()
    assert [key for _, key in receiver.keys] == [one.key for one in many]
