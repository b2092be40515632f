"""Counts in the words of a result: what was seen, what was promised, and a sentence when they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from databox_contracts.plan import Check
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import NO_ROWS, RowCount, Threshold, Unit


def threshold_of(check: Check) -> Threshold:
    """What a count of violating rows is held against; a rule without a threshold allows none."""
    found: Threshold = getattr(check.rule, "threshold", NO_ROWS)
    return found


def not_evaluated(check: Check, reason: str) -> CheckResult:
    """The result of a rule that could not be judged."""
    return check.result(Status.NOT_EVALUATED, message=f"could not be evaluated: {reason}")


def counted(check: Check, count: int, rows: int, *, counted_in: str = "rows") -> CheckResult:
    """The result of a rule that `count` of `rows` rows break, or whatever else is counted."""
    threshold = threshold_of(check)
    in_percent = threshold.unit is Unit.PERCENT
    exact = (Decimal(100 * count) / rows if rows else Decimal(0)) if in_percent else Decimal(count)
    holds = threshold.holds(exact)
    promised = "" if threshold.allows_none else f"; promised is {threshold}{'' if in_percent else f' {counted_in}'}"
    message = "" if holds else f"{count} of {rows} {counted_in} ({_share(count, rows)}) {check.rule.broken}{promised}"
    return check.result(
        Status.PASSED if holds else Status.FAILED,
        failed_count=count,
        observed=float(round(exact, 6)) if in_percent else count,
        threshold=str(threshold),
        message=message,
    )


def row_count(check: Check, rows: int) -> CheckResult:
    """The result of a rule about the number of rows."""
    assert isinstance(check.rule, RowCount)
    threshold = check.rule.threshold
    holds = threshold.holds(rows)
    message = "" if holds else f"the table has {rows} rows; promised is {threshold}"
    status = Status.PASSED if holds else Status.FAILED
    return check.result(status, observed=rows, threshold=str(threshold), message=message)


def repeated(
    check: Check,
    surplus: int,
    keys: int,
    samples: Sequence[tuple[Any, ...]],
    rows: int,
    *,
    counted_in: str = "rows",
) -> CheckResult:
    """The result of a key of which `keys` values occur more than once, in `surplus` rows beyond the first of each.

    Of a key inside an array or a map the values are counted, not the rows.
    """
    result = counted(check, surplus, rows, counted_in=counted_in)
    if result.status is Status.PASSED:
        return result
    names = check.key_names
    also = (
        f": {keys} key{'s' if keys != 1 else ''} of ({', '.join(names)}) occur{'s' if keys == 1 else ''} more than once"
    )
    shown = tuple(key[0] if len(names) == 1 else dict(zip(names, key, strict=True)) for key in samples)
    return replace(result, message=result.message + also, samples=shown)


def _share(count: int, rows: int) -> str:
    return f"{100 * count / rows:.3g} %" if rows else "0 %"
