"""A contract as plain data in one order, the same for the same promises in whatever dialect they were written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel

from databox_contracts.datatypes import DataType
from databox_contracts.formats.odcs_rules import KINDS, mapping_of
from databox_contracts.model import Contract, Dataset
from databox_contracts.normalizing import with_keys_at_fields
from databox_contracts.rules import Rule, Severity

_OF_THE_DOCUMENT: Final = ("position", "findings", "source", "dialect")
_ORDER: Final = {kind: at for at, kind in enumerate(KINDS)}


def canonical(contract: Contract, *, carried: bool = True) -> dict[str, Any]:
    """What the contract promises and says, without where it stands in which document.

    Left out is what is not said. Rules stand in the order of `rules.py`, those of a kind in that of their text; a key
    of one field is that field's. Without `carried`, what a dialect has beyond the model (`custom["$odcs"]`) is left
    out too.
    """
    return _Canonical(carried).model(contract)


class _Canonical:
    def __init__(self, carried: bool) -> None:
        self._carried = carried

    def model(self, model: BaseModel) -> dict[str, Any]:
        """The attributes that are not the default, in the model's order."""
        found: dict[str, Any] = {}
        for name, setting in type(model).model_fields.items():
            value = getattr(model, name)
            if name in _OF_THE_DOCUMENT or (value == setting.default and type(value) is type(setting.default)):
                continue
            plain = self._attribute(name, value)
            if plain not in ({}, []):
                found[name] = plain
        if isinstance(model, Contract) and model.name == model.id:
            # Some dialects have no id and some no name: the one then stands for the other.
            del found["name"]
        return found

    def _attribute(self, name: str, value: Any) -> Any:
        match name:
            case "custom":
                return self._custom(value)
            case "rules":
                return self._rules(value)
            case "description":
                return value.strip()
        return self.plain(value)

    def _custom(self, custom: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: self.plain(custom[name])
            for name in sorted(custom)
            if (self._carried or not name.startswith("$")) and custom[name] != {}
        }

    def _rules(self, found: Iterable[Rule]) -> list[dict[str, Any]]:
        # Where rules of a kind stand depends on the dialect: one has options, another a list of checks.
        ordered = [(_ORDER[rule.kind], self._rule(rule)) for rule in found]
        return [rule for _, rule in sorted(ordered, key=lambda one: (one[0], repr(one[1])))]

    def _rule(self, rule: Rule) -> dict[str, Any]:
        facts = {
            "name": rule.name,
            "severity": rule.severity if rule.severity is not Severity.ERROR else None,
            "dimension": rule.dimension,
            "description": rule.description.strip() or None,
            "custom": self._custom(rule.custom) or None,
        }
        said = {name: value for name, value in facts.items() if value is not None}
        return {name: self.plain(value) for name, value in {**mapping_of(rule), **said}.items()}

    def plain(self, value: Any) -> Any:
        """A value as dicts, lists and scalars; a number without a fraction is a whole one."""
        match value:
            case None | bool():
                return value
            case DataType():
                # What it contains is said by the field's parts.
                return str(replace(value, item=None, key=None, value=None, fields=None))
            case Dataset():
                return self.model(with_keys_at_fields(value))
            case BaseModel():
                return self.model(value)
            case Enum():
                return value.value
            case int() | float() | Decimal():
                return _number(value)
            case date():
                return value.isoformat()
            case Mapping():
                return {str(key): self.plain(item) for key, item in value.items()}
            case list() | tuple():
                return [self.plain(item) for item in value]
            case _:
                return str(value)


def _number(value: float | Decimal) -> int | float | str:
    exact = Decimal(str(value))
    if not exact.is_finite():
        return str(value)
    if exact == exact.to_integral_value():
        return int(exact)
    near = float(exact)
    return near if Decimal(repr(near)) == exact else str(exact)
