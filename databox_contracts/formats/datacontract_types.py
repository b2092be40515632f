"""The types of the Data Contract Specification, and the section of a field with the definitions it refers to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from databox_contracts.datatypes import DataType, Family, parse_type
from databox_contracts.errors import UnknownTypeError
from databox_contracts.formats.odcs_options import unenforced
from databox_contracts.formats.positions import MAX_DEPTH, DataPath
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.rules import Rule

DOCUMENT: Final = "$datacontract"
"""The name under which `custom` carries the specification's own entries that the model has no place for."""

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
LOCAL: Final = "#/definitions/"
"""How a reference to a definition of the same document begins."""


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


def read_source(section: Section, root: Section, around: Collection[DataPath] = ()) -> tuple[Source, list[Rule]]:
    """The field's section with its definitions, and a skipped rule where a reference leads out of the document.

    `around` are the places of the definitions that the field is inside of, which it cannot refer to.
    """
    chain, skipped = [section], list[Rule]()
    while True:
        last = chain[-1]
        written = last.text("$ref")
        if written is None:
            break
        if not written.startswith(LOCAL):
            skipped.append(unenforced(last, f"what {written[:80]!r} says, which is another document", "$ref"))
            break
        name = written.removeprefix(LOCAL)
        definitions = root.raw("definitions")
        known = definitions if isinstance(definitions, dict) else {}
        if not isinstance(known.get(name), dict):
            near = nearest(name, known)
            hint = f"did you mean '{LOCAL}{near}'?" if near else "declare it under `definitions`"
            last.error(f"there is no definition {name[:60]!r}", hint, "$ref")
            break
        path = ("definitions", name)
        if path in around or any(other.path == path for other in chain):
            last.error(f"the definition {name[:60]!r} refers to itself", "remove a reference", "$ref")
            break
        if len(around) + len(chain) > MAX_DEPTH:
            last.error(f"definitions nest more than {MAX_DEPTH} deep", "flatten them", "$ref")
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


CONTAINERS: Final = {"fields": Family.OBJECT, "items": Family.ARRAY, "keys": Family.MAP, "values": Family.MAP}
"""The entries that say what a field contains, and the type that has such parts."""


def _implied(source: Source) -> DataType | None:
    for key, family in CONTAINERS.items():
        if source.has(key):
            return DataType(family)
    source.own.note("the field has no type, so none is checked", "give it a type")
    return None


def check_contents(source: Source, type_: DataType | None) -> None:
    """An error where the parts of a field are not those of its type."""
    for key, family in CONTAINERS.items():
        if type_ is not None and source.has(key) and type_.family not in (family, Family.VARIANT):
            source.of(key).error(
                f"{key!r} belongs to the type {family}, and this is of the type {type_}", f"write `type: {family}`", key
            )


# --- the way back: a type in the specification's words ----------------------------------------------------------------

SPELLING: Final = ("type", "precision", "scale")
"""The entries of a field that say its type."""

# A width that the specification has no word for is said by the word for any number, which promises less.
_NUMBER_OF_ANY_KIND: Final = "number"
_WORDS: Final[dict[tuple[Family, int | None], str]] = {
    (Family.INTEGER, 32): "integer",
    (Family.INTEGER, 64): "long",
    (Family.NUMBER, 32): "float",
    (Family.NUMBER, 64): "double",
}
_WORD_OF: Final[dict[Family, str]] = {
    Family.STRING: "string",
    Family.BOOLEAN: "boolean",
    Family.INTEGER: _NUMBER_OF_ANY_KIND,
    Family.NUMBER: _NUMBER_OF_ANY_KIND,
    Family.DECIMAL: "decimal",
    Family.DATE: "date",
    Family.TIMESTAMP: "timestamp",
    Family.TIME: "time",
    Family.BINARY: "bytes",
    Family.ARRAY: "array",
    Family.MAP: "map",
    Family.OBJECT: "object",
    Family.VARIANT: "variant",
}


def spelled(type_: DataType | None) -> dict[str, Any]:
    """The entries that say a type in words of the specification, or one that promises less.

    A timestamp of which no zone is said becomes one with a zone, for which there is no such word. What an array, a map
    or an object contains is said by its parts, a length by `maxLength`.
    """
    if type_ is None:
        return {}
    if type_.zone is False:
        return {"type": "timestamp_ntz"}
    word = _WORDS.get((type_.family, type_.bits), _WORD_OF[type_.family])
    digits, scale = type_.precision or 0, type_.scale or 0
    if type_.family is Family.DECIMAL and 0 < digits <= _MOST_DIGITS and scale <= digits:
        return {"type": word, "precision": digits, "scale": scale}
    return {"type": word}


def own_spelling(source: Source, type_: DataType | None) -> dict[str, Any]:
    """How the field itself writes its type, where `spelled` would write it otherwise."""
    own = source.own
    written = own.carried(*SPELLING)
    if "type" in written:
        written["type"] = own.report.document.text((*own.path, "type"))
    return {} if written == spelled(type_) or without_contents(type_) != type_ else written


def without_contents(type_: DataType | None) -> DataType | None:
    """The type at its own level: what it contains is said by the parts of its field."""
    return type_ and replace(type_, item=None, key=None, value=None, fields=None)


def meant(entries: Mapping[str, Any], dialect: str | None) -> DataType | None:
    """The type that those entries of a field mean, without a remark; a word that is not known means nothing."""
    spelling = entries.get("type")
    if not isinstance(spelling, str) or not spelling.strip():
        return next((DataType(family) for key, family in CONTAINERS.items() if entries.get(key) is not None), None)
    word = spelling.strip().lower()
    precision, scale = entries.get("precision"), entries.get("scale")
    if word in _NUMERIC and (isinstance(precision, int) or isinstance(scale, int)):
        return DataType(Family.DECIMAL, precision=_MOST_DIGITS if precision is None else precision, scale=scale or 0)
    if word in _TYPES:
        return _TYPES[word]
    try:
        return parse_type(spelling, dialect)
    except UnknownTypeError:
        return None
