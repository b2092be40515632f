"""From a change of a contract to what its consumers are told.

The facts of every notification are plain JSON: `what`, `for_you` and `todo` are lines for people, `since` and `by` are
times in ISO 8601, `owner` is whom to ask, `digest` says that the consumer wishes one. What else is in them is said at
each function. No fact holds a value of a field.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any, Final

from databox_contracts.errors import DataboxError
from databox_contracts.evolution.affected import affected, allowed, readers_of
from databox_contracts.evolution.changes import ChangeType
from databox_contracts.evolution.judging import diff
from databox_contracts.evolution.report import FieldChange, MigrationReport
from databox_contracts.formats.durations import parse_duration
from databox_contracts.lifecycle import effective_date
from databox_contracts.model import Consumer, Contract
from databox_contracts.notifications import EventKind, Notification
from databox_contracts.notify.addressing import News, addressed, event_of, reading, wants
from databox_contracts.rules import Severity
from databox_contracts.versions import Bump

USUAL_NOTICE: Final = {("strict", Bump.MAJOR): timedelta(days=30), ("strict", Bump.MINOR): timedelta(days=7)}
"""How long consumers have, by policy and bump, where the contract says nothing else."""


def version_event(old: str, new: str) -> str:
    """The event of a change from one version to another."""
    return f"{old} -> {new}"


_OF_NO_FIELD: Final = (
    ChangeType.GOVERNANCE_CHANGED,
    ChangeType.OWNERSHIP_CHANGED,
    ChangeType.DOCUMENTATION_CHANGED,
    ChangeType.VERSION_NOT_BUMPED,
)


def _field_of(change: FieldChange) -> str | None:
    if change.dataset is None and change.change_type in _OF_NO_FIELD:
        # What changed of the contract itself stands where the field does otherwise.
        return None
    return change.field_name if change.field_name and change.field_name != change.dataset else None


def from_report(
    report: MigrationReport,
    consumers: Sequence[Consumer],
    *,
    occurred_at: datetime,
    by: date | None = None,
    contract: Contract | None = None,
    owner: str | None = None,
) -> list[Notification]:
    """What the consumers are told of a new version: those that a break touches, in order of `consumers`.

    Whom it touches is what `evolution.affected` says; `contract` is the version that they read until now, by which they
    may call datasets and fields what its tables call them.

    Of a version that breaks nothing they read only those hear who wish a digest, and of a patch nobody. `by` is the day
    until which they have to act; without it the usual notice period of the policy counts from `occurred_at`. Facts:
    `schema`, `from_version`, `to_version`, `policy`, `required_bump`, `breaking` (for this consumer),
    `breaking_fields`, and `changes` with `kind`, `dataset`, `field`, `message`, `hint` and `breaking`.
    """
    found: list[Notification] = []
    for one in affected(report, contract, consumers):
        consumer, changes, breaking = one.consumer, one.changes, one.breaking
        told = breaking or (changes if consumer.digest and report.required_bump >= Bump.MINOR else ())
        severity = Severity.ERROR if breaking else Severity.INFO
        if not told or not wants(consumer, severity):
            continue
        facts = _facts(report, consumer, changes, told, by or _usual(report.policy, bool(breaking), occurred_at))
        news = News(
            contract=report.schema_name,
            event=version_event(report.old_version, report.new_version),
            kind=EventKind.VERSION,
            severity=severity,
            title=_title(report, bool(breaking)),
            occurred_at=occurred_at,
            facts={**facts, "since": occurred_at.isoformat(), "owner": owner},
        )
        found.extend(addressed(news, consumer))
    return found


def _title(report: MigrationReport, breaking: bool) -> str:
    what = "Breaking change" if breaking else "New version"
    return f"{what} in {report.schema_name}: {report.old_version} -> {report.new_version}"


def _usual(policy: str, breaking: bool, occurred_at: datetime) -> date | None:
    notice = USUAL_NOTICE.get((policy, Bump.MAJOR if breaking else Bump.MINOR))
    return (occurred_at + notice).date() if notice is not None else None


def _facts(
    report: MigrationReport,
    consumer: Consumer,
    changes: Sequence[FieldChange],
    told: Sequence[FieldChange],
    by: date | None,
) -> dict[str, Any]:
    breaking = any(change.is_breaking for change in told)
    return {
        "what": [_line(change) for change in told],
        "for_you": [reading(consumer), *_pin(consumer, report.new_version)],
        "todo": _todo(report, told) if breaking else ["Nothing; what you read stays as it is."],
        "by": by.isoformat() if by is not None else None,
        "schema": report.schema_name,
        "from_version": report.old_version,
        "to_version": report.new_version,
        "policy": report.policy,
        "required_bump": str(report.required_bump),
        "breaking": breaking,
        "breaking_fields": [change.field_name for change in changes if change.is_breaking],
        "changes": [
            {
                "kind": str(change.change_type),
                "dataset": change.dataset,
                "field": change.field_name,
                "message": change.description,
                "hint": change.hint,
                "breaking": bool(change.is_breaking),
            }
            for change in changes
        ],
    }


def _line(change: FieldChange) -> str:
    place = f"{change.dataset}.{_field_of(change)}" if change.dataset and _field_of(change) else change.field_name
    return f"{place} ({change.change_type}): {change.description}" if place else change.description


def _todo(report: MigrationReport, told: Sequence[FieldChange]) -> list[str]:
    first = f"Adapt what reads these before you read {report.schema_name} {report.new_version}"
    hints = dict.fromkeys(change.hint for change in told if change.hint)
    return [f"{first}.", *(f"Or agree with its owner: {hint}" for hint in hints)]


def _pin(consumer: Consumer, version: str) -> list[str]:
    if consumer.versions is None:
        return []
    inside = allowed(consumer, version)
    if inside is None:
        return [f"nobody can tell whether its pin {consumer.versions!r} allows {version}"]
    return [f"it is pinned to {consumer.versions}, which {version} is {'in' if inside else 'outside of'}"]


def from_deprecation(
    contract: str,
    version: str,
    consumers: Sequence[Consumer],
    *,
    occurred_at: datetime,
    sunset: date | None = None,
    successor: str | None = None,
    retired: bool = False,
    owner: str | None = None,
) -> list[Notification]:
    """What the readers of a version are told when it is deprecated, or `retired`: those whose pin allows it.

    `consumers` are the contract's. Facts: `version`, `sunset`, `successor`.
    """
    severity = Severity.ERROR if retired else Severity.WARNING
    until = f" until {sunset.isoformat()}" if sunset is not None and not retired else ""
    ends = "is retired" if retired else f"is deprecated{until or '; no end is announced yet'}"
    todo = f"Move to {successor}." if successor is not None else "Ask its owner what takes its place."
    found: list[Notification] = []
    for consumer in readers_of(version, consumers):
        if not wants(consumer, severity):
            continue
        news = News(
            contract=contract,
            event=f"{'retired' if retired else 'deprecated'} {version}{until}",
            kind=EventKind.DEPRECATION,
            severity=severity,
            title=f"{contract} {version} {ends}",
            occurred_at=occurred_at,
            facts={
                "what": [f"{contract} {version} {ends}"],
                "for_you": [reading(consumer), *_pin(consumer, version)],
                "since": occurred_at.isoformat(),
                "todo": [todo],
                "by": sunset.isoformat() if until and sunset is not None else None,
                "version": version,
                "sunset": sunset.isoformat() if sunset is not None else None,
                "successor": successor,
                "owner": owner,
            },
        )
        found.extend(addressed(news, consumer))
    return found


def report_key(report: MigrationReport) -> str:
    """What a message about a change is recognised by that is for nobody in particular, 32 hex digits."""
    text = event_of("", report.schema_name, version_event(report.old_version, report.new_version))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def from_versions(
    old: Contract | None, new: Contract, consumers: Sequence[Consumer], *, occurred_at: datetime
) -> list[Notification]:
    """What the consumers are told when `new` takes the place of `old`; nothing of a first version.

    They have until the new version's effective date, else for the old one's notice period, else for the policy's.
    """
    if old is None:
        return []
    report = diff(old, new)
    by = effective_date(new)
    if by is None and old.notice_period is not None:
        with suppress(DataboxError):
            # What is no length of time counts as not said; lint reports it.
            by = (occurred_at + timedelta(seconds=parse_duration(old.notice_period))).date()
    return from_report(report, consumers, occurred_at=occurred_at, by=by, contract=old, owner=old.owning_team)
