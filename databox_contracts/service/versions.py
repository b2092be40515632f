"""Operations on contracts and their versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

from databox_contracts.formats.positions import MAX_NODES
from databox_contracts.model import Contract
from databox_contracts.registry.records import Outcome, Publication, StoredVersion
from databox_contracts.service.bodies import contract_of, contract_of_data, object_of, text_in
from databox_contracts.service.calls import Answer, Call, RefusedError

# Of a catalogue as a whole; each of its contracts is held to the loaders' limits.
_MOST_VALUES: Final = 20 * MAX_NODES
_DRAFTS: Final = ("draft", "proposed")


def contracts(call: Call) -> Answer:
    """All contracts, each as its newest version; their documents with `content=true`."""
    found = call.registry.contracts()
    return Answer({"contracts": [one.to_dict(content=_flag(call.query, "content")) for one in found]})


def contract(call: Call) -> Answer:
    """One version with its document: that of `version`, a version or a range, else the newest active one."""
    return Answer(call.registry.get(call.path["id"], call.query.get("version")).to_dict(content=True))


def versions(call: Call) -> Answer:
    """All versions of a contract."""
    found = call.registry.versions(call.path["id"])
    return Answer({"versions": [one.to_dict(content=_flag(call.query, "content")) for one in found]})


def version(call: Call) -> Answer:
    """One version with its document."""
    return Answer(call.registry.get(call.path["id"], call.path["version"]).to_dict(content=True))


def publish(call: Call) -> Answer:
    """Publish the contract that the body is: 201 where the version is new, 200 where it was published before."""
    given = contract_of(call.body, call.media_type)
    if given.id != call.path["id"]:
        raise RefusedError(
            422,
            "other-contract",
            "the body is a contract of another id than the address has",
            hint="Put it at /contracts/ and its own id, percent-encoded.",
        )
    done = _publish(call, [given])[0]
    return _published(_with_content(done), [done])


def publish_all(call: Call) -> Answer:
    """Publish all contracts of the body, `{"contracts": [...]}`, or none."""
    value = object_of(call.body, ("contracts",), required=("contracts",), most=_MOST_VALUES)["contracts"]
    if not isinstance(value, list) or not value:
        raise RefusedError(422, "body", "'contracts' has to be a list of contracts", hint="Give one at least.")
    done = _publish(call, [contract_of_data(one) for one in value])
    return _published({"publications": [_with_content(one) for one in done]}, done)


def activate(call: Call) -> Answer:
    """Make a draft active, or take a deprecation back."""
    place, announce = (call.path["id"], call.path["version"]), call.wiring.announce
    return _version(call.registry.activate(*place, by=call.who, announce=announce))


def deprecate(call: Call) -> Answer:
    """Announce a version's end; the body may be `{"sunset": "2026-01-31"}`."""
    said = text_in(object_of(call.body, ("sunset",)), "sunset")
    try:
        sunset = date.fromisoformat(said) if said is not None else None
    except ValueError:
        raise RefusedError(422, "body", "'sunset' is no day", hint="Write it as 2026-01-31.") from None
    place, announce = (call.path["id"], call.path["version"]), call.wiring.announce_end
    return _version(call.registry.deprecate(*place, by=call.who, sunset=sunset, announce_end=announce))


def retire(call: Call) -> Answer:
    """End a version."""
    place, announce = (call.path["id"], call.path["version"]), call.wiring.announce_end
    return _version(call.registry.retire(*place, by=call.who, announce_end=announce))


def _publish(call: Call, given: Sequence[Contract]) -> list[Publication]:
    return call.registry.publish_all(
        [_activated(one, call.query) for one in given],
        by=call.who,
        notifications=call.wiring.announce or (),
        announce_end=call.wiring.announce_end,
    )


def _version(found: StoredVersion) -> Answer:
    return Answer(found.to_dict(content=True))


def _published(facts: Mapping[str, Any], done: Sequence[Publication]) -> Answer:
    is_new = any(one.outcome is Outcome.PUBLISHED for one in done)
    return Answer(facts, 201 if is_new else 200)


def _with_content(done: Publication) -> dict[str, Any]:
    return {**done.to_dict(), "content": done.stored.content}


def _activated(given: Contract, query: Mapping[str, str]) -> Contract:
    """Drafts are published as active versions where the call asks for it."""
    is_draft = given.status.strip().lower() in _DRAFTS
    return given.model_copy(update={"status": "active"}) if is_draft and _flag(query, "activate") else given


def _flag(query: Mapping[str, str], name: str) -> bool:
    value = query.get(name, "false")
    if value not in ("true", "false"):
        raise RefusedError(
            400, "parameter", f"the parameter {name!r} is neither true nor false", hint=f"Write {name}=true."
        )
    return value == "true"
