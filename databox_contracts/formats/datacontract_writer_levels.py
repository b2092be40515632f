"""Rules about time back into `servicelevels`, of which a document has one of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.formats.attaching import clocks
from databox_contracts.formats.datacontract_levels import place_of
from databox_contracts.formats.durations import DurationError, parse_duration
from databox_contracts.model import Dataset
from databox_contracts.rules import Rule, Severity

_DAY: Final = 86_400
_MOST: Final = 10**9 * _DAY
_UNITS: Final = (("H", 3_600), ("M", 60), ("S", 1))


def service_levels(datasets: Sequence[Dataset]) -> dict[str, Any]:
    """The service levels that those datasets promise: of each kind the first that can be said."""
    return {name: level for name, kind in _KINDS.items() if (level := next(_levels(kind, datasets), None)) is not None}


def iso_duration(seconds: float) -> str | None:
    """The ISO 8601 duration of so many seconds, in days and less; None for what is none that can be read."""
    left = Decimal(str(seconds))
    if not left.is_finite() or not 0 <= left < _MOST:
        return None
    days, left = divmod(left, _DAY)
    parts = []
    for letter, length in _UNITS:
        count, left = (left, Decimal(0)) if letter == "S" else divmod(left, length)
        parts.append(f"{_plain(count)}{letter}" if count else "")
    clock = "".join(parts)
    text = f"P{f'{_plain(days)}D' if days else ''}{f'T{clock}' if clock else ''}"
    text = text if text != "P" else "PT0S"
    try:
        return text if parse_duration(text) == seconds else None
    except DurationError:
        return None


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f")


# --- the kinds of service levels --------------------------------------------------------------------------------------


def _levels(kind: type[Rule], datasets: Sequence[Dataset]) -> Iterator[dict[str, Any]]:
    for dataset in datasets:
        for rule in dataset.rules:
            if type(rule) is not kind or rule.severity is not Severity.ERROR:
                continue
            length = iso_duration(rule.seconds)  # type: ignore[attr-defined]
            said = {"description": rule.description} if rule.description else {}
            if length is not None and (level := _said(rule, length, dataset, datasets)) is not None:
                yield said | level


def _said(rule: Any, length: str, dataset: Dataset, datasets: Sequence[Dataset]) -> dict[str, Any] | None:
    if isinstance(rule, rules.Latency):
        event, arrival = (_place(name, dataset, datasets) for name in (rule.element, rule.arrival_field))
        if rule.percentile != 100 or event is None or arrival is None:
            return None
        return {"threshold": length, "sourceTimestampField": event, "processedTimestampField": arrival}
    key = "threshold" if isinstance(rule, rules.Freshness) else "period"
    element = rule.element
    if element is None:
        if all(_promises_the_same(rule, one) for one in datasets):
            return {key: length}
        # Where several tables do not promise the same, the one that is meant has to be named.
        found = clocks(dataset)
        element = found[0] if len(found) == 1 else None
    place = _place(element, dataset, datasets)
    return None if place is None else {key: length, "timestampField": place}


def _promises_the_same(rule: Any, dataset: Dataset) -> bool:
    return any(type(one) is type(rule) and (one.seconds, one.element) == (rule.seconds, None) for one in dataset.rules)  # type: ignore[attr-defined]


def _place(element: str | None, dataset: Dataset, datasets: Sequence[Dataset]) -> str | None:
    """The field as `model.field`, where that would be read as this field of this model."""
    written = f"{dataset.name}.{element}"
    return written if element is not None and place_of(written, datasets) == (dataset.name, element) else None


_KINDS: Final[dict[str, type[Rule]]] = {
    "freshness": rules.Freshness,
    "retention": rules.Retention,
    "latency": rules.Latency,
}
