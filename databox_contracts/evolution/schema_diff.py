"""What changed between two versions of a schema that Python classes declare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from databox_contracts.evolution import explain
from databox_contracts.evolution.changes import ChangeType, Difference, Variant
from databox_contracts.evolution.policies import POLICIES
from databox_contracts.evolution.renaming import only_pairs
from databox_contracts.evolution.report import FieldChange, MigrationReport
from databox_contracts.schema_registry import SchemaVersion


@dataclass(frozen=True)
class SchemaDiff:
    """Two versions of a schema, from the registry or made by hand; their names may differ."""

    old: SchemaVersion
    new: SchemaVersion

    def generate_report(self) -> MigrationReport:
        """What a reader of the old version has to know, in order of declaration.

        A field is renamed where exactly one removed and one added field are of that type. Every type change breaks.
        """
        found = [_change(difference) for difference in self._differences()]
        return MigrationReport(self.old.name, self.old.version, self.new.version, found)

    def _differences(self) -> list[Difference]:
        old, new = self.old.fields, self.new.fields
        removed = {name: type_ for name, type_ in old.items() if name not in new}
        added = {name: type_ for name, type_ in new.items() if name not in old}
        renamed = only_pairs(removed, added)
        found: list[Difference] = []
        for name, type_ in old.items():
            if name in renamed:
                found.append(Difference(ChangeType.FIELD_RENAMED, field=name, old=name, new=renamed[name]))
            elif name in removed:
                found.append(_difference(ChangeType.FIELD_REMOVED, name, old=_name(type_)))
            elif new[name] != type_:
                found.append(Difference(ChangeType.TYPE_CHANGED, field=name, old=_name(type_), new=_name(new[name])))
        taken = list(renamed.values())
        for name, type_ in added.items():
            if name not in taken:
                found.append(_difference(ChangeType.FIELD_ADDED, name, new=_name(type_)))
        return found


def _difference(kind: ChangeType, field: str, *, old: str | None = None, new: str | None = None) -> Difference:
    # Whether a field is required is nothing that a reader of the old schema would ask.
    return Difference(kind, field=field, old=old, new=new, variant=Variant.OPTIONAL)


def _change(difference: Difference) -> FieldChange:
    return FieldChange(
        change_type=difference.kind,
        field_name=difference.field or "",
        old_value=difference.old,
        new_value=difference.new,
        description=explain.message(difference),
        is_breaking=POLICIES["consumer"].breaks(difference),
    )


def _name(type_: Any) -> str:
    return getattr(type_, "__name__", None) if isinstance(type_, type) else str(type_)  # type: ignore[return-value]
