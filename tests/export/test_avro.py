"""An Avro schema: its text, and that it keeps the rules of the specification, by a validator of its own."""

import json
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from databox_contracts.datatypes import parse_type
from databox_contracts.export import export
from databox_contracts.model import Dataset, Field
from databox_contracts.rules import Enum, Format, PrimaryKey, Required, Severity
from databox_contracts.testing import build_contract, build_field

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
LOGICAL = {
    "date": "int",
    "time-micros": "long",
    "timestamp-micros": "long",
    "local-timestamp-micros": "long",
    "uuid": "string",
    "decimal": "bytes",
}


def check(schema, names=None):
    """Fails where the schema is none by the specification."""
    names = names if names is not None else set()
    if isinstance(schema, str):
        assert schema in PRIMITIVES
    elif isinstance(schema, list):
        branches = [branch if isinstance(branch, str) else branch.get("name", branch["type"]) for branch in schema]
        assert len(set(branches)) == len(branches)
        assert not any(isinstance(branch, list) for branch in schema)
        for branch in schema:
            check(branch, names)
    elif schema["type"] in ("record", "enum"):
        assert NAME.fullmatch(schema["name"])
        assert all(NAME.fullmatch(part) for part in schema["namespace"].split("."))
        full = f"{schema['namespace']}.{schema['name']}"
        assert full not in names
        names.add(full)
        if schema["type"] == "enum":
            assert len(set(schema["symbols"])) == len(schema["symbols"]) > 0
            assert all(NAME.fullmatch(symbol) for symbol in schema["symbols"])
        else:
            assert len({field["name"] for field in schema["fields"]}) == len(schema["fields"])
            for field in schema["fields"]:
                assert NAME.fullmatch(field["name"])
                check(field["type"], names)
                if "default" in field:
                    first = field["type"][0] if isinstance(field["type"], list) else field["type"]
                    assert is_value(field["default"], first)
    elif schema["type"] == "array":
        check(schema["items"], names)
    elif schema["type"] == "map":
        check(schema["values"], names)
    else:
        assert LOGICAL[schema["logicalType"]] == schema["type"]
        if schema["logicalType"] == "decimal":
            assert 0 <= schema["scale"] <= schema["precision"] > 0


def is_value(value, schema):
    kind = schema if isinstance(schema, str) else schema["type"]
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bits = 31 if kind == "int" else 63
            return isinstance(value, int) and not isinstance(value, bool) and -(2**bits) <= value < 2**bits
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "bytes":
            return isinstance(value, str) and all(ord(char) < 256 for char in value)
        case "string":
            return isinstance(value, str)
        case "enum":
            return value in schema["symbols"]
        case "array":
            return isinstance(value, list)
        case "map" | "record":
            return isinstance(value, dict)
    return False


def schema_of(*fields, **facts):
    exported = export(build_contract(*fields, **facts), "avro")
    schema = json.loads(exported.text)
    check(schema)
    return schema, list(exported.losses)


def logical(kind, name, **facts):
    return {"type": kind, "logicalType": name, **facts}


TYPES = [
    (None, "string"),
    ("string", "string"),
    ("varchar(3)", "string"),
    ("boolean", "boolean"),
    ("tinyint", "int"),
    ("smallint", "int"),
    ("int", "int"),
    ("bigint", "long"),
    ("float", "float"),
    ("double", "double"),
    ("number", "double"),
    ("decimal(10, 2)", logical("bytes", "decimal", precision=10, scale=2)),
    ("decimal(10)", logical("bytes", "decimal", precision=10, scale=0)),
    ("decimal", logical("bytes", "decimal", precision=38, scale=18)),
    ("date", logical("int", "date")),
    ("timestamp", logical("long", "timestamp-micros")),
    ("timestamptz", logical("long", "timestamp-micros")),
    ("timestamp_ntz", logical("long", "local-timestamp-micros")),
    ("time", logical("long", "time-micros")),
    ("binary", "bytes"),
    ("variant", "string"),
    ("array<int>", {"type": "array", "items": ["null", "int"]}),
    ("array", {"type": "array", "items": "string"}),
    ("map<string, int>", {"type": "map", "values": ["null", "int"]}),
    ("map", {"type": "map", "values": "string"}),
    ("object", {"type": "map", "values": "string"}),
    (
        "struct<a: int>",
        {
            "type": "record",
            "name": "c",
            "namespace": "test.t",
            "fields": [{"name": "a", "type": ["null", "int"], "default": None}],
        },
    ),
]


