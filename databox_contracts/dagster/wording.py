"""A contract's promises as short texts, for column schemas and check descriptions."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from databox_contracts.model import Contract, Field
from databox_contracts.plan import Check
from databox_contracts.rules import NotEnforced, Rule, Severity

MOST_VALUES: Final = 20
"""Longer lists of allowed values are cut; the contract has them all."""

_COMMON: Final = frozenset(field.name for field in fields(Rule))


def rule_text(rule: Rule) -> str:
    """What the rule promises: its kind and its parameters, such as "minimum -40" or "enum EWR, JFK, LGA".

    A severity below error is named.
    """
    if isinstance(rule, NotEnforced):
        return f"{rule.description or rule.name or 'a promise'} (not enforced: {rule.reason})"
    words, names = _own(type(rule))
    given = [(name, value) for name in names if (value := getattr(rule, name)) is not None and value != ()]
    if len(given) == 1:
        words += f" {_value_text(given[0][1])}"
    elif given:
        words += " " + ", ".join(f"{name.replace('_', ' ')} {_value_text(value)}" for name, value in given)
    return words if rule.severity is Severity.ERROR else f"{words} ({rule.severity})"


def _own(kind: type[Rule]) -> tuple[str, tuple[str, ...]]:
    """What that kind of rule is called, and its parameters, looked up once."""
    found = _OWN.get(kind)
    if found is None:
        names = tuple(field.name for field in fields(kind) if field.name not in _COMMON)
        found = _OWN[kind] = kind.kind.replace("_", " "), names
    return found


_OWN: Final[dict[type[Rule], tuple[str, tuple[str, ...]]]] = {}


def check_text(check: Check) -> str:
    """The rule with its place: "temp: minimum -40"."""
    if not check.path or check.field is None:
        return rule_text(check.rule)
    return f"{check.field}: {rule_text(check.rule)}"


def type_text(field: Field) -> str:
    """The declared type with everything inside it; "any" where the contract declares none."""
    if field.fields:
        return f"object({', '.join(f'{part.name} {type_text(part)}' for part in field.fields)})"
    if field.item is not None:
        return f"array({type_text(field.item)})"
    if field.key is not None and field.value is not None:
        return f"map({type_text(field.key)}, {type_text(field.value)})"
    return str(field.type) if field.type is not None else "any"


def contract_text(contract: Contract) -> str:
    """The contract with its version and owner, as every description and message of ours begins."""
    owner = contract.owning_team
    return f"{contract.title} {contract.version}, " + (f"owned by {owner}" if owner else "no owner declared")


def _value_text(value: Any) -> str:
    if not isinstance(value, tuple):
        return "null" if value is None else str(value)
    shown = ", ".join(_value_text(part) for part in value[:MOST_VALUES])
    return shown if len(value) <= MOST_VALUES else f"{shown} and {len(value) - MOST_VALUES} more"
