"""The Open Data Contract Standard: what becomes which rule, and what every mistake is told."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import Finding, Level
from databox_contracts.formats import load_contract, read
from databox_contracts.formats.odcs_custom import DOCUMENT
from databox_contracts.model import Consumer, Enforcement, Evolution, Governance, Member, Mode, SchemaModes, Team
from databox_contracts.plan import build_plan
from databox_contracts.rules import NO_ROWS, Dimension, Operator, Severity, Threshold, Unit

CASES = Path(__file__).parents[1] / "cases" / "odcs"

HEAD = """\
apiVersion: v3.1.0
kind: DataContract
id: a
version: 1.0.0
"""

TABLE = HEAD + "schema:\n- name: t\n"

PROPERTY = TABLE + "  properties:\n  - name: c\n"


def indented(block: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in block.splitlines())


def of_property(block: str) -> str:
    """A contract whose only property `c` begins in line 8 and has `block` from line 9, column 5 on."""
    return PROPERTY + indented(block, 4)


def of_table(block: str) -> str:
    """A contract whose only dataset `t` has `block` from line 7, column 3 on."""
    return TABLE + indented(block, 2)


def field(block: str):
    return load_contract(of_property(block)).datasets[0].fields[0]


def facts(rule: rules.Rule) -> dict[str, object]:
    """A rule without where it stands."""
    names = [*type(rule).__slots__, "name", "severity", "dimension", "description"]
    plain = {"name": None, "severity": Severity.ERROR, "dimension": None, "description": ""}
    found = {name: getattr(rule, name) for name in names}
    return {name: value for name, value in found.items() if name not in plain or value != plain[name]}


def own(findings: Iterable[Finding]) -> list[Finding]:
    """Without the notes on rules that are only carried, which are the same in every dialect (`test_remarks`)."""
    return [finding for finding in findings if "this version does not evaluate" not in finding.message]


def found(text: str) -> list[str]:
    """Findings as `line:column: level: message`."""
    return [f"{f.place.removeprefix('<text>:')}: {f.level}: {f.message}" for f in own(read(text)[1])]


def rows(count: float, operator: Operator = Operator.MUST_BE) -> Threshold:
    return Threshold(operator, count)


# --- whole documents --------------------------------------------------------------------------------------------------


def test_the_golden_document_loads_without_a_finding():
    contract = load_contract(CASES / "orders.odcs.yaml")
    assert own(contract.findings) == []
    assert (contract.id, contract.name, contract.version, contract.status) == (
        "shop.orders",
        "Orders of the shop",
        "2.10.0",
        "active",
    )
    assert (contract.domain, contract.tags, contract.dialect) == ("sales", ("shop", "orders"), "odcs")
    assert (
        contract.description
        == "One row for each order.\n\nUsage: Reports by day.\n\nLimitations: Test orders are left out."
    )
    assert contract.owner == "checkout-team"
    assert contract.team.name == "checkout"
    assert contract.team.members == (
        Member(username="keeper", role="owner"),
        Member(username="former", date_out="2025-06-30"),
    )
    (server,) = contract.servers
    assert (server.name, server.type, server.environment, server.location) == ("lake", "s3", "prod", "s3://shop/orders")
    assert server.settings == {"location": "s3://shop/orders", "format": "parquet"}
    assert contract.governance.pii_class == "B"
    assert contract.enforcement == Enforcement(mode="warn", until=date(2026, 3, 31))


def test_the_golden_dataset():
    (orders,) = load_contract(CASES / "orders.odcs.yaml").datasets
    assert (orders.name, orders.physical_name, orders.business_name) == ("orders", "shop.orders_v2", "Orders")
    assert (orders.description, orders.tags) == ("Every order.", ("core",))
    assert orders.modes == SchemaModes(tables=Mode.EVOLVE, columns=Mode.EVOLVE, data_type=Mode.DISCARD_ROW)
    assert [facts(rule) for rule in orders.rules] == [
        {"fields": ("shop", "order_id")},
        {"threshold": rows(0, Operator.GREATER_THAN), "name": "not empty"},
        {"fields": ("shop", "customer.email"), "threshold": NO_ROWS},
    ]
    assert orders.custom[DOCUMENT] == {"physicalType": "table"}


GOLDEN_IDS = [
    "orders.order_id.present",
    "orders.order_id.type",
    "orders.order_id.required",
    "orders.shop.present",
    "orders.shop.type",
    "orders.shop.required",
    "orders.shop.min_length",
    "orders.shop.max_length",
    "orders.shop.pattern",
    "orders.code.present",
    "orders.code.type",
    "orders.code.unique",
    "orders.code.format",
    "orders.price.present",
    "orders.price.type",
    "orders.price.minimum",
    "orders.price.exclusive_maximum",
    "orders.price.multiple_of",
    "orders.placed.present",
    "orders.placed.type",
    "orders.placed.minimum",
    "orders.customer.present",
    "orders.customer.type",
    "orders.customer.email.present",
    "orders.customer.email.type",
    "orders.customer.email.required",
    "orders.customer.country.present",
    "orders.customer.country.type",
    "orders.customer.country.invalid_count",
    "orders.lines.present",
    "orders.lines.type",
    "orders.lines.min_items",
    "orders.lines.max_items",
    "orders.lines.unique_items",
    "orders.lines.item.type",
    "orders.lines.sku.present",
    "orders.lines.sku.type",
    "orders.lines.sku.required",
    "orders.lines.count.present",
    "orders.lines.count.type",
    "orders.lines.count.minimum",
    "orders.labels.present",
    "orders.labels.type",
    "orders.labels.key.type",
    "orders.labels.value.type",
    "orders.note.present",
    "orders.note.type",
    "orders.note.missing_count",
    "orders.note.null_count",
    "orders.note.duplicate_count",
    "orders.undeclared",
    "orders.primary_key",
    "orders.row_count",
    "orders.duplicate_count",
]


def test_the_golden_document_becomes_these_checks():
    contract = load_contract(CASES / "orders.odcs.yaml")
    plan = build_plan(contract, contract.datasets[0])
    assert [check.id for check in plan.checks] == GOLDEN_IDS
    assert [check.id for check in plan.checks if not check.masked] == [
        "orders.order_id.present",
        "orders.order_id.type",
        "orders.order_id.required",
        "orders.undeclared",
        "orders.row_count",
    ]


def test_the_golden_fields():
    orders = load_contract(CASES / "orders.odcs.yaml").datasets[0]
    fields = {entry.name: entry for entry in orders.fields}
    assert fields["code"].column == "order_code"
    assert fields["placed"].partition_position == 1
    assert fields["placed"].type == DataType(Family.TIMESTAMP, zone=True)
    assert fields["note"].deprecated
    assert fields["note"].examples == ("gift", 1.0)
    assert fields["note"].sources == ("raw.orders",)
    assert fields["order_id"].pii is False
    assert fields["customer"].fields[0].pii is True
    assert fields["shop"].classification == "internal"
    missing = fields["note"].rules[0]
    assert facts(missing) == {
        "missing_values": (None, "", "N/A"),
        "threshold": Threshold(Operator.LESS_THAN, 5, unit=Unit.PERCENT),
        "name": "few_missing",
        "severity": Severity.WARNING,
        "dimension": Dimension.COMPLETENESS,
        "description": "Most orders have one.",
    }


def test_the_first_version_of_the_standard():
    contract = load_contract(CASES / "first-version.odcs.yaml")
    level, unit = contract.datasets[0].fields
    assert contract.team.members == (Member(username="keeper", name="Keeper", role="owner"),)
    assert [(rule.kind, facts(rule)) for rule in level.rules] == [
        ("exclusive_minimum", {"limit": 0}),
        ("maximum", {"limit": 100}),
    ]
    assert [(rule.kind, facts(rule)) for rule in unit.rules] == [
        ("invalid_count", {"valid_values": ("m", "cm"), "pattern": None, "threshold": NO_ROWS}),
        ("duplicate_count", {"fields": (), "threshold": Threshold(Operator.LESS_THAN, 50, unit=Unit.PERCENT)}),
        ("null_count", {"threshold": NO_ROWS}),
    ]
    assert [facts(rule) for rule in contract.datasets[0].rules] == [
        {"threshold": Threshold(Operator.NOT_BETWEEN, 0, 10)}
    ]
    assert [str(finding.position.line) for finding in own(contract.findings)] == ["25", "27", "30", "33"]


def test_the_newest_version_of_the_standard():
    contract = load_contract(CASES / "newest.odcs.yaml")
    fields = {entry.name: entry for entry in contract.datasets[0].fields}
    assert list(fields) == ["code", "rank", "open", "since", "names", "place", "region"]
    assert contract.version == "3.10"
    assert fields["code"].rules[1].values == ("NO", "SE", "", "1.0", None)
    assert fields["rank"].rules[0].values == (0, -1)
    assert fields["rank"].type == DataType(Family.INTEGER, bits=16)
    assert fields["open"].rules[0].values == (False,)
    assert fields["since"].rules[0].values == ("1905-06-07",)
    assert fields["names"].key.rules[0].length == 2
    assert fields["names"].value.required
    assert [rule.kind for rule in fields["place"].rules] == ["not_enforced", "not_enforced"]
    assert contract.datasets[0].custom[DOCUMENT]["measures"][0]["name"] == "total"
    assert [(str(f.level), f.message.split(":")[0]) for f in own(contract.findings)] == [
        ("note", "the version 3.10 means 3.10.0"),
        ("warning", "not enforced"),
        ("warning", "not enforced"),
        ("note", "the measure 'total' is not enforced"),
    ]


# --- types ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("logicalType: string", DataType(Family.STRING)),
        ("logicalType: integer", DataType(Family.INTEGER)),
        ("logicalType: number", DataType(Family.NUMBER)),
        ("logicalType: boolean", DataType(Family.BOOLEAN)),
        ("logicalType: date", DataType(Family.DATE)),
        ("logicalType: time", DataType(Family.TIME)),
        ("logicalType: array", DataType(Family.ARRAY)),
        ("logicalType: object", DataType(Family.OBJECT)),
        ("logicalType: map\nmap: {key: {}, value: {}}", DataType(Family.MAP)),
        ("physicalType: int", DataType(Family.INTEGER, bits=32)),
        ("logicalType: integer\nphysicalType: bigint", DataType(Family.INTEGER, bits=64)),
        ("logicalType: integer\nphysicalType: decimal(9, 0)", DataType(Family.DECIMAL, precision=9, scale=0)),
        ("logicalType: number\nphysicalType: decimal(10, 2)", DataType(Family.DECIMAL, precision=10, scale=2)),
        ("logicalType: string\nphysicalType: varchar(5)", DataType(Family.STRING, length=5)),
        ("logicalType: string\nphysicalType: binary", DataType(Family.BINARY)),
        ("logicalType: object\nphysicalType: json", DataType(Family.VARIANT)),
        ("logicalType: integer\nlogicalTypeOptions: {format: i8}", DataType(Family.INTEGER, bits=8)),
        ("logicalType: number\nlogicalTypeOptions: {format: f32}", DataType(Family.NUMBER, bits=32)),
        ("logicalType: timestamp\nlogicalTypeOptions: {timezone: false}", DataType(Family.TIMESTAMP, zone=False)),
        ("physicalType: timestamp\nlogicalTypeOptions: {timezone: true}", DataType(Family.TIMESTAMP, zone=True)),
        ("properties: []", DataType(Family.OBJECT)),
        ("items: {logicalType: string}", DataType(Family.ARRAY)),
    ],
)
def test_types(block, expected):
    assert field(block).type == expected
    assert [line for line in found(of_property(block)) if "error" in line or "warning" in line] == []


def test_a_physical_type_declares_its_parts():
    inside = field("physicalType: 'array<struct<a: int, b: string>>'").item
    assert [(part.name, part.type) for part in inside.fields] == [
        ("a", DataType(Family.INTEGER, bits=32)),
        ("b", DataType(Family.STRING)),
    ]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("snowflake", DataType(Family.TIMESTAMP, zone=True)),
        ("bigquery", None),
    ],
)
def test_physical_types_are_of_the_servers_dialect(server, expected):
    text = of_property("physicalType: timestamp_ltz(9)").replace(
        "schema:", f"servers: [{{server: s, type: {server}, account: a, database: d, schema: s}}]\nschema:"
    )
    contract, _ = read(text)
    assert contract.datasets[0].fields[0].type == (expected or DataType(Family.TIMESTAMP, zone=True))


TYPE_FINDINGS = [
    (
        "logicalType: integer\nphysicalType: varchar(3)",
        ["10:19: warning: logicalType 'integer' contradicts physicalType 'varchar(3)'; string(3) is what is checked"],
    ),
    (
        "logicalType: integer\nphysicalType: decimal(9, 2)",
        [
            "10:19: warning: logicalType 'integer' contradicts physicalType 'decimal(9, 2)'; "
            "decimal(9, 2) is what is checked"
        ],
    ),
    ("physicalType: nonsense", ["9:19: error: unknown physicalType 'nonsense'"]),
    ("physicalType: 'struct<int, string>'", ["9:19: error: unknown physicalType 'struct<int, string>'"]),
    ("physicalType: interval day", ["9:19: error: unknown physicalType 'interval day'"]),
    ("physicalType: decimal(2, 3)", ["9:19: error: decimal(2, 3) has more fraction digits than digits"]),
    ("physicalType: decimal(50, 2)", ["9:19: warning: no Spark table can have the type decimal(50, 2)"]),
    ("physicalType: map<int>", ["9:19: error: unknown physicalType 'map<int>'"]),
    ("logicalType: strin", ["9:18: error: unknown logicalType 'strin'"]),
    ("logicalType: [string]", ["9:18: error: 'logicalType' must be text, not a list"]),
    ("description: x", ["8:5: note: the property has no type, so none is checked"]),
    (
        "logicalType: array\nproperties: [{name: x, logicalType: string}]",
        ["10:17: error: 'properties' belongs to objects, and this is of the type array"],
    ),
    (
        "logicalType: string\nitems: {logicalType: string}",
        ["10:12: error: 'items' belongs to arrays, and this is of the type string"],
    ),
    (
        "logicalType: integer\nphysicalType: int\nlogicalTypeOptions: {format: i64}",
        ["11:34: warning: the format i64 and the physicalType contradict each other; integer(32) is what is checked"],
    ),
    (
        "logicalType: integer\nlogicalTypeOptions: {format: u8}",
        [
            "10:34: warning: not enforced: the format u8 has no type in Spark; write its bounds as minimum and maximum",
        ],
    ),
    ("logicalType: integer\nlogicalTypeOptions: {format: f32}", ["10:34: error: 'f32' is not a format of integers"]),
    (
        "physicalType: timestamptz\nlogicalTypeOptions: {timezone: false}",
        ["10:36: warning: timezone and physicalType contradict each other; timestamp with zone is what is checked"],
    ),
]


@pytest.mark.parametrize(("block", "expected"), TYPE_FINDINGS)
def test_findings_about_types(block, expected):
    assert found(of_property(block)) == expected


# --- what a value may be ----------------------------------------------------------------------------------------------

OPTIONS = [
    ("string", "minLength: 0", [("min_length", {"length": 0})]),
    ("string", "maxLength: 0", [("max_length", {"length": 0})]),
    ("string", "pattern: ''", [("pattern", {"pattern": ""})]),
    ("string", r"pattern: '^\d{2}(?<rest>[^]+)$'", [("pattern", {"pattern": r"^\d{2}(?<rest>[^]+)$"})]),
    ("string", "format: UUID", [("format", {"format": "uuid"})]),
    ("string", "format: UUID", [("format", {"format": "uuid"})]),
    ("integer", "minimum: 0", [("minimum", {"limit": 0})]),
    ("integer", "maximum: -1", [("maximum", {"limit": -1})]),
    ("integer", "exclusiveMinimum: 0", [("exclusive_minimum", {"limit": 0})]),
    ("integer", "exclusiveMinimum: false", []),
    ("integer", "minimum: 0\n  exclusiveMinimum: true", [("exclusive_minimum", {"limit": 0})]),
    ("integer", "maximum: 9\n  exclusiveMaximum: true", [("exclusive_maximum", {"limit": 9})]),
    ("integer", "minimum: 3\n  maximum: 3", [("minimum", {"limit": 3}), ("maximum", {"limit": 3})]),
    ("number", "minimum: 0.0", [("minimum", {"limit": 0.0})]),
    ("number", "minimum: 1e3", [("minimum", {"limit": 1000})]),
    ("number", "minimum: 0.10000000000000000001", [("minimum", {"limit": Decimal("0.10000000000000000001")})]),
    ("number", "multipleOf: 0.01", [("multiple_of", {"divisor": 0.01})]),
    ("date", "minimum: 2020-02-29", [("minimum", {"limit": "2020-02-29"})]),
    ("date", 'exclusiveMaximum: "2020-02-29"', [("exclusive_maximum", {"limit": "2020-02-29"})]),
    ("timestamp", "minimum: 2020-01-01 00:00:00+10:00", [("minimum", {"limit": "2020-01-01 00:00:00+10:00"})]),
    ("timestamp", "minimum: 2020-01-01", [("minimum", {"limit": "2020-01-01"})]),
    (
        "time",
        "minimum: 00:00:00\n  maximum: 23:59:59",
        [("minimum", {"limit": "00:00:00"}), ("maximum", {"limit": "23:59:59"})],
    ),
    ("array", "minItems: 0", [("min_items", {"count": 0})]),
    ("array", "maxItems: 0", [("max_items", {"count": 0})]),
    ("array", "uniqueItems: true", [("unique_items", {})]),
    ("array", "uniqueItems: false", []),
]


@pytest.mark.parametrize(("logical", "options", "expected"), OPTIONS)
def test_options_become_rules(logical, options, expected):
    block = f"logicalType: {logical}\nlogicalTypeOptions:\n  {options}"
    assert found(of_property(block)) == []
    assert [(rule.kind, facts(rule)) for rule in field(block).rules] == expected


OPTION_FINDINGS = [
    ("integer", "{minimum: a}", ["10:35: error: 'minimum' must be a number, not the text 'a'"]),
    ("integer", '{minimum: "1"}', ["10:35: error: 'minimum' must be a number, not the text '1'"]),
    ("integer", "{minimum: true}", ["10:35: error: 'minimum' must be a number, not true"]),
    ("number", "{minimum: .nan}", ["10:35: error: 'minimum' must be a number, not the number nan"]),
    ("number", "{maximum: .inf}", ["10:35: error: 'maximum' must be a number, not the number inf"]),
    ("number", "{minimum: [1]}", ["10:35: error: 'minimum' must be a number, not a list"]),
    ("integer", "{minimum: 5, maximum: 3}", ["10:47: error: 'minimum' and 'maximum' leave no value"]),
    (
        "integer",
        "{exclusiveMinimum: 3, maximum: 3}",
        ["10:56: error: 'exclusiveMinimum' and 'maximum' leave no value"],
    ),
    (
        "date",
        "{minimum: 2021-01-01, maximum: 2020-01-01}",
        ["10:56: error: 'minimum' and 'maximum' leave no value"],
    ),
    (
        "integer",
        "{exclusiveMaximum: true}",
        ["10:44: error: 'exclusiveMaximum' is true without a 'maximum'"],
    ),
    ("integer", "{multipleOf: 0}", ["10:38: error: 'multipleOf' must be greater than 0, not the number 0"]),
    (
        "string",
        "{minLength: -1}",
        ["10:37: error: 'minLength' must be a whole number of at least 0, not the number -1"],
    ),
    (
        "string",
        "{maxLength: 1.5}",
        ["10:37: error: 'maxLength' must be a whole number of at least 0, not the number 1.5"],
    ),
    ("string", "{minLength: 3, maxLength: 2}", ["10:51: error: 'minLength' and 'maxLength' leave no value"]),
    ("array", "{minItems: 3, maxItems: 2}", ["10:49: error: 'minItems' and 'maxItems' leave no value"]),
    ("string", "{pattern: '('}", ["10:35: error: the pattern '(' has a group that is not closed"]),
    ("string", "{pattern: '*a'}", ["10:35: error: the pattern '*a' is not valid: nothing to repeat"]),
    (
        "string",
        "{pattern: 'a{3,2}'}",
        ["10:35: error: the pattern 'a{3,2}' is not valid: min repeat greater than max repeat"],
    ),
    ("string", r"{pattern: '\Ax'}", [r"10:35: error: the pattern '\\Ax' uses \A, which ECMA-262 does not have"]),
    (
        "string",
        "{format: currency}",
        ["10:34: warning: not enforced: the format 'currency', which this version does not judge"],
    ),
    ("date", "{minimum: 2021-02-29}", ["10:35: error: 'minimum' must be a date, not '2021-02-29'"]),
    ("date", "{minimum: 5}", ["10:35: error: 'minimum' must be a date, not '5'"]),
    ("timestamp", "{maximum: soon}", ["10:35: error: 'maximum' must be a timestamp, not 'soon'"]),
    ("date", "{format: yyyy-MM-dd}", ["10:26: note: the format 'yyyy-MM-dd' of a date is not enforced"]),
    ("timestamp", "{defaultTimezone: Etc/UTC}", ["10:26: note: 'defaultTimezone' is not enforced"]),
    (
        "time",
        "{timezone: true}",
        ["10:36: warning: not enforced: only a timestamp can be checked for a time zone"],
    ),
    ("integer", "{minLength: 1}", ["10:37: error: 'minLength' is no option of the logical type integer"]),
    ("boolean", "{minimum: 1}", ["10:35: error: 'minimum' is no option of the logical type boolean"]),
    ("string", "{minLenght: 1}", ["10:26: warning: the unknown key 'minLenght' is ignored"]),
    ("array", "{uniqueItems: 'yes'}", ["10:39: error: 'uniqueItems' must be true or false, not the text 'yes'"]),
    ("object", "{maxProperties: 5}", ["10:41: warning: not enforced: 'maxProperties' of an object is not checked"]),
    (
        "object",
        "{required: [x]}",
        ["10:36: warning: not enforced: 'required' of an object that declares no properties"],
    ),
    (
        "object",
        "{required: [x]}\nproperties: [{name: y, logicalType: string}]",
        ["10:37: error: 'x' is required and is no property of the object"],
    ),
]


@pytest.mark.parametrize(("logical", "options", "expected"), OPTION_FINDINGS)
def test_findings_about_options(logical, options, expected):
    assert found(of_property(f"logicalType: {logical}\nlogicalTypeOptions: {options}")) == expected


ENUM_FINDINGS = [
    ("integer", "[{value: 1.5}]", ["10:16: error: the number 1.5 is not a value of an integer field"]),
    ("integer", "[{value: true}]", ["10:16: error: true is not a value of an integer field"]),
    ("integer", '[{value: "1"}]', ["10:16: error: the text '1' is not a value of an integer field"]),
    ("boolean", "[{value: 1}]", ["10:16: error: the number 1 is not a value of a boolean field"]),
    ("date", "[{value: x}]", ["10:16: error: the text 'x' is not a value of a date field"]),
    ("array", "[{value: x}]", ["10:16: error: an array field cannot be held to a list of values"]),
    ("string", "[{value: [x]}]", ["10:16: error: a value must be a scalar, not a list"]),
    ("string", "[]", ["10:7: error: 'enum' allows no value at all"]),
    ("string", "x", ["10:7: error: 'enum' must be a list, not the text 'x'"]),
    ("string", "[{label: x}]", ["10:8: error: an item of 'enum' has no 'value'"]),
    ("string", "[{value: x, lable: y}]", ["10:19: warning: the unknown key 'lable' is ignored"]),
    ("string", "[x]", ["10:8: warning: an item of 'enum' must be a mapping"]),
    ("string", "[{value: x}, {value: x}]", ["10:7: warning: the text 'x' is listed twice"]),
]


@pytest.mark.parametrize(("logical", "enum", "expected"), ENUM_FINDINGS)
def test_findings_about_enums(logical, enum, expected):
    # The flow sequence begins in column 11.
    block = f"logicalType: {logical}\nenum: {enum}"
    shifted = [f"10:{int(line.split(':')[1]) + 4}:{line.split(':', 2)[2]}" for line in expected]
    assert found(of_property(block)) == shifted


# --- quality ----------------------------------------------------------------------------------------------------------

OPERATORS = [
    ("mustBe: 0", Threshold(Operator.MUST_BE, 0)),
    ("mustNotBe: 0", Threshold(Operator.MUST_NOT_BE, 0)),
    ("mustBeGreaterThan: 0", Threshold(Operator.GREATER_THAN, 0)),
    ("mustBeGreaterOrEqualTo: 1", Threshold(Operator.GREATER_OR_EQUAL, 1)),
    ("mustBeLessThan: 10", Threshold(Operator.LESS_THAN, 10)),
    ("mustBeLessOrEqualTo: 0", Threshold(Operator.LESS_OR_EQUAL, 0)),
    ("mustBeBetween: [0, 5]", Threshold(Operator.BETWEEN, 0, 5)),
    ("mustNotBeBetween: [1, 5]", Threshold(Operator.NOT_BETWEEN, 1, 5)),
    ("mustBe: 0\n  unit: rows", Threshold(Operator.MUST_BE, 0)),
    ("mustBeLessThan: 0.5\n  unit: percent", Threshold(Operator.LESS_THAN, 0.5, unit=Unit.PERCENT)),
    ("mustBeBetween: [0, 0.5]\n  unit: percent", Threshold(Operator.BETWEEN, 0, 0.5, Unit.PERCENT)),
]


@pytest.mark.parametrize(("operator", "expected"), OPERATORS)
def test_all_operators(operator, expected):
    (rule,) = field(f"logicalType: string\nquality:\n- metric: nullValues\n  {operator}").rules
    assert rule.threshold == expected


METRICS = [
    ("string", "{metric: nullValues, mustBe: 0}", ("null_count", {"threshold": NO_ROWS})),
    (
        "string",
        "{metric: missingValues, mustBe: 0, arguments: {missingValues: [null, '', NO, 1.0]}}",
        ("missing_count", {"missing_values": (None, "", "NO", "1.0"), "threshold": NO_ROWS}),
    ),
    (
        "integer",
        "{metric: missingValues, mustBe: 0, arguments: {missingValues: [0, -1]}}",
        ("missing_count", {"missing_values": (0, -1), "threshold": NO_ROWS}),
    ),
    (
        "string",
        "{metric: invalidValues, mustBe: 0, arguments: {validValues: ['']}}",
        ("invalid_count", {"valid_values": ("",), "pattern": None, "threshold": NO_ROWS}),
    ),
    (
        "string",
        "{metric: invalidValues, mustBe: 0, arguments: {pattern: ^x, validValues: [null]}}",
        ("invalid_count", {"valid_values": (None,), "pattern": "^x", "threshold": NO_ROWS}),
    ),
    (
        "string",
        "{type: library, metric: duplicateValues, mustBe: 0}",
        ("duplicate_count", {"fields": (), "threshold": NO_ROWS}),
    ),
]


@pytest.mark.parametrize(("logical", "entry", "expected"), METRICS)
def test_metrics_of_a_property(logical, entry, expected):
    (rule,) = field(f"logicalType: {logical}\nquality:\n- {entry}").rules
    assert (rule.kind, facts(rule)) == expected
    assert (rule.position.line, rule.position.column) == (11, 7)


def test_what_a_rule_carries():
    (rule,) = field(
        "logicalType: string\nquality:\n"
        "- {id: q1, metric: nullValues, mustBe: 0, severity: WARN, dimension: cp, description: d, businessImpact: b}"
    ).rules
    assert (rule.name, rule.severity, rule.dimension, rule.description) == (
        "q1",
        Severity.WARNING,
        Dimension.COMPLETENESS,
        "d",
    )


QUALITY_FINDINGS = [
    ("{metric: nullValues}", ["11:7: error: a rule has no operator"]),
    (
        "{metric: nullValues, mustBe: 0, mustNotBe: 1}",
        ["11:50: error: a rule has one operator, not mustBe and mustNotBe"],
    ),
    ("{metric: nullValues, mustBe: x}", ["11:36: error: 'mustBe' must be a number, not the text 'x'"]),
    ("{metric: nullValues, mustBe: }", ["11:36: error: 'mustBe' has no value"]),
    ("{metric: nullValues, mustBeBetween: [5, 1]}", ["11:43: error: 'mustBeBetween' has its bounds reversed"]),
    ("{metric: nullValues, mustBeBetween: [5]}", ["11:43: error: 'mustBeBetween' needs two numbers"]),
    ("{metric: nullValues, mustBeBetween: 5}", ["11:43: error: 'mustBeBetween' must be a list, not the number 5"]),
    (
        "{metric: nullValues, mustBeBetween: [1, x]}",
        ["11:47: error: a value of 'mustBeBetween' must be a number, not the text 'x'"],
    ),
    ("{metric: nullValues, mustBe: 0, unit: pct}", ["11:45: error: unknown unit 'pct'"]),
    (
        "{metric: nullValues, mustBeLessThan: 101, unit: percent}",
        ["11:44: warning: 'mustBeLessThan' is out of reach: it counts between 0 and 100 percent"],
    ),
    (
        "{metric: nullValues, mustBe: -1}",
        ["11:36: warning: 'mustBe' is out of reach: it counts between 0 and the number of rows"],
    ),
    ("{metric: nulValues, mustBe: 0}", ["11:16: error: unknown metric 'nulValues'"]),
    ("{type: library, mustBe: 0}", ["11:7: error: a library rule has no 'metric'"]),
    ("{type: txt, description: d}", ["11:14: error: unknown type of quality rule 'txt'"]),
    ("{metric: invalidValues, mustBe: 0}", ["11:7: error: invalidValues does not say what is valid"]),
    (
        "{metric: invalidValues, mustBe: 0, arguments: {pattern: '['}}",
        ["11:63: error: the pattern '[' has a character class that is not closed"],
    ),
    ("{metric: missingValues, mustBe: 0}", ["11:7: error: missingValues has no list of values"]),
    (
        "{metric: nullValues, mustBe: 0, arguments: {validValues: [x]}}",
        ["11:51: warning: the unknown key 'validValues' is ignored"],
    ),
    (
        "{metric: invalidValues, mustBe: 0, validValues: [x], arguments: {pattern: x}}",
        ["11:42: warning: the unknown key 'validValues' is ignored"],
    ),
    ("{metric: nullValues, mustBe: 0, severty: error}", ["11:39: warning: the unknown key 'severty' is ignored"]),
    (
        "{metric: nullValues, mustBe: 0, severity: grave}",
        ["11:49: warning: the unknown severity 'grave' counts as error"],
    ),
    (
        "{metric: nullValues, mustBe: 0, dimension: width}",
        ["11:50: warning: the unknown dimension 'width' is ignored"],
    ),
    (
        "{metric: nullValues, mustBe: 0, scheduler: cron, schedule: 0 20 * * *}",
        ["11:39: note: 'scheduler' is not enforced", "11:56: note: 'schedule' is not enforced"],
    ),
    (
        "{metric: rowCount, mustBe: 0}",
        ["11:7: warning: rowCount is about the whole dataset"],
    ),
    ("{metric: rowCount, mustBe: 0, unit: percent}", ["11:43: error: rowCount has no percentage"]),
    (
        "{metric: duplicateValues, mustBe: 0, arguments: {properties: [c, d]}}",
        ["11:7: warning: a rule names 'd', which is no property of 't'"],
    ),
    ("{description: All is well.}", ["11:7: warning: not enforced: a promise in prose"]),
    ("{type: text, description: All is well.}", ["11:7: warning: not enforced: a promise in prose"]),
    (
        "{type: sql, query: select 1, mustBe: true}",
        ["11:7: warning: not enforced: a query held against true or false"],
    ),
    ("{type: sql, mustBe: 1}", ["11:7: error: a rule of type sql has no 'query'"]),
    ("{type: sql, query: select 1}", ["11:7: error: a rule has no operator"]),
    ("{type: sql, query: select count(*) from t, mustBe: -1}", []),
    (
        "{type: sql, query: drop table t, mustBe: 1}",
        ["11:7: warning: not enforced: a statement that is not one SELECT"],
    ),
    (
        "{engine: soda, implementation: x}",
        ["11:7: warning: not enforced: a rule for another engine, soda"],
    ),
    ("prose", ["11:7: error: an item of 'quality' must be a mapping, not the text 'prose'"]),
]


@pytest.mark.parametrize(("entry", "expected"), QUALITY_FINDINGS)
def test_findings_about_quality(entry, expected):
    assert found(of_property(f"logicalType: string\nquality:\n- {entry}")) == expected


def test_a_value_that_can_never_be_missing_is_left_out():
    entry = "{metric: missingValues, mustBe: 0, arguments: {missingValues: [null, '', 0]}}"
    block = f"logicalType: integer\nquality:\n- {entry}"
    (rule,) = field(block).rules
    assert rule.missing_values == (None, 0)
    assert found(of_property(block)) == [
        "11:76: warning: the text '' is not a value of an integer field and never occurs"
    ]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("{type: text, name: n, severity: info}", "a promise in prose"),
        ("{type: sql, name: n, severity: info, query: q, mustBe: 1}", "a statement that is not one SELECT"),
        ("{type: custom, name: n, severity: info, engine: e, implementation: {a: 1}}", "a rule for another engine, e"),
    ],
)
def test_what_is_not_ours_to_run_is_a_rule_that_is_shown_as_skipped(entry, reason):
    (rule,) = field(f"logicalType: string\nquality:\n- {entry}").rules
    assert (rule.kind, rule.reason, rule.name, rule.severity) == ("not_enforced", reason, "n", Severity.INFO)


def test_metrics_of_a_dataset():
    dataset = load_contract(
        of_table(
            "quality:\n"
            "- {metric: rowCount, mustBeBetween: [0, 5]}\n"
            "- {metric: duplicateValues, mustBe: 0, arguments: {properties: [a, b.c]}}\n"
            "- {type: text, description: d}\n"
        )
    ).datasets[0]
    assert [rule.kind for rule in dataset.rules] == ["row_count", "duplicate_count", "not_enforced"]
    assert dataset.rules[1].fields == ("a", "b.c")


# --- keys, flags, names -----------------------------------------------------------------------------------------------


def test_a_flag_that_is_false_is_no_rule():
    assert field("logicalType: string\nrequired: false\nunique: false\nprimaryKey: false").rules == ()


def test_rules_are_in_the_order_of_the_document():
    block = "logicalType: string\nlogicalTypeOptions: {maxLength: 3}\nunique: true\nrequired: true"
    assert [rule.kind for rule in field(block).rules] == ["max_length", "unique", "required"]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("- {name: a, logicalType: string, primaryKey: true}", ("a",)),
        (
            "- {name: a, logicalType: string, primaryKey: true}\n- {name: b, logicalType: string, primaryKey: true}",
            ("a", "b"),
        ),
        (
            "- {name: a, logicalType: string, primaryKey: true, primaryKeyPosition: 2}\n"
            "- {name: b, logicalType: string, primaryKey: true, primaryKeyPosition: 1}",
            ("b", "a"),
        ),
        (
            "- {name: a, logicalType: string, primaryKey: true}\n"
            "- {name: b, logicalType: string, primaryKey: true, primaryKeyPosition: 1}",
            ("b", "a"),
        ),
        (
            "- {name: o, logicalType: object, properties: [{name: a, logicalType: string, primaryKey: true}]}\n"
            "- {name: b, logicalType: string, primaryKey: true}",
            ("o.a", "b"),
        ),
    ],
)
def test_primary_keys(properties, expected):
    (key,) = load_contract(of_table(f"properties:\n{properties}")).datasets[0].rules
    assert (key.kind, key.fields) == ("primary_key", expected)


FIELD_FINDINGS = [
    ("required: 'yes'", ["10:15: error: 'required' must be true or false, not the text 'yes'"]),
    ("unique: 1", ["10:13: error: 'unique' must be true or false, not the number 1"]),
    ("requird: true", ["10:5: warning: the unknown key 'requird' is ignored"]),
    ("minimum: 3", ["10:5: warning: the unknown key 'minimum' is ignored"]),
    ("primaryKeyPosition: 1", ["10:25: warning: primaryKeyPosition without primaryKey is ignored"]),
    ("tags: x", ["10:11: warning: 'tags' must be a list"]),
    ("businessName: 5", ["10:19: warning: 'businessName' is the number 5 and is read as the text '5'"]),
    ("relationships: [{to: u.a}]", ["10:26: warning: 'u.a' names no dataset of this contract"]),
    ("relationships: [{to: t.d}]", ["10:26: warning: 't.d' names no property of 't'"]),
    ("relationships: [{to: t.c}]", []),
    ("relationships: []", []),
    (
        "relationships: [{too: u.a}]",
        ["10:21: error: a relationship has no 'to'", "10:22: warning: the unknown key 'too' is ignored"],
    ),
    ("relationships: [{to: ''}]", ["10:26: error: a relationship has no 'to'"]),
    ("relationships: [{to: 5}]", ["10:26: error: 'to' must be a reference, not the number 5"]),
    ("relationships: [{to: a}]", ["10:26: error: a relationship to a property of no table"]),
    (
        "relationships: [{from: t.c, to: t.c}]",
        ["10:28: error: the relationship of a property has no 'from': it is the property"],
    ),
    ("relationships: [{to: [t.c, t.d]}]", ["10:26: error: a relationship from 1 to 2 properties"]),
    (
        "relationships: [{to: schema/x/properties/y}]",
        [
            "10:26: warning: not enforced: a relationship to an id that this contract does not have, "
            "and other documents' ids say no name"
        ],
    ),
    (
        "relationships: [{to: t.c, type: looksLike}]",
        ["10:37: warning: not enforced: a relationship of the type 'looksLike'"],
    ),
    ("authoritativeDefinitions: [{url: x}]", ["10:32: warning: an item of 'authoritativeDefinitions' has no 'type'"]),
    ("customProperties: [{value: 1}]", ["10:24: error: a custom property has no 'property'"]),
    (
        "customProperties: [{property: pii, value: maybe}]",
        ["10:47: error: 'pii' must be true or false, not the text 'maybe'"],
    ),
    (
        "customProperties: [{property: x, value: 1}, {property: x, value: 2}]",
        ["10:60: error: the custom property 'x' stands here again"],
    ),
]


@pytest.mark.parametrize(("block", "expected"), FIELD_FINDINGS)
def test_findings_about_a_property(block, expected):
    assert found(of_property(f"logicalType: string\n{block}")) == expected


TABLE_FINDINGS = [
    (
        "properties: [{name: a, logicalType: string}, {name: a, logicalType: string}]",
        ["7:55: error: the property 'a' stands here again"],
    ),
    (
        "properties: [{name: a, logicalType: string}, {name: A, logicalType: string}]",
        ["7:55: warning: Spark takes 'A' and 'a' for the same column"],
    ),
    (
        "properties: [{name: a, logicalType: string}, {name: b, physicalName: a, logicalType: string}]",
        ["7:72: error: the column 'a' belongs to another property already"],
    ),
    (
        "properties: [{logicalType: string}]",
        [
            "6:3: warning: the dataset declares no properties, so its columns are not checked",
            "7:16: error: a property has no 'name'",
        ],
    ),
    (
        "properties: {a: b}",
        [
            "6:3: warning: the dataset declares no properties, so its columns are not checked",
            "7:15: error: 'properties' must be a list, not a mapping",
        ],
    ),
    (
        "columns: [a]",
        [
            "6:3: warning: the dataset declares no properties, so its columns are not checked",
            "7:3: warning: the unknown key 'columns' is ignored",
        ],
    ),
    (
        "properties:\n- name: a\n  items: {properties: [{name: b, logicalType: string, primaryKey: true}]}",
        ["9:69: error: 'b' cannot be part of the primary key: it is inside an array or a map"],
    ),
    (
        "properties: [{name: a, logicalType: string}]\nquality: [{metric: nullValues, mustBe: 0}]",
        ["8:13: error: this metric is about one property"],
    ),
    (
        "properties: [{name: a, logicalType: string}]\nquality: [{metric: duplicateValues, mustBe: 0}]",
        ["8:13: error: duplicateValues of a dataset has no properties"],
    ),
    (
        "properties: [{name: a, logicalType: string}]\ncustomProperties: [{property: schemaModes, value: freez}]",
        ["8:53: error: unknown schema mode 'freez'"],
    ),
    (
        "properties: [{name: a, logicalType: string}]\n"
        "customProperties: [{property: enforcement, value: {mode: warn}}]",
        ["8:33: warning: 'enforcement' has no effect here"],
    ),
]


@pytest.mark.parametrize(("block", "expected"), TABLE_FINDINGS)
def test_findings_about_a_dataset(block, expected):
    assert found(of_table(block)) == expected


@pytest.mark.parametrize("name", ["..", "../x", "a..b", "a/b", "/etc", "a\\b", '"a\\0b"', '"a\\nb"', '" "'])
@pytest.mark.parametrize("key", ["name", "physicalName"])
def test_a_datasets_name_is_never_a_path(name, key):
    lines = {"name": "t", "physicalName": "t"} | {key: name}
    text = HEAD + "schema:\n" + f"- name: {lines['name']}\n  physicalName: {lines['physicalName']}\n"
    errors = [finding for finding in read(text)[1] if finding.level is Level.ERROR]
    assert len(errors) == 1
    assert errors[0].position.line == (6 if key == "name" else 7)


@pytest.mark.parametrize("name", ["t", "schema.table", "Größe", "a-b_c", "2024"])
def test_an_ordinary_name_is_one(name):
    assert load_contract(HEAD + f"schema:\n- name: '{name}'\n").datasets[0].table_name == name


# --- the contract itself ----------------------------------------------------------------------------------------------

NO_DATASET = "warning: the contract declares no dataset, so it promises nothing"

CONTRACT_FINDINGS = [
    ("schema: []", [f"5:9: {NO_DATASET}"]),
    ("status: active", [f"1:1: {NO_DATASET}"]),
    ("schema: [{name: t}, {name: t}]", ["5:28: error: the dataset 't' stands here again"]),
    (
        "schema: [{name: t}, {name: u, physicalName: t}]",
        ["5:45: warning: the table 't' belongs to another dataset too"],
    ),
    ("schema: [5]", ["5:10: error: an item of 'schema' must be a mapping, not the number 5"]),
    ("schema: {name: t}", ["5:9: error: 'schema' must be a list, not a mapping"]),
    ("schemas: []", [f"1:1: {NO_DATASET}", "5:1: warning: the unknown key 'schemas' is ignored"]),
    (
        "slaProperties: [{property: latency, value: 4, unit: h}]",
        [
            f"1:1: {NO_DATASET}",
            "5:18: note: the service level 'latency' is not enforced: it is about no dataset",
        ],
    ),
    ("slaProperties: []", [f"1:1: {NO_DATASET}"]),
    (
        "slaDefaultElement: t.c",
        [f"1:1: {NO_DATASET}", "5:1: note: 'slaDefaultElement' is not enforced: there are no service levels"],
    ),
    ("description: {purpos: x}", [f"1:1: {NO_DATASET}", "5:15: warning: the unknown key 'purpos' is ignored"]),
    (
        "team: [{usernam: x}]",
        [
            f"1:1: {NO_DATASET}",
            "5:8: error: a member of the team has no 'username'",
            "5:9: warning: the unknown key 'usernam' is ignored",
        ],
    ),
    (
        "servers: [{server: l, type: local, pth: x}]",
        [f"1:1: {NO_DATASET}", "5:36: warning: the unknown key 'pth' is ignored"],
    ),
    (
        "servers: [{server: l, type: postgers}]",
        [f"1:1: {NO_DATASET}", "5:29: warning: 'type' may not be the text 'postgers'"],
    ),
    (
        "servers: [{server: l, type: local, path: x}]",
        [f"1:1: {NO_DATASET}", "5:11: warning: an item of 'servers' has no 'format'"],
    ),
    (
        "servers: [{server: l, type: kafka, host: h}, {server: l, type: kafka, host: h}]",
        [f"1:1: {NO_DATASET}", "5:55: error: the server 'l' stands here again"],
    ),
    ("roles: [{rol: x}]", [f"1:1: {NO_DATASET}", "5:10: warning: the unknown key 'rol' is ignored"]),
    (
        "price: {priceAmount: x}",
        [f"1:1: {NO_DATASET}", "5:22: warning: 'priceAmount' must be a number, not the text 'x'"],
    ),
    (
        "customProperties: [{property: enforcement, value: {mode: warn}}]",
        [f"1:1: {NO_DATASET}", "5:51: error: a grace period has no end"],
    ),
    (
        "customProperties: [{property: enforcement, value: {mode: warn, until: soon}}]",
        [f"1:1: {NO_DATASET}", "5:71: error: 'until' must be a date, not the text 'soon'"],
    ),
    (
        "customProperties: [{property: enforcement, value: {mode: off}}]",
        [
            f"1:1: {NO_DATASET}",
            "5:58: warning: 'mode' is false and is read as the text 'off'",
            "5:58: error: unknown enforcement mode 'off'",
        ],
    ),
    (
        "customProperties: [{property: schemaModes, value: {columns: evolve, colums: x}}]",
        [f"1:1: {NO_DATASET}", "5:69: warning: the unknown key 'colums' is ignored"],
    ),
]


@pytest.mark.parametrize(("line", "expected"), CONTRACT_FINDINGS)
def test_findings_about_the_contract(line, expected):
    lines = [entry for entry in found(HEAD + line + "\n") if "declares no properties" not in entry]
    assert lines == expected


IDENTITY_FINDINGS = [
    (
        "kind: DataContract\nid: a\nversion: 1.0.0\n",
        ["1:1: warning: the contract has no 'apiVersion' and is read as v3.2.0"],
    ),
    ("apiVersion: v3.1.0\nid: a\nversion: 1.0.0\n", ["1:1: warning: the contract has no 'kind'"]),
    (
        "apiVersion: v3.1.0\nkind: DataContrakt\nid: a\nversion: 1.0.0\n",
        ["2:7: error: a document of the kind 'DataContrakt' is no contract"],
    ),
    (
        "apiVersion: v2.2.2\nkind: DataContract\nid: a\nversion: 1.0.0\n",
        ["1:13: error: the standard's version v2.2.2 is not read"],
    ),
    (
        "apiVersion: v3.9.0\nkind: DataContract\nid: a\nversion: 1.0.0\n",
        ["1:13: warning: the standard's version 'v3.9.0' is not known and is read as v3.2.0"],
    ),
    ("apiVersion: v3.1.0\nkind: DataContract\nversion: 1.0.0\n", ["1:1: error: the contract has no 'id'"]),
    ("apiVersion: v3.1.0\nkind: DataContract\nid: ''\nversion: 1.0.0\n", ["3:5: error: the contract has no 'id'"]),
    ("apiVersion: v3.1.0\nkind: DataContract\nid: a\n", ["1:1: error: the contract has no 'version'"]),
    (
        "apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: 3.10\n",
        ["4:10: warning: other readers of YAML see the number 3.1 as the version"],
    ),
    ("apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: '3'\n", ["4:1: note: the version 3 means 3.0.0"]),
    (
        "apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: v1\n",
        ["4:10: warning: the version 'v1' is not a semantic version"],
    ),
    (
        "apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: 01.2.3\n",
        ["4:10: warning: the version '01.2.3' is not a semantic version"],
    ),
    ("apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: 1.2.3-rc.1+b5\n", []),
    (
        "apiVersion: v3.1.0\nkind: DataContract\nid: 5\nversion: 1.2.3\n",
        ["3:5: warning: 'id' is the number 5 and is read as the text '5'"],
    ),
]


@pytest.mark.parametrize(("text", "expected"), IDENTITY_FINDINGS)
def test_findings_about_who_it_is(text, expected):
    assert [line for line in found(text) if NO_DATASET not in line] == expected


@pytest.mark.parametrize(("written", "version"), [("3.10", "3.10"), ("1", "1"), ("1.0.0", "1.0.0"), ("'2.0'", "2.0")])
def test_a_version_is_the_text_that_was_written(written, version):
    assert load_contract(f"{HEAD}".replace("1.0.0", written)).version == version


def test_what_was_written_is_carried():
    text = HEAD + (
        "tenant: x\nprice: {priceAmount: 1}\nroles: [{role: r}]\nslaProperties: [{property: latency, value: 1}]\n"
        "customProperties: [{property: a.b, value: [1, {c: null}]}, {property: empty, value: null}]\n"
    )
    custom = load_contract(text).custom
    assert custom["a.b"] == [1, {"c": None}]
    assert custom["empty"] is None
    assert custom[DOCUMENT] == {
        "tenant": "x",
        "price": {"priceAmount": 1},
        "roles": [{"role": "r"}],
        "slaProperties": [{"property": "latency", "value": 1}],
    }
    assert DOCUMENT not in load_contract(HEAD).custom


# --- privacy and modes ------------------------------------------------------------------------------------------------


def test_personal_data_is_said_on_a_dataset_or_a_contract_and_unsaid_on_a_field():
    table = of_table(
        "properties:\n"
        "- {name: a, logicalType: string}\n"
        "- {name: b, logicalType: string, customProperties: [{property: pii, value: false}]}\n"
        "- {name: c, logicalType: string, customProperties: [{property: piiClass, value: C}]}\n"
    )
    said = "customProperties: [{property: pii, value: 'true'}]\n"
    for text, expected in (
        (table, [None, False, True]),
        (table + "  " + said, [True, False, True]),
        (said + table, [True, False, True]),
    ):
        assert [entry.pii for entry in load_contract(text).datasets[0].fields] == expected


def test_modes_of_the_contract_hold_where_a_dataset_says_nothing():
    text = (
        HEAD
        + "customProperties: [{property: schemaModes, value: freeze}]\nschema:\n- name: a\n- name: b\n"
        + "  customProperties: [{property: columns, value: discard_value}]\n"
    )
    first, second = load_contract(text).datasets
    assert first.modes == SchemaModes(tables=Mode.FREEZE, columns=Mode.FREEZE, data_type=Mode.FREEZE)
    assert second.modes == SchemaModes(columns=Mode.DISCARD_VALUE)
    assert load_contract(TABLE).datasets[0].modes is None


def test_a_contract_of_a_thousand_fields():
    fields = "".join(f"- {{name: c{n}, logicalType: integer, required: true}}\n" for n in range(1000))
    contract = load_contract(of_table(f"properties:\n{fields}"))
    assert len(contract.datasets[0].fields) == 1000
    assert [finding.message.split(",")[0] for finding in own(contract.findings)] == [
        "all 1000 fields of 't' are required",
        "the contract holds 1000 rules",
    ]


# --- a type that nobody knows -----------------------------------------------------------------------------------------


def test_an_unknown_physical_type_beside_a_logical_one_is_a_warning():
    block = "logicalType: boolean\nphysicalType: Flag"
    assert found(of_property(block)) == [
        "10:19: warning: unknown physicalType 'Flag'; only the logicalType 'boolean' is enforced"
    ]
    assert field(block).type == DataType(Family.BOOLEAN)
    assert field(block).custom[DOCUMENT] == {"logicalType": "boolean", "physicalType": "Flag"}


# --- relationships ----------------------------------------------------------------------------------------------------

RELATED = """\
schema:
- name: t
  id: t1
  relationships: %s
  properties:
  - {name: a, id: a1, logicalType: string, relationships: %s}
  - name: o
    id: o1
    logicalType: object
    properties: [{name: b, id: b1, logicalType: string}]
