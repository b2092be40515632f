"""Which contracts the assets of a code location were declared with, for what is said about all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import dagster as dg

if TYPE_CHECKING:
    from databox_contracts.dagster.steps import ContractStep, ContractTable

_STEPS: Final[WeakKeyDictionary[dg.OpDefinition, ContractStep]] = WeakKeyDictionary()


def remember(asset: dg.AssetsDefinition, step: ContractStep) -> dg.AssetsDefinition:
    """The asset, whose step is found again by its op, which stays when specs of the asset are replaced."""
    _STEPS[asset.op] = step
    return asset


def step_of(op: Any) -> ContractStep | None:
    """The step of a contracted asset's op; None for any other op."""
    return _STEPS.get(op) if isinstance(op, dg.OpDefinition) else None


def declared_step(asset: object) -> ContractStep | None:
    """The step of a contracted asset; None for whatever else a code location holds."""
    if not isinstance(asset, dg.AssetsDefinition) or not asset.is_executable:
        return None
    return step_of(asset.node_def)


def declared_table(op: Any, key: dg.AssetKey) -> ContractTable | None:
    """The table of that asset that the op makes, None where it makes none under a contract."""
    step = step_of(op)
    return next((table for table in step.tables if table.key == key), None) if step is not None else None
