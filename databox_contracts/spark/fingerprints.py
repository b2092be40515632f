"""Whether what was written reads back the same: a sum over the hashes of all rows, taken in the write's own job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Observation, functions as F
from pyspark.sql.types import ArrayType, DataType as SparkType, MapType, StructField, StructType

from databox_contracts.spark.failures import SPARK_ERRORS, in_words, unlogged
from databox_contracts.spark.partitioning import NULL_PARTITION
from databox_contracts.spark.table_files import Layout, column

_TEXTS: Final = ("string", "char", "varchar")
_ROWS: Final = "rows"
_HASHES: Final = "hashes"


class Fingerprint:
    """What a write is observed for; asks nothing of a table whose format and partitions keep every value by nature."""

    def __init__(self, layout: Layout) -> None:
        self._observation = Observation()
        self._texts = [
            name for name in layout.partition_by if layout.schema[name].dataType.typeName().startswith(_TEXTS)
        ]
        self._doubtful = layout.doubtful

    def of(self, rows: DataFrame) -> DataFrame:
        """The same rows, to be written next."""
        measures = [
            F.count_if(column(name).isin("", NULL_PARTITION)).alias(f"lost{at}") for at, name in enumerate(self._texts)
        ]
        if self._doubtful:
            measures += _sums(self._doubtful)
        return rows.observe(self._observation, *measures) if measures else rows

    def lost(self) -> str | None:
        """Why values were lost for certain, None if none were seen to be. To be asked once the rows are written."""
        for at, name in enumerate(self._texts):
            found = int(self._observation.get[f"lost{at}"] or 0)
            if found:
                return (
                    f"{found} rows have an empty text or {NULL_PARTITION} in the partition column {name}, and Spark"
                    " reads such a directory as null"
                )
        return None

    def changed(self, written: DataFrame) -> str | None:
        """Why what is in the files is not what went in, None if it is. One pass over the files, none where needless."""
        if not self._doubtful:
            return None
        try:
            with unlogged():
                row = written.agg(*_sums(self._doubtful)).collect()[0]
        except SPARK_ERRORS as error:
            return f"what was written cannot be read back: {in_words(error)}"
        before, now = self._observation.get, row.asDict()
        if int(before[_ROWS]) != int(now[_ROWS]):
            return f"{before[_ROWS]} rows were written and {now[_ROWS]} can be read"
        if before[_HASHES] != now[_HASHES]:
            return "rows read back from the files differ from those that were written"
        return None


def _sums(fields: Sequence[StructField]) -> list[Column]:
    hashed = F.xxhash64(*(_hashable(column(field.name), field.dataType) for field in fields))
    # As a decimal, since a sum of longs may overflow; equal rows would cancel each other in an exclusive or.
    return [
        F.count(F.lit(1)).alias(_ROWS),
        F.sum(hashed.cast("decimal(20,0)")).cast("string").alias(_HASHES),
    ]


def _hashable(value: Column, actual: SparkType) -> Column:
    """The value such that Spark hashes it, and such that null differs from what is not there."""
    match actual:
        case ArrayType():
            items = F.transform(value, lambda item: _hashable(item, actual.elementType))
            return F.struct(F.size(value), items)
        case MapType():
            keys = F.transform(F.map_keys(value), lambda key: _hashable(key, actual.keyType))
            values = F.transform(F.map_values(value), lambda inner: _hashable(inner, actual.valueType))
            return F.struct(F.size(value), keys, values)
        case StructType():
            parts = [_hashable(value[field.name], field.dataType) for field in actual.fields]
            return F.struct(value.isNull(), *parts)
    # Hashing skips nulls, so that null and something would be something and null.
    return F.struct(value.isNull(), value)
