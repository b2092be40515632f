"""A DataFrame split by its contract, with literal rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from databox_contracts import rules
from databox_contracts.errors import ContractViolationError
from databox_contracts.rules import Operator, Severity, Threshold
from databox_contracts.spark import quarantine
from databox_contracts.testing import build_contract, build_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
CONTRACT = build_contract(
    build_field("id", "int"),
    build_field("price", "double", rules.Minimum(limit=0), rules.Required(severity=Severity.WARNING)),
    build_field("shop", "string", rules.ForeignKey(fields=(), to="shops", to_fields=("name",))),
    rules=(
        rules.Unique(fields=("id",)),
        rules.Expression(sql="price < 100 OR shop = 'dear'"),
        rules.RowCount(threshold=Threshold(Operator.GREATER_THAN, 100)),
    ),
    dataset="orders",
    id="urn:shop:orders",
    version="2.1.0",
)
ROWS: list[tuple[Any, ...]] = [
    (1, 1.0, "here"),
    (2, -1.0, "nowhere"),
    (3, 500.0, "here"),
    (3, None, None),
    (None, 500.0, "dear"),
    (None, 2.0, None),
]


@pytest.fixture
def table(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, "id int, price double, shop string").repartition(3)  # type: ignore[type-var]


def test_each_row_is_on_one_side_with_all_its_reasons(spark: SparkSession, table: DataFrame) -> None:
    shops = spark.createDataFrame([("here",), ("dear",), (None,)], "name string")
    split = quarantine(table, CONTRACT, references={"shops": shops}, run_id="r1", clock=lambda: AT)
    assert sorted(map(tuple, split.valid.collect()), key=repr) == [
        (1, 1.0, "here"),
        (None, 2.0, None),
        (None, 500.0, "dear"),
    ]
    assert split.valid.columns == table.columns
    held = sorted(map(tuple, split.quarantined.collect()), key=repr)
    unique, condition = "orders.unique", "orders.expression"
    stamp = (AT.replace(tzinfo=None), "urn:shop:orders", "2.1.0", "r1")
    assert [(*row[:4], row[4].replace(tzinfo=None), *row[5:]) for row in held] == [
        (2, -1.0, "nowhere", ["orders.price.minimum", "orders.shop.foreign_key"], *stamp),
        (3, 500.0, "here", [unique, condition], *stamp),
        (3, None, None, [unique], *stamp),
    ]
    failed = [result.id for result in split.verdict.violations]
    assert failed == [
        "orders.price.minimum",
        "orders.price.required",
        "orders.shop.foreign_key",
        unique,
        condition,
        "orders.row_count",
    ]


def test_nothing_is_held_of_no_rows_and_of_good_ones(spark: SparkSession, table: DataFrame) -> None:
    contract = build_contract(build_field("id", "int"), build_field("price", "double"), build_field("shop", "string"))
    split = quarantine(table, contract)
    assert (split.valid.count(), split.quarantined.count(), split.verdict.passed) == (6, 0, True)
    empty = quarantine(table.where("id > 9"), contract)
    assert (empty.valid.count(), empty.quarantined.count(), empty.verdict.row_count) == (0, 0, 0)


def test_what_belongs_to_unknown_rows_is_an_error(table: DataFrame) -> None:
    with pytest.raises(ContractViolationError, match=r"nobody knows which rows to hold: orders\.shop\.foreign_key"):
        quarantine(table, CONTRACT)
