"""Fields that refer to a definition: what this says need not be said again, what it says otherwise has to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from databox_contracts.formats.datacontract_types import LOCAL
from databox_contracts.formats.datacontract_values import APPLIES, without_effect
from databox_contracts.model import Field


def inherited_entries(reference: Any, definitions: Mapping[str, Any]) -> dict[str, Any] | None:
    """The entries of the definition that is referred to, and of those it refers to; None where there is none."""
    found: dict[str, Any] = {}
    seen: list[Any] = []
    while isinstance(reference, str) and reference.startswith(LOCAL) and reference not in seen:
        seen.append(reference)
        definition = definitions.get(reference.removeprefix(LOCAL))
        if not isinstance(definition, Mapping):
            break
        found = {**{key: value for key, value in definition.items() if value is not None}, **found}
        reference = definition.get("$ref")
    return found if seen and isinstance(definitions.get(seen[0].removeprefix(LOCAL)), Mapping) else None


# How a field says that it has not what its definition has.
_UNSAID: Final[dict[str, Any]] = {
    **dict.fromkeys(("required", "unique", "primaryKey", "primary"), False),
    "description": "",
    "tags": [],
    "quality": [],
}
_SAYING: Final = (
    *_UNSAID,
    *APPLIES,
    "title",
    "enum",
    "references",
    "pii",
    "classification",
    "fields",
    "items",
    "keys",
    "values",
)


def referring_entries(
    entries: dict[str, Any], base: Mapping[str, Any], carried: Mapping[str, Any], logical: str | None
) -> dict[str, Any] | None:
    """The entries of a field that refers to a definition: what this says the same is left to it.

    None where the definition says what the field does not, and nothing unsays it: the field cannot refer to it.
    """
    without = without_effect(base, logical)
    more = [key for key in _SAYING if key not in entries and key not in without and _says(base.get(key))]
    if any(key not in _UNSAID for key in more):
        return None
    kept = [key for key in entries if key in carried or key not in _SAYING or not _is_same(entries[key], base.get(key))]
    own = {key: entries[key] for key in kept}
    return {"$ref": own.pop("$ref"), **own, **{key: _UNSAID[key] for key in more}}


def _says(inherited: Any) -> bool:
    return inherited is not None and inherited is not False and inherited not in ("", [], {})


def _is_same(value: Any, inherited: Any) -> bool:
    if isinstance(value, str) and isinstance(inherited, str):
        return value.strip() == inherited.strip()
    plain = list(value) if isinstance(value, tuple) else value
    return type(plain) is type(inherited) and bool(plain == inherited)


def example_entries(field: Field, base: Mapping[str, Any] | None, old: bool) -> dict[str, Any]:
    """The examples beside those that the definition has; `old` has one of them under another name."""
    found = list(field.examples)
    single = base.get("example") if base is not None else None
    listed = base.get("examples") if base is not None else None
    inherited = [*([single] if single is not None else []), *(listed if isinstance(listed, list) else [])]
    if found == inherited:
        return {}
    if single is not None and found and found[0] is not None:
        return {"example": found[0], "examples": found[1:]}
    return {"example": found[0]} if old and len(found) == 1 and found[0] is not None else {"examples": found}
