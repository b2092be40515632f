"""The types of the Data Contract Specification, and the section of a field with the definitions it refers to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from databox_contracts.datatypes import DataType, Family, parse_type
from databox_contracts.errors import UnknownTypeError
from databox_contracts.formats.odcs_options import unenforced
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.rules import Rule

# Where the specification says more, or other, than the common reading of the word.
_TYPES: Final[dict[str, DataType | None]] = {
    "number": DataType(Family.NUMBER),
    "timestamp": DataType(Family.TIMESTAMP, zone=True),
    "timestamp_tz": DataType(Family.TIMESTAMP, zone=True),
    "timestamp_ntz": DataType(Family.TIMESTAMP, zone=False),
    "null": None,
}

_NUMERIC: Final = ("number", "decimal", "numeric")
_MOST_DIGITS: Final = 38
_LOCAL: Final = "#/definitions/"


@dataclass(frozen=True)
class Source:
    """What is said of a field: in its own section, then in the definition that it refers to, and so on."""

    sections: tuple[Section, ...]

    def of(self, key: str) -> Section:
        """The first section that has the entry; the field's own where none has."""
        for section in self.sections:
            section.raw(key)
        return next((section for section in self.sections if section.data.get(key) is not None), self.sections[0])

    def has(self, key: str) -> bool:
        """Whether any of them has the entry."""
        return key in self.of(key)

    @property
    def own(self) -> Section:
        """The field's own section."""
        return self.sections[0]


def read_source(section: Section, root: Section) -> tuple[Source, list[Rule]]:
    """The field's section with its definitions, and a skipped rule where a reference leads out of the document."""
    chain, skipped = [section], list[Rule]()
    while True:
        last = chain[-1]
        written = last.text("$ref")
        if written is None:
            break
        if not written.startswith(_LOCAL):
            skipped.append(unenforced(last, f"what {written[:80]!r} says, which is another document", "$ref"))
            break
        name = written.removeprefix(_LOCAL)
        definitions = root.raw("definitions")
        known = definitions if isinstance(definitions, dict) else {}
        if not isinstance(known.get(name), dict):
            near = nearest(name, known)
            hint = f"did you mean '{_LOCAL}{near}'?" if near else "declare it under `definitions`"
            last.error(f"there is no definition {name[:60]!r}", hint, "$ref")
            break
        path = ("definitions", name)
        if any(other.path == path for other in chain):
            last.error(f"the definition {name[:60]!r} refers to itself", "remove a reference", "$ref")
            break
        chain.append(Section(section.report, path, known[name], section.field))
    return Source(tuple(chain)), skipped


def read_type(source: Source, dialect: str | None) -> DataType | None:
    """The type that the table's column must have; None where the document says none that can be checked."""
    holder = source.of("type")
    spelling = holder.text("type")
    precision, scale = source.of("precision").count("precision"), source.of("scale").count("scale")
    if spelling is None or not spelling.strip():
        return _implied(source)
    word = spelling.strip().lower()
    if word in _TYPES:
        found = _TYPES[word]
    else:
        try:
            found = parse_type(spelling, dialect)
        except UnknownTypeError as error:
            holder.error(f"unknown type {spelling[:60]!r}", error.hint, "type")
            return None
    if precision is None and scale is None:
        return found
    if word not in _NUMERIC:
        key = "precision" if precision is not None else "scale"
        source.of(key).warning(
            f"{key!r} has no effect on the type {spelling[:40]}", f"only {', '.join(_NUMERIC)} have one", key
        )
        return found
    return _decimal(source, _MOST_DIGITS if precision is None else precision, scale or 0)


def _decimal(source: Source, precision: int, scale: int) -> DataType:
    if not 0 < precision <= _MOST_DIGITS:
        source.of("precision").error(
            f"no Spark table can have {precision} digits", f"use 1 to {_MOST_DIGITS}", "precision"
        )
    elif scale > precision:
        source.of("scale").error(f"{scale} fraction digits are more than the {precision} digits", "correct it", "scale")
    return DataType(Family.DECIMAL, precision=precision, scale=scale)


_CONTAINERS: Final = {"fields": Family.OBJECT, "items": Family.ARRAY, "keys": Family.MAP, "values": Family.MAP}


def _implied(source: Source) -> DataType | None:
    for key, family in _CONTAINERS.items():
        if source.has(key):
            return DataType(family)
    source.own.note("the field has no type, so none is checked", "give it a type")
    return None


def check_contents(source: Source, type_: DataType | None) -> None:
    """An error where the parts of a field are not those of its type."""
    for key, family in _CONTAINERS.items():
        if type_ is not None and source.has(key) and type_.family not in (family, Family.VARIANT):
            source.of(key).error(
                f"{key!r} belongs to the type {family}, and this is of the type {type_}", f"write `type: {family}`", key
            )
