"""Soda contracts of both generations: what becomes which rule, and what every mistake is told."""

from collections.abc import Iterable
from dataclasses import fields as facts_of
from pathlib import Path

import pytest

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import ContractError, Finding, Level
from databox_contracts.formats import detect, load_contract, read
from databox_contracts.formats.soda import DOCUMENT, NO_VERSION
from databox_contracts.formats.soda_sql import read_condition, read_query
from databox_contracts.formats.sodacl_valid import FORMATS
from databox_contracts.model import Mode
from databox_contracts.plan import build_plan
from databox_contracts.rules import NO_ROWS, Operator, Rule, Severity, Threshold, Unit

CASES = Path(__file__).parents[1] / "cases" / "soda"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "soda"

HEAD = 'dataset: wh/public/t\nversion: "1.0.0"\n'


def indented(block: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in block.splitlines())


def of_column(block: str, type_: str = "text") -> str:
    """A contract whose only column `c` has the checks of `block`, from line 7, column 5 on."""
    return f"{HEAD}columns:\n- name: c\n  data_type: {type_}\n  checks:\n" + indented(block, 2)


def of_table(block: str) -> str:
    """A contract of the columns `a` and `b` with the checks of `block`, from line 9, column 1 on."""
    columns = "columns:\n- name: a\n  data_type: text\n- name: b\n  data_type: int\n"
    return f"{HEAD}{columns}checks:\n{block}\n"


def facts(rule: Rule) -> dict[str, object]:
    """A rule's kind and its own facts, without where it stands and what is as always."""
    usual = {fact.name: fact.default for fact in facts_of(Rule)}
    found = {fact.name: getattr(rule, fact.name) for fact in facts_of(rule) if fact.name not in ("position", "custom")}
    return {"kind": rule.kind} | {name: value for name, value in found.items() if value != usual.get(name, object())}


def own(findings: Iterable[Finding]) -> list[Finding]:
    """Without the notes on rules that are only carried, which are the same in every dialect (`test_remarks`)."""
    return [finding for finding in findings if "this version does not evaluate" not in finding.message]


def findings(text: str) -> list[str]:
    """Findings as `line:column: level: message`."""
    return [f"{f.place.removeprefix('<text>:')}: {f.level}: {f.message}" for f in own(read(text)[1])]


def rules_of(text: str) -> list[dict[str, object]]:
    dataset = load_contract(text).datasets[0]
    return [facts(rule) for field in dataset.fields for rule in field.rules] + [facts(rule) for rule in dataset.rules]


def rows(count: float, operator: Operator = Operator.MUST_BE, unit: Unit = Unit.ROWS) -> Threshold:
    return Threshold(operator, count, unit=unit)


# --- whole documents --------------------------------------------------------------------------------------------------


def test_the_golden_document_loads_without_a_finding():
    contract = load_contract(CASES / "orders.soda.yaml")
    assert own(contract.findings) == []
    assert (contract.id, contract.version, contract.dialect) == ("warehouse/shop/public/orders", "1.2.0", "soda")
    (dataset,) = contract.datasets
    assert (dataset.name, dataset.description) == ("orders", "One row for each order.")
    assert dataset.modes is not None
    assert dataset.modes.columns is Mode.FREEZE
    assert [str(field.type) for field in dataset.fields] == [
        "string(36)",
        "string",
        "decimal(10, 2)",
        "string",
        "timestamp",
    ]
    average = {"kind": "statistic", "statistic": "avg", "severity": Severity.WARNING, "quantile": None}
    assert [facts(rule) for field in dataset.fields for rule in field.rules] == [
        {"kind": "required"},
        {"kind": "unique", "name": "one row for each order", "fields": ()},
        {"kind": "missing_count", "missing_values": (None, "N/A"), "threshold": NO_ROWS},
        {"kind": "enum", "values": ("new", "paid", "NO", "N/A")},
        {"kind": "null_count", "threshold": rows(5, Operator.LESS_THAN, Unit.PERCENT)},
        {"kind": "minimum", "limit": 0},
        {"kind": "maximum", "limit": 99999},
        {**average, "threshold": rows(1, Operator.GREATER_THAN)},
        {**average, "threshold": rows(500, Operator.LESS_OR_EQUAL)},
        {
            "kind": "invalid_count",
            "valid_values": None,
            "pattern": "^[A-Z]{2}$",
            "threshold": rows(10, Operator.LESS_THAN),
        },
    ]
    assert [facts(rule) for rule in dataset.rules] == [
        {"kind": "row_count", "threshold": Threshold(Operator.BETWEEN, 1, 1_000_000)},
        {"kind": "freshness", "seconds": 172_800.0, "element": "created"},
        {"kind": "unique", "fields": ("country", "created")},
        {"kind": "expression", "sql": "NOT (amount < 0 AND status = 'paid')"},
    ]
    assert build_plan(contract, dataset).checks[0].id == "orders.order_id.present"


