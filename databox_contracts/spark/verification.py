"""Verifying a DataFrame: which contract, which schema modes, and whether it may pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import DataFrame

from databox_contracts.model import Contract
from databox_contracts.plan import Plan, build_plan
from databox_contracts.results import Verdict
from databox_contracts.schema_modes import ModesGiven, effective_modes
from databox_contracts.spark.footers import read_statistics
from databox_contracts.spark.given import Given
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.known import TRUSTED_FILES, Known
from databox_contracts.spark.modes import Applied, Counts, apply_modes
from databox_contracts.spark.modes_refusal import refusal
from databox_contracts.spark.progress import OnProgress

Judge: TypeAlias = Callable[[DataFrame, Plan, Callable[[DataFrame, Plan], Verdict]], Verdict]


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
    trusted_files: Sequence[Path] | None = None,
    progress: OnProgress | None = None,
    schema_modes: ModesGiven = None,
) -> Verdict:
    """Hold a table against its contract.

    One Spark job counts for all row and aggregate rules. One more over their own columns compares the keys, at the same
    time where the table can be read column by column; all foreign keys take one together, the aggregates of a field
    inside an array or a map one, each query rule one of its own. Only where rules failed are their columns read once
    more, eight of them at a time, for `samples` distinct values of each: the first by their text, of very many those
    that a hash draws. Where a wide table can be read column by column, several jobs at a time
    count for it, no column being read by two of them. With `untyped`, text columns (CSV) are cast as the contract says,
    and a text that is no value of its type violates `type`. Promises about time are held against `as_of` (UTC where it
    has no zone; now if not given), by the field they name, else `timestamp_field`, else the dataset's only required
    timestamp. `references` are the datasets that foreign keys and completeness name, by `contract.dataset` or by the
    dataset's name alone; a rule whose reference is not given is not evaluated. `trusted_files` are the Parquet files on
    this machine that the table is read from, all of them and no others, if the statistics in their footers are to be
    believed: then only what these do not answer is read. `progress` is told what is being done, at each step and every
    second.

    `schema_modes` (a word, or a mapping from some of `tables`, `columns` and `data_type`) goes before the contract's
    own. What is judged is the table that `enforce` would return: without what a mode discards, which takes one more job
    to count. A column of another type than the promised one fails `type` under `freeze`, even if each of its values
    could be read as that type; the result counts the rows whose values cannot. Raises `UnknownDatasetError`,
    `DataboxError` for modes that there are not; errors of Spark itself pass through.
    """
    known = Known(read_statistics(trusted_files, df.schema), TRUSTED_FILES) if trusted_files is not None else None
    given = Given.at(as_of, timestamp_field, references, progress)
    return _judge(df, contract, dataset, given, schema_modes, samples=samples, untyped=untyped, known=known)[0]


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


def verify_published(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    samples: int = 5,
    untyped: bool = False,
    references: Mapping[str, DataFrame] | None = None,
    progress: OnProgress | None = None,
    schema_modes: ModesGiven = None,
    ours: bool = False,
    judge: Judge | None = None,
) -> tuple[Verdict, Counts | None]:
    """As `verify`, of a table that readers have and that stays as it is: what a mode would discard is said and counted.

    The counts are None where no mode would discard anything. A table of `ours` was published under this contract: where
    that leaves columns or types open, those that it has are known. `judge` makes the verdict of the rows, of the plan
    and of what judges rows by a plan; None judges all rows together.
    """
    given = Given.at(None, None, references, progress)
    verdict, applied = _judge(
        df,
        contract,
        dataset,
        given,
        schema_modes,
        samples=samples,
        untyped=untyped,
        only_looking=True,
        ours=ours,
        judge=judge,
    )
    return verdict, applied.counts if applied.counts is not None and applied.counts.discarded else None


def _judge(
    df: DataFrame,
    contract: Contract,
    dataset: str | None,
    given: Given,
    schema_modes: ModesGiven,
    *,
    samples: int,
    untyped: bool = False,
    known: Known | None = None,
    only_looking: bool = False,
    ours: bool = False,
    judge: Judge | None = None,
) -> tuple[Verdict, Applied]:
    chosen = contract.dataset(dataset)
    modes = effective_modes(contract, chosen, run=schema_modes)
    applied = apply_modes(df, contract, chosen, modes, known=df.schema if ours else None).counted()
    applied = replace(applied, only_looking=only_looking)
    told = replace(given, applied=applied)
    # Statistics are of the table as it came in.
    of_input = known if applied.df is df else None

    def verify_rows(rows: DataFrame, plan: Plan) -> Verdict:
        return Verification(rows, plan, untyped=untyped, given=told, known=of_input).verdict(samples=samples)

    plan = build_plan(contract, chosen)
    verdict = judge(applied.df, plan, verify_rows) if judge is not None else verify_rows(applied.df, plan)
    return verdict, applied
