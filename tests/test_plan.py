"""From a dataset to its checks: order, ids, places, keys and what is hidden."""

import re

import pytest

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.model import Contract, Dataset, Field, Governance
from databox_contracts.plan import Hop, Plan, build_plan
from databox_contracts.rules import NO_ROWS, Dimension, Operator, Threshold

STRING = DataType(Family.STRING)
INT = DataType(Family.INTEGER, bits=32)


def plan(*fields: Field, rules: tuple[rules.Rule, ...] = (), pii_class: str | None = None, name: str = "t") -> Plan:
    dataset = Dataset(name=name, fields=fields, rules=rules)
    governance = Governance(pii_class=pii_class)
    return build_plan(Contract(id="c", version="1.0.0", datasets=(dataset,), governance=governance), dataset)


def ids(made: Plan) -> list[str]:
    return [check.id for check in made.checks]


def test_an_empty_dataset_only_allows_no_column():
    assert ids(plan()) == ["t.undeclared"]


def test_a_field_without_a_type_only_has_to_be_there():
    assert ids(plan(Field(name="a"))) == ["t.a.present", "t.undeclared"]


def test_checks_are_in_the_order_of_declaration():
    made = plan(
        Field(name="b", type=INT, rules=(rules.Minimum(limit=0), rules.Required())),
        Field(name="a", type=STRING),
        rules=(rules.RowCount(threshold=Threshold(Operator.GREATER_THAN, 0)),),
    )
    assert ids(made) == [
        "t.b.present",
        "t.b.type",
        "t.b.minimum",
        "t.b.required",
        "t.a.present",
        "t.a.type",
        "t.undeclared",
        "t.row_count",
    ]
    assert [check.id for check in made.schema] == ["t.b.present", "t.b.type", "t.a.present", "t.a.type", "t.undeclared"]
    assert [check.id for check in made.counted] == ["t.b.minimum", "t.b.required", "t.row_count"]
    assert made.keys == ()


def test_nothing_is_in_no_group_but_what_is_not_enforced():
    made = plan(Field(name="a", rules=(rules.NotEnforced(reason="prose"), rules.Unique())))
    grouped = {check.id for check in (*made.schema, *made.counted, *made.keys)}
    assert [check.id for check in made.checks if check.id not in grouped] == ["t.a.not_enforced"]


def test_paths_lead_through_objects_arrays_and_maps():
    made = plan(
        Field(
            name="o",
            column_name="O",
            fields=(
                Field(
                    name="a",
                    item=Field(name="item", fields=(Field(name="x", column_name="X", rules=(rules.Required(),)),)),
                ),
            ),
        ),
        Field(
            name="m",
            key=Field(name="key", rules=(rules.MinLength(length=1),)),
            value=Field(name="value", item=Field(name="item", rules=(rules.Minimum(limit=0),))),
        ),
    )
    paths = {check.id: check.path for check in made.checks}
    assert paths["t.o.present"] == ("O",)
    assert paths["t.o.a.x.required"] == ("O", "a", Hop.ITEM, "X")
    assert paths["t.m.key.min_length"] == ("m", Hop.KEY)
    assert paths["t.m.value.item.minimum"] == ("m", Hop.VALUE, Hop.ITEM)
    assert "t.o.a.item.present" not in paths


def test_a_primary_key_requires_its_fields_once():
    made = plan(
        Field(name="a"),
        Field(name="b", rules=(rules.Required(),)),
        rules=(rules.PrimaryKey(fields=("a", "b")),),
    )
    assert ids(made) == ["t.a.present", "t.a.required", "t.b.present", "t.b.required", "t.undeclared", "t.primary_key"]
    key = made.keys[0]
    assert (key.keys, key.key_names, key.field) == ((("a",), ("b",)), ("a", "b"), "a, b")


def test_a_key_of_unknown_or_nested_fields():
    made = plan(
        Field(name="o", column_name="O", fields=(Field(name="a", column_name="A"),)),
        rules=(rules.Unique(fields=("o.a", "x.y")),),
    )
    assert made.keys[0].keys == (("O", "A"), ("x.y",))


def test_a_fields_own_key_is_its_path():
    made = plan(Field(name="a", column_name="A", rules=(rules.Unique(), rules.DuplicateCount(threshold=NO_ROWS))))
    assert [(check.id, check.keys, check.key_names) for check in made.keys] == [
        ("t.a.unique", (("A",),), ("a",)),
        ("t.a.duplicate_count", (("A",),), ("a",)),
    ]


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ((), [3]),
        ((rules.MaxLength(length=3),), [3]),
        ((rules.MaxLength(length=2),), [2]),
        ((rules.MaxLength(length=9),), [9, 3]),
    ],
)
def test_a_strings_width_is_a_promise_about_its_values(declared, expected):
    made = plan(Field(name="a", type=DataType(Family.STRING, length=3), rules=declared))
    assert [check.rule.length for check in made.counted] == expected


def test_a_width_of_zero_is_a_width():
    made = plan(Field(name="a", type=DataType(Family.STRING, length=0)))
    assert [check.rule.length for check in made.counted] == [0]


def test_ids_are_unique_and_legal_check_names():
    made = plan(
        Field(name="a b", rules=(rules.NullCount(threshold=NO_ROWS),) * 3),
        Field(name="a_b", rules=(rules.NullCount(threshold=NO_ROWS),)),
        Field(name="größe.x"),
        Field(name="x", fields=(Field(name="y"),)),
        name="s.t-1",
    )
    found = ids(made)
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"[A-Za-z0-9_.]+", check) for check in found)
    assert found[:7] == [
        "s_t_1.a_b.present",
        "s_t_1.a_b.null_count",
        "s_t_1.a_b.null_count_2",
        "s_t_1.a_b.null_count_3",
        "s_t_1.a_b.present_2",
        "s_t_1.a_b.null_count_4",
        "s_t_1.gr__e.x.present",
    ]


def test_the_same_contract_gives_the_same_plan():
    fields = tuple(Field(name=f"c{n}", type=INT, rules=(rules.Required(),)) for n in range(50))
    key = rules.PrimaryKey(fields=tuple(f"c{n}" for n in range(50)))
    assert plan(*fields, rules=(key,)) == plan(*fields, rules=(key,))


def hidden(made: Plan) -> list[str]:
    return [check.id for check in made.checks if check.masked]


def test_what_is_hidden_is_hidden_below_above_and_in_keys():
    secret = Field(name="s", pii=True, fields=(Field(name="x"), Field(name="y", pii=False)))
    around = Field(name="o", fields=(Field(name="p", classification="restricted"), Field(name="q")))
    open_ = Field(name="z")
    keys = (rules.Unique(fields=("z",)), rules.Unique(fields=("z", "o.p")), rules.Unique(fields=("z", "o")))
    assert hidden(plan(secret, around, open_, rules=keys)) == [
        "t.s.present",
        "t.s.x.present",
        "t.s.y.present",
        "t.o.present",
        "t.o.p.present",
        "t.unique_2",
        "t.unique_3",
    ]


def test_a_class_of_the_contract_hides_all_but_what_is_excepted():
    made = plan(Field(name="a"), Field(name="b", pii=False), rules=(rules.Unique(fields=("nowhere",)),), pii_class="B")
    assert hidden(made) == ["t.a.present", "t.unique"]


def test_a_dimension_is_the_authors_else_the_usual():
    made = plan(Field(name="a", rules=(rules.Required(), rules.Required(dimension=Dimension.ACCURACY))))
    assert [check.dimension for check in made.counted] == [Dimension.COMPLETENESS, Dimension.ACCURACY]
