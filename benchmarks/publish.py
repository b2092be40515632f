"""Publish and quarantine against a plain write of the same rows.

`publish` writes, audits what was written and swaps it in. The plain write is Spark's own, of the same source.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from common import NOW, Bar, alternate, arguments, describe, orders, orders_contract, report, session, written
from pyspark.sql import DataFrame

from databox_contracts import rules
from databox_contracts.model import Contract, Field
from databox_contracts.spark import TablePlace, publish

VALUES = (rules.Enum, rules.Format)
PLAIN = "plain write"
BARS = (
    Bar("publish, no rule needs the values", PLAIN, 1.10),
    Bar("publish, benchmark contract without its key", PLAIN, 1.35),
    Bar("quarantine, 0.1 % of the rows", "plain write of those rows", 1.25),
)


def without_values(contract: Contract) -> Contract:
    """The contract's promises about nulls, bounds, counts, types and freshness alone."""
    [dataset] = contract.datasets

    def about_no_value(field: Field) -> Field:
        return field.model_copy(update={"rules": tuple(rule for rule in field.rules if not isinstance(rule, VALUES))})

    fields = tuple(map(about_no_value, dataset.fields))
    return contract.model_copy(update={"datasets": (dataset.model_copy(update={"fields": fields}),)})


def main() -> None:
    """All of them take turns over the same two tables."""
    args = arguments(__doc__, rows=10_000_000)
    with session() as spark, tempfile.TemporaryDirectory(prefix="benchmark-") as home:
        numbers = count()

        def places() -> Iterator[Path]:
            while True:
                yield Path(home, f"{next(numbers)}")

        fresh = places()

        def write(df: DataFrame) -> None:
            directory = next(fresh)
            df.write.parquet(str(directory))
            shutil.rmtree(directory)

        def publication(df: DataFrame, contract: Contract, **options: Any) -> Callable[[], None]:
            def run() -> None:
                root = next(fresh)
                found = publish(df, contract, place=TablePlace(root, "orders"), as_of=NOW, **options)
                assert found.published
                assert bool(found.rows_quarantined) is ("on_violation" in options)
                shutil.rmtree(root)

            return run

        keyed, keyless = orders_contract(), orders_contract(unique=False)
        with written(orders(spark, args.rows)) as good, written(orders(spark, args.rows, bad=True)) as bad:
            clean, broken = spark.read.parquet(good), spark.read.parquet(bad)
            describe(rows=args.rows, rounds=args.rounds)
            work = {
                PLAIN: lambda: write(clean),
                BARS[0].what: publication(clean, without_values(keyless)),
                BARS[1].what: publication(clean, keyless),
                "publish, benchmark contract with its key": publication(clean, keyed),
                BARS[2].against: lambda: write(broken),
                BARS[2].what: publication(broken, keyless, on_violation="quarantine"),
            }
            taken = alternate(work, args.rounds)
        keyed_bar = Bar("publish, benchmark contract with its key", PLAIN, float("inf"))
        report(taken, [*BARS[:2], keyed_bar, BARS[2]])


if __name__ == "__main__":
    main()
