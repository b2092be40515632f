"""`guarantees` and the retention of a contract in six sections, as rules where they name what can be measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from databox_contracts import rules
from databox_contracts.formats.attaching import clocks
from databox_contracts.formats.durations import read_duration
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.formats.sodacl import SodaRule
from databox_contracts.model import Dataset
from databox_contracts.rules import NotEnforced, Number, Operator, Threshold, Unit

_DAY: Final = 86_400
_PERCENTILE: Final = re.compile(r"p(\d{1,2}(?:[._]\d{1,4})?|100)")
_PER_PERIOD: Final = re.compile(r"p(\d{1,2}(?:\.\d{1,4})?|100)_per_(minute|hour|day|week|month)")
_NOTHING: Final = ("not_guaranteed", "none", "unordered")


def read_guarantees(section: Section, dataset: Dataset) -> Iterator[SodaRule]:
    """The rules of the section, in its order; what cannot be measured is a skipped rule."""
    for key in section.data:
        reader = _GUARANTEES.get(key)
        if reader is not None and section.raw(key) is not None:
            yield from reader(section, key, dataset)
    for name in _GUARANTEES:
        section.raw(name)
    section.close()


def read_retention(governance: Section, dataset: Dataset) -> Iterator[SodaRule]:
    """`retention_days`: no row is older. It needs a timestamp: the named one, else the only required one."""
    days = governance.count("retention_days", least=1)
    element = _named(governance, "timestamp_field", dataset)
    if days is None or ("timestamp_field" in governance and element is None):
        return
    if element is None and len(clocks(dataset)) != 1:
        reason = "'retention_days' names no timestamp that says how old a row is"
        yield _skipped(governance, "retention_days", reason, "write `timestamp_field: created_at` beside it")
    else:
        position = governance.at("retention_days")
        yield SodaRule(None, rules.Retention(seconds=days * _DAY, element=element, position=position))


def _skipped(section: Section, key: str, reason: str, hint: str | None = None) -> SodaRule:
    section.warning(f"not enforced: {reason}", hint or "it is shown as skipped in every verdict", key)
    return SodaRule(None, NotEnforced(name=key, reason=reason, position=section.at(key)))


def _named(section: Section, key: str, dataset: Dataset) -> str | None:
    """The field that the entry names; an error where the dataset has none of that name."""
    written = section.text(key)
    if written is None or _is_field(section, written, dataset, key):
        return written
    return None


def _is_field(section: Section, name: str, dataset: Dataset, *steps: str | int) -> bool:
    if dataset.trail(name) is not None:
        return True
    names = [field.name for field in dataset.fields]
    near = nearest(name, names)
    hint = f"did you mean {near!r}?" if near else f"it has {', '.join(names[:10])}"
    section.error(f"{name[:60]!r} is no field of {dataset.name!r}", hint, *steps)
    return False


# --- freshness --------------------------------------------------------------------------------------------------------


def _freshness(section: Section, key: str, dataset: Dataset) -> Iterator[SodaRule]:
    if not isinstance(section.data[key], dict):
        seconds = read_duration(section, key)
        if seconds is not None:
            _check_clock(section, key, clocks(dataset))
            yield SodaRule(None, rules.Freshness(seconds=seconds, position=section.at(key)))
        return
    levels = section.section(key)
    if levels is None:
        return
    element, arrival = (_named(levels, name, dataset) for name in ("timestamp_field", "arrival_field"))
    seconds = read_duration(levels, "max")
    if seconds is not None:
        if element is None:
            _check_clock(section, key, clocks(dataset))
        yield SodaRule(None, rules.Freshness(seconds=seconds, element=element, position=levels.at("max")))
    yield from _percentiles(levels, element, arrival, dataset)
    levels.close({"p0": "write p50, p95, p99"})


def _percentiles(levels: Section, element: str | None, arrival: str | None, dataset: Dataset) -> Iterator[SodaRule]:
    found: list[tuple[float, float, str]] = []
    for name in levels.data:
        match = _PERCENTILE.fullmatch(name)
        seconds = read_duration(levels, name) if match is not None else None
        if match is not None and seconds is not None:
            found.append((float(match[1].replace("_", ".")), seconds, name))
    ordered = sorted(found)
    for before, after in pairwise(ordered):
        if after[1] < before[1]:
            levels.error(f"{after[2]} is shorter than {before[2]}, which it includes", "correct one of them", after[2])
    if not found:
        return
    if arrival is None:
        if "arrival_field" not in levels:
            names = ", ".join(name for _, _, name in found)
            reason = f"the freshness percentiles {names} name no field of a row's arrival"
            levels.warning(f"not enforced: {reason}", "write `arrival_field: loaded_at` beside them")
            for _, _, name in found:
                yield SodaRule(None, NotEnforced(name=f"freshness {name}", reason=reason, position=levels.at(name)))
        return
    if element is None:
        _check_clock(levels, "arrival_field", [name for name in clocks(dataset) if name != arrival])
    for percentile, seconds, name in found:
        rule = rules.Latency(
            percentile=percentile, seconds=seconds, element=element, arrival_field=arrival, position=levels.at(name)
        )
        yield SodaRule(None, rule)


def _check_clock(section: Section, key: str, found: list[str]) -> None:
    if len(found) != 1:
        has = f"there are {', '.join(found)}" if found else "there is none"
        section.warning(
            f"{key!r} cannot be evaluated: it is about the only required timestamp, and {has}",
            f"write `timestamp_field: {found[0] if found else 'created_at'}` beside it",
            key,
        )


# --- completeness -----------------------------------------------------------------------------------------------------


def _completeness(section: Section, key: str, dataset: Dataset) -> Iterator[SodaRule]:
    if not isinstance(section.data[key], dict):
        _percent(section, key)
        reason = "'completeness' names no period and nothing to hold the number of rows against"
        hint = "write `completeness: {p99_per_hour: 99.95, expected_per_period: 1000}`"
        yield _skipped(section, key, reason, hint)
        return
    levels = section.section(key)
    if levels is None:
        return
    expected: str | int | None = levels.text("expected")
    if expected is None:
        expected = levels.count("expected_per_period", least=1)
    elif "expected_per_period" in levels:
        levels.error("'expected' and 'expected_per_period' are two references", "keep one", "expected_per_period")
    for name in levels.data:
        match = _PER_PERIOD.fullmatch(name)
        percent = _percent(levels, name) if match is not None else None
        if match is None or percent is None:
            continue
        if expected is None:
            reason = f"the completeness {name} has nothing to hold the number of rows against"
            yield _skipped(
                levels, name, reason, "write `expected: orders`, a dataset, or `expected_per_period: 1000` beside it"
            )
        else:
            rule = rules.Completeness(
                threshold=Threshold(Operator.GREATER_OR_EQUAL, percent, unit=Unit.PERCENT),
                period=match[2],
                expected=expected,
                percent_of_periods=float(match[1]),
                position=levels.at(name),
            )
            yield SodaRule(None, rule)
    levels.close()


def _percent(section: Section, key: str) -> Number | None:
    """A number from 0 to 100, with or without a percent sign."""
    section.raw(key)
    written = (section.report.document.text((*section.path, key)) or "").strip()
    value = section.tried_number(key)
    if value is None and re.fullmatch(r"\d{1,3}(?:\.\d{1,9})?\s*%?", written):
        value = float(written.rstrip("% "))
    if value is None or not 0 <= value <= 100:
        section.error(f"{key!r} must be a number from 0 to 100, not {written[:40]!r}", "write 99.95", key)
        return None
    return value


# --- keys, and what the data cannot show ------------------------------------------------------------------------------


def _uniqueness(section: Section, key: str, dataset: Dataset) -> Iterator[SodaRule]:
    """One field, or the fields of one composite key."""
    value = section.data[key]
    if isinstance(value, str):
        names = [name.strip() for name in value.strip().strip("()[]").split(",")]
        places: list[tuple[str | int, ...]] = [(key,)] * len(names)
    else:
        names = list(section.texts(key))
        places = [(key, at) for at in range(len(names))]
    if not names:
        section.warning("'uniqueness' names no field", "write `uniqueness: id`", key)
    known = [_is_field(section, name, dataset, *steps) for name, steps in zip(names, places, strict=True)]
    if not names or not all(known):
        return
    if len(names) == 1:
        yield SodaRule(names[0], rules.Unique(position=section.at(key)))
    else:
        yield SodaRule(None, rules.Unique(fields=tuple(names), position=section.at(key)))


def _ordering(section: Section, key: str, dataset: Dataset) -> Iterator[SodaRule]:
    written = section.text(key)
    if written is not None and written.strip().lower() in _NOTHING:
        section.note(f"'ordering: {written.strip()}' promises nothing", None, key)
    elif written is not None:
        yield _skipped(section, key, f"the order of rows ({written[:40]}), which a table does not have")


def _unmeasured(section: Section, key: str, dataset: Dataset) -> Iterator[SodaRule]:
    yield _skipped(section, key, f"the guarantee {key!r} is not measured on the data")


_GUARANTEES: Final[dict[str, Callable[[Section, str, Dataset], Iterator[SodaRule]]]] = {
    "availability": _unmeasured,
    "completeness": _completeness,
    "freshness": _freshness,
    "ordering": _ordering,
    "uniqueness": _uniqueness,
}
