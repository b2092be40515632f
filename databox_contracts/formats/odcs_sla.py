"""`slaProperties`: promises about time as rules of datasets, and the others as promises that are not evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from databox_contracts.formats.durations import DurationError, parse_duration
from databox_contracts.formats.odcs_custom import DOCUMENT
from databox_contracts.formats.odcs_options import unenforced
from databox_contracts.formats.reading import Section
from databox_contracts.model import Dataset
from databox_contracts.rules import Freshness, NotEnforced, Retention, Rule

# Of the standard's properties (in any case, or by their two letters) those that data can be held to. It prefers
# `latency` as the word for how old the newest data may be.
MEASURED: Final[dict[str, type[Freshness] | type[Retention]]] = {
    **dict.fromkeys(("latency", "ly", "freshness"), Freshness),
    **dict.fromkeys(("retention", "re"), Retention),
}
PROPERTY: Final[dict[type[Rule], str]] = {Freshness: "latency", Retention: "retention"}

_DOCUMENTATION: Final = ("driver", "customProperties", "authoritativeDefinitions")
_UNUSED: Final = ("valueExt", "scheduler", "schedule")

# From the largest down; a month and a week have other words for the same days.
_UNITS: Final = (("y", 365 * 86_400), ("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))

STABLE_ID: Final = re.compile(r"[A-Za-z0-9_-]+")
"""What the standard allows as the `id` of an entry."""


def read_sla(section: Section, datasets: Sequence[Dataset]) -> tuple[tuple[Dataset, ...], dict[str, Any]]:
    """The datasets with the rules of `slaProperties`, and the entries that are about none of them."""
    carried = section.carried("slaDefaultElement")
    added: dict[str, list[Rule]] = {dataset.name: [] for dataset in datasets}
    rest = []
    for entry in section.sections("slaProperties"):
        found = list(_entry(entry, carried.get("slaDefaultElement"), datasets))
        for name, rule in found:
            added[name].append(rule)
        if not datasets:
            rest.append(entry.data)
    if carried and section.data.get("slaProperties") is None:
        section.note("'slaDefaultElement' is not enforced: there are no service levels", None, "slaDefaultElement")
    held = tuple(
        dataset.model_copy(update={"rules": (*dataset.rules, *added[dataset.name])}) if added[dataset.name] else dataset
        for dataset in datasets
    )
    return held, {**carried, **({"slaProperties": rest} if rest else {})}


def _entry(entry: Section, default_element: Any, datasets: Sequence[Dataset]) -> Iterator[tuple[str, Rule]]:
    """The rules of one entry, each with the name of its dataset."""
    written = entry.needed("property", "a service level")
    element = entry.text("element") or (default_element if isinstance(default_element, str) else None)
    documentation = entry.carried(*_DOCUMENTATION)
    facts: dict[str, Any] = {
        "name": entry.text("id"),
        "description": entry.text("description") or "",
        "position": entry.position,
    }
    entry.raw("value")
    entry.raw("unit")
    kind = MEASURED.get((written or "").strip().lower())
    if kind is None or not datasets:
        entry.carried(*_UNUSED)
    else:
        documentation |= entry.not_enforced(*_UNUSED)
    entry.close()
    if written is None:
        return
    if not datasets:
        entry.note(f"the service level {written!r} is not enforced: it is about no dataset", None, "property")
        return
    if kind is None:
        for part in _parts(element):
            yield from _unmeasured(entry, part, datasets, f"the service level {written!r}, which no data shows")
        return
    seconds = _seconds(entry)
    if seconds is None:
        if isinstance(entry.raw("value"), int | float) and entry.raw("unit") is None:
            reason = f"the service level {written!r} has no unit; write s, min, h, d or y as its `unit`"
            yield from _unmeasured(entry, None, datasets, reason)
        return
    if PROPERTY[kind] != written:
        documentation["property"] = written
    custom = {DOCUMENT: documentation} if documentation else {}
    for part in _parts(element):
        places = _places(entry, part, datasets)
        if places is None:
            reason = f"the service level {written!r} of {part!r}, which is in no dataset of this contract"
            yield from _unmeasured(entry, part, datasets, reason)
            continue
        for dataset, path in places:
            yield dataset.name, kind(seconds=seconds, element=path, custom=custom, **facts)


def _parts(element: str | None) -> list[str | None]:
    """The elements that one entry is about, which are separated by commas; [None] where it names none."""
    return [part.strip() for part in (element or "").split(",") if part.strip()] or [None]


def _unmeasured(
    entry: Section, part: str | None, datasets: Sequence[Dataset], reason: str
) -> Iterator[tuple[str, NotEnforced]]:
    data = {**entry.data, **({"element": part} if part is not None and "element" in entry.data else {})}
    rule = unenforced(entry, reason, "property", name=entry.text("id"), custom={DOCUMENT: {"slaProperty": data}})
    found = None if part is None else _found(part, datasets)
    for dataset in datasets if found is None else [found[0]]:
        yield dataset.name, rule


def _seconds(entry: Section) -> float | None:
    """How long the value is, in its unit or as an ISO 8601 duration."""
    value = entry.report.document.text((*entry.path, "value"))
    unit = entry.text("unit") or ""
    if value is None:
        entry.error(
            "a service level has no 'value'",
            "write `value: 4` and `unit: d`",
            *(("value",) if "value" in entry else ()),
        )
        return None
    try:
        return parse_duration(f"{value.strip()} {unit.strip()}".strip())
    except DurationError as error:
        if isinstance(entry.raw("value"), int | float) and not unit:
            return None
        hint = "write `value: 4` with `unit: d` (s, min, h, d, w, mo, y), or `value: P4D`"
        entry.error(f"{f'{value} {unit}'.strip()!r} is no length of time: {error.reason}", hint, "value")
        return None


def _places(entry: Section, part: str | None, datasets: Sequence[Dataset]) -> list[tuple[Dataset, str | None]] | None:
    """The datasets that an element is about, with the property in each; None where it is about none."""
    if part is None:
        return [(dataset, None) for dataset in datasets]
    found = _found(part, datasets)
    if found is None and len(datasets) == 1:
        found = datasets[0], part
    if found is None:
        return None
    dataset, path = found
    if path is not None and dataset.fields and dataset.trail(path) is None:
        entry.warning(
            f"{path!r} is no property of {dataset.name!r}", "name the property that holds the time", "element"
        )
    return [(dataset, path)]


def _found(part: str, datasets: Sequence[Dataset]) -> tuple[Dataset, str | None] | None:
    """The dataset that the element begins with, by its name or its table's; the longest such name."""
    named = [(name, dataset) for dataset in datasets for name in (dataset.name, dataset.table_name)]
    for name, dataset in sorted(named, key=lambda one: -len(one[0])):
        if len(datasets) == 1 and dataset.trail(part) is not None:
            return dataset, part
        if part == name:
            return dataset, None
        if part.startswith(f"{name}."):
            return dataset, part[len(name) + 1 :]
    return None


