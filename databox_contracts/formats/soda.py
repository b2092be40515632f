"""The reader of Soda contracts, the current ones and those of Soda Core v3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from databox_contracts.formats.bounds import check_ranges
from databox_contracts.formats.governing import extra_consumers
from databox_contracts.formats.identity import check_table_name, read_version
from databox_contracts.formats.odcs_types import logical_name
from databox_contracts.formats.reading import Report, Section
from databox_contracts.formats.soda_checks import read_checks
from databox_contracts.formats.soda_limits import THRESHOLD_KEYS
from databox_contracts.formats.soda_subjects import MISSING_KEYS, VALIDITY_KEYS, Subject, Table
from databox_contracts.formats.soda_types import read_type
from databox_contracts.model import Contract, Dataset, Field, Mode, SchemaModes
from databox_contracts.rules import Required, Rule, Unique

DOCUMENT: Final = "$soda"
"""The name under which `custom` carries what a Soda contract says and the model has no place for."""

NO_VERSION: Final = "0.0.0"
"""The version of a document that names none."""

GENERATION: Final = "generation"
"""What `custom` calls the generation of a contract of the first; one of the second does not say it."""

UNCHECKED: Final = "schema_check"
"""What `custom` says, as false, of a dataset whose columns have types that Soda itself is never told to check."""

DOCUMENTATION: Final = ("data_source", "check_attributes", "variables", "database", "schema")
SCHEDULES: Final = ("soda_agent", "soda_runner")
FILTERS: Final = ("filter", "sql_filter", "filter_sql")
EARLY: Final[dict[str, Callable[..., Rule]]] = {"not_null": Required, "unique": Unique}
"""What the first drafts of the language had beside a column's name."""

_MISPLACED: Final = {
    **dict.fromkeys(THRESHOLD_KEYS, "write it in a check"),
    **dict.fromkeys(("type", "logicalType", "physicalType"), "write `data_type`"),
    **dict.fromkeys(("fields", "properties"), "write `columns`"),
    **dict.fromkeys(("required", "nullable"), "write `checks: [{missing: {}}]`"),
}


def recognises(data: Mapping[str, Any]) -> bool:
    """Whether a document can only be a Soda contract: a dataset, and columns or checks of it."""
    return "dataset" in data and ("columns" in data or "checks" in data)


def read(report: Report) -> Contract | None:
    """The contract, with what is wrong in the report; None where it does not say what it is about."""
    section = Section(report, (), report.document.data)
    identity = section.needed("dataset", "the contract")
    version = _version(section)
    dataset = _dataset(section, identity or "")
    carried = section.carried(*DOCUMENTATION) | section.not_enforced(*SCHEDULES)
    if _is_of_first_generation(section):
        carried[GENERATION] = 1
    owner = section.text("owner")
    consumers = extra_consumers(section)
    section.close(_MISPLACED)
    if identity is None or dataset is None:
        return None
    return Contract(
        id=identity,
        version=version,
        owner=owner,
        datasets=(dataset,),
        consumers=consumers,
        custom={DOCUMENT: carried} if carried else {},
        dialect="soda",
        source=report.document.source,
    )


def _version(section: Section) -> str:
    """The version of the document; the language has no word for it, but a contract needs one."""
    if "version" not in section:
        section.note(f"the contract has no version and counts as {NO_VERSION}", "write `version: 1.0.0`", "dataset")
        return NO_VERSION
    return read_version(section, "the contract") or NO_VERSION


