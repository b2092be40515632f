"""What the registry keeps, as its readers see it: plain values, the same from the database and over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from databox_contracts.formats import load_contract
from databox_contracts.model import Consumer, Contract


class Status(StrEnum):
    """Where a version of a contract stands."""

    DRAFT = "draft"
    ACTIVE = "active"
    DEPRECATED = "deprecated"
    RETIRED = "retired"


class Outcome(StrEnum):
    """What became of a version that was given to be published.

    `changed`: its promises were published before, and now its status or its dates moved on, as the document says.
    """

    PUBLISHED = "published"
    UNCHANGED = "unchanged"
    CHANGED = "changed"


class Origin(StrEnum):
    """Where a consumer declared itself."""

    CONTRACT = "contract"
    FILE = "file"
    CODE = "code"
    REGISTRY = "registry"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVersion:
    """A published version. `content` is the contract in its canonical form, `digest` is of its promises (SHA-256).

    `version` is the text as published. The day `sunset` is the first on which the version may be retired.
    """

    contract_id: str
    version: str
    title: str
    status: Status
    digest: str
    published_at: datetime
    published_by: str
    effective: date | None = None
    sunset: date | None = None
    content: str = field(repr=False)

    def in_effect(self, today: date) -> bool:
        """Whether the day has come on which it takes effect, where it says one."""
        return self.effective is None or self.effective <= today

    @property
    def is_ending(self) -> bool:
        """Whether its consumers have to move on."""
        return self.status in (Status.DEPRECATED, Status.RETIRED)

    def contract(self) -> Contract:
        """The contract, read from the content, with the status that it has by now; its `source` is None."""
        return load_contract(self.content).model_copy(update={"source": None, "status": str(self.status)})

    def to_dict(self, *, content: bool = False) -> dict[str, Any]:
        """As JSON; the content only on request."""
        facts = {
            "contract": self.contract_id,
            "version": self.version,
            "title": self.title,
            "status": str(self.status),
            "digest": self.digest,
            "published_at": self.published_at.isoformat(),
            "published_by": self.published_by,
            "effective": self.effective.isoformat() if self.effective is not None else None,
            "sunset": self.sunset.isoformat() if self.sunset is not None else None,
        }
        return {**facts, "content": self.content} if content else facts

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> StoredVersion:
        """What `to_dict` gave; without its content that is empty."""
        return cls(
            contract_id=facts["contract"],
            version=facts["version"],
            title=facts["title"],
            status=Status(facts["status"]),
            digest=facts["digest"],
            published_at=datetime.fromisoformat(facts["published_at"]),
            published_by=facts["published_by"],
            effective=_day(facts["effective"]),
            sunset=_day(facts["sunset"]),
            content=facts.get("content", ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What became of one contract that was given to be published; `previous` is the version that readers had before.

    `notified` counts the notifications that were put into the outbox together with it.
    """

    outcome: Outcome
    stored: StoredVersion
    previous: str | None = None
    notified: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "outcome": str(self.outcome),
            "previous": self.previous,
            "notified": self.notified,
            **self.stored.to_dict(),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Publication:
        """What `to_dict` gave; the stored version's content is empty."""
        return cls(
            outcome=Outcome(facts["outcome"]),
            stored=StoredVersion.from_dict(facts),
            previous=facts["previous"],
            notified=facts["notified"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredConsumer:
    """A consumer of a contract, and where and when it was declared."""

    contract_id: str
    consumer: Consumer
    origin: Origin
    registered_at: datetime
    registered_by: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON; contacts as declared, with `${NAME}` for what is secret."""
        return {
            "contract": self.contract_id,
            **self.consumer.model_dump(mode="json"),
            "origin": str(self.origin),
            "registered_at": self.registered_at.isoformat(),
            "registered_by": self.registered_by,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> RegisteredConsumer:
        """What `to_dict` gave."""
        declared = {name: value for name, value in facts.items() if name in Consumer.model_fields}
        return cls(
            contract_id=facts["contract"],
            consumer=Consumer.model_validate(declared),
            origin=Origin(facts["origin"]),
            registered_at=datetime.fromisoformat(facts["registered_at"]),
            registered_by=facts["registered_by"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredApproval:
    """A consumer's consent: to a version (None: whichever comes next) or to a purpose; of a dataset (None: to all)."""

    contract_id: str
    consumer: str
    approver: str
    at: datetime
    dataset: str | None = None
    version: str | None = None
    purpose: str | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "contract": self.contract_id,
            "consumer": self.consumer,
            "approver": self.approver,
            "at": self.at.isoformat(),
            "dataset": self.dataset,
            "version": self.version,
            "purpose": self.purpose,
            "note": self.note,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> StoredApproval:
        """What `to_dict` gave."""
        rest = {name: value for name, value in facts.items() if name not in ("contract", "at")}
        return cls(contract_id=facts["contract"], at=datetime.fromisoformat(facts["at"]), **rest)

    @classmethod
    def from_row(cls, row: Any) -> StoredApproval:
        """As the database has it."""
        return cls(
            contract_id=row.contract,
            consumer=row.consumer,
            approver=row.approver,
            at=row.at,
            dataset=row.dataset,
            version=row.version,
            purpose=row.purpose,
            note=row.note,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what to what, and when. `subject` is a contract's id, or a deletion plan's."""

    at: datetime
    who: str
    action: str
    subject: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "at": self.at.isoformat(),
            "who": self.who,
            "action": self.action,
            "subject": self.subject,
            "details": dict(self.details),
        }


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text is not None else None
