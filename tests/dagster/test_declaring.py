"""What `contract_asset` makes of a function, before anything runs."""

import gc
import subprocess
import sys
import typing
import weakref
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import DataFrame

from databox_contracts.dagster import contract_asset
from databox_contracts.dagster.loading import collection_paused
from databox_contracts.errors import ContractError, DataboxError

HOURLY = dg.AssetKey(["nyc", "hourly"])


class Station(dg.ConfigurableResource):
    name: str


class Settings(dg.Config):
    temp: float = 1.0


def upstream(asset: dg.AssetsDefinition) -> set[str]:
    return {dep.asset_key.to_user_string() for dep in asset.get_asset_spec().deps}


def test_parameters_are_inputs_but_context_config_and_resources(weather):
    @contract_asset(
        contract=weather,
        consumes={"weather.stations": "^2", "weather.zones": ">=1"},
        ins={"gauges": dg.AssetIn(key_prefix="raw", input_manager_key="pandas_io")},
        deps=["calendar", dg.AssetDep("holidays"), dg.AssetKey(["weather", "stations"])],
    )
    def hourly(
        context,
        config: Settings,
        stations: DataFrame,
        airports: DataFrame,
        gauges,
        station: Station,
        clock: dg.ResourceParam[object],
    ) -> DataFrame: ...

    assert hourly.key == HOURLY
    inputs = {name: key.to_user_string() for name, key in hourly.keys_by_input_name.items()}
    named = [inputs[name] for name in ("stations", "airports", "gauges")]
    assert named == ["weather/stations", "airports", "raw/gauges"]
    assert upstream(hourly) == {
        "weather/stations",
        "airports",
        "raw/gauges",
        "weather/zones",
        "calendar",
        "holidays",
    }
    assert hourly.required_resource_keys == {"io_manager", "station", "clock", "pandas_io"}
    pins = hourly.get_asset_spec().metadata["consumes"].value
    assert pins == {"weather.stations": "^2", "weather.zones": ">=1"}


def test_texts_as_annotations_are_resolved(weather):
    source = (
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING\n"
        "from databox_contracts.dagster import contract_asset\n"
        "if TYPE_CHECKING:\n"
        "    from pyspark.sql import DataFrame\n"
        "def make(contract):\n"
        "    @contract_asset(contract=contract)\n"
        "    def hourly(context, config: Settings, stations: DataFrame, station: Station) -> DataFrame: ...\n"
        "    return hourly\n"
    )
    module: dict[str, typing.Any] = {"Settings": Settings, "Station": Station}
    exec(compile(source, "deferred.py", "exec"), module)
    asset = module["make"](weather)
    assert upstream(asset) == {"stations"}
    assert asset.required_resource_keys == {"io_manager", "station"}


def test_an_annotation_nobody_knows_is_named(weather):
    def hourly(stations: "Nowhere") -> DataFrame: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(DataboxError, match=r"the annotation 'Nowhere' of .*hourly's parameter 'stations'"):
        contract_asset(contract=weather)(hourly)


def test_what_is_given_goes_before_what_the_contract_says(weather):
    @contract_asset(
        contract=weather,
        key="elsewhere",
        group_name="ours",
        owners=["team:ours"],
        tags={"tier": "1"},
        metadata={"runbook": "none"},
        kinds={"iceberg"},
        code_version="7",
        automation_condition=dg.AutomationCondition.eager(),
        op_tags={"dagster/priority": "3"},
        pool="spark",
        description="By hand.",
    )
    def hourly() -> DataFrame: ...

    spec = hourly.get_asset_spec()
    assert spec.key == dg.AssetKey("elsewhere")
    assert (spec.group_name, list(spec.owners), spec.kinds) == ("ours", ["team:ours"], {"iceberg"})
    assert (spec.tags["tier"], spec.metadata["runbook"], spec.code_version) == ("1", "none", "7")
    assert spec.metadata["contract_version"] == "1.10", "what is given is added"
    assert spec.description == "By hand."
    assert spec.automation_condition is not None
    assert {check.asset_key for check in hourly.check_keys} == {dg.AssetKey("elsewhere")}
    assert hourly.op.tags["dagster/priority"] == "3"
    assert hourly.op.pool == "spark"


def test_a_docstring_describes_what_the_contract_does_not(weather):
    def hourly() -> DataFrame:
        """By the hour."""

    assert contract_asset(contract=weather)(hourly).get_asset_spec().description == "Hourly observations."
    silent = weather.model_copy(update={"description": ""})
    assert contract_asset(contract=silent)(hourly).get_asset_spec().description == "By the hour."


