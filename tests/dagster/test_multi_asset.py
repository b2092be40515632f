"""Contracts with several datasets: one function, an asset for each, published and judged on its own."""

import dagster as dg
import pytest
from pyspark.sql import DataFrame

from databox_contracts.dagster import contract_multi_asset
from databox_contracts.datatypes import parse_type
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import ForeignKey, Minimum

ORDERS, LINES = dg.AssetKey(["shop", "orders"]), dg.AssetKey(["shop", "lines"])


def table(name: str, *rules, **facts) -> Dataset:
    fields = (
        Field(name="id", type=parse_type("int")),
        Field(name="amount", type=parse_type("double"), rules=(Minimum(limit=0),)),
    )
    return Dataset(name=name, fields=fields, rules=rules, **facts)


@pytest.fixture
def shop() -> Contract:
    lines = table("lines", physical_name="order_lines")
    return Contract(id="shop", version="1.0.0", domain="shop", datasets=(table("orders"), lines))


class Returned:
    def __init__(self, spark) -> None:
        self.rows = {"orders": [(1, 1.0)], "lines": [(1, 1.0), (2, 2.0)]}
        self.spark = spark
        self.calls = 0

    def frames(self):
        self.calls += 1
        return {name: self.spark.createDataFrame(rows, "id int, amount double") for name, rows in self.rows.items()}


@pytest.fixture
def returned(spark) -> Returned:
    return Returned(spark)


def asset(contract, returned, **options) -> dg.AssetsDefinition:
    @contract_multi_asset(contract=contract, **options)
    def sales():
        return returned.frames()

    return sales


def test_each_dataset_is_an_asset_of_one_function(run, shop, returned, manager):
    sales = asset(shop, returned)
    assert sales.keys == {ORDERS, LINES}
    done = run(sales)
    assert done.success
    assert returned.calls == 1
    assert {name: facts["dagster/row_count"].value for name, facts in done.materialized.items()} == {
        "shop/orders": 1,
        "shop/lines": 2,
    }
    assert manager.read(LINES).count() == 2


def test_one_that_breaks_its_promises_keeps_no_other_from_being_published(run, shop, returned, manager):
    returned.rows["orders"] = [(1, -1.0)]
    done = run(asset(shop, returned, retry_policy=dg.RetryPolicy(max_retries=2)))
    assert not done.success
    assert done.attempts == 1
    assert list(done.materialized) == ["shop/lines"]
    assert manager.read(LINES).count() == 2
    assert not manager.place(ORDERS).link.exists()
    assert "shop/orders was not published, its 1 row breaks 1 of" in done.errors[0]
    returned.rows["lines"] = [(1, -1.0)]
    both = run(asset(shop, returned))
    assert both.materialized == {}
    assert "shop/orders was not published" in both.errors[0]
    assert "shop/lines was not published" in both.errors[0]
    lenient = run(asset(shop, returned, on_violation={"order_lines": "warn"}))
    assert list(lenient.materialized) == ["shop/lines"]


def test_some_of_them_may_be_made_and_some_only_looked_at(run, shop, returned, manager):
    sales = asset(shop, returned)
    assert run(sales, selection=dg.AssetSelection.assets(LINES)).success
    assert not manager.place(ORDERS).link.exists()
    checks = dg.AssetSelection.checks(*[check for check in sales.check_keys if check.asset_key == LINES])
    done = run(sales, selection=dg.AssetSelection.assets(ORDERS) | checks)
    assert done.success
    assert list(done.materialized) == ["shop/orders"]
    assert returned.calls == 2
    only = run(sales, selection=checks)
    assert only.success
    assert returned.calls == 2
    assert only.materialized == {}


def test_one_may_refer_to_what_another_has_just_published(run, shop, returned):
    key = ForeignKey(fields=("id",), to="orders", to_fields=("id",))
    related = shop.model_copy(update={"datasets": (shop.datasets[0], table("lines", key))})
    sales = asset(related, returned, references={"orders": "shop/orders"})
    done = run(sales)
    assert not done.success
    assert list(done.materialized) == ["shop/orders"], "the line of order 2 has no order"
    returned.rows["orders"] = [(1, 1.0), (2, 2.0)]
    assert run(sales).success


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"orders": [(1, 1.0)]}, "sales returned no 'lines', which is selected"),
        ({"orders": [], "lines": [], "more": []}, "sales returned 'more', which is no dataset of its contract"),
    ],
)
def test_what_is_missing_or_strange_is_named(run, shop, returned, rows, said):
    returned.rows = rows
    done = run(asset(shop, returned))
    assert not done.success
    assert said in done.errors[0]
    assert done.materialized == {}


def test_a_single_frame_is_not_a_mapping(run, shop, spark):
    @contract_multi_asset(contract=shop)
    def sales():
        return spark.createDataFrame([(1, 1.0)], "id int, amount double")

    assert "where DataFrames by dataset are due. Return a mapping with orders, lines." in run(sales).errors[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"contract": None}, "contract_multi_asset needs a contract"),
        ({"datasets": ["nothing"]}, "no dataset 'nothing'"),
        ({"datasets": []}, "has no datasets to make assets of"),
        ({"on_violation": {"orders": "ignore"}}, "unknown on_violation 'ignore'"),
        ({"keys": {"nothing": "x"}}, "no dataset 'nothing'"),
        ({"outs": {}}, "contract_multi_asset takes no 'outs'"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(shop, arguments, said):
    def sales() -> dict[str, DataFrame]: ...

    with pytest.raises(DataboxError) as refused:
        contract_multi_asset(**{"contract": shop, **arguments})(sales)
    assert said in str(refused.value)


def test_keys_and_some_of_the_datasets(shop):
    def sales() -> dict[str, DataFrame]: ...

    chosen = contract_multi_asset(contract=shop, datasets=["order_lines"], keys={"lines": "mine"}, name="op")(sales)
    assert chosen.keys == {dg.AssetKey("mine")}
    assert chosen.op.name == "op"
