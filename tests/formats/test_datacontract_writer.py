"""A contract as a Data Contract Specification: what is written how, and that its own documents come back whole."""

import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.formats import dump_contract, examine, load_contract, losses
from databox_contracts.formats.canonical import canonical
from databox_contracts.formats.datacontract_types import DOCUMENT
from databox_contracts.formats.datacontract_writer import write
from databox_contracts.formats.datacontract_writer_levels import iso_duration
from databox_contracts.formats.emitting import to_yaml
from databox_contracts.formats.odcs_rules import KINDS, own_attributes
from databox_contracts.model import (
    Consumer,
    Contract,
    Dataset,
    Evolution,
    Field,
    Governance,
    Mode,
    SchemaModes,
    Server,
    Team,
)
from databox_contracts.plan import build_plan
from databox_contracts.rules import NO_ROWS, Dimension, Operator, Rule, Severity, Threshold, Unit
from databox_contracts.testing import build_contract, build_field

CASES = Path(__file__).parents[1] / "cases"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

DOCUMENTS = sorted([*CASES.glob("*/*.y*ml"), *CORPUS.glob("*/*.yaml"), *CORPUS.glob("*/*/*.yaml")])
OWN = [path for path in DOCUMENTS if "dataContractSpecification:" in path.read_text()]
OTHERS = [path for path in DOCUMENTS if path not in OWN]

HEAD = """\
dataContractSpecification: 1.2.0
id: a
info:
  title: A
  version: 1.0.0
"""


def plans(contract: Contract) -> list[list[tuple[object, ...]]]:
    """Every check of every dataset, as far as its result depends on it."""
    return [
        sorted((c.id, c.rule.kind, c.severity, c.dimension, c.path, c.masked) for c in build_plan(contract, one).checks)
        for one in contract.datasets
    ]


def errors(text: str) -> list[str]:
    return [str(finding) for finding in examine(text)[1] if finding.level == "error"]


def assert_comes_back_whole(contract: Contract) -> str:
    """That a contract of this dialect is written without loss, directly and by way of the standard; the text."""
    text = write(contract)
    assert errors(text) == [], text
    again = load_contract(text)
    assert canonical(again) == canonical(contract), text
    assert plans(again) == plans(contract), text
    assert write(again) == text
    by_way_of_the_standard = load_contract(dump_contract(contract))
    assert write(by_way_of_the_standard) == text
    assert losses(contract, "datacontract") == []
    return text


def indented(block: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in block.splitlines())


def of_field(block: str, after: str = "") -> str:
    return HEAD + "models:\n  t:\n    fields:\n      c:\n" + indented(block, 8) + after


def of_model(block: str, after: str = "") -> str:
    fields = "      c: {type: string}\n      at: {type: timestamp, required: true}\n"
    return HEAD + "models:\n  t:\n    fields:\n" + fields + indented(block, 4) + after


# --- documents of its own ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_a_document_comes_back_whole(path):
    assert_comes_back_whole(load_contract(path))


@pytest.mark.parametrize(
    "block",
    [
        "",
        "type: string",
        "type: 'null'",
        "type: ' '",
        "type: text\ntitle: ''\ndescription: ''\nclassification: ''",
        "type: varchar(20)",
        "type: varchar(20)\nmaxLength: 5",
        "type: int",
        "type: bigint",
        "type: smallint",
        "type: number\nprecision: 10",
        "type: numeric\nscale: 0",
        "type: decimal",
        "type: decimal(10, 2)",
        "type: decimal\nprecision: 38\nscale: 38",
        "type: float",
        "type: bytes",
        "type: time",
        "type: json",
        "type: variant\nfields: {a: {type: int}}",
        "type: datetime",
        "type: timestamp_tz",
        "type: timestamp\nformat: yyyy-MM-dd",
        "type: array<struct<a:int>>",
        "type: map<string, int>",
        "type: map\nkeys: {type: int}\nvalues: {}",
        "type: array\nitems: {}",
        "items: {type: int}",
        "fields: {a: {type: int, required: true}, '': null}",
        "type: record\nfields: {a.b: {type: int}, 'NO': }",
        "type: int\nminimum: 0\nexclusiveMaximum: 2\nprecision: 3",
        "type: int\nminLength: 0\nformat: email\npattern: a",
        "type: date\nminimum: 2020-01-01\nmaximum: '2020-12-31'",
        "type: string\nenum: ['', NO, '1.0']\nunique: true\nrequired: false",
        "type: boolean\nenum: [false]",
        "type: double\nenum: [0, 0.5, null]",
        "type: string\nformat: UUID",
        "type: string\nformat: iban",
        "type: string\nformat: ''",
        "type: string\nexample: ''\nexamples: [null, 0]",
        "type: string\ntags: ['', pii]\npii: false\nexamples: [{a: 1}]",
        "type: int\nreferences: t.c",
        "type: int\nreferences: orders.lines.sku",
        "type: array\nitems: {type: int, references: t.c, unique: true}",
        "type: string\nlinks: {}\nlineage: {inputFields: []}\nconfig: {avroType: long}\nx: null\ny: [0]",
        "$ref: https://example.com/x\ntype: int",
        "type: int\nprimary: true",
    ],
)
def test_a_field_comes_back_whole(block):
    contract, found = examine(of_field(block))
    if not [finding for finding in found if finding.level == "error"]:
        assert contract is not None
        assert_comes_back_whole(contract)
    else:
        assert "'': null" in block


