"""What a verdict over several partitions says of each of them, and the rows of some partitions of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import Any, Final, TypeAlias

from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts.plan import Plan
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.spark.listed import directory_of
from databox_contracts.spark.partitioning import Partition, Partitioning, Wanted, matches
from databox_contracts.spark.replacing import Replacement, Request, still_fresh
from databox_contracts.spark.table_files import column

MOST_TOLD_APART: Final = 100
"""Of a violated verdict so many partitions are looked at by themselves: each is a verification of its own."""

Verify: TypeAlias = Callable[[DataFrame, Plan], Verdict]


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """One partition, as messages name it, with its rows and the rules of the verdict that it breaks by itself.

    A rule about the rows of all partitions together may be broken while each partition keeps it. `violated` is None
    where nobody looked, as too many partitions were judged at once.
    """

    partition: str
    row_count: int
    violated: tuple[CheckResult, ...] | None = ()


def outcomes_of(
    rows: DataFrame,
    plan: Plan,
    verdict: Verdict,
    partitioning: Partitioning,
    wanted: Sequence[Wanted],
    counts: Mapping[str, int],
    verify: Verify,
) -> tuple[PartitionOutcome, ...]:
    """What a verdict on these rows says of each of the partitions, in their order; `counts` are rows by directory.

    Only the rules that stop the verdict or fail are judged again, over one partition at a time. Errors of Spark pass
    through.
    """
    by_partition = {partitioning.at(inside): count for inside, count in counts.items() if inside}
    broken = {result.id for result in _broken(verdict)}
    suspects = replace(plan, checks=tuple(check for check in plan.checks if check.id in broken))
    found = []
    for at, one in enumerate(wanted):
        name = partitioning.shown(one)
        count = sum(had for partition, had in by_partition.items() if matches(partition, one))
        violated: tuple[CheckResult, ...] | None = ()
        if broken and at >= MOST_TOLD_APART:
            violated = None
        elif broken:
            violated = _broken(verify(rows.filter(rows_of(partitioning, [one])), suspects))
        found.append(PartitionOutcome(name, count, violated))
    return tuple(found)


def _broken(verdict: Verdict) -> tuple[CheckResult, ...]:
    return tuple(result for result in verdict.results if result.stops or result.status is Status.FAILED)


def rows_of(partitioning: Partitioning, wanted: Sequence[Wanted]) -> Column:
    """The condition that a row is of one of the partitions; of none where none is wanted."""
    if not wanted:
        return F.lit(False)
    if all(len(one) == 1 and next(iter(one.values())) is not None for one in wanted):
        positions = {at for one in wanted for at in one}
        if len(positions) == 1:
            at = positions.pop()
            # One list is planned quicker than hundreds of alternatives.
            return column(partitioning.names[at]).isin([_literal(partitioning, at, one[at]) for one in wanted])
    return reduce(or_, [_is_of(partitioning, one) for one in wanted])


def _is_of(partitioning: Partitioning, wanted: Wanted) -> Column:
    named = [
        column(partitioning.names[at]).isNull()
        if text is None
        else column(partitioning.names[at]) == _literal(partitioning, at, text)
        for at, text in wanted.items()
    ]
    return reduce(and_, named)


def _literal(partitioning: Partitioning, at: int, text: str | None) -> Column:
    return F.lit(text).cast(partitioning.columns[at].dataType)


class PartitionsOf:
    """Judges a published table by its partitions: keys and row counts are promises about each of them.

    A freshness that they do not keep is one of the whole table.

    `partitions` are those that are asked about (a value for each of some partition columns), None for all there are.
    `outcomes` is filled by `judge`, where more than one partition is named. Raises `PublicationError` for columns that
    are no partition columns, and values that no partition has.
    """

    def __init__(
        self,
        table: DataFrame,
        names: Sequence[str],
        partitions: Sequence[Mapping[str, Any]] | None,
        path: str,
    ) -> None:
        self.path = path
        self.table = table
        self.names = tuple(names)
        self.partitioning = Partitioning.of(table.schema, names, path)
        self.wanted = self.partitioning.wanted(partitions, path) if partitions is not None else None
        self.outcomes: tuple[PartitionOutcome, ...] = ()

    def of(self, table: DataFrame) -> DataFrame:
        """The rows that are asked about."""
        return table if self.wanted is None else table.filter(rows_of(self.partitioning, self.wanted))

    def judge(self, rows: DataFrame, plan: Plan, verify: Verify) -> Verdict:
        """The verdict on rows that `of` gave. `verify` judges a DataFrame by a plan. Errors of Spark pass through."""
        counts = self._counts(rows)
        replacement = Replacement(
            Request("overwrite_partitions", self.names),
            self.path,
            self.partitioning,
            wanted=self.wanted,
            written=tuple(self.partitioning.at(inside) for inside in counts),
        )
        verdict = replacement.judge(rows, plan, lambda: counts, verify)
        verdict = still_fresh(verdict, plan, lambda: self.table if self.wanted is not None else None, verify)
        if self.wanted is not None and len(self.wanted) > 1:
            self.outcomes = outcomes_of(rows, plan, verdict, self.partitioning, self.wanted, counts, verify)
        return verdict

    def _counts(self, rows: DataFrame) -> dict[str, int]:
        """The number of rows by what Spark would call the partition's directory."""
        columns = [column(name) for name in self.names]
        found = rows.groupBy(*columns).agg(F.count(F.lit(1)).alias("_databox rows")).collect()
        counts = {}
        for *values, count in found:
            (texts,) = self.partitioning.wanted([dict(zip(self.names, values, strict=True))], self.path)
            partition: Partition = tuple(texts[at] for at in range(len(self.names)))
            counts[directory_of(self.names, partition)] = int(count)
        return dict(sorted(counts.items()))
