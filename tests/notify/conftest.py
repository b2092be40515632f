"""Receivers on real sockets, and notifications to send to them."""

from __future__ import annotations

import ctypes
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from aiosmtpd.controller import Controller

from databox_contracts.notifications import EventKind, Notification
from databox_contracts.rules import Severity

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Clock:
    """A clock that only tests move."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def move(self, **delta: float) -> None:
        self.now += timedelta(**delta)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def notification() -> Callable[..., Notification]:
    def make(number: int = 1, contact: str = "log:", **facts: Any) -> Notification:
        given: dict[str, Any] = {
            "consumer": "Quant team",
            "contract": "trades",
            "event": f"event {number}",
            "kind": EventKind.CHECK,
            "severity": Severity.ERROR,
            "contact": contact,
            "title": f"trade {number} is broken",
            "occurred_at": NOON,
        }
        return Notification(**{**given, **facts})

    return make


class SocketServer:
    """Accepts on loopback and gives each connection, in turn, to the next of `behaviours`; the last one stays."""

    def __init__(self, *behaviours: Callable[[socket.socket], None], port: int = 0) -> None:
        self._behaviours = list(behaviours)
        self.taken = 0
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = self._listening.getsockname()[1]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            behave = self._behaviours[min(self.taken, len(self._behaviours) - 1)]
            self.taken += 1
            with connection:
                try:
                    behave(connection)
                except OSError:
                    continue

    def close(self) -> None:
        self._over.set()
        # A blocked accept is not woken by close alone.
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        self._listening.close()
        self._thread.join(timeout=10)


@pytest.fixture
def serve() -> Iterator[Callable[..., SocketServer]]:
    opened: list[SocketServer] = []

    def start(*behaviours: Callable[[socket.socket], None], port: int = 0) -> SocketServer:
        opened.append(SocketServer(*behaviours, port=port))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


class Mailbox:
    """A real SMTP server; `answers` are what it says to the next mails instead of taking them."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.envelopes: list[tuple[str, list[str]]] = []
        self.answers: list[str] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if self.answers:
            return self.answers.pop(0)
        self.envelopes.append((envelope.mail_from, list(envelope.rcpt_tos)))
        parsed = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        self.mails.append(parsed)
        return "250 taken"


class _Anywhere(Controller):
    """On a port of the system's choice."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    box = Mailbox()
    controller = _Anywhere(box, hostname="127.0.0.1", port=0)
    controller.start()
    box.port = controller.port  # type: ignore[attr-defined]
    yield box
    controller.stop()


class Cluster:
    """librdkafka's mock cluster of one broker, by its C interface, which the Python client does not show."""

    def __init__(self) -> None:
        folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
        self._lib = lib = ctypes.CDLL(str(next(folder.glob("librdkafka*.so*"))))
        for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
            getattr(lib, name).restype = ctypes.c_void_p
        lib.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        error = ctypes.create_string_buffer(512)
        self._client = ctypes.c_void_p(lib.rd_kafka_new(0, ctypes.c_void_p(lib.rd_kafka_conf_new()), error, 512))
        self._cluster = ctypes.c_void_p(lib.rd_kafka_mock_cluster_new(self._client, 1))
        self.bootstrap = lib.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def down(self) -> None:
        assert self._lib.rd_kafka_mock_broker_set_down(self._cluster, 1) == 0

    def up(self) -> None:
        assert self._lib.rd_kafka_mock_broker_set_up(self._cluster, 1) == 0

    def messages(self, topic: str, count: int) -> list[Any]:
        """The first `count` messages of a topic; fewer if no more come."""
        reader = confluent_kafka.Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        metadata = reader.list_topics(topic, timeout=10)
        reader.assign(
            [confluent_kafka.TopicPartition(topic, number, 0) for number in metadata.topics[topic].partitions]
        )
        found: list[Any] = []
        while len(found) < count:
            message = reader.poll(5)
            if message is None:
                break
            if message.error() is None:
                found.append(message)
        reader.close()
        return found

    def close(self) -> None:
        self._lib.rd_kafka_mock_cluster_destroy(self._cluster)
        self._lib.rd_kafka_destroy(self._client)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    one = Cluster()
    yield one
    one.close()
