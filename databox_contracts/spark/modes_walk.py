"""A schema under schema modes: what becomes of each value, said as columns, before any row is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field as attribute, replace

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType as SparkType, MapType, StringType, StructField, StructType

from databox_contracts.datatypes import Family
from databox_contracts.errors import DataboxError
from databox_contracts.model import Field, Mode, SchemaModes
from databox_contracts.plan import Hop, Path
from databox_contracts.schema_modes import collision, is_variant_of
from databox_contracts.spark.casting import cast_target, cast_value, loses_value, spark_type_of
from databox_contracts.spark.modes_shapes import (
    Cause,
    Made,
    Reason,
    Remark,
    Shaped,
    ShapedFields,
    Tally,
    Unit,
    Value,
    any_of,
    anywhere,
    as_count,
    at_position,
    columns_made,
    each,
    filled,
    is_there,
    shaped_object,
    sized,
    summed,
    unchanged,
    unless,
    with_variant_tally,
    without,
)
from databox_contracts.spark.schema import claimed_columns, to_data_type


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
                made = [(at, one) for one in columns_made(column, at, shaped)]
                kept.append(made[0])
                variants += made[1:]
                changed = changed or shaped.value is not None or len(made) > 1
                if len(made) > 1:
                    shaped = with_variant_tally(
                        shaped, self._mistyped_cause(declared, (*path, declared.column), (*names, declared.name), table)
                    )
                shapes.append((at, shaped))
            elif self.modes.data_type is Mode.EVOLVE and self._is_variant(column.name, fields):
                variants.append((at, unchanged(column, at)))
            else:
                shaped, mode = self._undeclared(column, path, names, table)
                shapes.append((at, shaped))
                if mode is Mode.FREEZE:
                    kept.append((at, unchanged(column, at)))
                elif mode is Mode.EVOLVE:
                    last.append((at, unchanged(column, at)))
                else:
                    changed = True
        columns = [*kept, *last, *variants]
        moved = [at for at, _ in columns] != list(range(len(struct.fields)))
        if changed or moved:
            self._refuse_collisions(struct, [made.field.name for _, made in columns], names)
        return ShapedFields(
            tuple(made for _, made in columns),
            changed or moved,
            drops=tuple((r.cause, at_position(at, r.when)) for at, shaped in shapes for r in shaped.drops),
            frozen=tuple((r.cause, at_position(at, r.when)) for at, shaped in shapes for r in shaped.frozen),
            tallies=tuple((t.cause, t.unit, at_position(at, t.count)) for at, shaped in shapes for t in shaped.tallies),
        )

    def value(self, field: Field, actual: SparkType, path: Path, names: tuple[str, ...], table: str) -> Shaped:
        """What becomes of a value of a declared field."""
        had = to_data_type(actual)
        if field.type is not None and (had is None or not field.type.accepts(had)):
            return self._mistyped(field, actual, path, names, table)
        match actual:
            case StructType() if field.fields:
                return shaped_object(actual, self.fields(field.fields, actual, path, names, table))
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
        nested = holds_objects(column.dataType)
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
        there = Reason(cause, is_there)
        match mode:
            case Mode.EVOLVE:
                return Shaped(column.dataType), mode
            case Mode.FREEZE:
                return Shaped(column.dataType, frozen=(there,)), mode
            case _ if nested:
                # The rows of the nested table are discarded, and with them the table.
                size = sized
                tallies = (Tally(cause, Unit.ELEMENTS, size), Tally(cause, Unit.TOTAL, size))
                return Shaped(column.dataType, tallies=tallies), mode
            case Mode.DISCARD_ROW:
                return Shaped(column.dataType, drops=(there,)), mode
        return Shaped(column.dataType, tallies=(Tally(cause, Unit.VALUES, as_count(is_there)),)), mode

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
            misfit = is_there
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
        return Shaped(target, cast, tallies=(Tally(cause, Unit.VALUES, as_count(misfit)),))

    def _mistyped_cause(self, field: Field, path: Path, names: tuple[str, ...], table: str) -> Cause:
        inside = (path[-1].value,) if isinstance(path[-1], Hop) else ()
        return Cause("data_type", self.modes.data_type, path, ".".join((*names, *inside)), table, field.column)

    # --- what holds others --------------------------------------------------------------------------------------------

    def _array(self, actual: ArrayType, item: Shaped) -> Shaped:
        frozen = tuple(Reason(one.cause, anywhere(one.when)) for one in item.frozen)
        misfit = anywhere(item.misfit) if item.misfit is not None else None
        made = ArrayType(item.type, True) if item.value is not None else actual
        if not item.drops or self.whole_rows:
            value = each(item.value) if item.value is not None else None
            drops = tuple(Reason(one.cause, anywhere(one.when)) for one in item.drops)
            tallies = tuple(replace(one, count=summed(one.count)) for one in item.tallies)
            return Shaped(made, value, misfit, drops, frozen, tallies)
        dropped = any_of([one.when for one in item.drops])
        per_field = [Tally(one.cause, Unit.ELEMENTS, summed(as_count(one.when))) for one in item.drops]
        total = Tally(item.drops[0].cause, Unit.TOTAL, summed(as_count(dropped)))
        inside = [replace(one, count=summed(unless(dropped, one.count))) for one in item.tallies]
        return Shaped(made, without(dropped, item.value), misfit, (), frozen, (*per_field, total, *inside))

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
            anywhere(inner.misfit, F.map_values) if inner.misfit is not None else None,
            tuple(Reason(one.cause, anywhere(one.when, F.map_values)) for one in inner.drops),
            tuple(Reason(one.cause, anywhere(one.when, F.map_values)) for one in inner.frozen),
            tuple(replace(one, count=summed(one.count, F.map_values)) for one in inner.tallies),
        )

    def _mistyped_keys(
        self, field: Field, actual: MapType, path: Path, names: tuple[str, ...], table: str, key: Shaped
    ) -> Shaped:
        mode = self.modes.data_type
        cause = Cause("data_type", mode, (*path, Hop.KEY), ".".join((*names, "key")), table, field.column)
        target = spark_type_for(field)
        if mode is Mode.FREEZE or target is None:
            return Shaped(actual, frozen=(Reason(cause, filled),))
        emptied: Value = lambda held: F.when(held.isNotNull() & ~filled(held), F.create_map().cast(target))  # noqa: E731
        match mode:
            case Mode.EVOLVE:
                return Shaped(target, emptied, misfit=filled)
            case Mode.DISCARD_ROW:
                return Shaped(target, emptied, drops=(Reason(cause, filled),))
        return Shaped(target, emptied, tallies=(Tally(cause, Unit.VALUES, as_count(filled)),))

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


def holds_objects(actual: SparkType) -> bool:
    """Whether it is a table in a column: an array of objects."""
    return isinstance(actual, ArrayType) and (
        isinstance(actual.elementType, StructType) or holds_objects(actual.elementType)
    )
