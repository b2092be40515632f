"""A registry that is asked over HTTP: what a database offers, from elsewhere."""

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
from dataclasses import replace
from datetime import date
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, Final, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from databox_contracts.errors import DataboxError, RegistryAccessError, RegistryError, RegistryUnavailableError
from databox_contracts.formats import dump_contract
from databox_contracts.model import Consumer, Contract
from databox_contracts.registry.problems import MEDIA_TYPE as PROBLEM, error_of
from databox_contracts.registry.records import Origin, Publication, RegisteredConsumer, StoredApproval, StoredVersion
from databox_contracts.registry.texts import named, storable

T = TypeVar("T")

TOKEN_VARIABLE: Final = "DATABOX_REGISTRY_TOKEN"
"""Names the token, which stands in no URL and in no file of ours."""

INSECURE_VARIABLE: Final = "DATABOX_REGISTRY_INSECURE"
"""Set to 1 it lets a token travel without encryption to another machine, as within a mesh that encrypts itself."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,200}")
_MOST_BYTES: Final = 256 * 1024 * 1024
_LONGEST_WAIT: Final = 30.0
# The same call may well succeed a little later.
_PASSING: Final = (429, 502, 503, 504)


class RegistryClient:
    """A `RegistryApi` over HTTP; threads may share one.

    The token is that of `DATABOX_REGISTRY_TOKEN` where none is given. A call that may be repeated is tried `attempts`
    times while the service is busy or out of reach, after waits that grow, or that it asks for; `timeout` is in
    seconds, for one attempt. Who does something is the token's holder: a name that is given is recorded beside it.
    Raises `RegistryError` for a URL that is none, with a password in it, or that sends the token readable elsewhere.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 60.0,
        attempts: int = 5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = _checked_url(url)
        self._base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
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

    @property
    def location(self) -> str:
        """Where the service is."""
        return self._base

    def __repr__(self) -> str:
        return f"RegistryClient({self._base!r})"

    def __enter__(self) -> RegistryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """As `RegistryApi.close`; there is nothing to give back."""
        self._opener.close()

    # --- versions ---

    def publish(self, contract: Contract, *, by: str) -> Publication:
        """As `RegistryApi.publish`."""
        body = dump_contract(contract)
        storable(f"the text of {contract.id}", body)
        found = self._call("PUT", ("contracts", contract.id), by=by, body=body.encode(), media_type="application/yaml")
        return self._read(found, _publication)

    def publish_all(self, contracts: Sequence[Contract], *, by: str) -> list[Publication]:
        """As `RegistryApi.publish_all`."""
        if not contracts:
            return []
        facts = {"contracts": [dump_contract(contract) for contract in contracts]}
        return self._list(self._call("POST", ("contracts",), by=by, facts=facts), "publications", _publication)

    def contracts(self) -> list[StoredVersion]:
        """As `RegistryApi.contracts`."""
        return self._list(self._call("GET", ("contracts",), content="true"), "contracts", StoredVersion.from_dict)

    def versions(self, contract_id: str) -> list[StoredVersion]:
        """As `RegistryApi.versions`."""
        found = self._call("GET", ("contracts", contract_id, "versions"), content="true")
        return self._list(found, "versions", StoredVersion.from_dict)

    def get(self, contract_id: str, version: str | None = None) -> StoredVersion:
        """As `RegistryApi.get`."""
        return self._read(self._call("GET", ("contracts", contract_id), version=version), StoredVersion.from_dict)

    def activate(self, contract_id: str, version: str, *, by: str) -> StoredVersion:
        """As `RegistryApi.activate`."""
        return self._transition(contract_id, version, "activate", by)

    def deprecate(self, contract_id: str, version: str, *, by: str, sunset: date | None = None) -> StoredVersion:
        """As `RegistryApi.deprecate`."""
        facts = {"sunset": sunset.isoformat()} if sunset is not None else {}
        return self._transition(contract_id, version, "deprecate", by, facts)

    def retire(self, contract_id: str, version: str, *, by: str) -> StoredVersion:
        """As `RegistryApi.retire`."""
        return self._transition(contract_id, version, "retire", by)

    # --- consumers ---

    def consumers(self, contract_id: str | None = None) -> list[RegisteredConsumer]:
        """As `RegistryApi.consumers`."""
        place = ("consumers",) if contract_id is None else ("contracts", contract_id, "consumers")
        return self._list(self._call("GET", place), "consumers", RegisteredConsumer.from_dict)

    def register(
        self, contract_id: str, consumer: Consumer, *, by: str, origin: Origin = Origin.REGISTRY
    ) -> RegisteredConsumer:
        """As `RegistryApi.register`; what a contract declares is published with it, and refused here."""
        place = ("contracts", contract_id, "consumers", consumer.name)
        found = self._call("PUT", place, by=by, origin=str(origin), facts=consumer.model_dump(mode="json"))
        return self._read(found, RegisteredConsumer.from_dict)

    def remove_consumer(self, contract_id: str, name: str, *, by: str, origin: Origin = Origin.REGISTRY) -> bool:
        """As `RegistryApi.remove_consumer`."""
        found = self._call("DELETE", ("contracts", contract_id, "consumers", name), by=by, origin=str(origin))
        return self._read(found, lambda facts: bool(facts["removed"]))

    def approve(self, approval: StoredApproval) -> StoredApproval:
        """As `RegistryApi.approve`; its time is the service's."""
        names = ("consumer", "approver", "dataset", "version", "purpose", "note")
        facts = {name: getattr(approval, name) for name in names}
        return self._read(
            self._call("POST", ("contracts", approval.contract_id, "approvals"), facts=facts), StoredApproval.from_dict
        )

    def approvals(self, contract_id: str | None = None) -> list[StoredApproval]:
        """As `RegistryApi.approvals`."""
        place = ("approvals",) if contract_id is None else ("contracts", contract_id, "approvals")
        return self._list(self._call("GET", place), "approvals", StoredApproval.from_dict)

    # --- questions that only a service answers ---

    def compatibility(
        self, contract: Contract, *, old: Contract | None = None, version: str | None = None, policy: str | None = None
    ) -> Mapping[str, Any]:
        """The gate's report on the contract against `old`, else against a registered version of it, as plain data."""
        facts = {
            "contract": dump_contract(contract),
            "old": dump_contract(old) if old is not None else None,
            "version": version,
            "policy": policy,
        }
        return self._read(self._call("POST", ("compatibility",), facts=facts), dict)

    def impact(self, target: str) -> Mapping[str, Any]:
        """Whom a change of `CONTRACT[.DATASET][.FIELD]` reaches, by what the service knows, as `impact` tells it."""
        return self._read(self._call("GET", ("impact",), target=target), dict)

    def check(self) -> None:
        """Ask the service whether its database answers. Raises `RegistryUnavailableError`."""
        self._call("GET", ("health", "ready"))

    # --- calls ---

    def _transition(
        self, contract_id: str, version: str, what: str, by: str, facts: Mapping[str, Any] | None = None
    ) -> StoredVersion:
        place = ("contracts", contract_id, "versions", version, what)
        # Said again after somebody else's word, it would take that back.
        found = self._call("POST", place, by=by, facts=facts or {}, repeatable=False)
        return self._read(found, StoredVersion.from_dict)

    def _call(
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
        address = self._base + "".join(f"/{_part(one)}" for one in place)
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
            raise self._no_registry("its answer is too large")
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            raise self._no_registry("its answer is not JSON") from None
        if not isinstance(found, dict):
            raise self._no_registry("its answer is no JSON object")
        return found

    def _read(self, facts: Mapping[str, Any], made: Callable[[Mapping[str, Any]], T]) -> T:
        try:
            return made(facts)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._no_registry("its answer lacks what a registry tells") from None

    def _list(self, facts: Mapping[str, Any], name: str, made: Callable[[Mapping[str, Any]], T]) -> list[T]:
        return self._read(facts, lambda found: [made(one) for one in found[name]])

    def _no_registry(self, reason: str) -> RegistryError:
        return RegistryError(
            f"{self._base} is no registry's service: {reason}",
            hint="Check the URL; its /health/ready tells whether a registry is there.",
        )

    def _refused(self, error: HTTPError) -> DataboxError:
        if 300 <= error.code < 400:
            return RegistryError(
                f"{self._base} sends its callers elsewhere, and a token goes nowhere but where it was meant for",
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
            return RegistryAccessError(f"{self._base} does not let this through: {detail}", hint=hint)
        if found is not None:
            return found
        if error.code in _PASSING:
            return RegistryUnavailableError(
                f"{self._base} is not there for now: it answers with status {error.code}", hint="Try again later."
            )
        return self._no_registry(f"it answers with status {error.code}")

    def _lasting(self, error: Exception) -> RegistryError | None:
        """The error where another attempt would end the same way."""
        reason = _reason(error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return RegistryError(
                f"the certificate of {self._base} is not trusted: {reason.verify_message}",
                hint="Name the authority's certificates with SSL_CERT_FILE, or correct the host in the URL.",
            )
        if isinstance(reason, ssl.SSLError):
            return RegistryError(
                f"no encrypted connection to {self._base} can be made: {reason.reason or 'it speaks another language'}",
                hint="Check that the service speaks HTTPS there.",
            )
        return None

    def _out_of_reach(self, error: Exception) -> RegistryUnavailableError:
        reason = _reason(error)
        said = "it did not answer in time" if isinstance(reason, TimeoutError) else None
        said = said or getattr(reason, "strerror", None) or type(reason).__name__
        return RegistryUnavailableError(
            f"the registry's service {self._base} does not answer: {said}",
            hint="See that it runs and can be reached from here, and try again.",
        )


class _NoRedirection(HTTPRedirectHandler):
    """A redirection would take the token along to wherever it leads."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """No request follows; the answer is an error."""


def _publication(facts: Mapping[str, Any]) -> Publication:
    found = Publication.from_dict(facts)
    return replace(found, stored=StoredVersion.from_dict(facts))


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
