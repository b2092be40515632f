"""Contracted assets, their checks and their tables in Dagster; the only room that imports dagster."""

from databox_contracts.dagster.checks import build_contract_checks
from databox_contracts.dagster.decorators import contract_asset
from databox_contracts.dagster.io import ContractIOManager
from databox_contracts.dagster.outbox_check import build_outbox_check
from databox_contracts.dagster.resources import SharedSparkResource
from databox_contracts.dagster.specs import build_contract_asset_specs
from databox_contracts.dagster.translator import ContractTranslator

__all__ = [
    "ContractIOManager",
    "ContractTranslator",
    "SharedSparkResource",
    "build_contract_asset_specs",
    "build_contract_checks",
    "build_outbox_check",
    "contract_asset",
]
