"""What is found between two versions of a contract, whoever judges it."""

import subprocess
import sys
from datetime import date

import pytest

from databox_contracts import rules
from databox_contracts.evolution.comparison import compare
from databox_contracts.formats import load_contract
from databox_contracts.model import (
    Consumer,
    Contract,
    Dataset,
    Enforcement,
    Evolution,
    Field,
    Governance,
    Mode,
    SchemaModes,
    Team,
)
from databox_contracts.rules import NO_ROWS, Operator, Rule, Severity, Threshold, Unit
from databox_contracts.testing import build_contract, build_field

A, B, C = build_field("a", "string"), build_field("b", "int"), build_field("c", "double")
REQUIRED = rules.Required()


def differences(old: Contract, new: Contract) -> list[str]:
    """`kind place: old -> new (subject)`, in order."""
    return [
        f"{found.kind} {found.place}: {found.old} -> {found.new}" + (f" ({found.subject})" if found.subject else "")
        for found in compare(old, new)
    ]


def fields(*found: Field) -> Contract:
    return build_contract(*found)


def of_a(*found: Rule, type_: str = "int") -> Contract:
    return build_contract(build_field("a", type_, *found))


def of_table(*found: Rule) -> Contract:
    return build_contract(A, B, rules=found)


def at_least(value: float, unit: Unit = Unit.ROWS) -> Threshold:
    return Threshold(Operator.GREATER_OR_EQUAL, value, unit=unit)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (fields(), fields(), []),
        (fields(A, B), fields(A, B), []),
        (fields(A), fields(A, B), ["field_added t.b: None -> integer(32)"]),
        (fields(A, B), fields(A), ["field_removed t.b: integer(32) -> None"]),
        (fields(A, B), fields(), ["field_removed t.a: string -> None", "field_removed t.b: integer(32) -> None"]),
        (fields(A, B), fields(B, A), ["field_reordered t: ['a', 'b'] -> ['b', 'a']"]),
        # Only what both have can stand in another order.
        (fields(A, B), fields(C, A, B), ["field_added t.c: None -> number(64)"]),
        (fields(A), fields(build_field("z", "string")), ["field_renamed t.a: a -> z"]),
        (fields(A), fields(C), ["field_removed t.a: string -> None", "field_added t.c: None -> number(64)"]),
        # A field without a type may be anything.
        (
            fields(Field(name="a")),
            fields(Field(name="b")),
            ["field_removed t.a: None -> None", "field_added t.b: None -> None"],
        ),
        # Two went and one came, one went and two came: nobody knows which.
        (
            fields(A, build_field("b", "string")),
            fields(build_field("z", "string")),
            [
                "field_removed t.a: string -> None",
                "field_removed t.b: string -> None",
                "field_added t.z: None -> string",
            ],
        ),
        (
            fields(A),
            fields(build_field("y", "string"), build_field("z", "string")),
            ["field_removed t.a: string -> None", "field_added t.y: None -> string", "field_added t.z: None -> string"],
        ),
        # The new contract says so, or the column stayed.
        (
            fields(A, build_field("b", "string")),
            fields(build_field("z", "string", custom={"renamedFrom": "b"})),
            ["field_removed t.a: string -> None", "field_renamed t.b: b -> z"],
        ),
        (
            fields(A),
            fields(build_field("z", "int", column_name="a")),
            ["field_renamed t.a: a -> z", "type_changed t.a: string -> integer(32)"],
        ),
        (fields(A), fields(build_field("a", "string", column_name="x")), ["field_renamed t.a: a -> x (physical name)"]),
        # Nested.
        (
            fields(build_field("a", "struct<b:int,c:string>")),
            fields(build_field("a", "struct<b:int,d:string>")),
            ["field_renamed t.a.c: c -> d"],
        ),
        (
            fields(build_field("a", "array<struct<b:int>>")),
            fields(build_field("a", "array<struct<b:int,c:int>>")),
            ["field_added t.a.c: None -> integer(32)"],
        ),
        (
            fields(build_field("a", "struct<b:int>")),
            fields(build_field("a", "int")),
            ["type_changed t.a: object -> integer(32)", "field_removed t.a.b: integer(32) -> None"],
        ),
        (
            fields(build_field("a", "array<int>")),
            fields(build_field("a", "array<string>")),
            ["type_changed t.a.item: integer(32) -> string"],
        ),
        (fields(Field(name="a")), fields(A), ["type_changed t.a: None -> string"]),
    ],
)
def test_fields(old, new, expected):
    assert differences(old, new) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (of_a(), of_a(REQUIRED), ["nullability_tightened t.a: None -> None (required)"]),
        (of_a(REQUIRED), of_a(), ["nullability_relaxed t.a: None -> None (required)"]),
        (
            of_a(REQUIRED),
            of_a(rules.Required(severity=Severity.WARNING)),
            ["nullability_relaxed t.a: error -> warning (required)"],
        ),
        (of_a(rules.Enum(values=(1, 2))), of_a(rules.Enum(values=(2, 1))), []),
        (
            of_a(rules.Enum(values=(1, 0))),
            of_a(rules.Enum(values=(1, False))),
            ["enum_values_removed t.a: [0] -> None (enum)", "enum_values_added t.a: None -> [False] (enum)"],
        ),
        (of_a(rules.Enum(values=("",))), of_a(), ["constraint_removed t.a: [''] -> None (enum)"]),
        (of_a(), of_a(rules.Enum(values=())), ["constraint_added t.a: None -> None (enum)"]),
        (of_a(), of_a(rules.Minimum(limit=0)), ["constraint_added t.a: None -> 0 (minimum)"]),
        (of_a(rules.Minimum(limit=0)), of_a(rules.Minimum(limit=1)), ["constraint_tightened t.a: 0 -> 1 (minimum)"]),
        (of_a(rules.Minimum(limit=1)), of_a(rules.Minimum(limit=0)), ["constraint_relaxed t.a: 1 -> 0 (minimum)"]),
        (of_a(rules.Minimum(limit=1)), of_a(rules.Minimum(limit=1.0)), []),
        (of_a(rules.Maximum(limit=1)), of_a(rules.Maximum(limit=0)), ["constraint_tightened t.a: 1 -> 0 (maximum)"]),
        (
            of_a(rules.Minimum(limit=0)),
            of_a(rules.ExclusiveMinimum(limit=0)),
            ["constraint_tightened t.a: 0 -> 0 (minimum)"],
        ),
        (
            of_a(rules.ExclusiveMaximum(limit=5)),
            of_a(rules.Maximum(limit=5)),
            ["constraint_relaxed t.a: 5 -> 5 (exclusive_maximum)"],
        ),
        (
            of_a(rules.Minimum(limit=0)),
            of_a(rules.ExclusiveMinimum(limit=-5)),
            ["constraint_relaxed t.a: 0 -> -5 (minimum)"],
        ),
        (
            of_a(rules.Minimum(limit="2020-01-01"), type_="date"),
            of_a(rules.Minimum(limit="2021-01-01"), type_="date"),
            ["constraint_tightened t.a: 2020-01-01 -> 2021-01-01 (minimum)"],
        ),
        (
            of_a(rules.MultipleOf(divisor=2)),
            of_a(rules.MultipleOf(divisor=4)),
            ["constraint_tightened t.a: 2 -> 4 (multiple_of)"],
        ),
        (
            of_a(rules.MultipleOf(divisor=4)),
            of_a(rules.MultipleOf(divisor=2)),
            ["constraint_relaxed t.a: 4 -> 2 (multiple_of)"],
        ),
        # What cannot be compared may ask for more.
        (
            of_a(rules.MultipleOf(divisor=4)),
            of_a(rules.MultipleOf(divisor=3)),
            ["constraint_tightened t.a: 4 -> 3 (multiple_of)"],
        ),
        (
            of_a(rules.Pattern(pattern="a"), type_="string"),
            of_a(rules.Pattern(pattern="b"), type_="string"),
            ["constraint_tightened t.a: a -> b (pattern)"],
        ),
        (
            of_a(rules.MinLength(length=1), type_="string"),
            of_a(rules.MinLength(length=0), type_="string"),
            ["constraint_relaxed t.a: 1 -> 0 (min_length)"],
        ),
        (of_a(), of_a(rules.Unique()), ["key_changed t.a: None -> None (unique)"]),
        # A key of one field is the field's, wherever it is written.
        (of_a(rules.Unique()), build_contract(build_field("a", "int"), rules=(rules.Unique(fields=("a",)),)), []),
    ],
)
def test_rules_of_a_field(old, new, expected):
    assert differences(old, new) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            of_table(rules.PrimaryKey(fields=("a",))),
            of_table(rules.PrimaryKey(fields=("a", "b"))),
            ["key_changed t: ['a'] -> ['a', 'b'] (primary_key)"],
        ),
        (of_table(), of_table(rules.RowCount(threshold=at_least(1))), ["rule_added t: None -> >= 1 (row_count)"]),
        (of_table(rules.RowCount(threshold=at_least(1))), of_table(), ["rule_removed t: >= 1 -> None (row_count)"]),
        (
            of_table(rules.RowCount(threshold=at_least(1))),
            of_table(rules.RowCount(threshold=at_least(0))),
            ["rule_relaxed t: >= 1 -> >= 0 (row_count)"],
        ),
        (
            of_table(rules.RowCount(threshold=Threshold(Operator.BETWEEN, 1, 9))),
            of_table(rules.RowCount(threshold=Threshold(Operator.BETWEEN, 2, 8))),
            ["rule_tightened t: between 1 and 9 -> between 2 and 8 (row_count)"],
        ),
        (
            of_table(rules.RowCount(threshold=Threshold(Operator.BETWEEN, 1, 9))),
            of_table(rules.RowCount(threshold=Threshold(Operator.BETWEEN, 2, 10))),
            ["rule_tightened t: between 1 and 9 -> between 2 and 10 (row_count)"],
        ),
        # No row at all is no row in percent.
        (
            of_table(rules.MissingCount(missing_values=(None,), threshold=NO_ROWS)),
            of_table(
                rules.MissingCount(missing_values=(None,), threshold=Threshold(Operator.MUST_BE, 0, unit=Unit.PERCENT))
            ),
            [],
        ),
        (
            of_table(rules.RowCount(name="x", threshold=at_least(1)), rules.RowCount(name="y", threshold=at_least(5))),
            of_table(rules.RowCount(name="y", threshold=at_least(5)), rules.RowCount(name="x", threshold=at_least(2))),
            ["rule_tightened t: >= 1 -> >= 2 (row_count)"],
        ),
        (
            of_table(rules.Freshness(seconds=60, element="a")),
            of_table(rules.Freshness(seconds=30, element="a")),
            ["guarantee_tightened t: {'seconds': 60, 'element': 'a'} -> {'seconds': 30, 'element': 'a'} (freshness)"],
        ),
        (
            of_table(rules.Freshness(seconds=60)),
            of_table(rules.Freshness(seconds=90)),
            ["guarantee_loosened t: 60 -> 90 (freshness)"],
        ),
        (of_table(rules.Retention(seconds=60)), of_table(), ["guarantee_loosened t: 60 -> None (retention)"]),
        (
            of_table(rules.Completeness(threshold=at_least(99, Unit.PERCENT))),
            of_table(rules.Completeness(threshold=at_least(99.5, Unit.PERCENT))),
            ["guarantee_tightened t: >= 99% -> >= 99.5% (completeness)"],
        ),
        (
            of_table(rules.RowCount(threshold=NO_ROWS)),
            of_table(rules.RowCount(threshold=NO_ROWS, description="why")),
            ["documentation_changed t: None -> None (row_count rule)"],
        ),
    ],
)
def test_rules_of_a_dataset(old, new, expected):
    assert differences(old, new) == expected


