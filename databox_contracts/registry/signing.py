"""The consent of consumers that a break needs, as the registry keeps it: without it no version is published."""

from __future__ import annotations

from sqlalchemy import Connection, select

from databox_contracts.approvals import Approval
from databox_contracts.declarations import Declaration
from databox_contracts.evolution.sign_off import needs_sign_off, require_sign_off
from databox_contracts.model import Consumer, Contract
from databox_contracts.registry.consumers import resolve
from databox_contracts.registry.records import StoredApproval, StoredVersion
from databox_contracts.registry.schema import APPROVALS, CONSUMERS


def approval(stored: StoredApproval) -> Approval:
    """The consent as the gate and the checks of purposes know it: to the day."""
    return Approval(
        contract=stored.contract_id,
        consumer=stored.consumer,
        approver=stored.approver,
        on=stored.at.date(),
        dataset=stored.dataset,
        version=stored.version,
        purpose=stored.purpose,
    )


def refuse_unsigned(connection: Connection, contract: Contract, previous: StoredVersion | None) -> None:
    """Lets a version be stored in place of another whose contract says `sign_off: required` for breaks.

    A consent to whatever version comes next counts when it was given after the previous one was published. Raises
    `SignOffError`, which lists every consumer that has not agreed.
    """
    # To read the contract takes much longer than to look for the words.
    if previous is None or "sign" not in previous.content.lower():
        return
    before = previous.contract()
    if not needs_sign_off(before):
        return
    rows = connection.execute(select(CONSUMERS).where(CONSUMERS.c.contract == contract.id).order_by(CONSUMERS.c.name))
    declared = [
        Declaration(contract.id, Consumer.model_validate(row.declared), "the registry", row.origin) for row in rows
    ]
    given = [
        Approval(row.contract, row.consumer, row.approver, row.at.date(), row.dataset, row.version, row.purpose)
        for row in connection.execute(
            select(APPROVALS).where(APPROVALS.c.contract == contract.id).order_by(APPROVALS.c.at)
        )
        if row.version is not None or row.at >= previous.published_at
    ]
    require_sign_off(before, contract, resolve([before], declared).of(before.id), given)
