"""`@contract_asset`: a function that returns a Spark DataFrame, published only if it keeps its contract."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import dagster as dg

from databox_contracts.dagster.evaluations import evaluate_table, only_warns
from databox_contracts.dagster.io import (
    PARTITIONS_HINT,
    SCHEMA_MODES_METADATA,
    ContractIOManager,
    reference_keys,
    require_dataframe,
    require_manager,
    require_mode,
)
from databox_contracts.dagster.progress import logged_progress
from databox_contracts.dagster.signatures import Parameters, input_key, input_keys, read_parameters
from databox_contracts.dagster.specs import CheckGroup, build_asset_spec, check_groups, check_specs, resolve_contract
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset, Mode
from databox_contracts.schema_modes import ModesGiven, effective_modes, parse_modes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from databox_contracts.spark.publication import OnViolation

Event: TypeAlias = "dg.MaterializeResult[Any] | dg.AssetCheckResult"


def contract_asset(
    function: Any = None,
    /,
    *,
    contract: Contract | str | Path | None = None,
    dataset: str | None = None,
    on_violation: OnViolation = "fail",
    schema_modes: ModesGiven = None,
    consumes: Mapping[str, str] | None = None,
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
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    op_tags: Mapping[str, Any] | None = None,
    config_schema: Any = None,
    required_resource_keys: set[str] | None = None,
    resource_defs: Mapping[str, object] | None = None,
    hooks: set[dg.HookDefinition] | None = None,
    pool: str | None = None,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """An asset whose function returns a Spark DataFrame, which is published only if it keeps its contract.

    `contract` is the contract or its file, a relative path counting from the working directory, else from the
    function's own file; `dataset` names the table where the contract has several. `on_violation` is what data that
    breaks an error rule does: "fail" publishes nothing and fails the run, "quarantine" holds the violating rows and
    publishes the rest, "warn" publishes all and says so. `schema_modes` is what becomes of data that the contract does
    not know: a word (evolve, freeze, discard_row, discard_value), or a mapping from some of tables, columns and
    data_type; it goes before that of the `ContractIOManager`, and a run's tag `databox/schema_modes` before both.
    `consumes` maps the datasets that the function reads to the
    versions it can read (`{"weather.stations": "^2"}`): a parameter named like a dataset's last part is that input,
    the others are dependencies. `references` maps the datasets that foreign keys and completeness name, as the contract
    names them, to the assets they are (`{"weather.stations": "weather/stations"}`): dependencies, whose published
    tables are read when the rules are judged. `samples` is how many offending values a failed rule shows.

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
    if partitions_def is not None:
        raise DataboxError("partitions of a contracted asset are not published yet", hint=PARTITIONS_HINT)
    mode = require_mode(on_violation)
    referenced = reference_keys(references or {})
    given_modes = parse_modes(schema_modes)
    using = translator if translator is not None else ContractTranslator()

    def decorate(function: Callable[..., Any]) -> dg.AssetsDefinition:
        _require_plain(function)
        resolved = resolve_contract(contract, beside=function.__code__.co_filename)
        chosen = resolved.dataset(dataset)
        effective_modes(resolved, chosen, asset=given_modes)
        parameters = read_parameters(function)
        all_ins, only_deps = input_keys(parameters, ins or {}, consumes or {}, function.__name__)
        spec = build_asset_spec(
            resolved,
            chosen,
            translator=using,
            key=dg.AssetKey.from_coercible(key) if key is not None else None,
            io_manager_key=io_manager_key,
        )
        # A table that refers to itself does not wait for itself.
        others = [one for one in referenced.values() if one != spec.key]
        spec = _given(
            spec,
            group_name=group_name,
            description=description or (None if spec.description else inspect.getdoc(function)),
            owners=owners,
            kinds=kinds,
            tags=_tags(spec, tags, kinds),
            metadata={
                **spec.metadata,
                "on_violation": mode,
                **({SCHEMA_MODES_METADATA: dg.MetadataValue.json(given_modes)} if given_modes else {}),
                **({"consumes": dg.MetadataValue.json(dict(consumes))} if consumes else {}),
                **(metadata or {}),
            },
            code_version=code_version,
            automation_condition=automation_condition,
        ).replace_attributes(skippable=True, deps=_deps(all_ins, [*only_deps, *others], deps or ()))
        groups = check_groups(resolved, chosen, using)
        step = ContractStep(
            function,
            parameters,
            spec.key,
            resolved,
            chosen,
            groups,
            mode,
            samples,
            io_manager_key=io_manager_key,
            references=referenced,
            schema_modes=given_modes,
        )
        return dg.multi_asset(
            name=spec.key.to_python_identifier(),
            specs=[spec],
            check_specs=check_specs(resolved, chosen, groups, spec.key),
            can_subset=True,
            # All but the key belongs to the dependency.
            ins={
                name: dg.AssetIn(key=input_key(name, asset_in), input_manager_key=asset_in.input_manager_key)
                for name, asset_in in all_ins.items()
            },
            retry_policy=retry_policy,
            op_tags=op_tags,
            config_schema=config_schema,
            required_resource_keys={io_manager_key, *required_resource_keys} if required_resource_keys else None,
            resource_defs=resource_defs,
            hooks=hooks,
            pool=pool,
        )(step.compute(asks_for_manager=not required_resource_keys))

    return decorate


