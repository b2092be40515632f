"""What a migration makes of a contract: rows of a statement and the changes that it amounts to."""

import pytest

from databox_contracts import rules
from databox_contracts.errors import ContractError, DataboxError, UnknownDatasetError
from databox_contracts.evolution.table_formats import TableFormat
from databox_contracts.migrations.checking import MOST_CHARACTERS, check_migration
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.testing import build_field

REQUIRED = rules.Required()

ORDERS = Dataset(
    name="orders",
    physical_name="sales.orders",
    description="All orders.",
    fields=(
        build_field("id", "bigint", REQUIRED, rules.Unique()),
        build_field("amount", "int", REQUIRED, rules.Minimum(limit=0), description="Gross.", pii=True),
        build_field("status", "string", rules.Enum(values=("open", "paid"))),
        build_field("note", "varchar(20)"),
        build_field("at", "timestamp_ntz"),
        build_field("payload", "struct<a: int, b: string>"),
        build_field("anything", None),
    ),
    rules=(rules.Freshness(seconds=60, element="at"), rules.Expression(sql="amount < 10")),
)
CUSTOMERS = Dataset(
    name="customers",
    fields=(build_field("id", "bigint"), build_field("code", "string"), build_field("kind", "string")),
    rules=(rules.PrimaryKey(fields=("id",)), rules.Unique(fields=("code", "kind"), name="once")),
)
CONTRACT = Contract(id="shop", version="1.0.0", datasets=(ORDERS, CUSTOMERS))


def changes(sql: str, dialect: str | None = "postgres", contract: Contract = CONTRACT, **terms: object) -> list[str]:
    """`kind dataset.field: old -> new`, in order."""
    report = check_migration(contract, sql, dialect, policy="strict", **terms)
    return [
        f"{one.change_type} {one.dataset}.{one.field_name}: {one.old_value} -> {one.new_value}"
        for one in report.changes
    ]


def remarks(sql: str, dialect: str | None = "postgres", contract: Contract = CONTRACT) -> list[str]:
    return list(check_migration(contract, sql, dialect).remarks)


ADDED = "field_added orders.x: None -> integer(32)"
REMOVED = "field_removed orders.amount: integer(32) -> None"
RENAMED = "field_renamed orders.amount: amount -> total"
WIDER = "type_changed orders.amount: integer(32) -> integer(64)"
RELAXED = "nullability_relaxed orders.amount: None -> None"
TIGHTENED = "nullability_tightened orders.note: None -> None"
LAST = (
    "field_reordered orders.orders: ['id', 'amount', 'status', 'note', 'at', 'payload', 'anything'] -> "
    "['id', 'status', 'note', 'at', 'payload', 'anything', 'amount']"
)
GONE = "dataset_removed orders.orders: orders -> None"

