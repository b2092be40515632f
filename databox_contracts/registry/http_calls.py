"""Calls to a registry's service: with its token, again while it is busy, and its problems as the errors they are."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from databox_contracts.errors import DataboxError, RegistryAccessError, RegistryError, RegistryUnavailableError
from databox_contracts.registry.problems import MEDIA_TYPE as PROBLEM, error_of
from databox_contracts.registry.texts import named, storable

TOKEN_VARIABLE: Final = "DATABOX_REGISTRY_TOKEN"
"""Names the token, which stands in no URL and in no file of ours."""

INSECURE_VARIABLE: Final = "DATABOX_REGISTRY_INSECURE"
"""Set to 1 it lets a token travel without encryption to another machine, as within a mesh that encrypts itself."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,200}")
_MOST_BYTES: Final = 256 * 1024 * 1024
_LONGEST_WAIT: Final = 30.0
# The same call may well succeed a little later.
_PASSING: Final = (429, 502, 503, 504)


class HttpCalls:
    """Makes calls to one service; what it is given is as `RegistryClient` says."""

    def __init__(
        self, url: str, *, token: str | None, timeout: float, attempts: int, sleep: Callable[[float], None]
    ) -> None:
        parts = _checked_url(url)
        self.base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._token = _checked_token(token if token is not None else os.environ.get(TOKEN_VARIABLE, ""))
        if self._token and parts.scheme == "http" and not _is_local(parts) and not os.environ.get(INSECURE_VARIABLE):
            raise RegistryError(
                f"the token would travel readable to {parts.hostname}",
                hint=f"Use https://, or set {INSECURE_VARIABLE}=1 where the network itself encrypts.",
            )
        self._timeout = timeout
        self._attempts = attempts
        self._sleep = sleep
        self._opener = _opener(parts)

    def close(self) -> None:
        """Nothing is kept open between calls."""
        self._opener.close()

    def call(
        self,
        method: str,
        place: Sequence[str],
        *,
        facts: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        media_type: str = "application/json",
        repeatable: bool = True,
        **query: str | None,
    ) -> Mapping[str, Any]:
        """The JSON object that is answered. Raises what `RegistryApi` raises, and `RegistryAccessError`.

        A call that is not `repeatable` is made again only where it surely did not arrive.
        """
        address = self.base + "".join(f"/{_part(one)}" for one in place)
        if asked := {name: storable(f"the {name}", value) for name, value in query.items() if value is not None}:
            address += f"?{urlencode(asked, quote_via=quote)}"
        headers = {"Accept": "application/json", "User-Agent": "databox-contracts"}
        if facts is not None:
            body = json.dumps(facts).encode()
        if body is not None:
            headers["Content-Type"] = media_type
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = Request(address, data=body, headers=headers, method=method)
        for attempt in range(1, self._attempts + 1):
            may_try_again = attempt < self._attempts
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    return self._document(response.read(_MOST_BYTES + 1))
            except HTTPError as error:
                with error:
                    passes = error.code == 429 or (repeatable and error.code in _PASSING)
                    if not passes or not may_try_again:
                        raise self._refused(error) from None
                    wait = _asked_for(error.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException) as error:
                if (lasting := self._lasting(error)) is not None:
                    raise lasting from None
                never_arrived = isinstance(_reason(error), (ConnectionRefusedError, socket.gaierror))
                if not may_try_again or not (repeatable or never_arrived):
                    raise self._out_of_reach(error) from None
                wait = None
            self._sleep(wait if wait is not None else min(_LONGEST_WAIT, 0.2 * 2**attempt) * random.uniform(0.5, 1.0))
        raise AssertionError("the last attempt returns or raises")

    def _document(self, content: bytes) -> Mapping[str, Any]:
        if len(content) > _MOST_BYTES:
            raise self.no_registry("its answer is too large")
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            raise self.no_registry("its answer is not JSON") from None
        if not isinstance(found, dict):
            raise self.no_registry("its answer is no JSON object")
        return found

    def no_registry(self, reason: str) -> RegistryError:
        """The error for an answer that no registry gives."""
        return RegistryError(
            f"{self.base} is no registry's service: {reason}",
            hint="Check the URL; its /health/ready tells whether a registry is there.",
        )

    def _refused(self, error: HTTPError) -> DataboxError:
        if 300 <= error.code < 400:
            return RegistryError(
                f"{self.base} sends its callers elsewhere, and a token goes nowhere but where it was meant for",
                hint="Name the service's own URL with --registry.",
            )
        told = error.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        problem: Any = None
        if told == PROBLEM:
            try:
                problem = json.loads(error.read(1_000_000))
            except (OSError, ValueError, RecursionError, http.client.HTTPException):
                problem = None
        found = error_of(problem) if isinstance(problem, dict) else None
        if error.code in (401, 403):
            hint = (
                f"Set {TOKEN_VARIABLE} to a token of the registry."
                if not self._token
                else (found.hint if found is not None else None) or f"Check {TOKEN_VARIABLE}."
            )
            detail = found.message if found is not None else f"it answers with status {error.code}"
            return RegistryAccessError(f"{self.base} does not let this through: {detail}", hint=hint)
        if found is not None:
            return found
        if error.code in _PASSING:
            return RegistryUnavailableError(
                f"{self.base} is not there for now: it answers with status {error.code}", hint="Try again later."
            )
        return self.no_registry(f"it answers with status {error.code}")

    def _lasting(self, error: Exception) -> RegistryError | None:
        """The error where another attempt would end the same way."""
        reason = _reason(error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return RegistryError(
                f"the certificate of {self.base} is not trusted: {reason.verify_message}",
                hint="Name the authority's certificates with SSL_CERT_FILE, or correct the host in the URL.",
            )
        if isinstance(reason, ssl.SSLError):
            return RegistryError(
                f"no encrypted connection to {self.base} can be made: {reason.reason or 'it speaks another language'}",
                hint="Check that the service speaks HTTPS there.",
            )
        return None

    def _out_of_reach(self, error: Exception) -> RegistryUnavailableError:
        reason = _reason(error)
        said = "it did not answer in time" if isinstance(reason, TimeoutError) else None
        said = said or getattr(reason, "strerror", None) or type(reason).__name__
        return RegistryUnavailableError(
            f"the registry's service {self.base} does not answer: {said}",
            hint="See that it runs and can be reached from here, and try again.",
        )


class _NoRedirection(HTTPRedirectHandler):
    """A redirection would take the token along to wherever it leads."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """No request follows; the answer is an error."""


def _opener(parts: SplitResult) -> OpenerDirector:
    handlers: list[Any] = [_NoRedirection(), HTTPSHandler(context=ssl.create_default_context())]
    if _is_local(parts):
        handlers.append(ProxyHandler({}))
    return build_opener(*handlers)


def _checked_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        port, host = parts.port, parts.hostname
    except ValueError:
        host, port, parts = None, None, None
    if parts is None or not host or parts.scheme not in ("http", "https") or port == 0:
        raise RegistryError("this is no URL of a registry's service", hint="Write https://HOST:PORT.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise RegistryError(
            f"the URL of the registry's service at {host} holds more than a place",
            hint=f"Leave out user, password and parameters, and put the token into {TOKEN_VARIABLE}.",
        )
    if not url.isascii() or any(character <= " " or character == "\x7f" for character in url.strip()):
        raise RegistryError("the URL of the registry's service has a character that no URL has", hint="Remove it.")
    return parts


def _checked_token(token: str) -> str:
    token = token.strip()
    if token and _TOKEN.fullmatch(token) is None:
        raise RegistryAccessError(
            "what was given as the token is none", hint=f"Set {TOKEN_VARIABLE} to the token alone, without quotes."
        )
    return token


def _is_local(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _part(text: str) -> str:
    """A part of an address. Raises `RegistryError` for a name that no registry has."""
    named("a name in the call", text)
    # Of these a proxy would make another address.
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def _reason(error: Exception) -> Any:
    return error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error


def _asked_for(header: str | None) -> float | None:
    """Seconds to wait as a `Retry-After` says, in either of its forms; None where it says nothing."""
    if header is None:
        return None
    try:
        seconds = (
            float(header) if header.strip().isdecimal() else parsedate_to_datetime(header).timestamp() - time.time()
        )
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), _LONGEST_WAIT)
