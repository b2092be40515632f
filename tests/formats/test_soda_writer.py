"""Contracts written as Soda contracts: nothing of Soda's is lost, and whatever is written is read as it was meant."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family, parse_type
from databox_contracts.errors import DataboxError
from databox_contracts.formats import dump_contract, examine, load_contract
from databox_contracts.formats.canonical import canonical
from databox_contracts.formats.emitting import to_yaml
from databox_contracts.formats.odcs_rules import KINDS, own_attributes
from databox_contracts.formats.positions import parse_yaml
from databox_contracts.formats.soda_sql import opposite
from databox_contracts.formats.soda_types import meant, spelled, whole_type
from databox_contracts.formats.soda_writer import write
from databox_contracts.model import Contract, Dataset, Field, Mode, SchemaModes, Server
from databox_contracts.plan import build_plan
from databox_contracts.rules import NO_ROWS, Dimension, Operator, Rule, Severity, Threshold, Unit
from databox_contracts.testing import build_contract, build_field

CASES = Path(__file__).parents[1] / "cases"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

SODA = sorted([*(CASES / "soda").glob("*.y*ml"), *(CORPUS / "soda").rglob("*.yaml")])
ALL = sorted([*CASES.glob("*/*.y*ml"), *CORPUS.rglob("*.yaml")])


def errors(findings) -> list[str]:
    return [str(finding) for finding in findings if finding.level == "error"]


def plan(contract: Contract) -> list[tuple[object, ...]]:
    """Every check, as far as its result depends on it."""
    checks = build_plan(contract, contract.datasets[0]).checks
    return sorted((c.id, c.rule.kind, c.severity, c.dimension, c.path, c.masked) for c in checks)


def alone(contract: Contract) -> list[Contract]:
    """A contract for each dataset."""
    return [contract.model_copy(update={"datasets": (one,)}) for one in contract.datasets]


def assert_nothing_lost(contract: Contract) -> None:
    text = write(contract)
    again, findings = examine(text)
    assert errors(findings) == [], text
    assert again is not None
    assert canonical(again) == canonical(contract), text
    assert plan(again) == plan(contract)
    assert write(again) == text
    by_odcs = load_contract(dump_contract(contract))
    assert write(by_odcs) == text
    assert canonical(load_contract(write(by_odcs))) == canonical(contract)


# --- Soda's own documents ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SODA, ids=lambda path: path.name)
def test_a_document_loses_nothing_either_way(path):
    assert_nothing_lost(load_contract(path))


def test_the_golden_document_is_written_as_it_is():
    path = CASES / "soda" / "orders.soda.yaml"
    # Other than by how a list and an empty setting look.
    written = parse_yaml(write(load_contract(path)), "x").data
    golden = parse_yaml(path.read_text(), "x").data
    golden["columns"][0]["checks"][0] = {"missing": {}}
    assert written == golden


def test_the_first_generation_is_written_in_its_own_words():
    path = CASES / "soda" / "customers.first-generation.soda.yaml"
    assert parse_yaml(write(load_contract(path)), "x").data == parse_yaml(path.read_text(), "x").data


# Pieces of documents: what may stand in the checks of a column of text, of a number, and of a table.
THRESHOLDS = [
    "",
    "must_be: 0",
    "must_be: 1",
    "must_not_be: 0",
    "must_be_less_than: 1",
    "must_be_greater_than: 2.5",
    "must_be_between: [0, 3]",
    "threshold: {must_be_between: {greater_than: 1, less_than_or_equal: 5}}",
    "threshold: {must_be_not_between: {greater_than_or_equal: 1, less_than_or_equal: 5}}",
    "threshold: {must_be_greater_than: 5, must_be_less_than: 1}",
    "threshold: {must_be_less_than: 0.5, level: warn}",
    "threshold: {metric: percent, must_be_less_than_or_equal: 1}",
    "threshold: {metric: percent}",
    "threshold: {must_be: 0, level: warn}",
    "threshold: {must_be: 1, additional: {must_be: 2, level: warn}}",
]
BESIDE = [
    "",
    "name: a name",
    "qualifier: x",
    "qualifier: '2'",
    "attributes: {team: a}",
    "filter: c > 'a'",
    "name: '${x}'",
]
OF_TEXT = [
    "missing: {%s}",
    "missing: {missing_values: ['N/A', ''], %s}",
    "missing: {missing_format: {regex: '^-+$', name: dashes}, %s}",
    "duplicate: {%s}",
    "invalid: {valid_values: [a, 'NO'], %s}",
    "invalid: {valid_values: [a, null], %s}",
    "invalid: {missing_values: [x], valid_values: [a], %s}",
    "invalid: {valid_format: {regex: '^a', name: pattern}, %s}",
    "invalid: {valid_format: {regex: '^a', name: b}, %s}",
    "invalid: {valid_format: {regex: '^a'}, %s}",
    "invalid: {valid_regex: '^b', valid_values: [b], %s}",
    "invalid: {invalid_format: {regex: '^a', name: b}, %s}",
    "invalid: {invalid_values: ['a', \"it's\"], %s}",
    "invalid: {valid_format: uuid, %s}",
    "invalid: {valid_length: 0, %s}",
    "invalid: {valid_min_length: 1, valid_max_length: 9, %s}",
    "invalid: {valid_reference_data: {dataset: wh/public/u, column: id}, %s}",
    "aggregate: {function: maxLength, %s}",
    "aggregate: {function: min_length, %s}",
    "group_by: {x: 1, %s}",
]
OF_NUMBER = [
    "missing: {%s}",
    "invalid: {valid_min: 0, valid_max: 9.5, %s}",
    "invalid: {valid_min: -1, %s}",
    "invalid: {valid_values: [1, 2], %s}",
    "aggregate: {function: avg, %s}",
    "aggregate: {function: sum, %s}",
    "aggregate: {function: stddev_pop, %s}",
]
OF_TABLE = [
    "row_count: {%s}",
    "duplicate: {columns: [c, n], %s}",
    "duplicate: {columns: [c], %s}",
    "freshness: {column: c, %s}",
    "freshness: {column: c, unit: day, threshold: {must_be_less_than: 2}}",
    "freshness: {column: c, unit: minute, threshold: {must_be_less_than_or_equal: 90}}",
    "schema: {}",
    "schema: {allow_other_column_order: true}",
    "schema: {allow_extra_columns: true, allow_other_column_order: true}",
    "schema: {allow_extra_columns: true, name: x}",
    "failed_rows: {expression: n < 0 AND c = 'x', %s}",
    "failed_rows: {expression: NOT (n < 0), %s}",
    "failed_rows: {expression: NOT (n < 0) OR (n > 2), %s}",
    "failed_rows: {query: SELECT * FROM wh.public.t WHERE n < 0, %s}",
    "metric: {expression: 'AVG(n)', %s}",
    "metric: {query: 'SELECT COUNT(*) FROM t', %s}",
]
FORMER_OF_TEXT = [
    "type: no_missing_values",
    "type: missing_count, missing_values: [x], %s",
    "type: missing_percent, %s",
    "type: no_invalid_values, valid_values: [a]",
    "type: no_invalid_values, valid_regex: '^a', valid_min_length: 2",
    "type: no_invalid_values, valid_format: email",
    "type: no_invalid_values, valid_format: integer",
    "type: invalid_count, valid_regex: '^a', %s",
    "type: invalid_percent, valid_values_column: {dataset: u, column: id}, %s",
    "type: no_duplicate_values, name: a name",
    "type: duplicate_percent, %s",
    "type: max_length, must_be_less_than: 9",
    "type: percentile, percentile: 0.5, must_be: 1",
]
FORMER_OF_TABLE = [
    "type: rows_exist",
    "type: row_count, %s",
    "type: freshness_in_days, must_be_less_than_or_equal_to: 2",
    "type: freshness_in_hours, column: c, must_be_less_than: 2",
    "type: no_duplicate_values, columns: [c, n]",
    "type: user_defined_sql, metric: m, query: 'SELECT COUNT(*) FROM {table_name}', must_be: 0",
    "type: failed_rows_sql_query, query: SELECT * FROM t",
]
FORMER_THRESHOLDS = [
    "must_be: 1",
    "must_be_less_than_or_equal_to: 3",
    "must_be_between: [0, 3]",
    "fail_when_less_than: 2",
]


def entries(checks: list[str], indent: str) -> str:
    return f"{indent}checks:\n" + "".join(f"{indent}- {check}\n" for check in checks) if checks else ""


@st.composite
def a_list(draw, kinds: list[str], thresholds: list[str], form: str) -> list[str]:
    found = []
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=4)):
        beside = [draw(st.sampled_from(thresholds)), draw(st.sampled_from(BESIDE))] if "%s" in kind else []
        settings_ = ", ".join(setting for setting in beside if setting)
        found.append(form % re.sub(r",? ?%s", f", {settings_}" if settings_ else "", kind).replace("{, ", "{"))
    return found


@st.composite
def a_document(draw) -> str:
    """A Soda contract of one generation, in any combination of its words; not all are in order."""
    former = draw(st.booleans())
    kinds = (FORMER_OF_TEXT, OF_NUMBER[:0], FORMER_OF_TABLE) if former else (OF_TEXT, OF_NUMBER, OF_TABLE)
    words = (FORMER_THRESHOLDS, "{%s}") if former else (THRESHOLDS, "%s")
    of_text, of_number, of_table = (draw(a_list(each, *words)) if each else [] for each in kinds)
    type_ = draw(st.sampled_from(["", "data_type: text\n", "data_type: VARCHAR\n  character_maximum_length: 9\n"]))
    config = draw(st.sampled_from(["", "", "missing_values: ['-']\n", "valid_values: [a, b]\n", "not_null: true\n"]))
    number = draw(
        st.sampled_from(["int", "NUMERIC\n  numeric_precision: 9\n  numeric_scale: 2", "INT64", "array<int>"])
    )
    return (
        "dataset: wh/public/t\n"
        + draw(st.sampled_from(["", "version: 2.10\n", "filter: n > 1\n", "owner: x\nsoda_agent: {a: 1}\n"]))
        + "columns:\n- name: c\n"
        + "".join(f"  {line.strip()}\n" for line in (type_ + config).splitlines())
        + entries(of_text, "  ")
        + f"- name: n\n  data_type: {number}\n"
        + draw(st.sampled_from(["", "  optional: true\n", "  description: ' a '\n"]))
        + entries(of_number, "  ")
        + entries(of_table, "")
    )


@settings(max_examples=60, deadline=None)
@given(a_document())
def test_any_document_that_is_read_loses_nothing(text):
    contract, findings = examine(text)
    if contract is not None and not errors(findings):
        assert_nothing_lost(contract)


# --- contracts of every dialect ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_every_dataset_of_every_dialect_is_written_and_read_without_an_error(path):
    for one in alone(load_contract(path)):
        text = write(one)
        again, findings = examine(text)
        assert errors(findings) == [], text
        assert again is not None
        assert again.dialect == "soda"
        assert again.datasets[0].name == one.datasets[0].table_name
        # What is written once is a Soda contract, and loses nothing any more.
        assert_nothing_lost(again)


NAMES = ["a", "NO", "1", "a b", "n.o", "ä"]
PROSE = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=8) | st.sampled_from(
    ["${x}", "", " "]
)
NUMBERS = st.integers(-(10**12), 10**12) | st.decimals(-(10**6), 10**6, places=3) | st.just(0) | st.just(1)
SCALARS = st.none() | st.booleans() | NUMBERS | PROSE | st.sampled_from(["2020-01-01", "NO", "1"])
SQL = st.sampled_from(["a > 0", "NOT (a > 0)", "x", "", "SELECT", "(", "SELECT COUNT(*) FROM ${table}", "DROP TABLE t"])


@st.composite
def thresholds(draw) -> Threshold:
    operator, unit = draw(st.sampled_from(Operator)), draw(st.sampled_from(Unit))
    high = draw(NUMBERS) if operator in (Operator.BETWEEN, Operator.NOT_BETWEEN) else None
    return Threshold(operator, draw(NUMBERS), high, unit)


# By the annotation of an attribute.
VALUES = {
    "str": PROSE | SQL | st.sampled_from(["uuid", "date", "avg", "quantile", "u.t", "^[a-z]+$", "(a", "P1D"]),
    "str | None": st.none() | PROSE,
    "str | int | None": st.none() | PROSE,
    "int": st.integers(-1, 2**31),
    "float": st.integers(0, 10**9) | st.floats(0, 10**6),
    "float | None": st.none() | st.floats(0, 1),
    "Number": NUMBERS,
    "Limit": NUMBERS | st.sampled_from(["2020-01-01", "2020-01-01T00:00:00Z", "12:00:00", "x"]),
    "Threshold": thresholds(),
    "tuple[str, ...]": st.lists(st.sampled_from(NAMES), max_size=3).map(tuple),
    "tuple[Scalar, ...]": st.lists(SCALARS, max_size=3).map(tuple),
    "tuple[Scalar, ...] | None": st.none() | st.lists(SCALARS, max_size=3).map(tuple),
}


@st.composite
def any_rule(draw) -> Rule:
    kind = draw(st.sampled_from(list(KINDS.values())))
    found = {attribute.name: draw(VALUES[str(attribute.type)]) for attribute in own_attributes(kind)}
    if draw(st.booleans()):
        found |= {
            "name": draw(st.none() | PROSE),
            "severity": draw(st.sampled_from(Severity)),
            "dimension": draw(st.none() | st.sampled_from(Dimension)),
            "description": draw(PROSE),
        }
    return kind(**found)


TYPES = st.sampled_from(
    [
        None,
        *("string", "varchar(3)", "boolean", "tinyint", "number", "decimal(9, 2)", "date", "timestamp", "time"),
        *("binary", "variant", "array<int>", "map<string, date>", "struct<`NO`: bigint, b: array<string>>", "struct"),
    ]
)
CARRIED = st.dictionaries(
    st.sampled_from(["checks", "filter", "schema", "generation", "optional", "missing_values", "data_type", "x"]),
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(PROSE, inner, max_size=2)),
    max_size=2,
)
CUSTOM = st.just({}) | st.dictionaries(st.just("$soda"), CARRIED | SCALARS, max_size=1)


@st.composite
def any_field(draw, name: str) -> Field:
    type_ = draw(TYPES)
    return Field(
        name=name,
        column_name=draw(st.none() | st.sampled_from(["a", "x", " "])),
        type=parse_type(type_) if type_ is not None else draw(st.sampled_from([None, DataType(Family.INTEGER)])),
        rules=draw(st.lists(any_rule(), max_size=5).map(tuple)),
        description=draw(PROSE),
        custom=draw(CUSTOM),
    ).completed()


@st.composite
def any_contract(draw) -> Contract:
    dataset = Dataset(
        name=draw(st.sampled_from(["t", "NO", "shop.orders", "a b"])),
        physical_name=draw(st.none() | st.just("t_v1")),
        fields=tuple(draw(any_field(name)) for name in draw(st.lists(st.sampled_from(NAMES), max_size=3))),
        rules=draw(st.lists(any_rule(), max_size=4).map(tuple)),
        modes=draw(st.none() | st.sampled_from(Mode).map(lambda mode: SchemaModes(columns=mode))),
        description=draw(PROSE),
        custom=draw(CUSTOM),
    )
    return Contract(
        id=draw(st.sampled_from(["t", "wh/t", "NO", "", " ", "urn:x:y"])),
        version=draw(st.sampled_from(["1.0.0", "3.10", "", "x", "0.0.0"])),
        description=draw(PROSE),
        owner=draw(st.none() | PROSE),
        servers=draw(st.just(()) | st.just((Server(name="s", type="postgres", settings={"schema": "p"}),))),
        datasets=(dataset,),
        custom=draw(CUSTOM),
    )


@settings(max_examples=60, deadline=None)
@given(any_contract())
def test_any_contract_is_written_the_same_each_time_and_read_without_an_error(contract):
    text = write(contract)
    again, findings = examine(text)
    assert errors(findings) == [], text
    assert again is not None
    assert again.datasets[0].name == contract.datasets[0].table_name
    assert write(contract) == text
    assert canonical(load_contract(write(again))) == canonical(again)


def test_every_attribute_of_every_rule_is_generated():
    assert {str(attribute.type) for kind in KINDS.values() for attribute in own_attributes(kind)} <= set(VALUES)


# --- what each rule becomes -------------------------------------------------------------------------------------------


def at_most(count: float, unit: Unit = Unit.ROWS) -> Threshold:
    return Threshold(Operator.LESS_OR_EQUAL, count, unit=unit)


def data(contract: Contract):
    return parse_yaml(write(contract), "x").data


OF_A_COLUMN = [
    (None, rules.Required(), {"missing": {}}),
    (None, rules.NullCount(threshold=NO_ROWS), {"missing": {}}),
    (
        None,
        rules.NullCount(threshold=at_most(0.5, Unit.PERCENT)),
        {"missing": {"threshold": {"metric": "percent", "must_be_less_than_or_equal": 0.5}}},
    ),
    (
        None,
        rules.Required(severity=Severity.INFO, name="filled"),
        {"missing": {"name": "filled", "threshold": {"must_be": 0, "level": "warn"}}},
    ),
    (
        "string",
        rules.MissingCount(missing_values=("", None), threshold=NO_ROWS),
        {"missing": {"missing_values": [""]}},
    ),
    (None, rules.MissingCount(missing_values=("-",), threshold=NO_ROWS), None),
    (None, rules.RequiredWhen(condition="c = 1"), {"missing": {"filter": "c = 1"}}),
    ("string", rules.Enum(values=("NO", "")), {"invalid": {"valid_values": ["NO", ""]}}),
    ("int", rules.Enum(values=(0,)), {"invalid": {"valid_values": [0]}}),
    (None, rules.Enum(values=()), None),
    ("string", rules.Pattern(pattern="^a$"), {"invalid": {"valid_format": {"regex": "^a$", "name": "pattern"}}}),
    ("string", rules.Pattern(pattern="(a"), None),
    ("string", rules.Format(format="ipv6"), {"invalid": {"valid_format": "ipv6 address"}}),
    ("string", rules.Format(format="hostname"), None),
    ("int", rules.Minimum(limit=0), {"invalid": {"valid_min": 0}}),
    ("date", rules.Maximum(limit="2020-01-01"), {"invalid": {"valid_max": "2020-01-01"}}),
    ("string", rules.MinLength(length=0), {"invalid": {"valid_min_length": 0}}),
    ("string", rules.MaxLength(length=0), {"invalid": {"valid_max_length": 0}}),
    (
        "string",
        rules.InvalidCount(valid_values=("a",), threshold=at_most(3)),
        {"invalid": {"valid_values": ["a"], "threshold": {"must_be_less_than_or_equal": 3}}},
    ),
    (None, rules.InvalidCount(threshold=at_most(3)), None),
    (None, rules.Unique(), {"duplicate": {}}),
    (None, rules.DuplicateCount(threshold=NO_ROWS), {"duplicate": {}}),
    (
        None,
        rules.DuplicateCount(threshold=Threshold(Operator.NOT_BETWEEN, 0, 1)),
        {
            "duplicate": {
                "threshold": {"must_be_not_between": {"greater_than_or_equal": 0, "less_than_or_equal": 1}},
            }
        },
    ),
    (
        None,
        rules.ForeignKey(fields=(), to="shop.customers", to_fields=("id",)),
        {"invalid": {"valid_reference_data": {"dataset": "shop/customers", "column": "id"}}},
    ),
    (
        "int",
        rules.Statistic(statistic="avg", threshold=Threshold(Operator.BETWEEN, 1, 2)),
        {
            "aggregate": {
                "function": "avg",
                "threshold": {"must_be_between": {"greater_than_or_equal": 1, "less_than_or_equal": 2}},
            }
        },
    ),
    ("array<int>", rules.UniqueItems(), None),
    (None, rules.NotEnforced(reason="prose"), None),
]


@pytest.mark.parametrize(("type_", "rule", "expected"), OF_A_COLUMN, ids=[repr(rule) for _, rule, _ in OF_A_COLUMN])
def test_a_rule_of_a_column(type_, rule, expected):
    column = data(build_contract(build_field("c", type_, rule)))["columns"][0]
    assert column.get("checks") == ([expected] if expected is not None else None)


UUID = "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$"

OF_THE_TABLE = [
    (rules.RowCount(threshold=at_most(0)), {"row_count": {"threshold": {"must_be_less_than_or_equal": 0}}}),
    (
        rules.Freshness(seconds=172_800, element="c"),
        {"freshness": {"column": "c_", "threshold": {"unit": "day", "must_be_less_than_or_equal": 2}}},
    ),
    (
        rules.Freshness(seconds=5_400.0),
        {"freshness": {"threshold": {"unit": "minute", "must_be_less_than_or_equal": 90}}},
    ),
    (rules.Unique(fields=("c", "n")), {"duplicate": {"columns": ["c_", "n"]}}),
    (
        rules.DuplicateCount(fields=("c", "n"), threshold=at_most(1, Unit.PERCENT)),
        {
            "duplicate": {
                "columns": ["c_", "n"],
                "threshold": {"metric": "percent", "must_be_less_than_or_equal": 1},
            }
        },
    ),
    (rules.Expression(sql="n > 0"), {"failed_rows": {"expression": "NOT (n > 0)"}}),
    (rules.Expression(sql="NOT (n > 0)"), {"failed_rows": {"expression": "n > 0"}}),
    (rules.Expression(sql="n >"), None),
    (
        rules.Query(sql="select count(*) from ${table} where n<0", threshold=NO_ROWS),
        {"metric": {"query": "SELECT COUNT(*) FROM t WHERE n < 0", "threshold": {"must_be": 0}}},
    ),
    (
        rules.Query(sql="SELECT COUNT(*) FROM (SELECT n FROM t) AS failed_rows", threshold=NO_ROWS),
        {"failed_rows": {"query": "SELECT n FROM t"}},
    ),
    (rules.Query(sql="DROP TABLE t", threshold=NO_ROWS), None),
    (rules.Query(sql="SELECT REFLECT('a', 'b')", threshold=NO_ROWS), None),
    (rules.Retention(seconds=5), None),
]


@pytest.mark.parametrize(("rule", "expected"), OF_THE_TABLE, ids=[repr(rule) for rule, _ in OF_THE_TABLE])
def test_a_rule_of_the_table(rule, expected):
    fields = build_field("c", "string", column_name="c_"), build_field("n", "int")
    checks = data(build_contract(*fields, rules=(rule,)))["checks"]
    assert checks == [{"schema": {"allow_other_column_order": True}}, *([expected] if expected is not None else [])]


def test_a_rule_of_a_column_that_is_one_of_the_table_to_soda():
    field = build_field(
        "n",
        "int",
        rules.ExclusiveMinimum(limit=0),
        rules.MultipleOf(divisor=5),
        rules.Statistic(statistic="quantile", quantile=0.5, threshold=at_most(9)),
        column_name="the n",
    )
    found = data(build_contract(field))
    assert "checks" not in found["columns"][0]
    assert found["checks"][1:] == [
        {"failed_rows": {"expression": "`the n` <= 0"}},
        {"failed_rows": {"qualifier": "2", "expression": "`the n` % 5 <> 0"}},
        {"metric": {"expression": "PERCENTILE(`the n`, 0.5)", "threshold": {"must_be_less_than_or_equal": 9}}},
    ]


def test_a_primary_key_is_a_key_whose_parts_are_never_missing():
    both = build_field("a", "int", rules.Required()), build_field("b", "int")
    found = data(build_contract(*both, rules=(rules.PrimaryKey(fields=("a", "b")),)))
    assert [column["checks"] for column in found["columns"]] == [[{"missing": {}}], [{"missing": {}}]]
    assert found["checks"][1:] == [{"duplicate": {"columns": ["a", "b"]}}]
    alone_ = data(build_contract(*both, rules=(rules.PrimaryKey(fields=("b",)),)))
    assert alone_["columns"][1]["checks"] == [{"missing": {}}, {"duplicate": {}}]


def test_rules_of_the_same_facts_are_one_check_and_others_of_a_type_are_told_apart():
    field = build_field(
        "c",
        "string",
        rules.Enum(values=("a",)),
        rules.Pattern(pattern="a"),
        rules.Pattern(pattern="b"),
        rules.Format(format="uuid"),
        rules.MaxLength(length=2, severity=Severity.WARNING),
    )
    assert data(build_contract(field))["columns"][0]["checks"] == [
        {"invalid": {"valid_values": ["a"], "valid_format": {"regex": "a", "name": "pattern"}}},
        {"invalid": {"qualifier": "2", "valid_format": {"regex": "b", "name": "pattern"}}},
        {"invalid": {"qualifier": "3", "valid_format": {"regex": UUID, "name": "uuid"}}},
        {"invalid": {"qualifier": "4", "valid_max_length": 2, "threshold": {"must_be": 0, "level": "warn"}}},
    ]


def test_bounds_of_a_count_are_one_range():
    low, high = Threshold(Operator.GREATER_THAN, 0), at_most(5)
    contract = build_contract(rules=(rules.RowCount(threshold=low), rules.RowCount(threshold=high)))
    assert data(contract)["checks"][1:] == [
        {"row_count": {"threshold": {"must_be_between": {"greater_than": 0, "less_than_or_equal": 5}}}}
    ]


def test_a_missing_value_stays_invalid_where_it_is_not_allowed():
    field = build_field(
        "c",
        "string",
        rules.MissingCount(missing_values=(None, "-"), threshold=at_most(3)),
        rules.Enum(values=("a",)),
    )
    again = load_contract(write(build_contract(field)))
    found = again.datasets[0].fields[0].rules
    assert [rule.kind for rule in found] == ["enum", "missing_count"]
    assert [rule.values for rule in found if isinstance(rule, rules.Enum)] == [("a",)]


def test_bounds_that_leave_no_value_are_not_both_written():
    field = build_field("c", "int", rules.Minimum(limit=5), rules.Maximum(limit=1))
    assert data(build_contract(field))["columns"][0]["checks"] == [{"invalid": {"valid_min": 5}}]


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (None, {"allow_other_column_order": True}),
        (SchemaModes(columns=Mode.FREEZE), {"allow_other_column_order": True}),
        (SchemaModes(columns=Mode.DISCARD_VALUE), {"allow_other_column_order": True}),
        (SchemaModes(columns=Mode.EVOLVE), {"allow_extra_columns": True, "allow_other_column_order": True}),
    ],
)
def test_the_mode_of_columns_is_a_check_of_the_schema(modes, expected):
    dataset = Dataset(name="t", fields=(build_field("c", "int"),), modes=modes)
    contract = Contract(id="i", version="1.0.0", datasets=(dataset,))
    assert data(contract)["checks"] == [{"schema": expected}]


def test_a_changed_contract_keeps_of_its_checks_what_still_is_promised():
    text = "dataset: t\ncolumns:\n- name: c\n  checks:\n  - missing: {attributes: {a: 1}}\n  - duplicate: {}\n"
    contract = load_contract(text)
    (field,) = contract.datasets[0].fields
    changed = field.model_copy(update={"rules": (rules.Required(), rules.MinLength(length=1))})
    dataset = contract.datasets[0].model_copy(update={"fields": (changed,)})
    assert data(contract.model_copy(update={"datasets": (dataset,)}))["columns"][0]["checks"] == [
        {"missing": {"attributes": {"a": 1}}},
        {"invalid": {"valid_min_length": 1}},
    ]


# --- names, types and what cannot be written --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id_", "name", "physical", "servers", "expected"),
    [
        ("wh/public/t", "t", None, (), "wh/public/t"),
        ("t", "t", None, (), "t"),
        ("shop", "t", None, (), "shop/t"),
        ("shop", "t", "t_v1", (), "shop/t_v1"),
        ("", "t", None, (), "t"),
        ("shop", "t", None, ({"database": "d", "schema": "s"},), "prod/d/s/t"),
        ("shop", "t", None, ({"path": "x"}, {"project": "p", "dataset": "s"}), "prod/p/s/t"),
    ],
)
def test_the_qualified_name(id_, name, physical, servers, expected):
    contract = Contract(
        id=id_,
        version="1.0.0",
        servers=tuple(Server(name="prod", type="x", settings=settings_) for settings_ in servers),
        datasets=(Dataset(name=name, physical_name=physical),),
    )
    assert data(contract)["dataset"] == expected


@pytest.mark.parametrize(
    "spelling",
    [
        *("string", "varchar(0)", "boolean", "tinyint", "smallint", "int", "bigint", "number", "float", "double"),
        *("decimal", "decimal(10, 2)", "date", "timestamp", "timestamp with time zone", "timestamp without time zone"),
        *("time", "binary", "variant", "array", "map", "struct", "array<map<string, timestamp_ntz>>"),
        "struct<`a b`: int, c: struct<d: timestamp>>",
    ],
)
def test_a_type_is_spelled_so_that_it_is_read_again(spelling):
    type_ = parse_type(spelling)
    assert meant(spelled(type_)) == type_
    assert whole_type(Field(name="a", type=type_).completed()) == type_


def test_a_type_that_no_spelling_means_is_left_out():
    assert spelled(DataType(Family.INTEGER)) == {}
    assert spelled(DataType(Family.ARRAY, item=DataType(Family.INTEGER))) == {"data_type": "array"}
    assert spelled(None) == {}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a > 0", "NOT (a > 0)"),
        ("NOT (a > 0)", "a > 0"),
        ("NOT (a > 0) OR (b)", "NOT (NOT (a > 0) OR (b))"),
        ("NOT (a = ')')", "a = ')'"),
        ("NOT ()", "NOT (NOT ())"),
        ("not (a)", "NOT (not (a))"),
    ],
)
def test_the_opposite_of_a_condition(condition, expected):
    assert opposite(condition) == expected


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        (Contract(id="i", version="1"), "contract 'i' has no dataset, .*Declare a dataset"),
        (
            Contract(id="i", version="1", datasets=(Dataset(name="a"), Dataset(name="b"))),
            "contract 'i' has 2 datasets, .*Choose one with --dataset: a, b",
        ),
        (build_contract(dataset="a/b"), "Soda cannot write the table name 'a/b'. Rename the table"),
        (build_contract(dataset="${a}"), "Soda cannot write the table name"),
    ],
)
def test_what_cannot_be_written_is_told_with_the_way_out(contract, message):
    with pytest.raises(DataboxError, match=message):
        write(contract)


def test_what_was_carried_and_cannot_be_read_is_no_reason_for_an_unreadable_document():
    contract = build_contract(build_field("c", "int", rules.Required()), custom={"$soda": {"variables": "${"}})
    broken = contract.datasets[0].model_copy(update={"custom": {"$soda": {"filter": ["x"], "checks": 1}}})
    text = write(contract.model_copy(update={"datasets": (broken,)}))
    assert load_contract(text).datasets[0].fields[0].required
    assert "filter" not in text


def test_a_contract_of_nothing_is_one_of_soda_all_the_same():
    text = write(build_contract())
    assert to_yaml({"dataset": "test/t", "version": "1.0.0", "columns": []}) in text
    assert load_contract(text).datasets[0].fields == ()
