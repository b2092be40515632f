"""Why rows are held: each with the ids of all error rules that it breaks, and what held rows have beside their own."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts.errors import PublicationError
from databox_contracts.plan import Check, Plan
from databox_contracts.spark.counting import positional
from databox_contracts.spark.given import Given
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.keys import comparable
from databox_contracts.spark.replacing import Replacement
from databox_contracts.spark.table_view import item_parts
from databox_contracts.spark.writing import write_parquet

REASON: Final = "_quarantine_reason"
TIMESTAMP: Final = "_quarantine_timestamp"
CONTRACT_ID: Final = "_contract_id"
CONTRACT_VERSION: Final = "_contract_version"
RUN_ID: Final = "_run_id"
STAMP: Final = (REASON, TIMESTAMP, CONTRACT_ID, CONTRACT_VERSION, RUN_ID)
"""The columns that held rows have after their own, in that order."""


def no_room_for_reasons(names: Iterable[str]) -> str | None:
    """Why rows of a table with columns of those names could not be held; None if they could."""
    taken = [name for name in names if name.lower() in STAMP]
    return f"it has a column {taken[0]}, which is what held rows have beside their own" if taken else None


FREE_NAMES: Final = f"Rename it: held rows get the columns {', '.join(STAMP)}."


@dataclass(frozen=True, slots=True)
class Stamp:
    """What held rows of one publish have in common.

    `format` is that of the files that they are read from, `replacement` says what keys are promises about where the
    table is not replaced as a whole.
    """

    plan: Plan
    run_id: str
    at: datetime
    given: Given
    format: str = "parquet"
    replacement: Replacement | None = None

    def write(self, rows: DataFrame, names: Sequence[str], path: Path) -> None:
        """Add rows of a view, whose last column is `reasons`, to the batch, under the table's own names."""
        micros = int(self.at.astimezone(UTC).timestamp() * 1_000_000)
        held = rows.toDF(*names, REASON).select(
            "*",
            F.timestamp_micros(F.lit(micros)).alias(TIMESTAMP),
            F.lit(self.plan.contract.id).alias(CONTRACT_ID),
            F.lit(self.plan.contract.version).alias(CONTRACT_VERSION),
            F.lit(self.run_id).alias(RUN_ID),
        )
        write_parquet(held, path)


@dataclass(frozen=True, slots=True)
class KeysToHold:
    """The keys whose rows are to be held, written down: they are asked for more than once.

    They are those that more than one row has, or those of a foreign key that have no match.
    """

    check: Check
    path: Path


def key_parts(verification: Verification, check: Check, replacement: Replacement | None) -> list[Column]:
    """The parts of a key, and the partition it is of where keys are promises about partitions."""
    return [*verification.key_columns(check), *parts_beside(verification, replacement)]


def parts_beside(verification: Verification, replacement: Replacement | None) -> list[Column]:
    """The partition that a key is of, where keys are promises about partitions; else nothing."""
    columns = {name: verification.view[positional(at)] for at, name in enumerate(verification.names)}
    return replacement.place_of(columns) if replacement is not None else []


def with_reasons(rows: DataFrame, stamp: Stamp, repeated: Sequence[KeysToHold]) -> DataFrame:
    """Rows of files under positional names, their file after them, and as `reasons` the ids of all error rules that
    each breaks, as declared.
    """
    mark = secrets.token_hex(4)
    parquet = stamp.format == "parquet"
    place = {
        f"file_path_{mark}": F.col("_metadata.file_path"),
        # Other formats do not number their rows.
        f"row_index_{mark}": F.col("_metadata.row_index") if parquet else F.lit(None).cast("long"),
    }
    width = len(rows.columns)
    placed = rows.select("*", *(column.alias(name) for name, column in place.items()))
    verification = Verification(placed, stamp.plan, given=stamp.given)
    own = [positional(at) for at in range(width)]
    place_names = [positional(width), positional(width + 1)]
    held_by = verification.held_by()
    columns = {f"reason_{c.check.id}": F.when(c.violating(verification.view), c.check.id) for c in held_by}
    parts = [_parts_of(verification, one.check, stamp.replacement) for one in repeated]
    if not parquet and any(inside for _, inside in parts):
        raise PublicationError(
            stamp.plan.dataset.name,
            f"rows of {stamp.format.upper()} files cannot be told apart by a key inside an array or a map",
            hint='Publish as Parquet, or with on_violation="fail".',
        )
    for at, (found, inside) in enumerate(parts):
        columns |= {f"key_{at}_{n}": part for n, part in enumerate(found) if not inside}
    view = verification.view
    marked = view.withColumns(columns) if columns else view
    for at, (one, (found, inside)) in enumerate(zip(repeated, parts, strict=True)):
        keys = rows.sparkSession.read.parquet(str(one.path))
        names = [f"key_{at}_{n}" for n in range(len(keys.columns))]
        keys = keys.toDF(*names)
        if inside:
            # A row has many values: which rows have one of the keys is found out by their places in the files.
            values = view.select(*place_names, F.explode(found[0]).alias("one"))
            having = item_parts(values, len(names), keep=place_names, prefix=f"key_{at}_").join(
                keys, names, "left_semi"
            )
            keys, names = having.select(*place_names).distinct(), place_names
        marked = marked.join(keys.withColumn(f"reason_{one.check.id}", F.lit(one.check.id)), names, "left")
    broken = [F.col(f"`reason_{check.id}`") for check in stamp.plan.checks if f"reason_{check.id}" in marked.columns]
    reasons = F.filter(F.array(*broken).cast("array<string>"), lambda reason: reason.isNotNull())
    return marked.select(*own, place_names[0], reasons.alias("reasons"))


def _parts_of(
    verification: Verification, check: Check, replacement: Replacement | None
) -> tuple[Sequence[Column], bool]:
    """The parts of a key over the view; of one inside an array or a map all its values as one, which is said."""
    for one in verification.matchings:
        if one.check.id == check.id:
            return one.parts, one.inside
    values = verification.key_values(check, parts_beside(verification, replacement))
    if values is not None:
        return [values], True
    return comparable(verification.view, key_parts(verification, check, replacement)), False


def rows_in(path: Path) -> int:
    """The number of rows in a directory of Parquet files; 0 where there is none."""
    return sum(pq.ParquetFile(file).metadata.num_rows for file in sorted(path.glob("*.parquet")))
