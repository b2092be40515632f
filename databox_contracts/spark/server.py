"""One Spark server for all processes of a host: whoever needs it first starts it, and it ends when nobody does.

Every step of a Dagster run is a process of its own; a shared server saves each of them the start of a Java process.
The server is Spark Connect on the loopback interface, on a port that the system chooses, behind a random token.

PySpark's own `spark.local.connect.reuse` is no substitute: such a server never ends by itself, and hands whoever comes
next the options of the one who came first.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import grpc

from databox_contracts.errors import SparkUnavailableError
from databox_contracts.spark.compat import DefaultPolicy
from databox_contracts.spark.server_main import ServerState, count_leases, locked, process_start, read_state, take_lease
from databox_contracts.spark.server_start import conf_digest, server_conf, start_server
from databox_contracts.spark.session import connect_session, refuse_classic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    from databox_contracts.spark.session import ConfValue

# How long, in seconds, a server without clients stays, and how long one may take to start on a busy machine.
IDLE_TIMEOUT = 300.0
START_TIMEOUT = 120.0
_STOP_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server that runs. `pid` is its Java process, `clients` counts the processes that hold it."""

    home: Path
    pid: int
    supervisor_pid: int
    port: int
    clients: int
    spark_version: str
    started_at: float


def shared_session(
    directory: str | Path,
    *,
    conf: Mapping[str, ConfValue] | None = None,
    idle_timeout: float = IDLE_TIMEOUT,
    start_timeout: float = START_TIMEOUT,
) -> SparkSession:
    """A session of the one server of `directory`, which is started if there is none; times are in seconds.

    Processes share a server if they ask for the same `conf` and have the same host, working directory, umask, Python
    and Spark, so that paths, modes and options mean what they mean in a session of one's own. Whoever differs from the
    server that runs in `directory` gets another one, in `directory/conf-<digest>`. The environment and `idle_timeout`
    are those of the process that started the server. The master is local, the UI off, the driver has 1 GB and the
    session's time zone is UTC unless `conf` says otherwise.

    The server runs until its last client process has ended, or has stopped and dropped its session, and `idle_timeout`
    longer. A process gets the same session again until the server has ended. Raises SparkUnavailableError where none
    can be had; so does any later call on a session whose server is gone.
    """
    refuse_classic()
    settings = server_conf(conf)
    base = _private_directory(directory)
    digest = conf_digest(settings)
    with _guard:
        if (session := _cached(base, digest)) is not None:
            return session
        # A server may end between being found and being called; one that does so again does not work here.
        for _ in range(2):
            session = _obtain(base, settings, digest, idle_timeout, start_timeout)
            if session is not None:
                return session
    raise SparkUnavailableError(
        "The shared Spark server ends as soon as it has started.", hint=f"Why may be in {base / 'server.log'}."
    )


def server_status(directory: str | Path) -> tuple[ServerStatus, ...]:
    """The servers of `directory` that run, the one without a directory of its own first."""
    found = []
    for home in _homes(Path(directory).absolute()):
        state = read_state(home)
        if state is not None and state.runs():
            found.append(
                ServerStatus(
                    home=home,
                    pid=state.pid,
                    supervisor_pid=state.supervisor_pid,
                    port=state.port,
                    clients=count_leases(home, state.id),
                    spark_version=state.spark_version,
                    started_at=state.started_at,
                )
            )
    return tuple(found)


def stop_server(directory: str | Path, *, timeout: float = _STOP_TIMEOUT) -> int:
    """Ends the servers of `directory`, also those in use, and says how many. Returns when their processes are gone."""
    base = Path(directory).absolute()
    if not base.is_dir():
        return 0
    stopped = 0
    with _locked_directory(base, timeout):
        for home in _homes(base):
            state = read_state(home)
            if state is not None and _end(home, state, timeout):
                stopped += 1
    return stopped


class _WhileServerRuns(DefaultPolicy):
    """Repeats calls as PySpark does, but says so at once when the server is gone instead of trying for ten minutes."""

    def __init__(self, home: Path, state: ServerState) -> None:
        super().__init__()
        self.home = home
        self.state = state

    def can_retry(self, e: BaseException) -> bool:
        lost = isinstance(e, grpc.RpcError) and e.code() is grpc.StatusCode.UNAVAILABLE
        if lost and process_start(self.state.pid) != self.state.process_start:
            raise SparkUnavailableError(
                f"The shared Spark server (process {self.state.pid}) has ended while it was in use.",
                hint=f"Run this again: a new one is started. Why it ended may be in {self.home / 'server.log'}.",
            ) from e
        return super().can_retry(e)