@pytest.mark.parametrize(
    ("block", "definition"),
    [
        ("$ref: '#/definitions/x'", "{type: int}"),
        ("$ref: '#/definitions/x'", "{}"),
        ("$ref: '#/definitions/x'\ntype: int", "{}"),
        ("$ref: '#/definitions/x'\ntype: int", "{type: string, minLength: 0}"),
        ("$ref: '#/definitions/x'\nprecision: 5", "{type: decimal, scale: 1}"),
        ("$ref: '#/definitions/x'\ntype: text", "{type: varchar, required: true, unique: true, description: ' a '}"),
        ("$ref: '#/definitions/x'\nrequired: false\nunique: false", "{type: int, required: true, unique: true}"),
        ("$ref: '#/definitions/x'\ndescription: ''\ntags: []", "{type: int, description: a, tags: [b]}"),
        ("$ref: '#/definitions/x'\nexample: 1\nexamples: [2]", "{type: int, example: 3, examples: [4]}"),
        ("$ref: '#/definitions/x'\nexamples: [2]", "{type: int, example: 3}"),
        ("$ref: '#/definitions/x'\nexample: 2", "{type: int, examples: [3]}"),
        ("$ref: '#/definitions/x'", "{type: int, example: 3, examples: [4], pii: true, classification: b}"),
        ("$ref: '#/definitions/x'", "{type: int, minLength: 3, enum: [1, 1], minimum: 0}"),
        ("$ref: '#/definitions/x'", "{type: timestamp, format: yyyy, z: 1}"),
        ("$ref: '#/definitions/x'", "{type: string, format: iban, quality: [{type: text, description: b}]}"),
        ("$ref: '#/definitions/x'\nquality: []", "{type: string, quality: [{metric: nullValues, mustBe: 0}]}"),
        ("$ref: '#/definitions/x'", "{type: string, quality: [{metric: nullValues, mustBe: 0}]}"),
        ("$ref: '#/definitions/x'", "{type: object, fields: {a: {type: int, $ref: '#/definitions/y'}}}"),
        ("$ref: '#/definitions/x'", "{type: map, keys: {type: string}, values: {type: int}}"),
        ("$ref: '#/definitions/x'", "{type: 'array<int>'}"),
        ("$ref: '#/definitions/x'\nreferences: t.c", "{type: int, references: t.d, primaryKey: true}"),
        ("$ref: '#/definitions/x'", "{$ref: '#/definitions/y', title: b}"),
    ],
)
def test_a_field_that_refers_to_a_definition_comes_back_whole(block, definition):
    definitions = f"definitions: {{x: {definition}, y: {{type: long, title: a, minimum: 0}}}}\n"
    text = assert_comes_back_whole(load_contract(of_field(block, definitions)))
    assert yaml.safe_load(text)["models"]["t"]["fields"]["c"]["$ref"] == "#/definitions/x"


def test_what_a_definition_says_is_left_to_it():
    text = of_field(
        "$ref: '#/definitions/x'\nrequired: true", "definitions: {x: {type: varchar, pii: true, minLength: 0}}\n"
    )
    field = yaml.safe_load(write(load_contract(text)))["models"]["t"]["fields"]["c"]
    assert field == {"$ref": "#/definitions/x", "required": True}


def test_a_field_that_has_left_its_definition_no_longer_refers_to_it():
    contract = load_contract(of_field("$ref: '#/definitions/x'", "definitions: {x: {type: int, minimum: 0}}\n"))
    (dataset,) = contract.datasets
    changed = dataset.model_copy(update={"fields": (dataset.fields[0].model_copy(update={"rules": ()}),)})
    text = write(contract.model_copy(update={"datasets": (changed,)}))
    assert yaml.safe_load(text)["models"]["t"]["fields"]["c"] == {"type": "integer"}
    assert load_contract(text).datasets[0].fields[0].rules == ()


@pytest.mark.parametrize(
    "block",
    [
        "",
        "title: ''\ntype: view\ntags: [a]\nconfig: {avroNamespace: b}\nexamples: []\nlinks: {a: b}\nx: 0",
        "type: ''",
        "additionalFields: false",
        "additionalFields: true",
        "primaryKey: [c]",
        "primaryKey: [at, c]",
        "quality: []",
        "quality:\n- {metric: rowCount, mustBeBetween: [0, 1]}",
        "quality:\n- {rule: rowCount, mustNotBe: 0.5, name: '', severity: info, dimension: coverage, x: 1}",
        "quality:\n- {type: sql, query: 'SELECT MAX(c) FROM ${table}', dialect: postgres, mustBeLessThan: 1}",
        "quality:\n- {type: sql, query: 'SELECT 1; SELECT 2', mustBe: 0, dimension: nonsense}",
        "quality:\n- {type: text, description: a}\n- {description: a}\n- {type: soda, x: [1]}",
        "quality:\n- {type: custom, engine: soda, implementation: {type: row_count}}",
        "quality:\n- {metric: duplicateValues, arguments: {properties: [c, at]}, mustBe: 0, unit: percent}",
        "quality:\n- {metric: rowCount, mustBe: 1}\n- {type: text, description: a}\n- {metric: rowCount, mustBe: 1}",
    ],
)
def test_a_model_comes_back_whole(block):
    assert_comes_back_whole(load_contract(of_model(block)))


