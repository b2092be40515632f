"""What a contract loses on its way through a text, told in sentences."""

from decimal import Decimal

import pytest

from databox_contracts import rules
from databox_contracts.formats.losing import lost
from databox_contracts.model import Contract, Dataset, Field, Team
from databox_contracts.rules import NO_ROWS, Severity
from databox_contracts.testing import build_contract, build_field


def contract(*fields: Field, **facts: object) -> Contract:
    return build_contract(*fields, **facts)


A = build_field("a", "int", rules.Minimum(limit=0))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (contract(A), contract(A), []),
        (contract(), contract(), []),
        (contract(A), None, ["everything: the text is no contract"]),
        (contract(A), contract(), ["field a: all of it"]),
        (contract(), contract(A), ["field a is made up"]),
        (contract(description="x"), contract(), ["the contract: description x"]),
        (contract(description="x " * 50), contract(), ["the contract: description " + ("x " * 50)[:59] + "…"]),
        # What only the text says is no loss, unless it is a promise.
        (contract(), contract(description="x"), []),
        (contract(status="draft"), contract(status="active"), []),
        (contract(status="active"), contract(status="retired"), ["the contract: status active becomes retired"]),
        (contract(A), contract(build_field("a", "int")), ["field a: the rule minimum (limit 0)"]),
        (contract(build_field("a", "int")), contract(A), ["field a: the rule minimum (limit 0) is made up"]),
        (
            contract(A),
            contract(build_field("a", "bigint", rules.Minimum(limit=Decimal("0.0")))),
            ["field a: type integer(32) becomes integer(64)"],
        ),
        (
            contract(build_field("a", "int", rules.Required(description="why"))),
            contract(build_field("a", "int", rules.Required())),
            ["field a: of the rule required, its description"],
        ),
        (
            contract(build_field("a", "int", rules.Required(severity=Severity.WARNING))),
            contract(build_field("a", "int", rules.Required())),
            ["field a: the rule required (severity warning)", "field a: the rule required is made up"],
        ),
        (
            contract(build_field("a", "struct<b: int>")),
            contract(build_field("a", "struct<b: string, c: int>")),
            ["field a.b: type integer(32) becomes string", "field a.c is made up"],
        ),
        (
            contract(build_field("a", "array<int>")),
            contract(build_field("a", "array<string>")),
            ["field a, item: type integer(32) becomes string"],
        ),
        (contract(A, Field(name="b")), contract(Field(name="b"), A), ["the order of the fields a, b"]),
        (
            contract(rules=(rules.NullCount(threshold=NO_ROWS), rules.RowCount(threshold=NO_ROWS))),
            contract(rules=(rules.NullCount(threshold=NO_ROWS),)),
            ["dataset t: the rule row_count (threshold {'mustBe': 0})"],
        ),
        (contract(custom={"x": 0}), contract(), ["the contract: the custom property x"]),
        (contract(custom={"$soda": {"b": 0, "a": 1}}), contract(), ["the contract: what only soda says: b, a"]),
        (
            contract(custom={"$soda": {"b": 0, "a": 1}}),
            contract(custom={"$soda": {"b": 0}}),
            ["the contract: what only soda says: a"],
        ),
        (contract(team=Team(name="x")), contract(), ["the contract: team {'name': 'x'}"]),
        (
            Contract(id="a", version="1", datasets=(Dataset(name="t"), Dataset(name="u"))),
            Contract(id="a", version="1", datasets=(Dataset(name="u"),)),
            ["dataset t: all of it"],
        ),
    ],
)
def test_each_loss_is_one_sentence(before, after, expected):
    assert lost(before, after) == expected
