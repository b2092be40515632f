"""Limits of a number of rows that allow none: the same promise as a rule about every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from databox_contracts import rules
from databox_contracts.rules import Rule, Scalar, Severity


@dataclass(frozen=True, slots=True)
class NoneOf:
    """The value is none of a list."""

    values: tuple[Scalar, ...]


Promise: TypeAlias = Rule | NoneOf


def row_promises(rule: Rule, *, depth: int = 0) -> tuple[Promise, ...]:
    """The rules about each row that hold exactly when the rule does; none where there are no such.

    Only for errors, since a target without severities would make an error of a warning. A rule that null breaks is
    given for columns only (`depth` 0): inside an object that is null itself nothing is required.
    """
    if rule.severity is not Severity.ERROR:
        return ()
    match rule:
        case rules.InvalidCount(threshold=threshold) if threshold.allows_none:
            found: list[Promise] = []
            if rule.valid_values is not None:
                found.append(rules.Enum(values=rule.valid_values))
            if rule.pattern is not None:
                found.append(rules.Pattern(pattern=rule.pattern))
            return tuple(found)
        case rules.MissingCount(threshold=threshold) if threshold.allows_none and (depth == 0 or not _takes_null(rule)):
            named = tuple(value for value in rule.missing_values if value is not None)
            required = (rules.Required(),) if _takes_null(rule) else ()
            return (*required, *((NoneOf(named),) if named else ()))
        case rules.NullCount(threshold=threshold) if threshold.allows_none and depth == 0:
            return (rules.Required(),)
        case _ if rule.kind in _OF_ROWS:
            return (rule,)
    return ()


def _takes_null(rule: Any) -> bool:
    return any(value is None for value in rule.missing_values)


VALUE_RULES: Final = (
    "enum",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusive_minimum",
    "exclusive_maximum",
    "multiple_of",
    "min_length",
    "max_length",
    "min_items",
    "max_items",
    "unique_items",
)
"""The kinds of rules about a single value that is there."""

_OF_ROWS: Final = ("required", *VALUE_RULES)
