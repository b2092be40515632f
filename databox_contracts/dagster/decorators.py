"""`@contract_asset`: a function that returns a Spark DataFrame, published only if it keeps its contract."""

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
from databox_contracts.dagster.specs import resolve_contract
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract
from databox_contracts.schema_modes import ModesGiven, parse_modes

if TYPE_CHECKING:
    from databox_contracts.spark.publication import OnViolation


def contract_asset(
    function: Any = None,
    /,
    *,
    contract: Contract | str | Path | None = None,
    dataset: str | None = None,
    on_violation: OnViolation = "fail",
    schema_modes: ModesGiven = None,
    consumes: Mapping[str, ConsumesGiven] | None = None,
    approvals: ApprovalsGiven = None,
    references: Mapping[str, Any] | None = None,
    samples: int = 5,
    translator: ContractTranslator | None = None,
    io_manager_key: str = "io_manager",
    key: dg.AssetKey | str | Sequence[str] | None = None,
    ins: Mapping[str, dg.AssetIn] | None = None,
    deps: Iterable[Any] | None = None,
    group_name: str | None = None,
    description: str | None = None,
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
    """An asset whose function returns a Spark DataFrame, which is published only if it keeps its contract.

    `contract` is the contract or its file, a relative path counting from the working directory, else from the
    function's own file; `dataset` names the table where the contract has several. `on_violation` is what data that
    breaks an error rule does: "fail" publishes nothing and fails the run, "quarantine" holds the violating rows and
    publishes the rest, "warn" publishes all and says so. `schema_modes` is what becomes of data that the contract does
    not know: a word (evolve, freeze, discard_row, discard_value), or a mapping from some of tables, columns and
    data_type; it goes before that of the `ContractIOManager`, and a run's tag `databox/schema_modes` before both.

    `consumes` maps the datasets that the function reads to the versions it can read (`{"weather.stations": "^2"}`), or
    to `Consumes(...)`, which names fields and a purpose as well: a parameter named like a dataset's last part is that
    input, the others are dependencies. It is held against the producer's contract when the code is loaded, where that
    lies in the same folder of contracts, and against the table when it is opened. `approvals` are stored consents to
    further purposes, or their file. `references` maps the datasets that foreign keys and completeness name, as the
    contract names them, to the assets they are (`{"weather.stations": "weather/stations"}`): dependencies, whose
    published tables are read when the rules are judged. `samples` is how many offending values a failed rule shows.

    With a `partitions_def` a run replaces its own partitions of the table, all at once, and no others; a row of any
    other is an error, and a partition without rows becomes empty. `partition_by` is the column that partition keys are
    values of, a mapping from dimension to column where there are several; if it is not given, `partition_expr` in
    `metadata`, else the columns that the contract declares as partitioned. A time window is the days in it for a column
    of dates; for any other column the partition key itself is the value. Keys and row counts are promises about each
    partition.

    Asset and checks are described by the contract through `translator`; what is given here goes before it, `tags` and
    `metadata` are added to it. The IO manager of `io_manager_key` has to be a `ContractIOManager`. The remaining
    arguments are those of `dagster.asset`. Parameters of the function are inputs, except `context`, `config` and what
    is annotated as a resource.

    A run of the asset's checks alone verifies the published table and does not call the function; a run without its
    checks verifies all the same. Raises `ContractError` for a contract that cannot be used, `DataboxError` for
    arguments that make no sense.
    """
    if function is not None:
        way_out = "Write @contract_asset(contract=...), with parentheses and the contract by name."
        raise DataboxError("contract_asset was given a function or a value of no name", hint=way_out)
    if contract is None:
        raise DataboxError(
            "contract_asset needs a contract", hint='Write @contract_asset(contract="contracts/x.yaml").'
        )
    refuse_others(others, "contract_asset")
    mode = require_mode(on_violation)
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
        description=description,
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
        require_plain(function, "contract_asset")
        resolved = resolve_contract(contract, beside=function.__code__.co_filename)
        parameters = read_parameters(function)
        all_ins, only_deps = input_keys(parameters, ins or {}, told.consumes, function.__name__)
        declared = declare_table(
            told,
            resolved,
            resolved.dataset(dataset),
            mode,
            key=dg.AssetKey.from_coercible(key) if key is not None else None,
            deps=merged_deps(all_ins, [*only_deps, *referenced.values()], deps or ()),
            documentation=inspect.getdoc(function),
        )
        return assemble(
            told,
            function,
            parameters,
            [declared],
            all_ins,
            several=False,
            name=declared.spec.key.to_python_identifier(),
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
