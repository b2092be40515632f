"""Partitioned assets: a run replaces its partitions and no others, and reads the partitions it maps to."""

import warnings
from datetime import UTC, date, datetime

import dagster as dg
import pytest
from pyspark.sql import DataFrame

from databox_contracts.dagster import build_contract_checks, contract_asset, specs
from databox_contracts.datatypes import parse_type
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import Freshness, Minimum, Operator, PrimaryKey, Required, RowCount, Threshold

DAYS = dg.DailyPartitionsDefinition(start_date="2024-01-01", end_date="2024-01-06")
KEY = dg.AssetKey(["shop", "orders"])
SCHEMA = "day date, region string, id int, amount double"
FIRST, SECOND, THIRD = date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)


def orders_contract(**update) -> Contract:
    contract = Contract(
        id="orders",
        version="1.0.0",
        domain="shop",
        datasets=(
            Dataset(
                name="orders",
                fields=(
                    Field(name="day", type=parse_type("date"), rules=(Required(),)),
                    Field(name="region", type=parse_type("string")),
                    Field(name="id", type=parse_type("int")),
                    Field(name="amount", type=parse_type("double"), rules=(Minimum(limit=0),)),
                ),
                rules=(PrimaryKey(fields=("id",)),),
            ),
        ),
    )
    return contract.model_copy(update=update)


class Shop:
    """What the function returns for each run, and the runs of it."""

    def __init__(self, spark, manager, instance) -> None:
        self.spark, self.manager, self.instance = spark, manager, instance
        self.rows: list[tuple] = []

    def asset(self, contract=None, **options) -> dg.AssetsDefinition:
        options = {"partitions_def": DAYS, "partition_by": "day", **options}

        @contract_asset(contract=contract or orders_contract(), **options)
        def orders() -> DataFrame:
            return self.spark.createDataFrame(self.rows, SCHEMA)

        return orders

    def run(self, *assets, rows=None, key=None, span=None, tag=None, selection=None, **resources):
        if rows is not None:
            self.rows = rows
        tags = {} if tag is None else {"dagster/partition": tag}
        if span is not None:
            tags = {"dagster/asset_partition_range_start": span[0], "dagster/asset_partition_range_end": span[1]}
        return dg.materialize(
            list(assets),
            resources={"io_manager": self.manager, **resources},
            instance=self.instance,
            partition_key=key,
            tags=tags,
            selection=selection,
            raise_on_error=False,
        )

    def table(self, key=KEY) -> list[tuple]:
        return sorted(tuple(row) for row in self.manager.read(key).select(*SCHEMA.split()[::2]).collect())


@pytest.fixture
def shop(spark, manager, instance) -> Shop:
    return Shop(spark, manager, instance)


def errors(result) -> str:
    return "\n".join(event.step_failure_data.error_display_string for event in result.get_step_failure_events())


def checks(result) -> dict:
    return {one.check_name: one for one in result.get_asset_check_evaluations()}


def lines(evaluation) -> list[tuple]:
    return [tuple(record.data.values()) for record in evaluation.metadata["partitions"].records]


def test_a_run_replaces_its_partition_and_no_other(shop):
    asset = shop.asset()
    assert shop.run(asset, key="2024-01-01", rows=[(FIRST, "a", 1, 1.0), (FIRST, "b", 2, 2.0)]).success
    assert shop.run(asset, key="2024-01-02", rows=[(SECOND, "a", 1, 3.0)]).success
    assert len(shop.table()) == 3, "the same key in another partition is another row"
    result = shop.run(asset, key="2024-01-01", rows=[(FIRST, "c", 9, 9.0)])
    assert result.success
    assert shop.table() == [(FIRST, "c", 9, 9.0), (SECOND, "a", 1, 3.0)]
    (event,) = result.get_asset_materialization_events()
    assert event.partition == "2024-01-01"
    assert event.step_materialization_data.materialization.metadata["dagster/row_count"].value == 1
    assert shop.instance.get_materialized_partitions(KEY) == {"2024-01-01", "2024-01-02"}
    assert asset.get_asset_spec().metadata["partition_expr"] == "day"


def test_a_partition_that_comes_out_empty_becomes_empty(shop):
    asset = shop.asset()
    shop.run(asset, key="2024-01-01", rows=[(FIRST, "a", 1, 1.0)])
    shop.run(asset, key="2024-01-02", rows=[(SECOND, "a", 1, 1.0)])
    assert shop.run(asset, key="2024-01-01", rows=[]).success
    assert shop.table() == [(SECOND, "a", 1, 1.0)]


