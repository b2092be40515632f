"""How an input is read: the version published now, its partitions that the run maps to, as its reader asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from databox_contracts.dagster.consumption import CONSUMES_METADATA, Consumes, read_consumption
from databox_contracts.dagster.declared import declared_table, step_of
from databox_contracts.dagster.metadata import CONTRACT_METADATA, DATASET_METADATA, metadata_path, metadata_value
from databox_contracts.dagster.partitions import PARTITION_HINT, PARTITION_METADATA, known_partitions
from databox_contracts.dagster.specs import resolve_contract
from databox_contracts.errors import UnreadableTableError
from databox_contracts.model import Contract, Dataset, Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from databox_contracts.dagster.io import ContractIOManager

ALLOW_MISSING: Final = "allow_missing_partitions"
"""The metadata of an input that may lack partitions, as Dagster's own IO managers call it."""


def read_input(manager: ContractIOManager, context: dg.InputContext) -> DataFrame:
    """The upstream asset's table for the step that asks for it.

    Raises `UnreadableTableError` where nothing was published, a partition among it; `VersionPinError` and
    `ReaderContractError` where it is not what its reader needs.
    """
    df, _, facts = open_version(manager, context.asset_key)
    if manager.column_lineage:
        from databox_contracts.spark.column_sources import marked

        df = marked(df, context.asset_key.path)
    if context.has_asset_partitions:
        df = _partitions(df, facts, context)
    consumed = _consumed(context)
    return df if consumed is None else _as_consumed(df, facts, consumed, context)


def open_version(manager: ContractIOManager, key: dg.AssetKey) -> tuple[DataFrame, str | None, Mapping[str, Any]]:
    """The published table, its version, and what the manifest of just that version says.

    Raises `UnreadableTableError`.
    """
    from databox_contracts.spark.home_files import read_json
    from databox_contracts.spark.versions import MANIFEST

    place = manager.place(key)
    for _ in range(10):
        version = place.current_version()
        df = manager.read(key)
        facts = read_json(place.versions / version / MANIFEST) if version is not None else {}
        if place.current_version() == version:
            return df, version, facts
    raise UnreadableTableError(str(place.link), "it is published again and again while it is opened")


# --- partitions -------------------------------------------------------------------------------------------------------


def _partitions(df: DataFrame, facts: Mapping[str, Any], context: dg.InputContext) -> DataFrame:
    """The rows of the partitions that the input's mapping leads to; all rows where it leads to all of them."""
    from databox_contracts.spark.partitioning import Partitioning
    from databox_contracts.spark.per_partition import rows_of

    key, name = context.asset_key, context.asset_key.to_user_string()
    definition, keys = context.asset_partitions_def, list(context.asset_partition_keys)
    if not context.has_partition_key and set(keys) >= set(_all_keys(definition, context.instance)):
        return df
    types = {one.name: one.dataType.typeName() for one in df.schema.fields}
    found = known_partitions(definition, _expression(context, facts, name), types)
    found.require(keys, context.instance, name)
    partitioning = Partitioning.of(df.schema, found.columns, name)
    by_key = {one: partitioning.wanted(found.rows_of([one]), name) for one in keys}
    if not metadata_value(context.definition_metadata, ALLOW_MISSING):
        _require_published(by_key, partitioning, facts, key, context.instance)
    return df.filter(rows_of(partitioning, [wanted for several in by_key.values() for wanted in several]))


def _all_keys(definition: dg.PartitionsDefinition[Any], instance: dg.DagsterInstance) -> list[str]:
    return [str(key) for key in definition.get_partition_keys(dynamic_partitions_store=instance)]


def _expression(context: dg.InputContext, facts: Mapping[str, Any], name: str) -> Any:
    upstream = context.upstream_output
    said = metadata_value(upstream.definition_metadata if upstream is not None else None, PARTITION_METADATA)
    if said is not None:
        return said
    columns = (facts.get("table") or {}).get("partition_by") or []
    if len(columns) == 1:
        return columns[0]
    raise UnreadableTableError(name, "nobody says which column tells a row's partition", hint=PARTITION_HINT)


