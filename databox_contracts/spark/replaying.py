"""Replay: held rows are judged again by a corrected contract, and those that keep it now join the table."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from databox_contracts.errors import PublicationError, UnreadableTableError
from databox_contracts.model import Contract
from databox_contracts.plan import Plan, build_plan
from databox_contracts.results import Verdict
from databox_contracts.schema_modes import ModesGiven, effective_modes
from databox_contracts.spark.given import Given
from databox_contracts.spark.progress import OnProgress
from databox_contracts.spark.quarantine_batches import HeldBatch, named_batches, open_batches
from databox_contracts.spark.releasing import Outcome, Releasing
from databox_contracts.spark.replacing import PublishScope, Request
from databox_contracts.spark.stores import Place, open_to_release, table_name


@dataclass(frozen=True, slots=True)
class ReplayedBatch:
    """What became of one batch: `rows` is `released` and `held` together.

    `reasons` are those of the rows that stay, by rule id. `passed_over` says why nobody looked at it; None where
    somebody did.
    """

    name: str
    run_id: str | None
    rows: int
    released: int = 0
    held: int = 0
    reasons: Mapping[str, int] | None = None
    passed_over: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """What became of held rows that were judged again.

    `verdict` is that on them before any was released, by the rules that are about rows; None where there were none.
    `version` is the one readers see now, which has `table_rows` rows; it is a new one if any row was released.
    """

    place: Place
    contract: str
    contract_version: str
    version: str | None
    batches: tuple[ReplayedBatch, ...]
    verdict: Verdict | None = None
    table_rows: int | None = None

    @property
    def rows(self) -> int:
        """How many held rows were looked at."""
        return sum(batch.rows for batch in self.batches if batch.passed_over is None)

    @property
    def rows_released(self) -> int:
        """How many of them are in the table now."""
        return sum(batch.released for batch in self.batches)

    @property
    def rows_held(self) -> int:
        """How many of them stay held."""
        return sum(batch.held for batch in self.batches)

    def to_dict(self) -> dict[str, Any]:
        """As `quarantine replay --format json` prints it; counts and names, no values."""
        return {
            "contract": self.contract,
            "contract_version": self.contract_version,
            "table": table_name(self.place),
            "version": self.version,
            "table_rows": self.table_rows,
            "rows": self.rows,
            "rows_released": self.rows_released,
            "rows_held": self.rows_held,
            "batches": [
                {
                    "batch": batch.name,
                    "run_id": batch.run_id,
                    "rows": batch.rows,
                    "released": batch.released,
                    "held": batch.held,
                    "reasons": dict(batch.reasons or {}),
                    "passed_over": batch.passed_over,
                }
                for batch in self.batches
            ],
        }


def replay(
    spark: SparkSession,
    contract: Contract,
    dataset: str | None = None,
    *,
    place: Place,
    batches: Sequence[str] | None = None,
    scope: PublishScope = "table",
    run_id: str | None = None,
    samples: int = 5,
    as_of: datetime | None = None,
    timestamp_field: str | None = None,
    references: Mapping[str, DataFrame] | None = None,
    schema_modes: ModesGiven = None,
    progress: OnProgress | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Replay:
    """Judge held rows again, by the contract as it is now, and add those that keep it to the table.

    They are judged as rows of an append are: a row whose key is in the table, and all rows of a key that several of
    them have, stay held. Keys are the table's, or with `scope` "partition" each partition's. What is promised of the
    table as a whole (freshness, statistics, completeness, row counts, rules that tolerate some rows) is judged over the
    table with the released rows; if that does not hold, nothing is released. Rows that stay have their reasons by the
    contract as it is now, and the time and run they were first held at. The switch of the table's link, or the one
    commit of a table format or a catalog, releases the rows and replaces the batches: before it nothing has happened,
    after it everything has, kill or not. The commit says what it released, so that it is not released again.

    `batches` are the names of the batches to look at. If none are named those are passed over whose rows are copies of
    the table's, were not held back from this table, or were held back from what a later publish replaced; the last may
    be named. The other arguments are those of `publish`. Schema modes say what else a table may have than the
    contract declares, so name those that the rows were published with; they change nothing in held rows. A grace period
    does not release what breaks a rule.

    Raises `UnreadableTableError` where there is no table, `PublicationError` for batches that cannot be released or
    that schema modes would change, `DataboxError` for modes that there are not, and `ContractViolationError` with the
    verdict where a rule that belongs to no row keeps everything held.
    """
    plan = build_plan(contract, contract.dataset(dataset))
    Request("append", scope=scope).check(str(place), partitioned=True)
    modes = effective_modes(contract, plan.dataset, run=schema_modes)
    given = Given.at(as_of or clock(), timestamp_field, references, progress)
    path = str(place)
    try:
        open_batches(place, spark)
        store = open_to_release(place, spark, clock)
        if store.is_new():
            raise UnreadableTableError(path, "the table is gone, and only held rows are there")
        with store.stage() as staged:
            found = open_batches(place, spark)
            chosen = named_batches(place, found, batches) if batches is not None else found
            considered = [(batch, _passed_over(batch, plan, place, named=batches is not None)) for batch in chosen]
            looked = [batch for batch, reason in considered if reason is None]
            outcome = None
            if looked:
                run = run_id or secrets.token_hex(8)
                releasing = Releasing(
                    spark, plan, path, scope, run, samples, clock, given, store, staged, looked, modes
                )
                outcome = releasing.run()
    except OSError as error:
        raise PublicationError(path, f"the file system says {error.strerror or error}") from error
    return Replay(
        place=place,
        contract=contract.id,
        contract_version=contract.version,
        version=outcome.version if outcome is not None else store.current_version(),
        batches=tuple(_replayed(batch, reason, outcome) for batch, reason in considered),
        verdict=outcome.verdict if outcome is not None else None,
        table_rows=outcome.table_rows if outcome is not None else None,
    )


def _passed_over(batch: HeldBatch, plan: Plan, place: Place, *, named: bool) -> str | None:
    if batch.refused is not None:
        if named:
            raise PublicationError(
                str(place), f"batch {batch.name} cannot be replayed: {batch.refused}", hint="Name other batches."
            )
        return batch.refused
    ours = (plan.contract.id, plan.dataset.name)
    theirs = (batch.facts.get("contract"), batch.facts.get("dataset"))
    if theirs != ours:
        raise PublicationError(
            str(place),
            f"batch {batch.name} was held under {theirs[0]}, dataset {theirs[1]}, and the contract given is {ours[0]},"
            f" dataset {ours[1]}",
            hint="Name the contract that the table is published with.",
        )
    if batch.superseded_by is not None and not named:
        return f"version {batch.superseded_by} replaced what its rows were held back from; name it to release them"
    return None


def _replayed(batch: HeldBatch, passed_over: str | None, outcome: Outcome | None) -> ReplayedBatch:
    run_id = batch.facts.get("run_id")
    if passed_over is not None or outcome is None:
        return ReplayedBatch(batch.name, run_id, batch.rows, passed_over=passed_over)
    counts = outcome.counts[batch.path.name]
    stays = counts.rows - counts.released
    return ReplayedBatch(batch.name, run_id, counts.rows, counts.released, stays, batch.reasons() if stays else {})
