"""A JSON Schema of a row: its text, that it is one, and that it takes the rows which the contract takes."""

import json
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import jsonschema_rs
import pytest

from databox_contracts.datatypes import parse_type
from databox_contracts.export import export
from databox_contracts.model import Dataset, Field, Mode, SchemaModes
from databox_contracts.row_validation import validate_row
from databox_contracts.rules import (
    Enum,
    ExclusiveMaximum,
    ExclusiveMinimum,
    Format,
    InvalidCount,
    Maximum,
    MaxItems,
    MaxLength,
    Minimum,
    MinItems,
    MinLength,
    MissingCount,
    MultipleOf,
    NullCount,
    Operator,
    Pattern,
    PrimaryKey,
    Required,
    Severity,
    Threshold,
    UniqueItems,
)
from databox_contracts.testing import build_contract, build_field

NONE = Threshold(Operator.MUST_BE, 0)
SOME = Threshold(Operator.LESS_THAN, 5)


def schema_of(contract, dataset=None):
    text = export(contract, "json-schema", dataset=dataset).text
    schema = json.loads(text)
    jsonschema_rs.meta.validate(schema)
    return schema


def column(*rules, spelling="string", **facts):
    contract = build_contract(build_field("c", spelling, *rules, **facts))
    return schema_of(contract)["properties"]["c"], list(export(contract, "json-schema").losses)[:-1]


def test_the_schema():
    field = build_field(
        "c",
        "varchar(9)",
        Required(),
        description=" Code. ",
        business_name="Code",
        deprecated=True,
        default="",
        examples=("a", 1, date(2026, 1, 2)),
        column_name="C",
    )
    dataset = Dataset(name="t", physical_name="T", description="One row.", fields=(field,))
    contract = build_contract().model_copy(update={"datasets": (dataset,)})
    assert export(contract, "json-schema").text == (
        "{\n"
        '  "$schema": "https://json-schema.org/draft/2020-12/schema",\n'
        '  "$comment": "test 1.0.0",\n'
        '  "title": "T",\n'
        '  "description": "One row.",\n'
        '  "type": "object",\n'
        '  "properties": {\n'
        '    "C": {\n'
        '      "title": "Code",\n'
        '      "description": "Code.",\n'
        '      "deprecated": true,\n'
        '      "default": "",\n'
        '      "examples": ["a", 1, "2026-01-02"],\n'
        '      "type": "string",\n'
        '      "maxLength": 9\n'
        "    }\n"
        "  },\n"
        '  "required": ["C"],\n'
        '  "additionalProperties": false\n'
        "}\n"
    )
    assert list(export(contract, "json-schema").losses) == [
        "the logical name of c, t: JSON Schema has no place for it",
        "the status draft: JSON Schema has no place for it",
    ]


TYPES = [
    (None, {}),
    ("string", {"type": ["string", "null"]}),
    ("varchar(0)", {"type": ["string", "null"], "maxLength": 0}),
    ("boolean", {"type": ["boolean", "null"]}),
    ("tinyint", {"type": ["integer", "null"], "minimum": -128, "maximum": 127}),
    ("bigint", {"type": ["integer", "null"], "minimum": -(2**63), "maximum": 2**63 - 1}),
    ("double", {"type": ["number", "null"]}),
    ("number", {"type": ["number", "null"]}),
    ("decimal(4, 2)", {"type": ["number", "null"], "exclusiveMinimum": -100, "exclusiveMaximum": 100}),
    ("decimal(2)", {"type": ["integer", "null"], "exclusiveMinimum": -100, "exclusiveMaximum": 100}),
    ("decimal", {"type": ["number", "null"]}),
    ("date", {"type": ["string", "null"], "format": "date"}),
    ("binary", {"type": ["string", "null"], "contentEncoding": "base64"}),
    ("variant", {}),
    ("array", {"type": ["array", "null"]}),
    ("array<boolean>", {"type": ["array", "null"], "items": {"type": ["boolean", "null"]}}),
    ("map", {"type": ["object", "null"]}),
    ("map<string, boolean>", {"type": ["object", "null"], "additionalProperties": {"type": ["boolean", "null"]}}),
    ("object", {"type": ["object", "null"]}),
    (
        "struct<a: boolean>",
        {
            "type": ["object", "null"],
            "properties": {"a": {"type": ["boolean", "null"]}},
            "additionalProperties": False,
        },
    ),
]


