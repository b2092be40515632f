"""Which type changes keep every value, as literal data: what each table's own source says of each pair."""

import pytest

from databox_contracts.datatypes import Family, parse_type
from databox_contracts.evolution.judging import diff
from databox_contracts.evolution.widening import TABLES, Widening, widens
from databox_contracts.testing import build_contract, build_field

# The four families of the gate of Soda contracts; value-preserving numbers; Avro's promotions; Iceberg's specification;
# Delta's. x widens, . does not.
COLUMNS = (Widening.SODA, Widening.NUMERIC, Widening.REGISTRY, Widening.ICEBERG, Widening.DELTA)

PAIRS = """
    tinyint             smallint              x x x x x
    tinyint             int                   x x x x x
    tinyint             bigint                x x x x x
    smallint            int                   x x x x x
    smallint            bigint                x x x x x
    int                 bigint                x x x x x
    bigint              int                   . . . . .
    int                 smallint              . . . . .
    smallint            tinyint               . . . . .
    bigint              tinyint               . . . . .
    integer(any)        bigint                . . . . .
    bigint              integer(any)          . . . . .
    tinyint             float                 x x x . .
    smallint            float                 x x x . .
    int                 float                 x . x . .
    bigint              float                 x . x . .
    tinyint             double                x x x . x
    smallint            double                x x x . x
    int                 double                x x x . x
    bigint              double                x . x . .
    double              int                   . . . . .
    float               int                   . . . . .
    tinyint             decimal(3,0)          x x . . .
    tinyint             decimal(2,0)          x . . . .
    smallint            decimal(5,0)          x x . . .
    smallint            decimal(4,0)          x . . . .
    int                 decimal(10,0)         x x . . x
    int                 decimal(9,0)          x . . . .
    int                 decimal(12,2)         x x . . x
    int                 decimal(11,2)         x . . . .
    bigint              decimal(19,0)         x x . . .
    bigint              decimal(20,0)         x x . . x
    bigint              decimal(18,0)         x . . . .
    int                 decimal               x . . . .
    decimal(10,0)       int                   . . . . .
    decimal(10,0)       bigint                . . . . .
    float               double                . x x x x
    double              float                 . . . . .
    float               decimal(10,2)         . . . . .
    double              decimal(38,10)        . . . . .
    decimal(10,2)       double                . . . . .
    decimal(10,2)       decimal(12,2)         . x . x x
    decimal(10,2)       decimal(12,4)         . x . . x
    decimal(10,2)       decimal(11,3)         . x . . x
    decimal(10,2)       decimal(10,3)         . . . . .
    decimal(10,2)       decimal(12,5)         . . . . .
    decimal(12,2)       decimal(10,2)         . . . . .
    decimal(10,2)       decimal(12,0)         . . . . .
    decimal(10,2)       decimal               . . . . .
    decimal             decimal(38,10)        . . . . .
    varchar(10)         varchar(20)           x x x x x
    varchar(20)         varchar(10)           x . . x x
    varchar(10)         text                  x x x x x
    text                varchar(10)           x . . x x
    text                int                   . . . . .
    int                 text                  . . . . .
    text                binary                . . x . .
    binary              text                  . . x . .
    text                date                  . . . . .
    date                text                  . . . . .
    boolean             int                   . . . . .
    int                 boolean               . . . . .
    boolean             text                  . . . . .
    date                timestamp             x . . . .
    date                timestamp_ntz         x . . . x
    date                timestamp_ltz         x . . . .
    timestamp           date                  . . . . .
    timestamp_ntz       timestamp_ltz         . . . . .
    timestamp_ltz       timestamp_ntz         . . . . .
    timestamp_ntz       timestamp             . . . . .
    timestamp           bigint                . . . . .
    time                timestamp             . . . . .
    date                time                  . . . . .
    variant             text                  . . . . .
    text                variant               . . . . .
    array<int>          map<string,int>       . . . . .
    array<int>          struct<a:int>         . . . . .
    struct<a:int>       map<string,int>       . . . . .
    array<int>          int                   . . . . .
    int                 array<int>            . . . . .
    struct<a:int>       text                  . . . . .
    map<string,int>     text                  . . . . .
"""

ROWS = [(line.split()[0], line.split()[1], line.split()[2:]) for line in PAIRS.strip().splitlines()]

# Inside arrays, maps and structs the parts are judged, each where it stands.
NESTED = [
    ("array<int>", "array<bigint>", "a.item", True),
    ("array<bigint>", "array<int>", "a.item", False),
    ("array<array<int>>", "array<array<bigint>>", "a.item.item", True),
    ("map<string,int>", "map<string,bigint>", "a.value", True),
    ("map<int,string>", "map<bigint,string>", "a.key", True),
    ("map<string,bigint>", "map<string,int>", "a.value", False),
    ("struct<b:int>", "struct<b:bigint>", "a.b", True),
    ("struct<b:bigint>", "struct<b:int>", "a.b", False),
    ("struct<b:struct<c:float>>", "struct<b:struct<c:double>>", "a.b.c", True),
    ("array<struct<b:int>>", "array<struct<b:bigint>>", "a.b", True),
    ("array<struct<b:bigint>>", "array<struct<b:string>>", "a.b", False),
]


def spelled(text: str):
    return parse_type("number").__class__(Family.INTEGER) if text == "integer(any)" else parse_type(text)


def test_there_are_enough_pairs_and_none_twice():
    assert len(ROWS) + len(NESTED) >= 60
    assert len({(old, new) for old, new, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("old", "new", "marks"), ROWS, ids=[f"{old}-{new}" for old, new, _ in ROWS])
def test_a_pair_widens_under_some_tables(old, new, marks):
    assert ["x" if widens(spelled(old), spelled(new), table) else "." for table in COLUMNS] == marks


@pytest.mark.parametrize("table", TABLES)
def test_what_is_not_declared_never_widens(table):
    number = parse_type("int")
    assert not widens(None, number, table)
    assert not widens(number, None, table)
    assert not widens(None, None, table)


def test_no_table_is_left_out():
    assert list(TABLES) == [Widening.NONE, *COLUMNS]
    assert not any(widens(spelled(old), spelled(new), Widening.NONE) for old, new, _ in ROWS)


@pytest.mark.parametrize(("old", "new", "field", "widening"), NESTED)
def test_the_parts_of_a_nested_type_are_judged_on_their_own(old, new, field, widening):
    before, after = (build_contract(build_field("a", type_), version="1.0.0") for type_ in (old, new))
    change, *_ = diff(before, after).changes
    assert (str(change.change_type), change.field_name, change.widening) == ("type_changed", field, widening)
    # Any type change breaks under the strict policy, and only a narrowing where widening is allowed.
    assert change.is_breaking
    own = diff(before, after, "backward").changes[0]
    assert own.is_breaking is not widening
