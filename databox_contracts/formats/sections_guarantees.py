"""`guarantees` and the retention of a contract in six sections, as rules where they name what can be measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.formats.attaching import clocks
from databox_contracts.formats.durations import read_duration
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.formats.sections_fields import DOCUMENT
from databox_contracts.formats.sodacl import SodaRule
from databox_contracts.model import Dataset
from databox_contracts.rules import NotEnforced, Number, Operator, Threshold, Unit

DAY: Final = 86_400
PERCENTILE: Final = re.compile(r"p(\d{1,2}(?:[._]\d{1,4})?|100)")
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


def kept_guarantees(section: Section, dataset: Dataset) -> dict[str, Any]:
    """The entries that no rule says: an order that is not promised, and names of fields that nothing needs."""
    found: dict[str, Any] = {}
    said = {type(rule) for rule in dataset.rules}
    ordering = section.data.get("ordering")
    if isinstance(ordering, str) and ordering.strip().lower() in _NOTHING:
        found["ordering"] = ordering
    levels = section.data.get("freshness")
    if isinstance(levels, dict) and rules.Latency not in said:
        unused = ("arrival_field",) if rules.Freshness in said else ("arrival_field", "timestamp_field")
        beside = {key: levels[key] for key in unused if levels.get(key) is not None}
        found |= {"freshness": beside} if beside else {}
    return found


def read_retention(governance: Section | None, dataset: Dataset) -> tuple[int | None, list[SodaRule]]:
    """`retention_days`, and its rule: no row is older.

    It needs a timestamp: the named one, else the only required one; without, the rule is a skipped one.
    """
    if governance is None:
        return None, []
    days = governance.count("retention_days", least=1)
    element = _named(governance, "timestamp_field", dataset)
    if days is None or ("timestamp_field" in governance and element is None):
        return days, []
    if element is None and len(clocks(dataset)) != 1:
        reason = "'retention_days' names no timestamp that says how old a row is"
        # The days themselves are the contract's, so nothing is to be kept of the rule.
        hint = "write `timestamp_field: created_at` beside it"
        return days, [_skipped(governance, "retention_days", reason, hint, kept={})]
    position = governance.at("retention_days")
    return days, [SodaRule(None, rules.Retention(seconds=days * DAY, element=element, position=position))]


def _skipped(
    section: Section, key: str, reason: str, hint: str | None = None, *, kept: Mapping[str, Any] | None = None
) -> SodaRule:
    """A rule that verdicts show as skipped; `kept` is what the document says, by default the entry of that name."""
    section.warning(f"not enforced: {reason}", hint or "it is shown as skipped in every verdict", key)
    said = {key: section.data[key]} if kept is None else kept
    return SodaRule(None, _carried(NotEnforced(name=key, reason=reason, position=section.at(key)), said))


def _carried(rule: NotEnforced, said: Mapping[str, Any]) -> NotEnforced:
    return replace(rule, custom={DOCUMENT: {"guarantees": said}}) if said else rule


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
        match = PERCENTILE.fullmatch(name)
        seconds = read_duration(levels, name) if match is not None else None
        if match is not None and seconds is not None:
            found.append((float(match[1].replace("_", ".")), seconds, name))
    ordered = sorted(found)
    for before, after in pairwise(ordered):
        if after[0] == before[0]:
            levels.error(f"{after[2]} and {before[2]} are the same percentile", "keep one of them", after[2])
        elif after[1] < before[1]:
            levels.error(f"{after[2]} is shorter than {before[2]}, which it includes", "correct one of them", after[2])
    if not found:
        return
    if arrival is None:
        if "arrival_field" not in levels:
            names = ", ".join(name for _, _, name in found)
            reason = f"the freshness percentiles {names} name no field of a row's arrival"
            levels.warning(f"not enforced: {reason}", "write `arrival_field: loaded_at` beside them")
            for _, _, name in found:
                skipped = NotEnforced(name=f"freshness {name}", reason=reason, position=levels.at(name))
                yield SodaRule(None, _carried(skipped, {"freshness": {name: levels.data[name]}}))
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
    if not any(_PER_PERIOD.fullmatch(name) for name in levels.data):
        section.warning("'completeness' promises no percentage", "write `p99_per_hour: 99.95` in it", key)
    for name in levels.data:
        match = _PER_PERIOD.fullmatch(name)
        percent = _percent(levels, name) if match is not None else None
        if match is None or percent is None:
            continue
        if expected is None:
            reason = f"the completeness {name} has nothing to hold the number of rows against"
            hint = "write `expected: orders`, a dataset, or `expected_per_period: 1000` beside it"
            yield _skipped(levels, name, reason, hint, kept={key: {name: levels.data[name]}})
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
    written = (section.written(key) or "").strip()
    value = section.tried_number(key)
    if value is None and re.fullmatch(r"\d{1,3}(?:\.\d{1,9})?\s*%?", written):
        value = float(written.rstrip("% "))
    if value is None or not 0 <= value <= 100:
        section.error(f"{key!r} must be a number from 0 to 100, not {written[:40]!r}", "write 99.95", key)
        return None
    return value


# --- keys, and what the data cannot show ------------------------------------------------------------------------------


def _uniqueness(section: Section, key: str, dataset: Dataset) -> Iterator[SodaRule]:
    """One field, the fields of one composite key, or a list of keys that each are a list of fields."""
    value = section.data[key]
    if isinstance(value, str):
        names = [name.strip() for name in value.strip().strip("()[]").split(",")]
        yield from _key(section, names, [(key,)] * len(names), dataset)
    elif isinstance(value, list) and any(isinstance(item, list) for item in value):
        for at, item in enumerate(value):
            places = [(key, at, i) for i in range(len(item))] if isinstance(item, list) else [(key, at)]
            texts = [section.report.document.text((*section.path, *steps)) or "" for steps in places]
            yield from _key(section, texts, places, dataset)
    else:
        names = list(section.texts(key))
        yield from _key(section, names, [(key, at) for at in range(len(names))], dataset)


def _key(
    section: Section, names: Sequence[str], places: Sequence[tuple[str | int, ...]], dataset: Dataset
) -> Iterator[SodaRule]:
    """The rule of one key, each field of it with its place."""
    if not names:
        section.warning("'uniqueness' names no field", "write `uniqueness: id`", "uniqueness")
    known = [_is_field(section, name, dataset, *steps) for name, steps in zip(names, places, strict=True)]
    if not names or not all(known):
        return
    if len(names) == 1:
        yield SodaRule(names[0], rules.Unique(position=section.at(*places[0][:2])))
    else:
        yield SodaRule(None, rules.Unique(fields=tuple(names), position=section.at(*places[0][:-1] or places[0])))


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
