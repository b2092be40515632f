"""Contracted assets, their checks and their tables in Dagster; the only room that imports dagster."""

from databox_contracts.dagster.applying import apply_contracts
from databox_contracts.dagster.audit_schedule import build_contract_audit_schedule
from databox_contracts.dagster.checks import build_contract_checks
from databox_contracts.dagster.compatibility_checks import build_compatibility_checks
from databox_contracts.dagster.component import DataContractsComponent
from databox_contracts.dagster.consumption import Consumes
from databox_contracts.dagster.decorators import contract_asset
from databox_contracts.dagster.delivery_sensor import build_delivery_sensor
from databox_contracts.dagster.drift_schedule import build_drift_schedule
from databox_contracts.dagster.failure_sensor import build_contract_failure_sensor
from databox_contracts.dagster.io import ContractIOManager
from databox_contracts.dagster.launched_jobs import build_contract_check_specs, contract_job_results
from databox_contracts.dagster.multi_decorators import contract_multi_asset
from databox_contracts.dagster.outbox_check import build_outbox_check
from databox_contracts.dagster.producers import validate_consumers
from databox_contracts.dagster.registry_resources import ContractRegistryResource, NotifierResource
from databox_contracts.dagster.resources import SharedSparkResource
from databox_contracts.dagster.schema_diff_sensor import build_schema_diff_sensor
from databox_contracts.dagster.specs import build_contract_asset_specs
from databox_contracts.dagster.translator import ContractTranslator, eager_when_checks_pass
from databox_contracts.dagster.uncontracted import UncontractedAssetWarning

__all__ = [
    "Consumes",
    "ContractIOManager",
    "ContractRegistryResource",
    "ContractTranslator",
    "DataContractsComponent",
    "NotifierResource",
    "SharedSparkResource",
    "UncontractedAssetWarning",
    "apply_contracts",
    "build_compatibility_checks",
    "build_contract_asset_specs",
    "build_contract_audit_schedule",
    "build_contract_check_specs",
    "build_contract_checks",
    "build_contract_failure_sensor",
    "build_delivery_sensor",
    "build_drift_schedule",
    "build_outbox_check",
    "build_schema_diff_sensor",
    "contract_asset",
    "contract_job_results",
    "contract_multi_asset",
    "eager_when_checks_pass",
    "validate_consumers",
]
