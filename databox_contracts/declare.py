"""Contracts written as Python classes: registered when they are defined, and the same `Contract` as a file gives."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields as dataclass_fields, is_dataclass
from typing import Any, ClassVar, Final, TypeVar, overload

from pydantic import BaseModel

from databox_contracts.annotations import IS_MODEL, PYTHON, Reading, default_facts, read_field
from databox_contracts.errors import ContractError, DataboxError
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.pydantic_models import model_fields, model_modes, model_rules
from databox_contracts.row_validation import ValidationResult, is_row, validate_row, validate_rows
from databox_contracts.schema_registry import SchemaRegistry, SchemaVersion

FIRST_VERSION: Final = "1.0.0"
"""The version of a class that names none."""

_Class = TypeVar("_Class", bound=type)

_CONTRACT: Final = "__databox_contract__"
_HINTS: Final = "__databox_fields__"


class ContractMeta(type):
    """Registers every class below `ContractBase` when its body has been run."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any) -> ContractMeta:
        made = super().__new__(mcs, name, bases, body, **options)
        if any(isinstance(base, ContractMeta) for base in bases):
            _register(made, made.__name__, _locals_of_the_definition())
        return made

    def validate(cls, row: Any) -> ValidationResult:
        """One row, a mapping, against the class, without Spark."""
        return validate_data(row, cls)


class ContractBase(metaclass=ContractMeta):
    """A contract of one dataset, written as a class: an annotation is a field, `__version__` the version.

    Fields of base classes come first. Names that begin with an underscore and `ClassVar`s are no fields. A field with
    a default may be absent from a row.
    """

    __version__: ClassVar[str] = FIRST_VERSION


@overload
def contract(declared: _Class, /) -> _Class: ...


@overload
def contract(
    version: str | None = None, /, *, name: str | None = None, owner: str | None = None
) -> Callable[[_Class], _Class]: ...


def contract(
    declared: Any = None, /, *, name: str | None = None, owner: str | None = None
) -> type | Callable[[_Class], _Class]:
    """Makes a plain class a contract, as `@contract`, `@contract()` or `@contract("2.0.0")`.

    The class gets `validate(row)` and is registered under `name`, its own if not given. The version is that of the
    decorator, else `__version__`, else 1.0.0.
    """
    if declared is not None and not isinstance(declared, str | type):
        raise ContractError(
            f"@contract takes a version, not {type(declared).__name__}", hint='write @contract or @contract("1.0.0")'
        )
    where = _locals_of_the_definition()

    def decorate(decorated: _Class) -> _Class:
        if not isinstance(decorated, type):
            raise ContractError(
                f"@contract is for classes, not for {decorated!r}", hint="decorate a class with annotations"
            )
        if isinstance(declared, str):
            decorated.__version__ = declared  # type: ignore[attr-defined]
        if owner is not None:
            decorated.__owner__ = owner  # type: ignore[attr-defined]
        _register(decorated, name or decorated.__name__, where)
        if not isinstance(decorated, ContractMeta) and not issubclass(decorated, BaseModel):
            decorated.validate = classmethod(_validate)  # type: ignore[attr-defined]
        return decorated

    return decorate(declared) if isinstance(declared, type) else decorate


def _validate(cls: type, row: Any) -> ValidationResult:
    """One row, a mapping, against the class, without Spark."""
    return validate_data(row, cls)


def contract_of(cls: type) -> Contract:
    """The contract that a class declares: a `ContractBase`, one under `@contract`, or a Pydantic model.

    Its dataset has the class's name. Raises `ContractError` for a class without fields, and for an annotation that no
    column can have.
    """
    known: Contract | None = vars(cls).get(_CONTRACT)
    if known is not None:
        return known
    made = _contract(cls, cls.__name__)
    if not issubclass(cls, BaseModel):
        setattr(cls, _CONTRACT, made)
    return made


def validate_data(
    data: Any, against: Contract | SchemaVersion | type | Mapping[str, Any], dataset: str | None = None
) -> ValidationResult:
    """One row, or an iterable of rows, against a contract, a class, a schema version or a dict of field types.

    Missing, mistyped and null fields and broken row rules are errors, undeclared fields are warnings. An int passes
    for a float, a bool for no number. Raises `UnknownDatasetError` where a contract has several and none is named.
    """
    promised = _as_contract(against)
    judge = validate_row if is_row(data) or not _is_iterable(data) else validate_rows
    return judge(data, promised, promised.dataset(dataset))


def _as_contract(against: Any) -> Contract:
    match against:
        case Contract():
            return against
        case type():
            return contract_of(against)
        case SchemaVersion():
            return _of_hints(against.name, against.version, against.fields)
        case Mapping():
            return _of_hints("data", FIRST_VERSION, against)
        case _:
            raise DataboxError(
                f"rows cannot be validated against {type(against).__name__}",
                hint="give a contract, a class of fields or a schema version",
            )


