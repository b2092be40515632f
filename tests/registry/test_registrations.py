"""Consumers, consents, tokens, plans of deletion, batches and baselines, kept alike on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from databox_contracts.declarations import Declaration
from databox_contracts.drift import DriftKey, Sighting
from databox_contracts.errors import BaselineError, ConsumersError, RegistryError, VersionRangeError
from databox_contracts.model import Consumer
from databox_contracts.profiles import Baseline, FieldProfile
from databox_contracts.registry.consumers import resolve
from databox_contracts.registry.deletion_plans import StoredPlan, StoredStep
from databox_contracts.registry.held_batches import StoredBatch
from databox_contracts.registry.records import Origin, StoredApproval
from databox_contracts.registry.store import Registry
from databox_contracts.registry.tokens import Scope, StoredToken
from databox_contracts.testing import build_contract, build_field

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

QUANT = Consumer(
    name="quant",
    contacts=("mailto:q@example.com", "slack://${A}/${B}/${C}"),
    datasets=("t",),
    fields=("a.b",),
    versions="^1",
    purpose="risk",
    justification="ü",
    criticality="high",
    owner="team",
)


def test_a_consumer_is_registered_once_for_each_origin(registry: Registry) -> None:
    first = registry.register("c", QUANT, by="q")
    assert (first.consumer, first.origin, first.registered_by, first.registered_at) == (
        QUANT,
        Origin.REGISTRY,
        "q",
        NOW,
    )
    assert registry.register("c", QUANT, by="another") == first
    changed = QUANT.model_copy(update={"versions": "^2"})
    assert registry.register("c", changed, by="another").consumer == changed
    registry.register("c", changed, by="q", origin=Origin.FILE)
    registry.register("d", Consumer(name="quant"), by="q")
    assert [(one.contract_id, one.origin, one.consumer.versions) for one in registry.consumers()] == [
        ("c", Origin.FILE, "^2"),
        ("c", Origin.REGISTRY, "^2"),
        ("d", Origin.REGISTRY, None),
    ]
    assert registry.remove_consumer("c", "quant", by="q") is True
    assert registry.remove_consumer("c", "quant", by="q") is False
    assert [one.origin for one in registry.consumers("c")] == [Origin.FILE]
    assert [one.action for one in registry.audit("c")].count("remove quant") == 1


def test_what_two_origins_say_differently_of_a_consumer_is_refused(registry: Registry) -> None:
    """As where a code location is loaded: `resolve` is the one rule."""
    registry.register("c", Consumer(name="a", versions="^1", contacts=("mailto:a@example.com",)), by="q")
    for published in (False, True):
        if published:
            registry.publish(build_contract(build_field("x", "string"), id="c", status="active"), by="ci")
        with pytest.raises(ConsumersError, match=r"with the versions '\^2' here and '\^1' in the registry") as error:
            registry.register("c", Consumer(name="a", versions="^2"), by="q", origin=Origin.FILE)
        assert "remove one of them" in str(error.value)
        assert [one.origin for one in registry.consumers("c")] == [Origin.REGISTRY]
    # What says the same, or less, or names another contact, is no contradiction.
    registry.register("c", Consumer(name="a", versions="^1", contacts=("log:",)), by="q", origin=Origin.FILE)
    registry.register("c", Consumer(name="a", owner="team"), by="q", origin=Origin.CODE)
    assert [one.origin for one in registry.consumers("c")] == [Origin.FILE, Origin.CODE, Origin.REGISTRY]


def test_what_several_origins_say_of_a_consumer_is_told_as_one(registry: Registry) -> None:
    """Nobody loses a message because one of its declarations does not name the contact that another one has."""
    said = Consumer(name="a", versions="^1", contacts=("log:",), fields=("x",))
    one = build_contract(
        build_field("x", "string"), build_field("y", "string"), id="c", status="active", consumers=(said,)
    )
    registry.publish(one, by="ci")
    own = Consumer(name="a", contacts=("mailto:a@example.com",), fields=("y",), severity="error")
    registry.register("c", own, by="q")
    asked: list[Consumer] = []

    def announce(new: Any, before: Any, consumers: Sequence[Consumer]) -> list[Any]:
        asked.extend(consumers)
        return []

    # The producer's next version may contradict the consumer, whom that must not keep from being told.
    two = one.model_copy(update={"version": "2.0.0", "consumers": (said.model_copy(update={"versions": "^2"}),)})
    registry.publish(two, by="ci", notifications=announce)
    assert [(reader.name, reader.versions, reader.addresses, reader.fields, reader.severity) for reader in asked] == [
        ("a", "^2", ("log:", "mailto:a@example.com"), ("x", "y"), "error")
    ]
    declared = [Declaration("c", each.consumer, "r", str(each.origin)) for each in registry.consumers("c")]
    assert resolve([two], declared).of("c") == asked


def test_a_files_consumers_replace_those_of_before(registry: Registry) -> None:
    registry.register("c", QUANT, by="q")
    registry.register_all("c", [Consumer(name="a"), Consumer(name="b")], by="ci", origin=Origin.FILE)
    registry.register_all("c", [Consumer(name="b"), Consumer(name="d")], by="ci", origin=Origin.FILE)
    assert [one.consumer.name for one in registry.consumers("c")] == ["b", "d", "quant"]
    registry.register_all("c", [], by="ci", origin=Origin.FILE)
    assert [one.consumer.name for one in registry.consumers("c")] == ["quant"]


@pytest.mark.parametrize(
    ("facts", "error"),
    [
        ({"versions": "newest"}, VersionRangeError),
        ({"versions": ""}, VersionRangeError),
        ({"contact": "mailto://u:hunter2@example.com"}, RegistryError),
        ({"name": ""}, RegistryError),
        ({"name": "a\0"}, RegistryError),
    ],
)
def test_a_consumer_that_cannot_be_is_refused(
    registry: Registry, facts: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error) as raised:
        registry.register("c", QUANT.model_copy(update=facts), by="q")
    assert "hunter2" not in str(raised.value)
    assert registry.consumers() == []


def test_a_consent_is_stored_with_who_and_when(registry: Registry) -> None:
    given = StoredApproval(contract_id="c", consumer="quant", approver="ann", at=NOW, version="2.0.0", note="ok")
    assert registry.approve(given) == given
    later = replace(given, at=NOW + timedelta(days=1), note="again")
    assert registry.approve(later) == given
    other = replace(later, approver="bob")
    purpose = replace(later, version=None, purpose="ads", contract_id="d")
    assert registry.approve(other) == other
    assert registry.approve(purpose) == purpose
    assert registry.approvals("c") == [given, other]
    assert len(registry.approvals()) == 3
    with pytest.raises(RegistryError, match="approver's name is empty"):
        registry.approve(replace(given, approver=" "))


def test_a_token_is_shown_once_and_works_until_it_is_revoked(registry: Registry, clock: Any) -> None:
    token = registry.tokens.issue("ci", Scope.PUBLISH, by="ann", expires_at=NOW + timedelta(days=1))
    facts = StoredToken(
        name="ci", scope=Scope.PUBLISH, issued_at=NOW, issued_by="ann", expires_at=NOW + timedelta(days=1)
    )
    assert registry.tokens.recognise(token) == facts
    assert [registry.tokens.recognise(wrong) for wrong in ("", token[:-1], "' OR 1=1 --", "\ud800")] == [None] * 4
    with pytest.raises(RegistryError, match="there is a token named 'ci'"):
        registry.tokens.issue("ci", Scope.READ, by="ann")
    clock.pass_by(days=1)
    assert registry.tokens.recognise(token) is None
    other = registry.tokens.issue("reader", Scope.READ, by="ann")
    assert registry.tokens.recognise(other) is not None
    assert registry.tokens.revoke("reader", by="ann") is True
    assert registry.tokens.revoke("reader", by="ann") is False
    assert registry.tokens.recognise(other) is None
    assert [one.name for one in registry.tokens.tokens()] == ["ci", "reader"]
    assert token not in repr(registry.tokens.tokens())
    assert [one.action for one in registry.audit("reader")] == ["issue token", "revoke token"]


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [("read", ["read"]), ("publish", ["read", "publish"]), ("admin", ["read", "publish", "admin"])],
)
def test_what_a_scope_allows(scope: str, allowed: list[str]) -> None:
    assert [str(one) for one in Scope if Scope(scope).includes(one)] == allowed


def test_steps_of_a_plan_are_ticked_once(registry: Registry, clock: Any) -> None:
    steps = tuple(StoredStep(number=n, title=f"step {n}", facts={"asset": f"a/{n}"}) for n in (1, 2))
    plan = StoredPlan(
        id="p1", contract_id="c", field="t.email", made_at=NOW, made_by="dpo", steps=steps, facts={"purpose": "x"}
    )
    assert registry.plans.save(plan) == plan
    assert registry.plans.save(plan) == plan
    with pytest.raises(RegistryError, match="another deletion plan 'p1'"):
        registry.plans.save(replace(plan, field="t.name"))
    clock.pass_by(hours=1)
    done = registry.plans.tick("p1", 2, by="bob", note="gone")
    assert done.steps == (steps[0], replace(steps[1], done_at=clock.now, done_by="bob", note="gone"))
    clock.pass_by(hours=1)
    assert registry.plans.tick("p1", 2, by="eve") == done
    assert not done.is_done
    assert registry.plans.tick("p1", 1, by="bob").is_done
    assert registry.plans.plan("p1") == registry.plans.plans()[0]
    assert registry.plans.plan("p2") is None
    for wrong, match in ((("p1", 3), "has no step 3"), (("p2", 1), "no deletion plan 'p2'")):
        with pytest.raises(RegistryError, match=match):
            registry.plans.tick(*wrong, by="bob")
    assert [(one.who, one.action) for one in registry.audit("p1")] == [
        ("dpo", "plan deletion"),
        ("bob", "tick step 2"),
        ("bob", "tick step 1"),
    ]


def test_batches_are_recorded_once_and_closed(registry: Registry) -> None:
    batch = StoredBatch(
        id="b1",
        contract="c",
        version="1",
        dataset="t",
        place="lake/t",
        run_id="r",
        held=0,
        held_at=NOW,
        reasons={"x": 3},
    )
    registry.batches.record(batch)
    registry.batches.record(replace(batch, held=2**40))
    assert registry.batches.batches() == registry.batches.batches("c") == [replace(batch, held=2**40)]
    assert registry.batches.close("b1", "released") is True
    assert registry.batches.close("b1", "released") is False
    assert registry.batches.batches() == registry.batches.batches("d", closed=True) == []
    assert [one.outcome for one in registry.batches.batches(closed=True)] == ["released"]


def test_a_table_s_batches_are_settled_at_once(registry: Registry) -> None:
    def batch(id_: str, place: str = "lake/t") -> StoredBatch:
        facts = {"contract": "c", "version": "1", "dataset": "t", "run_id": "r"}
        return StoredBatch(id=id_, place=place, held=1, held_at=NOW, **facts)

    held = registry.batches
    held.record(batch("other", "lake/u"))
    assert held.settle("lake/t", [batch("b1"), batch("b2")], outcome="removed") == []
    assert held.settle("lake/t", [batch("b2"), batch("b3")], outcome="released") == ["b1"]
    assert [one.id for one in held.batches()] == ["b2", "b3", "other"]
    assert held.settle("lake/t", [], outcome="removed") == ["b2", "b3"]
    assert held.settle("lake/t", [], outcome="removed") == []
    ended = {one.id: one.outcome for one in held.batches(closed=True)}
    assert ended == {"b1": "released", "b2": "removed", "b3": "removed", "other": None}
    # One that comes back, as from a backup, is held again.
    held.settle("lake/t", [batch("b1")], outcome="removed")
    assert [one.id for one in held.batches()] == ["b1", "other"]
    with pytest.raises(RegistryError):
        held.settle("lake/t", [batch("")], outcome="removed")
    assert [one.id for one in held.batches()] == ["b1", "other"]


def baseline(day: int = 1, contract: str = "urn:a:b") -> Baseline:
    fields = (
        FieldProfile(field="s", type="string", rows=3, values={'"\\u0000ü"': 1}),
        FieldProfile(field="n", type="double", rows=3, quantiles={"0": 0.1, "1": 1e300}, edges=(0.1,), bins=(0, 3, 0)),
    )
    at = f"2026-03-0{day}T00:00:00+00:00"
    return Baseline(
        contract=contract, contract_version="1.0.0", dataset="t", taken_at=at, rows=3, how="all", fields=fields
    )


def test_the_first_baseline_stays_until_it_is_replaced(registry: Registry) -> None:
    store = registry.baselines
    first, second, third = (baseline(day) for day in (1, 2, 3))
    assert store.get("urn:a:b", "t") is None
    assert store.put(first, replacing=None) == first
    assert store.put(second, replacing=None) == first
    assert store.put(second, replacing=first) == second
    assert store.put(third, replacing=first) == second
    assert store.get("urn:a:b", "t") == second
    assert store.get("urn:a:b", "other") is None
    with pytest.raises(BaselineError, match="no database keeps"):
        store.put(baseline(contract="\0"), replacing=None)


def test_since_when_and_how_often_a_drift_is_seen(registry: Registry) -> None:
    lost = DriftKey(kind="new_value", field="s", value='"lost"')
    rule = DriftKey(kind="rule", field="s", rule="t.s.enum")

    def seen(at: str, *keys: DriftKey) -> Any:
        return registry.baselines.see("b1", "urn:a:b", "t", keys, at=at)

    assert seen("2026-03-01", lost) == {lost.text: Sighting(first_seen="2026-03-01", last_seen="2026-03-01", times=1)}
    assert seen("2026-03-03", lost, rule)[lost.text].times == 2
    assert seen("2026-03-03", lost)[lost.text].times == 2
    assert seen("2026-03-02", lost)[lost.text].times == 2
    registry.baselines.forget_values("urn:a:b", "t", ["s"])
    nameless = DriftKey(kind="new_value", field="s")
    assert seen("2026-03-05", nameless)[nameless.text] == Sighting(
        first_seen="2026-03-01", last_seen="2026-03-05", times=3
    )
    assert registry.baselines.see("b2", "urn:a:b", "t", [], at="2026-03-05") == {}
