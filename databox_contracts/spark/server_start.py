"""What a shared Spark server is started with, and starting it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import secrets
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.version import __version__ as spark_version

from databox_contracts.errors import SparkUnavailableError
from databox_contracts.spark import server_main
from databox_contracts.spark.server_main import ServerState, read_state
from databox_contracts.spark.session import is_local, require_java, spark_conf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from databox_contracts.spark.session import ConfValue

# The supervisor gives up by itself after the start timeout, and then ends what it started: seconds for that.
_GRACE = 30.0
_SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_OURS = ("spark.connect.authenticate.token", "spark.connect.grpc.binding.", "spark.remote", "spark.api.mode")
# They would make the server a client, or a second gateway.
_UNSET = (
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_GATEWAY_SECRET",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_API_MODE",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_LOCAL_REMOTE",
    "SPARK_REMOTE",
)


def server_conf(conf: Mapping[str, ConfValue] | None) -> dict[str, str]:
    """All options of the server that is asked for with `conf`."""
    for key in conf or {}:
        if key.startswith(_OURS):
            raise SparkUnavailableError(f"The shared Spark server sets {key!r} itself.", hint="Remove it from `conf`.")
    master = str((conf or {}).get("spark.master", "local[*]"))
    settings = {"spark.app.name": "databox_contracts", **spark_conf(conf, master=master)}
    if is_local(master):
        # Driver and executor are one process, yet their ports are open to all users of the host.
        settings.setdefault("spark.authenticate", "true")
    return settings


def conf_digest(settings: Mapping[str, str]) -> str:
    """What two processes must have in common to share a server, as one word."""
    place = [platform.node(), os.getcwd(), sys.executable, spark_version, _spark_home()]
    text = json.dumps([sorted(settings.items()), place])
    return hashlib.sha256(text.encode()).hexdigest()


def _spark_home() -> str:
    if home := os.environ.get("SPARK_HOME"):
        return home
    package = importlib.util.find_spec("pyspark")
    assert package is not None
    assert package.origin is not None
    return str(Path(package.origin).parent)


def start_server(
    home: Path,
    base: Path,
    lock: int,
    settings: dict[str, str],
    digest: str,
    idle_timeout: float,
    start_timeout: float,
) -> ServerState:
    """Starts a server in `home` and returns its state when it answers, within `start_timeout` seconds.

    `lock` is the descriptor of the locked `base/server.lock`. Raises SparkUnavailableError with the last lines that the
    server printed.
    """
    require_java()
    token = secrets.token_urlsafe(32)
    spark_home = _spark_home()
    # Of two such options Java takes the last.
    own_log = f'"-Dlog4j2.configurationFile={(home / "log4j2.properties").as_uri()}"'
    java_options = f"{settings.get('spark.driver.extraJavaOptions', '')} {own_log}".strip()
    properties = {
        **settings,
        "spark.driver.extraJavaOptions": java_options,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    environment = {
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        "SPARK_HOME": spark_home,
        # In the environment nobody else can see it; on a command line everybody could.
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
    }
    if is_local(settings["spark.master"]):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    order = {
        "id": secrets.token_hex(8),
        "token": token,
        "lock": lock,
        "lock_path": str(base / "server.lock"),
        "command": [
            str(Path(spark_home, "bin", "spark-submit")),
            "--load-spark-defaults",
            "--properties-file",
            str(home / "spark.properties"),
            "--class",
            _SERVER_CLASS,
        ],
        "settings": "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in properties.items()),
        "environment": environment,
        "unset": _UNSET,
        "spark_version": spark_version,
        "conf_digest": digest,
        "idle_timeout": idle_timeout,
        "start_timeout": start_timeout,
    }
    outcome, complaint = _launch_supervisor(home, order, lock, start_timeout)
    state = read_state(home)
    if state is None or state.id != order["id"]:
        reason = outcome.get("error") or "its supervisor ended"
        raise SparkUnavailableError(
            f"The shared Spark server did not start: {reason}.{_last_words(home / 'server.log', complaint, token)}",
            hint=f"The whole log is {home / 'server.log'}.",
        )
    return state


def _launch_supervisor(
    home: Path, order: dict[str, object], lock: int, start_timeout: float
) -> tuple[dict[str, str], str]:
    """Starts the supervisor, which leaves this process at once, and waits for its one line."""
    # -P and the script's path: neither the working directory nor this package's import is needed.
    command = [sys.executable, "-P", server_main.__file__, str(home)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The supervisor keeps the lock until the state is written, even if this process is killed before that.
        pass_fds=[lock],
        start_new_session=True,
    )
    with process:
        try:
            answer, complaint = process.communicate(json.dumps(order), timeout=start_timeout + _GRACE)
        except subprocess.TimeoutExpired:
            return {"error": "its supervisor does not answer"}, ""
    outcome = {}
    with suppress(ValueError):
        outcome = json.loads(answer)
    return outcome, complaint


def _last_words(log: Path, complaint: str, token: str) -> str:
    printed = complaint
    with suppress(OSError):
        printed += log.read_text(errors="replace")
    lines = [line.strip()[:300] for line in printed.replace(token, "***").splitlines()]
    telling = [line for line in lines if line and not line.startswith(("at ", "..."))]
    return "".join(f"\n  {line}" for line in telling[-5:]) + ("\n" if telling else "")


def _escaped(text: str) -> str:
    """A key or value as Java's properties files spell it."""
    escapes = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "=": "\\=", ":": "\\:", " ": "\\ "}
    return "".join(escapes.get(character, character) for character in text)
