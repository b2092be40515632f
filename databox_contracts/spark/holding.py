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
from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from databox_contracts.plan import Check, Plan
from databox_contracts.results import Status, Verdict
from databox_contracts.rules import Expression, RequiredWhen, Severity
from databox_contracts.spark.counting import Condition
from databox_contracts.spark.fingerprints import Fingerprint
from databox_contracts.spark.given import Given
from databox_contracts.spark.keys import colliding_hashes, comparable, repeated_keys, with_key
from databox_contracts.spark.outcomes import threshold_of
from databox_contracts.spark.partitioning import data_files
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.replacing import Replacement
from databox_contracts.spark.table_files import Layout, relative_path
from databox_contracts.spark.verification import Verification, positional
from databox_contracts.spark.versions import Staged
from databox_contracts.spark.writing import write_parquet, write_table

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
    layout: Layout
    root: Path
    flag: str
    kept: Path

    @property
    def flagged(self) -> Path:
        """The rows that break a row rule."""
        return self.root / f"{self.flag}=true"

    def kept_files(self, files: Sequence[Path]) -> DataFrame:
        """Rows of some of the files of what would be published."""
        return self.layout.read(self.spark, *files, base=self.kept)

    def all_rows(self) -> DataFrame:
        """Kept and held together."""
        if not self.flagged.is_dir():
            return self.kept_rows()
        if self.layout.partition_by:
            # Partitions are looked for below one directory.
            return self.kept_rows().union(self.layout.read(self.spark, self.flagged))
        return self.layout.read(self.spark, self.kept, self.flagged)

    def kept_rows(self) -> DataFrame:
        """What would be published."""
        return self.layout.read(self.spark, self.kept)

    def flagged_rows(self) -> DataFrame | None:
        """What broke a row rule, None if nothing did."""
        return self.layout.read(self.spark, self.flagged) if self.flagged.is_dir() else None


@dataclass(frozen=True, slots=True)
class Held:
    """How many rows were set apart."""

    rows: int


def write_flagged(
    df: DataFrame, plan: Plan, staged: Staged, given: Given, layout: Layout, fingerprint: Fingerprint
) -> Candidate:
    """Write the DataFrame once, rows that break an error rule of their own apart from the others.

    Conditions in SQL wait until the rows are written: one that fails on a row would end the write.
    """
    verification = Verification(df, plan, given=given)
    flag = f"held_{secrets.token_hex(4)}"
    broken = F.lit(False)
    for counted in verification.held_by():
        if not isinstance(counted, Condition):
            broken = broken | counted.violating(verification.view)
    split = verification.view.withColumn(flag, broken).toDF(*df.columns, flag)
    root = staged.directory / "split"
    write_table(fingerprint.of(split), root, layout, flag=flag)
    kept = root / f"{flag}=false"
    if not kept.is_dir():
        write_table(df.sparkSession.createDataFrame([], df.schema), kept, layout)
    os.rename(kept, staged.data)
    return Candidate(df.sparkSession, layout, root, flag, staged.data)


def hold_back(
    candidate: Candidate,
    plan: Plan,
    staged: Staged,
    verdict: Verdict,
    *,
    run_id: str,
    at: datetime,
    given: Given,
    replacement: Replacement,
) -> Held:
    """Move every violating row of a candidate to the staged batch of held rows, each with its own rule ids.

    All new rows of a repeated key are held; of the files that rows are kept in, only those that hold one are written
    again. `verdict` is that of all rows, in which every error rule has been evaluated.
    """
    stamp = _Stamp(plan, run_id, at, given, replacement)
    repeated = _repeated_keys(candidate, plan, staged, replacement)
    flagged = candidate.flagged_rows()
    if flagged is not None:
        stamp.write(_with_reasons(flagged, stamp, repeated), flagged.columns, staged.held)
    if repeated or any(result.status is Status.FAILED and result.rule in _CONDITIONS for result in verdict.results):
        _hold_kept_rows(candidate, staged, stamp, repeated)
    return Held(_rows_in(staged.held))


_CONDITIONS: Final = (Expression.kind, RequiredWhen.kind)


