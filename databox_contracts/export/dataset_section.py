"""One dataset of a contract as a section of its page: fields, rules and guarantees in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from databox_contracts import rules
from databox_contracts.export import cells
from databox_contracts.export.losses import Place, field_places
from databox_contracts.export.page import (
    Anchors,
    Block,
    Cell,
    Code,
    Facts,
    Items,
    Line,
    Prose,
    Row,
    Section,
    Table,
    listed,
    prose,
)
from databox_contracts.export.wording import HIDDEN, is_plain, rule_line, type_words, values_line
from databox_contracts.model import Contract, Dataset, Field, Mode
from databox_contracts.rules import Rule

__all__ = ["dataset_section", "hides_values"]

# What is promised of the table as time goes by, not of its rows.
_GUARANTEES: Final = (rules.Freshness, rules.Latency, rules.Completeness, rules.Retention)
_SAID_BY_COLUMNS: Final = (rules.Required, rules.Unique)
_COLUMNS: Final = ("Field", "Type", "Required", "Key", "Rules", "Description", "Protection")
_MODES: Final[dict[str, tuple[str, dict[Mode, str]]]] = {
    "tables": (
        "New tables",
        {
            Mode.EVOLVE: "are made",
            Mode.FREEZE: "are refused",
            Mode.DISCARD_ROW: "are left out",
            Mode.DISCARD_VALUE: "are left out",
        },
    ),
    "columns": (
        "Columns that are not declared",
        {
            Mode.EVOLVE: "become columns of the table",
            Mode.FREEZE: "stop the table",
            Mode.DISCARD_ROW: "are left out, and with them the rows in which they have a value",
            Mode.DISCARD_VALUE: "are left out",
        },
    ),
    "data_type": (
        "Values of another type",
        {
            Mode.EVOLVE: "go to a column of their own",
            Mode.FREEZE: "stop the table",
            Mode.DISCARD_ROW: "are left out with their rows",
            Mode.DISCARD_VALUE: "become null",
        },
    ),
}


def dataset_section(contract: Contract, dataset: Dataset, anchors: Anchors) -> Section:
    """The section of a dataset. Each field has an anchor; values of a field that may not be shown are not there."""
    anchor = anchors.named("dataset", dataset.name)
    places = tuple(_told(field_places(contract, dataset)))
    masked = hides_values(contract, dataset)
    guarantees = [rule for rule in dataset.rules if isinstance(rule, _GUARANTEES)]
    unenforced = [rule for rule in dataset.rules if isinstance(rule, rules.NotEnforced)]
    others = [rule for rule in dataset.rules if not isinstance(rule, (*_GUARANTEES, rules.NotEnforced))]
    parts = (
        ("Fields", "fields", (_fields(contract, dataset, places, anchors),)),
        ("Rules", "rules", _rules(others, masked)),
        ("Guarantees", "guarantees", _rules(guarantees, masked)),
        ("Promises that are not enforced", "not-enforced", _rules(unenforced, masked)),
        ("Custom properties", "custom-properties", tuple(_custom(dataset, places))),
    )
    sections = tuple(
        Section(title, anchors.named(name, dataset.name), blocks) for title, name, blocks in parts if blocks
    )
    return Section(f"Dataset {dataset.name}", anchor, tuple(_about(dataset)), sections)


def hides_values(contract: Contract, dataset: Dataset) -> bool:
    """Whether rules of the whole dataset show no values: they do not always say which fields those are of."""
    return any(place.masked for place in field_places(contract, dataset))


def _about(dataset: Dataset) -> Iterator[Block]:
    found: dict[str, Cell] = {
        "Table": cells.code(dataset.table_name),
        "Business name": cells.text(dataset.business_name),
        "Tags": listed(dataset.tags),
    }
    if dataset.modes is not None:
        for name, (label, words) in _MODES.items():
            found[label] = cells.text(words[getattr(dataset.modes, name)])
    yield cells.facts(f"The dataset {dataset.name}", found)
    if dataset.description.strip():
        yield Prose(prose(dataset.description))


def _rules(found: Iterable[Rule], masked: bool) -> tuple[Block, ...]:
    lines = tuple(rule_line(rule, masked=masked) for rule in found)
    return (Items(lines),) if lines else ()


# --- fields -----------------------------------------------------------------------------------------------------------


def _told(places: Iterable[Place]) -> Iterator[Place]:
    """The places but those parts of arrays and maps of which the type of the whole says everything."""
    for place in places:
        if place.field is not None and (place.part is None or _says_something(place.field)):
            yield place


_TYPE: Final = ("name", "type", "fields", "item", "key", "value", "position", "custom")


def _says_something(part: Field) -> bool:
    """Whether more is said of the part than its type."""
    said = (getattr(part, name) != setting.default for name, setting in Field.model_fields.items() if name not in _TYPE)
    return any(said) or any(not name.startswith("$") for name in part.custom)


def _fields(contract: Contract, dataset: Dataset, places: tuple[Place, ...], anchors: Anchors) -> Block:
    if not places:
        return Prose((("No field is declared.",),))
    keys = [rule for rule in dataset.rules if isinstance(rule, rules.PrimaryKey)]
    rows = tuple(
        Row(
            _cells(place, place.field, keys, contract.governance.pii_class),
            anchors.named("field", dataset.name, place.name),
        )
        for place in places
        if place.field is not None
    )
    return Table(f"Fields of {dataset.name}", _COLUMNS, rows)


def _cells(place: Place, field: Field, keys: list[rules.PrimaryKey], pii_class: str | None) -> tuple[Cell, ...]:
    listed_rules = [rule for rule in field.rules if not (isinstance(rule, _SAID_BY_COLUMNS) and is_plain(rule))]
    return (
        cells.code(place.name),
        cells.text(type_words(field)),
        cells.text("yes" if place.required else "no"),
        tuple(_key(place, field, keys)),
        tuple(rule_line(rule, masked=place.masked) for rule in listed_rules),
        tuple(_description(place, field)),
        tuple(_protection(place, field, pii_class)),
    )


def _key(place: Place, field: Field, keys: list[rules.PrimaryKey]) -> Iterator[Line]:
    for key in keys:
        if place.name in key.fields:
            of_several = f", {key.fields.index(place.name) + 1} of {len(key.fields)}" if len(key.fields) > 1 else ""
            yield (f"primary key{of_several}",)
    if field.unique:
        yield ("unique",)
    if field.partition_position is not None:
        yield (f"partition {field.partition_position}",)


def _description(place: Place, field: Field) -> Iterator[Line]:
    if field.deprecated:
        yield ("Deprecated.",)
    yield from prose(field.description)
    for at, line in enumerate(prose(field.semantics)):
        yield line if at else ("Meaning: ", *line)
    if field.business_name:
        yield ("Business name: ", field.business_name)
    if field.column_name is not None and field.column_name != field.name:
        yield ("Column: ", Code(field.column_name))
    if field.default is not None:
        yield ("Default: ", *((HIDDEN,) if place.masked else values_line([field.default])))
    if field.examples:
        yield ("Examples: ", *((HIDDEN,) if place.masked else values_line(field.examples)))
    for line in cells.codes(field.sources):
        yield ("Made from: ", *line)
    if field.tags:
        yield ("Tags: ", ", ".join(field.tags))


def _protection(place: Place, field: Field, pii_class: str | None) -> Iterator[Line]:
    if field.pii is not None:
        yield ("personal data" if field.pii else "no personal data",)
    elif pii_class is not None:
        yield (f"personal data (class {pii_class})",)
    if field.classification is not None:
        yield (f"classification: {field.classification}",)
    if place.masked:
        yield (f"values are {HIDDEN}",)


# --- the document's own properties ------------------------------------------------------------------------------------


def _custom(dataset: Dataset, places: Iterable[Place]) -> Iterator[Block]:
    yield from cells.custom_facts(f"Custom properties of {dataset.name}", dataset.custom)
    rows = [
        # What a document says of a field may be a value of it.
        (cells.code(place.name), cells.text(name), cells.text(HIDDEN) if place.masked else cell)
        for place in places
        if place.field is not None
        for block in cells.custom_facts("", place.field.custom)
        if isinstance(block, Facts)
        for name, cell in block.rows
    ]
    if rows:
        yield cells.table(f"Custom properties of the fields of {dataset.name}", ("Field", "Property", "Value"), rows)
