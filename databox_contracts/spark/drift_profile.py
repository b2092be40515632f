"""Profiles of a sample's fields in two passes over it: counts, distinct values and quantiles, then values and bins.

Fields inside objects are profiled as columns are; arrays and maps by how many of them are null and by their length,
the items of arrays that are no objects also by their values. A wide table takes a query for every few columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType as SparkType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from databox_contracts.model import Field
from databox_contracts.plan import Plan
from databox_contracts.profiles import Baseline, FieldProfile
from databox_contracts.spark.counting import positional
from databox_contracts.spark.sampling import LONGEST, as_json
from databox_contracts.spark.schema import type_text
from databox_contracts.spark.timeliness import MICROS, micros

LEVELS: Final = ("0", "0.05", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99", "1")
_EDGES: Final = ("0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9")
_ANCHOR: Final = "0.99"
_HASHES: Final = 4_000_000
"""Distinct values are counted in memory; so many of them at a time."""
_MOST_AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field to profile: its dotted name, its type in the table, and where it is in a view named by position.

    `holder` is the object it is inside, None at the top. `items` says that `value` is an array of its values.
    """

    name: str
    type: SparkType
    value: Column
    holder: Column | None = None
    masked: bool = False
    items: bool = False
    length: bool = False

    @property
    def type_name(self) -> str:
        """The type in words."""
        return "length" if self.length else type_text(self.type)

    @property
    def is_time(self) -> bool:
        """Whether it is compared by its distance from the newest."""
        return isinstance(self.type, DateType | TimestampType | TimestampNTZType)

    @property
    def number(self) -> Column | None:
        """Its finite values as numbers, times in seconds; None where it has no quantiles."""
        if self.masked or self.items:
            return None
        if isinstance(self.type, FloatType | DoubleType):
            return F.when(F.abs(self.value) < F.lit(float("inf")), self.value.cast("double"))
        if isinstance(self.type, NumericType):
            return self.value.cast("double")
        return micros(self.type)(self.value).cast("double") / MICROS if self.is_time else None

    @property
    def text(self) -> Column | None:
        """Its value as it is told from others, as JSON; None where values are not compared one by one."""
        listed = isinstance(self.type, StringType | BooleanType | IntegralType)
        return None if self.masked or self.length or not listed else _texts(self.value, self.type, self.items)

    def among(self, texts: Sequence[str]) -> Column | None:
        """Whether the row has one of the values of those texts; None where values are not compared one by one."""
        text = self.text
        if text is None or not self.items:
            return text.isin(*texts) if text is not None else None
        return F.exists(text, lambda one: one.isin(*texts))

    @property
    def is_comparable(self) -> bool:
        """Whether its values can be told apart by a hash."""
        return not isinstance(self.type, ArrayType | MapType | StructType) and self.type.typeName() != "variant"


def _texts(value: Column, type_: SparkType, items: bool) -> Column:
    def one(of: Column) -> Column:
        if not isinstance(type_, StringType):
            return as_json(of)
        cut = F.concat(F.substring(of, 1, LONGEST), F.lit("… #"), F.hex(F.xxhash64(of)))
        return as_json(F.when(F.length(of) > LONGEST, cut).otherwise(of))

    return F.transform(value, one) if items else F.when(value.isNotNull(), one(value))


def leaves_of(schema: StructType, plan: Plan, view: DataFrame, *, case_sensitive: bool) -> list[Leaf]:
    """All fields of a table's schema in its order; what the contract does not declare is treated as masked."""
    walk = _Walk(plan.contract.governance.pii_class, case_sensitive)
    return [
        leaf
        for at, column in enumerate(schema.fields)
        for leaf in walk.leaves(
            "", column, view[positional(at)], None, walk.find(plan.dataset.fields, column.name), hidden=False
        )
    ]


@dataclass(frozen=True, slots=True)
class _Walk:
    pii_class: str | None
    case_sensitive: bool

    def find(self, fields: Sequence[Field], name: str) -> Field | None:
        exact = next((one for one in fields if one.column == name), None)
        if exact is not None or self.case_sensitive:
            return exact
        return next((one for one in fields if one.column.lower() == name.lower()), None)

    def leaves(
        self,
        prefix: str,
        column: StructField,
        value: Column,
        holder: Column | None,
        field: Field | None,
        *,
        hidden: bool,
    ) -> Iterator[Leaf]:
        name, type_ = f"{prefix}{field.name if field is not None else column.name}", column.dataType
        hidden = hidden or field is None or field.conceals(self.pii_class)
        leaf = Leaf(name, type_, value, holder, masked=hidden or _hides_inside(field, self.pii_class))
        yield leaf
        if isinstance(type_, StructType):
            for part in type_.fields:
                inner = self.find(field.fields if field is not None else (), part.name)
                yield from self.leaves(f"{name}.", part, value.getField(part.name), value, inner, hidden=hidden)
        if isinstance(type_, ArrayType | MapType) and not leaf.masked:
            size = F.when(value.isNotNull(), F.size(value))
            yield replace(leaf, name=f"{name}.length", value=size, type=_LENGTH, length=True)
        if isinstance(type_, ArrayType) and not isinstance(type_.elementType, StructType | ArrayType | MapType):
            item = field.item if field is not None else None
            # An array declared without its item covers what is in it.
            covered = hidden or (item is not None and item.conceals(self.pii_class))
            yield Leaf(f"{name}.item", type_.elementType, value, masked=covered, items=True)


