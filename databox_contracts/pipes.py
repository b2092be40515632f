"""The verdict of a Spark job that an orchestrator launched elsewhere, reported to it through Dagster Pipes.

Such a job has `dagster_pipes` and needs no Dagster; what it reports is what an asset reports that runs in Dagster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from databox_contracts.check_reports import (
    RULES_COLUMNS,
    CheckReport,
    Granularity,
    check_name as usual_name,
    check_report,
    contract_facts,
    grouped,
)
from databox_contracts.errors import ContractViolationError, DataboxError
from databox_contracts.model import Contract
from databox_contracts.plan import Check, build_plan
from databox_contracts.results import CheckResult, Verdict


class PipesContext(Protocol):
    """What is used of `dagster_pipes.PipesContext`."""

    def report_asset_materialization(
        self, metadata: Any = None, data_version: str | None = None, asset_key: str | None = None
    ) -> None:
        """Tell that the asset was made."""
        ...

    def report_asset_check(
        self,
        check_name: str,
        passed: bool,
        severity: Literal["WARN", "ERROR"] = "ERROR",
        metadata: Any = None,
        asset_key: str | None = None,
    ) -> None:
        """Tell how a check ended."""
        ...


class Publication(Protocol):
    """What is used of `databox_contracts.spark.Publication`."""

    @property
    def place(self) -> object: ...
    @property
    def on_violation(self) -> str: ...
    @property
    def published(self) -> bool: ...
    @property
    def version(self) -> str | None: ...
    @property
    def rows_in(self) -> int: ...
    @property
    def rows_published(self) -> int: ...
    @property
    def rows_quarantined(self) -> int: ...
    @property
    def rows_rejected(self) -> int: ...
    @property
    def rows_discarded(self) -> int: ...
    @property
    def quarantine(self) -> object: ...


def report_verdict(
    context: PipesContext,
    verdict: Verdict,
    *,
    contract: Contract,
    publication: Publication | None = None,
    asset_key: str | None = None,
    granularity: Granularity = "dimension",
    check_name: Callable[[Check], str] | None = None,
    on_violation: Literal["return", "raise", "warn"] = "return",
    metadata: Mapping[str, Any] | None = None,
    seconds: float | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> bool:
    """Report each check of a verdict, and the materialization of a table that stands; whether nothing stops it.

    `verdict` is what `spark.verify` gave, or `publication.verdict`; with a `publication` what became of the rows is
    reported too. Where a publish was refused these are `error.verdict` and `error.publication` of its
    `ContractViolationError`. Names of checks follow `granularity` (contract, dimension, rule), or `check_name`, and
    have to be those of the asset's check specs. `asset_key` is needed where the step makes several assets.
    `seconds` is how long it took, `metadata` is added to that of the materialization.

    A violated error rule, or one that could not be evaluated, fails its check and is followed by no materialization,
    unless the publication let it through, the contract's grace period lasts, or `on_violation="warn"` does. With
    "return" the job ends as it will, and `contract_job_results` fails the step. With "raise" this raises
    `ContractViolationError`; clients that launch a process show nothing of what it reported once it fails.
    """
    if on_violation not in ("return", "raise", "warn"):
        raise DataboxError(f"unknown on_violation {on_violation!r}", hint="Use one of return, raise, warn.")
    lenient = _lets_through(contract, publication, on_violation, clock)
    stops = not verdict.passed and not lenient
    facts = {**contract_facts(contract, verdict), **_fate(verdict, publication)}
    if seconds is not None:
        facts["duration_seconds"] = round(seconds, 3)
    if not stops and (publication is None or publication.published):
        context.report_asset_materialization(
            metadata={**_made(verdict, publication), **facts, **(metadata or {})}, asset_key=asset_key
        )
    name_of = check_name if check_name is not None else lambda check: usual_name(check, granularity)
    for report in _reports(contract, verdict, name_of, lenient=lenient):
        context.report_asset_check(
            check_name=report.name,
            passed=report.passed,
            severity="ERROR" if report.stops or report.passed else "WARN",
            metadata={"summary": report.description, **facts, **report.counts, "rules": _table(report)},
            asset_key=asset_key,
        )
    if stops and on_violation == "raise":
        raise ContractViolationError(verdict, publication=publication)
    return not stops


def _lets_through(
    contract: Contract, publication: Publication | None, on_violation: str, clock: Callable[[], datetime]
) -> bool:
    if publication is not None:
        return publication.published
    return on_violation == "warn" or contract.enforcement.only_warns(clock().date())


def _reports(
    contract: Contract, verdict: Verdict, name_of: Callable[[Check], str], *, lenient: bool
) -> list[CheckReport]:
    by_id = {result.id: result for result in verdict.results}
    groups = grouped(build_plan(contract, contract.dataset(verdict.dataset)).checks, name_of)
    unknown = [check.id for checks in groups.values() for check in checks if check.id not in by_id]
    if unknown:
        raise DataboxError(
            f"the verdict on {verdict.dataset} says nothing of {unknown[0]}, which contract {contract.title} promises",
            hint="Report the verdict with the contract that it was made with.",
        )
    return [
        check_report(name, _of(checks, by_id), rows=verdict.row_count, lenient=lenient)
        for name, checks in groups.items()
    ]


def _of(checks: tuple[Check, ...], by_id: Mapping[str, CheckResult]) -> list[CheckResult]:
    return [by_id[check.id] for check in checks]


def _fate(verdict: Verdict, publication: Publication | None) -> dict[str, Any]:
    if publication is None:
        return {"rows_in": verdict.row_count}
    facts: dict[str, Any] = {
        "published": publication.published,
        "on_violation": publication.on_violation,
        "rows_in": publication.rows_in,
        "rows_published": publication.rows_published,
        "rows_quarantined": publication.rows_quarantined,
        "rows_rejected": publication.rows_rejected,
        "rows_discarded": publication.rows_discarded,
    }
    if publication.version is not None:
        facts["readable_version"] = publication.version
    if publication.quarantine is not None:
        facts["quarantine"] = _path(publication.quarantine)
    return facts


def _made(verdict: Verdict, publication: Publication | None) -> dict[str, Any]:
    if publication is None:
        return {"dagster/row_count": verdict.row_count, "contract_holds": verdict.passed}
    return {
        "dagster/row_count": publication.rows_published,
        "path": _path(publication.place),
        "contract_holds": verdict.passed,
    }


def _path(place: object) -> dict[str, str]:
    return {"raw_value": str(place), "type": "path"}


def _table(report: CheckReport) -> dict[str, Any]:
    columns = [{"name": name, "type": type_, "description": about} for name, type_, about in RULES_COLUMNS]
    return {"raw_value": {"schema": columns, "records": list(report.rules)}, "type": "table"}
