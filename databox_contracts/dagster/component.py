"""Data contracts as a component of a `dg` project: what the Python functions build, said in `defs.yaml`."""

# No `from __future__ import annotations`: Dagster looks at the annotations of a component while its class is made.

from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import dagster as dg
from pydantic import Field

from databox_contracts.check_reports import Granularity
from databox_contracts.dagster.audit_schedule import build_contract_audit_schedule
from databox_contracts.dagster.checks import build_contract_checks
from databox_contracts.dagster.drift_schedule import build_drift_schedule
from databox_contracts.dagster.io import ContractIOManager
from databox_contracts.dagster.resources import SharedSparkResource
from databox_contracts.dagster.scaffolding import ContractsScaffolder
from databox_contracts.dagster.specs import build_contract_asset_specs
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.dagster.watching import all_contracts
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract

if TYPE_CHECKING:
    from databox_contracts.dagster.drift_messages import Told

Status = Literal["running", "stopped"]


class ScheduleSettings(dg.Resolvable, dg.Model):
    """When a schedule runs."""

    cron: str = Field(description='A cron expression, such as "0 6 * * *".')
    timezone: str | None = Field(default=None, description='Of the cron expression, such as "Europe/Berlin"; else UTC.')
    status: Status = Field(default="stopped", description="Whether it runs without somebody starting it.")

    @property
    def default_status(self) -> dg.DefaultScheduleStatus:
        """As Dagster's schedules have it."""
        return dg.DefaultScheduleStatus.RUNNING if self.status == "running" else dg.DefaultScheduleStatus.STOPPED


class DriftSettings(ScheduleSettings):
    """A schedule that samples the tables; see `build_drift_schedule`."""

    baselines: str | None = Field(default=None, description="The directory of the baselines; else the registry.")
    quarantine: str | None = Field(default=None, description="Where rows that drifted are copied; else nowhere.")
    # Of a list of literals `dg` would only say that something in it is not valid.
    notify: list[str] = Field(default=["owner"], description="Who is told: owner, consumers; nobody, if empty.")
    owner_contacts: list[str] = Field(
        default=[], description="Where the owner is told; else at the e-mail addresses that the contract names."
    )
    rows: int = Field(default=100_000, description="At most so many rows are sampled.")
    files: int = Field(default=32, description="Of at most so many of the newest files.")


class AuditSettings(ScheduleSettings):
    """A schedule that compares contracts with tables and registry; see `build_contract_audit_schedule`."""

    cron: str = Field(default="0 6 * * *", description="A cron expression; every day at six if not given.")
    on_divergence: Literal["fail", "warn"] = Field(
        default="fail", description="Whether a difference fails the run, or is a warning."
    )


class TableSettings(dg.Resolvable, dg.Model):
    """Resources `io_manager` and `spark` for the tables."""

    root: str = Field(description="The directory below which the tables are.")
    spark_directory: str = Field(description="Where the shared Spark server keeps its state; only its owner may write.")
    format: Literal["parquet", "orc", "json", "csv"] = Field(
        default="parquet", description="What the next versions' files are."
    )
    spark_conf: dict[str, str | int | float | bool] = Field(
        default={}, description="Spark options, such as spark.driver.memory."
    )