def test_rows_of_another_partition_are_an_error_and_nothing_is_written(shop):
    asset = shop.asset()
    shop.run(asset, key="2024-01-01", rows=[(FIRST, "a", 1, 1.0)])
    result = shop.run(asset, key="2024-01-01", rows=[(FIRST, "b", 2, 2.0), (SECOND, "b", 3, 2.0)])
    assert not result.success
    assert "there are rows of 1 partition that this publish does not answer for: day=2024-01-02" in errors(result)
    assert checks(result) == {}
    assert shop.table() == [(FIRST, "a", 1, 1.0)]


def test_a_violated_partition_stays_as_it_was(shop):
    asset = shop.asset(retry_policy=dg.RetryPolicy(max_retries=2))
    shop.run(asset, key="2024-01-01", rows=[(FIRST, "a", 1, 1.0)])
    result = shop.run(asset, key="2024-01-01", rows=[(FIRST, "b", 2, -2.0)])
    assert not result.success
    assert [name for name, one in checks(result).items() if not one.passed] == ["contract_accuracy"]
    assert "partitions" not in checks(result)["contract_accuracy"].metadata
    assert shop.table() == [(FIRST, "a", 1, 1.0)]
    assert sum(event.is_step_start or event.is_step_restarted for event in result.all_events) == 1


def test_a_run_over_a_range_tells_of_each_partition(shop):
    asset = shop.asset(backfill_policy=dg.BackfillPolicy.single_run())
    span = ("2024-01-01", "2024-01-03")
    rows = [(FIRST, "a", 1, 1.0), (SECOND, "a", 1, -1.0), (SECOND, "b", 2, 5.0)]
    result = shop.run(asset, span=span, rows=rows)
    assert not result.success
    failed = checks(result)["contract_accuracy"]
    assert lines(failed) == [
        ("day=2024-01-01", 1, "passed", ""),
        ("day=2024-01-02", 2, "failed", "orders.amount.minimum: 1 of 2 rows (50 %) are below 0"),
        ("day=2024-01-03", 0, "passed", ""),
    ]
    held = checks(result)["contract_uniqueness"]
    assert [line[2] for line in lines(held)] == ["passed", "passed", "passed"], "keys are those of each partition"
    assert not shop.manager.place(KEY).link.exists()

    good = shop.run(asset, span=span, rows=[(FIRST, "a", 1, 1.0), (SECOND, "a", 1, 1.0)])
    assert good.success
    assert [event.partition for event in good.get_asset_materialization_events()] == [
        "2024-01-01",
        "2024-01-02",
        "2024-01-03",
    ]
    assert len(shop.table()) == 2


def test_quarantine_tells_of_the_rows_that_came_in(shop):
    asset = shop.asset(on_violation="quarantine", backfill_policy=dg.BackfillPolicy.single_run())
    rows = [(FIRST, "a", 1, 1.0), (SECOND, "a", 1, -1.0), (SECOND, "b", 2, 5.0)]
    result = shop.run(asset, span=("2024-01-01", "2024-01-02"), rows=rows)
    assert result.success
    failed = checks(result)["contract_accuracy"]
    assert [line[:3] for line in lines(failed)] == [("day=2024-01-01", 1, "passed"), ("day=2024-01-02", 2, "failed")]
    assert shop.table() == [(FIRST, "a", 1, 1.0), (SECOND, "b", 2, 5.0)]


def only_checks(asset):
    return dg.AssetSelection.checks(*asset.check_keys)


def test_checks_alone_look_at_the_partition_of_the_run(shop):
    shop.run(shop.asset(on_violation="warn"), key="2024-01-01", rows=[(FIRST, "a", 1, -1.0)])
    shop.run(shop.asset(), key="2024-01-02", rows=[(SECOND, "a", 1, 1.0)])
    asset = shop.asset()
    good = shop.run(asset, tag="2024-01-02", selection=only_checks(asset))
    assert good.success
    assert {one.metadata["rows_in"].value for one in checks(good).values()} == {1}
    bad = shop.run(asset, tag="2024-01-01", selection=only_checks(asset))
    assert not bad.success
    assert [name for name, one in checks(bad).items() if not one.passed] == ["contract_accuracy"]


