"""Exact uniqueness: rows are grouped by a 64-bit hash of their key, and only those that collide are compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import DataType as SparkType, DoubleType, FloatType, MapType

from databox_contracts.spark.compat import VariantType
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.sampling import as_json
from databox_contracts.spark.schema import type_text


@dataclass(frozen=True, slots=True)
class Duplicates:
    """How often a key repeats: rows beyond the first of each key, keys that occur more than once, and some of them."""

    surplus_rows: int
    keys: int
    samples: tuple[tuple[Any, ...], ...] = ()


NONE: Final = Duplicates(0, 0)
FEW: Final = 1000
"""So many colliding hashes are named in a query; with more of them, all rows are looked at again."""


def find_duplicates(view: DataFrame, key: list[Column], *, samples: int) -> Duplicates:
    """The duplicates of a key; a row with a null part is not compared. `samples` keys at most, in ascending order.

    One query where no two hashes are equal, two where a few are. Raises `NotEvaluableError` for a part that Spark
    cannot compare.
    """
    keyed = with_key(view, key)
    hashes = colliding_hashes(keyed)
    if not hashes:
        return NONE
    repeated = repeated_keys(keyed, hashes)
    parts = [F.col(name) for name in repeated.columns if name != "rows"]
    shown = F.struct(*(as_json(part) for part in parts))
    if samples > 0 and len(hashes) <= FEW:
        # Few enough to be sorted where they are counted.
        ordered = F.array_sort(F.collect_list(F.struct(F.struct(*parts), shown.alias("shown"))))
        first = F.transform(F.slice(ordered, 1, samples), lambda one: one["shown"])
    else:
        first = F.array()
    keys, surplus, found = repeated.agg(F.count(F.lit(1)), F.sum(F.col("rows") - 1), first).collect()[0]
    if not keys:
        return NONE
    if samples > 0 and len(hashes) > FEW:
        found = [row[0] for row in repeated.orderBy(*parts).limit(samples).select(shown).collect()]
    return Duplicates(int(surplus), int(keys), tuple(tuple(json.loads(part)["v"] for part in key) for key in found))


def with_key(view: DataFrame, key: list[Column]) -> DataFrame:
    """The key of every row that has a whole one: its parts `k0…`, and `hash`."""
    parts = view.select(*(part.alias(f"k{at}") for at, part in enumerate(comparable(view, key))))
    whole = parts.where(reduce(and_, (F.col(name).isNotNull() for name in parts.columns)))
    return whole.select("*", F.xxhash64(*parts.columns).alias("hash"))


def comparable(view: DataFrame, key: list[Column]) -> list[Column]:
    """The parts of a key such that equal values hash alike: 0.0 and -0.0 are one value, and would be two hashes.

    Raises `NotEvaluableError` for a type that Spark cannot compare.
    """
    parts = []
    for part, field in zip(key, view.select(*key).schema.fields, strict=True):
        if _holds(field.dataType, MapType) or _holds(field.dataType, VariantType):
            raise NotEvaluableError(f"Spark cannot compare values of type {type_text(field.dataType)}")
        # 0.0 and -0.0 are one value to a comparison and two to a hash.
        parts.append(
            part + F.lit(0.0).cast(field.dataType) if isinstance(field.dataType, DoubleType | FloatType) else part
        )
    return parts


def colliding_hashes(keyed: DataFrame) -> list[int]:
    """Hashes that more than one row has: all of them, or one more than `FEW`."""
    repeated = keyed.groupBy("hash").agg(F.count(F.lit(1)).alias("rows")).where("rows > 1").select("hash")
    return [row[0] for row in repeated.limit(FEW + 1).collect()]


def repeated_keys(keyed: DataFrame, hashes: list[int]) -> DataFrame:
    """The keys that more than one row really has, each with its number of `rows`; equal hashes alone do not count."""
    few = len(hashes) <= FEW
    suspects = keyed.where(f"hash in ({', '.join(f'{value}L' for value in hashes)})") if few else keyed
    parts = [name for name in keyed.columns if name != "hash"]
    return suspects.groupBy(*parts).agg(F.count(F.lit(1)).alias("rows")).where("rows > 1")


def _holds(actual: SparkType, wanted: type[SparkType]) -> bool:
    if isinstance(actual, wanted):
        return True
    inner = [getattr(actual, name, None) for name in ("elementType", "keyType", "valueType")]
    inner += [field.dataType for field in getattr(actual, "fields", [])]
    return any(part is not None and _holds(part, wanted) for part in inner)
