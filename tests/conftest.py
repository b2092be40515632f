"""What all tests may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The suite's one classic session. Its REST API (`spark.sparkContext.uiWebUrl`) lists the jobs that ran."""
    from databox_contracts.spark.session import local_session

    session = local_session(
        "tests",
        master="local[2]",
        conf={
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.ui.enabled": True,
            "spark.ui.port": 0,
        },
    )
    yield session
    session.stop()
