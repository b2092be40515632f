from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError, PublicationError
from databox_contracts.rules import Operator, Threshold
from databox_contracts.spark import Publication, TablePlace, publish, read_published
from databox_contracts.spark.failures import SPARK_ERRORS
from databox_contracts.spark.linking import Base
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.model import Contract

FIRST, SECOND, THIRD = (date(2024, 1, day) for day in (1, 2, 3))
AT_LEAST_1 = rules.RowCount(threshold=Threshold(Operator.GREATER_OR_EQUAL, 1))
COLUMNS = "id int, day date, v string"


def days(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), COLUMNS).repartition(2)  # type: ignore[type-var]


def contract(*rules_: Any, **fields: tuple[Any, ...]) -> Contract:
    names = {"id": "int", "day": "date", "v": "string"}
    own = [build_field(name, type_, *fields.get(name, ())) for name, type_ in names.items()]
    return build_contract(*own, rules=rules_, dataset="t")


KEYED = contract(rules.PrimaryKey(fields=("id",)), AT_LEAST_1, v=(rules.Enum(values=("x", "y")),))


def rows_of(spark: SparkSession, place: TablePlace) -> list[tuple[Any, ...]]:
    read = read_published(spark, place)
    assert read.schema.simpleString() == "struct<id:int,day:date,v:string>"
    return sorted((tuple(row) for row in read.collect()), key=repr)


def rejected(*args: Any, **options: Any) -> Publication:
    with pytest.raises(ContractViolationError) as error:
        publish(*args, **options)
    publication = error.value.publication
    assert isinstance(publication, Publication)
    return publication


def directories(place: TablePlace) -> list[str]:
    return sorted(entry.name for entry in place.link.iterdir() if entry.is_dir())


@pytest.fixture(params=["parquet", pytest.param("csv", marks=pytest.mark.full)])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> TablePlace:
    return TablePlace(tmp_path / "root", "shop/t", request.param)


# --- how fresh the table is -------------------------------------------------------------------------------------------

NOON: datetime = datetime(2024, 1, 3, 12, tzinfo=UTC)
FRESH = build_contract(
    build_field("day", "date"),
    build_field("at", "timestamp"),
    rules=(rules.Freshness(seconds=3600, element="at"),),
    dataset="t",
)


def moments(spark: SparkSession, *rows: tuple[date, datetime]) -> DataFrame:
    return spark.createDataFrame(list(rows), "day date, at timestamp")


def fresh(publication: Publication) -> tuple[str, Any]:
    (result,) = [one for one in publication.verdict.results if one.rule == "freshness"]
    return result.status.value, result.observed


@pytest.mark.parametrize("mode", ["overwrite_partitions", "append"])
def test_an_old_partition_is_filled_again_while_the_table_is_fresh(
    spark: SparkSession, place: TablePlace, mode: Any
) -> None:
    old, new = (FIRST, datetime(2024, 1, 1, 8, tzinfo=UTC)), (THIRD, NOON - timedelta(minutes=30))
    publish(moments(spark, old, new), FRESH, place=place, partition_by=("day",), as_of=NOON)
    again = publish(moments(spark, old), FRESH, place=place, mode=mode, as_of=NOON)
    assert fresh(again) == ("passed", 1800.0)
    nothing = moments(spark).where("day is null")
    assert fresh(publish(nothing, FRESH, place=place, mode=mode, as_of=NOON)) == ("passed", 1800.0)
    # Two hours later nothing in it is fresh.
    later = rejected(moments(spark, old), FRESH, place=place, mode=mode, as_of=NOON + timedelta(hours=2))
    assert fresh(later) == ("failed", 9000.0)
    # Nor is it when its fresh rows are replaced, or are all that is to be published.
    stale = moments(spark, (THIRD, NOON - timedelta(hours=2)))
    if mode == "overwrite_partitions":
        assert fresh(rejected(stale, FRESH, place=place, mode=mode, as_of=NOON)) == ("failed", 7200.0)
    assert fresh(rejected(stale, FRESH, place=place, as_of=NOON)) == ("failed", 7200.0)


