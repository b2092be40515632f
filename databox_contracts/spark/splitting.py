"""A DataFrame split by its contract: the rows that keep it, and those that do not, each with its reasons."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts.errors import ContractViolationError, DataboxError
from databox_contracts.model import Contract
from databox_contracts.plan import Check, build_plan
from databox_contracts.results import Status, Verdict
from databox_contracts.rules import Severity
from databox_contracts.schema_modes import ModesGiven, effective_modes
from databox_contracts.spark.counting import positional
from databox_contracts.spark.given import Given
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.keys import colliding_hashes, comparable, repeated_keys, with_key
from databox_contracts.spark.modes import apply_modes
from databox_contracts.spark.outcomes import threshold_of
from databox_contracts.spark.reasons import FREE_NAMES, STAMP, no_room_for_reasons


@dataclass(frozen=True, slots=True)
class Split:
    """`valid` are the rows that break no error rule, `quarantined` the others with their reasons, both of them lazy.

    `verdict` is that of all rows. A failed rule that belongs to no row, such as a row count, holds none: ask `verdict`.
    """

    valid: DataFrame
    quarantined: DataFrame
    verdict: Verdict


def quarantine(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    samples: int = 5,
    run_id: str | None = None,
    as_of: datetime | None = None,
    timestamp_field: str | None = None,
    references: Mapping[str, DataFrame] | None = None,
    schema_modes: ModesGiven = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Split:
    """Judge a table and split it by the error rules that allow no row to break them.

    Held are all rows of a repeated key, and those whose foreign key has no match. The held rows have the columns that
    `publish` gives them. The arguments are those of `verify`. The table is read for the verdict and again by each of
    the two DataFrames, so it has to be the same each time: cache it, or use `publish`, where it is not, or where
    reading it is dear. Raises `ContractViolationError` where nobody knows which rows would have to be held: a rule
    that could not be evaluated, a broken schema, a key inside an array or a map; `DataboxError` where the table has a
    column of the names that held rows get.
    """
    chosen = contract.dataset(dataset)
    applied = apply_modes(df, contract, chosen, effective_modes(contract, chosen, run=schema_modes)).counted()
    no_room = no_room_for_reasons(applied.df.columns)
    if no_room is not None:
        raise DataboxError(f"{chosen.name} cannot be split: {no_room}", hint=FREE_NAMES)
    given = replace(Given.at(as_of or clock(), timestamp_field, references), applied=applied)
    verification = Verification(applied.df, build_plan(contract, chosen), given=given)
    verdict = verification.verdict(samples=samples)
    reasons = dict(_marks(verification, verdict))
    of_no_row = {check.id for check in verification.plan.checks if check.of_no_row}
    unknown = [
        result
        for result in verdict.results
        if result.stops and result.failed_count != 0 and result.id not in reasons and result.id not in of_no_row
    ]
    if unknown:
        said = "; ".join(f"{result.id}: {result.message}" for result in unknown[:3])
        raise ContractViolationError(
            verdict,
            message=f"{verdict.dataset}: nobody knows which rows to hold: {said}",
            hint='Correct the table or the rule, or publish with on_violation="fail".',
        )
    marked = verification.view
    for id_, mark in reasons.items():
        marked = mark(marked, f"reason_{id_}")
    found = [F.col(f"`reason_{check.id}`") for check in verification.plan.checks if check.id in reasons]
    listed = F.filter(F.array(*found).cast("array<string>"), lambda reason: reason.isNotNull())
    marked = marked.withColumn("reasons", listed)
    own = [F.col(positional(at)) for at in range(len(applied.df.columns))]
    micros = int(clock().astimezone(UTC).timestamp() * 1_000_000)
    held = marked.where(F.size("reasons") > 0).select(
        *own,
        F.col("reasons"),
        F.timestamp_micros(F.lit(micros)),
        F.lit(contract.id),
        F.lit(contract.version),
        F.lit(run_id or secrets.token_hex(8)),
    )
    names = [*applied.df.columns, *STAMP]
    valid = marked.where(F.size("reasons") == 0).select(*own).toDF(*applied.df.columns)
    return Split(valid, held.toDF(*names), verdict)


def _marks(verification: Verification, verdict: Verdict) -> Iterator[tuple[str, Callable[[DataFrame, str], DataFrame]]]:
    """For each failed rule that holds rows, what adds a column to the view with its id in the rows that break it."""
    failed = {result.id for result in verdict.with_status(Status.FAILED)}
    for counted in verification.held_by():
        if counted.check.id in failed:
            yield counted.check.id, _by_condition(counted.violating(verification.view), counted.check)
    for check in verification.plan.keys:
        holds = check.id in failed and check.severity is Severity.ERROR and threshold_of(check).allows_none
        if holds and verification.key_items(check) is None:
            parts = comparable(verification.view, verification.key_columns(check))
            keyed = with_key(verification.view, verification.key_columns(check))
            repeated = repeated_keys(keyed, colliding_hashes(keyed, verdict.row_count)).drop("rows")
            yield check.id, _by_key(parts, repeated, check)
    for one in verification.matchings:
        if one.check.id in failed and one.check.severity is Severity.ERROR and not one.inside:
            yield one.check.id, _by_key(list(one.parts), one.unmatched(verification.view), one.check)


def _by_condition(broken: Column, check: Check) -> Callable[[DataFrame, str], DataFrame]:
    return lambda rows, name: rows.withColumn(name, F.when(broken, check.id))


def _by_key(parts: list[Column], keys: DataFrame, check: Check) -> Callable[[DataFrame, str], DataFrame]:
    def mark(rows: DataFrame, name: str) -> DataFrame:
        names = [f"{name}_k{at}" for at in range(len(parts))]
        keyed = rows.withColumns(dict(zip(names, parts, strict=True)))
        found = keys.toDF(*names).withColumn(name, F.lit(check.id))
        return keyed.join(found, names, "left").drop(*names)

    return mark
