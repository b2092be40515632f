"""A version whose breaks need a consent is not published into the registry without it."""

import pytest

from databox_contracts.errors import ConsumersError, LifecycleError, SignOffError
from databox_contracts.model import Consumer, Contract, Evolution, Governance
from databox_contracts.registry.records import Origin, Outcome, StoredApproval
from databox_contracts.registry.signing import approval
from databox_contracts.registry.store import Registry
from databox_contracts.testing import build_contract, build_field


def orders(version: str, *names: str, sign_off: str | None = "required", **facts) -> Contract:
    evolution = Evolution(policy="strict", sign_off=sign_off)
    fields = [build_field(name, "string") for name in names]
    return build_contract(
        *fields, dataset="orders", id="shop.orders", version=version, status="active", evolution=evolution, **facts
    )


READER = Consumer("Reports", owner="bi", fields=("total",))
BEFORE = orders("1.0.0", "id", "total", consumers=(READER,))
AFTER = orders("2.0.0", "id", sign_off=None, consumers=(Consumer("Reports", fields=("id",)),))


def consent(registry: Registry, clock, consumer: str, **facts) -> None:
    registry.approve(
        StoredApproval(contract_id="shop.orders", consumer=consumer, approver="keeper", at=clock(), **facts)
    )


def test_nothing_of_it_is_published_without_every_consent(registry, clock):
    registry.publish(BEFORE, by="ci")
    registry.register("shop.orders", Consumer("Planning"), by="ci", origin=Origin.FILE)
    beside = orders("1.0.0", "x").model_copy(update={"id": "beside"})
    with pytest.raises(SignOffError) as caught:
        registry.publish_all([beside, AFTER], by="ci")
    assert caught.value.missing == {
        "Reports": ("field_removed orders.total",),
        "Planning": ("field_removed orders.total",),
    }
    assert isinstance(caught.value, LifecycleError)
    assert [one.contract_id for one in registry.contracts()] == ["shop.orders"]
    assert [one.version for one in registry.versions("shop.orders")] == ["1.0.0"]
    assert [one.consumer for one in registry.consumers("shop.orders") if one.origin is Origin.CONTRACT] == [READER]
    consent(registry, clock, "Reports", version="2.0")
    with pytest.raises(SignOffError, match="Planning has not agreed to field_removed"):
        registry.publish(AFTER, by="ci")
    consent(registry, clock, "Planning")
    assert registry.publish(AFTER, by="ci").outcome is Outcome.PUBLISHED
    assert registry.publish(AFTER, by="ci").outcome is Outcome.UNCHANGED


def test_a_consent_to_the_next_version_does_not_last_beyond_it(registry, clock):
    registry.publish(BEFORE, by="ci")
    clock.pass_by(hours=1)
    consent(registry, clock, "Reports")
    clock.pass_by(hours=1)
    registry.publish(orders("2.0.0", "id", "total", "note", consumers=(READER,)), by="ci")
    with pytest.raises(SignOffError, match="Reports has not agreed"):
        registry.publish(orders("3.0.0", "id", "note"), by="ci")
    consent(registry, clock, "Reports", version="3.0.0")
    assert registry.publish(orders("3.0.0", "id", "note"), by="ci").outcome is Outcome.PUBLISHED


def test_a_draft_needs_the_consent_as_well_for_it_may_become_active(registry):
    registry.publish(BEFORE, by="ci")
    with pytest.raises(SignOffError):
        registry.publish(AFTER.model_copy(update={"status": "draft"}), by="ci")