# --- partitions that are replaced -------------------------------------------------------------------------------------


def test_partitions_are_replaced_and_the_others_are_the_same_files(spark: SparkSession, place: TablePlace) -> None:
    start = [(1, FIRST, "x"), (2, FIRST, "y"), (3, SECOND, "x"), (4, None, "y")]
    first = publish(days(spark, *start), KEYED, place=place, partition_by=("day",), run_id="r0")
    assert (first.rows_in, first.table_rows) == (4, 4)
    assert directories(place) == ["day=2024-01-01", "day=2024-01-02", "day=__HIVE_DEFAULT_PARTITION__"]
    assert rows_of(spark, place) == sorted(start, key=repr)
    opened = read_published(spark, place)
    untouched = next((place.link.resolve() / "day=2024-01-02").glob("part-*"))
    # What is not replaced is not read either: no Spark could read this.
    replaced = days(spark, (1, FIRST, "y"), (9, THIRD, "x"))
    second = publish(replaced, KEYED, place=place, mode="overwrite_partitions", run_id="r1")
    assert (second.rows_in, second.rows_published, second.table_rows) == (2, 2, 4)
    assert rows_of(spark, place) == [(1, FIRST, "y"), (3, SECOND, "x"), (4, None, "y"), (9, THIRD, "x")]
    linked = place.link / "day=2024-01-02" / untouched.name
    assert os.path.samefile(linked, untouched)
    assert linked.with_name(f".{linked.name}.crc").exists()
    facts = json.loads((place.link / "_databox.json").read_text())
    assert (facts["mode"], facts["replaced"]) == ("overwrite_partitions", ["day=2024-01-01", "day=2024-01-03"])
    assert facts["table"]["rows"] == {
        "day=2024-01-01": 1,
        "day=2024-01-02": 1,
        "day=2024-01-03": 1,
        "day=__HIVE_DEFAULT_PARTITION__": 1,
    }
    # Who opened the table before still sees what it was.
    assert sorted((tuple(row) for row in opened.collect()), key=repr) == sorted(start, key=repr)


def test_a_named_partition_without_rows_becomes_empty(spark: SparkSession, place: TablePlace) -> None:
    free = contract()
    publish(days(spark, (1, FIRST, "x"), (2, SECOND, "x"), (3, None, "x")), free, place=place, partition_by=["day"])
    nothing = days(spark).where("id > 0")
    for partitions, left in (([], 3), ([{"day": "2024-01-01"}], 2), ([{"day": None}, {"day": THIRD}], 1)):
        publication = publish(nothing, free, place=place, mode="overwrite_partitions", partitions=partitions)
        assert (publication.rows_in, publication.table_rows) == (0, left)
        assert len(rows_of(spark, place)) == left
    assert directories(place) == ["day=2024-01-02"]
    # Without names nothing came in, so nothing is replaced: Spark's own behaviour, and all that can be known.
    assert publish(nothing, free, place=place, mode="overwrite_partitions").table_rows == 1
    # A promised row is missed in a named partition too.
    missed = rejected(
        nothing, KEYED, place=place, mode="overwrite_partitions", partitions=[{"day": SECOND}, {"day": FIRST}]
    )
    [result] = missed.verdict.violations
    assert result.message == "the partition day=2024-01-02 has 0 rows; promised is >= 1; so is 1 more"
    assert missed.rows_in == 0
    assert len(rows_of(spark, place)) == 1


