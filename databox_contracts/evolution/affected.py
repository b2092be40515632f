"""Whom a change, or a broken promise, concerns: the consumers that read what it is about, and in which version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from databox_contracts.errors import VersionRangeError
from databox_contracts.evolution.changes import ChangeType
from databox_contracts.evolution.report import FieldChange, MigrationReport
from databox_contracts.model import Consumer, Contract, Dataset, Field
from databox_contracts.version_ranges import VersionRange
from databox_contracts.versions import Version

GONE: Final = (
    ChangeType.FIELD_REMOVED,
    ChangeType.FIELD_RENAMED,
    ChangeType.DATASET_REMOVED,
    ChangeType.DATASET_RENAMED,
)
"""After these, what somebody read is no longer there under its name."""


class Standing(StrEnum):
    """What a consumer's pin makes of a new version.

    It `follows` where the pin allows it, or where there is none; it `stays` with the old one where only that is
    allowed; it is `outside` where neither is. `unknown`: pin or version cannot be read as such.
    """

    FOLLOWS = "follows"
    STAYS = "stays"
    OUTSIDE = "outside"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Affected:
    """A consumer, and those changes of a report that concern it, in the report's order; there is at least one."""

    consumer: Consumer
    changes: tuple[FieldChange, ...]
    standing: Standing
    old_version: str
    new_version: str

    @property
    def breaking(self) -> tuple[FieldChange, ...]:
        """Those that break somebody under the report's policy."""
        return tuple(change for change in self.changes if change.is_breaking)

    @property
    def is_broken(self) -> bool:
        """Whether the consumer itself breaks: it is about to read the new version, and something in it breaks."""
        return bool(self.breaking) and self.standing is not Standing.STAYS

    @property
    def situation(self) -> str:
        """One sentence on what the version means for it."""
        pin = self.consumer.versions
        match self.standing:
            case Standing.FOLLOWS if pin is None:
                return f"{self.consumer.name} pins no version and gets {self.new_version}"
            case Standing.FOLLOWS:
                return f"{self.consumer.name} gets {self.new_version}, which its pin {pin} allows"
            case Standing.STAYS:
                return (
                    f"{self.consumer.name} stays on {self.old_version}: its pin {pin} does not allow {self.new_version}"
                )
            case Standing.OUTSIDE:
                return (
                    f"{self.consumer.name} pins {pin}, which allows neither {self.old_version} nor {self.new_version}"
                )
            case Standing.UNKNOWN:
                return f"nobody can tell whether the pin {pin!r} of {self.consumer.name} allows {self.new_version}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "consumer": self.consumer.name,
            "owner": self.consumer.owner,
            "versions": self.consumer.versions,
            "standing": str(self.standing),
            "broken": self.is_broken,
            "situation": self.situation,
            "changes": [change.to_dict() for change in self.changes],
        }


def affected(report: MigrationReport, contract: Contract | None, consumers: Sequence[Consumer]) -> tuple[Affected, ...]:
    """The consumers that the changes of a report concern, in the order given.

    `contract` is the version that they read until now: by it a consumer may call datasets and fields what its table
    calls them. Without one, `Consumer.datasets` may name what the report is on as a whole.
    """
    found = []
    for consumer in consumers:
        changes = tuple(change for change in report.changes if concerns(change, consumer, contract, report.schema_name))
        if changes:
            standing = standing_of(consumer, report.old_version, report.new_version)
            found.append(Affected(consumer, changes, standing, report.old_version, report.new_version))
    return tuple(found)


def affected_by_failure(
    contract: Contract, dataset: str, fields: Sequence[str], consumers: Sequence[Consumer]
) -> tuple[Consumer, ...]:
    """The consumers that read what a failed rule is about, in the order given: any of the fields, or the dataset.

    No `fields`: the rule is about the table as a whole. A consumer whose pin keeps it off this version is left out.
    """
    of_table = dataset_names(contract, dataset)
    return tuple(
        consumer
        for consumer in readers_of(contract.version, consumers)
        if reads_dataset(consumer, of_table)
        and (not fields or any(reads_field(consumer, of_table, field, contract) for field in fields))
    )


def readers_of(version: str, consumers: Sequence[Consumer]) -> tuple[Consumer, ...]:
    """The consumers of a contract that something about this version of it as a whole concerns, in the order given.

    Those whose pin keeps them off it are left out; a pin or a version that cannot be read keeps nobody off.
    """
    return tuple(consumer for consumer in consumers if allowed(consumer, version) is not False)


def concerned(change: FieldChange, consumers: Sequence[Consumer], contract: Contract | None = None) -> list[Consumer]:
    """The consumers that say they read what changed; one that names no datasets or no fields reads them all."""
    return [consumer for consumer in consumers if concerns(change, consumer, contract)]


