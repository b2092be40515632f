"""Uniqueness in a stream: the keys of every batch are kept beside the checkpoint until they are too old."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession, functions as F
from pyspark.sql.types import StructType

from databox_contracts.plan import Check
from databox_contracts.results import CheckResult
from databox_contracts.spark import outcomes
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.keys import comparable
from databox_contracts.spark.sampling import as_json
from databox_contracts.spark.timeliness import MICROS
from databox_contracts.spark.writing import write_parquet

MERGE_AFTER: Final = 16
"""So many batches' keys are read one by one before they are written together."""

_TIME: Final = "at"
_ROWS: Final = "rows"
_SEEN: Final = "seen"


@dataclass(frozen=True, slots=True)
class Clock:
    """A row's time in microseconds, and how far the watermark is behind the newest one of the batches before."""

    time: Column
    delay: timedelta
    newest_before: int | None

    @property
    def watermark(self) -> int | None:
        """Rows before it are late; None where no row has been seen."""
        return self.newest_before - self._delay if self.newest_before is not None else None

    @property
    def forgotten(self) -> int | None:
        """Keys before it are forgotten: no row that is not late can be within the delay of them."""
        watermark = self.watermark
        return watermark - self._delay if watermark is not None else None

    @property
    def _delay(self) -> int:
        return round(self.delay.total_seconds() * MICROS)


@dataclass(frozen=True, slots=True)
class Collisions:
    """What one batch has to do with a key: its result, and the keys that no row of the batch may have, if any."""

    result: CheckResult
    path: Path | None


@dataclass(frozen=True, slots=True)
class SeenKeys:
    """The keys of one check that a stream has seen: of all its rows, those that were held too.

    A directory `b…` holds the keys of one batch, `upto…` those of all batches up to one. A batch looks only at the
    batches before it, so what a killed attempt of its own left here does not matter.
    """

    check: Check
    home: Path

    def judge(self, verification: Verification, rows: int, batch: int, clock: Clock | None, work: Path) -> _Judging:
        """Write the batch's keys, each with whether it was seen before, to the directory `work`.

        Raises `NotEvaluableError` for a key that cannot be compared.
        """
        view = verification.view
        parts = comparable(view, verification.key_columns(self.check))
        names = [f"k{at}" for at in range(len(parts))]
        time = clock.time if clock is not None else F.lit(None).cast("bigint")
        chosen = view.select(*(part.alias(name) for part, name in zip(parts, names, strict=True)), time.alias(_TIME))
        whole = chosen.where(reduce(and_, (F.col(name).isNotNull() for name in names)))
        keys = whole.groupBy(*names).agg(F.count(F.lit(1)).alias(_ROWS), F.max(_TIME).alias(_TIME))
        stored = StructType([field for field in keys.schema.fields if field.name != _ROWS])
        seen = self._before(view.sparkSession, batch, clock, stored, work)
        marked = (
            keys.join(seen.select(*names).distinct().withColumn(_SEEN, F.lit(True)), names, "left")
            if seen is not None
            else keys.withColumn(_SEEN, F.lit(None).cast("boolean"))
        )
        write_parquet(marked, work / "keys")
        found = view.sparkSession.read.schema(marked.schema).parquet(str(work / "keys"))
        return _Judging(self.check, found, names, rows, work)

    def keep(self, batch: int, work: Path) -> None:
        """Remember the keys of a batch, in place of those that an earlier attempt of it left."""
        self.home.mkdir(parents=True, exist_ok=True)
        place = self.home / f"b{batch:012}"
        shutil.rmtree(place, ignore_errors=True)
        os.rename(work / "keys", place)

    def _before(
        self, spark: SparkSession, batch: int, clock: Clock | None, stored: StructType, work: Path
    ) -> DataFrame | None:
        places = self._places(batch)
        if not places:
            return None
        rows = spark.read.schema(stored).parquet(*map(str, places))
        forgotten = clock.forgotten if clock is not None else None
        if forgotten is not None:
            rows = rows.where(F.col(_TIME).isNull() | (F.col(_TIME) >= F.lit(forgotten)))
        if len(places) <= MERGE_AFTER:
            return rows
        names = [name for name in stored.names if name != _TIME]
        write_parquet(rows.groupBy(*names).agg(F.max(_TIME).alias(_TIME)), work / "merged")
        merged = self.home / f"upto{batch - 1:012}"
        os.rename(work / "merged", merged)
        for place in self.home.iterdir():
            if place != merged and int(place.name.lstrip("bupto")) < batch:
                shutil.rmtree(place, ignore_errors=True)
        return spark.read.schema(stored).parquet(str(merged))

    def _places(self, batch: int) -> list[Path]:
        """Where the keys of all batches before this one are."""
        merged = {int(path.name.removeprefix("upto")): path for path in self.home.glob("upto*")}
        upto = max((at for at in merged if at < batch), default=-1)
        single = {int(path.name.removeprefix("b")): path for path in self.home.glob("b*")}
        places = [single[at] for at in sorted(single) if upto < at < batch]
        return [merged[upto], *places] if upto >= 0 else places


@dataclass(frozen=True, slots=True)
class _Judging:
    check: Check
    keys: DataFrame
    names: list[str]
    rows: int
    work: Path

    def collisions(self, samples: int) -> Collisions:
        """The result in rows too many: all rows of a key that was seen before, those beyond the first of another."""
        repeated = self.keys.where(f"{_ROWS} > 1 OR {_SEEN}")
        surplus = F.sum(F.col(_ROWS) - F.when(F.col(_SEEN), 0).otherwise(1))
        count, too_many = repeated.agg(F.count(F.lit(1)), surplus).collect()[0]
        if not count:
            return Collisions(outcomes.repeated(self.check, 0, 0, (), self.rows), None)
        path = self.work / "repeated"
        write_parquet(repeated.select(*self.names), path)
        shown = self._samples(repeated, 0 if self.check.masked else samples)
        return Collisions(outcomes.repeated(self.check, int(too_many), int(count), shown, self.rows), path)

    def _samples(self, repeated: DataFrame, samples: int) -> tuple[tuple[Any, ...], ...]:
        if samples <= 0:
            return ()
        first = repeated.orderBy(*self.names).limit(samples)
        found = first.select(*(as_json(F.col(name)).alias(name) for name in self.names)).collect()
        return tuple(tuple(json.loads(part)["v"] for part in row) for row in found)
