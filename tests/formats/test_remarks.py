"""What is said of a contract after reading it: no promise is accepted and then not mentioned again."""

import pytest

from databox_contracts import rules
from databox_contracts.errors import Level
from databox_contracts.formats import read
from databox_contracts.formats.remarks import remarks
from databox_contracts.rules import Rule
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
        (
            ODCS,
            [
                ("freshness rules", 6, None),
                ("retention rules", 7, None),
                ("query rules", 11, None),
                ("the format 'email'", 14, "mail"),
                ("foreign_key rules", 15, "key"),
                ("the format 'uri'", 20, "items.link"),
            ],
        ),
        (DATACONTRACT, [("the format 'email'", 9, "mail"), ("freshness rules", 11, None)]),
        (SODA, [("statistic rules", 7, "amount")]),
        (SECTIONS, [("freshness rules", 6, None)]),
    ],
    ids=["odcs", "datacontract", "soda", "sections"],
)
def test_promises_that_are_only_carried_are_notes_at_their_lines(text, expected):
    assert carried(text) == expected


def test_a_rule_without_a_place_of_its_own_is_reported_too():
    field = build_field("a", None, rules.Expression(sql="a > 0"))
    (note,) = remarks(build_contract(field), "there")
    assert (note.source, note.message, note.field) == ("there", CARRIED + "expression rules", "a")


def test_what_is_evaluated_is_not_mentioned():
    field = build_field("a", "string", rules.Required(), rules.Format(format="uuid"), rules.Minimum(limit=0))
    assert list(remarks(build_contract(field), "there")) == []
    assert list(remarks(build_contract(), "there")) == []


def test_every_kind_of_rule_is_evaluated_or_said_not_to_be():
    # A new kind goes into one of the two lists; NotEnforced is reported by the reader that met it.
    kinds = {kind.kind: kind.evaluated for kind in vars(rules).values() if _is_rule(kind)}
    assert sorted(kind for kind, evaluated in kinds.items() if not evaluated) == [
        "completeness",
        "expression",
        "foreign_key",
        "freshness",
        "latency",
        "query",
        "required_when",
        "retention",
        "statistic",
    ]


def _is_rule(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Rule) and value is not Rule
