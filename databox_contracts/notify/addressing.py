"""From news for a consumer to a notification for each of its contacts, from its severity on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from databox_contracts.contact_secrets import refuse_secrets
from databox_contracts.model import Consumer
from databox_contracts.notifications import EventKind, Notification
from databox_contracts.rules import Severity

NO_CONTACT: Final = "log:"
"""Where news for a consumer without a contact goes, so that it is seen at all."""

_RANK: Final = {Severity.ERROR: 2, Severity.WARNING: 1, Severity.INFO: 0}


def wants(consumer: Consumer, severity: Severity) -> bool:
    """Whether the consumer is told of what is so severe."""
    return consumer.severity is None or _RANK[severity] >= _RANK[consumer.severity]


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What one consumer is told, before it is addressed to its contacts."""

    contract: str
    event: str
    kind: EventKind
    severity: Severity
    title: str
    occurred_at: datetime
    facts: dict[str, Any]
    ticket: str | None = None
    resolves: bool = False


def addressed(news: News, consumer: Consumer) -> Iterator[Notification]:
    """One notification for each contact of the consumer, in its order.

    Raises `ContactSecretError` for a contact with a secret in it: notifications are stored, and shown to people.
    """
    refuse_secrets(consumer.name, consumer.addresses)
    facts = {**news.facts, "digest": True} if consumer.digest else news.facts
    for contact in consumer.addresses or (NO_CONTACT,):
        yield Notification(
            consumer=consumer.name,
            contract=news.contract,
            event=news.event,
            kind=news.kind,
            severity=news.severity,
            contact=contact,
            title=news.title,
            occurred_at=news.occurred_at,
            facts={name: value for name, value in facts.items() if value is not None},
            ticket=news.ticket,
            resolves=news.resolves,
        )


def event_of(*parts: str | None) -> str:
    """Parts as one text that no other parts give."""
    return json.dumps(parts, ensure_ascii=False)


def reading(consumer: Consumer) -> str:
    """What the consumer says it reads."""
    fields = f"the fields {', '.join(consumer.fields)}" if consumer.fields else "all fields"
    datasets = f" of {', '.join(consumer.datasets)}" if consumer.datasets else ""
    return f"{consumer.name} reads {fields}{datasets}"