def _require_published(
    by_key: Mapping[str, Any],
    partitioning: Any,
    facts: Mapping[str, Any],
    key: dg.AssetKey,
    instance: dg.DagsterInstance,
) -> None:
    """A partition without rows was published if Dagster says so; one that neither has is missing."""
    from databox_contracts.spark.partitioning import matches

    table = facts.get("table") or {}
    if list(table.get("partition_by") or []) != list(partitioning.names):
        return
    there = [partitioning.at(inside) for inside in table.get("rows") or {} if inside]
    absent = [
        one
        for one, several in by_key.items()
        if not any(matches(partition, wanted) for partition in there for wanted in several)
    ]
    if absent:
        materialized = instance.get_materialized_partitions(key)
        absent = [one for one in absent if one not in materialized]
    if absent:
        more = f" and {len(absent) - 3} more" if len(absent) > 3 else ""
        raise UnreadableTableError(
            key.to_user_string(),
            f"its partition {', '.join(absent[:3])}{more} was not published yet",
            hint=f'Materialize it first, or give the input the metadata {{"{ALLOW_MISSING}": True}}.',
        )


# --- what the reader asks for -----------------------------------------------------------------------------------------


def _consumed(context: dg.InputContext) -> Consumes | None:
    """What the asset that reads says of it: by its decorator, or a plain asset by the metadata of its input."""
    step = step_of(context.op_def)
    if step is not None:
        return step.consumption(context.asset_key)
    said = (context.definition_metadata or {}).get(CONSUMES_METADATA)
    return read_consumption(getattr(said, "value", said), context.asset_key.to_user_string()) if said else None


def _as_consumed(df: DataFrame, facts: Mapping[str, Any], consumed: Consumes, context: dg.InputContext) -> DataFrame:
    from databox_contracts.spark import ReadReport, read_with_contract

    def report(told: ReadReport) -> None:
        for warning in told.warnings:
            context.log.warning(f"{name}: {warning}")
        context.add_input_metadata(
            {
                "contract_id": told.table_contract or "none recorded",
                "contract_version": told.table_version or "none recorded",
                "read_as": f"{contract.id} {contract.version}",
                "differences": [change.message for change in told.changes],
            }
        )

    name = context.asset_key.to_user_string()
    contract, dataset = _reader(df, facts, consumed, context)
    return read_with_contract(
        df,
        contract,
        dataset,
        fields=consumed.fields or None,
        version_range=consumed.versions,
        table_version=facts.get("contract_version"),
        mode=consumed.mode,
        verify_data=consumed.verify_data,
        on_report=report,
    )


def _reader(
    df: DataFrame, facts: Mapping[str, Any], consumed: Consumes, context: dg.InputContext
) -> tuple[Contract, str | None]:
    """The contract that the table is read as: the reader's own, the producer's, else what the table has."""
    if consumed.contract is not None:
        own = resolve_contract(consumed.contract)
        return own, _dataset_of(own, context.asset_key)
    upstream = context.upstream_output
    if upstream is not None and (consumed.fields or consumed.verify_data):
        table = declared_table(_op_of(upstream), context.asset_key)
        if table is not None:
            return table.contract, table.dataset.name
        written = metadata_path(upstream.definition_metadata, CONTRACT_METADATA)
        if written is not None and Path(written).is_file():
            said = metadata_value(upstream.definition_metadata, DATASET_METADATA)
            producer = resolve_contract(Path(written))
            return producer, str(said) if said is not None else None
    dataset = Dataset(name=context.asset_key.path[-1], fields=tuple(Field(name=name) for name in df.columns))
    version = str(facts.get("contract_version") or "0")
    identity = str(facts.get("contract") or context.asset_key.to_user_string())
    return Contract(id=identity, version=version, datasets=(dataset,)), None


def _op_of(upstream: dg.OutputContext) -> Any:
    try:
        return upstream.op_def
    except dg.DagsterInvariantViolationError:
        # The upstream asset is of no step of this run.
        return None


def _dataset_of(contract: Contract, key: dg.AssetKey) -> str | None:
    """The dataset of the reader's contract that is meant, where it has several."""
    names = {dataset.name for dataset in contract.datasets}
    return key.path[-1] if len(names) > 1 and key.path[-1] in names else None