def with_(**facts: object) -> Contract:
    return build_contract(A, **facts)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (with_(description="x"), with_(description=" x\n"), []),
        (with_(description=""), with_(description="x"), ["documentation_changed contract:  -> x (description)"]),
        (with_(owner="a"), with_(owner="b"), ["ownership_changed contract: a -> b (owner)"]),
        (with_(team=Team(name="a")), with_(team=Team(name="b")), ["ownership_changed contract: a -> b (team name)"]),
        (
            with_(governance=Governance(purposes=("x",), read=("a", "b"))),
            with_(governance=Governance(purposes=("x", "y"), read=("a",))),
            [
                "governance_changed contract: ['x'] -> ['x', 'y'] (governance purposes)",
                "governance_changed contract: ['a', 'b'] -> ['a'] (governance read)",
            ],
        ),
        (
            with_(),
            with_(consumers=(Consumer(name="x"),)),
            ["governance_changed contract: [] -> [{'name': 'x'}] (consumers)"],
        ),
        (
            with_(evolution=None),
            with_(evolution=Evolution(policy="none")),
            ["governance_changed contract: None -> {'policy': 'none'} (evolution)"],
        ),
        (
            with_(enforcement=Enforcement(mode="warn", until=date(2026, 1, 1))),
            with_(enforcement=Enforcement(mode="warn", until=date(2026, 2, 1))),
            ["governance_changed contract: 2026-01-01 -> 2026-02-01 (enforcement until)"],
        ),
        (
            with_(custom={"x": 1}),
            with_(custom={"x": 2}),
            ["documentation_changed contract: {'x': 1} -> {'x': 2} (custom)"],
        ),
        # A version says nothing by itself, nor does the place of the file.
        (with_(version="1.0.0", source="x"), with_(version="2.0.0", source="y"), []),
        # Another dialect cannot say what only the first one can.
        (with_(custom={"$odcs": {"x": 1}}, dialect="odcs"), with_(dialect="soda"), []),
        (
            with_(custom={"$odcs": {"x": 1}}),
            with_(),
            ["documentation_changed contract: {'$odcs': {'x': 1}} -> {} (custom)"],
        ),
        (fields(A), fields(build_field("a", "string", pii=False)), ["governance_changed t.a: None -> False (pii)"]),
        (
            fields(A),
            fields(build_field("a", "string", classification="secret")),
            ["governance_changed t.a: None -> secret (classification)"],
        ),
        (fields(A), fields(build_field("a", "string", tags=("x",))), ["documentation_changed t.a: [] -> ['x'] (tags)"]),
        (
            fields(A),
            fields(build_field("a", "string", deprecated=True)),
            ["documentation_changed t.a: False -> True (deprecated)"],
        ),
    ],
)
def test_what_is_beside_the_schema(old, new, expected):
    assert differences(old, new) == expected