def test_a_draft_is_not_activated_after_another_version_without_the_consent_of_that_ones_readers(registry, clock):
    registry.publish(orders("1.0.0", "id"), by="ci")
    draft = orders("3.0.0", "id").model_copy(update={"status": "draft"})
    registry.publish(draft, by="ci")
    registry.publish(orders("2.0.0", "id", "total", consumers=(READER,)), by="ci")
    with pytest.raises(SignOffError, match="Reports has not agreed to field_removed"):
        registry.activate("shop.orders", "3.0.0", by="ci")
    with pytest.raises(SignOffError, match="Reports has not agreed to field_removed"):
        registry.publish(orders("3.0.0", "id"), by="ci")
    assert [str(one.status) for one in registry.versions("shop.orders")] == ["active", "active", "draft"]
    consent(registry, clock, "Reports", version="3.0.0")
    assert str(registry.activate("shop.orders", "3.0.0", by="ci").status) == "active"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (orders("1.0.0", "id", "total", sign_off=None, consumers=(READER,)), AFTER),
        (orders("1.0.0", "id", "total"), AFTER),
        (BEFORE, orders("1.1.0", "id", "total", "note", consumers=(READER,))),
    ],
)
def test_what_needs_no_consent_is_published(registry, before, after):
    registry.publish(before, by="ci")
    assert registry.publish(after, by="ci").outcome is Outcome.PUBLISHED


def test_a_consent_keeps_who_and_when(registry, clock):
    consent(registry, clock, "Reports", purpose="ads", dataset="orders", version="1.0.0")
    (found,) = registry.approvals("shop.orders")
    assert approval(found).to_dict() == {
        "contract": "shop.orders",
        "consumer": "Reports",
        "approver": "keeper",
        "on": "2026-03-01",
        "dataset": "orders",
        "version": "1.0.0",
        "purpose": "ads",
    }


# --- consumers --------------------------------------------------------------------------------------------------------

GOVERNED = orders(
    "1.0.0",
    "id",
    "total",
    governance=Governance(purposes=("billing",), read=("finance", "bi"), closed=True),
    consumers=(Consumer("Reports", owner="bi"),),
)

UNFIT = [
    (Consumer("Reports", owner="bi", versions="^2"), "there is only 1.0.0"),
    (Consumer("Reports", owner="bi", fields=("tax",)), "reads the field 'tax', which is not promised by orders"),
    (Consumer("Reports", owner="bi", purpose="ads"), "uses the data for 'ads', and the contract allows 'billing'"),
    (Consumer("Reports", owner="bi", purpose="ads", justification="x"), "nobody has approved it"),
    (
        Consumer("Reports", owner="sales", purpose="billing"),
        "is of the team 'sales', and only finance and bi may read it",
    ),
    (Consumer("Other", owner="bi", purpose="billing"), "is not on its list of consumers, which is closed: Reports"),
]


@pytest.mark.parametrize(("consumer", "message"), UNFIT)
def test_who_may_not_read_is_not_registered(registry, consumer, message):
    registry.publish(GOVERNED, by="ci")
    before = registry.consumers()
    with pytest.raises(ConsumersError) as caught:
        registry.register("shop.orders", consumer, by="ci")
    assert message in str(caught.value)
    assert registry.consumers() == before


def test_a_further_purpose_that_was_approved_is_registered(registry, clock):
    registry.publish(GOVERNED, by="ci")
    consumer = Consumer("Reports", owner="bi", purpose="ads", justification="a campaign")
    consent(registry, clock, "Reports", purpose="ads")
    assert registry.register("shop.orders", consumer, by="ci").consumer == consumer


def test_a_consumer_of_what_is_not_published_yet_is_registered(registry):
    consumer = Consumer("Early", versions="^7", fields=("anything",))
    assert registry.register("nothing.yet", consumer, by="ci").consumer == consumer


MISUSE = [
    (Consumer("Reports", owner="bi", purpose="ads"), "uses the data for 'ads'"),
    (Consumer("Reports", owner="sales", purpose="billing"), "is of the team 'sales'"),
]


@pytest.mark.parametrize(("consumer", "message"), MISUSE)
def test_a_contract_whose_own_consumers_misuse_it_is_not_published(registry, consumer, message):
    with pytest.raises(ConsumersError) as caught:
        registry.publish(GOVERNED.model_copy(update={"consumers": (consumer,)}), by="ci")
    assert message in str(caught.value)
    assert registry.contracts() == []


def test_a_consumer_that_stays_on_an_older_version_does_not_keep_the_newer_from_being_published(registry):
    registry.publish(orders("1.0.0", "id", sign_off=None), by="ci")
    stays = Consumer("Reports", versions="^1", fields=("gone",))
    assert registry.publish(orders("2.0.0", "id", "b", consumers=(stays,)), by="ci").outcome is Outcome.PUBLISHED