def test_assets_load_together_and_carry_their_checks(weather):
    @contract_asset(contract=weather)
    def hourly() -> DataFrame: ...

    daily = weather.model_copy(update={"datasets": (weather.datasets[0].model_copy(update={"name": "daily"}),)})

    @contract_asset(contract=daily)
    def daily(hourly: DataFrame) -> DataFrame: ...

    definitions = dg.Definitions(assets=[hourly, daily], resources={"io_manager": dg.InMemoryIOManager()})
    dg.Definitions.validate_loadable(definitions)
    keys = definitions.resolve_asset_graph().asset_check_keys
    assert {key.name for key in keys if key.asset_key == HOURLY} == {
        "contract_accuracy",
        "contract_completeness",
        "contract_conformity",
        "contract_uniqueness",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"on_violation": "ignore"}, "unknown on_violation 'ignore'. Use one of fail, quarantine, warn."),
        ({"contract": None}, "contract_asset needs a contract"),
        ({"partitions_def": dg.StaticPartitionsDefinition(["a"])}, "nobody says which column of hourly tells a row's"),
        ({"partition_by": "station"}, "partition_by names columns of hourly, and there is no partitions_def"),
        ({"output_required": False}, "contract_asset takes no 'output_required'. It always publishes or fails"),
        ({"name": "x"}, "contract_asset takes no 'name'. Give it a key"),
        ({"colour": "red"}, "contract_asset takes no 'colour'"),
        ({"consumes": {"a.b": "^"}}, "consumes['a.b']: "),
        ({"consumes": {"a.b": {"version": "^1"}}}, "consumes['a.b'] says 'version', which means nothing"),
        ({"consumes": {"a.b": 2}}, "consumes['a.b'] is a int"),
        ({"dataset": "daily"}, "no dataset 'daily'. Name one of: hourly"),
        (
            {"ins": {"station": dg.AssetIn()}},
            "hourly has no parameter 'station' for its ins. Its inputs are: stations.",
        ),
        ({"ins": {"stations": dg.AssetIn(dagster_type=dg.Any)}}, "the input 'stations' of hourly has a dagster_type"),
        ({"consumes": {"a.stations": "1", "b.stations": "1"}}, "'stations' of hourly may be a/stations or b/stations"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_in_one_sentence(weather, arguments, said):
    def hourly(stations: DataFrame) -> DataFrame: ...

    with pytest.raises(DataboxError) as refused:
        contract_asset(**{"contract": weather, **arguments})(hourly)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_forgotten_parentheses_are_named():
    with pytest.raises(DataboxError, match="with parentheses and the contract by name"):

        @contract_asset
        def hourly() -> DataFrame: ...


def test_functions_that_yield_or_are_none_are_refused(weather):
    def yields():
        yield 1

    async def awaits(): ...

    for function in (yields, awaits):
        with pytest.raises(DataboxError, match="a contracted asset returns one Spark DataFrame"):
            contract_asset(contract=weather)(function)

    @dg.asset
    def already() -> None: ...

    with pytest.raises(DataboxError, match="this is a AssetsDefinition"):
        contract_asset(contract=weather)(already)


def test_a_contract_may_lie_beside_the_code(tmp_path: Path):
    (tmp_path / "planes.yaml").write_text(
        "{apiVersion: v3.1.0, kind: DataContract, id: planes, version: 1.0.0, status: active, schema: [{name: planes}]}"
    )
    module: dict[str, typing.Any] = {}
    exec(compile("def planes(): ...", str(tmp_path / "code.py"), "exec"), module)
    asset = contract_asset(contract="planes.yaml")(module["planes"])
    assert asset.key == dg.AssetKey("planes")
    (reference,) = asset.get_asset_spec().metadata["dagster/code_references"].code_references
    assert reference.file_path == str(tmp_path / "planes.yaml")


def test_loading_code_does_not_load_spark():
    code = "import sys, databox_contracts.dagster; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_contract_file_that_is_not_there_is_a_contract_error(tmp_path: Path):
    def hourly() -> DataFrame: ...

    with pytest.raises(ContractError) as refused:
        contract_asset(contract=tmp_path / "none.yaml")(hourly)
    assert "none.yaml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_a_load_makes_is_searched_for_garbage_after_all():
    class Ring:
        def __init__(self) -> None:
            self.itself = self

    gc.collect()
    with collection_paused():
        assert not gc.isenabled()
        left = weakref.ref(Ring())
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    assert left() is not None
    gc.collect()
    assert left() is None


def test_what_somebody_has_frozen_stays_so():
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with collection_paused():
            pass
        assert 0 < gc.get_freeze_count() <= frozen
    finally:
        gc.unfreeze()


def test_a_load_does_not_turn_on_what_is_off():
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
