"""The statistics that Delta keeps of a file, from the file's own footer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

LONGEST_TEXT: Final = 64
_BOUNDED: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...]] = (
    # Fractions are left out: a NaN is beyond both bounds. So are times, which Delta cuts to milliseconds.
    (pa.types.is_integer, int),
    (pa.types.is_date, date.isoformat),
    (pa.types.is_string, lambda text: text if len(text) <= LONGEST_TEXT else None),
)


def delta_statistics(file: Path) -> dict[str, Any]:
    """Rows, nulls, smallest and greatest values of the columns at the top, as Delta's log has them.

    A bound that is not known for each row group is left out, which tells readers nothing wrong.
    """
    found = pq.ParquetFile(file)
    metadata, schema = found.metadata, found.schema_arrow
    nulls: dict[str, int] = {}
    smallest: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    for at in range(metadata.num_columns):
        name = metadata.schema.column(at).path
        if name not in schema.names or pa.types.is_nested(schema.field(name).type):
            continue
        groups = [metadata.row_group(group).column(at).statistics for group in range(metadata.num_row_groups)]
        if any(group is None or not group.has_null_count for group in groups):
            continue
        nulls[name] = sum(group.null_count for group in groups)
        spelled = next((spell for fits, spell in _BOUNDED if fits(schema.field(name).type)), None)
        bounded = [
            group
            for group, rows in zip(groups, _rows(metadata), strict=True)
            if group.null_count < rows or group.has_min_max
        ]
        if spelled is None or not bounded or not all(group.has_min_max for group in bounded):
            continue
        low, high = spelled(min(group.min for group in bounded)), spelled(max(group.max for group in bounded))
        if low is not None and high is not None:
            smallest[name], greatest[name] = low, high
    return {"numRecords": metadata.num_rows, "minValues": smallest, "maxValues": greatest, "nullCount": nulls}


def _rows(metadata: Any) -> list[int]:
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
