"""What the benchmarks share: the table and its contract, the hand-written limit, a session, and how time is taken.

The table is a function of its number of rows alone. Ratios are between medians of runs that alternate in one process,
so that a slow minute hits both.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.sql import Column, DataFrame, SparkSession, functions as F

import databox_contracts as dbc
from databox_contracts.spark.session import local_session

CONTRACT: Final = Path(__file__).with_name("orders.yaml")
NOW: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""What the promise of freshness is held against."""

FILES: Final = 8
STATUSES: Final = ("new", "paid", "packed", "sent", "delivered", "returned")
CHANNELS: Final = ("web", "app", "store", "phone", "partner", "other")


def orders_contract(*, unique: bool = True) -> dbc.Contract:
    """The benchmark contract; without its unique key for what a write can audit without a second pass."""
    text = CONTRACT.read_text()
    return dbc.load_contract(text if unique else text.replace(" unique: true,", ""))


def orders(spark: SparkSession, rows: int, *, bad: bool = False) -> DataFrame:
    """The benchmark table. With `bad`, one row in a thousand breaks one rule each, by turns all nine kinds."""
    plain = {
        "order_id": _uuid(F.col("id")),
        "customer": F.pmod(F.xxhash64("id"), F.lit(1_000_000)),
        "status": _one_of(STATUSES, "id", 1),
        "channel": _one_of(CHANNELS, "id", 2),
        "quantity": (_number("id", 3, 1000) + 1).cast("int"),
        "price": ((_number("id", 4, 9_999_999) + 1) / 100).cast("decimal(12,2)"),
        "score": F.when(_number("id", 5, 100) > 0, _number("id", 6, 1_000_000) / 1e6),
        "placed_at": F.timestamp_seconds(F.lit(int(NOW.timestamp()) - 60) - _number("id", 7, 365 * 86_400)),
    }
    # The first row is the newest whatever the hashes are.
    plain["placed_at"] = F.when(F.col("id") == 0, F.lit(NOW).cast("timestamp")).otherwise(plain["placed_at"])
    broken = {
        "order_id": [(0, _uuid(F.col("id") - 1)), (1, F.concat(plain["order_id"], F.lit("\n")))],
        "customer": [(2, F.lit(None))],
        "status": [(3, F.lit("lost"))],
        "channel": [(4, F.concat(F.lit("fax "), F.col("id")))],
        "quantity": [(5, F.lit(0)), (6, (F.col("id") + 1001).cast("int"))],
        "price": [(7, F.lit(None)), (8, F.lit(-1))],
    }
    table = spark.range(0, rows, 1, FILES)
    if bad:
        for name, kinds in broken.items():
            for kind, value in kinds:
                here = (F.pmod("id", F.lit(1000)) == 7) & (F.pmod(F.floor(F.col("id") / 1000), F.lit(9)) == kind)
                plain[name] = F.when(here, value).otherwise(plain[name])
    types = {"quantity": "int", "price": "decimal(12,2)"}
    columns = [value.cast(types[name]) if name in types else value for name, value in plain.items()]
    return table.select(*(column.alias(name) for name, column in zip(plain, columns, strict=True)))


def _number(column: str, salt: int, below: int) -> Column:
    return F.pmod(F.xxhash64(F.col(column), F.lit(salt)), F.lit(below))


def _one_of(values: Sequence[str], column: str, salt: int) -> Column:
    return F.element_at(F.array(*map(F.lit, values)), (_number(column, salt, len(values)) + 1).cast("int"))


def _uuid(number: Column) -> Column:
    digest = F.md5(number.cast("string"))
    cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    return F.concat_ws("-", *(F.substring(digest, start, length) for start, length in cuts))


# --- the hand-written limit -------------------------------------------------------------------------------------------

_UUID: Final = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"


def plain_rules() -> list[Column]:
    """The row and aggregate rules of the benchmark contract, as one would write them by hand."""
    return [
        F.count("*"),
        *(
            F.count_if(F.col(name).isNull())
            for name in ("order_id", "customer", "status", "channel", "price", "placed_at", "score")
        ),
        F.count_if(~F.col("order_id").rlike(_UUID)),
        F.count_if(~F.col("status").isin(*STATUSES)),
        F.count_if(~F.col("channel").isin(*CHANNELS)),
        F.count_if(F.col("quantity") < 1),
        F.count_if(F.col("quantity") > 1000),
        F.count_if((F.col("price") < 0.01) | (F.col("price") > 99999.99)),
        F.max("placed_at"),
    ]


def plain_verification(df: DataFrame) -> tuple[list[Any], int]:
    """What one would write by hand: one aggregate for all row rules, and a group per hash of the key."""
    row = df.agg(*(column.alias(f"m{at}") for at, column in enumerate(plain_rules()))).collect()[0]
    hashes = df.select(F.xxhash64("order_id").alias("h")).groupBy("h").count().where("count > 1").count()
    return list(row), hashes


# --- sessions and time ------------------------------------------------------------------------------------------------


def arguments(description: str | None, *, rows: int, rounds: int = 3) -> argparse.Namespace:
    """`--rows` and `--rounds` of a benchmark."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser.parse_args()


@contextmanager
def session(**conf: str) -> Iterator[SparkSession]:
    """A classic session on all cores, stopped at the end."""
    options = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "8", "spark.log.level": "ERROR", **conf}
    spark = local_session("benchmark", conf=options)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def written(df: DataFrame) -> Iterator[str]:
    """The DataFrame as Parquet files in a temporary directory, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as place:
        path = str(Path(place, "table"))
        df.write.parquet(path)
        yield path


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure to hold: how long `what` may take at most, as a multiple of `against`."""

    what: str
    against: str
    at_most: float


def alternate(work: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each piece of work: one round to warm up, then `rounds` in which they take turns."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(rounds + 1):
        for name, run in work.items():
            began = time.perf_counter()
            run()
            if turn:
                taken[name].append(time.perf_counter() - began)
    return taken


def report(taken: Mapping[str, Sequence[float]], bars: Sequence[Bar]) -> None:
    """Print medians, ratios and bars as a table."""
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    width = max(map(len, taken))
    for name, seconds in taken.items():
        print(f"{name:<{width}}  {medians[name]:7.2f} s  of {', '.join(f'{one:.2f}' for one in seconds)}")
    for bar in bars:
        ratio = medians[bar.what] / medians[bar.against]
        outcome = "holds" if ratio <= bar.at_most else "MISSED"
        print(f"{bar.what} / {bar.against}: {ratio:.2f} (bar {bar.at_most:.2f}, {outcome})")
    print(flush=True)


def describe(**facts: object) -> None:
    """Print what was measured on what."""
    stack = {"Spark": pyspark.__version__, "Python": platform.python_version(), "machine": platform.machine()}
    print(", ".join(f"{name} {value}" for name, value in {**stack, **facts}.items()), flush=True)
