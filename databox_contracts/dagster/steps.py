"""What a contracted asset does in a run: publish what its function returns, or look at what is published."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter
from typing import TYPE_CHECKING, Any, TypeAlias

import dagster as dg

from databox_contracts.dagster.consumption import Consumes, consumed_key
from databox_contracts.dagster.evaluations import evaluate_table, only_warns
from databox_contracts.dagster.io import ContractIOManager, require_dataframe, require_manager
from databox_contracts.dagster.partitions import TablePartitions, selected_keys
from databox_contracts.dagster.progress import logged_progress
from databox_contracts.dagster.signatures import Parameters
from databox_contracts.dagster.specs import CheckGroup, selected_groups
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset, Mode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from databox_contracts.spark.publication import OnViolation

Event: TypeAlias = "dg.MaterializeResult[Any] | dg.AssetCheckResult"


@dataclass(frozen=True, slots=True)
class ContractTable:
    """One asset, the dataset that its table is, and how that is judged and published.

    `translator` names its checks.
    """

    key: dg.AssetKey
    contract: Contract
    dataset: Dataset
    translator: ContractTranslator
    on_violation: OnViolation
    samples: int
    references: Mapping[str, dg.AssetKey]
    schema_modes: Mapping[str, Mode]
    partitions: TablePartitions | None = None

    @property
    def name(self) -> str:
        """The asset's key as messages show it."""
        return self.key.to_user_string()

    def publish(
        self, context: dg.AssetExecutionContext, manager: ContractIOManager, df: DataFrame
    ) -> Iterator[Event | dg.Failure]:
        """Publish what the function gave; the events of it, and last the failure if there is one."""
        of = self.partitions
        evaluation = manager.publish(
            df,
            self.contract,
            self.dataset.name,
            asset_key=self.key,
            on_violation=self.on_violation,
            run_id=context.run.run_id,
            samples=self.samples,
            references=self._tables(manager),
            progress=logged_progress(context.log, self.name),
            schema_modes=manager.modes_of(self.schema_modes, context.run.tags),
            partition_by=of.columns if of is not None else (),
            partitions=of.rows_of(of.selected(context, self.key)) if of is not None else None,
        )
        groups = self._selected(context)
        if evaluation.left_out:
            context.log.warning(evaluation.left_out)
            yield from evaluation.results(self.key, groups)
            return
        if not evaluation.lenient:
            # The results are recorded before the step fails; without an output nothing counts as materialized.
            yield from evaluation.results(self.key, groups)
            yield evaluation.failure(self.key)
            return
        log = context.log.info if evaluation.verdict.passed else context.log.warning
        log(evaluation.verdict.summary())
        yield evaluation.materialization(self.key, self.dataset, context.assets_def.get_asset_spec(self.key).deps)
        yield from evaluation.results(self.key, groups)

    def check(self, context: dg.AssetExecutionContext, manager: ContractIOManager) -> Iterator[Event | dg.Failure]:
        """Judge the published table, or its partitions that the run names; the results, and last a failure."""
        of = self.partitions
        keys = selected_keys(context, of.definition, self.key) if of is not None else None
        if of is not None and keys is not None:
            of.require(keys, context.instance, self.name)
        version = manager.place(self.key).current_version()
        groups = self._selected(context)
        evaluation = evaluate_table(
            manager.read(self.key),
            self.contract,
            self.dataset.name,
            samples=self.samples,
            lenient=only_warns(self.contract, self.on_violation),
            readable_version=version,
            references=self._tables(manager),
            progress=logged_progress(context.log, self.name),
            schema_modes=manager.modes_of(self.schema_modes, context.run.tags),
            ours=True,
            partition_by=of.columns if of is not None else (),
            partitions=of.rows_of(keys) if of is not None and keys is not None else None,
        )
        yield from evaluation.results(self.key, groups)
        if evaluation.stops(groups):
            yield evaluation.failure(self.key)

    def _selected(self, context: dg.AssetExecutionContext) -> list[CheckGroup]:
        selected = {check.name for check in context.selected_asset_check_keys if check.asset_key == self.key}
        return selected_groups(self.contract, self.dataset, self.translator, selected)

    def _tables(self, manager: ContractIOManager) -> dict[str, DataFrame]:
        # Of a table that refers to itself, the rows that are judged are meant, not those published before.
        return manager.references({name: key for name, key in self.references.items() if key != self.key})