def test_schema_modes():
    strict = Contract(id="x", version="1", datasets=(Dataset(name="t", modes=SchemaModes(columns=Mode.FREEZE)),))
    lenient = Contract(id="x", version="1", datasets=(Dataset(name="t", modes=SchemaModes(columns=Mode.EVOLVE)),))
    usual = Contract(id="x", version="1", datasets=(Dataset(name="t"),))
    assert differences(strict, usual) == []
    assert differences(strict, lenient) == ["constraint_relaxed t: freeze -> evolve (schema mode of columns)"]
    assert differences(lenient, strict) == ["constraint_tightened t: evolve -> freeze (schema mode of columns)"]


def test_datasets_are_paired_by_name_by_hint_and_as_the_only_ones_left():
    def tables(*found: Dataset) -> Contract:
        return Contract(id="x", version="1", datasets=found)

    t, u = Dataset(name="t", fields=(A,)), Dataset(name="u", fields=(B,))
    assert differences(tables(t, u), tables(u, t)) == []
    assert differences(tables(t, u), tables(t, Dataset(name="v", fields=(B,)))) == ["dataset_renamed u: u -> v"]
    hinted = Dataset(name="v", fields=(A,), custom={"renamedFrom": "t"})
    assert differences(tables(t, u), tables(hinted)) == ["dataset_renamed t: t -> v", "dataset_removed u: u -> None"]
    # Nothing in common: one went, another came.
    assert differences(tables(t), tables(u)) == ["dataset_removed t: t -> None", "dataset_added u: None -> u"]
    moved = Dataset(name="t", physical_name="t2", fields=(A,))
    assert differences(tables(t), tables(moved)) == ["dataset_renamed t: t -> t2 (physical name)"]


