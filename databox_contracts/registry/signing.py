"""What the registry refuses: a version without the consent that its breaks need, a consumer that may not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, select

from databox_contracts.approvals import Approval
from databox_contracts.declarations import IN_CONTRACT, Declaration
from databox_contracts.errors import ConsumersError, Level
from databox_contracts.evolution.sign_off import needs_sign_off, require_sign_off
from databox_contracts.model import Consumer, Contract
from databox_contracts.registry.consumer_checks import check_consumers
from databox_contracts.registry.consumers import ProblemKind, resolve
from databox_contracts.registry.consumers_of import bare, declared_to
from databox_contracts.registry.records import Status, StoredApproval, StoredVersion
from databox_contracts.registry.schema import APPROVALS
from databox_contracts.registry.versions_of import versions_in


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
    declared = declared_to(connection, contract.id)
    given = [
        approval(one)
        for one in _approvals(connection, contract.id)
        if one.version is not None or one.at >= previous.published_at
    ]
    require_sign_off(before, contract, resolve([before], declared).of(before.id), given)


def refuse_unfit(connection: Connection, contract_id: str, consumers: Sequence[Consumer], origin: str) -> None:
    """Lets consumers be registered with a contract: they may read what they declare, or nothing of it is published.

    What is said of them elsewhere, by another origin, must not say otherwise (see `resolve`). Raises `ConsumersError`,
    which lists every problem.
    """
    readable = (Status.ACTIVE, Status.DEPRECATED)
    versions = [one.contract() for one in versions_in(connection, contract_id) if one.status in readable]
    declared = [Declaration(contract_id, consumer, f"the consumer {consumer.name!r}", origin) for consumer in consumers]
    given = [approval(one) for one in _approvals(connection, contract_id)]
    names = [consumer.name for consumer in consumers]
    # What a version in force says of its consumers is asked of that version.
    elsewhere = [
        one
        for one in declared_to(connection, contract_id)
        if one.origin != origin and one.consumer.name in names and not (versions and one.origin == IN_CONTRACT)
    ]
    found = check_consumers(versions, declared, given).problems if versions else ()
    others = resolve([bare(contract_id)], [*elsewhere, *declared]).problems
    problems = [
        problem
        for problem in (*found, *(one for one in others if one.kind is ProblemKind.CONFLICT))
        if problem.level is Level.ERROR and problem.consumer in names
    ]
    if problems:
        raise ConsumersError(problems)


def refuse_misuse(connection: Connection, contract: Contract) -> None:
    """Lets a version be stored whose own consumers use it for what it allows, and are of teams that may read it.

    What they pin is not asked: a consumer may stay on a version before. Raises `ConsumersError`.
    """
    if not contract.consumers or not (contract.governance.purposes or contract.governance.read):
        return
    given = [approval(one) for one in _approvals(connection, contract.id)]
    problems = [
        problem
        for problem in check_consumers([contract], (), given).problems
        if problem.kind in (ProblemKind.PURPOSE, ProblemKind.TEAM) and problem.level is Level.ERROR
    ]
    if problems:
        raise ConsumersError(problems)


def _approvals(connection: Connection, contract_id: str) -> Iterator[StoredApproval]:
    query = select(APPROVALS).where(APPROVALS.c.contract == contract_id).order_by(APPROVALS.c.at, APPROVALS.c.id)
    for row in connection.execute(query):
        yield StoredApproval.from_row(row)
