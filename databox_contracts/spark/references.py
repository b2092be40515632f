"""Foreign keys: every key that is not null is one of another table's.

All foreign keys of a table that have one value in each row are counted in one query, each by a left join with the
distinct keys of its reference; of the two tables only the key columns are read. A key inside an array or a map takes a
query of its own, over its values. Which side is sent where is Spark's own decision, by its estimate of the key columns
alone (`spark.sql.autoBroadcastJoinThreshold`) and again by their real size once the distinct keys are known; finding
out beforehand would cost a job over the reference. `pyspark.sql.functions.broadcast` on a reference is respected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession, functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType as SparkType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from databox_contracts.model import Contract, Dataset
from databox_contracts.plan import Check, Path, Plan, build_plan
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import ForeignKey, PrimaryKey
from databox_contracts.spark import outcomes
from databox_contracts.spark.collations import by_code_points, without_collations
from databox_contracts.spark.failures import SPARK_ERRORS, in_words, unlogged, unreadable
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.reading import UNTYPED, guess_format, read_table
from databox_contracts.spark.sampling import as_json
from databox_contracts.spark.schema import Missing, locate, to_data_type, type_text
from databox_contracts.spark.table_view import TableView, item_parts
from databox_contracts.spark.zeros import one_zero

TOGETHER: Final = 8
"""So many foreign keys are counted in one query: each keeps the keys of its reference in memory while it runs."""

_INTEGERS: Final = (ByteType, ShortType, IntegerType, LongType)
_DIGITS: Final[dict[type[SparkType], int]] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
_MOST_DIGITS: Final = 38


# --- which table a rule names -----------------------------------------------------------------------------------------


def own_dataset(to: str, contract: Contract) -> Dataset | None:
    """The dataset of this contract that is named, with the contract's id before it or without."""
    for dataset in contract.datasets:
        names = [name for name in (dataset.name, dataset.physical_name) if name is not None]
        if to in names or to in [f"{contract.id}.{name}" for name in names]:
            return dataset
    return None


def given_table(to: str, contract: Contract, references: Mapping[str, DataFrame]) -> DataFrame | None:
    """The table that was given for a name: under that name, the dataset's alone, or with its contract's before it."""
    own = own_dataset(to, contract)
    last = to.replace("#", ".").replace("/", ".").rpartition(".")[2] if own is None else own.name
    names = (
        [to, f"{contract.id}.{own.name}", own.name, own.physical_name or own.name] if own is not None else [to, last]
    )
    for name in names:
        if name in references:
            return references[name]
    longer = [name for name in references if name.rpartition(".")[2] == to]
    return references[longer[0]] if len(longer) == 1 else None


def not_given(to: str) -> NotEvaluableError:
    """What is said where nothing was given for a name."""
    return NotEvaluableError(
        f"the rows of {to} were not given; give references={{{to!r}: ...}}, on the command line --reference {to}=PATH"
    )


def target_names(rule: ForeignKey, contract: Contract, parts: int) -> tuple[str, ...]:
    """The fields that the key refers to: those it names, else the primary key of a dataset of this contract."""
    own = own_dataset(rule.to, contract)
    names = rule.to_fields
    if not names and own is not None:
        names = next((one.fields for one in own.rules if isinstance(one, PrimaryKey)), ())
    if len(names) != parts:
        raise NotEvaluableError(f"it has {parts} field{'s' if parts != 1 else ''} and refers to {len(names)}")
    return names


def reference_path(name: str, dataset: Dataset | None, schema: StructType, *, case_sensitive: bool) -> Path:
    """Where the reference has the field: as the contract says, else as a column, else through objects."""
    trail = dataset.trail(name) if dataset is not None else None
    if trail is not None:
        return tuple(step.column for step in trail)
    whole = locate(schema, (name,), case_sensitive=case_sensitive)
    return tuple(name.split(".")) if isinstance(whole, Missing) else (name,)


def common_type(own: SparkType, other: SparkType) -> SparkType | None:
    """The type in which values of both are equal exactly when they mean the same; None where there is none."""
    if isinstance(own, StringType) and own == other:
        return own
    if own.typeName() in ("map", "variant") or other.typeName() in ("map", "variant"):
        return None
    if isinstance(own, _INTEGERS) and isinstance(other, _INTEGERS):
        return max(own, other, key=lambda one: _INTEGERS.index(type(one)))
    if isinstance(own, IntegralType | DecimalType) and isinstance(other, IntegralType | DecimalType):
        (digits, scale), (other_digits, other_scale) = _digits(own), _digits(other)
        common = max(scale, other_scale)
        whole = max(digits - scale, other_digits - other_scale)
        return DecimalType(whole + common, common) if whole + common <= _MOST_DIGITS else None
    if isinstance(own, FloatType | DoubleType) and isinstance(other, FloatType | DoubleType):
        return DoubleType() if type(own) is not type(other) else own
    if isinstance(own, ArrayType | StructType):
        text = own.simpleString()
        comparable = "map<" not in text and "variant" not in text and text == other.simpleString()
        return own if comparable else None
    return own if to_data_type(own) is not None and to_data_type(own) == to_data_type(other) else None


