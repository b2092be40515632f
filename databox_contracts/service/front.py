"""What every call passes first and last: rates of addresses, the record of calls, and no error's inside going out."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from databox_contracts.registry.problems import MEDIA_TYPE, PREFIX, document
from databox_contracts.service.metrics import ServiceMetrics
from databox_contracts.service.rates import Buckets, caller_at

LOGGER: Final = logging.getLogger("databox_contracts.service")

_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'"),
)


class Front:
    """An ASGI application around another one. Of a call its log has no address as sent, no header and no body."""

    def __init__(self, app: ASGIApp, by_address: Buckets, metrics: ServiceMetrics, now: Callable[[], float]) -> None:
        self._app = app
        self._by_address = by_address
        self._metrics = metrics
        self._now = now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._now()
        answered: list[int] = []

        is_open = [_has_body(scope)]

        async def receiving() -> Message:
            message = await receive()
            is_open[0] = message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered.append(message["status"])
                # Whoever still sends what nobody reads would keep the connection for as long as it likes.
                closing = [(b"connection", b"close")] if is_open[0] else []
                message = {**message, "headers": [*message["headers"], *_HEADERS, *closing]}
            await send(message)

        # As sent: a slash within an id is not one between parts.
        raw = scope.get("raw_path") or scope["path"].encode()
        path, number = raw.partition(b"?")[0].decode("latin-1"), uuid4().hex[:12]
        scope = {**scope, "path": path, "databox.operation": "none", "databox.number": number}
        client = scope.get("client")
        caller = caller_at(client[0] if client else None)
        try:
            if wait := self._by_address.take(caller):
                await _refuse(sending, 429, "too-many-requests", "this address makes too many calls", wait)
            else:
                await self._app(scope, receiving, sending)
        except Exception as error:
            LOGGER.error("error %s: %s\n%s", number, type(error).__name__, _places(error))
        finally:
            seconds = self._now() - began
            status = answered[0] if answered else 0
            self._metrics.record(scope["databox.operation"], status, seconds)
            LOGGER.info(
                "%s %s %s %.3fs %s %s",
                scope["method"] if scope["method"] in _METHODS else "-",
                scope["databox.operation"],
                status,
                seconds,
                caller,
                _shown(scope.get("databox.token")),
            )


_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")
        for name, value in scope["headers"]
    )


def _places(error: Exception) -> str:
    """Where it went wrong, without what an exception's own text may tell."""
    return "".join(
        f"  {frame.filename}:{frame.lineno} in {frame.name}\n" for frame in traceback.extract_tb(error.__traceback__)
    )


def _shown(name: str | None) -> str:
    return "-" if name is None else json.dumps(name)


async def _refuse(send: Send, status: int, name: str, detail: str, wait: int | None = None) -> None:
    hint = f"Try again in {wait} s." if wait is not None else None
    body = json.dumps(document(PREFIX + name, status, detail, hint)).encode()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    if wait is not None:
        headers.append((b"retry-after", str(wait).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
