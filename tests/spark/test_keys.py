"""Uniqueness: the same answer whichever way the hashes are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame, functions as F

from databox_contracts.spark import keys
from databox_contracts.spark.keys import MEMORY, Duplicates, Key, find_all_duplicates
from databox_contracts.spark.predicates import NotEvaluableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")
SCHEMA = "a string, o struct<n:int,x:double>, d double, f float, b boolean"
ROWS = [
    ("", (1, 0.0), 0.0, 0.5, False),
    ("", (1, -0.0), -0.0, 0.25, None),
    ("x", (2, NAN), NAN, NAN, True),
    (None, (2, NAN), NAN, NAN, None),
    (None, None, None, 0.0, False),
    ("y", (None, 3.0), 1.0, -0.0, None),
    ("x", (3, None), None, None, True),
]
KEYS = [
    ("a", ["a"], Duplicates(2, 2, (("",), ("x",)))),
    ("a field of an object", ["o.n"], Duplicates(2, 2, ((1,), (2,)))),
    ("a double inside an object", ["o.x"], Duplicates(2, 2, ((0.0,), ("NaN",)))),
    ("a whole object", ["o"], Duplicates(2, 2, (({"n": 1, "x": 0.0},), ({"n": 2, "x": "NaN"},)))),
    ("a double", ["d"], Duplicates(2, 2, ((0.0,), ("NaN",)))),
    ("a float", ["f"], Duplicates(2, 2, ((0.0,), ("NaN",)))),
    ("a composite", ["a", "b"], Duplicates(1, 1, (("x", True),))),
    ("a composite that is unique", ["a", "f"], Duplicates(0, 0)),
]


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA).repartition(3)  # type: ignore[type-var]


def key(view: DataFrame, names: list[str], samples: int = 5) -> Key:
    return Key(view, [F.col(name) for name in names], samples=samples)


@pytest.mark.parametrize("memory", [MEMORY, 8 * len(ROWS), 0], ids=["one scan", "one key at a time", "by groups"])
def test_each_way_finds_the_same_duplicates(table: DataFrame, memory: int) -> None:
    found = find_all_duplicates([key(table, names) for _, names, _ in KEYS], rows=len(ROWS), memory=memory)
    assert dict(zip((name for name, _, _ in KEYS), found, strict=True)) == {name: due for name, _, due in KEYS}


@pytest.mark.parametrize("memory", [MEMORY, 0])
def test_no_rows_and_no_whole_key_have_no_duplicates(table: DataFrame, memory: int) -> None:
    for empty in (table.limit(0), table.where("a is null")):
        assert find_all_duplicates([key(empty, ["a"])], rows=2, memory=memory) == [Duplicates(0, 0)]


def test_the_number_of_colliding_hashes_does_not_change_the_answer(
    table: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    for few, many in ((2, 2), (1, 2), (1, 1)):
        monkeypatch.setattr(keys, "FEW", few)
        monkeypatch.setattr(keys, "MANY", many)
        for memory in (MEMORY, 0):
            found = find_all_duplicates([key(table, ["a"], samples=1)], rows=len(ROWS), memory=memory)
            assert found == [Duplicates(2, 2, (("",),))], (few, many, memory)


def test_equal_hashes_alone_are_no_duplicates(table: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(F, "xxhash64", lambda *parts: F.lit(0).cast("bigint"))
    assert find_all_duplicates([key(table, ["a", "f"])], rows=len(ROWS)) == [Duplicates(0, 0)]
    assert find_all_duplicates([key(table, ["a"])], rows=len(ROWS)) == [Duplicates(2, 2, (("",), ("x",)))]


@pytest.mark.classic
@pytest.mark.skipif(not hasattr(DataFrame, "toArrow"), reason="PySpark 3.5 brings no hashes as Arrow: Spark sorts them")
def test_the_hashes_of_all_keys_are_one_job(spark: SparkSession, table: DataFrame) -> None:
    kept = table.localCheckpoint()
    context = spark.sparkContext
    context.setJobGroup("unique", "three keys without a duplicate")
    try:
        distinct = [key(kept, ["a", "f"]), key(kept, ["a", "f", "d"]), key(kept, ["f", "b"])]
        assert [one.keys for one in find_all_duplicates(distinct, rows=len(ROWS))] == [0, 0, 0]
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    context._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[union-attr]
    assert len(context.statusTracker().getJobIdsForGroup("unique")) == 1


def test_what_spark_cannot_compare_is_no_key(spark: SparkSession) -> None:
    df = spark.sql("select map(1, 2) m, array(map(1, 2)) deep")
    for name in df.columns:
        with pytest.raises(NotEvaluableError, match="cannot compare values of type"):
            key(df, [name])
