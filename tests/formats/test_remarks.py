"""What is said of a contract after reading it: no promise is accepted and then not mentioned again."""

import pytest

from databox_contracts import rules
from databox_contracts.errors import Level
from databox_contracts.formats import read
from databox_contracts.formats.remarks import remarks
from databox_contracts.model import Consumer, Dataset
from databox_contracts.rules import NO_ROWS, Operator, Rule, Threshold, Unit
from databox_contracts.testing import build_contract, build_field

CARRIED = "not enforced: this version does not evaluate "

ODCS = """\
apiVersion: v3.1.0
kind: DataContract
id: a
version: 1.0.0
slaProperties:
  - {property: latency, value: 4, unit: h, element: t.at}
  - {property: retention, value: 1, unit: y, element: t.at}
schema:
  - name: t
    quality:
      - {type: sql, query: select count(*) from t, mustBe: 0}
    properties:
      - {name: at, logicalType: timestamp, required: true}
      - {name: mail, logicalType: string, logicalTypeOptions: {format: email}}
      - {name: key, logicalType: string, logicalTypeOptions: {format: uuid}, relationships: [{to: u.key}]}
      - name: items
        logicalType: array
        items:
          logicalType: object
          properties: [{name: link, logicalType: string, logicalTypeOptions: {format: uri}}]
  - name: u
    properties:
      - {name: key, logicalType: string, required: true, unique: true}
"""

DATACONTRACT = """\
dataContractSpecification: 1.2.0
id: a
info: {title: A, version: 1.0.0}
models:
  t:
    type: table
    fields:
      at: {type: timestamp, required: true}
      mail: {type: string, format: email}
servicelevels:
  freshness: {threshold: PT25H, timestampField: t.at}
"""

SODA = """\
dataset: wh/public/t
version: 1.0.0
columns:
  - name: amount
    data_type: decimal
    checks:
      - aggregate: {function: avg, threshold: {must_be_greater_than: 0}}
"""

SECTIONS = """\
contract: {name: a, version: 1.0.0, owner_team: team-a}
schema:
  fields:
    - {name: at, type: TIMESTAMP, nullable: false}
guarantees:
  freshness: {max: 1h}
"""


def carried(text: str) -> list[tuple[str, int, str | None]]:
    """What the notes say is not evaluated, with line and field; the document has no error."""
    contract, findings = read(text)
    assert contract is not None
    assert [finding for finding in findings if finding.level is Level.ERROR] == []
    notes = [finding for finding in findings if finding.message.startswith(CARRIED)]
    assert {finding.level for finding in notes} <= {Level.NOTE}
    assert set(notes) <= set(contract.findings)
    return [(note.message.removeprefix(CARRIED), note.position.line, note.field) for note in notes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ODCS, []),
        (ODCS.replace("format: uuid", "format: morse"), []),
        (DATACONTRACT, []),
        (SODA, []),
        (SECTIONS, []),
    ],
    ids=["odcs", "format", "datacontract", "soda", "sections"],
)
def test_promises_that_are_only_carried_are_notes_at_their_lines(text, expected):
    assert carried(text) == expected


def test_a_rule_without_a_place_of_its_own_is_reported_too():
    field = build_field("a", None, rules.Format(format="morse"))
    (note,) = remarks(build_contract(field), "there")
    assert note.level is Level.NOTE
    assert (note.source, note.message, note.field) == ("there", CARRIED + "the format 'morse'", "a")


def test_what_is_evaluated_is_not_mentioned():
    field = build_field("a", "string", rules.Required(), rules.Format(format="uuid"), rules.MinLength(length=0))
    assert list(remarks(build_contract(field), "there")) == []
    assert list(remarks(build_contract(), "there")) == []


def test_every_kind_of_rule_is_evaluated_or_said_not_to_be():
    # A new kind goes into one of the two lists; NotEnforced is reported by the reader that met it.
    kinds = {kind.kind: kind.evaluated for kind in vars(rules).values() if _is_rule(kind)}
    assert sorted(kind for kind, evaluated in kinds.items() if not evaluated) == []


def _is_rule(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Rule) and value is not Rule


# --- what no schema sees ----------------------------------------------------------------------------------------------

HEAD = "apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: 1.0.0\n"


def of_field(text: str) -> str:
    """A document whose tenth line begins with what is said of the field `p`."""
    return f"{HEAD}schema:\n- name: t\n  properties:\n  - {{name: k, logicalType: integer}}\n  - name: p\n    {text}\n"


