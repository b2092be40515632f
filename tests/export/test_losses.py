"""What a target cannot say: nothing is left out silently, and what is alike is one sentence."""

from datetime import date

import pytest

from databox_contracts import rules
from databox_contracts.export.losses import (
    _CONCEPTS,
    _OF_CONTRACT,
    _OF_DATASET,
    _OF_FIELD,
    Loss,
    Place,
    Words,
    columns,
    losses,
    places,
)
from databox_contracts.export.targets import Target
from databox_contracts.model import (
    Consumer,
    Contract,
    Dataset,
    Enforcement,
    Evolution,
    Field,
    Governance,
    Member,
    SchemaModes,
    Server,
    Team,
)
from databox_contracts.rules import (
    Dimension,
    Enum,
    Freshness,
    Maximum,
    Minimum,
    NotEnforced,
    PrimaryKey,
    Required,
    RowCount,
    Severity,
    Threshold,
    Unique,
)
from databox_contracts.testing import build_contract, build_field

NOTHING = Words("Paper")
IDENTITY = "the id test, the version 1.0.0, the status draft: Paper has no place for it"


def lost(contract, words=NOTHING, **facts):
    return list(losses(Target(contract, contract.datasets), words, **facts))


def test_nothing_is_lost_of_nothing_but_what_names_it():
    assert lost(build_contract()) == [IDENTITY]
    assert lost(build_contract(), Words("Paper", contract=("id", "version", "status"))) == []


def test_rules_of_a_kind_are_one_sentence_in_declaration_order():
    contract = build_contract(
        build_field("z", "int", Maximum(limit=1), Minimum(limit=0)),
        build_field("a", "int", Minimum(limit=0), Minimum(limit=-1)),
        build_field("items", "array<struct<sku: string>>"),
        rules=(RowCount(threshold=Threshold(rules.Operator.GREATER_THAN, 0)), Unique(fields=("z", "a"))),
    )
    assert lost(contract)[:-1] == [
        "`maximum` of z: Paper has no bounds",
        "`minimum` of z, a: Paper has no bounds",
        "`row_count` of t: Paper has no limits of a number of rows",
        "`unique` of (z, a): Paper has no unique keys",
    ]


def test_of_several_datasets_the_dataset_is_named():
    field = build_field("a", "int", Minimum(limit=0))
    one = Dataset(name="one", fields=(field,), rules=(PrimaryKey(fields=("a",)), Freshness(seconds=1)))
    two = Dataset(name="two", fields=(field,))
    assert lost(Contract(id="test", version="1.0.0", datasets=(one, two)))[:-1] == [
        "`minimum` of one.a, two.a: Paper has no bounds",
        "`primary_key` of one (a): Paper has no primary keys",
        "`freshness` of one: Paper has no service levels",
    ]


def test_names_of_fields_at_any_depth():
    item = build_field("sku", "string", Required())
    nested = Field(
        name="items",
        item=Field(name="item", fields=(item,), rules=(Required(),)),
        fields=(),
    )
    holder = Field(name="labels", key=build_field("key", "string", Required()), value=build_field("value", "int"))
    deep = Field(name="who", fields=(build_field("mail", "string", Required()),))
    contract = build_contract(nested, holder, deep)
    assert lost(contract)[0] == (
        "`required` of items.item, items.sku, labels.key, who.mail: Paper has no required fields"
    )
    assert [(place.name, place.depth, place.part) for place in places(Target(contract, contract.datasets))] == [
        ("items", 0, None),
        ("items.item", 1, "item"),
        ("items.sku", 2, None),
        ("labels", 0, None),
        ("labels.key", 1, "key"),
        ("labels.value", 1, "value"),
        ("who", 0, None),
        ("who.mail", 1, None),
        ("t", 0, None),
    ]


def test_parts_that_only_the_spelling_declares_have_a_place():
    contract = build_contract(Field(name="a", type=build_field("a", "array<map<string, int>>").type))
    (column,) = columns(contract, contract.datasets[0])
    item = column.holds("item")
    assert item is not None
    assert [(part.name, part.part) for part in item.inside] == [("a.item.key", "key"), ("a.item.value", "value")]
    assert column.holds("value") is None


