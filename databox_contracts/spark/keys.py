"""Exact uniqueness: 64-bit hashes of the keys are compared, and only the keys whose hashes are equal are looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import MapType

from databox_contracts.spark.collations import by_code_points
from databox_contracts.spark.compat import VARIANT
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.sampling import as_json
from databox_contracts.spark.schema import holds, type_text
from databox_contracts.spark.zeros import one_zero

MEMORY: Final = 128 * 2**20
"""So many bytes of hashes, 8 for each row and key, are brought to the driver and sorted there; Spark groups more."""
FEW: Final = 1000
"""So many colliding hashes are named in a query."""
MANY: Final = 10_000
"""So many colliding hashes are sent to where the rows are; with more of them, all rows are looked at again."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """How often a key repeats: rows beyond the first of each key, keys that occur more than once, and some of them."""

    surplus_rows: int
    keys: int
    samples: tuple[tuple[Any, ...], ...] = ()


_INCOMPARABLE: Final = tuple(kind for kind in (MapType, VARIANT) if kind is not None)

NONE: Final = Duplicates(0, 0)


class Key:
    """A key of a view's rows, and how many of its duplicates are to be shown.

    Raises `NotEvaluableError` for a part that Spark cannot compare.
    """

    def __init__(self, view: DataFrame, columns: list[Column], *, samples: int) -> None:
        self.view = view
        self.parts = comparable(view, columns)
        self.samples = samples

    @property
    def keyed(self) -> DataFrame:
        """As `with_key`."""
        return _keyed(self.view, self.parts)

    @property
    def hash(self) -> Column:
        """The hash of the row's key, null where a part of it is."""
        return F.when(reduce(and_, (part.isNotNull() for part in self.parts)), F.xxhash64(*self.parts))


def find_all_duplicates(keys: Sequence[Key], *, rows: int, memory: int = MEMORY) -> list[Duplicates]:
    """The duplicates of several keys of one view, which has so many rows; a row with a null part is not compared.

    Where the hashes of all keys fit in so many bytes of memory they are taken in one scan. Each key that has equal
    hashes needs one more query.
    """
    if fit_here(keys, rows, memory=memory):
        colliding = sorted_here(keys)
    else:
        colliding = [colliding_hashes(key.keyed, rows, memory=memory) for key in keys]
    return [confirmed(key.keyed, found, samples=key.samples) for key, found in zip(keys, colliding, strict=True)]


def fit_here(keys: Sequence[Key], rows: int, *, memory: int = MEMORY) -> bool:
    """Whether the hashes of so many rows can be sorted on the driver."""
    return can_bring_arrow(keys[0].view) and 8 * rows * len(keys) <= memory


def sorted_here(keys: Sequence[Key]) -> list[list[int]]:
    """The colliding hashes of each key of one view, sorted on the driver after one scan. See `colliding_hashes`."""
    return _sorted_here(keys[0].view.select(*(key.hash.alias(f"h{at}") for at, key in enumerate(keys))))


def confirmed(keyed: DataFrame, hashes: Sequence[int], *, samples: int) -> Duplicates:
    """The real duplicates among the keys with those colliding hashes, which are as `colliding_hashes` gives them."""
    if not hashes:
        return NONE
    repeated = repeated_keys(keyed, hashes)
    parts = [F.col(name) for name in repeated.columns if name != "rows"]
    shown = F.struct(*(as_json(part) for part in parts))
    if samples > 0 and len(hashes) <= MANY:
        # Few enough to be sorted where they are counted.
        ordered = F.array_sort(F.collect_list(F.struct(F.struct(*parts), shown.alias("shown"))))
        first = F.transform(F.slice(ordered, 1, samples), lambda one: one["shown"])
    else:
        first = F.array()
    keys, surplus, found = repeated.agg(F.count(F.lit(1)), F.sum(F.col("rows") - 1), first).collect()[0]
    if not keys:
        return NONE
    if samples > 0 and len(hashes) > MANY:
        found = [row[0] for row in repeated.orderBy(*parts).limit(samples).select(shown).collect()]
    return Duplicates(int(surplus), int(keys), tuple(tuple(json.loads(part)["v"] for part in key) for key in found))


