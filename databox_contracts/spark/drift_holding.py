"""Rows of a sample that drifted, copied to a batch of held rows; the table keeps them."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts.plan import Plan
from databox_contracts.spark.counting import positional
from databox_contracts.spark.reasons import CONTRACT_ID, CONTRACT_VERSION, REASON, RUN_ID, TIMESTAMP
from databox_contracts.spark.versions import MANIFEST, PUBLISHED
from databox_contracts.spark.writing import write_parquet


@dataclass(frozen=True, slots=True)
class Batch:
    """Where the copies of a sampling go: the same sampling, by its baseline and its time, has one batch."""

    directory: Path
    plan: Plan
    baseline: str
    at: datetime

    @property
    def run_id(self) -> str:
        """What marks its rows."""
        return f"drift-{self.baseline}-{self.at.astimezone(UTC):%Y%m%dT%H%M%S%fZ}"

    @property
    def path(self) -> Path:
        """Its directory."""
        return self.directory / f"batch={self.run_id}"


def copy_drifted(view: DataFrame, names: Sequence[str], reasons: Mapping[str, Column], batch: Batch) -> int:
    """Copy the rows of a view for which any reason is true, with their reasons, and say how many there are.

    A batch that is there already stays as it is.
    """
    if batch.path.is_dir():
        return _rows_in(batch.path)
    if not reasons:
        return 0
    named = F.array(*(F.when(broken, F.lit(reason)) for reason, broken in reasons.items()))
    micros = int(batch.at.astimezone(UTC).timestamp() * 1_000_000)
    own = [F.col(positional(at)) for at in range(len(names))]
    held = view.select(*own, F.filter(named, lambda reason: reason.isNotNull()).alias("reasons"))
    held = held.where(F.size("reasons") > 0).toDF(*names, REASON)
    staged = batch.directory / f".drift-{secrets.token_hex(8)}"
    try:
        write_parquet(
            held.select(
                "*",
                F.timestamp_micros(F.lit(micros)).alias(TIMESTAMP),
                F.lit(batch.plan.contract.id).alias(CONTRACT_ID),
                F.lit(batch.plan.contract.version).alias(CONTRACT_VERSION),
                F.lit(batch.run_id).alias(RUN_ID),
            ),
            staged,
        )
        rows = _rows_in(staged)
        if not rows:
            return 0
        facts = {
            "contract": batch.plan.contract.id,
            "contract_version": batch.plan.contract.version,
            "dataset": batch.plan.dataset.name,
            "run_id": batch.run_id,
            "rows_quarantined": rows,
            # The table has these rows too: to publish them again would double them.
            "copied_from_table": True,
            "published_at": batch.at.isoformat(),
        }
        (staged / MANIFEST).write_text(json.dumps(facts, indent=1), encoding="utf-8")
        (staged / PUBLISHED).touch()
        try:
            os.rename(staged, batch.path)
        except OSError:
            # The same sampling in another process was first.
            if not batch.path.is_dir():
                raise
        return rows
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _rows_in(path: Path) -> int:
    return sum(pq.ParquetFile(file).metadata.num_rows for file in sorted(path.glob("*.parquet")))