def _is_iterable(data: Any) -> bool:
    return hasattr(data, "__iter__") and not isinstance(data, str | bytes)


# --- from a class to a contract ---------------------------------------------------------------------------------------


def _contract(cls: type, name: str) -> Contract:
    reading = Reading(f"{cls.__module__}.{cls.__qualname__}", fields_of, open=(cls,))
    fields = fields_of(cls, reading)
    if not fields:
        raise reading.refuse(f"the class {cls.__name__!r} declares no field", "annotate its fields: `symbol: str`")
    is_model = issubclass(cls, BaseModel)
    dataset = Dataset(
        name=name,
        fields=fields,
        rules=tuple(model_rules(cls, reading)) if is_model else (),
        modes=model_modes(cls) if is_model else None,
        custom={PYTHON: {IS_MODEL: True}} if is_model else {},
        description=_documentation(cls),
    )
    return Contract(
        id=name,
        version=_version(cls),
        owner=getattr(cls, "__owner__", None),
        datasets=(dataset,),
        dialect="python",
        source=reading.source,
        findings=tuple(reading.findings),
    )


def _of_hints(name: str, version: str, hints: Mapping[str, Any]) -> Contract:
    reading = Reading(name, fields_of)
    fields = tuple(read_field(field, annotation, reading) for field, annotation in hints.items())
    return Contract(id=name, version=version, datasets=(Dataset(name=name, fields=fields),), dialect="python")


def fields_of(cls: type, reading: Reading) -> tuple[Field, ...]:
    """The fields that a class declares, in order; of a Pydantic model, a dataclass, a TypedDict or any other class."""
    if issubclass(cls, BaseModel):
        return model_fields(cls, reading)
    absent = _may_be_absent(cls)
    return tuple(
        read_field(name, annotation, reading, **absent.get(name, {})) for name, annotation in _hints(cls).items()
    )


def _may_be_absent(cls: type) -> dict[str, dict[str, Any]]:
    """The facts of the fields that a row need not hold: those with a default, and a TypedDict's NotRequired."""
    found: dict[str, dict[str, Any]] = {}
    if is_dataclass(cls):
        return {
            entry.name: default_facts(entry.default)
            for entry in dataclass_fields(cls)
            if entry.default is not MISSING or entry.default_factory is not MISSING
        }
    for name in _hints(cls):
        default = inspect.getattr_static(cls, name, MISSING)
        if default is not MISSING:
            found[name] = default_facts(default)
    return found | {name: default_facts(None) for name in sorted(getattr(cls, "__optional_keys__", ()))}


def _hints(cls: type, where: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The public annotated names of a class and its bases, the bases' first, with their annotations resolved."""
    known: dict[str, Any] | None = vars(cls).get(_HINTS)
    if known is not None:
        return known
    try:
        hints = typing.get_type_hints(cls, localns={**(where or {}), cls.__name__: cls}, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise ContractError(
            f"an annotation of the class {cls.__qualname__!r} cannot be resolved: {error}",
            hint="define or import the type before the class",
            contract=cls.__name__,
        ) from None
    return {
        name: annotation
        for name, annotation in hints.items()
        if not name.startswith("_") and (typing.get_origin(annotation) or annotation) is not ClassVar
    }


def _register(cls: type, name: str, where: Mapping[str, Any]) -> None:
    if not issubclass(cls, BaseModel):
        hints = _hints(cls, where)
        setattr(cls, _HINTS, hints)
    else:
        hints = {key: info.annotation for key, info in cls.model_fields.items()}
    if not hints and isinstance(cls, ContractMeta):
        # A base for others, which adds methods or attributes only.
        return
    made = _contract(cls, name)
    setattr(cls, _CONTRACT, made)
    SchemaRegistry.register(SchemaVersion(name, made.version, dict(hints)))


def _locals_of_the_definition() -> Mapping[str, Any]:
    """The names where the class statement stands, for annotations that are text: a class in a function sees them."""
    frame = sys._getframe(2)
    return frame.f_locals if frame.f_locals is not frame.f_globals else {}


def _version(cls: type) -> str:
    version = getattr(cls, "__version__", FIRST_VERSION)
    if not isinstance(version, str) or not version.strip():
        raise ContractError(
            f"the version of the class {cls.__name__!r} must be text, not {version!r}",
            hint='write __version__ = "1.0.0"',
            contract=cls.__name__,
        )
    return version


def _documentation(cls: type) -> str:
    own = vars(cls).get("__doc__")
    return inspect.cleandoc(own) if isinstance(own, str) else ""


__all__ = [
    "FIRST_VERSION",
    "ContractBase",
    "ContractMeta",
    "contract",
    "contract_of",
    "fields_of",
    "validate_data",
]