def test_the_first_generation_means_the_same():
    contract = load_contract(CASES / "customers.first-generation.soda.yaml")
    assert [str(finding.message) for finding in own(contract.findings)] == [
        "the contract has no version and counts as 0.0.0"
    ]
    assert (contract.id, contract.version, contract.owner) == ("CUSTOMERS", NO_VERSION, "customers@example.com")
    assert contract.custom == {DOCUMENT: {"data_source": "warehouse", "generation": 1}}
    (dataset,) = contract.datasets
    assert dataset.modes is not None
    assert dataset.modes.columns is Mode.FREEZE
    assert [facts(rule) for field in dataset.fields for rule in field.rules] == [
        {"kind": "required"},
        {"kind": "unique", "fields": ()},
        {"kind": "null_count", "threshold": rows(5, Operator.LESS_OR_EQUAL, Unit.PERCENT)},
        {"kind": "enum", "values": ("S", "M", "L")},
        {"kind": "invalid_count", "valid_values": None, "pattern": "^[SML]$", "threshold": rows(4, Operator.LESS_THAN)},
        {"kind": "statistic", "statistic": "avg", "threshold": Threshold(Operator.BETWEEN, 10, 20), "quantile": None},
    ]
    assert [facts(rule) for rule in dataset.rules] == [
        {"kind": "row_count", "threshold": rows(0, Operator.GREATER_THAN)},
        {"kind": "freshness", "seconds": 21_600.0, "element": None},
        {"kind": "unique", "fields": ("id", "size")},
        {
            "kind": "query",
            "sql": "SELECT COUNT(*) FROM CUSTOMERS WHERE size = 'L'",
            "threshold": Threshold(Operator.BETWEEN, 0, 5),
        },
    ]


def documents() -> list[Path]:
    return sorted(CORPUS.rglob("*.yaml")) if CORPUS.is_dir() else []


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")
def test_the_corpus_is_whole():
    assert len(documents()) == 11


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.stem)
def test_a_document_of_the_corpus_lacks_a_version_and_types_and_nothing_else(path):
    contract = load_contract(path)
    assert [finding.message for finding in own(contract.findings)] == [
        "the contract has no version and counts as 0.0.0",
        "no column has a data_type, so their types are not checked",
    ]
    (dataset,) = contract.datasets
    assert contract.id == f"databox/{path.parent.name}/{path.stem}"
    assert dataset.name == path.stem
    assert not any(isinstance(rule, rules.NotEnforced) for field in dataset.fields for rule in field.rules)
    # None of them has a schema check, and the tables have columns of the loader that they do not list.
    assert dataset.modes is not None
    assert dataset.modes.columns is Mode.EVOLVE


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")
def test_an_allowed_value_of_the_corpus_keeps_its_kind():
    dataset = load_contract(CORPUS / "rufous_public" / "avonet_species_traits.yaml").datasets[0]
    allowed = {f.name: rule.values for f in dataset.fields for rule in f.rules if isinstance(rule, rules.Enum)}
    assert allowed["habitat_density_code"] == (1, 2, 3)
    assert allowed["source_file_id"] == (34480856,)
    assert allowed["dataset_doi"] == ("10.6084/m9.figshare.16586228.v7",)


@pytest.mark.parametrize(
    ("data", "dialect"),
    [
        ({"dataset": "a", "columns": []}, "soda"),
        ({"dataset": "a", "checks": []}, "soda"),
        ({"dataset": "a"}, None),
        ({"columns": []}, None),
        ({"kind": "DataContract", "dataset": "a", "columns": []}, "odcs"),
    ],
)
def test_the_dialect(data, dialect):
    found = detect(data)
    assert (found.name if found is not None else None) == dialect


# --- one check each ---------------------------------------------------------------------------------------------------

