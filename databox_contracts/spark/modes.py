"""A table under its schema modes: what the contract does not know is let in, left out or refused, and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Observation, functions as F
from pyspark.sql.types import StructType

from databox_contracts.datatypes import DataType
from databox_contracts.model import Contract, Dataset, Field, Mode, SchemaModes
from databox_contracts.plan import Check, Hop, Path
from databox_contracts.results import CheckResult, Status
from databox_contracts.schema_modes import is_incomplete, is_model
from databox_contracts.spark.counting import positional
from databox_contracts.spark.modes_shapes import Cause, Remark, ShapedFields, Unit
from databox_contracts.spark.modes_walk import Walk
from databox_contracts.spark.schema import Missing, locate, to_data_type, type_text

_CASE: Final = "spark.sql.caseSensitive"


@dataclass(frozen=True, slots=True)
class Discarded:
    """How many things of one field a mode left out, or moved to a variant column.

    `unit` is "rows", "elements" (of an array), "values" or "variants". A row or element that several fields discard
    counts for each; what is inside a discarded row or element is not counted again.
    """

    entity: str
    mode: Mode
    field: str
    unit: str
    count: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one execution: the rows that came in, those discarded, elements and values discarded in rows that stay."""

    rows_in: int
    rows_discarded: int = 0
    elements_discarded: int = 0
    values_discarded: int = 0
    fields: tuple[tuple[Cause, Unit, int], ...] = ()

    @property
    def discarded(self) -> tuple[Discarded, ...]:
        """By field, in the order of the table; without those of which there are none."""
        return tuple(
            Discarded(cause.entity, cause.mode, cause.field, str(unit), count)
            for cause, unit, count in self.fields
            if count and unit is not Unit.TOTAL
        )


@dataclass(frozen=True, slots=True)
class Applied:
    """What the modes make of one table; `counts` are there once it has been executed.

    `df` is the table as it comes out, which is the very one that came in where nothing is changed. `frozen` are the
    causes to refuse it; `broken` says in words those that no check of a type reports. `fields` are the declared ones,
    with those that an earlier load had. `only_looking` says that the table stays as it came in, whatever is judged.
    """

    modes: SchemaModes
    df: DataFrame
    fields: tuple[Field, ...]
    case_sensitive: bool
    frozen: tuple[Cause, ...]
    broken: tuple[str, ...]
    remarks: tuple[Remark, ...]
    originals: Mapping[Path, str]
    counts: Counts | None = None
    only_looking: bool = False
    _source: _Source | None = None

    @property
    def counting(self) -> bool:
        """Whether there is anything to count."""
        return self._source is not None and self._source.counting

    def refusing(self, cause: Cause, words: str) -> Applied:
        """This, with one more thing that the schema refuses, before all others."""
        return replace(self, frozen=(cause, *self.frozen), broken=(words, *self.broken))

    def observed(self) -> tuple[DataFrame, Callable[[], Applied]]:
        """The table to execute once, and this with the counts of that execution, to be asked for after it succeeded.

        The counts come from the job itself, so that they are those of the rows it saw. No shuffle may be above it.
        """
        source = self._source
        if source is None or not source.counting:
            return self.df, lambda: self
        observation = Observation()
        first, *others = source.aggregates()
        df = source.result(source.view.observe(observation, first, *others))
        return df, lambda: replace(self, counts=source.counts(observation.get))

    def counted(self) -> Applied:
        """This with its counts, which takes a job of its own where there is anything to count."""
        source = self._source
        if source is None or not source.counting:
            return self
        return replace(self, counts=source.counts(source.view.agg(*source.aggregates()).collect()[0].asDict()))

    def undeclared_result(self, check: Check) -> CheckResult:
        """What is in the table and not in the contract, and what its modes make of it."""
        names = [remark.name for remark in self.remarks]
        refused = [remark.name for remark in self.remarks if remark.mode is Mode.FREEZE]
        broken = list(self.broken)
        if refused:
            verb = "is" if len(refused) == 1 else "are"
            broken.insert(0, f"{', '.join(refused)} {verb} in the table and not in the contract")
        if broken:
            return check.result(Status.FAILED, observed=names, message="; ".join(broken))
        return check.result(Status.PASSED, observed=names, message="; ".join(map(self._remark, self.remarks)))

    def type_message(self, path: Path) -> str:
        """What the data_type mode did to the values of a field; empty where they had its type."""
        if path not in self.originals or self.modes.data_type is Mode.FREEZE:
            return ""
        was = f"it was {self.originals[path]}"
        named = path
        while isinstance(named[-1], Hop):
            named = named[:-1]
        done = [
            _DONE[unit].format(_counted(count, _NOUNS[unit]), self._verb(count))
            for cause, unit, count in (self.counts.fields if self.counts is not None else ())
            if count
            and unit in _DONE
            and cause.entity == "data_type"
            and (cause.path == path or (unit is Unit.VARIANTS and cause.path == named))
        ]
        return "; ".join([was, *done]) if done else f"{was}, and every value fits" if self.counts is not None else was

    def _remark(self, remark: Remark) -> str:
        if remark.mode is Mode.EVOLVE:
            return f"{remark.name} is not declared, and allowed"
        fields = self.counts.fields if self.counts is not None else ()
        found = [(unit, count) for cause, unit, count in fields if cause.field == remark.name and unit in _NOUNS]
        lost = ", ".join(_counted(count, _NOUNS[unit]) for unit, count in found)
        done = "would be left out" if self.only_looking else "left out"
        return f"{remark.name} is not declared, and {done}{f' with {lost}' if lost else ''}"

    def _verb(self, count: int) -> str:
        return "would be" if self.only_looking else "was" if count == 1 else "were"


