"""The way to rename without breaking anybody: the new field beside the old one, which is deprecated and goes later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from databox_contracts.evolution.renaming import only_pairs, shape
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import PrimaryKey


def dual_emits(old: Contract, new: Contract) -> Iterator[str]:
    """A remark on each new optional field that appears beside a deprecated one of the same type.

    Both have to be of one level, and each the other's only candidate, as with a rename; a field that became deprecated
    in this version comes before those that were so already. Fields without a type are never paired.
    """
    known = {dataset.name: dataset for dataset in old.datasets}
    for dataset in new.datasets:
        if dataset.name in known:
            yield from _level(known[dataset.name].fields, dataset.fields, dataset, ())


def _level(before: Sequence[Field], after: Sequence[Field], dataset: Dataset, path: tuple[str, ...]) -> Iterator[str]:
    was = {field.name: field for field in before}
    added = {
        field.name: shape(field)
        for field in after
        if field.name not in was and not field.deprecated and _optional(field, dataset, path)
    }
    leaving = [field for field in after if field.deprecated and field.name in was]
    for fresh in (True, False):
        of_kind = {field.name: shape(field) for field in leaving if was[field.name].deprecated is not fresh}
        for name, beside in only_pairs(of_kind, added).items():
            del added[beside]
            here, there = (".".join((*path, one)) for one in (name, beside))
            yield (
                f"{there!r} is emitted beside {here!r}, which is deprecated; remove {here!r} in the next major version"
            )
    for field in after:
        had = was.get(field.name)
        if had is None:
            continue
        if had.fields and field.fields:
            yield from _level(had.fields, field.fields, dataset, (*path, field.name))
        elif had.item is not None and field.item is not None:
            yield from _level(had.item.fields, field.item.fields, dataset, (*path, field.name))


def _optional(field: Field, dataset: Dataset, path: tuple[str, ...]) -> bool:
    name = ".".join((*path, field.name))
    return not field.required and not any(
        isinstance(rule, PrimaryKey) and name in rule.fields for rule in dataset.rules
    )