COLUMN_CHECKS = [
    ("- missing:", [{"kind": "required"}]),
    ("- missing: {must_be: 0}", [{"kind": "required"}]),
    ("- missing: {threshold: {must_be: 0, level: warn}}", [{"kind": "required", "severity": Severity.WARNING}]),
    ("- missing: {must_be: 1}", [{"kind": "null_count", "threshold": rows(1)}]),
    (
        "- missing: {missing_values: ['']}",
        [{"kind": "missing_count", "missing_values": (None, ""), "threshold": NO_ROWS}],
    ),
    (
        "- missing: {missing_format: {regex: '^-+$', name: dashes}}",
        [{"kind": "required"}, {"kind": "pattern", "pattern": r"^(?![\s\S]*(?:^-+$))"}],
    ),
    ("- missing: {filter: \"c = 'x'\"}", [{"kind": "required_when", "condition": "c = 'x'"}]),
    ("- missing: {filter: '\"c\" = 1'}", [{"kind": "required_when", "condition": "`c` = 1"}]),
    ("- duplicate:", [{"kind": "unique", "fields": ()}]),
    (
        "- duplicate: {threshold: {metric: percent, must_be_less_than: 1}}",
        [{"kind": "duplicate_count", "fields": (), "threshold": rows(1, Operator.LESS_THAN, Unit.PERCENT)}],
    ),
    ("- invalid: {valid_values: ['']}", [{"kind": "enum", "values": ("",)}]),
    ("- invalid: {valid_length: 0}", [{"kind": "min_length", "length": 0}, {"kind": "max_length", "length": 0}]),
    ('- invalid: {invalid_values: ["it\'s"]}', [{"kind": "expression", "sql": "c NOT IN ('it\\'s')"}]),
    (
        "- invalid: {valid_reference_data: {dataset: wh/public/u, column: id}}",
        [{"kind": "foreign_key", "fields": ("c",), "to": "wh/public/u.u", "to_fields": ("id",)}],
    ),
    (
        "- invalid: {missing_values: [x], valid_values: [a]}",
        [{"kind": "enum", "values": ("a", "x")}],
    ),
    (
        "- aggregate: {function: maxLength, threshold: {must_be_less_than_or_equal: 5}}",
        [{"kind": "max_length", "length": 5}],
    ),
    (
        "- aggregate: {function: maxLength, threshold: {must_be_less_than: 4.5}}",
        [{"kind": "max_length", "length": 4}],
    ),
    (
        "- aggregate: {function: minLength, threshold: {must_be_greater_than: -3}}",
        [{"kind": "min_length", "length": 0}],
    ),
    ("- type: no_invalid_values\n  valid_format: uuid", [{"kind": "format", "format": "uuid"}]),
    (
        f"- invalid: {{valid_format: {{regex: '{FORMATS['uuid']}', name: uuid}}}}",
        [{"kind": "format", "format": "uuid"}],
    ),
    ("- invalid: {valid_format: {regex: '^a$', name: uuid}}", [{"kind": "pattern", "pattern": "^a$"}]),
    ("- type: no_invalid_values\n  valid_format: integer", [{"kind": "pattern", "pattern": "^[-+]?[0-9]+$"}]),
    (
        "- type: missing_count\n  fail_when_not_between: [0, 3]",
        [{"kind": "null_count", "threshold": Threshold(Operator.BETWEEN, 0, 3)}],
    ),
]


@pytest.mark.parametrize(("block", "expected"), COLUMN_CHECKS, ids=[block for block, _ in COLUMN_CHECKS])
def test_a_check_of_a_column(block, expected):
    assert rules_of(of_column(block)) == expected