# --- the way back -----------------------------------------------------------------------------------------------------


def is_service_level(rule: Rule) -> bool:
    """Whether `slaProperties` can say the rule, and all of it."""
    # The id of an entry is its rule's name.
    return (
        type(rule) in PROPERTY
        and all(key == DOCUMENT for key in rule.custom)
        and 0 <= rule.seconds < 10**9  # type: ignore[attr-defined]
        and "," not in (rule.element or "")  # type: ignore[attr-defined]
        and (rule.name is None or DOCUMENT in rule.custom or STABLE_ID.fullmatch(rule.name) is not None)
        and rule
        == type(rule)(  # type: ignore[call-arg]
            seconds=rule.seconds,  # type: ignore[attr-defined]
            element=rule.element,  # type: ignore[attr-defined]
            name=rule.name,
            description=rule.description,
            position=rule.position,
        )
    )


def sla_entries(datasets: Sequence[Dataset], default_element: Any) -> list[dict[str, Any]]:
    """The entries of `slaProperties` that say the rules of those datasets."""
    measured = [
        _written(rule, dataset, alone=len(datasets) == 1 and default_element is None)
        for dataset in datasets
        for rule in dataset.rules
        if is_service_level(rule)
    ]
    carried = [
        [
            rule.custom[DOCUMENT]["slaProperty"]
            for rule in dataset.rules
            if "slaProperty" in rule.custom.get(DOCUMENT, {})
        ]
        for dataset in datasets
    ]
    return [*measured, *_merged(carried)]


def _carried(dataset: Dataset) -> list[Mapping[str, Any]]:
    return [rule.custom.get(DOCUMENT, {}) for rule in dataset.rules]


def _written(rule: Any, dataset: Dataset, *, alone: bool) -> dict[str, Any]:
    carried: Mapping[str, Any] = rule.custom.get(DOCUMENT, {})
    unit, length = next((unit, length) for unit, length in _UNITS if rule.seconds % length == 0 or length == 1)
    value = rule.seconds / length
    place = ".".join(part for part in (dataset.name, rule.element) if part is not None)
    return {
        **({"id": rule.name} if rule.name is not None else {}),
        "property": carried.get("property", PROPERTY[type(rule)]),
        "value": int(value) if value == int(value) else value,
        "unit": unit,
        **({} if alone and rule.element is None else {"element": place}),
        **({"description": rule.description} if rule.description else {}),
        **{key: value for key, value in carried.items() if key != "property"},
    }


def _merged(lists: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One list in which each of the lists is found in its own order, what several begin with once."""
    queues = [list(one) for one in lists]
    merged: list[dict[str, Any]] = []
    while any(queues):
        heads = [queue[0] for queue in queues if queue]
        # The first head that no other queue still has to come to; there is one if all come from one list.
        head = next(
            (one for one in heads if not any(one in queue[1:] and queue[0] != one for queue in queues)), heads[0]
        )
        merged.append(head)
        for queue in queues:
            if queue and queue[0] == head:
                queue.pop(0)
    return merged
