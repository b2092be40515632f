"""Judging a DataFrame: the schema from the schema, all counts from one pass, keys from one more over their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts.model import Contract
from databox_contracts.plan import Check, build_plan
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import RowCount, Scope
from databox_contracts.schema_modes import ModesGiven, effective_modes
from databox_contracts.spark import outcomes
from databox_contracts.spark.counting import Measured, RowCheck, positional
from databox_contracts.spark.failures import SPARK_ERRORS, in_words, unlogged
from databox_contracts.spark.given import Given
from databox_contracts.spark.keys import find_duplicates
from databox_contracts.spark.modes import Applied, apply_modes
from databox_contracts.spark.modes_refusal import refusal
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.preparing import Preparation
from databox_contracts.spark.queries import query_result
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
    schema_modes: ModesGiven = None,
) -> Verdict:
    """Hold a table against its contract.

    One Spark job counts for all row and aggregate rules, each key takes one more over its own columns, each query rule
    one of its own, and only when something failed one more pass collects up to `samples` distinct values for each
    failed rule. With `untyped`, text columns (CSV) are cast as the contract says, and a text that is no value of its
    type violates `type`. Promises about time are held against `as_of` (UTC where it has no zone; now if not given), by
    the field they name, else `timestamp_field`, else the dataset's only required timestamp. `references` are the
    datasets that foreign keys and completeness name, by `contract.dataset` or by the dataset's name alone.

    `schema_modes` (a word, or a mapping from some of `tables`, `columns` and `data_type`) goes before the contract's
    own. What is judged is the table that `enforce` would return: without what a mode discards, which takes one more job
    to count. A column of another type than the promised one fails `type` under `freeze`, even if each of its values
    could be read as that type; the result counts the rows whose values cannot. Raises `UnknownDatasetError`,
    `DataboxError` for modes that there are not; errors of Spark itself pass through.
    """
    given = Given.at(as_of, timestamp_field, references)
    return _judge(df, contract, dataset, given, schema_modes, samples=samples, untyped=untyped)[0]


def enforce(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    samples: int = 5,
    as_of: datetime | None = None,
    timestamp_field: str | None = None,
    references: Mapping[str, DataFrame] | None = None,
    schema_modes: ModesGiven = None,
) -> DataFrame:
    """The DataFrame, if it keeps the contract: the same one, or what its schema modes make of it.

    Raises `ContractViolationError` with the verdict if not, a `DataValidationError` where a frozen schema is broken.
    """
    given = Given.at(as_of, timestamp_field, references)
    verdict, applied = _judge(df, contract, dataset, given, schema_modes, samples=samples)
    if not verdict.passed:
        raise refusal(contract, contract.dataset(dataset), applied, verdict, applied.df)
    return applied.df


def _judge(
    df: DataFrame,
    contract: Contract,
    dataset: str | None,
    given: Given,
    schema_modes: ModesGiven,
    *,
    samples: int,
    untyped: bool = False,
) -> tuple[Verdict, Applied]:
    chosen = contract.dataset(dataset)
    applied = apply_modes(df, contract, chosen, effective_modes(contract, chosen, run=schema_modes)).counted()
    verification = Verification(
        applied.df, build_plan(contract, chosen), untyped=untyped, given=replace(given, applied=applied)
    )
    return verification.verdict(samples=samples), applied


class Verification(Preparation):
    """One table held against one plan."""

    def verdict(self, *, samples: int = 5) -> Verdict:
        """Run what is left to run. Errors of Spark pass through."""
        rows, found = self._count()
        for counted in self.counted:
            self.answer(outcomes.counted(counted.check, int(found[counted.check.id][0]), rows))
        for measured in self.measured:
            self.answer(measured.answer(found[measured.check.id]))
        for check in self.plan.of(Scope.AGGREGATE):
            if isinstance(check.rule, RowCount):
                self.answer(outcomes.row_count(check, rows))
        for check in self.plan.keys:
            if check.id not in self.answers:
                self.answer(self._key_result(check, rows, samples))
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

    def _key_result(self, check: Check, rows: int, samples: int) -> CheckResult:
        try:
            columns = self.key_columns(check)
            found = find_duplicates(self.view, columns, samples=0 if check.masked else samples)
        except NotEvaluableError as reason:
            return outcomes.not_evaluated(check, str(reason))
        return outcomes.repeated(check, found.surplus_rows, found.keys, found.samples, rows)

    def _add_samples(self, samples: int) -> None:
        failed = [
            (counted.check.id, values)
            for counted in (*self.counted, *self.misfits)
            if self.answers[counted.check.id].status is Status.FAILED
            and not counted.check.masked
            and (values := counted.offending(self.view)) is not None
        ]
        if not failed or samples <= 0:
            return
        found = sample_values(self.view, [values for _, values in failed], samples)
        for (id_, _), shown in zip(failed, found, strict=True):
            self.answer(replace(self.answers[id_], samples=shown))
