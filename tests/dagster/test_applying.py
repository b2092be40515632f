"""Contracts applied to assets that are there already: what is added, what stays, what is told when it does not fit."""

from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import DataFrame

from databox_contracts.dagster import (
    ContractIOManager,
    ContractTranslator,
    SharedSparkResource,
    UncontractedAssetWarning,
    apply_contracts,
    contract_asset,
    eager_when_checks_pass,
)
from databox_contracts.errors import ConsumersError, ContractsNotAppliedError, DataboxError
from databox_contracts.model import Consumer
from databox_contracts.rules import Freshness

KEY = dg.AssetKey(["nyc", "hourly"])
NAMES = {"contract_accuracy", "contract_completeness", "contract_conformity", "contract_uniqueness"}


@pytest.fixture
def ours(tmp_path: Path) -> dict:
    spark = SharedSparkResource(directory=str(tmp_path / "spark"))
    return {"io_manager": ContractIOManager(root=str(tmp_path / "tables"), spark=spark), "spark": spark}


def made(key=KEY, **options) -> dg.AssetsDefinition:
    @dg.asset(key=key, **options)
    def table() -> None: ...

    return table


def check_names(defs: dg.Definitions, key=KEY) -> set[str]:
    return {check.name for check in defs.resolve_asset_graph().asset_check_keys if check.asset_key == key}


def test_an_asset_gets_what_the_contract_knows_of_it(weather, ours):
    asset = made(description="By hand.", tags={"tier": "1"}, owners=["team:ours"], metadata={"runbook": "none"})
    applied = apply_contracts(dg.Definitions(assets=[asset], resources=ours), weather)
    dg.Definitions.validate_loadable(applied)
    spec = applied.resolve_all_asset_specs()[0]
    assert (spec.description, list(spec.owners), spec.tags["tier"]) == ("By hand.", ["team:ours"], "1")
    assert (spec.metadata["contract_version"], spec.metadata["runbook"]) == ("1.10", "none")
    assert [column.name for column in spec.metadata["dagster/column_schema"].columns] == ["station", "temp", "phone"]
    assert spec.kinds == {"spark", "parquet"}
    assert check_names(applied) == NAMES
    bare = apply_contracts(dg.Definitions(assets=[made()], resources=ours), weather).resolve_all_asset_specs()[0]
    assert (bare.description, list(bare.owners)) == ("Hourly observations.", ["team:Weather_Team"])


def test_how_an_asset_is_made_stays_as_it_is(weather, instance, tmp_path, spark):
    written = tmp_path / "files"

    @dg.asset(key=KEY, group_name="raw")
    def hourly() -> None:
        rows = [("EWR", 3.5, "555-0100"), ("EWR", 4.0, None)]
        spark.createDataFrame(rows, "station string, temp double, phone string").write.parquet(str(written))

    defs = dg.Definitions(assets=[hourly], resources={"spark": spark})
    applied = apply_contracts(defs, weather, tables={"nyc.hourly": written})
    job = applied.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    found = {one.check_name: one.passed for one in result.get_asset_check_evaluations()}
    assert found == {name: name != "contract_uniqueness" for name in NAMES}
    assert len(result.get_asset_materialization_events()) == 1
    spec = applied.resolve_all_asset_specs()[0]
    assert (spec.group_name, spec.kinds) == ("raw", set())
    assert "dagster/storage_kind" not in spec.metadata


def test_an_external_asset_gets_checks_too(weather, ours):
    external = dg.AssetSpec(KEY)
    applied = apply_contracts(dg.Definitions(assets=[external], resources=ours), weather)
    assert check_names(applied) == NAMES
    spec = applied.resolve_all_asset_specs()[0]
    assert spec.metadata["contract_id"] == "weather-hourly"
    named = apply_contracts(
        dg.Definitions(assets=[dg.AssetSpec("elsewhere")], resources=ours), weather, asset_keys={"hourly": "elsewhere"}
    )
    assert check_names(named, dg.AssetKey("elsewhere")) == NAMES


def test_a_contracted_asset_under_the_same_contract_stays_as_it_is(weather, ours):
    @contract_asset(contract=weather)
    def hourly() -> DataFrame: ...

    applied = apply_contracts(dg.Definitions(assets=[hourly], resources=ours), weather)
    assert check_names(applied) == NAMES
    assert list(applied.asset_checks or ()) == []
    other = weather.model_copy(update={"id": "another"})
    with pytest.raises(
        ContractsNotAppliedError, match=r"nyc/hourly has two contracts: weather-hourly 1\.10 and another 1\.10"
    ):
        apply_contracts(dg.Definitions(assets=[hourly], resources=ours), other)


def test_of_several_versions_the_newest_counts(weather, ours):
    older = weather.model_copy(update={"version": "1.9.0"})
    applied = apply_contracts(dg.Definitions(assets=[made()], resources=ours), [older, weather])
    assert applied.resolve_all_asset_specs()[0].metadata["contract_version"] == "1.10"


