"""The example project: tables of New York's airports and their weather, each published only if it keeps its contract.

Its sensors watch the contracts and tell consumers of what breaks, its schedules sample the tables and compare them with
their contracts; what is to be told waits in the registry until somebody starts the sensor that delivers it.

`DATABOX_HOME` is where tables and the Spark server's state go (`.demo` beside this file if not set), and
`DATABOX_CONTRACTS` the contracts that apply (`contracts`, unless the demo has put its own copy into its home).
"""

import os
from pathlib import Path

import dagster as dg
from pyspark.sql import DataFrame, functions as F

from databox_contracts.dagster import (
    ContractIOManager,
    ContractRegistryResource,
    NotifierResource,
    SharedSparkResource,
    build_compatibility_checks,
    build_contract_audit_schedule,
    build_contract_failure_sensor,
    build_delivery_sensor,
    build_drift_schedule,
    build_schema_diff_sensor,
    contract_asset,
)

HERE = Path(__file__).resolve().parent
HOME = Path(os.environ.get("DATABOX_HOME", HERE / ".demo"))
OWN_CONTRACTS = HOME / "contracts"
CONTRACTS = Path(os.environ.get("DATABOX_CONTRACTS", OWN_CONTRACTS if OWN_CONTRACTS.is_dir() else HERE / "contracts"))
OWN_SOURCES = HOME / "sources"


def read_source(spark: SharedSparkResource, name: str, columns: str) -> DataFrame:
    """A raw file as it came, in the types it is said to have; a text that is no such value fails the read."""
    corrected = OWN_SOURCES / f"{name}.csv.gz"
    path = corrected if corrected.exists() else HERE / "examples" / "nyc_weather" / f"{name}.csv.gz"
    reader = spark.spark_session.read.schema(columns).option("header", True).option("nullValue", "NA")
    return reader.option("mode", "FAILFAST").csv(str(path))


@contract_asset(contract=CONTRACTS / "aviation" / "airlines.yaml")
def airlines(spark: SharedSparkResource) -> DataFrame:
    return read_source(spark, "airlines", "carrier string, name string")


@contract_asset(contract=CONTRACTS / "aviation" / "planes.yaml")
def planes(spark: SharedSparkResource) -> DataFrame:
    columns = "tailnum string, year int, type string, manufacturer string, model string, engines int, seats int"
    return read_source(spark, "planes", f"{columns}, speed int, engine string")


@contract_asset(contract=CONTRACTS / "aviation" / "airports.yaml", on_violation="quarantine")
def airports(spark: SharedSparkResource) -> DataFrame:
    columns = "faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string"
    return read_source(spark, "airports", columns)


@contract_asset(contract=CONTRACTS / "weather" / "hourly.yaml")
def hourly(spark: SharedSparkResource) -> DataFrame:
    columns = "origin string, year int, month int, day int, hour int, temp double, dewp double, humid double"
    rest = "wind_dir int, wind_speed double, wind_gust double, precip double, pressure double, visib double"
    return read_source(spark, "weather", f"{columns}, {rest}, time_hour timestamp")


@contract_asset(
    contract=CONTRACTS / "weather" / "daily.yaml", consumes={"weather.hourly": ">=1", "aviation.airports": "^1"}
)
def daily(hourly: DataFrame, airports: DataFrame) -> DataFrame:
    days = hourly.groupBy("origin", F.make_date("year", "month", "day").alias("date")).agg(
        F.count("*").alias("hours"), F.max("temp").alias("max_temp"), F.sum("precip").alias("precip")
    )
    names = airports.select(F.col("faa").alias("origin"), F.col("name").alias("airport"))
    return days.join(names, "origin", "left").select("origin", "date", "airport", "hours", "max_temp", "precip")


TABLES = [airlines, planes, airports, hourly, daily]
REGISTRY = str(HOME / "registry.db")

spark = SharedSparkResource(directory=str(HOME / "spark"), conf={"spark.sql.shuffle.partitions": 2})

defs = dg.Definitions.merge(
    dg.Definitions(
        assets=TABLES,
        asset_checks=build_compatibility_checks(CONTRACTS, assets=TABLES),
        jobs=[
            # The tables and the checks that come with them; those of the schedules have jobs of their own.
            dg.define_asset_job(
                "everything",
                dg.AssetSelection.assets(*TABLES).without_checks()
                | dg.AssetSelection.checks(*(key for table in TABLES for key in table.check_keys)),
            )
        ],
        sensors=[build_schema_diff_sensor(CONTRACTS), build_contract_failure_sensor(), build_delivery_sensor()],
        resources={
            "spark": spark,
            "io_manager": ContractIOManager(root=str(HOME / "tables"), spark=spark),
            "registry": ContractRegistryResource(location=REGISTRY),
            "notifier": NotifierResource(),
        },
    ),
    build_drift_schedule(CONTRACTS, "0 * * * *", registry=REGISTRY),
    build_contract_audit_schedule(CONTRACTS, registry=REGISTRY),
)
