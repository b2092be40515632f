"""A Spark schema as JSON: what Spark itself reads from it, without a session."""

import json

import pytest
from pyspark.sql.types import ArrayType, MapType, StructType

from databox_contracts.datatypes import parse_type
from databox_contracts.export import export
from databox_contracts.model import Field
from databox_contracts.rules import PrimaryKey, Required, Severity
from databox_contracts.spark.schema import to_data_type
from databox_contracts.testing import build_contract, build_field

TYPES = [
    (None, "string"),
    ("string", "string"),
    ("boolean", "boolean"),
    ("tinyint", "byte"),
    ("smallint", "short"),
    ("int", "integer"),
    ("bigint", "long"),
    ("float", "float"),
    ("double", "double"),
    ("number", "double"),
    ("decimal(10, 2)", "decimal(10,2)"),
    ("decimal", "decimal(38,18)"),
    ("date", "date"),
    ("timestamp", "timestamp"),
    ("timestamptz", "timestamp"),
    ("timestamp_ntz", "timestamp_ntz"),
    ("time", "time(6)"),
    ("binary", "binary"),
    ("variant", "variant"),
    ("array<int>", {"type": "array", "elementType": "integer", "containsNull": True}),
    ("array", {"type": "array", "elementType": "string", "containsNull": True}),
    ("map<string, int>", {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": True}),
    ("object", {"type": "struct", "fields": []}),
]


@pytest.mark.parametrize(("spelling", "expected"), TYPES)
def test_types(spelling, expected):
    field = build_field("c", spelling)
    data = json.loads(export(build_contract(field), "spark-json").text)
    assert data == {
        "type": "struct",
        "fields": [{"name": "c", "type": expected, "nullable": True, "metadata": {}}],
    }
    (column,) = StructType.fromJson(data).fields
    if field.type is not None:
        assert field.type.accepts(to_data_type(column.dataType))


def test_what_spark_reads():
    contract = build_contract(
        build_field("id", "bigint"),
        build_field("name", "string", Required(), description="Who.", column_name="NAME"),
        build_field("soft", "string", Required(severity=Severity.WARNING)),
        Field(
            name="who",
            type=parse_type("struct"),
            fields=(build_field("age", "int", Required(), description="Years"), build_field("size", "int")),
        ),
        Field(name="items", type=parse_type("array"), item=build_field("item", "int", Required())),
        Field(
            name="labels",
            type=parse_type("map"),
            key=build_field("key", "string", Required()),
            value=build_field("value", "int", Required()),
        ),
        rules=(PrimaryKey(fields=("id", "who.size")),),
    )
    exported = export(contract, "spark-json")
    schema = StructType.fromJson(json.loads(exported.text))
    assert [(field.name, field.nullable, field.metadata) for field in schema.fields] == [
        ("id", False, {}),
        ("NAME", False, {"comment": "Who."}),
        ("soft", True, {}),
        ("who", True, {}),
        ("items", True, {}),
        ("labels", True, {}),
    ]
    assert [(field.name, field.nullable, field.metadata) for field in schema["who"].dataType.fields] == [
        ("age", False, {"comment": "Years"}),
        ("size", False, {}),
    ]
    items, labels = schema["items"].dataType, schema["labels"].dataType
    assert isinstance(items, ArrayType)
    assert isinstance(labels, MapType)
    assert (items.containsNull, labels.valueContainsNull) == (False, False)
    assert "`required` of soft: a Spark schema has no severities, and this is only a warning" in exported.losses
    assert not any("items" in loss or "labels" in loss for loss in exported.losses)


def test_no_columns():
    assert json.loads(export(build_contract(), "spark-json").text) == {"type": "struct", "fields": []}


def test_texts_are_kept_as_they_are():
    name, comment = 'a`";\n', "it's\t\\ åäö 🦆"
    data = json.loads(export(build_contract(build_field(name, "int", description=comment)), "spark-json").text)
    assert (data["fields"][0]["name"], data["fields"][0]["metadata"]) == (name, {"comment": comment})
