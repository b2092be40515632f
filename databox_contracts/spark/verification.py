"""Judging a DataFrame: the schema from the schema, all counts from one pass, keys from one more over their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts.errors import ContractViolationError
from databox_contracts.model import Contract
from databox_contracts.plan import Check, build_plan
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import RowCount, Scope
from databox_contracts.spark import outcomes
from databox_contracts.spark.counting import Measured, RowCheck, positional
from databox_contracts.spark.failures import SPARK_ERRORS, in_words, unlogged
from databox_contracts.spark.given import Given
from databox_contracts.spark.keys import find_duplicates
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.preparing import Preparation
from databox_contracts.spark.queries import query_result
from databox_contracts.spark.references import matched_results
from databox_contracts.spark.sampling import sample_values

__all__ = ["Verification", "enforce", "positional", "verify"]


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
) -> Verdict:
    """Hold a table against its contract.

    One Spark job counts for all row and aggregate rules, each key takes one more over its own columns, all foreign keys
    one together, the aggregates of a field inside an array or a map one, each query rule one of its own, and only when
    something failed one more pass collects up to `samples` distinct values for each failed rule. With `untyped`, text
    columns (CSV) are cast as the contract says, and a text that is no value of its type violates `type`. Promises about
    time are held against `as_of` (UTC where it has no zone; now if not given), by the field they name, else
    `timestamp_field`, else the dataset's only required timestamp. `references` are the datasets that foreign keys and
    completeness name, by `contract.dataset` or by the dataset's name alone; a rule whose reference is not given is not
    evaluated. Raises `UnknownDatasetError`; errors of Spark itself pass through.
    """
    plan = build_plan(contract, contract.dataset(dataset))
    verification = Verification(df, plan, untyped=untyped, given=Given.at(as_of, timestamp_field, references))
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
        rows, found = self._count()
        for counted in self.counted:
            self.answer(outcomes.counted(counted.check, int(found[counted.check.id][0]), rows))
        for measured in self.measured:
            self.answer(measured.answer(found[measured.check.id]))
        for source, group in self.exploded.values():
            self._measure_apart(source, group)
        for check in self.plan.of(Scope.AGGREGATE):
            if isinstance(check.rule, RowCount):
                self.answer(outcomes.row_count(check, rows))
        for check in self.plan.keys:
            if check.id not in self.answers:
                self.answer(self._key_result(check, rows, samples))
        for result in matched_results(self.view, self.matchings, rows, samples=samples):
            self.answer(result)
        for check in self.plan.of(Scope.REFERENCE):
            if check.id in self.late:
                self.answer(self._late_result(check, samples))
        for check in self.plan.of(Scope.QUERY):
            if check.id not in self.answers:
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

    def _count(self) -> tuple[int, dict[str, Sequence[Any]]]:
        """The number of rows, and what was aggregated for each check, in one job unless a rule ends it."""
        safe: list[RowCheck | Measured] = [counted for counted in self.counted if not counted.may_fail]
        safe += self.measured
        suspects = [counted for counted in self.counted if counted.may_fail]
        try:
            with unlogged():
                return self._aggregate([*safe, *suspects])
        except SPARK_ERRORS:
            if not suspects:
                raise
        rows, found = self._aggregate(safe)
        return rows, {**found, **self._apart(suspects)}

    def _apart(self, suspects: Sequence[RowCheck]) -> dict[str, Sequence[Any]]:
        """As `_count`, in ever smaller parts where one fails, so that each rule that does is alone in the end."""
        if not suspects:
            return {}
        try:
            with unlogged():
                return self._aggregate(suspects)[1]
        except SPARK_ERRORS as error:
            if len(suspects) == 1:
                self.counted.remove(suspects[0])
                self.answer(outcomes.not_evaluated(suspects[0].check, f"it fails on a row: {in_words(error)}"))
                return {}
        half = len(suspects) // 2
        return {**self._apart(suspects[:half]), **self._apart(suspects[half:])}

    def _aggregate(self, checks: Sequence[RowCheck | Measured]) -> tuple[int, dict[str, Sequence[Any]]]:
        columns = [self._columns(check) for check in checks]
        measures = [F.count(F.lit(1)), *(column for group in columns for column in group)]
        row = self.view.agg(*(measure.alias(f"m{at}") for at, measure in enumerate(measures))).collect()[0]
        found: dict[str, Sequence[Any]] = {}
        at = 1
        for check, group in zip(checks, columns, strict=True):
            found[check.check.id] = row[at : at + len(group)]
            at += len(group)
        return int(row[0]), found

    def _columns(self, check: RowCheck | Measured) -> tuple[Column, ...]:
        return check.columns if isinstance(check, Measured) else (F.count_if(check.violating(self.view)),)

    def _measure_apart(self, source: DataFrame, group: Sequence[Measured]) -> None:
        """Answer aggregates over rows that are not the table's."""
        columns = [column for measured in group for column in measured.columns]
        row = source.agg(*(column.alias(f"m{at}") for at, column in enumerate(columns))).collect()[0]
        at = 0
        for measured in group:
            self.answer(measured.answer(row[at : at + len(measured.columns)]))
            at += len(measured.columns)

    def _key_result(self, check: Check, rows: int, samples: int) -> CheckResult:
        try:
            items = self.key_items(check)
            if items is not None:
                inside = find_duplicates(items, [items["k0"]], samples=0 if check.masked else samples)
                count = items.where("k0 is not null").count()
                return outcomes.repeated(
                    check, inside.surplus_rows, inside.keys, inside.samples, count, counted_in="values"
                )
            columns = self.key_columns(check)
            found = find_duplicates(self.view, columns, samples=0 if check.masked else samples)
        except NotEvaluableError as reason:
            return outcomes.not_evaluated(check, str(reason))
        return outcomes.repeated(check, found.surplus_rows, found.keys, found.samples, rows)

    def _late_result(self, check: Check, samples: int) -> CheckResult:
        try:
            with unlogged():
                return self.late[check.id](samples)
        except NotEvaluableError as reason:
            return outcomes.not_evaluated(check, str(reason))
        except SPARK_ERRORS as error:
            return outcomes.not_evaluated(check, f"comparing with what is expected fails: {in_words(error)}")

    def _add_samples(self, samples: int) -> None:
        failed = [
            (counted.check.id, values)
            for counted in self.counted
            if self.answers[counted.check.id].status is Status.FAILED
            and not counted.check.masked
            and (values := counted.offending(self.view)) is not None
        ]
        if not failed or samples <= 0:
            return
        found = sample_values(self.view, [values for _, values in failed], samples)
        for (id_, _), shown in zip(failed, found, strict=True):
            self.answer(replace(self.answers[id_], samples=shown))
