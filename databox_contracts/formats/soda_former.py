"""The checks of Soda's first generation, in the words of the second."""

from __future__ import annotations

from typing import Final

from databox_contracts.rules import Unit

STATISTICS: Final = ("avg", "sum", "min", "max", "stddev")
"""The statistics that both generations have."""

FORMER_CHECKS: Final[dict[str, tuple[str, Unit | None, str | None]]] = {
    "rows_exist": ("row_count", None, None),
    "rows_present": ("row_count", None, None),
    "no_missing_values": ("missing", Unit.ROWS, None),
    "missing_count": ("missing", Unit.ROWS, None),
    "missing_percent": ("missing", Unit.PERCENT, None),
    "no_invalid_values": ("invalid", Unit.ROWS, None),
    "invalid_count": ("invalid", Unit.ROWS, None),
    "invalid_percent": ("invalid", Unit.PERCENT, None),
    "no_duplicate_values": ("duplicate", Unit.ROWS, None),
    "no_duplicate_count": ("duplicate", Unit.ROWS, None),
    "unique": ("duplicate", Unit.ROWS, None),
    "duplicate_count": ("duplicate", Unit.ROWS, None),
    "duplicate_percent": ("duplicate", Unit.PERCENT, None),
    "freshness_in_minutes": ("freshness", None, "minute"),
    "freshness_in_hours": ("freshness", None, "hour"),
    "freshness_in_days": ("freshness", None, "day"),
    **{
        name: ("aggregate", None, name)
        for name in (
            *STATISTICS,
            *("min_length", "max_length", "avg_length", "percentile", "stddev_pop", "stddev_samp"),
            *("variance", "var_pop", "var_samp"),
        )
    },
    **dict.fromkeys(("sql_expression", "metric_expression"), ("metric", None, None)),
    **dict.fromkeys(("user_defined_sql", "metric_query"), ("metric", None, None)),
    "failed_rows_sql_query": ("failed_rows", None, None),
}
"""The types of the first generation: the check of the second, the unit in their name, and what else is in it."""
