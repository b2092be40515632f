"""A table's columns as its reader wants them: renamed, widened, filled up, and what has to be said about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType as SparkType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from databox_contracts.datatypes import Family
from databox_contracts.evolution.renaming import HINT
from databox_contracts.evolution.widening import Widening, widens
from databox_contracts.model import Field
from databox_contracts.spark.casting import loses, spark_type_of
from databox_contracts.spark.compat import try_cast
from databox_contracts.spark.failures import SPARK_ERRORS, unlogged
from databox_contracts.spark.schema import to_data_type, type_text


class ChangeKind(StrEnum):
    """How a field of the table differs from what its reader asks for."""

    RENAMED = "renamed"
    MISSING = "missing"
    REQUIRED_MISSING = "required_missing"
    WIDENED = "widened"
    CONVERTED = "converted"
    INCOMPATIBLE = "incompatible"
    AMBIGUOUS = "ambiguous"


COMPATIBLE = (ChangeKind.RENAMED, ChangeKind.MISSING, ChangeKind.WIDENED)
"""What keeps every value."""


@dataclass(frozen=True, slots=True)
class ReadChange:
    """One difference between table and reader. `field` is the reader's dotted name.

    `lost_rows` counts the rows of which a value became null since it does not fit; None where none can.
    """

    field: str
    kind: ChangeKind
    message: str
    lost_rows: int | None = None

    @property
    def compatible(self) -> bool:
        """Whether the reader gets all that it asks for and every value of it unchanged."""
        return self.kind in COMPATIBLE


@dataclass(frozen=True, slots=True)
class Reading:
    """A field ready to be read: its column, what differs, and for each of the changes that may lose a value whether it
    does in a row.
    """

    column: Column
    changes: tuple[ReadChange, ...]
    losses: tuple[tuple[str, Column], ...]


Losing = Callable[[Column], Column]
"""Whether there is a loss below a value of the table."""


@dataclass(frozen=True, slots=True)
class _Part:
    """How a value of the table becomes one of the reader; None where it stays as it is."""

    value: Callable[[Column], Column] | None
    type: SparkType
    changes: tuple[ReadChange, ...] = ()
    losing: tuple[tuple[str, Losing], ...] = ()


class ReaderColumns:
    """Puts a reader's fields together from a table of that schema."""

    def __init__(self, df: DataFrame, *, case_sensitive: bool) -> None:
        self.df = df
        self.case_sensitive = case_sensitive

    def read(self, field: Field, view: DataFrame, called: Callable[[int], str]) -> Reading:
        """One top-level field, from a view of the table whose columns have names of ours."""
        found = self._find(self.df.schema, field)
        if isinstance(found, _Part):
            value = found.value(F.lit(None)) if found.value is not None else F.lit(None)
            return Reading(value, found.changes, ())
        at, change = found
        actual = self.df.schema.fields[at].dataType
        column = view[called(at)]
        part = self._part(field, field.name, actual)
        changes = (*([change] if change is not None else []), *part.changes)
        value = part.value(column) if part.value is not None else column
        return Reading(value, changes, tuple((name, losing(column)) for name, losing in part.losing))

    # --- finding ------------------------------------------------------------------------------------------------------

    def _find(
        self, struct: StructType, field: Field, dotted: str | None = None
    ) -> tuple[int, ReadChange | None] | _Part:
        """The position of a field and the change that it was found by, or what stands in for one that is not there."""
        dotted = dotted or field.name
        for name in _accepted(field):
            at = self._positions(struct, name)
            if len(at) > 1:
                text = f"the table has {len(at)} columns named {name}"
                return self._absent(field, ReadChange(dotted, ChangeKind.AMBIGUOUS, text))
            if at:
                had = struct.names[at[0]]
                renamed = had.lower() != field.column.lower()
                change = ReadChange(dotted, ChangeKind.RENAMED, f"{dotted} is called {had} in the table")
                return at[0], change if renamed else None
        if field.required:
            text = f"the table has no column {field.column}, which the reader requires"
            return self._absent(field, ReadChange(dotted, ChangeKind.REQUIRED_MISSING, text))
        text = f"the table has no column {field.column}; it is null"
        return self._absent(field, ReadChange(dotted, ChangeKind.MISSING, text))

    def _positions(self, struct: StructType, name: str) -> list[int]:
        exact = [at for at, column in enumerate(struct.fields) if column.name == name]
        if exact or self.case_sensitive:
            return exact
        return [at for at, column in enumerate(struct.fields) if column.name.lower() == name.lower()]

    def _absent(self, field: Field, change: ReadChange) -> _Part:
        type_ = declared_type(field)
        return _Part(lambda _: F.lit(None).cast(type_), type_, (change,))

    # --- converting ---------------------------------------------------------------------------------------------------

    def _part(self, field: Field, dotted: str, actual: SparkType) -> _Part:
        match actual:
            case StructType() if field.fields:
                return self._struct(field, dotted, actual)
            case ArrayType() if field.item is not None:
                return self._array(field.item, dotted, actual)
            case MapType() if field.key is not None or field.value is not None:
                return self._map(field, dotted, actual)
        promised, had = field.type, to_data_type(actual)
        if promised is None or (had is not None and promised.accepts(had)):
            return _Part(None, actual)
        target = declared_type(field)
        text = f"{dotted} is {type_text(actual)}; the reader asks for {promised}"
        if widens(had, promised, Widening.NUMERIC) and promised.family is not Family.STRING:
            change = ReadChange(dotted, ChangeKind.WIDENED, text)
            return _Part(lambda value: value.cast(target), target, (change,))
        if not self._castable(actual, target):
            change = ReadChange(dotted, ChangeKind.INCOMPATIBLE, text)
            return _Part(_nothing(target), target, (change,), ((dotted, lambda value: value.isNotNull()),))
        losing = _losing(actual, target)
        change = ReadChange(dotted, ChangeKind.CONVERTED, text)
        return _Part(_fitting(target, losing), target, (change,), ((dotted, losing),))

    def _castable(self, actual: SparkType, target: SparkType) -> bool:
        """Whether one type is read as the other without an opinion: neither by a time zone nor by an encoding."""
        simple = not isinstance(actual, (StructType, ArrayType, MapType)) and not isinstance(
            target, (StructType, ArrayType, MapType)
        )
        times = {type_.typeName() for type_ in (actual, target)} & {"timestamp", "timestamp_ntz", "date", "time"}
        texts = isinstance(actual, StringType) or isinstance(target, StringType)
        if not simple or (len(times) > 1) or (times and not texts and actual != target):
            return False
        if isinstance(actual, BinaryType) or isinstance(target, BinaryType):
            return False
        try:
            with unlogged():
                _ = self.df.select(try_cast(F.lit(None).cast(actual), target)).schema
        except SPARK_ERRORS:
            return False
        return True

    def _struct(self, field: Field, dotted: str, actual: StructType) -> _Part:
        changes: list[ReadChange] = []
        losing: list[tuple[str, Losing]] = []
        makers: list[tuple[str, Callable[[Column], Column]]] = []
        fields: list[StructField] = []
        for inner in field.fields:
            name = f"{dotted}.{inner.name}"
            found = self._find(actual, inner, name)
            step: Callable[[Column], Column] = _identity
            if isinstance(found, _Part):
                part = found
            else:
                at, change = found
                changes += [change] if change is not None else []
                part, step = self._part(inner, name, actual.fields[at].dataType), _getter(actual.names[at])
            changes += part.changes
            losing += [(where, _after(step, one)) for where, one in part.losing]
            makers.append((inner.column, _after(step, part.value) if part.value is not None else step))
            fields.append(StructField(inner.column, part.type))
        target = StructType(fields)
        same = not changes and [one.name for one in actual.fields] == [one.name for one in fields]
        if same:
            return _Part(None, actual, (), tuple(losing))

        def build(value: Column) -> Column:
            return F.when(value.isNotNull(), F.struct(*(make(value).alias(name) for name, make in makers)))

        return _Part(build, target, tuple(changes), tuple(losing))

    def _array(self, item: Field, dotted: str, actual: ArrayType) -> _Part:
        part = self._part(item, dotted if item.fields else f"{dotted}.item", actual.elementType)
        if part.value is None:
            return _Part(None, actual)
        convert = part.value
        losing = tuple((name, _in_items(one)) for name, one in part.losing)
        return _Part(lambda value: F.transform(value, convert), ArrayType(part.type), part.changes, losing)

    def _map(self, field: Field, dotted: str, actual: MapType) -> _Part:
        key = self._part(field.key, f"{dotted}.key", actual.keyType) if field.key is not None else None
        value = self._part(field.value, f"{dotted}.value", actual.valueType) if field.value is not None else None
        changed_key = key is not None and key.value is not None
        if key is not None and changed_key and any(not change.compatible for change in key.changes):
            # Two keys could become one, or none.
            target = declared_type(field)
            text = f"{dotted} has keys of {type_text(actual.keyType)}; the reader asks for {field.type}"
            change = ReadChange(dotted, ChangeKind.INCOMPATIBLE, text)
            return _Part(_nothing(target), target, (change,), ((dotted, lambda one: one.isNotNull()),))
        keys = key.value if key is not None else None
        values = value.value if value is not None else None
        if keys is None and values is None:
            return _Part(None, actual)

        def convert(column: Column) -> Column:
            if keys is not None:
                column = F.transform_keys(column, lambda one, _: keys(one))
            return F.transform_values(column, lambda _, one: values(one)) if values is not None else column

        losing = tuple((name, _in_values(one)) for name, one in (value.losing if value is not None else ()))
        type_ = MapType(key.type if key is not None else actual.keyType, value.type if value else actual.valueType)
        changes = (*(key.changes if key is not None else ()), *(value.changes if value is not None else ()))
        return _Part(convert, type_, changes, losing)