def _dataset(section: Section, identity: str) -> Dataset | None:
    """The one dataset; its name is the last part of the qualified one."""
    name = identity.rsplit("/", 1)[-1].strip()
    if "${" in name:
        section.error("the table's name is a variable, which only Soda fills in", "write the name out", "dataset")
        name = ""
    elif identity and not check_table_name(section, name, "dataset"):
        name = ""
    if identity and not name:
        section.carried(*section.data)
        return None
    entries = list(section.sections("columns"))
    names = tuple(entry.data["name"] for entry in entries if isinstance(entry.data.get("name"), str))
    written = [text for key in FILTERS if (text := section.text(key)) is not None]
    table = Table(name, names, next(iter(written), None))
    described = section.text("description")
    fields: list[Field] = []
    for entry in entries:
        field = _column(entry, table)
        if field is not None:
            _check_name(entry, field, fields)
            fields.append(field)
    of_table = Subject(table)
    read_checks(section, of_table)
    carried = section.carried(*FILTERS)
    if of_table.lossy:
        carried["checks"] = section.data["checks"]
    former = _is_of_first_generation(section)
    if table.modes is None and not former and any(field.type is not None for field in fields):
        carried[UNCHECKED] = False
    _note_types(section, fields)
    return Dataset(
        name=name,
        fields=tuple(fields),
        rules=tuple(table.rules),
        modes=table.modes or implied_modes(former=former),
        description=described or "",
        custom={DOCUMENT: carried} if carried else {},
        position=section.at("dataset"),
    )


def implied_modes(*, former: bool) -> SchemaModes:
    """Without a `schema` check further columns are allowed; the first generation always made that check."""
    return SchemaModes(columns=Mode.FREEZE if former else Mode.EVOLVE)


def _is_of_first_generation(section: Section) -> bool:
    columns = section.data.get("columns")
    entries = [column for column in columns if isinstance(column, dict)] if isinstance(columns, list) else []
    return any("type" in check for data in (section.data, *entries) for check in _checks(data))


def _checks(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = data.get("checks")
    return [check for check in found if isinstance(check, dict)] if isinstance(found, list) else []


def _note_types(section: Section, fields: list[Field]) -> None:
    untyped = sum(field.type is None for field in fields)
    if untyped and not any("data_type" in place for place in section.report.places):
        which = "no column has a" if untyped == len(fields) else f"{untyped} of {len(fields)} columns have no"
        section.note(f"{which} data_type, so their types are not checked", "give them a data_type", "columns")
    if not fields and not section.report.places:
        section.warning("the contract declares no columns, so they are not checked", "list them under `columns`")


def _check_name(entry: Section, field: Field, before: list[Field]) -> None:
    for other in before:
        if other.name == field.name:
            entry.error(f"the column {field.name!r} stands here again", "rename or remove one", "name")
            return
        if other.name.casefold() == field.name.casefold():
            entry.warning(f"Spark takes {field.name!r} and {other.name!r} for the same column", "rename one", "name")
            return


def _column(section: Section, table: Table) -> Field | None:
    name = section.needed("name", "a column")
    if name is None:
        section.carried(*section.data)
        return None
    section.field = name
    type_, spelling = read_type(section)
    subject = Subject(table, column=name, section=section, kind=logical_name(None, type_))
    before = len(table.rules)
    early = [rule(position=section.at(key)) for key, rule in EARLY.items() if section.flag(key)]
    read_checks(section, subject)
    check_ranges(section, subject.rules, subject.kind)
    carried: dict[str, Any] = {**spelling, **{key: True for key in EARLY if section.data.get(key) is True}}
    if subject.lossy or len(table.rules) > before:
        carried["checks"] = section.data["checks"]
    configured = section.carried(*MISSING_KEYS, *VALIDITY_KEYS)
    checks = _checks(section.data)
    for key in configured:
        if not any(kind in check or check.get("type") for check in checks for kind in ("missing", "invalid")):
            section.note(f"{key!r} is not enforced: no check of the column uses it", "add a check", key)
    if section.flag("optional"):
        carried["optional"] = True
        section.warning(
            f"the column {name!r} is optional, and is checked as if it were not",
            "leave it out where it may be absent",
            "optional",
        )
    description = section.text("description") or ""
    section.close(_MISPLACED)
    return Field(
        name=name,
        type=type_,
        rules=(*early, *subject.rules),
        description=description,
        custom={DOCUMENT: carried | configured} if carried or configured else {},
        position=section.position,
    ).completed()