def test_a_part_of_the_primary_key_is_required_unless_it_only_warns():
    fields = (build_field("a", "int"), build_field("b", "int", Required(severity=Severity.WARNING)))
    for severity, expected in ((Severity.ERROR, True), (Severity.WARNING, False)):
        contract = build_contract(*fields, rules=(PrimaryKey(fields=("a",), severity=severity),))
        a, b = columns(contract, contract.datasets[0])
        assert (a.required, b.required) == (expected, False)


def test_what_must_not_be_shown_is_masked_with_what_is_around_and_inside():
    secret = Field(name="mail", pii=True)
    contract = build_contract(Field(name="who", fields=(secret, Field(name="age"))), Field(name="plain", pii=False))
    assert [(place.name, place.masked) for place in places(Target(contract, contract.datasets)) if place.field] == [
        ("who", True),
        ("who.mail", True),
        ("who.age", False),
        ("plain", False),
    ]
    classed = contract.model_copy(update={"governance": Governance(pii_class="B")})
    masked = [place.masked for place in places(Target(classed, classed.datasets)) if place.field]
    assert masked == [True, True, True, False]


def test_a_rule_that_is_no_error_needs_severities():
    contract = build_contract(
        build_field("a", "int", Minimum(limit=0, severity=Severity.WARNING), Required(severity=Severity.INFO))
    )
    known = Words("Paper", rules=("minimum", "required"), contract=("id", "version", "status"))
    assert lost(contract, known) == [
        "`minimum` of a: Paper has no severities, and this is only a warning",
        "`required` of a: Paper has no severities, and this is only an information",
    ]
    severe = Words("Paper", ("minimum", "required"), beside=("severity",), contract=("id", "version", "status"))
    assert lost(contract, severe) == []


def test_what_is_said_beside_a_rule():
    rule = Enum(values=("a",), name="known", dimension=Dimension.ACCURACY, description="x", custom={"$odcs": {"a": 1}})
    contract = build_contract(build_field("a", "string", rule))
    known = Words("Paper", rules=("enum",), contract=("id", "version", "status"))
    assert lost(contract, known) == [
        "the name of `enum` of a: Paper has no place for it",
        "the description of `enum` of a: Paper has no place for it",
        "the dimension of `enum` of a: Paper has no place for it",
        "the further entries of `enum` of a: Paper has no place for it",
    ]
    whole = Words("Paper", ("enum",), ("name", "description", "dimension", "custom"), contract=known.contract)
    assert lost(contract, whole) == []


def test_each_promise_that_is_only_written_down_is_named():
    contract = build_contract(
        rules=(NotEnforced(reason="prose"), NotEnforced(reason="soda", name="mine"), NotEnforced(reason="prose"))
    )
    assert lost(contract)[:2] == [
        "`not_enforced` (prose) of t: Paper has no place for what is only written down",
        "`not_enforced` (mine) of t: Paper has no place for what is only written down",
    ]


def test_what_is_said_of_fields_and_datasets():
    field = Field(
        name="a",
        column_name="A",
        description="d",
        semantics="s",
        business_name="b",
        pii=False,
        classification="internal",
        tags=("t",),
        partition_position=1,
        deprecated=True,
        examples=(0,),
        default=0,
        sources=("raw",),
        custom={"mine": 1, "$odcs": {"logicalType": "string", "id": "x"}, "$empty": {}},
    )
    dataset = Dataset(
        name="t",
        physical_name="T",
        fields=(field,),
        modes=SchemaModes(),
        description="d",
        business_name="b",
        tags=("t",),
        custom={"$odcs": {"id": "y"}},
    )
    contract = Contract(id="test", version="1.0.0", datasets=(dataset,))
    assert [sentence.removesuffix(": Paper has no place for it") for sentence in lost(contract)[:-1]] == [
        "the logical name of a, t",
        "the description of a, t",
        "the semantics of a",
        "the business name of a, t",
        "the mark for personal data of a",
        "the classification of a",
        "the tags of a, t",
        "the place in the partitioning of a",
        "the deprecation of a",
        "the examples of a",
        "the default of a",
        "the sources of a",
        "the custom properties mine; $odcs: id of a",
        "the schema modes of t",
        "the custom properties $odcs: id of t",
    ]
    all_words = Words("Paper", field=tuple(_OF_FIELD), dataset=tuple(_OF_DATASET), contract=tuple(_OF_CONTRACT))
    assert lost(contract, all_words) == []
    assert lost(contract, all_words, attributes=lambda name, place: "no" if name == "default" else None) == [
        "the default of a: no"
    ]


