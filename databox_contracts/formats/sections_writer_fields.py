"""Fields back into the entries of `schema.fields`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.formats.attaching import logical_types
from databox_contracts.formats.odcs_types import logical_name
from databox_contracts.formats.odcs_writer_rules import fits
from databox_contracts.formats.sections_fields import PARTS, holds
from databox_contracts.formats.sections_types import whole_word, word
from databox_contracts.formats.sections_writer_constraints import Subject, constraints, sayable
from databox_contracts.model import Dataset, Field
from databox_contracts.rules import Rule

_TEXT: Final = DataType(Family.STRING)
_ONLY_WHOLE: Final = ("object", "array", "map")


@dataclass(frozen=True)
class _Table:
    """What a field needs to know of its table: the rules about fields, its key, and the table without its rules."""

    bare: Dataset
    columns: tuple[str, ...]
    references: Mapping[int, list[rules.ForeignKey]]
    flagged: tuple[str, ...]


def schema_entries(dataset: Dataset) -> dict[str, Any]:
    """`fields`, and what the schema says of the table as a whole: a key in an order of its own, and constraints."""
    own = sayable(dataset.rules)
    key = _primary_key(dataset, own)
    columns = tuple(field.name for field in dataset.fields)
    in_order = tuple(name for name in columns if name in key) == key
    references: dict[int, list[rules.ForeignKey]] = {}
    for rule in own:
        trail = dataset.trail(rule.fields[0]) if isinstance(rule, rules.ForeignKey) and len(rule.fields) == 1 else None
        if trail is not None and isinstance(rule, rules.ForeignKey):
            references.setdefault(id(trail[-1]), []).append(rule)
    bare = Dataset(name=dataset.name, fields=tuple(_bare(field) for field in dataset.fields))
    table = _Table(bare, columns, references, key if in_order else ())
    return {
        "primary_key": () if in_order else key,
        "constraints": constraints(own, Subject(bare, columns)),
        "fields": [{"name": field.name, **_entry(field, (field.name,), table, dataset)} for field in dataset.fields],
    }


def writable(dataset: Dataset) -> Dataset:
    """The dataset without what no document can declare: a field without a name, with another's, or in a plain value."""
    return dataset.model_copy(update={"fields": _writable_fields(dataset.fields)})