def test_an_old_partition_is_filled_and_checked_again_while_the_table_is_fresh(shop):
    age = (datetime.now(UTC) - datetime(2024, 1, 2, tzinfo=UTC)).total_seconds()
    dataset = orders_contract().datasets[0]
    dataset = dataset.model_copy(update={"rules": (*dataset.rules, Freshness(seconds=age, element="day"))})
    asset = shop.asset(orders_contract(datasets=(dataset,)))
    assert not shop.run(asset, key="2024-01-01", rows=[(FIRST, "a", 1, 1.0)]).success, "nothing in the table is fresh"
    assert shop.run(asset, key="2024-01-03", rows=[(THIRD, "a", 1, 1.0)]).success
    assert shop.run(asset, key="2024-01-01", rows=[(FIRST, "a", 1, 1.0)]).success
    result = shop.run(asset, tag="2024-01-01", selection=only_checks(asset))
    assert {one.passed for one in checks(result).values()} == {True}


def test_checks_of_all_partitions_compare_keys_within_each(shop):
    asset = shop.asset()
    shop.run(asset, key="2024-01-01", rows=[(FIRST, "a", 1, 1.0)])
    shop.run(asset, key="2024-01-02", rows=[(SECOND, "a", 1, 1.0)])
    result = shop.run(asset, selection=only_checks(asset))
    assert result.success
    assert {one.metadata["rows_in"].value for one in checks(result).values()} == {2}
    assert all(one.passed for one in checks(result).values())


def test_checks_of_a_range_tell_of_each_partition(shop):
    counted = orders_contract()
    table = counted.datasets[0]
    rules = (*table.rules, RowCount(threshold=Threshold(Operator.GREATER_OR_EQUAL, 1)))
    counted = counted.model_copy(update={"datasets": (table.model_copy(update={"rules": rules}),)})
    shop.run(shop.asset(), key="2024-01-01", rows=[(FIRST, "a", 1, 1.0)])
    asset = shop.asset(counted, backfill_policy=dg.BackfillPolicy.single_run())
    result = shop.run(asset, span=("2024-01-01", "2024-01-02"), selection=only_checks(asset))
    assert not result.success
    (name,) = [name for name, one in checks(result).items() if not one.passed]
    assert [line[:3] for line in lines(checks(result)[name])] == [
        ("day=2024-01-01", 1, "passed"),
        ("day=2024-01-02", 0, "failed"),
    ]


def test_checks_of_their_own_judge_each_partition_too(shop):
    asset = shop.asset()
    shop.run(asset, key="2024-01-01", rows=[(FIRST, "a", 1, 1.0)])
    shop.run(asset, key="2024-01-02", rows=[(SECOND, "a", 1, 1.0)])
    audit = build_contract_checks(orders_contract(), asset_key=KEY)
    result = dg.materialize(
        [dg.AssetSpec(KEY), *audit],
        resources={"io_manager": shop.manager},
        instance=shop.instance,
        selection=dg.AssetSelection.all_asset_checks(),
    )
    assert {one.check_name: one.passed for one in result.get_asset_check_evaluations()} == dict.fromkeys(
        checks(result), True
    )
    assert {one.metadata["rows_in"].value for one in checks(result).values()} == {2}


