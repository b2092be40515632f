"""Rules back into words of the Data Contract Specification: entries of a field, and of `quality`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field as attribute
from decimal import Decimal
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.formats.bounds import contradictions
from databox_contracts.formats.datacontract_carried import carried_by
from databox_contracts.formats.datacontract_values import APPLIES, BOUNDS, FORMATS, LENGTHS
from databox_contracts.formats.odcs_custom import DOCUMENT as STANDARD
from databox_contracts.formats.odcs_options import pattern_mistake
from databox_contracts.formats.odcs_rules import ENGINE
from databox_contracts.formats.odcs_sql import why_not_a_number
from databox_contracts.formats.odcs_values import TEMPORAL
from databox_contracts.formats.odcs_writer_rules import fits
from databox_contracts.rules import NO_ROWS, Operator, Rule, Severity, Threshold, Unit

_MOST: Final = 2**31 - 1


@dataclass
class Written:
    """What the rules of one model or field become."""

    entries: dict[str, Any] = attribute(default_factory=dict)
    quality: list[dict[str, Any]] = attribute(default_factory=list)

    def in_order(self) -> dict[str, Any]:
        """The entries of a field in one order, whatever that of the rules is."""
        return {key: self.entries[key] for key in _ORDER if key in self.entries}


def write_rules(found: Iterable[Rule], logical: str | None, *, of_field: bool) -> Written:
    """The entries of a field of that logical type, or of a model. What neither can say is left out."""
    written = Written()
    said: list[Rule] = []
    for rule in found:
        if isinstance(rule, rules.NotEnforced):
            _write_carried(rule, written)
        elif of_field and _write_word(rule, logical, written, said):
            said.append(rule)
        elif (entry := _entry(rule, logical, of_field)) is not None:
            written.quality.append(entry)
    return written


# --- entries of a field -----------------------------------------------------------------------------------------------

_FLAGS: Final[dict[type[Rule], str]] = {rules.Required: "required", rules.Unique: "unique"}

# The entry and the rule's attribute that it holds.
_WORDS: Final[dict[object, tuple[str, str]]] = {
    rules.Enum: ("enum", "values"),
    rules.Format: ("format", "format"),
    rules.Pattern: ("pattern", "pattern"),
    **{kind: (key, "length") for key, kind in LENGTHS.items()},
    **{kind: (key, "limit") for key, kind in BOUNDS.items()},
}


_ORDER: Final = (*_FLAGS.values(), *(key for key, _ in _WORDS.values()), "references")


def _write_word(rule: Rule, logical: str | None, written: Written, said: list[Rule]) -> bool:
    """Writes a rule that an entry of the field says; whether one does."""
    if rule.severity is not Severity.ERROR:
        return False
    flag = _FLAGS.get(type(rule))
    if flag is not None:
        if flag in written.entries or (isinstance(rule, rules.Unique) and rule.fields):
            return False
        written.entries[flag] = True
        return True
    key, name = _WORDS.get(type(rule), ("", ""))
    if not key or key in written.entries or not _is_read(key, getattr(rule, name), logical):
        return False
    if any(contradictions([*said, rule], logical)):
        return False
    written.entries[key] = getattr(rule, name)
    return True


def _is_read(key: str, value: Any, logical: str | None) -> bool:
    """Whether the entry would be read as the same rule."""
    if key in APPLIES and logical not in APPLIES[key]:
        return False
    match key:
        case "enum":
            return bool(value) and all(fits(one, logical) for one in value)
        case "pattern":
            return pattern_mistake(value) is None
        case "format":
            return value in FORMATS
        case "minLength" | "maxLength":
            return bool(0 <= value <= _MOST)
        case _ if logical in TEMPORAL:
            return isinstance(value, str) and fits(value, logical)
        case _:
            return is_number(value) and (logical != "integer" or value == int(value))


def is_number(value: Any) -> bool:
    """Whether it can be written as a number."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value)


# --- quality ----------------------------------------------------------------------------------------------------------

_OPERATORS: Final = {
    Operator.GREATER_OR_EQUAL: "mustBeGreaterThanOrEqualTo",
    Operator.LESS_OR_EQUAL: "mustBeLessThanOrEqualTo",
}
"""What a query's threshold is called where the library's has the standard's name."""

_OWN: Final = ("quality", "format", "references")


def _entry(rule: Rule, logical: str | None, of_field: bool) -> dict[str, Any] | None:
    said = _in_other_words(rule)
    writer = _PROMISES.get(type(said))
    promise = writer(said, logical, of_field) if writer is not None else None
    if promise is None:
        return None
    facts = {
        "type": promise.pop("type"),
        "name": rule.name,
        "description": rule.description or None,
        "severity": str(rule.severity) if rule.severity is not Severity.ERROR else None,
        "dimension": str(rule.dimension) if rule.dimension is not None else None,
        **promise,
    }
    beside = {key: value for key, value in carried_by(rule).items() if key not in _OWN and facts.get(key) is None}
    return {key: value for key, value in facts.items() if value is not None} | beside


