"""Quarantine: the rows that break an error rule are set apart, with all their columns and the ids of their rules."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from databox_contracts.errors import PublicationError
from databox_contracts.plan import Check, Plan
from databox_contracts.results import Status, Verdict
from databox_contracts.rules import Expression, RequiredWhen, Scope, Severity
from databox_contracts.spark.counting import Condition
from databox_contracts.spark.fingerprints import Fingerprint
from databox_contracts.spark.footers import data_files, read_statistics
from databox_contracts.spark.given import Given
from databox_contracts.spark.keys import colliding_hashes, comparable, repeated_keys, with_key
from databox_contracts.spark.known import Decided, Known
from databox_contracts.spark.outcomes import threshold_of
from databox_contracts.spark.partitioning import data_files as files_by_partition
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.replacing import Replacement
from databox_contracts.spark.table_files import Layout, relative_path
from databox_contracts.spark.verification import Verification, positional
from databox_contracts.spark.versions import Staged
from databox_contracts.spark.writing import write_parquet, write_table

JUDGED_BY_THE_WRITE: Final = "the write, which held every row against it"
AMONG_THE_FLAGGED: Final = "the rows that the write set apart"
"""Where an answer came from, in the words of `verify --explain`."""

REASON: Final = "_quarantine_reason"
TIMESTAMP: Final = "_quarantine_timestamp"
CONTRACT_ID: Final = "_contract_id"
CONTRACT_VERSION: Final = "_contract_version"
RUN_ID: Final = "_run_id"
"""The columns that held rows have beside their own."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A staged table, split by the write itself: a directory of rows to keep and one of rows to hold.

    `judged` are the ids of the rules that the write held every row against.
    """

    spark: SparkSession
    layout: Layout
    root: Path
    flag: str
    kept: Path
    judged: tuple[str, ...]

    @property
    def flagged(self) -> Path:
        """The rows that break a row rule."""
        return self.root / f"{self.flag}=true"

    def kept_files(self, files: Sequence[Path]) -> DataFrame:
        """Rows of some of the files of what would be published."""
        return self.layout.read(self.spark, *files, base=self.kept)

    def all_rows(self) -> DataFrame:
        """Kept and held together."""
        return self.layout.read(self.spark, self.kept, *([self.flagged] if self.flagged.is_dir() else []))

    def kept_rows(self) -> DataFrame:
        """What would be published."""
        return self.layout.read(self.spark, self.kept)

    def known(self, plan: Plan, given: Given, *, samples: int) -> Known:
        """What the write found out about all rows; of the rules that it judged, only rows it set apart are read."""
        files = data_files(self.kept) + (data_files(self.flagged) if self.flagged.is_dir() else [])
        flagged = self.flagged_rows()
        if flagged is None:
            decided = {id_: Decided(0, JUDGED_BY_THE_WRITE) for id_ in self.judged}
        else:
            verification = Verification(flagged, plan, given=given)
            decided = verification.counts(self.judged, how=AMONG_THE_FLAGGED, samples=samples)
        return Known(read_statistics(files, self.layout.schema), decided=decided)

    def known_of_kept(self, verdict: Verdict) -> Known:
        """What is known of the rows that stay, when `verdict` is that of all rows: a rule that none broke still holds.

        That the write judged a row good is known of each of them.
        """
        unbroken = {result.id: Decided(0, result.how) for result in verdict.results if result.failed_count == 0}
        judged = {id_: Decided(0, JUDGED_BY_THE_WRITE) for id_ in self.judged}
        return Known(read_statistics(data_files(self.kept), self.layout.schema), decided=unbroken | judged)

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
    judging = [counted for counted in verification.held_by() if not isinstance(counted, Condition)]
    broken = F.lit(False)
    for counted in judging:
        broken = broken | counted.violating(verification.view)
    split = verification.view.withColumn(flag, broken).toDF(*df.columns, flag)
    root = staged.directory / "split"
    write_table(fingerprint.of(split), root, layout, flag=flag)
    kept = root / f"{flag}=false"
    if not kept.is_dir():
        write_table(df.sparkSession.createDataFrame([], df.schema), kept, layout)
    os.rename(kept, staged.data)
    judged = tuple(counted.check.id for counted in judging)
    return Candidate(df.sparkSession, layout, root, flag, staged.data, judged)


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

    Held are all new rows of a repeated key, those whose foreign key has no match, and those that refer to a held row of
    the same table. Of the files that rows are kept in, only those that hold one are written again. `verdict` is that of all rows, in which every error rule has been evaluated.
    """
    stamp = _Stamp(plan, run_id, at, given, replacement)
    repeated = _repeated_keys(candidate, plan, staged, verdict, replacement)
    failed = {result.id for result in verdict.with_status(Status.FAILED)}
    repeated += _unmatched_keys(candidate.all_rows(), stamp, staged, failed)
    flagged = candidate.flagged_rows()
    if flagged is not None:
        reasoned = _with_reasons(flagged, candidate, stamp, repeated).drop(positional(len(flagged.columns)))
        stamp.write(reasoned, flagged.columns, staged.held)
    if repeated or any(result.stops and result.rule in _CONDITIONS for result in verdict.results):
        _hold_kept_rows(candidate, staged, stamp, repeated)
    for _ in range(MOST_GENERATIONS):
        orphaned = _unmatched_keys(candidate.kept_rows(), stamp, staged)
        if not orphaned:
            break
        _hold_kept_rows(candidate, staged, stamp, orphaned)
    return Held(_rows_in(staged.held))