@pytest.mark.parametrize(("spelling", "expected"), TYPES)
def test_types(spelling, expected):
    schema, _ = schema_of(build_field("c", spelling, Required()))
    assert schema["fields"] == [{"name": "c", "type": expected}]
    schema, _ = schema_of(build_field("c", spelling))
    assert schema["fields"] == [{"name": "c", "type": ["null", expected], "default": None}]


def test_the_record():
    dataset = Dataset(name="t", physical_name="T", description=" One row. ", fields=(build_field("a", "int"),))
    contract = build_contract(id="shop.orders-eu").model_copy(update={"datasets": (dataset,)})
    schema = json.loads(export(contract, "avro").text)
    assert {key: value for key, value in schema.items() if key != "fields"} == {
        "type": "record",
        "name": "T",
        "namespace": "shop.orders_eu",
        "doc": "One row.",
    }
    assert json.loads(export(build_contract(), "avro").text)["fields"] == []


def test_names_of_what_is_inside_never_meet():
    inner = "struct<item: array<struct<item: int>>, c: struct<c: int>>"
    schema, _ = schema_of(build_field("c", f"array<{inner}>"), build_field("item", inner))
    assert schema["name"] == "t"


def test_documentation_is_of_fields_alone():
    item = build_field("item", "int", description="One")
    schema, lost = schema_of(
        Field(name="a", type=parse_type("array"), item=item, description="Many", business_name="Number")
    )
    assert schema["fields"][0]["doc"] == "Many"
    assert "the description of a.item: Avro says nothing of what arrays and maps hold but its type" in lost
    assert "the business name of a: Avro has no place for it" in lost


def test_a_part_of_the_key_is_never_null():
    key = PrimaryKey(fields=("a", "o.b"))
    schema, lost = schema_of(build_field("a", "int"), build_field("o", "struct<b: int>"), rules=(key,))
    assert schema["fields"][0] == {"name": "a", "type": "int"}
    assert schema["fields"][1]["type"][1]["fields"] == [{"name": "b", "type": "int"}]
    assert "`primary_key` of (a, o.b): Avro has no keys; its fields are written without null" in lost


ENUMS = [
    (("new", "old"), ["new", "old"]),
    (("new", None, "new"), ["new"]),
    (("", "a"), None),
    (("not a name",), None),
    ((1, 2), None),
    ((), None),
    ((None,), None),
]


@pytest.mark.parametrize(("values", "symbols"), ENUMS)
def test_an_enumeration_needs_names(values, symbols):
    schema, lost = schema_of(build_field("c", "string", Enum(values=values), Required()))
    written = schema["fields"][0]["type"]
    if symbols is None:
        assert written == "string"
        assert lost[0] == "`enum` of c: the symbols of Avro's enumerations are names, and only texts have one"
    else:
        assert written == {"type": "enum", "name": "c", "namespace": "test.t", "symbols": symbols}
        assert not any("enum" in loss for loss in lost)


def test_one_of_two_enumerations_is_lost_and_so_is_a_warning():
    _, lost = schema_of(build_field("c", "string", Enum(values=("a",)), Enum(values=("b",))))
    assert len([loss for loss in lost if loss.startswith("`enum` of c")]) == 1
    schema, lost = schema_of(build_field("c", "string", Enum(values=("a",), severity=Severity.WARNING)))
    assert schema["fields"][0]["type"] == ["null", "string"]
    assert lost[0] == "`enum` of c: Avro has no lists of allowed values"


def test_a_uuid_is_a_logical_type():
    schema, lost = schema_of(
        build_field("c", "string", Format(format="uuid")), build_field("d", "string", Format(format="email"))
    )
    assert schema["fields"][0]["type"] == ["null", {"type": "string", "logicalType": "uuid"}]
    assert lost[0] == "`format` of d: Avro has no formats of texts"


def test_the_same_rule_at_two_fields():
    rule = Enum(values=("a",))
    _, lost = schema_of(build_field("c", "string", rule), build_field("d", "int", rule))
    assert lost[0].startswith("`enum` of d: ")


