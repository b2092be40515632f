"""The writer of the Data Contract Specification: any contract as YAML, as far as the specification has words for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from databox_contracts.formats.datacontract_carried import LEVELS, carried_by, take_blocks
from databox_contracts.formats.datacontract_versions import NEWEST, VERSION, before_1_1, what_it_lacks
from databox_contracts.formats.datacontract_writer_fields import Whole, links, model_entries, said
from databox_contracts.formats.datacontract_writer_levels import service_levels
from databox_contracts.formats.durations import DurationError, parse_duration
from databox_contracts.formats.emitting import to_yaml
from databox_contracts.formats.governing import written_consumers
from databox_contracts.formats.identity import is_table_name, joined_description
from databox_contracts.formats.odcs_custom import DOCUMENT as STANDARD
from databox_contracts.formats.odcs_types import server_dialect
from databox_contracts.model import Contract, Dataset, Server

# What is not written as it is carried, or stands somewhere else.
_PLACED: Final = (VERSION, "info", "terms", "definitions", "quality", *LEVELS)


def write(contract: Contract) -> str:
    """The contract as YAML of version 1.2.0, or of the older one that it was read from where that has all its words.

    What the specification has no word for is left out. A promise is never written as a stronger one, but for a
    timestamp of which the contract does not say whether it has a zone. Where a contract-wide class makes fields
    personal, each of them says so.
    """
    return to_yaml(document(contract))


def document(contract: Contract) -> dict[str, Any]:
    """The entries of the contract's document, in the order in which the specification tells them."""
    spoken = carried_by(contract).get(VERSION)
    if isinstance(spoken, str):
        found = _document(contract, spoken)
        # An older version had a `quality` of the whole document; rules that have left it have another place now.
        if what_it_lacks(spoken, found.get("models")) is None:
            return found
    return _document(contract, NEWEST)


def _document(contract: Contract, version: str) -> dict[str, Any]:
    carried = carried_by(contract)
    kept, datasets = take_blocks(carried, _with_usable_names(contract.datasets))
    definitions = carried.get("definitions")
    whole = Whole(
        dialect=server_dialect(server.type for server in contract.servers),
        definitions=definitions if isinstance(definitions, Mapping) else {},
        models=tuple(dataset.name for dataset in datasets),
        pii=True if contract.governance.pii_class is not None else None,
        old=before_1_1(version),
    )
    description, terms = _description(contract)
    found = {
        VERSION: version,
        "id": contract.id,
        "info": _info(contract, description),
        "servers": {server.name: _server(server) for server in contract.servers},
        "terms": terms,
        "tags": contract.tags,
        "models": {dataset.name: model_entries(dataset, whole) for dataset in datasets},
        "definitions": definitions,
        "quality": kept.pop("quality", None),
        "servicelevels": _levels(kept, datasets),
        "links": links(contract),
    }
    beside = {key: value for key, value in carried.items() if key not in _PLACED}
    # A block that is there and says nothing is carried as such.
    empty: dict[str, Any] = {key: {} for key in ("terms", "definitions", "servicelevels") if carried.get(key) == {}}
    readers = written_consumers(one for one in contract.consumers if one.name.strip())
    return empty | said(found) | kept | beside | ({"consumers": readers} if readers else {})


def _with_usable_names(datasets: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
    """The datasets under names that tables can have: their own, else their tables'; those without any are left out."""
    found: dict[str, Dataset] = {}
    for dataset in datasets:
        name = next((name for name in (dataset.name, dataset.table_name) if is_table_name(name)), None)
        if name is not None:
            found.setdefault(name, dataset if name == dataset.name else dataset.model_copy(update={"name": name}))
    return tuple(found.values())


def _info(contract: Contract, description: str) -> dict[str, Any]:
    found = {
        "title": contract.name,
        "version": contract.version,
        "status": contract.status,
        "description": description or None,
        "owner": contract.owner if contract.owner is not None else contract.team.name,
    }
    beside = carried_by(contract).get("info")
    return {key: value for key, value in found.items() if value is not None} | (
        dict(beside) if isinstance(beside, Mapping) else {}
    )


def _server(server: Server) -> dict[str, Any]:
    found = {"type": server.type, "environment": server.environment, "description": server.description or None}
    return {key: value for key, value in found.items() if value is not None} | dict(server.settings)


def _levels(kept: dict[str, Any], datasets: tuple[Dataset, ...]) -> dict[str, Any]:
    """The service levels as they are carried, and those that only the rules say."""
    known = {name for key in LEVELS for name in kept.get(key, {})}
    added = {name: level for name, level in service_levels(datasets).items() if name not in known}
    return {**kept.pop("servicelevels", {}), **added}


# --- what the data is for ---------------------------------------------------------------------------------------------


def _description(contract: Contract) -> tuple[str, dict[str, Any] | None]:
    """What the data is, and the terms: the text of a contract holds what it may be used for too."""
    carried, text = carried_by(contract).get("terms"), contract.description
    terms = dict(carried) if isinstance(carried, Mapping) else None
    if terms is None and isinstance(standard := contract.custom.get(STANDARD), Mapping):
        parts = standard.get("description")
        terms = {key: parts[key] for key in _USES if key in parts} if isinstance(parts, Mapping) else None
    rest = _without_uses(text, terms or {})
    if rest is None:
        terms = {key: value for key, value in (terms or {}).items() if key not in _USES}
    if contract.notice_period is not None and _is_duration(contract.notice_period):
        terms = {**(terms or {}), "noticePeriod": contract.notice_period}
    elif terms is not None:
        terms.pop("noticePeriod", None)
    return text if rest is None else rest, terms


_USES: Final = ("usage", "limitations")


def _without_uses(text: str, terms: Mapping[str, Any]) -> str | None:
    """The text before that of the terms; None where it does not end in this."""
    usage, limitations = (terms[key] if isinstance(terms.get(key), str) else None for key in _USES)
    ending = joined_description(None, usage, limitations)
    if not ending:
        return text
    rest = text.rstrip().removesuffix(ending).rstrip()
    return rest if joined_description(rest, usage, limitations).strip() == text.strip() else None


def _is_duration(written: str) -> bool:
    try:
        parse_duration(written)
    except DurationError:
        return False
    return True