MOST_GENERATIONS: Final = 100
"""So often rows are held for referring to one that was held before; what is left then fails the publish."""
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
    """The keys whose rows are to be held, written down: they are asked for more than once.

    They are those that more than one row has, or those of a foreign key that have no match.
    """

    check: Check
    path: Path


def _repeated_keys(
    candidate: Candidate, plan: Plan, staged: Staged, verdict: Verdict, replacement: Replacement
) -> list[_Repeated]:
    broken = {result.id for result in verdict.violations}
    everything = Verification(replacement.with_neighbours(candidate.all_rows()), plan)
    # With neighbours there are more rows than the verdict is about, and nobody has counted them.
    rows = verdict.row_count if replacement.base is None else None
    found: list[_Repeated] = []
    for check in plan.keys:
        if check.id not in broken or check.severity is not Severity.ERROR or not threshold_of(check).allows_none:
            continue
        try:
            items = everything.key_items(check)
            if items is not None:
                keyed = with_key(items, [items["k0"]])
            else:
                keyed = with_key(everything.view, _key(everything, check, replacement))
        except NotEvaluableError:
            # Its result says so already, and fails the publish.
            continue
        hashes = colliding_hashes(keyed, rows if items is None else None)
        if hashes:
            _note(check, repeated_keys(keyed, hashes).drop("rows"), staged, found)
    return found


def _key(verification: Verification, check: Check, replacement: Replacement) -> list[Column]:
    """The parts of a key, and the partition it is of where keys are promises about partitions."""
    columns = {name: verification.view[positional(at)] for at, name in enumerate(verification.names)}
    return [*verification.key_columns(check), *replacement.place_of(columns)]


def _unmatched_keys(
    rows: DataFrame, stamp: _Stamp, staged: Staged, failed: Collection[str] | None = None
) -> list[_Repeated]:
    """The keys without a match, of the checks that failed; if they are not named, of those that look at the table."""
    found: list[_Repeated] = []
    if not stamp.plan.of(Scope.REFERENCE):
        return found
    verification = Verification(rows, stamp.plan, given=stamp.given)
    for one in verification.matchings:
        asked = one.itself if failed is None else one.check.id in failed
        if asked and one.check.severity is Severity.ERROR:
            _note(one.check, one.unmatched(verification.view), staged, found)
    return found