- name: shop.u
  id: u1
  properties:
  - {name: x, id: x1, logicalType: string}
  - {name: y, id: y1, logicalType: object, properties: [{name: z, id: z1, logicalType: string}]}
"""


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("shop.u.x", ("shop.u", ("x",))),
        ("shop.u.y.z", ("shop.u", ("y.z",))),
        ("t.o.b", ("t", ("o.b",))),
        ("schema/u1/properties/x1", ("shop.u", ("x",))),
        ("/schema/u1/properties/y1/properties/z1", ("shop.u", ("y.z",))),
        ("'#/schema/u1/properties/x1'", ("shop.u", ("x",))),
        ("other.v.w", ("other.v", ("w",))),
        ("https://example.com/c.yaml#v.w", ("https://example.com/c.yaml#v", ("w",))),
    ],
)
def test_a_property_refers_to_another(to, expected):
    contract, findings = read(HEAD + RELATED % ("[]", f"[{{to: {to}}}]"))
    assert [finding for finding in findings if finding.level is Level.ERROR] == []
    (rule,) = contract.datasets[0].fields[0].rules
    assert (rule.kind, rule.fields, rule.to, rule.to_fields) == ("foreign_key", (), *expected)
    (check,) = [check for check in build_plan(contract, contract.datasets[0]).checks if check.rule is rule]
    assert (check.id, check.keys) == ("t.a.foreign_key", (("a",),))


@pytest.mark.parametrize(
    ("entry", "fields", "to_fields"),
    [
        ("{from: t.a, to: shop.u.x}", ("a",), ("x",)),
        ("{from: [t.a], to: [shop.u.x]}", ("a",), ("x",)),
        ("{from: [t.a, t.o.b], to: [shop.u.x, shop.u.y.z]}", ("a", "o.b"), ("x", "y.z")),
        (
            "{from: [schema/t1/properties/a1, schema/t1/properties/o1/properties/b1], to: [shop.u.x, shop.u.y.z]}",
            ("a", "o.b"),
            ("x", "y.z"),
        ),
    ],
)
def test_a_dataset_refers_to_another(entry, fields, to_fields):
    contract = load_contract(HEAD + RELATED % (f"[{entry}]", "[]"))
    assert own(contract.findings) == []
    (rule,) = contract.datasets[0].rules
    assert (rule.fields, rule.to, rule.to_fields) == (fields, "shop.u", to_fields)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{to: shop.u.x}", "8:19: error: a relationship has no 'from'"),
        ("{from: t.a}", "8:19: error: a relationship has no 'to'"),
        ("{from: t.a, to: [shop.u.x, shop.u.y]}", "8:35: error: a relationship from 1 to 2 properties"),
        ("{from: [t.a, t.o], to: [shop.u.x, t.a]}", "8:42: error: the parts of a key are in several datasets"),
        ("{from: shop.u.x, to: t.a}", "8:26: error: the relationship is of 't' and is from 'shop.u'"),
        ("{from: t.nothing, to: shop.u.x}", "8:26: warning: 'nothing' is no property of 't'"),
        (
            "{from: t.a, to: 'c.yaml#/schema/v/properties/w'}",
            "8:35: warning: not enforced: a relationship to an id that this contract does not have, "
            "and other documents' ids say no name",
        ),
    ],
)
def test_findings_about_relationships(entry, expected):
    assert found(HEAD + RELATED % (f"[{entry}]", "[]")) == [expected]


# --- service levels ---------------------------------------------------------------------------------------------------

TWO_TABLES = """\
schema:
- name: t
  physicalName: s.t
  properties: [{name: at, logicalType: timestamp}]
