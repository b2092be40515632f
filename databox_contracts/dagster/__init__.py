"""Contracted assets, their checks and their tables in Dagster; the only room that imports dagster."""

from databox_contracts.dagster.audit_schedule import build_contract_audit_schedule
from databox_contracts.dagster.checks import build_contract_checks
from databox_contracts.dagster.component import DataContractsComponent
from databox_contracts.dagster.decorators import contract_asset
from databox_contracts.dagster.drift_schedule import build_drift_schedule
from databox_contracts.dagster.io import ContractIOManager
from databox_contracts.dagster.launched_jobs import build_contract_check_specs, contract_job_results
from databox_contracts.dagster.outbox_check import build_outbox_check
from databox_contracts.dagster.resources import SharedSparkResource
from databox_contracts.dagster.specs import build_contract_asset_specs
from databox_contracts.dagster.translator import ContractTranslator

__all__ = [
    "ContractIOManager",
    "ContractTranslator",
    "DataContractsComponent",
    "SharedSparkResource",
    "build_contract_asset_specs",
    "build_contract_audit_schedule",
    "build_contract_check_specs",
    "build_contract_checks",
    "build_drift_schedule",
    "build_outbox_check",
    "contract_asset",
    "contract_job_results",
]
