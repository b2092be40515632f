"""Resources: where assets and checks get their Spark session from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SharedSparkResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Sessions of one Spark server that all steps on a host share; see `databox_contracts.spark.shared_session`.

    The server is started by the first step that asks for a session, not when code is loaded. `spark_session` is the
    name that dagster-pyspark's resources use: they and this one stand in for each other.
    """

    directory: str = Field(
        description="Where the server keeps its state, lock and log; made if missing. Only its owner may write to it."
    )
    conf: dict[str, Any] = Field(default={}, description="Spark options, such as spark.driver.memory or spark.master.")
    idle_timeout: float = Field(default=300.0, description="Seconds that the server stays after its last client.")

    @property
    def spark_session(self) -> SparkSession:
        """This process's session, started on first use and again after the server has ended."""
        # Loading definitions must stay free of pyspark.
        from databox_contracts.spark.server import shared_session

        return shared_session(self.directory, conf=self.conf, idle_timeout=self.idle_timeout)
