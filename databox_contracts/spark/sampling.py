"""A few offending values for each failed rule, all in one more pass, the same ones however the rows are partitioned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window, functions as F
from pyspark.sql.types import DataType as SparkType, StringType

from databox_contracts.spark.predicates import Test

LONGEST: Final = 200
"""Characters of a text that a sample shows."""


def as_json(value: Column) -> Column:
    """A value as the text of a JSON object `{"v": …}`; instants are in UTC."""
    return F.to_json(F.struct(value.alias("v")), {"timeZone": "UTC", "ignoreNullFields": "false"})


@dataclass(frozen=True, slots=True)
class Offending:
    """Whether a row breaks a rule, and its offending values as an array of JSON texts."""

    violating: Column
    values: Column


def sample_values(view: DataFrame, failed: Sequence[Offending], limit: int) -> list[tuple[Any, ...]]:
    """For each rule, in order, up to `limit` distinct values in ascending order of their text. One job."""
    # Arrays are made for the few rows that have something in them.
    broken = view.where(reduce(or_, (one.violating for one in failed)))
    found = [F.transform(one.values, _of_rule(at)) for at, one in enumerate(failed)]
    exploded = broken.select(F.explode(F.flatten(F.array(*found))).alias("one")).select("one.*").distinct()
    # A limit per rule below the shuffle keeps this bounded, whatever number of values offends.
    rank = F.row_number().over(Window.partitionBy("rule").orderBy("value"))
    kept = exploded.withColumn("rank", rank).where(F.col("rank") <= limit).orderBy("rule", "rank").collect()
    return [tuple(json.loads(row["value"])["v"] for row in kept if row["rule"] == at) for at in range(len(failed))]


def _of_rule(at: int) -> Test:
    return lambda value: F.struct(F.lit(at).alias("rule"), value.alias("value"))


def shown_as(actual: SparkType) -> Test:
    """How a value of that type is shown: as JSON, a text not in its full length."""
    if isinstance(actual, StringType):
        return lambda value: as_json(F.substring(value, 1, LONGEST))
    return as_json
