"""The service on each database, called without a socket; and as the real process that the command starts."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from databox_contracts.cli.serving import judge
from databox_contracts.registry.store import Registry
from databox_contracts.registry.tokens import Scope
from databox_contracts.service.application import Settings, build_app
from databox_contracts.service.calls import Wiring
from databox_contracts.service.metrics import ServiceMetrics


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def seconds(self) -> float:
        return self.now.timestamp()

    def pass_by(self, **length: float) -> None:
        self.now += timedelta(**length)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def facts(self) -> Any:
        return json.loads(self.body)


class Caller:
    """Calls an ASGI application as a server would."""

    def __init__(self, app: Any, registry: Registry, metrics: ServiceMetrics) -> None:
        self.app = app
        self.registry = registry
        self.metrics = metrics
        self.tokens = {
            scope: registry.tokens.issue(f"holder of {scope}", Scope(scope), by="tests")
            for scope in ("read", "publish", "admin")
        }
        self._runner = asyncio.Runner()

    def __call__(
        self,
        method: str,
        target: str,
        body: bytes | str | Any = b"",
        *,
        scope: str | None = "admin",
        headers: Mapping[str, str] | None = None,
        address: str = "192.0.2.1",
        raw_headers: list[tuple[bytes, bytes]] | None = None,
        chunks: list[bytes] | None = None,
        stalls: bool = False,
    ) -> Reply:
        sent = {} if scope is None else {"authorization": f"Bearer {self.tokens[scope]}"}
        if not isinstance(body, bytes | str):
            body, sent["content-type"] = json.dumps(body), "application/json"
        content = body.encode() if isinstance(body, str) else body
        if isinstance(body, str) and "content-type" not in sent:
            sent["content-type"] = "application/yaml"
        sent |= headers or {}
        path, _, query = target.partition("?")
        parts = chunks if chunks is not None else [content]
        if chunks is None and content:
            sent.setdefault("content-length", str(len(content)))
        asked = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()] + (raw_headers or []),
            "client": (address, 50000),
            "server": ("127.0.0.1", 80),
        }
        return self._runner.run(_called(self.app, asked, parts, stalls))

    def close(self) -> None:
        self._runner.close()


async def _called(app: Any, asked: dict[str, Any], parts: list[bytes], stalls: bool) -> Reply:
    left = list(parts)
    told: list[Any] = []

    async def receive() -> Any:
        if left:
            part = left.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(left) or stalls}
        if stalls:
            await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        told.append(message)

    await app(asked, receive, send)
    headers = {name.decode(): value.decode("latin-1") for name, value in told[0]["headers"]}
    return Reply(told[0]["status"], headers, b"".join(message.get("body", b"") for message in told[1:]))


@pytest.fixture
def clock() -> Clock:
    return Clock()


Calling = Callable[..., AbstractContextManager[Caller]]


@pytest.fixture
def calling(clock: Clock, tmp_path: Path) -> Calling:
    """A service with these settings."""

    @contextmanager
    def make(url: str | None = None, wiring: dict[str, Any] | None = None, **settings: Any) -> Iterator[Caller]:
        with Registry.open(url or str(tmp_path / "registry.db"), clock=clock, patience=2) as registry:
            metrics = ServiceMetrics(refreshers=[lambda: registry.check()])
            app = build_app(
                registry,
                Wiring(lambda question: judge(question).to_dict(), clock=clock, **(wiring or {})),
                settings=Settings(now=clock.seconds, **settings),
                metrics=metrics,
            )
            caller = Caller(app, registry, metrics)
            try:
                yield caller
            finally:
                caller.close()

    return make


@pytest.fixture
def call(calling: Calling, database_url: str) -> Iterator[Caller]:
    """The service on each of the databases."""
    with calling(database_url) as caller:
        yield caller


@pytest.fixture
def lite(calling: Calling) -> Iterator[Caller]:
    """The service on SQLite, for what no database has a part in."""
    with calling() as caller:
        yield caller


@dataclass(frozen=True)
class Served:
    """A service that runs; its error stream goes to `log`."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    registry: str

    def token(self, scope: str = "admin", name: str | None = None) -> str:
        with Registry.open(self.registry) as registry:
            return registry.tokens.issue(name or f"{scope} {time.monotonic_ns()}", Scope(scope), by="tests")


@contextmanager
def served(registry: str, directory: Path, *arguments: str) -> Iterator[Served]:
    """The service as the command starts it, on a port of the system's choosing."""
    port, log = directory / "port", directory / "service.log"
    command = [sys.executable, "-m", "databox_contracts", "registry", "serve", "--registry", registry]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*command, "--port", "0", "--port-file", str(port), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=stream,
            env={**os.environ, "DATABOX_REGISTRY_TOKEN": ""},
        )
    try:
        deadline = time.monotonic() + 60
        while not port.exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        scheme = "https" if "--certificate" in arguments else "http"
        yield Served(f"{scheme}://127.0.0.1:{port.read_text().strip()}", process, log, registry)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="session")
def serving() -> Callable[..., AbstractContextManager[Served]]:
    """Starts a service on that registry, with that directory for its files and those further arguments."""
    return served


@pytest.fixture
def server(database_url: str, tmp_path: Path) -> Iterator[Served]:
    with served(database_url, tmp_path) as running:
        yield running