class Nonsense(ContractTranslator):
    def get_asset_key(self, contract, dataset):
        return "no key" if contract.id == "odd" else super().get_asset_key(contract, dataset)

    def get_owners(self, contract, dataset):
        return ["nobody at all"] if contract.id == "unowned" else super().get_owners(contract, dataset)

    def get_check_name(self, contract, dataset, check):
        return "a b" if contract.id == "unnamed" else super().get_check_name(contract, dataset, check)


def test_every_problem_is_told_at_once(weather):
    def named(identity: str, table: str):
        datasets = (weather.datasets[0].model_copy(update={"name": table}),)
        return weather.model_copy(update={"id": identity, "datasets": datasets})

    @dg.asset_check(asset=KEY, name="contract_accuracy")
    def taken():
        return dg.AssetCheckResult(passed=True)

    tables = ("hourly", "daily", "unowned", "unnamed")
    defs = dg.Definitions(
        assets=[made(["nyc", table]) for table in tables] + [made(["nyc", "plain"], io_manager_key="other")],
        asset_checks=[taken],
        resources={"other": dg.InMemoryIOManager()},
    )
    contracts = [
        weather,
        named("one", "daily"),
        named("two", "daily"),
        named("lost", "hourli"),
        named("odd", "odd"),
        named("unowned", "unowned"),
        named("unnamed", "unnamed"),
        named("plain", "plain"),
    ]
    with pytest.raises(ContractsNotAppliedError) as refused:
        apply_contracts(defs, contracts, translator=Nonsense(), tables={"nothing": "/x"})
    said = refused.value.problems
    assert [True for problem in said if "\n" in problem] == []
    for expected in (
        "the asset nyc/hourly already has a check 'contract_accuracy', which contract Weather would have too",
        "the asset nyc/daily has two contracts: one 1.10 and two 1.10",
        "is about nyc/hourli, which is no asset of these definitions. Did you mean nyc/hourly?",
        "Nonsense.get_asset_key gave 'no key' for Weather",
        "Nonsense gave what Dagster does not take for Weather",
        "Nonsense.get_check_name gave 'a b'",
        "nobody says where the table of nyc/plain is: its IO manager 'other' is a InMemoryIOManager",
        "tables names 'nothing', which is no dataset of the contracts",
    ):
        assert [problem for problem in said if expected in problem], expected
    assert len(said) == 8


def test_assets_of_spark_without_a_contract_are_told(weather, ours):
    defs = dg.Definitions(
        assets=[
            made(),
            made("by_manager"),
            made("by_kind", kinds={"pyspark"}, io_manager_key="other"),
            made("by_resource", required_resource_keys={"spark"}, io_manager_key="other"),
            made("by_none", io_manager_key="other"),
            made("named", metadata={"contract": "x.yaml"}),
            dg.AssetSpec("external"),
            dg.AssetSpec("external_spark", kinds={"spark"}),
        ],
        resources={**ours, "other": dg.InMemoryIOManager()},
    )
    with pytest.warns(UncontractedAssetWarning) as told:
        apply_contracts(defs, weather)
    (warning,) = told
    said = "Spark materializes 4 assets without a contract: by_manager, by_kind, by_resource, external_spark."
    assert str(warning.message).startswith(said)
    with pytest.raises(ContractsNotAppliedError, match="an asset without a contract: by_kind") as refused:
        apply_contracts(defs, weather, uncontracted="fail")
    assert len(refused.value.problems) == 4
    apply_contracts(defs, weather, uncontracted="ignore")
    with pytest.raises(DataboxError, match="unknown uncontracted 'no'"):
        apply_contracts(defs, weather, uncontracted="no")


def test_no_contracts_add_nothing(ours):
    others = {**ours, "other": dg.InMemoryIOManager()}
    defs = dg.Definitions(assets=[made(io_manager_key="other")], resources=others)
    assert check_names(apply_contracts(defs, [], uncontracted="fail")) == set()


def test_what_assets_consume_is_held_against_the_contracts(weather, ours):
    reader = made("reader", metadata={"consumes": {"nyc.hourly": "^2"}}, io_manager_key="other")
    with pytest.raises(ConsumersError, match=r"reader pins \^2 of weather-hourly, and there is only 1.10"):
        apply_contracts(dg.Definitions(assets=[made(), reader], resources=ours), weather)


# --- what else a contract gives an asset ------------------------------------------------------------------------------


