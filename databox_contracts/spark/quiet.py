"""A session for one command of a terminal: it says nothing by itself, and ends with the command."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from pyspark.sql import SparkSession

from databox_contracts.errors import SparkUnavailableError
from databox_contracts.spark.session import connect_session, local_session, runs_classic


@contextmanager
def command_session(master: str) -> Iterator[SparkSession]:
    """A session on a Spark master, or of a Connect server where `master` is an `sc://` URL, stopped at the end.

    What the Java process prints does not reach the terminal, since Spark's errors quote rows. Raises
    `SparkUnavailableError`, with the last of it when Spark does not start.
    """
    if master.startswith("sc://"):
        session = connect_session(master)
        try:
            yield session
        finally:
            session.stop()
        return
    if runs_classic():
        # Somebody else's, and for them to stop.
        yield local_session("databox-contracts", master=master)
        return
    with tempfile.TemporaryFile() as said:
        try:
            with _standard_error_into(said):
                options = {"spark.sql.shuffle.partitions": "8", "spark.log.level": "ERROR"}
                session = local_session("databox-contracts", master=master, conf=options)
        except SparkUnavailableError as error:
            said.seek(0)
            lines = [line for line in said.read().decode(errors="replace").splitlines() if "Exception" in line]
            raise SparkUnavailableError(error.message, hint=lines[-1] if lines else error.hint) from error
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def _standard_error_into(file: BinaryIO) -> Iterator[None]:
    """The Java process inherits the descriptor it is started with, and keeps it."""
    own = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)
