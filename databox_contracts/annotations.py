"""Python annotations as fields of a contract: the type, and the rules that the annotation's constraints are."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import ContractError, Finding, Level
from databox_contracts.model import Field
from databox_contracts.patterns import PatternError, to_java
from databox_contracts.rules import NotEnforced, Required, Rule

PYTHON: Final = "$python"
"""The name under which `custom` carries what only a Python class says."""

MAY_BE_ABSENT: Final = "mayBeAbsent"
"""In a field's `custom[PYTHON]`: a row need not hold the field, since the class gives it a default."""

IS_MODEL: Final = "isModel"
"""In a dataset's `custom[PYTHON]`: its class is a Pydantic model."""

# An annotation says what kind of value there is, not how wide the column is; `Annotated[int, DataType(...)]` does.
_TYPES: Final[dict[Any, DataType]] = {
    str: DataType(Family.STRING),
    bool: DataType(Family.BOOLEAN),
    int: DataType(Family.INTEGER),
    float: DataType(Family.NUMBER),
    Decimal: DataType(Family.DECIMAL),
    datetime: DataType(Family.TIMESTAMP),
    date: DataType(Family.DATE),
    time: DataType(Family.TIME),
    bytes: DataType(Family.BINARY),
    bytearray: DataType(Family.BINARY),
    UUID: DataType(Family.STRING),
}

_LISTS: Final = (list, tuple, set, frozenset, Sequence, AbstractSet)
_MAPS: Final = (dict, Mapping)

# Types of Pydantic, by name: importing the models that use them is what loads them.
_NAMED_FORMATS: Final = {
    "EmailStr": "email",
    "AnyUrl": "uri",
    "AnyHttpUrl": "uri",
    "HttpUrl": "uri",
    "IPv4Address": "ipv4",
    "IPv6Address": "ipv6",
}
_SECRETS: Final = ("SecretStr", "SecretBytes")

# Metadata that says how Pydantic converts, and nothing about the value that comes out.
_CONVERSIONS: Final = ("Strict", "PydanticGeneralMetadata", "_PydanticGeneralMetadata", "FieldInfo", "Discriminator")


@dataclasses.dataclass
class Reading:
    """What one class is being read as: whose fields they are, what was found, and which classes are open."""

    source: str
    fields_of: Callable[[type, Reading], tuple[Field, ...]]
    findings: list[Finding] = dataclasses.field(default_factory=list)
    open: tuple[type, ...] = ()
    path: tuple[str, ...] = ()

    def inside(self, name: str) -> Reading:
        """The same for a part of what is read now."""
        return dataclasses.replace(self, path=(*self.path, name))

    @property
    def place(self) -> str:
        """The dotted path of what is being read."""
        return ".".join(self.path)

    def refuse(self, message: str, hint: str) -> ContractError:
        """The error for an annotation that cannot be read."""
        finding = Finding(self.source, Level.ERROR, message, None, hint, self.place or None)
        return ContractError.from_findings([finding])

    def unenforced(self, reason: str) -> NotEnforced:
        """A rule that every verdict shows as skipped, and the warning that says so."""
        self.findings.append(
            Finding(
                self.source,
                Level.WARNING,
                f"not enforced: {reason}",
                None,
                "it is shown as skipped in every verdict",
                self.place or None,
            )
        )
        return NotEnforced(reason=reason)


def read_field(name: str, annotation: Any, reading: Reading, metadata: Sequence[Any] = (), **facts: Any) -> Field:
    """The field that an annotation means; `metadata` is what stands beside it as in `Annotated`, `facts` are `Field`'s.

    A field that is not Optional is required. Raises `ContractError` for an annotation that no table column can have.
    """
    at = reading.inside(name)
    bare, extra, optional = _unwrapped(annotation, at)
    found = _Found(facts)
    _read_type(bare, found, at)
    for item in (*extra, *metadata):
        _read_metadata(item, found, at)
    _finish_digits(found, at)
    required = () if optional else (Required(),)
    return Field(name=name, **{**found.facts, "rules": (*required, *found.rules)})


@dataclasses.dataclass
class _Found:
    """A field while it is being read."""

    facts: dict[str, Any]
    rules: list[Rule] = dataclasses.field(default_factory=list)
    digits: int | None = None
    places: int | None = None

    @property
    def type(self) -> DataType | None:
        found: DataType | None = self.facts.get("type")
        return found


