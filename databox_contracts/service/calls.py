"""What an operation is given and what it gives back, and the refusals that are the service's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias

from databox_contracts.errors import DataboxError
from databox_contracts.lineage import Lineage
from databox_contracts.model import Contract
from databox_contracts.registry.api import Announce, AnnounceEnd
from databox_contracts.registry.database import utc_now
from databox_contracts.registry.impact import Reached
from databox_contracts.registry.places import Place
from databox_contracts.registry.problems import PREFIX, document
from databox_contracts.registry.records import RegisteredConsumer, StoredApproval
from databox_contracts.registry.store import Registry
from databox_contracts.registry.tokens import StoredToken
from databox_contracts.service.knowledge import Readings

_LONGEST_NAME: Final = 150


@dataclass(frozen=True)
class Question:
    """A comparison that is asked for: `old` is None where the contract is a new one, `history` are earlier versions.

    `reach` tells whom a change of a registered place reaches; the nearest first.
    """

    old: Contract | None
    new: Contract
    policy: str | None
    history: tuple[Contract, ...] = ()
    consumers: Sequence[RegisteredConsumer] = ()
    approvals: Sequence[StoredApproval] = ()
    reach: Callable[[Place], Sequence[Reached]] = lambda place: ()


Judge: TypeAlias = Callable[[Question], Mapping[str, Any]]
"""Judges a change and gives the gate's report as plain data."""


class RefusedError(Exception):
    """A call that is answered with a problem; its text holds nothing of what was sent but names that are known."""

    def __init__(
        self, status: int, name: str, detail: str, *, hint: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = dict(headers or {})
        self.document = document(PREFIX + name, status, detail, hint)


@dataclass(frozen=True)
class Answer:
    """What is sent back: `facts` as JSON, or `text` of another media type."""

    facts: Mapping[str, Any] | None = None
    status: int = 200
    text: bytes | None = None
    media_type: str = "application/json"


@dataclass(frozen=True)
class Wiring:
    """What the service is given from elsewhere: who judges, who is told, and what is made of what.

    `judge` answers `POST /compatibility`. `announce` and `announce_end` tell which notifications enter the outbox with
    a version that begins or ends, as a registry takes them. `lineage` gives the edges and assets that impact follows.
    """

    judge: Judge
    announce: Announce | None = None
    announce_end: AnnounceEnd | None = None
    lineage: Lineage = field(default_factory=Lineage)
    readings: Readings = field(default_factory=Readings)
    clock: Callable[[], datetime] = utc_now


@dataclass(frozen=True)
class Call:
    """One call whose token, parameters and body were found to be in order. `media_type` is of the body."""

    registry: Registry
    wiring: Wiring
    token: StoredToken | None
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = field(repr=False, default=b"")
    media_type: str = ""

    @property
    def who(self) -> str:
        """Who does it: the token's holder, and whom it says it does it for."""
        return self.named(self.query.get("by"))

    def named(self, claimed: str | None) -> str:
        """As `who`, for a name from elsewhere: a claim alone never stands in the registry as if it were known."""
        name = self.token.name if self.token is not None else ""
        claim = (claimed or "").strip()
        if len(claim) > _LONGEST_NAME:
            raise DataboxError("the name of who does it is too long", hint=f"Use {_LONGEST_NAME} characters at most.")
        return name if claim in ("", name) else f"{claim} (token {name})"
