"""`servicelevels`: what is promised about time, as rules of ours where it names what can be measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.formats.attaching import clocks
from databox_contracts.formats.durations import read_duration
from databox_contracts.formats.identity import extensions
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.model import Dataset
from databox_contracts.rules import NotEnforced, Rule

_PERCENTAGE: Final = re.compile(r"\s*(?:100(?:\.0*)?|\d{1,2}(?:\.\d{1,9})?)\s*%?\s*")


def read_service_levels(section: Section, datasets: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
    """The datasets with the rules of the service levels; what cannot be measured is a skipped rule of each."""
    found: dict[str, list[Rule]] = {dataset.name: [] for dataset in datasets}
    for name in section.data:
        level = section.section(name)
        if level is None:
            continue
        for table, rule in _LEVELS.get(name, _unmeasured)(level, name, datasets):
            found[table].append(rule)
        level.carried("description")
        extensions(level)
    return tuple(
        dataset.model_copy(update={"rules": (*dataset.rules, *found[dataset.name])}) if found[dataset.name] else dataset
        for dataset in datasets
    )


def _facts(level: Section) -> dict[str, Any]:
    return {"description": (level.text("description") or "").strip(), "position": level.position}


def _skipped(
    level: Section, name: str, datasets: tuple[Dataset, ...], reason: str, hint: str | None = None
) -> Iterator[tuple[str, Rule]]:
    level.warning(f"not enforced: {reason}", hint or "it is shown as skipped in every verdict")
    for dataset in datasets:
        yield dataset.name, NotEnforced(name=name, reason=reason, **_facts(level))


def _unmeasured(level: Section, name: str, datasets: tuple[Dataset, ...]) -> Iterator[tuple[str, Rule]]:
    level.carried(*_ENTRIES.get(name, tuple(level.data)))
    if level.text("percentage") is not None:
        _check_percentage(level)
    yield from _skipped(level, name, datasets, f"the service level {name!r} is not measured on the data")


def _check_percentage(level: Section) -> None:
    written = level.report.document.text((*level.path, "percentage")) or ""
    if not _PERCENTAGE.fullmatch(written):
        level.error(f"{written[:40]!r} is no percentage", 'write "99.9%"', "percentage")


_ENTRIES: Final = {
    "availability": ("percentage",),
    "completeness": ("percentage",),
    "frequency": ("type", "interval", "cron"),
    "support": ("time", "responseTime"),
    "backup": ("interval", "cron", "recoveryTime", "recoveryPoint"),
}


def _completeness(level: Section, name: str, datasets: tuple[Dataset, ...]) -> Iterator[tuple[str, Rule]]:
    if level.text("percentage") is not None:
        _check_percentage(level)
    reason = "the service level 'completeness' names nothing to hold the number of rows against"
    yield from _skipped(level, name, datasets, reason, "add a rule on row_count, or on missing values of a field")


def _freshness(level: Section, name: str, datasets: tuple[Dataset, ...]) -> Iterator[tuple[str, Rule]]:
    seconds = read_duration(level, "threshold")
    place = _field(level, "timestampField", datasets)
    if seconds is None:
        if "threshold" not in level:
            yield from _skipped(level, name, datasets, "'freshness' has no threshold", "write `threshold: PT10M`")
        return
    if place is not None:
        dataset, element = place
        yield dataset, rules.Freshness(seconds=seconds, element=element, **_facts(level))
    elif "timestampField" not in level:
        for one in datasets:
            _check_clock(level, one)
            yield one.name, rules.Freshness(seconds=seconds, **_facts(level))


def _check_clock(level: Section, dataset: Dataset) -> None:
    found = clocks(dataset)
    if len(found) != 1:
        has = f"has the required timestamps {', '.join(found)}" if found else "has no required timestamp"
        level.warning(
            f"the freshness of {dataset.name!r} cannot be evaluated: it {has}",
            f"write `timestampField: {dataset.name}.{found[0] if found else 'updated_at'}`",
        )


def _retention(level: Section, name: str, datasets: tuple[Dataset, ...]) -> Iterator[tuple[str, Rule]]:
    seconds = read_duration(level, "period")
    place = _field(level, "timestampField", datasets)
    if level.flag("unlimited"):
        if seconds is not None:
            level.warning("'unlimited' and 'period' contradict each other", "keep one", "unlimited")
        level.note("retention without a limit promises nothing that could be broken", None, "unlimited")
        return
    if seconds is None:
        if "period" not in level:
            yield from _skipped(level, name, datasets, "'retention' has no period", "write `period: P90D`")
        return
    if place is not None:
        dataset, element = place
        yield dataset, rules.Retention(seconds=seconds, element=element, **_facts(level))
    elif "timestampField" not in level:
        for one in datasets:
            if len(clocks(one)) == 1:
                yield one.name, rules.Retention(seconds=seconds, **_facts(level))
            else:
                reason = f"the retention of {one.name!r} names no timestamp"
                hint = f"write `timestampField: {one.name}.created_at`"
                yield from _skipped(level, name, (one,), reason, hint)


def _latency(level: Section, name: str, datasets: tuple[Dataset, ...]) -> Iterator[tuple[str, Rule]]:
    seconds = read_duration(level, "threshold")
    event = _field(level, "sourceTimestampField", datasets)
    arrival = _field(level, "processedTimestampField", datasets)
    if "threshold" in level and seconds is None:
        return
    missing = [key for key in ("threshold", "sourceTimestampField", "processedTimestampField") if key not in level]
    if missing:
        reason = f"'latency' has no {' and no '.join(missing)}"
        yield from _skipped(level, name, datasets, reason, f"name {' and '.join(missing)}")
    elif event is not None and arrival is not None and seconds is not None:
        if event[0] != arrival[0]:
            level.error(
                "the two fields of 'latency' are of different models", "name two of one", "processedTimestampField"
            )
            return
        rule = rules.Latency(
            percentile=100, seconds=seconds, element=event[1], arrival_field=arrival[1], **_facts(level)
        )
        yield event[0], rule


def _field(level: Section, key: str, datasets: tuple[Dataset, ...]) -> tuple[str, str] | None:
    """The model and the field that the entry names; an error where there is no such one."""
    written = level.text(key)
    if written is None:
        return None
    place = place_of(written, datasets)
    if place is not None:
        return place
    known = [f"{dataset.name}.{field.name}" for dataset in datasets for field in dataset.fields]
    near = nearest(written, known)
    hint = f"did you mean {near!r}?" if near else "write `model.field`"
    level.error(f"{written[:60]!r} is no field of one model", hint, key)
    return None


def place_of(written: str, datasets: Sequence[Dataset]) -> tuple[str, str] | None:
    """The model and the field that are named as `model.field`, or by the field alone where only one model has it."""
    for dataset in datasets:
        if written.startswith(f"{dataset.name}.") and dataset.trail(written[len(dataset.name) + 1 :]):
            return dataset.name, written[len(dataset.name) + 1 :]
    having = [dataset.name for dataset in datasets if dataset.trail(written)]
    return (having[0], written) if len(having) == 1 else None


_LEVELS: Final[dict[str, Callable[[Section, str, tuple[Dataset, ...]], Iterator[tuple[str, Rule]]]]] = {
    "completeness": _completeness,
    "freshness": _freshness,
    "latency": _latency,
    "retention": _retention,
}