POSTGRES = [
    # columns
    ("ALTER TABLE sales.orders ADD COLUMN x INT", [ADDED]),
    ("ALTER TABLE IF EXISTS ONLY orders ADD COLUMN IF NOT EXISTS x INT NOT NULL DEFAULT 3", [ADDED]),
    ("ALTER TABLE orders ADD x INT, ADD y TEXT", [ADDED, "field_added orders.y: None -> string"]),
    ("ALTER TABLE orders DROP COLUMN amount", [REMOVED]),
    ("ALTER TABLE orders DROP IF EXISTS amount CASCADE", [REMOVED]),
    ("ALTER TABLE orders RENAME COLUMN amount TO total", [RENAMED]),
    ("ALTER TABLE orders RENAME amount TO total", [RENAMED]),
    ("ALTER TABLE orders RENAME amount TO x; ALTER TABLE orders RENAME x TO total", [RENAMED]),
    ("ALTER TABLE orders RENAME amount TO x; ALTER TABLE orders RENAME x TO amount", []),
    ("ALTER TABLE orders ADD x INT; ALTER TABLE orders DROP x", []),
    ("ALTER TABLE orders ALTER COLUMN amount TYPE BIGINT USING amount::bigint", [WIDER]),
    ("ALTER TABLE orders ALTER amount SET DATA TYPE BIGINT", [WIDER]),
    ("ALTER TABLE orders ALTER amount TYPE INT", []),
    ("ALTER TABLE orders ALTER amount DROP NOT NULL", [RELAXED]),
    ("ALTER TABLE orders ALTER amount SET NOT NULL", []),
    ("ALTER TABLE orders ALTER note SET NOT NULL", [TIGHTENED]),
    ("ALTER TABLE orders ALTER note SET NOT NULL; ALTER TABLE orders ALTER note DROP NOT NULL", []),
    ("ALTER TABLE orders ALTER amount SET DEFAULT 3, ALTER note DROP DEFAULT", []),
    # spellings of types: a length counts only where the contract has one
    ("ALTER TABLE orders ALTER status TYPE VARCHAR(20)", []),
    ("ALTER TABLE orders ALTER note TYPE TEXT", ["type_changed orders.note: string(20) -> string"]),
    ("ALTER TABLE orders ALTER note TYPE VARCHAR(20)", []),
    ("ALTER TABLE orders ALTER at TYPE TIMESTAMP", []),
    (
        "ALTER TABLE orders ALTER at TYPE TIMESTAMPTZ",
        ["type_changed orders.at: timestamp without zone -> timestamp with zone"],
    ),
    ("ALTER TABLE orders ALTER anything TYPE INT", []),
    ("ALTER TABLE orders ALTER amount TYPE TEXT", ["type_changed orders.amount: integer(32) -> string"]),
    # the column of a new type takes the place of the old one
    (
        "ALTER TABLE orders ADD a2 BIGINT NOT NULL; UPDATE orders SET a2 = amount; "
        "ALTER TABLE orders DROP amount; ALTER TABLE orders RENAME a2 TO amount",
        [WIDER, LAST],
    ),
    # columns that change places
    (
        "ALTER TABLE customers RENAME code TO x; ALTER TABLE customers RENAME kind TO code; "
        "ALTER TABLE customers RENAME x TO kind",
        [
            "field_reordered customers.customers: ['id', 'code', 'kind'] -> ['id', 'kind', 'code']",
            "field_renamed customers.kind: kind -> code",
            "field_renamed customers.code: code -> kind",
        ],
    ),
    # tables
    ("DROP TABLE sales.orders", [GONE]),
    ("DROP TABLE IF EXISTS orders CASCADE", [GONE]),
    ("DROP TABLE other, orders", [GONE]),
    ("ALTER TABLE sales.orders RENAME TO bills", ["dataset_renamed orders.orders: sales.orders -> sales.bills"]),
    ("ALTER TABLE orders RENAME TO x; ALTER TABLE sales.x RENAME TO orders", []),
    ("DROP TABLE archive.orders", []),
    ("ALTER TABLE other DROP COLUMN amount", []),
    ("CREATE TABLE other (id INT)", []),
    ("CREATE TABLE customers (id BIGINT PRIMARY KEY, code TEXT, kind VARCHAR(5), UNIQUE (code, kind))", []),
    ("CREATE TABLE IF NOT EXISTS customers (id BIGINT PRIMARY KEY, code TEXT, kind TEXT)", []),
    (
        "CREATE TABLE customers (id INT PRIMARY KEY, code TEXT NOT NULL, extra DATE)",
        [
            "type_changed customers.id: integer(64) -> integer(32)",
            "nullability_tightened customers.code: None -> None",
            "field_removed customers.kind: string -> None",
            "field_added customers.extra: None -> date",
            "key_changed customers.customers: ['code', 'kind'] -> None",
        ],
    ),
    (
        "ALTER TABLE customers RENAME TO old; CREATE TABLE customers (id BIGINT PRIMARY KEY, code TEXT, kind TEXT); "
        "INSERT INTO customers SELECT * FROM old; DROP TABLE old",
        [],
    ),
    (
        "CREATE TABLE new (id BIGINT PRIMARY KEY, code TEXT, kind INT); DROP TABLE customers; "
        "ALTER TABLE new RENAME TO customers",
        ["type_changed customers.kind: string -> integer(32)"],
    ),
    (
        "CREATE TABLE ONLYONE (id INT); CREATE TABLE public.customers (id bigint NOT NULL, code text, kind text); "
        "ALTER TABLE ONLY public.customers ADD CONSTRAINT customers_pkey PRIMARY KEY (id)",
        [],
    ),
    (
        "CREATE TABLE customers (\n  id /* the id */ BIGINT /* never null */ PRIMARY KEY, -- a key\n"
        "  code TEXT, -- 'quoted\n  kind TEXT /* last */\n)",
        [],
    ),
    # keys
    ("ALTER TABLE orders ADD CONSTRAINT u UNIQUE (note)", ["key_changed orders.note: None -> None"]),
    ("ALTER TABLE orders ADD CONSTRAINT u UNIQUE (id)", []),
    ("ALTER TABLE orders ADD PRIMARY KEY (id)", []),
    ("ALTER TABLE customers ADD UNIQUE (kind, code)", []),
    ("CREATE UNIQUE INDEX i ON sales.orders (note)", ["key_changed orders.note: None -> None"]),
    ("CREATE UNIQUE INDEX i ON orders (note); DROP INDEX i", []),
    ("CREATE UNIQUE INDEX i ON orders (lower(note))", []),
    ("CREATE INDEX i ON orders (note); DROP INDEX j", []),
    ("ALTER TABLE orders ADD CONSTRAINT u UNIQUE (note); ALTER TABLE orders DROP CONSTRAINT u", []),
    ("ALTER TABLE customers DROP CONSTRAINT once", ["key_changed customers.customers: ['code', 'kind'] -> None"]),
    (
        "ALTER TABLE orders ADD FOREIGN KEY (note) REFERENCES customers (id)",
        ["key_changed orders.note: None -> {'to': 'customers', 'to_fields': ['id']}"],
    ),
    # checks
    ("ALTER TABLE orders ADD CHECK (amount >= 0)", []),
    ("ALTER TABLE orders ADD CHECK (0 <= amount)", []),
    ("ALTER TABLE orders ADD CHECK (amount >= 10)", ["constraint_tightened orders.amount: 0 -> 10"]),
    ("ALTER TABLE orders ADD CHECK (amount > -5)", ["constraint_relaxed orders.amount: 0 -> -5"]),
    ("ALTER TABLE orders ADD CHECK (amount BETWEEN 0 AND 9)", ["constraint_added orders.amount: None -> 9"]),
    ("ALTER TABLE orders ADD CHECK (status IN ('open'))", ["enum_values_removed orders.status: ['paid'] -> None"]),
    (
        "ALTER TABLE orders ADD CHECK (((status)::text = ANY (ARRAY['open'::text, 'paid'::text, 'new'::text])))",
        ["enum_values_added orders.status: None -> ['new']"],
    ),
    ("ALTER TABLE orders ADD CHECK (note IS NOT NULL)", [TIGHTENED]),
    (
        "ALTER TABLE orders ADD CHECK (status NOT IN ('x'))",
        ["constraint_added orders.orders: None -> NOT status IN ('x')"],
    ),
    ("ALTER TABLE orders ADD CHECK (NOT amount > 1)", ["constraint_added orders.orders: None -> NOT amount > 1"]),
    (
        "ALTER TABLE orders ADD CHECK (amount NOT BETWEEN 1 AND 2)",
        ["constraint_added orders.orders: None -> NOT amount BETWEEN 1 AND 2"],
    ),
    ("ALTER TABLE orders ADD CHECK (note IS NULL)", ["constraint_added orders.orders: None -> note IS NULL"]),
    ("ALTER TABLE orders ADD CHECK (length(note) > 3)", ["constraint_added orders.orders: None -> LENGTH(note) > 3"]),
    (
        "ALTER TABLE orders ADD CHECK (amount <> 10 OR note = 'x')",
        ["constraint_added orders.orders: None -> amount <> 10 OR note = 'x'"],
    ),
    ("ALTER TABLE orders ADD CONSTRAINT c CHECK (length(note) > 3); ALTER TABLE orders DROP CONSTRAINT c", []),
    # enums
    ("CREATE TYPE mood AS ENUM ('open', 'paid'); ALTER TABLE orders ALTER status TYPE mood USING status::mood", []),
    (
        "CREATE TYPE mood AS ENUM ('open'); ALTER TABLE orders ALTER status TYPE mood",
        ["enum_values_removed orders.status: ['paid'] -> None"],
    ),
    # case and quotes
    ("ALTER TABLE ORDERS DROP COLUMN Amount", [REMOVED]),
    ('ALTER TABLE "sales"."orders" DROP COLUMN "amount"', [REMOVED]),
    ('ALTER TABLE orders DROP COLUMN "Amount"', []),
    ('DROP TABLE "Orders"', []),
    # nothing that a schema consists of
    ("", []),
    (" ;; -- nothing\n;", []),
    ("BEGIN; START TRANSACTION; SAVEPOINT a; COMMIT; ROLLBACK; SET x = 1; LOCK TABLE orders; VACUUM", []),
    ("INSERT INTO orders VALUES (1); DELETE FROM orders; UPDATE orders SET amount = 1; TRUNCATE orders", []),
    ("COMMENT ON COLUMN orders.amount IS 'x'; GRANT SELECT ON orders TO x; REVOKE ALL ON orders FROM x", []),
    ("SELECT setval('a', 1); CREATE VIEW v AS SELECT 1; DROP VIEW v; ALTER INDEX i RENAME TO j", []),
]

