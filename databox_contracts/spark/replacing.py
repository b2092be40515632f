"""What a publish does to the table that is there: what it replaces, what stays, and what its promises then cover."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts.errors import PublicationError
from databox_contracts.plan import Check, Plan
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Freshness, RowCount, Scope
from databox_contracts.spark import outcomes
from databox_contracts.spark.linking import Beside
from databox_contracts.spark.partitioning import Partition, Partitioning, Wanted, data_files, matches
from databox_contracts.spark.table_files import column

PublishMode: TypeAlias = Literal["overwrite", "append", "overwrite_partitions"]
PublishScope: TypeAlias = Literal["partition", "table"]
_PARTITION: Final = "partition"
"""What a key's part is called in samples that says which partition the key is of."""
_BESIDE: Final = "_databox partition"
"""The column that holds it while keys are compared."""


@dataclass(frozen=True, slots=True)
class Request:
    """How a publish was asked to treat the table that is there."""

    mode: PublishMode = "overwrite"
    partition_by: tuple[str, ...] = ()
    partitions: Sequence[Mapping[str, Any]] | None = None
    scope: PublishScope = "partition"

    def check(self, path: str, *, partitioned: bool) -> None:
        """Raises `PublicationError` for what makes no sense, or for a place that cannot have partitions of ours."""
        if not partitioned and (self.mode == "overwrite_partitions" or self.partition_by or self.partitions):
            raise PublicationError(
                path,
                "a catalog table is not published by partition",
                hint='Use another place, or mode="overwrite" without partitions.',
            )
        for name, value, known in (("mode", self.mode, PublishMode), ("scope", self.scope, PublishScope)):
            if value not in get_args(known):
                raise PublicationError(path, f"{name} is {value!r}", hint=f"Use one of {', '.join(get_args(known))}.")
        if self.partitions is not None and self.mode == "overwrite":
            raise PublicationError(
                path,
                "partitions are named, and the whole table would be overwritten",
                hint='Did you mean mode="overwrite_partitions"?',
            )


