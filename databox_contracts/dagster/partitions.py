"""Which rows a Dagster partition is: its key as values of the columns that a table is partitioned by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import product
from typing import Any, Final, TypeAlias

import dagster as dg

from databox_contracts.datatypes import Family
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset, Field

PARTITION_METADATA: Final = "partition_expr"
"""Dagster's own IO managers for tables look for the column there, or for one column per dimension."""
PARTITION_HINT: Final = 'Write partition_by="day", or {"dimension": "column"} for several dimensions.'

PartitionBy: TypeAlias = str | Mapping[str, str]

_ALLOWED: Final = (Family.STRING, Family.INTEGER, Family.BOOLEAN, Family.DATE, Family.DECIMAL)
_KEY_TAG: Final = "dagster/partition"
_FIRST_TAG: Final = "dagster/asset_partition_range_start"
_LAST_TAG: Final = "dagster/asset_partition_range_end"
_ONLY: Final = ""
"""What the dimension of a definition without dimensions is called here."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of a partitions definition and the column of the table that it is; `days` for a column of dates."""

    name: str
    column: str
    definition: dg.PartitionsDefinition[Any]
    days: bool = False

    def values(self, key: str) -> list[Any]:
        """The values of the column that a key stands for: the days of a time window, else the key itself.

        Raises `DataboxError` for a key that is none of a column of dates.
        """
        if not self.days:
            return [key]
        if isinstance(self.definition, dg.TimeWindowPartitionsDefinition):
            window = self.definition.time_window_for_partition_key(key)
            first, end = window.start.date(), window.end.date()
            return [first + timedelta(days=at) for at in range((end - first).days)]
        try:
            return [date.fromisoformat(key)]
        except ValueError:
            raise DataboxError(
                f"the partition key {key!r} is no date, and {self.column} is a column of dates",
                hint="Name partitions as 2024-01-31, or partition by a column of strings.",
            ) from None