OTHERS = [
    ("mysql", "ALTER TABLE orders MODIFY COLUMN amount BIGINT NOT NULL", [WIDER]),
    ("mysql", "ALTER TABLE orders MODIFY amount INT", [RELAXED]),
    ("mysql", "ALTER TABLE `sales`.`orders` CHANGE amount total INT NOT NULL AFTER id", [RENAMED]),
    ("mysql", "ALTER TABLE orders CHANGE `Amount` amount BIGINT NOT NULL", [WIDER]),
    ("mysql", "ALTER TABLE orders DROP amount, DROP note", [REMOVED, "field_removed orders.note: string(20) -> None"]),
    ("mysql", "ALTER TABLE orders ADD x INT AFTER id, ADD INDEX i (id), ALGORITHM=INPLACE, LOCK=NONE", [ADDED]),
    ("mysql", "ALTER TABLE orders ADD UNIQUE KEY k (note)", ["key_changed orders.note: None -> None"]),
    ("mysql", "ALTER TABLE orders ADD UNIQUE KEY k (note); ALTER TABLE orders DROP INDEX k", []),
    (
        "mysql",
        "ALTER TABLE customers DROP PRIMARY KEY",
        ["nullability_tightened customers.id: None -> None", "key_changed customers.customers: ['id'] -> None"],
    ),
    (
        "mysql",
        "ALTER TABLE orders MODIFY status ENUM('open', 'paid', 'x')",
        ["enum_values_added orders.status: None -> ['x']"],
    ),
    (
        "mysql",
        "RENAME TABLE sales.orders TO sales.bills",
        ["dataset_renamed orders.orders: sales.orders -> sales.bills"],
    ),
    ("mysql", "RENAME TABLE customers TO x, x TO customers", []),
    ("mysql", "ALTER TABLE orders ENGINE=InnoDB; /*!40101 SET NAMES utf8 */; SET x = 1", []),
    (
        "snowflake",
        "ALTER TABLE DB.SALES.ORDERS ADD COLUMN IF NOT EXISTS x SMALLINT",
        ["field_added orders.x: None -> integer(16)"],
    ),
    (
        "snowflake",
        'ALTER TABLE "ORDERS" DROP COLUMN AMOUNT, NOTE',
        [REMOVED, "field_removed orders.note: string(20) -> None"],
    ),
    ("snowflake", 'ALTER TABLE "orders" DROP COLUMN amount', [REMOVED]),
    ("snowflake", 'ALTER TABLE orders DROP COLUMN "Amount"', []),
    (
        "snowflake",
        "ALTER TABLE orders MODIFY COLUMN note VARCHAR(50)",
        ["type_changed orders.note: string(20) -> string(50)"],
    ),
    ("snowflake", "ALTER TABLE orders MODIFY amount DROP NOT NULL", [RELAXED]),
    ("snowflake", "ALTER TABLE orders CLUSTER BY (id)", []),
    (
        "snowflake",
        "ALTER TABLE sales.orders RENAME TO archive.orders",
        ["dataset_renamed orders.orders: sales.orders -> archive.orders"],
    ),
    (
        "snowflake",
        "ALTER TABLE sales.customers RENAME TO archive.customers",
        ["dataset_renamed customers.customers: customers -> archive.customers"],
    ),
    ("snowflake", "CREATE OR REPLACE TABLE customers (id BIGINT, code TEXT, kind TEXT)", []),
    ("spark", "CREATE TABLE customers (id BIGINT, code STRING) PARTITIONED BY (kind STRING)", []),
    ("spark", "CREATE TABLE customers (id BIGINT, code STRING, kind STRING) USING delta PARTITIONED BY (kind)", []),
    (
        "tsql",
        "CREATE TABLE [dbo].[customers] ([id] BIGINT NOT NULL, [code] NVARCHAR(9), [kind] NVARCHAR(MAX), "
        "CONSTRAINT [PK] PRIMARY KEY CLUSTERED ([id] ASC))",
        [],
    ),
    (
        "spark",
        "ALTER TABLE orders ADD COLUMNS (x INT COMMENT 'q', y STRING)",
        [ADDED, "field_added orders.y: None -> string"],
    ),
    (
        "spark",
        "ALTER TABLE orders DROP COLUMNS (amount, note)",
        [REMOVED, "field_removed orders.note: string(20) -> None"],
    ),
    ("spark", "ALTER TABLE orders CHANGE COLUMN amount total INT", [RENAMED]),
    ("spark", "ALTER TABLE orders CHANGE COLUMN amount amount BIGINT", [WIDER]),
    ("spark", "ALTER TABLE orders ALTER COLUMN amount COMMENT 'x'", []),
    ("spark", "ALTER TABLE orders SET TBLPROPERTIES ('a'='b')", []),
    (
        "spark",
        "ALTER TABLE orders ALTER COLUMN payload TYPE STRUCT<a: BIGINT, b: STRING>",
        ["type_changed orders.payload.a: integer(32) -> integer(64)"],
    ),
    ("spark", "ALTER TABLE customers REPLACE COLUMNS (id BIGINT, code STRING, kind STRING)", []),
    (
        "tsql",
        "ALTER TABLE [sales].[orders] ALTER COLUMN amount BIGINT NOT NULL\nGO\nALTER TABLE orders ADD x INT\nGO",
        [WIDER, ADDED],
    ),
    ("tsql", "ALTER TABLE orders ALTER COLUMN amount INT", [RELAXED]),
    ("tsql", "ALTER TABLE orders ALTER COLUMN note VARCHAR(20) NULL", []),
    ("tsql", "ALTER TABLE orders DROP COLUMN amount, note", [REMOVED, "field_removed orders.note: string(20) -> None"]),
    ("tsql", "EXEC sp_rename 'sales.orders.amount', 'total', 'COLUMN'", [RENAMED]),
    ("tsql", "EXEC sp_rename 'sales.orders', 'bills'", ["dataset_renamed orders.orders: sales.orders -> sales.bills"]),
    (
        "tsql",
        "ALTER TABLE orders ADD CONSTRAINT u UNIQUE NONCLUSTERED (note ASC)",
        ["key_changed orders.note: None -> None"],
    ),
    ("bigquery", "ALTER TABLE `p.sales.orders` ADD COLUMN x INT64", ["field_added orders.x: None -> integer(64)"]),
    ("bigquery", "ALTER TABLE sales.orders ALTER COLUMN amount DROP NOT NULL", [RELAXED]),
    ("bigquery", "ALTER TABLE orders SET OPTIONS (description='x')", []),
    ("duckdb", "ALTER TABLE orders ALTER amount TYPE BIGINT", [WIDER]),
    ("sqlite", "ALTER TABLE orders RENAME COLUMN amount TO total", [RENAMED]),
    ("oracle", "ALTER TABLE orders ADD (x NUMBER(3))", ["field_added orders.x: None -> decimal(3, 0)"]),
    (None, "ALTER TABLE orders RENAME COLUMN amount TO total", [RENAMED]),
]


