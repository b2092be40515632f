"""The shared server with real processes. Every client is a process of its own, as a Dagster step is."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow.parquet as pq
import pyspark
import pytest

from databox_contracts.spark.server import server_status, stop_server
from databox_contracts.spark.server_main import ServerState, process_start, read_state, write_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
ODD = "a b=c:d\\e\tf\n #é!"
CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": 2,
    "spark.databox.odd": ODD,
}

# Reads one Python statement a line, and answers with the JSON of what it left in `answer`.
CLIENT = """
import json, os, sys
from databox_contracts.errors import SparkUnavailableError
from databox_contracts.spark.server import server_status, shared_session, stop_server
os.umask(0o027)
for line in sys.stdin:
    answer = None
    try:
        exec(json.loads(line))
    except SparkUnavailableError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
"""


class Client:
    """A process that uses the shared server of a directory."""

    def __init__(self, directory: Path, conf: dict[str, Any] | None = None, **environment: str) -> None:
        self.call = f"shared_session({str(directory)!r}, conf={CONF if conf is None else conf!r}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLIENT],
            env={**os.environ, **environment},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, code: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def do(self, code: str) -> Any:
        self.ask(code)
        return self.answer()

    def open(self, **arguments: float) -> None:
        """Asks for a session; `answer()` is None once it is there."""
        more = "".join(f", {name}={value!r}" for name, value in arguments.items())
        self.ask(f"spark = {self.call}{more})")

    def count(self) -> Any:
        return self.do("answer = spark.range(100).count()")

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def processes_of(directory: Path) -> dict[str, list[int]]:
    """The Java processes and supervisors whose command line names the directory."""
    found: dict[str, list[int]] = {"java": [], "supervisor": []}
    for process in psutil.process_iter(["cmdline", "pid", "status"]):
        command = process.info["cmdline"] or []
        if not any(str(directory) in part for part in command) or process.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        if Path(command[0]).name == "java":
            found["java"].append(process.info["pid"])
        elif any(part.endswith("server_main.py") for part in command):
            found["supervisor"].append(process.info["pid"])
    return found


def until(holds: Callable[[], Any], timeout: float = 30.0) -> Any:
    deadline = time.monotonic() + timeout
    while not (outcome := holds()):
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)
    return outcome


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The server's directory, with a name that needs quoting and a state file that is no state."""
    place = tmp_path_factory.mktemp("shared") / "state of spark"
    place.mkdir(mode=0o700)
    write_private(place / "server.json", '{"pid": 1, "port":')
    yield place
    stop_server(place)


@pytest.fixture(scope="module")
def crowd(directory: Path) -> Iterator[list[Client]]:
    """Four processes that asked for the server at once, after the first one to ask was killed while it started."""
    first = Client(directory)
    first.open()
    until((directory / "server.log").exists)
    first.close()
    clients = [Client(directory) for _ in range(4)]
    try:
        for client in clients:
            client.open()
        answers = [client.answer() for client in clients]
        assert answers == [None, None, None, None], answers
        yield clients
    finally:
        for client in clients:
            client.close()


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """Makes clients of `tmp_path/server`, and ends them and their servers after the test."""
    made: list[Client] = []

    def make(conf: dict[str, Any] | None = None, **environment: str) -> Client:
        made.append(Client(tmp_path / "server", conf, **environment))
        return made[-1]

    yield make
    for client in made:
        client.close()
    stop_server(tmp_path / "server")


def test_processes_that_arrive_at_once_share_one_java_process(crowd: list[Client], directory: Path) -> None:
    running = processes_of(directory)
    assert (len(running["java"]), len(running["supervisor"])) == (1, 1)
    assert [client.count() for client in crowd] == [100, 100, 100, 100]
    (status,) = server_status(directory)
    assert [status.pid, status.supervisor_pid] == [running["java"][0], running["supervisor"][0]]
    assert status.home == directory
    assert status.clients == 4
    assert status.spark_version == pyspark.__version__


