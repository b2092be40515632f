"""How long `verify` takes for 300 columns and 600 rules, against plain hand-written queries of 25 columns each."""

from __future__ import annotations

import time
from functools import partial

from common import Bar, alternate, arguments, describe, report, session, written
from pyspark.sql import DataFrame, SparkSession, functions as F

from databox_contracts import rules
from databox_contracts.model import Contract
from databox_contracts.spark import verify
from databox_contracts.testing import build_contract, build_field

COLUMNS = 300
BY_HAND = 25
TYPES = ("bigint", "double", "int")
PLAIN, OURS = "plain hand-written, 25 columns a query", "verify"


def wide_table(spark: SparkSession, rows: int) -> DataFrame:
    """Numbers of three types, none of them null or negative."""
    numbers = (F.pmod(F.xxhash64("id", F.lit(at)), F.lit(1_000_000)).alias(f"v{at}") for at in range(COLUMNS))
    return spark.range(0, rows, 1, 8).select(
        *(number.cast(TYPES[at % 3]).alias(f"v{at}") for at, number in enumerate(numbers))
    )


def wide_contract(*more: rules.Rule) -> Contract:
    """Two rules for each column, and those given."""
    fields = (
        build_field(f"v{at}", TYPES[at % 3], rules.Required(), rules.Minimum(limit=0), *more) for at in range(COLUMNS)
    )
    return build_contract(*fields)


def plain_verification(df: DataFrame) -> list[int]:
    """What one would write by hand, in parts that the compiler of Spark's expressions still takes well."""
    found: list[int] = []
    for start in range(0, COLUMNS, BY_HAND):
        names = [f"v{at}" for at in range(start, start + BY_HAND)]
        measures = [F.count_if(F.col(name).isNull()) for name in names]
        measures += [F.count_if(F.col(name) < 0) for name in names]
        found.extend(df.agg(*(measure.alias(f"m{at}") for at, measure in enumerate(measures))).collect()[0])
    return found


def main() -> None:
    """Prints the ratio for 600 rules, and the time of 2,100."""
    args = arguments(__doc__, rows=1_000_000)
    with session() as spark:
        describe(rows=args.rows, columns=COLUMNS, cores=spark.sparkContext.defaultParallelism)
        with written(wide_table(spark, args.rows)) as table:
            df = spark.read.parquet(table)
            contract = wide_contract()
            assert verify(df, contract).passed
            assert not any(plain_verification(df))
            work = {PLAIN: partial(plain_verification, df), OURS: partial(verify, df, contract)}
            report(alternate(work, args.rounds), [Bar(OURS, PLAIN, 0.60)])
            many = wide_contract(
                rules.Maximum(limit=1_000_000),
                rules.ExclusiveMinimum(limit=-1),
                rules.ExclusiveMaximum(limit=1_000_001),
                rules.MultipleOf(divisor=1),
                rules.Enum(values=tuple(range(5))),
            )
            began = time.perf_counter()
            verdict = verify(df, many)
            assert len(verdict.violations) == COLUMNS
            print(f"{7 * COLUMNS} rules, 300 of them violated, with samples: {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