@pytest.mark.parametrize(("sql", "expected"), POSTGRES)
def test_what_a_statement_amounts_to(sql, expected):
    assert changes(sql) == expected


@pytest.mark.parametrize(("dialect", "sql", "expected"), OTHERS)
def test_what_it_amounts_to_in_other_dialects(dialect, sql, expected):
    assert changes(sql, dialect) == expected


NOT_FOLLOWED = [
    ("postgres", "DO $$ BEGIN ALTER TABLE orders DROP COLUMN amount; END $$"),
    ("postgres", "EXECUTE p"),
    ("postgres", "ALTER TABLE orders DROP COLUMN"),
    ("postgres", "DROP TABLE"),
    ("postgres", "CALL p()"),
    ("postgres", "SELECT add_columns()"),
    ("postgres", "SELECT * FROM add_columns('orders')"),
    ("postgres", "ALTER TABLE orders SET SCHEMA x"),
    ("postgres", "ALTER TABLE orders INHERIT u"),
    ("postgres", "ALTER TABLE orders DROP CONSTRAINT unknown"),
    ("postgres", "ALTER TABLE orders DROP CONSTRAINT IF EXISTS unknown"),
    ("postgres", "ALTER TYPE mood ADD VALUE 'x'"),
    ("postgres", "ALTER TABLE orders ADD COLUMN x mood"),
    ("postgres", "DROP TYPE mood CASCADE"),
    ("postgres", "DROP SCHEMA sales CASCADE"),
    ("postgres", "CREATE TABLE orders AS SELECT 1"),
    ("postgres", "CREATE TABLE orders (LIKE u)"),
    ("postgres", "CREATE TABLE orders (id INT) INHERITS (u)"),
    ("postgres", "CREATE TEMP TABLE orders (id INT)"),
    ("postgres", "CREATE VIEW orders AS SELECT 1"),
    ("postgres", "SELECT 1 AS a INTO orders"),
    ("postgres", "ALTER TABLE unknown RENAME TO orders"),
    ("postgres", "DROP TABLE orders; ALTER TABLE orders DROP COLUMN amount"),
    ("postgres", "CREATE TABLE customers (id INT); CREATE TABLE customers (id INT)"),
    ("postgres", "ALTER TABLE orders ADD x INT; ALTER TABLE orders ADD x INT"),
    ("postgres", "ALTER TABLE orders RENAME amount TO note"),
    ("postgres", "ALTER TABLE orders DROP amount; ALTER TABLE orders RENAME unknown TO amount"),
    ("postgres", "ALTER TABLE customers RENAME TO orders"),
    ("mysql", "/*!50000 ALTER TABLE orders DROP COLUMN amount */"),
    ("mysql", "ALTER TABLE orders ADD (x INT, y INT)"),
    ("mysql", "DROP DATABASE sales"),
    ("snowflake", "EXECUTE IMMEDIATE 'x'"),
    ("snowflake", "ALTER TABLE orders SWAP WITH u"),
    ("snowflake", "CREATE TABLE orders CLONE u"),
    ("snowflake", "UNDROP TABLE orders"),
    ("spark", "ALTER TABLE orders DROP COLUMN payload.a"),
    ("spark", "ALTER TABLE orders ADD COLUMN payload.x INT"),
    ("spark", "ALTER TABLE orders RENAME COLUMN payload.a TO c"),
    ("tsql", "IF NOT EXISTS (SELECT 1) ALTER TABLE orders ADD x INT"),
    ("tsql", "ALTER TABLE orders ADD CONSTRAINT u UNIQUE CLUSTERED"),
    ("tsql", "EXEC p"),
    ("tsql", "EXEC('ALTER TABLE orders DROP COLUMN amount')"),
    ("tsql", "EXEC sp_rename @objname = 'orders', @newname = 'x'"),
    ("tsql", "ALTER TABLE orders ADD x INT\nALTER TABLE orders DROP COLUMN amount"),
    ("bigquery", "ALTER TABLE orders RENAME COLUMN amount TO b, RENAME COLUMN note TO d"),
    ("postgres", "ALTER TABLE orders DROP COLUMN 'amount"),
    ("postgres", "this is no SQL at all"),
    ("postgres", "ALTER TABLE orders ADD COLUMN x nonsense_type"),
    ("postgres", "SELECT 1 \0"),
]


