"""The Data Contract Specification: what becomes which rule, and what every mistake is told."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import Finding, Level
from databox_contracts.formats import detect, load_contract, read
from databox_contracts.formats.datacontract_fields import DOCUMENT
from databox_contracts.model import Mode, SchemaModes
from databox_contracts.plan import build_plan
from databox_contracts.rules import NO_ROWS, Operator, Severity, Threshold, Unit

CASES = Path(__file__).parents[1] / "cases" / "datacontract"

HEAD = """\
dataContractSpecification: 1.2.0
id: a
info:
  title: A
  version: 1.0.0
"""

FIELD = HEAD + "models:\n  t:\n    fields:\n      c:\n"


def indented(block: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in block.splitlines())


def of_field(block: str, after: str = "") -> str:
    """A contract whose only field `c` stands in line 9 and has `block` from line 10, column 9 on."""
    return FIELD + indented(block, 8) + after


def of_model(block: str) -> str:
    """A contract whose only model `t` stands in line 7, has a field `c`, and `block` from line 10, column 5 on."""
    return HEAD + "models:\n  t:\n    fields:\n      c: {type: string}\n" + indented(block, 4)


def field(block: str, after: str = ""):
    return load_contract(of_field(block, after)).datasets[0].fields[0]


def facts(rule: rules.Rule) -> tuple[type, dict[str, object]]:
    return type(rule), {name: getattr(rule, name) for name in type(rule).__slots__}


def own(findings: Iterable[Finding]) -> list[Finding]:
    """Without the notes on rules that are only carried, which are the same in every dialect (`test_remarks`)."""
    return [finding for finding in findings if "this version does not evaluate" not in finding.message]


def found(text: str) -> list[str]:
    """Findings as `line:column: level: message`."""
    return [f"{f.place.removeprefix('<text>:')}: {f.level}: {f.message}" for f in own(read(text)[1])]


# --- whole documents --------------------------------------------------------------------------------------------------


def test_the_sample_of_0_9_3_loads_and_lists_what_it_cannot_hold():
    contract = load_contract(CASES / "user-events.datacontract.yaml")
    assert (contract.id, contract.name, contract.version, contract.status) == (
        "urn:datacontract:user-events:v2",
        "User Events",
        "2.1.0",
        "active",
    )
    assert (contract.owner, contract.notice_period, contract.dialect) == ("platform-data-team", "P30D", "datacontract")
    assert contract.description.endswith("Usage: Features and reports.\n\nLimitations: Not for decisions in real time.")
    assert [(server.name, server.type) for server in contract.servers] == [
        ("production", "kafka"),
        ("staging", "kafka"),
    ]
    assert contract.servers[1].settings["topic"] == "user.events.v2.staging"
    assert contract.custom[DOCUMENT]["info"]["contact"]["slackChannel"] == "#platform-data-oncall"
    assert contract.custom[DOCUMENT]["terms"]["billing"] == "Internal"
    assert [(finding.level, finding.position.line) for finding in own(contract.findings)] == [
        (Level.NOTE, 72),
        (Level.WARNING, 103),
        (Level.WARNING, 112),
    ]


def test_the_rules_of_the_sample():
    contract = load_contract(CASES / "user-events.datacontract.yaml")
    (events,) = contract.datasets
    plan = build_plan(contract, events)
    assert [
        check.id.removeprefix("user_event.") for check in plan.checks if not check.id.endswith((".type", ".present"))
    ] == [
        "event_id.format",
        "event_id.required",
        "event_id.unique",
        "event_id.duplicate_count",
        "user_id.format",
        "user_id.required",
        "user_id.null_count",
        "event_type.required",
        "event_type.enum",
        "event_type.null_count",
        "event_type.invalid_count",
        "event_timestamp.required",
        "undeclared",
        "row_count",
        "freshness",
        "not_enforced",
        "retention",
        "freshness_2",
        "not_enforced_2",
    ]
    assert [facts(rule) for rule in events.rules if not isinstance(rule, rules.NotEnforced)] == [
        (rules.RowCount, {"threshold": Threshold(Operator.GREATER_THAN, 10000)}),
        (rules.Freshness, {"seconds": 600, "element": "event_timestamp"}),
        (rules.Retention, {"seconds": 90 * 86400, "element": None}),
        (rules.Freshness, {"seconds": 600, "element": None}),
    ]
    assert events.rules[0].name == "Enough events"
    assert events.fields[1].pii is True
    assert events.fields[0].examples == ("550e8400-e29b-41d4-a716-446655440000",)


def test_the_golden_document_of_1_2_loads_without_a_finding():
    contract = load_contract(CASES / "orders.datacontract.yaml")
    assert own(contract.findings) == []
    orders, regions = contract.datasets
    assert orders.modes == SchemaModes(columns=Mode.EVOLVE)
    assert (orders.business_name, orders.description) == ("Orders of the shop", "One row for each order.")
    assert [facts(rule) for rule in orders.rules] == [
        (rules.PrimaryKey, {"fields": ("order_id",)}),
        (rules.ForeignKey, {"fields": ("customer.region_id",), "to": "regions", "to_fields": ("id",)}),
        (rules.RowCount, {"threshold": Threshold(Operator.GREATER_THAN, 0)}),
        (
            rules.Query,
            {
                "sql": "SELECT COUNT(*) FROM ${table} WHERE total = 0",
                "threshold": Threshold(Operator.LESS_OR_EQUAL, 10),
            },
        ),
        (rules.Freshness, {"seconds": 90_000, "element": "placed_at"}),
        (rules.Retention, {"seconds": 365 * 86400, "element": "placed_at"}),
        (
            rules.Latency,
            {"percentile": 100, "seconds": 3600, "element": "placed_at", "arrival_field": "loaded_at"},
        ),
    ]
    assert [facts(rule) for rule in regions.rules] == [(rules.PrimaryKey, {"fields": ("id",)})]
    by_name = {field.name: field for field in orders.fields}
    assert by_name["order_id"].business_name == "Order number"
    assert (by_name["order_id"].pii, by_name["order_id"].classification) == (False, "internal")
    assert by_name["labels"].key.type == DataType(Family.STRING)
    assert by_name["lines"].item.fields[0].required
    assert orders.trail("customer.email")[-1].pii is True


def test_findings_are_the_same_every_time():
    text = (CASES / "user-events.datacontract.yaml").read_text()
    assert read(text) == read(text)


# --- types and values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "type_"),
    [
        ("type: string", DataType(Family.STRING)),
        ("type: varchar(20)", DataType(Family.STRING, length=20)),
        ("type: int", DataType(Family.INTEGER, bits=32)),
        ("type: long", DataType(Family.INTEGER, bits=64)),
        ("type: number", DataType(Family.NUMBER)),
        ("type: number\nprecision: 10", DataType(Family.DECIMAL, precision=10, scale=0)),
        ("type: decimal\nscale: 0", DataType(Family.DECIMAL, precision=38, scale=0)),
        ("type: timestamp", DataType(Family.TIMESTAMP, zone=True)),
        ("type: timestamp_ntz", DataType(Family.TIMESTAMP, zone=False)),
        ("type: bytes", DataType(Family.BINARY)),
        ("type: json", DataType(Family.VARIANT)),
        ("type: 'null'", None),
        ("description: x", None),
        ("items: {type: int}", DataType(Family.ARRAY)),
        ("fields: {a: {type: int}}", DataType(Family.OBJECT)),
    ],
)
def test_a_type(block, type_):
    assert field(block).type == type_


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("type: int\nminimum: 0", [(rules.Minimum, {"limit": 0})]),
        ("type: double\nexclusiveMinimum: 0.5", [(rules.ExclusiveMinimum, {"limit": 0.5})]),
        ("type: date\nmaximum: 2026-01-31", [(rules.Maximum, {"limit": "2026-01-31"})]),
        ("type: string\nminLength: 0", [(rules.MinLength, {"length": 0})]),
        ("type: string\nenum: ['']", [(rules.Enum, {"values": ("",)})]),
        ("type: string\nenum: [NO, 1.0]", [(rules.Enum, {"values": ("NO", "1.0")})]),
        ("type: boolean\nenum: [false]", [(rules.Enum, {"values": (False,)})]),
        ("type: string\nformat: UUID", [(rules.Format, {"format": "uuid"})]),
        ("type: string\nrequired: false\nunique: false", []),
        ("type: string\nunique: true", [(rules.Unique, {"fields": ()})]),
    ],
)
def test_what_a_value_may_be(block, expected):
    assert [facts(rule) for rule in field(block).rules] == expected


def test_an_empty_field_is_a_column_without_a_type():
    assert field("").type is None


# --- quality ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("metric: nullValues\nmustBe: 0", (rules.NullCount, {"threshold": NO_ROWS})),
        (
            "metric: missingValues\narguments: {missingValues: [null, '']}\nmustBe: 0",
            (rules.MissingCount, {"missing_values": (None, ""), "threshold": NO_ROWS}),
        ),
        (
            "metric: invalidValues\narguments: {validValues: [a]}\nmustBeLessThan: 1\nunit: percent",
            (
                rules.InvalidCount,
                {
                    "valid_values": ("a",),
                    "pattern": None,
                    "threshold": Threshold(Operator.LESS_THAN, 1, unit=Unit.PERCENT),
                },
            ),
        ),
        ("metric: duplicateValues\nmustBe: 0", (rules.DuplicateCount, {"fields": (), "threshold": NO_ROWS})),
        (
            "query: SELECT MAX({field}) FROM {table}\nmustBeBetween: [0, 1]",
            (
                rules.Query,
                {"sql": "SELECT MAX(${column}) FROM ${table}", "threshold": Threshold(Operator.BETWEEN, 0, 1)},
            ),
        ),
    ],
)
def test_a_quality_rule_of_a_field(block, expected):
    (rule,) = field("type: string\nquality:\n- severity: warning\n" + indented(block, 2)).rules
    assert facts(rule) == expected
    assert rule.severity is Severity.WARNING


@pytest.mark.parametrize(
    "block",
    [
        "- type: text\n  description: Is nice.",
        "- type: custom\n  engine: soda\n  implementation: {type: no_duplicate_values}",
        "- type: custom\n  engine: great-expectations\n  implementation: {expectation_type: x}",
        "- description: Is nice.",
        "- type: sql\n  query: DELETE FROM {model}\n  mustBe: 0",
    ],
)
def test_prose_and_other_engines_are_skipped_with_a_warning_and_kept(block):
    contract = load_contract(of_model(f"quality:\n{block}"))
    (rule,) = contract.datasets[0].rules
    assert isinstance(rule, rules.NotEnforced)
    assert [finding.level for finding in own(contract.findings)] == [Level.WARNING]
    assert rule.custom[DOCUMENT]["quality"]


def test_checks_as_a_text_are_placed_where_it_begins():
    text = (
        of_model("") + "quality:\n  type: SodaCL\n  specification: |\n    checks for t:\n      - missing_count(c) = 0\n"
    )
    (rule,) = load_contract(text).datasets[0].fields[0].rules
    assert isinstance(rule, rules.NullCount)
    assert (rule.position.line, rule.position.column) == (12, 18)
    assert found(text.replace("(c)", "(cc)")) == [
        "12:18: error: line 2 of the checks: check 'missing_count(cc) = 0': 'cc' is no field of 't'"
    ]


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (of_field("type: strin"), ["10:15: error: unknown type 'strin'"]),
        (
            of_field("type: string\nrequired: 'yes'"),
            ["11:19: error: 'required' must be true or false, not the text 'yes'"],
        ),
        (of_field("type: string\nrequird: true"), ["11:18: warning: the unknown key 'requird' is ignored"]),
        (of_field("type: string\nx: 1"), ["11:9: note: the extension 'x' is kept and not enforced"]),
        (of_field("type: int\nminimum: 2\nmaximum: 1"), ["12:18: error: minimum and maximum leave no value"]),
        (of_field("type: int\nenum: [a]"), ["11:16: error: the text 'a' is not a value of an integer field"]),
        (of_field("type: int\nenum: []"), ["11:15: error: 'enum' allows no value at all"]),
        (of_field("type: int\nminLength: 1"), ["11:20: warning: 'minLength' has no effect on the type integer"]),
        (of_field("type: string\npattern: '('"), ["11:18: error: the pattern '(' has a group that is not closed"]),
        (of_field("$ref: '#/definitions/x'\ntype: int"), ["10:15: error: there is no definition 'x'"]),
        (
            of_field("$ref: https://example.com/x\ntype: int"),
            ["10:15: warning: not enforced: what 'https://example.com/x' says, which is another document"],
        ),
        (
            of_field("$ref: '#/definitions/x'", "definitions: {x: {type: int, $ref: '#/definitions/x'}}\n"),
            ["11:36: error: the definition 'x' refers to itself"],
        ),
        (
            of_field("type: int\nreferences: u.id"),
            ["11:21: warning: the reference 'u.id' is to no model of this contract"],
        ),
        (of_field("type: int\nreferences: id"), ["11:21: error: 'id' names no field of a model"]),
        (
            of_field("type: string\nfields: {a: {type: int}}"),
            ["11:17: error: 'fields' belongs to the type object, and this is of the type string"],
        ),
        (of_model("primaryKey: [d]"), ["10:18: error: the primary key names 'd', which is no field"]),
        (of_model("quality:\n- metric: rowCount"), ["11:7: error: a rule has no operator"]),
        (
            of_model("quality:\n- query: select {x}\n  mustBe: 0"),
            ["11:14: error: the query has the unknown placeholder {x}"],
        ),
        (HEAD, ["1:1: warning: the contract declares no model, so it promises nothing"]),
        (HEAD + "models: {t: {}}\n", ["6:13: warning: the model declares no fields, so its columns are not checked"]),
        (
            HEAD + "models: {../t: {fields: {a: {type: int}}}}\n",
            ["6:16: error: the name '../t' may not hold .. or /: it names a directory"],
        ),
        (
            of_model("") + "terms: {noticePeriod: soon}\n",
            ["10:23: error: 'noticePeriod': 'soon' is no duration: it has no number"],
        ),
        (
            of_model("") + "servicelevels: {freshness: {threshold: PT1H}}\n",
            ["10:28: warning: the freshness of 't' cannot be evaluated: it has no required timestamp"],
        ),
        (
            of_model("") + "servicelevels: {retention: {period: P1Y}}\n",
            ["10:28: warning: not enforced: the retention of 't' names no timestamp"],
        ),
        (
            of_model("") + "servicelevels: {latency: {threshold: 5m}}\n",
            ["10:26: warning: not enforced: 'latency' has no sourceTimestampField and no processedTimestampField"],
        ),
        (
            of_model("") + "servicelevels: {freshness: {threshold: 5m, timestampField: t.d}}\n",
            ["10:60: error: 't.d' is no field of one model"],
        ),
        (
            of_model("") + "quality: {type: SodaCL, specification: {checks for u: []}}\n",
            ["10:55: error: there are checks for 'u', which is no model"],
        ),
        (
            of_model("") + "quality: {type: montecarlo, specification: x}\n",
            ["10:44: warning: not enforced: the quality block is for another engine, montecarlo"],
        ),
        (
            HEAD.replace("1.2.0", "2.0.0") + "models: {t: {fields: {a: {type: int}}}}\n",
            ["1:28: warning: the specification's version '2.0.0' is not known and is read as 1.2.0"],
        ),
    ],
)
def test_a_mistake_is_told_where_it_stands(text, findings):
    assert found(text) == findings
    assert all(finding.hint for finding in read(text)[1] if finding.level is not Level.NOTE)


def test_a_lost_indentation_is_said_and_not_repaired():
    contract, findings = read("dataContractSpecification: 0.9.3\nid: a\ninfo:\ntitle: A\nversion: 1.0.0\n")
    assert contract is None
    assert "the contract has no 'info'" in [finding.message for finding in findings]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"dataContractSpecification": None}, "datacontract"),
        ({"info": {}, "models": {}}, "datacontract"),
        ({"models": {}}, None),
        ({"info": {}, "models": []}, None),
    ],
)
def test_which_documents_are_recognised(data, name):
    chosen = detect(data)
    assert (chosen.name if chosen is not None else None) == name


LIST, PAIR = "{type: array, items: $}", "{type: object, fields: {a: $, b: $}}"


def chained(form: str, names: list[str], last: str) -> str:
    """Definitions each of which holds the next one; `last` is what the last of them refers to."""
    following = [*names[1:], last]
    entries = [
        f"  {name}: " + form.replace("$", f"{{$ref: '#/definitions/{to}'}}")
        for name, to in zip(names, following, strict=True)
    ]
    return "\n".join(["definitions:", "  end: {type: int}", *entries, ""])


@pytest.mark.parametrize(
    ("definitions", "place", "message"),
    [
        (chained(LIST, ["x", "y"], "x"), "14:34", "the definition 'x' refers to itself"),
        (chained(PAIR, ["x", *(f"x{at}" for at in range(40))], "end"), "", "definitions bring more than 2,000 fields"),
        (chained(LIST, ["x", *(f"x{at}" for at in range(200))], "end"), "76:36", "definitions nest more than 64 deep"),
    ],
    ids=["circle", "doubling", "depth"],
)
def test_definitions_that_never_end_are_refused(definitions, place, message):
    (error,) = [one for one in found(of_field("$ref: '#/definitions/x'", definitions)) if ": error: " in one]
    assert error.startswith(place)
    assert message in error