TABLE_CHECKS = [
    ("- row_count:", [{"kind": "row_count", "threshold": rows(0, Operator.GREATER_THAN)}]),
    ("- row_count: {must_be: 0}", [{"kind": "row_count", "threshold": rows(0)}]),
    (
        "- row_count: {threshold: {must_be_greater_than: 1, must_be_less_than_or_equal: 5}}",
        [
            {"kind": "row_count", "threshold": rows(1, Operator.GREATER_THAN)},
            {"kind": "row_count", "threshold": rows(5, Operator.LESS_OR_EQUAL)},
        ],
    ),
    (
        "- row_count: {threshold: {must_be_less_than: 1, must_be_greater_than: 5}}",
        [{"kind": "row_count", "threshold": Threshold(Operator.NOT_BETWEEN, 1, 5)}],
    ),
    (
        "- row_count: {threshold: {must_be: 1, additional: {must_be: 2, level: warn}}}",
        [
            {"kind": "row_count", "threshold": rows(1)},
            {"kind": "row_count", "threshold": rows(2), "severity": Severity.WARNING},
        ],
    ),
    (
        "- freshness: {column: a, unit: minute, threshold: {must_be_less_than_or_equal: 30}}",
        [{"kind": "freshness", "seconds": 1800.0, "element": "a"}],
    ),
    ("- duplicate: {columns: [a, b]}", [{"kind": "unique", "fields": ("a", "b")}]),
    ("- failed_rows: {expression: '\"b\" < 0'}", [{"kind": "expression", "sql": "NOT (`b` < 0)"}]),
    (
        '- failed_rows: {query: \'SELECT * FROM "wh"."public"."t" WHERE b < 0\'}',
        [
            {
                "kind": "query",
                "sql": "SELECT COUNT(*) FROM (SELECT * FROM `t` WHERE b < 0) AS failed_rows",
                "threshold": NO_ROWS,
            }
        ],
    ),
    (
        "- metric: {expression: AVG(b), threshold: {must_be_greater_than: 0}}",
        [{"kind": "query", "sql": "SELECT AVG(b) FROM t", "threshold": rows(0, Operator.GREATER_THAN)}],
    ),
    ("- failed_rows: {expression: NOT (b >= 0)}", [{"kind": "expression", "sql": "b >= 0"}]),
    (
        "- failed_rows: {expression: NOT (b >= 0) OR (b > 9)}",
        [{"kind": "expression", "sql": "NOT (NOT (b >= 0) OR (b > 9))"}],
    ),
]


@pytest.mark.parametrize(("block", "expected"), TABLE_CHECKS, ids=[block for block, _ in TABLE_CHECKS])
def test_a_check_of_the_table(block, expected):
    assert rules_of(of_table(block)) == expected


@pytest.mark.parametrize(
    ("block", "mode"),
    [("- schema:", Mode.FREEZE), ("- schema: {allow_extra_columns: true}", Mode.EVOLVE), ("- row_count:", Mode.EVOLVE)],
)
def test_the_columns_mode_is_what_the_schema_check_says(block, mode):
    modes = load_contract(of_table(block)).datasets[0].modes
    assert modes is not None
    assert modes.columns is mode


NOT_ENFORCED = [
    (of_table("- group_by: {x: 1}"), "the check 'group_by', which is Soda's own"),
    (of_table("- row_count: {filter: 'b = 1'}"), "a check of some of the rows only"),
    (of_table("- row_count: {must_be: '${var.X}'}"), "a check with a variable, which only Soda fills in"),
    (
        of_table("- failed_rows: {expression: b < 0, threshold: {metric: percent, must_be: 1}}"),
        "failed rows in percent",
    ),
    (of_table("- freshness: {column: a, threshold: {must_be_greater_than: 2}}"), "an age that is > 2 hours"),
    (of_column("- missing: {filter: DROP TABLE t}"), "a check of some of the rows only"),
    (of_column("- missing: {filter: \"REFLECT('a', 'b') = 1\"}"), "a check of some of the rows only"),
    (of_table("- metric: {query: SELECT b FROM t, threshold: {must_be: 1}}"), "a query that may return many rows"),
    (of_table("- failed_rows: {query: \"SELECT REFLECT('a', 'b') AS c\"}"), "a query that calls reflect"),
    (of_table("- failed_rows: {expression: \"REFLECT('a', 'b') = 1\"}"), "a query that calls reflect"),
    (
        of_column("- aggregate: {function: maxLength, threshold: {must_be_less_than: 0}}"),
        "a text of -1 characters",
    ),
    (of_column("- aggregate: {function: avgLength, threshold: {must_be: 2}}"), "the aggregate 'avgLength' of a column"),
    (of_column("- duplicate: {missing_values: ['-']}"), "duplicates among valid values only (missing_values)"),
    (
        of_column("- invalid: {valid_min_length: 2, threshold: {must_be_less_than: 3}}"),
        "a count of invalid values by valid_min_length",
    ),
    (
        of_column("- type: no_invalid_values\n  valid_format: phone number"),
        "the format 'phone number', which is Soda's own",
    ),
]


