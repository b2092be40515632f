"""The supervisor of a shared Spark server, and what it and its clients agree on: state file, locks and leases.

Run as a script by `server.py`, detached from the process that asked for it. It imports nothing but the standard library
(not even this package), because it lives as long as the server and should cost next to nothing.

A server's home is a directory with

- `server.json` (0600): how to reach the server and which processes it is, written once it answers;
- `leases/`: one locked file per client process. The lock goes with its process, however that ends;
- `server.log` and `server.log.1`: what this server and the one before it printed.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TICK = 0.5
_STOP_TIMEOUT = 15.0
_READY = re.compile(rb"Spark Connect server started at: \S*:(\d+)")
_PR_SET_PDEATHSIG = 1

# Only the line that names the port is wanted at INFO: the log of a server that lives for days must stay small. A failed
# query is told to the client that made it; here its message, which quotes rows of the data, must not stay.
_LOGGING = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex{short.className}
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.files.name = org.apache.spark.sql.execution.datasources
logger.files.level = off
logger.connect.name = org.apache.spark.sql.connect
logger.connect.level = off
logger.server.name = org.apache.spark.sql.connect.service.SparkConnectServer
logger.server.level = info
"""


def process_start(pid: int) -> str | None:
    """When a process started, in whatever unit the system has; None for one that does not run (a zombie does not).

    With the pid it names a process: pids are used again.
    """
    try:
        stat = Path("/proc", str(pid), "stat").read_text()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
    except OSError:
        return None
    else:
        # The command's name comes second, in parentheses, and may hold anything.
        after_name = stat.rpartition(")")[2].split()
        return None if after_name[0] in "ZX" else after_name[19]
    listing = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = listing.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()


@dataclass(frozen=True, slots=True)
class ServerState:
    """What `server.json` holds. `pid` is the Java process; `token` is a secret, so keep it out of text."""

    id: str
    pid: int
    process_start: str
    supervisor_pid: int
    supervisor_start: str
    port: int
    token: str
    spark_version: str
    conf_digest: str
    started_at: float

    def __repr__(self) -> str:
        return f"ServerState(pid={self.pid}, port={self.port}, spark_version={self.spark_version!r})"

    def runs(self) -> bool:
        """Whether both processes are still those that wrote the state."""
        return (
            process_start(self.pid) == self.process_start
            and process_start(self.supervisor_pid) == self.supervisor_start
        )

    def answers(self) -> bool:
        """Whether its port is open. A server too busy to accept counts as open."""
        with socket.socket() as probe:
            probe.settimeout(2.0)
            return probe.connect_ex(("127.0.0.1", self.port)) != errno.ECONNREFUSED


def read_state(home: Path) -> ServerState | None:
    """The state of the server of `home`; None where it is missing, damaged or not private to this user."""
    try:
        descriptor = os.open(home / "server.json", os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, encoding="utf-8") as file:
            status = os.fstat(descriptor)
            if status.st_uid != os.getuid() or status.st_mode & 0o777 != 0o600:
                return None
            facts = json.load(file)
        state = ServerState(**{field.name: facts[field.name] for field in fields(ServerState)})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    numbers = (state.pid, state.supervisor_pid, state.port)
    texts = (state.id, state.process_start, state.supervisor_start, state.token, state.spark_version, state.conf_digest)
    sound = all(type(number) is int and number > 0 for number in numbers) and all(type(t) is str and t for t in texts)
    return state if sound and state.port < 65536 else None


