"""What is to be said of a contract once it is read, in whatever dialect: promises that are carried and not checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from databox_contracts.errors import Finding, Level
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import Rule

Placed: TypeAlias = tuple[Rule, str | None]
"""A rule, and the dotted name of the field it is about."""


def remarks(contract: Contract, source: str) -> Iterator[Finding]:
    """Findings about the rules of a contract in declaration order; `source` is what they call the document."""
    for dataset in contract.datasets:
        for rule, field in _rules(dataset):
            if rule.unenforced is not None:
                yield Finding(source, Level.NOTE, rule.unenforced, rule.position or dataset.position, field=field)


def _rules(dataset: Dataset) -> Iterator[Placed]:
    for field in dataset.fields:
        yield from _rules_of(field, field.name)
    for rule in dataset.rules:
        yield rule, ", ".join(getattr(rule, "fields", ())) or None


def _rules_of(field: Field, name: str) -> Iterator[Placed]:
    for rule in field.rules:
        yield rule, name
    for part in field.parts:
        # The fields of an array's objects read as the array's own: `items.sku`, as in the ids of checks.
        yield from _rules_of(part, name if part is field.item else f"{name}.{part.name}")