def test_rows_outside_the_named_partitions_are_an_error(spark: SparkSession, place: TablePlace) -> None:
    publish(days(spark, (1, FIRST, "x")), KEYED, place=place, partition_by=("day",))
    stray = days(spark, (2, FIRST, "x"), (3, SECOND, "bad"), (4, None, "x"))
    for mode in ("overwrite_partitions", "append"):
        for on_violation in ("fail", "quarantine", "warn"):
            with pytest.raises(
                PublicationError, match=r"there are rows of 2 partitions .* for: day=null; day=2024-01-02"
            ):
                publish(
                    stray,
                    KEYED,
                    place=place,
                    mode=mode,  # type: ignore[arg-type]
                    partitions=[{"day": FIRST}],
                    on_violation=on_violation,  # type: ignore[arg-type]
                )
    secret = KEYED.model_copy(update={"governance": KEYED.governance.model_copy(update={"pii_class": "personal"})})
    with pytest.raises(PublicationError) as error:
        publish(stray, secret, place=place, mode="overwrite_partitions", partitions=[{"day": FIRST}])
    assert "2024" not in str(error.value)
    assert rows_of(spark, place) == [(1, FIRST, "x")]


# --- keys and row counts ----------------------------------------------------------------------------------------------


def test_an_append_is_judged_with_the_rows_that_are_there(spark: SparkSession, place: TablePlace) -> None:
    assert publish(days(spark, (1, FIRST, "x"), (2, FIRST, "x")), KEYED, place=place, mode="append").table_rows == 2
    before = place.link.resolve()
    publication = publish(days(spark, (3, FIRST, "x")), KEYED, place=place, mode="append")
    assert (publication.rows_in, publication.rows_published, publication.table_rows) == (1, 1, 3)
    assert publication.verdict.row_count == 1
    assert {file.name for file in before.glob("part-*")} < {file.name for file in place.link.glob("part-*")}
    clash = days(spark, (2, SECOND, "y"), (5, SECOND, "y"), (6, SECOND, "bad"))
    found = rejected(clash, KEYED, place=place, mode="append")
    assert [(r.id, r.failed_count, r.samples) for r in found.verdict.violations] == [
        ("t.v.enum", 1, ("bad",)),
        ("t.primary_key", 1, (2,)),
    ]
    # Of a key that is there already the new rows are held; the old ones are published and stay.
    held = publish(clash, KEYED, place=place, mode="append", on_violation="quarantine")
    assert (held.rows_in, held.rows_published, held.rows_quarantined, held.table_rows) == (3, 1, 2, 4)
    assert [row[0] for row in rows_of(spark, place)] == [1, 2, 3, 5]
    # An empty append has the rows that are there; an empty table has not.
    assert publish(days(spark).limit(0), KEYED, place=place, mode="append").table_rows == 4


def test_keys_are_those_of_a_partition_unless_the_scope_is_the_table(spark: SparkSession, place: TablePlace) -> None:
    start = [(1, FIRST, "x"), (1, SECOND, "x"), (1, None, "x")]
    whole = rejected(days(spark, *start), KEYED, place=place, partition_by=("day",))
    assert [(r.id, r.failed_count) for r in whole.verdict.violations] == [("t.primary_key", 2)]
    by_day: dict[str, Any] = {"place": place, "partition_by": ("day",), "mode": "append"}
    publish(days(spark, *start), KEYED, **by_day)
    assert len(rows_of(spark, place)) == 3
    # The null partition is one too, and a repeated key in it is told.
    again = rejected(days(spark, (1, None, "y"), (1, THIRD, "y")), KEYED, **by_day)
    [key] = again.verdict.violations
    assert (key.id, key.failed_count) == ("t.primary_key", 1)
    assert key.samples == ({"id": 1, "partition": {"day": None}},)
    held = publish(days(spark, (1, None, "y"), (1, THIRD, "y")), KEYED, **by_day, on_violation="quarantine")
    assert (held.rows_published, held.rows_quarantined) == (1, 1)
    assert rows_of(spark, place) == sorted([*start, (1, THIRD, "y")], key=repr)
    across = rejected(days(spark, (1, date(2024, 2, 1), "y")), KEYED, **by_day, scope="table")
    assert [(r.failed_count, r.samples) for r in across.verdict.violations] == [(4, (1,))]
    replaced: dict[str, Any] = {"place": place, "mode": "overwrite_partitions"}
    publish(days(spark, (1, FIRST, "y"), (2, FIRST, "y")), KEYED, **replaced)
    # The rows that are replaced are no longer there to clash with, those of other partitions are.
    fails = rejected(days(spark, (1, FIRST, "y")), KEYED, **replaced, scope="table")
    assert [r.failed_count for r in fails.verdict.violations] == [3]
    assert publish(days(spark, (7, FIRST, "y")), KEYED, **replaced, scope="table", on_violation="warn").table_rows == 4