@pytest.mark.parametrize(("spelling", "expected"), TYPES)
def test_types(spelling, expected):
    written, _ = column(spelling=spelling)
    assert written == expected
    required, _ = column(Required(), spelling=spelling)
    if expected:
        assert required == expected | {"type": expected["type"][0]}
    else:
        assert required == {"not": {"type": "null"}}


RULES = [
    (Enum(values=("a", "")), {"enum": ["a", "", None]}),
    (Enum(values=(None,)), {"enum": [None]}),
    (Enum(values=()), {"enum": [None]}),
    (Pattern(pattern="^a.$"), {"pattern": "^a.$"}),
    (Format(format="email"), {"format": "email"}),
    (Format(format="byte"), {"contentEncoding": "base64"}),
    (MinLength(length=0), {"minLength": 0}),
    (MaxLength(length=0), {"maxLength": 0}),
    (InvalidCount(valid_values=("a",), threshold=NONE), {"enum": ["a", None]}),
    (InvalidCount(pattern="a", threshold=NONE), {"pattern": "a"}),
    (MissingCount(missing_values=("", "-"), threshold=NONE), {"not": {"enum": ["", "-"]}}),
]


@pytest.mark.parametrize(("rule", "expected"), RULES, ids=lambda value: getattr(value, "kind", ""))
def test_rules_of_texts(rule, expected):
    written, lost = column(rule)
    assert written == {"type": ["string", "null"]} | expected
    assert lost == []


def test_rules_of_numbers_and_arrays():
    written, lost = column(
        Minimum(limit=0),
        ExclusiveMinimum(limit=-1),
        Maximum(limit=Decimal("99999999999999999999.99")),
        ExclusiveMaximum(limit=1.5),
        MultipleOf(divisor=Decimal("0.25")),
        Enum(values=(0, 1.5)),
        spelling="number",
    )
    assert {key: value for key, value in written.items() if key not in ("type", "maximum")} == {
        "minimum": 0,
        "exclusiveMinimum": -1,
        "exclusiveMaximum": 1.5,
        "multipleOf": 0.25,
        "enum": [0, 1.5, None],
    }
    assert lost == []
    exact = build_contract(build_field("c", "number", Maximum(limit=Decimal("99999999999999999999.99"))))
    assert '"maximum": 99999999999999999999.99' in export(exact, "json-schema").text
    written, lost = column(MinItems(count=0), MaxItems(count=0), UniqueItems(), spelling="array<int>")
    assert (written["minItems"], written["maxItems"], written["uniqueItems"]) == (0, 0, True)
    assert lost == []


def test_of_two_bounds_the_narrower_and_of_two_patterns_both():
    written, _ = column(Minimum(limit=-1), Minimum(limit=0), Maximum(limit=300), spelling="tinyint")
    assert (written["minimum"], written["maximum"]) == (0, 127)
    written, _ = column(MaxLength(length=5), spelling="varchar(3)")
    assert written["maxLength"] == 3
    written, _ = column(Pattern(pattern="a"), Format(format="uuid"))
    assert written["pattern"] == "a"
    assert len(written["allOf"]) == 1


def test_null_is_refused_where_it_is_required_in_whatever_words():
    for rule in (
        Required(),
        NullCount(threshold=NONE),
        MissingCount(missing_values=(None, ""), threshold=NONE),
    ):
        contract = build_contract(build_field("c", "string", rule))
        assert schema_of(contract)["required"] == ["c"]
        assert schema_of(contract)["properties"]["c"]["type"] == "string"
    written, _ = column(Required(), Enum(values=()))
    assert written == {"type": "string", "not": {}}
    keyed = build_contract(build_field("c", "string"), rules=(PrimaryKey(fields=("c",)),))
    assert schema_of(keyed)["required"] == ["c"]
    assert (
        "`primary_key` of (c): JSON Schema has no keys; its fields are required" in export(keyed, "json-schema").losses
    )


