"""`evolution` and `governance` of a contract in six sections."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from databox_contracts.formats.reading import Section, described, nearest
from databox_contracts.model import Evolution, Governance
from databox_contracts.vocabulary import CHANGE_NAMES, OWN_POLICY, POLICY_NAMES

_ALLOWED_BY_DEFAULT: Final = ("add_optional_field", "widen_enum_values", "widen_numeric_type")

USUAL_EVOLUTION: Final = Evolution(policy=OWN_POLICY, allowed=_ALLOWED_BY_DEFAULT)
"""What holds where a document has no such block."""

# `dpdp_purpose`, `gdpr_purpose`, `purposes`: one law or another, always what the data may be used for.
_PURPOSE: Final = re.compile(r"(?:[a-z0-9]+_)*purposes?")


def read_evolution(section: Section | None) -> Evolution:
    """The block; without one, and for lists it leaves out, what the form's own policy allows."""
    if section is None:
        return USUAL_EVOLUTION
    policy = section.text("policy") or OWN_POLICY
    if policy not in POLICY_NAMES:
        near = nearest(policy, POLICY_NAMES)
        hint = f"did you mean {near!r}?" if near else f"known are {', '.join(POLICY_NAMES)}"
        section.warning(f"unknown policy {policy[:60]!r}", hint, "policy")
    listed = {key: section.texts(key) for key in ("allowed", "disallowed")}
    for key, names in listed.items():
        for at, name in enumerate(names):
            near = nearest(name, CHANGE_NAMES)
            if name not in CHANGE_NAMES:
                section.warning(
                    f"unknown change {name[:60]!r}",
                    f"did you mean {near!r}?" if near else f"known are {', '.join(CHANGE_NAMES)}",
                    key,
                    at,
                )
    both = [name for name in listed["disallowed"] if name in listed["allowed"]]
    if both:
        section.error(f"{both[0]!r} is allowed and disallowed", "keep one of them", "disallowed")
    if "allowed" not in section and policy == OWN_POLICY:
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
        closed=section.flag("closed") or False,
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
