"""Judging a DataFrame: the schema from the schema, all counts from one pass, keys from one more over their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from pyspark.sql import DataFrame

from databox_contracts.errors import ContractViolationError
from databox_contracts.model import Contract
from databox_contracts.plan import build_plan
from databox_contracts.results import Status, Verdict
from databox_contracts.rules import RowCount, Scope
from databox_contracts.spark import outcomes
from databox_contracts.spark.counting import positional
from databox_contracts.spark.given import Given
from databox_contracts.spark.keys import Key, find_all_duplicates
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.preparing import Preparation
from databox_contracts.spark.progress import OnProgress, Steps
from databox_contracts.spark.queries import query_result
from databox_contracts.spark.running import chunked, in_small_parts, run_counts
from databox_contracts.spark.sampling import Offending, sample_values
from databox_contracts.spark.scans import reads_by_column

__all__ = ["Verification", "enforce", "positional", "verify"]

COUNTING: Final = "counting rows"
KEYS: Final = "comparing keys"
QUERIES: Final = "running queries"
SAMPLES: Final = "collecting samples"
"""The steps of a verification, as its progress names them; the last one is taken only where a rule failed."""


def verify(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    samples: int = 5,
    untyped: bool = False,
    as_of: datetime | None = None,
    timestamp_field: str | None = None,
    references: Mapping[str, DataFrame] | None = None,
    progress: OnProgress | None = None,
) -> Verdict:
    """Hold a table against its contract.

    One Spark job counts for all row and aggregate rules, one more over their own columns compares the keys, each query
    rule takes one of its own, and only when something failed the failing columns are read once more, eight of them at a
    time, for up to `samples` distinct values of each failed rule. Where a wide table can be read column by column,
    several jobs at a time count for it, no column being read by two of them. With `untyped`, text columns (CSV) are
    cast as the contract says, and a text that is no value of its type violates `type`. Promises about time are held
    against `as_of` (UTC where it has no zone; now if not given), by the field they name, else `timestamp_field`, else
    the dataset's only required timestamp. `references` are the datasets that foreign keys and completeness name, by
    `contract.dataset` or by the dataset's name alone. `progress` is told what is being done, at each step and every
    second. Raises `UnknownDatasetError`; errors of Spark itself pass through.
    """
    plan = build_plan(contract, contract.dataset(dataset))
    verification = Verification(df, plan, untyped=untyped, given=Given.at(as_of, timestamp_field, references, progress))
    return verification.verdict(samples=samples)


def enforce(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    samples: int = 5,
    as_of: datetime | None = None,
    timestamp_field: str | None = None,
    references: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """The same DataFrame if it keeps the contract; raises `ContractViolationError` with the verdict if not."""
    verdict = verify(
        df, contract, dataset, samples=samples, as_of=as_of, timestamp_field=timestamp_field, references=references
    )
    if not verdict.passed:
        raise ContractViolationError(verdict)
    return df


class Verification(Preparation):
    """One table held against one plan."""

    def verdict(self, *, samples: int = 5) -> Verdict:
        """Run what is left to run. Errors of Spark pass through."""
        self.steps = Steps(self.given.progress, self._steps())
        rows, found = self._count()
        for counted in self.counted:
            self.answer(outcomes.counted(counted.check, int(found[counted.check.id][0]), rows))
        for measured in self.measured:
            self.answer(measured.answer(found[measured.check.id]))
        for check in self.plan.of(Scope.AGGREGATE):
            if isinstance(check.rule, RowCount):
                self.answer(outcomes.row_count(check, rows))
        self._judge_keys(rows, samples)
        for check in self.plan.of(Scope.QUERY):
            if check.id not in self.answers:
                with self.steps.step(QUERIES):
                    self.answer(query_result(check, self.table, self.plan))
        self._add_samples(samples)
        return Verdict(
            contract=self.plan.contract.id,
            version=self.plan.contract.version,
            dataset=self.plan.dataset.name,
            row_count=rows,
            results=tuple(self.answers[check.id] for check in self.plan.checks),
            settings=self.settings,
        )

    def _steps(self) -> list[str]:
        keys, queries = bool(self.plan.keys), bool(self.plan.of(Scope.QUERY))
        return [COUNTING, *([KEYS] if keys else []), *([QUERIES] if queries else []), SAMPLES]

    def _count(self) -> tuple[int, Mapping[str, Sequence[Any]]]:
        """The number of rows, and what was aggregated for each check; those that end their job are not evaluated."""
        checks = [*self.counted, *self.measured]
        chunks = chunked(checks)
        if len(chunks) > 1 and not reads_by_column(self.view):
            chunks = [checks]
        parts = len(chunks) if len(chunks) > 1 else 0
        with self.steps.step(COUNTING, parts=parts):
            counts = run_counts(self.view, chunks, part_done=lambda: self.steps.part_done(COUNTING))
        self.counted = [counted for counted in self.counted if counted.check.id not in counts.refused]
        for check in self.plan.checks:
            if check.id in counts.refused:
                self.answer(outcomes.not_evaluated(check, f"it fails on a row: {counts.refused[check.id]}"))
        return counts.rows, counts.found

    def _judge_keys(self, rows: int, samples: int) -> None:
        checks, keys = [], []
        for check in self.plan.keys:
            if check.id not in self.answers:
                try:
                    keys.append(Key(self.view, self.key_columns(check), samples=0 if check.masked else samples))
                    checks.append(check)
                except NotEvaluableError as reason:
                    self.answer(outcomes.not_evaluated(check, str(reason)))
        if keys:
            with self.steps.step(KEYS):
                for check, found in zip(checks, find_all_duplicates(keys, rows=rows), strict=True):
                    self.answer(outcomes.repeated(check, found.surplus_rows, found.keys, found.samples, rows))

    def _add_samples(self, samples: int) -> None:
        failed = {
            counted.check.id: values
            for counted in self.counted
            if self.answers[counted.check.id].status is Status.FAILED
            and not counted.check.masked
            and (values := counted.offending(self.view)) is not None
        }
        if not failed or samples <= 0:
            return
        parts = in_small_parts([counted for counted in self.counted if counted.check.id in failed])
        with self.steps.step(SAMPLES, parts=len(parts) if len(parts) > 1 else 0):
            for part in parts:
                offending = [Offending(one.violating(self.view), failed[one.check.id]) for one in part]
                for counted, shown in zip(part, sample_values(self.view, offending, samples), strict=True):
                    self.answer(replace(self.answers[counted.check.id], samples=shown))
                if len(parts) > 1:
                    self.steps.part_done(SAMPLES)
