from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from inspect import signature
from math import inf, nan
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from databox_contracts import rules
from databox_contracts.plan import build_plan
from databox_contracts.rules import Operator, Severity, Threshold, Unit
from databox_contracts.spark.footers import ColumnStatistics, data_files, read_statistics
from databox_contracts.spark.given import Given
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.known import Known
from databox_contracts.spark.writing import write_parquet
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.rules import Rule

AS_OF = datetime(2024, 6, 1, tzinfo=UTC)
ROW_GROUP = "parquet.block.row.count.limit"

COLUMNS: Final[dict[str, tuple[str, tuple[Any, ...]]]] = {
    "tiny": ("tinyint", (-128, -1, 0, 1, 127)),
    "i": ("int", (-(2**31), -2, 0, 3, 2**31 - 1)),
    "big": ("bigint", (-(2**63), -1, 0, 10**15, 2**63 - 1)),
    "x.y": ("double", (-inf, -0.0, 0.0, 0.1, 1e300, inf, nan)),
    "d": ("double", (-1.5, -0.0, 0.0, 0.1, 2.5)),
    "f": ("float", (-1.5, 0.0, 0.10000000149011612, 2.5, nan)),
    "n": ("decimal(5,2)", (Decimal("-999.99"), Decimal("0.10"), Decimal("0.00"), Decimal("999.99"))),
    "wide": ("decimal(38,10)", (Decimal("-1e27"), Decimal("0.1"), Decimal("1E-10"), Decimal("1e27"))),
    "day": ("date", (date(1, 1, 1), date(1970, 1, 1), date(2024, 5, 31), date(9999, 12, 31))),
    "at": ("timestamp", (datetime(2024, 5, 31, 23), datetime(1969, 12, 31, 23), datetime(2024, 5, 1))),
    "wall": ("timestamp_ntz", (datetime(2024, 5, 31, 23), datetime(1500, 1, 1), datetime(2024, 5, 1))),
    "flag": ("boolean", (True, False)),
    "Text": ("string", ("", "a", "b", "z" * 40)),
    "x": ("struct<y:double>", ({"y": 1.0}, {"y": None}, {"y": nan})),
    "items": ("array<int>", ([], [1], [None, 2])),
}
NUMBERS: Final = ("tiny", "i", "big", "x.y", "d", "f", "n", "wide")
LIMITS: Final = (0, 1, -1, 0.1, 2.5, Decimal("0.1"), 127, -128, 10**12, -(10**30), 10**40, 999.99, 2**63 - 1, -(2**31))
MOMENTS: Final = (
    "1970-01-01",
    "2024-05-01T00:00:00",
    "2024-05-31T23:00:00Z",
    "2024-05-31T23:00:00+02:00",
    "0001-01-01",
)
BOUNDS: Final = (rules.Minimum, rules.Maximum, rules.ExclusiveMinimum, rules.ExclusiveMaximum)


def table(spark: SparkSession, rows: list[tuple[Any, ...]], ddl: str) -> DataFrame:
    """Through Arrow where PySpark says what its tables look like there, which starts no Python worker."""
    struct = spark.createDataFrame([], ddl).schema
    if not rows or "timezone" not in signature(to_arrow_schema).parameters:
        return spark.createDataFrame(rows, struct)
    schema = to_arrow_schema(struct, timezone="UTC")
    values = list(zip(*rows, strict=True))
    columns = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=schema))


def random_threshold(r: Random, *high: float) -> Threshold:
    operator = r.choice([one for one in Operator if "Between" not in one])
    return Threshold(operator, r.choice((0, 1, 50, *high)), unit=r.choice(list(Unit)))


def random_rules(r: Random, name: str) -> Iterator[Rule]:
    yield rules.Required(severity=r.choice(list(Severity)))
    yield rules.NullCount(threshold=random_threshold(r))
    yield rules.MissingCount(missing_values=r.choice(((), (None,))), threshold=random_threshold(r))
    if name in NUMBERS:
        for bound in BOUNDS:
            yield bound(limit=r.choice(LIMITS))
        number = Threshold(r.choice((Operator.GREATER_OR_EQUAL, Operator.LESS_THAN)), r.choice(LIMITS))
        yield rules.Statistic(statistic=r.choice(("min", "max", "sum")), threshold=number)
        yield rules.MultipleOf(divisor=2)
    if name in ("day", "at", "wall"):
        for bound in BOUNDS:
            yield bound(limit=r.choice(MOMENTS))
        yield rules.Freshness(seconds=r.choice((0, 3600, 86_400)))
        yield rules.Retention(seconds=r.choice((0, 3600, 86_400 * 31, 10**11)))
    if name == "Text":
        yield rules.Enum(values=("", "a"))
        yield rules.MaxLength(length=r.choice((0, 1, 40)))
        yield rules.InvalidCount(valid_values=("a", "b"), threshold=random_threshold(r))
    if name == "flag":
        yield rules.Enum(values=(True,))
    if name == "items":
        yield rules.MinItems(count=1)


