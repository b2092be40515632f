"""Rules that a document says apart from the fields they are about, put where they belong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from databox_contracts.datatypes import Family
from databox_contracts.formats.odcs_types import logical_name
from databox_contracts.formats.sodacl import SodaRule
from databox_contracts.model import Dataset, Field
from databox_contracts.rules import Rule


def attached(dataset: Dataset, found: Iterable[SodaRule]) -> Dataset:
    """The dataset with the rules of columns at their fields, after those there, and the others at itself.

    A rule about a column that the dataset does not declare is the reader's to report; it is left out.
    """
    by_field: dict[str, list[Rule]] = {}
    own: list[Rule] = []
    for one in found:
        if one.column is None:
            own.append(one.rule)
        else:
            by_field.setdefault(one.column, []).append(one.rule)
    if not by_field and not own:
        return dataset
    fields = tuple(_with_rules(field, field.name, by_field) for field in dataset.fields)
    return dataset.model_copy(update={"fields": fields, "rules": (*dataset.rules, *own)})


def _with_rules(field: Field, dotted: str, found: Mapping[str, list[Rule]]) -> Field:
    inner = tuple(_with_rules(part, f"{dotted}.{part.name}", found) for part in field.fields)
    more = found.get(dotted, [])
    if not more and inner == field.fields:
        return field
    return field.model_copy(update={"rules": (*field.rules, *more), "fields": inner})


def logical_types(dataset: Dataset) -> dict[str, str | None]:
    """The logical type of every field that a dotted path through objects leads to, in order of declaration."""
    return dict(_logical(dataset.fields, ""))


def _logical(fields: tuple[Field, ...], before: str) -> Iterator[tuple[str, str | None]]:
    for field in fields:
        yield before + field.name, logical_name(None, field.type)
        yield from _logical(field.fields, f"{before}{field.name}.")


def clocks(dataset: Dataset) -> list[str]:
    """The required timestamps: where there is one, freshness and retention are about it without naming it."""
    return [
        field.name
        for field in dataset.fields
        if field.required and field.type is not None and field.type.family is Family.TIMESTAMP
    ]