@pytest.mark.parametrize(("dialect", "sql"), NOT_FOLLOWED)
def test_what_cannot_be_followed_is_an_error_and_never_a_pass(dialect, sql):
    with pytest.raises(ContractError) as caught:
        check_migration(CONTRACT, sql, dialect, source="m.sql")
    assert str(caught.value).startswith("m.sql")
    assert caught.value.hint


def test_the_error_names_the_statement_its_place_and_the_way_out():
    with pytest.raises(ContractError) as caught:
        check_migration(CONTRACT, "SELECT 1;\n\n  CALL p();", "postgres", source="db/m.sql")
    assert str(caught.value) == (
        "db/m.sql:3:3: cannot follow 'CALL p()': what it does to the schema is not known "
        "(put it into a file of its own and compare the contracts themselves: databox-contracts diff OLD NEW)"
    )


REMARKS = [
    ("", ["the file has no statement"]),
    (
        "DROP TABLE other",
        [
            "m:1: the table 'other' is not contracted",
            "no statement is about a table of the contract (sales.orders, customers)",
        ],
    ),
    ("ALTER TABLE orders DROP x", ["m:1: the contract has no column 'x' in 'orders'"]),
    ("ALTER TABLE orders ADD x INT", ["the contract has to say so too: these changes need a minor version of it"]),
    (
        "ALTER TABLE orders ALTER status TYPE VARCHAR(9)",
        ["m:1: orders.status: string(9) keeps what the contract promises, string"],
    ),
    (
        "ALTER TABLE orders ADD amount INT NOT NULL",
        ["m:1: the contract has the column 'amount' already; it is compared with it"],
    ),
    (
        "DROP INDEX i",
        [
            "m:1: if the index 'i' is unique, the contract's key is no longer enforced",
            "no statement is about a table of the contract (sales.orders, customers)",
        ],
    ),
    (
        "CREATE TABLE customers (id BIGINT, code TEXT, kind TEXT)",
        ["m:1: the table does not say the contract's primary key (id), unique (code, kind), which is no change"],
    ),
    (
        "ALTER TABLE customers DROP code; ALTER TABLE customers RENAME kind TO code",
        [
            "'code' of 'customers' holds what 'kind' held",
            "the contract has to say so too: these changes need a major version of it",
        ],
    ),
]