def _in_other_words(rule: Rule) -> Rule:
    """The rule as the count of rows that break it, where no entry of a field says it so: of a key of several fields, or
    with a severity.
    """
    facts: dict[str, Any] = {"severity": rule.severity, "threshold": NO_ROWS}
    match rule:
        case rules.Unique():
            return rules.DuplicateCount(fields=rule.fields, **facts)
        case rules.Required():
            return rules.NullCount(**facts)
        case rules.Enum():
            return rules.InvalidCount(valid_values=rule.values, **facts)
        case rules.Pattern():
            return rules.InvalidCount(pattern=rule.pattern, **facts)
    return rule


def _held_against(threshold: Threshold, names: Mapping[Operator, str] | None = None) -> dict[str, Any] | None:
    bounds = [threshold.value] if threshold.high is None else [threshold.value, threshold.high]
    if not all(is_number(bound) for bound in bounds) or bounds != sorted(bounds):
        return None
    key = (names or {}).get(threshold.operator, threshold.operator.value)
    unit = {"unit": str(threshold.unit)} if threshold.unit is not Unit.ROWS else {}
    return {key: bounds if len(bounds) > 1 else bounds[0], **unit}


def _library(name: str, threshold: Threshold, **arguments: Any) -> dict[str, Any] | None:
    held = _held_against(threshold)
    given = {key: value for key, value in arguments.items() if value is not None}
    if held is None:
        return None
    return {"type": "library", "rule": name, **({"arguments": given} if given else {}), **held}


def _null_values(rule: Any, logical: str | None, of_field: bool) -> dict[str, Any] | None:
    return _library("nullValues", rule.threshold) if of_field else None


def _missing_values(rule: Any, logical: str | None, of_field: bool) -> dict[str, Any] | None:
    if not of_field or not rule.missing_values or not all(fits(one, logical) for one in rule.missing_values):
        return None
    return _library("missingValues", rule.threshold, missingValues=rule.missing_values)


def _invalid_values(rule: Any, logical: str | None, of_field: bool) -> dict[str, Any] | None:
    valid, pattern = rule.valid_values, rule.pattern
    if not of_field or valid == () or (valid is None and pattern is None):
        return None
    if not all(fits(one, logical) for one in valid or ()) or (pattern is not None and pattern_mistake(pattern)):
        return None
    return _library("invalidValues", rule.threshold, validValues=valid, pattern=pattern)


def _duplicate_values(rule: Any, logical: str | None, of_field: bool) -> dict[str, Any] | None:
    if of_field == bool(rule.fields):
        return None
    return _library("duplicateValues", rule.threshold, properties=rule.fields or None)


def _row_count(rule: Any, logical: str | None, of_field: bool) -> dict[str, Any] | None:
    return None if of_field or rule.threshold.unit is not Unit.ROWS else _library("rowCount", rule.threshold)


_PLACEHOLDER: Final = re.compile(r"\$?\{(\w+)\}")
_NAMES: Final = {"table": "{model}", "model": "{model}"}
_NAMES_OF_FIELD: Final = {**_NAMES, "column": "{field}", "field": "{field}"}


def _query(rule: Any, logical: str | None, of_field: bool) -> dict[str, Any] | None:
    names = _NAMES_OF_FIELD if of_field else _NAMES
    held = _held_against(rule.threshold, _OPERATORS)
    unknown = any(name not in names for name in _PLACEHOLDER.findall(rule.sql))
    if held is None or unknown or rule.threshold.unit is not Unit.ROWS or why_not_a_number(rule.sql) is not None:
        return None
    query = _PLACEHOLDER.sub(lambda match: names[match[1]], rule.sql)
    return {"type": "sql", "query": query, **held}


_PROMISES: Final[Mapping[type[Rule], Callable[[Any, str | None, bool], dict[str, Any] | None]]] = {
    rules.NullCount: _null_values,
    rules.MissingCount: _missing_values,
    rules.InvalidCount: _invalid_values,
    rules.DuplicateCount: _duplicate_values,
    rules.RowCount: _row_count,
    rules.Query: _query,
}


# --- what is not evaluated --------------------------------------------------------------------------------------------


def _write_carried(rule: Rule, written: Written) -> None:
    """Writes what a document said of a promise that is not evaluated: in its own words, else as prose."""
    carried = carried_by(rule)
    if isinstance(carried.get("quality"), Mapping):
        written.quality.append(dict(carried["quality"]))
    elif any(key in carried for key in ("format", "references")):
        written.entries |= {key: carried[key] for key in ("format", "references") if key in carried}
    elif (told := _told(rule)) is not None:
        written.quality.append(told)


def _told(rule: Rule) -> dict[str, Any] | None:
    standard = rule.custom.get(STANDARD)
    entry = standard.get("quality", {}) if isinstance(standard, Mapping) else {}
    engine = entry.get("engine") if isinstance(entry, Mapping) else None
    facts = {"name": rule.name} if rule.name is not None else {}
    about = {**facts, **({"description": rule.description} if rule.description else {})}
    if isinstance(engine, str) and engine.strip() and engine != ENGINE and entry.get("implementation") is not None:
        return {"type": "custom", **about, "engine": engine, "implementation": entry["implementation"]}
    return {"type": "text", **about} if rule.description else None
