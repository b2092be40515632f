"""The tables that a schedule looks at: which contract, which asset, and where the rows are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from databox_contracts.dagster.checks import (
    AssetOrKey,
    ContractOrPath,
    Files,
    Load,
    Loaded,
    Published,
    Source,
    only_key,
)
from databox_contracts.dagster.specs import asset_key as translated_key, resolve_contract
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset


@dataclass(frozen=True, slots=True)
class WatchedTable:
    """A dataset of a contract, the asset that it is, and how it is opened in a run."""

    key: dg.AssetKey
    contract: Contract
    dataset: Dataset
    source: Source

    @property
    def name(self) -> str:
        """The asset's key as people read it."""
        return self.key.to_user_string()

    @property
    def facts(self) -> dict[str, Any]:
        """What every result about the table says of its contract."""
        return {
            "contract_id": self.contract.id,
            "contract_version": self.contract.version,
            "contract_owner": self.contract.owning_team or "none declared",
            "contract_dataset": self.dataset.name,
        }


def all_contracts(given: ContractOrPath | Iterable[ContractOrPath]) -> list[Contract]:
    """The contracts that are given, of files and of folders too. Raises `ContractError` for what is none.

    Raises `DataboxError` where there is none at all: it would be watched by nobody.
    """
    ones: list[ContractOrPath] = [given] if isinstance(given, Contract | str | Path) else list(given)
    found: list[Contract] = []
    for one in ones:
        if not isinstance(one, Contract) and Path(one).is_dir():
            # Formats are only needed where a path is given.
            from databox_contracts.formats import load_contracts

            found.extend(load_contracts(one))
        else:
            found.append(resolve_contract(one))
    if not found:
        where = ", ".join(str(one) for one in ones)
        raise DataboxError(
            f"there is no contract in {where}" if where else "no contract was given",
            hint="Give contracts, their files, or a folder that has some.",
        )
    return found


def watched_tables(
    contracts: ContractOrPath | Iterable[ContractOrPath],
    *,
    dataset: str | None,
    asset_key: AssetOrKey | None,
    assets: Iterable[AssetOrKey] | None,
    translator: ContractTranslator | None,
    location: str | Path | None,
    data_format: str | None,
    options: Mapping[str, str] | None,
    load: Load | None,
    spark_resource_key: str,
    io_manager_key: str,
) -> list[WatchedTable]:
    """The tables of contracts, which are found as `build_contract_checks` finds them.

    Raises `ContractError`, and `DataboxError` for arguments that contradict, an asset that is none of `assets`, and two
    contracts about one asset.
    """
    tables = [
        (contract, table)
        for contract in all_contracts(contracts)
        for table in ([contract.dataset(dataset)] if dataset is not None else contract.datasets)
    ]
    special = {"asset_key": asset_key, "location": location, "load": load}
    named = [name for name, value in special.items() if value is not None]
    if named and len(tables) != 1:
        raise DataboxError(
            f"{named[0]} is about one table, and the contracts have {len(tables)}",
            hint="Name the dataset, or build one schedule for each table.",
        )
    if location is not None and load is not None:
        raise DataboxError("both location and load say where the table is", hint="Give one of them.")
    using = translator if translator is not None else ContractTranslator()
    known = None if assets is None else [key for asset in assets for key in _keys_of(asset)]
    found: dict[dg.AssetKey, WatchedTable] = {}
    for contract, table in tables:
        key = only_key(asset_key) if asset_key is not None else translated_key(contract, table, using)
        _require_known(key, known, contract)
        if key in found:
            raise DataboxError(
                f"contracts {found[key].contract.title} and {contract.title} are both about {key.to_user_string()}",
                hint="Leave one of them out, or override ContractTranslator.get_asset_key.",
            )
        if location is not None:
            source: Source = Files(str(location), data_format, dict(options or {}), spark_resource_key)
        elif load is not None:
            source = Loaded(load, spark_resource_key)
        else:
            source = Published(key, io_manager_key)
        found[key] = WatchedTable(key, contract, table, source)
    return list(found.values())


def _keys_of(asset: AssetOrKey) -> list[dg.AssetKey]:
    return list(asset.keys) if isinstance(asset, dg.AssetsDefinition) else [only_key(asset)]


def _require_known(key: dg.AssetKey, known: list[dg.AssetKey] | None, contract: Contract) -> None:
    # To Dagster, a misspelt key is an asset of its own.
    if known is not None and key not in known:
        names = ", ".join(one.to_user_string() for one in known) or "none"
        raise DataboxError(
            f"contract {contract.title} is about {key.to_user_string()}, which is no known asset",
            hint=f"The assets are: {names}. Override ContractTranslator.get_asset_key, or give asset_key.",
        )
