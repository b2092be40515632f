"""One exchange over HTTP with everything about it bounded: time, redirects, what is read of the answer."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from databox_contracts.errors import DeliveryError

MOST_ANSWER: Final = 64 * 1024
_MOST_REDIRECTS: Final = 3
_PORTS: Final = {"http": 80, "https": 443}
_TEMPORARY: Final = (408, 425, 429)
_USER_AGENT: Final = "databox-contracts"
_SAFE: Final = "/%:@!$&'()*+,;=~?[]"
_WRONGLY_WRITTEN: Final = (ValueError, http.client.InvalidURL)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, and at most the first 64 KiB of the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON, None where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


def exchange(
    method: str, url: SplitResult, body: bytes, headers: Mapping[str, str], *, name: str, timeout: float
) -> Answer:
    """Sends and returns the answer, whatever its status.

    `timeout` in seconds bounds connecting, each read and the whole. A redirect that keeps the method (307, 308) is
    followed within the same scheme, host and port only, so that neither message nor credentials go to anybody else.
    Raises `DeliveryError` under that `name` when there is no answer; its text holds nothing of the URL.
    """
    origin = _origin(url)
    for _ in range(_MOST_REDIRECTS + 1):
        answer = _once(method, url, body, headers, name=name, timeout=timeout)
        if answer.status not in (301, 302, 303, 307, 308):
            return answer
        target = _target(url, answer)
        if answer.status not in (307, 308) or target is None or _origin_of(target) != origin:
            raise DeliveryError(
                name,
                f"the receiver answered {answer.status} and leads elsewhere, where nothing is sent",
                permanent=True,
                hint="declare the place it leads to as the contact",
            )
        url = target
    raise DeliveryError(name, "the receiver leads in circles", permanent=True)


def _origin(url: SplitResult) -> tuple[str, str, int]:
    return url.scheme.lower(), url.hostname or "", url.port or _PORTS[url.scheme.lower()]


def _target(url: SplitResult, answer: Answer) -> SplitResult | None:
    try:
        return urlsplit(urljoin(url.geturl(), answer.headers.get("location", "")))
    except ValueError:
        return None


def _origin_of(url: SplitResult) -> tuple[str, str, int] | None:
    try:
        return _origin(url) if url.scheme.lower() in _PORTS else None
    except ValueError:
        return None


def _once(
    method: str, url: SplitResult, body: bytes, headers: Mapping[str, str], *, name: str, timeout: float
) -> Answer:
    scheme, host, port = _origin(url)
    if not host:
        raise DeliveryError(name, "the contact names no host", permanent=True, hint="correct it")
    try:
        connection = (
            http.client.HTTPSConnection(host, port, timeout=timeout, context=_trusted())
            if scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=timeout)
        )
    except http.client.InvalidURL as error:
        raise DeliveryError(name, reason_of(error), permanent=True) from None
    # A socket's own timeout is for each read, and a receiver may send one byte at a time for ever.
    late = threading.Event()
    watch = threading.Timer(timeout, _cut, (connection, late))
    watch.daemon = True
    watch.start()
    try:
        target = quote(url.path or "/", safe=_SAFE) + (f"?{quote(url.query, safe=_SAFE)}" if url.query else "")
        connection.request(method, target, body=body, headers={"User-Agent": _USER_AGENT, **headers})
        response = connection.getresponse()
        read = response.read(MOST_ANSWER)
        if late.is_set():
            raise TimeoutError
        return Answer(response.status, {key.lower(): value for key, value in response.getheaders()}, read)
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = TimeoutError() if late.is_set() else error
        raise DeliveryError(name, reason_of(cause), permanent=isinstance(cause, _WRONGLY_WRITTEN)) from None
    finally:
        watch.cancel()
        connection.close()


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


def _cut(connection: http.client.HTTPConnection, late: threading.Event) -> None:
    late.set()
    opened = connection.sock
    if opened is not None:
        # It may be closed by now.
        with suppress(OSError):
            opened.shutdown(socket.SHUT_RDWR)


_REASONS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ssl.SSLCertVerificationError, "its certificate is not trusted"),
    (TimeoutError, "it did not answer in time"),
    (ConnectionRefusedError, "nothing listens there"),
    (ConnectionResetError, "it closed the connection"),
    (BrokenPipeError, "it closed the connection"),
    (http.client.RemoteDisconnected, "it closed the connection"),
    (socket.gaierror, "there is no such host"),
    (ssl.SSLError, "no secure connection could be made"),
    (http.client.InvalidURL, "the contact cannot be sent to as it is written"),
    (http.client.HTTPException, "it does not speak HTTP as it should"),
    (OSError, "it cannot be reached"),
    (ValueError, "the contact cannot be sent to as it is written"),
)


def reason_of(error: BaseException) -> str:
    """What went wrong, in words that hold nothing of the address."""
    return next((words for kind, words in _REASONS if isinstance(error, kind)), f"an unexpected {type(error).__name__}")


def refused(answer: Answer, *, name: str, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> DeliveryError:
    """The error of an answer that is no success; what the receiver wrote is not in it, for it may repeat a secret."""
    permanent = 400 <= answer.status < 500 and answer.status not in _TEMPORARY
    known = http.client.responses.get(answer.status, "")
    return DeliveryError(
        name,
        f"the receiver answered {answer.status}{f' {known}' if known else ''}",
        permanent=permanent,
        retry_after=retry_after(answer.headers.get("retry-after"), clock()),
    )


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` asks for, from a number or a date; None for nothing that can be read."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    there = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max((there - now).total_seconds(), 0.0)
