"""Checks of tables that something else writes."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import DataFrame, SparkSession

from databox_contracts.dagster import ContractIOManager, ContractTranslator, build_contract_checks, contract_asset
from databox_contracts.errors import DataboxError
from databox_contracts.rules import ForeignKey, Minimum
from databox_contracts.spark import publish
from databox_contracts.testing import build_contract, build_field

KEY = dg.AssetKey(["nyc", "hourly"])
SCHEMA = "station string, temp double, phone string"
BAD = [("EWR", 3.5, "555-0100"), ("LGA", -50.0, "secret")]


@pytest.fixture
def files(tmp_path: Path, spark):
    def write(rows: list[tuple], format: str = "parquet") -> str:
        path = str(tmp_path / format)
        spark.createDataFrame(rows, SCHEMA).write.format(format).option("header", True).save(path)
        return path

    return write


@pytest.fixture
def outside() -> dg.AssetsDefinition:
    @dg.asset(key=KEY)
    def hourly() -> None: ...

    return hourly


@pytest.fixture
def after(outside) -> dg.AssetsDefinition:
    @dg.asset(deps=[outside])
    def daily() -> None: ...

    return daily


def test_a_violation_blocks_what_is_downstream(run, weather, files, outside, after, spark):
    checks = build_contract_checks(weather, location=files(BAD), asset_key=outside)
    done = run(outside, after, *checks, spark=spark)
    assert not done.success
    assert set(done.materialized) == {"nyc/hourly"}
    assert done.failed_checks == {"contract_accuracy": "ERROR", "contract_conformity": "ERROR"}
    facts = done.checks["contract_accuracy"].metadata
    assert (facts["rows_in"].value, facts["contract_version"].value) == (2, "1.10")
    assert "published" not in facts
    assert "The published table nyc/hourly breaks 2 of 13 rules" in done.errors[0]


def test_violations_only_warn_where_asked(run, weather, files, outside, after, spark):
    checks = build_contract_checks(weather, location=files(BAD), on_violation="warn")
    done = run(outside, after, *checks, spark=spark)
    assert done.success
    assert set(done.materialized) == {"nyc/hourly", "daily"}
    assert done.failed_checks == {"contract_accuracy": "WARN", "contract_conformity": "WARN"}


def test_only_selected_checks_are_reported_and_decide(run, weather, files, outside, spark):
    checks = build_contract_checks(weather, load=lambda session: session.read.parquet(files(BAD)))
    chosen = dg.AssetSelection.checks(dg.AssetCheckKey(KEY, "contract_completeness"))
    done = run(outside, *checks, selection=chosen, spark=spark)
    assert done.success
    assert set(done.checks) == {"contract_completeness"}


def test_text_files_are_read_as_the_contract_says(run, weather, files, outside, spark):
    checks = build_contract_checks(weather, location=files(BAD, "csv"), options={"quote": "'"})
    done = run(outside, *checks, selection=dg.AssetSelection.checks(*checks), spark=spark)
    assert done.failed_checks == {"contract_accuracy": "ERROR", "contract_conformity": "ERROR"}
    broken = {record.data["rule"] for record in done.checks["contract_conformity"].metadata["rules"].records[:1]}
    assert broken == {"hourly.phone.pattern"}


def test_tables_of_the_io_manager_are_found_by_their_key(run, weather, hourly, manager, source):
    assert run(hourly()).success
    external = dg.AssetSpec(KEY)
    checks = build_contract_checks([weather], translator=ContractTranslator(granularity="contract"))
    done = run(external, *checks, selection=dg.AssetSelection.checks(*checks))
    assert done.success
    assert set(done.checks) == {"contract"}
    version = done.checks["contract"].metadata["readable_version"].value
    assert version == manager.place(KEY).current_version()


def test_a_table_that_cannot_be_read_is_an_error_and_no_failed_check(run, weather, outside, tmp_path, spark):
    checks = build_contract_checks(weather, location=tmp_path / "none")
    done = run(outside, *checks, selection=dg.AssetSelection.checks(*checks), spark=spark)
    assert not done.success
    assert done.checks == {}
    assert "UnreadableTableError" in done.errors[0]


def test_each_table_has_its_own_op(weather):
    fields = weather.datasets[0].fields
    two = weather.model_copy(
        update={"datasets": tuple(weather.datasets[0].model_copy(update={"name": n, "fields": fields}) for n in "ab")}
    )
    checks = build_contract_checks([two, weather])
    assert [{key.asset_key.to_user_string() for key in one.check_keys} for one in checks] == [
        {"nyc/a"},
        {"nyc/b"},
        {"nyc/hourly"},
    ]
    assert len({one.op.name for one in checks}) == 3
    assert len(build_contract_checks(two, dataset="b")) == 1


def test_misspelt_assets_and_contradictions_are_refused(weather, outside):
    with pytest.raises(DataboxError, match=r"nyc/hourly, which is no known asset\. The assets are: nyc/daily\."):
        build_contract_checks(weather, assets=[dg.AssetSpec(["nyc", "daily"])])
    assert build_contract_checks(weather, assets=[outside])
    with pytest.raises(DataboxError, match="location is about one table, and the contracts have 2"):
        build_contract_checks([weather, weather], location="x")
    with pytest.raises(DataboxError, match="both location and load"):
        build_contract_checks(weather, location="x", load=lambda spark: spark.range(1))
    with pytest.raises(DataboxError, match="unknown on_violation 'quarantine'"):
        build_contract_checks(weather, on_violation="quarantine")  # type: ignore[arg-type]


# --- references -------------------------------------------------------------------------------------------------------

PEOPLE = build_contract(
    build_field("id", "bigint"),
    build_field("city", "string", ForeignKey(fields=(), to="geo.cities", to_fields=("name",))),
    build_field("boss", "bigint", ForeignKey(fields=(), to="people", to_fields=("id",))),
    id="hr",
    dataset="people",
)
CITIES = build_contract(build_field("name", "string"), id="geo", dataset="cities")


def test_foreign_keys_are_held_against_published_assets_or_what_a_function_loads(run, spark, tmp_path):
    path = str(tmp_path / "people")
    rows = [(1, "Ur", None), (2, "Uruk", 1), (3, "Eridu", 9)]
    spark.createDataFrame(rows, "id bigint, city string, boss bigint").write.parquet(path)

    @contract_asset(contract=CITIES, key=["geo", "cities"])
    def cities() -> DataFrame:
        return spark.createDataFrame([("Ur",), ("Uruk",)], "name string")

    people = dg.AssetSpec("people")

    def checked(*assets: object, **options: object) -> dict[str, str]:
        checks = build_contract_checks(PEOPLE, location=path, asset_key="people", **options)
        selection = dg.AssetSelection.assets(*assets) | dg.AssetSelection.checks(*checks)
        done = run(people, *assets, *checks, selection=selection, spark=spark)
        found = done.checks["contract_consistency"].metadata["rules"].records
        return {r.data["rule"]: r.data["message"] for r in found if r.data["status"] != "passed"}

    orphan = {"people.boss.foreign_key": "1 of 3 rows (33.3 %) refer to nothing in people"}
    city = "people.city.foreign_key"
    assert "the rows of geo.cities were not given" in checked()[city]
    # Not published yet, and then in the same run: the checks wait for it.
    mapped = {"geo.cities": "geo/cities", "people": "people"}
    assert "the rows of geo.cities were not given" in checked(references=mapped)[city]
    nowhere = "1 of 3 rows (33.3 %) refer to nothing in geo.cities"
    assert checked(cities, references=mapped) == {**orphan, city: nowhere}

    def loaded(session: SparkSession) -> dict[str, DataFrame]:
        return {"cities": session.createDataFrame([("Ur",), ("Uruk",), ("Eridu",)], "name string")}

    assert checked(references=loaded) == orphan
    [one] = build_contract_checks(PEOPLE, references=mapped)
    assert {dep.asset_key for spec in one.check_specs for dep in spec.additional_deps} == {
        dg.AssetKey(["geo", "cities"])
    }


def test_references_that_are_none_say_so(run, spark, files, weather, outside):
    path = files(BAD)
    with pytest.raises(DataboxError, match="references maps the name of a dataset to an asset"):
        build_contract_checks(PEOPLE, references={"geo.cities": 5})
    for wrong, said in (([1], "are list, and have to be DataFrames by name"), ({"a": 1}, "references['a'] returned")):
        checks = build_contract_checks(weather, location=path, asset_key=outside, references=lambda _, made=wrong: made)
        done = run(outside, *checks, selection=dg.AssetSelection.checks(*checks), spark=spark)
        assert said in done.errors[0]


# --- schema modes -----------------------------------------------------------------------------------------------------

ORDERS = build_contract(build_field("id", "int"), build_field("n", "int", Minimum(limit=2)), dataset="orders")
WIDE = [("1", 1, "a"), ("x", 2, None), ("3", 3, None)]


def test_nothing_is_discarded_from_a_published_table_and_what_a_mode_would_discard_is_said(
    spark: SparkSession, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    key = dg.AssetKey("orders")
    path = str(tmp_path / "orders")
    spark.createDataFrame(WIDE, "id string, n int, extra string").coalesce(1).write.parquet(path)

    def facts(checks: list[dg.AssetChecksDefinition], manager: ContractIOManager, **tags: str) -> dict[str, Any]:
        done = dg.materialize(
            [dg.AssetSpec(key), *checks],
            resources={"io_manager": manager, "spark": spark},
            instance=instance,
            tags={name.replace("__", "/"): value for name, value in tags.items()},
            raise_on_error=False,
            selection=dg.AssetSelection.checks(*checks),
        )
        return {one.check_name: one for one in done.get_asset_check_evaluations()}

    manager = ContractIOManager(root=str(tmp_path / "root"), spark=spark, schema_modes={"columns": "discard_row"})
    frozen = facts(build_contract_checks(ORDERS, location=path, asset_key=key), manager)
    assert not frozen["contract_conformity"].passed
    # The IO manager's modes are about its own tables.
    modes = {"data_type": "discard_row", "columns": "discard_value"}
    named = build_contract_checks(ORDERS, location=path, asset_key=key, schema_modes=modes)
    found = facts(named, manager)
    conformity = found["contract_conformity"]
    assert conformity.passed
    assert conformity.description.endswith("; the schema modes would discard something of id, extra")
    assert not found["contract_accuracy"].passed
    shown = conformity.metadata
    counts = ("rows_in", "rows_would_be_discarded", "elements_would_be_discarded", "values_would_be_discarded")
    assert [shown[name].value for name in counts] == [3, 1, 0, 1]
    assert [dict(record.data) for record in shown["would_be_discarded"].records] == [
        {"field": "id", "entity": "data_type", "mode": "discard_row", "unit": "rows", "count": 1},
        {"field": "extra", "entity": "columns", "mode": "discard_value", "unit": "values", "count": 1},
    ]
    messages = {record.data["rule"]: record.data["message"] for record in shown["rules"].records}
    assert messages["orders.undeclared"] == "extra is not declared, and would be left out with 1 value"
    assert messages["orders.id.type"].endswith("; 1 row that cannot be read as promised would be discarded")
    # A run's tag goes before both; a table of the IO manager's has its modes too.
    evolved = facts(named, manager, databox__schema_modes="columns=evolve")
    assert "would_be_discarded" in evolved["contract_conformity"].metadata
    assert evolved["contract_conformity"].description.endswith("would discard something of id")
    free = ORDERS.model_copy(update={"datasets": (ORDERS.datasets[0].model_copy(update={"fields": ()}),)})
    for contract in (free, ORDERS):
        df = spark.createDataFrame([(1, 5, "a")], "id int, n int, extra string")
        publish(df, contract, place=manager.place(key), schema_modes="evolve")
        own = facts(build_contract_checks(contract, asset_key=key), manager)
        assert all(one.passed for one in own.values())
        # What a table without declared columns has is known.
        assert ("would_be_discarded" in own["contract_conformity"].metadata) is (contract is ORDERS)
    assert spark.read.parquet(path).count() == 3
    with pytest.raises(DataboxError, match="schema_modes: columns is 'frozen'"):
        build_contract_checks(ORDERS, asset_key=key, schema_modes={"columns": "frozen"})
