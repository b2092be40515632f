"""One form for what dialects write in several ways, so that contracts can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import DuplicateCount, ForeignKey, Rule, Unique


def without_dialects(contract: Contract) -> Contract:
    """The contract without what its dialect says beyond the model, which another dialect cannot say."""
    datasets = tuple(
        dataset.model_copy(
            update={
                "custom": _own(dataset.custom),
                "rules": _plain_rules(dataset.rules),
                "fields": tuple(_plain_field(field) for field in dataset.fields),
            }
        )
        for dataset in contract.datasets
    )
    return contract.model_copy(update={"custom": _own(contract.custom), "datasets": datasets})


def _plain_field(field: Field) -> Field:
    parts: dict[str, Any] = {
        name: _plain_field(part) for name in ("item", "key", "value") if (part := getattr(field, name)) is not None
    }
    return field.model_copy(
        update={
            "custom": _own(field.custom),
            "rules": _plain_rules(field.rules),
            "fields": tuple(_plain_field(part) for part in field.fields),
            **parts,
        }
    )


def _plain_rules(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    return tuple(replace(rule, custom=_own(rule.custom)) for rule in rules)


def _own(custom: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in custom.items() if not name.startswith("$")}


def with_keys_at_fields(dataset: Dataset) -> Dataset:
    """The dataset with each key of one field at that field, where other dialects say it."""
    moved: dict[str, list[Rule]] = {}
    kept: list[Rule] = []
    for rule in dataset.rules:
        fields = rule.fields if isinstance(rule, Unique | DuplicateCount | ForeignKey) else ()
        if len(fields) == 1 and dataset.trail(fields[0]) is not None:
            moved.setdefault(fields[0], []).append(replace(rule, fields=()))  # type: ignore[call-arg]
        else:
            kept.append(rule)
    if not moved:
        return dataset
    fields_with = tuple(_with_moved(field, field.name, moved) for field in dataset.fields)
    return dataset.model_copy(update={"rules": tuple(kept), "fields": fields_with})


def _with_moved(field: Field, dotted: str, moved: Mapping[str, list[Rule]]) -> Field:
    inner = tuple(_with_moved(part, f"{dotted}.{part.name}", moved) for part in field.fields)
    return field.model_copy(update={"rules": (*field.rules, *moved.get(dotted, ())), "fields": inner})