LOST = [
    (Required(severity=Severity.WARNING), "string", "JSON Schema has no severities, and this is only a warning"),
    (NullCount(threshold=SOME), "string", "JSON Schema has no limits of a number of rows"),
    (InvalidCount(valid_values=("a",), threshold=SOME), "string", "JSON Schema has no limits of a number of rows"),
    (Minimum(limit="2020-01-01"), "date", "JSON Schema has bounds for numbers only"),
    (Minimum(limit="a"), "string", "JSON Schema has bounds for numbers only"),
    (Maximum(limit=float("inf")), "double", "JSON Schema has bounds for numbers only"),
    (MultipleOf(divisor=0), "int", "JSON Schema has positive divisors only"),
    (Format(format="swift"), "string", "JSON Schema has no such format"),
    (Enum(values=(float("nan"),)), "double", "its values have no JSON"),
]


@pytest.mark.parametrize(("rule", "spelling", "reason"), LOST)
def test_what_it_cannot_say(rule, spelling, reason):
    written, lost = column(rule, spelling=spelling)
    assert lost[-1] == f"`{rule.kind}` of c: {reason}"
    assert written == column(spelling=spelling)[0]


def test_inside_an_object_that_may_be_null_a_count_of_nulls_is_no_requirement():
    field = Field(name="o", type=parse_type("struct"), fields=(build_field("c", "int", NullCount(threshold=NONE)),))
    contract = build_contract(field)
    assert "required" not in schema_of(contract)["properties"]["o"]
    assert (
        "`null_count` of o.c: JSON Schema has no limits of a number of rows" in export(contract, "json-schema").losses
    )


@pytest.mark.parametrize(
    ("mode", "is_open"),
    [(Mode.FREEZE, False), (Mode.DISCARD_ROW, False), (Mode.EVOLVE, True), (Mode.DISCARD_VALUE, True), (None, False)],
)
def test_other_columns_by_the_mode(mode, is_open):
    modes = SchemaModes(columns=mode) if mode is not None else None
    dataset = Dataset(name="t", fields=(build_field("o", "struct<a: int>"),), modes=modes)
    schema = schema_of(build_contract().model_copy(update={"datasets": (dataset,)}))
    assert schema["additionalProperties"] is is_open
    assert schema["properties"]["o"]["additionalProperties"] is is_open


def test_modes_that_it_cannot_say():
    dataset = Dataset(name="t", modes=SchemaModes(data_type=Mode.DISCARD_ROW))
    contract = build_contract().model_copy(update={"datasets": (dataset,)})
    assert export(contract, "json-schema").losses[0] == (
        "the schema modes of t: JSON Schema says only whether there may be other columns"
    )
    assert schema_of(contract) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "test 1.0.0",
        "title": "t",
        "type": "object",
    }


def test_examples_of_personal_data_are_not_shown():
    written, lost = column(examples=("x@example.com",), pii=True)
    assert written == {"type": ["string", "null"]}
    assert "the examples of c: values of a field that is marked are not shown" in lost


def test_keys_of_maps():
    key = build_field("key", "string", Pattern(pattern="^[a-z]+$"), MaxLength(length=3))
    field = Field(name="c", type=parse_type("map"), key=key, value=build_field("value", "int", Required()))
    contract = build_contract(field)
    assert schema_of(contract)["properties"]["c"]["propertyNames"] == {"pattern": "^[a-z]+$", "maxLength": 3}
    other = Field(name="c", type=parse_type("map"), key=build_field("key", "int", Minimum(limit=0)))
    lost = export(build_contract(other), "json-schema").losses
    assert lost[:2] == (
        "the type of the keys of c: the names in a JSON object are texts",
        "`minimum` of c.key: the names in a JSON object are texts",
    )


# --- rows -------------------------------------------------------------------------------------------------------------

UUID = "0b8f6d9e-2f5c-4d55-8d4f-0a1b2c3d4e5f"


def rows_contract():
    return build_contract(
        build_field("id", "string", Format(format="uuid"), Required()),
        build_field("code", "varchar(4)", Pattern(pattern="^[A-Z]"), MinLength(length=2)),
        build_field("state", "string", Enum(values=("new", ""))),
        build_field("count", "int", Minimum(limit=0), ExclusiveMaximum(limit=10)),
        build_field("ratio", "double", Maximum(limit=1)),
        build_field("price", "decimal(6, 2)", MultipleOf(divisor=Decimal("0.25"))),
        build_field("flag", "boolean"),
        build_field("day", "date"),
        build_field("seen", "timestamp with time zone"),
        build_field("local", "timestamp_ntz"),
        build_field("at", "time"),
        Field(
            name="items",
            type=parse_type("array"),
            item=Field(
                name="item",
                type=parse_type("struct"),
                fields=(build_field("sku", "string", Required()), build_field("n", "int", Minimum(limit=1))),
            ),
            rules=(MinItems(count=1), UniqueItems()),
        ),
        build_field("labels", "map<string, int>"),
    )


