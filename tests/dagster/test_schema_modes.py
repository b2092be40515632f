"""Schema modes of a code location, an asset and a run."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import DataFrame, SparkSession

from databox_contracts.dagster import ContractIOManager, contract_asset
from databox_contracts.errors import DataboxError
from databox_contracts.testing import build_contract, build_field

CONTRACT = build_contract(build_field("id", "int"), build_field("n", "int"), dataset="orders")
ROWS = [("1", 1, "a"), ("x", 2, None), ("3", 3, None)]
KEY = dg.AssetKey("orders")


def test_the_run_goes_before_the_asset_and_the_asset_before_the_code_location(
    spark: SparkSession, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    manager = ContractIOManager(root=str(tmp_path), spark=spark, schema_modes={"columns": "discard_value"})

    @contract_asset(contract=CONTRACT, key=KEY, schema_modes={"data_type": "discard_row"})
    def orders() -> DataFrame:
        return spark.createDataFrame(ROWS, "id string, n int, extra string")

    def run(selection: Any = None, **tags: str) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            [orders],
            resources={"io_manager": manager},
            instance=instance,
            tags={name.replace("__", "/"): value for name, value in tags.items()},
            raise_on_error=False,
            selection=selection,
        )

    none = run(databox__schema_modes="tables=discard_row")
    assert none.success
    assert none.get_asset_materialization_events() == []
    assert not (tmp_path / "orders").exists()

    done = run()
    assert done.success
    (event,) = done.get_asset_materialization_events()
    facts = event.step_materialization_data.materialization.metadata
    counts = {name: facts[name].value for name in ("rows_in", "rows_published", "rows_discarded", "values_discarded")}
    assert counts == {"rows_in": 3, "rows_published": 2, "rows_discarded": 1, "values_discarded": 1}
    assert [dict(record.data) for record in facts["discarded"].records] == [
        {"field": "id", "entity": "data_type", "mode": "discard_row", "unit": "rows", "count": 1},
        {"field": "extra", "entity": "columns", "mode": "discard_value", "unit": "values", "count": 1},
    ]
    assert manager.read(KEY).columns == ["id", "n"]

    assert run(databox__schema_modes="columns=evolve, data_type=evolve").success
    assert manager.read(KEY).columns == ["id", "n", "extra", "id__v_string"]
    checks = run(dg.AssetSelection.checks_for_assets(KEY), databox__schema_modes="columns=evolve, data_type=evolve")
    assert all(one.passed for one in checks.get_asset_check_evaluations())

    refused = run(databox__schema_modes='{"columns": "freeze"}')
    assert not refused.success
    unread = run(databox__schema_modes="frozen")
    assert "the tag databox/schema_modes is 'frozen'" in str(unread.get_step_failure_events()[0].step_failure_data)


def test_a_word_for_a_code_location(spark: SparkSession, tmp_path: Path) -> None:
    manager = ContractIOManager(root=str(tmp_path), spark=spark, schema_modes="freeze")
    assert manager.modes_of(None, {}) == {"tables": "freeze", "columns": "freeze", "data_type": "freeze"}
    assert manager.modes_of({"tables": "evolve"}, {})["tables"] == "evolve"


def test_a_mode_that_there_is_not_is_refused_when_the_code_location_loads() -> None:
    with pytest.raises(DataboxError, match="schema_modes: columns is 'frozen'"):
        contract_asset(contract=CONTRACT, schema_modes={"columns": "frozen"})
