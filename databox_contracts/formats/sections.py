"""The reader of contracts in six sections: header, schema, guarantees, semantics, evolution, governance.

What the form was first described with is read as it is there. Added to that, so that other contracts fit into it, are
an `id` beside the name, `consumers`, `enforcement`, a name, a table, modes, a key and constraints of the schema as a
whole, and what arrays, maps and objects contain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from databox_contracts.formats.attaching import attached
from databox_contracts.formats.governing import consumers_of, enforcement_of, modes_of
from databox_contracts.formats.identity import check_table_name, read_version
from databox_contracts.formats.reading import Report, Section
from databox_contracts.formats.sections_fields import DOCUMENT, read_fields, with_semantics
from databox_contracts.formats.sections_governance import (
    read_evolution,
    read_governance,
)
from databox_contracts.formats.sections_guarantees import kept_guarantees, read_guarantees, read_retention
from databox_contracts.model import Contract, Dataset, Team

SECTIONS: Final = ("schema", "guarantees", "semantics", "evolution", "governance", "enforcement")

_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s.]+(?:\.[^@\s.]+)+")


def recognises(data: Mapping[str, Any]) -> bool:
    """Whether a document is in this form: a header `contract`, and a `schema` beside it or in it."""
    header = data.get("contract")
    if "contract" not in data or "dataContractSpecification" in data:
        return False
    return "schema" in data or (isinstance(header, dict) and "schema" in header)


def read(report: Report) -> Contract | None:
    """The contract, with what is wrong in the report; None where it has no identity.

    The sections stand beside `contract`, or in it. A contract with errors in the report lacks what the errors are
    about, and is for showing only.
    """
    root = Section(report, (), report.document.data)
    header = root.section("contract")
    if header is None:
        if root.data.get("contract") is None:
            root.error("'contract' is empty", "indent its entries below `contract:`", "contract")
        root.carried(*SECTIONS, "consumers")
        return None
    found = {name: _holder(name, root, header).section(name) for name in SECTIONS}
    name, version = header.needed("name", "the contract"), read_version(header, "the contract")
    identity = header.needed("id", "the contract") if "id" in header else name
    team = header.text("owner_team")
    kept = _contacts(header)
    dataset = _dataset(found["schema"], name or "unnamed", root)
    guarantees, semantics, governance = found["guarantees"], found["semantics"], found["governance"]
    if guarantees is not None:
        dataset = attached(dataset, read_guarantees(guarantees, dataset))
        beside = kept_guarantees(guarantees, dataset)
        kept |= {"guarantees": beside} if beside else {}
    if semantics is not None:
        dataset, unplaced = with_semantics(dataset, semantics)
        kept |= {"semantics": unplaced} if unplaced else {}
    days, retention = read_retention(governance, dataset)
    dataset = attached(dataset, retention)
    governed, purposes = read_governance(governance, days)
    kept |= {"governance": purposes} if purposes else {}
    consumers = consumers_of(_holder("consumers", root, header).sections("consumers"))
    contract = None
    if name is not None and identity is not None and version is not None:
        contract = Contract(
            id=identity,
            name=name if "id" in header else None,
            version=version,
            status=header.text("status") or "draft",
            description=(header.text("description") or "").strip(),
            domain=header.text("domain"),
            tags=header.texts("tags"),
            team=Team(name=team),
            owner=team,
            datasets=(dataset,),
            consumers=consumers,
            evolution=read_evolution(found["evolution"]),
            enforcement=enforcement_of(found["enforcement"]),
            governance=governed,
            custom={DOCUMENT: kept},
            dialect="sections",
            source=report.document.source,
        )
    else:
        header.carried("status", "description", "domain", "tags")
    header.close(dict.fromkeys(("owner", "team"), "write `owner_team`"))
    root.close()
    return contract


def _holder(name: str, root: Section, header: Section) -> Section:
    """Where the section stands: beside the header, or in it."""
    if name in root and name in header:
        header.error(f"{name!r} stands beside `contract` too", "keep one of them", name)
    return root if root.raw(name) is not None else header


def _contacts(header: Section) -> dict[str, Any]:
    """Who is to be told, and when the document was written: kept, since the model has no place for it."""
    email = header.text("ownership_email")
    if email is not None and not _EMAIL.fullmatch(email.strip()):
        header.warning(
            f"'ownership_email' is no address that mail reaches: {email[:60]!r}",
            "write team@example.com",
            "ownership_email",
        )
    channel = header.text("on_call_slack")
    if channel is not None and not re.fullmatch(r"[#@]?[\w.-]+", channel.strip()):
        header.warning(
            f"'on_call_slack' is no channel: {channel[:60]!r}", 'write "#team-oncall" in quotes', "on_call_slack"
        )
    for key in ("created", "updated"):
        written = header.report.document.text((*header.path, key))
        try:
            if header.raw(key) is not None:
                date.fromisoformat((written or "")[:10])
        except ValueError:
            header.warning(f"{key!r} is no date: {(written or '')[:40]!r}", "write 2026-01-31", key)
    kept = header.carried("on_call_slack", "ownership_email", "created", "updated")
    return {"contract": kept} if kept else {}


def _dataset(schema: Section | None, contract: str, root: Section) -> Dataset:
    """The one table.

    It is called by the last part of the contract's name and stands under the whole; a `name` of its own is that of the
    table too, unless `table` says another.
    """
    short = contract.rpartition(".")[2] or contract
    table = contract if contract != short else None
    if schema is None:
        root.warning("the contract declares no schema, so it promises nothing", "write `schema:` with its `fields:`")
        return Dataset(name=short, physical_name=table)
    if "name" in schema:
        short, table = schema.needed("name", "the schema") or short, None
        check_table_name(schema, short, "name")
    if "table" in schema:
        table = schema.needed("table", "the schema")
        check_table_name(schema, table or "-", "table")
    if "name" not in schema and "table" not in schema:
        check_table_name(schema, contract)
    fields, table_rules = read_fields(schema)
    if not fields:
        schema.warning("the schema declares no fields, so no column is checked", "list them under `fields:`")
    found = Dataset(
        name=short,
        physical_name=table,
        fields=fields,
        rules=table_rules,
        description=(schema.text("description") or "").strip(),
        tags=schema.texts("tags"),
        modes=modes_of(schema, "modes"),
        position=schema.position,
    )
    schema.close(dict.fromkeys(("columns", "properties"), "write `fields`"))
    return found
