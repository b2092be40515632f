"""Receivers on real sockets, and notifications to send to them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

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

    def __init__(self, *behaviours: Callable[[socket.socket], None]) -> None:
        self._behaviours = list(behaviours)
        self.taken = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
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

    def start(*behaviours: Callable[[socket.socket], None]) -> SocketServer:
        opened.append(SocketServer(*behaviours))
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