GOOD = {
    "id": UUID,
    "code": "AB",
    "state": "new",
    "count": 0,
    "ratio": 1.0,
    "price": Decimal("9999.75"),
    "flag": False,
    "day": date(2026, 2, 28),
    "seen": datetime(2026, 2, 28, 23, 59, 59, 120000, tzinfo=UTC),
    "local": datetime(2026, 2, 28, 23, 59, 59),
    "at": time(23, 59, 59),
    "items": [{"sku": "a", "n": 1}, {"sku": "a", "n": None}],
    "labels": {"x": 1, "y": None},
}
NULLS = {"id": UUID, **dict.fromkeys(tuple(GOOD)[1:])}

ROWS = [
    ({}, True),
    (NULLS, True),
    ({"state": ""}, True),
    ({"count": 9}, True),
    ({"items": [None]}, True),
    ({"labels": {}}, True),
    ({"id": None}, False),
    ({"id": "x"}, False),
    ({"id": f"{UUID} "}, False),
    ({"code": "A"}, False),
    ({"code": "ABCDE"}, False),
    ({"code": "aB"}, False),
    ({"code": 12}, False),
    ({"state": "old"}, False),
    ({"count": -1}, False),
    ({"count": 10}, False),
    ({"count": 1.5}, False),
    ({"count": "1"}, False),
    ({"ratio": 1.0001}, False),
    ({"ratio": True}, False),
    ({"price": Decimal("10000")}, False),
    ({"price": Decimal("1.10")}, False),
    ({"flag": 0}, False),
    ({"flag": "false"}, False),
    ({"day": "2026-02-28T00"}, False),
    ({"seen": datetime(2026, 2, 28)}, False),
    ({"local": datetime(2026, 2, 28, tzinfo=UTC)}, False),
    ({"at": "24:00:00"}, False),
    ({"items": []}, False),
    ({"items": [{"sku": "a", "n": 1}, {"sku": "a", "n": 1}]}, False),
    ({"items": [{"sku": None, "n": 1}]}, False),
    ({"items": [{"sku": "a", "n": 0}]}, False),
    ({"items": {"sku": "a"}}, False),
    ({"labels": {"x": "1"}}, False),
    ({"labels": ["x"]}, False),
]


def as_json(value):
    match value:
        case dict():
            return {key: as_json(inner) for key, inner in value.items()}
        case list():
            return [as_json(inner) for inner in value]
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return float(value)
    return value


@pytest.mark.parametrize(("changes", "is_valid"), ROWS)
def test_rows_are_valid_as_by_the_contract(changes, is_valid):
    contract = rows_contract()
    row = GOOD | changes
    assert validate_row(row, contract, contract.datasets[0]).is_valid is is_valid
    validator = jsonschema_rs.validator_for(schema_of(contract), validate_formats=True)
    assert validator.is_valid(as_json(row)) is is_valid


def test_a_row_may_leave_out_what_may_be_null_and_nothing_else():
    validator = jsonschema_rs.validator_for(schema_of(rows_contract()))
    assert validator.is_valid({"id": UUID})
    assert not validator.is_valid({})
    assert not validator.is_valid({"id": UUID, "more": 1})


def test_patterns_of_moments_are_anchored():
    schema = schema_of(rows_contract())
    for name in ("seen", "local", "at"):
        pattern = schema["properties"][name]["pattern"]
        assert pattern.startswith("^")
        assert pattern.endswith("$")
        re.compile(pattern)


CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")
def test_every_document_gives_a_schema():
    from databox_contracts.formats import load_contract

    for path in sorted(CORPUS.rglob("*.y*ml")):
        contract = load_contract(path)
        for dataset in contract.datasets:
            schema_of(contract, dataset.name)
