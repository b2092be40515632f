"""Conditions in SQL over the columns of a row, at any depth, as text that Spark evaluates beside all other rules.

The author's text is parsed, its names are resolved against the contract and the table, and what could fail on one row
(a division, a cast, an overflow) takes its `try_` form, so that the row's outcome is null and the job goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from pyspark.sql.types import ArrayType, DataType as SparkType, MapType, StructType

from databox_contracts.model import Field
from databox_contracts.plan import Hop, Path
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.sql_safety import PLACEHOLDER, STAND_IN, quoted, refusal, tried

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_CHARACTERS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Level:
    """A place whose parts a condition may name: the row, or an object inside it.

    `ref` is how Spark calls the object, None for the row, whose columns have names of their own. `prefix` are the
    names that lead to it from the row, `element` says that `ref` is itself called `item`, `key` or `value`.
    """

    ref: str | None
    struct: StructType | None
    fields: tuple[Field, ...]
    prefix: tuple[str, ...] = ()
    element: Hop | None = None


class Names:
    """What the names in a condition mean, from the innermost level outwards."""

    def __init__(
        self, levels: Sequence[Level], *, table: Sequence[str], column: Callable[[int], str], case_sensitive: bool
    ) -> None:
        self._levels = levels
        self._table = {name.casefold() for name in table}
        self._column = column
        self._case_sensitive = case_sensitive

    def resolve(self, parts: Sequence[str]) -> str:
        """The reference Spark understands. Raises `NotEvaluableError` for a name that is none, or is two."""
        for level in self._levels:
            inside = tuple(parts[len(level.prefix) :])
            starts = [self._key(part) for part in parts[: len(level.prefix)]] == [self._key(p) for p in level.prefix]
            # As it is called from where it stands, then by its name from the row.
            for wanted in (tuple(parts), inside if level.prefix and inside and starts else ()):
                found = self._at(level, wanted) if wanted else None
                if found is not None:
                    return found
        if len(parts) > 1 and parts[0].casefold() in self._table:
            return self.resolve(parts[1:])
        raise NotEvaluableError(f"its SQL names {'.'.join(parts)}, which the table does not have")

    def _at(self, level: Level, parts: tuple[str, ...]) -> str | None:
        if level.element is not None and self._key(parts[0]) == level.element.value and level.ref is not None:
            return ".".join([level.ref, *map(quoted, parts[1:])])
        if level.struct is None:
            return None
        steps = self._steps(level.struct, level.fields, parts)
        if steps is None:
            return None
        if level.ref is None:
            at = next(at for at, field in enumerate(level.struct.fields) if field.name == steps[0])
            return ".".join([self._column(at), *map(quoted, steps[1:])])
        return ".".join([level.ref, *map(quoted, steps)])

    def _steps(self, struct: StructType, fields: tuple[Field, ...], parts: tuple[str, ...]) -> list[str] | None:
        # A name that itself holds a dot is found as it is.
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            declared = next((field for field in fields if self._key(field.name) == self._key(name)), None)
            wanted = declared.column if declared is not None else name
            exact = [field for field in struct.fields if field.name == wanted]
            found = exact or [field for field in struct.fields if self._key(field.name) == self._key(wanted)]
            if len(found) > 1:
                raise NotEvaluableError(f"its SQL names {name}, and the table has {len(found)} columns of that name")
            if not found:
                continue
            inner = found[0].dataType
            if count == len(parts):
                return [found[0].name]
            if not isinstance(inner, StructType):
                # A map's key, or the field of each object of an array.
                return [found[0].name, *parts[count:]]
            rest = self._steps(inner, declared.fields if declared is not None else (), parts[count:])
            if rest is not None:
                return [found[0].name, *rest]
        return None

    def _key(self, name: str) -> str:
        return name if self._case_sensitive else name.casefold()


Leaf = Callable[[str, "str | None", Names], str]
"""Of a value's reference, the reference of the object that holds it, and names, the SQL text of an outcome."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a row a condition stands; a row's own has an empty path."""

    schema: StructType
    fields: tuple[Field, ...]
    path: Path
    steps: Path
    column: int | None
    table: tuple[str, ...]
    case_sensitive: bool
    called: Callable[[int], str]

    def every(self, leaf: Leaf, combine: Callable[[str, str, str], str]) -> str:
        """The text of `leaf` at each value there is, inside arrays and maps as `combine` puts them together.

        `combine` is given the collection, the variable and the text of one element.
        """
        top = Level(None, self.schema, self.fields)
        if self.column is None:
            return leaf("", None, self._names([top]))
        declared = _declared(self.fields, str(self.path[0]))
        actual = self.schema.fields[self.column].dataType
        prefix = (declared.name if declared is not None else str(self.path[0]),)
        return self._walk(self.called(self.column), None, actual, declared, self.steps, prefix, [top], leaf, combine)

    def _names(self, levels: list[Level]) -> Names:
        return Names(levels, table=self.table, column=self.called, case_sensitive=self.case_sensitive)

    def _walk(
        self,
        ref: str,
        holder: str | None,
        actual: SparkType,
        declared: Field | None,
        steps: Path,
        prefix: tuple[str, ...],
        levels: list[Level],
        leaf: Leaf,
        combine: Callable[[str, str, str], str],
    ) -> str:
        if not steps:
            return leaf(ref, holder, self._names(levels))
        step, rest = steps[0], steps[1:]
        if isinstance(step, str):
            assert isinstance(actual, StructType)
            fields = declared.fields if declared is not None else ()
            inner = [Level(ref, actual, fields, prefix), *levels]
            part = _declared(fields, step)
            name = part.name if part is not None else step
            return self._walk(
                f"{ref}.{quoted(step)}", ref, actual[step].dataType, part, rest, (*prefix, name), inner, leaf, combine
            )
        variable = f"e{sum(level.element is not None for level in levels)}"
        collection, element, part = _inside(ref, actual, declared, step)
        struct = element if isinstance(element, StructType) else None
        below = prefix if step is Hop.ITEM else (*prefix, step.value)
        level = Level(variable, struct, part.fields if part is not None else (), below, step)
        text = self._walk(variable, None, element, part, rest, below, [level, *levels], leaf, combine)
        return combine(collection, variable, text)


def _declared(fields: tuple[Field, ...], column: str) -> Field | None:
    exact = next((field for field in fields if field.column == column), None)
    return exact or next((field for field in fields if field.column.casefold() == column.casefold()), None)


def _inside(ref: str, actual: SparkType, declared: Field | None, hop: Hop) -> tuple[str, SparkType, Field | None]:
    match hop, actual:
        case Hop.KEY, MapType():
            return f"map_keys({ref})", actual.keyType, declared.key if declared is not None else None
        case Hop.VALUE, MapType():
            return f"map_values({ref})", actual.valueType, declared.value if declared is not None else None
        case _, ArrayType():
            return ref, actual.elementType, declared.item if declared is not None else None
    raise NotEvaluableError("it is inside a column of another type")


def any_violating(place: Place, test: Leaf) -> str:
    """Whether any value at the place fails the test; never null. Inside a null object there is nothing to judge."""
    return place.every(
        lambda ref, holder, names: _judged(ref, holder, names, test),
        lambda collection, variable, text: f"coalesce(exists({collection}, {variable} -> {text}), false)",
    )


def all_violating(place: Place, test: Leaf, shown: Callable[[str], str]) -> str:
    """An array of the values at the place that fail the test, each as `shown` makes it."""
    nothing = "cast(array() as array<string>)"
    return place.every(
        lambda ref, holder, names: f"if({_judged(ref, holder, names, test)}, array({shown(ref)}), {nothing})",
        lambda collection, variable, text: (
            f"coalesce(flatten(transform({collection}, {variable} -> {text})), {nothing})"
        ),
    )


def _judged(ref: str, holder: str | None, names: Names, test: Leaf) -> str:
    failed = f"coalesce({test(ref, holder, names)}, false)"
    return failed if holder is None else f"({holder} IS NOT NULL AND {failed})"


def as_json_text(actual: SparkType, longest: int) -> Callable[[str], str]:
    """As `sampling.as_json`, in SQL."""

    def shown(ref: str) -> str:
        value = f"substring({ref}, 1, {longest})" if actual.typeName() == "string" else ref
        return f"to_json(named_struct('v', {value}), map('timeZone', 'UTC', 'ignoreNullFields', 'false'))"

    return shown


# --- from the author's text to Spark's --------------------------------------------------------------------------------


def is_false(sql: str, as_of: datetime) -> Leaf:
    """The test that the condition is false."""
    return lambda ref, holder, names: f"NOT ({translated(sql, ref, names, as_of)})"


def is_null_where(condition: str, as_of: datetime) -> Leaf:
    """The test that the value is null where the condition is true."""

    def test(ref: str, holder: str | None, names: Names) -> str:
        return f"{ref} IS NULL AND ({translated(condition, ref, names, as_of)})"

    return test


def translated(sql: str, ref: str, names: Names, as_of: datetime) -> str:
    """The condition with resolved names, in forms that fail on no row. Raises `NotEvaluableError`, which says why."""
    from sqlglot import exp

    tree = _parsed(sql).copy()
    for column in list(tree.find_all(exp.Column)):
        parts = [part.name for part in column.parts]
        if parts == [STAND_IN]:
            if not ref:
                raise NotEvaluableError("its SQL has a placeholder for a field, and it is about none")
            text = ref
        else:
            text = names.resolve(parts)
        if column is tree:
            return text
        column.replace(exp.Var(this=text))
    micros = (as_of - _EPOCH) // timedelta(microseconds=1)
    return tried(tree, f"timestamp_micros({micros})")


@lru_cache(maxsize=1024)
def _parsed(sql: str) -> Any:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(sql) > _MOST_CHARACTERS:
        raise NotEvaluableError("its SQL is too long to be checked")
    try:
        tree = sqlglot.parse_one(PLACEHOLDER.sub(STAND_IN, sql), dialect="spark", into=exp.Condition)
    except (SqlglotError, ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise NotEvaluableError("its SQL is no condition that can be read") from error
    reason = refusal(tree)
    if reason is not None:
        raise NotEvaluableError(f"its SQL {reason}")
    return tree