@pytest.mark.parametrize(("sql", "expected"), REMARKS)
def test_what_may_surprise_is_said(sql, expected):
    assert list(check_migration(CONTRACT, sql, "postgres", source="m").remarks) == expected


# --- whose verdict ----------------------------------------------------------------------------------------------------


def test_the_contracts_own_policy_judges():
    added = "ALTER TABLE orders ADD x INT NOT NULL"
    assert check_migration(CONTRACT, added).is_breaking
    assert not check_migration(CONTRACT, added, policy="widening").is_breaking
    with pytest.raises(DataboxError, match="no policy"):
        check_migration(CONTRACT, added, policy="nobody")


def test_one_dataset_is_looked_at_alone():
    both = "DROP TABLE orders; DROP TABLE customers"
    assert changes(both, dataset="customers") == ["dataset_removed customers.customers: customers -> None"]
    with pytest.raises(UnknownDatasetError):
        changes(both, dataset="nobody")


def test_an_unknown_dialect_lists_the_known_ones():
    with pytest.raises(DataboxError, match="unknown SQL dialect 'nobody'"):
        changes("SELECT 1", "nobody")


def test_a_name_that_may_mean_two_tables_is_an_error():
    two = Contract(id="a", version="1.0.0", datasets=(Dataset(name="a.t"), Dataset(name="b.t")))
    assert changes("DROP TABLE b.t", contract=two) == ["dataset_removed b.t.b.t: b.t -> None"]
    with pytest.raises(ContractError, match="may mean several"):
        changes("DROP TABLE t", contract=two)