@pytest.mark.parametrize(("text", "reason"), NOT_ENFORCED, ids=[reason for _, reason in NOT_ENFORCED])
def test_what_is_not_enforced_is_a_skipped_rule_and_a_warning_and_carried(text, reason):
    contract = load_contract(text)
    dataset = contract.datasets[0]
    found = [rule for field in dataset.fields for rule in field.rules] + list(dataset.rules)
    assert [rule.reason for rule in found if isinstance(rule, rules.NotEnforced)] == [reason]
    assert [f.message for f in own(contract.findings) if f.level is Level.WARNING] == [f"not enforced: {reason}"]
    carriers = [dataset.custom, *(field.custom for field in dataset.fields)]
    assert any("checks" in custom.get(DOCUMENT, {}) for custom in carriers)


# What `custom` has to carry, so that the document can be written again.
CARRIED = [
    (of_column("- missing: {qualifier: '1'}"), "checks"),
    (of_column("- missing: {attributes: {a: 1}}"), "checks"),
    (of_column("- invalid: {valid_format: {regex: a, name: b}}"), "checks"),
    (of_column("- missing:", "VARCHAR"), "data_type"),
    (of_column("- missing:", "timestamp\n  datetime_precision: 3"), "datetime_precision"),
    (HEAD + "columns: [{name: c, not_null: true}]\n", "not_null"),
    (HEAD + "columns: [{name: c, character_maximum_length: 3}]\n", "character_maximum_length"),
]


@pytest.mark.parametrize(("text", "key"), CARRIED)
def test_what_the_model_has_no_place_for_is_carried(text, key):
    (field,) = load_contract(text).datasets[0].fields
    assert key in field.custom[DOCUMENT]


NOT_CARRIED = [
    of_column("- missing: {}\n- missing: {qualifier: '2', must_be: 1}", "string"),
    of_column("- invalid: {valid_format: {regex: a, name: pattern}}", "string"),
    of_column("- invalid: {valid_regex: a}", "string"),
    of_column("- invalid: {valid_format: uuid}", "string"),
]


@pytest.mark.parametrize("text", NOT_CARRIED)
def test_what_the_rules_say_is_not_carried(text):
    assert load_contract(text).datasets[0].fields[0].custom == {}


@pytest.mark.parametrize(
    ("checks", "carried"),
    [
        ("", {"schema_check": False}),
        ("- schema: {allow_other_column_order: true}", {}),
        ("- type: rows_exist", {}),
        ("- schema: {}", {"checks": [{"schema": {}}]}),
        ("- freshness: {column: b, threshold: {must_be_less_than: 2}}", None),
    ],
)
def test_what_soda_checks_of_the_schema_is_carried(checks, carried):
    columns = "columns:\n- name: b\n  data_type: timestamp\n"
    custom = load_contract(f"{HEAD}{columns}checks:\n{checks}\n").datasets[0].custom.get(DOCUMENT, {})
    assert custom == carried if carried is not None else set(custom) == {"checks", "schema_check"}


def test_a_filter_of_the_dataset_holds_for_all_its_checks():
    text = of_column("- missing:\n- duplicate:") + "filter: c > 'a'\n"
    assert [rule["kind"] for rule in rules_of(text)] == ["required_when", "not_enforced"]
    assert load_contract(text).datasets[0].custom == {DOCUMENT: {"filter": "c > 'a'", "schema_check": False}}


# --- mistakes ---------------------------------------------------------------------------------------------------------