def _writable_fields(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    named: dict[str, Field] = {}
    for field in fields:
        if field.name.strip():
            named.setdefault(field.name, _writable(field))
    return tuple(named.values())


def _writable(field: Field) -> Field:
    if not field.parts:
        return field
    held = holds(field.type)
    parts: dict[str, Any] = {
        name: _writable(part) if key in held and (part := getattr(field, name)) is not None else None
        for key, name in PARTS.items()
    }
    fields = _writable_fields(field.fields) if "fields" in held else ()
    return field.model_copy(update={"fields": fields, **parts})


def _bare(field: Field) -> Field:
    inside: dict[str, Any] = {
        name: _bare(part) for name in PARTS.values() if (part := getattr(field, name)) is not None
    }
    return Field(name=field.name, type=field.type, fields=tuple(_bare(part) for part in field.fields), **inside)


def _primary_key(dataset: Dataset, own: list[Rule]) -> tuple[str, ...]:
    key = next((rule.fields for rule in own if isinstance(rule, rules.PrimaryKey)), ())
    known = logical_types(dataset)
    return key if all(name in known for name in key) and len(set(key)) == len(key) else ()


def _entry(field: Field, path: tuple[str, ...], table: _Table, dataset: Dataset | None) -> dict[str, Any]:
    """The entries of a field but its name; `dataset` is None inside an array or a map, where paths start anew."""
    found = sayable(field.rules)
    logical = logical_name(None, field.type)
    columns = table.columns if dataset is not None else (*table.columns, path[0])
    subject = Subject(table.bare, columns, path, field.type, nested=dataset is None)
    values = _taken(found, lambda rule: isinstance(rule, rules.Enum) and _can_be_listed(rule, subject))
    uuid = _taken(found, lambda rule: field.type == _TEXT and isinstance(rule, rules.Format) and rule.format == "uuid")
    required = _taken(found, lambda rule: isinstance(rule, rules.Required))
    reachable = dataset is not None and is_reached(dataset, path, field)
    unique = None if reachable else _taken(found, lambda rule: isinstance(rule, rules.Unique) and not rule.fields)
    references = [*table.references.get(id(field), ()), *(r for r in found if isinstance(r, rules.ForeignKey))]
    said = [rule for rule in (values, uuid, required) if rule is not None]
    conditions = constraints(found, subject, said)
    whole = whole_word(field) if field.parts and not _is_referring(field, table) else None
    spelled = "UUID" if uuid is not None else whole or _word(field, listed=values is not None)
    enums = [rule for rule in (values, *found) if isinstance(rule, rules.Enum)]
    entries = {
        "column": field.column_name if (field.column_name or "").strip() else None,
        "type": spelled,
        "values": list(values.values) if isinstance(values, rules.Enum) else None,
        "nullable": False if required is not None else None,
        "unique": True if unique is not None else None,
        "primary_key": True if dataset is not None and len(path) == 1 and path[0] in table.flagged else None,
        "foreign_key": next((text for text in map(_reference, references) if text is not None), None),
        "default": field.default if _can_be_default(field.default, logical, enums) else None,
        "description": field.description.strip() or None,
        "constraints": conditions,
        **({} if whole is not None else _contents(field, path, table, dataset)),
        "pii": field.pii,
        "classification": field.classification,
        "tags": field.tags,
        "deprecated": field.deprecated or None,
        "examples": field.examples,
    }
    return {name: value for name, value in entries.items() if value not in (None, [], ())}


def is_reached(dataset: Dataset, path: tuple[str, ...], field: Field) -> bool:
    """Whether the dotted path leads to that very field; a name with a dot in it may stand in the way."""
    trail = dataset.trail(".".join(path))
    return trail is not None and trail[-1] is field


def _taken(found: list[Rule], wanted: Any) -> Rule | None:
    """The first such rule, no longer among the others."""
    rule = next((rule for rule in found if wanted(rule)), None)
    if rule is not None:
        found.remove(rule)
    return rule


# --- types ------------------------------------------------------------------------------------------------------------


def _word(field: Field, *, listed: bool) -> str | None:
    if field.type is None:
        return None
    return "ENUM" if listed and field.type == _TEXT else word(field.type)


def _is_referring(field: Field, table: _Table) -> bool:
    """Whether the table's rules make a part of the field refer to another table."""
    return any(id(part) in table.references or _is_referring(part, table) for part in field.parts)


def _contents(field: Field, path: tuple[str, ...], table: _Table, dataset: Dataset | None) -> dict[str, Any]:
    """What an object, an array or a map holds, where the spelling of its type does not say it all."""
    inner = [(part, (*path, part.name)) for part in field.fields]
    parts = [(key, name, getattr(field, name)) for key, name in PARTS.items()]
    return {
        "fields": [{"name": part.name, **_entry(part, below, table, dataset)} for part, below in inner] or None,
        **{key: _entry(part, (name,), table, None) for key, name, part in parts if part is not None},
    }


# --- values -----------------------------------------------------------------------------------------------------------


def _is_value(value: Any, logical: str | None) -> bool:
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return False
    return fits(value, logical)


def _can_be_listed(rule: rules.Enum, subject: Subject) -> bool:
    fitting = bool(rule.values) and all(_is_value(value, subject.logical) for value in rule.values)
    return fitting and subject.may_promise([rule])


def _can_be_default(value: Any, logical: str | None, enums: list[rules.Enum]) -> bool:
    if isinstance(value, Mapping | list | tuple):
        return True
    if value is None or logical in _ONLY_WHOLE or not _is_value(value, logical):
        return False
    return all(value in enum.values for enum in enums)


def _reference(rule: rules.ForeignKey) -> str | None:
    if len(rule.to_fields) != 1:
        return None
    written = f"{rule.to}.{rule.to_fields[0]}"
    return written if written.strip().rpartition(".")[::2] == (rule.to, rule.to_fields[0]) and rule.to else None