DEFAULTS = [
    ("boolean", False, False),
    ("boolean", 0, None),
    ("int", 0, 0),
    ("int", 2**31, None),
    ("int", True, None),
    ("bigint", -(2**63), -(2**63)),
    ("double", 0, 0.0),
    ("double", Decimal("1.5"), 1.5),
    ("double", float("nan"), None),
    ("string", "", ""),
    ("string", 1, None),
    ("decimal(10, 2)", Decimal("1.5"), "\x00\x96"),
    ("decimal(10, 2)", 0, "\x00"),
    ("decimal(10, 2)", -1, "\x9c"),
    ("decimal(10, 2)", Decimal("0.001"), None),
    ("decimal(2, 2)", 1, None),
    ("date", "1970-01-02", 1),
    ("date", date(1969, 12, 31), -1),
    ("date", "soon", None),
    ("timestamp", "1970-01-01T00:00:01Z", 1_000_000),
    ("timestamp", datetime(1970, 1, 1, 1, tzinfo=UTC), 3_600_000_000),
    ("timestamp_ntz", "1970-01-01 00:00:00.000001", 1),
    ("time", time(0, 0, 1), 1_000_000),
    ("variant", "x", None),
    ("array<int>", [], []),
    ("array<int>", [1], None),
    ("map<string, int>", {}, {}),
    ("struct<a: int>", {}, None),
]


@pytest.mark.parametrize(("spelling", "default", "expected"), DEFAULTS)
def test_a_default_is_of_the_first_branch(spelling, default, expected):
    schema, lost = schema_of(build_field("c", spelling, default=default))
    (field,) = schema["fields"]
    if expected is None:
        assert (field["type"][0], field["default"]) == ("null", None)
        assert "the default of c: it is no value of the type in Avro" in lost
    else:
        assert field["type"][1] == "null"
        assert (field["default"], type(field["default"])) == (expected, type(expected))
        assert not any("default" in loss for loss in lost)
    schema, _ = schema_of(build_field("c", spelling, Required(), default=default))
    (field,) = schema["fields"]
    assert field.get("default") == expected


def test_the_default_of_an_enumeration_is_one_of_it():
    for default, expected in (("a", "a"), ("c", None)):
        schema, _ = schema_of(build_field("c", "string", Enum(values=("a", "b")), default=default))
        assert schema["fields"][0]["default"] == expected


def test_what_is_no_name_becomes_one():
    fields = [build_field(name, "int") for name in ("a; drop table x", "a--drop table x", "1st", "å", "", "a`\"'\n")]
    schema, lost = schema_of(*fields, dataset="my table")
    assert schema["name"] == "my_table"
    assert [field["name"] for field in schema["fields"]] == [
        "a__drop_table_x",
        "a__drop_table_x_2",
        "_1st",
        "_",
        "__2",
        "a____",
    ]
    assert "the column's name of a; drop table x: Avro has no such names; written as a__drop_table_x" in lost
    assert "the table's name of my table: Avro has no such names; written as my_table" in lost


def test_what_the_type_does_not_say_is_listed():
    fields = [
        build_field(name, spelling)
        for name, spelling in (
            ("a", None),
            ("b", "number"),
            ("c", "decimal"),
            ("d", "timestamp"),
            ("e", "varchar(3)"),
            ("f", "smallint"),
            ("g", "variant"),
            ("h", "array"),
            ("i", "map<int, tinyint>"),
            ("j", "object"),
        )
    ]
    _, lost = schema_of(*fields)
    assert lost[:-1] == [
        "the type of a: the contract says none; written as string",
        "the width of b: the contract says none; written as double",
        "the precision of c: the contract says none; written as (38, 18)",
        "the time zone of d: the contract says none; written as an instant",
        "the length of e: Avro has no lengths",
        "the width of 16 bits of f: Avro has int (32) and long (64) only; written as int",
        "the type of g: Avro has no variants; written as string",
        "what it holds of h: the contract does not say it; written as string",
        "the type of the keys of i: the keys of Avro's maps are strings",
        "the width of 8 bits of i.value: Avro has int (32) and long (64) only; written as int",
        "what it holds of j: the contract does not say it; written as a map of strings",
    ]