@pytest.mark.parametrize(
    "block",
    [
        "metric: nullValues\nmustBe: 0",
        "metric: missingValues\narguments: {missingValues: [null, '', NO]}\nmustBeGreaterThanOrEqualTo: 0",
        "metric: invalidValues\narguments: {validValues: [''], pattern: ^a}\nmustBeLessOrEqualTo: 1\nunit: percent",
        "metric: invalidValues\npattern: ''\nmustBe: 0\nseverity: warning",
        "metric: duplicateValues\nmustNotBeBetween: [1, 2.5]",
        "query: SELECT MAX({column}) FROM {table}\nmustBe: 0\ndescription: ' a '",
    ],
)
def test_a_quality_rule_of_a_field_comes_back_whole(block):
    assert_comes_back_whole(load_contract(of_field("type: string\nquality:\n-\n" + indented(block, 2))))


@pytest.mark.parametrize(
    "block",
    [
        "servicelevels: {}",
        "servicelevels: {freshness: {threshold: 25h, timestampField: t.at, x: 1}, retention: {unlimited: true}}",
        "servicelevels: {freshness: {threshold: PT0.5S}, availability: {percentage: 99.9%}, support: {time: 9to5}}",
        "serviceLevels: {retention: {period: P1Y}}\nservicelevels: {frequency: {type: batch}}",
        "servicelevels: {latency: {threshold: 1h, sourceTimestampField: at, processedTimestampField: t.at}}",
        "terms: {}",
        "terms: {usage: a, limitations: ' b ', noticePeriod: P3M, billing: 0, x: []}",
        "terms: {usage: a}\ndefinitions: {}\nlinks: {}\nexamples: []\ntags: ['']\nx-y: {a: null}",
        "servers: {s: {type: s3, environment: '', description: '', location: a, roles: []}, 'NO': {type: x, port: 0}}",
        "schema: {type: x}\nquality: {type: SodaCL, specification: {checks for t: []}}",
        "quality: {type: SodaCL, specification: {checks for t: [row_count > 0, min_length(c) >= 1]}}",
        "quality: {type: SodaCL, specification: {'checks for t [part]': [row_count > 0], filter t: {where: a}}}",
        "quality: {type: SodaCL, specification: {checks for t: [anomaly detection for row_count]}}",
        "quality: {type: SodaCL, specification: 'checks for t: [missing_count(c) = 0, missing_count(c) = 0]'}",
        "quality: {type: montecarlo, specification: x}",
        "quality: {type: SodaCL, specification: {$ref: x.yaml}}",
    ],
)
def test_what_a_document_says_of_the_whole_comes_back_whole(block):
    assert_comes_back_whole(load_contract(of_model("", block + "\n")))


@pytest.mark.parametrize(
    "head",
    [
        HEAD.replace("1.2.0", "1.2"),
        HEAD.replace("1.2.0", "1.1.0"),
        HEAD.replace("1.2.0", "0.9.3"),
        HEAD.replace("1.2.0", "3.0.0"),
        HEAD.replace("dataContractSpecification: 1.2.0\n", ""),
        HEAD + "  status: active\n  owner: ''\n  description: ' a '\n  contact: {}\n  x: 0\n",
        HEAD.replace("  title: A\n", ""),
    ],
)
def test_the_head_of_a_document_comes_back_whole(head):
    assert_comes_back_whole(
        load_contract(head + "models: {t: {fields: {c: {type: int, primary: true, example: 0}}}}\n")
    )


@pytest.mark.parametrize(
    ("version", "models", "expected"),
    [
        ("0.9.3", "{t: {fields: {c: {type: int, primary: true, example: 0}}}}", "0.9.3"),
        ("0.9.3", "{t: {fields: {c: {type: map}}}}", "1.2.0"),
        ("0.9.3", "{t: {fields: {c: {items: {quality: []}}}}}", "1.2.0"),
        ("1.1.0", "{t: {fields: {c: {type: map}}}}", "1.1.0"),
        ("1.1.0", "{t: {additionalFields: false}}", "1.2.0"),
        ("1.1.0", "{t: {fields: {c: {type: object, fields: {d: {type: time}}}}}}", "1.2.0"),
    ],
)
def test_an_older_version_stays_where_it_has_all_the_words(version, models, expected):
    contract = load_contract(HEAD.replace("1.2.0", version) + f"models: {models}\n")
    text = assert_comes_back_whole(contract)
    assert yaml.safe_load(text)["dataContractSpecification"] == expected
    told = [finding.message for finding in contract.findings if "is newer than" in finding.message]
    assert bool(told) == (version != expected)


def test_what_the_old_version_calls_otherwise_is_called_so():
    text = (
        HEAD.replace("1.2.0", "0.9.3") + "models: {t: {fields: {a: {primary: true}, b: {primary: true, example: x}}}}\n"
    )
    fields = yaml.safe_load(write(load_contract(text)))["models"]["t"]["fields"]
    assert fields == {"a": {"primary": True}, "b": {"primary": True, "example": "x"}}


def test_checks_that_the_contract_no_longer_has_are_not_written():
    contract = load_contract(CASES / "datacontract" / "user-events.datacontract.yaml")
    (events,) = contract.datasets
    fewer = events.model_copy(update={"rules": tuple(rule for rule in events.rules if rule.kind != "row_count")})
    text = write(contract.model_copy(update={"datasets": (fewer,)}))
    data = yaml.safe_load(text)
    assert (data["dataContractSpecification"], data.get("quality")) == ("1.2.0", None)
    assert [one["rule"] for one in data["models"]["user_event"]["fields"]["event_type"]["quality"]] == [
        "nullValues",
        "invalidValues",
    ]
    assert data["servicelevels"]["availability"] == {"description": "The topic can be read", "percentage": "99.9%"}
    assert "row_count" not in {rule.kind for rule in load_contract(text).datasets[0].rules}


