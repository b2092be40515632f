"""An Avro schema of one dataset: a record of the columns, with logical types and namespaced records inside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field as attribute
from typing import Any, Final

from databox_contracts.datatypes import DataType, Family
from databox_contracts.export.avro_defaults import NO_DEFAULT, avro_default
from databox_contracts.export.json_text import to_json
from databox_contracts.export.losses import Loss, Place, Words, columns, losses, unsaid
from databox_contracts.export.targets import Exported, Target
from databox_contracts.rules import Enum, Format, Rule, Severity

_WORDS: Final = Words(
    "Avro",
    rules=("required",),
    field=("description", "default"),
    dataset=("description",),
    contract=(),
)

# Family, and width or whether there is a zone: the type.
_SCALARS: Final[dict[tuple[Family, int | bool | None], Any]] = {
    (Family.STRING, None): "string",
    (Family.BOOLEAN, None): "boolean",
    (Family.INTEGER, 8): "int",
    (Family.INTEGER, 16): "int",
    (Family.INTEGER, 32): "int",
    (Family.INTEGER, 64): "long",
    (Family.INTEGER, None): "long",
    (Family.NUMBER, 32): "float",
    (Family.NUMBER, 64): "double",
    (Family.NUMBER, None): "double",
    (Family.DATE, None): {"type": "int", "logicalType": "date"},
    (Family.TIMESTAMP, True): {"type": "long", "logicalType": "timestamp-micros"},
    (Family.TIMESTAMP, False): {"type": "long", "logicalType": "local-timestamp-micros"},
    (Family.TIMESTAMP, None): {"type": "long", "logicalType": "timestamp-micros"},
    (Family.TIME, None): {"type": "long", "logicalType": "time-micros"},
    (Family.BINARY, None): "bytes",
    (Family.VARIANT, None): "string",
}
_UUID: Final = {"type": "string", "logicalType": "uuid"}
_USUAL_DIGITS: Final = (38, 18)

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def export_avro(target: Target) -> Exported:
    """The record. A field that may be null is a union with null, and null is its default where it has no other.

    The namespace is the contract's id; a record or an enumeration inside has the full name of what it is in as its own.
    A default comes with its branch of the union first. What is no name to Avro becomes one, with `_`.
    """
    (dataset,) = target.datasets
    writer = _Writer()
    record = _named("record", dataset.table_name, ".".join(avro_name(part) for part in target.contract.id.split(".")))
    description = dataset.description.strip()
    schema = {**record, **({"doc": description} if description else {})}
    schema["fields"] = writer.fields(columns(target.contract, dataset), _full_name(record))
    if record["name"] != dataset.table_name:
        whole = Place(dataset, None, dataset.name)
        writer.lost.append(Loss("the table's name", whole, f"Avro has no such names; written as {record['name']}"))
    lost = losses(target, _WORDS, judge=writer.judge, attributes=writer.attribute, more=writer.lost)
    return Exported(to_json(schema) + "\n", lost)


def avro_name(text: str) -> str:
    """The text as a name that Avro allows: letters, digits and `_`, not beginning with a digit."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return name if _NAME.fullmatch(name) else f"_{name}"


def _named(kind: str, name: str, namespace: str) -> dict[str, Any]:
    return {"type": kind, "name": avro_name(name), "namespace": namespace}


def _full_name(named: dict[str, Any]) -> str:
    return f"{named['namespace']}.{named['name']}"


