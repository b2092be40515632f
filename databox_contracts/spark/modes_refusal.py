"""A table refused under `freeze`: the error, and the one row that shows why."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import ArrayType, DataType as SparkType, MapType, StructType

from databox_contracts.errors import ContractViolationError, DataValidationError
from databox_contracts.model import Contract, Dataset, Field, Mode
from databox_contracts.results import Verdict
from databox_contracts.schema_modes import VARIANT, expanded, is_model
from databox_contracts.spark.counting import positional
from databox_contracts.spark.failures import SPARK_ERRORS, unlogged
from databox_contracts.spark.modes import Applied
from databox_contracts.spark.modes_shapes import Cause, Value
from databox_contracts.spark.modes_walk import Walk

_WAYS_OUT: Final = {
    "tables": "Declare it, or let the tables mode be evolve.",
    "columns": "Declare {column} in the contract, leave it out of the table, or choose another columns mode.",
    "data_type": "Give {column} the promised type, or choose another data_type mode.",
}


def refusal(
    contract: Contract,
    dataset: Dataset,
    applied: Applied | None,
    verdict: Verdict,
    rows: DataFrame | None,
    *,
    message: str | None = None,
    publication: Any = None,
) -> ContractViolationError:
    """The error for a verdict that stops a table: a `DataValidationError` if the schema is frozen and broken.

    `rows` are those that were judged; None where there are none to show.
    """
    if applied is None or not applied.frozen:
        return ContractViolationError(verdict, message=message, publication=publication)
    cause = applied.frozen[0]
    return DataValidationError(
        verdict,
        message=message,
        hint=_WAYS_OUT[cause.entity].format(column=cause.column),
        publication=publication,
        schema_name=contract.id,
        table_name=cause.table,
        column_name=cause.column,
        schema_entity=cause.entity,
        contract_mode=str(cause.mode),
        table_schema=dataset,
        schema_contract=expanded(applied.modes),
        data_item=offending_row(rows, contract, dataset, applied, cause) if rows is not None else None,
    )


def offending_row(
    rows: DataFrame, contract: Contract, dataset: Dataset, applied: Applied, cause: Cause
) -> dict[str, Any] | None:
    """The first row, in the order of its JSON text, that has what a frozen schema refuses, without masked fields."""
    walk = Walk(applied.modes, applied.case_sensitive, is_model(dataset), contract.title)
    shaped = walk.fields(applied.fields, rows.schema, (), (), dataset.table_name)
    when = next((condition for found, condition in shaped.frozen if found.path == cause.path), None)
    if when is None:
        return None
    shown = _Shown(contract.governance.pii_class, applied.case_sensitive)
    view = rows.toDF(*(positional(at) for at in range(len(rows.columns))))
    found: dict[str, Column] = {}
    for at, column in enumerate(rows.schema.fields):
        value = shown.part(column.name, column.dataType, dataset.fields, hidden=False)
        if value is not None:
            found[column.name] = value(F.col(positional(at)))
    chosen = view.where(when(lambda at: F.col(positional(at)))).select(
        *(value.alias(positional(at)) for at, value in enumerate(found.values()))
    )
    text = F.to_json(F.struct(*(F.col(positional(at)) for at in range(len(found)))))
    try:
        with unlogged():
            first = chosen.orderBy(text).limit(1).collect() if found else []
    except SPARK_ERRORS:
        # The error that it is to illustrate matters more.
        return None
    values = first[0].asDict(recursive=True).values() if first else ()
    return dict(zip(found, values, strict=True)) if first else None


class _Shown:
    """Values without what must not be shown. What the contract does not declare is hidden if all of it is personal."""

    def __init__(self, pii_class: str | None, case_sensitive: bool) -> None:
        self.pii_class = pii_class
        self.case_sensitive = case_sensitive

    def part(self, name: str, actual: SparkType, fields: tuple[Field, ...], *, hidden: bool) -> Value | None:
        """How the column or part of that name is shown, None where it is not."""
        field = next((one for one in fields if self._names(name, one.column)), None)
        # A value that did not fit a field is as personal as those that did.
        field = field or next((one for one in fields if self._names(name.split(VARIANT)[0], one.column)), None)
        if hidden or (field is None and self.pii_class is not None):
            return None
        return self.value(actual, field)

    def value(self, actual: SparkType, field: Field | None) -> Value | None:
        if field is None:
            return lambda value: value
        if field.conceals(self.pii_class):
            return None
        match actual:
            case StructType() if field.fields:
                return self._object(actual, field)
            case ArrayType() if field.item is not None:
                item = self.value(actual.elementType, field.item)
                return (lambda value: F.transform(value, item)) if item is not None else None
            case MapType():
                key = self.value(actual.keyType, field.key)
                value = self.value(actual.valueType, field.value)
                if key is None or value is None:
                    return None
                return lambda held: F.transform_values(held, lambda _, one: value(one))
        return lambda value: value

    def _object(self, actual: StructType, field: Field) -> Value | None:
        parts = {one.name: self.part(one.name, one.dataType, field.fields, hidden=False) for one in actual.fields}
        shown = {name: value for name, value in parts.items() if value is not None}
        if not shown:
            return None

        def rebuilt(held: Column) -> Column:
            values = (value(held.getField(name)).alias(name) for name, value in shown.items())
            return F.when(held.isNotNull(), F.struct(*values))

        return rebuilt

    def _names(self, name: str, column: str) -> bool:
        return name == column or (not self.case_sensitive and name.lower() == column.lower())


def new_table(dataset: Dataset, mode: Mode) -> Cause:
    """The cause for a table that is not there yet."""
    return Cause("tables", mode, (), dataset.table_name, dataset.table_name, None)