def random_rows(r: Random) -> list[tuple[Any, ...]]:
    def column(values: tuple[Any, ...], length: int) -> list[Any]:
        chosen = r.sample(values, r.randrange(1, len(values) + 1))
        nulls = r.choice((0, 0, 0.3, 1))
        return [None if r.random() < nulls else r.choice(chosen) for _ in range(length)]

    length = r.choice((0, 1, 2, 5, 17))
    return list(zip(*(column(values, length) for _, values in COLUMNS.values()), strict=True))


def random_contract(r: Random) -> Any:
    fields = [build_field(name, type_, *random_rules(r, name)) for name, (type_, _) in COLUMNS.items()]
    own = (
        rules.RowCount(threshold=random_threshold(r, 17)),
        rules.PrimaryKey(fields=(r.choice(("i", "Text", "day")),)),
        rules.Expression(sql="`i` <> 3"),
    )
    return build_contract(*fields, rules=own)


def differences(spark: SparkSession, directory: Path, seed: int) -> int:
    """Compare the two ways to a verdict; returns how many checks the footers answered."""
    r = Random(seed)
    df = table(spark, random_rows(r), ", ".join(f"`{name}` {type_}" for name, (type_, _) in COLUMNS.items()))
    df = df.repartition(r.choice((1, 3, 8)))
    spark.conf.set(ROW_GROUP, r.choice(("1", "2", "1000")))
    write_parquet(df, directory)
    staged = spark.read.schema(df.schema).parquet(str(directory))
    contract = random_contract(r)
    plan, given = build_plan(contract, contract.dataset()), Given.at(AS_OF)
    statistics = read_statistics(data_files(directory), df.schema)
    assert statistics is not None
    scanned = Verification(staged, plan, given=given).verdict()
    verdict = Verification(staged, plan, given=given, known=Known(statistics)).verdict()
    assert verdict.to_dict() == scanned.to_dict(), seed
    return sum(result.how == "statistics of the files just written" for result in verdict.results)


@pytest.fixture
def row_groups(spark: SparkSession) -> Iterator[None]:
    yield
    spark.conf.unset(ROW_GROUP)


@pytest.mark.usefixtures("row_groups")
def test_footers_give_the_verdict_of_a_scan(spark: SparkSession, tmp_path: Path) -> None:
    answered = [differences(spark, tmp_path / str(seed), seed) for seed in range(3)]
    # Of 84 checks of rows; the comparison would hold as well if none were answered.
    assert sum(answered) > 3 * 35


@pytest.mark.full
@pytest.mark.usefixtures("row_groups")
def test_footers_give_the_verdict_of_a_scan_of_many_tables(spark: SparkSession, tmp_path: Path) -> None:
    for seed in range(1000, 1250):
        differences(spark, tmp_path / str(seed), seed)


def statistics_of(df: DataFrame, directory: Path) -> dict[str, ColumnStatistics]:
    write_parquet(df, directory)
    found = read_statistics(data_files(directory), df.schema)
    assert found is not None
    return {df.columns[at]: column for at, column in found.columns.items()}