_LENGTH: Final = IntegerType()


def _hides_inside(field: Field | None, pii_class: str | None) -> bool:
    parts = field.parts if field is not None else ()
    return any(part.conceals(pii_class) or _hides_inside(part, pii_class) for part in parts)


@dataclass(frozen=True, slots=True)
class Profiled:
    """The profiles in the table's order, with bins by the baseline's edges, and as a baseline has them, by their own.

    `places` are those where each value of a field is seen first, `texts` the values as `Leaf.text` has them.
    """

    rows: int
    fields: tuple[FieldProfile, ...]
    own: tuple[FieldProfile, ...]
    places: Mapping[str, Mapping[str, str | None]]
    texts: Mapping[str, Mapping[str, str]]


def profile(
    view: DataFrame, leaves: Sequence[Leaf], place: Column, baseline: Baseline | None, *, rows: int, most_values: int
) -> Profiled:
    """Count everything; `rows` is how many there are. Errors of Spark pass through."""
    size = max(1, min(_MOST_AT_ONCE, _HASHES // max(rows, 1)))
    chunks = [leaves[at : at + size] for at in range(0, len(leaves), size)]
    counted = [one for chunk in chunks for one in _count(view, chunk)]
    listing: list[_Listing] = []
    for leaf, found in zip(leaves, counted, strict=True):
        anchor = found.quantiles.get(_ANCHOR, 0.0) if leaf.is_time else 0.0
        then = baseline.field(leaf.name) if baseline is not None else None
        listing.append(
            _Listing(leaf, _with_edges(found, anchor, anchored=leaf.is_time), then, most_values, F.lit(anchor))
        )
    values = [one for at in range(0, len(listing), size) for one in _values(view, listing[at : at + size], place)]
    done = [one.finish(found) for one, found in zip(listing, values, strict=True)]
    return Profiled(
        rows,
        tuple(now for now, _, _ in done),
        tuple(alone for _, alone, _ in done),
        {now.field: places for now, _, places in done},
        {
            one.leaf.name: {_plain(text): text for text in found.get("v", {})}
            for one, found in zip(listing, values, strict=True)
        },
    )


# --- the first pass ---------------------------------------------------------------------------------------------------


def _count(view: DataFrame, leaves: Sequence[Leaf]) -> list[FieldProfile]:
    groups = [_measures(leaf) for leaf in leaves]
    columns = [column.alias(f"m{at}") for at, column in enumerate(one for group in groups for one in group.values())]
    row = view.agg(*columns).collect()[0]
    found: list[FieldProfile] = []
    at = 0
    for leaf, group in zip(leaves, groups, strict=True):
        facts = dict(zip(group, row[at : at + len(group)], strict=True))
        at += len(group)
        quantiles = dict(zip(LEVELS, facts.get("quantiles") or (), strict=False))
        found.append(
            FieldProfile(
                field=leaf.name,
                type=leaf.type_name,
                rows=int(facts["rows"] or 0),
                nulls=int(facts["nulls"] or 0),
                not_finite=int(facts.get("not_finite") or 0),
                distinct=int(facts["distinct"]) if "distinct" in facts else None,
                masked=leaf.masked,
                quantiles=quantiles,
            )
        )
    return found


def _measures(leaf: Leaf) -> dict[str, Column]:
    value = leaf.value
    if leaf.items:
        hashes = F.transform(F.filter(value, lambda one: one.isNotNull()), lambda one: F.xxhash64(one))
        return {
            "rows": F.sum(F.when(value.isNotNull(), F.size(value))),
            "nulls": F.sum(F.when(value.isNotNull(), F.size(F.filter(value, lambda one: one.isNull())))),
            "distinct": F.size(F.array_distinct(F.flatten(F.collect_set(hashes)))),
        }
    measures = {
        "rows": F.count(F.lit(1)) if leaf.holder is None else F.count(F.when(leaf.holder.isNotNull(), 1)),
        "nulls": F.count_if(value.isNull() if leaf.holder is None else leaf.holder.isNotNull() & value.isNull()),
    }
    if leaf.length:
        measures["rows"] = F.count(value)
        measures["nulls"] = F.count_if(F.lit(False))
    if leaf.is_comparable and not leaf.length:
        measures["distinct"] = F.size(F.collect_set(F.when(value.isNotNull(), F.xxhash64(value))))
    number = leaf.number
    if number is not None:
        measures["quantiles"] = F.percentile(number, F.array(*(F.lit(float(level)) for level in LEVELS)))
        if isinstance(leaf.type, FloatType | DoubleType):
            measures["not_finite"] = F.count_if(value.isNotNull() & number.isNull())
    return measures


def _with_edges(found: FieldProfile, anchor: float, *, anchored: bool) -> FieldProfile:
    """With the bins that its own quantiles give, all of them less `anchor`."""
    if not found.quantiles:
        return found
    moved = {level: number - anchor for level, number in found.quantiles.items()}
    edges = tuple(sorted({moved[level] for level in _EDGES}))
    return replace(found, quantiles=moved, edges=edges, high=moved["1"], anchored=anchored)


# --- the second pass --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Listing:
    """What is asked of one field in the second pass: its values, and its numbers in bins."""

    leaf: Leaf
    found: FieldProfile
    then: FieldProfile | None
    most_values: int
    anchor: Column

    @property
    def text(self) -> Column | None:
        text = self.leaf.text
        few = text is not None and self.found.distinct is not None and self.found.distinct <= self.most_values
        return text if few else None

    @property
    def shared(self) -> bool:
        """Whether the baseline has bins that the sample can be counted by."""
        then = self.then
        return then is not None and bool(then.edges) and then.high is not None and then.anchored == self.found.anchored

    def finish(self, found: _Found) -> tuple[FieldProfile, FieldProfile, Mapping[str, str | None]]:
        counted = {_plain(text): seen for text, seen in found.get("v", {}).items()}
        values = {text: count for text, (count, _) in sorted(counted.items())} if self.text is not None else None
        places = {text: place for text, (_, place) in counted.items()}
        own = replace(self.found, values=values, bins=_bins(found.get("o", {}), self.found.edges))
        then = self.then
        if not self.shared or then is None:
            return own, own, places
        now = replace(own, edges=then.edges, high=then.high, bins=_bins(found.get("b", {}), then.edges))
        return now, own, places


def _plain(text: str) -> str:
    return json.dumps(json.loads(text)["v"], ensure_ascii=False)


def _bins(counted: Mapping[str, tuple[int, str | None]], edges: Sequence[float]) -> tuple[int, ...]:
    return tuple(counted.get(str(at), (0, None))[0] for at in range(len(edges) + 2)) if edges else ()


_Found: TypeAlias = dict[str, dict[str, tuple[int, str | None]]]


def _values(view: DataFrame, listing: Sequence[_Listing], place: Column) -> list[_Found]:
    """For each field how often each value is there and in which place first, and how many numbers are in each bin."""
    told: list[Column] = []
    of_items: list[Column] = []
    for at, one in enumerate(listing):
        text, number = one.text, one.leaf.number
        if text is not None and one.leaf.items:
            of_items.append(F.coalesce(F.transform(text, _as(at, "v")), F.array().cast(_PAIRS)))
        elif text is not None:
            told.append(_as(at, "v")(text))
        if number is None or not one.found.edges:
            continue
        for kind, profile_ in (("o", one.found), ("b", one.then if one.shared else None)):
            if profile_ is not None and profile_.high is not None:
                told.append(_as(at, kind)(_bin(number - one.anchor, profile_.edges, profile_.high)))
    found: list[_Found] = [{} for _ in listing]
    if not told and not of_items:
        return found
    singles = F.array(*told).cast(_PAIRS)
    pairs = view.select(F.explode(F.concat(singles, *of_items)).alias("one"), place.alias("place"))
    counted = (
        pairs.where(F.col("one.text").isNotNull())
        .groupBy("one.at", "one.kind", "one.text")
        .agg(F.count(F.lit(1)).alias("rows"), F.min("place").alias("place"))
    )
    for row in counted.collect():
        found[row["at"]].setdefault(row["kind"], {})[row["text"]] = (int(row["rows"]), row["place"])
    return found


_PAIRS: Final = "array<struct<at:int,kind:string,text:string>>"


def _as(at: int, kind: str) -> Callable[[Column], Column]:
    return lambda text: F.struct(F.lit(at).alias("at"), F.lit(kind).alias("kind"), text.alias("text"))


def _bin(number: Column, edges: Sequence[float], high: float) -> Column:
    reached = F.when(number > F.lit(high), F.lit(str(len(edges) + 1)))
    for at in reversed(range(len(edges))):
        reached = reached.when(number >= F.lit(edges[at]), F.lit(str(at + 1)))
    return reached.when(number.isNotNull(), F.lit("0"))
