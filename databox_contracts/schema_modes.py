"""What happens to data that the contract does not know: how modes are written, and whose word holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from databox_contracts.annotations import IS_MODEL, PYTHON
from databox_contracts.datatypes import DataType
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset, Field, Mode, SchemaModes

ENTITIES: Final = ("tables", "columns", "data_type")
"""What a mode is about: a new table, a new column, a value that does not fit its column."""

ModesGiven: TypeAlias = "str | Mapping[str, str] | SchemaModes | None"
"""A word for all entities, or a mapping from some of them to words."""

VARIANT: Final = "__v_"
"""Between a field's name and a type, in the name of the column for what does not fit the field."""

_DECLARED: Final = SchemaModes()
_PAIR: Final = re.compile(r"\s*([A-Za-z_]+)\s*[=:]\s*([A-Za-z_]+)\s*")


def parse_modes(given: ModesGiven, *, whose: str = "schema_modes") -> dict[str, Mode]:
    """The modes that are given, by entity in the order of `ENTITIES`; one word stands for all, None for none.

    Raises `DataboxError`, which calls them by `whose`, for what is no entity or no mode.
    """
    if given is None:
        return {}
    if isinstance(given, SchemaModes):
        return {entity: getattr(given, entity) for entity in ENTITIES}
    if isinstance(given, str):
        return dict.fromkeys(ENTITIES, _mode(given, whose))
    if not isinstance(given, Mapping):
        raise DataboxError(
            f"{whose} is {type(given).__name__}, and has to be a word or a mapping",
            hint=f"Write one of {', '.join(Mode)}, or a mapping such as {{'columns': 'freeze'}}.",
        )
    unknown = [name for name in given if name not in ENTITIES]
    if unknown:
        raise DataboxError(
            f"{whose} names {unknown[0]!r}, for which there is no mode", hint=f"Name some of {', '.join(ENTITIES)}."
        )
    return {entity: _mode(given[entity], f"{whose}: {entity}") for entity in ENTITIES if given.get(entity) is not None}


def parse_modes_text(text: str, *, whose: str = "schema_modes") -> dict[str, Mode]:
    """As `parse_modes`, from one line: `freeze`, `columns=freeze, data_type=evolve` or the same in JSON."""
    stripped = text.strip()
    if stripped.startswith("{"):
        try:
            return parse_modes(json.loads(stripped), whose=whose)
        except ValueError:
            raise DataboxError(f"{whose} is no valid JSON", hint='Write {"columns": "freeze"}.') from None
    if not re.search("[=:]", stripped):
        return parse_modes(stripped, whose=whose)
    pairs = [_PAIR.fullmatch(part) for part in stripped.split(",")]
    named = {pair[1]: pair[2] for pair in pairs if pair is not None}
    if len(named) < len(pairs):
        raise DataboxError(f"{whose} cannot be read", hint="Write columns=freeze, data_type=evolve, each once.")
    return parse_modes(named, whose=whose)


def narrowed(*given: ModesGiven) -> dict[str, Mode]:
    """Several settings as one: of each entity, the last that names it; so the widest setting comes first."""
    found: dict[str, Mode] = {}
    for one in given:
        found |= parse_modes(one)
    return {entity: found[entity] for entity in ENTITIES if entity in found}


def effective_modes(
    contract: Contract,
    dataset: Dataset,
    *,
    run: ModesGiven = None,
    asset: ModesGiven = None,
    code_location: ModesGiven = None,
) -> SchemaModes:
    """The modes that hold for a dataset: for each entity the run's, else the asset's, else the code location's.

    What none of them names is the contract's own, else `{tables: evolve, columns: freeze, data_type: freeze}`; a
    Pydantic model's own is `{evolve, discard_value, freeze}` unless its `extra` says something else of columns. Raises
    `DataboxError` for what is no mode, and for `data_type: discard_value` under a Pydantic model.
    """
    modes = SchemaModes(**{**dict(dataset.modes or _DECLARED), **narrowed(code_location, asset, run)})
    if is_model(dataset) and modes.data_type is Mode.DISCARD_VALUE:
        raise DataboxError(
            f"data_type: discard_value is not for {contract.title}, a Pydantic model: its instances hold every field",
            hint="Use evolve, freeze or discard_row for data_type.",
        )
    return modes


def expanded(modes: SchemaModes) -> dict[str, str]:
    """The modes as a plain mapping of all entities."""
    return {entity: str(getattr(modes, entity)) for entity in ENTITIES}


def is_model(dataset: Dataset) -> bool:
    """Whether the contract is a Pydantic model: then what discards, discards whole rows, never an array's element."""
    return bool(dataset.custom.get(PYTHON, {}).get(IS_MODEL))


def is_incomplete(dataset: Dataset) -> bool:
    """Whether the first load decides on columns: no field is declared, or one without a type.

    Such a table takes new columns for one load, and what it then has is known; one of a Pydantic model never does.
    """
    return not is_model(dataset) and (not dataset.fields or _any_untyped(dataset.fields))


def _any_untyped(fields: Iterable[Field]) -> bool:
    return any(field.type is None or _any_untyped(field.fields) for field in fields)


def variant_name(column: str, actual: DataType | None, otherwise: str) -> str:
    """The name of the column for values of that type that do not fit `column`: `id__v_string`."""
    text = _family_text(actual) if actual is not None else otherwise
    return f"{column}{VARIANT}{re.sub(r'[^a-z0-9]+', '_', text.lower()).strip('_')}"


def is_variant_of(name: str, column: str, *, case_sensitive: bool) -> bool:
    """Whether a column is one for values that did not fit `column`, made by an earlier load."""
    if not case_sensitive:
        name, column = name.lower(), column.lower()
    return name.startswith(f"{column}{VARIANT}") and re.fullmatch("[a-z0-9_]+", name[len(column) :]) is not None


def _family_text(actual: DataType) -> str:
    """A type in a word: one column for each, so what tells 32 from 64 bits is part of it."""
    if actual.item is not None:
        return f"array {_family_text(actual.item)}"
    if actual.family == "timestamp" and actual.zone is False:
        return "timestamp ntz"
    return str(actual.family) if actual.fields is not None or actual.key is not None else str(actual)


def collision(names: Iterable[str], *, case_sensitive: bool) -> tuple[str, str] | None:
    """The first two names that are one and the same to Spark, None where all differ."""
    seen: dict[str, str] = {}
    for name in names:
        normal = name if case_sensitive else name.lower()
        if normal in seen:
            return seen[normal], name
        seen[normal] = name
    return None


def _mode(word: Any, whose: str) -> Mode:
    if isinstance(word, str) and word in tuple(Mode):
        return Mode(word)
    raise DataboxError(f"{whose} is {str(word)[:60]!r}", hint=f"Use one of {', '.join(Mode)}.")