@pytest.mark.usefixtures("row_groups")
def test_what_footers_say_of_each_type(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(ROW_GROUP, "1")
    rows = [
        (
            -1,
            5,
            Decimal("-0.10"),
            Decimal("-1e20"),
            date(1969, 12, 31),
            datetime(1970, 1, 1),
            "a",
            0.5,
            {"b": 1.0},
            [1],
        ),
        (None, 7, None, Decimal("2"), None, datetime(1970, 1, 2), None, nan, None, None),
        (3, None, Decimal("9.99"), None, date(1970, 1, 3), None, "b", 1.5, {"b": 2.0}, []),
    ]
    types = "`a.b` tinyint, B int, n decimal(5,2), wide decimal(38,2), day date, wall timestamp_ntz, s string, d double"
    df = table(spark, rows, f"{types}, a struct<b:double>, items array<int>").repartition(2)
    assert statistics_of(df, tmp_path / "t") == {
        "a.b": ColumnStatistics(1, -1, 3),
        "B": ColumnStatistics(1, 5, 7),
        "n": ColumnStatistics(1, Decimal("-0.10"), Decimal("9.99")),
        "wide": ColumnStatistics(1, Decimal("-1e20"), Decimal("2.00")),
        "day": ColumnStatistics(1, -1, 2),
        "wall": ColumnStatistics(1, 0, 86_400_000_000),
        # Texts may be cut, NaN has no order, and nothing is said of what has parts.
        "s": ColumnStatistics(1),
        "d": ColumnStatistics(0),
    }
    other_names = T.StructType([T.StructField("b", T.IntegerType()), T.StructField("B", T.LongType())])
    of_others = read_statistics(data_files(tmp_path / "t"), other_names)
    # Another case, another type.
    assert of_others is not None
    assert of_others.columns == {1: ColumnStatistics(1)}


def test_a_row_group_without_statistics_leaves_the_column_untold(spark: SparkSession, tmp_path: Path) -> None:
    # A value of more than 4096 bytes has no statistics, not even a count of nulls.
    df = table(spark, [("a", 1), ("b" * 5000, 2), (None, 3)], "s string, i int").coalesce(1)
    assert statistics_of(df, tmp_path) == {"s": ColumnStatistics(None), "i": ColumnStatistics(0, 1, 3)}


@pytest.mark.parametrize(
    "values", [[nan, 1.0, 2.0], [1.0, nan, 2.0], [1.0, 2.0, nan], [nan, nan], [None, nan], [inf, nan]]
)
def test_this_writer_shows_each_nan(spark: SparkSession, tmp_path: Path, values: list[float | None]) -> None:
    df = table(spark, [(value, value) for value in values], "d double, f float").coalesce(1)
    assert statistics_of(df, tmp_path) == {
        "d": ColumnStatistics(values.count(None)),
        "f": ColumnStatistics(values.count(None)),
    }


def test_writers_that_are_not_known_to_show_nan_are_not_believed(tmp_path: Path) -> None:
    # Arrow leaves NaN out: 1.0 and 2.0 are the bounds that it writes.
    pq.write_table(pa.table({"d": [1.0, nan, 2.0], "i": [1, 2, 3]}), tmp_path / "one.parquet")
    schema = T.StructType([T.StructField("d", T.DoubleType()), T.StructField("i", T.LongType())])
    found = read_statistics(data_files(tmp_path), schema)
    assert found is not None
    assert found.columns == {0: ColumnStatistics(0), 1: ColumnStatistics(0, 1, 3)}


def test_dates_of_the_julian_calendar_and_other_units_of_time_are_not_compared(tmp_path: Path) -> None:
    old = pa.table({"day": [date(1500, 1, 1)], "i": [1]})
    with pq.ParquetWriter(tmp_path / "old.parquet", old.schema) as writer:
        writer.write_table(old)
        writer.add_key_value_metadata({"org.apache.spark.legacyDateTime": ""})
    schema = T.StructType([T.StructField("day", T.DateType()), T.StructField("i", T.LongType())])
    found = read_statistics(data_files(tmp_path), schema)
    assert found is not None
    assert found.columns == {0: ColumnStatistics(0), 1: ColumnStatistics(0, 1, 1)}
    times = pa.table({"at": pa.array([datetime(2024, 1, 1)], pa.timestamp("ms"))})
    (tmp_path / "at").mkdir()
    pq.write_table(times, tmp_path / "at" / "one.parquet")
    schema = T.StructType([T.StructField("at", T.TimestampNTZType())])
    found = read_statistics(data_files(tmp_path / "at"), schema)
    assert found is not None
    assert found.columns == {0: ColumnStatistics(0)}


def test_only_what_spark_reads_is_counted_and_what_is_no_parquet_says_nothing(tmp_path: Path) -> None:
    schema = T.StructType([T.StructField("i", T.LongType()), T.StructField("late", T.LongType())])
    assert read_statistics(data_files(tmp_path), schema) is None
    for name in ("a.parquet", "p=1/b.parquet", "_dropped/c.parquet", ".d.parquet", "_SUCCESS"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"i": [1, None]}), tmp_path / name)
    assert [str(file.relative_to(tmp_path)) for file in data_files(tmp_path)] == ["a.parquet", "p=1/b.parquet"]
    found = read_statistics(data_files(tmp_path), schema)
    assert found is not None
    assert (found.rows, found.columns) == (4, {0: ColumnStatistics(2, 1, 1)})
    pq.write_table(pa.table({"i": [5], "late": [5]}), tmp_path / "e.parquet")
    found = read_statistics(data_files(tmp_path), schema)
    # A column that an older file lacks is null there, and no footer counts that.
    assert found is not None
    assert (found.rows, found.columns) == (5, {0: ColumnStatistics(2, 1, 5)})
    (tmp_path / "notes.txt").write_text("no table")
    assert read_statistics(data_files(tmp_path), schema) is None
