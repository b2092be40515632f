from __future__ import annotations

import logging

import pytest

from databox_contracts import rules
from databox_contracts.errors import ContractError, DataboxError, Position
from databox_contracts.migrations import datasets_of
from databox_contracts.model import Dataset

COLUMNS = [
    (None, "a INT, b ARRAY<STRUCT<c: STRING>>", ["integer(32)", "array(object(c string))"]),
    (None, "a DECIMAL(10, 2), b STRING, c TIMESTAMP, d TIMESTAMP_NTZ", None),
    ("postgres", "a BIGSERIAL, b VARCHAR(10), c TIMESTAMPTZ, d TEXT[]", None),
    ("mysql", "a INT(11) AUTO_INCREMENT, b DATETIME", ["integer(32)", "timestamp"]),
    ("bigquery", "a INT64, b STRUCT<x INT64>", ["integer(64)", "object(x integer(64))"]),
    ("snowflake", "a NUMBER(38, 0), b VARIANT", ["decimal(38, 0)", "variant"]),
    ("duckdb", "a DOUBLE, b BLOB", ["number(64)", "binary"]),
]
EXPECTED = {
    1: ["decimal(10, 2)", "string", "timestamp", "timestamp without zone"],
    2: ["integer(64)", "string(10)", "timestamp with zone", "array(string)"],
}


@pytest.mark.parametrize("at", range(len(COLUMNS)))
def test_types_are_those_of_the_dialect(at: int) -> None:
    dialect, columns, types = COLUMNS[at]
    (dataset,) = datasets_of(f"CREATE TABLE t ({columns})", dialect)
    assert [str(field.type) for field in dataset.fields] == (types or EXPECTED[at])


ORDERS = """\
-- what a dump looks like
SET search_path = sales;
CREATE SCHEMA sales;
DROP TABLE IF EXISTS sales.orders;
CREATE TABLE sales.orders (
  id BIGINT NOT NULL PRIMARY KEY,
  customer_id INT REFERENCES customers (id),
  "weird name" VARCHAR(10) DEFAULT 'x' UNIQUE,
  amount NUMERIC(10, 2) DEFAULT -1 CHECK (amount >= 0),
  active BOOLEAN NOT NULL DEFAULT true,
  CONSTRAINT once UNIQUE (customer_id, amount),
  FOREIGN KEY (customer_id) REFERENCES customers
);
COMMENT ON TABLE sales.orders IS 'All orders.';
COMMENT ON COLUMN sales.orders.amount IS 'Gross.';
CREATE INDEX i ON sales.orders (amount);
CREATE TABLE customers (id INT, code INT, PRIMARY KEY (id), UNIQUE (code));
"""


def test_keys_checks_defaults_and_comments_are_read() -> None:
    orders, customers = datasets_of(ORDERS, "postgres")
    assert (orders.name, orders.physical_name, orders.description) == ("orders", "sales.orders", "All orders.")
    assert orders.position == Position(5, 1)
    fields = {field.name: field for field in orders.fields}
    assert fields["id"].required
    assert fields["weird name"].unique
    assert fields["weird name"].position == Position(8, 3)
    assert [field.default for field in orders.fields] == [None, None, "x", -1, True]
    assert fields["amount"].description == "Gross."
    place = [(type(rule), getattr(rule, "fields", None)) for rule in orders.rules]
    assert place == [
        (rules.PrimaryKey, ("id",)),
        (rules.ForeignKey, ("customer_id",)),
        (rules.Expression, None),
        (rules.Unique, ("customer_id", "amount")),
        (rules.ForeignKey, ("customer_id",)),
    ]
    references = [rule for rule in orders.rules if isinstance(rule, rules.ForeignKey)]
    assert [(rule.to, rule.to_fields) for rule in references] == [("customers", ("id",))] * 2
    assert [rule.sql for rule in orders.rules if isinstance(rule, rules.Expression)] == ["amount >= 0"]
    assert (customers.name, customers.physical_name) == ("customers", None)
    assert customers.fields[1].unique


def one(sql: str, dialect: str | None = None) -> Dataset:
    (dataset,) = datasets_of(sql, dialect)
    return dataset


def test_partitions_are_numbered_and_those_of_hive_are_columns() -> None:
    spark = one("CREATE TABLE t (a INT COMMENT 'x', day DATE) PARTITIONED BY (day, hours(ts)) COMMENT 'all'")
    assert [field.partition_position for field in spark.fields] == [None, 1]
    assert (spark.description, spark.fields[0].description) == ("all", "x")
    hive = one("CREATE TABLE t (a INT) PARTITIONED BY (ds STRING)", "hive")
    assert [(field.name, field.partition_position) for field in hive.fields] == [("a", None), ("ds", 1)]


