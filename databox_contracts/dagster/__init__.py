"""Contracted assets, their checks and their tables in Dagster; the only room that imports dagster."""

from databox_contracts.dagster.applying import apply_contracts
from databox_contracts.dagster.checks import build_contract_checks
from databox_contracts.dagster.consumption import Consumes
from databox_contracts.dagster.decorators import contract_asset
from databox_contracts.dagster.io import ContractIOManager
from databox_contracts.dagster.multi_decorators import contract_multi_asset
from databox_contracts.dagster.outbox_check import build_outbox_check
from databox_contracts.dagster.producers import validate_consumers
from databox_contracts.dagster.resources import SharedSparkResource
from databox_contracts.dagster.specs import build_contract_asset_specs
from databox_contracts.dagster.translator import ContractTranslator, eager_when_checks_pass
from databox_contracts.dagster.uncontracted import UncontractedAssetWarning

__all__ = [
    "Consumes",
    "ContractIOManager",
    "ContractTranslator",
    "SharedSparkResource",
    "UncontractedAssetWarning",
    "apply_contracts",
    "build_contract_asset_specs",
    "build_contract_checks",
    "build_outbox_check",
    "contract_asset",
    "contract_multi_asset",
    "eager_when_checks_pass",
    "validate_consumers",
]
