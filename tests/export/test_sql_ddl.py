"""Tables in SQL: their text in several dialects, and that a real database and a scanner of our own read it as meant."""

import sqlite3
from decimal import Decimal

import pytest
import sqlglot
from sqlglot import exp

from databox_contracts.errors import DataboxError
from databox_contracts.export import export
from databox_contracts.export.sql_dialects import known_dialects
from databox_contracts.model import Contract, Dataset, Field, Server
from databox_contracts.rules import (
    DuplicateCount,
    Enum,
    ExclusiveMaximum,
    Expression,
    ForeignKey,
    InvalidCount,
    Maximum,
    MaxLength,
    Minimum,
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
    Unique,
)
from databox_contracts.testing import build_contract, build_field

NONE = Threshold(Operator.MUST_BE, 0)


def sql(contract, dialect=None, dataset=None):
    return export(contract, "sql", dialect=dialect, dataset=dataset)


def shop():
    customers = Dataset(
        name="customers",
        description="Who buys.",
        fields=(
            build_field("id", "bigint", description="Theirs."),
            build_field("mail", "varchar(40)", Unique(), MaxLength(length=40)),
        ),
        rules=(PrimaryKey(fields=("id",)),),
    )
    orders = Dataset(
        name="orders",
        physical_name="sales.orders_v2",
        fields=(
            build_field("shop", "string", Required(), column_name="SHOP"),
            build_field("number", "int"),
            build_field("customer", "bigint", ForeignKey(fields=(), to="customers", to_fields=("id",))),
            build_field("state", "string", Enum(values=("new", "it's", None)), MinLength(length=1)),
            build_field("price", "decimal(10, 2)", Minimum(limit=0), ExclusiveMaximum(limit=Decimal("1000.50"))),
            build_field("day", "date", Minimum(limit="2020-01-01")),
            build_field("tags", "array<string>"),
        ),
        rules=(PrimaryKey(fields=("shop", "number")), Unique(fields=("customer", "day"))),
    )
    return Contract(id="shop", version="1.0.0", datasets=(customers, orders))


def test_postgres_has_nearly_all_of_it():
    exported = sql(shop(), "postgres")
    assert exported.text == (
        'CREATE TABLE "customers" (\n'
        '  "id" BIGINT NOT NULL,\n'
        '  "mail" VARCHAR(40) UNIQUE,\n'
        '  PRIMARY KEY ("id")\n'
        ");\n"
        'CREATE TABLE "sales"."orders_v2" (\n'
        '  "SHOP" TEXT NOT NULL,\n'
        '  "number" INT NOT NULL,\n'
        '  "customer" BIGINT,\n'
        '  "state" TEXT,\n'
        '  "price" DECIMAL(10, 2),\n'
        '  "day" DATE,\n'
        '  "tags" TEXT[],\n'
        "  CHECK (\"state\" IN ('new', 'it''s')),\n"
        '  CHECK (LENGTH("state") >= 1),\n'
        '  CHECK ("price" >= 0),\n'
        '  CHECK ("price" < 1000.50),\n'
        "  CHECK (\"day\" >= CAST('2020-01-01' AS DATE)),\n"
        '  PRIMARY KEY ("SHOP", "number"),\n'
        '  UNIQUE (\n    "customer",\n    "day"\n  ),\n'
        '  FOREIGN KEY ("customer") REFERENCES "customers" (\n    "id"\n  )\n'
        ");\n"
        "COMMENT ON TABLE \"customers\" IS 'Who buys.';\n"
        'COMMENT ON COLUMN "customers"."id" IS \'Theirs.\';\n'
    )
    assert list(exported.losses) == [
        "the logical name of orders.shop, orders: postgres has no place for it",
        "the id shop, the version 1.0.0, the status draft: postgres has no place for it",
    ]


