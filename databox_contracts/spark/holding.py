"""Quarantine: the rows that break an error rule are set apart, with all their columns and the ids of their rules."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession, functions as F

from databox_contracts.plan import Check, Plan
from databox_contracts.results import Status, Verdict
from databox_contracts.rules import Scope, Severity
from databox_contracts.spark.counting import positional
from databox_contracts.spark.fingerprints import Fingerprint
from databox_contracts.spark.footers import data_files, read_statistics
from databox_contracts.spark.given import Given
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.keys import colliding_hashes, repeated_keys, with_key
from databox_contracts.spark.known import Decided, Known
from databox_contracts.spark.outcomes import threshold_of
from databox_contracts.spark.partitioning import data_files as files_by_partition
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.reasons import KeysToHold, Stamp, key_parts, parts_beside, rows_in, with_reasons
from databox_contracts.spark.replacing import Replacement
from databox_contracts.spark.staging import Staged
from databox_contracts.spark.table_files import Layout, relative_path
from databox_contracts.spark.writing import write_parquet, write_table

JUDGED_BY_THE_WRITE: Final = "the write, which held every row against it"
AMONG_THE_FLAGGED: Final = "the rows that the write set apart"
"""Where an answer came from, in the words of `verify --explain`."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A staged table, split by the write itself: a directory of rows to keep and one of rows to hold.

    `judged` are the ids of the rules that the write held every row against, `left` those that hold rows of their own
    and waited.
    """

    spark: SparkSession
    layout: Layout
    root: Path
    flag: str
    kept: Path
    judged: tuple[str, ...]
    left: tuple[str, ...]

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

    Conditions in SQL wait until the rows are written, and so do expressions that Java may refuse or run out of stack
    with: one that fails on a row would end the write.
    """
    verification = Verification(df, plan, given=given)
    flag = f"held_{secrets.token_hex(4)}"
    holding = verification.held_by()
    judging = [counted for counted in holding if not counted.may_end_a_write]
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
    left = tuple(counted.check.id for counted in holding if counted.may_end_a_write)
    return Candidate(df.sparkSession, layout, root, flag, staged.data, judged, left)


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
    the same table. Of the files that rows are kept in, only those that hold one are written again.
    `verdict` is that of all rows, in which every error rule has been evaluated.
    """
    stamp = Stamp(plan, run_id, at, given, candidate.layout.format, replacement)
    # With neighbours there are more rows than the verdict is about, and nobody has counted them.
    alone = replacement.base is None and replacement.published is None
    rows = verdict.row_count if alone else None
    repeated = keys_that_repeat(candidate.all_rows(), stamp, staged, verdict, rows=rows)
    failed = {result.id for result in verdict.with_status(Status.FAILED)}
    repeated += keys_without_match(candidate.all_rows(), stamp, staged, failed)
    flagged = candidate.flagged_rows()
    if flagged is not None:
        reasoned = with_reasons(flagged, stamp, repeated).drop(positional(len(flagged.columns)))
        stamp.write(reasoned, flagged.columns, staged.held)
    if repeated or any(result.stops and result.id in candidate.left for result in verdict.results):
        _hold_kept_rows(candidate, staged, stamp, repeated)
    for _ in range(MOST_GENERATIONS):
        orphaned = keys_without_match(candidate.kept_rows(), stamp, staged)
        if not orphaned:
            break
        _hold_kept_rows(candidate, staged, stamp, orphaned)
    return Held(rows_in(staged.held))


MOST_GENERATIONS: Final = 100
"""So often rows are held for referring to one that was held before; what is left then fails the publish."""


def keys_that_repeat(
    df: DataFrame, stamp: Stamp, staged: Staged, verdict: Verdict, *, rows: int | None = None
) -> list[KeysToHold]:
    """The keys that the verdict on those rows found repeated, among them and their neighbours, of which there are
    `rows` if that is known.
    """
    plan, replacement = stamp.plan, stamp.replacement
    broken = {result.id for result in verdict.violations}
    everything = Verification(replacement.with_neighbours(df) if replacement is not None else df, plan)
    found: list[KeysToHold] = []
    for check in plan.keys:
        if check.id not in broken or check.severity is not Severity.ERROR or not threshold_of(check).allows_none:
            continue
        try:
            items = everything.key_items(check, parts_beside(everything, replacement))
            if items is not None:
                keyed = with_key(items, [items[name] for name in items.columns])
            else:
                keyed = with_key(everything.view, key_parts(everything, check, replacement))
        except NotEvaluableError:
            # Its result says so already, and fails the publish.
            continue
        hashes = colliding_hashes(keyed, rows if items is None else None)
        if hashes:
            _note(check, repeated_keys(keyed, hashes).drop("rows"), staged, found)
    return found


def keys_without_match(
    rows: DataFrame, stamp: Stamp, staged: Staged, failed: Collection[str] | None = None
) -> list[KeysToHold]:
    """The keys without a match, of the checks that failed; if they are not named, of those that look at the table."""
    found: list[KeysToHold] = []
    if not stamp.plan.of(Scope.REFERENCE):
        return found
    verification = Verification(rows, stamp.plan, given=stamp.given)
    for one in verification.matchings:
        asked = one.itself if failed is None else one.check.id in failed
        if asked and one.check.severity is Severity.ERROR:
            _note(one.check, one.unmatched(verification.view), staged, found)
    return found


def _note(check: Check, keys: DataFrame, staged: Staged, found: list[KeysToHold]) -> None:
    path = staged.directory / f"keys_{secrets.token_hex(4)}"
    write_parquet(keys, path)
    if rows_in(path):
        found.append(KeysToHold(check, path))


def _hold_kept_rows(candidate: Candidate, staged: Staged, stamp: Stamp, repeated: Sequence[KeysToHold]) -> None:
    """Hold the rows that the write could not tell, and write the rest of their files again."""
    kept = candidate.kept_rows()
    at_file = positional(len(kept.columns))
    affected = with_reasons(kept, stamp, repeated).where(F.size("reasons") > 0).select(at_file).distinct()
    files = [candidate.kept / relative_path(row[0], candidate.kept) for row in affected.orderBy(at_file).collect()]
    if not files:
        return
    marked = with_reasons(candidate.kept_files(files), stamp, repeated).drop(at_file)
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