def _digits(actual: SparkType) -> tuple[int, int]:
    return (actual.precision, actual.scale) if isinstance(actual, DecimalType) else (_DIGITS[type(actual)], 0)


def _wanted_type(own: SparkType, other: SparkType, name: str) -> SparkType:
    common = common_type(without_collations(own), without_collations(other))
    if common is None:
        raise NotEvaluableError(f"{name} is {type_text(own)} and what it refers to is {type_text(other)}")
    return common


def _casting(actual: SparkType, wanted: SparkType) -> Callable[[Column], Column]:
    return lambda value: _cast(value, actual, wanted)


def _cast(value: Column, actual: SparkType, wanted: SparkType) -> Column:
    plain = by_code_points(value, actual)
    same = plain if actual == wanted or isinstance(wanted, ArrayType | StructType) else plain.cast(wanted)
    # -0.0 is the same key as 0.0, and is shown as such.
    return one_zero(same, wanted)


def open_reference(spark: SparkSession, path: str, name: str, contract: Contract) -> DataFrame:
    """The table at a path for that name; text values are cast where the contract declares the dataset.

    Raises `UnreadableTableError`.
    """
    chosen = guess_format(path)
    table = read_table(spark, path, format=chosen)
    own = own_dataset(name, contract)
    if own is None or chosen not in UNTYPED:
        return table
    return TableView(table, build_plan(contract, own), untyped=True).table


def open_references(spark: SparkSession, paths: Mapping[str, str], contract: Contract) -> dict[str, DataFrame]:
    """As `open_reference`, for each name."""
    opened = {}
    for name, path in paths.items():
        try:
            opened[name] = open_reference(spark, path, name, contract)
        except SPARK_ERRORS as error:
            raise unreadable(path, error) from error
    return opened


# --- which rows have no match -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Matching:
    """A foreign key ready to run.

    `parts` are the key's over the view, for a key `inside` an array or map one array of all its values in the row,
    which are objects where the key has several parts; `known` are the keys of the reference under the `names` `k0…`,
    nulls and repeated ones among them. `itself` says that the reference is the table.
    """

    check: Check
    parts: tuple[Column, ...]
    known: DataFrame
    names: list[str]
    inside: bool = False
    itself: bool = False

    def keys(self, view: DataFrame, *beside: Column) -> DataFrame:
        """The whole keys of the view, those of all values inside where it is about these, `beside` first."""
        if self.inside:
            own = [column.alias(f"beside{at}") for at, column in enumerate(beside)]
            values = view.select(*own, F.explode(F.array_distinct(self.parts[0])).alias("one"))
            return item_parts(values, len(self.names), keep=[f"beside{at}" for at in range(len(own))]).where(
                _whole(self.names)
            )
        parts = [part.alias(name) for part, name in zip(self.parts, self.names, strict=True)]
        return view.select(*beside, *parts).where(_whole(self.names))

    def unmatched(self, view: DataFrame) -> DataFrame:
        """The distinct keys that the reference does not have."""
        return self.keys(view).join(self.known, self.names, "left_anti").distinct()


def count_unmatched(view: DataFrame, matchings: Sequence[Matching]) -> dict[str, int | str]:
    """How many rows of the view have a key without a match, by check; a text is why that could not be found out.

    One job for all keys of one value in a row (`TOGETHER` at a time), and one for each key inside an array or map.
    """
    found: dict[str, int | str] = {}
    flat = [one for one in matchings if not one.inside]
    for start in range(0, len(flat), TOGETHER):
        found |= _tried(view, flat[start : start + TOGETHER])
    for one in matchings:
        if one.inside:
            found |= _tried(view, [one])
    return found


def _tried(view: DataFrame, matchings: Sequence[Matching]) -> dict[str, int | str]:
    try:
        with unlogged():
            counts = [_count_inside(view, matchings[0])] if matchings[0].inside else _count_flat(view, matchings)
    except SPARK_ERRORS as error:
        if len(matchings) == 1:
            return {matchings[0].check.id: f"looking its keys up fails: {in_words(error)}"}
        # Each by itself, so that only the one that fails is lost.
        return {id_: count for one in matchings for id_, count in _tried(view, [one]).items()}
    return {one.check.id: count for one, count in zip(matchings, counts, strict=True)}


