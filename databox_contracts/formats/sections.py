"""The reader of contracts in six sections: header, schema, guarantees, semantics, evolution, governance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from databox_contracts.formats.attaching import attached
from databox_contracts.formats.identity import check_table_name, read_version
from databox_contracts.formats.reading import Report, Section, nearest
from databox_contracts.formats.sections_fields import DOCUMENT, read_fields, with_semantics
from databox_contracts.formats.sections_guarantees import read_guarantees, read_retention
from databox_contracts.model import Contract, Dataset, Evolution, Governance, Team

SECTIONS: Final = ("schema", "guarantees", "semantics", "evolution", "governance")

DEFAULT_POLICY: Final = "backwards_compatible_only"

_ALLOWED_BY_DEFAULT: Final = ("add_optional_field", "widen_enum_values", "widen_numeric_type")

CHANGES: Final = (
    *_ALLOWED_BY_DEFAULT,
    "add_required_field",
    "change_field_type",
    "narrow_enum_values",
    "narrow_numeric_type",
    "relax_nullability",
    "remove_field",
    "rename_field",
    "tighten_nullability",
)
"""The form's own names of changes."""

_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s.]+(?:\.[^@\s.]+)+")
_PURPOSE: Final = re.compile(r"(?:[a-z0-9]+_)*purposes?")


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
        root.carried(*SECTIONS)
        return None
    found = {name: _section(name, root, header) for name in SECTIONS}
    name, version = header.needed("name", "the contract"), read_version(header, "the contract")
    team = header.text("owner_team")
    kept = _contacts(header)
    dataset = _dataset(found["schema"], name or "unnamed", root)
    guarantees, semantics, governance = found["guarantees"], found["semantics"], found["governance"]
    if guarantees is not None:
        dataset = attached(dataset, read_guarantees(guarantees, dataset))
        kept["guarantees"] = guarantees.data
    if semantics is not None:
        dataset, unplaced = with_semantics(dataset, semantics)
        kept |= {"semantics": unplaced} if unplaced else {}
    if governance is not None:
        dataset = attached(dataset, read_retention(governance, dataset))
        kept["governance"] = governance.data
    contract = None
    if name is not None and version is not None:
        contract = Contract(
            id=name,
            version=version,
            status=header.text("status") or "draft",
            description=(header.text("description") or "").strip(),
            domain=header.text("domain"),
            tags=header.texts("tags"),
            team=Team(name=team),
            owner=team,
            datasets=(dataset,),
            evolution=_evolution(found["evolution"]),
            governance=_governance(governance),
            custom={DOCUMENT: kept},
            dialect="sections",
            source=report.document.source,
        )
    else:
        header.carried("status", "description", "domain", "tags")
    header.close(dict.fromkeys(("owner", "team"), "write `owner_team`"))
    root.close()
    return contract


def _section(name: str, root: Section, header: Section) -> Section | None:
    if name in root and name in header:
        header.error(f"{name!r} stands beside `contract` too", "keep one of them", name)
    holder = root if root.raw(name) is not None else header
    return holder.section(name)


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


def _dataset(schema: Section | None, name: str, root: Section) -> Dataset:
    """The one table: it is called by the last part of the contract's name, and stands under the whole."""
    short = name.rpartition(".")[2] or name
    if schema is None:
        root.warning("the contract declares no schema, so it promises nothing", "write `schema:` with its `fields:`")
        return Dataset(name=short, physical_name=name if name != short else None)
    check_table_name(schema, name)
    fields, table_rules = read_fields(schema)
    if not fields:
        schema.warning("the schema declares no fields, so no column is checked", "list them under `fields:`")
    schema.close(dict.fromkeys(("columns", "properties"), "write `fields`"))
    return Dataset(
        name=short,
        physical_name=name if name != short else None,
        fields=fields,
        rules=table_rules,
        position=schema.position,
    )


def _evolution(section: Section | None) -> Evolution:
    """The block; without one, and for lists it leaves out, what the form's own policy allows."""
    if section is None:
        return Evolution(policy=DEFAULT_POLICY, allowed=_ALLOWED_BY_DEFAULT)
    policy = section.text("policy") or DEFAULT_POLICY
    if policy != DEFAULT_POLICY and (near := nearest(policy, (DEFAULT_POLICY,))):
        section.warning(f"unknown policy {policy[:60]!r}", f"did you mean {near!r}?", "policy")
    listed = {key: section.texts(key) for key in ("allowed", "disallowed")}
    for key, names in listed.items():
        for at, name in enumerate(names):
            near = nearest(name, CHANGES)
            if name not in CHANGES:
                section.warning(
                    f"unknown change {name[:60]!r}",
                    f"did you mean {near!r}?" if near else f"known are {', '.join(CHANGES)}",
                    key,
                    at,
                )
    both = [name for name in listed["disallowed"] if name in listed["allowed"]]
    if both:
        section.error(f"{both[0]!r} is allowed and disallowed", "keep one of them", "disallowed")
    if "allowed" not in section and policy == DEFAULT_POLICY:
        listed["allowed"] = tuple(name for name in _ALLOWED_BY_DEFAULT if name not in listed["disallowed"])
    evolution = Evolution(
        policy=policy,
        allowed=listed["allowed"],
        disallowed=listed["disallowed"],
        deprecation_window_days=section.count("deprecation_window_days"),
        sign_off=section.text("sign_off"),
    )
    section.close()
    return evolution


def _governance(section: Section | None) -> Governance:
    if section is None:
        return Governance()
    # `dpdp_purpose`, `gdpr_purpose`, `purposes`: one law or another, always what the data may be used for.
    keys = [key for key in section.data if _PURPOSE.fullmatch(key)]
    purposes = [name for key in keys for name in _one_or_more(section, key)]
    rbac = section.section("rbac")
    read, write = (rbac.texts("read"), rbac.texts("write")) if rbac is not None else ((), ())
    if rbac is not None:
        rbac.close()
    found = Governance(
        pii_class=section.report.document.text((*section.path, "pii_class")),
        retention_days=section.count("retention_days", least=1) if _is_sound(section) else None,
        purposes=tuple(dict.fromkeys(purposes)),
        read=read,
        write=write,
    )
    section.raw("pii_class")
    section.close()
    return found


def _is_sound(section: Section) -> bool:
    """Whether the days have not been refused already."""
    return (*section.path, "retention_days") not in section.report.places


def _one_or_more(section: Section, key: str) -> tuple[str, ...]:
    value = section.raw(key)
    if isinstance(value, str):
        return (value,)
    return section.texts(key)
