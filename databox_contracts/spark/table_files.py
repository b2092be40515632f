"""The files of a table: formats, the options under which every value comes back the same, and what a format refuses."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession, functions as F
from pyspark.sql.types import ArrayType, DataType as SparkType, MapType, StringType, StructField, StructType

from databox_contracts.errors import PublicationError
from databox_contracts.spark.partitioning import Partitioning, data_files
from databox_contracts.spark.schema import type_text

_TEXT: Final = {
    # Spark's own patterns drop microseconds; in UTC every offset is whole.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "dateFormat": "yyyy-MM-dd",
    "timeZone": "UTC",
    "lineSep": "\n",
    "encoding": "UTF-8",
}
_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "parquet": {},
    "orc": {},
    "json": {**_TEXT, "ignoreNullFields": "false"},
    # Spark's writer trims values unless told not to.
    "csv": {
        **_TEXT,
        "header": "true",
        "quote": '"',
        "escape": '"',
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
    },
}
_READING: Final[Mapping[str, Mapping[str, str]]] = {
    "json": {"mode": "FAILFAST", "columnNameOfCorruptRecord": "_databox_corrupt"},
    "csv": {
        "mode": "FAILFAST",
        "multiLine": "true",
        "emptyValue": "",
        "maxColumns": "100000",
        "columnNameOfCorruptRecord": "_databox_corrupt",
    },
}
FORMATS: Final = tuple(_OPTIONS)
"""What a published table's files may be."""
TEXT_FORMATS: Final = ("json", "csv")
"""Formats whose files say nothing of types."""

_NUMBERS: Final = ("byte", "short", "integer", "long", "float", "double", "decimal")
_TIMES: Final = ("date", "timestamp", "timestamp_ntz")
_FLAT: Final = ("string", "char", "varchar", "boolean", *_NUMBERS, *_TIMES)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table's rows lie in its files; readers need nothing else to find the same values again."""

    format: str
    schema: StructType
    partition_by: tuple[str, ...] = ()

    @property
    def columns(self) -> StructType:
        """What the files themselves hold; partition columns are in the directories' names."""
        return StructType([field for field in self.schema.fields if field.name not in self.partition_by])

    def partitioning(self, path: str) -> Partitioning:
        """Its partition columns. Raises `PublicationError` for columns that make none."""
        return Partitioning.of(self.schema, self.partition_by, path)

    def unwritable(self) -> str | None:
        """Why the format cannot hold the columns and give them back, None if it can."""
        if self.format == "parquet":
            return None
        for field in self.columns.fields:
            refused = _refused(field.dataType, self.format)
            if refused is not None:
                return f"{self.format.upper()} cannot hold the column {field.name}: {refused}"
        return None

    @property
    def doubtful(self) -> list[StructField]:
        """The columns whose values have to be compared with what went in once they are written.

        Text says nothing of types. ORC moves dates that the Julian calendar lacks, and the last second before 1970.
        """
        if self.format in TEXT_FORMATS:
            return list(self.schema.fields)
        if self.format == "orc":
            return [field for field in self.columns.fields if _holds_times(field.dataType)]
        return []

    def read(self, spark: SparkSession, *paths: Path, base: Path | None = None) -> DataFrame:
        """Rows of directories or files, under the table's types and in its order of columns.

        `base` is the table's directory where the paths are inside it, so that their partitions are recognised.
        """
        reader = spark.read.schema(self.schema).format(self.format).options(**self.options, **self._reading())
        if base is not None:
            reader = reader.option("basePath", str(base))
        rows = reader.load([str(path) for path in paths])
        # Spark puts the partition columns last.
        return rows.select(*(column(name) for name in self.schema.names)) if self.partition_by else rows

    @property
    def options(self) -> dict[str, str]:
        """The options of writing, recorded with the table; reading takes the same."""
        # A lone null would be an empty line, which readers skip. Quoted it is the empty text, and that is noticed.
        alone = self.format == "csv" and len(self.columns.fields) == 1
        return {**_OPTIONS[self.format], **({"quoteAll": "true"} if alone else {})}

    def _reading(self) -> dict[str, str]:
        # Null is nothing between two commas and the empty text is "". The reader tells them apart if it takes for null
        # what no value is, and it compares that with values as well.
        unlikely = {"nullValue": f"null-{secrets.token_hex(16)}"} if self.format == "csv" else {}
        return {**_READING.get(self.format, {}), **unlikely}

    def facts(self) -> dict[str, Any]:
        """As the version's manifest records it."""
        return {
            "format": self.format,
            "schema": json.loads(self.schema.json()),
            "partition_by": list(self.partition_by),
            "options": self.options,
        }

    @classmethod
    def recorded(cls, manifest: Mapping[str, Any]) -> Layout | None:
        """That of a version's manifest, None where it has none."""
        facts = manifest.get("table")
        if not isinstance(facts, Mapping) or facts.get("format") not in FORMATS:
            return None
        return cls(facts["format"], StructType.fromJson(facts["schema"]), tuple(facts["partition_by"]))


def column(name: str) -> Column:
    """The column of exactly that name, whatever is in it."""
    return F.col("`" + name.replace("`", "``") + "`")


def count_rows(spark: SparkSession, layout: Layout, directory: Path) -> dict[str, int]:
    """The number of rows by partition directory, relative to the table's. Parquet's footers say it; others are read."""
    files = data_files(directory)
    if layout.format == "parquet":
        return {
            inside: sum(pq.ParquetFile(directory / inside / name).metadata.num_rows for name in names)
            for inside, names in files.items()
        }
    counts = dict.fromkeys(files, 0)
    if files:
        rows = layout.read(spark, directory).groupBy(F.col("_metadata.file_path").alias("path")).count()
        for path, found in rows.collect():
            counts[relative_path(path, directory).rpartition("/")[0]] += found
    return counts


def relative_path(url: str, directory: Path) -> str:
    """Where a file is below a directory, by the URL that Spark gives it: the directory may have other names there."""
    return unquote(urlsplit(url).path).rpartition(f"/{directory.parent.name}/{directory.name}/")[2]


def require_format(format: str, path: str) -> str:
    """The format, if tables are published in it."""
    if format not in FORMATS:
        raise PublicationError(path, f"unknown format {format!r}", hint=f"Use one of {', '.join(FORMATS)}.")
    return format


def _holds_times(actual: SparkType) -> bool:
    inner = [getattr(actual, name, None) for name in ("elementType", "keyType", "valueType")]
    inner += [field.dataType for field in getattr(actual, "fields", [])]
    return actual.typeName() in _TIMES or any(_holds_times(part) for part in inner if part is not None)


def _refused(actual: SparkType, format: str) -> str | None:
    """Why a value of the type would not come back, None if it does."""
    nested: Sequence[SparkType] = ()
    match actual:
        case ArrayType():
            nested = (actual.elementType,)
        case MapType():
            if format == "json" and not isinstance(actual.keyType, StringType):
                return f"the keys of a map are text there, and these are {type_text(actual.keyType)}"
            nested = (actual.keyType, actual.valueType)
        case StructType():
            nested = tuple(field.dataType for field in actual.fields)
        case _:
            plain = actual.typeName().split("(")[0]
            held = plain in _FLAT or (plain == "binary" and format != "csv")
            return None if held else f"it has no values of type {type_text(actual)}"
    if format == "csv":
        return f"its values are single ones, and this is {type_text(actual)}"
    return next((reason for inner in nested if (reason := _refused(inner, format)) is not None), None)
