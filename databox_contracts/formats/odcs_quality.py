"""`quality`: the library's metrics as rules of ours, and everything else as a promise that is not evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.errors import Level
from databox_contracts.formats.odcs_custom import DOCUMENT
from databox_contracts.formats.odcs_options import check_pattern, unenforced
from databox_contracts.formats.odcs_rules import ENGINE, read_rule
from databox_contracts.formats.odcs_sql import why_not_a_number
from databox_contracts.formats.odcs_values import read_values
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.rules import NO_ROWS, Dimension, Operator, Rule, Severity, Threshold, Unit

_DOCUMENTATION: Final = ("businessImpact", "method", "tags", "authoritativeDefinitions", "customProperties")
_SCHEDULE: Final = ("schedule", "scheduler", "scheduleCronExpression")
_OPERATORS: Final = tuple(operator.value for operator in Operator)
_RANGES: Final = (Operator.BETWEEN, Operator.NOT_BETWEEN)

# Any word is allowed there; what is not known here stops the table, which is the safe reading.
_SEVERITIES: Final = {
    **dict.fromkeys(("error", "critical", "high", "blocker"), Severity.ERROR),
    **dict.fromkeys(("warning", "warn", "medium"), Severity.WARNING),
    **dict.fromkeys(("info", "information", "low"), Severity.INFO),
}

_DIMENSIONS: Final = {
    **{dimension.value: dimension for dimension in Dimension},
    "ac": Dimension.ACCURACY,
    "cp": Dimension.COMPLETENESS,
    "cf": Dimension.CONFORMITY,
    "cs": Dimension.CONSISTENCY,
    "cv": Dimension.COVERAGE,
    "tm": Dimension.TIMELINESS,
    "uq": Dimension.UNIQUENESS,
}

# Names that `rule` had before it became `metric`.
_FORMER_METRICS: Final = {
    "nullCheck": "nullValues",
    "duplicateCount": "duplicateValues",
    "validValues": "invalidValues",
}

# Of the former rules, those whose name alone said what must hold.
_NEED_NO_OPERATOR: Final = ("nullCheck", "validValues")


@dataclass(frozen=True)
class Subject:
    """What a quality block is about: a property (of that logical type), or the whole dataset."""

    is_property: bool
    logical: str | None = None


@dataclass(frozen=True)
class Judged:
    """The rules of a quality block: those of the property itself, and those of its dataset."""

    own: tuple[Rule, ...] = ()
    dataset: tuple[Rule, ...] = ()


_NONE: Final = Judged()


def read_quality(section: Section, subject: Subject) -> Judged:
    """All rules of a `quality` list, in order."""
    if section.raw("quality") is None:
        return _NONE
    own: list[Rule] = []
    dataset: list[Rule] = []
    for entry in section.sections("quality"):
        for rule in _entry(entry, subject):
            of_dataset = isinstance(rule, rules.RowCount) or bool(getattr(rule, "fields", ()))
            (dataset if of_dataset else own).append(rule)
        entry.not_enforced(*_SCHEDULE)
        entry.close(
            dict.fromkeys(("validValues", "pattern", "missingValues", "properties"), "write it under `arguments`")
        )
    return Judged(tuple(own), tuple(dataset))


def _entry(entry: Section, subject: Subject) -> Iterator[Rule]:
    kind = entry.text("type") or _implied_type(entry)
    facts = _facts(entry)
    reader = _TYPES.get(kind)
    if reader is None:
        near = nearest(kind, _TYPES)
        hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(_TYPES)}"
        entry.error(f"unknown type of quality rule {kind!r}", hint, "type")
        return
    yield from reader(entry, subject, facts)


def _implied_type(entry: Section) -> str:
    for key, kind in (("metric", "library"), ("rule", "library"), ("query", "sql"), ("implementation", "custom")):
        if key in entry.data:
            return kind
    return "library" if any(operator in entry.data for operator in _OPERATORS) else "text"


def _facts(entry: Section) -> dict[str, Any]:
    """What every rule has: a name, a severity, a dimension, a description, a place, and what is written beside it."""
    stable_id, name = entry.text("id"), entry.text("name")
    custom = _documentation(entry)
    facts: dict[str, Any] = {
        "name": name or stable_id,
        "description": entry.text("description") or "",
        "position": entry.position,
        "custom": custom,
    }
    severity = entry.text("severity")
    if severity is not None:
        facts["severity"] = _SEVERITIES.get(severity.strip().lower(), Severity.ERROR)
        if severity.strip().lower() not in _SEVERITIES:
            entry.warning(
                f"the unknown severity {severity!r} counts as error", "use error, warning or info", "severity"
            )
    dimension = entry.text("dimension")
    if dimension is not None:
        facts["dimension"] = _DIMENSIONS.get(dimension.strip().lower())
        if facts["dimension"] is None:
            known = ", ".join(item.value for item in Dimension)
            entry.warning(f"the unknown dimension {dimension!r} is ignored", f"use one of {known}", "dimension")
    return facts


def _documentation(entry: Section) -> dict[str, Any]:
    """What the entry says beside the promise, under `DOCUMENT`; what another dialect carries in it, under its name."""
    entry.listed("customProperties")
    carried = entry.carried("id", *_DOCUMENTATION, *_SCHEDULE)
    for key, words in (("severity", tuple(Severity)), ("dimension", tuple(Dimension))):
        # A word of the author's own for one of ours.
        if isinstance(entry.data.get(key), str) and entry.data[key] not in words:
            carried[key] = entry.data[key]
    custom: dict[str, Any] = {}
    properties = carried.get("customProperties")
    if isinstance(properties, list):
        foreign = [one for one in properties if isinstance(one, dict) and str(one.get("property")).startswith("$")]
        custom = {one["property"]: one.get("value") for one in foreign}
        carried["customProperties"] = [one for one in properties if one not in foreign]
    carried = {key: value for key, value in carried.items() if value not in ([], {})}
    return custom | ({DOCUMENT: carried} if carried else {})


# --- the types of rule ------------------------------------------------------------------------------------------------


def _text(entry: Section, subject: Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    yield _unenforced(entry, "a promise in prose", facts)


def _sql(entry: Section, subject: Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    query = entry.needed("query", "a rule of type sql")
    unit = entry.raw("unit")
    operator = _operator(entry)
    if query is None or operator is None:
        return
    if operator not in _RANGES and not isinstance(entry.data[operator], int | float):
        yield _unenforced(entry, "a query held against something other than a number", facts)
        return
    if isinstance(entry.data[operator], bool):
        yield _unenforced(entry, "a query held against true or false", facts)
        return
    reason = why_not_a_number(query)
    if reason is not None:
        yield _unenforced(entry, reason, facts)
        return
    threshold = _value_of(entry, operator, Unit.ROWS)
    if threshold is None:
        return
    if unit is not None:
        facts["custom"] = _with_carried(facts["custom"], {"unit": unit})
    yield rules.Query(sql=query, threshold=threshold, **facts)


def _custom(entry: Section, subject: Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    engine = entry.needed("engine", "a rule of type custom")
    if entry.raw("implementation") is None:
        entry.error("a rule of type custom has no 'implementation'", "give it the engine's own text")
    for key in (*_OPERATORS, "unit"):
        entry.raw(key)
    if engine == ENGINE and isinstance(entry.data.get("implementation"), dict):
        implementation = entry.section("implementation")
        rule = read_rule(implementation, subject.logical, facts) if implementation is not None else None
        if isinstance(rule, rules.NotEnforced):
            entry.warning(f"not enforced: {rule.reason}", "it is shown as skipped in every verdict")
        if rule is not None:
            yield rule
        return
    yield _unenforced(entry, f"a rule for another engine, {engine}", facts)


def _unenforced(entry: Section, reason: str, facts: dict[str, Any]) -> rules.NotEnforced:
    """A rule that is shown as skipped; its whole entry is carried, since nothing else says what it promises."""
    known = {key: value for key, value in facts.items() if key not in ("position", "custom")}
    return unenforced(entry, reason, custom={DOCUMENT: {"quality": entry.data}}, **known)


def _with_carried(custom: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {**custom, DOCUMENT: {**custom.get(DOCUMENT, {}), **more}}


def _library(entry: Section, subject: Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    written, metric = _metric(entry)
    unit = _unit(entry)
    arguments = entry.section("arguments")
    if written in _NEED_NO_OPERATOR and not any(operator in entry.data for operator in _OPERATORS):
        threshold: Threshold | None = NO_ROWS
    else:
        threshold = _threshold(entry, unit)
    if metric is not None:
        yield from _METRICS[metric](entry, arguments, subject, threshold, facts)
    if arguments is not None:
        arguments.close()


def _metric(entry: Section) -> tuple[str | None, str | None]:
    """The metric as it is written, and the name of ours for it."""
    former = entry.text("rule")
    written = entry.text("metric") or former
    if written is None:
        entry.error("a library rule has no 'metric'", f"give it one of {', '.join(_METRICS)}; prose has `type: text`")
        return None, None
    metric = _FORMER_METRICS.get(written, written)
    if metric not in _METRICS:
        near = nearest(written, _METRICS)
        hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(_METRICS)}"
        entry.error(f"unknown metric {written!r}", hint, "metric" if "metric" in entry else "rule")
        return written, None
    if former is not None:
        entry.warning("'rule' has been replaced in the standard", f"write `metric: {metric}`", "rule")
    return written, metric


def _unit(entry: Section) -> Unit | None:
    written = entry.text("unit")
    if written is None:
        return Unit.ROWS
    if written in (Unit.ROWS, Unit.PERCENT):
        return Unit(written)
    entry.error(f"unknown unit {written!r}", "use rows or percent", "unit")
    return None


def _operator(entry: Section) -> Operator | None:
    """The one operator of a rule; none, or more than one, is an error."""
    given = [Operator(key) for key in entry.data if key in _OPERATORS]
    for operator in given:
        entry.raw(operator.value)
    if len(given) == 1:
        return given[0]
    names = " and ".join(operator.value for operator in given)
    entry.error(
        f"a rule has one operator, not {names}" if given else "a rule has no operator",
        "keep one, and write a rule for each" if given else "add one, such as `mustBe: 0`",
        *(operator.value for operator in given[1:2]),
    )
    return None


def _threshold(entry: Section, unit: Unit | None) -> Threshold | None:
    """What the rule's number is held against; None where it has no usable operator, which is an error."""
    operator = _operator(entry)
    if operator is None:
        return None
    threshold = _value_of(entry, operator, unit)
    if threshold is not None and threshold.high is None:
        value: Any = threshold.value
        if value < 0 or (unit is Unit.PERCENT and value > 100):
            scale = "0 and 100 percent" if unit is Unit.PERCENT else "0 and the number of rows"
            message = f"{operator.value!r} is out of reach: it counts between {scale}"
            entry.warning(message, "correct it", operator.value)
    return threshold