def declared_type(field: Field) -> SparkType:
    """The Spark type of a column that the table does not have: the declared one, text where none is declared."""
    if field.fields:
        return StructType([StructField(one.column, declared_type(one)) for one in field.fields])
    family = field.type.family if field.type is not None else Family.STRING
    if family is Family.ARRAY:
        return ArrayType(declared_type(field.item) if field.item is not None else StringType())
    if family is Family.MAP:
        key, value = (declared_type(one) if one is not None else StringType() for one in (field.key, field.value))
        return MapType(key, value)
    return (spark_type_of(field.type) if field.type is not None else None) or StringType()


def _accepted(field: Field) -> Sequence[str]:
    """The names that a field may have in the table, the likeliest first."""
    former = field.custom.get(HINT)
    names = (field.column, field.name, *([former] if isinstance(former, str) else []))
    return tuple(dict.fromkeys(names))


def _losing(actual: SparkType, target: SparkType) -> Losing:
    """Whether a value is another one, or none, when it is read as that type; never null."""
    if isinstance(actual, StringType):
        return lambda text: loses(text, target)
    if isinstance(target, StringType):
        return lambda _: F.lit(False)

    def lost(value: Column) -> Column:
        back = try_cast(try_cast(value, target), actual)
        return value.isNotNull() & ~back.eqNullSafe(value)

    return lost


def _fitting(target: SparkType, losing: Losing) -> Callable[[Column], Column]:
    return lambda value: F.when(~losing(value), try_cast(value, target))


def _nothing(target: SparkType) -> Callable[[Column], Column]:
    return lambda _: F.lit(None).cast(target)


def _identity(value: Column) -> Column:
    return value


def _getter(name: str) -> Callable[[Column], Column]:
    return lambda value: value.getField(name)


def _after(first: Callable[[Column], Column], second: Callable[[Column], Column]) -> Callable[[Column], Column]:
    return lambda value: second(first(value))


def _in_items(losing: Losing) -> Losing:
    return lambda value: F.coalesce(F.exists(value, losing), F.lit(False))


def _in_values(losing: Losing) -> Losing:
    return lambda value: F.coalesce(F.exists(F.map_values(value), losing), F.lit(False))
