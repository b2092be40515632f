"""The sensor that watches contracts: what it publishes, whom it tells, what it records, and what goes wrong."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from databox_contracts.dagster import (
    ContractRegistryResource,
    ContractTranslator,
    build_compatibility_checks,
    build_schema_diff_sensor,
)
from databox_contracts.errors import DataboxError, RegistryUnavailableError
from databox_contracts.formats import load_contract
from databox_contracts.model import Consumer
from databox_contracts.notifications import State
from databox_contracts.registry.records import StoredApproval
from databox_contracts.registry.store import Registry
from databox_contracts.registry.tokens import Scope

ROOT = Path(__file__).parents[2]
CHECK = "contract_compatibility"
FIELDS = {"station": "string", "temp": "double", "wind": "double"}


def contract(version="1.0.0", name="hourly", fields=FIELDS, **more):
    properties = "\n".join(
        f"      - {{name: {field}, logicalType: {'string' if kind == 'string' else 'number'}, physicalType: {kind}}}"
        for field, kind in fields.items()
    )
    rest = "\n".join(f"{key}: {value}" for key, value in {"status": "active", **more}.items())
    return f"""apiVersion: v3.1.0
kind: DataContract
id: nyc-{name}
name: Weather {name}
version: {version}
domain: nyc
team: {{name: Weather Team}}
{rest}
schema:
  - name: {name}
    properties:
{properties}
customProperties:
  - property: consumers
    value:
      - {{name: quant, owner: Quant Team, contacts: ["https://quant.example.com/hook"], fields: [temp]}}
      - {{name: risk, contacts: ["https://risk.example.com/hook"], versions: "^1"}}
      - {{name: wind park, contacts: ["https://wind.example.com/hook"], fields: [wind]}}
