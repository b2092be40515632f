"""A migration report as text for a terminal, as Markdown for a pull request, and as annotations of GitHub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from databox_contracts.evolution.report import FieldChange, MigrationReport
from databox_contracts.evolution.table_formats import FormatGate
from databox_contracts.workflow_commands import workflow_command

_RULE: Final = "=" * 60


def as_text(report: MigrationReport) -> Iterator[str]:
    """The lines for a terminal: breaking changes first, each with its way out."""
    yield _RULE
    yield f"  Schema migration report: {report.heading}"
    yield f"  {report.old_version} -> {report.new_version}"
    yield _RULE
    yield f"  Status: {_status(report)}"
    breaking, safe = report.breaking_changes, report.safe_changes
    yield f"  Changes: {len(report.changes)} (breaking: {len(breaking)}, safe: {len(safe)})"
    if report.actual_bump is not None:
        yield f"  Version: needs {_bump(report)}"
    for remark in report.remarks:
        yield f"  Note: {remark}"
    for title, changes in (("Breaking changes", breaking), ("Safe changes", safe)):
        if changes:
            yield f"  {title}:"
            yield from _listed(changes)
    if report.table_format is not None:
        yield f"  As a table of {report.table_format.format.brand}: {_of_format(report.table_format)}"
        yield from (f"    {verdict.told_apart}" for verdict in report.table_format.verdicts)
    yield _RULE


def _of_format(gate: FormatGate) -> str:
    return f"REFUSED ({len(gate.refused)} of {len(gate.verdicts)})" if gate.refused else "POSSIBLE"


def _status(report: MigrationReport) -> str:
    if report.is_breaking:
        return "BREAKING"
    return "SAFE" if report.changes else "UNCHANGED"


def _bump(report: MigrationReport) -> str:
    return f"{report.required_bump}, is {report.actual_bump}"


def _listed(changes: Sequence[FieldChange]) -> Iterator[str]:
    for change in changes:
        yield f"    [{change.change_type.name}] {change.field_name}"
        yield f"      {change.description}"
        if change.consumers:
            yield f"      Read by: {', '.join(change.consumers)}"
        if change.hint:
            yield f"      Way out: {change.hint}"


def as_markdown(report: MigrationReport) -> Iterator[str]:
    """The lines of a comment on a pull request."""
    versions = markdown_text(f"{report.old_version} -> {report.new_version}")
    yield f"### {markdown_text(report.heading)} {versions}: {_status(report)}"
    yield ""
    if report.actual_bump is not None:
        yield f"Version: needs {_bump(report)}."
        yield ""
    for remark in report.remarks:
        yield f"- {markdown_text(remark)}"
    if report.remarks:
        yield ""
    if report.table_format is not None:
        yield f"As a table of {report.table_format.format.brand}: {_of_format(report.table_format)}"
        yield ""
        yield from (f"- {markdown_text(verdict.told_apart)}" for verdict in report.table_format.verdicts)
        yield ""
    if not report.changes:
        return
    yield "| | change | field | what | way out |"
    yield "|---|---|---|---|---|"
    for mark, changes in (("breaks", report.breaking_changes), ("", report.safe_changes)):
        for change in changes:
            readers = f" Read by: {', '.join(change.consumers)}." if change.consumers else ""
            cells = (mark, str(change.change_type), change.field_name, change.description + readers, change.hint or "")
            yield "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"
    yield ""


# What Markdown or a page that shows it would take for more than text.
_ESCAPED: Final = {ord(char): f"\\{char}" for char in "\\`*_[]|<>#"} | {ord("\n"): " ", ord("\r"): " "}


def markdown_text(text: str) -> str:
    """Text that Markdown, also in a table, shows as it is."""
    return text.translate(_ESCAPED)


def as_github(report: MigrationReport, file: str | None) -> Iterator[str]:
    """Workflow commands, which GitHub shows at the file of a pull request."""
    for change in report.changes:
        way_out = f" ({change.hint})" if change.hint else ""
        text = f"{change.change_type} {change.field_name}: {change.description}{way_out}"
        yield workflow_command("error" if change.is_breaking else "notice", text, file)
    for verdict in report.table_format.verdicts if report.table_format is not None else ():
        yield workflow_command("notice" if verdict.allowed else "error", verdict.told_apart, file)
