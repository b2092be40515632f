"""Counts and samples from one pass: each row says which rules it breaks and by which values, and that is counted.

What is said has the number of a rule and a value; a null value stands for the row. Each row says one thing besides,
with a number of its own, by which the rows are counted and aggregated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, functions as F

from databox_contracts.spark.counting import Measured, RowCheck
from databox_contracts.spark.sampling import in_order, lowest, of_rule

MOST: Final = 20
"""The code that Spark generates for more rules in one projection is too long for Java to compile."""
_ROW: Final = -1


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of rows, how many break each rule, samples of the values drawn, and the aggregates, all in order."""

    rows: int
    broken: Sequence[int]
    samples: Sequence[tuple[Any, ...]]
    aggregates: Sequence[Any]


def can_tally(checks: Sequence[RowCheck | Measured]) -> bool:
    """Whether one pass can take counts and samples, and has samples to take."""
    of_rows = [one for one in checks if not isinstance(one, Measured)]
    light = all(one.is_light for one in checks if isinstance(one, Measured))
    return light and len(of_rows) <= MOST and any(not one.check.masked for one in of_rows)


def tally(view: DataFrame, checks: Sequence[RowCheck], aggregates: Sequence[Column], limit: int) -> Tally | None:
    """Count for the checks, with up to `limit` samples each, and aggregate; None where there is no row. One job."""
    own = F.array(of_rule(_ROW)(_no_text()))
    broken = reduce(or_, (one.violating(view) for one in checks))
    parts = F.array(*(_said(view, at, one) for at, one in enumerate(checks)))
    # Of a lambda Spark generates no code, so that what few rows have to say does not slow down all the others.
    everything = F.concat(own, F.flatten(F.filter(parts, lambda one: one.isNotNull())))
    said = view.select("*", F.inline(F.when(broken, everything).otherwise(own)).alias("rule", "value"))
    measures = [F.count(F.lit(1)).alias("times"), *(column.alias(f"m{at}") for at, column in enumerate(aggregates))]
    found: dict[tuple[int, str | None], Any] = {}
    for row in lowest(said.groupBy("rule", "value").agg(*measures), limit).collect():
        found[row["rule"], row["value"]] = row
    rows = found.get((_ROW, None))
    if rows is None:
        return None
    times = {at: int(row["times"]) for (at, value), row in found.items() if value is None}
    texts: dict[int, list[str]] = {}
    for at, value in found:
        if value is not None:
            texts.setdefault(at, []).append(value)
    return Tally(
        rows=times[_ROW],
        broken=[times.get(at, 0) for at in range(len(checks))],
        samples=[in_order(texts.get(at, ()), limit) for at in range(len(checks))],
        aggregates=[rows[f"m{at}"] for at in range(len(aggregates))],
    )


def _said(view: DataFrame, at: int, check: RowCheck) -> Column:
    """What a row says of one check: null where it keeps it."""
    itself = F.array(of_rule(at)(_no_text()))
    values = None if check.check.masked else check.offending(view, drawn=True)
    if values is not None:
        itself = F.concat(itself, F.transform(values, of_rule(at)))
    return F.when(check.violating(view), itself)


def _no_text() -> Column:
    return F.lit(None).cast("string")
