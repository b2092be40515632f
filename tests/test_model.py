"""The contract: names, places, what may be shown, and the grace period."""

from datetime import date

import pytest
from pydantic import ValidationError

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family, parse_type
from databox_contracts.errors import UnknownDatasetError
from databox_contracts.model import Consumer, Contract, Dataset, Enforcement, Field, Server, Team

STRING = DataType(Family.STRING)


def contract(*names: str) -> Contract:
    datasets = tuple(Dataset(name=name, physical_name=f"{name}_table") for name in names)
    return Contract(id="c", version="1.0.0", datasets=datasets)


def test_a_contract_is_frozen_and_knows_no_other_words():
    with pytest.raises(ValidationError):
        contract("a").id = "d"
    with pytest.raises(ValidationError):
        Contract(id="c", version="1.0.0", nonsense=1)


def test_what_is_the_default_anyway_may_be_left_out_or_said():
    plain = Field(name="a")
    assert Field.saying(name="a", type=None, rules=(), description="", pii=None, custom={}) == plain
    said = Field.saying(name="a", type=STRING, pii=False, tags=("x",), deprecated=True, custom={"k": 0})
    assert said == Field(name="a", type=STRING, pii=False, tags=("x",), deprecated=True, custom={"k": 0})
    assert said.pii is False
    with pytest.raises(ValidationError):
        Field.saying(name=3)
    with pytest.raises(KeyError):
        Field.saying(name="a", nonsense=1)


def test_a_dataset_is_found_by_either_name_or_by_being_the_only_one():
    two = contract("a", "b")
    assert two.dataset("b").name == "b"
    assert two.dataset("b_table").name == "b"
    assert contract("a").dataset().name == "a"


@pytest.mark.parametrize(
    ("names", "wanted", "message"),
    [
        (("a", "b"), "c", "contract 'c' has no dataset 'c'"),
        (("a", "b"), None, "contract 'c' has 2 datasets and none was named"),
        ((), None, "contract 'c' has 0 datasets and none was named"),
        (("a",), "", "contract 'c' has no dataset ''"),
    ],
)
def test_an_unknown_dataset_lists_the_known(names, wanted, message):
    with pytest.raises(UnknownDatasetError) as caught:
        contract(*names).dataset(wanted)
    assert caught.value.message == message
    assert caught.value.known == names


def test_names_fall_back():
    assert Contract(id="c", version="1").title == "c"
    assert Contract(id="c", version="1", name="").title == "c"
    assert Contract(id="c", version="1", name="n", team=Team(name="t")).owning_team == "t"
    assert Contract(id="c", version="1", owner="o", team=Team(name="t")).owning_team == "o"
    assert Contract(id="c", version="1").owning_team is None
    assert Field(name="a").column == "a"
    assert Field(name="a", column_name="b").column == "b"
    assert Dataset(name="a").table_name == "a"
    assert Server(name="s", type="local", settings={"path": "p"}).location == "p"
    assert Server(name="s", type="s3", settings={"location": "l"}).location == "l"
    assert Server(name="s", type="kafka").location is None


def test_a_consumer_is_made_from_positional_facts_of_its_own():
    consumer = Consumer(name="Quant team", contact="quant@example.com", datasets=("trades",))
    assert (consumer.name, consumer.contact, consumer.datasets) == ("Quant team", "quant@example.com", ("trades",))
    assert Consumer("Quant team", "quant@example.com", ["trades"]) == consumer
    assert consumer.subscribed_schemas == ("trades",)
    assert Consumer("Quant team").subscribed_schemas == ()
    assert Consumer.model_validate(consumer.model_dump()) == consumer


ADDRESSES = [
    (Consumer("a"), ()),
    (Consumer("a", ""), ()),
    (Consumer("a", "a@example.com"), ("mailto:a@example.com",)),
    (Consumer("a", "mailto:a@example.com"), ("mailto:a@example.com",)),
    (Consumer("a", "a@example.com", contacts=("mailto:a@example.com", "b@c")), ("mailto:a@example.com", "mailto:b@c")),
    (Consumer("a", "#team"), ("#team",)),
    (Consumer("a", "slack://${TOKEN}@general"), ("slack://${TOKEN}@general",)),
    (Consumer("a", "https://user@example.com/x"), ("https://user@example.com/x",)),
    (Consumer("a", "ü@exämple.com"), ("mailto:ü@exämple.com",)),
]


