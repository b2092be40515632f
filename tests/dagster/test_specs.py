"""How a contract appears in Dagster: specs, checks, and what a translator may change."""

from pathlib import Path

import dagster as dg
import pytest

from databox_contracts.dagster import ContractTranslator, build_contract_asset_specs
from databox_contracts.dagster.specs import check_groups, check_specs
from databox_contracts.datatypes import parse_type
from databox_contracts.errors import DataboxError, Position
from databox_contracts.model import Contract, Dataset, Field, Member, Team
from databox_contracts.rules import (
    Dimension,
    Enum,
    MaxLength,
    Minimum,
    NotEnforced,
    NullCount,
    Operator,
    Required,
    RowCount,
    Severity,
    Threshold,
    Unique,
    Unit,
)


@pytest.fixture
def orders(tmp_path: Path) -> Contract:
    file = tmp_path / "orders.yaml"
    file.write_text("id: orders\n")
    item = Field(
        name="item",
        fields=(
            Field(name="sku", type=parse_type("string"), rules=(MaxLength(length=8),)),
            Field(name="count", type=parse_type("int"), rules=(Required(), Minimum(limit=0))),
        ),
    )
    return Contract(
        id="orders",
        version="2.0.0",
        status="active",
        domain="retail sales",
        description="What was bought.",
        tags=("gold", "needs review"),
        team=Team(
            name="Data Platform",
            members=(
                Member(username="owner@example.com", role="owner"),
                Member(username="left@example.com", role="owner", date_out="2024-01-01"),
                Member(username="steward1", role="steward"),
            ),
        ),
        source=str(file),
        datasets=(
            Dataset(
                name="orders",
                physical_name="tbl_orders",
                position=Position(7, 3),
                tags=("fact",),
                fields=(
                    Field(name="id", type=parse_type("bigint"), rules=(Required(), Unique()), description="The order."),
                    Field(
                        name="state",
                        column_name="order_state",
                        type=parse_type("varchar(9)"),
                        rules=(
                            Enum(values=("new", "paid", "")),
                            NullCount(threshold=Threshold(Operator.LESS_THAN, 5, unit=Unit.PERCENT)),
                        ),
                        classification="confidential",
                    ),
                    Field(name="items", rules=(), item=item),
                ),
                rules=(
                    RowCount(threshold=Threshold(Operator.BETWEEN, 1, 100), severity=Severity.WARNING),
                    Unique(fields=("id", "state")),
                    NotEnforced(reason="prose", description="Ids are never reused.", dimension=Dimension.CONSISTENCY),
                ),
            ),
        ),
    )


def test_the_spec_says_what_the_contract_says(orders: Contract) -> None:
    (spec,) = build_contract_asset_specs(orders)
    assert spec.key == dg.AssetKey(["retail_sales", "orders"])
    assert spec.group_name == "retail_sales"
    assert spec.description == "What was bought."
    assert list(spec.owners) == ["team:Data_Platform", "owner@example.com"]
    assert spec.kinds == {"spark", "parquet"}
    assert {name: value for name, value in spec.tags.items() if not name.startswith("dagster/kind")} == {
        "gold": "",
        "needs_review": "",
        "fact": "",
    }
    metadata = spec.metadata
    assert metadata["dagster/table_name"] == "tbl_orders"
    assert metadata["dagster/io_manager_key"] == "io_manager"
    assert (metadata["contract_id"], metadata["contract_version"]) == ("orders", "2.0.0")
    assert (metadata["contract_status"], metadata["contract_owner"]) == ("active", "Data Platform")
    assert metadata["contract_tags"].value == ["gold", "needs review", "fact"], "as written, nothing is lost"
    assert [member["username"] for member in metadata["contract_team"].value] == ["left@example.com", "steward1"]
    assert metadata["contract_not_enforced"].value == ["Ids are never reused. (not enforced: prose)"]
    (reference,) = metadata["dagster/code_references"].code_references
    assert (reference.file_path, reference.line_number) == (orders.source, 7)


