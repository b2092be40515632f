"""Checks for tables that something else writes: read, verify, report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import dagster as dg

from databox_contracts.dagster.evaluations import evaluate_table, only_warns
from databox_contracts.dagster.io import require_dataframe, require_manager, session_of
from databox_contracts.dagster.progress import logged_progress
from databox_contracts.dagster.specs import (
    CheckGroup,
    asset_key as translated_key,
    check_groups,
    check_specs,
    resolve_contract,
)
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ContractOrPath: TypeAlias = Contract | str | Path
AssetOrKey: TypeAlias = "dg.AssetsDefinition | dg.AssetSpec | dg.AssetKey | str | list[str]"
Load: TypeAlias = "Callable[[SparkSession], DataFrame]"


def build_contract_checks(
    contracts: ContractOrPath | Iterable[ContractOrPath],
    *,
    dataset: str | None = None,
    asset_key: AssetOrKey | None = None,
    assets: Iterable[AssetOrKey] | None = None,
    translator: ContractTranslator | None = None,
    location: str | Path | None = None,
    data_format: str | None = None,
    options: Mapping[str, str] | None = None,
    load: Load | None = None,
    spark_resource_key: str = "spark",
    io_manager_key: str = "io_manager",
    on_violation: Literal["fail", "warn"] = "fail",
    samples: int = 5,
    retry_policy: dg.RetryPolicy | None = None,
    op_tags: Mapping[str, Any] | None = None,
    pool: str | None = None,
) -> list[dg.AssetChecksDefinition]:
    """Checks that hold published tables against their contracts, one op per table.

    `contracts` are contracts or their files. The table is what the `ContractIOManager` of `io_manager_key` reads
    for the asset; or the files at `location`, of `data_format` (Parquet, ORC or CSV; told by the files if None) and
    with Spark's reader `options`; or what `load` makes of a Spark session. The latter two take the session from the
    resource `spark_resource_key`: anything with a `spark_session`. Asset keys are the translator's; for one table,
    `asset_key` says which asset it is. Where `assets` are given, a check on any other asset is an error, as Dagster
    itself takes a misspelt key for an asset of its own. With `on_violation="warn"` nothing blocks.

    A violated error rule fails the check, blocks what is downstream in the same run, and is not retried. A table that
    cannot be read is an error of the run, not a failed check. Raises `ContractError` for a contract that cannot be
    used, `DataboxError` for arguments that make no sense.
    """
    one = isinstance(contracts, Contract | str | Path)
    given: list[ContractOrPath] = [contracts] if one else list(contracts)  # type: ignore[list-item, arg-type]
    tables = [
        (contract, table)
        for contract in map(resolve_contract, given)
        for table in ([contract.dataset(dataset)] if dataset is not None else contract.datasets)
    ]
    special = {"asset_key": asset_key, "location": location, "load": load}
    named = [name for name, value in special.items() if value is not None]
    if named and len(tables) != 1:
        raise DataboxError(
            f"{named[0]} is about one table, and the contracts have {len(tables)}",
            hint="Name the dataset, or call build_contract_checks once per table.",
        )
    if location is not None and load is not None:
        raise DataboxError("both location and load say where the table is", hint="Give one of them.")
    if on_violation not in ("fail", "warn"):
        raise DataboxError(f"unknown on_violation {on_violation!r} for checks", hint="Use one of fail, warn.")
    using = translator if translator is not None else ContractTranslator()
    known = None if assets is None else [key for asset in assets for key in _keys(asset)]
    checks = []
    for contract, table in tables:
        key = only_key(asset_key) if asset_key is not None else translated_key(contract, table, using)
        _require_known(key, known, contract)
        if location is not None:
            source: Source = Files(str(location), data_format, dict(options or {}), spark_resource_key)
        elif load is not None:
            source = Loaded(load, spark_resource_key)
        else:
            source = Published(key, io_manager_key)
        groups = check_groups(contract, table, using)
        step = CheckStep(key, contract, table, groups, on_violation, samples, source)
        checks.append(
            dg.multi_asset_check(
                name=f"{key.to_python_identifier()}_contract",
                specs=check_specs(contract, table, groups, key),
                can_subset=True,
                required_resource_keys={source.resource_key},
                retry_policy=retry_policy,
                op_tags=op_tags,
                pool=pool,
            )(step.compute())
        )
    return checks


@dataclass(frozen=True, slots=True)
class Table:
    """What was opened: `untyped` for text that the contract has to cast."""

    df: DataFrame
    version: str | None = None
    untyped: bool = False


@dataclass(frozen=True, slots=True)
class Published:
    """A table of a `ContractIOManager`."""

    key: dg.AssetKey
    resource_key: str

    def open(self, resources: Any) -> Table:
        """Raises `UnreadableTableError`."""
        manager = require_manager(resources, self.resource_key, self.key.to_user_string())
        version = manager.place(self.key).current_version()
        return Table(manager.read(self.key), version)


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
        spark = session_of(getattr(resources, self.resource_key))
        df = read_table(spark, self.location, format=chosen, options=self.options)
        return Table(df, untyped=chosen in UNTYPED)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A table that the user opens."""

    load: Load
    resource_key: str

    def open(self, resources: Any) -> Table:
        """What the user's function raises passes through."""
        df = self.load(session_of(getattr(resources, self.resource_key)))
        return Table(require_dataframe(df, getattr(self.load, "__name__", "load")))