def _unwrapped(annotation: Any, at: Reading) -> tuple[Any, tuple[Any, ...], bool]:
    """The annotation without `Annotated` and `Optional`, the metadata, and whether None is allowed."""
    metadata: tuple[Any, ...] = ()
    optional = False
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            metadata = (*annotation.__metadata__, *metadata)
            annotation = annotation.__origin__
        elif origin in (typing.Required, typing.NotRequired, typing.Final):
            (annotation,) = typing.get_args(annotation)
        elif origin in (typing.Union, types.UnionType):
            members = [member for member in typing.get_args(annotation) if member is not type(None)]
            optional = optional or len(members) < len(typing.get_args(annotation))
            if len(members) > 1:
                if {int, float} == set(members):
                    members = [float]
                else:
                    shown = " | ".join(_shown(member) for member in members)
                    raise at.refuse(
                        f"the field {at.place!r} may be of several types ({shown}), and a column has one",
                        "give it one type; `X | None` allows nulls",
                    )
            annotation = members[0]
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation, metadata, optional or annotation in (None, type(None), Any)


def _read_type(bare: Any, found: _Found, at: Reading) -> None:
    origin = typing.get_origin(bare) or bare
    if bare is Any or bare is object or bare in (None, type(None)):
        return
    if origin is typing.Literal:
        _read_values(_flat_literal(bare), found, at)
    elif origin in _LISTS:
        found.facts["type"] = DataType(Family.ARRAY)
        _read_items(origin, typing.get_args(bare), found, at)
    elif origin in _MAPS:
        found.facts["type"] = DataType(Family.MAP)
        arguments = typing.get_args(bare)
        if arguments:
            found.facts["key"] = read_field("key", arguments[0], at)
            found.facts["value"] = read_field("value", arguments[1], at)
    elif isinstance(origin, type):
        _read_class(origin, found, at)
    else:
        raise _unsupported(bare, at)


def _read_class(origin: type, found: _Found, at: Reading) -> None:
    if issubclass(origin, enum.Enum):
        _read_values([member.value for member in origin], found, at)
    elif origin.__name__ in _NAMED_FORMATS:
        found.facts["type"] = DataType(Family.STRING)
        found.rules.append(rules.Format(format=_NAMED_FORMATS[origin.__name__]))
    elif origin.__name__ in _SECRETS:
        found.facts["type"] = DataType(Family.STRING if origin.__name__ == "SecretStr" else Family.BINARY)
        found.facts["pii"] = True
    elif (known := next((type_ for base, type_ in _TYPES.items() if _is(origin, base)), None)) is not None:
        found.facts["type"] = known
        if origin is UUID:
            found.rules.append(rules.Format(format="uuid"))
    elif origin in at.open:
        raise at.refuse(
            f"the field {at.place!r} is of the type {origin.__name__} that it belongs to, and a table cannot nest "
            "without end",
            "refer to the other row by its key",
        )
    elif has_fields(origin):
        found.facts["type"] = DataType(Family.OBJECT)
        inner = dataclasses.replace(at, open=(*at.open, origin))
        found.facts["fields"] = at.fields_of(origin, inner)
    else:
        raise _unsupported(origin, at)


def _is(origin: type, base: type) -> bool:
    # A bool is an int to Python, and a datetime a date; here they are different types.
    return origin is base if base in (int, date) else issubclass(origin, base)


def has_fields(origin: Any) -> bool:
    """Whether a class describes rows: any class of the user's with annotations."""
    return isinstance(origin, type) and origin.__module__ != "builtins" and bool(_all_annotations(origin))


def default_facts(default: Any) -> dict[str, Any]:
    """The facts of a field that has a default: a row need not hold it. Only a plain value is kept."""
    value = default.value if isinstance(default, enum.Enum) else default
    kept = isinstance(value, str | bool | int | float | Decimal | date | time)
    return {"custom": {PYTHON: {MAY_BE_ABSENT: True}}, **({"default": value} if kept else {})}


def _all_annotations(origin: type) -> bool:
    return any(vars(base).get("__annotations__") for base in origin.__mro__)


def _unsupported(annotation: Any, at: Reading) -> ContractError:
    return at.refuse(
        f"the field {at.place!r} has the type {_shown(annotation)}, which no column can have",
        "use str, int, float, bool, Decimal, date, datetime, time, bytes, list[...], dict[...] or a class with fields",
    )


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).removeprefix("typing.")


def _read_items(origin: Any, arguments: tuple[Any, ...], found: _Found, at: Reading) -> None:
    members = [argument for argument in arguments if argument is not Ellipsis]
    if len(members) > 1:
        if any(member != members[0] for member in members):
            raise at.refuse(
                f"the items of {at.place!r} are of different types, and an array has one", "use a class with fields"
            )
        found.rules.extend((rules.MinItems(count=len(members)), rules.MaxItems(count=len(members))))
    elif origin is tuple and members and Ellipsis not in arguments:
        found.rules.extend((rules.MinItems(count=1), rules.MaxItems(count=1)))
    if members:
        found.facts["item"] = read_field("item", members[0], at)
    if origin in (set, frozenset, AbstractSet):
        found.rules.append(rules.UniqueItems())


