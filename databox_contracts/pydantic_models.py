"""Pydantic models as contracts: their fields, the columns mode that `extra` is, and what only Pydantic can run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

from databox_contracts.annotations import Reading, default_facts, read_field
from databox_contracts.model import Field, Mode, SchemaModes
from databox_contracts.rules import Rule

DEFAULT_MODES: Final = SchemaModes(tables=Mode.EVOLVE, columns=Mode.DISCARD_VALUE, data_type=Mode.FREEZE)
"""What a model that says nothing about `extra` does: it ignores further fields and refuses values that do not fit."""

EXTRA_OF_MODE: Final = {
    Mode.EVOLVE: "allow",
    Mode.FREEZE: "forbid",
    Mode.DISCARD_VALUE: "ignore",
    Mode.DISCARD_ROW: "forbid",
}
"""The `extra` of a model for each columns mode."""

MODE_OF_EXTRA: Final = {"allow": Mode.EVOLVE, "forbid": Mode.FREEZE, "ignore": Mode.DISCARD_VALUE}
"""The columns mode for each `extra` that a model configures."""


def model_modes(cls: type[BaseModel]) -> SchemaModes:
    """The schema modes of a model; without an `extra` of its own the default ones."""
    extra = cls.model_config.get("extra")
    if extra is None:
        return DEFAULT_MODES
    return DEFAULT_MODES.model_copy(update={"columns": MODE_OF_EXTRA[extra]})


def model_fields(cls: type[BaseModel], reading: Reading) -> tuple[Field, ...]:
    """The fields of a model in order; one with an alias is the column of that name."""
    found = []
    for name, info in cls.model_fields.items():
        facts: dict[str, Any] = {}
        if not info.is_required():
            facts |= default_facts(info.default)
        alias = info.validation_alias if isinstance(info.validation_alias, str) else info.alias
        if alias is not None and alias != name:
            facts["column_name"] = alias
        if info.examples:
            facts["examples"] = tuple(info.examples)
        if info.deprecated:
            facts["deprecated"] = True
        # The field's own Field(...) has its description and its constraints.
        found.append(read_field(name, info.annotation, reading, (info,), **facts))
    _compare_extra(cls, reading)
    return tuple(found)


def model_rules(cls: type[BaseModel], reading: Reading) -> Iterator[Rule]:
    """The validators and computed fields of a model, which no table can be held to."""
    decorators = cls.__pydantic_decorators__
    for kind, names in (
        ("the validator", [*decorators.field_validators, *decorators.validators]),
        ("the validator", [*decorators.model_validators, *decorators.root_validators]),
        ("the computed field", list(decorators.computed_fields)),
    ):
        for name in names:
            yield reading.unenforced(f"{kind} {name!r} of the model, which runs in Python only")


def _compare_extra(cls: type[BaseModel], reading: Reading) -> None:
    root = reading.open[0]
    if cls is root or not issubclass(root, BaseModel):
        return
    own, outer = cls.model_config.get("extra"), root.model_config.get("extra")
    if own is not None and own != outer:
        reading.unenforced(f"extra={own!r} of the nested model {cls.__name__}; that of {root.__name__} holds for all")
