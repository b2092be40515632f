"""What schema modes make of a table and its values: what comes out, why something goes, and what is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import TypeAlias

from pyspark.sql import Column, functions as F
from pyspark.sql.types import DataType as SparkType, StructField, StructType

from databox_contracts.model import Mode
from databox_contracts.plan import Path
from databox_contracts.schema_modes import variant_name
from databox_contracts.spark.schema import to_data_type

Value: TypeAlias = Callable[[Column], Column]
"""From the value at a place to something about it."""
Row: TypeAlias = Callable[[int], Column]
"""The value of the column at that position of a table, or of an object."""


class Unit(StrEnum):
    """What a tally counts. A total counts an array's element once that several fields discard."""

    ROWS = "rows"
    ELEMENTS = "elements"
    VALUES = "values"
    VARIANTS = "variants"
    TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Cause:
    """What a mode is applied to: `path` in the contract's names, `field` as people read it.

    `table` and `column` are those of the nested table that it belongs to: `orders__items` and `sku`; the column is None
    where the table itself is new.
    """

    entity: str
    mode: Mode
    path: Path
    field: str
    table: str
    column: str | None


@dataclass(frozen=True, slots=True)
class Reason:
    """A cause, and whether a value is one; never null."""

    cause: Cause
    when: Value


@dataclass(frozen=True, slots=True)
class Tally:
    """How many things at a cause are discarded or moved within a value; never null."""

    cause: Cause
    unit: Unit
    count: Value


@dataclass(frozen=True, slots=True)
class Shaped:
    """What becomes of a value: its type, and the value itself (`value` None: as it is).

    `misfit` says that it belongs in a variant column beside the nearest field with a name. `drops` are the reasons to
    discard the row it is in, `frozen` those to refuse the table.
    """

    type: SparkType
    value: Value | None = None
    misfit: Value | None = None
    drops: tuple[Reason, ...] = ()
    frozen: tuple[Reason, ...] = ()
    tallies: tuple[Tally, ...] = ()


@dataclass(frozen=True, slots=True)
class Made:
    """A column of the table, or a field of an object, that comes out."""

    field: StructField
    value: Callable[[Row], Column]


@dataclass(frozen=True, slots=True)
class ShapedFields:
    """What becomes of a row, or of an object: its columns in order, and whether any of them is not as it was.

    The reasons and tallies take a row, by the position of a column.
    """

    columns: tuple[Made, ...]
    changed: bool
    drops: tuple[tuple[Cause, Callable[[Row], Column]], ...]
    frozen: tuple[tuple[Cause, Callable[[Row], Column]], ...]
    tallies: tuple[tuple[Cause, Unit, Callable[[Row], Column]], ...]

    @property
    def schema(self) -> StructType:
        """The types that come out."""
        return StructType([made.field for made in self.columns])


@dataclass(frozen=True, slots=True)
class Remark:
    """Something in the table that the contract does not declare, by its dotted name, and what its mode makes of it."""

    name: str
    entity: str
    mode: Mode


# --- as columns ------------------------------------------------------------------------------------------------------


def columns_made(column: StructField, at: int, shaped: Shaped) -> list[Made]:
    """The column of a declared field, and after it the variant column, if it has one."""
    value, misfit = shaped.value, shaped.misfit
    if value is None:
        return [unchanged(column, at)]
    made = StructField(column.name, shaped.type)
    if misfit is None:
        return [Made(made, lambda row: value(row(at)))]
    name = variant_name(column.name, to_data_type(column.dataType), column.dataType.simpleString())
    return [
        Made(made, lambda row: F.when(~misfit(row(at)), value(row(at)))),
        Made(StructField(name, column.dataType), lambda row: F.when(misfit(row(at)), row(at))),
    ]


def unchanged(column: StructField, at: int) -> Made:
    """The column as it is."""
    return Made(column, lambda row: row(at))


def with_variant_tally(shaped: Shaped, cause: Cause) -> Shaped:
    """The same, with the number of values that go to the variant column."""
    assert shaped.misfit is not None
    return replace(shaped, tallies=(*shaped.tallies, Tally(cause, Unit.VARIANTS, as_count(shaped.misfit))))


def shaped_object(actual: StructType, inside: ShapedFields) -> Shaped:
    """What becomes of an object, of whose fields `inside` says it; a null one stays null."""
    if not inside.columns:
        # Nothing declared is in it, which `present` says; an object without fields cannot be written.
        return Shaped(actual)

    def row_of(held: Column) -> Row:
        return lambda at: held.getField(actual.fields[at].name)

    def rebuilt(held: Column) -> Column:
        row = row_of(held)
        return F.when(held.isNotNull(), F.struct(*(made.value(row).alias(made.field.name) for made in inside.columns)))

    def of(about: Callable[[Row], Column]) -> Value:
        return lambda held: about(row_of(held))

    return Shaped(
        inside.schema if inside.changed else actual,
        rebuilt if inside.changed else None,
        None,
        tuple(Reason(cause, of(when)) for cause, when in inside.drops),
        tuple(Reason(cause, of(when)) for cause, when in inside.frozen),
        tuple(Tally(cause, unit, of(count)) for cause, unit, count in inside.tallies),
    )


def at_position(at: int, about: Value) -> Callable[[Row], Column]:
    """Of a row, something about the value at that position."""
    return lambda row: about(row(at))


def is_there(value: Column) -> Column:
    """Whether it is not null."""
    return value.isNotNull()


def filled(held: Column) -> Column:
    """Whether a map has an entry; never null."""
    return F.coalesce(F.size(F.map_keys(held)) > 0, F.lit(False))


def sized(held: Column) -> Column:
    """How many items an array has, 0 for null."""
    return F.when(held.isNotNull(), F.size(held).cast("long")).otherwise(F.lit(0).cast("long"))


def as_count(when: Value) -> Value:
    """1 where the condition is true, else 0."""
    return lambda value: when(value).cast("long")


def anywhere(when: Value, inside: Value = lambda held: held) -> Value:
    """Whether the condition is true of any item; never null."""
    return lambda held: F.coalesce(F.exists(inside(held), when), F.lit(False))


def each(value: Value) -> Value:
    """The items, each made another."""
    return lambda held: F.transform(held, value)


def without(dropped: Value, value: Value | None) -> Value:
    """The items that are not dropped, each made another if `value` says so."""

    def rest(held: Column) -> Column:
        kept = F.filter(held, lambda one: ~dropped(one))
        return F.transform(kept, value) if value is not None else kept

    return rest


def summed(count: Value, inside: Value = lambda held: held) -> Value:
    """The sum over the items; 0 for null."""

    def total(held: Column) -> Column:
        nothing = F.lit(0).cast("long")
        return F.coalesce(F.aggregate(inside(held), nothing, lambda sum_, one: sum_ + count(one)), nothing)

    return total


def unless(dropped: Value, count: Value) -> Value:
    """The count, 0 where it is dropped."""
    return lambda value: F.when(~dropped(value), count(value)).otherwise(F.lit(0).cast("long"))


def any_of(when: Sequence[Value]) -> Value:
    """Whether any of the conditions is true."""
    return lambda value: reduce(or_, (one(value) for one in when))
