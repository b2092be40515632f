"""The new field beside the old one: recognised when it comes, and when the old one goes."""

import pytest

from databox_contracts import rules
from databox_contracts.evolution.judging import diff
from databox_contracts.model import Field
from databox_contracts.testing import build_contract, build_field

A = build_field("a", "int")
OLD_A = build_field("a", "int", deprecated=True)
B = build_field("b", "int")
BESIDE = "'b' is emitted beside 'a', which is deprecated; remove 'a' in the next major version"


def inside(*fields: Field) -> Field:
    return Field(name="o", fields=fields)


ROWS = [
    ((A,), (OLD_A, B), [BESIDE]),
    ((OLD_A,), (OLD_A, B), [BESIDE]),
    # the one that became deprecated now comes before the one that was so
    ((A, build_field("z", "int", deprecated=True)), (OLD_A, build_field("z", "int", deprecated=True), B), [BESIDE]),
    ((A,), (A, B), []),
    ((A,), (OLD_A,), []),
    ((A, B), (OLD_A, B), []),
    ((A,), (OLD_A, build_field("b", "string")), []),
    ((A,), (OLD_A, build_field("b", "int", rules.Required())), []),
    ((A,), (OLD_A, build_field("b", "int", deprecated=True)), []),
    # two candidates are none
    ((A,), (OLD_A, B, build_field("c", "int")), []),
    ((A, build_field("z", "int")), (OLD_A, build_field("z", "int", deprecated=True), B), []),
    # without a type nothing is paired
    ((Field(name="a"),), (Field(name="a", deprecated=True), Field(name="b")), []),
    ((inside(A),), (inside(OLD_A, B),), [BESIDE.replace("'b'", "'o.b'").replace("'a'", "'o.a'")]),
    ((), (), []),
]


@pytest.mark.parametrize(("old", "new", "expected"), ROWS)
def test_the_new_field_beside_the_old_one(old, new, expected):
    report = diff(build_contract(*old), build_contract(*new))
    assert [remark for remark in report.remarks if "beside" in remark] == expected


def test_the_removal_of_a_deprecated_field_was_announced():
    for old, announced in ((OLD_A, True), (A, False)):
        (change, *_) = diff(build_contract(old, B), build_contract(B)).changes
        assert str(change.change_type) == "field_removed"
        assert change.is_breaking
        assert ("as announced" in change.description) is announced
        assert (change.hint == "remove it in a major version") is announced