def _value_of(entry: Section, operator: Operator, unit: Unit | None) -> Threshold | None:
    """The operator with its number or its two."""
    if operator in _RANGES:
        return _range(entry, operator, unit)
    if entry.data[operator] is None:
        entry.error(f"{operator.value!r} has no value", "give it a number", operator.value)
        return None
    value = entry.number(operator.value)
    return Threshold(operator, value, unit=unit) if value is not None and unit is not None else None


def _range(entry: Section, operator: Operator, unit: Unit | None) -> Threshold | None:
    bounds = entry.listed(operator.value)
    if len(bounds) != 2:
        if isinstance(entry.data[operator], list | None):
            entry.error(f"{operator.value!r} needs two numbers", f"write `{operator.value}: [1, 5]`", operator.value)
        return None
    low, high = entry.number_at(operator.value, 0), entry.number_at(operator.value, 1)
    if low is None or high is None:
        return None
    if low > high:
        entry.error(f"{operator.value!r} has its bounds reversed", f"write [{high}, {low}]", operator.value)
        return None
    return Threshold(operator, low, high, unit) if unit is not None else None


# --- the metrics of the library ---------------------------------------------------------------------------------------


def _null_values(
    entry: Section, arguments: Section | None, subject: Subject, threshold: Threshold | None, facts: dict[str, Any]
) -> Iterator[Rule]:
    if _of_property(entry, subject) and threshold is not None:
        yield rules.NullCount(threshold=threshold, **facts)


