"""The columns of Parquet files as the fields of a contract, from a footer alone: no session, no Java."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyarrow import ArrowException
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from databox_contracts.errors import UnreadableTableError
from databox_contracts.model import Field
from databox_contracts.spark.declaring import fields_of
from databox_contracts.spark.footers import data_files

_WRITTEN_BY_SPARK: Final = b"org.apache.spark.sql.parquet.row.metadata"


def fields_of_parquet(path: Path) -> tuple[Field, ...]:
    """The fields of a Parquet file, or of a directory's first one. Where Spark wrote it, its own schema counts.

    Raises `UnreadableTableError`, also for a table with partitions: the types of what directories are called are only
    known when they are read. Raises `DataboxError` as `fields_of`.
    """
    if not path.exists():
        raise UnreadableTableError(str(path), "there is nothing", hint="Check the path.")
    files = data_files(path)
    if not files:
        raise UnreadableTableError(str(path), "there are no data files", hint="Check the path.")
    if any("=" in part for part in files[0].relative_to(path).parts[:-1]):
        raise UnreadableTableError(
            str(path), "it has partitions, which are in no file", hint="Use databox-contracts generate --data."
        )
    try:
        schema = pq.read_schema(files[0])
    except (ArrowException, OSError) as error:
        raise UnreadableTableError(
            str(path), f"{files[0].name} is no Parquet file", hint="Name a Parquet file or a directory of them."
        ) from error
    written = (schema.metadata or {}).get(_WRITTEN_BY_SPARK)
    if written is not None:
        return fields_of(StructType.fromJson(json.loads(written)))
    try:
        return fields_of(from_arrow_schema(schema))
    except Exception as error:
        raise UnreadableTableError(
            str(path), f"its types cannot be told: {error}", hint="Use databox-contracts generate --data."
        ) from error
