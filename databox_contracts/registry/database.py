"""Transactions on SQLite and PostgreSQL: whole or not at all, and tried again while the database is away."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, TimeoutError as PoolTimeoutError

from databox_contracts.errors import RegistryError, RegistryUnavailableError, RegistryUnusableError
from databox_contracts.registry.addresses import Address

T = TypeVar("T")

_WRITES: Final = "databox_writes"
_LONGEST_WAIT: Final = 1.0

# PostgreSQL's classes and codes of errors after which the same transaction may well succeed: lost connections, a server
# that stops or starts, conflicts with other transactions.
_PASSING_CLASSES: Final = ("08", "57P", "40", "53")
# A unique key that another transaction took at the same moment is seen the next time.
_PASSING_CODES: Final = ("55P03", "25006", "25P03", "23505")
_PASSING_WORDS: Final = ("database is locked", "database table is locked", "database schema is locked")

# Of a refused connection psycopg tells no code.
_LASTING_WORDS: Final = (
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "is not permitted",
    "no password supplied",
)


# Seconds to connect in; milliseconds after which a server that went away without a word is known to be away.
_CONNECTING: Final = {"connect_timeout": 10, "tcp_user_timeout": 30_000}
_LONGEST_PAUSE_MS: Final = 60_000


def utc_now() -> datetime:
    """The clock where none is given."""
    return datetime.now(UTC)


class Database:
    """An engine whose transactions are repeated when the database was locked, stopped or lost the connection.

    `patience` is in seconds, for one call in all. A transaction whose outcome the lost connection hides is repeated
    too: whoever writes has to see to it that the second time changes nothing.
    """

    def __init__(self, address: Address, *, patience: float = 30.0) -> None:
        self.address = address
        self.patience = patience
        self.is_sqlite = address.file is not None
        self._engine = _engine(address, patience)
        self._process = os.getpid()
        self._lock = threading.Lock()

    def write(self, work: Callable[[Connection], T]) -> T:
        """What `work` gives, in a transaction that may write; on SQLite nobody else writes meanwhile."""
        return self._run(work, writes=True)

    def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` gives, in a transaction that only reads."""
        return self._run(work, writes=False)

    def close(self) -> None:
        """Close all connections; the next transaction opens new ones."""
        self.engine.dispose()

    @property
    def engine(self) -> Engine:
        """The engine, with no connection of a process that this one was forked from."""
        with self._lock:
            if self._process != os.getpid():
                self._engine.dispose(close=False)
                self._process = os.getpid()
        return self._engine

    def _run(self, work: Callable[[Connection], T], *, writes: bool) -> T:
        deadline = time.monotonic() + self.patience
        wait = 0.02
        while True:
            try:
                with self.engine.connect().execution_options(**{_WRITES: writes}) as connection, connection.begin():
                    return work(connection)
            except (DBAPIError, PoolTimeoutError) as error:
                if not _passes(error):
                    raise self._failed(error) from None
                if time.monotonic() + wait > deadline:
                    raise self._unavailable(error) from None
            except SQLAlchemyError as error:
                raise self._failed(error) from None
            # Whoever waits for the same lock should not come back at the same time.
            time.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(wait * 2, _LONGEST_WAIT)

    def _unavailable(self, error: Exception) -> RegistryUnavailableError:
        return RegistryUnavailableError(
            f"the registry {self.address.shown} does not answer: {self._reason(error)}",
            hint=(
                "Another process holds its file locked; try again when it is done."
                if self.is_sqlite
                else "See that the server runs and takes connections from here, and try again."
            ),
        )

    def _failed(self, error: Exception) -> RegistryError:
        return RegistryUnusableError(
            f"the registry {self.address.shown} cannot be used: {self._reason(error)}",
            hint=(
                "See that it is a registry's file, and that file and directory can be written."
                if self.is_sqlite
                else "Check the URL, and that its user may use the database."
            ),
        )

    def _reason(self, error: Exception) -> str:
        """Why, without the statement, its values and the password."""
        cause: Any = getattr(error, "orig", None) or error
        text = getattr(getattr(cause, "diag", None), "message_primary", None) or str(cause)
        line = text.strip().splitlines()[0] if text.strip() else type(cause).__name__
        for secret in self.address.secrets:
            line = line.replace(secret, "***")
        return line[:300]


def _passes(error: Exception) -> bool:
    """Whether the same transaction may succeed when it is tried again."""
    if isinstance(error, PoolTimeoutError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return isinstance(cause, sqlite3.OperationalError) and any(word in str(cause) for word in _PASSING_WORDS)
    code = getattr(cause, "sqlstate", None)
    if code is not None:
        return str(code).startswith(_PASSING_CLASSES) or code in _PASSING_CODES
    if error.connection_invalidated:
        return True
    return type(cause).__name__ in ("OperationalError", "ConnectionTimeout") and not any(
        word in str(cause) for word in _LASTING_WORDS
    )


def _engine(address: Address, patience: float) -> Engine:
    if address.file is not None:
        return _sqlite_engine(address, patience)
    return _postgresql_engine(address, patience)


def _postgresql_engine(address: Address, patience: float) -> Engine:
    settings = {name: value for name, value in _CONNECTING.items() if name not in address.url.query}
    try:
        engine = create_engine(
            address.url,
            hide_parameters=True,
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",
            connect_args=settings,
        )
    except ModuleNotFoundError:
        raise RegistryError(
            "a registry in PostgreSQL needs psycopg", hint='pip install "databox_contracts[postgres]"'
        ) from None

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: object) -> None:
        # Whoever stops in the middle, or waits for one who did, must not keep everybody waiting for ever.
        cursor = connection.cursor()
        cursor.execute(f"SET lock_timeout = {max(1, int(patience * 1000))}")
        cursor.execute(f"SET idle_in_transaction_session_timeout = {_LONGEST_PAUSE_MS}")
        cursor.close()
        connection.commit()

    return engine


def _sqlite_engine(address: Address, patience: float) -> Engine:
    file = address.file
    assert file is not None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegistryError(
            f"the registry {address.shown} cannot be used: {error.strerror}", hint="Name a file that can be written."
        ) from None
    arguments = {"timeout": min(patience, 10.0), "check_same_thread": False}
    engine = create_engine(address.url, hide_parameters=True, connect_args=arguments)

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _: object) -> None:
        # The driver would begin transactions itself, and too late: a reader that turns writer may find itself outrun.
        connection.isolation_level = None
        cursor = connection.cursor()
        if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            cursor.execute("PRAGMA journal_mode = WAL")
        # Also the last transaction outlives a power failure.
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        # What is deleted, such as values that are masked from now on, is overwritten.
        cursor.execute("PRAGMA secure_delete = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _began(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
