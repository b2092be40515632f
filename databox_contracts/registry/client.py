"""A registry that is asked over HTTP: what a database offers, from elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, TypeVar

from databox_contracts.formats import dump_contract
from databox_contracts.model import Consumer, Contract
from databox_contracts.registry.http_calls import HttpCalls
from databox_contracts.registry.records import Origin, Publication, RegisteredConsumer, StoredApproval, StoredVersion
from databox_contracts.registry.texts import storable

T = TypeVar("T")


class RegistryClient:
    """A `RegistryApi` over HTTP; threads may share one.

    The token is that of `DATABOX_REGISTRY_TOKEN` where none is given. A call that may be repeated is tried `attempts`
    times while the service is busy or out of reach, after waits that grow, or that it asks for; `timeout` is in
    seconds, for one attempt. Who does something is the token's holder: a name that is given is recorded beside it.
    Raises `RegistryError` for a URL that is none, with a password in it, or that sends the token readable elsewhere.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 60.0,
        attempts: int = 5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = HttpCalls(url, token=token, timeout=timeout, attempts=attempts, sleep=sleep)

    @property
    def location(self) -> str:
        """Where the service is."""
        return self._http.base

    def __repr__(self) -> str:
        return f"RegistryClient({self.location!r})"

    def __enter__(self) -> RegistryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """As `RegistryApi.close`; there is nothing to give back."""
        self._http.close()

    # --- versions ---

    def publish(self, contract: Contract, *, by: str) -> Publication:
        """As `RegistryApi.publish`."""
        body = dump_contract(contract)
        storable(f"the text of {contract.id}", body)
        found = self._http.call(
            "PUT", ("contracts", contract.id), by=by, body=body.encode(), media_type="application/yaml"
        )
        return self._read(found, _publication)

    def publish_all(self, contracts: Sequence[Contract], *, by: str) -> list[Publication]:
        """As `RegistryApi.publish_all`."""
        if not contracts:
            return []
        facts = {"contracts": [dump_contract(contract) for contract in contracts]}
        return self._list(self._http.call("POST", ("contracts",), by=by, facts=facts), "publications", _publication)

    def contracts(self) -> list[StoredVersion]:
        """As `RegistryApi.contracts`."""
        return self._list(self._http.call("GET", ("contracts",), content="true"), "contracts", StoredVersion.from_dict)

    def versions(self, contract_id: str) -> list[StoredVersion]:
        """As `RegistryApi.versions`."""
        found = self._http.call("GET", ("contracts", contract_id, "versions"), content="true")
        return self._list(found, "versions", StoredVersion.from_dict)

    def get(self, contract_id: str, version: str | None = None) -> StoredVersion:
        """As `RegistryApi.get`."""
        return self._read(self._http.call("GET", ("contracts", contract_id), version=version), StoredVersion.from_dict)

    def activate(self, contract_id: str, version: str, *, by: str) -> StoredVersion:
        """As `RegistryApi.activate`."""
        return self._transition(contract_id, version, "activate", by)

    def deprecate(self, contract_id: str, version: str, *, by: str, sunset: date | None = None) -> StoredVersion:
        """As `RegistryApi.deprecate`."""
        facts = {"sunset": sunset.isoformat()} if sunset is not None else {}
        return self._transition(contract_id, version, "deprecate", by, facts)

    def retire(self, contract_id: str, version: str, *, by: str) -> StoredVersion:
        """As `RegistryApi.retire`."""
        return self._transition(contract_id, version, "retire", by)

    # --- consumers ---

    def consumers(self, contract_id: str | None = None) -> list[RegisteredConsumer]:
        """As `RegistryApi.consumers`."""
        place = ("consumers",) if contract_id is None else ("contracts", contract_id, "consumers")
        return self._list(self._http.call("GET", place), "consumers", RegisteredConsumer.from_dict)

    def register(
        self, contract_id: str, consumer: Consumer, *, by: str, origin: Origin = Origin.REGISTRY
    ) -> RegisteredConsumer:
        """As `RegistryApi.register`; what a contract declares is published with it, and refused here."""
        place = ("contracts", contract_id, "consumers", consumer.name)
        found = self._http.call("PUT", place, by=by, origin=str(origin), facts=consumer.model_dump(mode="json"))
        return self._read(found, RegisteredConsumer.from_dict)

    def remove_consumer(self, contract_id: str, name: str, *, by: str, origin: Origin = Origin.REGISTRY) -> bool:
        """As `RegistryApi.remove_consumer`."""
        found = self._http.call("DELETE", ("contracts", contract_id, "consumers", name), by=by, origin=str(origin))
        return self._read(found, lambda facts: bool(facts["removed"]))

    def approve(self, approval: StoredApproval) -> StoredApproval:
        """As `RegistryApi.approve`; its time is the service's."""
        names = ("consumer", "approver", "dataset", "version", "purpose", "note")
        facts = {name: getattr(approval, name) for name in names}
        return self._read(
            self._http.call("POST", ("contracts", approval.contract_id, "approvals"), facts=facts),
            StoredApproval.from_dict,
        )

    def approvals(self, contract_id: str | None = None) -> list[StoredApproval]:
        """As `RegistryApi.approvals`."""
        place = ("approvals",) if contract_id is None else ("contracts", contract_id, "approvals")
        return self._list(self._http.call("GET", place), "approvals", StoredApproval.from_dict)

    # --- questions that only a service answers ---

    def compatibility(
        self, contract: Contract, *, old: Contract | None = None, version: str | None = None, policy: str | None = None
    ) -> Mapping[str, Any]:
        """The gate's report on the contract against `old`, else against a registered version of it, as plain data."""
        facts = {
            "contract": dump_contract(contract),
            "old": dump_contract(old) if old is not None else None,
            "version": version,
            "policy": policy,
        }
        return self._read(self._http.call("POST", ("compatibility",), facts=facts), dict)

    def impact(self, target: str) -> Mapping[str, Any]:
        """Whom a change of `CONTRACT[.DATASET][.FIELD]` reaches, by what the service knows, as `impact` tells it."""
        return self._read(self._http.call("GET", ("impact",), target=target), dict)

    def check(self) -> None:
        """Ask the service whether its database answers. Raises `RegistryUnavailableError`."""
        self._http.call("GET", ("health", "ready"))

    # --- answers ---

    def _transition(
        self, contract_id: str, version: str, what: str, by: str, facts: Mapping[str, Any] | None = None
    ) -> StoredVersion:
        place = ("contracts", contract_id, "versions", version, what)
        # Said again after somebody else's word, it would take that back.
        found = self._http.call("POST", place, by=by, facts=facts or {}, repeatable=False)
        return self._read(found, StoredVersion.from_dict)

    def _read(self, facts: Mapping[str, Any], made: Callable[[Mapping[str, Any]], T]) -> T:
        try:
            return made(facts)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._http.no_registry("its answer lacks what a registry tells") from None

    def _list(self, facts: Mapping[str, Any], name: str, made: Callable[[Mapping[str, Any]], T]) -> list[T]:
        return self._read(facts, lambda found: [made(one) for one in found[name]])


def _publication(facts: Mapping[str, Any]) -> Publication:
    found = Publication.from_dict(facts)
    return replace(found, stored=StoredVersion.from_dict(facts))
