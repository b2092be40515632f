"""Schema objects and their properties: datasets and fields, at any depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field as attribute
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import Level, Position
from databox_contracts.formats.odcs_custom import DOCUMENT, CustomProperties, read_modes
from databox_contracts.formats.odcs_options import (
    OPTION_NAMES,
    read_enum,
    read_options,
    unenforced,
    unenforced_option,
)
from databox_contracts.formats.odcs_quality import Subject, read_quality
from databox_contracts.formats.odcs_references import References, read_relationships
from databox_contracts.formats.odcs_types import (
    LOGICAL_TYPES,
    logical_name,
    read_logical_type,
    read_spelling,
    read_type,
    with_number_format,
    with_time_zone,
)
from databox_contracts.formats.odcs_values import NUMERIC
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.model import Dataset, Field, SchemaModes
from databox_contracts.plan import way_to
from databox_contracts.rules import ForeignKey, PrimaryKey, Required, Rule, Unique

_ELEMENT_DOCUMENTATION: Final = ("id", "synonyms", "authoritativeDefinitions")
_DATASET_DOCUMENTATION: Final = (
    *_ELEMENT_DOCUMENTATION,
    "physicalType",
    "dataGranularityDescription",
    "deprecated",
    "context",
)
_FIELD_DOCUMENTATION: Final = (
    *_ELEMENT_DOCUMENTATION,
    "encryptedName",
    "transformLogic",
    "transformDescription",
    "criticalDataElement",
)

_MISPLACED: Final = {
    **dict.fromkeys(OPTION_NAMES, "write it under `logicalTypeOptions`"),
    **dict.fromkeys(("nullable", "isNullable"), "write `required: true` where nulls are not allowed"),
    **dict.fromkeys(("type", "dataType"), "write `logicalType` or `physicalType`"),
    **dict.fromkeys(("columns", "fields"), "write `properties`"),
    **dict.fromkeys(("pii", "piiClass"), "write it under `customProperties`"),
    **dict.fromkeys(("isUnique",), "write `unique`"),
}


@dataclass
class _Table:
    """What the properties of one dataset say about it as a whole, gathered on the way down."""

    dialect: str | None
    references: References
    pii: bool | None = None
    rules: list[Rule] = attribute(default_factory=list)
    keys: list[tuple[int, str, Section]] = attribute(default_factory=list)
    partitions: int = 0
    measures: list[Any] = attribute(default_factory=list)


def read_dataset(
    section: Section,
    dialect: str | None,
    references: References,
    modes: SchemaModes | None = None,
    pii: bool | None = None,
) -> Dataset | None:
    """One schema object. `dialect` is of its physical types, `references` are what relationships may name.

    `modes` and `pii` hold where it says nothing itself.
    """
    name = section.needed("name", "a schema object")
    physical_name = section.text("physicalName")
    for key, value in (("name", name), ("physicalName", physical_name)):
        _check_place(section, key, value)
    section.field = None
    custom = CustomProperties(section, Dataset)
    own_pii = custom.flag("pii")
    logical = section.text("logicalType")
    if logical not in (None, "object"):
        section.warning(
            f"a schema object of the logical type {logical!r} is read as a table", "write object", "logicalType"
        )
    table = _Table(dialect, references, pii=pii if own_pii is None else own_pii)
    fields = tuple(_fields(section, "properties", table, ()))
    judged = read_quality(section, Subject(is_property=False))
    related = read_relationships(section, references, name or "")
    own_rules = [*table.rules, *judged.own, *judged.dataset, *related]
    primary_key = _primary_key(table)
    carried = section.carried(*_DATASET_DOCUMENTATION)
    own_modes = read_modes(custom)
    if table.measures:
        carried["measures"] = table.measures
    dataset = Dataset(
        name=name or "",
        physical_name=physical_name,
        fields=fields,
        rules=(*([primary_key] if primary_key is not None else []), *sorted(own_rules, key=_place)),
        modes=own_modes or modes,
        description=section.text("description") or "",
        business_name=section.text("businessName"),
        tags=section.texts("tags"),
        custom=custom.rest(carried),
        position=section.position,
    )
    if not fields:
        section.warning("the dataset declares no properties, so its columns are not checked", "list its `properties`")
    section.close(_MISPLACED)
    _check_names(section, dataset)
    return dataset if name is not None else None


def _check_place(section: Section, key: str, name: str | None) -> None:
    """A dataset's name becomes that of a directory."""
    if name is None:
        return
    unsafe = [part for part in ("..", "/", "\\") if part in name]
    if any(not char.isprintable() for char in name):
        unsafe.append("a control character")
    if unsafe or name.strip() in ("", "."):
        what = f"may not hold {' or '.join(unsafe)}" if unsafe else "is not one"
        section.error(
            f"the {key} {name[:60]!r} {what}: it names a directory",
            "use letters, digits, '_', '-' and single dots",
            key,
        )


