"""What a contract loses on its way through a text: it is read back, and the two contracts are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from databox_contracts.formats.canonical import canonical
from databox_contracts.model import Contract

_LONGEST: Final = 60
_PARTS: Final = ("item", "key", "value")


def lost(before: Contract, after: Contract | None) -> list[str]:
    """Each thing that the first contract says and the second does not, or says otherwise; in the first one's order.

    `after` is None where the text could not be read at all. What only the second one says is no loss unless it is a
    rule or a field.
    """
    if after is None:
        return ["everything: the text is no contract"]
    return list(_entries("the contract", canonical(before), canonical(after)))


def _entries(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name, value in before.items():
        other = after.get(name)
        match name:
            case "rules":
                yield from _rules(what, value, other or [])
            case "datasets":
                yield from _named("dataset", "", value, other or [])
            case "fields":
                yield from _named("field", _prefix(what), value, other or [])
            case "custom":
                yield from _custom(what, value, other or {})
            case _ if name in _PARTS and isinstance(value, Mapping):
                yield from _entries(f"{what}, {name}", value, other or {})
            case _ if value != other:
                yield f"{what}: {name} {_shown(value)}" + (f" becomes {_shown(other)}" if other is not None else "")
    if "rules" not in before:
        yield from _rules(what, [], after.get("rules", []))
    if "fields" not in before:
        yield from _named("field", _prefix(what), [], after.get("fields", []))


def _prefix(what: str) -> str:
    return f"{what[len('field ') :]}." if what.startswith("field ") else ""


def _named(
    kind: str, prefix: str, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    others = {entry["name"]: entry for entry in after}
    for entry in before:
        what = f"{kind} {prefix}{entry['name']}"
        if entry["name"] in others:
            yield from _entries(what, entry, others[entry["name"]])
        else:
            yield f"{what}: all of it"
    known = {entry["name"] for entry in before}
    yield from (f"{kind} {prefix}{name} is made up" for name in others if name not in known)
    order = [entry["name"] for entry in before if entry["name"] in others]
    if order != [name for name in others if name in known]:
        yield f"the order of the {kind}s {', '.join(order)}"


def _rules(what: str, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    left = list(after)
    missing = []
    for rule in before:
        if rule in left:
            left.remove(rule)
        else:
            missing.append(rule)
    for rule in missing:
        kept = next((other for other in left if _promise(other) == _promise(rule)), None)
        if kept is None:
            yield f"{what}: the rule {rule['rule']}{_facts(rule)}"
            continue
        left.remove(kept)
        beside = [name for name in rule if rule[name] != kept.get(name)] or ["what was said beside it"]
        yield f"{what}: of the rule {rule['rule']}, its {', '.join(beside)}"
    yield from (f"{what}: the rule {rule['rule']}{_facts(rule)} is made up" for rule in left)


_BESIDE: Final = ("name", "description", "dimension", "custom")


def _promise(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in rule.items() if name not in _BESIDE}


def _facts(rule: Mapping[str, Any]) -> str:
    facts = {name: value for name, value in _promise(rule).items() if name != "rule"}
    return f" ({', '.join(f'{name} {_shown(value)}' for name, value in facts.items())})" if facts else ""


def _custom(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name, value in before.items():
        other = after.get(name)
        if value == other:
            continue
        if name.startswith("$") and isinstance(value, Mapping):
            gone = [key for key in value if not isinstance(other, Mapping) or other.get(key) != value[key]]
            yield f"{what}: what only {name[1:]} says: {', '.join(gone)}"
        else:
            yield f"{what}: the custom property {name}"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