def _count_flat(view: DataFrame, matchings: Sequence[Matching]) -> list[int]:
    names = [[f"f{at}_{name}" for name in one.names] for at, one in enumerate(matchings)]
    parts = [
        part.alias(name)
        for one, own in zip(matchings, names, strict=True)
        for part, name in zip(one.parts, own, strict=True)
    ]
    rows = view.select(*parts)
    for at, (one, own) in enumerate(zip(matchings, names, strict=True)):
        known = one.known.where(_whole(one.names)).distinct().toDF(*own).withColumn(f"known{at}", F.lit(True))
        rows = rows.join(known, own, "left")
    counts = [F.count_if(_whole(own) & F.col(f"known{at}").isNull()) for at, own in enumerate(names)]
    row = rows.agg(*(count.alias(f"m{at}") for at, count in enumerate(counts))).collect()[0]
    return [int(count) for count in row]


def _count_inside(view: DataFrame, one: Matching) -> int:
    # Numbered below the explosion, or each value would get a number; they mean something within this query alone.
    numbered = view.withColumn("row", F.monotonically_increasing_id())
    keys = one.keys(numbered, F.col("row"))
    failing = keys.join(one.known, one.names, "left_anti")
    return int(failing.agg(F.count_distinct("beside0")).collect()[0][0])


def _whole(names: Sequence[str]) -> Column:
    return reduce(and_, (F.col(name).isNotNull() for name in names))


# --- results ----------------------------------------------------------------------------------------------------------


def matched_results(view: DataFrame, matchings: Sequence[Matching], rows: int, *, samples: int) -> list[CheckResult]:
    """The results of the foreign keys over so many rows; the keys without a match are looked for only where one fails.

    The samples are distinct keys in ascending order, none where the field is masked.
    """
    results = []
    counts = count_unmatched(view, matchings)
    for one in matchings:
        count = counts[one.check.id]
        if isinstance(count, str):
            results.append(outcomes.not_evaluated(one.check, count))
            continue
        result = outcomes.counted(one.check, count, rows)
        if result.status is Status.FAILED and samples > 0 and not one.check.masked:
            result = replace(result, samples=_samples(view, one, samples))
        results.append(result)
    return results


def _samples(view: DataFrame, one: Matching, limit: int) -> tuple[Any, ...]:
    parts = [F.col(name) for name in one.names]
    shown = F.struct(*(as_json(part).alias(name) for part, name in zip(parts, one.names, strict=True)))
    found = one.unmatched(view).orderBy(*parts).limit(limit).select(shown).collect()
    keys = [tuple(json.loads(text)["v"] for text in row[0]) for row in found]
    names = one.check.key_names
    return tuple(key[0] if len(names) == 1 else dict(zip(names, key, strict=True)) for key in keys)


def matching(
    check: Check,
    plan: Plan,
    types: Sequence[SparkType],
    reference: DataFrame,
    *,
    columns: Sequence[Column],
    inside: bool,
    itself: bool,
    case_sensitive: bool,
) -> Matching:
    """A foreign key whose parts have those types, over its own columns, and its reference, ready to run.

    A key inside an array or a map has one column, the array of its values as `TableView.key_values` gives it. Raises
    `NotEvaluableError`.
    """
    rule = check.rule
    assert isinstance(rule, ForeignKey)
    names = target_names(rule, plan.contract, len(types))
    dataset = own_dataset(rule.to, plan.contract)
    casts: list[Callable[[Column], Column]] = []
    known = []
    for actual, name, own_name in zip(types, names, check.key_names, strict=True):
        path = reference_path(name, dataset, reference.schema, case_sensitive=case_sensitive)
        found = locate(reference.schema, path, case_sensitive=case_sensitive)
        if isinstance(found, Missing):
            raise NotEvaluableError(f"in {rule.to}, {found.reason}")
        # By position: the reference may have two columns of that name in other case.
        other = F.col(f"r{found.column}")
        for step in found.steps:
            other = other.getField(str(step))
        wanted = _wanted_type(actual, found.type, own_name)
        casts.append(_casting(actual, wanted))
        known.append(_cast(other, found.type, wanted))
    renamed = reference.toDF(*(f"r{at}" for at in range(len(reference.schema.fields))))
    own_names = [f"k{at}" for at in range(len(known))]
    keys = renamed.select(*(part.alias(name) for part, name in zip(known, own_names, strict=True)))
    if inside:
        parts = [F.transform(columns[0], _casting_parts(casts))]
    else:
        parts = [cast(column) for cast, column in zip(casts, columns, strict=True)]
    return Matching(check, tuple(parts), keys, own_names, inside=inside, itself=itself)


def _casting_parts(casts: Sequence[Callable[[Column], Column]]) -> Callable[[Column], Column]:
    """What casts one value inside an array, an object where the key has several parts."""
    if len(casts) == 1:
        return casts[0]
    return lambda one: F.struct(*(cast(one.getField(f"k{at}")).alias(f"k{at}") for at, cast in enumerate(casts)))