def _missing_values(
    entry: Section, arguments: Section | None, subject: Subject, threshold: Threshold | None, facts: dict[str, Any]
) -> Iterator[Rule]:
    listed = arguments.listed("missingValues") if arguments is not None else []
    if arguments is None or not listed:
        entry.error(
            "missingValues has no list of values", "write `arguments: {missingValues: [null, '']}`", "arguments"
        )
        return
    places = [("missingValues", at) for at in range(len(listed))]
    values = read_values(arguments, places, subject.logical, unfit=Level.WARNING)
    if _of_property(entry, subject) and threshold is not None:
        yield rules.MissingCount(missing_values=values, threshold=threshold, **facts)


def _invalid_values(
    entry: Section, arguments: Section | None, subject: Subject, threshold: Threshold | None, facts: dict[str, Any]
) -> Iterator[Rule]:
    # Before there were arguments, the rule `validValues` had its list beside its name.
    holder = entry if arguments is None and "validValues" in entry.data else arguments
    listed = holder.listed("validValues") if holder is not None else []
    pattern = holder.text("pattern") if holder is not None else None
    if holder is None or (not listed and pattern is None):
        entry.error(
            "invalidValues does not say what is valid",
            "write `arguments: {validValues: [...]}` or a pattern",
            "arguments",
        )
        return
    valid = read_values(holder, [("validValues", at) for at in range(len(listed))], subject.logical) if listed else None
    sound = pattern is None or check_pattern(holder, pattern, "pattern")
    if _of_property(entry, subject) and threshold is not None and sound:
        yield rules.InvalidCount(valid_values=valid, pattern=pattern, threshold=threshold, **facts)