def test_a_service_level_that_has_changed_is_written_as_it_is():
    text = of_model("", "servicelevels: {freshness: {threshold: 1h}, availability: {percentage: 99%}}\n")
    contract = load_contract(text)
    (table,) = contract.datasets
    changed = tuple(
        rules.Freshness(seconds=60, description=rule.description) if rule.kind == "freshness" else rule
        for rule in table.rules
    )
    written = write(contract.model_copy(update={"datasets": (table.model_copy(update={"rules": changed}),)}))
    assert yaml.safe_load(written)["servicelevels"] == {
        "availability": {"percentage": "99%"},
        "freshness": {"threshold": "PT1M"},
    }


# --- contracts of other dialects --------------------------------------------------------------------------------------


def written(*fields: Field, **facts: Any) -> dict[str, Any]:
    text = write(build_contract(*fields, **facts))
    assert errors(text) == []
    return yaml.safe_load(text)


def field_of(*found: Rule, type: str | DataType | None = "string", **facts: Any) -> dict[str, Any]:
    spelled = type if isinstance(type, str | None) else None
    field = build_field("c", spelled, *found, **facts)
    if isinstance(type, DataType):
        field = field.model_copy(update={"type": type}).completed()
    return written(field)["models"]["t"]["fields"]["c"]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_a_document_of_another_dialect_is_read_again(path):
    contract = load_contract(path)
    text = write(contract)
    assert errors(text) == [], text
    again = load_contract(text)
    assert (again.id, again.version, again.name) == (contract.id, contract.version, contract.name)
    names = [dataset.name for dataset in contract.datasets]
    assert [dataset.name for dataset in again.datasets] == names
    assert write(contract) == text
    assert write(again) == text


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (None, {}),
        (DataType(Family.STRING), {"type": "string"}),
        (DataType(Family.STRING, length=0), {"type": "string", "maxLength": 0}),
        (DataType(Family.BOOLEAN), {"type": "boolean"}),
        (DataType(Family.INTEGER), {"type": "number"}),
        (DataType(Family.INTEGER, bits=16), {"type": "number"}),
        (DataType(Family.INTEGER, bits=32), {"type": "integer"}),
        (DataType(Family.INTEGER, bits=64), {"type": "long"}),
        (DataType(Family.NUMBER), {"type": "number"}),
        (DataType(Family.NUMBER, bits=32), {"type": "float"}),
        (DataType(Family.NUMBER, bits=64), {"type": "double"}),
        (DataType(Family.DECIMAL), {"type": "decimal"}),
        (DataType(Family.DECIMAL, precision=10, scale=0), {"type": "decimal", "precision": 10, "scale": 0}),
        (DataType(Family.DECIMAL, precision=50, scale=2), {"type": "decimal"}),
        (DataType(Family.DATE), {"type": "date"}),
        (DataType(Family.TIMESTAMP), {"type": "timestamp"}),
        (DataType(Family.TIMESTAMP, zone=True), {"type": "timestamp"}),
        (DataType(Family.TIMESTAMP, zone=False), {"type": "timestamp_ntz"}),
        (DataType(Family.TIME), {"type": "time"}),
        (DataType(Family.BINARY), {"type": "bytes"}),
        (DataType(Family.VARIANT), {"type": "variant"}),
        ("array<int>", {"type": "array", "items": {"type": "integer"}}),
        ("map<string, date>", {"type": "map", "values": {"type": "date"}}),
        ("map<int, date>", {"type": "map", "keys": {"type": "integer"}, "values": {"type": "date"}}),
        ("struct<a: string>", {"type": "object", "fields": {"a": {"type": "string"}}}),
    ],
)
def test_types(type_, expected):
    assert field_of(type=type_) == expected