def test_row_counts_are_those_of_each_partition(spark: SparkSession, place: TablePlace) -> None:
    at_most_2 = contract(rules.RowCount(threshold=Threshold(Operator.LESS_OR_EQUAL, 2)))
    three = [(1, FIRST, "x"), (2, FIRST, "x"), (3, SECOND, "x")]
    append: dict[str, Any] = {"place": place, "partition_by": "day", "mode": "append"}
    first = publish(days(spark, *three), at_most_2, **append)
    [result] = [r for r in first.verdict.results if r.rule == "row_count"]
    assert (result.status.value, result.observed) == ("passed", "1 to 2")
    publish(days(spark, (4, SECOND, "x")), at_most_2, **append)
    found = rejected(days(spark, (5, SECOND, "x"), (6, THIRD, "x")), at_most_2, **append)
    [violation] = found.verdict.violations
    assert violation.message == "the partition day=2024-01-02 has 3 rows; promised is <= 2"
    assert violation.observed == 3
    whole = rejected(days(spark, (6, THIRD, "x")), at_most_2, **append, scope="table")
    assert [r.observed for r in whole.verdict.violations] == [5]


def test_quarantine_inside_partitions_loses_no_row(spark: SparkSession, place: TablePlace) -> None:
    publish(days(spark, (1, FIRST, "x"), (2, SECOND, "x")), KEYED, place=place, partition_by=("day",))
    rows = [
        *((at, FIRST, "x") for at in range(10, 20)),
        (10, FIRST, "y"),
        (11, FIRST, "bad"),
        (None, FIRST, "x"),
        (7, None, "x"),
        (7, None, "y"),
        (8, None, "y"),
        (10, THIRD, "bad"),
    ]
    held = publish(
        days(spark, *rows),
        contract(rules.PrimaryKey(fields=("id",)), v=(rules.Enum(values=("x", "y")),)),
        place=place,
        mode="overwrite_partitions",
        on_violation="quarantine",
        run_id="r1",
    )
    assert (held.rows_in, held.rows_published, held.rows_quarantined) == (17, 9, 8)
    # The partition all of whose rows are held was written to, so nothing old would be left in it.
    expected = [*((at, FIRST, "x") for at in range(12, 20)), (8, None, "y"), (2, SECOND, "x")]
    assert rows_of(spark, place) == sorted(expected, key=repr)
    assert held.quarantine is not None
    batch = spark.read.parquet(str(held.quarantine))
    found = [tuple(row) for row in batch.select("id", "day", "v", "_quarantine_reason").collect()]
    assert sorted(found, key=repr) == sorted(
        [
            (10, FIRST, "x", ["t.primary_key"]),
            (10, FIRST, "y", ["t.primary_key"]),
            (11, FIRST, "x", ["t.primary_key"]),
            (11, FIRST, "bad", ["t.v.enum", "t.primary_key"]),
            (None, FIRST, "x", ["t.id.required"]),
            (7, None, "x", ["t.primary_key"]),
            (7, None, "y", ["t.primary_key"]),
            (10, THIRD, "bad", ["t.v.enum"]),
        ],
        key=repr,
    )


