"""Operations on consumers and their consents, and what a change would do to them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from databox_contracts.errors import UnknownContractError
from databox_contracts.formats.positions import MAX_NODES
from databox_contracts.model import Consumer, Contract
from databox_contracts.registry.records import Origin, Status, StoredApproval
from databox_contracts.service.bodies import (
    contract_of,
    contract_of_data,
    is_contract,
    is_json,
    json_of,
    object_of,
    plain,
    text_in,
)
from databox_contracts.service.calls import Answer, Call, Question, RefusedError
from databox_contracts.service.knowledge import Reaching, dependencies

_ENVELOPE: Final = ("contract", "old", "version", "policy")
_TWO: Final = 2 * MAX_NODES
_LISTS: Final = ("datasets", "contacts", "fields")
_ORIGINS: Final = tuple(str(one) for one in Origin if one is not Origin.CONTRACT)


def consumers(call: Call) -> Answer:
    """The consumers of a contract, or of all."""
    return Answer({"consumers": [one.to_dict() for one in call.registry.consumers(call.path.get("id"))]})


def register(call: Call) -> Answer:
    """Register the consumer that the body is, in place of the one of that name and origin."""
    known = tuple(Consumer.model_fields)
    given = {name: value for name, value in plain(object_of(call.body, known)).items() if value is not None}
    if given.setdefault("name", call.path["name"]) != call.path["name"]:
        raise RefusedError(422, "body", "the body is a consumer of another name than the address has")
    for name in _LISTS:
        if isinstance(given.get(name), str):
            given[name] = [given[name]]
    try:
        consumer = Consumer.model_validate(given)
    except ValidationError as error:
        # Its text shows what was given.
        places = ", ".join(dict.fromkeys(str(one["loc"][0]) for one in error.errors() if one["loc"]))
        raise RefusedError(
            422, "body", f"this is no consumer; see {places}", hint="Texts, and lists of texts, are meant."
        ) from None
    return Answer(call.registry.register(call.path["id"], consumer, by=call.who, origin=_origin(call)).to_dict())


def remove(call: Call) -> Answer:
    """Remove a consumer; `removed` is false where there was none."""
    done = call.registry.remove_consumer(call.path["id"], call.path["name"], by=call.who, origin=_origin(call))
    return Answer({"removed": done})


def approvals(call: Call) -> Answer:
    """The consents of a contract's consumers, or all."""
    return Answer({"approvals": [one.to_dict() for one in call.registry.approvals(call.path.get("id"))]})


def compatibility(call: Call) -> Answer:
    """Judge the body's contract against `old`, else against a registered version: the one in force, or `version`.

    The body is the contract, or a JSON object `{contract, old, version, policy}`. A contract that is not registered is
    judged as a new one.
    """
    asked: Mapping[str, Any] = dict(call.query)
    old = None
    if is_json(call.media_type) and not is_contract(json_of(call.body, most=_TWO)):
        asked = object_of(call.body, _ENVELOPE, required=("contract",), most=_TWO)
        new = contract_of_data(asked["contract"])
        old = contract_of_data(asked["old"]) if asked.get("old") is not None else None
    else:
        new = contract_of(call.body, call.media_type)
    version, policy = text_in(asked, "version"), text_in(asked, "policy")
    if old is not None and version is not None:
        raise RefusedError(422, "body", "both 'old' and 'version' are given", hint="Give one of them.")
    history: tuple[Contract, ...] = ()
    since = None
    if old is None:
        old, history, since = _registered(call, new, version)
    ruling = old or new
    question = Question(
        old=old,
        new=new,
        policy=policy,
        history=history,
        consumers=call.registry.consumers(ruling.id),
        # A consent to whatever comes next is over when that has come.
        approvals=[
            one
            for one in call.registry.approvals(ruling.id)
            if one.version is not None or since is None or one.at >= since
        ],
        reach=Reaching(call.registry, call.wiring.readings, call.wiring.lineage),
    )
    return Answer(call.wiring.judge(question))


def _registered(
    call: Call, new: Contract, version: str | None
) -> tuple[Contract | None, tuple[Contract, ...], datetime | None]:
    """The version to judge against, those before it, and since when it is published."""
    try:
        found = call.registry.get(new.id, version)
    except UnknownContractError:
        if version is not None:
            raise
        return None, (), None
    known = call.registry.versions(new.id)
    before = known[: next(at for at, one in enumerate(known) if one.version == found.version)]
    read = call.wiring.readings.contract
    return read(found), tuple(read(one) for one in before if one.status is not Status.DRAFT), found.published_at


def approve(call: Call) -> Answer:
    """Store a consumer's consent; who gave it is the token's holder, when it is now."""
    known = ("consumer", "approver", "dataset", "version", "purpose", "note")
    given = object_of(call.body, known, required=("consumer",))
    texts = {name: text_in(given, name) for name in known}
    approval = StoredApproval(
        contract_id=call.path["id"],
        consumer=texts["consumer"] or "",
        approver=call.named(texts["approver"]),
        at=call.wiring.clock(),
        dataset=texts["dataset"],
        version=texts["version"],
        purpose=texts["purpose"],
        note=texts["note"] or "",
    )
    return Answer(call.registry.approve(approval).to_dict())


def impact(call: Call) -> Answer:
    """Whom a change of `target` reaches, among what is registered and the lineage that the service was given."""
    found, resolved = dependencies(call.registry, call.wiring.readings, call.wiring.lineage)
    problems = [problem.to_dict() for problem in resolved.problems]
    return Answer({**found.impact(_target(call)).to_dict(), "problems": problems})


def _target(call: Call) -> str:
    if "target" not in call.query:
        raise RefusedError(400, "parameter", "'target' is missing", hint="Name CONTRACT[.DATASET][.FIELD].")
    return call.query["target"]


def _origin(call: Call) -> Origin:
    said = call.query.get("origin", str(Origin.REGISTRY))
    if said not in _ORIGINS:
        raise RefusedError(
            400,
            "parameter",
            "the parameter 'origin' is none that can be registered",
            hint=f"Use one of: {', '.join(_ORIGINS)}; what a contract declares is published with it.",
        )
    return Origin(said)