@pytest.mark.parametrize(
    ("type_", "rule", "expected"),
    [
        ("string", rules.Required(), {"required": True}),
        ("string", rules.Required(name="a", description="b", dimension=Dimension.COVERAGE), {"required": True}),
        ("string", rules.Unique(), {"unique": True}),
        ("string", rules.MinLength(length=0), {"minLength": 0}),
        ("int", rules.MinLength(length=0), {}),
        ("string", rules.Pattern(pattern=""), {"pattern": ""}),
        ("string", rules.Pattern(pattern="("), {}),
        ("string", rules.Format(format="email"), {"format": "email"}),
        ("string", rules.Format(format="iban"), {}),
        ("int", rules.Minimum(limit=0), {"minimum": 0}),
        ("decimal(3, 1)", rules.ExclusiveMaximum(limit=Decimal("0.1")), {"exclusiveMaximum": 0.1}),
        ("double", rules.Minimum(limit=float("inf")), {}),
        ("int", rules.Minimum(limit=0.5), {}),
        ("int", rules.Minimum(limit=2.0), {"minimum": 2.0}),
        ("date", rules.Maximum(limit="2020-01-01"), {"maximum": "2020-01-01"}),
        ("date", rules.Maximum(limit=5), {}),
        ("int", rules.Maximum(limit="2020-01-01"), {}),
        ("string", rules.Enum(values=("NO", "", None)), {"enum": ["NO", "", None]}),
        ("boolean", rules.Enum(values=(False,)), {"enum": [False]}),
        ("string", rules.Enum(values=()), {}),
        ("array<int>", rules.Enum(values=("a",)), {"items": {"type": "integer"}}),
        ("array<int>", rules.MinItems(count=0), {"items": {"type": "integer"}}),
        ("int", rules.MultipleOf(divisor=2), {}),
        ("int", rules.ForeignKey(fields=(), to="u", to_fields=("a",)), {"references": "u.a"}),
        ("int", rules.ForeignKey(fields=(), to="u", to_fields=("a", "b")), {}),
        ("int", rules.ForeignKey(fields=(), to="u", to_fields=("a.b",)), {}),
    ],
)
def test_entries_of_a_field(type_, rule, expected):
    found = field_of(rule, type=type_)
    assert {key: value for key, value in found.items() if key not in ("type", "precision", "scale")} == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (rules.NullCount(threshold=NO_ROWS), {"type": "library", "rule": "nullValues", "mustBe": 0}),
        (
            rules.NullCount(threshold=Threshold(Operator.LESS_OR_EQUAL, 5, unit=Unit.PERCENT), severity=Severity.INFO),
            {"type": "library", "severity": "info", "rule": "nullValues", "mustBeLessOrEqualTo": 5, "unit": "percent"},
        ),
        (
            rules.MissingCount(missing_values=(None, ""), threshold=NO_ROWS, dimension=Dimension.COVERAGE),
            {
                "type": "library",
                "dimension": "coverage",
                "rule": "missingValues",
                "arguments": {"missingValues": [None, ""]},
                "mustBe": 0,
            },
        ),
        (rules.MissingCount(missing_values=(), threshold=NO_ROWS), None),
        (
            rules.InvalidCount(valid_values=("a",), pattern="b", threshold=Threshold(Operator.BETWEEN, 0, 1)),
            {
                "type": "library",
                "rule": "invalidValues",
                "arguments": {"validValues": ["a"], "pattern": "b"},
                "mustBeBetween": [0, 1],
            },
        ),
        (rules.InvalidCount(threshold=NO_ROWS), None),
        (rules.InvalidCount(valid_values=(), threshold=NO_ROWS), None),
        (rules.NullCount(threshold=Threshold(Operator.BETWEEN, 1, 0)), None),
        (rules.NullCount(threshold=Threshold(Operator.MUST_BE, float("nan"))), None),
        (rules.DuplicateCount(threshold=NO_ROWS), {"type": "library", "rule": "duplicateValues", "mustBe": 0}),
        (
            rules.Query(sql="SELECT MIN(${column}) FROM ${table}", threshold=Threshold(Operator.GREATER_OR_EQUAL, 0)),
            {"type": "sql", "query": "SELECT MIN({field}) FROM {model}", "mustBeGreaterThanOrEqualTo": 0},
        ),
        (rules.Query(sql="SELECT 1 FROM {object}", threshold=NO_ROWS), None),
        (rules.Query(sql="DROP TABLE a", threshold=NO_ROWS), None),
        (rules.Query(sql="SELECT 1", threshold=Threshold(Operator.MUST_BE, 0, unit=Unit.PERCENT)), None),
        # With a severity, what an entry of the field would say is counted.
        (
            rules.Required(severity=Severity.WARNING),
            {"type": "library", "severity": "warning", "rule": "nullValues", "mustBe": 0},
        ),
        (
            rules.Enum(values=("a",), severity=Severity.WARNING),
            {
                "type": "library",
                "severity": "warning",
                "rule": "invalidValues",
                "arguments": {"validValues": ["a"]},
                "mustBe": 0,
            },
        ),
        (rules.MinLength(length=1, severity=Severity.WARNING), None),
        (rules.Expression(sql="a > 0"), None),
        (rules.NotEnforced(reason="a"), None),
        (rules.NotEnforced(reason="a", name="n", description="b"), {"type": "text", "name": "n", "description": "b"}),
        (
            rules.NotEnforced(
                reason="a",
                custom={"$odcs": {"quality": {"type": "custom", "engine": "soda", "implementation": {"type": "x"}}}},
            ),
            {"type": "custom", "engine": "soda", "implementation": {"type": "x"}},
        ),
    ],
)
def test_quality_of_a_field(rule, expected):
    assert field_of(rule).get("quality", [None]) == [expected]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((rules.PrimaryKey(fields=("a",)),), {"fields": {"a": {"primaryKey": True}, "b": {}}}),
        ((rules.PrimaryKey(fields=("b", "a")),), {"primaryKey": ["b", "a"], "fields": {"a": {}, "b": {}}}),
        ((rules.PrimaryKey(fields=("c",)),), {"fields": {"a": {}, "b": {}}}),
        ((rules.PrimaryKey(fields=("a",), severity=Severity.INFO),), {"fields": {"a": {}, "b": {}}}),
        ((rules.Unique(fields=("a",)),), {"fields": {"a": {"unique": True}, "b": {}}}),
        (
            (rules.Unique(fields=("a", "b")),),
            {
                "fields": {"a": {}, "b": {}},
                "quality": [
                    {
                        "type": "library",
                        "rule": "duplicateValues",
                        "arguments": {"properties": ["a", "b"]},
                        "mustBe": 0,
                    }
                ],
            },
        ),
        (
            (rules.ForeignKey(fields=("a",), to="u.v", to_fields=("x",)),),
            {"fields": {"a": {"references": "u.v.x"}, "b": {}}},
        ),
        (
            (rules.RowCount(threshold=Threshold(Operator.GREATER_THAN, 0)),),
            {
                "fields": {"a": {}, "b": {}},
                "quality": [{"type": "library", "rule": "rowCount", "mustBeGreaterThan": 0}],
            },
        ),
    ],
)
def test_rules_of_a_model(found, expected):
    assert written(Field(name="a"), Field(name="b"), rules=found)["models"]["t"] == expected


