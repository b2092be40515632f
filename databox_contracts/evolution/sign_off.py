"""Whose consent a break needs, who gave it and when: for the gate, and for whoever publishes a version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from databox_contracts.approvals import Approval
from databox_contracts.errors import SignOffError
from databox_contracts.evolution.affected import concerned
from databox_contracts.evolution.judging import diff
from databox_contracts.evolution.report import FieldChange, MigrationReport
from databox_contracts.model import Consumer, Contract
from databox_contracts.vocabulary import SIGN_OFF_REQUIRED


@dataclass(frozen=True)
class SignOff:
    """A consumer whose consent a break needs, and the consent, None where nobody gave it."""

    consumer: Consumer
    approval: Approval | None


def needs_sign_off(contract: Contract) -> bool:
    """Whether breaks of this version of the contract need the consent of those who read it."""
    return contract.evolution is not None and contract.evolution.sign_off == SIGN_OFF_REQUIRED


def sign_offs(
    change: FieldChange, before: Contract, version: str, consumers: Sequence[Consumer], approvals: Sequence[Approval]
) -> tuple[SignOff, ...]:
    """The consumers that a change concerns, each with the first consent to it there is, in their order."""
    return tuple(
        SignOff(consumer, approval_of(consumer, before.id, change.dataset, version, approvals))
        for consumer in concerned(change, consumers, before)
    )


def approval_of(
    consumer: Consumer, contract: str, dataset: str | None, version: str, approvals: Sequence[Approval]
) -> Approval | None:
    """The first consent of a consumer to a break of the dataset in that version."""
    covering = (one for one in approvals if one.consumer == consumer.name and one.covers(contract, dataset, version))
    return next(covering, None)


def require_sign_off(
    before: Contract,
    after: Contract,
    consumers: Sequence[Consumer],
    approvals: Sequence[Approval],
    *,
    report: MigrationReport | None = None,
) -> tuple[SignOff, ...]:
    """Lets a version be published in place of another: every consent that its breaks need is there, and returned.

    Consumers and the demand for consent are those of the version before, and `consumers` are those that declared
    themselves elsewhere. Raises `SignOffError`, which lists every consumer that is missing, with what breaks for it.
    """
    if not needs_sign_off(before):
        return ()
    judged = report if report is not None else diff(before, after)
    readers = list({one.name: one for one in (*consumers, *before.consumers)}.values())
    given: dict[str, SignOff] = {}
    missing: dict[str, list[str]] = {}
    for change in judged.breaking_changes:
        for one in sign_offs(change, before, after.version, readers, approvals):
            if one.approval is None:
                missing.setdefault(one.consumer.name, []).append(_named(change))
            else:
                given.setdefault(one.consumer.name, one)
    if missing:
        lacking = {name: tuple(dict.fromkeys(changes)) for name, changes in missing.items()}
        raise SignOffError(before.id, after.version, lacking)
    return tuple(given.values())


def _named(change: FieldChange) -> str:
    place = [change.dataset] if change.dataset not in (None, change.field_name) else []
    return f"{change.change_type} {'.'.join([*(name for name in place if name), change.field_name])}"


def described(signed: Sequence[SignOff]) -> Iterator[str]:
    """A line for each consent: who gave it for which consumer, and when."""
    for one in signed:
        if one.approval is not None:
            yield f"{one.consumer.name}: approved by {one.approval.approver} on {one.approval.on}"
