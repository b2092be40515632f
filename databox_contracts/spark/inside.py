"""Values inside arrays and maps as rows of their own, and where a dotted name of the contract leads to one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts.model import Field
from databox_contracts.plan import Hop, Path
from databox_contracts.spark.predicates import NotEvaluableError


def is_inside(path: Path) -> bool:
    """Whether the path leads into an array or a map, where a row has any number of values."""
    return any(isinstance(step, Hop) for step in path)


def values_at(row: Column, steps: Path) -> Column:
    """All values at `steps` inside a column as one array, nulls among them included; null or empty where none is."""
    for at, step in enumerate(steps):
        if isinstance(step, Hop):
            return _values_inside(row, step, steps[at + 1 :])
        row = row.getField(step)
    return F.array(row)


def _values_inside(collection: Column, hop: Hop, rest: Path) -> Column:
    of_map = {Hop.KEY: F.map_keys, Hop.VALUE: F.map_values}.get(hop)
    elements = of_map(collection) if of_map is not None else collection
    if not rest:
        return elements
    # flatten is null where one of the arrays is.
    return F.flatten(F.filter(F.transform(elements, lambda one: values_at(one, rest)), lambda one: one.isNotNull()))


def exploded(view: DataFrame, places: Sequence[tuple[str, Path]]) -> tuple[DataFrame, list[Column]]:
    """A row for each element of the array or map that the places are in, and the value of each place there.

    A place is a column of the view and the steps inside it; one that is in no array has the same value in each row.
    Raises `NotEvaluableError` for places in different arrays, whose elements belong to each other in no order.
    """
    heads = {(column, head) for column, steps in places if (head := _head(steps))}
    if len(heads) != 1:
        raise NotEvaluableError("its fields are in different arrays or maps")
    [(column, head)] = heads
    flat = [_follow(view[name], steps).alias(f"v{at}") for at, (name, steps) in enumerate(places) if not _head(steps)]
    rows = view.select(*flat, F.explode(values_at(view[column], head)).alias("one"))
    values = [
        _follow(F.col("one"), steps[len(head) :]) if _head(steps) else F.col(f"v{at}")
        for at, (_, steps) in enumerate(places)
    ]
    return rows, values


def _head(steps: Path) -> Path:
    """The steps up to the last array or map."""
    last = max((at for at, step in enumerate(steps) if isinstance(step, Hop)), default=-1)
    return steps[: last + 1]


def _follow(value: Column, steps: Path) -> Column:
    for step in steps:
        value = value.getField(str(step))
    return value


def path_inside(fields: Sequence[Field], dotted: str) -> Path | None:
    """The path of a field by the name that results give it, such as `items.at`; None where there is none."""
    return next((path for name, path in _named(fields, (), ()) if name == dotted), None)


def _named(fields: Sequence[Field], names: tuple[str, ...], path: Path) -> Iterator[tuple[str, Path]]:
    for field in fields:
        yield from _parts(field, (*names, field.name), (*path, field.column))


def _parts(field: Field, names: tuple[str, ...], path: Path) -> Iterator[tuple[str, Path]]:
    yield ".".join(names), path
    # The fields of an array's objects read as the array's own.
    yield from _named(field.fields, names[:-1] if path[-1] is Hop.ITEM else names, path)
    for hop, part in ((Hop.ITEM, field.item), (Hop.KEY, field.key), (Hop.VALUE, field.value)):
        if part is not None:
            yield from _parts(part, (*names, hop.value), (*path, hop))
