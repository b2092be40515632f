"""Types: what a spelling means, and which table columns keep the promise."""

import pytest

from databox_contracts.datatypes import DataType, Family, parse_type
from databox_contracts.errors import UnknownTypeError

STRING = DataType(Family.STRING)
INT = DataType(Family.INTEGER, bits=32)
LONG = DataType(Family.INTEGER, bits=64)
INTEGER = DataType(Family.INTEGER)
NUMBER = DataType(Family.NUMBER)
FLOAT = DataType(Family.NUMBER, bits=32)
DOUBLE = DataType(Family.NUMBER, bits=64)
TIMESTAMP = DataType(Family.TIMESTAMP)
ZONED = DataType(Family.TIMESTAMP, zone=True)
ZONELESS = DataType(Family.TIMESTAMP, zone=False)


def decimal(precision: int, scale: int) -> DataType:
    return DataType(Family.DECIMAL, precision=precision, scale=scale)


SPELLINGS = [
    ("string", STRING),
    ("STRING", STRING),
    ("  text ", STRING),
    ("uuid", STRING),
    ("varchar", STRING),
    ("varchar(10)", DataType(Family.STRING, length=10)),
    ("varchar[10]", DataType(Family.STRING, length=10)),
    ("VARCHAR2( 10 )", DataType(Family.STRING, length=10)),
    ("character varying(3)", DataType(Family.STRING, length=3)),
    ("char(1)", DataType(Family.STRING, length=1)),
    ("bool", DataType(Family.BOOLEAN)),
    ("tinyint", DataType(Family.INTEGER, bits=8)),
    ("smallint", DataType(Family.INTEGER, bits=16)),
    ("int", INT),
    ("integer", INT),
    ("serial", INT),
    ("int4", INT),
    ("bigint", LONG),
    ("long", LONG),
    ("int8", LONG),
    ("float", FLOAT),
    ("real", FLOAT),
    ("double", DOUBLE),
    ("double  precision", DOUBLE),
    ("number", NUMBER),
    ("decimal", DataType(Family.DECIMAL)),
    ("decimal(10,2)", decimal(10, 2)),
    ("DECIMAL (10 , 2)", decimal(10, 2)),
    ("numeric(5)", decimal(5, 0)),
    ("number(38, 0)", decimal(38, 0)),
    ("date", DataType(Family.DATE)),
    ("timestamp", TIMESTAMP),
    ("timestamptz", ZONED),
    ("timestamp_ntz", ZONELESS),
    ("timestamp without time zone", ZONELESS),
    ("time", DataType(Family.TIME)),
    ("binary", DataType(Family.BINARY)),
    ("bytea", DataType(Family.BINARY)),
    ("array", DataType(Family.ARRAY)),
    ("map", DataType(Family.MAP)),
    ("struct", DataType(Family.OBJECT)),
    ("variant", DataType(Family.VARIANT)),
    ("json", DataType(Family.VARIANT)),
    ("array<int>", DataType(Family.ARRAY, item=INT)),
    ("map<string, bigint>", DataType(Family.MAP, key=STRING, value=LONG)),
    ("struct<a: int, b: string>", DataType(Family.OBJECT, fields=(("a", INT), ("b", STRING)))),
    (
        "array<struct<a: decimal(4, 1)>>",
        DataType(Family.ARRAY, item=DataType(Family.OBJECT, fields=(("a", decimal(4, 1)),))),
    ),
    ("array<array<string>>", DataType(Family.ARRAY, item=DataType(Family.ARRAY, item=STRING))),
]


@pytest.mark.parametrize(("spelling", "expected"), SPELLINGS)
def test_a_spelling_means(spelling, expected):
    assert parse_type(spelling) == expected