@dataclass(frozen=True, slots=True)
class _Stamp:
    plan: Plan
    run_id: str
    at: datetime
    given: Given
    replacement: Replacement

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
class _Repeated:
    """The keys that more than one row has, written down: they are asked for more than once."""

    check: Check
    path: Path


def _repeated_keys(candidate: Candidate, plan: Plan, staged: Staged, replacement: Replacement) -> list[_Repeated]:
    everything = Verification(replacement.with_neighbours(candidate.all_rows()), plan)
    found: list[_Repeated] = []
    for check in plan.keys:
        if check.severity is not Severity.ERROR or not threshold_of(check).allows_none:
            continue
        try:
            keyed = with_key(everything.view, _key(everything, check, replacement))
        except NotEvaluableError:
            # Its result says so already, and fails the publish.
            continue
        path = staged.directory / f"keys_{len(found)}"
        hashes = colliding_hashes(keyed)
        if not hashes:
            continue
        write_parquet(repeated_keys(keyed, hashes), path)
        if _rows_in(path):
            found.append(_Repeated(check, path))
    return found


def _key(verification: Verification, check: Check, replacement: Replacement) -> list[Column]:
    """The parts of a key, and the partition it is of where keys are promises about partitions."""
    columns = {name: verification.view[positional(at)] for at, name in enumerate(verification.names)}
    return [*verification.key_columns(check), *replacement.place_of(columns)]


def _hold_kept_rows(candidate: Candidate, staged: Staged, stamp: _Stamp, repeated: Sequence[_Repeated]) -> None:
    """Hold the rows that the write could not tell, and write the rest of their files again."""
    kept = candidate.kept_rows()
    located = kept.select("*", F.col("_metadata.file_path").alias(f"file_{secrets.token_hex(4)}"))
    at_file = positional(len(kept.columns))
    affected = _with_reasons(located, stamp, repeated).where(F.size("reasons") > 0).select(at_file).distinct()
    files = [candidate.kept / relative_path(row[0], candidate.kept) for row in affected.orderBy(at_file).collect()]
    if not files:
        return
    marked = _with_reasons(candidate.kept_files(files), stamp, repeated)
    stamp.write(marked.where(F.size("reasons") > 0), kept.columns, staged.held)
    rest = staged.directory / "rest"
    write_table(marked.where(F.size("reasons") == 0).drop("reasons").toDF(*kept.columns), rest, candidate.layout)
    for old in files:
        old.unlink()
        old.with_name(f".{old.name}.crc").unlink(missing_ok=True)
    for inside, names in data_files(rest).items():
        (candidate.kept / inside).mkdir(parents=True, exist_ok=True)
        for name in names:
            os.rename(rest / inside / name, candidate.kept / inside / name)


def _with_reasons(rows: DataFrame, stamp: _Stamp, repeated: Sequence[_Repeated]) -> DataFrame:
    """The rows under positional names, and as `reasons` the ids of all error rules that each breaks, as declared."""
    verification = Verification(rows, stamp.plan, given=stamp.given)
    width = len(verification.view.columns)
    marks = {c.check.id: F.when(c.violating(verification.view), c.check.id) for c in verification.held_by()}
    columns = {f"reason_{id_}": mark for id_, mark in marks.items()}
    for at, one in enumerate(repeated):
        parts = comparable(verification.view, _key(verification, one.check, stamp.replacement))
        columns |= {f"key_{at}_{n}": part for n, part in enumerate(parts)}
    marked = verification.view.withColumns(columns) if columns else verification.view
    for at, one in enumerate(repeated):
        keys = rows.sparkSession.read.parquet(str(one.path)).drop("rows")
        names = [f"key_{at}_{n}" for n in range(len(keys.columns))]
        found = keys.toDF(*names).withColumn(f"reason_{one.check.id}", F.lit(one.check.id))
        marked = marked.join(found, names, "left")
    own = [F.col(positional(at)) for at in range(width)]
    broken = [F.col(f"`reason_{check.id}`") for check in stamp.plan.checks if f"reason_{check.id}" in marked.columns]
    reasons = F.filter(F.array(*broken).cast("array<string>"), lambda reason: reason.isNotNull())
    return marked.select(*own, reasons.alias("reasons"))


def _rows_in(path: Path) -> int:
    return sum(pq.ParquetFile(file).metadata.num_rows for file in sorted(path.glob("*.parquet")))