"""


def without(*names):
    return {field: kind for field, kind in FIELDS.items() if field not in names}


class Watched:
    """A folder, a registry, and a code location around them whose sensor ticks when it is told to."""

    def __init__(self, place, instance):
        self.folder = place / "contracts"
        self.folder.mkdir()
        self.registry = place / "registry.db"
        self.instance = instance
        self.cursor = None
        self.began = time.time()
        # No file is so young that it has to be looked at again.
        self.settings = {"clock": lambda: datetime.now(UTC) + timedelta(hours=1)}
        self.assets = ["nyc/hourly", "nyc/daily"]
        self.resource = ContractRegistryResource(location=str(self.registry), patience=0.2)

    def write(self, text, name="hourly.yaml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def definitions(self):
        specs = [dg.AssetSpec(dg.AssetKey.from_user_string(key)) for key in self.assets]
        checks = build_compatibility_checks(self.folder)
        checks = [one for one in checks if all(spec.asset_key in {s.key for s in specs} for spec in one.check_specs)]
        return dg.Definitions(assets=specs, asset_checks=checks, resources={"registry": self.resource})

    def load(self):
        self.loaded = self.definitions()
        return self

    def tick(self, **settings):
        sensor = build_schema_diff_sensor(self.folder, **{**self.settings, **settings})
        context = dg.build_sensor_context(
            instance=self.instance,
            cursor=self.cursor,
            definitions=self.loaded,
            resources={"registry": self.resource},
            sensor_name=sensor.name,
        )
        data = sensor.evaluate_tick(context)
        self.cursor = data.cursor
        return data

    def said(self, **settings):
        return self.tick(**settings).skip_message

    def opened(self):
        return Registry.open(self.registry)

    def waiting(self):
        with self.opened() as registry:
            return [one for one, _ in registry.outbox.waiting()]

    def versions(self, contract_id="nyc-hourly"):
        with self.opened() as registry:
            return [one.version for one in registry.versions(contract_id)]

    def results(self, key="nyc/hourly", check=CHECK):
        """All that were recorded, oldest first."""
        records = self.instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(dg.AssetKey.from_user_string(key), check), limit=100
        )
        events = [record.event for record in reversed(records) if record.event.timestamp >= self.began]
        return [event.dagster_event.asset_check_evaluation_data for event in events]


@pytest.fixture(scope="module")
def shared_instance():
    with dg.instance_for_test() as made:
        yield made


@pytest.fixture
def instance(shared_instance):
    return shared_instance


@pytest.fixture
def watched(tmp_path, instance):
    watched = Watched(tmp_path, instance)
    watched.write(contract())
    return watched.load()


def test_a_first_version_is_published_and_its_check_is_green(watched):
    assert watched.said() == "nyc-hourly 1.0.0 published; 1 result recorded"
    assert watched.versions() == ["1.0.0"]
    assert watched.waiting() == []
    (result,) = watched.results()
    assert (result.passed, result.description) == (True, "1.0.0 is the first version that is in force, or will be")
    assert result.metadata["contract_id"].value == "nyc-hourly"


def test_a_breaking_version_is_red_is_in_the_registry_and_is_told_to_those_it_breaks(watched):
    watched.tick()
    watched.write(contract("2.0.0", fields=without("temp")))
    assert watched.said() == "nyc-hourly 2.0.0 published, 2 messages; 1 result recorded"
    assert watched.versions() == ["1.0.0", "2.0.0"]
    assert [(one.consumer, one.event) for one in watched.waiting()] == [
        ("quant", "1.0.0 -> 2.0.0"),
        ("risk", "1.0.0 -> 2.0.0"),
    ]
    result = watched.results()[-1]
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert result.description.startswith("1 of 1 change since 1.0.0 break readers under the policy strict: hourly.temp")
    facts = {name: value.value for name, value in result.metadata.items() if name not in ("report", "consumers")}
    assert facts == {
        "contract_id": "nyc-hourly",
        "contract_version": "2.0.0",
        "contract_owner": "Weather Team",
        "previous_version": "1.0.0",
        "policy": "strict",
        "required_bump": "major",
        "actual_bump": "major",
        "changes": 1,
        "breaking_changes": 1,
    }
    (change,) = [record.data for record in result.metadata["report"].records]
    assert (change["breaking"], change["change"], change["dataset"], change["field"]) == (
        True,
        "field_removed",
        "hourly",
        "temp",
    )
    assert [
        (record.data["consumer"], record.data["owner"], record.data["broken"])
        for record in result.metadata["consumers"].records
    ] == [("quant", "Quant Team", True), ("risk", None, False)]
    assert "example.com" not in repr(result)


def test_an_additive_version_is_green_with_its_changes(watched):
    watched.tick()
    watched.write(contract("1.1.0", fields={**FIELDS, "rain": "double"}))
    watched.tick()
    result = watched.results()[-1]
    assert (result.passed, result.metadata["changes"].value, result.metadata["breaking_changes"].value) == (True, 1, 0)
    assert result.description == "1 change since 1.0.0, of which none breaks readers under the policy strict"
    assert [record.data["field"] for record in result.metadata["report"].records] == ["rain"]
    assert watched.waiting() == []


def test_a_tick_with_nothing_changed_records_nothing_and_says_so(watched):
    watched.tick()
    # Its own writing made another revision of the registry.
    assert watched.said() == "nothing new"
    assert watched.said() == "nothing changed in 1 file of contracts and in the registry"
    assert len(watched.results()) == 1


def test_a_file_that_changes_in_the_same_instant_is_seen(watched):
    watched.settings = {}
    watched.tick()
    watched.write(contract("2.0.0", fields=without("temp")))
    watched.tick()
    found = watched.folder / "hourly.yaml"
    times = found.stat()
    text = contract("2.1.0", fields={"station": "string", "wind": "double", "rain": "double"})
    found.write_text(text)
    os.utime(found, ns=(times.st_atime_ns, times.st_mtime_ns))
    watched.tick()
    assert watched.versions() == ["1.0.0", "2.0.0", "2.1.0"]


def test_a_touched_file_is_not_read_as_a_new_one(watched):
    watched.tick()
    (watched.folder / "hourly.yaml").touch()
    assert watched.said() == "nothing new"


@pytest.mark.parametrize(
    "cursor",
    [
        None,
        "",
        "garbage",
        "[]",
        "null",
        "1",
        '{"version": 0}',
        '{"version": 99, "folder": "x"}',
        '{"version": 1, "folder": 3, "registry": [], "definitions": null, "requested": [1, ["a"], ["a", 2]]}',
        "[" * 100_000,
    ],
    ids=range(10),
)
def test_any_cursor_will_do(tmp_path, shared_instance, cursor):
    watched = Watched(tmp_path, shared_instance)
    watched.write(contract())
    watched.load().tick()
    watched.write(contract("1.0.1"))
    watched.cursor = cursor
    watched.tick()
    assert watched.versions() == ["1.0.0", "1.0.1"]
    watched.cursor = cursor
    assert watched.said() == "nothing new"


@pytest.mark.parametrize("kept", ["text", 1, [], {"version": 9}, {"version": 1, "files": [], "recorded": {"a": 1}}])
def test_whatever_the_registry_keeps_will_do(watched, kept):
    watched.tick()
    with watched.opened() as registry:
        registry.advance("dagster//contract_schema_diff", kept)
    watched.cursor = None
    watched.tick()
    assert [one.passed for one in watched.results()] == [True, True]
    assert watched.versions() == ["1.0.0"]


def test_a_contract_that_does_not_parse_is_reported_once_and_stops_no_other(watched):
    watched.write(contract(name="daily"), "daily.yaml")
    watched.load().tick()
    broken = watched.write(contract("1.1.0").replace("logicalType: string", "logicalType: sting"))
    watched.write(contract("1.1.0", name="daily", fields={**FIELDS, "rain": "double"}), "daily.yaml")
    data = watched.tick()
    assert str(broken) in data.skip_message
    assert "sting" in data.skip_message
    assert "nyc-daily 1.1.0 published" in data.skip_message
    assert watched.versions("nyc-daily") == ["1.0.0", "1.1.0"]
    failed = watched.results()[-1]
    assert (failed.passed, failed.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert f"{broken}:12:38" in failed.description
    assert watched.said() == "nothing new"
    assert watched.said().startswith("nothing changed")
    assert len(watched.results()) == 2
    watched.write(contract("1.1.0", fields={**FIELDS, "rain": "double"}))
    assert watched.said() == "nyc-hourly 1.1.0 published; 1 result recorded"
    assert [one.passed for one in watched.results()] == [True, False, True]


def test_a_mended_file_is_green_again_though_its_version_was_there_before(watched):
    watched.tick()
    watched.write("kind: DataContract\n")
    watched.tick()
    watched.write(contract())
    watched.tick()
    assert [one.passed for one in watched.results()] == [True, False, True]


def test_a_file_that_nobody_knows_is_said(watched):
    watched.write("", "empty.yaml")
    watched.write("- a list", "list.yaml")
    said = watched.said()
    assert "empty.yaml" in said
    assert "list.yaml" in said
    assert "nyc-hourly 1.0.0 published" in said
    assert watched.said() == "nothing new"


def test_other_content_under_a_published_version_is_an_error_and_no_publication(watched):
    watched.tick()
    watched.write(contract("1.0.0", fields=without("temp")))
    said = watched.said()
    assert "nyc-hourly 1.0.0 is published already with other content" in said
    assert "Give the changed contract a new version" in said
    assert watched.waiting() == []
    assert not watched.results()[-1].passed
    assert watched.said().startswith("nothing changed")
    watched.write(contract("2.0.0", fields=without("temp")))
    watched.tick()
    assert [one.passed for one in watched.results()] == [True, False, False]
    assert len(watched.waiting()) == 2


def test_a_missing_consent_is_reported_once_and_the_version_is_taken_up_when_it_is_given(watched):
    sign_off = "  - {property: evolution, value: {signOff: required}}"
    text = contract().replace("customProperties:", f"customProperties:\n{sign_off}")
    watched.write(text)
    watched.tick()
    temp = "      - {name: temp, logicalType: number, physicalType: double}\n"
    watched.write(text.replace("1.0.0", "2.0.0").replace(temp, ""))
    said = watched.said()
    assert "has not agreed" in said
    assert watched.versions() == ["1.0.0"]
    assert watched.said().startswith("nothing changed")
    with watched.opened() as registry:
        for name in ("quant", "risk"):
            registry.approve(
                StoredApproval(
                    contract_id="nyc-hourly",
                    consumer=name,
                    approver=f"{name}@example.com",
                    at=registry.get("nyc-hourly").published_at,
                    version="2.0.0",
                )
            )
    assert "nyc-hourly 2.0.0 published" in watched.said()
    assert [one.passed for one in watched.results()] == [True, False, False]


def test_a_version_that_is_published_elsewhere_is_shown(watched):
    watched.tick()
    with watched.opened() as registry:
        registry.publish(load_contract(contract("2.0.0", fields=without("temp"))), by="ci")
    watched.tick()
    assert [(one.passed, one.metadata["contract_version"].value) for one in watched.results()] == [
        (True, "1.0.0"),
        (False, "2.0.0"),
    ]


def test_without_a_folder_the_registry_alone_is_watched(watched):
    with watched.opened() as registry:
        registry.publish(load_contract(contract()), by="ci")
        registry.publish(load_contract(contract(name="elsewhere")), by="ci")
    sensor = build_schema_diff_sensor(None)
    context = dg.build_sensor_context(
        instance=watched.instance, definitions=watched.loaded, resources={"registry": watched.resource}
    )
    assert sensor.evaluate_tick(context).skip_message == "1 result recorded"
    assert [one.passed for one in watched.results()] == [True]


def test_a_draft_that_breaks_is_a_warning_and_is_told_to_nobody(watched):
    watched.tick()
    watched.write(contract("2.0.0", fields=without("temp"), status="draft"), "next.yaml")
    watched.tick()
    assert watched.versions() == ["1.0.0", "2.0.0"]
    assert watched.waiting() == []
    # What is in force is what its readers have to know of.
    assert [one.passed for one in watched.results()] == [True]
    watched.write(contract("2.0.0", fields=without("temp"), status="active"), "next.yaml")
    watched.tick()
    assert [one.passed for one in watched.results()] == [True, False]
    assert len(watched.waiting()) == 2


def test_a_contract_for_an_unknown_asset_is_published_and_said_once(watched):
    watched.write(contract(name="lost"), "lost.yaml")
    watched.load()
    said = watched.said()
    assert "nyc-lost 1.0.0 is for the asset nyc/lost, which is not in this code location" in said
    assert watched.versions("nyc-lost") == ["1.0.0"]
    assert watched.said() == "nothing new"
    # When the code location has got it, the result is recorded.
    watched.assets.append("nyc/lost")
    assert watched.load().said() == "1 result recorded"
    assert [one.passed for one in watched.results("nyc/lost")] == [True]


def test_a_missing_check_is_said(watched):
    watched.loaded = dg.Definitions(assets=[dg.AssetSpec(["nyc", "hourly"])], resources={"registry": watched.resource})
    assert "the asset nyc/hourly has no check contract_compatibility. Add build_compatibility_checks" in watched.said()


def test_two_contracts_of_one_asset(watched):
    watched.tick()
    other = watched.write(contract(name="hourly").replace("id: nyc-hourly", "id: nyc-again"), "second.yaml")
    said = watched.said()
    assert "two contracts are for the asset nyc/hourly: nyc-again (second.yaml) and nyc-hourly (hourly.yaml)" in said
    assert watched.said() == "nothing new"
    with pytest.raises(DataboxError, match="two contracts are for the asset nyc/hourly"):
        build_compatibility_checks(watched.folder)
    other.unlink()
    watched.tick()
    assert [one.passed for one in watched.results()][:2] == [True, False]


def test_a_registry_that_does_not_answer_fails_the_tick_and_nothing_is_lost(watched):
    watched.tick()
    watched.write(contract("2.0.0", fields=without("temp")))
    before = watched.cursor
    with closing(sqlite3.connect(watched.registry, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RegistryUnavailableError, match="does not answer"):
            watched.tick()
        other.execute("ROLLBACK")
    assert watched.cursor == before
    watched.tick()
    assert watched.versions() == ["1.0.0", "2.0.0"]
    assert len(watched.waiting()) == 2


def test_a_service_is_refused_with_the_way_out(watched):
    watched.resource = ContractRegistryResource(location="https://registry.example.com")
    watched.load()
    with pytest.raises(DataboxError, match="Give ContractRegistryResource the registry's file"):
        watched.tick()


def test_a_folder_that_is_not_there_is_refused_at_once(tmp_path):
    with pytest.raises(DataboxError, match="there is no folder of contracts"):
        build_schema_diff_sensor(tmp_path / "contrcts")


def test_a_folder_that_went_fails_the_tick(watched):
    sensor = build_schema_diff_sensor(watched.folder)
    (watched.folder / "hourly.yaml").unlink()
    watched.folder.rmdir()
    context = dg.build_sensor_context(
        instance=watched.instance, definitions=watched.loaded, resources={"registry": watched.resource}
    )
    with pytest.raises(DataboxError, match="the folder cannot be read"):
        sensor.evaluate_tick(context)


def test_a_tick_that_dies_before_its_cursor_is_kept_is_repeated_and_doubles_no_message(watched):
    watched.tick()
    watched.write(contract("2.0.0", fields=without("temp")))
    before = watched.cursor
    watched.tick()
    watched.cursor = before
    assert watched.said() == "nothing new"
    with watched.opened() as registry:
        registry.advance("dagster//contract_schema_diff", {"version": 1})
    watched.cursor = before
    watched.tick()
    assert [one.passed for one in watched.results()] == [True, False, False]
    assert len(watched.waiting()) == 2


def test_what_is_left_when_time_is_up_follows_at_the_next_tick(watched):
    watched.write(contract(name="daily"), "daily.yaml")
    watched.load()
    said = [watched.said(seconds=0) for _ in range(5)]
    assert said[0].endswith("the rest follows at the next tick")
    assert (watched.versions(), watched.versions("nyc-daily")) == (["1.0.0"], ["1.0.0"])
    assert (len(watched.results()), len(watched.results("nyc/daily"))) == (1, 1)


def test_verification_waits_until_the_code_has_the_version(watched):
    from databox_contracts.dagster import build_contract_checks

    def definitions(*files):
        tables = [check for file in files for check in build_contract_checks(file, load=lambda spark: None)]
        specs = [
            dg.AssetSpec(["nyc", "hourly"]),
            dg.AssetSpec(["nyc", "daily"], deps=[["nyc", "hourly"]]),
            dg.AssetSpec(["nyc", "other"]),
        ]
        resources = {"registry": watched.resource, "spark": dg.ResourceDefinition.none_resource()}
        return dg.Definitions(
            assets=specs, asset_checks=[*tables, *build_compatibility_checks(list(files))], resources=resources
        )

    hourly = watched.folder / "hourly.yaml"
    daily = watched.write(contract(name="daily"), "daily.yaml")
    other = watched.write(contract(name="other"), "other.yaml")
    watched.settings["request_verification"] = True
    watched.loaded = definitions(hourly, daily, other)
    assert watched.tick().run_requests == []
    watched.write(contract("2.0.0", fields=without("temp")))
    # The code would hold the tables against the older version.
    assert watched.tick().run_requests == []
    watched.loaded = definitions(hourly, daily, other)
    (request,) = watched.tick().run_requests
    assert [key.to_user_string() for key in request.asset_check_keys] == [
        "nyc/daily:contract_conformity",
        "nyc/hourly:contract_conformity",
    ]
    assert request.tags["databox/contract_version"] == "2.0.0"
    assert watched.tick().run_requests == []
    assert watched.said().startswith("nothing")


def test_the_check_can_be_run_again_and_says_the_same(watched):
    watched.tick()
    watched.write(contract("2.0.0", fields=without("temp")))
    watched.tick()
    job = watched.load().loaded.resolve_implicit_global_asset_job_def()
    done = job.execute_in_process(instance=watched.instance, resources={"registry": watched.resource})
    (again,) = done.get_asset_check_evaluations()
    recorded = watched.results()[-2]
    assert (again.passed, again.severity, again.description, again.metadata) == (
        recorded.passed,
        recorded.severity,
        recorded.description,
        recorded.metadata,
    )
    (watched.folder / "hourly.yaml").write_text("no contract")
    done = job.execute_in_process(instance=watched.instance, resources={"registry": watched.resource})
    (again,) = done.get_asset_check_evaluations()
    assert not again.passed
    assert "hourly.yaml:1" in again.description


def test_the_check_asks_a_service_as_well(watched, tmp_path, monkeypatch):
    watched.tick()
    watched.write(contract("2.0.0", fields=without("temp")))
    watched.tick()
    with watched.opened() as registry:
        monkeypatch.setenv("DATABOX_REGISTRY_TOKEN", registry.tokens.issue("dagster", Scope("read"), by="tests"))
    port = tmp_path / "port"
    serve = ["-m", "databox_contracts", "registry", "serve", "--registry", str(watched.registry), "--port", "0"]
    with (tmp_path / "service.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, *serve, "--port-file", str(port)], stdout=log, stderr=log, cwd=ROOT)
    try:
        end = time.monotonic() + 60
        while not port.exists():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        watched.resource = ContractRegistryResource(location=f"http://127.0.0.1:{port.read_text().strip()}")
        job = watched.load().loaded.resolve_implicit_global_asset_job_def()
        done = job.execute_in_process(instance=watched.instance, resources={"registry": watched.resource})
    finally:
        process.terminate()
        process.wait(timeout=60)
    (found,) = done.get_asset_check_evaluations()
    recorded = watched.results()[1]
    assert (found.passed, found.description, found.metadata) == (False, recorded.description, recorded.metadata)


def test_a_registry_that_is_away_is_an_error_of_the_run_and_no_failed_check(watched):
    watched.registry.write_text("no database at all, but a text that is long enough to be looked at" * 20)
    job = watched.loaded.resolve_implicit_global_asset_job_def()
    done = job.execute_in_process(
        instance=watched.instance, resources={"registry": watched.resource}, raise_on_error=False
    )
    (failed,) = [event for event in done.all_events if event.is_step_failure]
    said = failed.step_failure_data.user_failure_data.description
    assert said.startswith("The versions of nyc-hourly cannot be compared: the registry")
    assert done.get_asset_check_evaluations() == []


def test_ticks_at_once_publish_and_tell_once(watched):
    watched.tick()
    watched.write(contract("2.0.0", fields=without("temp")))
    watched.resource = ContractRegistryResource(location=str(watched.registry), patience=30)
    cursor = watched.cursor
    said = []

    def tick():
        sensor = build_schema_diff_sensor(watched.folder, **watched.settings)
        context = dg.build_sensor_context(
            instance=watched.instance,
            cursor=cursor,
            definitions=watched.loaded,
            resources={"registry": watched.resource},
            sensor_name=sensor.name,
        )
        said.append(sensor.evaluate_tick(context).skip_message)

    threads = [threading.Thread(target=tick) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 4
    assert watched.versions() == ["1.0.0", "2.0.0"]
    assert len(watched.waiting()) == 2
    assert not watched.results()[-1].passed


def test_a_check_on_an_unknown_asset_is_refused(watched):
    with pytest.raises(DataboxError, match="nyc/hourly, which is no known asset"):
        build_compatibility_checks(watched.folder, assets=["nyc/other"])


def test_an_unreadable_file_keeps_no_other_check_from_loading(watched):
    watched.write("nothing", "bad.yaml")
    assert [one.check_specs_by_output_name for one in build_compatibility_checks(watched.folder)]


def test_a_translator_names_the_assets(watched):
    class Upper(ContractTranslator):
        def get_asset_key(self, contract, dataset):
            return dg.AssetKey(["UP", dataset.name])

    checks = build_compatibility_checks(watched.folder, translator=Upper())
    watched.loaded = dg.Definitions(
        assets=[dg.AssetSpec(["UP", "hourly"])], asset_checks=checks, resources={"registry": watched.resource}
    )
    watched.tick(translator=Upper())
    assert [one.passed for one in watched.results("UP/hourly")] == [True]


def test_a_change_of_one_dataset_is_no_failure_of_another(tmp_path, instance):
    watched = Watched(tmp_path, instance)
    two = contract().replace("schema:\n", "schema:\n  - {name: daily, properties: [{name: day, logicalType: date}]}\n")
    watched.write(two)
    watched.load().tick()
    watched.write(two.replace("1.0.0", "2.0.0").replace("{name: day,", "{name: date,"))
    watched.tick()
    assert [one.passed for one in watched.results("nyc/hourly")] == [True, True]
    assert [one.passed for one in watched.results("nyc/daily")] == [True, False]


def test_the_cursor_stays_small_however_many_contracts_there_are(watched):
    for number in range(50):
        watched.write(contract(name=f"n{number}"), f"n{number}.yaml")
    watched.load().tick()
    assert len(watched.cursor) < 300
    assert set(json.loads(watched.cursor)) == {"version", "folder", "registry", "definitions", "requested"}


def test_settings_of_the_sensor(watched):
    sensor = build_schema_diff_sensor(watched.folder)
    assert (sensor.name, sensor.minimum_interval_seconds, sensor.default_status) == (
        "contract_schema_diff",
        30,
        dg.DefaultSensorStatus.RUNNING,
    )
    sensor = build_schema_diff_sensor(
        watched.folder, name="mine", minimum_interval_seconds=5, default_status=dg.DefaultSensorStatus.STOPPED
    )
    assert (sensor.name, sensor.minimum_interval_seconds, sensor.default_status) == (
        "mine",
        5,
        dg.DefaultSensorStatus.STOPPED,
    )


def test_a_consumer_that_registered_is_told_too(watched):
    watched.tick()
    with watched.opened() as registry:
        registry.register("nyc-hourly", Consumer("late", "https://late.example.com/hook"), by="somebody")
    watched.write(contract("2.0.0", fields=without("temp")))
    watched.tick()
    assert sorted(one.consumer for one in watched.waiting()) == ["late", "quant", "risk"]
    with watched.opened() as registry:
        assert registry.outbox.counts()[State.WAITING] == 3
