"""The ASGI application: who may call, how often and with how much, and which operation answers."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import anyio
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from databox_contracts.errors import DataboxError
from databox_contracts.registry.problems import MEDIA_TYPE as PROBLEM, problem_of
from databox_contracts.registry.store import Registry
from databox_contracts.registry.tokens import Scope, StoredToken
from databox_contracts.service.bodies import checked_type
from databox_contracts.service.calls import Answer, Call, RefusedError, Wiring
from databox_contracts.service.front import Front
from databox_contracts.service.metrics import MEDIA_TYPE as METRICS, ServiceMetrics
from databox_contracts.service.openapi import DOCUMENT
from databox_contracts.service.operations import OPERATIONS, Operation
from databox_contracts.service.rates import Buckets, Rate, caller_at

_BEARER: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/=-]{1,200}) *")
_PARAMETER_BYTES: Final = 1000

_BY_TOKEN: Final = Rate(burst=200, per_second=20)
_BY_ADDRESS: Final = Rate(burst=400, per_second=40)
_FAILURES: Final = Rate(burst=20, per_second=0.2)


@dataclass(frozen=True)
class Settings:
    """What callers may do. Sizes are those of the operations, at most `most_bytes`; times are in seconds.

    `by_token` and `by_address` bound how often a caller may call, `failures` how often an address may do so without a
    token that is one. `threads` calls are worked on at a time.
    """

    by_token: Rate = _BY_TOKEN
    by_address: Rate = _BY_ADDRESS
    failures: Rate = _FAILURES
    most_bytes: int = 16 * 1024 * 1024
    body_seconds: float = 30.0
    ready_seconds: float = 3.0
    threads: int = 8
    now: Callable[[], float] = field(default=time.monotonic)


def build_app(
    registry: Registry,
    wiring: Wiring,
    *,
    settings: Settings | None = None,
    metrics: ServiceMetrics | None = None,
) -> Front:
    """The registry as an ASGI application."""
    return _Service(registry, wiring, settings or Settings(), metrics or ServiceMetrics()).application()


class _Service:
    def __init__(
        self,
        registry: Registry,
        wiring: Wiring,
        settings: Settings,
        metrics: ServiceMetrics,
    ) -> None:
        self._registry = registry
        self._wiring = wiring
        self._settings = settings
        self._metrics = metrics
        self._by_token = Buckets(settings.by_token, settings.now)
        self._by_address = Buckets(settings.by_address, settings.now)
        self._failures = Buckets(settings.failures, settings.now)
        self._threads = CapacityLimiter(settings.threads)
        # Whether the service is ready has to be told even while all others are waiting for the database.
        self._spare_threads = CapacityLimiter(2)

    def application(self) -> Front:
        routes = [
            Route("/health/live", self._named("live", self._live), methods=["GET"]),
            Route("/health/ready", self._named("ready", self._ready), methods=["GET"]),
            Route("/openapi.json", self._named("openapi", self._openapi), methods=["GET"]),
            *(
                Route(one.path, self._named(one.name, self._operation(one)), methods=[one.method])
                for one in (*OPERATIONS, self._metrics_operation())
            ),
        ]
        # As a publisher may write it who does not know that a slash in an id has to be encoded.
        publish = next(one for one in OPERATIONS if one.name == "publishContract")
        any_id = publish.path.replace("{id}", "{id:path}")
        routes.append(Route(any_id, self._named(publish.name, self._operation(publish)), methods=["PUT"]))
        app = Starlette(routes=routes, exception_handlers={HTTPException: _not_here, Exception: _went_wrong})
        # A redirection would repeat the host that the caller names.
        app.router.redirect_slashes = False
        return Front(app, self._by_address, self._metrics, self._settings.now)

    # --- without a token ---

    async def _live(self, request: Request) -> Response:
        return _response(Answer({"status": "live"}))

    async def _ready(self, request: Request) -> Response:
        with anyio.move_on_after(self._settings.ready_seconds), suppress(DataboxError):
            await to_thread.run_sync(self._registry.check, abandon_on_cancel=True, limiter=self._spare_threads)
            return _response(Answer({"status": "ready"}))
        return _response(Answer({"status": "the registry's database does not answer"}, status=503))

    async def _openapi(self, request: Request) -> Response:
        return _response(Answer(DOCUMENT))

    def _metrics_operation(self) -> Operation:
        def read(call: Call) -> Answer:
            return Answer(text=self._metrics.text(), media_type=METRICS)

        return Operation("metrics", "GET", "/metrics", Scope.READ, read)

    # --- with one ---

    def _operation(self, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            token = await self._authorized(request, operation)
            request.scope["databox.token"] = token.name if token is not None else None
            path = {name: _parameter(name, unquote_strict(value)) for name, value in request.path_params.items()}
            query = _query(request, operation)
            body, media_type = await self._body(request, operation)
            call = Call(self._registry, self._wiring, token, path, query, body, media_type)
            return _response(await to_thread.run_sync(operation.run, call, limiter=self._threads))

        return answer

    async def _authorized(self, request: Request, operation: Operation) -> StoredToken | None:
        if operation.scope is None:
            return None
        found = _BEARER.fullmatch(request.headers.get("authorization", ""))
        given = found[1] if found is not None and len(request.headers.getlist("authorization")) == 1 else None
        token = None
        if given is not None:
            recognise = self._registry.tokens.recognise
            token = await to_thread.run_sync(recognise, given, limiter=self._threads)
        if token is None:
            # Whoever has a right one is not hindered: others may call from the same address.
            caller = caller_at(request.client.host if request.client is not None else None)
            if wait := self._failures.take(caller):
                raise _too_many(wait, "too many calls without a valid token come from this address")
            raise RefusedError(
                401,
                "unauthenticated",
                "no token was given" if not request.headers.get("authorization") else "the token is not a valid one",
                hint="Send it as `Authorization: Bearer TOKEN`; the command line takes it from DATABOX_REGISTRY_TOKEN.",
                headers={"WWW-Authenticate": 'Bearer realm="databox-contracts"'},
            )
        if wait := self._by_token.take(token.name):
            raise _too_many(wait, "this token makes too many calls")
        if not token.scope.includes(operation.scope):
            raise RefusedError(
                403,
                "forbidden",
                f"the token's scope is {token.scope}, and this takes {operation.scope}",
                hint="Have one issued with `databox-contracts registry token create`.",
            )
        return token

    async def _body(self, request: Request, operation: Operation) -> tuple[bytes, str]:
        most = min(operation.body, self._settings.most_bytes)
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length[:18]) > most:
            raise _too_large(most)
        if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise RefusedError(415, "unsupported-encoding", "the body is compressed", hint="Send it as it is.")
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        raise _too_large(most)
                    parts.append(part)
        except TimeoutError:
            raise RefusedError(408, "timeout", "the body did not arrive in time") from None
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        return b"".join(parts), checked_type(media_type) if size else media_type

    def _named(
        self, name: str, answer: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint whose calls are counted under that name, and whose refusals are problems."""

        async def endpoint(request: Request) -> Response:
            request.scope["databox.operation"] = name
            try:
                return await answer(request)
            except RefusedError as error:
                return _problem(error.document, error.status, error.headers)
            except DataboxError as error:
                kind, document = problem_of(error)
                return _problem(document, kind.status, {"Retry-After": "2"} if kind.status == 503 else {})
            except ClientDisconnect:
                return Response(status_code=400)

        return endpoint