AT = build_field("at", "timestamptz", rules.Required())


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (rules.Freshness(seconds=600), {"freshness": {"threshold": "PT10M"}}),
        (
            rules.Freshness(seconds=0, element="at", description="a"),
            {"freshness": {"description": "a", "threshold": "PT0S", "timestampField": "t.at"}},
        ),
        (rules.Freshness(seconds=600, element="nowhere"), None),
        (rules.Freshness(seconds=600, severity=Severity.WARNING), None),
        (rules.Retention(seconds=90 * 86_400), {"retention": {"period": "P90D"}}),
        (
            rules.Latency(percentile=100, seconds=90, element="at", arrival_field="at"),
            {
                "latency": {
                    "threshold": "PT1M30S",
                    "sourceTimestampField": "t.at",
                    "processedTimestampField": "t.at",
                }
            },
        ),
        (rules.Latency(percentile=99, seconds=90, element="at", arrival_field="at"), None),
    ],
)
def test_service_levels(found, expected):
    assert written(AT, rules=(found,)).get("servicelevels") == expected


def test_a_service_level_of_one_table_among_others_names_its_field():
    tables = (Dataset(name="t", fields=(AT,), rules=(rules.Freshness(seconds=60),)), Dataset(name="u", fields=(AT,)))
    assert written(datasets=tables)["servicelevels"]["freshness"]["timestampField"] == "t.at"
    both = tuple(table.model_copy(update={"rules": (rules.Freshness(seconds=60),)}) for table in tables)
    assert written(datasets=both)["servicelevels"]["freshness"] == {"threshold": "PT1M"}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "PT0S"),
        (0.5, "PT0.5S"),
        (90, "PT1M30S"),
        (3600.0, "PT1H"),
        (86_400, "P1D"),
        (90_061, "P1DT1H1M1S"),
        (36_500 * 86_400, "P36500D"),
        (-1, None),
        (float("nan"), None),
        (float("inf"), None),
        (1e-12, None),
        (1e20, None),
    ],
)
def test_a_duration(seconds, expected):
    assert iso_duration(seconds) == expected


def test_what_the_specification_has_words_for():
    contract = build_contract(
        build_field("a", "string", pii=False, classification="", tags=("x",), examples=(0, None), business_name="A"),
        build_field("b", "string", description="B"),
        name="",
        status="active",
        description="What.\n\nUsage: for",
        owner=None,
        team=Team(name="shop"),
        tags=("y",),
        notice_period="P30D",
        governance=Governance(pii_class="high"),
        servers=(Server(name="NO", type="s3", environment="prod", settings={"location": "s3://x", "port": 0}),),
        custom={
            "$odcs": {
                "description": {"purpose": "What.", "usage": "for"},
                "authoritativeDefinitions": [{"type": "wiki", "url": "https://example.com"}, "x"],
            }
        },
    )
    assert yaml.safe_load(write(contract)) == {
        "dataContractSpecification": "1.2.0",
        "id": "test",
        "info": {"title": "", "version": "1.0.0", "status": "active", "description": "What.", "owner": "shop"},
        "servers": {"NO": {"type": "s3", "environment": "prod", "location": "s3://x", "port": 0}},
        "terms": {"usage": "for", "noticePeriod": "P30D"},
        "tags": ["y"],
        "models": {
            "t": {
                "fields": {
                    "a": {
                        "title": "A",
                        "type": "string",
                        "pii": False,
                        "classification": "",
                        "tags": ["x"],
                        "examples": [0, None],
                    },
                    "b": {"type": "string", "description": "B", "pii": True},
                }
            }
        },
        "links": {"wiki": "https://example.com"},
    }


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (None, None),
        (SchemaModes(), False),
        (SchemaModes(columns=Mode.EVOLVE), True),
        (SchemaModes(columns=Mode.DISCARD_VALUE), None),
    ],
)
def test_additional_fields(modes, expected):
    table = Dataset(name="t", modes=modes)
    assert written(datasets=(table,))["models"]["t"].get("additionalFields") == expected


def test_a_table_that_no_model_can_be_named_after_has_the_name_of_the_table():
    tables = (Dataset(name="a/b", physical_name="c"), Dataset(name="a/b"), Dataset(name="c"))
    assert written(datasets=tables)["models"] == {"c": {}}


def test_bounds_that_leave_no_value_are_not_both_written():
    assert field_of(rules.Minimum(limit=2), rules.Maximum(limit=1), type="int") == {"type": "integer", "minimum": 2}


def test_a_foreign_custom_property_of_the_name_is_no_concern():
    contract = build_contract(build_field("c", "int", custom={DOCUMENT: 1}), custom={DOCUMENT: ["x"]})
    assert errors(write(contract)) == []


# --- any contract -----------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8) | st.sampled_from(
    ["NO", "1e3", "3.10", "2020-01-01", "a\nb\n", "a: b", "<<", "{x}", "${table}", "(", "SELECT 1", "a.b"]
)
NAMES = st.sampled_from(["a", "NO", "y", "1", "ä b", "a.b", "t", "<<"])
NUMBERS = st.integers(-(10**12), 10**12) | st.decimals(-(10**6), 10**6, places=3) | st.floats()
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)