_NOUNS: Final = {Unit.ROWS: "row", Unit.ELEMENTS: "element", Unit.VALUES: "value", Unit.VARIANTS: "value"}
_DONE: Final = {
    Unit.ROWS: "{} that cannot be read as promised {} discarded",
    Unit.ELEMENTS: "{} that cannot be read as promised {} discarded",
    Unit.VALUES: "{} that cannot be read as promised {} discarded",
    Unit.VARIANTS: "{} that cannot be read as promised {} moved to a variant column",
}


def apply_modes(
    df: DataFrame,
    contract: Contract,
    dataset: Dataset,
    modes: SchemaModes,
    *,
    known: StructType | None = None,
    first_load: bool = False,
) -> Applied:
    """Hold a table's schema against the modes, and make of it what they say. Runs nothing.

    What is not declared goes after what is, variant columns last. A value of a column that has another type than the
    declared one is read as that type where it says the same, and is else up to `data_type`: under `freeze` such a
    column stays as it is, and breaks `type`, even if every value would fit. An undeclared array of objects is a table
    of its own, up to `tables`. `known` are the columns that an earlier load of a table with undeclared or untyped
    fields had; on the `first_load` of such a table every column is welcome. Raises `DataboxError` where two names would
    be one.
    """
    if first_load and is_incomplete(dataset):
        modes = modes.model_copy(update={"columns": Mode.EVOLVE})
    fields = _with_known(dataset.fields, known) if known is not None and is_incomplete(dataset) else dataset.fields
    case_sensitive = str(df.sparkSession.conf.get(_CASE)) == "true"
    walk = Walk(modes, case_sensitive, is_model(dataset), contract.title)
    shaped = walk.fields(fields, df.schema, (), (), dataset.table_name)
    source = _Source(df, shaped)
    frozen = tuple(cause for cause, _ in shaped.frozen)
    causes = [cause for cause, _ in (*shaped.drops, *shaped.frozen)] + [cause for cause, _, _ in shaped.tallies]
    mistyped = [cause for cause in causes if cause.entity == "data_type"]
    originals = _originals(df.schema, mistyped, case_sensitive=case_sensitive)
    declared = {path for field in dataset.fields for path in _typed_paths(field, (field.column,))}
    return Applied(
        modes,
        source.result(source.view) if shaped.changed else df,
        fields,
        case_sensitive,
        frozen,
        tuple(
            f"{cause.field} is {originals[cause.path]}, and was of another type in the last load"
            for cause in frozen
            if cause.entity == "data_type" and cause.path not in declared
        ),
        tuple(walk.remarks),
        originals,
        _source=source if shaped.changed else None,
    )