def _duplicate_values(
    entry: Section, arguments: Section | None, subject: Subject, threshold: Threshold | None, facts: dict[str, Any]
) -> Iterator[Rule]:
    fields = arguments.texts("properties") if arguments is not None else ()
    if not fields and not subject.is_property:
        entry.error(
            "duplicateValues of a dataset has no properties", "write `arguments: {properties: [...]}`", "arguments"
        )
    elif threshold is not None:
        yield rules.DuplicateCount(fields=fields, threshold=threshold, **facts)


def _row_count(
    entry: Section, arguments: Section | None, subject: Subject, threshold: Threshold | None, facts: dict[str, Any]
) -> Iterator[Rule]:
    if threshold is not None and threshold.unit is Unit.PERCENT:
        entry.error("rowCount has no percentage", "write `unit: rows`, or leave the unit out", "unit")
        return
    if subject.is_property:
        entry.warning("rowCount is about the whole dataset", "move it to the quality of the schema object")
    if threshold is not None:
        yield rules.RowCount(threshold=threshold, **facts)


def _of_property(entry: Section, subject: Subject) -> bool:
    if not subject.is_property:
        entry.error("this metric is about one property", "move the rule to the quality of that property")
    return subject.is_property


_Metric = Callable[[Section, "Section | None", Subject, "Threshold | None", "dict[str, Any]"], Iterator[Rule]]

_METRICS: Final[dict[str, _Metric]] = {
    "nullValues": _null_values,
    "missingValues": _missing_values,
    "invalidValues": _invalid_values,
    "duplicateValues": _duplicate_values,
    "rowCount": _row_count,
}

_TYPES: Final[dict[str, Callable[[Section, Subject, dict[str, Any]], Iterator[Rule]]]] = {
    "library": _library,
    "text": _text,
    "sql": _sql,
    "custom": _custom,
}
