"""What is still marked after a transformation was taken as it is; what was computed is not."""

import json

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F

from databox_contracts.spark.column_sources import SOURCE, marked, sources, unmarked

PLANES = ("fleet", "planes")
CITIES = ("cities",)


@pytest.fixture
def planes(spark: SparkSession) -> DataFrame:
    rows = [("N1", 150, "EWR"), ("N2", None, "JFK")]
    return marked(spark.createDataFrame(rows, "tail string, seats int, `home.of` string"), PLANES)


@pytest.fixture
def cities(spark: SparkSession) -> DataFrame:
    return marked(spark.createDataFrame([("EWR", "Newark")], "code string, city string"), CITIES)


def test_what_is_taken_as_it_is_says_where_from(planes, cities):
    assert sources(planes) == {
        "tail": (PLANES, "tail"),
        "seats": (PLANES, "seats"),
        "home.of": (PLANES, "home.of"),
    }
    changed = (
        planes.filter("seats > 0")
        .withColumnRenamed("tail", "plane")
        .join(cities, F.col("`home.of`") == F.col("code"), "left")
        .orderBy("plane")
    )
    assert sources(changed.select("plane", F.col("city").alias("base"), "seats")) == {
        "plane": (PLANES, "tail"),
        "base": (CITIES, "city"),
        "seats": (PLANES, "seats"),
    }


def test_what_is_computed_says_nothing(planes):
    computed = planes.select(
        (F.col("seats") + 1).alias("seats"),
        F.upper("tail").alias("tail"),
        F.col("seats").cast("long").alias("wide"),
        F.lit(None).cast("string").alias("none"),
    )
    assert sources(computed) == {}
    grouped = planes.groupBy("`home.of`").agg(F.max("seats").alias("seats"), F.count("*").alias("planes"))
    assert sources(grouped) == {"home.of": (PLANES, "home.of")}


def test_marks_are_taken_away_and_nothing_else(spark, planes, tmp_path):
    told = planes.withMetadata("seats", {**planes.schema["seats"].metadata, "comment": "without crew"})
    plain = unmarked(told)
    assert {field.name: field.metadata for field in plain.schema.fields} == {
        "tail": {},
        "seats": {"comment": "without crew"},
        "home.of": {},
    }
    assert sorted(map(tuple, plain.collect()), key=str) == [("N1", 150, "EWR"), ("N2", None, "JFK")]
    plain.write.parquet(str(tmp_path / "t"))
    assert SOURCE not in json.dumps(spark.read.parquet(str(tmp_path / "t")).schema.jsonValue())


def test_a_mark_replaces_an_older_one_and_keeps_what_else_is_said(spark):
    df = spark.createDataFrame([(1,)], "a int").withMetadata("a", {"comment": "one", SOURCE: ["old", "b"]})
    again = marked(df, ["new"])
    assert again.schema["a"].metadata == {"comment": "one", SOURCE: ["new", "a"]}


def test_what_is_not_marked_is_left_alone(spark, planes):
    bare = spark.createDataFrame([], "a int")
    assert unmarked(bare) is bare
    assert sources(bare) == {}
    twice = planes.select("tail", F.lit(1).alias("TAIL"))
    assert unmarked(twice) is twice, "names that mean two columns are for the publish to refuse"
