"""`schema.fields` and `semantics` of a contract in six sections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field as attribute
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import UnknownTypeError
from databox_contracts.formats.attaching import logical_types
from databox_contracts.formats.bounds import check_ranges
from databox_contracts.formats.odcs_types import logical_name
from databox_contracts.formats.odcs_values import read_values
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.formats.sections_conditions import read_condition
from databox_contracts.formats.sections_types import read_word
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


PARTS: Final = {"items": "item", "key": "key", "value": "value"}
"""The entries of what an array or a map contains, and what constraints call it there."""


@dataclass
class Columns:
    """What the fields say about the table, gathered on the way."""

    names: tuple[str, ...]
    rules: list[Rule] = attribute(default_factory=list)
    keys: list[tuple[str, Section]] = attribute(default_factory=list)


@dataclass(frozen=True)
class _Place:
    """Where a field stands: what constraints call the fields around it, and whether those are all objects."""

    before: str = ""
    through_objects: bool = True
    root: str | None = None

    def inside(self, name: str) -> _Place:
        """The place of the parts of the object of that name here."""
        return _Place(f"{self.before}{name}.", self.through_objects, self.root)


def read_fields(schema: Section) -> tuple[tuple[Field, ...], tuple[Rule, ...]]:
    """The fields in order, and the rules about the table: its primary key, references, then table constraints.

    The key is of the fields that say `primary_key: true`, in their order, or the list `primary_key` of the schema.
    """
    names = [item.get("name") for item in schema.listed("fields") if isinstance(item, dict)]
    columns = Columns(tuple(name for name in names if isinstance(name, str)))
    found = _fields(schema, columns, _Place())
    key = tuple(name for name, _ in columns.keys)
    position = columns.keys[0][1].at("primary_key") if columns.keys else None
    if schema.data.get("primary_key") is not None:
        listed = schema.texts("primary_key")
        unknown = [name for name in listed if name not in logical_types(Dataset(name="-", fields=found))]
        if unknown:
            schema.error(f"{unknown[0]!r} is no field of the table", "name its fields", "primary_key")
        elif key and key != listed:
            schema.error("the fields name another primary key", "keep one of them", "primary_key")
        key, position = (() if unknown else listed), schema.at("primary_key")
    own: list[Rule] = [rules.PrimaryKey(fields=key, position=position)] if key else []
    constraints = _constraints(schema, None, None, columns.names)
    return found, (*own, *columns.rules, *constraints)


def _fields(holder: Section, columns: Columns, place: _Place) -> tuple[Field, ...]:
    found: dict[str, Field] = {}
    for entry in holder.sections("fields"):
        name = entry.needed("name", "a field")
        if name is None:
            entry.carried(*entry.data)
            continue
        field = _field(entry, name, columns, place)
        if field.name in found:
            entry.error(f"the field {field.name!r} stands here again", "rename or remove one", "name")
            continue
        other = next((name for name in found if name.casefold() == field.name.casefold()), None)
        if other is not None:
            entry.warning(f"Spark takes {field.name!r} and {other!r} for the same column", "rename one", "name")
        found[field.name] = field
    return tuple(found.values())


def _field(section: Section, name: str, columns: Columns, place: _Place) -> Field:
    called = place.before + name
    section.field = called
    found: list[Rule] = []
    type_ = _type(section, found)
    logical = logical_name(None, type_)
    found.extend(_enum(section, logical))
    if section.flag("nullable") is False:
        found.append(rules.Required(position=section.at("nullable")))
    if section.flag("unique"):
        found.append(rules.Unique(position=section.at("unique")))
    if section.flag("primary_key"):
        if place.through_objects:
            columns.keys.append((called, section))
        else:
            section.error("what an array or a map contains is no key of the table", "remove it", "primary_key")
    known = (*columns.names, place.root) if place.root is not None else columns.names
    found.extend(_constraints(section, called, logical, known, only_simple=not place.through_objects))
    check_ranges(section, found, logical)
    reference = _foreign_key(section)
    if reference is not None:
        to, target = reference
        facts: dict[str, Any] = {"to": to, "to_fields": (target,), "position": section.at("foreign_key")}
        if place.through_objects:
            columns.rules.append(rules.ForeignKey(fields=(called,), **facts))
        else:
            found.append(rules.ForeignKey(fields=(), **facts))
    default = _default(section, logical, found)
    parts = _parts(section, name, type_, columns, place)
    field = Field(
        name=name,
        column_name=section.text("column"),
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
        **parts,
    )
    section.close(_MISPLACED)
    return field.completed()


_HOLDS: Final = {
    Family.OBJECT: ("fields",),
    Family.VARIANT: ("fields", "items"),
    Family.ARRAY: ("items",),
    Family.MAP: ("key", "value"),
}


def holds(type_: DataType | None) -> tuple[str, ...]:
    """The entries of parts that a field of the type may have; all of them where no type is declared."""
    return ("fields", *PARTS) if type_ is None else _HOLDS.get(type_.family, ())


def _parts(section: Section, name: str, type_: DataType | None, columns: Columns, place: _Place) -> dict[str, Any]:
    """What the field contains: an object's `fields`, an array's `items`, a map's `key` and `value`."""
    found: dict[str, Any] = {}
    for key in ("fields", *PARTS):
        if section.raw(key) is None:
            continue
        if type_ is not None and key not in holds(type_):
            section.error(f"a field of the type {type_.family} has no {key!r}", "correct its type, or remove it", key)
        elif key == "fields":
            found["fields"] = _fields(section, columns, place.inside(name))
        elif (part := section.section(key)) is not None:
            found[PARTS[key]] = _field(part, PARTS[key], columns, _Place("", False, PARTS[key]))
    return found


