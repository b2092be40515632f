"""Rules about time, rows and keys back into `guarantees` and the retention of `governance`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.formats.attaching import logical_types
from databox_contracts.formats.durations import DurationError, parse_duration
from databox_contracts.formats.sections_fields import DOCUMENT
from databox_contracts.formats.sections_guarantees import DAY, PERCENTILE
from databox_contracts.formats.sections_writer_constraints import sayable
from databox_contracts.formats.sections_writer_fields import is_reached
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import NotEnforced, Operator, Rule, Unit

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_PERIODS: Final = ("minute", "hour", "day", "week", "month")
_ORDER: Final = ("freshness", "completeness", "uniqueness", "ordering", "availability")


def guarantees(dataset: Dataset, carried: Mapping[str, Any]) -> dict[str, Any]:
    """The section: what rules say, then what skipped rules carry of their document, then what no rule says."""
    own = sayable(dataset.rules)
    found: dict[str, Any] = {
        "freshness": _freshness(own, dataset),
        "completeness": _completeness(own),
        "uniqueness": _uniqueness(dataset, own),
    }
    said = {name: value for name, value in found.items() if value not in (None, {}, [])}
    for rule in dataset.rules:
        if isinstance(rule, NotEnforced):
            _merge(said, rule.custom.get(DOCUMENT, {}).get("guarantees", {}))
    _merge(said, carried)
    if isinstance(said.get("freshness"), dict):
        said["freshness"] = dict(sorted(said["freshness"].items(), key=_rank))
    return {name: said[name] for name in (*_ORDER, *(name for name in said if name not in _ORDER)) if name in said}


def _merge(said: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Adds what is not said yet."""
    for name, value in more.items():
        if isinstance(said.get(name), dict) and isinstance(value, Mapping):
            said[name] = {**value, **said[name]}
        elif isinstance(value, Mapping):
            said.setdefault(name, dict(value))
        else:
            said.setdefault(name, value)


def _rank(entry: tuple[str, Any]) -> tuple[int, float, str]:
    """`max`, then the percentiles upwards, then the fields they are about."""
    name, _ = entry
    match = PERCENTILE.fullmatch(name)
    if match is not None:
        return 1, float(match[1].replace("_", ".")), name
    return (0 if name == "max" else 2), 0.0, name


def duration(seconds: Any) -> str | None:
    """A length of time in the largest unit that needs no fraction, as `read_duration` reads it; None if it cannot."""
    exact = Decimal(str(seconds))
    if not exact.is_finite() or exact < 0 or abs(exact.adjusted()) > 20:
        return None
    unit, length = next((unit, length) for unit, length in _UNITS if exact % length == 0 or length == 1)
    number = exact / length
    whole = number == number.to_integral_value()
    written = f"{int(number) if whole else format(number.normalize(), 'f')}{unit}"
    try:
        return written if parse_duration(written) == float(exact) else None
    except DurationError:
        return None


# --- freshness --------------------------------------------------------------------------------------------------------


def _freshness(own: Iterable[Rule], dataset: Dataset) -> dict[str, Any]:
    """One `max` and the percentiles that are about the same fields: those of the first of them."""
    timed = [rule for rule in own if isinstance(rule, rules.Freshness | rules.Latency) and _names_fields(rule, dataset)]
    latencies = [rule for rule in timed if isinstance(rule, rules.Latency)]
    if not timed:
        return {}
    element = timed[0].element
    arrival = latencies[0].arrival_field if latencies else None
    found: dict[str, Any] = {}
    percentiles: dict[float, float] = {}
    for rule in timed:
        written = duration(rule.seconds)
        if written is None or rule.element != element:
            continue
        if isinstance(rule, rules.Freshness):
            found.setdefault("max", written)
            continue
        name = _percentile(rule.percentile)
        at, seconds = float(rule.percentile), float(rule.seconds)
        fits = all((at < p) == (seconds <= s) or seconds == s for p, s in percentiles.items())
        if name is not None and rule.arrival_field == arrival and at not in percentiles and fits:
            percentiles[at] = seconds
            found[name] = written
    if not found:
        return {}
    beside = {"timestamp_field": element, "arrival_field": arrival if percentiles else None}
    return found | {name: value for name, value in beside.items() if value is not None}