@dataclass(frozen=True, slots=True)
class Replacement:
    """One publish against the table it started from.

    `written` are the partitions that rows came in for, held ones included, in ascending order. Row rules and everything
    else that is about rows are judged over the rows that came in. Keys and row counts are promises about what readers
    find: an overwrite is judged as a whole, an append together with the rows that are there, and where there are
    partitions each of those that are written to by itself, unless `scope` is the table. So is a freshness: what the
    rows that came in do not keep, the table may, whose newest rows stay when an older partition is filled again. `base`
    is the table by partitions that rows come to, `published` are the rows of any other that they are added to.
    """

    request: Request
    path: str
    partitioning: Partitioning
    wanted: tuple[Wanted, ...] | None = None
    base: Beside | None = None
    published: DataFrame | None = None
    masked: bool = False
    written: tuple[Partition, ...] = ()

    def with_written(self, *directories: Path) -> Replacement:
        """The same, once the rows are in those directories. Raises `PublicationError` for a row nobody asked for."""
        found: set[Partition] = set()
        if self.partitioning.columns:
            for directory in directories:
                found |= {self.partitioning.at(inside) for inside in data_files(directory) if inside}
        written = tuple(sorted(found, key=lambda one: [(value is not None, value or "") for value in one]))
        if self.wanted is not None:
            outside = [one for one in written if not any(matches(one, wanted) for wanted in self.wanted)]
            if outside:
                named = "" if self.masked else f": {'; '.join(map(self.partitioning.shown, outside[:3]))}"
                more = f" and {len(outside) - 3} more" if len(outside) > 3 and not self.masked else ""
                raise PublicationError(
                    self.path,
                    f"there are rows of {len(outside)} partition{'s' if len(outside) != 1 else ''} that this publish"
                    f" does not answer for{named}{more}",
                    hint="Filter them out, or name their partitions too.",
                )
        return replace(self, written=written)

    # --- what stays ---------------------------------------------------------------------------------------------------

    def stays(self, directory: str) -> bool:
        """Whether the files that are in a partition's directory now are in the next version too."""
        if self.request.mode != "overwrite_partitions" or not directory:
            return self.request.mode == "append"
        partition = self.partitioning.at(directory)
        return partition not in self.written and not any(matches(partition, wanted) for wanted in self.wanted or ())

    def rows_after(self, new: Mapping[str, int]) -> dict[str, int]:
        """The number of rows by directory of the version that `new` rows make."""
        after = {inside: rows for inside, rows in (self.base.rows if self.base else {}).items() if self.stays(inside)}
        for inside, rows in new.items():
            after[inside] = after.get(inside, 0) + rows
        return dict(sorted(after.items()))

    @property
    def replaced(self) -> list[str] | None:
        """The partitions that this publish wrote anew, None for all of the table."""
        if self.request.mode == "overwrite":
            return None
        if self.request.mode == "append":
            return []
        named = [self.partitioning.shown(wanted) for wanted in self.wanted or ()]
        return sorted({*named, *(self.partitioning.shown(one) for one in self.written)})

    # --- what keys and row counts are about ---------------------------------------------------------------------------

    @property
    def by_partition(self) -> bool:
        """Whether keys and row counts are promises about each partition."""
        partitioned = bool(self.partitioning.columns)
        return partitioned and self.request.mode != "overwrite" and self.request.scope == "partition"

    def with_neighbours(self, rows: DataFrame) -> DataFrame:
        """The rows and those they must not share a key with; only what a key asks for is then read."""
        if self.published is not None:
            # By name: an appended column may stand elsewhere.
            return self.published.unionByName(rows)
        near = self._neighbours()
        return rows.unionByName(self.base.read(near)) if self.base is not None and near else rows

    def staying(self) -> DataFrame | None:
        """The rows that stay in the table beside those that are published; None where there are none."""
        if self.published is not None:
            return self.published
        near = self._that_stay()
        return self.base.read(near) if self.base is not None and near else None

    def place_of(self, columns: Mapping[str, Column]) -> list[Column]:
        """The parts that a key has beside its own: the partition, which is never null; none if keys are the table's."""
        return [F.struct(*(columns[name] for name in self.partitioning.names))] if self.by_partition else []

    def judge(
        self, rows: DataFrame, plan: Plan, counts: Callable[[], Mapping[str, int]], verify: Callable[..., Verdict]
    ) -> Verdict:
        """The verdict on rows that came in. `verify` judges a DataFrame by a plan, `counts` are those of the rows."""
        beside = self.base is not None or self.published is not None
        if self.request.mode == "overwrite" or not (self.by_partition or beside):
            return verify(rows, plan)
        keys = {check.id: self._key(check) for check in plan.of(Scope.KEY)}
        row_counts = [check for check in plan.of(Scope.AGGREGATE) if isinstance(check.rule, RowCount)]
        apart = {*keys, *(check.id for check in row_counts)}
        verdict = verify(rows, replace(plan, checks=tuple(check for check in plan.checks if check.id not in apart)))
        answers = {result.id: result for result in verdict.results}
        if keys:
            keyed = self._keyed(self.with_neighbours(rows))
            judged = verify(keyed, replace(plan, checks=tuple(keys.values())))
            answers |= {result.id: result for result in judged.results}
        for check in row_counts:
            answers[check.id] = self._row_count(check, counts())
        found = replace(verdict, results=tuple(answers[check.id] for check in plan.checks))
        return still_fresh(found, plan, lambda: self._with_those_that_stay(rows), verify)

    def _with_those_that_stay(self, rows: DataFrame) -> DataFrame | None:
        staying = self.staying()
        return staying.unionByName(rows) if staying is not None else None

    def _that_stay(self) -> list[str]:
        return [inside for inside in self.base.rows if self.stays(inside)] if self.base is not None else []

    def _neighbours(self) -> list[str]:
        staying = self._that_stay()
        if self.by_partition:
            return [inside for inside in staying if self.partitioning.at(inside) in self.written]
        return staying

    def _keyed(self, rows: DataFrame) -> DataFrame:
        place = self.place_of({name: column(name) for name in self.partitioning.names})
        return rows.select("*", *(part.alias(_BESIDE) for part in place))

    def _key(self, check: Check) -> Check:
        if not self.by_partition:
            return check
        return replace(
            check,
            keys=(*check.keys, (_BESIDE,)),
            key_names=(*check.key_names, _PARTITION),
            masked=check.masked or self.masked,
        )

    def _row_count(self, check: Check, counts: Mapping[str, int]) -> CheckResult:
        after = self._judged_rows(counts)
        results = [(name, rows, outcomes.row_count(check, rows)) for name, rows in after.items()]
        failed = [(name, rows, result) for name, rows, result in results if result.status is Status.FAILED]
        if not self.by_partition or len(results) == 1:
            return (failed or results)[0][2]
        if failed:
            name, rows, result = failed[0]
            called = "a partition" if self.masked else f"the partition {name}"
            more = f"; so {'is' if len(failed) == 2 else 'are'} {len(failed) - 1} more" if len(failed) > 1 else ""
            message = f"{called} has {rows} rows; promised is {result.threshold}{more}"
            return replace(result, message=message)
        least, most = min(rows for _, rows, _ in results), max(rows for _, rows, _ in results)
        return replace(results[0][2], observed=least if least == most else f"{least} to {most}")

    def _judged_rows(self, counts: Mapping[str, int]) -> dict[str, int]:
        """The number of rows that readers will find in each place that is judged."""
        near = {inside: self.base.rows[inside] for inside in self._neighbours()} if self.base is not None else {}
        if not self.by_partition:
            before = self.published.count() if self.published is not None else sum(near.values())
            return {"": sum(counts.values()) + before}
        found = {self.partitioning.shown(one): 0 for one in self.written}
        for wanted in self.wanted or () if self.request.mode == "overwrite_partitions" else ():
            if not any(matches(one, wanted) for one in self.written):
                found[self.partitioning.shown(wanted)] = 0
        for inside, rows in (*counts.items(), *near.items()):
            if inside:
                found[self.partitioning.shown(self.partitioning.at(inside))] += rows
        return found or {"": 0}


def still_fresh(
    verdict: Verdict, plan: Plan, table: Callable[[], DataFrame | None], verify: Callable[..., Verdict]
) -> Verdict:
    """The verdict on some rows of a table, with what the whole table answers where they by themselves are too old.

    `table` gives None where there are no other rows. Only what a broken freshness asks for is then read.
    """
    failed = {result.id for result in verdict.with_status(Status.FAILED)}
    stale = tuple(check for check in plan.checks if isinstance(check.rule, Freshness) and check.id in failed)
    whole = table() if stale else None
    if whole is None:
        return verdict
    answers = {result.id: result for result in verify(whole, replace(plan, checks=stale)).results}
    return replace(verdict, results=tuple(answers.get(result.id, result) for result in verdict.results))
