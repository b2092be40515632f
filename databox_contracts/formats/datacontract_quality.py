"""`quality` lists of models and fields in the Data Contract Specification 1.x."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.errors import Level
from databox_contracts.formats.datacontract_types import DOCUMENT
from databox_contracts.formats.identity import extensions
from databox_contracts.formats.odcs_options import check_pattern, unenforced
from databox_contracts.formats.odcs_sql import why_not_a_number
from databox_contracts.formats.odcs_values import read_values
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.rules import Dimension, Operator, Rule, Severity, Threshold, Unit

_OPERATORS: Final[dict[str, Operator]] = {
    **{operator.value: operator for operator in Operator},
    "mustBeGreaterThanOrEqualTo": Operator.GREATER_OR_EQUAL,
    "mustBeLessThanOrEqualTo": Operator.LESS_OR_EQUAL,
}
_RANGES: Final = (Operator.BETWEEN, Operator.NOT_BETWEEN)
_SEVERITIES: Final = {
    "error": Severity.ERROR,
    "warning": Severity.WARNING,
    "info": Severity.INFO,
}
_PLACEHOLDER: Final = re.compile(r"\$?\{(\w+)\}")


@dataclass(frozen=True)
class _Subject:
    """What a rule is about: a model, or one field of it and that field's logical type."""

    column: str | None
    logical: str | None


def read_quality(section: Section, *, column: str | None, logical: str | None) -> list[Rule]:
    """The rules of a `quality` list; what an entry says beside its promise, or instead, is carried by its rule."""
    subject = _Subject(column, logical)
    found: list[Rule] = []
    if isinstance(section.raw("quality"), dict):
        section.error("'quality' of a model or a field must be a list", "write `quality:\n- type: sql`", "quality")
        return []
    for entry in section.sections("quality"):
        judged = list(_entry(entry, subject))
        beside = entry.carried("dialect") | extensions(entry)
        for rule in judged:
            carried = {"quality": entry.data} if isinstance(rule, rules.NotEnforced) else beside
            found.append(replace(rule, custom={DOCUMENT: carried}) if carried else rule)
    return found


def _entry(entry: Section, subject: _Subject) -> Iterator[Rule]:
    kind = entry.text("type") or _implied_type(entry)
    reader = _TYPES.get(kind)
    if reader is None:
        near = nearest(kind, _TYPES)
        hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(_TYPES)}"
        entry.error(f"unknown type of quality rule {kind[:40]!r}", hint, "type")
        entry.carried(*entry.data)
        return
    facts = {"name": entry.text("name") or None, "description": (entry.text("description") or "").strip()}
    severity = (entry.text("severity") or "error").strip().lower()
    if severity not in _SEVERITIES:
        entry.warning(
            f"the unknown severity {severity[:40]!r} counts as error", "use error, warning or info", "severity"
        )
    facts["severity"] = _SEVERITIES.get(severity, Severity.ERROR)
    if entry.data.get("dimension") in tuple(Dimension):
        facts["dimension"] = Dimension(entry.raw("dimension"))
    yield from reader(entry, subject, facts)


def _implied_type(entry: Section) -> str:
    for key, kind in (("query", "sql"), ("metric", "library"), ("rule", "library"), ("implementation", "custom")):
        if entry.data.get(key) is not None:
            return kind
    return "text"


