"""How the calls of a session are repeated that talks to the host's shared Spark server."""

from __future__ import annotations

from pathlib import Path

import grpc
from pyspark.sql.connect.client.retries import DefaultPolicy

from databox_contracts.errors import SparkUnavailableError
from databox_contracts.spark.server_main import ServerState, process_start


class WhileServerRuns(DefaultPolicy):
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
