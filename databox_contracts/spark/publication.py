"""Write once to a staging place, audit what was staged, and only then swap it in."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from pyspark.sql import DataFrame

from databox_contracts.errors import PublicationError
from databox_contracts.model import Contract
from databox_contracts.plan import build_plan
from databox_contracts.schema_modes import ModesGiven, effective_modes
from databox_contracts.spark.attempts import Attempt
from databox_contracts.spark.catalog_publication import CatalogPlace
from databox_contracts.spark.given import Given
from databox_contracts.spark.progress import OnProgress
from databox_contracts.spark.publications import OnViolation, Publication
from databox_contracts.spark.replacing import PublishMode, PublishScope, Request
from databox_contracts.spark.stores import Place

__all__ = ["OnViolation", "Publication", "publish"]


def publish(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    place: Place,
    on_violation: OnViolation = "fail",
    run_id: str | None = None,
    samples: int = 5,
    as_of: datetime | None = None,
    timestamp_field: str | None = None,
    references: Mapping[str, DataFrame] | None = None,
    mode: PublishMode = "overwrite",
    partition_by: Sequence[str] = (),
    partitions: Sequence[Mapping[str, Any]] | None = None,
    scope: PublishScope = "partition",
    schema_modes: ModesGiven = None,
    progress: OnProgress | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Publication:
    """Publish a DataFrame as the table's next version, if it keeps its contract.

    The DataFrame is executed exactly once. `place` is a directory (`TablePlace`), a table of Spark's catalog
    (`CatalogPlace`), a Delta table (`DeltaPlace`) or an Iceberg table (`IcebergPlace`, `SessionIcebergPlace`).

    With `on_violation="quarantine"` the rows that break an error rule are held back and the rest is judged again; with
    "warn" everything is published. `run_id` marks held rows, so that a retry of the run replaces them. `as_of`,
    `timestamp_field` and `progress` are those of `verify`, `as_of` the clock's if not given.

    `partition_by` names the columns that make partitions, outermost first; "append" and "overwrite_partitions" keep
    the table's own if none are named. A Delta or an Iceberg table has the partitions of its first publish for good, in
    every mode, and a catalog table has none. "append" adds the rows. "overwrite_partitions" replaces the partitions
    that rows come in for and those that `partitions` names (`[{"day": "2024-01-01"}]`): a named one without rows
    becomes empty, and a row of one that is not named is an error. Keys and row counts are then judged over each
    partition that is written to, with the rows an append adds to, and over the whole table where there are no
    partitions or `scope` is "table"; a freshness that the rows which come in do not keep, with those that stay. All
    other rules are judged over the rows that come in.

    `schema_modes` (a word, or a mapping from some of `tables`, `columns` and `data_type`) goes before the contract's
    own. `tables` is asked where nothing is published yet: under `discard_row` and `discard_value` nothing is then
    published, and all rows are discarded. A table whose contract leaves columns or types open takes new columns the
    first time, and then knows those that it has. What is discarded is counted by the write itself.

    Raises `ContractViolationError`, with `publication` and `verdict`, when nothing is published for a violation
    (`DataValidationError` if it is one of a frozen schema); `PublicationError` when the place cannot be published to.
    In both cases the table stays as it was. Raises `DataboxError` for modes that there are not.
    """
    if on_violation not in get_args(OnViolation):
        raise PublicationError(
            str(place), f"on_violation is {on_violation!r}", hint=f"Use one of {', '.join(get_args(OnViolation))}."
        )
    names = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    request = Request(mode, names, partitions, scope)
    request.check(str(place), partitioned=not isinstance(place, CatalogPlace))
    plan = build_plan(contract, contract.dataset(dataset))
    if contract.enforcement.only_warns(clock().date()):
        on_violation = "warn"
    modes = effective_modes(contract, plan.dataset, run=schema_modes)
    given = Given.at(as_of or clock(), timestamp_field, references, progress)
    run_id = run_id or secrets.token_hex(8)
    attempt = Attempt(df, plan, place, on_violation, run_id, samples, clock, given, request, modes)
    try:
        return attempt.run()
    except OSError as error:
        raise PublicationError(str(place), f"the file system says {error.strerror or error}") from error
