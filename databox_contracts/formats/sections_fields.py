"""`schema.fields` and `semantics` of a contract in six sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field as attribute
from typing import Final

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family, parse_type
from databox_contracts.errors import UnknownTypeError
from databox_contracts.formats.bounds import check_ranges
from databox_contracts.formats.odcs_types import logical_name
from databox_contracts.formats.odcs_values import read_values
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.formats.sections_conditions import read_condition
from databox_contracts.model import Dataset, Field
from databox_contracts.rules import Rule

DOCUMENT: Final = "$sections"
"""The name under which `custom` carries the form's own entries that the model has no place for."""

_UUID: Final = ("uuid", "guid")
_INLINE_ENUM: Final = re.compile(r"enum\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_INLINE_VALUE: Final = re.compile(r"\s*(?:'([^']*)'|\"([^\"]*)\"|([^\s,'\"]+))\s*(?:,|$)")

_MISPLACED: Final = {
    **dict.fromkeys(("required", "optional", "null"), "write `nullable: false` where nulls are not allowed"),
    **dict.fromkeys(("enum", "allowed_values"), "write `type: ENUM` and `values: [...]`"),
    **dict.fromkeys(("minimum", "maximum", "pattern", "check"), 'write it under `constraints`, as SQL: `["a > 0"]`'),
    **dict.fromkeys(("references",), "write `foreign_key: contract.field`"),
}


@dataclass
class Columns:
    """What the fields say about the table, gathered on the way."""

    names: tuple[str, ...]
    rules: list[Rule] = attribute(default_factory=list)
    keys: list[tuple[str, Section]] = attribute(default_factory=list)


def read_fields(schema: Section) -> tuple[tuple[Field, ...], tuple[Rule, ...]]:
    """The fields in order, and the rules about the table that they hold: its primary key, then references."""
    entries = list(schema.sections("fields"))
    names = [entry.data.get("name") for entry in entries]
    columns = Columns(tuple(name for name in names if isinstance(name, str)))
    found: dict[str, Field] = {}
    for entry in entries:
        field = _field(entry, columns)
        if field is None:
            continue
        if field.name in found:
            entry.error(f"the field {field.name!r} stands here again", "rename or remove one", "name")
            continue
        other = next((name for name in found if name.casefold() == field.name.casefold()), None)
        if other is not None:
            entry.warning(f"Spark takes {field.name!r} and {other!r} for the same column", "rename one", "name")
        found[field.name] = field
    key: tuple[Rule, ...] = ()
    if columns.keys:
        first = columns.keys[0][1].at("primary_key")
        key = (rules.PrimaryKey(fields=tuple(name for name, _ in columns.keys), position=first),)
    return tuple(found.values()), (*key, *columns.rules)


def _field(section: Section, columns: Columns) -> Field | None:
    name = section.needed("name", "a field")
    if name is None:
        section.carried(*section.data)
        return None
    section.field = name
    found: list[Rule] = []
    type_ = _type(section, found)
    logical = logical_name(None, type_)
    found.extend(_enum(section, logical))
    if section.flag("nullable") is False:
        found.append(rules.Required(position=section.at("nullable")))
    if section.flag("unique"):
        found.append(rules.Unique(position=section.at("unique")))
    if section.flag("primary_key"):
        columns.keys.append((name, section))
    for at in range(len(section.texts("constraints")) if isinstance(section.raw("constraints"), list) else 0):
        found.extend(read_condition(section, "constraints", at, field=name, logical=logical, columns=columns.names))
    if isinstance(section.data.get("constraints"), str):
        section.error("'constraints' must be a list", 'write `constraints: ["amount > 0"]`', "constraints")
    elif section.data.get("constraints") is not None and not isinstance(section.data["constraints"], list):
        section.listed("constraints")
    check_ranges(section, found, logical)
    _foreign_key(section, name, columns)
    default = _default(section, logical, found)
    field = Field(
        name=name,
        type=type_,
        rules=tuple(found),
        description=(section.text("description") or "").strip(),
        pii=section.flag("pii"),
        classification=section.text("classification"),
        tags=section.texts("tags"),
        deprecated=section.flag("deprecated") or False,
        examples=tuple(section.listed("examples")),
        default=default,
        position=section.position,
    )
    section.close(_MISPLACED)
    return field.completed()