def _note(check: Check, keys: DataFrame, staged: Staged, found: list[_Repeated]) -> None:
    path = staged.directory / f"keys_{secrets.token_hex(4)}"
    write_parquet(keys, path)
    if _rows_in(path):
        found.append(_Repeated(check, path))


def _hold_kept_rows(candidate: Candidate, staged: Staged, stamp: _Stamp, repeated: Sequence[_Repeated]) -> None:
    """Hold the rows that the write could not tell, and write the rest of their files again."""
    kept = candidate.kept_rows()
    at_file = positional(len(kept.columns))
    affected = _with_reasons(kept, candidate, stamp, repeated).where(F.size("reasons") > 0).select(at_file).distinct()
    files = [candidate.kept / relative_path(row[0], candidate.kept) for row in affected.orderBy(at_file).collect()]
    if not files:
        return
    marked = _with_reasons(candidate.kept_files(files), candidate, stamp, repeated).drop(at_file)
    stamp.write(marked.where(F.size("reasons") > 0), kept.columns, staged.held)
    rest = staged.directory / f"rest_{secrets.token_hex(4)}"
    write_table(marked.where(F.size("reasons") == 0).drop("reasons").toDF(*kept.columns), rest, candidate.layout)
    for old in files:
        old.unlink()
        old.with_name(f".{old.name}.crc").unlink(missing_ok=True)
    for inside, names in files_by_partition(rest).items():
        (candidate.kept / inside).mkdir(parents=True, exist_ok=True)
        for name in names:
            os.rename(rest / inside / name, candidate.kept / inside / name)


def _with_reasons(rows: DataFrame, candidate: Candidate, stamp: _Stamp, repeated: Sequence[_Repeated]) -> DataFrame:
    """Rows of files under positional names, their file after them, and as `reasons` the ids of all error rules that
    each breaks, as declared.
    """
    mark = secrets.token_hex(4)
    parquet = candidate.layout.format == "parquet"
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
    parts = [_key_parts(verification, one.check, stamp.replacement) for one in repeated]
    if not parquet and any(inside for _, inside in parts):
        raise PublicationError(
            str(candidate.kept),
            f"rows of {candidate.layout.format.upper()} files cannot be told apart by a key inside an array or a map",
            hint='Publish as Parquet, or with on_violation="fail".',
        )
    for at, (found, inside) in enumerate(parts):
        columns |= {f"key_{at}_{n}": part for n, part in enumerate(found) if not inside}
    view = verification.view
    marked = view.withColumns(columns) if columns else view
    for at, (one, (found, inside)) in enumerate(zip(repeated, parts, strict=True)):
        names = [f"key_{at}_{n}" for n in range(len(found))]
        keys = rows.sparkSession.read.parquet(str(one.path)).toDF(*names)
        if inside:
            # A row has many values: which rows have one of the keys is found out by their places in the files.
            having = view.select(*place_names, F.explode(found[0]).alias(names[0])).join(keys, names, "left_semi")
            keys, names = having.select(*place_names).distinct(), place_names
        marked = marked.join(keys.withColumn(f"reason_{one.check.id}", F.lit(one.check.id)), names, "left")
    broken = [F.col(f"`reason_{check.id}`") for check in stamp.plan.checks if f"reason_{check.id}" in marked.columns]
    reasons = F.filter(F.array(*broken).cast("array<string>"), lambda reason: reason.isNotNull())
    return marked.select(*own, place_names[0], reasons.alias("reasons"))


def _key_parts(verification: Verification, check: Check, replacement: Replacement) -> tuple[Sequence[Column], bool]:
    """The parts of a key over the view; of one inside an array or a map all its values as one, which is said."""
    for one in verification.matchings:
        if one.check.id == check.id:
            return one.parts, one.inside
    values = verification.key_values(check)
    if values is not None:
        return [values], True
    return comparable(verification.view, _key(verification, check, replacement)), False


def _rows_in(path: Path) -> int:
    return sum(pq.ParquetFile(file).metadata.num_rows for file in sorted(path.glob("*.parquet")))
