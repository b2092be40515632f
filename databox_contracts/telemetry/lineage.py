"""OpenLineage events of verifications, with what was checked as facets of the dataset; counts, never a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, Run, RunEvent, RunState
from openlineage.client.generated.data_quality_assertions_dataset import (
    Assertion,
    DataQualityAssertionsDatasetFacet,
)
from openlineage.client.generated.data_quality_metrics_input_dataset import (
    ColumnMetrics,
    DataQualityMetricsInputDatasetFacet,
)
from openlineage.client.generated.parent_run import Job as ParentJob, ParentRunFacet, Run as ParentRun

from databox_contracts.errors import DataboxError
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Severity
from databox_contracts.telemetry.measures import rule_kind

PRODUCER: Final = "urn:databox-contracts"

NAMESPACE: Final = "databox-contracts"

_SEVERITIES: Final = {Severity.ERROR: "error", Severity.WARNING: "warn", Severity.INFO: "info"}


@dataclass(frozen=True, kw_only=True)
class Verification:
    """A verification as a run of its own. `run_id` is any text that is its own; the same gives the same run.

    `table` is the dataset's name in `table_namespace` as other tools call it (`s3://bucket` and a path, say), else the
    contract's. `parent` are namespace, name and run id of the job that it was a part of, such as a Dagster run's id.
    """

    run_id: str
    started_at: datetime
    ended_at: datetime
    job: str | None = None
    namespace: str = NAMESPACE
    table: str | None = None
    table_namespace: str | None = None
    parent: tuple[str, str, str] | None = None


def run_events(verdict: Verdict, verification: Verification) -> tuple[RunEvent, RunEvent]:
    """The beginning of a verification and its end, which failed if anything stops the table.

    Rules that were skipped are in none of them: nobody has judged them.
    """
    run = Run(runId=str(_uuid(verification.run_id)), facets=_facets(verification))
    job = Job(namespace=verification.namespace, name=verification.job or f"verify.{verdict.contract}.{verdict.dataset}")
    name = verification.table or f"{verdict.contract}.{verdict.dataset}"
    namespace = verification.table_namespace or verification.namespace
    judged = InputDataset(namespace=namespace, name=name, inputFacets=_quality(verdict))
    end = RunState.COMPLETE if verdict.passed else RunState.FAIL
    return (
        _event(RunState.START, verification.started_at, run, job, InputDataset(namespace=namespace, name=name)),
        _event(end, verification.ended_at, run, job, judged),
    )


def emit(events: Sequence[RunEvent], client: OpenLineageClient | None = None) -> None:
    """Send the events in their order, by the library's own configuration (`OPENLINEAGE_URL` and so on).

    Raises `DataboxError` where one cannot be sent; whether that matters is for the caller to say.
    """
    try:
        sender = client if client is not None else OpenLineageClient()
        for event in events:
            sender.emit(event)
    except Exception as error:
        # What the transport says may hold its URL, and that a secret.
        raise DataboxError(
            f"the lineage event was not sent: {type(error).__name__}",
            hint="Check OPENLINEAGE_URL, and that its receiver runs.",
        ) from None


def _event(state: RunState, at: datetime, run: Run, job: Job, dataset: InputDataset) -> RunEvent:
    if at.tzinfo is None:
        raise ValueError("a time without a zone")
    return RunEvent(
        eventType=state,
        eventTime=at.astimezone(UTC).isoformat(timespec="milliseconds"),
        run=run,
        job=job,
        producer=PRODUCER,
        inputs=[dataset],
        outputs=[],
    )


def _quality(verdict: Verdict) -> dict[str, Any]:
    judged = [result for result in verdict.results if result.status is not Status.SKIPPED]
    nulls = {
        result.field: ColumnMetrics(nullCount=result.failed_count)
        for result in judged
        if result.rule == "required" and result.field is not None and result.failed_count is not None
    }
    return {
        "dataQualityAssertions": DataQualityAssertionsDatasetFacet(
            assertions=[_assertion(result) for result in judged], producer=PRODUCER
        ),
        "dataQualityMetrics": DataQualityMetricsInputDatasetFacet(
            rowCount=verdict.row_count, columnMetrics=nulls, producer=PRODUCER
        ),
    }


def _assertion(result: CheckResult) -> Assertion:
    """Of what was found only the count of rows: a statistic of a column may be somebody's."""
    return Assertion(
        assertion=rule_kind(result),
        success=result.status is Status.PASSED,
        column=result.field,
        severity=_SEVERITIES[result.severity],
        name=result.id,
        description="it could not be judged" if result.status is Status.NOT_EVALUATED else None,
        actual=str(result.failed_count) if result.failed_count is not None else None,
    )


def _facets(verification: Verification) -> dict[str, Any]:
    if verification.parent is None:
        return {}
    namespace, name, run_id = verification.parent
    return {
        "parent": ParentRunFacet(
            run=ParentRun(runId=str(_uuid(run_id))),
            job=ParentJob(namespace=namespace, name=name),
            producer=PRODUCER,
        )
    }


def _uuid(text: str) -> UUID:
    """The id as it is where it is a UUID, else one that is always the same for it."""
    try:
        return UUID(text)
    except ValueError:
        return uuid5(NAMESPACE_URL, f"{PRODUCER}:{text}")
