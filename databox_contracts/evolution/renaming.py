"""Which removed field came back under another name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from databox_contracts.model import Dataset, Field

HINT: Final = "renamedFrom"
"""The custom property of a field or dataset that names what it was called before."""

Shape: TypeAlias = tuple[Any, ...]


def renames(removed: Sequence[Field], added: Sequence[Field]) -> dict[str, Field]:
    """The new field of each removed one that was renamed, by the old name, in the order of the removed ones.

    A field says `renamedFrom`, or keeps its column, or the two are of the same type and each is the other's only
    candidate. Fields without a type are never paired by it. All given fields are of one level.
    """
    found: dict[str, Field] = {}
    free = list(added)
    for pairs in (_hinted(removed, free), _of_one_column(removed, free)):
        for old, new in pairs:
            if old not in found and new in free:
                found[old] = new
                free.remove(new)
    by_name = {field.name: field for field in free}
    old_shapes = {field.name: shape(field) for field in removed if field.name not in found}
    pairs_by_type = only_pairs(old_shapes, {name: shape(field) for name, field in by_name.items()})
    found |= {old: by_name[new] for old, new in pairs_by_type.items()}
    return {field.name: found[field.name] for field in removed if field.name in found}


def only_pairs(removed: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, str]:
    """The new name of each removed one, where exactly one of each has that type; a type of None is never paired."""
    found: dict[str, str] = {}
    for name, type_ in removed.items():
        candidates = [other for other, its_type in added.items() if its_type == type_]
        rivals = [other for other, its_type in removed.items() if its_type == type_]
        if type_ is not None and len(candidates) == len(rivals) == 1:
            found[name] = candidates[0]
    return found


def renamed_dataset(old: Dataset, candidates: Sequence[Dataset]) -> Dataset | None:
    """The dataset that says it was called so before, or None."""
    return next((new for new in candidates if new.custom.get(HINT) in (old.name, old.table_name)), None)


def shape(field: Field) -> Shape | None:
    """The type with all that it contains, None where any of it has none; equal shapes are the same type."""
    if field.type is None:
        return None
    facets = (field.type.family, field.type.bits, field.type.precision, field.type.scale, field.type.length)
    inside: list[Any] = []
    for part in field.parts:
        of_part = shape(part)
        if of_part is None:
            return None
        inside.append((part.name, of_part))
    return (*facets, field.type.zone, tuple(inside))


def _hinted(removed: Sequence[Field], added: Sequence[Field]) -> list[tuple[str, Field]]:
    names = {field.name for field in removed}
    return [(str(field.custom[HINT]), field) for field in added if field.custom.get(HINT) in names]


def _of_one_column(removed: Sequence[Field], added: Sequence[Field]) -> list[tuple[str, Field]]:
    return [(old.name, new) for old in removed for new in added if old.column == new.column]
