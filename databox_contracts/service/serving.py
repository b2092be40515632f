"""A server of its own for the application: uvicorn, with an end to callers who never finish their sentence."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from databox_contracts.errors import DataboxError

_HEAD_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 15
_HEAD_BYTES: Final = 16 * 1024
_CONNECTIONS: Final = 256


@dataclass(frozen=True)
class Listening:
    """Where to listen. Port 0 is one of the system's choosing; with a certificate it is HTTPS.

    `proxies` are the addresses whose `X-Forwarded-For` is believed, comma separated.
    """

    host: str = "127.0.0.1"
    port: int = 8710
    certificate: Path | None = None
    key: Path | None = None
    proxies: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether only this machine can call."""
        return self.host in ("127.0.0.1", "::1", "localhost")


def serve(app: ASGIApp, listening: Listening, *, started: Callable[[str], None]) -> None:
    """Answer calls until SIGTERM or SIGINT; calls that were begun are finished first.

    `started` is told the URL. Raises `DataboxError` where nobody can listen there.
    """
    _log()
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        # It would have addresses as they were sent.
        access_log=False,
        server_header=False,
        proxy_headers=listening.proxies is not None,
        forwarded_allow_ips=listening.proxies,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=30,
        h11_max_incomplete_event_size=_HEAD_BYTES,
        ssl_certfile=str(listening.certificate) if listening.certificate is not None else None,
        ssl_keyfile=str(listening.key) if listening.key is not None else None,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or "it is no certificate with its key"
        raise DataboxError(f"the certificate cannot be used: {reason}", hint="Name two PEM files.") from None
    listener = _listener(listening)
    name = f"[{listening.host}]" if ":" in listening.host else listening.host
    scheme = "https" if listening.certificate is not None else "http"
    server = _Server(config, lambda: started(f"{scheme}://{name}:{listener.getsockname()[1]}"))
    # uvicorn gives the signal on when it has ended; a service that was told to end has done well.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, before)
        listener.close()


def write_whole(path: Path, text: str) -> None:
    """Write a small file that nobody sees half written. Raises `DataboxError`."""
    try:
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            file.write(text)
        os.replace(file.name, path)
    except OSError as error:
        raise DataboxError(f"cannot write {str(path)!r}: {error.strerror}", hint="Name another file.") from None


def _listener(listening: Listening) -> socket.socket:
    if not 0 <= listening.port <= 65535:
        # The system would take the rest of a division for it.
        raise DataboxError(f"there is no port {listening.port}", hint="Choose one from 0 to 65535; 0 is any.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            listening.host, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise DataboxError(
            f"cannot listen on {listening.host} port {listening.port}: {error.strerror}",
            hint="Choose another --port (0 for any), or another --host.",
        ) from None
    return listener


def _log() -> None:
    """Calls and errors go to the error stream."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name in ("databox_contracts.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()


class _Protocol(H11Protocol):
    """Closes connections on which the head of a request does not arrive in time, which uvicorn waits for for ever."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._waiting is None:
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(_HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self.transport.is_closing() and self.conn.their_state is h11.IDLE:
            self.transport.close()
