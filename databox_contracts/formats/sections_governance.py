"""`evolution`, `governance`, `consumers`, `enforcement` and schema modes of a contract in six sections."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Any, Final

from databox_contracts.formats.reading import Section, described, nearest
from databox_contracts.model import Consumer, Enforcement, Evolution, Governance, Mode, SchemaModes

DEFAULT_POLICY: Final = "backwards_compatible_only"

_ALLOWED_BY_DEFAULT: Final = ("add_optional_field", "widen_enum_values", "widen_numeric_type")

USUAL_EVOLUTION: Final = Evolution(policy=DEFAULT_POLICY, allowed=_ALLOWED_BY_DEFAULT)
"""What holds where a document has no such block."""

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

# `dpdp_purpose`, `gdpr_purpose`, `purposes`: one law or another, always what the data may be used for.
_PURPOSE: Final = re.compile(r"(?:[a-z0-9]+_)*purposes?")

CONSUMER_TEXTS: Final = ("contact", "owner", "versions", "purpose", "justification", "criticality")
CONSUMER_LISTS: Final = ("contacts", "datasets", "fields")

MODES: Final = ("fail", "warn")


def read_evolution(section: Section | None) -> Evolution:
    """The block; without one, and for lists it leaves out, what the form's own policy allows."""
    if section is None:
        return USUAL_EVOLUTION
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


def read_governance(section: Section | None, retention_days: int | None) -> tuple[Governance, dict[str, Any]]:
    """Who may hold the data, for what and how long; and the names of purposes, where those are not `purposes` alone.

    The days have been read with the rule that they are, by `read_retention`.
    """
    if section is None:
        return Governance(), {}
    purposes = {key: _one_or_more(section, key) for key in section.data if _PURPOSE.fullmatch(key)}
    rbac = section.section("rbac")
    read, write = (rbac.texts("read"), rbac.texts("write")) if rbac is not None else ((), ())
    if rbac is not None:
        rbac.close()
    found = Governance(
        pii_class=_pii_class(section),
        retention_days=retention_days,
        purposes=all_purposes(purposes.values()),
        read=read,
        write=write,
    )
    if "timestamp_field" in section and "retention_days" not in section:
        section.warning("'timestamp_field' has no effect without 'retention_days'", None, "timestamp_field")
    section.close()
    named = {key: list(names) for key, names in purposes.items() if names}
    return found, named if set(named) - {"purposes"} else {}


def all_purposes(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Each purpose once, in order."""
    return tuple(dict.fromkeys(name for names in lists for name in names))


def _pii_class(section: Section) -> str | None:
    value = section.raw("pii_class")
    if isinstance(value, list | dict):
        # It decides what may be shown.
        section.error(f"'pii_class' must be text, not {described(value)}", "write `pii_class: B`", "pii_class")
    return section.report.document.text((*section.path, "pii_class"))


def _one_or_more(section: Section, key: str) -> tuple[str, ...]:
    value = section.raw(key)
    if isinstance(value, str):
        return (value,)
    return section.texts(key)


def read_consumers(holder: Section) -> tuple[Consumer, ...]:
    """`consumers`: who reads the data, each with a name."""
    found: list[Consumer] = []
    for entry in holder.sections("consumers"):
        name = entry.needed("name", "a consumer")
        lists = {key: entry.texts(key) for key in CONSUMER_LISTS}
        texts = {key: entry.text(key) for key in CONSUMER_TEXTS}
        entry.close()
        if name is not None:
            found.append(Consumer(name=name, **lists, **texts))  # type: ignore[arg-type]
    return tuple(found)


def read_enforcement(section: Section | None) -> Enforcement:
    """`enforcement: {mode, until}`: a grace period, which has to end."""
    if section is None:
        return Enforcement()
    mode = section.text("mode") or "fail"
    if mode not in MODES:
        section.error(f"unknown enforcement mode {mode!r}", f"use {' or '.join(MODES)}", "mode")
        mode = "fail"
    until = None
    if "until" in section:
        written = section.report.document.text((*section.path, "until")) or ""
        try:
            until = date.fromisoformat(written)
        except ValueError:
            shown = described(section.data["until"])
            section.error(f"'until' must be a date, not {shown}", "write 2026-01-31", "until")
    elif mode == "warn":
        section.error("a grace period has no end", "give it `until: 2026-01-31`")
    section.close()
    return Enforcement(mode=mode, until=until)


MODE_KEYS: Final = ("tables", "columns", "data_type")


def read_modes(schema: Section) -> SchemaModes | None:
    """`modes`: what happens to data that the contract does not know, in one word or in one for each of `MODE_KEYS`."""
    if "modes" not in schema:
        return None
    if isinstance(schema.data["modes"], dict):
        section = schema.section("modes")
        found = {key: _mode(section, key) for key in MODE_KEYS if section is not None and key in section}
        if section is not None:
            section.close()
    else:
        found = dict.fromkeys(MODE_KEYS, _mode(schema, "modes"))
    return SchemaModes(**{key: mode for key, mode in found.items() if mode is not None})


def _mode(section: Section, key: str) -> Mode | None:
    written = section.text(key)
    if written is None or written in tuple(Mode):
        return Mode(written) if written is not None else None
    near = nearest(written, [mode.value for mode in Mode])
    hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(Mode)}"
    section.error(f"unknown schema mode {written[:60]!r}", hint, key)
    return None