@dg.scaffold_with(ContractsScaffolder)
class DataContractsComponent(dg.Component, dg.Resolvable, dg.Model):
    """Assets, checks and schedules of data contracts.

    Relative paths count from the component's own folder. For another key, name or owner override `translator`.
    """

    contracts: str | list[str] = Field(
        description="A folder of contracts, a contract's file, or a list of such, from the component's folder."
    )
    granularity: Granularity = Field(
        default="dimension", description="How many checks a table gets: one, one per quality dimension, one per rule."
    )
    assets: bool = Field(
        default=True, description="Whether the tables are declared as external assets; no, where code declares them."
    )
    checks: bool = Field(
        default=True, description="Whether the tables get checks that verify them; no, where @contract_asset has them."
    )
    on_violation: Literal["fail", "warn"] = Field(
        default="fail", description="Whether a violation found by these checks blocks, or is a warning."
    )
    registry: str | None = Field(
        default=None,
        description="The registry's file or postgresql:// URL; else DATABOX_REGISTRY or the file in DAGSTER_HOME.",
    )
    tables: TableSettings | None = Field(
        default=None, description="Resources for the tables; left out where the project has `io_manager` and `spark`."
    )
    drift: DriftSettings | None = Field(default=None, description="Sample the tables by a schedule.")
    audit: AuditSettings | None = Field(
        default=None, description="Compare contracts with tables and registry by a schedule."
    )
    name: str | None = Field(
        default=None, description="Begins the names of the schedules, where a project has several such components."
    )

    def translator(self) -> ContractTranslator:
        """How contracts appear in Dagster; override it in a subclass."""
        return ContractTranslator(granularity=self.granularity)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """What the Python functions make of the contracts. Raises `ContractError`, `DataboxError`."""
        contracts = self._contracts(context.path)
        translator = self.translator()
        parts = [dg.Definitions(resources=self._resources(context.path))]
        if self.assets:
            specs = [
                spec for contract in contracts for spec in build_contract_asset_specs(contract, translator=translator)
            ]
            parts.append(dg.Definitions(assets=specs))
        if self.checks:
            checks = build_contract_checks(contracts, translator=translator, on_violation=self.on_violation)
            parts.append(dg.Definitions(asset_checks=checks))
        parts.extend(self._schedules(contracts, translator, context.path))
        return dg.Definitions.merge(*parts)

    def _contracts(self, folder: Path) -> list[Contract]:
        given = [self.contracts] if isinstance(self.contracts, str) else self.contracts
        paths = [_beside(folder, path) for path in given]
        for written, path in zip(given, paths, strict=True):
            if not Path(path).exists():
                raise DataboxError(
                    f"there is no folder or file of contracts {written!r} in {folder}",
                    hint="Correct `contracts` in defs.yaml; a relative path counts from the component's folder.",
                )
        return all_contracts([Path(path) for path in paths])

    def _schedules(
        self, contracts: list[Contract], translator: ContractTranslator, folder: Path
    ) -> list[dg.Definitions]:
        prefix = f"{self.name}_" if self.name else ""
        found = []
        if self.drift is not None:
            drift = self.drift
            found.append(
                build_drift_schedule(
                    contracts,
                    drift.cron,
                    name=f"{prefix}contract_drift",
                    timezone=drift.timezone,
                    default_status=drift.default_status,
                    translator=translator,
                    baselines=_beside(folder, drift.baselines) if drift.baselines is not None else None,
                    registry=self._registry(folder),
                    notify=cast("list[Told]", drift.notify),
                    owner_contacts=drift.owner_contacts,
                    quarantine=_beside(folder, drift.quarantine) if drift.quarantine is not None else None,
                    rows=drift.rows,
                    files=drift.files,
                )
            )
        if self.audit is not None:
            found.append(
                build_contract_audit_schedule(
                    contracts,
                    self.audit.cron,
                    name=f"{prefix}contract_audit",
                    timezone=self.audit.timezone,
                    default_status=self.audit.default_status,
                    translator=translator,
                    registry=self._registry(folder),
                    on_divergence=self.audit.on_divergence,
                )
            )
        return found

    def _registry(self, folder: Path) -> str | None:
        if self.registry is None or "://" in self.registry:
            return self.registry
        return _beside(folder, self.registry)

    def _resources(self, folder: Path) -> dict[str, object]:
        if self.tables is None:
            return {}
        directory = _beside(folder, self.tables.spark_directory)
        spark = SharedSparkResource(directory=directory, conf=dict(self.tables.spark_conf))
        root = _beside(folder, self.tables.root)
        return {"spark": spark, "io_manager": ContractIOManager(root=root, format=self.tables.format, spark=spark)}


def _beside(folder: Path, path: str) -> str:
    """The path, from the component's folder where it is relative."""
    return str(folder / Path(path).expanduser())
