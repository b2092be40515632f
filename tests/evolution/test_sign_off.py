"""Whose consent a version needs before it is published in place of another."""

from datetime import date

import pytest

from databox_contracts.approvals import Approval, approvals_in
from databox_contracts.errors import DataboxError, SignOffError
from databox_contracts.evolution.sign_off import described, require_sign_off
from databox_contracts.model import Consumer, Contract, Evolution
from databox_contracts.testing import build_contract, build_field

DAY = date(2026, 11, 21)
DECLARED = (Consumer("stated", fields=("total",)),)
FILED = (Consumer("filed"), Consumer("elsewhere", fields=("id",)))


def orders(version: str, *names: str, sign_off: str | None = "required", **facts) -> Contract:
    fields = [build_field(name, "string") for name in names]
    evolution = Evolution(policy="strict", sign_off=sign_off)
    return build_contract(*fields, dataset="orders", id="shop.orders", version=version, evolution=evolution, **facts)


BEFORE = orders("1.0.0", "id", "total", consumers=DECLARED)
AFTER = orders("2.0.0", "id", sign_off=None)


def approval(consumer: str, **facts) -> Approval:
    return Approval(**{"contract": "shop.orders", "consumer": consumer, "approver": "keeper", "on": DAY, **facts})


def test_everybody_who_reads_what_breaks_has_to_agree():
    with pytest.raises(SignOffError) as caught:
        require_sign_off(BEFORE, AFTER, FILED, [])
    assert caught.value.missing == {
        "filed": ("field_removed orders.total",),
        "stated": ("field_removed orders.total",),
    }
    assert str(caught.value) == (
        "shop.orders 2.0.0: filed has not agreed to field_removed orders.total; stated has not agreed to field_removed "
        "orders.total. Have each consent to it (`registry approve shop.orders --consumer NAME --version 2.0.0`), or "
        "publish a version that breaks nobody."
    )


def test_who_agreed_and_when_is_told():
    signed = require_sign_off(BEFORE, AFTER, FILED, [approval("stated"), approval("filed", version="2.0")])
    assert list(described(signed)) == [
        "filed: approved by keeper on 2026-11-21",
        "stated: approved by keeper on 2026-11-21",
    ]


@pytest.mark.parametrize(
    "facts",
    [
        {"contract": "other"},
        {"consumer": "filed"},
        {"consumer": "Stated"},
        {"dataset": "lines"},
        {"version": "3.0.0"},
        {"version": "2.0.1"},
        {"purpose": "reports"},
    ],
)
def test_a_consent_to_something_else_does_not_count(facts):
    with pytest.raises(SignOffError, match="stated"):
        require_sign_off(BEFORE, AFTER, (), [approval(**{"consumer": "stated", **facts})])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (orders("1.0.0", "id", "total", consumers=DECLARED, sign_off=None), AFTER),
        (orders("1.0.0", "id", "total", consumers=DECLARED, sign_off="optional"), AFTER),
        (BEFORE, orders("1.1.0", "id", "total", "note")),
        (BEFORE, BEFORE),
        (orders("1.0.0", "id", "total", consumers=(Consumer("c", fields=("id",)),)), AFTER),
        (orders("1.0.0", "id", "total"), AFTER),
    ],
)
def test_nobody_has_to_be_asked(before, after):
    assert require_sign_off(before, after, (), []) == ()


def test_a_new_version_cannot_drop_the_demand_nor_the_consumer():
    loose = orders("2.0.0", "id", sign_off=None, consumers=(Consumer("stated", fields=("id",)),))
    with pytest.raises(SignOffError, match="stated"):
        require_sign_off(BEFORE, loose, (), [])


def test_a_consent_to_a_purpose_is_one_to_that_purpose_of_that_consumer():
    given = approval("stated", purpose="reports")
    assert given.allows("shop.orders", "stated", "reports", "1.0.0")
    assert not given.allows("shop.orders", "stated", "ads", "1.0.0")
    assert not given.allows("shop.orders", "filed", "reports", "1.0.0")
    assert not given.allows("other", "stated", "reports", "1.0.0")
    assert not approval("stated").allows("shop.orders", "stated", "reports", "1.0.0")
    assert not approval("stated", purpose="reports", version="2.0.0").allows(
        "shop.orders", "stated", "reports", "1.0.0"
    )


def test_approvals_are_read_whole():
    facts = {"contract": "a", "consumer": "b", "approver": "c", "on": "2026-11-21", "dataset": "d", "version": "1.0.0"}
    (found,) = approvals_in([{**facts, "purpose": "reports"}], "f.yaml")
    assert found.to_dict() == {**facts, "purpose": "reports"}
    assert approvals_in(None, "f.yaml") == ()
    with pytest.raises(DataboxError, match="entry 1 is no mapping"):
        approvals_in(["a"], "f.yaml")
