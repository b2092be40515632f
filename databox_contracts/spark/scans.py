"""Whether a DataFrame is cheap to read column by column, by what Spark says of its plan."""

from __future__ import annotations

import re
import secrets
from typing import Final

from pyspark.sql import DataFrame

from databox_contracts.spark.failures import SPARK_ERRORS

_STEP: Final = re.compile(r"^[\s:|+-]*(?:\*\s?\(\d+\) |\* )?(\w+) ?(\w*)")
_PASSED_ON: Final = ("AdaptiveSparkPlan", "Project", "ColumnarToRow", "CometColumnarToRow")
_IN_MEMORY: Final = ("InMemoryTableScan", "LocalTableScan", "Range")
_FILES: Final = ("FileScan", "BatchScan")
_COLUMNAR: Final = ("parquet", "orc")


def reads_by_column(df: DataFrame) -> bool:
    """Whether several queries over disjoint columns read no more than a single one over all of them would.

    True for columnar files, a cache or a range with nothing but columns made of columns above; False for all that would
    be done again for each query (a filter, a join, a text file, Python), and where Spark does not say.
    """
    name = f"databox_{secrets.token_hex(8)}"
    spark = df.sparkSession
    try:
        df.createOrReplaceTempView(name)
        try:
            plan = spark.sql(f"explain select * from {name}").collect()[0][0]
        finally:
            spark.catalog.dropTempView(name)
    except SPARK_ERRORS:
        return False
    return is_a_scan(plan)


def is_a_scan(plan: str) -> bool:
    """The same, of the text of a physical plan."""
    for line in plan.splitlines()[1:]:
        step = _STEP.match(line)
        name, kind = (step[1], step[2]) if step is not None else ("", "")
        if name in _IN_MEMORY:
            return True
        if name in _FILES:
            return kind.lower() in _COLUMNAR
        if name not in _PASSED_ON:
            return False
    return False
