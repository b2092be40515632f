"""A Spark schema as DDL: its text, and that others read it as what the contract says."""

import pytest
import sqlglot
from sqlglot import exp

from databox_contracts.datatypes import parse_type
from databox_contracts.export import export
from databox_contracts.formats import load_contract
from databox_contracts.model import Field
from databox_contracts.rules import PrimaryKey, Required, Severity
from databox_contracts.testing import build_contract, build_field

TYPES = [
    (None, "STRING"),
    ("string", "STRING"),
    ("varchar(12)", "STRING"),
    ("boolean", "BOOLEAN"),
    ("tinyint", "TINYINT"),
    ("smallint", "SMALLINT"),
    ("int", "INT"),
    ("bigint", "BIGINT"),
    ("float", "FLOAT"),
    ("double", "DOUBLE"),
    ("number", "DOUBLE"),
    ("decimal(10, 2)", "DECIMAL(10, 2)"),
    ("decimal(38)", "DECIMAL(38, 0)"),
    ("decimal", "DECIMAL(38, 18)"),
    ("decimal(50, 3)", "DECIMAL(38, 3)"),
    ("date", "DATE"),
    ("timestamp", "TIMESTAMP"),
    ("timestamptz", "TIMESTAMP"),
    ("timestamp_ntz", "TIMESTAMP_NTZ"),
    ("time", "TIME(6)"),
    ("binary", "BINARY"),
    ("variant", "VARIANT"),
    ("array<int>", "ARRAY<INT>"),
    ("array", "ARRAY<STRING>"),
    ("map<string, array<double>>", "MAP<STRING, ARRAY<DOUBLE>>"),
    ("map", "MAP<STRING, STRING>"),
    ("struct<a: int, b: struct<c: date>>", "STRUCT<`a`: INT, `b`: STRUCT<`c`: DATE>>"),
    ("object", "STRUCT<>"),
]


@pytest.mark.parametrize(("spelling", "expected"), TYPES)
def test_types(spelling, expected):
    field = build_field("c", spelling)
    text = export(build_contract(field), "spark-ddl").text
    assert text == f"`c` {expected}\n"
    if field.type is not None and spelling not in ("decimal(50, 3)", "timestamptz"):
        # In no dialect but Spark's is TIMESTAMP sure to be an instant.
        assert field.type.accepts(parse_type(expected))


def test_required_keys_and_comments():
    contract = build_contract(
        build_field("id", "bigint"),
        build_field("name", "string", Required(), description=" Who. "),
        build_field("soft", "string", Required(severity=Severity.WARNING)),
        Field(
            name="who",
            type=parse_type("struct"),
            fields=(build_field("age", "int", Required(), description="Years"), build_field("size", "int")),
        ),
        Field(name="items", type=parse_type("array"), item=build_field("item", "int", Required(), description="One")),
        Field(
            name="labels",
            type=parse_type("map"),
            key=build_field("key", "string", Required()),
            value=build_field("value", "int", Required()),
        ),
        rules=(PrimaryKey(fields=("id", "who.size")),),
    )
    exported = export(contract, "spark-ddl")
    assert exported.text == (
        "`id` BIGINT NOT NULL,\n"
        "`name` STRING NOT NULL COMMENT 'Who.',\n"
        "`soft` STRING,\n"
        "`who` STRUCT<`age`: INT NOT NULL COMMENT 'Years', `size`: INT NOT NULL>,\n"
        "`items` ARRAY<INT>,\n"
        "`labels` MAP<STRING, INT>\n"
    )
    assert list(exported.losses) == [
        "the name of t: a Spark schema describes columns only",
        "`required` of soft: a Spark schema has no severities, and this is only a warning",
        "`required` of items.item: Spark's DDL cannot say it of the items of arrays and maps",
        "`required` of labels.value: Spark's DDL cannot say it of the values of arrays and maps",
        "`primary_key` of (id, who.size): a Spark schema has no keys; its fields are written as not null",
        "the description of items.item: Spark's DDL has no comments on the items of arrays and maps",
        "the id test, the version 1.0.0, the status draft: a Spark schema has no place for it",
    ]


def test_what_the_type_does_not_say_is_listed():
    fields = [
        build_field(name, spelling)
        for name, spelling in (
            ("a", None),
            ("b", "number"),
            ("c", "decimal"),
            ("d", "decimal(50, 3)"),
            ("e", "timestamp"),
            ("f", "varchar(3)"),
            ("g", "array"),
            ("h", "object"),
            ("i", "array<varchar(4)>"),
            ("j", "map"),
        )
    ]
    assert list(export(build_contract(*fields), "spark-ddl").losses)[1:-1] == [
        "the type of a: the contract says none; written as STRING",
        "the width of b: the contract says none; written as DOUBLE",
        "the precision of c: the contract says none; written as DECIMAL(38, 18)",
        "the precision of d: Spark has at most 38 digits; written as DECIMAL(38, 3)",
        "the time zone of e: the contract says none; written as TIMESTAMP",
        "the length of f, i.item: a Spark schema has no lengths",
        "what it holds of g, j: the contract does not say it; written as STRING",
        "what it holds of h: the contract does not say it; written without fields",
    ]


def test_no_columns():
    assert export(build_contract(), "spark-ddl").text == "\n"


HOSTILE = [
    "a; drop table x",
    "a` INT, `b",
    "it's",
    "back\\slash\\",
    "\\' COMMENT",
    "two\nlines",
    'quo"ted',
    "-- a comment",
    "/* a comment */",
    "åäö 漢字 🦆",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_stays_a_name_and_a_comment_a_comment(text):
    inner = build_field(text, "int", description=text)
    outer = Field(name="o", type=parse_type("struct"), fields=(inner,))
    written = export(build_contract(build_field(text, "int", description=text), outer), "spark-ddl").text
    (table,) = sqlglot.parse(f"CREATE TABLE t ({written})", dialect="spark")
    column, holder = table.this.expressions
    (part,) = holder.args["kind"].expressions
    for found in (column, part):
        assert found.name == text
        (comment,) = (
            found.find_all(exp.CommentColumnConstraint)
            if found is part
            else column.find_all(exp.CommentColumnConstraint)
        )
        assert comment.this.name == text


def test_the_text_is_read_as_the_contract_says(golden_contract):
    text = export(golden_contract, "spark-ddl").text
    read = parse_type(f"STRUCT<{text}>")
    (dataset,) = golden_contract.datasets
    assert [name for name, _ in read.fields] == [field.column for field in dataset.fields]
    for field, (_, type_) in zip(dataset.fields, read.fields, strict=True):
        assert field.type.family is type_.family


@pytest.fixture
def golden_contract(request):
    cases = request.path.parents[1] / "cases"
    return load_contract(cases / "odcs" / "orders.odcs.yaml")
