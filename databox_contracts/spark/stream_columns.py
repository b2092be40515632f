"""The columns of a stream under its schema modes, and of the table that its batches go to."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from databox_contracts.errors import PublicationError
from databox_contracts.model import Mode, SchemaModes
from databox_contracts.plan import Plan
from databox_contracts.schema_modes import is_variant_of
from databox_contracts.spark.linking import difference
from databox_contracts.spark.modes import Applied, apply_modes
from databox_contracts.spark.modes_walk import holds_objects


@dataclass(frozen=True, slots=True)
class StreamModes:
    """The same for every batch of a query, whose columns do not change while it runs.

    `first_load` says that the table was not there when the query started, `known` are the columns that it had.
    """

    plan: Plan
    modes: SchemaModes
    known: StructType | None = None
    first_load: bool = False

    @property
    def leaves_out(self) -> bool:
        """Whether all rows for a table that is not there yet are to be discarded."""
        return self.modes.tables in (Mode.DISCARD_ROW, Mode.DISCARD_VALUE)

    def apply(self, df: DataFrame) -> Applied:
        """As `apply_modes`, to the stream or to a batch of it."""
        return apply_modes(
            df, self.plan.contract, self.plan.dataset, self.modes, known=self.known, first_load=self.first_load
        )


@dataclass(frozen=True, slots=True)
class Growth:
    """How the columns of a table may differ from those of a stream that adds to it: by what the modes let evolve."""

    plan: Plan
    modes: SchemaModes
    case_sensitive: bool

    def together(self, there: StructType, coming: StructType, path: str) -> StructType:
        """The columns of the table with rows of the stream beside its own, its own first.

        A column that one of them lacks is null there, which is allowed where the contract does not declare it and its
        mode is `evolve`. Raises `PublicationError` for other columns, and others of the same name.
        """
        had, has = set(there.names), set(coming.names)
        added = [field for field in coming.fields if field.name not in had]
        lacking = [field for field in there.fields if field.name not in has]
        differing = [self._fixed(field) for field in (*added, *lacking)]
        # The others are in no order of their own: those that came last are last.
        orders = [[field.name for field in one.fields if self._fixed(field)] for one in (there, coming)]
        shared = StructType([field for field in coming.fields if field.name in had])
        other = difference(StructType([field for field in there.fields if field.name in has]), shared)
        if any(differing) or other is not None or orders[0] != orders[1]:
            raise PublicationError(
                path,
                f"the table is {there.simpleString()}, and the stream is {coming.simpleString()}",
                hint="Name another place, select the table's columns in its order, or let the schema modes be evolve.",
            )
        return StructType([*there.fields, *added])

    def _fixed(self, field: StructField) -> bool:
        declared = [one.column for one in self.plan.dataset.fields]
        if any(self._same(field.name, one) for one in declared):
            return True
        if any(is_variant_of(field.name, one, case_sensitive=self.case_sensitive) for one in declared):
            return self.modes.data_type is not Mode.EVOLVE
        return (self.modes.tables if holds_objects(field.dataType) else self.modes.columns) is not Mode.EVOLVE

    def _same(self, name: str, other: str) -> bool:
        return name == other or (not self.case_sensitive and name.lower() == other.lower())