def concerns(
    change: FieldChange, consumer: Consumer, contract: Contract | None = None, schema: str | None = None
) -> bool:
    """Whether the change is about something that the consumer says it reads.

    What is about the contract as a whole concerns all its consumers, but for the remark that a version should have
    moved. `schema` is the name of what changed as a whole, where there is no contract.
    """
    if change.change_type is ChangeType.VERSION_NOT_BUMPED:
        return False
    name = change.dataset
    if name is None:
        if contract is not None or schema is None:
            return True
        name = schema
    names = dataset_names(contract, name)
    if contract is None and schema is not None:
        names = tuple(dict.fromkeys((*names, f"{schema}.{name}", schema)))
    if not reads_dataset(consumer, names):
        return False
    return change.field_name in names or reads_field(consumer, names, change.field_name, contract)


def names_the_field(change: FieldChange, consumer: Consumer) -> bool:
    """Whether the consumer's own list of fields has the one that goes."""
    names = (change.dataset or "",)
    return change.change_type in GONE and any(overlap(_plain(one, names), change.field_name) for one in consumer.fields)


# --- what a consumer reads --------------------------------------------------------------------------------------------


def dataset_names(contract: Contract | None, name: str) -> tuple[str, ...]:
    """What a consumer may call the dataset: its name, that of its table, and either with the contract's id before.

    The contract's id alone is all of its datasets.
    """
    found = [name]
    for dataset in contract.datasets if contract is not None else ():
        if name in (dataset.name, dataset.table_name):
            found += [dataset.name, dataset.table_name]
    if contract is not None:
        found += [*(f"{contract.id}.{one}" for one in found), contract.id]
    return tuple(dict.fromkeys(found))


def reads_dataset(consumer: Consumer, names: Sequence[str]) -> bool:
    """Whether it reads the dataset of those names; a consumer that names none reads them all."""
    return not consumer.datasets or any(name in names for name in consumer.datasets)


def reads_field(consumer: Consumer, names: Sequence[str], field: str, contract: Contract | None = None) -> bool:
    """Whether it reads the field, something in it or something around it; one that names no fields reads them all.

    `names` are the dataset's. A field's name may have one of them before it; one of them alone, where no field has that
    name, is all of its fields.
    """
    if not consumer.fields:
        return True
    dataset = next((one for one in contract.datasets if one.name in names), None) if contract is not None else None
    if dataset is not None and any(one in names and not trail_of(dataset, one) for one in consumer.fields):
        return True
    spelled = tuple(dict.fromkeys((field, column_of(dataset, field)))) if dataset is not None else (field,)
    return any(overlap(_plain(one, names), spelling) for one in consumer.fields for spelling in spelled)


def column_of(dataset: Dataset, dotted: str) -> str:
    """The field's path in the names of the table; what the dataset does not declare stays as it is."""
    trail = trail_of(dataset, dotted)
    return ".".join(field.column for field in trail) if trail else dotted


def trail_of(dataset: Dataset, dotted: str) -> tuple[Field, ...]:
    """The fields from the top down to the one that a consumer means, empty where there is none.

    Names may be the contract's or the table's, in any case; the fields of an array's objects read as the array's own.
    """
    return _trail(dataset.fields, dotted.casefold())


def _trail(level: Iterable[Field], dotted: str) -> tuple[Field, ...]:
    for field in level:
        for name in dict.fromkeys((field.name.casefold(), field.column.casefold())):
            if dotted == name:
                return (field,)
            if dotted.startswith(f"{name}."):
                rest = _trail(_inside(field), dotted[len(name) + 1 :])
                if rest:
                    return (field, *rest)
    return ()


def _inside(field: Field) -> Iterator[Field]:
    yield from field.fields
    if field.item is not None:
        yield from _inside(field.item)
    yield from (part for part in (field.key, field.value) if part is not None)


def _plain(name: str, datasets: Sequence[str]) -> str:
    """A consumer's name of a field without the dataset before it."""
    return next((name[len(one) + 1 :] for one in datasets if name.startswith(f"{one}.")), name)


def overlap(name: str, field: str) -> bool:
    """Whether one is the other, in it, or around it."""
    name, field = name.casefold(), field.casefold()
    return name == field or name.startswith(f"{field}.") or field.startswith(f"{name}.")


# --- in which version -------------------------------------------------------------------------------------------------


def standing_of(consumer: Consumer, old_version: str, new_version: str) -> Standing:
    """What the consumer's pin makes of a new version."""
    now, then = allowed(consumer, new_version), allowed(consumer, old_version)
    if now is None:
        return Standing.UNKNOWN
    if now:
        return Standing.FOLLOWS
    return Standing.STAYS if then else Standing.OUTSIDE


def allowed(consumer: Consumer, version: str) -> bool | None:
    """Whether its pin allows the version: true without a pin, None where one of the two cannot be read."""
    if consumer.versions is None:
        return True
    parsed = Version.parse(version)
    try:
        pin = VersionRange.parse(consumer.versions)
    except VersionRangeError:
        return None
    return pin.allows(parsed) if parsed is not None else None