@st.composite
def thresholds(draw) -> Threshold:
    operator, unit = draw(st.sampled_from(Operator)), draw(st.sampled_from(Unit))
    high = draw(NUMBERS) if operator in (Operator.BETWEEN, Operator.NOT_BETWEEN) else None
    return Threshold(operator, draw(NUMBERS), high, unit)


# By the annotation of an attribute.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXT,
    "str | None": st.none() | TEXT | NAMES,
    "str | int | None": st.none() | TEXT | st.integers(0, 9),
    "int": st.integers(0, 2**31 - 1),
    "float": st.integers(0, 10**9) | st.floats(),
    "float | None": st.none() | st.integers(0, 100),
    "Number": NUMBERS,
    "Limit": NUMBERS | st.sampled_from(["2020-01-01", "2020-01-01T00:00:00Z", "12:00:00", "x"]),
    "Threshold": thresholds(),
    "tuple[str, ...]": st.lists(NAMES, max_size=3).map(tuple),
    "tuple[Scalar, ...]": st.lists(SCALARS, max_size=3).map(tuple),
    "tuple[Scalar, ...] | None": st.none() | st.lists(SCALARS, max_size=3).map(tuple),
}


@st.composite
def any_rule(draw) -> Rule:
    kind = draw(st.sampled_from(list(KINDS.values())))
    facts = {attribute.name: draw(VALUES[str(attribute.type)]) for attribute in own_attributes(kind)}
    if draw(st.booleans()):
        facts |= {
            "name": draw(st.none() | TEXT),
            "severity": draw(st.sampled_from(Severity)),
            "dimension": draw(st.none() | st.sampled_from(Dimension)),
            "description": draw(TEXT),
            "custom": draw(st.dictionaries(st.sampled_from(["$x", "x"]), DATA, max_size=1)),
        }
    return kind(**facts)


TYPES = st.none() | st.sampled_from(
    [
        *(DataType(family) for family in Family),
        DataType(Family.STRING, length=3),
        DataType(Family.INTEGER, bits=8),
        DataType(Family.INTEGER, bits=32),
        DataType(Family.DECIMAL, precision=50, scale=60),
        DataType(Family.TIMESTAMP, zone=False),
        DataType(Family.ARRAY, item=DataType(Family.MAP, key=DataType(Family.STRING), value=DataType(Family.DATE))),
        DataType(Family.OBJECT, fields=(("NO", DataType(Family.INTEGER, bits=64)),)),
    ]
)


@st.composite
def any_field(draw, name: str, depth: int = 1) -> Field:
    inner = st.none() | any_field("x", depth - 1) if depth else st.none()
    found = Field(
        name=name,
        column_name=draw(st.none() | st.just(f"{name}_")),
        type=draw(TYPES),
        rules=draw(st.lists(any_rule(), max_size=4).map(tuple)),
        fields=tuple(part for part in (draw(inner),) if part is not None),
        item=draw(inner),
        key=draw(inner),
        value=draw(inner),
        description=draw(TEXT),
        business_name=draw(st.none() | TEXT),
        pii=draw(st.none() | st.booleans()),
        classification=draw(st.none() | TEXT),
        tags=draw(st.lists(TEXT, max_size=2).map(tuple)),
        examples=draw(st.lists(DATA, max_size=2).map(tuple)),
        default=draw(SCALARS),
        custom=draw(st.dictionaries(st.sampled_from(["$x", "$odcs"]), DATA, max_size=2)),
    )
    return found.completed()


@st.composite
def any_dataset(draw, name: str) -> Dataset:
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    return Dataset(
        name=name,
        physical_name=draw(st.none() | TEXT),
        fields=tuple(draw(any_field(one)) for one in names),
        rules=draw(st.lists(any_rule(), max_size=6).map(tuple)),
        modes=draw(st.none() | st.builds(SchemaModes, columns=st.sampled_from(Mode))),
        description=draw(TEXT),
        custom=draw(st.dictionaries(st.sampled_from(["$x", "$odcs"]), DATA, max_size=1)),
    )


@st.composite
def any_contract(draw) -> Contract:
    names = draw(st.lists(st.sampled_from(["t", "NO", "shop.orders", "a/b", "", "ä"]), max_size=3, unique=True))
    return Contract(
        id=draw(st.sampled_from(["a", "NO", "1"])),
        name=draw(st.none() | TEXT),
        version=draw(st.sampled_from(["1.0.0", "3.10", "1", "x"])),
        status=draw(TEXT),
        description=draw(TEXT),
        tags=draw(st.lists(TEXT, max_size=2).map(tuple)),
        owner=draw(st.none() | TEXT),
        servers=draw(
            st.just(())
            | st.just((Server(name="s", type="bigquery", settings={"x": 1}), Server(name="s", type="postgres")))
        ),
        datasets=tuple(draw(any_dataset(name)) for name in names),
        consumers=draw(st.just(()) | st.just((Consumer(name="NO"),))),
        evolution=draw(st.none() | st.just(Evolution())),
        governance=draw(st.just(Governance()) | st.just(Governance(pii_class="N"))),
        notice_period=draw(st.none() | st.just("P1D") | TEXT),
        custom=draw(st.dictionaries(st.sampled_from(["$x", "x", "$odcs"]), DATA, max_size=2)),
    )


@settings(max_examples=30, deadline=None)
@given(any_contract())
def test_any_contract_is_written_and_read_again(contract):
    text = write(contract)
    assert errors(text) == [], text
    again = examine(text)[0]
    assert again is not None
    assert write(contract) == text
    # What has come from a document of this dialect comes back whole.
    assert canonical(load_contract(write(again))) == canonical(again), text


