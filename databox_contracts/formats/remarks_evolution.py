"""Remarks about how a contract may change: words that nobody knows, days that are none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from databox_contracts.errors import Finding, Level
from databox_contracts.formats.outline import Outline, path_of
from databox_contracts.lifecycle import CHANGELOG, EFFECTIVE, SUNSET, effective_date, sunset_date
from databox_contracts.vocabulary import CHANGE_NAMES, POLICY_NAMES, SIGN_OFF_NAMES


def unknown_evolution(outline: Outline) -> Iterator[Finding]:
    """A warning for a policy, a change or a sign-off that no gate knows, and for a change allowed and disallowed."""
    evolution = outline.contract.evolution
    if evolution is None:
        return
    place = outline.at(*(path_of(outline.data, "evolution") or ("evolution",)))
    unknown = evolution.policy is not None and evolution.policy not in POLICY_NAMES
    if evolution.policy is not None and unknown and not outline.said("policy", repr(evolution.policy)):
        message, hint = f"no gate knows the policy {evolution.policy!r}", _known(evolution.policy, POLICY_NAMES)
        yield outline.finding(Level.WARNING, message, hint, place)
    for name in (*evolution.allowed, *evolution.disallowed):
        if name not in CHANGE_NAMES and not outline.said(repr(name)):
            message = f"no gate knows the change {name!r}"
            yield outline.finding(Level.WARNING, message, _known(name, CHANGE_NAMES), place)
    if evolution.sign_off is not None and evolution.sign_off not in SIGN_OFF_NAMES:
        message = f"no gate knows the sign-off {evolution.sign_off[:60]!r}, so nobody is asked"
        yield outline.finding(Level.WARNING, message, _known(evolution.sign_off, SIGN_OFF_NAMES), place)
    for name in evolution.allowed:
        if name in evolution.disallowed and not outline.said(repr(name)):
            message = f"{name!r} is allowed and disallowed, and counts as disallowed"
            yield outline.finding(Level.WARNING, message, "take it out of one of the lists", place)


def _known(name: str, names: tuple[str, ...]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"use one of: {', '.join(names)}"


_DAYS: Final = {EFFECTIVE: effective_date, SUNSET: sunset_date}


def unusable_lifecycle(outline: Outline) -> Iterator[Finding]:
    """A warning for a day that is none, and for a changelog nobody can look a version up in."""
    custom = outline.contract.custom
    for name, read in _DAYS.items():
        if custom.get(name) is not None and read(outline.contract) is None:
            yield _warning(outline, name, f"{name!r} is no day", "write it as 2026-01-31")
    entries = custom.get(CHANGELOG)
    by_version = isinstance(entries, list) and all(isinstance(one, Mapping) and "version" in one for one in entries)
    if entries is not None and not by_version and not isinstance(entries, Mapping):
        hint = "write a list of mappings with `version`, such as [{version: 2.0.0, removed: [price]}]"
        yield _warning(outline, CHANGELOG, "the changelog does not say which version is which", hint)


def _warning(outline: Outline, name: str, message: str, hint: str) -> Finding:
    return outline.finding(Level.WARNING, message, hint, outline.at(*(path_of(outline.data, name) or ())))
