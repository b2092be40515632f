"""Contracts in six sections: what becomes which rule, and what every mistake is told."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from databox_contracts import rules
from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import Finding, Level
from databox_contracts.formats import detect, load_contract, read
from databox_contracts.formats.sections_fields import DOCUMENT
from databox_contracts.model import Evolution, Governance
from databox_contracts.rules import Operator, Threshold, Unit

CASES = Path(__file__).parents[1] / "cases" / "sections"

HEAD = "contract:\n  name: shop.order\n  version: 1.0.0\n"
FIELD = HEAD + "schema:\n  fields:\n  - name: c\n"
TABLE = HEAD + "schema:\n  fields:\n  - {name: id, type: STRING}\n  - {name: at, type: TIMESTAMP, nullable: false}\n"


def indented(block: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in block.splitlines())


def of_field(block: str) -> str:
    """A contract whose only field `c` stands in line 6 and has `block` from line 7, column 5 on."""
    return FIELD + indented(block, 4)


def field(block: str):
    return load_contract(of_field(block)).datasets[0].fields[0]


def facts(rule: rules.Rule) -> tuple[type, dict[str, object]]:
    return type(rule), {name: getattr(rule, name) for name in type(rule).__slots__}


def own(findings: Iterable[Finding]) -> list[Finding]:
    """Without the notes on rules that are only carried, which are the same in every dialect (`test_remarks`)."""
    return [finding for finding in findings if "this version does not evaluate" not in finding.message]


def found(text: str) -> list[str]:
    """Findings as `line:column: level: message`."""
    return [f"{f.place.removeprefix('<text>:')}: {f.level}: {f.message}" for f in own(read(text)[1])]


# --- whole documents --------------------------------------------------------------------------------------------------


def test_the_sample_loads_and_lists_what_it_cannot_hold():
    contract = load_contract(CASES / "transaction.v3.yaml")
    assert (contract.id, contract.version, contract.owner, contract.dialect) == (
        "payments.transaction",
        "3.2",
        "payments-platform",
        "sections",
    )
    assert contract.team.name == "payments-platform"
    assert contract.custom[DOCUMENT]["contract"] == {
        "on_call_slack": "#payments-oncall",
        "ownership_email": "payments-platform@example.com",
        "created": "2024-08-12",
        "updated": "2026-04-15",
    }
    assert contract.evolution == Evolution(
        policy="backwards_compatible_only",
        allowed=("add_optional_field", "widen_enum_values", "widen_numeric_type"),
        disallowed=(
            "remove_field",
            "rename_field",
            "narrow_enum_values",
            "change_field_type",
            "tighten_nullability",
        ),
        deprecation_window_days=90,
    )
    assert contract.governance == Governance(
        pii_class="B",
        retention_days=2555,
        purposes=("payment_processing",),
        read=("analytics", "ml-fraud", "finance-eng"),
        write=("payments-platform",),
    )
    assert [(finding.level, finding.position.line) for finding in own(contract.findings)] == [
        (Level.NOTE, 4),
        (Level.NOTE, 29),
        (Level.WARNING, 41),
        (Level.WARNING, 45),
        (Level.NOTE, 47),
    ]


def test_the_rules_of_the_sample():
    (transactions,) = load_contract(CASES / "transaction.v3.yaml").datasets
    assert (transactions.name, transactions.table_name) == ("transaction", "payments.transaction")
    by_name = {field.name: [facts(rule) for rule in field.rules] for field in transactions.fields}
    assert by_name == {
        "id": [(rules.Format, {"format": "uuid"}), (rules.Required, {}), (rules.Unique, {"fields": ()})],
        "merchant_id": [(rules.Format, {"format": "uuid"}), (rules.Required, {})],
        "amount_paise": [
            (rules.Required, {}),
            (rules.ExclusiveMinimum, {"limit": 0}),
            (rules.ExclusiveMaximum, {"limit": 10_000_000_000}),
        ],
        "currency": [
            (rules.Enum, {"values": ("INR", "USD", "EUR", "GBP", "AED", "SGD")}),
            (rules.Required, {}),
        ],
        "status": [
            (rules.Enum, {"values": ("INITIATED", "AUTHORIZED", "CAPTURED", "REFUNDED", "FAILED")}),
            (rules.Required, {}),
        ],
        "created_at": [(rules.Required, {})],
    }
    assert transactions.fields[2].type == DataType(Family.INTEGER, bits=64)
    assert transactions.fields[2].semantics == "Before taxes and fees.\nA refund is a row of its own."
    assert (transactions.fields[3].default, transactions.fields[0].semantics) == ("INR", "")
    own = [facts(rule) for rule in transactions.rules if not isinstance(rule, rules.NotEnforced)]
    assert own == [
        (rules.ForeignKey, {"fields": ("merchant_id",), "to": "merchants.merchant", "to_fields": ("id",)}),
        (rules.Retention, {"seconds": 2555 * 86400, "element": None}),
    ]
    skipped = [rule.name for rule in transactions.rules if isinstance(rule, rules.NotEnforced)]
    assert skipped == ["freshness p50", "freshness p95", "freshness p99", "p99_per_hour"]


def test_a_document_that_can_be_measured_loads_without_a_finding():
    contract = load_contract(CASES / "measured.v1.yaml")
    # A promise and a default are no contradiction in this form, and still worth a second look.
    assert [finding.message for finding in own(contract.findings)] == [
        "'state' is required and has a default, so rows may lack it"
    ]
    (orders,) = contract.datasets
    by_name = {field.name: [facts(rule) for rule in field.rules] for field in orders.fields}
    assert by_name["total"] == [
        (rules.Minimum, {"limit": 0}),
        (rules.ExclusiveMaximum, {"limit": 1_000_000}),
        (rules.Expression, {"sql": "total >= discount"}),
    ]
    assert by_name["discount"] == [(rules.Minimum, {"limit": 0}), (rules.Maximum, {"limit": 100})]
    assert by_name["note"] == [(rules.MaxLength, {"length": 200}), (rules.Expression, {"sql": "note LIKE 'a%'"})]
    assert by_name["state"] == [(rules.Enum, {"values": ("NEW", "DONE")}), (rules.Required, {})]
    assert by_name["placed_at"] == [(rules.Required, {}), (rules.Minimum, {"limit": "2020-01-01T00:00:00"})]
    times = {"element": "placed_at", "arrival_field": "loaded_at"}
    assert [facts(rule) for rule in orders.rules] == [
        (rules.PrimaryKey, {"fields": ("id", "shop_id")}),
        (rules.ForeignKey, {"fields": ("shop_id",), "to": "shop.branch", "to_fields": ("id",)}),
        (rules.Freshness, {"seconds": 3600, "element": "placed_at"}),
        (rules.Latency, {"percentile": 95, "seconds": 300, **times}),
        (rules.Latency, {"percentile": 99.9, "seconds": 900, **times}),
        (
            rules.Completeness,
            {
                "threshold": Threshold(Operator.GREATER_OR_EQUAL, 99.95, unit=Unit.PERCENT),
                "period": "hour",
                "expected": 1000,
                "percent_of_periods": 99,
            },
        ),
        (rules.Unique, {"fields": ("shop_id", "placed_at")}),
        (rules.Retention, {"seconds": 30 * 86400, "element": None}),
    ]
    assert orders.fields[4].pii is False
    assert contract.governance.purposes == ("billing", "support")


def test_without_a_block_the_form_s_own_policy_holds():
    expected = Evolution(
        policy="backwards_compatible_only",
        allowed=("add_optional_field", "widen_enum_values", "widen_numeric_type"),
    )
    assert load_contract(TABLE).evolution == expected
    assert load_contract(TABLE + "evolution: {}\n").evolution == expected


def test_an_empty_list_of_allowed_changes_allows_none():
    assert load_contract(TABLE + "evolution: {allowed: []}\n").evolution.allowed == ()


def test_the_sections_may_stand_in_the_header():
    inside = HEAD + indented("schema:\n  fields:\n  - {name: id, type: UUID}\ngovernance: {pii_class: B}", 2)
    contract = load_contract(inside)
    assert own(contract.findings) == []
    assert [field.name for field in contract.datasets[0].fields] == ["id"]
    assert contract.governance.pii_class == "B"


# --- constraints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "constraint", "expected"),
    [
        ("INT64", "c > 0", [(rules.ExclusiveMinimum, {"limit": 0})]),
        ("INT64", "0 < c", [(rules.ExclusiveMinimum, {"limit": 0})]),
        ("INT64", "c >= -5", [(rules.Minimum, {"limit": -5})]),
        ("INT64", "10 >= c", [(rules.Maximum, {"limit": 10})]),
        ("INT64", "10 > c", [(rules.ExclusiveMaximum, {"limit": 10})]),
        ("INT64", "0 <= c", [(rules.Minimum, {"limit": 0})]),
        ("DOUBLE", "c <= 0.5", [(rules.Maximum, {"limit": 0.5})]),
        (
            "INT64",
            "(c > 0) and (c < 9)",
            [(rules.ExclusiveMinimum, {"limit": 0}), (rules.ExclusiveMaximum, {"limit": 9})],
        ),
        ("INT64", "c in (0, 1)", [(rules.Enum, {"values": (0, 1)})]),
        ("STRING", "c in ('', 'a')", [(rules.Enum, {"values": ("", "a")})]),
        ("STRING", "length(c) > 0", [(rules.MinLength, {"length": 1})]),
        ("DATE", "c >= '2020-01-01'", [(rules.Minimum, {"limit": "2020-01-01"})]),
        ("DATE", "c >= DATE '2020-01-01'", [(rules.Minimum, {"limit": "2020-01-01"})]),
        ("STRING", "c IS NOT NULL", [(rules.Required, {})]),
        ("INT64", "c % 5 = 0", [(rules.MultipleOf, {"divisor": 5})]),
        ("INT64", "c % 5 = 1", [(rules.Expression, {"sql": "c % 5 = 1"})]),
        ("INT64", "c % 0 = 0", [(rules.Expression, {"sql": "c % 0 = 0"})]),
        ("STRING", "c RLIKE '[a-z]'", [(rules.Pattern, {"pattern": "[a-z]"})]),
        # Where Java means something else, it stays Java's.
        ("STRING", "c RLIKE 'a$'", [(rules.Expression, {"sql": "c RLIKE 'a$'"})]),
        ("ARRAY", "size(c) > 0", [(rules.MinItems, {"count": 1})]),
        ("ARRAY", "size(c) <= 0", [(rules.MaxItems, {"count": 0})]),
        ("ARRAY", "size(array_distinct(c)) = size(c)", [(rules.UniqueItems, {})]),
        ("STRING", "NOT (c = 'a') OR c IS NOT NULL", [(rules.RequiredWhen, {"condition": "c = 'a'"})]),
        ("INT64", "c <> 0", [(rules.Expression, {"sql": "c <> 0"})]),
        ("INT64", "c > 0 or c < -9", [(rules.Expression, {"sql": "c > 0 or c < -9"})]),
        ("INT64", "c > 0 and c <> 2", [(rules.Expression, {"sql": "c > 0 and c <> 2"})]),
        ("STRING", "c > 'a'", [(rules.Expression, {"sql": "c > 'a'"})]),
        ("STRING", "c > 0", [(rules.Expression, {"sql": "c > 0"})]),
        ("DATE", "c > 'soon'", [(rules.Expression, {"sql": "c > 'soon'"})]),
        ("INT64", "c not in (1)", [(rules.Expression, {"sql": "c not in (1)"})]),
        ("INT64", "c not between 1 and 2", [(rules.Expression, {"sql": "c not between 1 and 2"})]),
    ],
)
def test_a_constraint(type_, constraint, expected):
    assert [facts(rule) for rule in field(f'type: {type_}\nconstraints: ["{constraint}"]').rules] == expected


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ("c >", "cannot be read"),
        ("", "cannot be read"),
        ("d > 0", "names 'd', which is no field"),
        ("1 > 0", "names no field"),
        ("max(c) > 0", "is not about one row"),
        ("c > (select 1)", "is not about one row"),
        ("c; drop table t", "cannot be read"),
        ("drop table t", "cannot be read"),
        ("c + 1", "is no condition"),
        ("c > 0" + " and c > 0" * 400, "is too long"),
        ("(" * 900 + "c > 0" + ")" * 900, "cannot be read"),
    ],
)
def test_what_is_no_constraint(constraint, message):
    (one,) = found(of_field(f'type: INT64\nconstraints: ["{constraint}"]'))
    assert one.startswith("8:19: error: the constraint ")
    assert message in one


# --- types ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("INT32", DataType(Family.INTEGER, bits=32)),
        ("FLOAT64", DataType(Family.NUMBER, bits=64)),
        ("STRING", DataType(Family.STRING)),
        ("BOOL", DataType(Family.BOOLEAN)),
        ("DATE", DataType(Family.DATE)),
        ("TIMESTAMP", DataType(Family.TIMESTAMP)),
        ('"DECIMAL(10, 2)"', DataType(Family.DECIMAL, precision=10, scale=2)),
        ("ARRAY<STRING>", DataType(Family.ARRAY, item=DataType(Family.STRING))),
    ],
)
def test_a_type(type_, expected):
    assert field(f"type: {type_}").type == expected


def test_nullable_is_not_required():
    assert field("type: STRING\nnullable: true").rules == ()
    assert field("type: STRING").rules == ()


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (of_field("type: INT65"), ["7:11: error: unknown type 'INT65'"]),
        (of_field("type: ENUM"), ["7:11: error: an ENUM lists no 'values'"]),
        (of_field("type: ENUM\nvalues: []"), ["7:11: error: an ENUM lists no 'values'"]),
        (of_field("type: ENUM\nvalues: [A, A]"), ["8:17: warning: a value is listed twice"]),
        (
            of_field("type: ENUM\nvalues: [A]\ndefault: B"),
            ["9:14: error: the default 'B' is none of the allowed values"],
        ),
        (of_field("description: x"), ["6:5: note: the field has no type, so none is checked"]),
        (of_field("type: STRING\nnullabel: false"), ["8:5: warning: the unknown key 'nullabel' is ignored"]),
        (of_field("type: STRING\nrequired: true"), ["8:5: warning: the unknown key 'required' is ignored"]),
        (of_field("type: INT64\nconstraints: c > 0"), ["8:18: error: 'constraints' must be a list"]),
        (
            of_field('type: INT64\nconstraints: ["c > 5", "c < 5"]'),
            ["8:28: error: exclusive minimum and exclusive maximum leave no value"],
        ),
        (of_field("type: UUID\nforeign_key: id"), ["8:18: error: the foreign key 'id' names no field of a contract"]),
        (
            of_field("type: UUID\nname: d").replace("    name: d\n", "  - {name: c, type: INT64}\n"),
            ["8:12: error: the field 'c' stands here again"],
        ),
        (TABLE + "guarantees: {uniqueness: idd}\n", ["8:26: error: 'idd' is no field of 'order'"]),
        (TABLE + "guarantees: {uniqueness: []}\n", ["8:26: warning: 'uniqueness' names no field"]),
        (
            TABLE + "guarantees: {freshness: soon}\n",
            ["8:25: error: 'freshness': 'soon' is no duration: it has no number"],
        ),
        (
            TABLE + "guarantees: {freshness: {p50: 5m, p99: 1m, arrival_field: at, timestamp_field: at}}\n",
            ["8:40: error: p99 is shorter than p50, which it includes"],
        ),
        (TABLE + "guarantees: {freshness: {q50: 5m}}\n", ["8:26: warning: the unknown key 'q50' is ignored"]),
        (
            TABLE + "guarantees: {completeness: {p99_per_hour: 101, expected: o}}\n",
            ["8:43: error: 'p99_per_hour' must be a number from 0 to 100, not '101'"],
        ),
        (
            TABLE + "guarantees: {completeness: 99.9%}\n",
            [
                "8:28: warning: not enforced: 'completeness' names no period and nothing to hold the number of rows"
                " against"
            ],
        ),
        (
            TABLE + "guarantees: {ordering: by_id}\n",
            ["8:24: warning: not enforced: the order of rows (by_id), which a table does not have"],
        ),
        (
            TABLE + "guarantees: {availability: 99.9}\n",
            ["8:28: warning: not enforced: the guarantee 'availability' is not measured on the data"],
        ),
        (TABLE + "guarantees: {latency: 5m}\n", ["8:14: warning: the unknown key 'latency' is ignored"]),
        (TABLE + "semantics: {idd: x}\n", ["8:18: warning: 'idd' is explained and is no field"]),
        (TABLE + "evolution: {allowed: [ad_field]}\n", ["8:23: warning: unknown change 'ad_field'"]),
        (
            TABLE + "evolution: {allowed: [remove_field], disallowed: [remove_field]}\n",
            ["8:50: error: 'remove_field' is allowed and disallowed"],
        ),
        (
            TABLE + "governance: {retention_days: 0}\n",
            ["8:30: error: 'retention_days' must be a whole number of at least 1, not the number 0"],
        ),
        (TABLE + "governance: {rbac: {reed: [a]}}\n", ["8:21: warning: the unknown key 'reed' is ignored"]),
        (
            of_field("type: INT64") + "governance: {retention_days: 1}\n",
            ["8:30: warning: not enforced: 'retention_days' names no timestamp that says how old a row is"],
        ),
        (TABLE.replace("1.0.0", "3.10"), ["3:12: warning: other readers of YAML see the number 3.1 as the version"]),
        (TABLE.replace("1.0.0", "3.2"), ["3:3: note: the version 3.2 means 3.2.0"]),
        (TABLE.replace("  version: 1.0.0\n", ""), ["2:3: error: the contract has no 'version'"]),
        (
            TABLE.replace("contract:\n", "contract:\n  ownership_email: nobody\n"),
            ["2:20: warning: 'ownership_email' is no address that mail reaches: 'nobody'"],
        ),
        (
            TABLE.replace("contract:\n", "contract:\n  on_call_slack: two words\n  created: today\n"),
            [
                "2:18: warning: 'on_call_slack' is no channel: 'two words'",
                "3:12: warning: 'created' is no date: 'today'",
            ],
        ),
        (HEAD + "schema: {fields: []}\n", ["4:9: warning: the schema declares no fields, so no column is checked"]),
        (HEAD + "schema:\n", ["1:1: warning: the contract declares no schema, so it promises nothing"]),
        (TABLE + "extra: 1\n", ["8:1: warning: the unknown key 'extra' is ignored"]),
        (
            TABLE + "guarantees: {freshness: {p99: 5m, p99.0: 9m, arrival_field: at, timestamp_field: at}}\n",
            ["8:42: error: p99.0 and p99 are the same percentile"],
        ),
        (
            TABLE + "guarantees: {completeness: {expected: o}}\n",
            ["8:28: warning: 'completeness' promises no percentage"],
        ),
        (TABLE + "guarantees: {uniqueness: [[id], [idd]]}\n", ["8:34: error: 'idd' is no field of 'order'"]),
        (
            TABLE + "governance: {pii_class: [B]}\n",
            ["8:25: error: 'pii_class' must be text, not a list"],
        ),
        (
            TABLE + "governance: {timestamp_field: at}\n",
            ["8:31: warning: 'timestamp_field' has no effect without 'retention_days'"],
        ),
        (TABLE + "enforcement: {mode: warn}\n", ["8:14: error: a grace period has no end"]),
        (TABLE + "enforcement: {mode: shout}\n", ["8:21: error: unknown enforcement mode 'shout'"]),
        (TABLE + "consumers: [{contact: a}]\n", ["8:13: error: a consumer has no 'name'"]),
        (TABLE + "  modes: frozen\n", ["8:10: error: unknown schema mode 'frozen'"]),
        (TABLE + "  primary_key: [idd]\n", ["8:16: error: 'idd' is no field of the table"]),
        (
            TABLE + "  constraints: ['id = 1', 'idd > 1']\n",
            ["8:27: error: the constraint 'idd > 1' names 'idd', which is no field"],
        ),
        (TABLE + "  name: a/b\n", ["8:9: error: the name 'a/b' may not hold /: it names a directory"]),
        (
            of_field("type: STRING\nitems: {type: STRING}"),
            ["8:12: error: a field of the type string has no 'items'"],
        ),
        (
            of_field("type: ARRAY\nitems: {type: STRING, primary_key: true}"),
            ["8:40: error: what an array or a map contains is no key of the table"],
        ),
        (
            of_field("type: ARRAY\nitems: {type: INT64, constraints: [item <> 3]}"),
            [
                "8:40: error: the constraint 'item <> 3' compares what an array or a map contains with more than fixed"
                " values"
            ],
        ),
        (
            of_field("type: ARRAY\ndefault: 1"),
            ["8:14: warning: the default of array fields must be a list or a mapping, and is ignored"],
        ),
    ],
)
def test_a_mistake_is_told_where_it_stands(text, findings):
    assert found(text) == findings


def test_a_lost_indentation_is_said_and_not_repaired():
    contract, findings = read("contract:\nname: a\nversion: 1.0.0\nschema:\n")
    assert contract is None
    assert findings[0].message == "'contract' is empty"
    assert findings[0].hint == "indent its entries below `contract:`"


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"contract": {}, "schema": {}}, "sections"),
        ({"contract": {"schema": {}}}, "sections"),
        ({"contract": None, "schema": None}, "sections"),
        ({"contract": {}}, None),
        ({"schema": {}}, None),
    ],
)
def test_which_documents_are_recognised(data, name):
    chosen = detect(data)
    assert (chosen.name if chosen is not None else None) == name
