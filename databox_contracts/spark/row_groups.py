"""The last rows of local Parquet files, read by their row groups: what it costs does not depend on the files' size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_UNSURE: Final = (pa.types.is_dictionary, pa.types.is_duration, pa.types.is_time, pa.types.is_unsigned_integer)


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file's footer says. `exact` is false where Arrow might read a value otherwise than Spark does."""

    path: str
    rows: int
    groups: tuple[int, ...]
    group_bytes: tuple[int, ...]
    schema: pa.Schema
    exact: bool


def footer_of(path: str) -> Footer:
    """Read a footer. Raises pyarrow's errors for what is no Parquet file."""
    with pq.ParquetFile(path) as file:
        facts = file.metadata
        groups = [facts.row_group(at) for at in range(facts.num_row_groups)]
        schema = file.schema_arrow
        physical = {facts.schema.column(at).physical_type for at in range(facts.num_columns)}
    exact = "INT96" not in physical and all(_is_plain(field.type) for field in schema)
    return Footer(
        path,
        facts.num_rows,
        tuple(group.num_rows for group in groups),
        tuple(_compressed(group) for group in groups),
        schema.remove_metadata(),
        exact,
    )


def _compressed(group: Any) -> int:
    return sum(group.column(at).total_compressed_size for at in range(group.num_columns))


def _is_plain(type_: pa.DataType) -> bool:
    if pa.types.is_timestamp(type_):
        # Nanoseconds are more than Spark's timestamps hold.
        return bool(type_.unit == "us")
    if isinstance(type_, pa.BaseExtensionType) or any(test(type_) for test in _UNSURE):
        return False
    return all(_is_plain(type_.field(at).type) for at in range(type_.num_fields))


def last_groups(footer: Footer, rows: int) -> list[int]:
    """The row groups from the end of the file on that together have so many rows, in the file's order."""
    chosen: list[int] = []
    for at in reversed(range(len(footer.groups))):
        if rows <= 0:
            break
        chosen.insert(0, at)
        rows -= footer.groups[at]
    return chosen


def read_last(footer: Footer, rows: int) -> pa.Table:
    """So many rows of the last row groups; of a group that has more, the first ones."""
    tables: list[pa.Table] = []
    left = rows
    with pq.ParquetFile(footer.path) as file:
        for group in reversed(last_groups(footer, rows)):
            batches: list[pa.RecordBatch] = []
            for batch in file.iter_batches(batch_size=min(left, 65_536), row_groups=[group]):
                batches.append(batch.slice(0, left))
                left -= batches[-1].num_rows
                if left <= 0:
                    break
            tables.insert(0, pa.Table.from_batches(batches, schema=file.schema_arrow))
    return pa.concat_tables(tables) if tables else footer.schema.empty_table()


def shares(footers: Sequence[Footer], rows: int) -> list[int]:
    """How many rows to take of each file so that together there are `rows`: as many of each, small files in full."""
    taken = [0] * len(footers)
    left = rows
    open_ = [at for at, one in enumerate(footers) if one.rows]
    while open_ and left > 0:
        each = max(1, left // len(open_))
        for at in list(open_):
            more = min(each, footers[at].rows - taken[at], left)
            taken[at] += more
            left -= more
            if taken[at] == footers[at].rows:
                open_.remove(at)
    return taken
