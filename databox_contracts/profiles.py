"""What a sample of a table looked like, field by field, in a form that is kept to compare later samples with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field as attribute, fields, replace
from datetime import datetime
from typing import Any, Final

from databox_contracts.errors import BaselineError

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class FieldProfile:
    """One field of a sample, counted.

    `rows` are the places where it could have a value (for items, the items); `nulls` of them have none and `not_finite`
    are NaN or infinite. `distinct` counts the values that are not null, None where values of the type are not compared.
    `quantiles` are of what is finite, by level; of a time they are seconds from the time that 99 % of the sample are
    not beyond (`anchored`), since a recent sample moves on. `bins` counts the values before the first of `edges`, from
    each edge to the next, and beyond `high`. `values` has the count of every value, as JSON text, where there are few.
    A `masked` field has rows, nulls and distinct only.
    """

    field: str
    type: str
    rows: int
    nulls: int = 0
    not_finite: int = 0
    distinct: int | None = None
    masked: bool = False
    anchored: bool = False
    quantiles: Mapping[str, float] = attribute(default_factory=dict)
    edges: tuple[float, ...] = ()
    high: float | None = None
    bins: tuple[int, ...] = ()
    values: Mapping[str, int] | None = None

    @property
    def present(self) -> int:
        """How many values there are."""
        return self.rows - self.nulls

    @property
    def null_rate(self) -> float:
        """The share of nulls, 0 where there is no row."""
        return self.nulls / self.rows if self.rows else 0.0

    def without_values(self) -> FieldProfile:
        """As it would be for a masked field: nothing that a value could be told from."""
        return FieldProfile(
            field=self.field, type=self.type, rows=self.rows, nulls=self.nulls, distinct=self.distinct, masked=True
        )


@dataclass(frozen=True, slots=True)
class Baseline:
    """What later samples of a dataset are compared with; it stays until another is accepted.

    `how` says how its sample was taken, `taken_at` when (ISO 8601, UTC).
    """

    contract: str
    contract_version: str
    dataset: str
    taken_at: str
    rows: int
    how: str
    fields: tuple[FieldProfile, ...]
    revision: int = 0

    @property
    def id(self) -> str:
        """The same for the same content, and for a baseline that only learned of fields that it did not know."""
        named = f"{self.contract}\n{self.dataset}\n{self.taken_at}\n{self.rows}\n{self.how}"
        return hashlib.sha256(named.encode()).hexdigest()[:16]

    @property
    def moment(self) -> datetime:
        """When its sample was taken."""
        return datetime.fromisoformat(self.taken_at)

    def field(self, name: str) -> FieldProfile | None:
        """The profile of that field, None where the baseline does not know it."""
        return next((one for one in self.fields if one.field == name), None)

    def masking(self, names: Iterable[str]) -> Baseline:
        """The baseline without the values of those fields, itself where it has none."""
        hidden = set(names)
        if not any(one.field in hidden and not one.masked for one in self.fields):
            return self
        kept = tuple(one.without_values() if one.field in hidden else one for one in self.fields)
        return replace(self, fields=kept, revision=self.revision + 1)

    def knowing(self, more: Iterable[FieldProfile]) -> Baseline:
        """The baseline with the profiles of further fields."""
        added = tuple(one for one in more if self.field(one.field) is None)
        return replace(self, fields=(*self.fields, *added), revision=self.revision + 1) if added else self

    def to_dict(self) -> dict[str, Any]:
        """As a JSON document."""
        return {"format": FORMAT, **asdict(self)}

    def to_json(self) -> str:
        """`to_dict` as text; the same baseline gives the same text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Baseline:
        """What `to_dict` gave. Raises `BaselineError` for anything else."""
        if document.get("format") != FORMAT:
            raise BaselineError(
                f"a baseline of format {document.get('format')!r}; this version reads format {FORMAT}",
                hint="Accept a new one with `update_baseline=True`.",
            )
        try:
            known = {one.name for one in fields(cls)} - {"fields"}
            profiles = tuple(_profile(one) for one in document["fields"])
            return cls(**{name: document[name] for name in known}, fields=profiles)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BaselineError(
                f"not a baseline: {type(error).__name__}", hint="Remove it, or accept a new one."
            ) from error

    @classmethod
    def from_json(cls, text: str) -> Baseline:
        """What `to_json` gave. Raises `BaselineError` for anything else."""
        try:
            document = json.loads(text)
        except ValueError as error:
            raise BaselineError("not a baseline: it is no JSON", hint="Remove it, or accept a new one.") from error
        if not isinstance(document, dict):
            raise BaselineError("not a baseline: it is no JSON object", hint="Remove it, or accept a new one.")
        return cls.from_dict(document)


def _profile(found: Mapping[str, Any]) -> FieldProfile:
    return FieldProfile(**{**found, "edges": tuple(found["edges"]), "bins": tuple(found["bins"])})