def _constraints(
    section: Section, field: str | None, logical: str | None, columns: tuple[str, ...], *, only_simple: bool = False
) -> Iterator[Rule]:
    written = section.raw("constraints")
    if isinstance(written, str):
        section.error("'constraints' must be a list", 'write `constraints: ["amount > 0"]`', "constraints")
    elif not isinstance(written, list):
        section.listed("constraints")
    else:
        for at in range(len(section.texts("constraints"))):
            yield from read_condition(
                section, "constraints", at, field=field, logical=logical, columns=columns, only_simple=only_simple
            )


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
        return read_word(spelling)
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


def _foreign_key(section: Section) -> tuple[str, str] | None:
    """The dataset and its field that the entry names."""
    written = section.text("foreign_key")
    if written is None:
        return None
    to, _, target = written.strip().rpartition(".")
    if to and target:
        return to, target
    section.error(
        f"the foreign key {written[:60]!r} names no field of a contract",
        "write `foreign_key: merchants.merchant.id`",
        "foreign_key",
    )
    return None


def _default(section: Section, logical: str | None, found: list[Rule]) -> object:
    """The default, which has to be a value that the field may have."""
    if section.raw("default") is None:
        return None
    if isinstance(section.data["default"], list | dict):
        return section.data["default"]
    if logical in ("object", "array", "map"):
        section.warning(f"the default of {logical} fields must be a list or a mapping, and is ignored", None, "default")
        return None
    values = read_values(section, [("default",)], logical)
    for rule in found:
        if isinstance(rule, rules.Enum) and values and values[0] not in rule.values:
            section.error(
                f"the default {values[0]!r} is none of the allowed values", "add it, or correct it", "default"
            )
    return values[0] if values else None


def with_semantics(dataset: Dataset, section: Section) -> tuple[Dataset, dict[str, object]]:
    """The dataset with what the section says its fields mean, and the entries about no field of it, to be kept.

    A field of an object is named with dots.
    """
    texts: dict[str, str] = {}
    kept: dict[str, object] = {}
    names = list(logical_types(dataset))
    for name in section.data:
        text = section.text(name)
        if name not in names:
            near = nearest(name, names)
            hint = f"did you mean {near!r}?" if near else "declare it under `schema`, or remove it"
            section.warning(f"{name[:60]!r} is explained and is no field", hint, name)
            kept[name] = section.data[name]
        elif text is not None:
            texts[name] = text.strip()
    fields = tuple(_explained(field, field.name, texts) for field in dataset.fields)
    return dataset.model_copy(update={"fields": fields}), kept


def _explained(field: Field, dotted: str, texts: Mapping[str, str]) -> Field:
    inner = tuple(_explained(part, f"{dotted}.{part.name}", texts) for part in field.fields)
    if inner == field.fields and dotted not in texts:
        return field
    return field.model_copy(update={"fields": inner, "semantics": texts.get(dotted, field.semantics)})