def test_columns_are_found_by_their_names_in_the_table():
    named = Dataset(name="t", fields=(Field(name="amount", column_name="AMT_X"),))
    contract = Contract(id="a", version="1.0.0", datasets=(named,))
    assert changes("ALTER TABLE t DROP amt_x", contract=contract) == ["field_removed t.amount: None -> None"]
    assert changes("ALTER TABLE t DROP amount", contract=contract) == []
    assert changes("ALTER TABLE t RENAME amt_x TO b", contract=contract) == ["field_renamed t.amount: AMT_X -> b"]


def test_a_long_file_is_refused_and_many_statements_are_not():
    with pytest.raises(ContractError, match="a migration at most 1,000,000"):
        changes("-" * (MOST_CHARACTERS + 1))
    many = "".join(f"ALTER TABLE orders ADD c{at} INT;\n" for at in range(300))
    assert len(changes(many)) == 300


def test_a_deeply_nested_statement_is_no_traceback():
    with pytest.raises(ContractError):
        changes("ALTER TABLE orders ADD CHECK (" + "(" * 3000 + "amount > 1" + ")" * 3000 + ")")


# --- table formats ----------------------------------------------------------------------------------------------------

FORMATS = [
    ("ALTER TABLE orders ALTER amount TYPE BIGINT", "iceberg", "Iceberg allows it, the contract does not"),
    (
        "ALTER TABLE orders ALTER amount TYPE BIGINT",
        "delta",
        "Delta allows it, the contract does not (the table needs type widening: delta.enableTypeWidening = true)",
    ),
    ("ALTER TABLE orders ADD x INT", "iceberg", "the contract and Iceberg allow it"),
]


@pytest.mark.parametrize(("sql", "format_", "expected"), FORMATS)
def test_what_the_table_format_says_is_told_apart(sql, format_, expected):
    report = check_migration(CONTRACT, sql, "postgres", table_format=TableFormat(format_))
    assert report.table_format is not None
    assert [one.told_apart.partition(": ")[2] for one in report.table_format.verdicts] == [expected]