@dataclass(frozen=True, slots=True)
class _Source:
    """The table that came in, its columns by position, with what becomes of them."""

    df: DataFrame
    shaped: ShapedFields

    @property
    def view(self) -> DataFrame:
        view = self.df.toDF(*(positional(at) for at in range(len(self.df.columns))))
        # Told below what is observed: where Spark knows that a filter keeps no row, it leaves out what is below it.
        return view.withColumn(_DROPPED, self._dropped) if self.shaped.drops else view

    @property
    def _dropped(self) -> Column:
        return reduce(or_, (when(_row) for _, when in self.shaped.drops))

    @property
    def counting(self) -> bool:
        return bool(self.shaped.drops or self.shaped.tallies)

    def result(self, view: DataFrame) -> DataFrame:
        """The rows that stay, as they come out."""
        kept = view.where(~F.col(_DROPPED)) if self.shaped.drops else view
        columns = [made.value(_row).alias(f"o{at}") for at, made in enumerate(self.shaped.columns)]
        return kept.select(*columns).toDF(*(made.field.name for made in self.shaped.columns))

    def aggregates(self) -> list[Column]:
        dropped = F.col(_DROPPED) if self.shaped.drops else F.lit(False)
        found = [F.count(F.lit(1)).alias("rows"), F.count_if(dropped).alias("dropped")]
        found += [F.count_if(when(_row)).alias(f"d{at}") for at, (_, when) in enumerate(self.shaped.drops)]
        for at, (_, _, count) in enumerate(self.shaped.tallies):
            found.append(F.sum(F.when(~dropped, count(_row)).otherwise(0)).alias(f"t{at}"))
        return found

    def counts(self, found: Mapping[str, Any]) -> Counts:
        fields = [(cause, Unit.ROWS, int(found[f"d{at}"])) for at, (cause, _) in enumerate(self.shaped.drops)]
        # A sum over no row is null.
        tallies = [(cause, unit, int(found[f"t{at}"] or 0)) for at, (cause, unit, _) in enumerate(self.shaped.tallies)]
        return Counts(
            int(found["rows"]),
            int(found["dropped"]),
            sum(count for _, unit, count in tallies if unit is Unit.TOTAL),
            sum(count for _, unit, count in tallies if unit is Unit.VALUES),
            (*fields, *tallies),
        )


def _row(at: int) -> Column:
    return F.col(positional(at))


_DROPPED: Final = "dropped"
"""Whether a row is discarded, beside the columns by position."""


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _typed_paths(field: Field, path: Path) -> Iterable[Path]:
    if field.type is not None:
        yield path
    for part in field.fields:
        yield from _typed_paths(part, (*path, part.column))
    for hop, inner in ((Hop.ITEM, field.item), (Hop.KEY, field.key), (Hop.VALUE, field.value)):
        if inner is not None:
            yield from _typed_paths(inner, (*path, hop))


def _originals(schema: StructType, causes: Sequence[Cause], *, case_sensitive: bool) -> dict[Path, str]:
    """The types that mistyped values came in, by place."""
    found: dict[Path, str] = {}
    for cause in causes:
        place = locate(schema, cause.path, case_sensitive=case_sensitive)
        if not isinstance(place, Missing):
            found[cause.path] = type_text(place.type)
    return found


def _with_known(fields: tuple[Field, ...], known: StructType) -> tuple[Field, ...]:
    """The fields, with the types and the further columns that the table had."""
    types = {column.name: to_data_type(column.dataType) for column in known.fields}
    found = [_typed(field, types.get(field.column)) for field in fields]
    declared = {field.column.lower() for field in fields}
    for name, type_ in types.items():
        if name.lower() not in declared:
            found.append(_typed(Field(name=name), type_))
    return tuple(found)


def _typed(field: Field, type_: DataType | None) -> Field:
    return field.model_copy(update={"type": type_}).completed() if field.type is None and type_ is not None else field
