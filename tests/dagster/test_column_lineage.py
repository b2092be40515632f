"""What a materialization says of the columns that were taken as they are."""

import json

import dagster as dg
import pytest
from pyspark.sql import DataFrame, functions as F

from databox_contracts.dagster import ContractIOManager, contract_asset
from databox_contracts.datatypes import parse_type
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.spark.column_sources import SOURCE

HOURLY, DAILY = dg.AssetKey(["nyc", "hourly"]), dg.AssetKey(["nyc", "daily"])


def dep(column: str, key: dg.AssetKey = HOURLY) -> dg.TableColumnDep:
    return dg.TableColumnDep(key, column)


@pytest.fixture
def manager(tmp_path, spark) -> ContractIOManager:
    return ContractIOManager(root=str(tmp_path / "tables"), spark=spark, column_lineage=True)


def contract(*fields: Field) -> Contract:
    dataset = Dataset(name="daily", fields=fields)
    return Contract(id="weather-daily", version="1.0.0", domain="nyc", owner="Reports", datasets=(dataset,))


def field(name: str, type_: str, *sources: str) -> Field:
    return Field(name=name, type=parse_type(type_), sources=sources)


COARSE = (field("place", "string"), field("warmest", "double", "hourly.temp"), field("hours", "bigint"))


def daily(*fields: Field, **options) -> dg.AssetsDefinition:
    @contract_asset(contract=contract(*fields), **options)
    def daily(hourly: DataFrame) -> DataFrame:
        grouped = hourly.groupBy(F.col("station").alias("place"))
        return grouped.agg(F.max("temp").alias("warmest"), F.count("*").alias("hours"))

    return daily


def test_columns_that_were_taken_and_those_the_contract_names(run, hourly, manager):
    done = run(hourly(), daily(*COARSE))
    assert done.success
    assert done.materialized["nyc/daily"]["dagster/column_lineage"].value == dg.TableColumnLineage(
        {"warmest": [dep("temp")], "place": [dep("station")]}
    )
    assert "contract_sources" not in done.materialized["nyc/daily"]
    assert "dagster/column_lineage" not in done.materialized["nyc/hourly"], "it was made of nothing"
    written = manager.read(DAILY).schema.jsonValue()
    assert SOURCE not in json.dumps(written)


def test_what_both_say_is_said_once(run, hourly):
    done = run(hourly(), daily(field("place", "string", "nyc.hourly.station"), *COARSE[1:]))
    assert done.materialized["nyc/daily"]["dagster/column_lineage"].value == dg.TableColumnLineage(
        {"place": [dep("station")], "warmest": [dep("temp")]}
    )


def test_columns_read_under_the_readers_own_names(run, hourly, tmp_path):
    own = tmp_path / "mine.yaml"
    own.write_text(
        "apiVersion: v3.1.0\nkind: DataContract\nid: mine\nversion: 1.0.0\nstatus: active\nschema:\n"
        "  - name: hourly\n    properties:\n"
        "      - {name: code, logicalType: string, customProperties: [{property: renamedFrom, value: station}]}\n"
    )

    @contract_asset(
        contract=contract(field("code", "string")),
        consumes={"nyc.hourly": {"contract": str(own), "mode": "upgrade"}},
    )
    def daily(hourly: DataFrame) -> DataFrame:
        return hourly.select("code")

    done = run(hourly(), daily)
    assert done.success, done.errors
    lineage = done.materialized["nyc/daily"]["dagster/column_lineage"].value
    assert lineage == dg.TableColumnLineage({"code": [dep("station")]})


def test_a_plain_asset_says_so_too(run, hourly, tmp_path):
    path = tmp_path / "daily.yaml"
    path.write_text(
        "apiVersion: v3.1.0\nkind: DataContract\nid: d\nversion: 1.0.0\nstatus: active\nschema:\n"
        "  - {name: daily, properties: [{name: place, logicalType: string}]}\n"
    )

    @dg.asset(key=DAILY, ins={"hourly": dg.AssetIn(key=HOURLY)}, metadata={"contract": str(path)})
    def daily(hourly: DataFrame) -> DataFrame:
        return hourly.select(F.col("station").alias("place"))

    done = run(hourly(), daily)
    assert done.success, done.errors
    assert done.materialized["nyc/daily"]["dagster/column_lineage"].value == dg.TableColumnLineage(
        {"place": [dep("station")]}
    )


def test_unless_asked_inputs_are_the_tables_and_only_the_contract_speaks(run, hourly, tmp_path, spark):
    seen = []

    @contract_asset(contract=contract(field("place", "string", "hourly.temp")))
    def daily(hourly: DataFrame) -> DataFrame:
        seen.append(hourly.schema)
        return hourly.select(F.col("station").alias("place"))

    bare = ContractIOManager(root=str(tmp_path / "other"), spark=spark)
    done = run(hourly(), daily, io_manager=bare)
    assert done.success, done.errors
    assert seen == [bare.read(HOURLY).schema]
    assert not any(one.metadata for one in seen[0].fields)
    lineage = done.materialized["nyc/daily"]["dagster/column_lineage"].value
    assert lineage == dg.TableColumnLineage({"place": [dep("temp")]})
