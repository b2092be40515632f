"""What the decorators have in common: a dataset as an asset with its checks, and the step that makes it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from databox_contracts.dagster.consumption import CONSUMES_METADATA, Consumes
from databox_contracts.dagster.declared import remember
from databox_contracts.dagster.lineage_metadata import lineage_metadata
from databox_contracts.dagster.metadata import ON_VIOLATION_METADATA, SCHEMA_MODES_METADATA
from databox_contracts.dagster.partitions import PARTITION_METADATA, PartitionBy, declared_partitions
from databox_contracts.dagster.producers import ApprovalsGiven, require_producers
from databox_contracts.dagster.signatures import Parameters, input_key
from databox_contracts.dagster.specs import build_asset_spec, check_groups, check_specs
from databox_contracts.dagster.steps import ContractStep, ContractTable
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset, Mode
from databox_contracts.schema_modes import effective_modes

if TYPE_CHECKING:
    from databox_contracts.spark.publication import OnViolation

_REFUSED: Final[Mapping[str, str]] = {
    "name": "Give it a key, or override ContractTranslator.get_asset_key.",
    "key_prefix": "Give it a key, or override ContractTranslator.get_asset_key.",
    "dagster_type": "What is published is described by the contract; annotate the function with DataFrame.",
    "io_manager_def": "Put the ContractIOManager among the resources, and give its io_manager_key.",
    "check_specs": "Its checks are those of the contract; put others beside it with @dagster.asset_check.",
    "output_required": "It always publishes or fails; leave it out.",
    "compute_kind": "Give kinds.",
    "auto_materialize_policy": "Give an automation_condition.",
    "non_argument_deps": "Give deps.",
    "outs": "Its outputs are the contract's datasets.",
    "specs": "Its outputs are the contract's datasets.",
    "can_subset": "It can always be subset; leave it out.",
    "is_virtual": "A virtual asset is not materialized; use build_contract_asset_specs.",
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a decorator was told about its tables, the same for each of them; what is None the contract decides."""

    translator: ContractTranslator
    io_manager_key: str
    schema_modes: Mapping[str, Mode]
    consumes: Mapping[str, Consumes]
    approvals: ApprovalsGiven
    references: Mapping[str, dg.AssetKey]
    samples: int
    partitions_def: dg.PartitionsDefinition[Any] | None
    partition_by: PartitionBy | None
    group_name: str | None
    description: str | None
    owners: Sequence[str] | None
    tags: Mapping[str, str] | None
    kinds: set[str] | None
    metadata: Mapping[str, Any] | None
    code_version: str | None
    automation_condition: dg.AutomationCondition[Any] | None
    freshness_policy: dg.FreshnessPolicy | None


@dataclass(frozen=True, slots=True)
class Declared:
    """The asset of one dataset, its checks, and how its table is made."""

    spec: dg.AssetSpec
    checks: Sequence[dg.AssetCheckSpec]
    table: ContractTable


def refuse_others(others: Mapping[str, Any], whose: str) -> None:
    """Raises `DataboxError` for arguments of `dagster.asset` that a contracted asset cannot have, and unknown ones."""
    for name, value in others.items():
        if name == "output_required" and value is True:
            continue
        hint = _REFUSED.get(name, f"See help(databox_contracts.dagster.{whose}) for its arguments.")
        raise DataboxError(f"{whose} takes no {name!r}", hint=hint)


def require_plain(function: object, whose: str) -> None:
    """Raises `DataboxError` for what is no function that returns."""
    if not inspect.isfunction(function):
        raise DataboxError(
            f"{whose} decorates a function, and this is a {type(function).__name__}",
            hint="Put it directly above the function, below nothing else of Dagster's.",
        )
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise DataboxError(
            f"{function.__name__} yields or awaits; a contracted asset returns one Spark DataFrame",
            hint=f"Return the DataFrame; {whose} yields Dagster's events itself.",
        )


