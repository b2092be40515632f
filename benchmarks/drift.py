"""How much longer a drift sample of a ten times larger table takes.

Two tables of the same eight columns, one file of 250,000 rows in row groups of 50,000 for each day: 4 days and 40. Each
is sampled with the same baseline, 100,000 rows at most, turn by turn; the figure is the ratio of the medians of five
rounds, after one that is not counted.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from databox_contracts import rules
from databox_contracts.spark import sample_drift
from databox_contracts.spark.session import local_session
from databox_contracts.testing import MemoryBaselineStore, build_contract, build_field

ROUNDS = 5
ROWS = 250_000
DAYS = (4, 40)
STATES = ("open", "paid", "sent", "done", "void", "held")
START = datetime(2026, 1, 1, tzinfo=UTC)

CONTRACT = build_contract(
    build_field("id", "bigint", rules.Required()),
    build_field("at", "timestamp", rules.Required()),
    build_field("state", "string", rules.Required(), rules.Enum(values=STATES)),
    build_field("channel", "string", rules.Required(), rules.Enum(values=STATES)),
    build_field("amount", "double", rules.Required(), rules.Minimum(limit=0)),
    build_field("quantity", "int", rules.Required(), rules.Minimum(limit=1), rules.Maximum(limit=100)),
    build_field("customer", "string", pii=True),
    build_field("note", "string"),
    build_field("day", "date"),
    rules=(rules.PrimaryKey(fields=("id",)),),
    dataset="orders",
)


def main() -> None:
    """Prints the times and their ratio."""
    spark = local_session("drift", master="local[2]")
    with tempfile.TemporaryDirectory() as root:
        tables = [Path(root, f"days_{days}") for days in DAYS]
        _write(tables)
        store = MemoryBaselineStore()
        sample_drift(spark, CONTRACT, store=store, path=tables[0])
        taken: dict[Path, list[float]] = {table: [] for table in tables}
        for round_ in range(ROUNDS + 1):
            for table in tables:
                start = time.perf_counter()
                report = sample_drift(spark, CONTRACT, store=store, path=table)
                if round_:
                    taken[table].append(time.perf_counter() - start)
                assert report.sampled.rows == 100_000, report.sampled
        small, large = (statistics.median(taken[table]) for table in tables)
        rows = [f"{days * ROWS:,} rows {median:.2f} s" for days, median in zip(DAYS, (small, large), strict=True)]
        print(f"drift sample of 100,000 rows: {', '.join(rows)}, ratio {large / small:.2f}")
    spark.stop()


def _write(tables: list[Path]) -> None:
    """One day's rows, written once; the days differ in their directory alone."""
    chance = random.Random(5)
    columns = {
        "id": pa.array(range(ROWS), pa.int64()),
        "at": pa.array([START + timedelta(milliseconds=300 * at) for at in range(ROWS)], pa.timestamp("us", "UTC")),
        "state": [chance.choice(STATES) for _ in range(ROWS)],
        "channel": [chance.choice(STATES) for _ in range(ROWS)],
        "amount": [chance.expovariate(0.02) for _ in range(ROWS)],
        "quantity": pa.array([chance.randint(1, 100) for _ in range(ROWS)], pa.int32()),
        "customer": [f"c{chance.randrange(50_000)}" for _ in range(ROWS)],
        "note": [None if chance.random() < 0.9 else "gift" for _ in range(ROWS)],
    }
    one = tables[0].with_name("day.parquet")
    pq.write_table(pa.table(columns), one, row_group_size=50_000)
    for table, days in zip(tables, DAYS, strict=True):
        for day in range(days):
            place = table / f"day={START + timedelta(days=day):%Y-%m-%d}"
            place.mkdir(parents=True)
            shutil.copyfile(one, place / "part-0.parquet")


if __name__ == "__main__":
    main()
