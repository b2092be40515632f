"""Data files of Iceberg tables: their partitions as text and as Iceberg has them, and what is noted of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq
from pyspark.sql.types import BooleanType, DataType, DateType, DecimalType, StringType

from databox_contracts.spark.listed import ListedFile
from databox_contracts.spark.partitioning import Partition, Partitioning

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

_EPOCH: Final = date(1970, 1, 1)
_FIRST_FIELD: Final = 1000
"""Iceberg numbers the fields of partitions from there."""


def partition_spec(schema: Schema, names: Iterable[str]) -> PartitionSpec:
    """Partitions by the columns' own values, in that order."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform

    fields = [
        PartitionField(schema.find_field(name).field_id, _FIRST_FIELD + at, IdentityTransform(), name)
        for at, name in enumerate(names)
    ]
    return PartitionSpec(*fields)


def partition_columns(table: Table) -> tuple[str, ...]:
    """The columns that the table is partitioned by. Raises `ValueError` with a field that is not a column's own value.

    pyiceberg can tell no bucket and no truncated text from a file's name; those are Spark's to write.
    """
    from pyiceberg.transforms import IdentityTransform

    found = []
    for field in table.spec().fields:
        if not isinstance(field.transform, IdentityTransform):
            raise ValueError(f"{field.transform}({table.schema().find_column_name(field.source_id)})")
        found.append(str(table.schema().find_column_name(field.source_id)))
    return tuple(found)


def listed_files(tasks: Iterable[Any], kinds: Iterable[DataType]) -> tuple[ListedFile, ...]:
    """The files that a scan plans to read, of a table partitioned by columns of those types."""
    known = tuple(kinds)
    return tuple(
        ListedFile(local(task.file.file_path), partition_texts(task.file, known), task.file.record_count)
        for task in tasks
    )


def partition_texts(file: DataFile, kinds: Iterable[DataType]) -> Partition:
    """A file's partition, its values as text as `Partitioning` has them."""
    record, known = file.partition, tuple(kinds)
    return tuple(
        None if value is None else _text(value, kind)
        for value, kind in zip((record[at] for at in range(len(known))), known, strict=True)
    )


def local(uri: str) -> str:
    """The path of a file on this machine."""
    # Iceberg takes locations as they are spelled: a percent sign is one.
    return re.sub("^file:/+", "/", uri)


def _text(value: Any, kind: DataType) -> str:
    if isinstance(kind, DateType):
        return (_EPOCH + timedelta(days=value) if isinstance(value, int) else value).isoformat()
    return str(value).lower() if isinstance(kind, BooleanType) else str(value)


def _value(text: str | None, kind: DataType) -> Any:
    if text is None or isinstance(kind, StringType):
        return text
    if isinstance(kind, DateType):
        return (date.fromisoformat(text) - _EPOCH).days
    if isinstance(kind, DecimalType):
        return Decimal(text)
    return text == "true" if isinstance(kind, BooleanType) else int(text)


def data_files(metadata: TableMetadata, files: Mapping[Path, Partition], partitioning: Partitioning) -> list[DataFile]:
    """What the table is to note of each file.

    The files need not have the partition columns: Iceberg's readers take them from the table, where it has them as they
    are.
    """
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    schema = metadata.schema()
    plan, mapping = compute_statistics_plan(schema, metadata.properties), parquet_path_to_id_mapping(schema)
    kinds = [column.dataType for column in partitioning.columns]
    found = []
    for file, partition in files.items():
        statistics = data_file_statistics_from_parquet_metadata(pq.read_metadata(file), plan, mapping)
        values = [_value(text, kind) for text, kind in zip(partition, kinds, strict=True)]
        found.append(
            DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"file://{file}",
                file_format=FileFormat.PARQUET,
                partition=Record(*values),
                file_size_in_bytes=file.stat().st_size,
                sort_order_id=None,
                spec_id=metadata.default_spec_id,
                equality_ids=None,
                key_metadata=None,
                **statistics.to_serialized_dict(),
            )
        )
    return found