def test_spark_has_types_and_comments():
    exported = sql(shop())
    assert exported.text == (
        "CREATE TABLE `customers` (\n"
        "  `id` BIGINT NOT NULL COMMENT 'Theirs.',\n"
        "  `mail` VARCHAR(40)\n"
        ")\n"
        "COMMENT 'Who buys.';\n"
        "CREATE TABLE `sales`.`orders_v2` (\n"
        "  `SHOP` STRING NOT NULL,\n"
        "  `number` INT NOT NULL,\n"
        "  `customer` BIGINT,\n"
        "  `state` STRING,\n"
        "  `price` DECIMAL(10, 2),\n"
        "  `day` DATE,\n"
        "  `tags` ARRAY<STRING>\n"
        ");\n"
    )
    assert list(exported.losses)[:-2] == [
        "`unique` of customers.mail, orders (customer, day): spark has no unique keys",
        "`primary_key` of customers (id), orders (shop, number): spark has no primary keys",
        "`foreign_key` of orders.customer: spark has no references to other tables",
        "`enum` of orders.state: spark has no lists of allowed values",
        "`min_length` of orders.state: spark has no bounds of a length",
        "`minimum` of orders.price, orders.day: spark has no bounds",
        "`exclusive_maximum` of orders.price: spark has no bounds",
    ]


@pytest.mark.parametrize(
    ("types", "named", "expected"),
    [
        ((), None, "`"),
        (("s3",), None, "`"),
        (("postgres",), None, '"'),
        (("postgresql", "redshift"), None, "`"),
        (("sqlserver",), None, "["),
        (("postgres",), "MySQL", "`"),
        ((), "postgresql", '"'),
        ((), " tsql ", "["),
    ],
)
def test_the_dialect_is_the_named_one_else_that_of_the_servers(types, named, expected):
    servers = tuple(Server(name=kind, type=kind) for kind in types)
    text = sql(build_contract(build_field("a", "int"), servers=servers), named).text
    assert text.startswith(f"CREATE TABLE {expected}t")


@pytest.mark.parametrize("name", ["klingon", "", "prql", "x" * 200])
def test_another_dialect_lists_those_there_are(name):
    with pytest.raises(DataboxError) as caught:
        sql(build_contract(), name)
    assert "use one of: athena, bigquery, clickhouse, databricks" in (caught.value.hint or "")
    assert len(str(caught.value)) < 600


# --- what a real database makes of it ---------------------------------------------------------------------------------


def database(contract):
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA foreign_keys = on")
    connection.execute("ATTACH ':memory:' AS sales")
    connection.executescript(sql(contract, "sqlite").text)
    return connection


def rows_contract():
    other = Dataset(
        name="countries", fields=(build_field("code", "varchar(2)"),), rules=(PrimaryKey(fields=("code",)),)
    )
    table = Dataset(
        name="t",
        fields=(
            # Null is a new number to an INTEGER key of SQLite's.
            build_field("id", "string"),
            build_field("name", "varchar(3)", MinLength(length=1)),
            build_field("state", "string", Enum(values=("a", "", "it's"))),
            build_field("few", "string", InvalidCount(valid_values=("x",), threshold=NONE)),
            build_field("known", "string", MissingCount(missing_values=(None, "-"), threshold=NONE)),
            build_field("nothing", "string", Enum(values=())),
            build_field("n", "int", Minimum(limit=-1), Maximum(limit=5), MultipleOf(divisor=2)),
            build_field("day", "date", Minimum(limit="2020-01-01")),
            build_field("must", "int", Required()),
            build_field("count", "int", NullCount(threshold=NONE)),
            build_field("soft", "int", Required(severity=Severity.WARNING), Minimum(limit=9, severity=Severity.INFO)),
            build_field("code", "varchar(2)", ForeignKey(fields=(), to="countries", to_fields=("code",))),
            build_field("once", "string", Unique()),
        ),
        rules=(PrimaryKey(fields=("id",)), Unique(fields=("name", "state"))),
    )
    return Contract(id="test", version="1.0.0", datasets=(table, other))


