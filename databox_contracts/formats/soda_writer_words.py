"""One check in the words of either generation of Soda contracts, and which checks may be said as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field as attribute, replace
from typing import Any, Final

from databox_contracts.formats.odcs_rules import KINDS
from databox_contracts.formats.soda_checks import usual_qualifier
from databox_contracts.formats.soda_values import PLAIN_NAME
from databox_contracts.rules import Operator, Rule, Severity, Threshold, Unit

FIRST, SECOND = 1, 2
"""The generations of Soda contracts."""


@dataclass(frozen=True)
class Said:
    """A check to be written: its type, the rules that it is read as, and what it is set to.

    `limits` is empty for the type's own default; two are a lower and an upper one. `unit` is that of an age. The name
    and the severity are those of the rules, which agree in them.
    """

    kind: str
    means: tuple[Rule, ...]
    body: Mapping[str, Any] = attribute(default_factory=dict)
    limits: tuple[Threshold, ...] = ()
    unit: str | None = None

    @property
    def of_table(self) -> bool:
        """Whether it stands among the checks of the dataset rather than among those of a column."""
        return self.kind in _OF_TABLES or "columns" in self.body


_OF_TABLES: Final = ("row_count", "freshness", "failed_rows", "metric")


# --- checks said as one -----------------------------------------------------------------------------------------------


_ORDER: Final = ("row_count", "freshness", "missing", "invalid", "duplicate", "aggregate", "failed_rows", "metric")
_RULES: Final = tuple(KINDS)


def grouped(checks: Iterable[Said]) -> list[list[Said]]:
    """The checks by type, those that one check can say together; a check joins none but the last of its type.

    Other dialects keep the order of the rules of a kind, and not that of kinds.
    """
    groups: list[list[Said]] = []
    for check in sorted(checks, key=lambda one: (_ORDER.index(one.kind), _RULES.index(one.means[0].kind))):
        last = next((group for group in reversed(groups) if group[0].kind == check.kind), None)
        if last is not None and together([*last, check]) is not None:
            last.append(check)
        else:
            groups.append([check])
    return groups


def together(checks: list[Said]) -> Said | None:
    """The one check that says what all of them do, or None: settings of one default, or a range with an open bound."""
    first, *others = checks
    found = first
    for other in others:
        if (found.means[0].name, found.means[0].severity) != (other.means[0].name, other.means[0].severity):
            return None
        means = (*found.means, *other.means)
        if found.kind == "invalid" and not found.limits and not other.limits and not found.body.keys() & other.body:
            found = replace(found, means=means, body={**found.body, **other.body})
        elif found.body == other.body and found.unit == other.unit and _is_range((*found.limits, *other.limits)):
            found = replace(found, means=means, limits=(*found.limits, *other.limits))
        else:
            return None
    return found


def _is_range(limits: tuple[Threshold, ...]) -> bool:
    if len(limits) != 2 or limits[0].unit is not limits[1].unit:
        return False
    (least, most), strict = limits, (Operator.GREATER_THAN, Operator.LESS_THAN)
    bounds = least.operator in _LOWER and most.operator in _UPPER and least.value < most.value
    # With both bounds in it, it is a range of one threshold.
    return bounds and (least.operator in strict or most.operator in strict)


_LOWER: Final = {Operator.GREATER_THAN: "greater_than", Operator.GREATER_OR_EQUAL: "greater_than_or_equal"}
_UPPER: Final = {Operator.LESS_THAN: "less_than", Operator.LESS_OR_EQUAL: "less_than_or_equal"}


# --- entries ----------------------------------------------------------------------------------------------------------


def entry_of(check: Said, generation: int, before: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The entry of a list of checks; `before` are those that stand in the list already."""
    return _first(check) if generation == FIRST else _second(check, before)


def _second(check: Said, before: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    rule = check.means[0]
    found: dict[str, Any] = {} if rule.name is None else {"name": rule.name}
    qualifier = usual_qualifier(1 + sum(check.kind in other for other in before))
    if qualifier is not None:
        found["qualifier"] = qualifier
    found |= check.body
    threshold = _threshold(check)
    if rule.severity is not Severity.ERROR:
        # A level stands beside a comparison.
        threshold = {**(threshold or {"must_be": 0}), "level": "warn"}
    return {check.kind: found | ({"threshold": threshold} if threshold else {})}


def _threshold(check: Said) -> dict[str, Any]:
    if not check.limits:
        return {}
    first = check.limits[0]
    found: dict[str, Any] = {}
    if first.unit is Unit.PERCENT:
        found["metric"] = "percent"
    if check.unit is not None:
        found["unit"] = check.unit
    if len(check.limits) > 1:
        bounds = {(_LOWER | _UPPER)[limit.operator]: limit.value for limit in check.limits}
        return found | {"must_be_between": bounds}
    if first.high is not None:
        bounds = {"greater_than_or_equal": first.value, "less_than_or_equal": first.high}
        return found | {_WORDS[first.operator]: bounds}
    return found | {_WORDS[first.operator]: first.value}


_WORDS: Final = {
    Operator.MUST_BE: "must_be",
    Operator.MUST_NOT_BE: "must_not_be",
    Operator.GREATER_THAN: "must_be_greater_than",
    Operator.GREATER_OR_EQUAL: "must_be_greater_than_or_equal",
    Operator.LESS_THAN: "must_be_less_than",
    Operator.LESS_OR_EQUAL: "must_be_less_than_or_equal",
    Operator.BETWEEN: "must_be_between",
    Operator.NOT_BETWEEN: "must_be_not_between",
}

# --- the first generation ---------------------------------------------------------------------------------------------


def _first(check: Said) -> dict[str, Any]:
    rule = check.means[0]
    found: dict[str, Any] = {"type": _former_type(check)}
    if rule.name is not None:
        found["name"] = rule.name
    for key, value in check.body.items():
        if isinstance(value, Mapping) and key == "valid_format":
            plain = value["name"] == PLAIN_NAME
            found["valid_regex" if plain else key] = value["regex" if plain else "name"]
        elif key != "function":
            found[_FORMER_KEYS.get(key, key)] = value
    for limit in check.limits:
        word = _WORDS[limit.operator] + ("_to" if limit.operator in _OR_EQUAL else "")
        found[word] = limit.value if limit.high is None else [limit.value, limit.high]
    return found | ({"level": "warn"} if rule.severity is not Severity.ERROR else {})


def _former_type(check: Said) -> str:
    if check.kind in _COUNTED:
        if not check.limits:
            return f"no_{check.kind}_values"
        return f"{check.kind}_{'percent' if check.limits[0].unit is Unit.PERCENT else 'count'}"
    if check.kind == "freshness":
        return f"freshness_in_{check.unit}s"
    if check.kind == "metric":
        return "metric_query" if "query" in check.body else "metric_expression"
    return str(check.body.get("function", check.kind))


_FORMER_KEYS: Final = {"valid_reference_data": "valid_values_reference_data"}
_COUNTED: Final = ("missing", "invalid", "duplicate")
_OR_EQUAL: Final = (Operator.GREATER_OR_EQUAL, Operator.LESS_OR_EQUAL)
