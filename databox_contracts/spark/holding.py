"""Quarantine: the rows that break an error rule are set apart, with all their columns and the ids of their rules."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.types import StructType

from databox_contracts.plan import Check, Plan
from databox_contracts.rules import Severity
from databox_contracts.spark.keys import comparable, repeated_keys, with_key
from databox_contracts.spark.outcomes import threshold_of
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.verification import Verification
from databox_contracts.spark.versions import Staged
from databox_contracts.spark.writing import write_parquet

REASON: Final = "_quarantine_reason"
TIMESTAMP: Final = "_quarantine_timestamp"
CONTRACT_ID: Final = "_contract_id"
CONTRACT_VERSION: Final = "_contract_version"
RUN_ID: Final = "_run_id"
"""The columns that held rows have beside their own."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A staged table, split by the write itself: a directory of rows to keep and one of rows to hold."""

    spark: SparkSession
    schema: StructType
    root: Path
    flag: str
    kept: Path

    @property
    def flagged(self) -> Path:
        """The rows that break a row rule."""
        return self.root / f"{self.flag}=true"

    def all_rows(self) -> DataFrame:
        """Kept and held together."""
        existing = [self.kept, *([self.flagged] if self.flagged.is_dir() else [])]
        return self.spark.read.schema(self.schema).parquet(*map(str, existing))

    def kept_rows(self) -> DataFrame:
        """What would be published."""
        return self.spark.read.schema(self.schema).parquet(str(self.kept))

    def flagged_rows(self) -> DataFrame | None:
        """What broke a row rule, None if nothing did."""
        if not self.flagged.is_dir():
            return None
        return self.spark.read.schema(self.schema).parquet(str(self.flagged))


@dataclass(frozen=True, slots=True)
class Held:
    """How many rows were set apart."""

    rows: int


def write_flagged(df: DataFrame, plan: Plan, staged: Staged) -> Candidate:
    """Write the DataFrame once, rows that break an error rule of their own apart from the others."""
    verification = Verification(df, plan)
    flag = f"held_{secrets.token_hex(4)}"
    broken = F.lit(False)
    for counted in verification.held_by():
        broken = broken | counted.violating(verification.view)
    split = verification.view.withColumn(flag, broken).toDF(*df.columns, flag)
    root = staged.directory / "split"
    write_parquet(split, root, partition=flag)
    kept = root / f"{flag}=false"
    if not kept.is_dir():
        write_parquet(df.sparkSession.createDataFrame([], df.schema), kept)
    os.rename(kept, staged.data)
    return Candidate(df.sparkSession, df.schema, root, flag, staged.data)


def hold_back(candidate: Candidate, plan: Plan, staged: Staged, *, run_id: str, at: datetime) -> Held:
    """Move every violating row of a candidate to the staged batch of held rows, each with its own rule ids.

    The rows of a repeated key are looked for among those that are left, and all of them are held; only the files that
    hold one are written again.
    """
    stamp = _Stamp(plan, run_id, at)
    flagged = candidate.flagged_rows()
    if flagged is not None:
        verification = Verification(flagged, plan)
        broken = [
            F.when(counted.violating(verification.view), F.lit(counted.check.id)) for counted in verification.held_by()
        ]
        reasons = F.filter(F.array(*broken), lambda reason: reason.isNotNull())
        stamp.write(verification.view.withColumn("reasons", reasons), flagged.columns, staged.held)
    _hold_repeated_keys(candidate, plan, staged, stamp)
    return Held(_rows_in(staged.held))


@dataclass(frozen=True, slots=True)
class _Stamp:
    plan: Plan
    run_id: str
    at: datetime

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


def _hold_repeated_keys(candidate: Candidate, plan: Plan, staged: Staged, stamp: _Stamp) -> None:
    everything = Verification(candidate.kept_rows(), plan)
    repeated: list[tuple[Check, Path]] = []
    for check in plan.keys:
        if check.severity is not Severity.ERROR or not threshold_of(check).allows_none:
            continue
        try:
            keyed = with_key(everything.view, everything.key_columns(check))
        except NotEvaluableError:
            # Its result says so already, and fails the publish.
            continue
        # Written down, since it is asked twice: which files are affected, and which of their rows.
        path = staged.directory / f"keys_{len(repeated)}"
        write_parquet(repeated_keys(keyed), path)
        if _rows_in(path):
            repeated.append((check, path))
    if not repeated:
        return
    kept = candidate.kept_rows()
    file = f"file_{secrets.token_hex(4)}"
    marked = _mark(kept.select("*", F.col("_metadata.file_name").alias(file)), plan, repeated)
    at_file = f"c{len(kept.columns)}"
    names = [
        row[0] for row in marked.where(F.size("reasons") > 0).select(at_file).distinct().orderBy(at_file).collect()
    ]
    files = [candidate.kept / name for name in names]
    affected = _mark(candidate.spark.read.schema(candidate.schema).parquet(*map(str, files)), plan, repeated)
    stamp.write(affected.where(F.size("reasons") > 0), kept.columns, staged.held)
    rest = staged.directory / "rest"
    staying = affected.where(F.size("reasons") == 0).drop("reasons").toDF(*kept.columns)
    write_parquet(staying, rest)
    for old in files:
        old.unlink()
        old.with_name(f".{old.name}.crc").unlink(missing_ok=True)
    for new in sorted(rest.glob("*.parquet")):
        os.rename(new, candidate.kept / new.name)


def _mark(rows: DataFrame, plan: Plan, repeated: Sequence[tuple[Check, Path]]) -> DataFrame:
    """The rows under positional names, and as `reasons` the ids of the key rules whose repeated keys they have."""
    verification = Verification(rows, plan)
    marked, reasons = verification.view, []
    width = len(marked.columns)
    for at, (check, _) in enumerate(repeated):
        parts = comparable(verification.view, verification.key_columns(check))
        marked = marked.withColumns({f"key_{at}_{n}": part for n, part in enumerate(parts)})
    for at, (check, path) in enumerate(repeated):
        keys = rows.sparkSession.read.parquet(str(path)).drop("rows")
        renamed = keys.toDF(*(f"key_{at}_{n}" for n in range(len(keys.columns)))).withColumn(
            f"is_{at}", F.lit(check.id)
        )
        marked = marked.join(renamed, [f"key_{at}_{n}" for n in range(len(keys.columns))], "left")
        reasons.append(F.col(f"is_{at}"))
    own = [F.col(f"c{n}") for n in range(width)]
    return marked.select(*own, F.filter(F.array(*reasons), lambda reason: reason.isNotNull()).alias("reasons"))


def _rows_in(path: Path) -> int:
    return sum(pq.ParquetFile(file).metadata.num_rows for file in sorted(path.glob("*.parquet")))