GOOD = {"id": 1, "name": "abc", "known": "k", "must": 0, "count": 0}


@pytest.mark.parametrize(
    ("changes", "is_taken"),
    [
        ({}, True),
        ({"state": "", "few": "x", "n": 0, "day": "2020-01-01", "soft": 1, "code": "NO", "once": "1"}, True),
        ({"state": "it's"}, True),
        ({"id": None}, False),
        ({"name": ""}, False),
        ({"name": "abcd"}, False),
        ({"state": "b"}, False),
        ({"few": "y"}, False),
        ({"known": "-"}, False),
        ({"known": None}, False),
        ({"nothing": "x"}, False),
        ({"n": -2}, False),
        ({"n": 6}, False),
        ({"n": 3}, False),
        ({"day": "2019-12-31"}, False),
        ({"must": None}, False),
        ({"count": None}, False),
        ({"code": "SE"}, False),
    ],
)
def test_sqlite_takes_the_rows_that_the_contract_takes(changes, is_taken):
    connection = database(rows_contract())
    connection.execute("INSERT INTO countries VALUES ('NO')")
    row = GOOD | changes
    statement = f"INSERT INTO t ({', '.join(map('[{}]'.format, row))}) VALUES ({', '.join('?' * len(row))})"
    if is_taken:
        connection.execute(statement, tuple(row.values()))
    else:
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement, tuple(row.values()))
    connection.close()


def test_sqlite_knows_the_keys():
    connection = database(rows_contract())
    connection.execute(
        "INSERT INTO t (id, name, state, known, must, count, once) VALUES ('1', 'a', 'a', 'k', 0, 0, 'x')"
    )
    for values in ("('1', 'b', 'a', 'k', 0, 0, 'y')", "(2, 'a', 'a', 'k', 0, 0, 'y')", "(2, 'b', 'a', 'k', 0, 0, 'x')"):
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            connection.execute(f"INSERT INTO t (id, name, state, known, must, count, once) VALUES {values}")
    connection.close()


def test_a_reference_to_a_later_table_is_added_behind():
    text = sql(rows_contract(), "postgres").text
    assert text.endswith('ALTER TABLE "t"\nADD FOREIGN KEY ("code") REFERENCES "countries" (\n  "code"\n);\n')
    one = Dataset(
        name="t",
        fields=(build_field("id", "int"), build_field("up", "int", ForeignKey(fields=(), to="t", to_fields=("id",)))),
        rules=(PrimaryKey(fields=("id",)),),
    )
    assert "ALTER" not in sql(Contract(id="test", version="1.0.0", datasets=(one,)), "postgres").text


def test_what_no_constraint_says():
    contract = build_contract(
        build_field("a", "string", Pattern(pattern="x"), Enum(values=("a",), severity=Severity.WARNING)),
        build_field("b", "struct<c: int>"),
        Field(name="d", fields=(build_field("e", "int", Required(), Minimum(limit=0), Unique(), description="E"),)),
        build_field("f", "string", ForeignKey(fields=(), to="other.t", to_fields=("id",))),
        build_field("g", "string", ForeignKey(fields=(), to="t", to_fields=("a",))),
        build_field("h", "double", MultipleOf(divisor=Decimal("0.1")), Maximum(limit=float("inf"))),
        build_field("i", "string", Enum(values=(1,))),
        build_field("j", "date", Minimum(limit="soon"), DuplicateCount(threshold=NONE)),
        rules=(Unique(fields=("d.e",)), Unique(fields=("nowhere",)), Expression(sql="a = 1); drop table x; --")),
    )
    exported = sql(contract, "postgres")
    assert "CHECK" not in exported.text
    assert "drop" not in exported.text
    assert list(exported.losses)[:-1] == [
        "what it holds of b: postgres has no type for it; written as JSONB",
        "the type of d: the contract says none; written as a text",
        "`pattern` of a: the dialects' regular expressions are not those of contracts",
        "`enum` of a: postgres has no severities, and this is only a warning",
        "`required` of d.e: a constraint is one of columns",
        "`minimum` of d.e: a constraint is one of columns",
        "`unique` of d.e: a constraint is one of columns",
        "`foreign_key` of f: it refers to a table that is not among these",
        "`foreign_key` of g: what it refers to is declared as no key",
        "`multiple_of` of h: the remainder of such a division is not exact",
        "`maximum` of h: a value of it is no number in postgres",
        "`enum` of i: a value of it is no string in postgres",
        "`minimum` of j: the limit is no ISO 8601 text",
        "`duplicate_count` of j: postgres has no limits of a number of rows",
        "`unique` of (d.e), (nowhere): a key of a table is made of columns",
        "`expression` of t: postgres has no conditions on rows",
        "the description of d.e: only tables and columns have comments",
    ]