def of_ours(text: str) -> str:
    """A document with one rule of ours, at 7:5."""
    rule = f"{{type: custom, engine: databox, implementation: {text}}}"
    return (
        f"{HEAD}schema:\n- name: t\n  quality: [{rule}]\n"
        "  properties: [{name: k, logicalType: integer}, {name: at, logicalType: timestamp},"
        " {name: o, logicalType: object, properties: [{name: in, logicalType: string}]},"
        " {name: v, logicalType: object}]\n"
    )


def said(text: str) -> list[str]:
    """Every finding but the notes on rules that are only carried, without the way out, which each has."""
    found = [finding for finding in read(text)[1] if not finding.message.startswith(CARRIED)]
    assert all(finding.hint for finding in found), found
    return [f"{one.position.line}:{one.position.column}: {one.level}: {one.message}" for one in found]


VALUES = [
    ("logicalType: integer\n    enum: [{value: 0}]\n    logicalTypeOptions: {minimum: 0}", []),
    (
        "logicalType: integer\n    enum: [{value: 0}, {value: 1}]\n    logicalTypeOptions: {minimum: 1}",
        ["11:11: warning: the allowed value 0 never occurs: values that are below 1 break the field's promise"],
    ),
    (
        "physicalType: tinyint\n    enum: [{value: 300}]",
        ["11:11: warning: the allowed value 300 never occurs: values of the type integer(8) do not go so far"],
    ),
    ('logicalType: string\n    enum: [{value: ""}]', []),
    (
        'physicalType: varchar(2)\n    enum: [{value: ""}, {value: abc}, {value: abcd}]',
        [
            "11:11: warning: the allowed value 'abc' (and 1 more) never occurs: values that are longer than 2 "
            "characters are none of the type string(2)"
        ],
    ),
    (
        "logicalType: string\n    enum: [{value: a}]\n    logicalTypeOptions: {pattern: ^b}",
        ["11:11: warning: the allowed value 'a' never occurs: values that do not match ^b break the field's promise"],
    ),
    ("logicalType: string\n    customProperties: [{property: default, value: ''}]", []),
    (
        "logicalType: string\n    enum: [{value: a}]\n    customProperties: [{property: default, value: ''}]",
        ["9:5: warning: the default '' is none of the allowed values"],
    ),
    ("logicalType: integer\n    examples: [0]", []),
    ("logicalType: integer\n    examples: []", []),
    ("logicalType: integer\n    examples: [x]", ["9:5: note: the example 'x' is no value of the type integer"]),
    ("logicalType: boolean\n    examples: [0, 1]",
     ["9:5: note: the example 0 (and 1 more) is no value of the type boolean"]),
    (
        "logicalType: string\n    classification: restricted\n    enum: [{value: a}]\n    examples: [secret]",
        ["9:5: note: an example is none of the allowed values"],
    ),
    ("logicalType: date\n    examples: [2024-02-29, '2023-02-29']",
     ["9:5: note: the example '2023-02-29' is no value of the type date"]),
    ("logicalType: array\n    items: {logicalType: string}\n    examples: [[a]]", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_values_that_the_field_cannot_have(text, expected):
    assert said(of_field(text)) == expected


RANGES = [
    ("logicalType: integer\n    logicalTypeOptions: {minimum: 0, maximum: 0}", []),
    ("logicalType: integer\n    logicalTypeOptions: {minimum: 1, maximum: 0}",
     ["11:47: error: 'minimum' and 'maximum' leave no value"]),
    ("logicalType: integer\n    logicalTypeOptions: {minimum: 1}\n    quality: [{type: custom, engine: databox, "
     "implementation: {rule: maximum, limit: 0}}]", ["12:15: error: minimum and maximum leave no value"]),
    ("logicalType: integer\n    quality: [{type: custom, engine: databox, "
     "implementation: {rule: minimum, limit: x}}]",
     ["11:15: error: minimum is 'x', which is no value of the type integer"]),
    ("physicalType: tinyint\n    logicalTypeOptions: {minimum: 127}", []),
    ("physicalType: tinyint\n    logicalTypeOptions: {minimum: 128}",
     ["11:35: warning: no value of the type integer(8) is within the minimum"]),
    ("physicalType: varchar(2)\n    logicalTypeOptions: {minLength: 2}", []),
    ("physicalType: varchar(2)\n    logicalTypeOptions: {minLength: 3}",
     ["11:37: warning: no value of the type string(2) is within the min length"]),
    ("physicalType: 'decimal(3,1)'\n    logicalTypeOptions: {minimum: 99.9}", []),
    ("physicalType: 'decimal(3,1)'\n    logicalTypeOptions: {exclusiveMinimum: 99.9}",
     ["11:44: warning: no value of the type decimal(3, 1) is within the exclusive minimum"]),
    ("logicalType: array\n    items: {logicalType: string}\n    logicalTypeOptions: {minItems: 0, maxItems: 0}", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), RANGES)
def test_bounds_that_leave_no_value_are_said_once(text, expected):
    assert said(of_field(text)) == expected


SLOW = "repeats a repetition that can be read in several ways"
PATTERNS = [
    ("logicalType: string\n    logicalTypeOptions: {pattern: ''}", []),
    ("logicalType: string\n    logicalTypeOptions: {pattern: '(a+)+$'}",
     [f"11:35: warning: the pattern '(a+)+$' {SLOW}"]),
    ("logicalType: string\n    logicalTypeOptions: {pattern: '(a'}",
     ["11:35: error: the pattern '(a' has a group that is not closed"]),
    ("logicalType: string\n    quality: [{metric: invalidValues, arguments: {pattern: '(a|a)*'}, mustBe: 0}]",
     [f"11:15: warning: the pattern '(a|a)*' {SLOW}"]),
    ("logicalType: string\n    quality: [{type: custom, engine: databox, "
     "implementation: {rule: pattern, pattern: '(a'}}]",
     ["11:15: error: the pattern '(a' has a group that is not closed"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PATTERNS)
def test_patterns_that_cannot_be_run_or_take_for_ever(text, expected):
    assert said(of_field(text)) == expected


CONDITIONS = [
    ("{rule: expression, sql: 'k > 0'}", []),
    ("{rule: expression, sql: 'K > 0 and `k` < 5 and o.in = 1 and v.what = 2'}", []),
    ("{rule: expression, sql: 'exists(array(k), x -> x > 0)'}", []),
    ("{rule: expression, sql: 'kk > 0'}", ["7:13: error: the condition 'kk > 0' names 'kk', which is no field of 't'"]),
    ("{rule: expression, sql: 'o.out > 0'}",
     ["7:13: error: the condition 'o.out > 0' names 'o.out', which is no field of 't'"]),
    ("{rule: expression, sql: '(('}", ["7:13: error: the condition '((' is not SQL that can be read"]),
    ("{rule: expression, sql: 'max(k) > 0'}", ["7:13: error: the condition 'max(k) > 0' is not about one row"]),
    ("{rule: required_when, condition: 'z = 1'}",
     ["7:13: error: the condition 'z = 1' names 'z', which is no field of 't'"]),
    ("{rule: query, sql: 'select count(*) from t where t.k > 0', threshold: {mustBe: 0}}", []),
    ("{rule: query, sql: 'select count(*) from t where z > 0', threshold: {mustBe: 0}}",
     ["7:13: warning: the query names 'z', which is no field of 't'"]),
    ("{rule: query, sql: 'select count(*) from ${table} a where a.z > 0', threshold: {mustBe: 0}}",
     ["7:13: warning: the query names 'z', which is no field of 't'"]),
    ("{rule: query, sql: 'select count(*) from other where z > 0', threshold: {mustBe: 0}}", []),
    ("{rule: query, sql: 'select count(*) from t join other on t.k = y where z > 0', threshold: {mustBe: 0}}", []),
    ("{rule: query, sql: 'select count(*) n from (select k as z from t) where z > 0', threshold: {mustBe: 0}}", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CONDITIONS)
def test_columns_in_sql_that_are_not_declared(text, expected):
    assert said(of_ours(text)) == expected


def test_where_further_columns_are_welcome_an_unknown_one_is_a_warning():
    text = of_ours("{rule: expression, sql: z}").replace(
        "schema:", "customProperties: [{property: schemaModes, value: {columns: evolve}}]\nschema:"
    )
    assert said(text) == ["8:13: warning: the condition 'z' names 'z', which is no field of 't'"]


NAMES = [
    ("{rule: freshness, seconds: 1, element: at}", []),
    ("{rule: freshness, seconds: 1, element: nope}",
     ["7:13: warning: the freshness rule names 'nope', which is no field of 't'"]),
    ("{rule: freshness, seconds: 1, element: k}",
     ["7:13: warning: the freshness rule is about 'k', which is of the type integer"]),
    ("{rule: latency, percentile: 50, seconds: 1, element: at, arrival_field: z}",
     ["7:13: warning: the latency rule names 'z', which is no field of 't'"]),
    ("{rule: unique, fields: [K, o.in]}", []),
    ("{rule: unique, fields: [z]}", ["7:13: warning: a rule names 'z', which is no property of 't'"]),
    ("{rule: foreign_key, fields: [k], to: t, to_fields: [k]}", []),
    ("{rule: foreign_key, fields: [k], to: other.t, to_fields: [k]}", []),
    ("{rule: foreign_key, fields: [k], to: u, to_fields: [k]}",
     ["7:13: warning: the foreign key refers to 'u', which is no dataset of this contract"]),
    ("{rule: foreign_key, fields: [k], to: t, to_fields: [z]}",
     ["7:13: warning: the foreign key refers to 'z', which is no field of 't'"]),
    ("{rule: foreign_key, fields: [k], to: t, to_fields: [k, at]}",
     ["7:13: error: the foreign key has 1 fields and refers to 2"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), NAMES)
def test_names_in_rules_that_nothing_is_called_by(text, expected):
    # Keys of a data set that have other letters in upper case are the same to Spark.
    assert [one for one in said(of_ours(text)) if "'K'" not in one] == expected


def test_names_that_differ_in_case_only():
    text = (
        of_field("physicalType: 'struct<a: int, A: int, b: int>'")
        + "- name: T\n  properties: [{name: x, logicalType: date}]\n"
    )
    assert said(text) == [
        "9:5: warning: Spark takes 'A' and 'a' for the same column",
        "11:3: warning: Spark takes the datasets 'T' and 't' for the same table",
    ]
    assert said(of_field("logicalType: date").replace("name: p", "name: K")) == [
        "9:11: warning: Spark takes 'K' and 'k' for the same column"
    ]


PERCENT = Threshold(Operator.LESS_THAN, 5, unit=Unit.PERCENT)
NULLS = [
    ((rules.Required(),), {}, None),
    ((rules.NullCount(threshold=PERCENT),), {}, None),
    ((rules.Required(), rules.NullCount(threshold=NO_ROWS)), {}, None),
    ((rules.Required(), rules.NullCount(threshold=Threshold(Operator.LESS_THAN, 1))), {}, None),
    ((rules.Required(), rules.NullCount(threshold=PERCENT)), {}, "'a' is required, and a rule allows nulls (< 5%)"),
    ((rules.Required(), rules.MissingCount(missing_values=("",), threshold=PERCENT)), {}, None),
    (
        (rules.Required(), rules.MissingCount(missing_values=(None, ""), threshold=PERCENT)),
        {},
        "'a' is required, and a rule allows missing values (< 5%)",
    ),
    ((rules.Required(),), {"custom": {"nullable": False}}, None),
    (
        (rules.Required(),),
        {"custom": {"nullable": True}},
        "'a' is required, and 'nullable' says that it may be null",
    ),
    (
        (rules.Required(),),
        {"custom": {"$datacontract": {"config": {"isNullable": True}}}},
        "'a' is required, and 'isNullable' says that it may be null",
    ),
    ((rules.Required(),), {"default": ""}, "'a' is required and has a default, so rows may lack it"),
    ((rules.Required(),), {"description": "null for guests"}, "'a' is required, and its description says 'null for'"),
    ((), {"description": "null for guests", "default": ""}, None),
]


@pytest.mark.parametrize(("held", "facts", "expected"), NULLS)
def test_required_here_and_nullable_there(held, facts, expected):
    field = build_field("a", "string", *held, **facts)
    assert [found.message for found in remarks(build_contract(field), "there")] == ([expected] if expected else [])


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (9, 0), (10, 1)])
def test_a_large_dataset_of_required_fields_only(count, expected):
    fields = [build_field(f"f{at}", "int", rules.Required()) for at in range(count)]
    assert len(list(remarks(build_contract(*fields), "there"))) == expected


@pytest.mark.parametrize(("count", "expected"), [(150, []), (151, [Level.NOTE])])
def test_more_rules_than_anybody_looks_after(count, expected):
    field = build_field("a", "int", *[rules.Minimum(limit=0)] * count)
    assert [found.level for found in remarks(build_contract(field), "there")] == expected


CONTACTS = [
    ("mail@example.com", True),
    ("mailto:mail@example.com", True),
    ("https://example.com/team", True),
    ("#team-a", True),
    ("@someone", True),
    ("", False),
    ("somebody", False),
    ("call the office", False),
    ("mail@", False),
]


@pytest.mark.parametrize(("contact", "usable"), CONTACTS)
def test_a_consumer_that_nobody_can_tell(contact, usable):
    consumer = Consumer(name="c", contact=contact)
    found = list(remarks(build_contract(build_field("a", "int"), consumers=(consumer,)), "there"))
    assert [one.level for one in found] == ([] if usable else [Level.WARNING])


def test_contacts_in_documents_have_their_places():
    text = (
        f"{HEAD}support: [{{channel: '#a', url: nowhere}}, {{channel: two words}}, {{channel: '#b'}}]\n"
        "team: {members: [{username: some body}, {username: someone}]}\n"
        "customProperties:\n- {property: noticePeriod, value: soon}\n"
        "- {property: consumers, value: [{name: c, contacts: ['#x', y]}, {name: d, datasets: [u], fields: [t.k]}]}\n"
        "schema: [{name: t, properties: [{name: k, logicalType: date}]}]\n"
    )
    assert said(text) == [
        "5:32: warning: the support channel's URL: nobody is reached by 'nowhere'",
        "5:52: warning: the support channel: nobody is reached by 'two words'",
        "6:29: warning: the team member's username: nobody is reached by 'some body'",
        "8:35: error: the notice period 'soon' is no duration: it has no number",
        "9:32: warning: the consumer 'd' reads 'u', which is no dataset of the contract",
        "9:60: warning: the consumer 'c' cannot be reached: 'y' is neither an address nor a URL nor a channel",
    ]


def test_a_dataset_without_fields_may_have_any():
    rule = rules.Expression(sql="anything > 0")
    contract = build_contract().model_copy(update={"datasets": (Dataset(name="t", rules=(rule,)),)})
    assert [found.message for found in remarks(contract, "there")] == []


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1.0.0", []),
        ("3.10", ["warning: other readers of YAML see the number 3.1 as the version"]),
        ('"3.2"', ["note: the version 3.2 means 3.2.0"]),
        ("v1", ["warning: the version 'v1' is not a semantic version"]),
        ("true", ["warning: the version 'true' is not a semantic version"]),
        ("0x10", ["warning: the version '0x10' is not a semantic version"]),
    ],
)
@pytest.mark.parametrize(
    ("text", "before"), [(ODCS, "id: a\nversion: "), (SODA, "t\nversion: "), (DATACONTRACT, "{title: A, version: ")]
)
def test_versions_are_judged_alike_in_every_dialect(text, before, written, expected):
    document = text.replace(f"{before}1.0.0", f"{before}{written}")
    found = [f"{one.level}: {one.message}" for one in read(document)[1] if "the version" in one.message]
    assert found == expected


# --- evolution --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("{property: evolution, value: {policy: strict, allowed: [remove_field]}}", []),
        ("{property: evolution, value: {policy: backwards_compatible_only}}", []),
        ("{property: evolution, value: {}}", []),
        ("{property: evolution, value: {policy: stricct}}", ["warning: no gate knows the policy 'stricct'"]),
        (
            "{property: evolution, value: {allowed: [remove_fields]}}",
            ["warning: no gate knows the change 'remove_fields'"],
        ),
        (
            "{property: evolution, value: {allowed: [remove_field], disallowed: [remove_field]}}",
            ["warning: 'remove_field' is allowed and disallowed, and counts as disallowed"],
        ),
        ("{property: effectiveDate, value: 2026-01-31}", []),
        ("{property: effectiveDate, value: soon}", ["warning: 'effectiveDate' is no day"]),
        ("{property: sunsetDate, value: 2026-02-30}", ["warning: 'sunsetDate' is no day"]),
        ("{property: changelog, value: [{version: 1.0.0, removed: [a]}]}", []),
        ("{property: changelog, value: {1.0.0: first}}", []),
        ("{property: changelog, value: []}", []),
        ("{property: changelog, value: all new}", ["warning: the changelog does not say which version is which"]),
        ("{property: changelog, value: [x]}", ["warning: the changelog does not say which version is which"]),
    ],
)
def test_what_a_contract_says_of_its_evolution(properties, expected):
    head = "apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: 1.0.0\nstatus: active\nschema:\n- name: t\n"
    text = f"{head}  properties:\n  - {{name: a, logicalType: string}}\ncustomProperties:\n- {properties}\n"
    _, findings = read(text)
    assert [f"{finding.level}: {finding.message}" for finding in findings] == expected
    assert all(finding.position.line == 11 for finding in findings)