def test_the_column_schema_has_types_and_constraints(orders: Contract) -> None:
    (spec,) = build_contract_asset_specs(orders)
    schema = spec.metadata["dagster/column_schema"]
    shown = {
        column.name: (column.type, column.constraints.nullable, column.constraints.unique, column.constraints.other)
        for column in schema.columns
    }
    assert shown == {
        "id": ("integer(64)", False, True, []),
        "order_state": ("string(9)", True, False, ["enum new, paid, ", "null count < 5%", "max length 9"]),
        "items": (
            "array(object(sku string, count integer(32)))",
            True,
            False,
            ["sku: max length 8", "count: required", "count: minimum 0"],
        ),
    }
    assert schema.columns[0].description == "The order."
    assert schema.columns[1].tags == {"classification": "confidential"}
    assert schema.constraints.other == [
        "row count between 1 and 100 (warning)",
        "unique id, state",
        "Ids are never reused. (not enforced: prose)",
    ]


def test_checks_are_one_per_dimension_and_block_by_severity(orders: Contract) -> None:
    dataset = orders.datasets[0]
    groups = check_groups(orders, dataset, ContractTranslator())
    specs = check_specs(orders, dataset, groups, dg.AssetKey("orders"))
    assert {spec.name: spec.blocking for spec in specs} == {
        "contract_conformity": True,
        "contract_completeness": True,
        "contract_uniqueness": True,
        "contract_accuracy": True,
        "contract_coverage": False,
    }, "a promise that nobody checks is no check: contract_consistency is not there"
    described = {spec.name: spec.description for spec in specs}
    assert described["contract_coverage"] == (
        "Contract orders 2.0.0, owned by Data Platform: 1 rule.\n\n"
        "- `orders.row_count`: row count between 1 and 100 (warning)"
    )


@pytest.mark.parametrize(("granularity", "count"), [("contract", 1), ("dimension", 5), ("rule", 20)])
def test_the_granularity_decides_how_many_checks_there_are(orders: Contract, granularity, count) -> None:
    groups = check_groups(orders, orders.datasets[0], ContractTranslator(granularity=granularity))
    assert len(groups) == count
    if granularity == "rule":
        assert "orders.items.sku.max_length" in {group.name for group in groups}


def test_an_unknown_granularity_names_the_known_ones() -> None:
    with pytest.raises(DataboxError, match="contract, dimension, rule"):
        ContractTranslator(granularity="column")  # type: ignore[arg-type]


def test_a_translator_overrides_one_thing_at_a_time(orders: Contract) -> None:
    class Ours(ContractTranslator):
        def get_asset_key(self, contract: Contract, dataset: Dataset) -> dg.AssetKey:
            return dg.AssetKey(["lake", dataset.table_name])

        def get_owners(self, contract: Contract, dataset: Dataset) -> list[str]:
            return ["team:lake"]

    (spec,) = build_contract_asset_specs(orders, translator=Ours(), io_manager_key="lake_io")
    assert spec.key == dg.AssetKey(["lake", "tbl_orders"])
    assert list(spec.owners) == ["team:lake"]
    assert spec.metadata["dagster/io_manager_key"] == "lake_io"
    assert "owner@example.com" in [member["username"] for member in spec.metadata["contract_team"].value]


def test_a_translator_that_gives_nonsense_is_named(orders: Contract) -> None:
    class NoKey(ContractTranslator):
        def get_asset_key(self, contract, dataset):
            return "orders"

    class BadOwner(ContractTranslator):
        def get_owners(self, contract, dataset):
            return ["Data Platform"]

    class BadName(ContractTranslator):
        def get_check_name(self, contract, dataset, check):
            return "my checks"

    with pytest.raises(DataboxError, match=r"NoKey.get_asset_key gave 'orders' for orders\. Return a dagster.AssetKey"):
        build_contract_asset_specs(orders, translator=NoKey())
    with pytest.raises(DataboxError, match="BadOwner gave what Dagster does not take for orders"):
        build_contract_asset_specs(orders, translator=BadOwner())
    with pytest.raises(DataboxError, match=r"BadName.get_check_name gave 'my checks' for orders.id.present"):
        check_groups(orders, orders.datasets[0], BadName())


def test_a_contract_that_says_little_still_has_a_spec() -> None:
    bare = Contract(id="x", version="1", datasets=(Dataset(name="a b/c"),))
    (spec,) = build_contract_asset_specs(bare)
    assert spec.key == dg.AssetKey("a_b_c")
    assert (list(spec.owners), spec.group_name) == ([], None)
    assert spec.metadata["contract_owner"] == "none declared"
    assert "dagster/code_references" not in spec.metadata


def test_an_owner_may_be_an_address() -> None:
    owned = Contract(id="x", version="1", owner="quant@example.com", datasets=(Dataset(name="a"),))
    (spec,) = build_contract_asset_specs(owned)
    assert list(spec.owners) == ["quant@example.com"]
