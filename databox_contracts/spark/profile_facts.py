"""What one pass over a table tells of each of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import (
    DataType as SparkType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from databox_contracts.spark.counting import positional
from databox_contracts.spark.text_kinds import LARGEST_SCALE, MOST_EXACT_DIGITS, NOTHING, Kind, kind_sql, value_sql


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column, or a field inside an object: its names from the top down, and its type in the table.

    `untyped` says that its text may stand for something else.
    """

    path: tuple[str, ...]
    column: int
    type: SparkType
    untyped: bool = False

    def value(self, view: DataFrame) -> Column:
        """Its value in a view whose columns are named by position."""
        return reduce(Column.getField, self.path[1:], view[positional(self.column)])

    def sql(self, *, holder: bool = False) -> str:
        """Its value in that view as SQL text; with `holder`, the object that it is in."""
        names = self.path[1:-1] if holder else self.path[1:]
        return positional(self.column) + "".join(f".`{name.replace('`', '``')}`" for name in names)


@dataclass(frozen=True, slots=True)
class Facts:
    """One leaf of a table, counted.

    `rows` are those in which it could be something: all, or those whose object is not null; `present` of them are not
    null. `distinct` is an estimate, a few percent off. The ranges are texts: of integers, of decimals (`exact`), of
    what a double holds (`number`), of dates and times without a zone (`local`), and of times with one in microseconds
    since 1970 (`zoned`). Of a text that may stand for something, they are those of the texts of that kind.
    """

    leaf: Leaf
    rows: int = 0
    present: int = 0
    distinct: int = 0
    nans: int = 0
    shortest: int = 0
    longest: int = 0
    kinds: Kind = NOTHING
    low_integer: str | None = None
    high_integer: str | None = None
    low_exact: str | None = None
    high_exact: str | None = None
    low_number: str | None = None
    high_number: str | None = None
    low_local: str | None = None
    high_local: str | None = None
    low_zoned: str | None = None
    high_zoned: str | None = None
    fewest_fraction_digits: int = 0
    most_fraction_digits: int = 0
    most_integer_digits: int = 0


@dataclass(frozen=True, slots=True)
class TableFacts:
    """All leaves of a table in its order."""

    rows: int
    leaves: tuple[Facts, ...] = ()


def leaves_of(schema: StructType, *, untyped: bool) -> list[Leaf]:
    """The columns and what is inside objects; arrays, maps and what they hold count as one. In the table's order."""
    return [
        leaf
        for at, column in enumerate(schema.fields)
        for leaf in _leaves(Leaf((column.name,), at, column.dataType), untyped)
    ]


def _leaves(leaf: Leaf, untyped: bool) -> Iterator[Leaf]:
    is_top = len(leaf.path) == 1
    yield replace(leaf, untyped=untyped and is_top and isinstance(leaf.type, StringType))
    if isinstance(leaf.type, StructType):
        for part in leaf.type.fields:
            yield from _leaves(Leaf((*leaf.path, part.name), leaf.column, part.dataType), untyped)


def count_facts(view: DataFrame, leaves: Sequence[Leaf]) -> TableFacts:
    """Count everything in one pass; there is at least one leaf. Errors of Spark pass through."""
    # A row for each leaf: the expressions for texts are long, and with a copy for each column Java would not compile
    # them any more.
    cells = view.select(F.expr(f"inline(array({', '.join(_cell(at, leaf) for at, leaf in enumerate(leaves))}))"))
    kinds = cells.withColumn("kind", F.expr(kind_sql("text", "untyped")))
    meant = kinds.withColumns({f"t_{name}": F.expr(sql) for name, sql in value_sql("text", "kind").items()})
    # Decimals are never read from texts: their range is that of doubles.
    values = {
        name: F.expr(f"CASE WHEN text IS NULL THEN v_{name} ELSE t_{name} END") for name in _CHANNELS if name != "exact"
    }
    counted = meant.withColumns(values).groupBy("leaf").agg(*(one.alias(name) for name, one in _measures().items()))
    found = {row["leaf"]: row.asDict() for row in counted.collect()}
    facts = tuple(_facts(leaf, found.get(at, {})) for at, leaf in enumerate(leaves))
    return TableFacts(facts[0].rows, facts)


def _facts(leaf: Leaf, row: Mapping[str, Any]) -> Facts:
    known = {name: value for name, value in row.items() if value is not None and name != "leaf"}
    return Facts(leaf, **{**known, "kinds": Kind(known.get("kinds", 0))})


_CHANNELS: Final = {
    "integer": "bigint",
    "exact": f"decimal({MOST_EXACT_DIGITS}, {LARGEST_SCALE})",
    "number": "double",
    "local": "timestamp_ntz",
    "zoned": "bigint",
}
"""The types in which values are compared."""

_COUNTED: Final = (StringType, IntegralType, DecimalType, DateType, TimestampType, TimestampNTZType)


def _cell(at: int, leaf: Leaf) -> str:
    """One leaf of a row: whether it is there, its hash, its text, and its value in the channel of its type."""
    value = leaf.sql()
    channel = _channel(leaf.type)
    parts = {
        "leaf": f"{at}",
        "untyped": "true" if leaf.untyped else "false",
        "there": "true" if len(leaf.path) == 1 else f"{leaf.sql(holder=True)} IS NOT NULL",
        "given": f"{value} IS NOT NULL",
        "hash": f"if({value} IS NULL, NULL, xxhash64({value}))" if isinstance(leaf.type, _COUNTED) else "bigint(NULL)",
        "text": f"string({value})" if isinstance(leaf.type, StringType) else "string(NULL)",
    }
    for name, type_ in _CHANNELS.items():
        held = f"unix_micros({value})" if name == "zoned" else value
        parts[f"v_{name}"] = f"try_cast({held if name == channel else 'NULL'} AS {type_})"
    return "named_struct(" + ", ".join(f"'{name}', {sql}" for name, sql in parts.items()) + ")"


def _channel(type_: SparkType) -> str | None:
    match type_:
        case IntegralType():
            return "integer"
        case DecimalType():
            fits = type_.scale <= LARGEST_SCALE and type_.precision - type_.scale <= MOST_EXACT_DIGITS - LARGEST_SCALE
            return "exact" if fits else None
        case FloatType() | DoubleType():
            return "number"
        case DateType() | TimestampNTZType():
            return "local"
        case TimestampType():
            return "zoned"
    return None


def _measures() -> dict[str, Column]:
    ranges = {
        f"{name}_{channel}": aggregate("v_exact" if channel == "exact" else channel).cast("string")
        for channel in _CHANNELS
        for name, aggregate in (("low", F.min), ("high", F.max))
    }
    return {
        "rows": F.count_if("there"),
        "present": F.count_if("given"),
        "distinct": F.approx_count_distinct("hash"),
        "nans": F.count_if(F.isnan("number")),
        "shortest": F.min(F.length("text")),
        "longest": F.max(F.length("text")),
        "kinds": F.bit_or("kind"),
        **ranges,
        "fewest_fraction_digits": F.min("t_fraction"),
        "most_fraction_digits": F.max("t_fraction"),
        "most_integer_digits": F.max("t_whole"),
    }
