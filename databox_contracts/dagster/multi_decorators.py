"""`@contract_multi_asset`: a function that returns a Spark DataFrame for each dataset of its contract."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from databox_contracts.dagster.consumption import ConsumesGiven, read_consumes
from databox_contracts.dagster.declaring import (
    Told,
    assemble,
    declare_table,
    merged_deps,
    refuse_others,
    require_plain,
)
from databox_contracts.dagster.io import reference_keys, require_mode
from databox_contracts.dagster.loading import collection_paused
from databox_contracts.dagster.partitions import PartitionBy
from databox_contracts.dagster.producers import ApprovalsGiven
from databox_contracts.dagster.signatures import input_keys, read_parameters
from databox_contracts.dagster.specs import asset_key, resolve_contract
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset
from databox_contracts.schema_modes import ModesGiven, parse_modes

if TYPE_CHECKING:
    from databox_contracts.spark.publication import OnViolation


def contract_multi_asset(
    function: Any = None,
    /,
    *,
    contract: Contract | str | Path | None = None,
    datasets: Sequence[str] | None = None,
    name: str | None = None,
    on_violation: OnViolation | Mapping[str, OnViolation] = "fail",
    schema_modes: ModesGiven = None,
    consumes: Mapping[str, ConsumesGiven] | None = None,
    approvals: ApprovalsGiven = None,
    references: Mapping[str, Any] | None = None,
    samples: int = 5,
    translator: ContractTranslator | None = None,
    io_manager_key: str = "io_manager",
    keys: Mapping[str, dg.AssetKey | str | Sequence[str]] | None = None,
    ins: Mapping[str, dg.AssetIn] | None = None,
    deps: Iterable[Any] | None = None,
    group_name: str | None = None,
    owners: Sequence[str] | None = None,
    tags: Mapping[str, str] | None = None,
    kinds: set[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    code_version: str | None = None,
    automation_condition: dg.AutomationCondition[Any] | None = None,
    freshness_policy: dg.FreshnessPolicy | None = None,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    partition_by: PartitionBy | None = None,
    backfill_policy: dg.BackfillPolicy | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    op_tags: Mapping[str, Any] | None = None,
    config_schema: Any = None,
    required_resource_keys: set[str] | None = None,
    resource_defs: Mapping[str, object] | None = None,
    hooks: set[dg.HookDefinition] | None = None,
    pool: str | None = None,
    **others: Any,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """The datasets of one contract as assets of one function, each published and judged on its own.

    The function returns a mapping from the names of the datasets to Spark DataFrames, of those that are selected at
    least (`context.selected_asset_keys`). `datasets` names some of the contract's, in the order in which they are
    published; all of them if not given. One that breaks its promises is not published, and the step fails once the
    others have had their turn: what they did stays. `on_violation` is one mode, or one for some of the datasets, the
    others failing; `keys` says which assets they are where the translator does not. `partition_by` holds for every
    dataset. `name` is the op's, the function's if not given.

    All else is as for `contract_asset`, and the same for each of the datasets; `references` may lead from one of them
    to another, which is then judged against what is published when its turn comes.

    Raises `ContractError` for a contract that cannot be used, `DataboxError` for arguments that make no sense.
    """
    if function is not None or contract is None:
        raise DataboxError(
            "contract_multi_asset needs a contract, by name",
            hint='Write @contract_multi_asset(contract="contracts/x.yaml").',
        )
    refuse_others(others, "contract_multi_asset")
    referenced = reference_keys(references or {})
    told = Told(
        translator=translator if translator is not None else ContractTranslator(),
        io_manager_key=io_manager_key,
        schema_modes=parse_modes(schema_modes),
        consumes=read_consumes(consumes),
        approvals=approvals,
        references=referenced,
        samples=samples,
        partitions_def=partitions_def,
        partition_by=partition_by,
        group_name=group_name,
        description=None,
        owners=owners,
        tags=tags,
        kinds=kinds,
        metadata=metadata,
        code_version=code_version,
        automation_condition=automation_condition,
        freshness_policy=freshness_policy,
    )

    @collection_paused()
    def decorate(function: Callable[..., Any]) -> dg.AssetsDefinition:
        require_plain(function, "contract_multi_asset")
        resolved = resolve_contract(contract, beside=function.__code__.co_filename)
        chosen = [resolved.dataset(one) for one in datasets] if datasets is not None else list(resolved.datasets)
        if not chosen:
            raise DataboxError(f"{resolved.title} has no datasets to make assets of", hint="Declare one.")
        modes = _by_dataset(on_violation, resolved, chosen)
        own_keys = {resolved.dataset(one).name: dg.AssetKey.from_coercible(key) for one, key in (keys or {}).items()}
        parameters = read_parameters(function)
        all_ins, only_deps = input_keys(parameters, ins or {}, told.consumes, function.__name__)
        made_here = {own_keys.get(one.name) or asset_key(resolved, one, told.translator) for one in chosen}
        # What this very function makes is not waited for.
        others_read = [key for key in referenced.values() if key not in made_here]
        dependencies = merged_deps(all_ins, [*only_deps, *others_read], deps or ())
        made = [
            declare_table(
                told,
                resolved,
                one,
                modes[one.name],
                key=own_keys.get(one.name),
                deps=dependencies,
                documentation=inspect.getdoc(function),
            )
            for one in chosen
        ]
        return assemble(
            told,
            function,
            parameters,
            made,
            all_ins,
            several=True,
            name=name or function.__name__,
            required_resource_keys=required_resource_keys,
            backfill_policy=backfill_policy,
            retry_policy=retry_policy,
            op_tags=op_tags,
            config_schema=config_schema,
            resource_defs=resource_defs,
            hooks=hooks,
            pool=pool,
        )

    return decorate


def _by_dataset(
    given: OnViolation | Mapping[str, OnViolation], contract: Contract, chosen: Sequence[Dataset]
) -> dict[str, OnViolation]:
    if not isinstance(given, Mapping):
        return dict.fromkeys((one.name for one in chosen), require_mode(given))
    named = {contract.dataset(name).name: require_mode(mode) for name, mode in given.items()}
    return {one.name: named.get(one.name, "fail") for one in chosen}