def _primary_key(table: _Table) -> PrimaryKey | None:
    if not table.keys:
        return None
    # A part without a position comes after those with one, in order of declaration.
    ordered = sorted(table.keys, key=lambda part: part[0] if part[0] > 0 else 2**31)
    for before, after in pairwise(ordered):
        if after[0] > 0 and before[0] == after[0]:
            after[2].warning(
                f"primaryKeyPosition {after[0]} is that of {before[1]!r} too",
                "number the parts 1, 2, ...",
                "primaryKeyPosition",
            )
    first = min((section.at("primaryKey") for _, _, section in ordered), key=_line)
    return PrimaryKey(fields=tuple(name for _, name, _ in ordered), position=first)


def _check_names(section: Section, dataset: Dataset) -> None:
    names = [field.name for field in dataset.fields]
    for rule in dataset.rules:
        if isinstance(rule, PrimaryKey | ForeignKey):
            # A key is made of properties; a relationship has been looked at.
            continue
        for name in getattr(rule, "fields", ()):
            if names and way_to(dataset, name) is None:
                near = nearest(name, names)
                hint = f"did you mean {near!r}?" if near else f"it has {', '.join(names[:10])}"
                message = f"a rule names {name!r}, which is no property of {dataset.name!r}"
                place = rule.position or section.position
                section.report.add(Level.WARNING, section.path, message, hint, field=None, position=place)


# --- properties -------------------------------------------------------------------------------------------------------


def _fields(section: Section, key: str, table: _Table, outside: tuple[str, ...] | None) -> Iterator[Field]:
    """The properties in a list. `outside` names the objects around them; None inside an array or a map."""
    names: set[str] = set()
    columns: dict[str, str] = {}
    for entry in section.sections(key):
        field = _field(entry, table, outside)
        if field is None:
            continue
        place = "physicalName" if field.column_name is not None else "name"
        other = columns.get(field.column.casefold())
        if field.name in names:
            entry.error(f"the property {field.name!r} stands here again", "rename or remove one", "name")
        elif other == field.column:
            entry.error(f"the column {other!r} belongs to another property already", "correct one", place)
        elif other is not None:
            entry.warning(f"Spark takes {field.column!r} and {other!r} for the same column", "rename one", place)
        names.add(field.name)
        columns.setdefault(field.column.casefold(), field.column)
        yield field


def _field(section: Section, table: _Table, outside: tuple[str, ...] | None) -> Field | None:
    name = section.needed("name", "a property")
    if name is None:
        return None
    section.field = name if section.field is None else f"{section.field}.{name}"
    semantic = section.text("semanticType")
    if semantic == "measure":
        table.measures.append(section.data)
        section.note(f"the measure {name!r} is not enforced: it is computed, and no column", None, "semanticType")
        return None
    inside = (*outside, name) if outside is not None else None
    return _described(section, name, table, inside)


def _part(section: Section | None, name: str, table: _Table) -> Field | None:
    """What an array or a map holds; the standard lets it go without a name."""
    if section is None:
        return None
    unneeded = section.carried("name")
    if name != "item":
        section.field = f"{section.field}.{name}"
    return _described(section, name, table, None, unneeded)


def _described(
    section: Section,
    name: str,
    table: _Table,
    inside: tuple[str, ...] | None,
    carried: Mapping[str, Any] = MappingProxyType({}),
) -> Field:
    """The field; `inside` is the way to it through objects, None where it goes through an array or a map."""
    logical = read_logical_type(section)
    type_ = read_type(section, logical, table.dialect)
    if logical is None and type_ is None:
        logical, type_ = _implied(section)
    kind = logical_name(logical, type_)
    _check_contents(section, logical, kind, type_)
    rules = list(_flags(section))
    type_ = _options(section, kind, type_, rules)
    rules.extend(read_enum(section, kind))
    if logical == "vector" and type_ is None:
        reason = "Spark has no type for vectors; write how it is stored as physicalType"
        rules.append(unenforced(section, reason, "logicalType", custom={DOCUMENT: {"logicalType": logical}}))
    judged = read_quality(section, Subject(is_property=True, logical=kind))
    rules.extend(judged.own)
    rules.extend(read_relationships(section, table.references, None))
    table.rules.extend(judged.dataset)
    _note_key(section, name, table, inside)
    custom = CustomProperties(section, Field)
    pii = _pii(custom, table, is_top=inside is not None and len(inside) == 1)
    semantics, default = custom.prose("semantics"), custom.value("default")
    carried = {
        **carried,
        **section.carried("semanticType", *_FIELD_DOCUMENTATION),
        **read_spelling(section, kind, type_),
    }
    fields = tuple(_fields(section, "properties", table, inside))
    required_fields = _with_required(section, fields, rules)
    holder = section.section("map")
    field = Field.saying(
        name=name,
        column_name=section.text("physicalName"),
        type=type_,
        rules=tuple(sorted(rules, key=_place)),
        fields=required_fields,
        item=_part(section.section("items"), "item", table),
        key=_part(holder.section("key"), "key", table) if holder is not None else None,
        value=_part(holder.section("value"), "value", table) if holder is not None else None,
        description=section.text("description") or "",
        business_name=section.text("businessName"),
        semantics=semantics,
        pii=pii,
        default=default,
        classification=section.text("classification"),
        tags=section.texts("tags"),
        partition_position=_partition(section, table),
        deprecated=section.flag("deprecated") or False,
        examples=tuple(section.listed("examples")),
        sources=section.texts("transformSourceObjects"),
        custom=custom.rest(carried),
        position=section.position,
    )
    if holder is not None:
        holder.close()
    section.close(_MISPLACED)
    return field.completed()