Source: TypeAlias = Published | Files | Loaded


@dataclass(frozen=True, slots=True)
class CheckStep:
    """What the checks of one table do in a run."""

    key: dg.AssetKey
    contract: Contract
    dataset: Dataset
    groups: tuple[CheckGroup, ...]
    on_violation: str
    samples: int
    source: Source

    def compute(self) -> Callable[..., Iterator[dg.AssetCheckResult]]:
        """The function that Dagster calls."""

        # Dagster looks for a function, and at its annotations, which must not be texts it cannot resolve.
        def compute(context):  # type: ignore[no-untyped-def]
            yield from self.run(context)

        return compute

    def run(self, context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        """Verify the table and report the checks that are selected."""
        selected = {check.name for check in context.selected_asset_check_keys}
        groups = [group for group in self.groups if group.name in selected]
        table = self.source.open(context.resources)
        evaluation = evaluate_table(
            table.df,
            self.contract,
            self.dataset.name,
            samples=self.samples,
            lenient=only_warns(self.contract, self.on_violation),
            readable_version=table.version,
            untyped=table.untyped,
            progress=logged_progress(context.log, self.key.to_user_string()),
        )
        yield from evaluation.results(self.key, groups)
        if evaluation.stops(groups):
            raise evaluation.failure(self.key)


def _keys(asset: AssetOrKey) -> list[dg.AssetKey]:
    if isinstance(asset, dg.AssetsDefinition):
        return list(asset.keys)
    if isinstance(asset, dg.AssetSpec):
        return [asset.key]
    return [asset if isinstance(asset, dg.AssetKey) else dg.AssetKey(asset)]


def only_key(asset: AssetOrKey, argument: str = "asset_key") -> dg.AssetKey:
    """The key of one asset, however it is named. Raises `DataboxError` for none and for several."""
    keys = _keys(asset)
    if len(keys) != 1:
        raise DataboxError(
            f"{argument} stands for {len(keys)} assets: {', '.join(key.to_user_string() for key in keys)}",
            hint="Give the AssetKey of one.",
        )
    return keys[0]


def _require_known(key: dg.AssetKey, known: list[dg.AssetKey] | None, contract: Contract) -> None:
    if known is not None and key not in known:
        names = ", ".join(one.to_user_string() for one in known) or "none"
        raise DataboxError(
            f"contract {contract.title} would put checks on {key.to_user_string()}, which is no known asset",
            hint=f"The assets are: {names}. Override ContractTranslator.get_asset_key, or give asset_key.",
        )