def _type(section: Section, found: list[Rule]) -> DataType | None:
    """The type; one that also says what its values look like adds the rule of that."""
    spelling = section.text("type")
    if spelling is None or not spelling.strip():
        section.note("the field has no type, so none is checked", "give it a type")
        return None
    word = spelling.strip().lower()
    if word in _UUID:
        found.append(rules.Format(format="uuid", position=section.at("type")))
        return DataType(Family.STRING)
    if inline := _INLINE_ENUM.fullmatch(spelling.strip()):
        values = [next(part for part in parts if part is not None) for parts in _inline(inline[1])]
        if not values:
            section.error("'ENUM' lists no value", "write `type: ENUM` and `values: [...]`", "type")
        else:
            found.append(rules.Enum(values=tuple(values), position=section.at("type")))
        return DataType(Family.STRING)
    if word == "enum" and not section.listed("values"):
        section.error("an ENUM lists no 'values'", "write `values: [...]` below it", "type")
    try:
        return parse_type(spelling)
    except UnknownTypeError as error:
        near = nearest(word, ("uuid", "enum", "int64", "timestamp", "string", "decimal", "boolean"))
        section.error(f"unknown type {spelling[:60]!r}", f"did you mean {near!r}?" if near else error.hint, "type")
        return None


def _inline(text: str) -> Iterator[tuple[str | None, ...]]:
    for match in _INLINE_VALUE.finditer(text):
        yield match.groups()


def _enum(section: Section, logical: str | None) -> Iterator[Rule]:
    listed = section.listed("values")
    if not listed:
        if isinstance(section.data.get("values"), list) and (section.text("type") or "").strip().lower() != "enum":
            section.error("'values' allows no value at all", "list the allowed values, or leave it out", "values")
        return
    values = read_values(section, [("values", at) for at in range(len(listed))], logical)
    for at, value in enumerate(values):
        if value in values[:at]:
            section.warning("a value is listed twice", "remove one", "values", at)
    if values:
        yield rules.Enum(values=values, position=section.at("values"))


def _foreign_key(section: Section, name: str, columns: Columns) -> None:
    written = section.text("foreign_key")
    if written is None:
        return
    to, _, target = written.strip().rpartition(".")
    if not to or not target:
        section.error(
            f"the foreign key {written[:60]!r} names no field of a contract",
            "write `foreign_key: merchants.merchant.id`",
            "foreign_key",
        )
        return
    columns.rules.append(
        rules.ForeignKey(fields=(name,), to=to, to_fields=(target,), position=section.at("foreign_key"))
    )


def _default(section: Section, logical: str | None, found: list[Rule]) -> object:
    """The default, which has to be a value that the field may have."""
    if section.raw("default") is None:
        return None
    if isinstance(section.data["default"], list | dict):
        return section.data["default"]
    values = read_values(section, [("default",)], logical) if logical not in ("object", "array", "map") else ()
    for rule in found:
        if isinstance(rule, rules.Enum) and values and values[0] not in rule.values:
            section.error(
                f"the default {values[0]!r} is none of the allowed values", "add it, or correct it", "default"
            )
    return values[0] if values else None


def with_semantics(dataset: Dataset, section: Section) -> tuple[Dataset, dict[str, object]]:
    """The dataset with what the section says its fields mean, and the entries about no field of it, to be kept."""
    texts: dict[str, str] = {}
    kept: dict[str, object] = {}
    names = [field.name for field in dataset.fields]
    for name in section.data:
        text = section.text(name)
        if name not in names:
            near = nearest(name, names)
            hint = f"did you mean {near!r}?" if near else "declare it under `schema`, or remove it"
            section.warning(f"{name[:60]!r} is explained and is no field", hint, name)
            kept[name] = section.data[name]
        elif text is not None:
            texts[name] = text.strip()
    fields = tuple(
        field.model_copy(update={"semantics": texts[field.name]}) if field.name in texts else field
        for field in dataset.fields
    )
    return dataset.model_copy(update={"fields": fields}), kept
