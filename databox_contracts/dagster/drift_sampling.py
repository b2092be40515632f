"""What the drift check of a table does in a run: sample it, tell of what drifted, report it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from databox_contracts.baselines import BaselineStore
from databox_contracts.dagster.contracted_tables import ContractedTable, Files, Published, Source
from databox_contracts.dagster.drift_messages import Told, tell_of_drift
from databox_contracts.dagster.drift_results import drift_result
from databox_contracts.dagster.io import require_manager
from databox_contracts.dagster.registries import RegistryGiven, opened
from databox_contracts.drift import DriftReport
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract
from databox_contracts.schema_modes import ModesGiven, effective_modes, narrowed

if TYPE_CHECKING:
    from databox_contracts.registry.store import Registry

UPDATE_BASELINE_TAG: Final = "databox/update_baseline"
"""The tag of a run that with the value `true` accepts the tables as they are: its samples are the new baselines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """What the drift check of a table does in a run."""

    check_name: str
    baselines: BaselineStore | None
    registry: RegistryGiven
    notify: tuple[Told, ...]
    owner_contacts: tuple[str, ...]
    quarantine: Path | None
    schema_modes: ModesGiven
    arguments: Mapping[str, Any]
    clock: Callable[[], datetime]

    def compute(self, table: ContractedTable) -> Callable[..., Iterator[dg.AssetCheckResult]]:
        """The function that Dagster calls for a table."""

        # Dagster looks for a function, and at its annotations, which must not be texts it cannot resolve.
        def compute(context):  # type: ignore[no-untyped-def]
            yield from self.run(context, table)

        return compute

    def run(self, context: dg.AssetCheckExecutionContext, table: ContractedTable) -> Iterator[dg.AssetCheckResult]:
        """Sample the table, tell of what drifted, and report it; what nobody could be told of is reported all the same.

        Raises `dagster.Failure` in plain words for what keeps the sampling from being done.
        """
        started = time.monotonic()
        at = self.clock()
        with ExitStack() as stack:
            try:
                registry = stack.enter_context(opened(self.registry)) if self._needs_registry else None
                report = self._report(context, table, registry, at)
            except DataboxError as error:
                raise dg.Failure(f"{table.name} cannot be sampled: {error}") from None
            told: tuple[str, ...] = ()
            problem = None
            if registry is not None and self.notify:
                try:
                    told = tell_of_drift(
                        registry,
                        table,
                        report,
                        told=self.notify,
                        owner_contacts=self.owner_contacts,
                        run_id=context.run.run_id,
                        occurred_at=at,
                    )
                except DataboxError as error:
                    problem = error
        context.log.info(report.summary())
        facts: dict[str, Any] = {"duration_seconds": round(time.monotonic() - started, 3)}
        if told:
            facts["told"] = ", ".join(told)
        yield drift_result(table, self.check_name, report, **facts)
        if problem is not None:
            raise dg.Failure(f"Of the drift of {table.name} nobody could be told: {problem}")

    @property
    def _needs_registry(self) -> bool:
        return self.baselines is None or bool(self.notify)

    def _report(
        self, context: dg.AssetCheckExecutionContext, table: ContractedTable, registry: Registry | None, at: datetime
    ) -> DriftReport:
        from databox_contracts.spark import sample_drift

        store = self.baselines
        if store is None:
            assert registry is not None
            store = registry.baselines
        source, place, modes = _place(table.source, context.resources, table.name)
        return sample_drift(
            source,
            _under(table, narrowed(modes, self.schema_modes)),
            table.dataset.name,
            store=store,
            update_baseline=_accepts(context.run.tags),
            quarantine=self.quarantine.joinpath(*table.key.path) if self.quarantine is not None else None,
            as_of=at,
            **place,
            **self.arguments,
        )


def _place(source: Source, resources: Any, name: str) -> tuple[Any, dict[str, Any], ModesGiven]:
    """What `sample_drift` is given, a session and where the table is, or a DataFrame; and the code location's modes."""
    match source:
        case Published():
            manager = require_manager(resources, source.resource_key, name)
            return manager.spark_session, {"place": manager.place(source.key)}, manager.schema_modes
        case Files():
            facts = {"path": source.location, "format": source.data_format, "options": source.options}
            return source.session(resources), facts, None
    return source.open(resources).df, {}, None


def _under(table: ContractedTable, modes: ModesGiven) -> Contract:
    """The contract with the modes that the table is judged by."""
    from databox_contracts.spark.schema_audit import as_found

    judged = as_found(effective_modes(table.contract, table.dataset, run=modes))
    datasets = (
        one.model_copy(update={"modes": judged}) if one.name == table.dataset.name else one
        for one in table.contract.datasets
    )
    return table.contract.model_copy(update={"datasets": tuple(datasets)})


def _accepts(tags: Mapping[str, str]) -> bool:
    said = tags.get(UPDATE_BASELINE_TAG, "false").strip().lower()
    if said not in ("true", "false"):
        raise DataboxError(f"the tag {UPDATE_BASELINE_TAG} is {said!r}", hint='Write "true" or "false".')
    return said == "true"