MISTAKES = [
    (HEAD + "columns: []\ndataset2: x\n", ["4:1: warning: the unknown key 'dataset2' is ignored"]),
    ("dataset: ''\ncolumns: []\n", ["1:10: error: the contract has no 'dataset'"]),
    ("dataset: wh/..\ncolumns: []\n", ["1:10: error: the name '..' may not hold .."]),
    (of_column("- mising:"), ["7:5: error: unknown type of check 'mising'"]),
    (of_column("- missing: {must_be: x}"), ["7:24: error: 'must_be' must be a number, not the text 'x'"]),
    (of_column("- missing: {must_be_between: [5, 1]}"), ["7:32: error: 'must_be_between' has its bounds reversed"]),
    (of_column("- missing: {must_be_between: [5]}"), ["7:32: error: 'must_be_between' needs two numbers"]),
    (of_column("- missing: {threshold: {level: bad}}"), ["7:34: error: unknown level 'bad'"]),
    (of_column("- missing: {threshold: {metric: x}}"), ["7:35: error: unknown metric 'x'"]),
    (of_column("- missing: {qualifer: a}"), ["7:15: warning: the unknown key 'qualifer' is ignored"]),
    (of_column("- invalid:"), ["7:13: error: the check does not say what is valid"]),
    (of_column("- invalid: {valid_values: []}"), ["7:29: error: 'valid_values' lists no value"]),
    (
        of_column("- invalid: {valid_values: [x]}", "int"),
        ["7:30: error: the text 'x' is not a value of an integer field"],
    ),
    (of_column("- invalid: {valid_format: {regex: '(', name: x}}"), ["7:37: error: the pattern '('"]),
    (of_column("- missing:", "strng(x)"), ["5:14: error: unknown data_type 'strng(x)'"]),
    (
        of_column("- row_count: {threshold: {metric: percent, must_be: 1}}"),
        ["7:16: error: a row count has no percentage"],
    ),
    (of_table("- missing:"), ["9:11: error: this check is about one column"]),
    (of_table("- duplicate: {columns: [a, bb]}"), ["9:28: warning: 'bb' is no column of the contract"]),
    (of_table("- duplicate: {}"), ["9:14: error: a duplicate check of a dataset has no columns"]),
    (
        of_table("- failed_rows: {query: DROP TABLE t}"),
        ["9:16: error: this is not SQL that can be read and only reads"],
    ),
    (of_table("- failed_rows: {}"), ["9:16: error: a failed_rows check has an expression or a query"]),
    (
        of_table("- freshness: {column: a, threshold: {unit: year, must_be_less_than: 1}}"),
        ["9:3: warning: the freshness rule is about 'a'", "9:44: error: unknown unit 'year'"],
    ),
    (of_table("- schema:"), ["9:3: note: the order of the columns is not enforced"]),
    (
        HEAD + "columns:\n- name: a\n  data_type: int\n- name: a\n  data_type: int\n",
        ["6:9: error: the column 'a' stands here again"],
    ),
    (
        HEAD + "columns:\n- name: a\n  data_type: int\n  optional: true\n",
        ["6:13: warning: the column 'a' is optional, and is checked as if it were not"],
    ),
    (
        HEAD + "columns:\n- name: a\n  data_type: text\n  valid_values: [x]\n",
        ["6:3: note: 'valid_values' is not enforced: no check of the column uses it"],
    ),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES, ids=[expected[0] for _, expected in MISTAKES])
def test_a_mistake_is_told_with_its_place(text, expected):
    found = [finding for finding in findings(text) if "no version" not in finding and "declares no" not in finding]
    assert len(found) == len(expected), found
    for finding, beginning in zip(found, expected, strict=True):
        assert finding.startswith(beginning)


def test_an_error_keeps_the_contract_from_loading():
    with pytest.raises(ContractError, match="did you mean 'missing'"):
        load_contract(of_column("- mising:"))


def test_types_of_warehouses_are_understood():
    for spelling, family in (("INT64", Family.INTEGER), ("timestamp without time zone", Family.TIMESTAMP)):
        found = load_contract(of_column("- missing:", spelling)).datasets[0].fields[0].type
        assert isinstance(found, DataType)
        assert found.family is family


# --- SQL --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a > 1", "a > 1"),
        ('"a" > 1', "`a` > 1"),
        ('a = "x"', 'a = "x"'),
        ("a > 1 -- not b\nAND a < 5", "a > 1 AND a < 5"),
        ("SELECT 1", None),
        ("a > 1; DROP TABLE t", None),
        ("a >", None),
        ("DROP TABLE t", None),
        ("DELETE FROM t", None),
        ("(SELECT 1)", None),
        ("a IN (1) AND NOT b IS NULL", "a IN (1) AND NOT b IS NULL"),
        ("EXISTS(SELECT 1)", "EXISTS(SELECT 1)"),
        ("f(a)", "f(a)"),
        ("a", "a"),
        ("", None),
        ("(" * 5000, None),
    ],
)
def test_a_condition(sql, expected):
    assert read_condition(sql, ["a"]) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) FROM wh.public.t", "SELECT COUNT(*) FROM t"),
        ("SELECT COUNT(*) FROM {table_name} JOIN wh.u ON t.a = u.a", "SELECT COUNT(*) FROM t JOIN wh.u ON t.a = u.a"),
        ("DELETE FROM t", None),
        ("SELECT 1; SELECT 2", None),
        ("a > 1", None),
    ],
)
def test_a_query(sql, expected):
    assert read_query(sql, ["a"], "t") == expected
