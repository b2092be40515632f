"""From what happened in a run, or in a sample of the data, to what the consumers of the data are told.

The facts are those that `building` names, with `run_id`, `asset` and `partition` where there is a run. Samples,
observed values and the texts of exceptions are in none of them: they may hold personal data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from databox_contracts.drift import DriftFinding, DriftReport
from databox_contracts.evolution.affected import affected_by_failure, readers_of
from databox_contracts.model import Consumer, Contract, Dataset
from databox_contracts.notifications import EventKind, Notification
from databox_contracts.notify.addressing import (
    News,
    addressed,
    event_of,
    reading,
    wants,
)
from databox_contracts.notify.contacts import scheme_of
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Severity

_TICKET_SCHEMES: Final = ("ticket+http", "ticket+https")

_TABLE: Final = {
    True: "The table was published with it.",
    False: "The new data was not published; the last published data stays readable.",
    None: "",
}


def ticket_of(contract: str, rule: str, value: str | None = None) -> str:
    """What a ticket is opened for, as one text."""
    return event_of(contract, rule, value)


def from_verdict(
    verdict: Verdict,
    consumers: Sequence[Consumer],
    *,
    run_id: str,
    occurred_at: datetime,
    asset: str | None = None,
    partition: str | None = None,
    published: bool | None = None,
    since: Mapping[str, datetime] | None = None,
    resolved: Sequence[str] = (),
    contract: Contract | None = None,
    owner: str | None = None,
) -> list[Notification]:
    """What the consumers are told of a verification: a notification for each check that failed or could not be judged.

    Whom a check concerns is what `evolution.affected` says; `contract` is the one that was verified, by which consumers
    may call datasets and fields what its tables call them.
    `published` says what became of the data, None for nothing known. `since` is when each failing check, by its id,
    failed first. `resolved` are the ids of checks that failed before: those that hold now close their tickets. Facts:
    `version`, `dataset`, `check`, `rule`, `field`, `status`, `failed_count`, `row_count`.
    """
    found: list[Notification] = []
    known = contract if contract is not None else _named(verdict.contract, verdict.version, verdict.dataset)
    for result in verdict.results:
        bad = result.status in (Status.FAILED, Status.NOT_EVALUATED)
        if not bad and not (result.passed and result.id in resolved):
            continue
        severity = Severity.ERROR if result.stops else result.severity
        began = (since or {}).get(result.id, occurred_at)
        news = News(
            contract=verdict.contract,
            event=event_of(run_id, asset, partition, result.id),
            kind=EventKind.CHECK,
            severity=severity,
            title=f"{result.id} {_STATUS[result.status]} in {verdict.dataset} of {verdict.contract} {verdict.version}",
            occurred_at=occurred_at,
            facts={
                **_check_facts(verdict, result, published if bad else None),
                "since": (began if bad else occurred_at).isoformat(),
                "run_id": run_id,
                "asset": asset,
                "partition": partition,
                "owner": owner,
            },
            ticket=ticket_of(verdict.contract, result.id),
            resolves=not bad,
        )
        for consumer in affected_by_failure(known, verdict.dataset, _fields(result.field), consumers):
            if wants(consumer, severity):
                found.extend(addressed(_for(news, consumer), consumer))
    return found


def _named(contract: str, version: str, dataset: str) -> Contract:
    """Names alone, where the contract itself is not at hand."""
    return Contract(id=contract, version=version, datasets=(Dataset(name=dataset),))


def _fields(field: str | None) -> tuple[str, ...]:
    return (field,) if field is not None else ()


_STATUS: Final = {
    Status.FAILED: "is violated",
    Status.NOT_EVALUATED: "could not be judged",
    Status.PASSED: "holds again",
}


def _check_facts(verdict: Verdict, result: CheckResult, published: bool | None) -> dict[str, Any]:
    said = f"{result.id}: {result.message}" if result.message else f"{result.id} {_STATUS[result.status]}"
    return {
        "what": [line for line in (said, _TABLE[published]) if line],
        "todo": ["Nothing."] if result.passed else _check_todo(result),
        "version": verdict.version,
        "dataset": verdict.dataset,
        "check": result.id,
        "rule": result.rule,
        "field": result.field,
        "status": str(result.status),
        "failed_count": result.failed_count,
        "row_count": verdict.row_count,
    }


def _check_todo(result: CheckResult) -> list[str]:
    if result.stops:
        return ["Do not rely on this data until its owner has put it right."]
    return ["Look whether what you make of the data bears it; it is a warning."]


def _for(news: News, consumer: Consumer) -> News:
    return replace(news, facts={**news.facts, "for_you": [reading(consumer)]})


def from_run_failure(
    run_id: str,
    contract: Contract | str,
    consumers: Sequence[Consumer],
    *,
    occurred_at: datetime,
    asset: str | None = None,
    partition: str | None = None,
    job: str | None = None,
    status: str = "failed",
    steps: Sequence[str] = (),
    dataset: str | None = None,
    owner: str | None = None,
) -> list[Notification]:
    """What the readers of an asset are told when its run failed or was canceled, for another reason than the data.

    Without a `dataset` these are all consumers of the contract. Facts: `job`, `status`, `steps`.
    """
    name = contract if isinstance(contract, str) else contract.id
    version = "" if isinstance(contract, str) else contract.version
    severity = Severity.ERROR if status == "failed" else Severity.WARNING
    what = f"The run{f' of {job}' if job else ''} that makes {asset or name} {status}"
    news = News(
        contract=name,
        event=event_of(run_id, asset, partition, None),
        kind=EventKind.RUN,
        severity=severity,
        title=f"{asset or name}: run {status}",
        occurred_at=occurred_at,
        facts={
            "what": [f"{what}.", *(f"Step {step}" for step in steps), "The last published data stays readable."],
            "todo": ["Nothing, if older data will do; else ask its owner when it comes."],
            "since": occurred_at.isoformat(),
            "run_id": run_id,
            "asset": asset,
            "partition": partition,
            "job": job,
            "status": status,
            "steps": list(steps),
            "owner": owner,
        },
        ticket=ticket_of(name, f"run of {asset or job or name}"),
    )
    if dataset is None:
        concerned = readers_of(version, consumers)
    else:
        known = _named(contract, version, dataset) if isinstance(contract, str) else contract
        concerned = affected_by_failure(known, dataset, (), consumers)
    return [
        one for consumer in concerned if wants(consumer, severity) for one in addressed(_for(news, consumer), consumer)
    ]


def from_drift(
    report: DriftReport,
    consumers: Sequence[Consumer],
    *,
    occurred_at: datetime,
    resolved: Sequence[DriftFinding] = (),
    run_id: str | None = None,
    asset: str | None = None,
    contract: Contract | None = None,
    owner: str | None = None,
) -> list[Notification]:
    """What the consumers are told of drift: a notification for each finding, once for as long as the baseline stands.

    A contact in ticket mode hears of every sampling that sees it, so that the ticket stays up to date. `resolved` are
    findings of an earlier report that are gone. A value is told only where the finding has it: that of a masked field
    never does. `contract` is as with `from_verdict`. Facts: `version`, `dataset`, `drift` (its kind), `rule`, `field`,
    `value`, `count`, `share`, `place`, `baseline`, `times_seen`.
    """
    found: list[Notification] = []
    known = contract if contract is not None else _named(report.contract, report.version, report.dataset)
    for finding, gone in (*((one, False) for one in report.findings), *((one, True) for one in resolved)):
        key = finding.key
        place = (report.baseline, report.dataset, key.text, *((report.as_of,) if gone else ()))
        name = finding.rule or finding.kind
        news = News(
            contract=report.contract,
            event=event_of(*place),
            kind=EventKind.DRIFT,
            severity=finding.severity,
            title=_drift_title(report, finding, gone),
            occurred_at=occurred_at,
            facts={
                **_drift_facts(report, finding, gone),
                "since": finding.first_seen or report.as_of,
                "run_id": run_id,
                "asset": asset,
                "owner": owner,
            },
            ticket=ticket_of(
                report.contract, event_of(report.dataset, finding.kind, finding.field, name), finding.value
            ),
            resolves=gone,
        )
        for consumer in affected_by_failure(known, report.dataset, _fields(finding.field), consumers):
            if wants(consumer, finding.severity):
                found.extend(
                    _each_sampling(one, report.as_of) if scheme_of(one.contact) in _TICKET_SCHEMES else one
                    for one in addressed(_for(news, consumer), consumer)
                )
    return found


def _each_sampling(one: Notification, as_of: str) -> Notification:
    return one if one.resolves else replace(one, event=event_of(one.event, as_of))


def _drift_title(report: DriftReport, finding: DriftFinding, gone: bool) -> str:
    where = f"{report.dataset} of {report.contract} {report.version}"
    about = finding.rule or (f"{finding.kind} of {finding.field}" if finding.field else finding.kind)
    return f"Drift gone: {about} in {where}" if gone else f"Drift: {about} in {where}"


def _drift_facts(report: DriftReport, finding: DriftFinding, gone: bool) -> dict[str, Any]:
    what = [finding.message]
    if finding.value is not None:
        what.append(f"The value: {finding.value}")
    if finding.count is not None:
        what.append(f"Seen in {finding.count} of {report.sampled.rows} sampled rows")
    if finding.place:
        what.append(f"First in {finding.place}")
    return {
        "what": what,
        "todo": ["Nothing."] if gone else ["Look whether what you make of the data bears it, and ask its owner."],
        "version": report.version,
        "dataset": report.dataset,
        "drift": finding.kind,
        "rule": finding.rule,
        "field": finding.field,
        "value": json.loads(finding.value) if finding.value is not None else None,
        "count": finding.count,
        "share": finding.share,
        "place": finding.place,
        "baseline": report.baseline,
        "times_seen": finding.seen.times if finding.seen is not None else None,
    }
