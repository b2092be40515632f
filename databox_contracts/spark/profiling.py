"""A first contract from a table: what its schema says, and what its rows suggest, marked as guesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field as attribute
from functools import reduce
from operator import and_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import DataboxError
from databox_contracts.inferred import PERSONAL, REMARK, TYPE, Guess, Inferred
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.personal import mark_personal
from databox_contracts.rules import (
    Enum,
    Freshness,
    Maximum,
    Minimum,
    Operator,
    PrimaryKey,
    Required,
    RowCount,
    Rule,
    Threshold,
    Unique,
)
from databox_contracts.spark.casting import cast_text, spark_type_of
from databox_contracts.spark.counting import positional
from databox_contracts.spark.declaring import fields_of
from databox_contracts.spark.guessing import (
    FEWEST_ROWS,
    PERSONAL_FORMATS,
    GuessedRule,
    guess_format,
    guess_rules,
    guess_type,
    is_enum,
    limits,
    may_be_enum,
)
from databox_contracts.spark.key_candidates import KeyColumn, key_candidates, may_be_part
from databox_contracts.spark.profile_facts import Facts, count_facts, leaves_of

_NOT_EMPTY: Final = RowCount(threshold=Threshold(Operator.GREATER_THAN, 0), name="not_empty")
# A bound on what identifies a row would only tell where counting has got to.
_BOUNDS: Final = (Minimum, Maximum)


def infer_contract(
    df: DataFrame,
    *,
    id: str,
    name: str | None = None,
    dataset: str | None = None,
    version: str = "0.1.0",
    untyped: bool = False,
    freshness: float | None = None,
) -> Contract:
    """A first contract for a table, which the table keeps; `infer_with_guesses` also tells what of it is a guess.

    `dataset` is the name of its dataset, the last part of `id` if not given. With `untyped`, text columns (CSV) get the
    type that all their texts are values of. `freshness` is how old, in seconds, the newest time may be; without it none
    is promised. Two passes over the rows at most. Values of columns that look like personal data are in no promise.
    Raises `DataboxError` for a table that no contract can describe; errors of Spark pass through.
    """
    inferred = infer_with_guesses(
        df, id=id, name=name, dataset=dataset, version=version, untyped=untyped, freshness=freshness
    )
    return inferred.contract


def infer_with_guesses(
    df: DataFrame,
    *,
    id: str,
    name: str | None = None,
    dataset: str | None = None,
    version: str = "0.1.0",
    untyped: bool = False,
    freshness: float | None = None,
) -> Inferred:
    """As `infer_contract`, with what of the contract is a guess and why."""
    table = dataset or id.replace("/", ":").split(":")[-1]
    profile = _Profile(df, table, untyped=untyped)
    described, guesses = profile.dataset(freshness)
    return Inferred(Contract(id=id, name=name, version=version, datasets=(described,)), tuple(guesses))


@dataclass
class _Column:
    """What is known of a leaf so far: its type with how that was guessed, and the rules it gets."""

    facts: Facts
    type: DataType | None
    masked: bool
    guessed_type: str | None = None
    personal: str | None = None
    guessed: list[GuessedRule] = attribute(default_factory=list)


class _Profile:
    """A table on its way to a dataset. It is looked at under positional names, as in a verification."""

    def __init__(self, df: DataFrame, table: str, *, untyped: bool) -> None:
        self.table = table
        if not df.columns:
            raise DataboxError("the table has no columns", hint="Name one that has some.")
        fields = fields_of(df.schema)
        self.fields, named = mark_personal(table, fields)
        self.named = {guess.field: guess for guess in named}
        self.view = df.toDF(*(positional(at) for at in range(len(df.columns))))
        self.facts = count_facts(self.view, leaves_of(df.schema, untyped=untyped))
        self.columns = {facts.leaf.path: self._column(facts) for facts in self.facts.leaves}
        self.key: tuple[str, ...] = ()
        self._compare_rows()

    def dataset(self, freshness: float | None) -> tuple[Dataset, list[Guess]]:
        """The dataset, and the guesses in the order of its fields."""
        guesses: list[Guess] = []
        rules: list[Rule] = []
        if self.key:
            rules.append(PrimaryKey(fields=self.key))
        if self.facts.rows >= FEWEST_ROWS:
            rules.append(_NOT_EMPTY)
            guesses.append(Guess(self.table, (), _NOT_EMPTY.kind, f"the table has {self.facts.rows} rows"))
        newest = self._newest()
        if newest is None and freshness is not None:
            raise DataboxError("no column holds the time that a freshness is about", hint="Promise none.")
        if newest is not None:
            path, high = newest
            named = ".".join(path)
            if freshness is not None:
                rules.append(Freshness(seconds=freshness, element=named))
                guesses.append(Guess(self.table, (), "freshness", f"{named} has the newest time, {high}"))
            else:
                reason = f"the newest time of the table, {high}; --freshness DURATION promises how old it may be"
                guesses.append(Guess(self.table, path, REMARK, reason))
        fields = tuple(self._finished(field, (field.name,), guesses) for field in self.fields)
        return Dataset(name=self.table, fields=fields, rules=tuple(rules)), guesses

    # --- one column ---------------------------------------------------------------------------------------------------

    def _column(self, facts: Facts) -> _Column:
        path = facts.leaf.path
        field = _field_at(self.fields, path)
        found = guess_type(facts)
        format_ = guess_format(facts)
        covered = any(path[:length] in self.named for length in range(1, len(path) + 1))
        personal = PERSONAL_FORMATS.get(format_ or "") if not covered else None
        column = _Column(
            facts,
            type=found[0] if found is not None else field.type,
            masked=covered or personal is not None,
            guessed_type=found[1] if found is not None else None,
            personal=personal,
        )
        column.guessed = list(guess_rules(facts, column.type, masked=column.masked))
        return column

    def _newest(self) -> tuple[tuple[str, ...], str] | None:
        """The column with the newest time, the first of several; None without one, or if all are somebody's data."""
        best: tuple[str, tuple[str, ...]] | None = None
        for path, column in self.columns.items():
            if column.type is None or column.type.family is not Family.TIMESTAMP or column.masked or len(path) > 1:
                continue
            high = limits(column.facts, column.type)[1]
            if isinstance(high, str) and (best is None or high > best[0]):
                best = high, path
        return (best[1], best[0]) if best is not None else None

    # --- rows against each other --------------------------------------------------------------------------------------

    def _compare_rows(self) -> None:
        """Collect the values of short lists, and count those of possible keys, all in one more pass."""
        listed = [one for one in self.columns.values() if not one.masked and may_be_enum(one.facts, one.type)]
        parts = [
            KeyColumn(one.facts, one.type, one.masked)
            for one in self.columns.values()
            if one.type is not None and may_be_part(one.facts, one.type)
        ]
        candidates = key_candidates(parts, self.facts.rows)
        cells = [(self._hash(key), F.lit(None).cast("string")) for key in candidates]
        # The text itself tells values apart, and few of them are left after each part of the table was counted.
        cells += [(F.lit(0).cast("bigint"), one.facts.leaf.value(self.view)) for one in listed]
        if not cells:
            return
        found = self._distinct(cells)
        for at, one in enumerate(listed, start=len(candidates)):
            self._list(one, [value for value in found.get(at, (0, []))[1] if value is not None])
        self._claim([key for at, key in enumerate(candidates) if found.get(at, (0, []))[0] == key[0].facts.present])

    def _distinct(self, cells: Sequence[tuple[Column, Column]]) -> dict[int, tuple[int, list[str]]]:
        """By the number of a cell, how many different ones the rows have, and the texts among them."""
        structs = [
            F.struct(F.lit(at).alias("cell"), number.alias("number"), text.alias("text"))
            for at, (number, text) in enumerate(cells)
        ]
        each = self.view.select(F.inline(F.array(*structs))).where("number IS NOT NULL")
        different = each.groupBy("cell", "number", "text").agg(F.count(F.lit(1)).alias("rows"))
        counted = different.groupBy("cell").agg(
            F.count(F.lit(1)).alias("values"), F.collect_list("text").alias("texts")
        )
        return {row["cell"]: (row["values"], row["texts"]) for row in counted.collect()}

    def _hash(self, key: Sequence[KeyColumn]) -> Column:
        """A number for the key of a row; null where a part is. Different numbers are different keys for certain."""
        values = [self._typed(one) for one in key]
        whole = reduce(and_, (value.isNotNull() for value in values))
        return F.when(whole, F.xxhash64(*values))

    def _typed(self, column: KeyColumn) -> Column:
        value = column.facts.leaf.value(self.view)
        target = spark_type_of(column.type) if column.facts.leaf.untyped else None
        return cast_text(value, target) if target is not None else value

    def _list(self, column: _Column, values: Sequence[str]) -> None:
        if is_enum(column.facts, len(values)):
            reason = f"{len(values)} different values in {column.facts.present}"
            about_text = [one for one in column.guessed if isinstance(one.rule, Required)]
            column.guessed = [*about_text, GuessedRule(Enum(values=tuple(sorted(values))), reason)]

    def _claim(self, unique: Sequence[tuple[KeyColumn, ...]]) -> None:
        """Give the rows a key, the best one, and say of the other columns that they are unique as well."""
        whole = [key for key in unique if all(part.is_whole for part in key)]
        if whole:
            self.key = tuple(part.name for part in sorted(whole[0], key=lambda part: part.facts.leaf.column))
        for key in unique:
            if len(key) > 1:
                continue
            column = self.columns[key[0].facts.leaf.path]
            column.guessed = [one for one in column.guessed if not isinstance(one.rule, _BOUNDS)]
            if self.key != (key[0].name,) and column.type is not None and column.type.family is not Family.TIMESTAMP:
                column.guessed.append(GuessedRule(Unique(), f"none of {column.facts.present} values stands twice"))

    # --- fields -------------------------------------------------------------------------------------------------------

    def _finished(self, field: Field, path: tuple[str, ...], guesses: list[Guess]) -> Field:
        """The field with what was guessed of it and of what is inside."""
        column = self.columns.get(path)
        updates: dict[str, Any] = {}
        if column is not None:
            updates = self._promised(field, column, path, guesses)
        if path in self.named:
            guesses.append(self.named[path])
        if field.fields:
            updates["fields"] = tuple(self._finished(part, (*path, part.name), guesses) for part in field.fields)
        for part in ("item", "key", "value"):
            inner = getattr(field, part)
            if inner is not None:
                guesses.extend(_below(self.named, (*path, part)))
        return field.model_copy(update=updates)

    def _promised(self, field: Field, column: _Column, path: tuple[str, ...], guesses: list[Guess]) -> dict[str, Any]:
        said = {type(rule) for rule in field.rules}
        new = [one for one in column.guessed if type(one.rule) not in said]
        if column.guessed_type is not None:
            guesses.append(Guess(self.table, path, TYPE, column.guessed_type))
        guesses.extend(Guess(self.table, path, one.rule.kind, one.reason) for one in new)
        if len(path) == 1 and path[0] in self.key:
            guesses.append(Guess(self.table, path, PrimaryKey.kind, self._about_key(path[0])))
        updates: dict[str, Any] = {"type": column.type, "rules": (*field.rules, *(one.rule for one in new))}
        if column.personal is not None:
            guesses.append(Guess(self.table, path, PERSONAL, column.personal))
            updates["pii"] = True
        return updates

    def _about_key(self, part: str) -> str:
        if len(self.key) == 1:
            return f"none of {self.facts.rows} values stands twice"
        if part != self.key[0]:
            return f"part {self.key.index(part) + 1} of the key"
        return f"({', '.join(self.key)}) stands twice in none of {self.facts.rows} rows"


def _field_at(fields: tuple[Field, ...], path: tuple[str, ...]) -> Field:
    field = next(field for field in fields if field.name == path[0])
    return _field_at(field.fields, path[1:]) if len(path) > 1 else field


def _below(named: Mapping[tuple[str, ...], Guess], path: tuple[str, ...]) -> Iterator[Guess]:
    return (guess for at, guess in named.items() if at[: len(path)] == path)