def unquote_strict(text: str) -> str:
    """A part of a path, decoded. Raises `RefusedError` for what is not UTF-8."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise RefusedError(400, "parameter", "the address is not UTF-8") from None


def _query(request: Request, operation: Operation) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in operation.query or name in found:
            known = ", ".join(operation.query)
            raise RefusedError(
                400,
                "parameter",
                "a parameter is not known, or given twice",
                hint=f"There is: {known}." if known else "There is none.",
            )
        found[name] = _parameter(name, value)
    return found


def _parameter(name: str, value: str) -> str:
    # No database keeps the former, and of the latter none is anybody's.
    if not value or any(character < " " or "\ud800" <= character <= "\udfff" for character in value):
        raise RefusedError(400, "parameter", f"{name!r} is empty or has characters that no name has")
    if len(value.encode()) > _PARAMETER_BYTES:
        raise RefusedError(400, "parameter", f"{name!r} is longer than {_PARAMETER_BYTES} bytes")
    return value


def _too_many(wait: int, detail: str) -> RefusedError:
    return RefusedError(
        429, "too-many-requests", detail, hint=f"Try again in {wait} s.", headers={"Retry-After": str(wait)}
    )


def _too_large(most: int) -> RefusedError:
    # What is still to come is not read.
    return RefusedError(413, "too-large", f"the body is larger than {most:,} bytes")


async def _not_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    texts = {
        404: ("not-found", "there is nothing at this address"),
        405: ("method", "this address takes other methods"),
    }
    name, detail = texts.get(error.status_code, ("http", "the call is not understood"))
    refused = RefusedError(error.status_code, name, detail, hint="/openapi.json lists what there is.")
    return _problem(refused.document, error.status_code, error.headers or {})


async def _went_wrong(request: Request, error: Exception) -> Response:
    number = request.scope["databox.number"]
    refused = RefusedError(500, "internal", f"something went wrong (error {number} in the service's log)")
    return _problem(refused.document, 500, {})


def _response(answer: Answer) -> Response:
    content = answer.text if answer.text is not None else _json(answer.facts)
    return Response(content, status_code=answer.status, media_type=answer.media_type)


def _problem(document: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> Response:
    return Response(_json(document), status_code=status, media_type=PROBLEM, headers=dict(headers))


def _json(facts: Any) -> bytes:
    return json.dumps(facts, ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=str).encode()
