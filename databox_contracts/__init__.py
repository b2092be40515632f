"""Data contracts that hold, for Dagster deployments whose tables are made by Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from databox_contracts.declare import ContractBase, contract, validate_data
    from databox_contracts.errors import (
        ContractError,
        ContractViolationError,
        DataboxError,
        DataValidationError,
        Finding,
        PublicationError,
        SparkUnavailableError,
        UnknownDatasetError,
        UnreadableTableError,
    )
    from databox_contracts.evolution.changes import ChangeType
    from databox_contracts.evolution.judging import diff
    from databox_contracts.evolution.report import FieldChange, MigrationReport
    from databox_contracts.evolution.schema_diff import SchemaDiff
    from databox_contracts.formats import dump_contract, load_contract, load_contracts
    from databox_contracts.model import Consumer, Contract, Dataset, Field
    from databox_contracts.notify.bus import NotificationBus
    from databox_contracts.results import CheckResult, Status, Verdict
    from databox_contracts.row_validation import ValidationError, ValidationResult
    from databox_contracts.rules import Dimension, Rule, Severity, Threshold
    from databox_contracts.schema_registry import SchemaRegistry, SchemaVersion

# Names are resolved on first use: importing the package must stay cheap and load none of what the rooms need.
_HOMES = {
    **dict.fromkeys(("ContractBase", "contract", "validate_data"), "declare"),
    **dict.fromkeys(
        (
            "ContractError",
            "ContractViolationError",
            "DataValidationError",
            "DataboxError",
            "Finding",
            "PublicationError",
            "SparkUnavailableError",
            "UnknownDatasetError",
            "UnreadableTableError",
        ),
        "errors",
    ),
    "ChangeType": "evolution.changes",
    "diff": "evolution.judging",
    **dict.fromkeys(("FieldChange", "MigrationReport"), "evolution.report"),
    "SchemaDiff": "evolution.schema_diff",
    **dict.fromkeys(("dump_contract", "load_contract", "load_contracts"), "formats"),
    **dict.fromkeys(("Consumer", "Contract", "Dataset", "Field"), "model"),
    "NotificationBus": "notify.bus",
    **dict.fromkeys(("CheckResult", "Status", "Verdict"), "results"),
    **dict.fromkeys(("ValidationError", "ValidationResult"), "row_validation"),
    **dict.fromkeys(("Dimension", "Rule", "Severity", "Threshold"), "rules"),
    **dict.fromkeys(("SchemaRegistry", "SchemaVersion"), "schema_registry"),
}

__all__ = [
    "ChangeType",
    "CheckResult",
    "Consumer",
    "Contract",
    "ContractBase",
    "ContractError",
    "ContractViolationError",
    "DataValidationError",
    "DataboxError",
    "Dataset",
    "Dimension",
    "Field",
    "FieldChange",
    "Finding",
    "MigrationReport",
    "NotificationBus",
    "PublicationError",
    "Rule",
    "SchemaDiff",
    "SchemaRegistry",
    "SchemaVersion",
    "Severity",
    "SparkUnavailableError",
    "Status",
    "Threshold",
    "UnknownDatasetError",
    "UnreadableTableError",
    "ValidationError",
    "ValidationResult",
    "Verdict",
    "contract",
    "diff",
    "dump_contract",
    "load_contract",
    "load_contracts",
    "validate_data",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
