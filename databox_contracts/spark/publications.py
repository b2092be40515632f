"""What became of the rows of one publish."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from databox_contracts.results import Verdict
from databox_contracts.spark.modes import Discarded
from databox_contracts.spark.per_partition import PartitionOutcome
from databox_contracts.spark.stores import Place

OnViolation: TypeAlias = Literal["fail", "quarantine", "warn"]


@dataclass(frozen=True, slots=True)
class Publication:
    """What became of the rows of one publish: `rows_in` is the sum of the other four counts.

    `version` is the one readers see now; it is the previous one, or None, where nothing was `published`.
    `rows_rejected` are all rows of a publish that failed, `rows_discarded` those that a schema mode left out.
    `elements_discarded` and `values_discarded` were left out of rows that stay; `discarded` says of which fields, and
    how many values went to variant columns. `quarantine` is the place of the held rows, None where none are.
    `on_violation` is what was done about violations: "warn" where the contract's grace period is not over. `table_rows`
    is how many rows the published version has, those that were there before included; None where nobody counted them.
    `partitions` says what the verdict means for each, where the publish named more than one partition.
    """

    verdict: Verdict
    place: Place
    on_violation: OnViolation
    published: bool
    version: str | None
    rows_in: int
    rows_published: int = 0
    rows_quarantined: int = 0
    rows_rejected: int = 0
    rows_discarded: int = 0
    quarantine: Path | None = None
    table_rows: int | None = None
    elements_discarded: int = 0
    values_discarded: int = 0
    discarded: tuple[Discarded, ...] = ()
    partitions: tuple[PartitionOutcome, ...] = ()