@pytest.mark.parametrize(("consumer", "addresses"), ADDRESSES)
def test_a_bare_address_is_one_for_mail(consumer, addresses):
    assert consumer.addresses == addresses


def test_flags_are_rules():
    field = Field(name="a", rules=(rules.Required(), rules.Unique()))
    assert field.required
    assert field.unique
    assert not Field(name="a").required
    assert not Field(name="a", rules=(rules.Unique(fields=("a", "b")),)).unique


TREE = Dataset(
    name="t",
    fields=(
        Field(name="a.b"),
        Field(
            name="a",
            fields=(
                Field(name="b"),
                Field(name="c", fields=(Field(name="d"),)),
                Field(name="items", item=Field(name="item")),
            ),
        ),
    ),
)


@pytest.mark.parametrize(
    ("dotted", "expected"),
    [
        ("a", ["a"]),
        ("a.b", ["a.b"]),
        ("a.c.d", ["a", "c", "d"]),
        ("a.c", ["a", "c"]),
        ("a.x", None),
        ("x", None),
        ("", None),
        ("a.", None),
        ("a.items.item", None),
    ],
)
def test_a_trail_leads_through_objects(dotted, expected):
    trail = TREE.trail(dotted)
    assert (None if trail is None else [field.name for field in trail]) == expected


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("array<int>", [("item", "integer(32)")]),
        ("map<string, bigint>", [("key", "string"), ("value", "integer(64)")]),
        ("struct<a: int, b: string>", [("a", "integer(32)"), ("b", "string")]),
        ("int", []),
    ],
)
def test_a_types_spelling_completes_a_field(spelling, expected):
    completed = Field(name="f", type=parse_type(spelling)).completed()
    assert [(part.name, str(part.type)) for part in completed.parts] == expected


def test_what_the_document_declares_is_not_replaced():
    declared = Field(name="f", type=parse_type("array<int>"), item=Field(name="item", type=STRING))
    assert declared.completed().item.type == STRING
    assert Field(name="f").completed() == Field(name="f")


CONCEALED = [
    (Field(name="a"), None, False),
    (Field(name="a", pii=True), None, True),
    (Field(name="a", pii=False), None, False),
    (Field(name="a"), "B", True),
    (Field(name="a", pii=False), "B", False),
    (Field(name="a"), "", True),
    (Field(name="a", classification="public"), None, False),
    (Field(name="a", classification=" Internal "), None, False),
    (Field(name="a", classification="restricted"), None, True),
    (Field(name="a", classification=""), None, True),
    (Field(name="a", classification="restricted", pii=False), None, True),
    (Field(name="a", tags=("PII",)), None, True),
    (Field(name="a", tags=("pii",), pii=False), None, False),
    (Field(name="a", tags=("other",)), None, False),
]


@pytest.mark.parametrize(("field", "pii_class", "concealed"), CONCEALED)
def test_which_values_may_not_be_shown(field, pii_class, concealed):
    assert field.conceals(pii_class) is concealed


@pytest.mark.parametrize(
    ("enforcement", "today", "warns"),
    [
        (Enforcement(), date(2026, 1, 1), False),
        (Enforcement(mode="warn"), date(2026, 1, 1), False),
        (Enforcement(mode="warn", until=date(2026, 1, 2)), date(2026, 1, 1), True),
        (Enforcement(mode="warn", until=date(2026, 1, 2)), date(2026, 1, 2), False),
        (Enforcement(mode="fail", until=date(2026, 1, 2)), date(2026, 1, 1), False),
    ],
)
def test_a_grace_period_ends(enforcement, today, warns):
    assert enforcement.only_warns(today) is warns