@dataclass(frozen=True, slots=True)
class ContractStep:
    """What a contracted asset does in a run."""

    function: Callable[..., Any]
    parameters: Parameters
    key: dg.AssetKey
    contract: Contract
    dataset: Dataset
    groups: tuple[CheckGroup, ...]
    on_violation: OnViolation
    samples: int
    io_manager_key: str
    references: Mapping[str, dg.AssetKey]
    schema_modes: Mapping[str, Mode]

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
        """Publish, or only look at the published table where nothing but checks is selected."""
        manager = require_manager(context.resources, self.io_manager_key, self.key.to_user_string())
        selected = {check.name for check in context.selected_asset_check_keys}
        groups = [group for group in self.groups if group.name in selected]
        modes = manager.modes_of(self.schema_modes, context.run.tags)
        if self.key not in context.selected_asset_keys:
            yield from self._check(context, manager, groups, modes)
            return
        produced = self.function(context, **arguments) if self.parameters.takes_context else self.function(**arguments)
        evaluation = manager.publish(
            require_dataframe(produced, self.key.to_user_string()),
            self.contract,
            self.dataset.name,
            asset_key=self.key,
            on_violation=self.on_violation,
            run_id=context.run.run_id,
            samples=self.samples,
            references=self._tables(manager),
            progress=logged_progress(context.log, self.key.to_user_string()),
            schema_modes=modes,
        )
        if evaluation.left_out:
            context.log.warning(evaluation.left_out)
            yield from evaluation.results(self.key, groups)
            return
        if not evaluation.lenient:
            # The results are recorded before the step fails; without an output nothing counts as materialized.
            yield from evaluation.results(self.key, groups)
            raise evaluation.failure(self.key)
        log = context.log.info if evaluation.verdict.passed else context.log.warning
        log(evaluation.verdict.summary())
        yield evaluation.materialization(self.key)
        yield from evaluation.results(self.key, groups)

    def _tables(self, manager: ContractIOManager) -> dict[str, DataFrame]:
        # Of a table that refers to itself, the rows that are judged are meant, not those published before.
        return manager.references({name: key for name, key in self.references.items() if key != self.key})

    def _check(
        self,
        context: dg.AssetExecutionContext,
        manager: ContractIOManager,
        groups: Sequence[CheckGroup],
        modes: Mapping[str, Mode],
    ) -> Iterator[Event]:
        version = manager.place(self.key).current_version()
        evaluation = evaluate_table(
            manager.read(self.key),
            self.contract,
            self.dataset.name,
            samples=self.samples,
            lenient=only_warns(self.contract, self.on_violation),
            readable_version=version,
            references=self._tables(manager),
            progress=logged_progress(context.log, self.key.to_user_string()),
            schema_modes=modes,
            ours=True,
        )
        yield from evaluation.results(self.key, groups)
        if evaluation.stops(groups):
            raise evaluation.failure(self.key)


def _given(spec: dg.AssetSpec, **attributes: Any) -> dg.AssetSpec:
    return spec.replace_attributes(**{name: value for name, value in attributes.items() if value is not None})


def _tags(spec: dg.AssetSpec, tags: Mapping[str, str] | None, kinds: set[str] | None) -> dict[str, str]:
    # Kinds are tags to Dagster, and those given would be added to those there are.
    own = {name: value for name, value in spec.tags.items() if kinds is None or not name.startswith("dagster/kind/")}
    return {**own, **(tags or {})}


def _deps(ins: Mapping[str, dg.AssetIn], consumed: Iterable[dg.AssetKey], deps: Iterable[Any]) -> list[dg.AssetDep]:
    found = {}
    for name, asset_in in ins.items():
        asset_key = input_key(name, asset_in)
        found[asset_key] = dg.AssetDep(
            asset_key, partition_mapping=asset_in.partition_mapping, metadata=asset_in.metadata or None
        )
    for dep in (*consumed, *deps):
        given = dep if isinstance(dep, dg.AssetDep) else dg.AssetDep(dep)
        found.setdefault(given.asset_key, given)
    return list(found.values())


def _require_plain(function: object) -> None:
    if not inspect.isfunction(function):
        raise DataboxError(
            f"contract_asset decorates a function, and this is a {type(function).__name__}",
            hint="Put it directly above the function, below nothing else of Dagster's.",
        )
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise DataboxError(
            f"{function.__name__} yields or awaits; a contracted asset returns one Spark DataFrame",
            hint="Return the DataFrame; contract_asset yields Dagster's events itself.",
        )
