"""How long `verify` takes for clean rows and for 0.1 % bad ones, against the plain hand-written code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from common import (
    NOW,
    Bar,
    alternate,
    arguments,
    describe,
    orders,
    orders_contract,
    plain_verification,
    report,
    session,
    written,
)

from databox_contracts.spark import verify

PLAIN, OURS = "plain hand-written", "verify, five samples for each failed rule"


def main() -> None:
    """Prints a table for the clean rows and one for the bad ones."""
    args = arguments(__doc__, rows=10_000_000, rounds=5)
    contract = orders_contract()
    with session() as spark:
        describe(rows=args.rows, cores=spark.sparkContext.defaultParallelism)
        for name, bad, limit in (("clean", False, 0.50), ("0.1 % bad rows", True, 0.60)):
            with written(orders(spark, args.rows, bad=bad)) as table:
                df = spark.read.parquet(table)
                verdict = verify(df, contract, as_of=NOW)
                failed = [result for result in verdict.results if not result.passed]
                assert bool(failed) is bad, failed
                print(f"-- {name}: {len(verdict.results)} results, {len(failed)} failed")
                work: dict[str, Callable[[], object]] = {
                    PLAIN: partial(plain_verification, df),
                    OURS: partial(verify, df, contract, as_of=NOW),
                }
                report(alternate(work, args.rounds), [Bar(OURS, PLAIN, limit)])


if __name__ == "__main__":
    main()
