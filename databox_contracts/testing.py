"""For users' own tests: contracts built in a line."""

from __future__ import annotations

from typing import Any

from databox_contracts.datatypes import parse_type
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import Rule


def build_field(name: str, type: str | None = None, *rules: Rule, **facts: Any) -> Field:
    """A field; `type` in any spelling, the parts of a nested one included, `facts` are attributes of `Field`."""
    return Field(name=name, type=parse_type(type) if type is not None else None, rules=rules, **facts).completed()


def build_contract(
    *fields: Field, rules: tuple[Rule, ...] = (), dataset: str = "t", version: str = "1.0.0", **facts: Any
) -> Contract:
    """A contract of one dataset; `facts` are attributes of `Contract`, of which `id` is "test" if not given."""
    one = Dataset(name=dataset, fields=fields, rules=rules)
    return Contract(**{"id": "test", "version": version, "datasets": (one,), **facts})
