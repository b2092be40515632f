"""The contract, whichever dialect it was written in; everything behind the loaders knows only this."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field as Setting, InstanceOf

from databox_contracts.datatypes import DataType
from databox_contracts.errors import Finding, Position, UnknownDatasetError
from databox_contracts.rules import Required, Rule, Severity, Unique

SHOWABLE_CLASSIFICATIONS: Final = ("public", "internal")

_BARE_MAIL: Final = re.compile(r"[^@\s<>:/?#]+@[^@\s<>:/?#]+")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @classmethod
    def saying(cls, **facts: Any) -> Self:
        """A model of facts of which many are its defaults: these are left to it, and take neither time nor room."""
        defaults = cls.model_fields
        return cls(**{name: value for name, value in facts.items() if value is not defaults[name].default})


class Mode(StrEnum):
    """What happens to data that the contract does not know."""

    EVOLVE = "evolve"
    FREEZE = "freeze"
    DISCARD_ROW = "discard_row"
    DISCARD_VALUE = "discard_value"


class SchemaModes(_Frozen):
    """One mode for new tables, for new columns, and for values that do not fit their column."""

    tables: Mode = Mode.EVOLVE
    columns: Mode = Mode.FREEZE
    data_type: Mode = Mode.FREEZE


class Field(_Frozen):
    """A column, or a part of a nested one.

    `column` is its name in the table where that is not `name`. `fields` are an object's, `item` an array's, `key` and
    `value` a map's. `type` is None where the contract declares none. `pii` None means: not said here. `semantics` is
    what its values mean, where the contract keeps that apart from the description.
    """

    name: str
    column_name: str | None = None
    type: DataType | None = None
    rules: tuple[InstanceOf[Rule], ...] = ()
    fields: tuple[Field, ...] = ()
    item: Field | None = None
    key: Field | None = None
    value: Field | None = None
    description: str = ""
    semantics: str = ""
    business_name: str | None = None
    pii: bool | None = None
    classification: str | None = None
    tags: tuple[str, ...] = ()
    partition_position: int | None = None
    deprecated: bool = False
    examples: tuple[Any, ...] = ()
    default: Any = None
    sources: tuple[str, ...] = ()
    custom: Mapping[str, Any] = {}
    position: Position | None = None

    @property
    def column(self) -> str:
        """The name in the table."""
        return self.column_name if self.column_name is not None else self.name

    @property
    def required(self) -> bool:
        """Whether the field itself is declared as never null (a part of a primary key is so as well)."""
        return any(isinstance(rule, Required) for rule in self.rules)

    @property
    def unique(self) -> bool:
        """Whether the field alone is declared a key."""
        return any(isinstance(rule, Unique) and not rule.fields for rule in self.rules)

    @property
    def parts(self) -> tuple[Field, ...]:
        """The fields directly inside: an object's, an array's item, a map's key and value."""
        return self.fields + tuple(part for part in (self.item, self.key, self.value) if part is not None)

    def completed(self) -> Field:
        """This field with the parts that its type's spelling declares (`array<int>`) and the document does not."""
        type_ = self.type
        if type_ is None:
            return self
        missing: dict[str, Any] = {}
        for part in ("item", "key", "value"):
            part_type = getattr(type_, part)
            if part_type is not None and getattr(self, part) is None:
                missing[part] = Field(name=part, type=part_type, position=self.position).completed()
        if type_.fields is not None and not self.fields:
            missing["fields"] = tuple(
                Field(name=name, type=part_type, position=self.position).completed() for name, part_type in type_.fields
            )
        return self.model_copy(update=missing) if missing else self

    def conceals(self, pii_class: str | None = None) -> bool:
        """Whether values of this field alone must not be shown: `pii`, or a class that is not public or internal.

        `pii_class` is the contract's, which covers every field that does not say `pii: false`.
        """
        if self.pii or (pii_class is not None and self.pii is None):
            return True
        if self.classification is not None and self.classification.strip().lower() not in SHOWABLE_CLASSIFICATIONS:
            return True
        return self.pii is None and any(tag.strip().lower() == "pii" for tag in self.tags)


class Dataset(_Frozen):
    """One table: its fields in order, and the rules about the table as a whole."""

    name: str
    physical_name: str | None = None
    fields: tuple[Field, ...] = ()
    rules: tuple[InstanceOf[Rule], ...] = ()
    modes: SchemaModes | None = None
    description: str = ""
    business_name: str | None = None
    tags: tuple[str, ...] = ()
    custom: Mapping[str, Any] = {}
    position: Position | None = None

    @property
    def table_name(self) -> str:
        """The table's own name, for its place on disk."""
        return self.physical_name if self.physical_name is not None else self.name

    def trail(self, dotted: str) -> tuple[Field, ...] | None:
        """The fields from the top down to the one of that dotted path through objects, or None.

        A name that itself holds a dot is found as it is.
        """
        return _trail(self.fields, dotted)