def test_a_promise_of_which_only_a_part_is_said_is_lost():
    contract = build_contract(build_field("a", "string", MissingCount(missing_values=(None, "-"), threshold=NONE)))
    assert "NOT NULL" in sql(contract, "redshift").text
    assert sql(contract, "redshift").losses[0] == "`missing_count` of a: redshift has no limits of a number of rows"
    assert sql(contract, "hive").losses[0] == "`missing_count` of a: hive has no required columns"
    assert len(sql(contract, "postgres").losses) == 1


def test_a_physical_name_with_dots_names_the_schema():
    for physical, expected in (
        (None, '"a.b"'),
        ("b", '"b"'),
        ("a.b", '"a"."b"'),
        ("a.b.c", '"a"."b"."c"'),
        ("a.b.c.d", '"a.b.c.d"'),
        ("a..b", '"a..b"'),
    ):
        dataset = Dataset(name="a.b", physical_name=physical, fields=(build_field("x", "int"),))
        text = sql(Contract(id="test", version="1.0.0", datasets=(dataset,)), "postgres").text
        assert text.startswith(f"CREATE TABLE {expected} (\n")


TYPES = {
    "tinyint": ("TINYINT", "SMALLINT", "TINYINT", "INT64", "Int8"),
    "bigint": ("BIGINT", "BIGINT", "BIGINT", "INT64", "Int64"),
    "float": ("FLOAT", "REAL", "FLOAT", "FLOAT64", "Float32"),
    "double": ("DOUBLE", "DOUBLE PRECISION", "DOUBLE", "FLOAT64", "Float64"),
    "decimal(9, 2)": ("DECIMAL(9, 2)", "DECIMAL(9, 2)", "DECIMAL(9, 2)", "NUMERIC(9, 2)", "Decimal(9, 2)"),
    "decimal": (*("DECIMAL(38, 18)",) * 3, "BIGNUMERIC(38, 18)", "Decimal(38, 18)"),
    "varchar(3)": ("VARCHAR(3)", "VARCHAR(3)", "VARCHAR(3)", "STRING(3)", "String"),
    "timestamptz": ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP", "TIMESTAMP", "DateTime64(6)"),
    "timestamp_ntz": ("TIMESTAMP_NTZ", "TIMESTAMP", "DATETIME", "DATETIME", "DateTime64(6)"),
    "time": ("TIME(6)", "TIME", "TIME(6)", "TIME", "String"),
    "binary": ("BINARY", "BYTEA", "LONGBLOB", "BYTES", "String"),
    "variant": ("VARIANT", "JSONB", "JSON", "JSON", "String"),
    "map<string, int>": ("MAP<STRING, INT>", "JSONB", "JSON", "JSON", "Map(String, Nullable(Int32))"),
    "array<array<int>>": (
        "ARRAY<ARRAY<INT>>",
        "INT[][]",
        "JSON",
        "ARRAY<ARRAY<INT64>>",
        "Array(Array(Nullable(Int32)))",
    ),
}


