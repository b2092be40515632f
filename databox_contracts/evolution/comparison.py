"""What changed between two versions of a contract, found and not judged: in the order of declaration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from databox_contracts.datatypes import DataType
from databox_contracts.evolution.changes import ChangeType, Difference, Variant
from databox_contracts.evolution.contract_changes import contract_differences
from databox_contracts.evolution.renaming import HINT, renamed_dataset, renames
from databox_contracts.evolution.rule_changes import rule_differences
from databox_contracts.model import Contract, Dataset, Field, Mode, SchemaModes
from databox_contracts.normalizing import with_keys_at_fields, without_dialects
from databox_contracts.rules import PrimaryKey


def compare(old: Contract, new: Contract) -> tuple[Difference, ...]:
    """Every difference in what the two contracts promise and say.

    Datasets and fields are compared by name, renamed ones with what they were. The order is that of the old contract,
    what was added comes last at its level. Where something stands in a file is no difference.
    """
    if old.dialect != new.dialect:
        # What only one of the two can say did not change.
        old, new = without_dialects(old), without_dialects(new)
    return (*_datasets(old, new), *contract_differences(old, new))


# --- datasets ---------------------------------------------------------------------------------------------------------


def _datasets(old: Contract, new: Contract) -> Iterator[Difference]:
    partners = _partners(old.datasets, new.datasets)
    for dataset in old.datasets:
        partner = partners.get(dataset.name)
        if partner is None:
            yield Difference(ChangeType.DATASET_REMOVED, dataset.name, old=dataset.name)
            continue
        if (dataset.name, dataset.table_name) != (partner.name, partner.table_name):
            yield _renamed_dataset(dataset, partner)
        yield from _Comparison(old, new, with_keys_at_fields(dataset), with_keys_at_fields(partner)).differences()
    taken = [partner.name for partner in partners.values()]
    for dataset in new.datasets:
        if dataset.name not in taken:
            yield Difference(ChangeType.DATASET_ADDED, dataset.name, new=dataset.name)


def _renamed_dataset(old: Dataset, new: Dataset) -> Difference:
    if old.name != new.name:
        return Difference(ChangeType.DATASET_RENAMED, old.name, old=old.name, new=new.name)
    kind = ChangeType.DATASET_RENAMED
    return Difference(kind, old.name, old=old.table_name, new=new.table_name, subject="physical name")


def _partners(old: Sequence[Dataset], new: Sequence[Dataset]) -> dict[str, Dataset]:
    """The new dataset of each old one: by name, by its hint, or the only one left on both sides."""
    found = {dataset.name: other for dataset in old for other in new if other.name == dataset.name}
    free = [dataset for dataset in new if dataset.name not in found]
    for dataset in old:
        if dataset.name in found:
            continue
        partner = renamed_dataset(dataset, free)
        if partner is not None:
            found[dataset.name] = partner
            free.remove(partner)
    left = [dataset for dataset in old if dataset.name not in found]
    if len(left) == len(free) == 1 and _share_a_field(left[0], free[0]):
        found[left[0].name] = free[0]
    return found


def _share_a_field(old: Dataset, new: Dataset) -> bool:
    names = {field.name for field in old.fields}
    return not names or any(field.name in names for field in new.fields)


# --- fields -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Comparison:
    """Two versions of one dataset."""

    old: Contract
    new: Contract
    before: Dataset
    after: Dataset

    def differences(self) -> Iterator[Difference]:
        yield from self._level(self.before.fields, self.after.fields, (), hidden=False)
        yield from rule_differences(self.before.rules, self.after.rules, self._make, masked=False)
        yield from self._modes(self.before.modes, self.after.modes)
        yield from self._said(self.before, self.after, _SAID_OF_DATASETS, None)

    def _make(self, kind: ChangeType, field: str | None = None, **facts: Any) -> Difference:
        return Difference(kind, self.before.name, field, **facts)

    def _level(
        self, before: Sequence[Field], after: Sequence[Field], path: tuple[str, ...], *, hidden: bool
    ) -> Iterator[Difference]:
        """The fields of one object; `path` leads to it, `hidden` says that no value in it may be shown."""
        old_names = [field.name for field in before]
        common = {field.name: field for field in after if field.name in old_names}
        removed = [field for field in before if field.name not in common]
        added = [field for field in after if field.name not in old_names]
        renamed = renames(removed, added)
        for field in before:
            partner = common.get(field.name) or renamed.get(field.name)
            dotted = ".".join((*path, field.name))
            if partner is None:
                yield self._make(
                    ChangeType.FIELD_REMOVED,
                    dotted,
                    old=_type(field),
                    variant=self._need(self.before, field, path),
                    announced=field.deprecated,
                )
                continue
            if field.name in renamed:
                yield self._renamed(field, partner, path, "")
            elif field.column != partner.column:
                yield self._renamed(field, partner, path, "physical name")
            yield from self._field(field, partner, (*path, field.name), hidden=hidden)
        taken = [field.name for field in renamed.values()]
        for field in added:
            if field.name not in taken:
                yield self._make(
                    ChangeType.FIELD_ADDED,
                    ".".join((*path, field.name)),
                    new=_type(field),
                    variant=self._need(self.after, field, path),
                )
        yield from self._order(before, after, {**common, **renamed}, path)

    def _renamed(self, field: Field, partner: Field, path: tuple[str, ...], subject: str) -> Difference:
        return self._make(
            ChangeType.FIELD_RENAMED,
            ".".join((*path, field.name)),
            old=field.column if subject else field.name,
            new=partner.column if subject else partner.name,
            subject=subject,
            announced=field.deprecated,
            old_required=self._need(self.before, field, path) is Variant.REQUIRED,
            new_required=self._need(self.after, partner, path) is Variant.REQUIRED,
        )

    def _need(self, dataset: Dataset, field: Field, path: tuple[str, ...]) -> Variant:
        name = ".".join((*path, field.name))
        keyed = any(isinstance(rule, PrimaryKey) and name in rule.fields for rule in dataset.rules)
        return Variant.REQUIRED if field.required or keyed else Variant.OPTIONAL

    def _order(
        self, before: Sequence[Field], after: Sequence[Field], partners: Mapping[str, Field], path: tuple[str, ...]
    ) -> Iterator[Difference]:
        """Whether those that both have stand in another order."""
        old_order = [partners[field.name].name for field in before if field.name in partners]
        new_order = [field.name for field in after if field.name in old_order]
        if old_order != new_order:
            yield self._make(ChangeType.FIELD_REORDERED, ".".join(path) or None, old=old_order, new=new_order)

    def _field(self, before: Field, after: Field, path: tuple[str, ...], *, hidden: bool) -> Iterator[Difference]:
        dotted = ".".join(path)
        masked = (
            hidden or before.conceals(self.old.governance.pii_class) or after.conceals(self.new.governance.pii_class)
        )

        def make(kind: ChangeType, **facts: Any) -> Difference:
            return self._make(kind, dotted, **facts)

        if _own(before.type) != _own(after.type):
            yield make(ChangeType.TYPE_CHANGED, old=_type(before), new=_type(after), types=(before.type, after.type))
        yield from rule_differences(before.rules, after.rules, make, masked=masked)
        if before.fields or after.fields:
            yield from self._level(before.fields, after.fields, path, hidden=masked)
        for name in ("item", "key", "value"):
            yield from self._part(getattr(before, name), getattr(after, name), path, name, hidden=masked)
        yield from self._said(before, after, _SAID_OF_FIELDS, dotted, masked=masked)

    def _part(
        self, before: Field | None, after: Field | None, path: tuple[str, ...], name: str, *, hidden: bool
    ) -> Iterator[Difference]:
        """What an array or a map holds; the fields of an array's objects read as the array's own."""
        if before is None or after is None:
            if before is not after:
                yield self._make(
                    ChangeType.TYPE_CHANGED,
                    ".".join((*path, name)),
                    old=_type(before),
                    new=_type(after),
                    types=(None, None),
                )
            return
        if name == "item" and before.fields and after.fields:
            yield from self._level(before.fields, after.fields, path, hidden=hidden)
            before, after = (part.model_copy(update={"fields": ()}) for part in (before, after))
        yield from self._field(before, after, (*path, name), hidden=hidden)

    # --- what is beside the schema ------------------------------------------------------------------------------------

    def _modes(self, before: SchemaModes | None, after: SchemaModes | None) -> Iterator[Difference]:
        old, new = before or SchemaModes(), after or SchemaModes()
        for name in SchemaModes.model_fields:
            had, has = getattr(old, name), getattr(new, name)
            if had is not has:
                tightened = _LENIENT.index(has) > _LENIENT.index(had)
                kind = ChangeType.CONSTRAINT_TIGHTENED if tightened else ChangeType.CONSTRAINT_RELAXED
                yield self._make(kind, subject=f"schema mode of {name}", old=str(had), new=str(has))

    def _said(
        self, before: Field | Dataset, after: Field | Dataset, said: _Said, field: str | None, *, masked: bool = False
    ) -> Iterator[Difference]:
        for name, kind in said.items():
            old, new = _plain(getattr(before, name)), _plain(getattr(after, name))
            if name == "custom":
                old, new = ({key: value for key, value in one.items() if key != HINT} for one in (old, new))
            if old != new:
                shown = {} if name in _UNSHOWN or (masked and name in _VALUES) else {"old": old, "new": new}
                yield self._make(kind, field, subject=name.replace("_", " "), **shown)


_Said = Mapping[str, ChangeType]

_GOVERNANCE: Final = ChangeType.GOVERNANCE_CHANGED
_DOCUMENTATION: Final = ChangeType.DOCUMENTATION_CHANGED

_SAID_OF_FIELDS: Final[_Said] = {
    "pii": _GOVERNANCE,
    "classification": _GOVERNANCE,
    **dict.fromkeys(
        (
            "description",
            "semantics",
            "business_name",
            "tags",
            "partition_position",
            "deprecated",
            "examples",
            "default",
            "sources",
            "custom",
        ),
        _DOCUMENTATION,
    ),
}
_SAID_OF_DATASETS: Final[_Said] = dict.fromkeys(("description", "business_name", "tags", "custom"), _DOCUMENTATION)
_UNSHOWN: Final = ("custom",)
_VALUES: Final = ("examples", "default")

# The more lenient first.
_LENIENT: Final = (Mode.EVOLVE, Mode.DISCARD_VALUE, Mode.DISCARD_ROW, Mode.FREEZE)


def _own(type_: DataType | None) -> DataType | None:
    """The type without what it contains, which is compared on its own."""
    return type_ and replace(type_, item=None, key=None, value=None, fields=None)


def _type(field: Field | None) -> str | None:
    return str(_own(field.type)) if field is not None and field.type is not None else None


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip()
    return list(value) if isinstance(value, tuple) else value
