"""What assets consume: held against the producers' contracts at load, and against the tables when they are read."""

import subprocess
import sys
from datetime import date
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import DataFrame

from databox_contracts.approvals import Approval
from databox_contracts.dagster import Consumes, contract_asset, validate_consumers
from databox_contracts.datatypes import parse_type
from databox_contracts.errors import ConsumersError, DataboxError
from databox_contracts.model import Consumer, Contract, Dataset, Field, Governance

HOURLY = dg.AssetKey(["nyc", "hourly"])


def daily_contract() -> Contract:
    dataset = Dataset(name="daily", fields=(Field(name="station", type=parse_type("string")),))
    return Contract(id="weather-daily", version="1.0.0", domain="nyc", owner="Reports", datasets=(dataset,))


def reader(consumes, **options) -> dg.AssetsDefinition:
    @contract_asset(contract=daily_contract(), consumes=consumes, **options)
    def daily(hourly: DataFrame) -> DataFrame:
        return hourly.select("station")

    return daily


# --- when the table is opened -----------------------------------------------------------------------------------------


@pytest.fixture
def published(run, hourly) -> dg.AssetsDefinition:
    asset = hourly()
    assert run(asset).success
    return asset


def plain(seen: list, said) -> dg.AssetsDefinition:
    @dg.asset(ins={"hourly": dg.AssetIn(key=HOURLY, metadata={"consumes": said})}, io_manager_key="plain")
    def report(hourly: DataFrame) -> None:
        seen.append((hourly.columns, hourly.count()))

    return report


OWN = """
apiVersion: v3.1.0
kind: DataContract
id: mine
version: 1.0.0
status: active
schema:
  - name: hourly
    properties: [{name: station, logicalType: string}, {name: gust, logicalType: number}]
"""


def test_a_table_is_read_as_its_reader_asks(run, published, tmp_path):
    seen: list = []

    def read(said):
        report = plain(seen, said)
        return run(published, report, selection=[report], plain=dg.InMemoryIOManager())

    assert read("^1").success
    assert read({"versions": "^1", "fields": ["temp", "station"]}).success
    own = tmp_path / "mine.yaml"
    own.write_text(OWN)
    assert read({"contract": str(own)}).success, "an optional field that is missing is null"
    strict = read({"contract": str(own), "mode": "fail"})
    assert "gust" in strict.errors[0]
    newer = read("^2")
    assert not newer.success
    assert "1.10" in newer.errors[0]
    assert "^2" in newer.errors[0]
    unknown = read({"fields": ["rain"]})
    assert "the contract has no field rain" in unknown.errors[0]
    assert [columns for columns, _ in seen] == [["station", "temp", "phone"], ["temp", "station"], ["station", "gust"]]


def test_contracted_assets_read_so_too(run, published, instance):
    assert run(published, reader({"nyc.hourly": "^1"}), selection=[dg.AssetKey(["nyc", "daily"])]).success
    refused = run(published, reader({"nyc.hourly": {"versions": "^2"}}), selection=[dg.AssetKey(["nyc", "daily"])])
    assert not refused.success
    assert "weather-hourly" in refused.errors[0]
    narrow = reader({"nyc.hourly": Consumes(fields=["temp"])})
    done = run(published, narrow, selection=[dg.AssetKey(["nyc", "daily"])])
    assert "station" in done.errors[0], "what is not consumed is not there"


# --- when the code is loaded ------------------------------------------------------------------------------------------


def definitions(*assets) -> dg.Definitions:
    return dg.Definitions(assets=list(assets), resources={"io_manager": dg.InMemoryIOManager()})


@pytest.mark.parametrize(
    ("consumes", "said"),
    [
        ({"nyc.hourly": "^2"}, "nyc/daily pins ^2 of weather-hourly, and there is only 1.10"),
        ({"nyc.hourly": {"fields": ["rain"]}}, "weather-hourly 1.10, reads the field 'rain', which is not promised by"),
        ({"nyc.hourly": {"purpose": "ads"}}, "uses the data for 'ads', and the contract allows 'reports'"),
        ({"nyc.hourly": "^1", "nyc.nothing": "^1"}, "nyc/daily reads 'nyc.nothing'"),
    ],
)
def test_what_the_producer_does_not_let_be_read_is_told_in_one_message(hourly, weather, consumes, said):
    governed = weather.model_copy(update={"governance": Governance(purposes=("reports",))})
    defs = definitions(hourly(governed), reader(consumes), dg.AssetSpec(["nyc", "nothing"]))
    with pytest.raises(ConsumersError) as refused:
        validate_consumers(defs)
    assert said in str(refused.value)
    assert __file__ in str(refused.value)