@dataclass
class _Writer:
    """Writes the fields of one record and keeps what is lost on the way, and which rules became types."""

    lost: list[Loss] = attribute(default_factory=list)
    _typed: list[tuple[str, Rule]] = attribute(default_factory=list)
    _unused_defaults: list[str] = attribute(default_factory=list)

    # --- fields -------------------------------------------------------------------------------------------------------

    def fields(self, found: Iterable[Place], inside: str) -> list[dict[str, Any]]:
        """The fields of a record of that full name."""
        taken: set[str] = set()
        return [self._field(place, inside, taken) for place in found]

    def _field(self, place: Place, inside: str, taken: set[str]) -> dict[str, Any]:
        assert place.field is not None
        name = _untaken(avro_name(place.field.column), taken)
        if name != place.field.column:
            self.lost.append(Loss("the column's name", place, f"Avro has no such names; written as {name}"))
        found: dict[str, Any] = {"name": name}
        if place.field.description.strip():
            found["doc"] = place.field.description.strip()
        written = self.type(place, f"{inside}.{name}")
        default = avro_default(place.field, written)
        if place.field.default is not None and default is NO_DEFAULT:
            self._unused_defaults.append(place.name)
        if place.required:
            found["type"] = written
        elif default is NO_DEFAULT:
            found["type"] = ["null", written]
            default = None
        else:
            # A default is a value of the first branch.
            found["type"] = [written, "null"]
        if default is not NO_DEFAULT:
            found["default"] = default
        return found

    # --- types --------------------------------------------------------------------------------------------------------

    def type(self, place: Place, name: str) -> Any:
        """The type of what is not null; `name` is the full name of a record or an enumeration in it."""
        self.lost.extend(Loss(what, place, reason) for what, reason in _doubts(place))
        type_ = place.field.type if place.field is not None else None
        match type_:
            case DataType(family=Family.ARRAY):
                return {"type": "array", "items": self._part(place.holds("item"), f"{name}.item")}
            case DataType(family=Family.MAP):
                return {"type": "map", "values": self._part(place.holds("value"), f"{name}.value")}
            case DataType(family=Family.OBJECT) if place.fields:
                namespace, _, own = name.rpartition(".")
                return {**_named("record", own, namespace), "fields": self.fields(place.fields, name)}
            case DataType(family=Family.OBJECT):
                return {"type": "map", "values": "string"}
            case DataType(family=Family.STRING):
                return self._text(place, name)
        return _scalar(type_)

    def _part(self, place: Place | None, name: str) -> Any:
        if place is None:
            return "string"
        written = self.type(place, name)
        return written if place.required else ["null", written]

    def _text(self, place: Place, name: str) -> Any:
        enum = next((rule for rule in place.rules if isinstance(rule, Enum) and _has_symbols(rule)), None)
        if enum is not None:
            self._typed.append((place.name, enum))
            namespace, _, own = name.rpartition(".")
            return {**_named("enum", own, namespace), "symbols": list(_symbols(enum))}
        uuid = next((rule for rule in place.rules if isinstance(rule, Format) and _is_uuid(rule)), None)
        if uuid is not None:
            self._typed.append((place.name, uuid))
            return dict(_UUID)
        return "string"

    # --- what is lost -------------------------------------------------------------------------------------------------

    def judge(self, rule: Rule, place: Place) -> str | None:
        """Why the rule is not in the schema, None where it is."""
        if any(name == place.name and typed is rule for name, typed in self._typed):
            return None
        if rule.severity is Severity.ERROR and rule.kind == "primary_key":
            return "Avro has no keys; its fields are written without null"
        if rule.severity is Severity.ERROR and isinstance(rule, Enum):
            return "the symbols of Avro's enumerations are names, and only texts have one"
        return unsaid(rule, _WORDS)

    def attribute(self, name: str, place: Place) -> str | None:
        """Why an attribute is not in the schema, None where it is."""
        if place.field is None:
            return None
        if place.part is not None:
            return "Avro says nothing of what arrays and maps hold but its type"
        if name == "default" and place.name in self._unused_defaults:
            return "it is no value of the type in Avro"
        return None


def _untaken(name: str, taken: set[str]) -> str:
    chosen, count = name, 1
    while chosen in taken:
        count += 1
        chosen = f"{name}_{count}"
    taken.add(chosen)
    return chosen


def _symbols(rule: Enum) -> tuple[str, ...]:
    # Null has a branch of its own.
    return tuple(dict.fromkeys(str(value) for value in rule.values if value is not None))


def _has_symbols(rule: Enum) -> bool:
    values = [value for value in rule.values if value is not None]
    legal = all(isinstance(value, str) and _NAME.fullmatch(value) for value in values)
    return bool(values) and legal and rule.severity is Severity.ERROR


def _is_uuid(rule: Format) -> bool:
    return rule.format == "uuid" and rule.severity is Severity.ERROR


def _scalar(type_: DataType | None) -> Any:
    if type_ is None:
        return "string"
    if type_.family is Family.DECIMAL:
        precision, scale = _USUAL_DIGITS if type_.precision is None else (type_.precision, type_.scale or 0)
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    found = _SCALARS[type_.family, type_.zone if type_.family is Family.TIMESTAMP else type_.bits]
    return dict(found) if isinstance(found, dict) else found


def _doubts(place: Place) -> Iterator[tuple[str, str]]:
    """What the written type says otherwise than the contract's, and how."""
    type_ = place.field.type if place.field is not None else None
    key = place.holds("key")
    match type_:
        case None:
            yield "the type", "the contract says none; written as string"
        case DataType(family=Family.INTEGER, bits=None):
            yield "the width", "the contract says none; written as long"
        case DataType(family=Family.NUMBER, bits=None):
            yield "the width", "the contract says none; written as double"
        case DataType(family=Family.INTEGER, bits=8 | 16 as bits):
            yield f"the width of {bits} bits", "Avro has int (32) and long (64) only; written as int"
        case DataType(family=Family.DECIMAL, precision=None):
            yield "the precision", "the contract says none; written as (38, 18)"
        case DataType(family=Family.TIMESTAMP, zone=None):
            yield "the time zone", "the contract says none; written as an instant"
        case DataType(family=Family.STRING, length=int()):
            yield "the length", "Avro has no lengths"
        case DataType(family=Family.VARIANT):
            yield "the type", "Avro has no variants; written as string"
        case DataType(family=Family.ARRAY) if place.holds("item") is None:
            yield "what it holds", "the contract does not say it; written as string"
        case DataType(family=Family.MAP) if place.holds("value") is None:
            yield "what it holds", "the contract does not say it; written as string"
        case DataType(family=Family.MAP) if key is not None and not _is_text(key):
            yield "the type of the keys", "the keys of Avro's maps are strings"
        case DataType(family=Family.OBJECT) if not place.fields:
            yield "what it holds", "the contract does not say it; written as a map of strings"


def _is_text(place: Place) -> bool:
    type_ = place.field.type if place.field is not None else None
    return type_ is not None and type_.family is Family.STRING
