"""The IO manager of contracted tables: their place on disk, their Spark session, and how inputs are read."""

# No `from __future__ import annotations`: Dagster looks at the annotations of a resource while its class is made.

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dagster as dg
from pydantic import Field, field_validator

from databox_contracts.dagster.evaluations import Evaluation
from databox_contracts.dagster.inputs import read_input
from databox_contracts.dagster.metadata import (
    CONTRACT_METADATA,
    DATASET_METADATA,
    ON_VIOLATION_METADATA,
    REFERENCES_METADATA,
    SCHEMA_MODES_METADATA,
    metadata_path,
    metadata_value,
)
from databox_contracts.dagster.partitions import PARTITION_METADATA, TablePartitions, declared_partitions
from databox_contracts.dagster.progress import Scans, logged_progress
from databox_contracts.dagster.specs import resolve_contract
from databox_contracts.errors import ContractViolationError, DataboxError
from databox_contracts.model import Contract, Mode
from databox_contracts.schema_modes import ModesGiven, narrowed, parse_modes, parse_modes_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.spark import Publication, TablePlace
    from databox_contracts.spark.column_sources import Sources
    from databox_contracts.spark.progress import OnProgress
    from databox_contracts.spark.publication import OnViolation

SCHEMA_MODES_TAG: Final = "databox/schema_modes"
"""The tag of a run whose value goes before every other setting: `freeze`, or `columns=evolve, data_type=freeze`."""
MODES: Final = ("fail", "quarantine", "warn")


