"""Batches of held rows beside a table: which there are, how many rows for which reasons, and what may be shown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from databox_contracts.errors import DataboxError, PublicationError, UnreadableTableError
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.schema_modes import VARIANT
from databox_contracts.spark.home_files import read_json
from databox_contracts.spark.reasons import REASON, RUN_ID, STAMP, TIMESTAMP
from databox_contracts.spark.stores import Place, target_to_release
from databox_contracts.spark.tables import TablePlace
from databox_contracts.spark.transactions import TransactionStore
from databox_contracts.spark.versions import MANIFEST, PUBLISHED, SUPERSEDED, VersionStore

_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_BATCH: Final = "batch="
_AT_ONCE: Final = 4096


@dataclass(frozen=True, slots=True)
class HeldBatch:
    """The rows that one publish, or one batch of a stream, held back.

    `facts` are those of its manifest. `superseded_by` is the version that replaced the table, or all partitions, that
    the rows were held back from; None where nothing did.
    """

    path: Path
    facts: Mapping[str, Any]
    superseded_by: str | None = None

    @property
    def name(self) -> str:
        """What it is called on the command line: the version that it was held back from."""
        return self.path.name.removeprefix(_BATCH)

    @property
    def copied(self) -> bool:
        """Whether the table has these rows too."""
        return bool(self.facts.get("copied_from_table"))

    @property
    def refused(self) -> str | None:
        """Why its rows can never be released into the table, None if they can."""
        if self.copied:
            return "its rows are copies, the table has them already"
        if self.facts.get("version") != self.name:
            return "its rows were not held back from this table"
        return None

    @property
    def rows(self) -> int:
        """How many rows it has, as its files' footers say."""
        return sum(file.metadata.num_rows for file in self._files())

    def reasons(self) -> dict[str, int]:
        """How many rows break each rule, by rule id; only that column is read, and a part of a file at a time."""
        found: Counter[str] = Counter()
        for file in self._files():
            for part in file.iter_batches(columns=[REASON]):
                for reasons in part.column(0).to_pylist():
                    found.update(reasons)
        return dict(sorted(found.items()))

    def schema(self) -> StructType | None:
        """Spark's types of its rows' own columns; None where its files were not written by Spark for this purpose."""
        found: StructType | None = None
        for file in self._files():
            written = (file.schema_arrow.metadata or {}).get(_SPARK_SCHEMA)
            if written is None:
                return None
            every = StructType.fromJson(json.loads(written))
            if tuple(every.names[-len(STAMP) :]) != STAMP:
                return None
            found = StructType(every.fields[: -len(STAMP)])
        return found

    def shown(self, contract: Contract, dataset: Dataset, *, limit: int) -> Iterator[dict[str, Any]]:
        """The first rows, without the columns that must not be shown or have a part that must not.

        Raises `DataboxError` where the batch is another contract's, which would not know what to hide.
        """
        if (self.facts.get("contract"), self.facts.get("dataset")) != (contract.id, dataset.name):
            raise DataboxError(
                f"batch {self.name} was held under {self.facts.get('contract')}, dataset {self.facts.get('dataset')},"
                f" and the contract given is {contract.id}, dataset {dataset.name}.",
                hint="Name the contract that the table is published with.",
            )
        left = limit
        for file in self._files():
            names = [name for name in file.schema_arrow.names if name not in STAMP]
            columns = [*(name for name in names if may_show(name, contract, dataset)), *STAMP]
            rows = (row for part in file.iter_batches(_AT_ONCE, columns=columns) for row in _rows(part))
            for row in islice(rows, left):
                left -= 1
                yield {
                    "batch": self.name,
                    "reasons": row[REASON],
                    "held_at": row[TIMESTAMP],
                    "run_id": row[RUN_ID],
                    "values": {name: row[name] for name in columns if name not in STAMP},
                    "not_shown": [name for name in names if name not in columns],
                }

    def _files(self) -> list[pq.ParquetFile]:
        try:
            return [pq.ParquetFile(file) for file in sorted(self.path.glob("*.parquet"))]
        except (pa.ArrowException, OSError):
            raise UnreadableTableError(
                str(self.path), "a file in it is damaged", hint="Restore it, or move the batch away."
            ) from None


def open_batches(place: Place, spark: SparkSession | None = None) -> tuple[HeldBatch, ...]:
    """The batches beside a table, oldest first, after finishing a replay that was cut off.

    Where only Spark knows what is published, as of a catalog table, that is left to the next publish or replay if no
    session is given. Raises `UnreadableTableError` where there is neither a table nor a batch.
    """
    current, quarantine = _settled(place, spark)
    found = []
    for path in sorted(quarantine.glob(f"{_BATCH}*")):
        # What was held for a version that nobody saw is not there; its rows were never taken.
        if path.is_dir() and ((path / PUBLISHED).exists() or path.name == f"{_BATCH}{current}"):
            newer = read_json(path / SUPERSEDED).get("version") if (path / SUPERSEDED).exists() else None
            found.append(HeldBatch(path, read_json(path / MANIFEST), newer))
    return tuple(found)


def _settled(place: Place, spark: SparkSession | None) -> tuple[str | None, Path]:
    """The version that readers see if its batch may lack a mark of that, and where the batches are."""
    missing = UnreadableTableError(str(place), "nothing was published there yet", hint="Check root and name.")
    if isinstance(place, TablePlace):
        place.ensure_inside_root()
        store = VersionStore(place)
        store.recover_adoption()
        store.recover_replay()
        if not place.link.exists() and not place.quarantine.is_dir():
            raise missing
        return place.current_version(), place.quarantine
    target = target_to_release(place, spark)
    if spark is not None or not target.asks_spark:
        TransactionStore(target).recover()
        if not target.quarantine.is_dir() and target.base() is None:
            raise missing
    elif not target.home.is_dir():
        raise missing
    return None, target.quarantine


def named_batches(place: Place, found: Sequence[HeldBatch], names: Sequence[str]) -> tuple[HeldBatch, ...]:
    """Those of these names, with or without `batch=` before them. Raises `PublicationError` for one there is not."""
    known = {batch.name: batch for batch in found}
    wanted = dict.fromkeys(name.rstrip("/").removeprefix(_BATCH) for name in names)
    for name in wanted:
        if name not in known:
            shown = ", ".join(known) or "none"
            raise PublicationError(str(place), f"no rows are held in a batch {name!r}", hint=f"There are: {shown}.")
    return tuple(known[name] for name in known if name in wanted)


def may_show(name: str, contract: Contract, dataset: Dataset) -> bool:
    """Whether the values of a column may be shown whole; what is not declared is hidden if all of it is personal."""
    pii_class = contract.governance.pii_class
    # A value that did not fit a field is as personal as those that did.
    for wanted in (name, name.split(VARIANT)[0]):
        declared = [field for field in dataset.fields if field.column.casefold() == wanted.casefold()]
        if declared:
            return not any(_conceals(field, pii_class) for field in declared)
    return pii_class is None


def _conceals(field: Field, pii_class: str | None) -> bool:
    return field.conceals(pii_class) or any(_conceals(part, pii_class) for part in field.parts)


def _rows(part: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        return [dict(row) for row in part.to_pylist()]
    except (ValueError, OverflowError, pa.ArrowException):
        # A time beyond what Python's own dates reach.
        texts = [column.cast(pa.string()) if pa.types.is_temporal(column.type) else column for column in part.columns]
        return [dict(row) for row in pa.RecordBatch.from_arrays(texts, names=part.schema.names).to_pylist()]