def _trail(level: tuple[Field, ...], dotted: str) -> tuple[Field, ...] | None:
    for field in level:
        if field.name == dotted:
            return (field,)
        if dotted.startswith(f"{field.name}."):
            rest = _trail(field.fields, dotted[len(field.name) + 1 :])
            if rest is not None:
                return (field, *rest)
    return None


class Server(_Frozen):
    """Where a dataset lives; `settings` are the rest of the server's entries as written."""

    name: str
    type: str
    environment: str | None = None
    description: str = ""
    settings: Mapping[str, Any] = {}

    @property
    def location(self) -> str | None:
        """The path or URL of the data, where the server has one."""
        found = self.settings.get("path") or self.settings.get("location")
        return str(found) if found is not None else None


class Member(_Frozen):
    """One person of the owning team."""

    username: str
    name: str | None = None
    role: str | None = None
    date_out: str | None = None


class Team(_Frozen):
    """Who owns the contract."""

    name: str | None = None
    description: str = ""
    members: tuple[Member, ...] = ()


class Consumer(_Frozen):
    """A named reader of a dataset: its owner is told when a promise it relies on is broken or changed.

    Name, contact and datasets may be given by position. No `datasets` or `fields` means all of them. `versions` is a
    range such as `^2.1`, None for whatever there is. Below `severity` it is told nothing; None is no limit. With
    `digest` it also hears of what asks nothing of it. `assets` are the keys (`marts/revenue`) of the tables that it
    makes of what it reads.
    """

    name: str
    contact: str | None = None
    datasets: tuple[str, ...] = ()
    owner: str | None = None
    contacts: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    versions: str | None = None
    purpose: str | None = None
    justification: str | None = None
    criticality: str | None = None
    severity: Severity | None = None
    digest: bool = False
    assets: tuple[str, ...] = ()

    def __init__(self, name: str, contact: str | None = None, datasets: Sequence[str] = (), **facts: Any) -> None:
        super().__init__(**{"name": name, "contact": contact, "datasets": datasets, **facts})

    @property
    def subscribed_schemas(self) -> tuple[str, ...]:
        """The datasets, as a bus of schemas calls them."""
        return self.datasets

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it is reached, each once: URLs as written, a bare e-mail address as `mailto:`."""
        written = (*((self.contact,) if self.contact else ()), *self.contacts)
        return tuple(dict.fromkeys(f"mailto:{one}" if _BARE_MAIL.fullmatch(one) else one for one in written))


class Evolution(_Frozen):
    """How the contract may change, in the names of its own dialect."""

    policy: str | None = None
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    deprecation_window_days: int | None = None
    sign_off: str | None = None


class Enforcement(_Frozen):
    """A grace period: with mode `warn`, violations are warnings until that day."""

    mode: str = "fail"
    until: date | None = None

    def only_warns(self, today: date) -> bool:
        """Whether violations found on that day do not stop the table."""
        return self.mode == "warn" and self.until is not None and today < self.until


class Governance(_Frozen):
    """Who may hold the data, for what and how long.

    No `purposes` and no `read` means no limit. `closed`: only consumers that the contract itself declares may read it.
    """

    pii_class: str | None = None
    retention_days: int | None = None
    purposes: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    closed: bool = False


class Contract(_Frozen):
    """What a producer promises about one or more datasets.

    `version` is the text of the document, never a number. `findings` are the warnings and notes of the loader, among
    them everything the document holds that is not enforced.
    """

    id: str
    name: str | None = None
    version: str
    status: str = "draft"
    description: str = ""
    domain: str | None = None
    tags: tuple[str, ...] = ()
    team: Team = Team()
    owner: str | None = None
    servers: tuple[Server, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    evolution: Evolution | None = None
    enforcement: Enforcement = Enforcement()
    governance: Governance = Governance()
    notice_period: str | None = None
    custom: Mapping[str, Any] = {}
    dialect: str = "odcs"
    source: str | None = None
    findings: Annotated[tuple[InstanceOf[Finding], ...], Setting(repr=False)] = ()

    @property
    def title(self) -> str:
        """The name people use, else the id."""
        return self.name or self.id

    @property
    def owning_team(self) -> str | None:
        """The owner as declared, else the team's name."""
        return self.owner or self.team.name

    def dataset(self, name: str | None = None) -> Dataset:
        """The dataset of that name (its logical or its table name); the only one when no name is given.

        Raises `UnknownDatasetError`, which lists the names there are.
        """
        if name is None and len(self.datasets) == 1:
            return self.datasets[0]
        for dataset in self.datasets:
            if name is not None and name in (dataset.name, dataset.physical_name):
                return dataset
        raise UnknownDatasetError(self.title, name, [dataset.name for dataset in self.datasets])
