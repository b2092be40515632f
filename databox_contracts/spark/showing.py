"""The samples of rules that rows broke: one more pass over their columns, and none where nothing is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from databox_contracts.spark.counting import RowCheck
from databox_contracts.spark.running import in_small_parts
from databox_contracts.spark.sampling import Offending, drawn_of, sample_values


def samples_of(
    view: DataFrame, failed: Sequence[RowCheck], broken: Mapping[str, int], limit: int
) -> dict[str, tuple[Any, ...]]:
    """Up to `limit` values of each rule that has values to show, by its id; `broken` is how many rows break each.

    Of what many rows break, values are drawn; where that leaves too few, all values are looked at.
    """
    drawn = {one.check.id: drawn_of(broken[one.check.id], costly=one.is_costly) for one in failed}
    found = _looked_for(view, failed, drawn, limit)
    again = [one for one in failed if drawn[one.check.id] > 1 and len(found[one.check.id]) < limit]
    return found | _looked_for(view, again, {}, limit)


def _looked_for(
    view: DataFrame, failed: Sequence[RowCheck], drawn: Mapping[str, int], limit: int
) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for part in in_small_parts(failed):
        offending = []
        for one in part:
            one_in = drawn.get(one.check.id, 1)
            values = one.offending(view, one_in=one_in)
            assert values is not None
            offending.append(Offending(one.violating(view, one_in=one_in), values))
        found |= zip((one.check.id for one in part), sample_values(view, offending, limit), strict=True)
    return found