def test_checks_are_partitioned_where_dagster_has_that_as_a_settled_feature(shop, monkeypatch):
    assert not specs.checks_take_partitions(), "this Dagster warns of it as a preview"
    assert all(spec.partitions_def is None for spec in shop.asset().check_specs)
    monkeypatch.setattr(specs, "checks_take_partitions", lambda: True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asset = shop.asset(backfill_policy=dg.BackfillPolicy.single_run())
    assert all(spec.partitions_def == DAYS for spec in asset.check_specs)
    result = shop.run(asset, key="2024-01-01", rows=[(FIRST, "a", 1, 1.0)])
    assert result.success
    assert {one.partition for one in checks(result).values()} == {"2024-01-01"}


def test_a_partition_that_there_is_not_is_named(shop):
    asset = shop.asset(partitions_def=dg.DynamicPartitionsDefinition(name="regions"), partition_by="region")
    result = shop.run(asset, tag="nowhere", rows=[])
    assert "shop/orders has no partition 'nowhere'" in errors(result)
    shop.instance.add_dynamic_partitions("regions", ["here"])
    assert shop.run(asset, key="here", rows=[(FIRST, "here", 1, 1.0)]).success
    assert shop.run(asset, rows=[]).success is False
    assert "is partitioned by region, and this run names no partition" in errors(shop.run(asset, rows=[]))


def test_dimensions_are_columns(shop):
    both = dg.MultiPartitionsDefinition({"date": DAYS, "region": dg.StaticPartitionsDefinition(["a", "b"])})
    asset = shop.asset(partitions_def=both, partition_by={"date": "day", "region": "region"})
    key = dg.MultiPartitionKey({"date": "2024-01-01", "region": "a"})
    assert shop.run(asset, key=key, rows=[(FIRST, "a", 1, 1.0)]).success
    other = dg.MultiPartitionKey({"date": "2024-01-01", "region": "b"})
    assert shop.run(asset, key=other, rows=[(FIRST, "b", 2, 1.0)]).success
    assert shop.run(asset, key=key, rows=[]).success
    assert shop.table() == [(FIRST, "b", 2, 1.0)]
    wrong = shop.run(asset, key=key, rows=[(FIRST, "b", 2, 1.0)])
    assert "rows of 1 partition that this publish does not answer for: day=2024-01-01, region=b" in errors(wrong)


def test_a_week_is_its_days(shop):
    weeks = dg.WeeklyPartitionsDefinition(start_date="2024-01-07")
    asset = shop.asset(partitions_def=weeks)
    sunday, saturday, next_sunday = date(2024, 1, 7), date(2024, 1, 13), date(2024, 1, 14)
    assert shop.run(asset, key="2024-01-07", rows=[(sunday, "a", 1, 1.0), (saturday, "a", 1, 1.0)]).success
    late = shop.run(asset, key="2024-01-07", rows=[(next_sunday, "a", 1, 1.0)])
    assert "day=2024-01-14" in errors(late)
    assert shop.run(asset, key="2024-01-07", rows=[(saturday, "b", 1, 1.0)]).success
    assert shop.table() == [(saturday, "b", 1, 1.0)], "a day of the week without rows becomes empty"


# --- inputs -----------------------------------------------------------------------------------------------------------


# A backfill policy of Dagster's own decorator is in beta.
single_run = pytest.mark.filterwarnings("ignore:Parameter `backfill_policy`")


def reader(seen: list, **asset_in) -> dg.AssetsDefinition:
    partitions = asset_in.pop("partitions_def", None)

    @dg.asset(
        ins={"orders": dg.AssetIn(key=KEY, **asset_in)},
        partitions_def=partitions,
        io_manager_key="plain",
        name="reader",
        backfill_policy=dg.BackfillPolicy.single_run() if partitions else None,
    )
    def reader(orders: DataFrame) -> None:
        seen.append(sorted(row.id for row in orders.collect()))

    return reader


@pytest.fixture
def filled(shop) -> Shop:
    asset = shop.asset()
    shop.run(asset, key="2024-01-01", rows=[(FIRST, "a", 1, 1.0)])
    shop.run(asset, key="2024-01-02", rows=[(SECOND, "a", 2, 1.0)])
    shop.run(asset, key="2024-01-03", rows=[])
    return shop


@single_run
def test_an_input_has_the_rows_of_the_partitions_it_maps_to(filled):
    seen: list = []
    asset, plain = filled.asset(), dg.InMemoryIOManager()

    def read(downstream, **how):
        return filled.run(asset, downstream, selection=[downstream], plain=plain, **how)

    same = reader(seen, partitions_def=DAYS)
    assert read(same, key="2024-01-02").success
    assert read(same, key="2024-01-03").success, "an empty partition is one"
    yesterday = dg.TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)
    assert read(reader(seen, partitions_def=DAYS, partition_mapping=yesterday), key="2024-01-02").success
    assert read(same, span=("2024-01-01", "2024-01-02")).success
    assert read(reader(seen)).success, "without partitions, all of it"
    last = reader(seen, partition_mapping=dg.SpecificPartitionsPartitionMapping(["2024-01-02"]))
    assert read(last).success
    assert seen == [[2], [], [1], [1, 2], [1, 2], [2]]


@single_run
def test_an_input_whose_partition_was_never_published_is_told(filled):
    seen: list = []
    same = reader(seen, partitions_def=DAYS)
    plain = dg.InMemoryIOManager()
    result = filled.run(filled.asset(), same, selection=[same], plain=plain, key="2024-01-04")
    assert "its partition 2024-01-04 was not published yet" in errors(result)
    lenient = reader(seen, partitions_def=DAYS, metadata={"allow_missing_partitions": True})
    assert filled.run(filled.asset(), lenient, selection=[lenient], plain=plain, key="2024-01-04").success
    assert seen == [[]]