@pytest.mark.parametrize("spelling", TYPES)
def test_types(spelling):
    contract = build_contract(build_field("c", spelling, Required()))
    dialects = ("spark", "postgres", "mysql", "bigquery", "clickhouse")
    for dialect, expected in zip(dialects, TYPES[spelling], strict=True):
        line = sql(contract, dialect).text.splitlines()[1].strip().rstrip(",")
        assert line.split(" ", 1)[1] == f"{expected} NOT NULL", dialect


# --- texts that are not to be trusted ---------------------------------------------------------------------------------

HOSTILE = [
    "a; drop table x",
    'a"; drop table x; --',
    "a`; drop table x; --",
    "a]; drop table x; --",
    "a'; drop table x; --",
    "a\\'; drop table x; --",
    "a\\\\'; drop table x; --",
    "a\\`; drop table x; --",
    "a''; drop table x; --",
    "a */ drop table x /*",
    "a\n; drop table x",
    "$$; drop table x; $$",
    "drop table x -- \\",
    "åäö 漢字 🦆 drop",
]

# Where a backslash takes the next character in, in texts and in names.
BACKSLASH = {
    "athena", "bigquery", "clickhouse", "databricks", "doris", "hive", "mysql", "redshift", "singlestore", "snowflake",
    "spark", "spark2", "starrocks",
}  # fmt: skip
BACKSLASH_IN_NAMES = {"bigquery", "clickhouse"}
CLOSING = {"'": "'", '"': '"', "`": "`", "[": "]"}


def outside_of_quotes(text, dialect):
    """What is left of SQL when names and texts are taken out, as the database itself would find them."""
    names = "[" if dialect in ("tsql", "fabric") else '"`'
    left, at = [], 0
    while at < len(text):
        char = text[at]
        if char != "'" and char not in names:
            left.append(char)
            at += 1
            continue
        escapes = dialect in (BACKSLASH if char == "'" else BACKSLASH_IN_NAMES)
        close, at = CLOSING[char], at + 1
        while at < len(text):
            if (escapes and text[at] == "\\") or text.startswith(close * 2, at):
                at += 2
            elif text[at] == close:
                break
            else:
                at += 1
        assert at < len(text), "a quote is not closed"
        at += 1
    return "".join(left)


@pytest.mark.parametrize("dialect", known_dialects())
def test_a_name_stays_a_name_and_a_text_a_text(dialect):
    for text in HOSTILE:
        fields = (
            build_field(text, "string", Enum(values=(text,)), Unique(), description=text),
            build_field("nested", "object").model_copy(update={"fields": (build_field(text, "int"),)}),
        )
        dataset = Dataset(
            name=text, description=text, fields=fields, rules=(PrimaryKey(fields=(text,)), Unique(fields=(text,)))
        )
        written = sql(Contract(id=text, version="1.0.0", datasets=(dataset,)), dialect).text
        assert "drop" not in outside_of_quotes(written, dialect), (text, written)
        (create, *others) = sqlglot.parse(written, dialect=dialect)
        assert isinstance(create, exp.Create)
        assert all(isinstance(other, exp.Comment) for other in others)
        table = create.find(exp.Table)
        columns = [column for column in create.this.expressions if isinstance(column, exp.ColumnDef)]
        assert table is not None
        assert (table.name, [column.name for column in columns]) == (text, [text, "nested"])


def test_sqlite_keeps_hostile_names():
    connection = sqlite3.connect(":memory:")
    for text in HOSTILE:
        contract = build_contract(build_field(text, "string", Enum(values=(text,))), dataset=text)
        connection.executescript(sql(contract, "sqlite").text)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master ORDER BY rowid")]
    assert names == HOSTILE
    connection.close()


def test_no_columns_and_no_tables():
    exported = sql(build_contract(), "postgres")
    assert (exported.text, exported.losses[0]) == ("", "the table of t: the contract names no columns")
    assert sql(Contract(id="test", version="1.0.0"), "postgres").text == ""
