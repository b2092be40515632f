"""Values inside arrays and maps as rows of their own, and where a dotted name of the contract leads to one."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, functions as F

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
    column, head = _shared_head(places)
    flat = [_follow(view[name], steps).alias(f"v{at}") for at, (name, steps) in enumerate(places) if not _head(steps)]
    rows = view.select(*flat, F.explode(values_at(view[column], head)).alias("one"))
    values = [
        _follow(F.col("one"), steps[len(head) :]) if _head(steps) else F.col(f"v{at}")
        for at, (_, steps) in enumerate(places)
    ]
    return rows, values


def values_together(view: DataFrame, places: Sequence[tuple[str, Path]], beside: Sequence[Column]) -> Column:
    """The elements that `exploded` makes rows of, as one array of objects with the values of the places.

    They are called k0, k1 and so on. The values `beside` come after them, the same in each element. Raises
    `NotEvaluableError` as `exploded` does.
    """
    column, head = _shared_head(places)

    def together(one: Column) -> Column:
        own = [
            _follow(one, steps[len(head) :]) if _head(steps) else _follow(view[name], steps) for name, steps in places
        ]
        return F.struct(*(value.alias(f"k{at}") for at, value in enumerate((*own, *beside))))

    return F.transform(values_at(view[column], head), together)


def _shared_head(places: Sequence[tuple[str, Path]]) -> tuple[str, Path]:
    heads = {(column, head) for column, steps in places if (head := _head(steps))}
    if len(heads) != 1:
        raise NotEvaluableError("its fields are in different arrays or maps")
    [found] = heads
    return found


def _head(steps: Path) -> Path:
    """The steps up to the last array or map."""
    last = max((at for at, step in enumerate(steps) if isinstance(step, Hop)), default=-1)
    return steps[: last + 1]


def _follow(value: Column, steps: Path) -> Column:
    for step in steps:
        value = value.getField(str(step))
    return value
