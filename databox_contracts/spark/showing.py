"""The samples of rules that rows broke: those that the counting scan drew where they are enough, else one more pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from databox_contracts.spark.counting import RowCheck
from databox_contracts.spark.running import in_small_parts
from databox_contracts.spark.sampling import MANY, Offending, sample_values


def samples_of(
    view: DataFrame,
    failed: Sequence[RowCheck],
    broken: Mapping[str, int],
    drawn: Mapping[str, tuple[Any, ...]],
    limit: int,
) -> dict[str, tuple[Any, ...]]:
    """Up to `limit` values of each rule that has values to show, by its id.

    `broken` is how many rows break each, `drawn` what was drawn before. What was not drawn from, of a rule that many
    rows break, is now; where that leaves too few, all values are looked at.
    """
    found: dict[str, tuple[Any, ...]] = {}
    undrawn, again = [], []
    for one in failed:
        id_ = one.check.id
        if broken[id_] <= MANY:
            again.append(one)
        elif id_ not in drawn:
            undrawn.append(one)
        elif len(drawn[id_]) == limit:
            found[id_] = drawn[id_]
        else:
            again.append(one)
    for part in in_small_parts(undrawn):
        for one, values in zip(part, _looked_for(view, part, limit, drawn=True), strict=True):
            if len(values) == limit:
                found[one.check.id] = values
            else:
                again.append(one)
    for part in in_small_parts(again):
        found |= {
            one.check.id: values for one, values in zip(part, _looked_for(view, part, limit, drawn=False), strict=True)
        }
    return found


def _looked_for(view: DataFrame, failed: Sequence[RowCheck], limit: int, *, drawn: bool) -> list[tuple[Any, ...]]:
    offending = []
    for one in failed:
        values = one.offending(view, drawn=drawn)
        assert values is not None
        offending.append(Offending(one.violating(view), values))
    return sample_values(view, offending, limit)