_CONTAINERS: Final = {"properties": "object", "items": "array", "map": "map"}


def _implied(section: Section) -> tuple[str | None, DataType | None]:
    """The type of a property that only says what it holds."""
    for key, logical in _CONTAINERS.items():
        if key in section.data:
            return logical, LOGICAL_TYPES[logical]
    if not section.report.places & {(*section.path, "logicalType"), (*section.path, "physicalType")}:
        section.note("the property has no type, so none is checked", "give it a logicalType or a physicalType")
    return None, None


def _check_contents(section: Section, logical: str | None, kind: str | None, type_: DataType | None) -> None:
    if type_ is None or type_.family is Family.VARIANT:
        return
    for key, holder in _CONTAINERS.items():
        if section.data.get(key) and holder not in (logical, kind, logical_name(None, type_)):
            hint = (
                "write `items:` with a logicalType and properties"
                if kind == "array"
                else f"write `logicalType: {holder}`"
            )
            section.error(f"{key!r} belongs to {holder}s, and this is of the type {type_}", hint, key)


def _flags(section: Section) -> Iterator[Rule]:
    for key, rule in (("required", Required), ("unique", Unique)):
        if section.flag(key):
            yield rule(position=section.at(key))


def _options(section: Section, kind: str | None, type_: DataType | None, rules: list[Rule]) -> DataType | None:
    """Adds the rules of `logicalTypeOptions`, and gives the type with the width or zone that they say."""
    options = section.section("logicalTypeOptions")
    if options is None:
        return type_
    rules.extend(read_options(options, kind))
    doubt: str | None = None
    if kind is not None and kind in NUMERIC and "format" in options.data:
        type_, doubt = with_number_format(options, kind, type_)
    elif kind in ("timestamp", "time") and "timezone" in options.data:
        type_, doubt = with_time_zone(options, type_)
    if doubt is not None:
        rules.append(unenforced_option(options, doubt, "format" if kind in NUMERIC else "timezone"))
    return type_


def _with_required(section: Section, fields: tuple[Field, ...], rules: list[Rule]) -> tuple[Field, ...]:
    """The option `required` of an object, as rules of the properties that it lists."""
    written = section.raw("logicalTypeOptions")
    says_so = isinstance(written, dict) and written.get("required") is not None
    options = section.section("logicalTypeOptions") if says_so else None
    if options is None:
        return fields
    names = options.texts("required")
    if not fields:
        rules.append(unenforced_option(options, "'required' of an object that declares no properties", "required"))
        return fields
    known = [field.name for field in fields]
    for at, name in enumerate(names):
        if name not in known:
            options.error(f"{name!r} is required and is no property of the object", "declare it", "required", at)
    place = options.at("required")
    return tuple(
        field.model_copy(update={"rules": (*field.rules, Required(position=place))})
        if field.name in names and not field.required
        else field
        for field in fields
    )


def _note_key(section: Section, name: str, table: _Table, inside: tuple[str, ...] | None) -> None:
    is_key = section.flag("primaryKey")
    position = section.number("primaryKeyPosition")
    if not is_key:
        if position is not None and position > 0:
            section.warning(
                "primaryKeyPosition without primaryKey is ignored", "write `primaryKey: true`", "primaryKeyPosition"
            )
        return
    if inside is None:
        section.error(
            f"{name!r} cannot be part of the primary key: it is inside an array or a map", "use `unique`", "primaryKey"
        )
        return
    table.keys.append((int(position) if position is not None and position < 2**31 else -1, ".".join(inside), section))


def _partition(section: Section, table: _Table) -> int | None:
    position = section.number("partitionKeyPosition")
    if not section.flag("partitioned"):
        return None
    table.partitions += 1
    return int(position) if position is not None and 0 < position < 2**31 else table.partitions


def _pii(custom: CustomProperties, table: _Table, *, is_top: bool) -> bool | None:
    said = custom.flag("pii")
    if said is None and custom.holder("piiClass") is not None:
        return True
    # Below, a field inherits from the one around it.
    return table.pii if said is None and is_top else said


def _place(rule: Rule) -> tuple[int, int]:
    return _line(rule.position) if rule.position is not None else (0, 0)


def _line(position: Position) -> tuple[int, int]:
    return position.line, position.column