def test_held_rows_of_a_run_are_replaced_with_their_partitions_only(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path, "t")
    options: dict[str, Any] = {"place": place, "on_violation": "quarantine", "run_id": "r", "partition_by": "day"}
    free = contract(v=(rules.Enum(values=("x",)),))

    def held() -> list[Any]:
        return sorted(row[0] for row in spark.read.parquet(str(place.quarantine)).select("id").collect())

    for id_, day in ((1, FIRST), (2, SECOND), (3, SECOND)):
        publish(days(spark, (id_, day, "bad")), free, mode="overwrite_partitions", **options)
    assert held() == [1, 3]
    for _ in range(2):
        publish(days(spark, (4, FIRST, "bad")), free, mode="append", **options)
    assert held() == [1, 3, 4, 4]
    publish(days(spark, (5, FIRST, "bad")), free, **options)
    assert held() == [5]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
@pytest.mark.parametrize("on_violation", ["fail", "quarantine"])
def test_a_text_that_would_come_back_as_null_is_refused(
    spark: SparkSession, tmp_path: Path, text: str, on_violation: Any
) -> None:
    place = TablePlace(tmp_path, "t")
    df = days(spark, (1, FIRST, text), (2, FIRST, "x"), (3, FIRST, None))
    # Of the two that would be one directory, the second ends the write, or both are written.
    refused = r"1 rows have an empty text or .* in the partition column v|two values of v would be one directory"
    with pytest.raises(PublicationError, match=refused):
        publish(df, contract(), place=place, partition_by=("v",), on_violation=on_violation)
    assert not place.link.exists()
    publish(df.where("id > 1"), contract(), place=place, partition_by=("v",), on_violation=on_violation)
    assert rows_of(spark, place) == [(2, FIRST, "x"), (3, FIRST, None)]


def test_partition_values_keep_their_type_and_their_characters(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path, "t")
    texts = ["01", "a/b=c%d", "é 😀", "x\ny", "..", "a:b*?\"'[{^", "NULL", "+", " ", "2024-01-01", None, "A", "a"]
    steps = [Decimal(0), Decimal("-0.0000000001"), None, Decimal("1.5")]
    rows = [(at, text, at - 5, [True, False, None][at % 3], steps[at % 4], f"w{at}") for at, text in enumerate(texts)]
    df = spark.createDataFrame(rows, "n int, `p q` string, k bigint, b boolean, m decimal(20,10), w string")
    free = build_contract(*(build_field(name) for name in df.columns))
    names = ("p q", "k", "b", "m")
    publish(df, free, place=place, partition_by=names)
    assert read_published(spark, place).schema.simpleString() == df.schema.simpleString()
    assert read_published(spark, place).orderBy("n").collect() == df.orderBy("n").collect()
    specs: list[dict[str, Any]] = [{"p q": "a/b=c%d", "b": False}, {"p q": None}, {"m": 0}]
    assert publish(df.limit(0), free, place=place, mode="overwrite_partitions", partitions=specs).table_rows == 7
    left = [row[0] for row in read_published(spark, place).select("n").orderBy("n").collect()]
    assert left == [2, 3, 5, 6, 7, 9, 11]
    # Every value of a row, put into the partition that is there, replaces it.
    publish(df.withColumn("w", df["p q"]), free, place=place, mode="overwrite_partitions")
    assert read_published(spark, place).where("w <=> `p q`").count() == len(texts)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"mode": "upsert"}, "mode is 'upsert'"),
        ({"scope": "row"}, "scope is 'row'"),
        ({"partitions": [{"day": FIRST}]}, 'Did you mean mode="overwrite_partitions"'),
        ({"mode": "overwrite_partitions"}, "the table has no partitions"),
        ({"mode": "append", "partitions": [{"day": FIRST}]}, "the table has no partitions"),
        ({"mode": "append", "partition_by": ("day",)}, "partitioned by nothing, and the rows would be by day"),
        ({"partition_by": ("dya",)}, "there is no column dya"),
        ({"partition_by": ("id", "day", "v")}, "every column is a partition column"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], reason: str
) -> None:
    place = TablePlace(tmp_path, "t")
    df = days(spark, (1, FIRST, "x"))
    publish(df, contract(), place=place)
    with pytest.raises(PublicationError, match=reason):
        publish(df, contract(), place=place, **options)
    assert rows_of(spark, place) == [(1, FIRST, "x")]


