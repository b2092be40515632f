"""The writer of contracts in six sections: one dataset, in the words that `sections` reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from databox_contracts.errors import DataboxError
from databox_contracts.formats.attaching import logical_types
from databox_contracts.formats.emitting import to_yaml
from databox_contracts.formats.governing import ENFORCEMENT_MODES, MODE_KEYS, written_consumers
from databox_contracts.formats.sections_fields import DOCUMENT
from databox_contracts.formats.sections_governance import USUAL_EVOLUTION, all_purposes
from databox_contracts.formats.sections_writer_fields import is_reached, schema_entries, writable
from databox_contracts.formats.sections_writer_guarantees import guarantees, retention
from databox_contracts.model import Contract, Dataset, Enforcement, Evolution, Field
from databox_contracts.vocabulary import OWN_POLICY

_CONTACTS: Final = ("on_call_slack", "ownership_email", "created", "updated")
_UNSAFE: Final = re.compile(r"\.\.|[/\\]")


def write(contract: Contract) -> str:
    """The contract as YAML in six sections; what the form has no word for is left out.

    Raises `DataboxError` unless the contract has exactly one dataset, which is all that the form holds.
    """
    return to_yaml(document(contract))


def document(contract: Contract) -> dict[str, Any]:
    """The entries of the contract's document, in the order of its sections."""
    dataset = writable(_only_dataset(contract))
    carried: Mapping[str, Any] = contract.custom.get(DOCUMENT, {})
    found = {
        "contract": _header(contract, carried.get("contract", {})),
        "schema": _schema(contract, dataset),
        "guarantees": guarantees(dataset, carried.get("guarantees", {})),
        "semantics": _semantics(dataset, carried.get("semantics", {})),
        "evolution": _evolution(contract.evolution),
        "governance": _governance(contract, dataset, carried.get("governance", {})),
        "enforcement": _enforcement(contract.enforcement),
        "consumers": _consumers(contract),
    }
    return {name: value for name, value in found.items() if value not in (None, {}, [])}


def _only_dataset(contract: Contract) -> Dataset:
    if len(contract.datasets) == 1:
        return contract.datasets[0]
    names = ", ".join(dataset.name for dataset in contract.datasets)
    raise DataboxError(
        f"the contract {contract.title!r} has {len(contract.datasets) or 'no'} datasets, and in six sections there is"
        " room for one",
        hint=f"name one of them (`--dataset NAME`): {names}" if names else "declare a dataset in it",
    )


def _said(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value not in (None, "", [], (), {})}


def _header(contract: Contract, carried: Mapping[str, Any]) -> dict[str, Any]:
    title = contract.name if (contract.name or "").strip() else None
    contacts = {
        key: carried[key]
        for key in _CONTACTS
        if key in carried and (key in ("created", "updated") or not isinstance(carried[key], list | dict))
    }
    found = {
        "id": contract.id if title is not None else None,
        "name": title or contract.id,
        "version": contract.version,
        "status": contract.status if contract.status != "draft" else None,
        "description": contract.description.strip(),
        "domain": contract.domain,
        "tags": contract.tags,
        "owner_team": contract.owning_team,
    }
    return _said(found) | contacts


def _schema(contract: Contract, dataset: Dataset) -> dict[str, Any]:
    """The table; its name is told where it does not follow from the contract's."""
    called = contract.name if (contract.name or "").strip() else contract.id
    short = (called or "").rpartition(".")[2] or called
    name, table = _safe(dataset.name), dataset.physical_name
    follows = name == short and table == (called if called != short else None) and called == _safe(called or "")
    entries = schema_entries(dataset)
    own = {
        "name": None if follows else name,
        "table": None if follows or table is None or table != _safe(table) else table,
        "description": dataset.description.strip(),
        "tags": dataset.tags,
        "modes": {key: getattr(dataset.modes, key).value for key in MODE_KEYS} if dataset.modes is not None else None,
        "primary_key": entries["primary_key"],
        "constraints": entries["constraints"],
    }
    return {**_said(own), "fields": entries["fields"]}


def _safe(name: str) -> str:
    """The name as one of a directory may be, which a document's has to be."""
    printable = "".join(char if char.isprintable() else "_" for char in name)
    found = _UNSAFE.sub("_", printable)
    return found if found.strip() not in ("", ".") else "unnamed"


def _semantics(dataset: Dataset, carried: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in dataset.fields:
        _gather(field, (field.name,), dataset, found)
    known = logical_types(dataset)
    return found | {name: value for name, value in carried.items() if name not in known}


def _gather(field: Field, path: tuple[str, ...], dataset: Dataset, found: dict[str, Any]) -> None:
    if field.semantics.strip() and is_reached(dataset, path, field):
        found[".".join(path)] = field.semantics.strip()
    for part in field.fields:
        _gather(part, (*path, part.name), dataset, found)


def _evolution(evolution: Evolution | None) -> dict[str, Any] | None:
    if evolution is None or evolution == USUAL_EVOLUTION:
        return None
    # What is disallowed wins: a document may not say both.
    allowed = [name for name in evolution.allowed if name not in evolution.disallowed]
    window = evolution.deprecation_window_days
    found = _said(
        {
            "policy": evolution.policy,
            "allowed": allowed,
            "disallowed": evolution.disallowed,
            "deprecation_window_days": window if window is not None and 0 <= window < 2**31 else None,
            "sign_off": evolution.sign_off,
        }
    )
    if not allowed and evolution.policy == OWN_POLICY:
        # Left out, it would be what the policy allows.
        found["allowed"] = []
    return found


def _governance(contract: Contract, dataset: Dataset, carried: Mapping[str, Any]) -> dict[str, Any]:
    governance = contract.governance
    found = {
        "pii_class": governance.pii_class,
        **retention(contract, dataset),
        **_purposes(governance.purposes, carried),
        "rbac": _said({"read": governance.read, "write": governance.write}),
        "closed": governance.closed or None,
    }
    return _said(found)


def _purposes(purposes: tuple[str, ...], carried: Mapping[str, Any]) -> dict[str, Any]:
    """The purposes, under the names that they stood under where those still say the same."""
    if carried and all_purposes(carried.values()) == purposes:
        return {key: names[0] if len(names) == 1 else names for key, names in carried.items()}
    return {"purposes": purposes}


def _enforcement(enforcement: Enforcement) -> dict[str, Any] | None:
    endless = enforcement.mode == "warn" and enforcement.until is None
    if enforcement == Enforcement() or enforcement.mode not in ENFORCEMENT_MODES or endless:
        return None
    return _said({"mode": enforcement.mode, "until": enforcement.until})


def _consumers(contract: Contract) -> list[dict[str, Any]]:
    named = (consumer for consumer in contract.consumers if consumer.name.strip())
    return [_said(entry) for entry in written_consumers(named)]
