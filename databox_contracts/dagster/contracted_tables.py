"""The tables that contracts are about: which assets they are, and where their rows are in a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import dagster as dg

from databox_contracts.dagster.inputs import open_version
from databox_contracts.dagster.io import ContractIOManager, require_dataframe, require_manager, session_of
from databox_contracts.dagster.specs import asset_key as translated_key
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset
from databox_contracts.schema_modes import ModesGiven

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ContractOrPath: TypeAlias = Contract | str | Path
AssetOrKey: TypeAlias = "dg.AssetsDefinition | dg.AssetSpec | dg.AssetKey | str | list[str]"
Load: TypeAlias = "Callable[[SparkSession], DataFrame]"


@dataclass(frozen=True, slots=True)
class Table:
    """What was opened: `untyped` for text that the contract has to cast, `ours` if a `ContractIOManager` published it.

    `modes` are the schema modes that the code location has for it, `partition_by` the columns of the partitions that it
    is published by.
    """

    df: DataFrame
    version: str | None = None
    untyped: bool = False
    ours: bool = False
    modes: ModesGiven = None
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """A table of a `ContractIOManager`."""

    key: dg.AssetKey
    resource_key: str

    def open(self, resources: Any) -> Table:
        """Raises `UnreadableTableError`."""
        manager = self._manager(resources)
        df, version, facts = open_version(manager, self.key)
        # What was published as a whole keeps its promises as a whole.
        by_partition = facts.get("mode") == "overwrite_partitions"
        columns = tuple((facts.get("table") or {}).get("partition_by") or ()) if by_partition else ()
        return Table(df, version, ours=True, modes=manager.schema_modes, partition_by=columns)

    def session(self, resources: Any) -> SparkSession:
        """The IO manager's."""
        return self._manager(resources).spark_session

    def _manager(self, resources: Any) -> ContractIOManager:
        return require_manager(resources, self.resource_key, self.key.to_user_string())


@dataclass(frozen=True, slots=True)
class Files:
    """A table somewhere else, in files."""

    location: str
    data_format: str | None
    options: Mapping[str, str]
    resource_key: str

    def open(self, resources: Any) -> Table:
        """Raises `UnreadableTableError`."""
        from databox_contracts.spark.reading import UNTYPED, guess_format, read_table

        chosen = self.data_format or guess_format(self.location)
        df = read_table(self.session(resources), self.location, format=chosen, options=self.options)
        return Table(df, untyped=chosen in UNTYPED)

    def session(self, resources: Any) -> SparkSession:
        """That of the Spark resource."""
        return session_of(getattr(resources, self.resource_key))


@dataclass(frozen=True, slots=True)
class Loaded:
    """A table that the user opens."""

    load: Load
    resource_key: str

    def open(self, resources: Any) -> Table:
        """What the user's function raises passes through."""
        df = self.load(self.session(resources))
        return Table(require_dataframe(df, getattr(self.load, "__name__", "load")))

    def session(self, resources: Any) -> SparkSession:
        """That of the Spark resource."""
        return session_of(getattr(resources, self.resource_key))


Source: TypeAlias = Published | Files | Loaded


class ContractedTable(NamedTuple):
    """A dataset of a contract, the asset that it is, and how it is opened in a run."""

    key: dg.AssetKey
    contract: Contract
    dataset: Dataset
    source: Source

    @property
    def name(self) -> str:
        """The asset's key as people read it."""
        return self.key.to_user_string()


def contracted_tables(
    contracts: Iterable[Contract],
    *,
    dataset: str | None,
    asset_key: AssetOrKey | None,
    assets: Iterable[AssetOrKey] | None,
    translator: ContractTranslator,
    location: str | Path | None,
    data_format: str | None,
    options: Mapping[str, str] | None,
    load: Load | None,
    spark_resource_key: str,
    io_manager_key: str,
) -> list[ContractedTable]:
    """The tables of the contracts, in order; the arguments are those of `build_contract_checks`.

    Raises `DataboxError` for arguments that contradict, and for an asset that is none of `assets`.
    """
    tables = [
        (contract, table)
        for contract in contracts
        for table in ([contract.dataset(dataset)] if dataset is not None else contract.datasets)
    ]
    special = {"asset_key": asset_key, "location": location, "load": load}
    named = [name for name, value in special.items() if value is not None]
    if named and len(tables) != 1:
        raise DataboxError(
            f"{named[0]} is about one table, and the contracts have {len(tables)}",
            hint="Name the dataset, or ask for each table by itself.",
        )
    if location is not None and load is not None:
        raise DataboxError("both location and load say where the table is", hint="Give one of them.")
    known = known_keys(assets)
    found = []
    for contract, table in tables:
        key = only_key(asset_key) if asset_key is not None else translated_key(contract, table, translator)
        require_known(key, known, contract)
        if location is not None:
            source: Source = Files(str(location), data_format, dict(options or {}), spark_resource_key)
        elif load is not None:
            source = Loaded(load, spark_resource_key)
        else:
            source = Published(key, io_manager_key)
        found.append(ContractedTable(key, contract, table, source))
    return found


def only_key(asset: AssetOrKey, argument: str = "asset_key") -> dg.AssetKey:
    """The key of one asset, however it is named. Raises `DataboxError` for none and for several."""
    keys = _keys(asset)
    if len(keys) != 1:
        raise DataboxError(
            f"{argument} stands for {len(keys)} assets: {', '.join(key.to_user_string() for key in keys)}",
            hint="Give the AssetKey of one.",
        )
    return keys[0]


def known_keys(assets: Iterable[AssetOrKey] | None) -> list[dg.AssetKey] | None:
    """The keys of the assets there are; None where nobody says which these are."""
    return None if assets is None else [key for asset in assets for key in _keys(asset)]


def require_known(key: dg.AssetKey, known: list[dg.AssetKey] | None, contract: Contract) -> None:
    """Raises `DataboxError` for an asset that is not known, as to Dagster a misspelt key is an asset of its own."""
    if known is not None and key not in known:
        names = ", ".join(one.to_user_string() for one in known) or "none"
        raise DataboxError(
            f"contract {contract.title} is about {key.to_user_string()}, which is no known asset",
            hint=f"The assets are: {names}. Override ContractTranslator.get_asset_key, or give asset_key.",
        )


def _keys(asset: AssetOrKey) -> list[dg.AssetKey]:
    if isinstance(asset, dg.AssetsDefinition):
        return list(asset.keys)
    if isinstance(asset, dg.AssetSpec):
        return [asset.key]
    return [asset if isinstance(asset, dg.AssetKey) else dg.AssetKey(asset)]
