"""What Iceberg and Delta make of a table that is there, beside what the contract allows: literal rows."""

import pytest

from databox_contracts import rules
from databox_contracts.evolution.comparison import compare
from databox_contracts.evolution.judging import diff
from databox_contracts.evolution.table_formats import RULES, TableFormat, rule_of
from databox_contracts.model import Field
from databox_contracts.testing import build_contract, build_field

REQUIRED = rules.Required()
A = build_field("a", "int")
B = build_field("b", "string")


def typed(spelling: str | None) -> tuple[Field, ...]:
    return (build_field("a", spelling),)


# old fields, new fields, does Iceberg make it, does Delta, and a word of what Delta asks for
ROWS = [
    ((A,), (A, B), True, True, ""),
    ((A,), (A, build_field("b", "string", REQUIRED)), False, False, "nulls"),
    ((A, B), (A,), True, True, "columnMapping"),
    ((A, build_field("b", "string", REQUIRED)), (A,), True, True, "columnMapping"),
    ((A,), (build_field("c", "int"),), True, True, "columnMapping"),
    ((A, B), (B, A), True, True, ""),
    ((build_field("a", "int", REQUIRED),), (A,), True, True, ""),
    ((A,), (build_field("a", "int", REQUIRED),), False, False, "required"),
    (typed("int"), typed("bigint"), True, True, "enableTypeWidening"),
    (typed("smallint"), typed("int"), True, True, "enableTypeWidening"),
    (typed("bigint"), typed("int"), False, False, "written again"),
    (typed("int"), typed("double"), False, True, "enableTypeWidening"),
    (typed("bigint"), typed("double"), False, False, "written again"),
    (typed("int"), typed("decimal(10,0)"), False, True, "enableTypeWidening"),
    (typed("int"), typed("decimal(9,0)"), False, False, "written again"),
    (typed("float"), typed("double"), True, True, "enableTypeWidening"),
    (typed("double"), typed("float"), False, False, "written again"),
    (typed("decimal(10,2)"), typed("decimal(12,2)"), True, True, "enableTypeWidening"),
    (typed("decimal(10,2)"), typed("decimal(12,4)"), False, True, "enableTypeWidening"),
    (typed("decimal(10,2)"), typed("decimal(10,4)"), False, False, "written again"),
    (typed("date"), typed("timestamp_ntz"), False, True, "enableTypeWidening"),
    (typed("date"), typed("timestamp"), False, False, "written again"),
    (typed("int"), typed("string"), False, False, "written again"),
    (typed("array<int>"), typed("array<bigint>"), True, True, "enableTypeWidening"),
    (typed("struct<x: int>"), typed("struct<x: bigint>"), True, True, "enableTypeWidening"),
    (typed("struct<x: int>"), typed("struct<x: int, y: int>"), True, True, ""),
    (typed("map<string, int>"), typed("map<string, string>"), False, False, "written again"),
]


@pytest.mark.parametrize(("old", "new", "iceberg", "delta", "word"), ROWS)
def test_what_a_format_allows(old, new, iceberg, delta, word):
    (difference,) = compare(build_contract(*old), build_contract(*new))
    found = [rule_of(difference, TableFormat.ICEBERG), rule_of(difference, TableFormat.DELTA)]
    assert [rule.allowed for rule in found if rule is not None] == [iceberg, delta]
    assert word in found[1].text
    assert all(rule.text or rule.allowed for rule in found)


def test_a_format_has_no_say_in_anything_but_columns():
    keyed = build_contract(A, rules=[rules.PrimaryKey(fields=("a",))])
    report = diff(build_contract(A), keyed, "strict", table_format=TableFormat.ICEBERG)
    assert [str(change.change_type) for change in report.changes][:1] == ["key_changed"]
    assert report.table_format is not None
    assert report.table_format.verdicts == ()


def test_both_formats_have_a_rule_for_the_same_changes():
    assert list(RULES[TableFormat.ICEBERG]) == list(RULES[TableFormat.DELTA])


APART = [
    # A wider type of a column is legal for the format and not for the contract, and the other way round.
    (typed("int"), typed("bigint"), "strict", "Iceberg allows it, the contract does not"),
    (typed("int"), typed("bigint"), "none", "the contract and Iceberg allow it"),
    (typed("int"), typed("string"), "none", "the contract allows it, Iceberg does not"),
    (typed("int"), typed("string"), "strict", "neither the contract nor Iceberg allows it"),
]


@pytest.mark.parametrize(("old", "new", "policy", "expected"), APART)
def test_who_allows_it_is_told_apart(old, new, policy, expected):
    report = diff(build_contract(*old), build_contract(*new), policy, table_format=TableFormat.ICEBERG)
    assert report.table_format is not None
    (verdict,) = report.table_format.verdicts
    assert expected in verdict.told_apart
    assert verdict.to_dict()["allowed_by_format"] is verdict.allowed
    assert bool(report.table_format.refused) is not verdict.allowed


def test_a_rename_is_one_change_to_the_format_whatever_the_policy():
    old, new = build_contract(A), build_contract(build_field("c", "int"))
    report = diff(old, new, "full", table_format=TableFormat.ICEBERG)
    assert report.table_format is not None
    assert [str(one.kind) for one in report.table_format.verdicts] == ["field_renamed"]


def test_nothing_is_said_unless_it_is_asked():
    assert diff(build_contract(A), build_contract(A, B)).to_dict().keys() == {
        "contract",
        "old_version",
        "new_version",
        "policy",
        "is_breaking",
        "required_bump",
        "actual_bump",
        "changes",
        "remarks",
    }