- {name: u, properties: [{name: at, logicalType: timestamp}]}
"""
ONE_TABLE = TWO_TABLES[: TWO_TABLES.index("- {name: u")]


def service_levels(entries: str, tables: str = ONE_TABLE) -> list[tuple[object, ...]]:
    contract = load_contract(f"{HEAD}{tables}slaProperties: {entries}\n")
    return [
        (dataset.name, rule.kind, getattr(rule, "seconds", None), getattr(rule, "element", None))
        for dataset in contract.datasets
        for rule in dataset.rules
    ]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("[]", []),
        ("[{property: latency, value: 4, unit: d}]", [("t", "freshness", 345_600, None)]),
        ("[{property: LY, value: '4', unit: hr}]", [("t", "freshness", 14_400, None)]),
        ("[{property: freshness, value: PT90S, element: t.at}]", [("t", "freshness", 90, "at")]),
        ("[{property: freshness, value: 0, unit: s, element: s.t.at}]", [("t", "freshness", 0, "at")]),
        ("[{property: retention, value: 3, unit: y, element: at}]", [("t", "retention", 94_608_000, "at")]),
        ("[{property: re, value: 1.5, unit: min, element: t}]", [("t", "retention", 90, None)]),
        ("[{property: availability, value: 99.9, unit: percent}]", [("t", "not_enforced", None, None)]),
        ("[{property: latency, value: 4}]", [("t", "not_enforced", None, None)]),
    ],
)
def test_service_levels(entries, expected):
    assert service_levels(entries) == expected


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (
            "[{property: latency, value: 1, unit: s}]",
            [("t", "freshness", 1, None), ("u", "freshness", 1, None)],
        ),
        (
            "[{property: latency, value: 1, unit: s, element: 'u.at, t.at'}]",
            [("t", "freshness", 1, "at"), ("u", "freshness", 1, "at")],
        ),
        ("[{property: frequency, value: 1, unit: d, element: u.at}]", [("u", "not_enforced", None, None)]),
        (
            "[{property: latency, value: 1, unit: s, element: v.at}]",
            [("t", "not_enforced", None, None), ("u", "not_enforced", None, None)],
        ),
        (
            "[{property: retention, value: 1, unit: s}]\nslaDefaultElement: u.at",
            [("u", "retention", 1, "at")],
        ),
    ],
)
def test_service_levels_of_several_datasets(entries, expected):
    assert service_levels(entries, TWO_TABLES) == expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "{property: latency, value: 4, unit: dys}",
            "9:44: error: '4 dys' is no length of time: the unit 'dys' is not known",
        ),
        ("{property: latency, value: -4, unit: d}", "9:44: error: '-4 d' is no length of time: it has a sign"),
        ("{property: latency, value: soon}", "9:44: error: 'soon' is no length of time: it has no number"),
        ("{property: latency, unit: d}", "9:17: error: a service level has no 'value'"),
        ("{value: 4}", "9:17: error: a service level has no 'property'"),
        ("{property: latency, value: 4, unit: d, element: t.no}", "9:65: warning: 'no' is no property of 't'"),
        ("{property: latency, value: 4, unit: d, valueExt: 5}", "9:56: note: 'valueExt' is not enforced"),
        (
            "{property: availability, value: 99}",
            "9:28: warning: not enforced: the service level 'availability', which no data shows",
        ),
    ],
)
def test_findings_about_service_levels(entry, expected):
    lines = found(f"{HEAD}{ONE_TABLE}slaProperties: [{entry}]\n")
    assert expected in lines
    assert len([line for line in lines if "error" in line]) == int("error" in expected)


# --- queries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select count(*) from ${table} where ${column} is null", None),
        ("SELECT COUNT(*) FROM {object} WHERE {property} IS NOT NULL", None),
        ("select 1", None),
        ("(select max(a) from t);", None),
        ("with x as (select a from t) select sum(a) / count(*) from x", None),
        ("select a from t order by a limit 1", None),
        ("select a from t", "a query that may return many rows"),
        ("select sum(a) over () from t", "a query that may return many rows"),
        ("select count(*) from t group by a", "a query that may return many rows"),
        ("select a, b from t", "a query that does not return one number"),
        ("select * from t", "a query that does not return one number"),
        ("select 1 union select 2", "a statement that is not one SELECT"),
        ("insert into t select 1", "a statement that is not one SELECT"),
        ("explain select 1", "a statement that is not one SELECT"),
        ("select 1; select 2", "2 queries, and a promise is one"),
        ("-- nothing", "0 queries, and a promise is one"),
        ("select java_method('a', 'b')", "a query that calls java_method"),
        ("select count(*) frm t where (", "a query that is not Spark SQL"),
    ],
)
def test_a_query_is_run_only_if_it_reads_one_number(query, reason):
    (rule,) = field(f'logicalType: string\nquality:\n- {{type: sql, query: "{query}", mustBeLessThan: 0.5}}').rules
    if reason is None:
        assert (rule.kind, rule.sql, rule.threshold) == ("query", query, Threshold(Operator.LESS_THAN, 0.5))
    else:
        assert (rule.kind, rule.reason) == ("not_enforced", reason)


# --- what the standard has no word for --------------------------------------------------------------------------------


def test_a_rule_of_ours():
    block = (
        "logicalType: string\nquality:\n- type: custom\n  engine: databox\n  name: n\n  severity: info\n"
        "  implementation: {rule: enum, values: [NO, null, '']}\n"
    )
    (rule,) = field(block).rules
    assert facts(rule) == {"values": ("NO", None, ""), "name": "n", "severity": Severity.INFO}
    assert found(of_property(block)) == []


@pytest.mark.parametrize(
    ("implementation", "expected"),
    [
        ("{rule: enm, values: []}", ["11:62: error: unknown rule 'enm'"]),
        ("{values: []}", ["11:55: error: a rule of ours has no 'rule'"]),
        ("{rule: expression}", ["11:55: error: the rule 'expression' has no 'sql'"]),
        ("{rule: expression, sql: c, sqll: b}", ["11:82: warning: the unknown key 'sqll' is ignored"]),
        ("{rule: present}", ["11:62: error: unknown rule 'present'"]),
        (
            "{rule: row_count, threshold: {mustBe: 1, mustNotBe: 2}}",
            ["11:84: error: a threshold has one operator, in rows or percent"],
        ),
        ("{rule: row_count, threshold: {mustBe: x}}", ["11:93: error: 'mustBe' must be a number, not the text 'x'"]),
        ("{rule: row_count, threshold: 5}", ["11:84: error: 'threshold' must be a mapping, not the number 5"]),
        ("{rule: not_enforced, reason: why}", ["11:7: warning: not enforced: why"]),
        ("text", ["11:7: warning: not enforced: a rule for another engine, databox"]),
    ],
)
def test_findings_about_rules_of_ours(implementation, expected):
    block = f"logicalType: string\nquality:\n- {{type: custom, engine: databox, implementation: {implementation}}}"
    assert found(of_property(block)) == expected


def test_words_of_ours_become_the_model():
    contract = load_contract(CASES / "whole.odcs.yaml")
    assert contract.governance == Governance(
        pii_class="B", retention_days=0, purposes=("reports",), read=("finance",), write=("checkout",)
    )
    assert contract.consumers[0] == Consumer(
        name="Reports", contact="reports@example.com", datasets=("lines",), fields=("lines.sold",), versions="^3"
    )
    assert contract.evolution == Evolution(
        policy="strict", allowed=("add_field",), deprecation_window_days=30, sign_off="required"
    )
    assert (contract.notice_period, contract.owner) == ("P3M", "checkout-team")
    assert contract.custom["$other"] == {"left": [1, None, ""]}
    assert set(contract.custom) == {"$other", "team-channel", DOCUMENT}
    mail = contract.datasets[1].fields[4]
    assert (mail.semantics, mail.default, mail.pii) == ("Whoever bought.", "", True)


WORD_FINDINGS = [
    (
        "{property: governance, value: open}",
        "warning: 'governance' has no effect: it must be a mapping, not the text 'open'",
    ),
    ("{property: consumers, value: all}", "warning: 'consumers' has no effect: it must be a list, not the text 'all'"),
    ("{property: consumers, value: [{contact: x}]}", "error: a consumer has no 'name'"),
    ("{property: evolution, value: {allowd: []}}", "warning: the unknown key 'allowd' is ignored"),
    (
        "{property: governance, value: {retentionDays: -1}}",
        "error: 'retentionDays' must be a whole number of at least 0",
    ),
]


@pytest.mark.parametrize(("entry", "expected"), WORD_FINDINGS)
def test_findings_about_words_of_ours(entry, expected):
    lines = found(f"{TABLE}  properties: [{{name: a, logicalType: string}}]\ncustomProperties: [{entry}]\n")
    assert len(lines) == 1
    assert expected in lines[0]


@pytest.mark.parametrize("word", ["governance", "consumers", "evolution", "noticePeriod", "enforcement"])
def test_a_word_of_the_contract_has_no_effect_elsewhere(word):
    entry = f"customProperties: [{{property: {word}, value: x}}]"
    for text in (of_property(f"logicalType: string\n{entry}"), of_table(f"{entry}\nproperties: [{{name: a}}]")):
        assert f"warning: '{word}' has no effect here" in "\n".join(found(text))


def test_the_team_is_the_same_in_both_forms():
    members = "{username: a, name: A, dateIn: x}"
    old = load_contract(f"{HEAD}team: [{members}]\n")
    new = load_contract(f"{HEAD}team: {{members: [{members}]}}\n")
    assert old.team == new.team == Team(members=(Member(username="a", name="A"),))
    assert old.custom == new.custom == {DOCUMENT: {"team": {"members": [{"dateIn": "x"}]}}}
