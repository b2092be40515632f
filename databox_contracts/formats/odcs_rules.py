"""Rules that the standard has no word for: `type: custom, engine: databox`, with the rule's kind and its attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field as Attribute, fields
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.formats.odcs_values import read_values
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.rules import Operator, Rule, Threshold, Unit

ENGINE: Final = "databox"
"""The engine that such a rule names in `quality`."""

_DERIVED: Final = (rules.Present, rules.HasType, rules.Undeclared)

KINDS: Final[dict[str, type[Rule]]] = {
    kind.kind: kind
    for kind in vars(rules).values()
    if isinstance(kind, type) and issubclass(kind, Rule) and kind is not Rule and kind not in _DERIVED
}
"""Every rule that a document may name, by its kind, in the order of `rules.py`."""

_COMMON: Final = tuple(attribute.name for attribute in fields(Rule))


def own_attributes(kind: type[Rule]) -> tuple[Attribute[Any], ...]:
    """What a kind of rule has beside what every rule has, in order."""
    return tuple(attribute for attribute in fields(kind) if attribute.name not in _COMMON)


def mapping_of(rule: Rule) -> dict[str, Any]:
    """The kind of a rule and those of its own attributes that are not the default."""
    found: dict[str, Any] = {"rule": rule.kind}
    for attribute in own_attributes(type(rule)):
        value = getattr(rule, attribute.name)
        # Equal is not the same here: 0 is no False.
        if attribute.default is not MISSING and value == attribute.default and type(value) is type(attribute.default):
            continue
        found[attribute.name] = threshold_entries(value) if isinstance(value, Threshold) else value
    return found


def threshold_entries(threshold: Threshold, *, unit: bool = True) -> dict[str, Any]:
    """A threshold as the standard has it: an operator with its value, and the unit where that is not rows."""
    value = threshold.value if threshold.high is None else [threshold.value, threshold.high]
    found: dict[str, Any] = {threshold.operator.value: value}
    if unit and threshold.unit is not Unit.ROWS:
        found["unit"] = threshold.unit.value
    return found


def read_rule(section: Section, logical: str | None, facts: Mapping[str, Any]) -> Rule | None:
    """The rule of an `implementation`; what is wrong with it is an error, and gives None.

    `logical` is the logical type of the property it is about, `facts` are the attributes that every rule has.
    """
    written = section.needed("rule", "a rule of ours")
    kind = KINDS.get(written or "")
    if kind is None:
        if written is not None:
            near = nearest(written, KINDS)
            hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(KINDS)}"
            section.error(f"unknown rule {written!r}", hint, "rule")
        return None
    found: dict[str, Any] = {}
    complete = True
    for attribute in own_attributes(kind):
        if section.raw(attribute.name) is None:
            if attribute.default is MISSING:
                section.error(f"the rule {kind.kind!r} has no {attribute.name!r}", f"write `{attribute.name}: ...`")
                complete = False
            continue
        value = _READERS[str(attribute.type)](section, attribute.name, logical)
        complete = complete and value is not None
        found[attribute.name] = value
    section.close()
    return kind(**found, **facts) if complete else None


# --- one reader for each type of attribute ----------------------------------------------------------------------------

_OPERATORS: Final = tuple(operator.value for operator in Operator)
_RANGES: Final = (Operator.BETWEEN, Operator.NOT_BETWEEN)


def _threshold(section: Section, key: str, logical: str | None) -> Threshold | None:
    entries = section.section(key)
    if entries is None:
        return None
    given = [name for name in entries.data if name in _OPERATORS]
    unit = entries.text("unit") or Unit.ROWS.value
    if len(given) != 1 or unit not in tuple(Unit):
        entries.error("a threshold has one operator, in rows or percent", "write `{mustBe: 0}`")
        return None
    operator = Operator(given[0])
    entries.raw(operator.value)
    entries.close()
    if operator not in _RANGES:
        value = entries.number(operator.value)
        return Threshold(operator, value, unit=Unit(unit)) if value is not None else None
    if len(entries.listed(operator.value)) != 2:
        entries.error(f"{operator.value!r} needs two numbers", f"write `{operator.value}: [1, 5]`", operator.value)
        return None
    low, high = (entries.number_at(operator.value, at) for at in (0, 1))
    return Threshold(operator, low, high, Unit(unit)) if low is not None and high is not None else None


def _values(section: Section, key: str, logical: str | None) -> tuple[rules.Scalar, ...]:
    return read_values(section, [(key, at) for at in range(len(section.listed(key)))], logical)


def _limit(section: Section, key: str, logical: str | None) -> rules.Limit | None:
    number = section.tried_number(key)
    return number if number is not None else section.text(key)


def _text(section: Section, key: str, logical: str | None) -> str | None:
    return section.text(key)


def _texts(section: Section, key: str, logical: str | None) -> tuple[str, ...]:
    return section.texts(key)


def _number(section: Section, key: str, logical: str | None) -> rules.Number | None:
    return section.number(key)


def _count(section: Section, key: str, logical: str | None) -> int | None:
    return section.count(key)


def _expected(section: Section, key: str, logical: str | None) -> str | int | None:
    return section.count(key) if isinstance(section.data[key], int) else section.text(key)


_Reader = Callable[[Section, str, "str | None"], Any]

# By the annotation in `rules.py`; a test asks for each.
_READERS: Final[dict[str, _Reader]] = {
    "str": _text,
    "str | None": _text,
    "str | int | None": _expected,
    "int": _count,
    "float": _number,
    "float | None": _number,
    "Number": _number,
    "Limit": _limit,
    "Threshold": _threshold,
    "tuple[str, ...]": _texts,
    "tuple[Scalar, ...]": _values,
    "tuple[Scalar, ...] | None": _values,
}