def test_contracted_assets_read_by_partition_too(filled):
    copied = orders_contract(domain="copied")

    @contract_asset(contract=copied, partitions_def=DAYS, partition_by="day", consumes={"shop.orders": "^1"})
    def copy(orders: DataFrame) -> DataFrame:
        return orders

    result = filled.run(filled.asset(), copy, selection=[copy], key="2024-01-02")
    assert result.success
    assert filled.table(dg.AssetKey(["copied", "orders"])) == [(SECOND, "a", 2, 1.0)]


CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, partitioned: true}
      - {name: region, logicalType: string}
      - {name: id, logicalType: integer}
      - {name: amount, logicalType: number, required: true}
"""


@single_run
@pytest.mark.parametrize("said", [{}, {"partition_expr": "day"}])
def test_plain_assets_publish_by_partition(shop, spark, tmp_path, said):
    """The column is said by Dagster's own metadata, or by the contract."""
    path = tmp_path / "orders.yaml"
    path.write_text(CONTRACT)

    @dg.asset(metadata={"contract": str(path), **said}, partitions_def=DAYS, key=KEY)
    def orders() -> DataFrame:
        return spark.createDataFrame(shop.rows, SCHEMA)

    assert shop.run(orders, key="2024-01-01", rows=[(FIRST, "a", 1, 1.0)]).success
    assert shop.run(orders, key="2024-01-02", rows=[(SECOND, "a", 2, 1.0)]).success
    assert shop.table() == [(FIRST, "a", 1, 1.0), (SECOND, "a", 2, 1.0)]
    assert "day=2024-01-01" in errors(shop.run(orders, key="2024-01-02", rows=[(FIRST, "a", 1, 1.0)]))
    seen: list = []
    same = reader(seen, partitions_def=DAYS)
    assert shop.run(orders, same, selection=[same], plain=dg.InMemoryIOManager(), key="2024-01-01").success
    assert seen == [[1]]


# --- what is refused --------------------------------------------------------------------------------------------------

HOURS = dg.HourlyPartitionsDefinition(start_date="2024-01-01-00:00")
STATIC = dg.StaticPartitionsDefinition(["1", "x"])
BOTH = dg.MultiPartitionsDefinition({"date": DAYS, "region": dg.StaticPartitionsDefinition(["a"])})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"partition_by": None}, "nobody says which column of orders tells a row's partition"),
        ({"partition_by": "month"}, "orders declares no field 'month' to partition orders by"),
        ({"partition_by": "amount"}, "of type number(64), which makes no partitions"),
        ({"partition_by": "day", "partitions_def": HOURS}, "a partition of day would be a part of a day"),
        ({"partition_by": "id", "partitions_def": STATIC}, "the partition key 'x' is no value of id"),
        ({"partition_by": "day", "partitions_def": STATIC}, "the partition key '1' is no date"),
        ({"partition_by": "day", "partitions_def": BOTH}, "has the dimensions date, region, and one column is named"),
        ({"partition_by": {"date": "day"}, "partitions_def": BOTH}, "have the dimensions date, region"),
        ({"partition_by": {"date": "day"}}, "have no dimensions, and columns are named for {'date': 'day'}"),
        (
            {"partition_by": {"date": "region", "region": "region"}, "partitions_def": BOTH},
            "two dimensions of orders are the column region",
        ),
    ],
)
def test_what_makes_no_partitions_is_refused_when_the_code_is_loaded(options, said):
    def orders() -> DataFrame: ...

    with pytest.raises(DataboxError) as refused:
        contract_asset(**{"contract": orders_contract(), "partitions_def": DAYS, **options})(orders)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_personal_values_make_no_partition_keys():
    table = orders_contract().datasets[0]
    hidden = tuple(one.model_copy(update={"pii": one.name == "region"}) for one in table.fields)
    contract = orders_contract(datasets=(table.model_copy(update={"fields": hidden}),))

    def orders() -> DataFrame: ...

    with pytest.raises(DataboxError, match="must not be shown, and Dagster shows partition keys"):
        contract_asset(contract=contract, partitions_def=STATIC, partition_by="region")(orders)


def test_hours_are_a_column_of_strings(shop):
    asset = shop.asset(partitions_def=HOURS, partition_by="region")
    assert shop.run(asset, key="2024-01-01-05:00", rows=[(FIRST, "2024-01-01-05:00", 1, 1.0)]).success
    assert [row[1] for row in shop.table()] == ["2024-01-01-05:00"]
