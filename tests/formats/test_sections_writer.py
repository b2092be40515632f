"""Contracts written in six sections: nothing of the form is lost, and any contract becomes a document that loads."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import DataboxError
from databox_contracts.formats import dump_contract, examine, load_contract, read
from databox_contracts.formats.canonical import canonical
from databox_contracts.formats.losing import lost
from databox_contracts.formats.odcs_rules import KINDS, own_attributes
from databox_contracts.formats.sections_fields import DOCUMENT
from databox_contracts.formats.sections_writer import write
from databox_contracts.formats.sections_writer_guarantees import duration
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
from databox_contracts.plan import build_plan
from databox_contracts.rules import NO_ROWS, Operator, Rule, Severity, Threshold, Unit
from databox_contracts.testing import build_contract, build_field

CASES = Path(__file__).parents[1] / "cases"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

DOCUMENTS = sorted([*CASES.glob("*/*.y*ml"), *CORPUS.glob("*/*.yaml"), *CORPUS.glob("*/*/*.yaml")])

HEAD = "contract:\n  name: shop.order\n  version: 1.0.0\n"
TABLE = HEAD + (
    "schema:\n"
    "  fields:\n"
    "    - {name: id, type: STRING}\n"
    "    - {name: at, type: TIMESTAMP, nullable: false}\n"
    "    - {name: loaded, type: TIMESTAMP}\n"
    "    - {name: n, type: INT64}\n"
)


def plan_of(contract: Contract) -> list[tuple[object, ...]]:
    """Every check, as far as its result depends on it."""
    (dataset,) = contract.datasets
    checks = build_plan(contract, dataset).checks
    return sorted((c.id, c.rule.kind, c.severity, c.dimension, c.path, c.masked) for c in checks)


def errors(findings) -> list[str]:
    return [str(finding) for finding in findings if finding.level == "error"]


# --- what is read from six sections -----------------------------------------------------------------------------------

# Beside the whole documents: what each section may hold.
VARIANTS = {
    "nothing": HEAD + "schema:\n",
    "no fields": HEAD + "schema: {fields: []}\n",
    "no name beside": "contract: {name: order, version: '3.10'}\nschema: {fields: [{name: 'NO'}]}\n",
    "an id": "contract: {id: urn:x, name: Our Orders, version: 1.0.0, description: ' d ', domain: x, tags: [a]}\n"
    "schema: {name: orders, table: shop.orders, fields: [{name: id, type: UUID}]}\n",
    "a name of the table": HEAD + "schema: {name: order, description: x, tags: ['1'], fields: []}\n",
    "a table": HEAD + "schema: {table: other, fields: []}\n",
    "contacts": HEAD.replace("contract:\n", "contract:\n  on_call_slack: 5\n  created: [1]\n  updated: 2026-01-31\n")
    + "schema: {fields: []}\n",
    "sections inside": HEAD + "  schema:\n    fields: [{name: id, type: UUID}]\n  governance: {pii_class: 'NO'}\n",
    "modes": TABLE + "  modes: {columns: evolve}\n",
    "one mode": TABLE + "  modes: discard_row\n",
    "a key in an order of its own": TABLE + "  primary_key: [n, id]\n  constraints: ['n > 0', 'id <> at']\n",
    "flags": HEAD + "schema: {fields: [{name: a, type: INT32, primary_key: true, unique: true, column: b, pii: false}]}"
    "\n",
    "no type": HEAD + "schema: {fields: [{name: a, values: [1, x, null], default: 1, examples: [1, null]}]}\n",
    "falsy": HEAD + "schema: {fields: [{name: a, type: INT64, values: [0], default: 0, constraints: [a >= 0]}]}\n",
    "an empty text": HEAD + "schema: {fields: [{name: a, type: ENUM, values: ['', 'null', 'NO'], default: ''}]}\n",
    "the same twice": HEAD + "schema: {fields: [{name: a, type: INT64, nullable: false, unique: true, "
    "constraints: [a IS NOT NULL, a > 0, a > 1, 'a in (5, 6)', 'a in (6)', 'a % 2 = 0', 'a <> 7', a < 9]}]}\n"
    "guarantees: {uniqueness: a}\n",
    "texts": HEAD + "schema: {fields: [{name: a b, type: STRING, constraints: ['length(`a b`) > 0', "
    "\"`a b` RLIKE '^a\\\\\\\\.b\\\\\\\\z'\", \"`a b` RLIKE 'a$'\", \"`a b` in ('it''s')\"]}]}\n",
    "required when": TABLE + "    - {name: x, constraints: ['NOT (n > 1 OR n IS NULL) OR x IS NOT NULL']}\n",
    "what objects and arrays contain": HEAD
    + "schema:\n  fields:\n    - name: o\n      type: STRUCT\n      fields:\n"
    "        - {name: a, type: WHOLE_NUMBER, unique: true, constraints: ['o.a > 0', 'o.a <> 3'], foreign_key: x.y}\n"
    "        - {name: t, type: TIMESTAMP, nullable: false}\n"
    "    - name: l\n      type: ARRAY\n      constraints: [size(l) > 0, size(array_distinct(l)) = size(l)]\n"
    "      items: {type: STRUCT, fields: [{name: s, type: ENUM, values: [a], foreign_key: x.y}]}\n"
    "    - {name: m, type: MAP, key: {type: STRING, constraints: [length(key) <= 2]}, value: {nullable: false}}\n"
    "    - {name: p, type: 'MAP<STRING, ARRAY<STRUCT<`a b`: DECIMAL(5, 2)>>>'}\n"
    "semantics: {o.a: x}\n",
    "a key inside": HEAD + "schema: {fields: [{name: o, type: STRUCT, fields: [{name: a, primary_key: true}]}]}\n",
    "freshness": TABLE + "guarantees: {freshness: 1h 30m}\n",
    "freshness for nobody": HEAD + "schema: {fields: [{name: a}]}\nguarantees: {freshness: {max: 0.5s, p9: 1.5h}}\n",
    "names that nothing needs": TABLE + "guarantees: {freshness: {p50: 1s, p99.9: 1s, timestamp_field: at}}\n",
    "an arrival that nothing needs": TABLE + "guarantees: {freshness: {max: 1s, arrival_field: at}}\n",
    "percentiles": TABLE + "guarantees: {freshness: {p50: 1d, p99_9: 2d, p100: 9d, arrival_field: loaded}}\n",
    "completeness": TABLE + "guarantees: {completeness: {p99.5_per_day: 0, p50_per_week: 100%, expected: '1000'}}\n",
    "completeness alone": TABLE + "guarantees: {completeness: 99.9%}\n",
    "not measured": TABLE + "guarantees: {availability: {x: [1]}, ordering: by_id, completeness: {p9_per_day: 5}}\n",
    "no order": TABLE + "guarantees: {ordering: None}\n",
    "keys": TABLE + "guarantees: {uniqueness: [[id, at], [n], id, [at, id]]}\n",
    "nothing guaranteed": TABLE + "guarantees: {freshness: null, uniqueness: []}\n",
    "semantics": TABLE + "semantics:\n  id: ' x '\n  other: y\n  'n': |\n    a: b\n      c\n",
    "semantics of nothing": TABLE + "semantics: {other: null}\n",
    "an empty block": TABLE + "evolution: {}\n",
    "nothing allowed": TABLE + "evolution: {allowed: []}\n",
    "another policy": TABLE + "evolution: {policy: x, disallowed: [y], deprecation_window_days: 0, sign_off: z}\n",
    "less allowed": TABLE + "evolution: {disallowed: [widen_enum_values]}\n",
    "purposes": TABLE + "governance: {dpdp_purpose: a, gdpr_purposes: [a, b], purposes: [c], rbac: {read: [x]}}\n",
    "one purpose": TABLE + "governance: {purposes: a, rbac: {write: []}}\n",
    "retention": TABLE + "governance: {retention_days: 1, timestamp_field: loaded}\n",
    "retention of nothing": HEAD + "schema: {fields: [{name: a}]}\ngovernance: {retention_days: 1}\n",
    "grace": TABLE + "enforcement: {mode: warn, until: 2026-01-31}\n",
    "consumers": TABLE + "consumers: [{name: 'NO', contact: a, fields: [id], versions: ^1}, {name: 'NO'}]\n",
}  # fmt: skip


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS)
def test_what_is_read_from_six_sections_is_written_as_it_was(text):
    holds(load_contract(text))


@pytest.mark.parametrize("name", ["measured.v1.yaml", "transaction.v3.yaml"])
def test_whole_documents_are_written_as_they_were(name):
    holds(load_contract(CASES / "sections" / name))


def holds(contract: Contract) -> None:
    """The contract comes back from its text, also by way of the standard."""
    text = write(contract)
    again, findings = read(text)
    assert errors(findings) == [], text
    assert canonical(again) == canonical(contract), text
    assert lost(contract, again) == []
    assert plan_of(again) == plan_of(contract)
    assert write(again) == text
    by_the_standard = load_contract(dump_contract(contract))
    assert canonical(by_the_standard) == canonical(contract)
    assert write(by_the_standard) == text


def test_the_sections_stand_in_their_order():
    contract = load_contract(CASES / "sections" / "transaction.v3.yaml")
    top = [line for line in write(contract).splitlines() if not line.startswith(" ")]
    assert top == ["contract:", "schema:", "guarantees:", "semantics:", "evolution:", "governance:"]


# --- what is read from other dialects ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_document_s_datasets_become_documents_that_load(path):
    contract, _ = examine(path)
    assert contract is not None
    # One document has 68.
    for dataset in contract.datasets[:6]:
        holds(loads(contract.model_copy(update={"datasets": (dataset,)})))


def loads(contract: Contract) -> Contract:
    """The contract that the text says, which has no error."""
    text = write(contract)
    again, findings = read(text)
    assert errors(findings) == [], text
    assert again is not None
    return again


@pytest.mark.parametrize("datasets", [(), (Dataset(name="a"), Dataset(name="b"))])
def test_a_contract_of_any_other_number_of_datasets_is_refused(datasets):
    contract = Contract(id="shop", version="1.0.0", datasets=datasets)
    with pytest.raises(DataboxError) as refused:
        write(contract)
    assert "'shop' has" in refused.value.message
    assert ("--dataset NAME" in refused.value.hint) is bool(datasets)
    assert ("a, b" in refused.value.hint) is bool(datasets)


TEXT, WHOLE = "string", "bigint"


@pytest.mark.parametrize(
    ("field", "entry"),
    [
        (build_field("c", WHOLE, rules.Minimum(limit=0)), ["type: INT64", "- c >= 0"]),
        (build_field("c", "decimal(5,2)", rules.Maximum(limit=Decimal("0.10"))), ["- c <= 0.1"]),
        (build_field("c", "date", rules.ExclusiveMinimum(limit="2020-01-01")), ["- c > '2020-01-01'"]),
        (build_field("c", WHOLE, rules.MultipleOf(divisor=5)), ["- c % 5 = 0"]),
        (build_field("c", TEXT, rules.MinLength(length=0), rules.MaxLength(length=3)), ["length(c) >= 0", "c) <= 3"]),
        (build_field("c", TEXT, rules.Pattern(pattern="^[A-Z]$")), [r"- c RLIKE '^[A-Z]\\z'"]),
        (build_field("c", "array<int>", rules.UniqueItems()), ["type: ARRAY<INT>", "size(array_distinct(c)) = "]),
        (build_field("c", TEXT, rules.Enum(values=("it's", "NO", None))), ["type: ENUM", "- it's", '- "NO"', "null"]),
        (build_field("c", WHOLE, rules.Enum(values=(0, 1))), ["type: INT64", "values:", "- 0"]),
        (build_field("c", TEXT, rules.Format(format="uuid")), ["type: UUID"]),
        (build_field("c", "varchar(36)", rules.Format(format="uuid")), ["type: VARCHAR(36)", "c RLIKE '^[0-9a-fA-F]"]),
        (build_field("c", WHOLE, rules.RequiredWhen(condition="c > 1")), ["- NOT (c > 1) OR c IS NOT NULL"]),
        (build_field("select", WHOLE, rules.Minimum(limit=0)), ["`select` >= 0"]),
        (build_field("a`b c", WHOLE, rules.Minimum(limit=0)), ["`a``b c` >= 0"]),
        (Field(name="c", type=DataType(Family.INTEGER)), ["type: WHOLE_NUMBER"]),
        (Field(name="c", rules=(rules.Minimum(limit=1),)), ["- c >= 1"]),
        # A count that allows no row is the promise of each row.
        (build_field("c", WHOLE, rules.NullCount(threshold=NO_ROWS)), ["nullable: false"]),
        (build_field("c", WHOLE, rules.InvalidCount(valid_values=(1,), threshold=NO_ROWS)), ["values:", "- 1"]),
        (build_field("c", WHOLE, rules.DuplicateCount(threshold=NO_ROWS)), ["uniqueness: c"]),
    ],
)  # fmt: skip
def test_what_the_form_says_of_a_field(field, entry):
    text = write(build_contract(field))
    assert [part for part in entry if part not in text] == []
    holds(loads(build_contract(field)))


@pytest.mark.parametrize(
    "rule",
    [
        rules.Required(severity=Severity.WARNING),
        rules.Enum(values=()),
        rules.Format(format="email"),
        rules.Pattern(pattern="("),
        rules.Minimum(limit=float("nan")),
        rules.Maximum(limit=9.5),
        rules.Enum(values=(0.5,)),
        rules.MinLength(length=-1, severity=Severity.INFO),
        rules.NullCount(threshold=Threshold(Operator.LESS_THAN, 5, unit=Unit.PERCENT)),
        rules.Expression(sql="d > 1"),
        rules.Expression(sql="max(c) > 1"),
        rules.Expression(sql=""),
        rules.Statistic(statistic="avg", threshold=NO_ROWS),
        rules.NotEnforced(reason="x"),
    ],
)
def test_what_the_form_has_no_word_for_is_left_out(rule):
    again = loads(build_contract(build_field("c", WHOLE, rule)))
    assert again.datasets[0].fields[0].rules == ()


def test_bounds_that_leave_no_value_are_not_both_written():
    again = loads(build_contract(build_field("c", WHOLE, rules.Minimum(limit=5), rules.Maximum(limit=4))))
    assert [rule.kind for rule in again.datasets[0].fields[0].rules] == ["minimum"]


@pytest.mark.parametrize(
    ("name", "table", "expected"),
    [
        ("order", "shop.order", ("order", "shop.order")),
        ("order", None, ("order", None)),
        ("orders", None, ("orders", None)),
        ("orders", "orders", ("orders", "orders")),
        ("orders", "../x", ("orders", None)),
        ("../x", None, ("__x", None)),
        (".", "a/b", ("unnamed", None)),
    ],
)
def test_the_table_s_name(name, table, expected):
    contract = Contract(id="shop.order", version="1.0.0", datasets=(Dataset(name=name, physical_name=table),))
    (dataset,) = loads(contract).datasets
    assert (dataset.name, dataset.physical_name) == expected


def test_an_id_and_a_title_are_kept_apart():
    contract = Contract(id="urn:x", name="Orders", version="1.0.0", datasets=(Dataset(name="o"),))
    again = loads(contract)
    assert (again.id, again.name, again.datasets[0].name) == ("urn:x", "Orders", "o")


def test_what_a_document_said_gives_way_to_what_the_contract_says():
    contract = load_contract(TABLE + "guarantees: {freshness: 1h}\ngovernance: {dpdp_purpose: a}\n")
    changed = contract.model_copy(
        update={
            "governance": Governance(purposes=("b",)),
            "datasets": (contract.datasets[0].model_copy(update={"rules": ()}),),
        }
    )
    text = write(changed)
    assert "freshness" not in text
    assert "dpdp_purpose" not in text
    assert loads(changed).governance.purposes == ("b",)


def test_only_what_is_about_the_same_fields_stands_together():
    own = (
        rules.Freshness(seconds=60, element="at"),
        rules.Freshness(seconds=30, element="at"),
        rules.Freshness(seconds=90, element="gone"),
        rules.Latency(percentile=99, seconds=60, element="at", arrival_field="loaded"),
        rules.Latency(percentile=50, seconds=90, element="at", arrival_field="loaded"),
        rules.Latency(percentile=60, seconds=10, element="loaded", arrival_field="at"),
        rules.Completeness(threshold=Threshold(Operator.LESS_THAN, 1), period="hour", percent_of_periods=99),
        rules.Retention(seconds=5),
        rules.Retention(seconds=86_400, element="at"),
    )
    fields = (build_field("at", "timestamp"), build_field("loaded", "timestamp"))
    again = loads(Contract(id="i", version="1.0.0", datasets=(Dataset(name="t", fields=fields, rules=own),)))
    assert [(rule.kind, rule.seconds) for rule in again.datasets[0].rules] == [
        ("freshness", 60),
        ("latency", 60),
        ("retention", 86_400),
    ]


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0, "0d"),
        (1, "1s"),
        (90, "90s"),
        (300, "5min"),
        (5_400, "90min"),
        (3_600.0, "1h"),
        (86_400 * 7, "7d"),
        (0.5, "0.5s"),
        (Decimal("1.25"), "1.25s"),
        (-1, None),
        (float("nan"), None),
        (1e-30, None),
        (1e30, None),
    ],
)
def test_a_duration(seconds, written):
    assert duration(seconds) == written


# --- any contract -----------------------------------------------------------------------------------------------------

PROSE = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8).map(str.strip)
WORDS = PROSE.filter(bool) | st.sampled_from(["NO", "1.0", "a > 0", "a", "x.y", "null", "`", "'", "\\"])
NAMES = st.sampled_from(["a", "NO", "y", "1", "ä b", "null", "a.b", "o", "`", "item", "", "select"])
NUMBERS = st.integers(-(10**12), 10**12) | st.decimals(-(10**6), 10**6, places=3) | st.floats()
SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.sampled_from(["", "2020-01-01", "x"])
DATA = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2), max_leaves=4
)


@st.composite
def thresholds(draw) -> Threshold:
    operator, unit = draw(st.sampled_from(Operator)), draw(st.sampled_from(Unit))
    value = draw(st.integers(-1, 101) | st.just(0))
    high = value + 1 if operator in (Operator.BETWEEN, Operator.NOT_BETWEEN) else None
    return Threshold(operator, value, high, unit)


SQL = st.sampled_from(["a > 0", "a <> 1 OR a > 5", "`NO` = 1", "a <", "max(a) > 1", "o.x > 1", "", "a < 0", "zz > 1"])
VALUES = {
    "str": WORDS | SQL | st.sampled_from(["uuid", "hour", "^a$", "(", "avg"]),
    "str | None": st.none() | NAMES | st.just("hour"),
    "str | int | None": st.none() | WORDS | st.integers(-1, 5),
    "int": st.integers(-1, 2**31),
    "float": st.integers(0, 10**6) | st.floats() | st.just(86_400),
    "float | None": st.none() | st.integers(0, 101) | st.floats(0, 100),
    "Number": NUMBERS,
    "Limit": NUMBERS | st.sampled_from(["2020-01-01", "x", "12:00:00", "2020-01-01T00:00:00Z"]),
    "Threshold": thresholds() | st.just(NO_ROWS),
    "tuple[str, ...]": st.lists(NAMES, max_size=2).map(tuple),
    "tuple[Scalar, ...]": st.lists(SCALAR, max_size=3).map(tuple),
    "tuple[Scalar, ...] | None": st.none() | st.lists(SCALAR, max_size=2).map(tuple),
}


@st.composite
def any_rule(draw) -> Rule:
    kind = draw(st.sampled_from(tuple(KINDS.values())))
    facts = {attribute.name: draw(VALUES[str(attribute.type)]) for attribute in own_attributes(kind)}
    if draw(st.integers(0, 3)) == 0:
        facts |= {"name": draw(st.none() | WORDS), "severity": draw(st.sampled_from(Severity))}
    return kind(**facts)


PLAIN = [
    DataType(Family.STRING),
    DataType(Family.STRING, length=3),
    DataType(Family.BOOLEAN),
    *(DataType(Family.INTEGER, bits=bits) for bits in (None, 8, 16, 32, 64)),
    *(DataType(Family.NUMBER, bits=bits) for bits in (None, 32, 64)),
    DataType(Family.DECIMAL),
    DataType(Family.DECIMAL, precision=10, scale=0),
    DataType(Family.DATE),
    *(DataType(Family.TIMESTAMP, zone=zone) for zone in (None, True, False)),
    DataType(Family.TIME),
    DataType(Family.BINARY),
    DataType(Family.VARIANT),
]
TYPES = st.none() | st.sampled_from(
    [
        *PLAIN,
        DataType(Family.ARRAY),
        DataType(Family.ARRAY, item=DataType(Family.MAP, key=DataType(Family.STRING), value=DataType(Family.DATE))),
        DataType(Family.OBJECT, fields=(("NO", DataType(Family.INTEGER, bits=64)), ("x y", DataType(Family.DATE)))),
    ]
)


@pytest.mark.parametrize("type_", PLAIN, ids=str)
def test_every_type_has_a_word_alone_and_inside(type_):
    for field in (
        Field(name="c", type=type_),
        Field(name="c", type=DataType(Family.ARRAY), item=Field(name="item", type=type_)),
        Field(name="c", type=DataType(Family.OBJECT), fields=(Field(name="a.b", type=type_), Field(name="x"))),
        Field(name="c", fields=(Field(name="a", type=type_),)),
    ):
        contract = build_contract(field)
        assert lost(contract, loads(contract)) == []


@st.composite
def any_field(draw, name: str, depth: int = 0) -> Field:
    type_ = draw(TYPES)
    found = Field(
        name=name,
        column_name=draw(st.none() | NAMES),
        type=type_,
        rules=draw(st.lists(any_rule(), max_size=4).map(tuple)),
        description=draw(PROSE),
        semantics=draw(PROSE),
        business_name=draw(st.none() | PROSE),
        pii=draw(st.none() | st.booleans()),
        classification=draw(st.none() | PROSE),
        tags=draw(st.lists(PROSE, max_size=2).map(tuple)),
        deprecated=draw(st.booleans()),
        examples=draw(st.lists(SCALAR, max_size=2).map(tuple)),
        default=draw(SCALAR | DATA),
        custom=draw(st.dictionaries(st.sampled_from(["$x", "x y"]), DATA, max_size=1)),
    ).completed()
    if depth < 2 and draw(st.integers(0, 3)) == 0:
        names = draw(st.lists(NAMES, max_size=2, unique=True))
        parts = {"fields": tuple(draw(any_field(inner, depth + 1)) for inner in names)}
        parts |= {part: draw(any_field(part, depth + 1)) for part in draw(st.sets(st.sampled_from(["item", "key"])))}
        found = found.model_copy(update=parts)
    return found


@st.composite
def any_contract(draw) -> Contract:
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    dataset = Dataset(
        name=draw(st.sampled_from(["t", "NO", "shop.orders", "a/b", ".", " "])),
        physical_name=draw(st.none() | st.sampled_from(["t", "x.y", "..", "s3://b/c"])),
        fields=tuple(draw(any_field(name)) for name in names),
        rules=draw(st.lists(any_rule(), max_size=6).map(tuple)),
        modes=draw(st.none() | st.just(SchemaModes()) | st.just(SchemaModes(columns=Mode.EVOLVE))),
        description=draw(PROSE),
        tags=draw(st.lists(PROSE, max_size=2).map(tuple)),
    )
    known = st.lists(st.sampled_from(["add_optional_field", "remove_field", "", "x"]), max_size=3).map(tuple)
    return Contract(
        id=draw(st.sampled_from(["a", "NO", "1", "shop.orders", "a/b", "."])),
        name=draw(st.none() | PROSE),
        version=draw(st.sampled_from(["1.0.0", "3.10", "1", "x"])),
        status=draw(st.sampled_from(["draft", "active", ""])),
        description=draw(PROSE),
        domain=draw(st.none() | PROSE),
        team=Team(name=draw(st.none() | PROSE)),
        owner=draw(st.none() | PROSE),
        datasets=(dataset,),
        consumers=draw(st.just(()) | st.just((Consumer(name="NO", contacts=("a",)), Consumer(name=" ")))),
        evolution=draw(st.none() | st.builds(Evolution, policy=st.none() | PROSE, allowed=known, disallowed=known)),
        enforcement=Enforcement(mode=draw(st.sampled_from(["fail", "warn", "x"]))),
        governance=draw(
            st.builds(
                Governance,
                pii_class=st.none() | PROSE,
                retention_days=st.none() | st.integers(-1, 3),
                purposes=st.lists(PROSE, max_size=2).map(tuple),
                read=st.just(()) | st.just(("y",)),
            )
        ),
        custom=draw(
            st.dictionaries(
                st.just(DOCUMENT), st.fixed_dictionaries({"semantics": st.dictionaries(NAMES, SCALAR)}), max_size=1
            )
        ),
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(any_contract())
def test_any_contract_becomes_a_document_that_loads(contract):
    again = loads(contract)
    assert canonical(loads(again)) == canonical(again)
    assert write(loads(again)) == write(again)
