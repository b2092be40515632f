"""A schedule that compares contracts with the tables there are, and with what is registered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import dagster as dg

from databox_contracts.dagster.contracted_tables import AssetOrKey, ContractedTable, ContractOrPath, Load
from databox_contracts.dagster.divergence import Difference, of_registry, of_schema
from databox_contracts.dagster.evaluations import only_warns
from databox_contracts.dagster.progress import logged_progress
from databox_contracts.dagster.registries import RegistryGiven, named_location, opened, require_database
from databox_contracts.dagster.scheduling import scheduled
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.dagster.watching import table_facts, watched_tables, watching_check
from databox_contracts.dagster.wording import contract_text
from databox_contracts.errors import DataboxError
from databox_contracts.results import Verdict
from databox_contracts.schema_modes import ModesGiven, narrowed, parse_modes

MOST_NAMED: Final = 10
"""A failure names so many differences; its check shows all."""

_DIFFERENCES: Final = dg.TableSchema(
    columns=[
        dg.TableColumn("kind", "string"),
        dg.TableColumn("field", "string"),
        dg.TableColumn("promised", "string", description="By the contract; for versions, by the registry."),
        dg.TableColumn("found", "string", description="In the table; for versions, in the contract's file."),
        dg.TableColumn("message", "string"),
    ]
)


def build_contract_audit_schedule(
    contracts: ContractOrPath | Iterable[ContractOrPath],
    cron: str | Sequence[str] = "0 6 * * *",
    *,
    name: str = "contract_audit",
    check_name: str = "contract_audit",
    timezone: str | None = None,
    default_status: dg.DefaultScheduleStatus = dg.DefaultScheduleStatus.STOPPED,
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
    registry: RegistryGiven = None,
    schema_modes: ModesGiven = None,
    on_divergence: Literal["fail", "warn"] = "fail",
    tags: Mapping[str, str] | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    op_tags: Mapping[str, Any] | None = None,
    pool: str | None = None,
) -> dg.Definitions:
    """Definitions that compare contracts with the actual tables, every day at six unless `cron` says otherwise.

    Merge them with those of the assets, as those of `build_drift_schedule`, which says what the arguments are that both
    have. For each table the check `check_name` compares columns, types and nulls where there must be none (one pass
    over the columns that must not have any), under the `schema_modes`, which go before those of the
    `ContractIOManager` and of the contract. It also compares the contract with what the registry has: its version, and
    what is registered under it. Where no `registry` is given, `DATABOX_REGISTRY` names none and `DAGSTER_HOME` has
    none, the result says that it was not compared.

    Where anything differs, the check fails, an error, with a table of the differences, and so does the run; with
    `on_divergence="warn"`, or in the contract's grace period, it is a warning. Tables are compared independently of
    each other. A table that cannot be read, or a registry that does not answer, is an error of the run, not a failed
    check. Raises `ContractError` for a contract that cannot be used, `DataboxError` for arguments that make no sense.
    """
    if on_divergence not in ("fail", "warn"):
        raise DataboxError(f"unknown on_divergence {on_divergence!r}", hint="Use one of fail, warn.")
    require_database(registry)
    modes = parse_modes(schema_modes)
    tables = watched_tables(
        contracts,
        dataset=dataset,
        asset_key=asset_key,
        assets=assets,
        translator=translator,
        location=location,
        data_format=data_format,
        options=options,
        load=load,
        spark_resource_key=spark_resource_key,
        io_manager_key=io_manager_key,
    )
    audit = Audit(check_name, registry, modes, on_divergence)
    checks = [
        watching_check(
            table,
            check_name,
            audit.compute(table),
            description=f"Contract {contract_text(table.contract)} is what the table has, and what is registered.",
            retry_policy=retry_policy,
            op_tags=op_tags,
            pool=pool,
        )
        for table in tables
    ]
    return scheduled(
        checks,
        name=name,
        cron=cron,
        timezone=timezone,
        default_status=default_status,
        description="Compares contracts with the tables there are, and with what is registered.",
        tags=tags,
    )


@dataclass(frozen=True, slots=True)
class Audit:
    """What the audit check of a table does in a run."""

    check_name: str
    registry: RegistryGiven
    schema_modes: ModesGiven
    on_divergence: str

    def compute(self, table: ContractedTable) -> Callable[..., Iterator[dg.AssetCheckResult]]:
        """The function that Dagster calls for a table."""

        # Dagster looks for a function, and at its annotations, which must not be texts it cannot resolve.
        def compute(context):  # type: ignore[no-untyped-def]
            yield from self.run(context, table)

        return compute

    def run(self, context: dg.AssetCheckExecutionContext, table: ContractedTable) -> Iterator[dg.AssetCheckResult]:
        """Compare, report the differences, and fail where there are any.

        Raises `dagster.Failure` in plain words for what keeps the two from being compared.
        """
        started = time.monotonic()
        try:
            verdict = self._verdict(context, table)
            registered, where = self._registered(table)
        except DataboxError as error:
            raise dg.Failure(f"{table.name} cannot be audited: {error}") from None
        found = [*of_schema(verdict), *registered]
        lenient = only_warns(table.contract, self.on_divergence)
        stops = bool(found) and not lenient
        yield dg.AssetCheckResult(
            asset_key=table.key,
            check_name=self.check_name,
            passed=not found,
            severity=dg.AssetCheckSeverity.ERROR if stops or not found else dg.AssetCheckSeverity.WARN,
            description="; ".join(_named(found)) or _all_well(verdict, where),
            metadata={
                **table_facts(table),
                "rows_in": verdict.row_count,
                "registry": where or "none, so it was not compared with one",
                "differences": len(found),
                **({"divergence": _table(found)} if found else {}),
                "duration_seconds": round(time.monotonic() - started, 3),
            },
        )
        if stops:
            lines = [f"- {one}" for one in _named(found)]
            raise dg.Failure(
                "\n".join([f"Contract {contract_text(table.contract)} and {table.name} have diverged:", *lines]),
                allow_retries=False,
            )

    def _verdict(self, context: dg.AssetCheckExecutionContext, table: ContractedTable) -> Verdict:
        from databox_contracts.spark.failures import SPARK_ERRORS, unreadable
        from databox_contracts.spark.schema_audit import audit_schema

        opened_table = table.source.open(context.resources)
        try:
            return audit_schema(
                opened_table.df,
                table.contract,
                table.dataset.name,
                untyped=opened_table.untyped,
                ours=opened_table.ours,
                schema_modes=narrowed(opened_table.modes, self.schema_modes),
                progress=logged_progress(context.log, table.name),
            )
        except SPARK_ERRORS as error:
            raise unreadable(table.name, error) from error

    def _registered(self, table: ContractedTable) -> tuple[list[Difference], str | None]:
        """The differences from what is registered, and where that is; None where there is no registry."""
        given = self.registry if self.registry is not None else named_location()
        if given is None:
            return [], None
        with opened(given) as registry:
            return list(of_registry(table.contract, registry)), registry.location


def _named(found: Sequence[Difference]) -> list[str]:
    left = len(found) - MOST_NAMED
    return [*(one.message for one in found[:MOST_NAMED]), *([f"and {left} more"] if left > 0 else [])]


def _all_well(verdict: Verdict, where: str | None) -> str:
    held = len(verdict.results)
    registered = "it is as registered" if where is not None else "it was compared with no registry"
    return f"{held} promise{'' if held == 1 else 's'} about the schema {'holds' if held == 1 else 'hold'}; {registered}"


def _table(found: Sequence[Difference]) -> dg.TableMetadataValue:
    return dg.MetadataValue.table([dg.TableRecord(one.to_dict()) for one in found], schema=_DIFFERENCES)
