"""Partitions of a table: the columns that make directories, what a directory's name says, and who answers for which."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from pyspark.sql.types import DataType as SparkType, DecimalType, StructField, StructType

from databox_contracts.errors import PublicationError
from databox_contracts.spark.schema import type_text

NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""What a directory is called whose rows have null there."""

Partition: TypeAlias = tuple[str | None, ...]
"""The values of one partition as text, in the order of the partition columns."""
Wanted: TypeAlias = Mapping[int, str | None]
"""Values that some of the partition columns, by position, must have."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partition columns of a table, outermost first; none for a table of one directory."""

    columns: tuple[StructField, ...] = ()

    @classmethod
    def of(cls, schema: StructType, names: Sequence[str], path: str) -> Partitioning:
        """The columns of those names. Raises `PublicationError` for what cannot be a partition and come back the same.

        Doubles and timestamps are refused: a directory's name keeps neither -0.0 nor a time zone.
        """
        known = {field.name: field for field in schema.fields}
        for at, name in enumerate(names):
            if name not in known:
                raise PublicationError(
                    path, f"there is no column {name} to partition by", hint=f"The columns are {', '.join(known)}."
                )
            if name in names[:at]:
                raise PublicationError(path, f"partition_by names {name} twice")
            if name.startswith(".") or "/" in name or "\0" in name:
                raise PublicationError(path, f"{name!r} makes no directory that Spark would read")
            if _family(known[name].dataType) not in _READERS:
                raise PublicationError(
                    path,
                    f"values of type {type_text(known[name].dataType)}, which {name} has, do not survive"
                    " in a directory's name",
                    hint="Partition by a string, an integer, a boolean, a date or a decimal, such as the date of it.",
                )
        if names and len(names) == len(known):
            raise PublicationError(path, "every column is a partition column, so that no column is left for the files")
        return cls(tuple(known[name] for name in names))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    def at(self, directory: str) -> Partition:
        """The partition whose directory, relative to the table's, that is: `day=2024-01-01/hour=3`."""
        values: list[str | None] = []
        for part, column in zip(directory.split("/"), self.columns, strict=True):
            _, _, text = part.partition("=")
            # Two spellings of one value, 1 and 01, are one partition.
            values.append(None if text == NULL_PARTITION else _canonical(unquote(text), column.dataType))
        return tuple(values)

    def fits(self, directory: str) -> bool:
        """Whether a directory, relative to the table's, is one of a partition of these columns."""
        parts = directory.split("/") if directory else []
        return [unquote(part.partition("=")[0]) for part in parts] == list(self.names)

    def wanted(self, specs: Sequence[Mapping[str, Any]], path: str) -> tuple[Wanted, ...]:
        """What a run answers for. Values are given as the column's or as text; a column left out may have any value.

        Raises `PublicationError` for a column or a value that no partition has.
        """
        names = list(self.names)
        found = []
        for spec in specs:
            if not isinstance(spec, Mapping) or not spec:
                raise PublicationError(
                    path, f"{spec!r} names no partition", hint=f"Give a value for {names[0]}: {{{names[0]!r}: ...}}."
                )
            unknown = [name for name in spec if name not in names]
            if unknown:
                raise PublicationError(
                    path, f"{unknown[0]} is no partition column", hint=f"They are {', '.join(names)}."
                )
            found.append({at: self._text(at, spec[name], path) for at, name in enumerate(names) if name in spec})
        return tuple(found)

    def shown(self, partition: Partition | Wanted) -> str:
        """How a message names a partition."""
        values = enumerate(partition) if isinstance(partition, tuple) else partition.items()
        return ", ".join(f"{self.columns[at].name}={'null' if value is None else value}" for at, value in values)

    def _text(self, at: int, value: Any, path: str) -> str | None:
        if value is None:
            return None
        column = self.columns[at]
        try:
            text = _READERS[_family(column.dataType)](value, column.dataType)
        except (ValueError, TypeError, InvalidOperation):
            raise PublicationError(
                path, f"the value given for the partition column {column.name} is no {type_text(column.dataType)}"
            ) from None
        if text in ("", NULL_PARTITION):
            raise PublicationError(
                path,
                f"{text!r} can be no partition of {column.name}: Spark reads such a directory as null",
                hint="Write None for the partition of nulls.",
            )
        return text


def matches(partition: Partition, wanted: Wanted) -> bool:
    """Whether a partition is among those that a run answers for."""
    return all(partition[at] == value for at, value in wanted.items())


def data_files(directory: Path) -> dict[str, list[str]]:
    """The names of a table's data files by their directory, relative to the table's; the table's own is ``""``.

    What Spark does not read, such as markers and checksums, is left out.
    """
    found: dict[str, list[str]] = {}
    for at, inside, names in os.walk(directory):
        inside[:] = sorted(name for name in inside if "=" in name and not name.startswith("."))
        own = sorted(name for name in names if name[0] not in "._")
        if own:
            relative = os.path.relpath(at, directory)
            found["" if relative == "." else relative] = own
    return found


def _family(actual: SparkType) -> str:
    return actual.typeName().split("(")[0]


def _canonical(text: str, actual: SparkType) -> str:
    try:
        return _READERS[_family(actual)](text, actual)
    except (ValueError, TypeError, InvalidOperation):
        return text


def _string(value: Any, _: SparkType) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _integer(value: Any, _: SparkType) -> str:
    if isinstance(value, bool | float):
        raise TypeError
    return str(int(value))


def _boolean(value: Any, _: SparkType) -> str:
    text = str(value).lower() if isinstance(value, bool | str) else ""
    if text not in ("true", "false"):
        raise ValueError
    return text


def _date(value: Any, _: SparkType) -> str:
    if isinstance(value, datetime):
        raise TypeError
    return (value if isinstance(value, date) else date.fromisoformat(value)).isoformat()


def _decimal(value: Any, actual: SparkType) -> str:
    assert isinstance(actual, DecimalType)
    if isinstance(value, bool | float):
        raise TypeError
    exact = Decimal(value)
    if not exact.is_finite():
        raise ValueError
    scaled = exact.quantize(Decimal(1).scaleb(-actual.scale), context=Context(prec=76))
    if scaled != exact:
        raise ValueError
    return str(scaled)


_READERS: Final[Mapping[str, Callable[[Any, SparkType], str]]] = {
    "string": _string,
    "char": _string,
    "varchar": _string,
    "byte": _integer,
    "short": _integer,
    "integer": _integer,
    "long": _integer,
    "boolean": _boolean,
    "date": _date,
    "decimal": _decimal,
}
"""How a value of each type that may be a partition is written in a directory's name."""
