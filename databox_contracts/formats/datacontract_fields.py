"""Models and fields of the Data Contract Specification: datasets and fields, at any depth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field as attribute
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.formats.datacontract_quality import read_quality
from databox_contracts.formats.datacontract_types import (
    DOCUMENT,
    Source,
    check_contents,
    own_spelling,
    read_source,
    read_type,
)
from databox_contracts.formats.datacontract_values import read_field_values, without_effect
from databox_contracts.formats.identity import check_table_name, extensions
from databox_contracts.formats.odcs_options import unenforced
from databox_contracts.formats.odcs_types import logical_name
from databox_contracts.formats.positions import DataPath
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.model import Dataset, Field, Mode, SchemaModes
from databox_contracts.rules import Rule

_MOST_INHERITED: Final = 2_000


@dataclass
class Model:
    """What reading the fields of one model gathers about it as a whole.

    `around` are the definitions that the field being read is inside of, `inherited` counts the fields that definitions
    bring into the document.
    """

    root: Section
    name: str
    dialect: str | None
    models: tuple[str, ...]
    inherited: Iterator[int]
    rules: list[Rule] = attribute(default_factory=list)
    keys: list[tuple[str, Section]] = attribute(default_factory=list)
    around: list[DataPath] = attribute(default_factory=list)


def read_model(
    section: Section, root: Section, name: str, dialect: str | None, models: tuple[str, ...], inherited: Iterator[int]
) -> Dataset:
    """One model; `root` is the document, `models` the names of all its models, `dialect` of its SQL types.

    `inherited` counts, for all models of the document, the fields that definitions bring.
    """
    model = Model(root, name, dialect, models, inherited)
    check_table_name(section, name)
    section.field = None
    fields = tuple(_fields(section, model, ()))
    primary_key = tuple(_primary_key(section, model, fields))
    quality = read_quality(section, column=None, logical=None)
    carried = section.carried("type", "config", "examples", "links")
    _note_config(section)
    tags = section.texts("tags")
    additional = section.flag("additionalFields")
    modes = None
    if additional is not None:
        modes = SchemaModes(columns=Mode.EVOLVE if additional else Mode.FREEZE)
    if not fields:
        section.warning("the model declares no fields, so its columns are not checked", "list its `fields`")
    description, title = section.text("description"), section.text("title")
    carried |= extensions(section)
    return Dataset(
        name=name,
        fields=fields,
        rules=(*primary_key, *model.rules, *quality),
        modes=modes,
        description=(description or "").strip(),
        business_name=title,
        tags=tags,
        custom={DOCUMENT: carried} if carried else {},
        position=section.report.document.key_position(section.path),
    )


def _primary_key(section: Section, model: Model, fields: tuple[Field, ...]) -> Iterator[Rule]:
    names = section.texts("primaryKey")
    by_flags = tuple(name for name, _ in model.keys)
    if not names:
        if by_flags:
            yield rules.PrimaryKey(fields=by_flags, position=model.keys[0][1].position)
        return
    if by_flags and set(by_flags) != set(names):
        section.warning(
            f"the fields mark another primary key ({', '.join(by_flags)}); the model's is what is checked",
            "make them agree",
            "primaryKey",
        )
    table = Dataset(name=model.name, fields=fields)
    for at, name in enumerate(names):
        if table.trail(name) is None:
            near = nearest(name, [field.name for field in fields])
            hint = f"did you mean {near!r}?" if near else "declare it under `fields`"
            section.error(f"the primary key names {name[:60]!r}, which is no field", hint, "primaryKey", at)
    yield rules.PrimaryKey(fields=names, position=section.at("primaryKey"))


def _note_config(section: Section) -> None:
    config = section.raw("config")
    if not isinstance(config, dict):
        return
    for key in config:
        if key.endswith("Type"):
            section.note(f"the config {key!r} is kept and not enforced", None, "config", key)


# --- fields -----------------------------------------------------------------------------------------------------------


def _fields(section: Section, model: Model, outside: tuple[str, ...] | None) -> Iterator[Field]:
    """The entries of `fields`. `outside` names the objects around them; None inside an array or a map."""
    entries = section.section("fields")
    if entries is None:
        return
    folded: dict[str, str] = {}
    for name, data in entries.data.items():
        entries.raw(name)
        if not name.strip():
            entries.error("a field has no name", "give it one", name)
            continue
        if data is not None and not isinstance(data, dict):
            entries.section(name)
            continue
        inner = Section(section.report, (*entries.path, name), data or {}, section.field)
        inner.field = name if section.field is None else f"{section.field}.{name}"
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            inner.warning(f"Spark takes {name!r} and {other!r} for the same column", "rename one")
        yield _field(inner, name, model, (*outside, name) if outside is not None else None)


def _part(source: Source, key: str, name: str, model: Model) -> Field | None:
    section = source.of(key).section(key)
    if section is None:
        return None
    if name != "item":
        section.field = f"{source.own.field}.{name}"
    return _field(section, name, model, None)


def _field(section: Section, name: str, model: Model, inside: tuple[str, ...] | None) -> Field:
    """The field; `inside` is the way to it through objects, None where it goes through an array or a map."""
    source, found = read_source(section, model.root, model.around)
    if _is_too_much(section, model):
        return Field(name=name)
    definitions = [one.path for one in source.sections[1:]]
    model.around.extend(definitions)
    type_ = read_type(source, model.dialect)
    check_contents(source, type_)
    logical = logical_name(None, type_)
    found.extend(_flags(source))
    found.extend(read_field_values(source, type_, logical))
    holder = source.of("quality")
    found.extend(read_quality(holder, column=name, logical=logical))
    _key(source, name, model, inside)
    found.extend(_reference(source, model, inside))
    description, title = source.of("description").text("description"), source.of("title").text("title")
    carried = source.own.carried("$ref", "links", "lineage", "config")
    carried |= own_spelling(source, type_) | without_effect(source.own.data, logical)
    for key in ("links", "lineage", "config", "domain", "name"):
        source.of(key)
    _note_config(source.own)
    field = Field(
        name=name,
        type=type_,
        rules=tuple(sorted(found, key=lambda rule: _place(rule, section))),
        fields=tuple(_fields(source.of("fields"), model, inside)),
        item=_part(source, "items", "item", model),
        key=_part(source, "keys", "key", model) or _text_key(type_),
        value=_part(source, "values", "value", model),
        description=(description or "").strip(),
        business_name=title,
        pii=source.of("pii").flag("pii"),
        classification=source.of("classification").text("classification"),
        tags=source.of("tags").texts("tags"),
        examples=_examples(source),
        position=section.report.document.key_position(section.path),
    )
    for one in source.sections:
        extra = extensions(one)
        carried |= extra if one is section else {}
    del model.around[len(model.around) - len(definitions) :]
    if carried:
        field = field.model_copy(update={"custom": {DOCUMENT: carried}})
    return field.completed()


def _is_too_much(section: Section, model: Model) -> bool:
    """Whether definitions inside definitions bring more fields than contracts have; an error at the first too many."""
    if section.path[:1] != ("definitions",):
        return False
    brought = next(model.inherited)
    if brought == _MOST_INHERITED:
        section.error(f"definitions bring more than {_MOST_INHERITED:,} fields into the models", "flatten them")
    return brought >= _MOST_INHERITED


def _text_key(type_: DataType | None) -> Field | None:
    """Keys of a map are text where nothing else is said."""
    if type_ is None or type_.family is not Family.MAP or type_.key is not None:
        return None
    return Field(name="key", type=DataType(Family.STRING))


def _examples(source: Source) -> tuple[Any, ...]:
    single = source.of("example").raw("example")
    return (*([single] if single is not None else []), *source.of("examples").listed("examples"))


def _flags(source: Source) -> Iterator[Rule]:
    for key, rule in (("required", rules.Required), ("unique", rules.Unique)):
        holder = source.of(key)
        if holder.flag(key):
            yield rule(position=holder.at(key))


def _key(source: Source, name: str, model: Model, inside: tuple[str, ...] | None) -> None:
    # `primary` is what 0.9.3 calls it.
    marked = [key for key in ("primaryKey", "primary") if source.of(key).flag(key)]
    if not marked:
        return
    if inside is None:
        source.of(marked[0]).error(
            f"{name!r} cannot be part of the primary key: it is inside an array or a map", "use `unique`", marked[0]
        )
        return
    model.keys.append((".".join(inside), source.own))


def _reference(source: Source, model: Model, inside: tuple[str, ...] | None) -> Iterator[Rule]:
    """`references: model.field`, as a rule of the model."""
    holder = source.of("references")
    written = holder.text("references")
    if written is None:
        return
    to, target = parse_reference(written, model.models)
    if not to or not target:
        holder.error(f"{written[:60]!r} names no field of a model", "write `references: orders.order_id`", "references")
    elif inside is None:
        reason = "a reference from inside an array or a map"
        yield unenforced(holder, reason, "references", custom={DOCUMENT: {"references": written}})
    else:
        if to not in model.models:
            near = nearest(to, model.models)
            hint = f"did you mean '{near}.{target}'?" if near else "it is looked for in other contracts"
            holder.warning(f"the reference {written[:60]!r} is to no model of this contract", hint, "references")
        position = holder.at("references")
        model.rules.append(rules.ForeignKey(fields=(".".join(inside),), to=to, to_fields=(target,), position=position))


def parse_reference(written: str, models: Iterable[str]) -> tuple[str, str]:
    """The model (of this contract, or `contract.model`) and its field that a reference names; "" for what it lacks."""
    known = next((model for model in models if written.startswith(f"{model}.")), None)
    if known is not None:
        return known, written[len(known) + 1 :]
    to, _, target = written.strip().rpartition(".")
    return to, target


def _place(rule: Rule, section: Section) -> tuple[int, int, int]:
    # What a definition says comes after what the field says itself, wherever the definition stands.
    position = rule.position or section.position
    own = section.position
    return (int((position.line, position.column) < (own.line, own.column)), position.line, position.column)
