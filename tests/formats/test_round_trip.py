"""What is written and read again is the same contract, from whatever dialect it came."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import DataboxError
from databox_contracts.formats import FORMATS, dump_contract, examine, load_contract, losses
from databox_contracts.formats.canonical import canonical
from databox_contracts.formats.emitting import to_yaml
from databox_contracts.formats.odcs_rules import _READERS, KINDS, own_attributes
from databox_contracts.formats.positions import parse_yaml
from databox_contracts.formats.remarks import remarks
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
from databox_contracts.plan import build_plan
from databox_contracts.rules import Dimension, Operator, Rule, Severity, Threshold, Unit

CASES = Path(__file__).parents[1] / "cases"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

DOCUMENTS = sorted([*CASES.glob("*/*.y*ml"), *CORPUS.glob("*/*.yaml"), *CORPUS.glob("*/*/*.yaml")])


def plans(contract: Contract) -> list[list[tuple[object, ...]]]:
    """Every check of every dataset, as far as its result depends on it."""
    return [
        sorted((c.id, c.rule.kind, c.severity, c.dimension, c.path, c.masked) for c in build_plan(contract, one).checks)
        for one in contract.datasets
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_written_and_read_again_is_the_same_contract(path):
    contract, findings = examine(path)
    assert contract is not None
    assert [str(finding) for finding in findings if finding.level == "error"] == []
    text = dump_contract(contract)
    again = load_contract(text)
    assert canonical(again) == canonical(contract)
    assert plans(again) == plans(contract)
    assert dump_contract(again) == text
    assert losses(contract, "odcs") == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_dialect_that_is_written_comes_back_from_odcs_as_it_was(path):
    contract = load_contract(path)
    for format_ in FORMATS:
        try:
            lossy = bool(losses(contract, format_.name))
        except DataboxError:
            # The dialect has one dataset in a document, and this contract has not.
            continue
        assert not (lossy and format_.name == contract.dialect)
        if lossy:
            continue
        assert dump_contract(load_contract(dump_contract(contract)), format_.name) == dump_contract(
            contract, format_.name
        )


# --- plain data -------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12) | st.sampled_from(
    [
        "NO",
        "y",
        "1e3",
        "0o7",
        "3.10",
        "2020-01-01",
        "a\nb\n",
        " a\nb",
        "a: b",
        "# x",
        "- a",
        "null",
        "~",
        "<<",
        "=",
        "1:2",
    ]
)
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
DATA = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)


@settings(max_examples=75, deadline=None)
@given(st.dictionaries(TEXT, DATA, min_size=1, max_size=4))
def test_plain_data_written_and_read_again_is_the_same(data):
    document = parse_yaml(to_yaml(data), "x")
    assert document.data == data
    assert [finding for finding in document.findings if finding.level == "error"] == []


# --- rules ------------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "NO", "y", "1", "ä b", "null"])
PROSE = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=10).map(str.strip)
NUMBERS = st.integers(-(10**12), 10**12) | st.decimals(-(10**6), 10**6, places=3)
COUNTS = st.integers(0, 2**31 - 1)


@st.composite
def thresholds(draw) -> Threshold:
    operator, unit = draw(st.sampled_from(Operator)), draw(st.sampled_from(Unit))
    if operator in (Operator.BETWEEN, Operator.NOT_BETWEEN):
        low, high = sorted((draw(NUMBERS), draw(NUMBERS)))
        return Threshold(operator, low, high, unit)
    return Threshold(operator, draw(NUMBERS), unit=unit)


# By the annotation of an attribute, as the reader of such rules has it.
VALUES = {
    "str": PROSE.filter(bool) | st.sampled_from(["NO", "1.0", "a > 0"]),
    "str | None": st.none() | PROSE.filter(bool),
    "str | int | None": st.none() | PROSE.filter(bool) | COUNTS,
    "int": COUNTS,
    "float": st.integers(0, 10**9),
    "float | None": st.none() | st.integers(0, 100),
    "Number": NUMBERS,
    "Limit": NUMBERS | st.sampled_from(["2020-01-01", "x"]),
    "Threshold": thresholds(),
    "tuple[str, ...]": st.lists(NAMES, max_size=3, unique=True).map(tuple),
    "tuple[Scalar, ...]": st.lists(st.none() | TEXT, max_size=3).map(tuple),
    "tuple[Scalar, ...] | None": st.none() | st.lists(TEXT, max_size=3).map(tuple),
}


def test_every_attribute_of_every_rule_is_read_and_generated():
    spelled = {str(attribute.type) for kind in KINDS.values() for attribute in own_attributes(kind)}
    assert spelled <= set(_READERS)
    assert spelled <= set(VALUES)


# Conditions that any dataset may have; what else may stand there is for the lint to judge.
CONDITIONS = st.sampled_from(["true", "1 = 1", "'NO' = \"y\" or 1 > 0.10", "length('a: b') = 4"])


def _values(attribute) -> st.SearchStrategy[object]:
    return CONDITIONS if attribute.name in ("sql", "condition") else VALUES[str(attribute.type)]


@st.composite
def any_rule(draw, kinds) -> Rule:
    kind = draw(st.sampled_from(kinds))
    facts = {attribute.name: draw(_values(attribute)) for attribute in own_attributes(kind)}
    if draw(st.booleans()):
        facts |= {
            "name": draw(st.none() | PROSE.filter(bool)),
            "severity": draw(st.sampled_from(Severity)),
            "dimension": draw(st.none() | st.sampled_from(Dimension)),
            "description": draw(PROSE),
            "custom": draw(st.just({}) | st.dictionaries(st.just("$x"), DATA, max_size=1)),
        }
    return kind(**facts)


# A threshold of the library is checked against what it counts, a key against the fields that there are.
OF_FIELDS = tuple(
    KINDS[kind]
    for kind in (
        "required",
        "min_items",
        "expression",
        "required_when",
        "not_enforced",
        "statistic",
        "query",
        "latency",
    )
)
OF_DATASETS = (
    *(KINDS[kind] for kind in ("expression", "completeness", "freshness", "latency", "retention", "query", "unique")),
    *(KINDS[kind] for kind in ("primary_key", "foreign_key", "not_enforced", "row_count", "duplicate_count")),
)
TYPES = st.none() | st.sampled_from(
    [
        DataType(Family.STRING),
        DataType(Family.STRING, length=3),
        DataType(Family.BOOLEAN),
        DataType(Family.INTEGER, bits=8),
        DataType(Family.NUMBER),
        DataType(Family.DECIMAL, precision=10, scale=0),
        DataType(Family.DATE),
        DataType(Family.TIMESTAMP, zone=False),
        DataType(Family.TIME),
        DataType(Family.BINARY),
        DataType(Family.VARIANT),
        DataType(Family.ARRAY, item=DataType(Family.MAP, key=DataType(Family.STRING), value=DataType(Family.DATE))),
        DataType(Family.OBJECT, fields=(("NO", DataType(Family.INTEGER, bits=64)),)),
    ]
)


@st.composite
def any_field(draw, name: str) -> Field:
    found = Field(
        name=name,
        column_name=draw(st.none() | st.just(f"{name}_")),
        type=draw(TYPES),
        rules=draw(st.lists(any_rule(OF_FIELDS), max_size=3).map(tuple)),
        description=draw(PROSE),
        semantics=draw(PROSE),
        pii=draw(st.none() | st.booleans()),
        classification=draw(st.none() | PROSE.filter(bool)),
        tags=draw(st.lists(PROSE, max_size=2).map(tuple)),
        deprecated=draw(st.booleans()),
        examples=draw(st.lists(SCALAR, max_size=2).map(tuple)),
        default=draw(SCALAR),
        custom=draw(st.dictionaries(st.sampled_from(["$x", "x y", "deprecated"]), DATA, max_size=2)),
    )
    return found.completed()


@st.composite
def any_contract(draw) -> Contract:
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    dataset = Dataset(
        name=draw(st.sampled_from(["t", "NO", "shop.orders"])),
        fields=tuple(draw(any_field(name)) for name in names),
        rules=draw(st.lists(any_rule(OF_DATASETS), max_size=4).map(tuple)),
        modes=draw(st.none() | st.just(SchemaModes())),
        custom=draw(st.dictionaries(st.just("$x"), DATA, max_size=1)),
    )
    return Contract(
        id=draw(st.sampled_from(["a", "NO", "1"])),
        name=draw(st.none() | PROSE.filter(bool)),
        version=draw(st.sampled_from(["1.0.0", "3.10", "1", "x"])),
        description=draw(PROSE),
        team=draw(st.just(Team()) | st.just(Team(name="y", members=(Member(username="1", date_out="2020-01-01"),)))),
        owner=draw(st.none() | PROSE.filter(bool)),
        servers=draw(st.just(()) | st.just((Server(name="s", type="bigquery", settings={"port": "1"}),))),
        datasets=(dataset,),
        consumers=draw(st.just(()) | st.just((Consumer(name="NO", contacts=("a",)), Consumer(name="NO")))),
        evolution=draw(
            st.none() | st.just(Evolution()) | st.just(Evolution(allowed=("a",), deprecation_window_days=0))
        ),
        enforcement=draw(st.just(Enforcement())),
        governance=draw(st.just(Governance()) | st.just(Governance(pii_class="N", retention_days=0, read=("y",)))),
        notice_period=draw(st.none() | st.just("P1D")),
        custom=draw(st.dictionaries(st.sampled_from(["$x", "x"]), DATA, max_size=2)),
    )


@settings(max_examples=75, deadline=None)
@given(any_contract())
def test_any_contract_written_and_read_again_is_the_same(contract):
    text = dump_contract(contract)
    again, findings = examine(text)
    # A contract made at random may promise nonsense, and is told so; its text has no mistake of its own.
    deserved = [remark.message for remark in remarks(contract, "x")]
    assert [str(finding) for finding in findings if finding.level == "error" and finding.message not in deserved] == []
    assert again is not None
    assert canonical(again) == canonical(contract), text
    assert dump_contract(again) == text


# --- the canonical form -----------------------------------------------------------------------------------------------


def one(*found: Rule, **facts: object) -> dict[str, object]:
    dataset = Dataset(name="t", fields=(Field(name="a"),), rules=found)
    return canonical(Contract(id="i", version="1", datasets=(dataset,), **facts))


def test_what_is_not_said_is_left_out():
    assert canonical(Contract(id="i", version="1")) == {"id": "i", "version": "1"}


def test_a_key_of_one_field_is_the_fields():
    at_field = Dataset(name="t", fields=(Field(name="a", rules=(rules.Unique(),)),))
    assert one(rules.Unique(fields=("a",))) == canonical(Contract(id="i", version="1", datasets=(at_field,)))
    assert one(rules.Unique(fields=("b",))) != one()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (one(rules.Minimum(limit=1)), one(rules.Minimum(limit=1.0))),
        (one(rules.Minimum(limit=Decimal("0.10"))), one(rules.Minimum(limit=0.1))),
        (one(rules.Required(), rules.Unique()), one(rules.Unique(), rules.Required())),
        (one(custom={"b": 1, "a": 2}), one(custom={"a": 2, "b": 1})),
        (one(dialect="soda", source="x"), one(dialect="odcs", source="y")),
        (one(description=" a\n"), one(description="a")),
    ],
)
def test_what_is_the_same_is_shown_the_same(first, second):
    assert first == second
    assert to_yaml(first) == to_yaml(second)


def test_falsy_values_are_said():
    field = Field(
        name="a", pii=False, default=0, partition_position=0, examples=(None, ""), rules=(rules.MinLength(length=0),)
    )
    shown = canonical(Contract(id="i", version="1", datasets=(Dataset(name="t", fields=(field,)),)))
    assert shown["datasets"][0]["fields"][0] == {
        "name": "a",
        "rules": [{"rule": "min_length", "length": 0}],
        "pii": False,
        "partition_position": 0,
        "examples": [None, ""],
        "default": 0,
    }


def test_what_a_dialect_has_of_its_own_is_left_out_on_demand():
    contract = Contract(id="i", version="1", custom={"$soda": {"x": 1}, "$odcs": {}, "y": 1})
    assert canonical(contract)["custom"] == {"$soda": {"x": 1}, "y": 1}
    assert canonical(contract, carried=False)["custom"] == {"y": 1}
