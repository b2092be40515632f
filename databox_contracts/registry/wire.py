"""The registry's records from the JSON that their `to_dict` gives."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final

from databox_contracts.model import Consumer
from databox_contracts.registry.records import (
    Origin,
    Outcome,
    Publication,
    RegisteredConsumer,
    Status,
    StoredApproval,
    StoredVersion,
)

_NOT_THE_CONSUMERS: Final = ("contract", "origin", "registered_at", "registered_by")


def version_from(facts: Mapping[str, Any]) -> StoredVersion:
    """A version with its content."""
    return StoredVersion(
        contract_id=facts["contract"],
        version=facts["version"],
        title=facts["title"],
        status=Status(facts["status"]),
        digest=facts["digest"],
        published_at=datetime.fromisoformat(facts["published_at"]),
        published_by=facts["published_by"],
        effective=_day(facts["effective"]),
        sunset=_day(facts["sunset"]),
        content=facts["content"],
    )


def publication_from(facts: Mapping[str, Any]) -> Publication:
    """What became of a contract that was published."""
    return Publication(
        outcome=Outcome(facts["outcome"]),
        stored=version_from(facts),
        previous=facts["previous"],
        notified=facts["notified"],
    )


def consumer_from(facts: Mapping[str, Any]) -> RegisteredConsumer:
    """A registered consumer."""
    declared = {name: value for name, value in facts.items() if name not in _NOT_THE_CONSUMERS}
    return RegisteredConsumer(
        contract_id=facts["contract"],
        consumer=Consumer.model_validate(declared),
        origin=Origin(facts["origin"]),
        registered_at=datetime.fromisoformat(facts["registered_at"]),
        registered_by=facts["registered_by"],
    )


def approval_from(facts: Mapping[str, Any]) -> StoredApproval:
    """A consent."""
    return StoredApproval(
        contract_id=facts["contract"],
        consumer=facts["consumer"],
        approver=facts["approver"],
        at=datetime.fromisoformat(facts["at"]),
        dataset=facts["dataset"],
        version=facts["version"],
        purpose=facts["purpose"],
        note=facts["note"],
    )


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text is not None else None
