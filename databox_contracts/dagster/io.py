"""The IO manager of contracted tables: their place on disk, their Spark session, and how inputs are read."""

# No `from __future__ import annotations`: Dagster looks at the annotations of a resource while its class is made.

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dagster as dg
from pydantic import Field

from databox_contracts.dagster.evaluations import Evaluation
from databox_contracts.dagster.specs import resolve_contract
from databox_contracts.errors import ContractViolationError, DataboxError
from databox_contracts.model import Contract

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from databox_contracts.spark import Publication, TablePlace
    from databox_contracts.spark.publication import OnViolation

CONTRACT_METADATA: Final = "contract"
DATASET_METADATA: Final = "contract_dataset"
ON_VIOLATION_METADATA: Final = "on_violation"
MODES: Final = ("fail", "quarantine", "warn")
PARTITIONS_HINT: Final = "Publish the whole table for now: one partition's rows would replace all others."


class ContractIOManager(dg.ConfigurableIOManager):
    """Tables below `root`, each at its asset key's path: `weather/hourly` for `AssetKey(["weather", "hourly"])`.

    Every input is loaded as a Spark DataFrame of the version that is published when the step opens it. A
    `@contract_asset` publishes its table itself. A plain asset that returns a DataFrame is published here, under the
    contract that its metadata names: `{"contract": "contracts/planes.yaml"}`, with `contract_dataset` where the file
    has several, and `on_violation` (`fail`, `quarantine`, `warn`).

    `spark` is any resource with a `spark_session`, such as `SharedSparkResource` or dagster-pyspark's
    `LazyPySparkResource`, or a Spark session itself.
    """

    root: str = Field(description="The directory below which the tables are.")
    format: str = Field(default="parquet", description="What the next versions' files are: parquet, orc, json, csv.")
    spark: dg.ResourceDependency[Any]

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

    def load_input(self, context: dg.InputContext) -> "DataFrame":
        """Open the upstream asset's published table."""
        if not context.has_asset_key:
            raise DataboxError(
                f"the input {context.name!r} is no asset, so it has no published table",
                hint="Give the input an asset key, or another IO manager.",
            )
        return self.read(context.asset_key)

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Publish what a plain asset returned, under the contract of its metadata.

        Raises `dagster.Failure`, which is not retried, for data that breaks it.
        """
        key = context.asset_key if context.has_asset_key else None
        name = key.to_user_string() if key is not None else context.name
        named = context.definition_metadata.get(CONTRACT_METADATA) if context.definition_metadata else None
        if key is None or named is None:
            # Written without a contract, it would look to readers like the tables that have one.
            raise DataboxError(
                f"ContractIOManager publishes only tables with a contract, and {name} has none",
                hint='Use @contract_asset, or metadata={"contract": PATH}, or give the asset another io_manager_key.',
            )
        if context.has_partition_key:
            raise DataboxError(f"{name} is partitioned, and partitions are not published yet", hint=PARTITIONS_HINT)
        contract = resolve_contract(Path(str(getattr(named, "path", None) or getattr(named, "value", None) or named)))
        published = self.publish(
            require_dataframe(obj, name),
            contract,
            _text(context, DATASET_METADATA),
            asset_key=key,
            on_violation=require_mode(_text(context, ON_VIOLATION_METADATA) or "fail"),
            run_id=context.run_id,
        )
        if not published.lenient:
            raise published.failure(key)
        context.add_output_metadata(dict(published.materialization(key).metadata or {}))

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
    ) -> Evaluation:
        """Publish a table at the asset's place; what its contract forbids is in the evaluation, not raised."""
        from databox_contracts.spark import publish

        started = time.monotonic()
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
            )
        except ContractViolationError as error:
            publication = error.publication
        return Evaluation(
            contract,
            publication.verdict,
            time.monotonic() - started,
            publication=publication,
            lenient=publication.published,
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


def _text(context: dg.OutputContext, name: str) -> str | None:
    value = (context.definition_metadata or {}).get(name)
    return None if value is None else str(getattr(value, "value", value))