def write_private(path: Path, text: str) -> None:
    """Replaces a file at once by one that only this user can read."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)


@contextmanager
def locked(path: Path, *, timeout: float) -> Iterator[int | None]:
    """Holds the file's lock, and yields its descriptor; None if others kept it for `timeout` seconds.

    The lock belongs to the open file: a process that inherits the descriptor holds it on.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline:
                yield None
                return
            time.sleep(0.05)
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def take_lease(home: Path, server_id: str) -> IO[str]:
    """Keeps the server of that id running for as long as the returned file is open."""
    leases = home / "leases"
    leases.mkdir(mode=0o700, exist_ok=True)
    name = f"{server_id}-{os.getpid()}-{time.monotonic_ns()}"
    fresh = leases / f".{name}"
    lease = os.fdopen(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w")
    fcntl.flock(lease, fcntl.LOCK_EX)
    # It appears locked: whoever looks for leases never finds one that is about to be.
    fresh.rename(leases / f"{name}.lease")
    return lease


def count_leases(home: Path, server_id: str) -> int:
    """How many leases are held on the server of that id ("*": on any); abandoned ones are removed."""
    held = 0
    for lease in sorted((home / "leases").glob(f"{server_id}-*.lease")):
        with suppress(FileNotFoundError):
            descriptor = os.open(lease, os.O_RDWR)
            try:
                if _try_lock(descriptor):
                    lease.unlink()
                else:
                    held += 1
            finally:
                os.close(descriptor)
    return held


class _NotReadyError(Exception):
    """The server did not come up; the text says why."""


class Supervisor:
    """Starts the server's Java process, publishes its state, and ends it when nobody holds a lease any more."""

    def __init__(self, home: Path, order: dict[str, Any]) -> None:
        self.home = home
        self.order = order
        self.log = home / "server.log"
        self.settings = home / "spark.properties"
        self.logging = home / "log4j2.properties"
        self.asked_to_stop = False

    def run(self, report: IO[str]) -> None:
        """Lives as long as the server. The one line on `report` says whether it came up."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        process = state = None
        outcome = {"error": "it ended unexpectedly"}
        try:
            process = self._launch()
            state = self._await_ready(process)
            write_private(self.home / "server.json", json.dumps(asdict(state)))
            # Whoever waits for the lock finds the state from here on.
            os.close(self.order["lock"])
            _tell(report, {"started": state.id})
            self._watch(process, state)
        except (OSError, _NotReadyError) as error:
            outcome = {"error": str(error)}
        finally:
            self.settings.unlink(missing_ok=True)
            if state is not None:
                self._forget(state)
            if process is not None:
                self._end(process)
            # The leases of servers that were killed have nobody else to remove them.
            count_leases(self.home, "*")
            _tell(report, outcome)

    def _launch(self) -> subprocess.Popen[bytes]:
        write_private(self.settings, self.order["settings"])
        write_private(self.logging, _LOGGING)
        if self.log.exists():
            self.log.replace(self.log.with_name("server.log.1"))
        environment = {key: value for key, value in os.environ.items() if key not in self.order["unset"]}
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            os.dup2(descriptor, sys.stderr.fileno())
            return subprocess.Popen(
                self.order["command"],
                env={**environment, **self.order["environment"]},
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                preexec_fn=_die_with_parent,
                # Spark's launch script has children of its own.
                process_group=0,
            )
        finally:
            os.close(descriptor)

    def _await_ready(self, process: subprocess.Popen[bytes]) -> ServerState:
        deadline = time.monotonic() + self.order["start_timeout"]
        while (found := _READY.search(self.log.read_bytes())) is None:
            if process.poll() is not None:
                raise _NotReadyError(f"its Java process ended with exit code {process.returncode}")
            if self.asked_to_stop:
                raise _NotReadyError("it was told to stop")
            if time.monotonic() > deadline:
                raise _NotReadyError(f"it was not ready within {self.order['start_timeout']:g} s")
            time.sleep(0.05)
        starts = process_start(process.pid), process_start(os.getpid())
        if starts[0] is None or starts[1] is None:
            raise _NotReadyError("its Java process ended at once")
        return ServerState(
            id=self.order["id"],
            pid=process.pid,
            process_start=starts[0],
            supervisor_pid=os.getpid(),
            supervisor_start=starts[1],
            port=int(found.group(1)),
            token=self.order["token"],
            spark_version=self.order["spark_version"],
            conf_digest=self.order["conf_digest"],
            started_at=time.time(),
        )

    def _watch(self, process: subprocess.Popen[bytes], state: ServerState) -> None:
        """Returns when the server has to end, or has ended."""
        self.settings.unlink(missing_ok=True)
        last_used = time.monotonic()
        while not self.asked_to_stop:
            with suppress(subprocess.TimeoutExpired):
                process.wait(TICK)
                return
            if count_leases(self.home, state.id):
                last_used = time.monotonic()
                continue
            known = read_state(self.home)
            if known is None or known.id != state.id:
                # Nobody finds this server any more, and those who had are gone.
                return
            if time.monotonic() - last_used < self.order["idle_timeout"]:
                continue
            with locked(Path(self.order["lock_path"]), timeout=0) as lock:
                # A client that holds the lock is about to take a lease.
                if lock is not None and not count_leases(self.home, state.id):
                    self._forget(state)
                    return

    def _forget(self, state: ServerState) -> None:
        known = read_state(self.home)
        if known is not None and known.id == state.id:
            (self.home / "server.json").unlink(missing_ok=True)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_TIMEOUT)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.asked_to_stop = True


def _tell(report: IO[str], outcome: dict[str, str]) -> None:
    """Says the one thing there is to say; nothing if that is said, or if whoever asked is gone."""
    if not report.closed:
        with suppress(BrokenPipeError), report:
            print(json.dumps(outcome), file=report, flush=True)


# Loaded before the fork: the child of a fork should do as little as possible.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    """Has the kernel end this process with its parent, where the kernel can (Linux)."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def main() -> None:
    """Reads the order from standard input, leaves its parent, and supervises."""
    home = Path(sys.argv[1])
    order = json.load(sys.stdin)
    if os.fork():
        os._exit(0)
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    report = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    for standard in (sys.stdin, sys.stdout):
        os.dup2(nowhere, standard.fileno())
    os.close(nowhere)
    Supervisor(home, order).run(report)


if __name__ == "__main__":
    main()
