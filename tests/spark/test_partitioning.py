from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.types import StructType

from databox_contracts.errors import PublicationError
from databox_contracts.spark.partitioning import Partitioning, matches

TYPES = {
    "day": "date",
    "hour": "integer",
    "country": "string",
    "open": "boolean",
    "step": "decimal(10,2)",
    "big": "decimal(38,18)",
    "d": "double",
    "at": "timestamp",
    "there": "timestamp_ntz",
    "bytes": "binary",
    ".hidden": "string",
}
SCHEMA = StructType.fromJson(
    {"fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in TYPES.items()]}
)


def of(*names: str) -> Partitioning:
    return Partitioning.of(SCHEMA, names, "t")


@pytest.mark.parametrize(
    ("name", "given", "directory"),
    [
        ("day", "2024-01-01", "day=2024-01-01"),
        ("day", date(2024, 1, 1), "day=2024-01-01"),
        ("day", date(1, 1, 1), "day=0001-01-01"),
        ("day", None, "day=__HIVE_DEFAULT_PARTITION__"),
        ("hour", 0, "hour=0"),
        ("hour", "0", "hour=00"),
        ("hour", -2147483648, "hour=-2147483648"),
        ("country", "a/b=c%d", "country=a%2Fb%3Dc%25d"),
        ("country", "é 😀", "country=é 😀"),
        ("country", "0", "country=0"),
        ("country", " ", "country= "),
        ("country", "NULL", "country=NULL"),
        ("open", False, "open=false"),
        ("open", "TRUE", "open=true"),
        ("step", "1.5", "step=1.50"),
        ("step", Decimal("-0.01"), "step=-0.01"),
        ("step", 100, "step=100.00"),
        ("big", "99999999999999999999.000000000000000001", "big=99999999999999999999.000000000000000001"),
        ("big", Decimal("1e-18"), "big=1E-18"),
    ],
)
def test_a_value_and_the_directory_of_it_are_the_same_partition(name: str, given: Any, directory: str) -> None:
    partitioning = of(name)
    [wanted] = partitioning.wanted([{name: given}], "t")
    assert matches(partitioning.at(directory), wanted)


def test_a_column_left_out_may_have_any_value() -> None:
    partitioning = of("day", "hour")
    [wanted] = partitioning.wanted([{"hour": 0}], "t")
    assert matches(partitioning.at("day=2024-01-01/hour=0"), wanted)
    assert not matches(partitioning.at("day=2024-01-01/hour=10"), wanted)
    assert partitioning.shown(wanted) == "hour=0"
    assert partitioning.shown(partitioning.at("day=__HIVE_DEFAULT_PARTITION__/hour=7")) == "day=null, hour=7"
    assert of("day").wanted([], "t") == ()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("day", "2024-13-01"),
        ("day", 20240101),
        ("day", datetime(2024, 1, 1)),
        ("hour", "x"),
        ("hour", 1.0),
        ("hour", True),
        ("country", 1),
        ("open", 1),
        ("open", "yes"),
        ("step", "0.001"),
        ("step", 0.5),
        ("step", "NaN"),
    ],
)
def test_a_value_that_is_none_of_the_column_is_refused_without_being_shown(name: str, given: Any) -> None:
    with pytest.raises(PublicationError, match=f"the value given for the partition column {name} is no") as error:
        of(name).wanted([{name: given}], "t")
    assert str(given) not in str(error.value)


def test_a_text_that_spark_would_read_as_null_is_refused() -> None:
    for text in ("", "__HIVE_DEFAULT_PARTITION__"):
        with pytest.raises(PublicationError, match="reads such a directory as null"):
            of("country").wanted([{"country": text}], "t")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [({}, "names no partition"), ("day", "names no partition"), ({"dya": 1}, "dya is no partition column")],
)
def test_what_names_no_partition_is_refused(spec: Any, reason: str) -> None:
    with pytest.raises(PublicationError, match=reason):
        of("day").wanted([spec], "t")


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("dya",), "no column dya to partition by. The columns are day, hour"),
        (("day", "day"), "names day twice"),
        (("d",), "values of type"),
        (("at",), "values of type"),
        (("there",), "values of type"),
        (("bytes",), "values of type"),
        ((".hidden",), "makes no directory"),
        (tuple(TYPES), "values of type"),
    ],
)
def test_columns_that_make_no_partitions_are_refused(names: tuple[str, ...], reason: str) -> None:
    with pytest.raises(PublicationError, match=reason):
        of(*names)


def test_at_least_one_column_stays_in_the_files() -> None:
    with pytest.raises(PublicationError, match="every column is a partition column"):
        Partitioning.of(StructType(SCHEMA.fields[:2]), ("day", "hour"), "t")
