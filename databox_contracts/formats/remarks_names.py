"""Remarks about names: those that Spark takes for one another, and those that nothing is called by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from databox_contracts.datatypes import Family
from databox_contracts.errors import Finding, Level
from databox_contracts.formats.outline import Outline, Placed, path_of
from databox_contracts.formats.reading import nearest
from databox_contracts.model import Dataset, Field
from databox_contracts.rules import DuplicateCount, ForeignKey, Freshness, Latency, PrimaryKey, Retention, Rule, Unique

_TIMES: Final = (Family.DATE, Family.TIMESTAMP)


def repeated_names(outline: Outline) -> Iterator[Finding]:
    """A warning for two fields, or two datasets, whose names differ in case only: Spark resolves them without it."""
    seen: dict[str, str] = {}
    for dataset in outline.contract.datasets:
        other = seen.setdefault(dataset.name.casefold(), dataset.name)
        if other != dataset.name:
            message = f"Spark takes the datasets {dataset.name!r} and {other!r} for the same table"
            yield outline.finding(Level.WARNING, message, "rename one", dataset.position)
    for dataset in outline.contract.datasets:
        yield from _repeated(outline, dataset.fields, "")
    for _, name, field in outline.fields:
        if field.fields:
            yield from _repeated(outline, field.fields, f"{name}.")


def _repeated(outline: Outline, fields: Sequence[Field], before: str) -> Iterator[Finding]:
    columns = {field.column.casefold() for field in fields}
    if len(columns) == len(fields):
        return
    seen: dict[str, str] = {}
    for field in fields:
        other = seen.setdefault(field.column.casefold(), field.column)
        # The first of them is the one that the name is known by.
        again = other != field.column or any(one is not field and one.column == other for one in fields)
        is_first = next(one for one in fields if one.column.casefold() == field.column.casefold()) is field
        name = before + field.name
        if again and not is_first and not outline.said(repr(field.column), field=name):
            message = f"Spark takes {field.column!r} and {other!r} for the same column"
            yield outline.finding(Level.WARNING, message, "rename one", field.position, name)


# --- names in rules ---------------------------------------------------------------------------------------------------


def undeclared_names(outline: Outline) -> Iterator[Finding]:
    """A warning for each field that a key or a promise about time names and the contract does not declare."""
    for placed in outline.rules:
        for name in _names_of(placed.rule) if type(placed.rule) in _NAMING else ():
            if any(field.name == name for field in placed.dataset.fields):
                continue
            names = outline.names(placed.dataset)
            words = (name, "the relationship is of")
            said = any(outline.said(word, about=placed.position) for word in words)
            if name not in names and not said:
                yield _undeclared(outline, placed, name, names.declared)
    yield from _undeclared_by_consumers(outline)


_NAMING: Final = (Unique, PrimaryKey, DuplicateCount, ForeignKey, Freshness, Retention, Latency)


def _names_of(rule: Rule) -> Iterator[str]:
    match rule:
        case Unique() | PrimaryKey() | DuplicateCount() | ForeignKey():
            yield from rule.fields
        case Freshness() | Retention():
            yield from (rule.element,) if rule.element is not None else ()
        case Latency():
            yield from (name for name in (rule.element, rule.arrival_field) if name is not None)


def _undeclared(outline: Outline, placed: Placed, name: str, known: Sequence[str]) -> Finding:
    message = f"the {_words(placed.rule)} rule names {name[:60]!r}, which is no field of {placed.dataset.name!r}"
    return outline.finding(Level.WARNING, message, way_out(name, known), placed.position, placed.name)


def _words(rule: Rule) -> str:
    return rule.kind.replace("_", " ")


def way_out(name: str, known: Sequence[str]) -> str:
    """What to do about a name that is none of the known."""
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else f"it has {', '.join(known[:10]) or 'none'}"


def _undeclared_by_consumers(outline: Outline) -> Iterator[Finding]:
    contract = outline.contract
    known = [dataset.name for dataset in contract.datasets]
    for consumer in contract.consumers:
        place = None
        path = path_of(outline.data, "consumers")
        if path is not None:
            place = outline.at(*path)
        for name in consumer.datasets:
            if not any(name in (dataset.name, dataset.physical_name) for dataset in contract.datasets):
                message = f"the consumer {consumer.name!r} reads {name[:60]!r}, which is no dataset of the contract"
                yield outline.finding(Level.WARNING, message, way_out(name, known), place)
        read = [one for one in contract.datasets if not consumer.datasets or one.name in consumer.datasets]
        for name in consumer.fields:
            parts = [(one, name.removeprefix(f"{one.name}.")) for one in read]
            if read and not any(part in outline.names(one) for one, part in parts):
                declared = [field for one in read for field in outline.names(one).declared]
                message = f"the consumer {consumer.name!r} reads {name[:60]!r}, which is no field"
                yield outline.finding(Level.WARNING, message, way_out(name, declared), place)


def unfit_clocks(outline: Outline) -> Iterator[Finding]:
    """A warning for a promise about time over a field that holds no time."""
    for placed in outline.rules:
        if type(placed.rule) not in (Freshness, Retention, Latency):
            continue
        for name in _names_of(placed.rule):
            field = outline.names(placed.dataset).find(name)
            if field is not None and field.type is not None and field.type.family not in _TIMES:
                message = f"the {_words(placed.rule)} rule is about {name!r}, which is of the type {field.type}"
                hint = "name a field of the type date or timestamp"
                yield outline.finding(Level.WARNING, message, hint, placed.position, placed.name)


# --- references -------------------------------------------------------------------------------------------------------


def broken_references(outline: Outline) -> Iterator[Finding]:
    """An error for keys of different lengths, a warning for a reference to nothing within the contract."""
    datasets = outline.contract.datasets
    for placed in outline.rules:
        rule = placed.rule
        if not isinstance(rule, ForeignKey):
            continue
        parts = max(len(rule.fields), 1)
        if parts != len(rule.to_fields):
            message = f"the foreign key has {parts} fields and refers to {len(rule.to_fields)}"
            hint = "name as many fields as it refers to, in order"
            yield outline.finding(Level.ERROR, message, hint, placed.position, placed.name)
        target = _target(rule.to, datasets, outline)
        if target is None:
            # With a dot it may be a dataset of another contract.
            if "." not in rule.to and "/" not in rule.to and not outline.said(rule.to, about=placed.position):
                message = f"the foreign key refers to {rule.to[:60]!r}, which is no dataset of this contract"
                near = nearest(rule.to, [dataset.name for dataset in datasets])
                hint = f"did you mean {near!r}?" if near else "name the other contract too: `contract.dataset.field`"
                yield outline.finding(Level.WARNING, message, hint, placed.position, placed.name)
            continue
        names = outline.names(target)
        for name in rule.to_fields:
            if name not in names and not outline.said(name, about=placed.position):
                message = f"the foreign key refers to {name[:60]!r}, which is no field of {target.name!r}"
                hint = way_out(name, names.declared)
                yield outline.finding(Level.WARNING, message, hint, placed.position, placed.name)


def _target(to: str, datasets: Iterable[Dataset], outline: Outline) -> Dataset | None:
    contract = outline.contract
    for dataset in datasets:
        if to in (dataset.name, dataset.physical_name, f"{contract.id}.{dataset.name}"):
            return dataset
    return None
