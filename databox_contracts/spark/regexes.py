"""Regular expressions compiled by the Java that runs Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pyspark.sql import SparkSession, functions as F

from databox_contracts.spark.failures import SPARK_ERRORS

_REASON: Final = re.compile(r"PatternSyntaxException: (.+?)(?: near index (\d+))?$", re.MULTILINE)


def refused(spark: SparkSession, patterns: Sequence[str]) -> dict[str, str]:
    """Those of the expressions, in Java's syntax, that Java does not compile, each with its reason.

    All are tried in one job; only where that fails does each run alone, since Spark does not say which it was.
    """
    if not patterns or _reason(spark, patterns) is None:
        return {}
    return {pattern: reason for pattern in patterns if (reason := _reason(spark, [pattern])) is not None}


def _reason(spark: SparkSession, patterns: Sequence[str]) -> str | None:
    """Why one of them is refused; None where all are compiled."""
    # As a column they are compiled when the job runs; as literals, one by one while it is planned.
    tried = spark.createDataFrame([(pattern,) for pattern in patterns], "pattern string")
    try:
        tried.select(F.rlike(F.lit(""), F.col("pattern"))).collect()
    except SPARK_ERRORS as error:
        found = _REASON.search(str(error))
        if found is None:
            return "it is no regular expression of Java"
        return found[1] + (f" near character {int(found[2]) + 1}" if found[2] is not None else "")
    return None