@pytest.mark.parametrize(
    ("facts", "governance"),
    [({"pii": True}, {}), ({"classification": "secret"}, {}), ({}, {"governance": Governance(pii_class="B")})],
)
def test_values_of_personal_data_are_not_shown(facts, governance):
    def contract(values: tuple[str, ...], **more: object) -> Contract:
        return build_contract(build_field("a", "string", rules.Enum(values=values), **facts, **more), **governance)

    found = differences(contract(("Mr X",), examples=("Mr X",)), contract(("Mr X", "Mr Y"), default="Mr Y"))
    assert found == [
        "enum_values_added t.a: None -> 1 values (enum)",
        "documentation_changed t.a: None -> None (examples)",
        "documentation_changed t.a: None -> None (default)",
    ]


def test_a_contract_that_changed_its_dialect_did_not_change():
    odcs = load_contract(
        "apiVersion: v3.1.0\nkind: DataContract\nid: x\nname: X\nversion: 1.0.0\nstatus: active\nschema:\n- name: t\n"
        "  properties:\n  - {name: a, logicalType: string, physicalType: text, required: true, unique: true}\n"
    )
    other = load_contract(
        "dataContractSpecification: 1.2.0\nid: x\ninfo: {title: X, version: 1.0.0, status: active}\nmodels:\n  t:\n"
        "    fields:\n      a: {type: text, required: true, unique: true}\n"
    )
    assert differences(odcs, other) == []
    assert differences(other, odcs) == []