@pytest.mark.parametrize(
    ("spelling", "dialect", "expected"),
    [
        ("number(10, 2)", "snowflake", decimal(10, 2)),
        ("timestamp_tz(9)", "snowflake", ZONED),
        ("int64", "bigquery", LONG),
        ("nvarchar(5)", "tsql", DataType(Family.STRING, length=5)),
        ("map<string, int>", "postgres", DataType(Family.MAP, key=STRING, value=INT)),
    ],
)
def test_a_dialects_own_spelling(spelling, dialect, expected):
    assert parse_type(spelling, dialect) == expected


@pytest.mark.parametrize(
    "spelling", ["", "nonsense", "int(", "map<int>", "struct<int, string>", "interval day", "no such"]
)
def test_what_nobody_knows_is_an_error_with_a_way_out(spelling):
    with pytest.raises(UnknownTypeError) as caught:
        parse_type(spelling)
    assert caught.value.spelling == spelling
    assert "array<string>" in str(caught.value)


# Promised, actual, whether it is kept. Written out: nothing here is computed by the rule that it tests.
ACCEPTED = [
    (STRING, STRING, True),
    (STRING, DataType(Family.STRING, length=3), True),
    (DataType(Family.STRING, length=3), STRING, True),
    (STRING, INT, False),
    (INTEGER, INT, True),
    (INTEGER, LONG, True),
    (INTEGER, decimal(9, 0), True),
    (INTEGER, decimal(9, 2), False),
    (INTEGER, DOUBLE, False),
    (INT, INT, True),
    (INT, LONG, False),
    (LONG, INT, False),
    (INT, decimal(9, 0), False),
    (NUMBER, INT, True),
    (NUMBER, DOUBLE, True),
    (NUMBER, FLOAT, True),
    (NUMBER, decimal(10, 2), True),
    (NUMBER, STRING, False),
    (NUMBER, DataType(Family.BOOLEAN), False),
    (DOUBLE, FLOAT, False),
    (DOUBLE, decimal(10, 2), False),
    (DataType(Family.DECIMAL), decimal(10, 2), True),
    (decimal(10, 2), decimal(10, 2), True),
    (decimal(10, 2), decimal(10, 3), False),
    (decimal(10, 2), decimal(11, 2), False),
    (decimal(10, 2), DOUBLE, False),
    (TIMESTAMP, ZONED, True),
    (TIMESTAMP, ZONELESS, True),
    (ZONED, ZONED, True),
    (ZONED, ZONELESS, False),
    (ZONELESS, ZONED, False),
    (DataType(Family.DATE), ZONED, False),
    (TIMESTAMP, DataType(Family.DATE), False),
    (DataType(Family.ARRAY), DataType(Family.ARRAY, item=INT), True),
    (DataType(Family.ARRAY, item=STRING), DataType(Family.ARRAY, item=INT), True),
    (DataType(Family.MAP), DataType(Family.OBJECT), False),
]


@pytest.mark.parametrize(("promised", "actual", "kept"), ACCEPTED)
def test_which_columns_keep_the_promise(promised, actual, kept):
    assert promised.accepts(actual) is kept


@pytest.mark.parametrize(
    ("type_", "shown"),
    [
        (STRING, "string"),
        (DataType(Family.STRING, length=0), "string(0)"),
        (INT, "integer(32)"),
        (INTEGER, "integer"),
        (decimal(10, 2), "decimal(10, 2)"),
        (decimal(5, 0), "decimal(5, 0)"),
        (ZONED, "timestamp with zone"),
        (ZONELESS, "timestamp without zone"),
        (TIMESTAMP, "timestamp"),
        (DataType(Family.ARRAY, item=INT), "array(integer(32))"),
        (DataType(Family.MAP, key=STRING, value=INT), "map(string, integer(32))"),
        (DataType(Family.OBJECT, fields=(("a", INT),)), "object(a integer(32))"),
        (DataType(Family.OBJECT), "object"),
    ],
)
def test_a_type_is_shown_as(type_, shown):
    assert str(type_) == shown
