"""What a deliberate break must bring along: notice and a changelog."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from databox_contracts.evolution.affected import GONE
from databox_contracts.evolution.report import MigrationReport
from databox_contracts.formats.notice import notice_of
from databox_contracts.lifecycle import CHANGELOG, EFFECTIVE, changelog_entry, effective_date
from databox_contracts.model import Contract
from databox_contracts.versions import Bump


def unmet(before: Contract, after: Contract, report: MigrationReport, today: date) -> Iterator[str]:
    """What a breaking major version still lacks, each in one sentence with the way out."""
    if not report.is_breaking or report.actual_bump is not Bump.MAJOR:
        return
    notice = notice_of(before, report.policy)
    if notice:
        earliest = today + notice
        effective = effective_date(after)
        if effective is None:
            yield (
                f"{after.title} {after.version} breaks consumers and says no day on which it takes effect; "
                f"write the custom property {EFFECTIVE}: {earliest} or later ({notice.days} days of notice)"
            )
        elif effective < earliest:
            yield (
                f"{after.title} {after.version} takes effect on {effective}, which is less than "
                f"{notice.days} days away; make it {earliest} or later, or keep what it removes beside the new"
            )
    gone = [change.field_name for change in report.breaking_changes if change.change_type in GONE]
    said = changelog_entry(after)
    unsaid = [name for name in gone if said is None or name not in said]
    if unsaid:
        yield (
            f"the changelog of {after.title} does not say that {after.version} removes {', '.join(unsaid)}; "
            f"write the custom property {CHANGELOG}: [{{version: {after.version}, removed: [{', '.join(unsaid)}]}}]"
        )
