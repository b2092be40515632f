"""Checks for tables that something else writes: read, verify, report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import dagster as dg

from databox_contracts.dagster.contracted_tables import (
    AssetOrKey,
    ContractOrPath,
    Load,
    Source,
    contracted_tables,
)
from databox_contracts.dagster.evaluations import evaluate_table, only_warns
from databox_contracts.dagster.io import (
    SCHEMA_MODES_TAG,
    reference_keys,
    require_dataframe,
    require_manager,
)
from databox_contracts.dagster.progress import logged_progress
from databox_contracts.dagster.specs import (
    check_groups,
    check_specs,
    resolve_contract,
    selected_groups,
)
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset, Mode
from databox_contracts.schema_modes import ModesGiven, effective_modes, narrowed, parse_modes, parse_modes_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SIGNATURE: Final = Signature([Parameter("context", Parameter.POSITIONAL_OR_KEYWORD)])

LoadReferences: TypeAlias = "Callable[[SparkSession], Mapping[str, DataFrame]]"


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
    schema_modes: ModesGiven = None,
    references: Mapping[str, Any] | LoadReferences | None = None,
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

    `references` maps the datasets that foreign keys and completeness name to the assets they are
    (`{"weather.stations": "weather/stations"}`), whose published tables the `ContractIOManager` reads; or it is a
    function that makes the tables by name of a Spark session, in the run. The checks of a table wait for those assets.
    `schema_modes` is what becomes of data that the contract does not know: a word (evolve, freeze, discard_row,
    discard_value), or a mapping from some of tables, columns and data_type; it goes before that of the
    `ContractIOManager` if that has the table, and a run's tag `databox/schema_modes` before both. Nothing is discarded
    from a table that is published: the rules are judged over what the modes would leave of it, and the results say
    what they would discard.

    A violated error rule fails the check, blocks what is downstream in the same run, and is not retried. A table that
    cannot be read is an error of the run, not a failed check. Raises `ContractError` for a contract that cannot be
    used, `DataboxError` for arguments that make no sense.
    """
    one = isinstance(contracts, Contract | str | Path)
    given: list[ContractOrPath] = [contracts] if one else list(contracts)  # type: ignore[list-item, arg-type]
    if on_violation not in ("fail", "warn"):
        raise DataboxError(f"unknown on_violation {on_violation!r} for checks", hint="Use one of fail, warn.")
    using = translator if translator is not None else ContractTranslator()
    given_modes = parse_modes(schema_modes)
    referenced = References(references, io_manager_key)
    tables = contracted_tables(
        map(resolve_contract, given),
        dataset=dataset,
        asset_key=asset_key,
        assets=assets,
        translator=using,
        location=location,
        data_format=data_format,
        options=options,
        load=load,
        spark_resource_key=spark_resource_key,
        io_manager_key=io_manager_key,
    )
    checks = []
    for key, contract, table, source in tables:
        groups = check_groups(contract, table, using)
        effective_modes(contract, table, asset=given_modes)
        own = referenced.of(key)
        step = CheckStep(key, contract, table, using, on_violation, samples, source, own, given_modes)
        checks.append(
            dg.multi_asset_check(
                name=f"{key.to_python_identifier()}_contract",
                specs=check_specs(contract, table, groups, key, deps=own.assets.values()),
                can_subset=True,
                required_resource_keys={source.resource_key, *own.resource_keys},
                retry_policy=retry_policy,
                op_tags=op_tags,
                pool=pool,
            )(step.compute())
        )
    return checks


class References:
    """The tables that rules refer to: published ones of assets, or what a function of the user's makes in the run.

    Raises `DataboxError` for what is neither.
    """

    def __init__(self, given: Mapping[str, Any] | LoadReferences | None, io_manager_key: str) -> None:
        self.load: LoadReferences | None = given if callable(given) else None
        self.assets = reference_keys(given or {}) if self.load is None else {}  # type: ignore[arg-type]
        self.io_manager_key = io_manager_key

    def of(self, key: dg.AssetKey) -> References:
        """Those for one table. Of a table that refers to itself, the rows that are judged are meant."""
        own = References(self.load, self.io_manager_key)
        own.assets = {name: asset for name, asset in self.assets.items() if asset != key}
        return own

    @property
    def resource_keys(self) -> tuple[str, ...]:
        """The resources that they are read with, beside the table's own."""
        return (self.io_manager_key,) if self.assets else ()

    def open(self, resources: Any, session: Callable[[], SparkSession], name: str) -> dict[str, DataFrame]:
        """The tables by name. Raises `UnreadableTableError`; what the user's function raises passes through."""
        if self.load is not None:
            tables = self.load(session())
            if not isinstance(tables, Mapping):
                raise DataboxError(
                    f"the references of {name} are {type(tables).__name__}, and have to be DataFrames by name",
                    hint='Return a mapping such as {"weather.stations": df}.',
                )
            return {str(to): require_dataframe(df, f"references[{to!r}]") for to, df in tables.items()}
        if not self.assets:
            return {}
        return require_manager(resources, self.io_manager_key, name).references(self.assets)


@dataclass(frozen=True, slots=True)
class CheckStep:
    """What the checks of one table do in a run."""

    key: dg.AssetKey
    contract: Contract
    dataset: Dataset
    translator: ContractTranslator
    on_violation: str
    samples: int
    source: Source
    references: References
    schema_modes: Mapping[str, Mode]

    def compute(self) -> Callable[..., Iterator[dg.AssetCheckResult]]:
        """The function that Dagster calls."""

        # Dagster looks for a function, and at its annotations, which must not be texts it cannot resolve.
        def compute(context):  # type: ignore[no-untyped-def]
            yield from self.run(context)

        # Dagster asks for it more than a dozen times, and it would be found out anew each time.
        compute.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
        return compute

    def run(self, context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        """Verify the table and report the checks that are selected."""
        selected = {check.name for check in context.selected_asset_check_keys}
        groups = selected_groups(self.contract, self.dataset, self.translator, selected)
        tagged = context.run.tags.get(SCHEMA_MODES_TAG)
        run_modes = parse_modes_text(tagged, whose=f"the tag {SCHEMA_MODES_TAG}") if tagged is not None else None
        table = self.source.open(context.resources)
        name = self.key.to_user_string()
        evaluation = evaluate_table(
            table.df,
            self.contract,
            self.dataset.name,
            samples=self.samples,
            lenient=only_warns(self.contract, self.on_violation),
            readable_version=table.version,
            untyped=table.untyped,
            references=self.references.open(context.resources, lambda: self.source.session(context.resources), name),
            progress=logged_progress(context.log, name),
            schema_modes=narrowed(table.modes, self.schema_modes, run_modes),
            ours=table.ours,
            partition_by=table.partition_by,
        )
        yield from evaluation.results(self.key, groups)
        if evaluation.stops(groups):
            raise evaluation.failure(self.key)