def test_rows_of_other_columns_are_refused_and_of_another_order_are_not(spark: SparkSession, place: TablePlace) -> None:
    publish(days(spark, (1, FIRST, "x")), contract(), place=place)
    df = days(spark, (2, SECOND, "y"))
    publish(df.select("v", "id", "day"), contract(), place=place, mode="append")
    assert rows_of(spark, place) == [(1, FIRST, "x"), (2, SECOND, "y")]
    for other, reason in (
        (df.drop("v"), "the rows have no v"),
        (df.withColumn("w", df["v"]), "the table has no w"),
        (df.withColumn("id", df["id"].cast("string")), r"id is integer\(32\) there and string here"),
    ):
        with pytest.raises(PublicationError, match=reason):
            publish(other, build_contract(*map(build_field, other.columns)), place=place, mode="append")


# --- what is there ----------------------------------------------------------------------------------------------------


def test_a_partitioned_table_of_spark_is_adopted_and_added_to(spark: SparkSession, tmp_path: Path) -> None:
    start = days(spark, (1, FIRST, "01"), (2, SECOND, "02"))
    for number, mode in enumerate(("append", "overwrite_partitions")):
        place = TablePlace(tmp_path, f"t{number}")
        start.write.partitionBy("v").parquet(str(place.link))
        with pytest.raises(PublicationError, match="it is not partitioned by day everywhere"):
            publish(start, KEYED, place=place, mode="append", partition_by=("day",))
        publication = publish(
            days(spark, (3, SECOND, "02")),
            contract(),
            place=place,
            mode=mode,  # type: ignore[arg-type]
        )
        assert publication.table_rows == (3 if mode == "append" else 2)
        kept = [(2, SECOND, "02")] if mode == "append" else []
        assert rows_of(spark, place) == [(1, FIRST, "01"), *kept, (3, SECOND, "02")]


def test_of_two_publishes_the_later_to_finish_is_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = TablePlace(tmp_path, "t")
    publish(days(spark, (1, FIRST, "x")), contract(), place=place, partition_by="day")
    real = Base.link_into
    for mode in ("append", "overwrite_partitions"):

        def linking(self: Base, *args: Any, mode: str = mode) -> None:
            monkeypatch.setattr(Base, "link_into", real)
            publish(days(spark, (2, SECOND, mode)), contract(), place=place, mode="overwrite_partitions")
            real(self, *args)

        monkeypatch.setattr(Base, "link_into", linking)
        with pytest.raises(PublicationError, match="another publish finished first"):
            publish(days(spark, (3, THIRD, "slow")), contract(), place=place, mode=mode)  # type: ignore[arg-type]
    assert [row[2] for row in rows_of(spark, place)] == ["x", "overwrite_partitions"]