def test_a_process_gets_its_session_again(crowd: list[Client]) -> None:
    again = f"answer = {crowd[1].call}) is spark"
    assert crowd[1].do(again) is True


def test_the_server_survives_a_killed_client_and_notices(crowd: list[Client], directory: Path) -> None:
    crowd[0].process.send_signal(signal.SIGKILL)
    until(lambda: server_status(directory)[0].clients == 3)
    assert [client.count() for client in crowd[1:]] == [100, 100, 100]


def test_a_stopped_session_gives_up_its_hold(crowd: list[Client], directory: Path) -> None:
    before = server_status(directory)[0].clients
    crowd[3].do("spark.stop(); del spark")
    assert server_status(directory)[0].clients == before - 1
    crowd[3].open()
    assert crowd[3].answer() is None
    assert crowd[3].count() == 100
    assert server_status(directory)[0].clients == before


def test_options_and_defaults_reach_the_server(crowd: list[Client]) -> None:
    names = [*CONF, "spark.sql.session.timeZone", "spark.ui.enabled"]
    values = crowd[1].do(f"answer = [spark.conf.get(name) for name in {names!r}]")
    assert values == ["local[2]", "512m", "2", ODD, "UTC", "false"]


def test_what_it_writes_is_the_users(crowd: list[Client], tmp_path: Path) -> None:
    table = tmp_path / "table"
    crowd[1].do(f"spark.sql(\"select timestamp'2013-01-01 05:00:00' as t\").write.parquet({str(table)!r})")
    (file,) = table.glob("*.parquet")
    assert (table.stat().st_uid, table.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (
        os.getuid(),
        0o750,
        0o640,
    )
    assert pq.ParquetFile(file).schema.column(0).physical_type == "INT64"


def test_relative_paths_are_the_clients(crowd: list[Client]) -> None:
    assert crowd[1].do("answer = spark.read.text('pyproject.toml').first()[0]") == "[build-system]"


def test_the_token_is_nowhere_but_in_the_private_state_file(crowd: list[Client], directory: Path) -> None:
    state = read_state(directory)
    assert state is not None
    assert len(state.token) >= 32
    assert state.token not in repr(state)
    assert (directory / "server.json").stat().st_mode & 0o777 == 0o600
    assert state.token in (directory / "server.json").read_text()
    others = [file for file in directory.rglob("*") if file.is_file() and file.name != "server.json"]
    assert "server.log" in [file.name for file in others]
    assert [file.name for file in others if state.token in file.read_text()] == []
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert [command for command in commands if any(state.token in part for part in command)] == []


def test_values_of_a_failing_query_do_not_stay_in_the_log(crowd: list[Client], directory: Path, tmp_path: Path) -> None:
    (tmp_path / "short.csv").write_text("a,b\ns3cret\n")
    options = "mode='FAILFAST', header=True, columnPruning=False"
    read = f"spark.read.options({options}).csv({str(tmp_path / 'short.csv')!r})"
    client = Client(directory)
    client.open()
    assert client.answer() is None
    for failing in (
        "spark.sql(\"select raise_error(concat('s3c', 'ret'))\").collect()",
        "spark.sql(\"select cast(concat('s3c', 'ret') as int)\").collect()",
        f"{read}.collect()",
        f"{read}.write.parquet({str(tmp_path / 'out')!r})",
    ):
        answer = client.do(f"try:\n    {failing}\nexcept Exception as error:\n    answer = str(error)")
        assert "s3cret" in answer
    client.close()
    assert "s3cret" not in (directory / "server.log").read_text()


def test_only_this_host_can_reach_it(crowd: list[Client], directory: Path) -> None:
    server = psutil.Process(server_status(directory)[0].pid)
    addresses = {connection.laddr.ip for connection in server.net_connections() if connection.status == "LISTEN"}
    assert addresses <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert addresses


@pytest.mark.parametrize("token", ["guess", None])
def test_a_wrong_token_is_refused(token: str | None, crowd: list[Client], directory: Path) -> None:
    stranger = Client(directory)
    try:
        answer = stranger.do(
            "from databox_contracts.spark.session import connect_session\n"
            f"connect_session('sc://localhost:{server_status(directory)[0].port}', token={token!r})"
        )
        assert "cannot be used" in answer["error"]
        assert "authentication token" in answer["error"]
    finally:
        stranger.close()


def test_other_options_get_a_server_of_their_own_which_goes_with_its_supervisor(
    crowd: list[Client], directory: Path
) -> None:
    other = Client(directory, {**CONF, "spark.sql.shuffle.partitions": 3})
    try:
        other.open()
        assert other.answer() is None
        assert other.do("answer = spark.conf.get('spark.sql.shuffle.partitions')") == "3"
        assert crowd[1].do("answer = spark.conf.get('spark.sql.shuffle.partitions')") == "2"
        first, second = server_status(directory)
        assert first.home == directory
        assert second.home.parent == directory
        assert second.home.name.startswith("conf-")
        assert sorted(processes_of(directory)["java"]) == sorted([first.pid, second.pid])
        if sys.platform == "linux":
            os.kill(second.supervisor_pid, signal.SIGKILL)
            until(lambda: process_start(second.pid) is None)
            assert server_status(directory) == (first,)
    finally:
        other.close()


def test_stopping_ends_every_server_of_the_directory(crowd: list[Client], directory: Path) -> None:
    running = len(server_status(directory))
    assert running >= 1
    assert stop_server(directory) == running
    assert processes_of(directory) == {"java": [], "supervisor": []}
    assert list(directory.rglob("server.json")) == []
    assert stop_server(directory) == 0
    assert server_status(directory) == ()


@pytest.mark.full
def test_a_client_whose_server_dies_is_told_and_gets_a_new_one_that_ends_by_itself(
    clients: Callable[..., Client], tmp_path: Path
) -> None:
    directory = tmp_path / "server"
    left_over = abandoned_state(directory)
    client = clients()
    client.open()
    assert client.answer() is None
    assert left_over.wait(10) == -signal.SIGTERM, "a server whose port is closed is ended before another one starts"
    (first,) = server_status(directory)

    os.kill(first.pid, signal.SIGKILL)
    began = time.monotonic()
    assert client.count() == {
        "error": f"The shared Spark server (process {first.pid}) has ended while it was in use. "
        f"Run this again: a new one is started. Why it ended may be in {directory / 'server.log'}."
    }
    assert time.monotonic() - began < 10
    until(lambda: process_start(first.supervisor_pid) is None)
    assert not (directory / "server.json").exists()

    client.open(idle_timeout=1.0)
    assert client.answer() is None
    (second,) = server_status(directory)
    assert second.pid != first.pid
    time.sleep(2.5)
    assert client.count() == 100, "held, it outlives its idle time"
    client.close()
    until(lambda: [process_start(second.pid), process_start(second.supervisor_pid)] == [None, None])
    assert processes_of(directory) == {"java": [], "supervisor": []}
    assert not (directory / "server.json").exists()
    assert list((directory / "leases").iterdir()) == []


def abandoned_state(directory: Path) -> subprocess.Popen[bytes]:
    """Writes the state of a server that lives and does not listen, and returns the process that plays it."""
    directory.mkdir(mode=0o700)
    process = subprocess.Popen(["sleep", "600"])
    write_private(directory / "server.json", json.dumps(a_state(process.pid, str(process_start(process.pid)))))
    return process


def a_state(pid: int, start: str) -> dict[str, Any]:
    return {
        "id": "0123456789abcdef",
        "pid": pid,
        "process_start": start,
        "supervisor_pid": pid,
        "supervisor_start": start,
        "port": 1,
        "token": "secret",
        "spark_version": "4.3.0",
        "conf_digest": "d",
        "started_at": 1.0,
    }


def test_a_state_names_processes_and_not_just_their_numbers(tmp_path: Path) -> None:
    me = str(process_start(os.getpid()))
    for pid, start, runs in [(os.getpid(), me, True), (os.getpid(), me + "1", False), (2**22 + 1, me, False)]:
        write_private(tmp_path / "server.json", json.dumps(a_state(pid, start)))
        state = read_state(tmp_path)
        assert isinstance(state, ServerState)
        assert state.runs() is runs
    assert server_status(tmp_path) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        json.dumps({**a_state(5, "1"), "port": "80"}),
        json.dumps({**a_state(5, "1"), "port": 65536}),
        json.dumps({**a_state(5, "1"), "pid": -1}),
        json.dumps({**a_state(5, "1"), "pid": True}),
        json.dumps({**a_state(5, "1"), "token": ""}),
        json.dumps({**a_state(5, "1"), "process_start": None}),
    ],
)
def test_a_damaged_state_counts_as_none(text: str, tmp_path: Path) -> None:
    write_private(tmp_path / "server.json", json.dumps(a_state(5, "1")))
    assert read_state(tmp_path) is not None
    write_private(tmp_path / "server.json", text)
    assert read_state(tmp_path) is None


