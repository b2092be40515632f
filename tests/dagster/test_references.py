"""Foreign keys of contracted assets: the published tables of other assets are what they are held against."""

import dagster as dg
import pytest
from pyspark.sql import DataFrame

from databox_contracts.dagster import contract_asset
from databox_contracts.errors import DataboxError
from databox_contracts.rules import ForeignKey
from databox_contracts.testing import build_contract, build_field

CITIES = build_contract(build_field("name", "string"), id="geo", dataset="cities")
PEOPLE = build_contract(
    build_field("id", "bigint"),
    build_field("city", "string", ForeignKey(fields=(), to="geo.cities", to_fields=("name",))),
    build_field("boss", "bigint", ForeignKey(fields=(), to="people", to_fields=("id",))),
    id="hr",
    dataset="people",
)


def test_the_published_table_of_another_asset_is_the_reference(run, spark):
    rows = [(1, "Ur", None), (2, "Uruk", 1)]

    @contract_asset(contract=CITIES, key=["geo", "cities"])
    def cities() -> DataFrame:
        return spark.createDataFrame([("Ur",), ("Uruk",)], "name string")

    @contract_asset(contract=PEOPLE, references={"geo.cities": "geo/cities", "people": "people"}, key="people")
    def people() -> DataFrame:
        return spark.createDataFrame(rows, "id bigint, city string, boss bigint")

    assert [dep.asset_key for dep in next(iter(people.specs)).deps] == [dg.AssetKey(["geo", "cities"])]
    alone = run(people, cities, selection=[people])
    assert not alone.success
    assert "the rows of geo.cities were not given" in alone.errors[0]
    assert run(people, cities).success
    rows.append((3, "Eridu", 9))
    done = run(people, cities)
    assert not done.success
    assert "people.city.foreign_key: 1 of 3 rows" in done.errors[0]
    assert "people.boss.foreign_key: 1 of 3 rows" in done.errors[0]


def test_what_is_no_asset_key_is_an_error_when_the_code_loads():
    with pytest.raises(DataboxError, match="references maps the name of a dataset to an asset"):
        contract_asset(contract=PEOPLE, references={"geo.cities": 5})
