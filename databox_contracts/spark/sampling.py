"""A few offending values for each failed rule, all in one more pass, the same ones however the rows are partitioned.

Of a rule that many rows break, only values of some hashes are tested, made into texts and compared, so that a rule that
all rows break costs hardly more than one that few do. Where these are too few values, all of them are looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window, functions as F
from pyspark.sql.types import DataType as SparkType, MapType, StringType

from databox_contracts.spark.compat import VARIANT
from databox_contracts.spark.predicates import Test
from databox_contracts.spark.schema import holds

COMPARED: Final = 8192
"""Of about so many values that break a rule the first ones are found; of more of them, so many are drawn."""
COMPARED_IF_COSTLY: Final = 128
"""The same where the test of a value takes longer than its hash and reading it."""
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


def drawn_of(broken: int, *, costly: bool) -> int:
    """One in how many values is drawn of a rule that so many rows break; 1 is all of them."""
    return max(1, broken // (COMPARED_IF_COSTLY if costly else COMPARED))


def draw(actual: SparkType, one_in: int) -> Test | None:
    """Whether a value of that type is among those drawn, by its hash; None where all are, as of a type without one."""
    if one_in == 1 or any(kind is not None and holds(actual, kind) for kind in (MapType, VARIANT)):
        return None
    below = F.lit(2**64 // one_in - 2**63)
    return lambda value: F.xxhash64(value) < below


def sample_values(view: DataFrame, failed: Sequence[Offending], limit: int) -> list[tuple[Any, ...]]:
    """For each rule, in order, up to `limit` distinct values in ascending order of their text. One job."""
    # Arrays are made for the few rows that have something in them.
    broken = view.where(reduce(or_, (one.violating for one in failed)))
    found = [F.transform(one.values, of_rule(at)) for at, one in enumerate(failed)]
    exploded = broken.select(F.explode(F.flatten(F.array(*found))).alias("one")).select("one.*").distinct()
    kept = lowest(exploded, limit).collect()
    return [in_order((row["value"] for row in kept if row["rule"] == at), limit) for at in range(len(failed))]


def lowest(values: DataFrame, limit: int) -> DataFrame:
    """Of the distinct values of each rule (columns `rule` and `value`), at least the first `limit` by their texts.

    A limit per rule below the shuffle keeps this bounded, whatever number of values offends.
    """
    rank = F.row_number().over(Window.partitionBy("rule").orderBy(F.col("value").asc_nulls_first()))
    # One more, for a null that stands before the values.
    return values.withColumn("rank", rank).where(F.col("rank") <= limit + 1).drop("rank")


def in_order(texts: Iterable[str], limit: int) -> tuple[Any, ...]:
    """The first values by their texts."""
    return tuple(json.loads(text)["v"] for text in sorted(texts)[:limit])


def of_rule(at: int) -> Test:
    """A text as the value of the rule of that number."""
    return lambda value: F.struct(F.lit(at).alias("rule"), value.alias("value"))


def shown_as(actual: SparkType) -> Test:
    """How a value of that type is shown: as JSON, a text not in its full length."""
    if isinstance(actual, StringType):
        return lambda value: as_json(F.substring(value, 1, LONGEST))
    return as_json
