"""A schema under schema modes: what becomes of each value, said as columns, before any row is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field as attribute, replace
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import TypeAlias

from pyspark.sql import Column, functions as F
from pyspark.sql.types import ArrayType, DataType as SparkType, MapType, StringType, StructField, StructType

from databox_contracts.datatypes import Family
from databox_contracts.errors import DataboxError
from databox_contracts.model import Field, Mode, SchemaModes
from databox_contracts.plan import Hop, Path
from databox_contracts.schema_modes import collision, is_variant_of, variant_name
from databox_contracts.spark.casting import cast_target, cast_value, loses_value, spark_type_of
from databox_contracts.spark.schema import claimed_columns, to_data_type

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


@dataclass(slots=True)
class Walk:
    """One pass over a schema. `remarks` is filled on the way, in the table's order.

    With `whole_rows` (a Pydantic model's) what would discard an array's element discards the row.
    """

    modes: SchemaModes
    case_sensitive: bool
    whole_rows: bool
    contract: str
    remarks: list[Remark] = attribute(default_factory=list)

    def fields(
        self, fields: tuple[Field, ...], struct: StructType, path: Path, names: tuple[str, ...], table: str
    ) -> ShapedFields:
        """What becomes of the fields of a table or an object. Raises `DataboxError` where two names are one."""
        claimed = claimed_columns(struct, fields, case_sensitive=self.case_sensitive)
        kept: list[tuple[int, Made]] = []
        last: list[tuple[int, Made]] = []
        variants: list[tuple[int, Made]] = []
        changed = False
        shapes: list[tuple[int, Shaped]] = []
        for at, column in enumerate(struct.fields):
            declared = claimed.get(at)
            if declared is not None:
                shaped = self.value(declared, column.dataType, (*path, declared.column), (*names, declared.name), table)
                made = [(at, one) for one in _made(column, at, shaped)]
                kept.append(made[0])
                variants += made[1:]
                changed = changed or shaped.value is not None or len(made) > 1
                if len(made) > 1:
                    shaped = _with_variant_tally(
                        shaped, self._mistyped_cause(declared, (*path, declared.column), (*names, declared.name), table)
                    )
                shapes.append((at, shaped))
            elif self.modes.data_type is Mode.EVOLVE and self._is_variant(column.name, fields):
                variants.append((at, _same(column, at)))
            else:
                shaped, mode = self._undeclared(column, path, names, table)
                shapes.append((at, shaped))
                if mode is Mode.FREEZE:
                    kept.append((at, _same(column, at)))
                elif mode is Mode.EVOLVE:
                    last.append((at, _same(column, at)))
                else:
                    changed = True
        columns = [*kept, *last, *variants]
        moved = [at for at, _ in columns] != list(range(len(struct.fields)))
        if changed or moved:
            self._refuse_collisions(struct, [made.field.name for _, made in columns], names)
        return ShapedFields(
            tuple(made for _, made in columns),
            changed or moved,
            drops=tuple((r.cause, _of(at, r.when)) for at, shaped in shapes for r in shaped.drops),
            frozen=tuple((r.cause, _of(at, r.when)) for at, shaped in shapes for r in shaped.frozen),
            tallies=tuple((t.cause, t.unit, _of(at, t.count)) for at, shaped in shapes for t in shaped.tallies),
        )

    def value(self, field: Field, actual: SparkType, path: Path, names: tuple[str, ...], table: str) -> Shaped:
        """What becomes of a value of a declared field."""
        had = to_data_type(actual)
        if field.type is not None and (had is None or not field.type.accepts(had)):
            return self._mistyped(field, actual, path, names, table)
        match actual:
            case StructType() if field.fields:
                return _object(actual, self.fields(field.fields, actual, path, names, table))
            case ArrayType() if field.item is not None:
                inner = f"{table}__{names[-1]}"
                item = self.value(field.item, actual.elementType, (*path, Hop.ITEM), names, inner)
                return self._array(actual, item)
            case MapType() if field.key is not None or field.value is not None:
                return self._map(field, actual, path, names, table)
        return Shaped(actual)

    # --- a column that is not declared --------------------------------------------------------------------------------

    def _undeclared(self, column: StructField, path: Path, names: tuple[str, ...], table: str) -> tuple[Shaped, Mode]:
        dotted = ".".join((*names, column.name))
        nested = _holds_objects(column.dataType)
        entity = "tables" if nested else "columns"
        mode = self.modes.tables if nested else self.modes.columns
        self.remarks.append(Remark(dotted, entity, mode))
        cause = Cause(
            entity,
            mode,
            (*path, column.name),
            dotted,
            f"{table}__{column.name}" if nested else table,
            None if nested else column.name,
        )
        there = Reason(cause, _is_there)
        match mode:
            case Mode.EVOLVE:
                return Shaped(column.dataType), mode
            case Mode.FREEZE:
                return Shaped(column.dataType, frozen=(there,)), mode
            case _ if nested:
                # The rows of the nested table are discarded, and with them the table.
                size = _sized
                tallies = (Tally(cause, Unit.ELEMENTS, size), Tally(cause, Unit.TOTAL, size))
                return Shaped(column.dataType, tallies=tallies), mode
            case Mode.DISCARD_ROW:
                return Shaped(column.dataType, drops=(there,)), mode
        return Shaped(column.dataType, tallies=(Tally(cause, Unit.VALUES, _as_count(_is_there)),)), mode

    # --- a value of another type --------------------------------------------------------------------------------------

    def _mistyped(self, field: Field, actual: SparkType, path: Path, names: tuple[str, ...], table: str) -> Shaped:
        assert field.type is not None
        castable = cast_target(actual, field.type)
        target = castable or spark_type_for(field)
        mode = self.modes.data_type
        cause = self._mistyped_cause(field, path, names, table)
        if castable is not None:
            to = castable
            misfit: Value = lambda value: loses_value(value, actual, to)  # noqa: E731
            cast: Value = lambda value: cast_value(value, actual, to)  # noqa: E731
        else:
            misfit = _is_there
            cast = lambda value: F.lit(None).cast(target) if target is not None else value  # noqa: E731
        if mode is Mode.FREEZE:
            return Shaped(actual, frozen=(Reason(cause, misfit),))
        if target is None:
            # Nobody knows what the column should become, so it stays, and breaks `type`.
            return Shaped(actual)
        match mode:
            case Mode.EVOLVE:
                return Shaped(target, cast, misfit=misfit)
            case Mode.DISCARD_ROW:
                return Shaped(target, cast, drops=(Reason(cause, misfit),))
        return Shaped(target, cast, tallies=(Tally(cause, Unit.VALUES, _as_count(misfit)),))

    def _mistyped_cause(self, field: Field, path: Path, names: tuple[str, ...], table: str) -> Cause:
        inside = (path[-1].value,) if isinstance(path[-1], Hop) else ()
        return Cause("data_type", self.modes.data_type, path, ".".join((*names, *inside)), table, field.column)

    # --- what holds others --------------------------------------------------------------------------------------------

    def _array(self, actual: ArrayType, item: Shaped) -> Shaped:
        frozen = tuple(Reason(one.cause, _anywhere(one.when)) for one in item.frozen)
        misfit = _anywhere(item.misfit) if item.misfit is not None else None
        made = ArrayType(item.type, True) if item.value is not None else actual
        if not item.drops or self.whole_rows:
            value = _each(item.value) if item.value is not None else None
            drops = tuple(Reason(one.cause, _anywhere(one.when)) for one in item.drops)
            tallies = tuple(replace(one, count=_summed(one.count)) for one in item.tallies)
            return Shaped(made, value, misfit, drops, frozen, tallies)
        dropped = _any_of([one.when for one in item.drops])
        per_field = [Tally(one.cause, Unit.ELEMENTS, _summed(_as_count(one.when))) for one in item.drops]
        total = Tally(item.drops[0].cause, Unit.TOTAL, _summed(_as_count(dropped)))
        inside = [replace(one, count=_summed(_unless(dropped, one.count))) for one in item.tallies]
        return Shaped(made, _without(dropped, item.value), misfit, (), frozen, (*per_field, total, *inside))

    def _map(self, field: Field, actual: MapType, path: Path, names: tuple[str, ...], table: str) -> Shaped:
        key, value = field.key, field.value
        if key is not None:
            remarks = len(self.remarks)
            shaped = self.value(key, actual.keyType, (*path, Hop.KEY), (*names, "key"), table)
            if shaped.value is not None or shaped.drops or shaped.frozen:
                # A key is not changed: two could become one. A map whose keys do not fit, does not as a whole.
                del self.remarks[remarks:]
                return self._mistyped_keys(field, actual, path, names, table, shaped)
        if value is None:
            return Shaped(actual)
        inner = self.value(value, actual.valueType, (*path, Hop.VALUE), names, table)
        changed = inner.value
        return Shaped(
            MapType(actual.keyType, inner.type, True) if changed is not None else actual,
            (lambda held: F.transform_values(held, lambda _, one: changed(one))) if changed is not None else None,
            _anywhere(inner.misfit, F.map_values) if inner.misfit is not None else None,
            tuple(Reason(one.cause, _anywhere(one.when, F.map_values)) for one in inner.drops),
            tuple(Reason(one.cause, _anywhere(one.when, F.map_values)) for one in inner.frozen),
            tuple(replace(one, count=_summed(one.count, F.map_values)) for one in inner.tallies),
        )

    def _mistyped_keys(
        self, field: Field, actual: MapType, path: Path, names: tuple[str, ...], table: str, key: Shaped
    ) -> Shaped:
        mode = self.modes.data_type
        cause = Cause("data_type", mode, (*path, Hop.KEY), ".".join((*names, "key")), table, field.column)
        target = spark_type_for(field)
        if mode is Mode.FREEZE or target is None:
            return Shaped(actual, frozen=(Reason(cause, _filled),))
        emptied: Value = lambda held: F.when(held.isNotNull() & ~_filled(held), F.create_map().cast(target))  # noqa: E731
        match mode:
            case Mode.EVOLVE:
                return Shaped(target, emptied, misfit=_filled)
            case Mode.DISCARD_ROW:
                return Shaped(target, emptied, drops=(Reason(cause, _filled),))
        return Shaped(target, emptied, tallies=(Tally(cause, Unit.VALUES, _as_count(_filled)),))

    # --- names --------------------------------------------------------------------------------------------------------

    def _is_variant(self, name: str, fields: Iterable[Field]) -> bool:
        return any(is_variant_of(name, field.column, case_sensitive=self.case_sensitive) for field in fields)

    def _refuse_collisions(self, struct: StructType, made: Sequence[str], names: tuple[str, ...]) -> None:
        where = f" in {'.'.join(names)}" if names else ""
        for these in ([field.name for field in struct.fields], made):
            twice = collision(these, case_sensitive=self.case_sensitive)
            if twice is not None:
                raise DataboxError(
                    f"{self.contract}: two columns{where} would have one name, {twice[0]} and {twice[1]}",
                    hint="Rename one of them before the table is published.",
                )


def spark_type_for(field: Field) -> SparkType | None:
    """The Spark type of a whole declared field, parts included; None where the contract does not say enough."""
    if field.type is None:
        return None
    match field.type.family:
        case Family.STRING:
            return StringType()
        case Family.ARRAY:
            item = spark_type_for(field.item) if field.item is not None else StringType()
            return ArrayType(item) if item is not None else None
        case Family.MAP:
            key = spark_type_for(field.key) if field.key is not None else StringType()
            value = spark_type_for(field.value) if field.value is not None else StringType()
            return MapType(key, value) if key is not None and value is not None else None
        case Family.OBJECT:
            parts = [(part.column, spark_type_for(part)) for part in field.fields]
            known = [StructField(name, type_) for name, type_ in parts if type_ is not None]
            return StructType(known) if known and len(known) == len(parts) else None
        case _:
            return spark_type_of(field.type)


def _holds_objects(actual: SparkType) -> bool:
    """Whether it is a table in a column: an array of objects."""
    return isinstance(actual, ArrayType) and (
        isinstance(actual.elementType, StructType) or _holds_objects(actual.elementType)
    )


# --- columns ----------------------------------------------------------------------------------------------------------


def _made(column: StructField, at: int, shaped: Shaped) -> list[Made]:
    """The column of a declared field, and after it the variant column, if it has one."""
    value, misfit = shaped.value, shaped.misfit
    if value is None:
        return [_same(column, at)]
    made = StructField(column.name, shaped.type)
    if misfit is None:
        return [Made(made, lambda row: value(row(at)))]
    name = variant_name(column.name, to_data_type(column.dataType), column.dataType.simpleString())
    return [
        Made(made, lambda row: F.when(~misfit(row(at)), value(row(at)))),
        Made(StructField(name, column.dataType), lambda row: F.when(misfit(row(at)), row(at))),
    ]


def _same(column: StructField, at: int) -> Made:
    return Made(column, lambda row: row(at))


def _with_variant_tally(shaped: Shaped, cause: Cause) -> Shaped:
    assert shaped.misfit is not None
    return replace(shaped, tallies=(*shaped.tallies, Tally(cause, Unit.VARIANTS, _as_count(shaped.misfit))))


def _object(actual: StructType, inside: ShapedFields) -> Shaped:
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


def _of(at: int, about: Value) -> Callable[[Row], Column]:
    return lambda row: about(row(at))


def _is_there(value: Column) -> Column:
    return value.isNotNull()


def _filled(held: Column) -> Column:
    return F.coalesce(F.size(F.map_keys(held)) > 0, F.lit(False))


def _sized(held: Column) -> Column:
    return F.when(held.isNotNull(), F.size(held).cast("long")).otherwise(F.lit(0).cast("long"))


def _as_count(when: Value) -> Value:
    return lambda value: when(value).cast("long")


def _anywhere(when: Value, inside: Value = lambda held: held) -> Value:
    return lambda held: F.coalesce(F.exists(inside(held), when), F.lit(False))


def _each(value: Value) -> Value:
    return lambda held: F.transform(held, value)


def _without(dropped: Value, value: Value | None) -> Value:
    def rest(held: Column) -> Column:
        kept = F.filter(held, lambda one: ~dropped(one))
        return F.transform(kept, value) if value is not None else kept

    return rest


def _summed(count: Value, inside: Value = lambda held: held) -> Value:
    def total(held: Column) -> Column:
        nothing = F.lit(0).cast("long")
        return F.coalesce(F.aggregate(inside(held), nothing, lambda sum_, one: sum_ + count(one)), nothing)

    return total


def _unless(dropped: Value, count: Value) -> Value:
    return lambda value: F.when(~dropped(value), count(value)).otherwise(F.lit(0).cast("long"))


def _any_of(when: Sequence[Value]) -> Value:
    return lambda value: reduce(or_, (one(value) for one in when))