def test_parts_of_objects_may_be_required_and_have_comments() -> None:
    inner = "STRUCT<a: INT NOT NULL COMMENT 'x', b: MAP<STRING, STRUCT<c: INT NOT NULL>>>"
    fields = one(f"CREATE TABLE t (s {inner}, l ARRAY<{inner}> NOT NULL)").fields
    for holder in (fields[0], fields[1].item):
        assert holder is not None
        a, b = holder.fields
        assert (a.required, a.description, b.required) == (True, "x", False)
        assert b.value is not None
        assert b.value.fields[0].required


def test_an_enum_type_is_a_list_of_values() -> None:
    field = one("CREATE TABLE t (s ENUM('a', '') NOT NULL, KEY k (s))", "mysql").fields[0]
    assert str(field.type) == "string"
    assert [rule.values for rule in field.rules if isinstance(rule, rules.Enum)] == [("a", "")]
    assert field.required


def test_what_is_dropped_is_gone_and_what_is_replaced_is_the_last() -> None:
    assert one("CREATE TABLE a (x INT); CREATE TABLE b (x INT); DROP TABLE a").name == "b"
    assert one("CREATE TABLE a (x INT); CREATE OR REPLACE TABLE a (y INT);").fields[0].name == "y"
    assert one("CREATE TABLE a (x INT); CREATE TABLE IF NOT EXISTS a (y INT)").fields[0].name == "x"


def test_tables_of_one_name_in_two_schemas_have_both_names() -> None:
    found = datasets_of("CREATE TABLE s.a (x INT); CREATE TABLE r.a (x INT); CREATE TABLE r.b (x INT)")
    assert [dataset.name for dataset in found] == ["s.a", "r.a", "b"]


ERRORS = [
    ("", None, "<sql>: no statement creates a table"),
    ("-- nothing\n;;", None, "<sql>: no statement creates a table"),
    ("\n\nALTER TABLE t ADD COLUMN b INT", None, "<sql>:3:1: the statement 'ALTER TABLE' is not understood"),
    ("CREATE TABLE t (a INT);\n  TRUNCATE TABLE t", None, "<sql>:2:3: the statement 'TRUNCATE TABLE' is not"),
    ("CREATE UNIQUE INDEX i ON t (a)", "postgres", "<sql>:1:1: the statement 'CREATE UNIQUE' is not understood"),
    ("VACUUM t", "postgres", "<sql>:1:1: the statement 'VACUUM t' is not understood"),
    ("CREATE TABLE t AS SELECT 1", None, "<sql>:1:1: the table 't' is created without a list of columns"),
    ("CREATE TABLE t LIKE u", None, "<sql>:1:1: the table 't' is created without a list of columns"),
    ("CREATE TABLE t (a geography)", "postgres", "<sql>:1:17: the column 'a' has the unknown type 'GEOGRAPHY'"),
    ("CREATE TABLE t (a INT UNSIGNED)", "mysql", "the column 'a' has the unknown type 'INT UNSIGNED'"),
    ("CREATE TABLE t (a INT,\n A INT)", None, "<sql>:2:2: the column 'A' of 't' stands twice"),
    ("CREATE TABLE t (a INT);\nCREATE TABLE t (a INT)", None, "<sql>:2:1: the table 't' is created twice"),
    ("CREATE TABLE t (a INT, PRIMARY KEY (z))", None, "names 'z', which is no column of it (its columns: a)"),
    ("CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))", None, "the table 't' has two primary keys"),
    ("CREATE TABLE t (a INT,\n b INT REFERENCES z)", None, "<sql>:2:2: a foreign key refers to 'z' without columns"),
    ("CREATE TABLE t (a INT, EXCLUDE USING gist (a WITH =))", "postgres", "in the table 't' is not understood"),
    ("DROP TABLE t", None, "<sql>:1:1: the table 't' is dropped and was not created"),
    ("COMMENT ON TABLE t IS 'x'", "postgres", "<sql>:1:1: there is no table 't' to comment on"),
    ("CREATE TABLE t (a INT", None, "<sql>:1:"),
    ("CREATE TABLE t (a INT);\n\nCREATE TABLE u (a INT", None, "<sql>:3:"),
    ("CREATE TABLE t (a INT);\nselect 'x", None, "<sql>:2:1: this is no SQL: a quote"),
]


@pytest.mark.parametrize(("sql", "dialect", "sentence"), ERRORS)
def test_what_is_not_understood_is_an_error_at_its_line(
    sql: str, dialect: str | None, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ContractError) as error:
        datasets_of(sql, dialect)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)
    assert caplog.records == []
    assert logging.getLogger("sqlglot").level == logging.NOTSET


def test_an_unknown_dialect_names_the_known_ones() -> None:
    with pytest.raises(DataboxError, match=r"unknown SQL dialect 'klingon'. Use one of: athena"):
        datasets_of("CREATE TABLE t (a INT)", "klingon")


def test_errors_name_the_source() -> None:
    with pytest.raises(ContractError, match=r"^x\.sql:1:1: "):
        datasets_of("ALTER TABLE t RENAME TO u", source="x.sql")
