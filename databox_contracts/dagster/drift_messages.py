"""Who is told of drift: the table's owner, and its consumers if asked; and that it is gone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from databox_contracts.dagster.contracted_tables import ContractedTable
from databox_contracts.drift import DriftFinding, DriftReport
from databox_contracts.errors import RegistryError
from databox_contracts.model import Consumer, Contract
from databox_contracts.rules import Severity

if TYPE_CHECKING:
    from databox_contracts.registry.store import Registry

Told: TypeAlias = Literal["owner", "consumers"]

_MAIL: Final = re.compile(r"[^@\s<>:/?#]+@[^@\s<>:/?#]+\.[^@\s<>:/?#]+")
_MOST_ATTEMPTS: Final = 10
_KEPT: Final = ("kind", "field", "message", "rule", "value")


def owner_of(contract: Contract, contacts: Sequence[str] = ()) -> Consumer:
    """The contract's owner as somebody who is told things, at these contacts.

    Without any these are the e-mail addresses that the contract names: the owner's own, those of present members of the
    team whose role is owner, and those of its support. Where it names none, its log is told.
    """
    from databox_contracts.export.contacts import contacts as named_in

    owner = contract.owning_team
    members = [
        member.username
        for member in contract.team.members
        if (member.role or "").strip().lower() in ("owner", "data owner") and member.date_out is None
    ]
    support = [address for contact in named_in(contract) for address in (contact.name, *contact.addresses)]
    written = [address for address in (owner or "", *members, *support) if _MAIL.fullmatch(address)]
    return Consumer(f"owner of {contract.id}", contacts=tuple(contacts) or tuple(dict.fromkeys(written)))


def tell_of_drift(
    registry: Registry,
    table: ContractedTable,
    report: DriftReport,
    *,
    told: Sequence[Told],
    owner_contacts: Sequence[str],
    run_id: str,
    occurred_at: datetime,
) -> tuple[str, ...]:
    """Put what drifted, and what of the last sampling is gone, into the registry's outbox; the names of who is told.

    What was found is kept in the same transaction, so that the next sampling knows what is gone. Whoever was told of a
    drift is not told again while the baseline stands. Raises `RegistryError`.
    """
    from databox_contracts.notify.building_runs import from_drift

    contract = table.contract
    readers = _readers(registry, contract, told, owner_contacts)
    position = f"drift {contract.id} {table.dataset.name}"
    found = {"findings": [_facts(one) for one in report.findings]}
    hidden = _hidden_fields(table)
    for _ in range(_MOST_ATTEMPTS):
        # Another sampling of the table may come in between.
        before = registry.position(position)
        notifications = from_drift(
            report,
            readers,
            occurred_at=occurred_at,
            resolved=_gone(before, report, hidden),
            run_id=run_id,
            asset=table.name,
            contract=contract,
            owner=contract.owning_team,
        )
        if registry.advance(position, found, notifications=notifications, replacing=before):
            return tuple(dict.fromkeys(one.consumer for one in notifications))
    raise RegistryError(
        f"other samplings of {table.name} kept coming in between", hint="Let one schedule sample the table."
    )


def _readers(
    registry: Registry, contract: Contract, told: Sequence[Told], owner_contacts: Sequence[str]
) -> list[Consumer]:
    readers = [owner_of(contract, owner_contacts)] if "owner" in told else []
    if "consumers" not in told:
        return readers
    named = {one.name: one for one in contract.consumers}
    for registered in registry.consumers(contract.id):
        named.setdefault(registered.consumer.name, registered.consumer)
    return [*readers, *named.values()]


def _hidden_fields(table: ContractedTable) -> set[str]:
    from databox_contracts.plan import build_plan

    checks = build_plan(table.contract, table.dataset).checks
    return {check.field for check in checks if check.masked and check.field is not None}


def _gone(before: Any, report: DriftReport, hidden: set[str]) -> list[DriftFinding]:
    """The findings of the last sampling that this one has not, without values of what is masked by now."""
    still = {one.key for one in report.findings}
    earlier = before.get("findings", ()) if isinstance(before, dict) else ()
    found = [one for one in map(_finding, earlier) if one is not None and one.key not in still]
    return [replace(one, value=None) if one.field in hidden else one for one in found]


def _facts(one: DriftFinding) -> dict[str, Any]:
    return {name: getattr(one, name) for name in _KEPT} | {"severity": str(one.severity)}


def _finding(facts: Any) -> DriftFinding | None:
    """What `_facts` gave; None for what is none of it."""
    try:
        return DriftFinding(**{name: facts[name] for name in _KEPT}, severity=Severity(facts["severity"]))
    except (KeyError, TypeError, ValueError):
        return None