def test_what_may_be_read_loads(hourly, weather):
    governed = weather.model_copy(
        update={
            "governance": Governance(purposes=("reports",), read=("Reports",), closed=True),
            "consumers": (Consumer("Daily weather", owner="Reports", assets=("nyc/daily",)),),
        }
    )
    asked = Consumes("^1", fields=["temp"], purpose="research", justification="to know")
    approved = Approval(governed.id, "Daily weather", "somebody", date(2026, 1, 1), purpose="research")
    defs = definitions(hourly(governed), reader({"nyc.hourly": asked}))
    assert validate_consumers(defs, approvals=[approved]) is defs
    with pytest.raises(ConsumersError, match="nobody has approved it"):
        validate_consumers(defs)


PRODUCER = """
apiVersion: v3.1.0
kind: DataContract
id: hourly
version: {version}
status: active
domain: weather
schema: [{{name: hourly, properties: [{{name: temp, logicalType: number}}]}}]
"""
READER = """
apiVersion: v3.1.0
kind: DataContract
id: daily
version: 1.0.0
status: active
domain: weather
schema: [{name: daily, properties: [{name: temp, logicalType: number}]}]
"""
CODE = """
import dagster as dg
from databox_contracts.dagster import contract_asset


@contract_asset(contract="contracts/weather/hourly.yaml")
def hourly(): ...


@contract_asset(contract="contracts/weather/daily.yaml", consumes={"weather.hourly": "^1"})
def daily(hourly): ...


defs = dg.Definitions(assets=[hourly, daily], resources={"io_manager": dg.InMemoryIOManager()})
"""


def test_contracts_of_one_folder_are_held_against_each_other_unasked(tmp_path: Path):
    folder = tmp_path / "contracts" / "weather"
    folder.mkdir(parents=True)
    (folder / "daily.yaml").write_text(READER)
    (tmp_path / "code.py").write_text(CODE)

    def validate(version: str):
        (folder / "hourly.yaml").write_text(PRODUCER.format(version=version))
        command = [str(Path(sys.executable).with_name("dagster")), "definitions", "validate", "-f", "code.py"]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    accepted = validate("1.2.0")
    assert accepted.returncode == 0, accepted.stderr[-2000:]
    refused = validate("2.0.0")
    assert refused.returncode == 1
    said = refused.stdout + refused.stderr
    assert "weather/daily pins ^1 of hourly, and there is only 2.0.0" in said


def test_approvals_may_be_given_to_the_decorator(tmp_path: Path):
    folder = tmp_path / "weather"
    folder.mkdir()
    governed = "customProperties: [{property: governance, value: {purposes: [reports]}}]\n"
    (folder / "hourly.yaml").write_text(PRODUCER.format(version="1.0.0") + governed)
    (folder / "daily.yaml").write_text(READER)

    def daily(hourly): ...

    asked = {"weather.hourly": Consumes(purpose="research", justification="to know")}
    with pytest.raises(ConsumersError, match="nobody has approved it"):
        contract_asset(contract=folder / "daily.yaml", consumes=asked)(daily)
    approved = Approval("hourly", "weather/daily", "somebody", date(2026, 1, 1), purpose="research")
    contract_asset(contract=folder / "daily.yaml", consumes=asked, approvals=[approved])(daily)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"mode": "maybe"}, "the reading mode is 'maybe'. Use one of upgrade, fail, permissive."),
        ({"fields": "temp"}, "fields is the text 'temp'. Write fields=[\"temp\"]."),
        ({"versions": ""}, ""),
    ],
)
def test_what_cannot_be_meant_is_refused(facts, said):
    with pytest.raises(DataboxError) as refused:
        Consumes(**facts)
    assert said in str(refused.value)