def with_key(view: DataFrame, key: list[Column]) -> DataFrame:
    """The key of every row that has a whole one: its parts `k0…`, and `hash`."""
    return _keyed(view, comparable(view, key))


def _keyed(view: DataFrame, comparables: list[Column]) -> DataFrame:
    parts = view.select(*(part.alias(f"k{at}") for at, part in enumerate(comparables)))
    whole = parts.where(reduce(and_, (F.col(name).isNotNull() for name in parts.columns)))
    return whole.select("*", F.xxhash64(*parts.columns).alias("hash"))


def comparable(view: DataFrame, key: list[Column]) -> list[Column]:
    """The parts of a key as values that are equal are shown alike: 0.0 and -0.0 are one value, and two texts.

    Raises `NotEvaluableError` for a type that Spark cannot compare.
    """
    parts = []
    for part, field in zip(key, view.select(*key).schema.fields, strict=True):
        if any(holds(field.dataType, kind) for kind in _INCOMPARABLE):
            raise NotEvaluableError(f"Spark cannot compare values of type {type_text(field.dataType)}")
        parts.append(one_zero(by_code_points(part, field.dataType), field.dataType))
    return parts


# --- which hashes collide ---------------------------------------------------------------------------------------------


def colliding_hashes(keyed: DataFrame, rows: int | None = None, *, memory: int = MEMORY) -> list[int]:
    """Hashes that more than one row has, in ascending order: all of them, or one more than `MANY`.

    They are sorted on the driver where `rows` of them fit in so many bytes of memory, else grouped by Spark.
    """
    if rows is not None and 8 * rows <= memory and can_bring_arrow(keyed):
        return _sorted_here(keyed.select("hash"))[0]
    repeated = keyed.groupBy("hash").agg(F.count(F.lit(1)).alias("rows")).where("rows > 1").select("hash")
    return sorted(row[0] for row in repeated.limit(MANY + 1).collect())


def can_bring_arrow(df: DataFrame) -> bool:
    """Whether this PySpark gives a DataFrame's rows as an Arrow table (4.0 and later)."""
    return hasattr(df, "toArrow")


def _sorted_here(hashes: DataFrame) -> list[list[int]]:
    table = hashes.toArrow()
    found = []
    for name in hashes.columns:
        values = _own_array(table.column(name))
        # One key after the other, so that there is no second copy of all of them.
        table = table.drop_columns([name])
        values.sort()
        found.append(_repeated(values))
    return found


def _own_array(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    values: npt.NDArray[np.int64] = column.drop_null().to_numpy()
    return values if values.flags.writeable else values.copy()


def _repeated(ascending: npt.NDArray[np.int64]) -> list[int]:
    again = ascending[1:][ascending[1:] == ascending[:-1]]
    return [int(value) for value in np.unique(again)[: MANY + 1]]


# --- which keys really repeat -----------------------------------------------------------------------------------------


def repeated_keys(keyed: DataFrame, hashes: Sequence[int]) -> DataFrame:
    """The keys that more than one row really has, each with its number of `rows`; equal hashes alone do not count.

    `hashes` are those of `colliding_hashes`, which are all where there are at most `MANY`.
    """
    if len(hashes) <= FEW:
        suspects = keyed.where(f"hash in ({', '.join(f'{value}L' for value in hashes)})")
    elif len(hashes) <= MANY:
        wanted = keyed.sparkSession.createDataFrame([(value,) for value in hashes], "hash long")
        suspects = keyed.join(F.broadcast(wanted), "hash", "left_semi")
    else:
        suspects = keyed
    parts = [name for name in keyed.columns if name != "hash"]
    return suspects.groupBy(*parts).agg(F.count(F.lit(1)).alias("rows")).where("rows > 1")