class ContractIOManager(dg.ConfigurableIOManager):
    """Tables below `root`, each at its asset key's path: `weather/hourly` for `AssetKey(["weather", "hourly"])`.

    Every input is loaded as a Spark DataFrame of the version that is published when the step opens it. A
    `@contract_asset` publishes its table itself. A plain asset that returns a DataFrame is published here, under the
    contract that its metadata names: `{"contract": "contracts/planes.yaml"}`, with `contract_dataset` where the file
    has several, `on_violation` (`fail`, `quarantine`, `warn`), `schema_modes`, and `references`, the asset keys of the
    datasets that foreign keys and completeness name: `{"stations": "weather/stations"}`.

    Of a partitioned asset each run replaces its partitions and no others; `partition_expr` names the column, or the
    column of each dimension, unless the contract declares it. An input has the rows of the partitions that it maps to.
    What its reader `consumes` (of a plain asset the metadata of its input: `AssetIn(metadata={"consumes": "^2"})`) is
    held against the table when it is opened.

    `schema_modes` is what becomes of data that a contract does not know, for every table that says nothing else: a word
    (`evolve`, `freeze`, `discard_row`, `discard_value`) or a mapping from some of `tables`, `columns`, `data_type`. An
    asset's own goes before it, a run's tag `databox/schema_modes` before both.

    With `column_lineage`, columns of inputs carry in their metadata which asset's they are, and a materialization says
    which columns it took from which: selected, renamed, joined or grouped by, under whatever name. What is computed is
    for the contract to say.

    `spark` is any resource with a `spark_session`, such as `SharedSparkResource` or dagster-pyspark's
    `LazyPySparkResource`, or a Spark session itself.
    """

    root: str = Field(description="The directory below which the tables are.")
    format: str = Field(default="parquet", description="What the next versions' files are: parquet, orc, json, csv.")
    spark: dg.ResourceDependency[Any]
    schema_modes: dict[str, str] = Field(default={}, description="What becomes of data that a contract does not know.")

    column_lineage: bool = Field(default=False, description="Whether a table says which columns it took as they are.")

    @field_validator("schema_modes", mode="before")
    @classmethod
    def _read_modes(cls, given: Any) -> Any:
        # What is no plain value is Dagster's own, to be resolved later.
        if isinstance(given, str | Mapping):
            return {entity: str(mode) for entity, mode in parse_modes(given, whose="ContractIOManager").items()}
        return given

    def modes_of(self, asset: ModesGiven, tags: Mapping[str, str]) -> dict[str, Mode]:
        """The modes that are set for an asset in a run with those tags, the narrowest first."""
        written = tags.get(SCHEMA_MODES_TAG)
        run = parse_modes_text(written, whose=f"the tag {SCHEMA_MODES_TAG}") if written is not None else None
        return narrowed(self.schema_modes, asset, run)

    @property
    def spark_session(self) -> "SparkSession":
        """The session of the `spark` resource, started now if it is a lazy one."""
        return session_of(self.spark)

    def place(self, asset_key: dg.AssetKey) -> "TablePlace":
        """Where the asset's table is. Raises `PublicationError` for a key that would lead out of the root."""
        from databox_contracts.spark import TablePlace

        return TablePlace(Path(self.root), "/".join(asset_key.path), self.format)

    def read(self, asset_key: dg.AssetKey) -> "DataFrame":
        """The published table. Raises `UnreadableTableError`."""
        from databox_contracts.spark import read_published

        return read_published(self.spark_session, self.place(asset_key))

    def references(self, keys: Mapping[str, dg.AssetKey]) -> "dict[str, DataFrame]":
        """The published tables of the assets that promises refer to, by the name they are called there.

        One that is not published yet is left out: the rules that name it say that they could not be evaluated.
        """
        return {name: self.read(key) for name, key in keys.items() if self.place(key).current_version() is not None}

    def load_input(self, context: dg.InputContext) -> "DataFrame":
        """Open the upstream asset's published table, as `consumes` asks for it."""
        if not context.has_asset_key:
            raise DataboxError(
                f"the input {context.name!r} is no asset, so it has no published table",
                hint="Give the input an asset key, or another IO manager.",
            )
        return read_input(self, context)

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Publish what a plain asset returned, under the contract of its metadata.

        Raises `dagster.Failure`, which is not retried, for data that breaks it.
        """
        key = context.asset_key if context.has_asset_key else None
        name = key.to_user_string() if key is not None else context.name
        named = metadata_path(context.definition_metadata, CONTRACT_METADATA)
        if key is None or named is None:
            # Written without a contract, it would look to readers like the tables that have one.
            raise DataboxError(
                f"ContractIOManager publishes only tables with a contract, and {name} has none",
                hint='Use @contract_asset, or metadata={"contract": PATH}, or give the asset another io_manager_key.',
            )
        contract = resolve_contract(Path(named))
        dataset = _text(context, DATASET_METADATA)
        of = _partitions(context, contract, dataset)
        published = self.publish(
            require_dataframe(obj, name),
            contract,
            dataset,
            asset_key=key,
            on_violation=require_mode(_text(context, ON_VIOLATION_METADATA) or "fail"),
            run_id=context.run_id,
            references=self.references(_reference_keys(context)),
            progress=logged_progress(context.log, name),
            schema_modes=self.modes_of(
                metadata_value(context.definition_metadata, SCHEMA_MODES_METADATA), _run_tags(context)
            ),
            partition_by=of.columns if of is not None else (),
            partitions=of.rows_of(context.asset_partition_keys) if of is not None else None,
        )
        if published.left_out:
            context.log.warning(published.left_out)
        elif not published.lenient:
            raise published.failure(key)
        made = published.materialization(key, contract.dataset(dataset), _deps(context))
        context.add_output_metadata(dict(made.metadata or {}))

    def publish(
        self,
        df: "DataFrame",
        contract: Contract,
        dataset: str | None,
        *,
        asset_key: dg.AssetKey,
        on_violation: "OnViolation",
        run_id: str,
        samples: int = 5,
        references: "Mapping[str, DataFrame] | None" = None,
        progress: "OnProgress | None" = None,
        schema_modes: ModesGiven = None,
        partition_by: Sequence[str] = (),
        partitions: "Sequence[Mapping[str, Any]] | None" = None,
    ) -> Evaluation:
        """Publish a table at the asset's place; what its contract forbids is in the evaluation, not raised.

        With `partition_by` the rows replace those of `partitions` (a value for each of the columns) and no others.
        """
        from databox_contracts.spark import publish
        from databox_contracts.spark.column_sources import sources, unmarked

        started = time.monotonic()
        taken: Sources = {}
        if self.column_lineage:
            taken, df = sources(df), unmarked(df)
        scans = Scans(progress)
        publication: Publication
        try:
            publication = publish(
                df,
                contract,
                dataset,
                place=self.place(asset_key),
                on_violation=on_violation,
                run_id=run_id,
                samples=samples,
                references=references,
                progress=scans,
                schema_modes=schema_modes,
                mode="overwrite_partitions" if partition_by else "overwrite",
                partition_by=partition_by,
                partitions=partitions,
            )
        except ContractViolationError as error:
            publication = error.publication
        return Evaluation(
            contract,
            publication.verdict,
            time.monotonic() - started,
            publication=publication,
            lenient=publication.published,
            outcomes=publication.partitions,
            scans=scans.count,
            sources=taken,
        )


def session_of(resource: Any) -> "SparkSession":
    """The Spark session of a resource, or the session itself. Raises `DataboxError` for what is neither."""
    if hasattr(resource, "spark_session"):
        session: SparkSession = resource.spark_session
        return session
    if hasattr(resource, "createDataFrame"):
        given: SparkSession = resource
        return given
    raise DataboxError(
        f"{type(resource).__name__} has no spark_session",
        hint="Use SharedSparkResource, dagster-pyspark's LazyPySparkResource, or a Spark session.",
    )


def require_dataframe(obj: object, name: str) -> "DataFrame":
    """The object, if it is a Spark DataFrame, of a classic session or over Connect."""
    from databox_contracts.spark import is_dataframe

    if is_dataframe(obj):
        return obj
    got = "nothing" if obj is None else f"{type(obj).__module__}.{type(obj).__qualname__}"
    raise DataboxError(
        f"{name} returned {got} where a Spark DataFrame is due", hint="Did you forget to return the DataFrame?"
    )


def require_mode(on_violation: str) -> "OnViolation":
    """The mode, if there is one of that name."""
    if on_violation not in MODES:
        raise DataboxError(f"unknown on_violation {on_violation!r}", hint=f"Use one of {', '.join(MODES)}.")
    return on_violation  # type: ignore[return-value]


def require_manager(resources: Any, io_manager_key: str, name: str) -> ContractIOManager:
    """The `ContractIOManager` of that key; `name` is whose table it holds."""
    manager = getattr(resources, io_manager_key)
    if isinstance(manager, ContractIOManager):
        return manager
    raise DataboxError(
        f"the table of {name} is published and read through its IO manager, and the resource {io_manager_key!r}"
        f" is a {type(manager).__name__}",
        hint=f'Put a ContractIOManager there: resources={{"{io_manager_key}": ContractIOManager(...)}}.',
    )


def _partitions(context: dg.OutputContext, contract: Contract, dataset: str | None) -> TablePartitions | None:
    """The partitions of a plain asset, None where it has none. Raises `DataboxError` for a key that there is not."""
    if not context.has_asset_partitions:
        return None
    said = metadata_value(context.definition_metadata, PARTITION_METADATA)
    found = declared_partitions(context.asset_partitions_def, said, contract, contract.dataset(dataset))
    instance = context.step_context.instance
    found.require(list(context.asset_partition_keys), instance, context.asset_key.to_user_string())
    return found


def _run_tags(context: dg.OutputContext) -> Mapping[str, str]:
    try:
        tags: Mapping[str, str] = context.step_context.run_tags
    except dg.DagsterInvariantViolationError:
        # A context that was built by hand belongs to no run.
        return {}
    return tags


def _deps(context: dg.OutputContext) -> Iterable[dg.AssetDep]:
    try:
        return context.asset_spec.deps
    except dg.DagsterInvariantViolationError:
        # Nor is it known of which asset's definition it is.
        return ()


def _text(context: dg.OutputContext, name: str) -> str | None:
    value = metadata_value(context.definition_metadata, name)
    return None if value is None else str(value)


def reference_keys(references: Mapping[str, Any]) -> dict[str, dg.AssetKey]:
    """The assets of referenced datasets; a text is a key as it is shown, `weather/stations`.

    Raises `DataboxError` for what is no asset key.
    """
    if not isinstance(references, Mapping):
        raise _no_asset()
    return {str(name): _asset_key(key) for name, key in references.items()}


def _asset_key(value: Any) -> dg.AssetKey:
    match value:
        case dg.AssetKey():
            return value
        case dg.AssetsDefinition() | dg.AssetSpec():
            return value.key
        case str():
            return dg.AssetKey.from_user_string(value)
        case list() | tuple() if value and all(isinstance(part, str) for part in value):
            return dg.AssetKey(list(value))
    raise _no_asset()


def _no_asset() -> DataboxError:
    return DataboxError(
        "references maps the name of a dataset to an asset", hint='Write references={"stations": "weather/stations"}.'
    )


def _reference_keys(context: dg.OutputContext) -> dict[str, dg.AssetKey]:
    return reference_keys(metadata_value(context.definition_metadata, REFERENCES_METADATA) or {})