def _text(entry: Section, subject: _Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    yield unenforced(entry, "a promise in prose", **facts)


def _custom(entry: Section, subject: _Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    engine = entry.needed("engine", "a rule of type custom")
    # Its text is the other engine's, whatever it holds.
    entry.carried(*entry.data)
    yield unenforced(entry, f"a rule for another engine, {engine}", **facts)


def _of_engine(entry: Section, subject: _Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    kind = entry.text("type")
    entry.carried(*entry.data)
    yield unenforced(entry, f"a rule for another engine, {kind}", **facts)


def _sql(entry: Section, subject: _Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    query = entry.needed("query", "a rule of type sql")
    dialect = entry.text("dialect")
    threshold = _threshold(entry, Unit.ROWS)
    if query is None or threshold is None:
        return
    sql = _filled(entry, query.strip(), subject)
    if sql is None:
        return
    if (reason := why_not_a_number(sql)) is not None:
        yield unenforced(entry, reason, "query", **facts)
        return
    if dialect is not None and dialect.strip().lower() not in ("spark", "databricks"):
        entry.note(f"the query is written in {dialect[:40]} and runs as Spark's SQL", None, "dialect")
    yield rules.Query(sql=sql, threshold=threshold, position=entry.position, **facts)


def _filled(entry: Section, query: str, subject: _Subject) -> str | None:
    """The query with the placeholders of ODCS; None, and an error, where it has one that nothing stands for."""
    names = dict.fromkeys(("model", "table"), "${table}")
    if subject.column is not None:
        names |= dict.fromkeys(("field", "column"), "${column}")
    unknown = next((name for name in _PLACEHOLDER.findall(query) if name not in names), None)
    if unknown is not None:
        known = ", ".join(f"{{{name}}}" for name in names)
        entry.error(f"the query has the unknown placeholder {{{unknown[:40]}}}", f"there are {known}", "query")
        return None
    return _PLACEHOLDER.sub(lambda match: names[match[1]], query)


# --- thresholds -------------------------------------------------------------------------------------------------------


def _threshold(entry: Section, unit: Unit) -> Threshold | None:
    """What the number is held against; None where there is no usable operator, which is an error."""
    given = [key for key in entry.data if key in _OPERATORS]
    for key in given:
        entry.raw(key)
    if len(given) != 1:
        message = f"a rule has one operator, not {' and '.join(given)}" if given else "a rule has no operator"
        hint = "keep one, and write a rule for each" if given else "add one, such as `mustBe: 0`"
        entry.error(message, hint, *given[1:2])
        return None
    (key,) = given
    operator = _OPERATORS[key]
    if operator not in _RANGES:
        if entry.data[key] is None:
            entry.error(f"{key!r} has no value", "give it a number", key)
            return None
        value = entry.number(key)
        return Threshold(operator, value, unit=unit) if value is not None else None
    if not isinstance(entry.data[key], list) or len(entry.data[key]) != 2:
        entry.error(f"{key!r} needs two numbers", f"write `{key}: [1, 5]`", key)
        return None
    low, high = entry.number_at(key, 0), entry.number_at(key, 1)
    if low is None or high is None:
        return None
    if low > high:
        entry.error(f"{key!r} has its bounds reversed", f"write [{high}, {low}]", key)
        return None
    return Threshold(operator, low, high, unit)


# --- the library ------------------------------------------------------------------------------------------------------


def _library(entry: Section, subject: _Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    written = entry.text("metric") or entry.text("rule")
    arguments = entry.section("arguments")
    unit = (entry.text("unit") or "rows").strip().lower()
    if unit not in (Unit.ROWS, Unit.PERCENT):
        entry.error(f"unknown unit {unit[:40]!r}", "use rows or percent", "unit")
        return
    reader = _METRICS.get(written or "")
    if reader is None:
        near = nearest(written, _METRICS) if written else None
        hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(_METRICS)}"
        message = f"unknown metric {written[:40]!r}" if written else "a library rule has no 'metric'"
        entry.error(message, hint, *(("metric",) if "metric" in entry else ()))
        return
    threshold = _threshold(entry, Unit(unit))
    if threshold is not None:
        where = facts | {"threshold": threshold, "position": entry.position}
        yield from reader(entry, arguments if arguments is not None else entry, subject, where)
    if arguments is not None:
        arguments.close()


def _of_field(entry: Section, subject: _Subject) -> bool:
    if subject.column is None:
        entry.error("this metric is about one field", "move the rule to the quality of that field")
    return subject.column is not None


def _null_values(entry: Section, arguments: Section, subject: _Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    if _of_field(entry, subject):
        yield rules.NullCount(**facts)


def _missing_values(entry: Section, arguments: Section, subject: _Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    listed = arguments.listed("missingValues")
    if not listed:
        entry.error("missingValues has no list of values", "write `arguments: {missingValues: [null, '']}`")
        return
    places = [("missingValues", at) for at in range(len(listed))]
    values = read_values(arguments, places, subject.logical, unfit=Level.WARNING)
    if _of_field(entry, subject):
        yield rules.MissingCount(missing_values=values, **facts)


def _invalid_values(entry: Section, arguments: Section, subject: _Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    listed, pattern = arguments.listed("validValues"), arguments.text("pattern")
    if not listed and pattern is None:
        entry.error("invalidValues does not say what is valid", "write `arguments: {validValues: [...]}` or a pattern")
        return
    places = [("validValues", at) for at in range(len(listed))]
    valid = read_values(arguments, places, subject.logical) if listed else None
    sound = pattern is None or check_pattern(arguments, pattern, "pattern")
    if _of_field(entry, subject) and sound:
        yield rules.InvalidCount(valid_values=valid, pattern=pattern, **facts)


def _duplicate_values(entry: Section, arguments: Section, subject: _Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    fields = arguments.texts("properties") or arguments.texts("fields")
    if subject.column is None and not fields:
        entry.error("duplicateValues of a model names no fields", "write `arguments: {properties: [...]}`")
    elif subject.column is not None and fields:
        entry.error("a key of several fields is about the model", "move the rule to the quality of the model")
    else:
        yield rules.DuplicateCount(fields=fields, **facts)


def _row_count(entry: Section, arguments: Section, subject: _Subject, facts: dict[str, Any]) -> Iterator[Rule]:
    if facts["threshold"].unit is Unit.PERCENT:
        entry.error("rowCount has no percentage", "write `unit: rows`, or leave the unit out", "unit")
    elif subject.column is not None:
        entry.error("rowCount is about the whole model", "move the rule to the quality of the model")
    else:
        yield rules.RowCount(**facts)


_METRICS: Final[dict[str, Callable[[Section, Section, _Subject, dict[str, Any]], Iterator[Rule]]]] = {
    "nullValues": _null_values,
    "missingValues": _missing_values,
    "invalidValues": _invalid_values,
    "duplicateValues": _duplicate_values,
    "rowCount": _row_count,
}

_TYPES: Final[dict[str, Callable[[Section, _Subject, dict[str, Any]], Iterator[Rule]]]] = {
    "text": _text,
    "sql": _sql,
    "library": _library,
    "custom": _custom,
    "great-expectations": _of_engine,
    "soda": _of_engine,
}