def test_files_are_copied_where_there_can_be_no_links(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = TablePlace(tmp_path, "t")
    publish(days(spark, (1, FIRST, "x")), contract(), place=place)
    before = next(place.link.resolve().glob("part-*"))

    def no_links(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    publish(days(spark, (2, FIRST, "x")), contract(), place=place, mode="append")
    assert rows_of(spark, place) == [(1, FIRST, "x"), (2, FIRST, "x")]
    copy = place.link / before.name
    assert not os.path.samefile(copy, before)
    assert copy.read_bytes() == before.read_bytes()


def test_partitions_that_stay_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path, "t")
    publish(days(spark, (1, FIRST, "x"), (2, SECOND, "x")), KEYED, place=place, partition_by="day")
    # Whoever reads this file fails.
    for file in (place.link.resolve() / "day=2024-01-01").iterdir():
        file.write_bytes(b"damaged")
    for mode, rows in (("overwrite_partitions", 2), ("append", 3)):
        publication = publish(days(spark, (rows, SECOND, "y")), KEYED, place=place, mode=mode)  # type: ignore[arg-type]
        assert publication.table_rows == rows
    assert read_published(spark, place).where("day = '2024-01-02'").count() == 2
    with pytest.raises(SPARK_ERRORS):
        read_published(spark, place).collect()


@pytest.mark.parametrize("rounds", [5, pytest.param(40, marks=pytest.mark.full)])
def test_no_row_is_lost_or_doubled_whatever_is_published(spark: SparkSession, tmp_path: Path, rounds: int) -> None:
    dice = Random(rounds)
    place = TablePlace(tmp_path, "t", dice.choice(["parquet", "orc", "json", "csv"]))
    free = contract(rules.Unique(fields=("id",)), v=(rules.Enum(values=("x", "y", None)),))
    table: list[tuple[Any, ...]] = []
    for number in range(rounds):
        rows = [
            (dice.choice([None, *range(12)]), dice.choice([FIRST, SECOND, THIRD, None]), dice.choice(["x", "y", "bad"]))
            for _ in range(dice.choice([0, 1, 6]))
        ]
        mode = dice.choice(["overwrite", "append", "overwrite_partitions", "overwrite_partitions"])
        named = dice.sample([FIRST, SECOND, THIRD, None], 2) if mode == "overwrite_partitions" and number % 2 else None
        if named is not None:
            rows = [row for row in rows if row[1] in named]
        touched = {row[1] for row in rows} | set(named or [])
        stay = {"overwrite": [], "append": table}.get(mode, [row for row in table if row[1] not in touched])
        near = Counter(
            (row[0], *((row[1],) if mode != "overwrite" else ()))
            for row in [*rows, *(stay if mode == "append" else [])]
            if row[0] is not None
        )
        kept = [
            row for row in rows if row[2] != "bad" and near[(row[0], *((row[1],) if mode != "overwrite" else ()))] <= 1
        ]
        publication = publish(
            days(spark, *rows),
            free,
            place=place,
            mode=mode,  # type: ignore[arg-type]
            partition_by="day",
            partitions=[{"day": day} for day in named] if named is not None else None,
            on_violation="quarantine",
        )
        table = [*stay, *kept]
        assert publication.rows_in == len(rows)
        assert publication.rows_published == len(kept)
        assert publication.rows_quarantined == len(rows) - len(kept)
        assert publication.table_rows == len(table)
        assert rows_of(spark, place) == sorted(table, key=repr)


def test_the_rows_are_asked_for_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    for mode in ("overwrite", "append", "overwrite_partitions"):
        for format in ("parquet", "json"):
            log = tmp_path / f"{mode}-{format}"

            def count(batches: Any, log: Path = log) -> Any:
                for batch in batches:
                    with log.open("a") as file:
                        file.write("row\n" * batch.num_rows)
                    yield batch

            place = TablePlace(tmp_path, f"t-{format}", format)
            df = days(spark, *((at, FIRST, "x") for at in range(20))).mapInArrow(count, COLUMNS)
            df = df.where("id >= 0").withColumn("v", df["v"])
            publish(df, contract(), place=place, mode=mode, partition_by="day", on_violation="quarantine")  # type: ignore[arg-type]
            assert log.read_text().count("row") == 20


def test_parquet_of_every_partition_has_no_partition_column_inside(spark: SparkSession, tmp_path: Path) -> None:
    place = TablePlace(tmp_path, "t")
    publish(days(spark, (1, FIRST, "x")), contract(), place=place, partition_by="day")
    [file] = place.link.glob("day=2024-01-01/*.parquet")
    assert pq.read_schema(file).names == ["id", "v"]
