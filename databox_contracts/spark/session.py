"""Obtaining Spark sessions: one in this process, or one of a Spark Connect server."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databox_contracts.errors import SparkUnavailableError
from databox_contracts.spark.compat import require_connect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.connect.client.retries import RetryPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession

ConfValue = str | int | float | bool

# INT96, Spark's default for Parquet timestamps, has no minimum and maximum in the footers.
SESSION_CONF: dict[str, str] = {
    "spark.driver.memory": "1g",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

OLDEST_JAVA = 17
_JAVA_HINT = "Install Java 17 or 21 and set JAVA_HOME to it, or put its bin directory on the PATH."
# 50, 200 and 800 ms apart.
_FIRST_CALL_RETRIES = 3
_CONNECT_MARK = "SPARK_CONNECT_MODE_ENABLED"


def is_local(master: str) -> bool:
    """Whether driver and executors of this master are one process."""
    return master == "local" or master.startswith("local[")


def spark_conf(conf: Mapping[str, ConfValue] | None = None, *, master: str) -> dict[str, str]:
    """Our defaults overlaid with `conf`, its values spelled as Spark spells them."""
    asked = {}
    for key, value in (conf or {}).items():
        if not key.startswith("spark."):
            raise SparkUnavailableError(
                f"{key!r} is no Spark option.", hint="Spark options begin with 'spark.', as in 'spark.driver.memory'."
            )
        asked[key] = str(value).lower() if isinstance(value, bool) else str(value)
    # Hadoop's file systems set the mode of what they write by a mask of their own, whatever the user's is.
    umask = {"spark.hadoop.fs.permissions.umask-mode": f"{_umask():03o}"} if is_local(master) else {}
    # Or a regular expression that runs out of stack on one text would end the process, and the session with it.
    alive = {"spark.executor.killOnFatalError.depth": "0"} if is_local(master) else {}
    return {**SESSION_CONF, **umask, **alive, **asked, "spark.master": master}


def _umask() -> int:
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("Umask:")[2].split()[0], 8)
    except (OSError, IndexError, ValueError):
        # Asking the system means changing it for a moment, for all threads.
        mask = os.umask(0o077)
        os.umask(mask)
        return mask


@lru_cache
def _java_version(java: str) -> str | None:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return found.group(1) if found else None


def require_java() -> str:
    """The `java` command that Spark will use; an error that names the way out where Spark could not run on it."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        raise SparkUnavailableError("Spark needs Java, and none was found.", hint=_JAVA_HINT)
    version = _java_version(java)
    if version is None:
        source = f"JAVA_HOME is {home!r}, but {java!r}" if home else repr(java)
        raise SparkUnavailableError(f"Spark needs Java: {source} does not run.", hint=_JAVA_HINT)
    # Java 8 calls itself 1.8.
    major = int(re.match(r"(?:1\.)?(\d+)", version).group(1))  # type: ignore[union-attr]
    if major < OLDEST_JAVA:
        raise SparkUnavailableError(f"Spark cannot run on Java {version} ({java}).", hint=_JAVA_HINT)
    if shutil.which("bash") is None:
        raise SparkUnavailableError("Spark's launch scripts need bash, and none is on the PATH.", hint="Install bash.")
    return java


def local_session(
    app_name: str, *, master: str = "local[*]", conf: Mapping[str, ConfValue] | None = None
) -> SparkSession:
    """A classic session whose driver is this process.

    Where one runs already, the result is a new session on it with the `spark.sql.` options asked for: the first one's
    configuration stays as it was, and master and memory are the first one's. The UI is off unless `conf` enables it.
    """
    if _CONNECT_MARK in os.environ:
        raise SparkUnavailableError(
            "This process already talks to a Spark Connect server, and PySpark cannot do both.",
            hint="Use that session, or a process of its own for the classic one.",
        )
    settings = spark_conf(conf, master=master)
    if runs_classic():
        # Without options the builder returns what runs and leaves it as it is.
        session = SparkSession.builder.getOrCreate().newSession()
        for key, value in settings.items():
            if key.startswith("spark.sql.") and session.conf.isModifiable(key):
                session.conf.set(key, value)
        return session
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(app_name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise SparkUnavailableError(
            f"Spark did not start ({error}).", hint="The Java process has printed the reason above."
        ) from error


def runs_classic() -> bool:
    """Whether this process has a classic session."""
    # PySpark has no public question for this: getActiveSession answers for the calling thread only.
    return SparkContext._active_spark_context is not None


def refuse_classic() -> None:
    """Raises where this process already has a classic session: PySpark's functions serve only one kind."""
    if runs_classic():
        raise SparkUnavailableError(
            "This process already has a classic Spark session, and PySpark cannot do both.",
            hint="Stop it first (spark.stop()), or use it instead of a shared one.",
        )


def connect_session(url: str, *, token: str | None = None, retry: RetryPolicy | None = None) -> SparkSession:
    """A new session of the Spark Connect server at `url` (`sc://host:port`), which must answer within seconds.

    With a `token` and without `use_ssl=true` in the URL the host must be `localhost`. `retry` rules over the
    session's later calls; PySpark's own policy tries for ten minutes.
    """
    require_connect()
    refuse_classic()
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    marked = _CONNECT_MARK in os.environ
    session = None
    try:
        channel = DefaultChannelBuilder(url)
        if token is not None:
            channel.set("token", token)
        if channel.host in ("localhost", "127.0.0.1"):
            # gRPC would send even these through a proxy of the environment.
            channel.setChannelOption("grpc.enable_http_proxy", 0)
        # PySpark's functions look for this mark to know which kind of column to build.
        os.environ[_CONNECT_MARK] = "1"
        session = ConnectSession.builder.channelBuilder(channel).create()
        _reach(session)
    except PySparkException as error:
        if session is not None:
            session.release_session_on_close = False
            session.stop()
        if not marked:
            os.environ.pop(_CONNECT_MARK, None)
        raise SparkUnavailableError(
            f"The Spark Connect server at {url.partition('/;')[0]} cannot be used ({_first_line(error)}).",
            hint="Check that it runs, and its address and token.",
        ) from error
    if retry is not None:
        session.client.set_retry_policies([retry])
    # PySpark writes every failed query there too, with the values that its message quotes; the exception has it all.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return cast("SparkSession", session)


def _reach(session: ConnectSession) -> None:
    """Makes the session's first call, which PySpark would repeat for ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    usual = session.client.get_retry_policies()
    session.client.set_retry_policies([DefaultPolicy(max_retries=_FIRST_CALL_RETRIES)])
    with warnings.catch_warnings():
        # That the retries are used up is said by the error.
        warnings.simplefilter("ignore")
        _ = session.version
    session.client.set_retry_policies(usual)


def _first_line(error: PySparkException) -> str:
    text = str(error)
    details = re.search(r'details = "([^"]*)"', text)
    return details.group(1) if details else text.strip().splitlines()[0]