def _names_fields(rule: rules.Freshness | rules.Latency, dataset: Dataset) -> bool:
    named = (rule.element, getattr(rule, "arrival_field", None))
    return all(name is None or dataset.trail(name) is not None for name in named)


def _percentile(value: float) -> str | None:
    name = f"p{format(Decimal(str(value)).normalize(), 'f')}"
    return name if PERCENTILE.fullmatch(name) else None


# --- completeness -----------------------------------------------------------------------------------------------------


def _completeness(own: Iterable[Rule]) -> Any:
    """The percentages of a period that are held against the same: what the first of them is."""
    found: dict[str, Any] = {}
    expected: str | int | None = None
    for rule in own:
        if not isinstance(rule, rules.Completeness) or not _is_percentage(rule):
            continue
        share = _percentile(rule.percent_of_periods) if rule.percent_of_periods is not None else None
        if share is None or rule.period not in _PERIODS:
            continue
        if found and rule.expected != expected:
            continue
        expected = rule.expected
        found.setdefault(f"{share}_per_{rule.period}", rule.threshold.value)
    if not found:
        return None
    if isinstance(expected, str) and expected.strip():
        found["expected"] = expected
    elif isinstance(expected, int) and 1 <= expected < 2**31:
        found["expected_per_period"] = expected
    return found


def _is_percentage(rule: rules.Completeness) -> bool:
    threshold = rule.threshold
    return (
        threshold.operator is Operator.GREATER_OR_EQUAL
        and threshold.unit is Unit.PERCENT
        and 0 <= threshold.value <= 100
    )


# --- keys -------------------------------------------------------------------------------------------------------------


def _uniqueness(dataset: Dataset, own: Iterable[Rule]) -> Any:
    """A name, a list of names for one composite key, a list of lists for several keys."""
    keys = [*_single_keys(dataset, dataset.fields, ())]
    keys += [list(rule.fields) for rule in own if isinstance(rule, rules.Unique) and rule.fields]
    known = [key for key in keys if all(dataset.trail(name) is not None for name in key)]
    # Where a key of one field stands depends on the dialect it came from.
    order = {name: at for at, name in enumerate(logical_types(dataset))}
    known.sort(key=lambda key: (len(key), order.get(key[0], 0)) if len(key) == 1 else (2, 0))
    if len(known) > 1:
        return known
    if not known:
        return None
    (key,) = known
    return key[0] if len(key) == 1 and re.fullmatch(r"[\w.]+", key[0]) else key


def _single_keys(dataset: Dataset, fields: Iterable[Field], path: tuple[str, ...]) -> Iterator[list[str]]:
    for field in fields:
        inside = (*path, field.name)
        if is_reached(dataset, inside, field):
            for rule in sayable(field.rules):
                if isinstance(rule, rules.Unique) and not rule.fields:
                    yield [".".join(inside)]
        yield from _single_keys(dataset, field.fields, inside)


# --- retention --------------------------------------------------------------------------------------------------------


def retention(contract: Contract, dataset: Dataset) -> dict[str, Any]:
    """`retention_days` of the rule, else of the contract's governance, and the timestamp that it is about."""
    for rule in sayable(dataset.rules):
        if isinstance(rule, rules.Retention) and (rule.element is None or dataset.trail(rule.element) is not None):
            days = Decimal(str(rule.seconds)) / DAY
            if days.is_finite() and 1 <= days < 2**31 and days == int(days):
                return {"retention_days": int(days), "timestamp_field": rule.element}
    days_only = contract.governance.retention_days
    return {"retention_days": days_only if days_only is not None and days_only >= 1 else None}
