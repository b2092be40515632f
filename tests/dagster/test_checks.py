"""Checks of tables that something else writes."""

from pathlib import Path

import dagster as dg
import pytest

from databox_contracts.dagster import ContractTranslator, build_contract_checks
from databox_contracts.errors import DataboxError

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