def test_a_state_that_others_could_have_read_or_placed_counts_as_none(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    write_private(file, json.dumps(a_state(5, "1")))
    file.chmod(0o640)
    assert read_state(tmp_path) is None
    file.chmod(0o600)
    assert read_state(tmp_path) is not None
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    assert read_state(tmp_path) is None


def test_a_zombie_does_not_run() -> None:
    process = subprocess.Popen(["true"])
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE)
    assert process_start(process.pid) is None
    process.wait()


def test_what_keeps_a_server_from_starting_is_said(clients: Callable[..., Client], tmp_path: Path) -> None:
    directory = tmp_path / "server"
    client = clients({"spark.master": "nonsense"})
    client.open()
    text = client.answer()["error"]
    assert text.startswith("The shared Spark server did not start: its Java process ended with exit code 1.\n")
    assert "Master must either be yarn or start with spark, k8s, or local" in text
    assert text.endswith(f"The whole log is {directory / 'server.log'}.")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert not (directory / "spark.properties").exists(), "options may hold secrets"

    client.call = f"shared_session({str(directory)!r}, conf={{'spark.connect.grpc.binding.port': 5}}"
    client.open()
    assert client.answer() == {
        "error": "The shared Spark server sets 'spark.connect.grpc.binding.port' itself. Remove it from `conf`."
    }

    directory.chmod(0o770)
    client.call = f"shared_session({str(directory)!r}"
    client.open()
    assert "Other users can write to" in client.answer()["error"]


def test_a_start_that_hangs_is_given_up(clients: Callable[..., Client], tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    sleep = shutil.which("sleep")
    java.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "17"\' >&2 && exit\nexec {sleep} 600.25\n'
    )
    java.chmod(0o755)
    client = clients(JAVA_HOME=str(tmp_path / "jdk"))
    client.open(start_timeout=1.0)
    assert "did not start: it was not ready within 1 s." in client.answer()["error"]
    until(lambda: processes_of(tmp_path / "server") == {"java": [], "supervisor": []})
    assert [p.pid for p in psutil.process_iter(["cmdline"]) if "600.25" in (p.info["cmdline"] or [])] == []


def test_a_lock_that_is_not_given_back_is_said(clients: Callable[..., Client], tmp_path: Path) -> None:
    client = clients()
    client.ask("from pathlib import Path; from databox_contracts.spark.server_main import locked")
    client.answer()
    directory = tmp_path / "server"
    directory.mkdir(mode=0o700)
    client.ask(
        f"with locked(Path({str(directory / 'server.lock')!r}), timeout=0):\n    {client.call}, start_timeout=0.2)"
    )
    assert client.answer()["error"].startswith(f"Another process has held {directory / 'server.lock'} for 0.2 s.")