SEEDED = """
from databox_contracts.evolution.judging import diff
from databox_contracts.testing import build_contract, build_field
from databox_contracts.evolution.schema_diff import SchemaDiff
from databox_contracts.schema_registry import SchemaVersion

def contract(*names):
    return build_contract(*(build_field(name, "double") for name in names))

print([(str(c.change_type), c.field_name) for c in diff(contract("bid", "ask"), contract("mid")).changes])
one, two = SchemaVersion("S", "1", {"bid": float, "ask": float}), SchemaVersion("S", "2", {"mid": float})
print([(str(c.change_type), c.field_name) for c in SchemaDiff(one, two).generate_report().changes])
"""


def outcome(seed: int) -> str:
    code = [sys.executable, "-c", SEEDED]
    return subprocess.run(code, env={"PYTHONHASHSEED": str(seed)}, capture_output=True, text=True, check=True).stdout


EXPECTED = (
    "[('field_removed', 'bid'), ('field_removed', 'ask'), ('field_added', 'mid'), ('version_not_bumped', 'version')]\n"
    "[('field_removed', 'bid'), ('field_removed', 'ask'), ('field_added', 'mid')]\n"
)


def test_no_rename_under_some_hash_seeds():
    assert {outcome(seed) for seed in (0, 1, 2)} == {EXPECTED}


@pytest.mark.full
def test_no_rename_under_a_hundred_hash_seeds():
    assert {outcome(seed) for seed in range(100)} == {EXPECTED}
