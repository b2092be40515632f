"""What the footers of Parquet files say about a table: rows, nulls, smallest and largest value, without a row read.

Only columns at the top of the table are told of: what a null is inside objects, arrays and maps no footer says. Only
types whose values it holds whole and in Spark's own order have a smallest and a largest: integers, decimals, dates,
timestamps in microseconds, and floating-point numbers of writers that are known to show a NaN. Texts may be cut.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import (
    ByteType,
    DataType as SparkType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

NAN_IS_LARGEST: Final = ("parquet-mr version 1.17.0 ",)
"""Writers, by what they sign files with, whose largest value is NaN wherever a NaN was written (`Double.compare`).

The format itself lets a writer leave NaN out of its statistics, so others are not believed about such columns.
"""
LEGACY_CALENDAR: Final = b"org.apache.spark.legacyDateTime"
"""What Spark marks files with whose dates are of the hybrid Julian calendar: their numbers are not those of Spark."""


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """A column of all files together: `nulls` is None where it is not known, `smallest` and `largest` likewise.

    Dates are days and timestamps microseconds since 1970, decimals are exact. A column without a value is `empty`, and
    has neither smallest nor largest.
    """

    nulls: int | None
    smallest: Any = None
    largest: Any = None
    empty: bool = False

    @property
    def bounded(self) -> bool:
        """Whether smallest and largest are known."""
        return self.smallest is not None


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """The number of rows, and what is known of columns, by their position in the table's schema."""

    rows: int
    columns: Mapping[int, ColumnStatistics]


def data_files(directory: Path) -> list[Path]:
    """The files below a directory that Spark reads as its rows, in order of their names; a file is its own."""
    if directory.is_file():
        return [directory]
    found = (file for file in directory.rglob("*") if file.is_file())
    return sorted(file for file in found if not any(map(_hidden, file.relative_to(directory).parts)))


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def read_statistics(files: Sequence[Path], schema: StructType) -> TableStatistics | None:
    """The statistics of Parquet files that are a table of that schema; None where they cannot be read as such.

    A column is left out where it is not in every file, under just this name and of just this type.
    """
    if not files:
        return None
    try:
        footers = [pq.read_metadata(file) for file in files]
    except (OSError, pa.ArrowException):
        return None
    places = [_top_columns(footer) for footer in footers]
    columns = {}
    for at, field in enumerate(schema.fields):
        leaves = [place.get(field.name) for place in places]
        parts = [_chunks(footer, leaf, field.dataType) for footer, leaf in zip(footers, leaves, strict=True)]
        whole = [part for part in parts if part is not None]
        if len(whole) == len(parts):
            columns[at] = _together([chunk for part in whole for chunk in part])
    return TableStatistics(sum(footer.num_rows for footer in footers), columns)


def _top_columns(footer: pq.FileMetaData) -> dict[str, int]:
    """Where the columns are that are in no other: a path is more than a name below the top, dots in names or not."""
    leaves = [(at, footer.schema.column(at)) for at in range(footer.num_columns)]
    return {leaf.name: at for at, leaf in leaves if leaf.path == leaf.name and leaf.max_repetition_level == 0}


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A column in one row group."""

    rows: int
    nulls: int | None
    smallest: Any
    largest: Any


def _chunks(footer: pq.FileMetaData, leaf: int | None, actual: SparkType) -> list[_Chunk] | None:
    if leaf is None:
        return None
    kind = footer.schema.column(leaf)
    logical = json.loads(kind.logical_type.to_json())
    ordered = type(actual) in _STORED and _is_stored(actual, kind.physical_type, logical)
    if isinstance(actual, DateType | TimestampType | TimestampNTZType) and LEGACY_CALENDAR in (footer.metadata or {}):
        ordered = False
    if isinstance(actual, FloatType | DoubleType) and not (footer.created_by or "").startswith(NAN_IS_LARGEST):
        ordered = False
    found = []
    for group in range(footer.num_row_groups):
        rows = footer.row_group(group).num_rows
        statistics = footer.row_group(group).column(leaf).statistics
        nulls = statistics.null_count if statistics is not None and statistics.has_null_count else None
        known = ordered and statistics is not None and statistics.has_min_max
        low, high = (_value(raw, actual) for raw in (statistics.min_raw, statistics.max_raw)) if known else (None, None)
        found.append(_Chunk(rows, nulls, low, high))
    return found


_STORED: Final[Mapping[type[SparkType], str]] = {
    ByteType: "INT32",
    ShortType: "INT32",
    IntegerType: "INT32",
    LongType: "INT64",
    DateType: "INT32",
    TimestampType: "INT64",
    TimestampNTZType: "INT64",
    FloatType: "FLOAT",
    DoubleType: "DOUBLE",
    DecimalType: "",
}
"""The types that have an order in the footers, and what they are stored as; a decimal as one of several."""


def _is_stored(actual: SparkType, physical: str, logical: Mapping[str, Any]) -> bool:
    """Whether the column is stored in the one way whose numbers are those that Spark compares."""
    if isinstance(actual, DecimalType):
        return logical["Type"] == "Decimal" and logical["scale"] == actual.scale and physical in _DECIMALS
    if physical != _STORED[type(actual)]:
        return False
    match logical["Type"]:
        case "None":
            return not isinstance(actual, DateType | TimestampType | TimestampNTZType)
        case "Int":
            return bool(logical["isSigned"])
        case "Date":
            return isinstance(actual, DateType)
        case "Timestamp":
            zoned = TimestampType if logical["isAdjustedToUTC"] else TimestampNTZType
            return isinstance(actual, zoned) and logical["timeUnit"] == "microseconds"
        case _:
            return False


_DECIMALS: Final = ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")


def _value(raw: Any, actual: SparkType) -> Any:
    if isinstance(actual, DecimalType):
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        digits = tuple(map(int, str(abs(unscaled))))
        return Decimal((int(unscaled < 0), digits, -actual.scale))
    return raw


def _together(chunks: Iterable[_Chunk]) -> ColumnStatistics:
    """All row groups as one. A row group that does not tell leaves the whole untold, and so does a NaN."""
    filled = [chunk for chunk in chunks if chunk.rows]
    known = [chunk.nulls for chunk in filled if chunk.nulls is not None]
    nulls = sum(known) if len(known) == len(filled) else None
    # A row group of nothing but nulls has no bounds, and needs none.
    with_values = [chunk for chunk in filled if chunk.nulls != chunk.rows]
    if not with_values:
        return ColumnStatistics(nulls, empty=True)
    bounds = [(chunk.smallest, chunk.largest) for chunk in with_values]
    if any(value is None or (isinstance(value, float) and math.isnan(value)) for pair in bounds for value in pair):
        return ColumnStatistics(nulls)
    return ColumnStatistics(nulls, min(low for low, _ in bounds), max(high for _, high in bounds))
