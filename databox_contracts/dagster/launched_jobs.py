"""Assets that Spark jobs make elsewhere, launched through Dagster Pipes and judged there by `report_verdict`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import dagster as dg

from databox_contracts.dagster.contracted_tables import AssetOrKey, only_key
from databox_contracts.dagster.specs import asset_key as translated_key, check_groups, check_specs, resolve_contract
from databox_contracts.dagster.translator import ContractTranslator
from databox_contracts.model import Contract

Reported: TypeAlias = "dg.MaterializeResult[Any] | dg.AssetCheckResult"


class CompletedJob(Protocol):
    """What every Pipes client's `run` gives."""

    def get_results(self, *, implicit_materializations: bool = True) -> Any:
        """What the job reported."""
        ...


def build_contract_check_specs(
    contract: Contract | str | Path,
    dataset: str | None = None,
    *,
    asset_key: AssetOrKey | None = None,
    translator: ContractTranslator | None = None,
) -> list[dg.AssetCheckSpec]:
    """The check specs of a dataset, for an asset whose own function reports them, such as one that launches a job.

    The asset is the translator's unless `asset_key` says which it is. `dataset` names the table where the contract has
    several. Raises `ContractError` for a file that is no contract, `UnknownDatasetError`.
    """
    resolved = resolve_contract(contract)
    chosen = resolved.dataset(dataset)
    using = translator if translator is not None else ContractTranslator()
    key = only_key(asset_key) if asset_key is not None else translated_key(resolved, chosen, using)
    return check_specs(resolved, chosen, check_groups(resolved, chosen, using), key)


def contract_job_results(completed: CompletedJob) -> Iterator[Reported]:
    """What a job reported with `report_verdict`, for the asset that launched it to yield.

    That is `yield from contract_job_results(client.run(...))`. Pipes itself takes an asset for made when its job ends;
    here it is made only if the job said so. Raises `dagster.Failure`, which is not retried, where an error rule is
    violated or could not be evaluated, and where the job reported no verdict.
    """
    results = list(completed.get_results(implicit_materializations=False))
    checks = [one for one in results if isinstance(one, dg.AssetCheckResult) and "contract_id" in (one.metadata or {})]
    yield from results
    if not checks:
        raise dg.Failure(
            "The job reported no verdict, so that nobody knows whether its table keeps the contract. "
            "Call databox_contracts.pipes.report_verdict in it.",
            allow_retries=False,
        )
    stopping = [one for one in checks if not one.passed and one.severity is dg.AssetCheckSeverity.ERROR]
    if stopping:
        lines = [f"- {one.check_name}: {_summary(one)}" for one in stopping]
        raise dg.Failure("\n".join(["The job's table breaks its contract:", *lines]), allow_retries=False)


def _summary(result: dg.AssetCheckResult) -> str:
    found = (result.metadata or {}).get("summary")
    return str(getattr(found, "value", found) or "violated")