@pytest.mark.parametrize("default", [0, False, 0.0, "", [], {}])
def test_a_falsy_default_is_a_default(default):
    assert "the default of a: Paper has no place for it" in lost(build_contract(Field(name="a", default=default)))


def test_each_part_of_the_contract_is_a_sentence():
    contract = build_contract(
        name="n",
        domain="sales",
        tags=("x", "y"),
        description="d",
        team=Team(members=(Member(username="keeper"),)),
        owner="shop",
        servers=(Server(name="wh", type="postgres"),),
        consumers=(Consumer(name="R"), Consumer(name="P")),
        evolution=Evolution(),
        enforcement=Enforcement(mode="warn", until=date(2026, 1, 1)),
        governance=Governance(retention_days=0),
        notice_period="P3M",
        custom={"chat": None, "$odcs": {"price": 1}},
    )
    assert [sentence.removesuffix(": Paper has no place for it") for sentence in lost(contract)] == [
        "the id test, the version 1.0.0, the name n, the status draft, the domain sales, the tags x, y",
        "the description of the contract",
        "the team",
        "the owner shop",
        "the servers wh",
        "the consumers R, P",
        "how the contract may change (evolution)",
        "the grace period",
        "the governance",
        "the notice period P3M",
        "the custom properties chat; $odcs: price",
    ]
    assert lost(contract, Words("Paper", contract=tuple(_OF_CONTRACT))) == []
    reasons = {"identity": "no names", "owner": "nobody owns it"}
    sentences = lost(contract, Words("Paper", reasons=reasons))
    assert sentences[0].endswith(": no names")
    assert "the owner shop: nobody owns it" in sentences


def test_what_a_target_knows_itself_comes_first_and_is_grouped():
    contract = build_contract(build_field("a", "int"), build_field("b", "int"))
    a, b = columns(contract, contract.datasets[0])
    more = [Loss("the width", a, "narrow"), Loss("the name", b, "odd"), Loss("the width", b, "narrow")]
    assert lost(contract, more=more)[:2] == ["the width of a, b: narrow", "the name of b: odd"]


def test_a_judge_decides_by_rule_and_place():
    contract = build_contract(build_field("a", "int", Required()), build_field("b", "int", Required()))
    sentences = lost(contract, judge=lambda rule, place: "not here" if place.name == "b" else None)
    assert sentences[0] == "`required` of b: not here"


def test_a_sentence_is_one_line():
    (first, *_) = lost(build_contract(build_field("a\nb\x1b[31m", None, Required())))
    assert first == "`required` of a b [31m: Paper has no required fields"


def test_every_kind_of_rule_has_its_reason():
    kinds = {
        kind.kind
        for kind in vars(rules).values()
        if isinstance(kind, type) and issubclass(kind, rules.Rule) and kind is not rules.Rule
    }
    # What every dataset promises without a word is in no contract.
    assert kinds - set(_CONCEPTS) == {"present", "type", "undeclared"}


def test_every_attribute_of_the_model_is_asked_for():
    structure = {"name", "rules", "fields", "position"}
    assert set(Field.model_fields) - set(_OF_FIELD) == {*structure, "type", "item", "key", "value"}
    assert set(Dataset.model_fields) - set(_OF_DATASET) == structure
    of_the_document = {"datasets", "dialect", "source", "findings"}
    assert set(Contract.model_fields) - set(_OF_CONTRACT) == of_the_document


def test_a_place_of_a_dataset_holds_its_rules():
    dataset = Dataset(name="t", rules=(Freshness(seconds=1),))
    assert Place(dataset, None, "t").rules == dataset.rules
