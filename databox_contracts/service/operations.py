"""Every operation of the service: its address, the scope that it takes, and what it may be given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from databox_contracts.registry.tokens import Scope
from databox_contracts.service import dependents, versions
from databox_contracts.service.calls import Answer, Call

_KIB: Final = 1024
# JSON says the same as YAML in up to twice the bytes; the loaders have limits of their own.
_ONE: Final = 2 * _KIB * _KIB
_TWO: Final = 2 * _ONE
_MANY: Final = 16 * _KIB * _KIB
_SMALL: Final = 64 * _KIB


@dataclass(frozen=True)
class Operation:
    """One operation. `scope` is None where no token is needed; `body` is the most bytes, 0 where none is taken.

    `query` are the names of its parameters.
    """

    name: str
    method: str
    path: str
    scope: Scope | None
    run: Callable[[Call], Answer]
    query: tuple[str, ...] = ()
    body: int = 0


_CONTRACT: Final = "/contracts/{id}"
_VERSION: Final = "/contracts/{id}/versions/{version}"
_CONSUMER: Final = "/contracts/{id}/consumers/{name}"

# In this order: the address of one contract also takes an id with slashes in it, and comes last.
OPERATIONS: Final = (
    Operation("listContracts", "GET", "/contracts", Scope.READ, versions.contracts, ("content",)),
    Operation(
        "publishContracts", "POST", "/contracts", Scope.PUBLISH, versions.publish_all, ("by", "activate"), body=_MANY
    ),
    Operation("listVersions", "GET", f"{_CONTRACT}/versions", Scope.READ, versions.versions, ("content",)),
    Operation("getVersion", "GET", _VERSION, Scope.READ, versions.version),
    Operation("activateVersion", "POST", f"{_VERSION}/activate", Scope.PUBLISH, versions.activate, ("by",), _SMALL),
    Operation("deprecateVersion", "POST", f"{_VERSION}/deprecate", Scope.PUBLISH, versions.deprecate, ("by",), _SMALL),
    Operation("retireVersion", "POST", f"{_VERSION}/retire", Scope.PUBLISH, versions.retire, ("by",), _SMALL),
    Operation("listConsumersOf", "GET", f"{_CONTRACT}/consumers", Scope.READ, dependents.consumers),
    Operation("registerConsumer", "PUT", _CONSUMER, Scope.PUBLISH, dependents.register, ("by", "origin"), _SMALL),
    # Whoever publishes must not get rid of those whom a break would hurt, nor consent in their place.
    Operation("removeConsumer", "DELETE", _CONSUMER, Scope.ADMIN, dependents.remove, ("by", "origin")),
    Operation("listConsumers", "GET", "/consumers", Scope.READ, dependents.consumers),
    Operation("listApprovalsOf", "GET", f"{_CONTRACT}/approvals", Scope.READ, dependents.approvals),
    Operation("approve", "POST", f"{_CONTRACT}/approvals", Scope.ADMIN, dependents.approve, (), _SMALL),
    Operation("listApprovals", "GET", "/approvals", Scope.READ, dependents.approvals),
    Operation(
        "checkCompatibility",
        "POST",
        "/compatibility",
        Scope.READ,
        dependents.compatibility,
        ("version", "policy"),
        _TWO,
    ),
    Operation("impact", "GET", "/impact", Scope.READ, dependents.impact, ("target",)),
    Operation("getContract", "GET", _CONTRACT, Scope.READ, versions.contract, ("version",)),
    Operation("publishContract", "PUT", _CONTRACT, Scope.PUBLISH, versions.publish, ("by", "activate"), _ONE),
)