@dataclass(frozen=True, slots=True)
class TablePartitions:
    """A partitions definition, and the column that each of its dimensions is, in the order that makes directories."""

    definition: dg.PartitionsDefinition[Any]
    dimensions: tuple[Dimension, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table is partitioned by, outermost first."""
        return tuple(dimension.column for dimension in self.dimensions)

    @property
    def expression(self) -> PartitionBy:
        """As the asset's metadata says it."""
        if len(self.dimensions) == 1 and self.dimensions[0].name == _ONLY:
            return self.dimensions[0].column
        return {dimension.name: dimension.column for dimension in self.dimensions}

    def rows_of(self, keys: Iterable[str]) -> list[dict[str, Any]]:
        """The partitions of the table that those keys stand for: a value for each column, each once and in order."""
        found: dict[tuple[Any, ...], None] = {}
        for key in keys:
            texts = _texts(self.definition, key)
            found.update(dict.fromkeys(product(*(one.values(texts[one.name]) for one in self.dimensions))))
        return [dict(zip(self.columns, values, strict=True)) for values in found]

    def selected(self, context: Any, key: dg.AssetKey) -> list[str]:
        """The keys of a run. Raises `DataboxError` for a run without any, and for a key that there is not."""
        name, keys = key.to_user_string(), selected_keys(context, self.definition, key)
        if keys is None:
            raise DataboxError(
                f"{name} is partitioned by {', '.join(self.columns)}, and this run names no partition",
                hint="Materialize a partition of it, or a range of them.",
            )
        self.require(keys, context.instance, name)
        return keys

    def require(self, keys: Sequence[str], instance: dg.DagsterInstance, name: str) -> None:
        """Raises `DataboxError` for a key that the definition has not."""
        known = _known_keys(self.definition, keys, instance)
        unknown = [key for key in keys if key not in known]
        if unknown:
            more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
            raise DataboxError(
                f"{name} has no partition {', '.join(map(repr, unknown[:3]))}{more}",
                hint="Name one that its partitions_def has; a dynamic one is added to the instance first.",
            )


def selected_keys(context: Any, definition: dg.PartitionsDefinition[Any], key: dg.AssetKey) -> list[str] | None:
    """The partition keys of a run for that asset, of a step's context; None for a run without partitions."""
    tags = context.run.tags
    if _KEY_TAG in tags:
        return [tags[_KEY_TAG]]
    if _FIRST_TAG not in tags or _LAST_TAG not in tags:
        return None
    if key in context.selected_asset_keys:
        return [str(one) for one in context.partition_keys]
    # A step of checks alone has no partitions to Dagster, and the run's tags are all there is.
    span = dg.PartitionKeyRange(tags[_FIRST_TAG], tags[_LAST_TAG])
    if isinstance(definition, dg.MultiPartitionsDefinition):
        return list(map(str, definition.get_partition_keys_in_range(span, dynamic_partitions_store=context.instance)))
    return list(definition.get_partition_keys_in_range(span))


def declared_partitions(
    definition: dg.PartitionsDefinition[Any],
    given: PartitionBy | None,
    contract: Contract,
    dataset: Dataset,
) -> TablePartitions:
    """The columns that a contracted table is partitioned by, checked against its contract.

    `given` names them; else they are those that the contract declares as partitioned. Raises `DataboxError` where
    nothing names them, or a column cannot be what a partition is told by.
    """
    parts = dict(_dimensions(definition))
    named = _named(parts, given, contract, dataset)
    by_name = {field.name: field for field in dataset.fields} | {field.column: field for field in dataset.fields}
    dimensions = []
    for dimension, column in named.items():
        field = by_name.get(column)
        if field is None:
            known = ", ".join(one.name for one in dataset.fields) or "none"
            raise DataboxError(
                f"{contract.title} declares no field {column!r} to partition {dataset.name} by",
                hint=f"Its fields are: {known}.",
            )
        dimensions.append(_checked(Dimension(dimension, field.column, parts[dimension]), field, contract))
    columns = [one.column for one in dimensions]
    if len(set(columns)) != len(columns):
        raise DataboxError(f"two dimensions of {dataset.name} are the column {columns[0]}", hint=PARTITION_HINT)
    if len(columns) == len(dataset.fields):
        raise DataboxError(
            f"every field of {dataset.name} would be a partition column", hint="Leave a field for the files."
        )
    return TablePartitions(definition, tuple(dimensions))


def known_partitions(
    definition: dg.PartitionsDefinition[Any], expression: PartitionBy, types: Mapping[str, str]
) -> TablePartitions:
    """Those of a published table: `expression` as the asset's metadata says it, `types` Spark's names of the columns'.

    Raises `DataboxError` for an expression that does not fit the definition or the table.
    """
    parts = dict(_dimensions(definition))
    named = {_ONLY: expression} if isinstance(expression, str) else dict(expression)
    if sorted(named) != sorted(parts):
        raise DataboxError(
            f"{PARTITION_METADATA} names {', '.join(named) or 'nothing'}, and the dimensions are"
            f" {', '.join(parts) or 'none'}",
            hint=PARTITION_HINT,
        )
    missing = [column for column in named.values() if column not in types]
    if missing:
        raise DataboxError(
            f"the table has no column {missing[0]!r}, which {PARTITION_METADATA} names",
            hint=f"Its columns are: {', '.join(types)}.",
        )
    return TablePartitions(
        definition,
        tuple(Dimension(name, column, parts[name], types[column] == "date") for name, column in named.items()),
    )


def _named(parts: Mapping[str, Any], given: PartitionBy | None, contract: Contract, dataset: Dataset) -> dict[str, str]:
    """The column of each dimension, outermost first."""
    if given is None:
        declared = sorted(
            (field for field in dataset.fields if field.partition_position is not None),
            key=lambda field: field.partition_position or 0,
        )
        if list(parts) == [_ONLY] and len(declared) == 1:
            return {_ONLY: declared[0].name}
        if declared and sorted(field.name for field in declared) == sorted(parts):
            return {field.name: field.name for field in declared}
        said = f"; {contract.title} declares {', '.join(field.name for field in declared)}" if declared else ""
        raise DataboxError(
            f"nobody says which column of {dataset.name} tells a row's partition{said}", hint=PARTITION_HINT
        )
    if isinstance(given, str):
        if list(parts) != [_ONLY]:
            raise DataboxError(
                f"{dataset.name} has the dimensions {', '.join(parts)}, and one column is named: {given!r}",
                hint=PARTITION_HINT,
            )
        return {_ONLY: given}
    if not isinstance(given, Mapping) or list(parts) == [_ONLY] or sorted(given) != sorted(parts):
        dimensions = "no dimensions" if list(parts) == [_ONLY] else f"the dimensions {', '.join(parts)}"
        raise DataboxError(
            f"the partitions of {dataset.name} have {dimensions}, and columns are named for {given!r}",
            hint=PARTITION_HINT,
        )
    return {str(name): str(column) for name, column in given.items()}


def _checked(dimension: Dimension, field: Field, contract: Contract) -> Dimension:
    """The dimension with what its column's type makes of it. Raises `DataboxError` for a type that will not do."""
    if field.type is None or field.type.family not in _ALLOWED:
        declared = f"of type {field.type}" if field.type is not None else "without a declared type"
        raise DataboxError(
            f"the field {field.name} of {contract.title} is {declared}, which makes no partitions",
            hint="Partition by a string, an integer, a boolean, a date or a decimal, such as the date of a timestamp.",
        )
    if field.conceals(contract.governance.pii_class):
        raise DataboxError(
            f"values of the field {field.name} of {contract.title} must not be shown, and Dagster shows partition keys",
            hint="Partition by a field that may be shown.",
        )
    days = field.type.family is Family.DATE
    definition = dimension.definition
    if days and isinstance(definition, dg.TimeWindowPartitionsDefinition):
        first = definition.get_first_partition_window()
        if first is not None and not _is_of_days(first):
            raise DataboxError(
                f"a partition of {field.name} would be a part of a day, and {field.name} is a date",
                hint="Partition by the day, or by a column of strings that holds Dagster's partition keys.",
            )
    checked = Dimension(dimension.name, dimension.column, definition, days)
    if isinstance(definition, dg.StaticPartitionsDefinition):
        _require_values(checked, field.type.family, definition.get_partition_keys())
    return checked


_READ: Final[Mapping[Family, Any]] = {
    Family.INTEGER: int,
    Family.BOOLEAN: {"true": True, "false": False}.__getitem__,
    Family.DECIMAL: float,
}


def _require_values(dimension: Dimension, family: Family, keys: Sequence[str]) -> None:
    for key in keys:
        dimension.values(key)
        try:
            _READ.get(family, str)(key)
        except (ValueError, KeyError):
            raise DataboxError(
                f"the partition key {key!r} is no value of {dimension.column}, which is of type {family}",
                hint="Name partitions as the column's values are written, or partition by a column of strings.",
            ) from None


def _is_of_days(window: dg.TimeWindow) -> bool:
    midnight = (0, 0, 0, 0)
    ends = [(one.hour, one.minute, one.second, one.microsecond) for one in (window.start, window.end)]
    return ends == [midnight, midnight]


def _dimensions(definition: dg.PartitionsDefinition[Any]) -> Iterator[tuple[str, dg.PartitionsDefinition[Any]]]:
    if isinstance(definition, dg.MultiPartitionsDefinition):
        for part in definition.partitions_defs:
            yield part.name, part.partitions_def
    else:
        yield _ONLY, definition


def _texts(definition: dg.PartitionsDefinition[Any], key: str) -> Mapping[str, str]:
    if not isinstance(definition, dg.MultiPartitionsDefinition):
        return {_ONLY: key}
    return definition.get_partition_key_from_str(str(key)).keys_by_dimension


def _known_keys(
    definition: dg.PartitionsDefinition[Any], keys: Sequence[str], instance: dg.DagsterInstance
) -> set[str]:
    if isinstance(definition, dg.DynamicPartitionsDefinition):
        # Some dynamic ones are made by a function and have no name.
        if definition.name is not None:
            return set(instance.get_dynamic_partitions(definition.name))
        return set(definition.get_partition_keys(dynamic_partitions_store=instance))
    if isinstance(definition, dg.MultiPartitionsDefinition):
        return set(map(str, definition.get_partition_keys(dynamic_partitions_store=instance)))
    return {key for key in keys if definition.has_partition_key(key)}