def declare_table(
    told: Told,
    contract: Contract,
    dataset: Dataset,
    on_violation: OnViolation,
    *,
    key: dg.AssetKey | None,
    deps: Sequence[dg.AssetDep],
    documentation: str | None,
) -> Declared:
    """The asset of one dataset. Raises `DataboxError` for what contradicts its contract."""
    effective_modes(contract, dataset, asset=told.schema_modes)
    spec = build_asset_spec(contract, dataset, translator=told.translator, key=key, io_manager_key=told.io_manager_key)
    given_partition = (
        told.partition_by if told.partition_by is not None else (told.metadata or {}).get(PARTITION_METADATA)
    )
    partitions = None
    if told.partitions_def is not None:
        partitions = declared_partitions(told.partitions_def, given_partition, contract, dataset)
    elif told.partition_by is not None:
        raise DataboxError(
            f"partition_by names columns of {dataset.name}, and there is no partitions_def",
            hint="Give the partitions_def whose keys are values of that column.",
        )
    # A table that refers to itself does not wait for itself.
    own_deps = [dep for dep in deps if dep.asset_key != spec.key]
    spec = _given(
        spec,
        group_name=told.group_name,
        description=told.description or (None if spec.description else documentation),
        owners=told.owners,
        kinds=told.kinds,
        tags={**_without_kinds(spec.tags), **(told.tags or {})},
        metadata={
            **spec.metadata,
            ON_VIOLATION_METADATA: on_violation,
            **({SCHEMA_MODES_METADATA: dg.MetadataValue.json(told.schema_modes)} if told.schema_modes else {}),
            **_consumes_metadata(told.consumes),
            **lineage_metadata(dataset, own_deps),
            **(told.metadata or {}),
            **({PARTITION_METADATA: partitions.expression} if partitions is not None else {}),
        },
        code_version=told.code_version,
        automation_condition=told.automation_condition,
        freshness_policy=told.freshness_policy,
        skippable=True,
        deps=own_deps,
    )
    table = ContractTable(
        spec.key,
        contract,
        dataset,
        told.translator,
        on_violation,
        told.samples,
        told.references,
        told.schema_modes,
        partitions,
    )
    groups = check_groups(contract, dataset, told.translator)
    checks = check_specs(contract, dataset, groups, spec.key, partitions_def=told.partitions_def)
    return Declared(spec, checks, table)


def assemble(
    told: Told,
    function: Any,
    parameters: Parameters,
    made: Sequence[Declared],
    ins: Mapping[str, dg.AssetIn],
    *,
    several: bool,
    name: str,
    required_resource_keys: set[str] | None,
    **op_options: Any,
) -> dg.AssetsDefinition:
    """The assets of one function. Raises `DataboxError` for reading what the producer does not let it read."""
    tables = tuple(one.table for one in made)
    step = ContractStep(
        function,
        parameters,
        tables,
        several,
        told.io_manager_key,
        told.consumes,
    )
    require_producers(step, told.consumes, told.approvals)
    assets = dg.multi_asset(
        name=name,
        specs=[one.spec for one in made],
        check_specs=[check for one in made for check in one.checks],
        can_subset=True,
        # All but the key belongs to the dependency.
        ins={
            one: dg.AssetIn(key=input_key(one, asset_in), input_manager_key=asset_in.input_manager_key)
            for one, asset_in in ins.items()
        },
        partitions_def=told.partitions_def,
        required_resource_keys={told.io_manager_key, *required_resource_keys} if required_resource_keys else None,
        **op_options,
    )(step.compute(asks_for_manager=not required_resource_keys))
    return remember(assets, step)


def merged_deps(
    ins: Mapping[str, dg.AssetIn], consumed: Iterable[dg.AssetKey], deps: Iterable[Any]
) -> list[dg.AssetDep]:
    """What an asset waits for: its inputs, what it consumes besides, what it was told."""
    found: dict[dg.AssetKey, dg.AssetDep] = {}
    for name, asset_in in ins.items():
        asset_key = input_key(name, asset_in)
        found[asset_key] = dg.AssetDep(
            asset_key, partition_mapping=asset_in.partition_mapping, metadata=asset_in.metadata or None
        )
    for dep in (*consumed, *deps):
        given = dep if isinstance(dep, dg.AssetDep) else dg.AssetDep(dep)
        found.setdefault(given.asset_key, given)
    return list(found.values())


def _consumes_metadata(consumes: Mapping[str, Consumes]) -> dict[str, Any]:
    if not consumes:
        return {}
    return {CONSUMES_METADATA: dg.MetadataValue.json({name: one.said() for name, one in consumes.items()})}


def _given(spec: dg.AssetSpec, **attributes: Any) -> dg.AssetSpec:
    return spec.replace_attributes(**{name: value for name, value in attributes.items() if value is not None})


def _without_kinds(tags: Mapping[str, str]) -> dict[str, str]:
    # Kinds are tags to Dagster, which takes those of a spec along by itself and puts them last.
    return {name: value for name, value in tags.items() if not name.startswith("dagster/kind/")}