def test_freshness_is_a_policy(weather):
    table = weather.datasets[0]
    rules = (*table.rules, Freshness(seconds=3600.0, element="at"), Freshness(seconds=7200.0, element="at"))
    fresh = weather.model_copy(update={"datasets": (table.model_copy(update={"rules": rules}),)})

    def hourly() -> DataFrame: ...

    policy = contract_asset(contract=fresh)(hourly).get_asset_spec().freshness_policy
    assert policy == dg.FreshnessPolicy.time_window(fail_window=policy.fail_window.to_timedelta())
    assert policy.fail_window.to_timedelta().total_seconds() == 3600
    assert contract_asset(contract=weather)(hourly).get_asset_spec().freshness_policy is None
    given = dg.FreshnessPolicy.cron(deadline_cron="0 10 * * *", lower_bound_delta=policy.fail_window.to_timedelta())
    own = contract_asset(contract=fresh, freshness_policy=given)(hourly)
    assert own.get_asset_spec().freshness_policy == given


# Dagster's own evaluation uses a selection that it calls beta.
@pytest.mark.filterwarnings("ignore:Parameter `include_sources`")
def test_what_reads_contracted_tables_may_wait_for_their_checks(weather, instance):
    @contract_asset(contract=weather)
    def hourly() -> DataFrame: ...

    @dg.asset(deps=[KEY], automation_condition=eager_when_checks_pass())
    def report() -> None: ...

    @dg.asset(deps=[KEY], automation_condition=dg.AutomationCondition.eager())
    def eager_report() -> None: ...

    defs = dg.Definitions(assets=[hourly, report, eager_report], resources={"io_manager": dg.InMemoryIOManager()})
    cursor = dg.evaluate_automation_conditions(defs=defs, instance=instance).cursor

    def requested(*, passed: bool) -> dict[str, int]:
        nonlocal cursor
        instance.report_runless_asset_event(dg.AssetMaterialization(KEY))
        for name in sorted(NAMES):
            holds = passed or name != "contract_accuracy"
            instance.report_runless_asset_event(
                dg.AssetCheckEvaluation(asset_key=KEY, check_name=name, passed=holds, metadata={})
            )
        result = dg.evaluate_automation_conditions(defs=defs, instance=instance, cursor=cursor)
        cursor = result.cursor
        return {name: result.get_num_requested(dg.AssetKey(name)) for name in ("report", "eager_report")}

    assert requested(passed=False) == {"report": 0, "eager_report": 1}
    assert requested(passed=True)["report"] == 1


class Automated(ContractTranslator):
    def get_automation_condition(self, contract, dataset):
        return eager_when_checks_pass()


def test_a_translator_may_automate_assets(weather):
    def hourly() -> DataFrame: ...

    automated = contract_asset(contract=weather, translator=Automated())(hourly).get_asset_spec()
    assert automated.automation_condition == eager_when_checks_pass()
    own = dg.AutomationCondition.on_missing()
    given = contract_asset(contract=weather, translator=Automated(), automation_condition=own)(hourly).get_asset_spec()
    assert given.automation_condition == own
    assert contract_asset(contract=weather)(hourly).get_asset_spec().automation_condition is None


def test_consumers_appear_without_their_contacts(weather):
    reader = Consumer("Reports", "https://hooks.example.com/x", ["hourly"], owner="quant", versions="^1")
    other = Consumer("Others", "o@example.com", ["daily"])

    def hourly() -> DataFrame: ...

    spec = contract_asset(contract=weather.model_copy(update={"consumers": (reader, other)}))(hourly).get_asset_spec()
    (record,) = spec.metadata["contract_consumers"].records
    assert record.data == {
        "consumer": "Reports",
        "owner": "quant",
        "versions": "^1",
        "fields": "all",
        "purpose": None,
        "assets": None,
    }


def test_sources_of_fields_are_column_lineage(weather):
    table = weather.datasets[0]
    sources = {"station": ("raw.gauges.code", "codes.id"), "temp": ("gauges.celsius", "somewhere.else.x"), "phone": ()}
    fields = tuple(one.model_copy(update={"sources": sources[one.name]}) for one in table.fields)
    traced = weather.model_copy(update={"datasets": (table.model_copy(update={"fields": fields}),)})

    @contract_asset(contract=traced, deps=["codes"], ins={"gauges": dg.AssetIn(key=["raw", "gauges"])})
    def hourly(gauges: DataFrame) -> DataFrame: ...

    metadata = hourly.get_asset_spec().metadata
    gauges, codes = dg.AssetKey(["raw", "gauges"]), dg.AssetKey("codes")
    assert metadata["dagster/column_lineage"] == dg.TableColumnLineage(
        {
            "station": [dg.TableColumnDep(gauges, "code"), dg.TableColumnDep(codes, "id")],
            "temp": [dg.TableColumnDep(gauges, "celsius")],
        }
    )
    assert metadata["contract_sources"].value == {"temp": ["somewhere.else.x"]}
    upstream = [dg.AssetSpec(gauges), dg.AssetSpec(codes)]
    definitions = dg.Definitions(assets=[hourly, *upstream], resources={"io_manager": dg.InMemoryIOManager()})
    dg.Definitions.validate_loadable(definitions)