def _flat_literal(annotation: Any) -> list[Any]:
    values: list[Any] = []
    for value in typing.get_args(annotation):
        values.extend(_flat_literal(value) if typing.get_origin(value) is typing.Literal else [value])
    return [value.value if isinstance(value, enum.Enum) else value for value in values]


def _read_values(values: list[Any], found: _Found, at: Reading) -> None:
    """The rule of a closed list, and the type its values have in common."""
    kinds = list(dict.fromkeys(type(value) for value in values if value is not None))
    if set(kinds) == {int, float}:
        kinds = [float]
    if len(kinds) != 1 or (kinds[0] not in (str, int, float, bool, Decimal)):
        raise at.refuse(
            f"the allowed values of {at.place!r} are not all texts, or all numbers, or all booleans",
            "list values of one type",
        )
    found.facts["type"] = _TYPES[kinds[0]]
    found.rules.append(rules.Enum(values=tuple(values)))


# --- what stands beside a type ----------------------------------------------------------------------------------------


def _limit(make: Callable[..., Rule]) -> Callable[[Any, _Found, Reading], Iterator[Rule]]:
    def read(value: Any, found: _Found, at: Reading) -> Iterator[Rule]:
        yield make(limit=value.isoformat() if isinstance(value, date | time) else value)

    return read


def _size(text: Callable[..., Rule], items: Callable[..., Rule]) -> Callable[[Any, _Found, Reading], Iterator[Rule]]:
    def read(value: Any, found: _Found, at: Reading) -> Iterator[Rule]:
        family = found.type.family if found.type is not None else None
        if family is Family.STRING:
            yield text(length=value)
        elif family is Family.ARRAY:
            yield items(count=value)
        else:
            yield at.unenforced(f"the length of a {family or 'value'} is not checked")

    return read


def _multiple(value: Any, found: _Found, at: Reading) -> Iterator[Rule]:
    yield rules.MultipleOf(divisor=value)


def _pattern(value: Any, found: _Found, at: Reading) -> Iterator[Rule]:
    written = value if isinstance(value, str) else value.pattern
    try:
        to_java(written)
    except PatternError as error:
        raise at.refuse(f"the pattern of {at.place!r} {error.reason}", error.hint or "correct it") from None
    yield rules.Pattern(pattern=written)


def _digits(value: Any, found: _Found, at: Reading) -> Iterator[Rule]:
    found.digits = value
    return iter(())


def _places(value: Any, found: _Found, at: Reading) -> Iterator[Rule]:
    found.places = value
    return iter(())


def _finish_digits(found: _Found, at: Reading) -> None:
    """Digits and places together are a type; places alone are a grid; digits alone are neither."""
    is_decimal = found.type is not None and found.type.family is Family.DECIMAL
    if found.digits is not None and found.places is not None and is_decimal:
        found.facts["type"] = DataType(Family.DECIMAL, precision=found.digits, scale=found.places)
        return
    if found.places is not None:
        found.rules.append(rules.MultipleOf(divisor=Decimal(1).scaleb(-found.places)))
    if found.digits is not None:
        found.rules.append(at.unenforced(f"max_digits of {at.place!r} without decimal_places"))


# The attributes by which annotated_types, Pydantic's own constraints and its Field say what a value may be.
_CONSTRAINTS: Final[dict[str, Callable[[Any, _Found, Reading], Iterator[Rule]]]] = {
    "ge": _limit(rules.Minimum),
    "gt": _limit(rules.ExclusiveMinimum),
    "le": _limit(rules.Maximum),
    "lt": _limit(rules.ExclusiveMaximum),
    "multiple_of": _multiple,
    "min_length": _size(rules.MinLength, rules.MinItems),
    "max_length": _size(rules.MaxLength, rules.MaxItems),
    "pattern": _pattern,
    "max_digits": _digits,
    "decimal_places": _places,
}

_DESCRIBING: Final = {"description": "description", "title": "business_name"}


def _read_metadata(item: Any, found: _Found, at: Reading) -> None:
    match item:
        case Rule():
            found.rules.append(item)
            return
        case DataType():
            found.facts["type"] = item
            return
        case str():
            found.facts.setdefault("description", item)
            return
    for name, fact in _DESCRIBING.items():
        if isinstance(told := getattr(item, name, None), str) and told:
            found.facts.setdefault(fact, told)
    inner = getattr(item, "metadata", None)
    if isinstance(inner, list | tuple):
        for part in inner:
            _read_metadata(part, found, at)
        return
    known = {name: value for name in _CONSTRAINTS if (value := getattr(item, name, None)) is not None}
    for name, value in known.items():
        found.rules.extend(_CONSTRAINTS[name](value, found, at))
    kind = type(item).__name__
    if not known and kind not in _CONVERSIONS:
        found.rules.append(at.unenforced(f"{kind} of {at.place!r}, which runs in Python only"))