# The sessions of this process, as long as somebody uses them. A forked child must not use its parent's.
_sessions: dict[tuple[Path, str], tuple[int, ServerState, weakref.ref[ConnectSession]]] = {}
_guard = threading.Lock()


def _cached(base: Path, digest: str) -> SparkSession | None:
    pid, state, reference = _sessions.get((base, digest), (0, None, None))
    session = reference() if reference is not None and pid == os.getpid() else None
    if session is None or state is None or session.is_stopped:
        return None
    if state.runs():
        return cast("SparkSession", session)
    # PySpark would go on to hand it out as the active session.
    session.release_session_on_close = False
    session.stop()
    return None


def _obtain(
    base: Path, settings: dict[str, str], digest: str, idle_timeout: float, start_timeout: float
) -> SparkSession | None:
    with _locked_directory(base, start_timeout) as lock:
        home, state = _find(base, digest)
        if state is None:
            state = start_server(home, base, lock, settings, digest, idle_timeout, start_timeout)
        lease = take_lease(home, state.id)
    try:
        session = connect_session(
            f"sc://localhost:{state.port}", token=state.token, retry=_WhileServerRuns(home, state)
        )
    except BaseException as error:
        lease.close()
        if isinstance(error, SparkUnavailableError) and not state.runs():
            return None
        raise
    weakref.finalize(session, lease.close)
    _sessions[base, digest] = (os.getpid(), state, weakref.ref(cast("ConnectSession", session)))
    return session


def _private_directory(directory: str | Path) -> Path:
    base = Path(directory).absolute()
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = base.stat()
    except OSError as error:
        raise SparkUnavailableError(
            f"The shared Spark server needs the directory {base}, which cannot be made ({error.strerror}).",
            hint="Name one that can be written to.",
        ) from error
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise SparkUnavailableError(
            f"Other users can write to {base}, and could pose as the shared Spark server.",
            hint="Name a directory of your own, or take their right away with chmod go-w.",
        )
    return base


@contextmanager
def _locked_directory(base: Path, timeout: float) -> Iterator[int]:
    path = base / "server.lock"
    try:
        with locked(path, timeout=timeout) as lock:
            if lock is None:
                raise SparkUnavailableError(
                    f"Another process has held {path} for {timeout:g} s.", hint="Wait for it, or end it and try again."
                )
            yield lock
    except OSError as error:
        raise SparkUnavailableError(
            f"The shared Spark server cannot use {error.filename or base} ({error.strerror}).",
            hint="Make its directory writable for you, or name another one.",
        ) from error


def _homes(base: Path) -> list[Path]:
    return [base, *sorted(base.glob("conf-*"))]


def _find(base: Path, digest: str) -> tuple[Path, ServerState | None]:
    """The home of the server with that digest and its state, or the home where it is to be started."""
    free = None
    for home in (base, base / f"conf-{digest[:12]}"):
        state = read_state(home)
        if state is not None and state.runs() and state.answers():
            if state.conf_digest == digest:
                return home, state
            continue
        if state is not None:
            # What is left of it would be in nobody's hands.
            _end(home, state, _STOP_TIMEOUT)
        free = free or home
    if free is None:
        # A server of another configuration in our own directory: its state was copied there.
        free = base / f"conf-{digest[:12]}"
    free.mkdir(mode=0o700, exist_ok=True)
    return free, None


def _end(home: Path, state: ServerState, timeout: float) -> bool:
    """Ends what runs of a server, the Java process also where its supervisor is gone. False if nothing ran."""
    processes = {state.supervisor_pid: state.supervisor_start, state.pid: state.process_start}

    def alive() -> list[int]:
        return [pid for pid, started in processes.items() if process_start(pid) == started]

    running = alive()
    for pid in running[:1]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout
    while left := alive():
        if time.monotonic() > deadline:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            deadline = float("inf")
        time.sleep(0.05)
    known = read_state(home)
    if known is not None and known.id == state.id:
        (home / "server.json").unlink(missing_ok=True)
    return bool(running)
