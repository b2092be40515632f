"""What a verification is told from outside: the time it takes for now, and the tables that others promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from databox_contracts.spark.modes import Applied
from databox_contracts.spark.progress import OnProgress
from databox_contracts.spark.timeliness import as_instant


@dataclass(frozen=True, slots=True)
class Given:
    """The same for everything that is judged in one verification or one publish.

    `timestamp_field` tells a row's time where a rule names none. `references` are the other datasets that rules name,
    by `contract.dataset` or by the dataset's name alone. `progress` is told what is being done; None for nobody.
    `applied` is what the schema modes made of the table; None where they were not applied. `beside` are the rows that
    readers will find beside those that are judged, among which a key that refers to the table itself may lead; None for
    none.
    """

    as_of: datetime
    timestamp_field: str | None = None
    references: Mapping[str, DataFrame] = field(default_factory=dict)
    progress: OnProgress | None = None
    applied: Applied | None = None
    beside: DataFrame | None = None

    @classmethod
    def at(
        cls,
        as_of: datetime | None = None,
        timestamp_field: str | None = None,
        references: Mapping[str, DataFrame] | None = None,
        progress: OnProgress | None = None,
    ) -> Given:
        """That time, read as UTC where it has no zone; the real one if there is none."""
        moment = as_instant(as_of) if as_of is not None else datetime.now(UTC)
        return cls(moment, timestamp_field, dict(references or {}), progress)
