"""Data contracts as a component: a real project, made and checked with `dg`, and the same definitions as in Python."""

import os
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from databox_contracts.dagster import (
    ContractTranslator,
    DataContractsComponent,
    build_contract_asset_specs,
    build_contract_audit_schedule,
    build_contract_checks,
    build_drift_schedule,
)
from databox_contracts.formats import dump_contract, load_contract
from databox_contracts.registry.store import Registry
from databox_contracts.rules import Required
from databox_contracts.spark import TablePlace, publish, stop_server

ROOT = Path(__file__).parents[2]
TYPE = "databox_contracts.dagster.DataContractsComponent"

DEFINITIONS = """
from pathlib import Path

import dagster as dg


@dg.definitions
def defs():
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
"""


class Project:
    """A project of `dg`, and the commands that are run in it."""

    def __init__(self, place: Path, module: str = "shop") -> None:
        self.place = place / "project"
        self.defs = self.place / module / "defs"
        self.defs.mkdir(parents=True)
        dg_config = f'[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "{module}"\n'
        (self.place / "pyproject.toml").write_text(dg_config)
        for folder in (self.place / module, self.defs):
            (folder / "__init__.py").touch()
        (self.place / module / "definitions.py").write_text(DEFINITIONS)
        home = place / "home"
        home.mkdir()
        (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        self.environment = {
            **os.environ,
            "DAGSTER_HOME": str(home),
            "PYTHONPATH": os.pathsep.join(map(str, (installed(place), ROOT, self.place))),
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "PYTHONWARNINGS": "ignore",
            # Messages are not broken into lines.
            "COLUMNS": "400",
            "TABLES": str(place / "tables"),
        }

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """The command, with all it says in `stdout`."""
        return subprocess.run(
            command,
            cwd=self.place,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def says(self, *command: str) -> str:
        done = self.run(*command)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def component(self, name: str, attributes: str) -> Path:
        folder = self.defs / name
        folder.mkdir(exist_ok=True)
        (folder / "defs.yaml").write_text(f"type: {TYPE}\nattributes:\n{attributes}")
        return folder


def installed(place: Path) -> Path:
    """What installing the package leaves for those who look for its entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folder = place / "metadata" / f"{project['name']}-{project['version']}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    lines = [line for group, entries in groups.items() for line in (f"[{group}]", *map(" = ".join, entries.items()))]
    (folder / "entry_points.txt").write_text("\n".join(lines))
    return folder.parent


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


WHOLE = """\
  contracts: [contracts/orders.yaml]
  granularity: rule
  name: shop
  registry: ../../registry.db
  tables: {root: "{{ env.TABLES }}", spark_directory: spark}
  drift: {cron: "@hourly", timezone: Europe/Berlin, status: running, notify: [], baselines: baselines}
  audit: {on_divergence: warn}
"""


def test_a_project_is_made_and_checked(project):
    assert TYPE in project.says("dg", "list", "components")
    project.says("dg", "scaffold", "defs", TYPE, "orders")
    assert (project.defs / "orders" / "defs.yaml").read_text() == (
        f"type: {TYPE}\n\nattributes:\n  contracts: contracts\n  granularity: dimension\n"
    )
    (contract,) = (project.defs / "orders" / "contracts").iterdir()
    assert load_contract(contract).datasets[0].name == "orders"
    project.says("dg", "check", "yaml")
    assert "All definitions loaded successfully." in project.says("dg", "check", "defs")
    listed = project.says("dg", "list", "defs", "--json")
    assert '"orders:contract_uniqueness"' in listed

    project.component("orders", WHOLE)
    project.says("dg", "check", "yaml")
    project.says("dg", "check", "defs")
    listed = project.says("dg", "list", "defs", "--json")
    for name in ("orders:orders.id.unique", "orders:contract_drift", "shop_contract_drift_schedule", "io_manager"):
        assert f'"{name}"' in listed
    validate = ("-m", "dagster", "definitions", "validate", "-m", "shop.definitions")
    assert "validation success" in project.says(sys.executable, *validate).lower()


@pytest.mark.parametrize(
    ("attributes", "in_yaml", "in_defs"),
    [
        # What a literal may be is only seen when the component is loaded.
        (
            "  contracts: contracts\n  granularity: rules\n",
            None,
            "Input should be 'contract', 'dimension' or 'rule' [type=literal_error, input_value='rules'",
        ),
        (
            "  contracts: contracts\n  granulaty: rule\n",
            "defs.yaml:4 - databox_contracts.dagster.DataContractsComponent attributes.granulaty "
            "Additional properties are not allowed ('granulaty' was unexpected)",
            "attributes.granulaty Additional properties are not allowed",
        ),
        (
            "  contracts: contrats\n",
            None,
            "there is no folder or file of contracts 'contrats' in {folder}. Correct `contracts` in defs.yaml; "
            "a relative path counts from the component's folder.",
        ),
        (
            "  contracts: contracts\n  drift: {cron: '@daily', notify: [everybody]}\n",
            None,
            'notify names \'everybody\'. Give a list of "owner", "consumers" or both, or an empty one.',
        ),
        ("  contracts: empty\n", None, "there is no contract in {folder}/empty. Give contracts, their files, or"),
        ("  contracts: broken.yaml\n", None, "{folder}/broken.yaml:1:1: "),
    ],
)
def test_what_is_wrong_in_the_yaml_is_one_clear_message(project, weather, attributes, in_yaml, in_defs):
    folder = project.component("orders", attributes)
    for name in ("contracts", "empty"):
        (folder / name).mkdir()
    (folder / "contracts" / "hourly.yaml").write_text(dump_contract(weather))
    (folder / "broken.yaml").write_text("kind: DataContract\n")
    checked = project.run("dg", "check", "yaml")
    assert checked.returncode == (0 if in_yaml is None else 1), checked.stdout
    assert in_yaml is None or in_yaml in checked.stdout
    loaded = project.run("dg", "check", "defs")
    assert loaded.returncode == 1
    message = in_defs.format(folder=folder)
    assert loaded.stdout.count(message) == 1, loaded.stdout


# --- the first contract -----------------------------------------------------------------------------------------------


def test_a_first_contract_is_made_of_a_table(project, tmp_path):
    table = pa.table(
        {
            "id": pa.array([1], pa.int64()),
            "email": pa.array(["a@example.com"]),
            "total": pa.array([None], pa.decimal128(10, 2)),
            "tags": pa.array([["x"]], pa.list_(pa.string())),
        }
    )
    pq.write_table(table, tmp_path / "orders.parquet")
    project.says(
        "dg", "scaffold", "defs", TYPE, "sales", "--table", str(tmp_path / "orders.parquet"), "--domain", "shop"
    )
    text = (project.defs / "sales" / "contracts" / "orders.yaml").read_text()
    assert "a@example.com" not in text
    contract = load_contract(text)
    assert (contract.id, contract.domain, contract.version) == ("orders", "shop", "0.1.0")
    assert [(one.name, str(one.type), one.pii) for one in contract.datasets[0].fields] == [
        ("id", "integer(64)", None),
        ("email", "string", True),
        ("total", "decimal(10, 2)", None),
        ("tags", "array", None),
    ]
    project.says("dg", "check", "defs")


def test_a_first_contract_is_made_of_ddl(project, tmp_path):
    (tmp_path / "orders.sql").write_text(
        "CREATE TABLE orders (id BIGSERIAL PRIMARY KEY, customer_id INT REFERENCES customers (id), note VARCHAR(20))"
    )
    arguments = ("--ddl", str(tmp_path / "orders.sql"), "--dialect", "postgres", "--contract-id", "urn:orders")
    project.says("dg", "scaffold", "defs", TYPE, "sales", *arguments)
    contract = load_contract(project.defs / "sales" / "contracts" / "orders.yaml")
    assert contract.id == "urn:orders"
    assert [(one.name, str(one.type)) for one in contract.datasets[0].fields] == [
        ("id", "integer(64)"),
        ("customer_id", "integer(32)"),
        ("note", "string(20)"),
    ]
    project.says("dg", "check", "defs")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--table", "none.parquet"), "cannot read table 'none.parquet': there is nothing"),
        (("--table", "pyproject.toml"), "pyproject.toml is no Parquet file"),
        (("--ddl", "none.sql"), "cannot read 'none.sql'"),
        (("--dialect", "postgres"), "a dialect was given, and no DDL"),
        (("--table", "a", "--ddl", "b"), "both table and ddl were given"),
    ],
)
def test_what_no_contract_can_be_made_of_is_said(project, arguments, said):
    done = project.run("dg", "scaffold", "defs", TYPE, "sales", *arguments)
    assert done.returncode != 0
    assert said in done.stdout
    assert list(project.defs.glob("sales/*")) == []


# --- the same as in Python --------------------------------------------------------------------------------------------


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """The definitions of a component, loaded in this process."""

    def load(module: str, attributes: str, contract: Any) -> dg.Definitions:
        made = Project(tmp_path, module)
        folder = made.component("nyc", attributes)
        (folder / "contracts").mkdir()
        (folder / "contracts" / "hourly.yaml").write_text(dump_contract(contract))
        monkeypatch.syspath_prepend(str(made.place))
        return dg.load_from_defs_folder(path_within_project=made.defs)

    return load


def facts_of(defs: dg.Definitions) -> dict[str, Any]:
    checks = [spec for one in defs.asset_checks or () for spec in one.check_specs]
    schedules = [defs.resolve_schedule_def(name) for name in ("contract_drift_schedule", "contract_audit_schedule")]
    return {
        "assets": {
            spec.key: (spec.description, spec.owners, spec.tags, spec.kinds, spec.metadata["contract_version"])
            for spec in defs.resolve_all_asset_specs()
        },
        # To the metadata the component's loader adds where its YAML is.
        "checks": {spec.key: (spec.description, spec.blocking, spec.metadata["contract_version"]) for spec in checks},
        "schedules": [
            (one.name, one.job_name, one.cron_schedule, one.execution_timezone, one.default_status) for one in schedules
        ],
    }


# Dagster warns of itself when it is asked for the specs of external assets.
@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_it_builds_what_the_python_functions_build(loaded, weather, tmp_path):
    attributes = "  contracts: contracts\n  granularity: rule\n  drift: {cron: '@hourly'}\n  audit: {status: running}\n"
    found = loaded("same_as_python", attributes, weather)
    contract = load_contract(tmp_path / "project" / "same_as_python" / "defs" / "nyc" / "contracts" / "hourly.yaml")
    translator = ContractTranslator(granularity="rule")
    running = dg.DefaultScheduleStatus.RUNNING
    expected = dg.Definitions.merge(
        dg.Definitions(
            assets=build_contract_asset_specs(contract, translator=translator),
            asset_checks=build_contract_checks(contract, translator=translator),
        ),
        build_drift_schedule(contract, "@hourly", translator=translator),
        build_contract_audit_schedule(contract, translator=translator, default_status=running),
    )
    assert facts_of(found) == facts_of(expected)
    assert len(facts_of(found)["checks"]) == 14


def test_its_checks_run(loaded, weather, spark, manager, instance, tmp_path):
    defs = loaded("checks_run", "  contracts: contracts\n  granularity: contract\n  on_violation: warn\n", weather)
    whole = dg.Definitions.merge(defs, dg.Definitions(resources={"io_manager": manager}))
    place = TablePlace(Path(manager.root), "nyc/hourly")
    rows = spark.createDataFrame([("EWR", -50.0, None)], "station string, temp double, phone string")
    publish(rows, weather, place=place, on_violation="warn")
    done = whole.resolve_implicit_global_asset_job_def().execute_in_process(instance=instance)
    (found,) = done.get_asset_check_evaluations()
    assert (found.check_name, found.passed, found.severity) == ("contract", False, dg.AssetCheckSeverity.WARN)
    assert found.metadata["rules"].records[0].data["rule"] == "hourly.temp.minimum"


def scheduled(project: Project, weather: Any, place: Path, spark: Any, *, cron: str) -> Path:
    """The folder of a component with both schedules, whose table is published and whose contract is registered."""
    attributes = (
        "  contracts: contracts\n  assets: false\n  checks: false\n  registry: registry.db\n"
        "  tables:\n    root: '{{ env.TABLES }}'\n    spark_directory: spark\n"
        "    spark_conf: {spark.driver.memory: 512m, spark.master: 'local[2]', spark.sql.shuffle.partitions: '1'}\n"
        f"  drift: {{cron: '{cron}', status: running}}\n  audit: {{cron: '{cron}', status: running}}\n"
    )
    folder = project.component("nyc", attributes)
    (folder / "contracts").mkdir()
    (folder / "contracts" / "hourly.yaml").write_text(dump_contract(weather))
    contract = load_contract(folder / "contracts" / "hourly.yaml")
    with Registry.open(folder / "registry.db") as registry:
        registry.publish(contract, by="ci")
    rows = spark.createDataFrame([("EWR", 3.5, None)], "station string, temp double, phone string")
    publish(rows, contract, place=TablePlace(place / "tables", "nyc/hourly"))
    return folder


def runs_of(place: Path) -> list[tuple[str, dg.DagsterRunStatus]]:
    """The jobs that ran, the first one first, and how each ended."""
    with dg.DagsterInstance.from_config(str(place / "home")) as instance:
        runs = [record.dagster_run for record in instance.get_run_records(ascending=True)]
        return [(run.job_name, run.status) for run in runs]


@pytest.mark.full
def test_its_schedules_run_in_processes_of_their_own(project, weather, tmp_path, spark):
    """As the daemon launches them: by the names of their jobs, with the default executor and a shared server."""
    folder = scheduled(project, weather, tmp_path, spark, cron="@hourly")
    try:
        for job in ("contract_drift", "contract_audit"):
            project.says("dg", "launch", "--job", job)
    finally:
        stop_server(folder / "spark")
    with Registry.open(folder / "registry.db") as registry:
        assert registry.baselines.get("weather-hourly", "hourly") is not None
    success = dg.DagsterRunStatus.SUCCESS
    assert runs_of(tmp_path) == [("contract_drift", success), ("contract_audit", success)]


@pytest.mark.full
def test_a_daemon_runs_its_schedules_when_their_time_comes(project, weather, tmp_path, spark):
    folder = scheduled(project, weather, tmp_path, spark, cron="* * * * *")
    log = tmp_path / "daemon.log"
    with dg.DagsterInstance.from_config(str(tmp_path / "home")), log.open("w") as said:
        # Dagster's tables are there before several processes want them.
        command = ["dagster-daemon", "run", "-m", "shop.definitions"]
        daemon = subprocess.Popen(
            command,
            cwd=project.place,
            env=project.environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    wanted = {(job, dg.DagsterRunStatus.SUCCESS) for job in ("contract_drift", "contract_audit")}
    end = time.monotonic() + 500
    try:
        while not wanted <= (ended := set(runs_of(tmp_path))):
            assert daemon.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < end, (ended, log.read_text()[-3000:])
            time.sleep(1)
    finally:
        family = [psutil.Process(daemon.pid), *psutil.Process(daemon.pid).children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        daemon.wait(30)
        psutil.wait_procs(family[1:], timeout=30)
        stop_server(folder / "spark")
    with Registry.open(folder / "registry.db") as registry:
        assert registry.baselines.get("weather-hourly", "hourly") is not None


def test_what_it_is_not_to_build_it_does_not(loaded, weather):
    attributes = "  contracts: contracts\n  assets: false\n  checks: false\n  audit: {}\n"
    defs = loaded("nothing_but_audit", attributes, weather)
    names = [spec.name for one in defs.asset_checks or () for spec in one.check_specs]
    assert names == ["contract_audit"]
    assert list(defs.assets or ()) == []


def test_a_subclass_may_translate_otherwise(weather, tmp_path):
    class Prefixed(ContractTranslator):
        def get_asset_key(self, contract, dataset):
            return dg.AssetKey(["lake", dataset.name])

    class Ours(DataContractsComponent):
        def translator(self):
            return Prefixed(granularity=self.granularity)

    ours = Ours(contracts="contracts")
    assert ours.translator().get_asset_key(weather, weather.datasets[0]) == dg.AssetKey(["lake", "hourly"])
    assert weather.datasets[0].fields[0].rules == (Required(),)