# --- any document -----------------------------------------------------------------------------------------------------


@st.composite
def any_entries(draw, depth: int = 1) -> dict[str, Any]:
    """The entries of a field or a definition."""
    found: dict[str, Any] = {}
    for key, values in ENTRIES.items():
        if draw(st.integers(0, 3)) == 3:
            found[key] = draw(values)
    if depth and draw(st.booleans()):
        inner = any_entries(depth - 1)
        found |= draw(
            st.sampled_from(["fields", "items", "map"]).flatmap(
                lambda kind: {
                    "fields": st.builds(lambda one: {"type": "object", "fields": {"x": one}}, inner),
                    "items": st.builds(lambda one: {"type": "array", "items": one}, inner),
                    "map": st.builds(lambda one, two: {"type": "map", "keys": one, "values": two}, inner, inner),
                }[kind]
            )
        )
    return found


QUALITY = st.sampled_from(
    [
        {"metric": "nullValues", "mustBe": 0},
        {"rule": "nullValues", "mustBeLessThan": 0.5, "unit": "percent", "severity": "info", "name": "n", "z": 0},
        {"metric": "duplicateValues", "mustBe": 0, "dimension": "uniqueness", "description": "d"},
        {"metric": "invalidValues", "arguments": {"pattern": "a"}, "mustBe": 0},
        {"query": "SELECT COUNT(*) FROM {model} WHERE {field} = 0", "mustBe": 0, "dialect": "spark"},
        {"type": "text", "description": "prose"},
        {"type": "custom", "engine": "soda", "implementation": ["x"]},
    ]
)
ENTRIES: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(
        ["string", "text", "varchar(3)", "int", "long", "number", "decimal", "timestamp", "date", "smallint", "null"]
    ),
    "$ref": st.sampled_from(["#/definitions/x", "#/definitions/y", "https://example.com/z"]),
    "title": st.sampled_from(["", "T", "NO"]),
    "description": st.sampled_from(["", "D", " D "]),
    "required": st.booleans(),
    "unique": st.booleans(),
    "precision": st.sampled_from([5, 38]),
    "scale": st.sampled_from([0, 2]),
    "format": st.sampled_from(["uuid", "EMAIL", "yyyy", ""]),
    "pattern": st.sampled_from(["", "^a$"]),
    "minLength": st.just(0),
    "maxLength": st.sampled_from([0, 5]),
    "pii": st.booleans(),
    "classification": st.sampled_from(["", "internal"]),
    "tags": st.lists(st.sampled_from(["", "a"]), max_size=2),
    "example": st.sampled_from(["", 0, "x"]),
    "examples": st.lists(st.sampled_from(["", 0, None]), max_size=2),
    "references": st.sampled_from(["t.c", "u.v.w"]),
    "quality": st.lists(QUALITY, max_size=3),
    "links": st.sampled_from([{}, {"a": "b"}]),
    "config": st.sampled_from([{}, {"avroType": "x"}]),
    "x-own": st.sampled_from([None, 0, []]),
}


@st.composite
def any_document(draw) -> dict[str, Any]:
    fields = {"c": draw(any_entries()), "d": draw(any_entries()), "at": {"type": "timestamp", "required": True}}
    if draw(st.booleans()):
        fields["c"]["primaryKey"] = draw(st.booleans())
        fields["d"]["primary"] = draw(st.booleans())
    model = {"fields": fields, "quality": draw(st.lists(st.just({"metric": "rowCount", "mustBe": 0}), max_size=1))}
    extras = {
        "primaryKey": st.sampled_from([["c"], ["d", "c"]]),
        "additionalFields": st.booleans(),
        "title": st.just(""),
        "type": st.just("view"),
    }
    model |= {key: draw(values) for key, values in extras.items() if draw(st.booleans())}
    whole = {
        "servicelevels": st.sampled_from([{}, {"freshness": {"threshold": "1h"}, "availability": {}}]),
        "terms": st.sampled_from([{}, {"usage": "U"}, {"limitations": " L ", "noticePeriod": "P1D"}]),
        "quality": st.just({"type": "SodaCL", "specification": {"checks for t": ["missing_count(c) = 0"]}}),
        "definitions": st.just({}),
    }
    document = {
        "dataContractSpecification": draw(st.sampled_from(["0.9.3", "1.1.0", "1.2.0", "1.2"])),
        "id": "i",
        "info": {"title": "t", "version": "1", "description": draw(st.sampled_from(["", "D", "a\n\nUsage: U"]))},
        "models": {"t": model, "u": None},
    }
    document |= {key: draw(values) for key, values in whole.items() if draw(st.booleans())}
    entries = any_entries().map(lambda found: {key: value for key, value in found.items() if key != "$ref"})
    document["definitions"] = {"x": draw(entries), "y": {**draw(entries), "$ref": "#/definitions/x"}}
    return document


@settings(max_examples=50, deadline=None)
@given(any_document())
def test_any_document_of_its_own_comes_back_whole(document):
    contract, found = examine(to_yaml(document))
    if contract is not None and not any(finding.level == "error" for finding in found):
        assert_comes_back_whole(contract)


# --- time -------------------------------------------------------------------------------------------------------------


def test_a_thousand_contracts_are_written_in_reasonable_time():
    contract = load_contract(CASES / "datacontract" / "user-events.datacontract.yaml")
    write(contract)
    started = time.perf_counter()
    for _ in range(20):
        write(contract)
    # The YAML text itself takes most of it.
    assert (time.perf_counter() - started) / 20 < 0.25
