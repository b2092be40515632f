"""Contracts for the assets that a code location already has, however these are made."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import dagster as dg

from databox_contracts.dagster.checks import LoadReferences, build_contract_checks
from databox_contracts.dagster.contracted_tables import AssetOrKey, Load, only_key
from databox_contracts.dagster.declared import declared_step
from databox_contracts.dagster.io import ContractIOManager
from databox_contracts.dagster.lineage_metadata import lineage_metadata
from databox_contracts.dagster.loading import collection_paused
from databox_contracts.dagster.producers import ApprovalsGiven, ContractsGiven, read_contracts, validate_consumers
from databox_contracts.dagster.specs import asset_key, describe
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.dagster.uncontracted import UncontractedAssetWarning, spark_assets, uncontracted_text
from databox_contracts.declarations import Declaration
from databox_contracts.errors import ContractsNotAppliedError, DataboxError
from databox_contracts.model import Contract, Dataset
from databox_contracts.registry.places import Places
from databox_contracts.schema_modes import ModesGiven

Uncontracted: TypeAlias = Literal["warn", "fail", "ignore"]
Where: TypeAlias = "str | Path | Load"

_OURS_ALONE: Final = ("dagster/storage_kind",)
"""What a contract says of a table only where it is published here."""


@collection_paused()
def apply_contracts(
    defs: dg.Definitions,
    contracts: ContractsGiven,
    *,
    uncontracted: Uncontracted = "warn",
    translator: ContractTranslator | None = None,
    asset_keys: Mapping[str, AssetOrKey] | None = None,
    tables: Mapping[str, Where] | None = None,
    spark_resource_key: str = "spark",
    io_manager_key: str = "io_manager",
    on_violation: Literal["fail", "warn"] = "fail",
    schema_modes: ModesGiven = None,
    references: Mapping[str, Any] | LoadReferences | None = None,
    samples: int = 5,
    consumers: Iterable[Declaration] = (),
    approvals: ApprovalsGiven = None,
) -> dg.Definitions:
    """The definitions with checks and descriptions of the contracts on the assets that these are about.

    `contracts` are contracts, their files, or folders of them; of several versions of one the newest counts. A
    dataset's asset is the translator's, or the one that `asset_keys` names for it (`{"weather.hourly": "raw/hourly"}`,
    by domain and dataset, or the dataset alone). It may be any asset of the definitions, an external one too; how it
    is made stays as it is. It gets the checks of `build_contract_checks`, and what the contract knows of it where it
    says nothing itself: description, owners, tags, kinds, metadata with the column schema, freshness policy. An asset
    of `@contract_asset` under the same contract has all that and stays as it is.

    Its table is read by its own IO manager, if that is a `ContractIOManager`; else `tables` says where it is, by
    dataset or by the asset's key: a path, or a function of a Spark session, which is taken from the resource
    `spark_resource_key`. `on_violation`, `schema_modes`, `references` and `samples` are those of the checks.

    `uncontracted` is what becomes of assets that Spark materializes and no contract is about: a warning when the code
    is loaded, a failure, or nothing. Spark materializes what a `ContractIOManager` handles, what has the kind `spark`
    or `pyspark`, and what requires a resource that has a `spark_session`.

    What assets consume is held against the contracts, as by `validate_consumers`. Raises `ContractsNotAppliedError`,
    which lists every problem; `ConsumersError`; `ContractError` for a file that is no contract.
    """
    if uncontracted not in get_args(Uncontracted):
        raise DataboxError(
            f"unknown uncontracted {uncontracted!r}", hint=f"Use one of {', '.join(get_args(Uncontracted))}."
        )
    given = read_contracts(contracts)
    options = {"on_violation": on_violation, "schema_modes": schema_modes, "references": references, "samples": samples}
    applying = _Applying(
        defs,
        translator if translator is not None else ContractTranslator(),
        {name: only_key(key, "asset_keys") for name, key in (asset_keys or {}).items()},
        dict(tables or {}),
        spark_resource_key,
        io_manager_key,
        {**options, "spark_resource_key": spark_resource_key},
    )
    applying.take(given)
    if applying.problems:
        raise ContractsNotAppliedError(applying.problems)
    missing = [key for key in spark_assets(defs) if key not in applying.contracted]
    if missing and uncontracted == "fail":
        raise ContractsNotAppliedError([uncontracted_text([key]) for key in missing])
    if missing and uncontracted == "warn":
        warnings.warn(uncontracted_text(missing), UncontractedAssetWarning, stacklevel=3)
    applied = applying.definitions()
    return validate_consumers(applied, given, consumers=consumers, approvals=approvals)


@dataclass
class _Applying:
    """The definitions, what is known of them, and what is added."""

    defs: dg.Definitions
    translator: ContractTranslator
    asset_keys: Mapping[str, dg.AssetKey]
    tables: Mapping[str, Where]
    spark_resource_key: str
    io_manager_key: str
    options: Mapping[str, Any]
    problems: list[str] = field(default_factory=list)
    contracted: dict[dg.AssetKey, str] = field(default_factory=dict)
    described: dict[dg.AssetKey, tuple[dg.AssetSpec, Dataset, bool]] = field(default_factory=dict)
    checks: list[dg.AssetChecksDefinition] = field(default_factory=list)

    def take(self, contracts: Iterable[Contract]) -> None:
        """Find the asset of every dataset, and what keeps its contract from being applied."""
        self.io_keys = dict(_io_manager_keys(self.defs))
        self.taken = _check_keys(self.defs)
        self.own = {table.key: table for asset in self.defs.assets or () for table in _own_tables(asset)}
        self.contracted.update({key: _named(table.contract) for key, table in self.own.items()})
        self.used: set[str] = set()
        places = Places(contracts)
        for contract in places:
            versions = [one.version for one in places.versions(contract.id)]
            if versions.count(contract.version) > 1:
                sources = [one.source or "code" for one in places.versions(contract.id)]
                self.problems.append(
                    f"contract {contract.id} {contract.version} is there {versions.count(contract.version)} times:"
                    f" {', '.join(sources)}"
                )
            for dataset in contract.datasets:
                try:
                    self._take(contract, dataset)
                except DataboxError as error:
                    self.problems.append(str(error))
        for argument, given in (("asset_keys", self.asset_keys), ("tables", self.tables)):
            self.problems += [
                f"{argument} names {name!r}, which is no dataset of the contracts"
                for name in given
                if name not in self.used
            ]

    def definitions(self) -> dg.Definitions:
        """All that was there, with what is added."""
        defs = self.defs
        mappable = [one for one in defs.assets or () if isinstance(one, dg.AssetsDefinition | dg.AssetSpec)]
        others = [one for one in defs.assets or () if not isinstance(one, dg.AssetsDefinition | dg.AssetSpec)]
        return dg.Definitions(
            assets=[*map(self._with_specs, mappable), *others],
            schedules=defs.schedules,
            sensors=defs.sensors,
            jobs=defs.jobs,
            resources=defs.resources,
            executor=defs.executor,
            loggers=defs.loggers,
            asset_checks=[*(defs.asset_checks or ()), *self.checks],
            metadata=defs.metadata,
            component_tree=defs.component_tree,
        )

    def _take(self, contract: Contract, dataset: Dataset) -> None:
        names = [
            *([f"{contract.domain}.{dataset.name}", f"{contract.domain}/{dataset.name}"] if contract.domain else []),
            f"{contract.id}.{dataset.name}",
            dataset.name,
        ]
        named = [name for name in names if name in self.asset_keys]
        key = self.asset_keys[named[0]] if named else asset_key(contract, dataset, self.translator)
        self.used.update(names, [key.to_user_string()])
        own = self.own.get(key)
        if own is not None and (own.contract.id, own.contract.version) == (contract.id, contract.version):
            return
        if key not in self.io_keys:
            self.problems.append(self._unknown(contract, dataset, key))
            return
        if key in self.contracted:
            self.problems.append(
                f"the asset {key.to_user_string()} has two contracts: {self.contracted[key]} and {_named(contract)}"
            )
            return
        self.contracted[key] = _named(contract)
        ours, source = self._source(key, [*names, key.to_user_string()])
        described = describe(contract, dataset, translator=self.translator, key=key)
        (checks,) = build_contract_checks(
            contract, dataset=dataset.name, asset_key=key, translator=self.translator, **source, **self.options
        )
        for clash in sorted(checks.check_keys & self.taken, key=lambda one: one.name):
            self.problems.append(
                f"the asset {key.to_user_string()} already has a check {clash.name!r}, which contract {contract.title}"
                " would have too. Override ContractTranslator.get_check_name."
            )
        self.taken |= checks.check_keys
        self.checks.append(checks)
        self.described[key] = described, dataset, ours

    def _unknown(self, contract: Contract, dataset: Dataset, key: dg.AssetKey) -> str:
        known = {one.to_user_string(): one for one in self.io_keys}
        near = get_close_matches(key.to_user_string(), list(known), n=1, cutoff=0.6)
        meant = f" Did you mean {near[0]}?" if near else ""
        return (
            f"contract {contract.title} is about {key.to_user_string()}, which is no asset of these definitions.{meant}"
            f' Give asset_keys={{"{dataset.name}": ...}}, or override ContractTranslator.get_asset_key.'
        )

    def _source(self, key: dg.AssetKey, names: Iterable[str]) -> tuple[bool, dict[str, Any]]:
        """Whether the table is published here, and where its checks find it. Raises `DataboxError` for nowhere."""
        where = next((self.tables[name] for name in names if name in self.tables), None)
        if callable(where):
            return False, {"load": where}
        if where is not None:
            return False, {"location": where}
        io_key = self.io_keys[key] or self.io_manager_key
        manager = (self.defs.resources or {}).get(io_key)
        if manager is not None and not isinstance(manager, ContractIOManager):
            raise DataboxError(
                f"nobody says where the table of {key.to_user_string()} is: its IO manager {io_key!r} is a"
                f" {type(manager).__name__}",
                hint=f'Give tables={{"{key.to_user_string()}": PATH}}, or a function of a Spark session.',
            )
        return True, {"io_manager_key": io_key}

    def _with_specs(self, asset: dg.AssetsDefinition | dg.AssetSpec) -> dg.AssetsDefinition | dg.AssetSpec:
        if isinstance(asset, dg.AssetSpec):
            return self._with_contract(asset)
        return asset.map_asset_specs(self._with_contract) if self.described.keys() & asset.keys else asset

    def _with_contract(self, spec: dg.AssetSpec) -> dg.AssetSpec:
        found = self.described.get(spec.key)
        if found is None:
            return spec
        own, dataset, ours = found
        known = {name: value for name, value in own.metadata.items() if ours or name not in _OURS_ALONE}
        changes: dict[str, Any] = {
            "metadata": {
                **known,
                **lineage_metadata(dataset, spec.deps),
                **spec.metadata,
            },
            "tags": {
                **{name: value for name, value in own.tags.items() if not name.startswith("dagster/kind/")},
                **spec.tags,
            },
        }
        for name in ("description", "owners", "freshness_policy", "automation_condition"):
            if not getattr(spec, name) and getattr(own, name):
                changes[name] = getattr(own, name)
        if ours and not spec.kinds:
            changes["kinds"] = own.kinds
        return spec.replace_attributes(**changes)


def _io_manager_keys(defs: dg.Definitions) -> Iterator[tuple[dg.AssetKey, str | None]]:
    """Every asset with the key of its IO manager; None where nothing is said of that."""
    for asset in defs.assets or ():
        if isinstance(asset, dg.AssetsDefinition):
            for key in asset.keys:
                yield key, asset.get_io_manager_key_for_asset_key(key) if asset.is_executable else None
        elif isinstance(asset, dg.AssetSpec):
            yield asset.key, None
        elif isinstance(getattr(asset, "key", None), dg.AssetKey):
            yield asset.key, None  # type: ignore[union-attr]


def _check_keys(defs: dg.Definitions) -> set[dg.AssetCheckKey]:
    found: set[dg.AssetCheckKey] = set()
    for one in (*(defs.assets or ()), *(defs.asset_checks or ())):
        found |= set(getattr(one, "check_keys", ()))
    return found


def _named(contract: Contract) -> str:
    return f"{contract.id} {contract.version}"


def _own_tables(asset: object) -> Iterator[Any]:
    step = declared_step(asset)
    if step is not None:
        yield from step.tables