@dataclass(frozen=True, slots=True)
class ContractStep:
    """A decorated function with the tables that it makes: one DataFrame for one, else a mapping from their names.

    `consumed` is how each dataset that it reads is read, by the name it is called there.
    """

    function: Callable[..., Any]
    parameters: Parameters
    tables: tuple[ContractTable, ...]
    several: bool
    io_manager_key: str
    consumed: Mapping[str, Consumes] = field(default_factory=dict)

    def consumption(self, key: dg.AssetKey) -> Consumes | None:
        """How that asset is read, None where nothing is said of it."""
        return next((one for name, one in self.consumed.items() if consumed_key(name) == key), None)

    def compute(self, *, asks_for_manager: bool) -> Callable[..., Iterator[Event]]:
        """The function that Dagster calls: the decorated function's parameters, and the IO manager if it is to ask."""

        def compute(context: dg.AssetExecutionContext, **arguments: Any) -> Iterator[Event]:
            if adds_manager:
                arguments.pop(self.io_manager_key)
            yield from self.run(context, arguments)

        params = list(self.parameters.signature.parameters.values())
        adds_manager = asks_for_manager and self.io_manager_key not in self.parameters.signature.parameters
        if adds_manager:
            # Dagster takes resources by parameter or by required_resource_keys, never both.
            manager = Parameter(self.io_manager_key, Parameter.KEYWORD_ONLY, annotation=dg.ResourceParam[object])
            at = len(params) - self.parameters.takes_any
            params.insert(at, manager)
        compute.__name__ = self.function.__name__
        compute.__qualname__ = self.function.__qualname__
        compute.__module__ = self.function.__module__
        compute.__doc__ = self.function.__doc__
        compute.__signature__ = inspect.Signature(params)  # type: ignore[attr-defined]
        compute.__annotations__ = {
            param.name: param.annotation for param in params if param.annotation is not Parameter.empty
        }
        return compute

    def run(self, context: dg.AssetExecutionContext, arguments: dict[str, Any]) -> Iterator[Event]:
        """Publish what is selected, and only look at the published tables of which nothing but checks is selected.

        A table that breaks its contract is not published, and the step fails once all others have had their turn.
        """
        manager = require_manager(context.resources, self.io_manager_key, self.tables[0].name)
        made = [table for table in self.tables if table.key in context.selected_asset_keys]
        checked = {check.asset_key for check in context.selected_asset_check_keys}
        frames = self._frames(context, arguments, made) if made else {}
        failures = []
        for table in self.tables:
            if table.key in frames:
                events = table.publish(context, manager, frames[table.key])
            elif table.key in checked:
                events = table.check(context, manager)
            else:
                continue
            for event in events:
                if isinstance(event, dg.Failure):
                    failures.append(event)
                else:
                    yield event
        if failures:
            raise _together(failures)

    def _frames(
        self, context: dg.AssetExecutionContext, arguments: dict[str, Any], made: Sequence[ContractTable]
    ) -> dict[dg.AssetKey, DataFrame]:
        for table in made:
            if table.partitions is not None:
                # A partition that there is not is told before anything is computed.
                table.partitions.selected(context, table.key)
        produced = self.function(context, **arguments) if self.parameters.takes_context else self.function(**arguments)
        if not self.several:
            return {made[0].key: require_dataframe(produced, made[0].name)}
        names = ", ".join(table.dataset.name for table in self.tables)
        if not isinstance(produced, Mapping):
            raise DataboxError(
                f"{self.function.__name__} returned a {type(produced).__name__} where DataFrames by dataset are due",
                hint=f"Return a mapping with {names}.",
            )
        known = {name for table in self.tables for name in (table.dataset.name, table.dataset.table_name)}
        strangers = [str(name) for name in produced if name not in known]
        if strangers:
            raise DataboxError(
                f"{self.function.__name__} returned {strangers[0]!r}, which is no dataset of its contract",
                hint=f"They are {names}.",
            )
        frames = {}
        for table in made:
            given = [produced[name] for name in (table.dataset.name, table.dataset.table_name) if name in produced]
            if not given:
                raise DataboxError(
                    f"{self.function.__name__} returned no {table.dataset.name!r}, which is selected",
                    hint=f"Return a mapping with {', '.join(table.dataset.name for table in made)}.",
                )
            frames[table.key] = require_dataframe(given[0], table.name)
        return frames


def _together(failures: Sequence[dg.Failure]) -> dg.Failure:
    if len(failures) == 1:
        return failures[0]
    return dg.Failure(description="\n\n".join(failure.description or "" for failure in failures), allow_retries=False)
