"""A gate's report as text, as a comment on a pull request, and as annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from databox_contracts.evolution.rendering import markdown_text
from databox_contracts.gate.gating import GatedChange, GateReport
from databox_contracts.workflow_commands import workflow_command


def as_text(report: GateReport) -> Iterator[str]:
    """The lines for a terminal: breaks first, accepted ones marked."""
    yield f"Contracts from {report.base} to {report.head}"
    for problem in report.problems:
        yield f"  {problem}"
    if report.breaking or report.acknowledged:
        yield "Breaking:"
        for one in (*report.breaking, *report.acknowledged):
            yield f"  {one.dataset}: {one.change.change_type} {one.change.field_name}{_mark(one)}"
            yield f"    {one.change.description}"
            yield from (f"    {line}" for line in _whom(one))
            if one.blocks and one.change.hint:
                yield f"    Way out: {one.change.hint}"
    if report.additive:
        yield "Additive:"
        for one in report.additive:
            yield f"  {one.dataset}: {one.change.change_type} {one.change.field_name}"
    for title, lines in (("Missing:", report.conditions), ("Notes:", report.remarks)):
        if lines:
            yield title
            yield from (f"  {line}" for line in lines)
    yield _conclusion(report)
    if any(one.blocks and one.acknowledged is None for one in report.changes):
        yield from _door(report)


def _mark(one: GatedChange) -> str:
    if one.warns:
        return " (GRACE)"
    if one.acknowledged is not None:
        return " (ACKED)" if not one.missing else " (ACKED, but not approved)"
    return ""


def _whom(one: GatedChange) -> Iterator[str]:
    for title, readers in (
        ("Read by", [reader.text for reader in one.readers if reader.is_direct]),
        ("Reaches", [reader.text for reader in one.readers if not reader.is_direct]),
    ):
        if readers:
            yield f"{title}: {', '.join(readers)}"
    for reader in one.readers:
        if reader.approval is not None:
            yield f"Approved for {reader.name} by {reader.approval.approver} on {reader.approval.on}"
    if one.missing:
        yield f"Needs the approval of: {', '.join(one.missing)}"
    if one.claimed:
        yield f"Claimed in the pull request, and not counted: {', '.join(one.claimed)}"
    if one.acknowledged is not None:
        yield f"Accepted in {one.acknowledged}"


def _conclusion(report: GateReport) -> str:
    if report.problems:
        return f"COULD NOT JUDGE: {len(report.problems)} problems with contract files"
    blocking = sum(one.blocks for one in report.changes)
    if blocking or report.conditions:
        missing = f", {len(report.conditions)} conditions not met" if report.conditions else ""
        return f"BREAKING: {blocking} changes break consumers{missing}"
    if report.acknowledged:
        return f"ACKNOWLEDGED: {len(report.acknowledged)} breaking changes, all accepted"
    warned = [one for one in report.breaking if one.warns]
    return f"GRACE: {len(warned)} breaking changes are let through for now" if warned else "CLEAN"


def _door(report: GateReport) -> Iterator[str]:
    """How a deliberate break is let through."""
    yield "If a break is meant, say so in the pull request, each on a line of its own:"
    named: Sequence[str] = [one.dataset for one in report.changes if one.blocks and one.acknowledged is None]
    yield from (f"  accept-breaking-change: {name}" for name in dict.fromkeys(named))


def as_markdown(report: GateReport) -> Iterator[str]:
    """The lines of a comment on the pull request."""
    yield f"## Data contracts: {_conclusion(report)}"
    yield ""
    rows = [*report.breaking, *report.acknowledged]
    for problem in report.problems:
        yield f"- {markdown_text(str(problem))}"
    if rows:
        yield "| dataset | change | field | what it means | who reads it | way out |"
        yield "|---|---|---|---|---|---|"
        for one in rows:
            state = _mark(one).strip()
            cells = (
                one.dataset,
                f"{one.change.change_type} {state}".strip(),
                one.change.field_name,
                one.change.description,
                "; ".join(_whom(one)),
                (one.change.hint or "") if one.blocks else "",
            )
            yield "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"
        yield ""
    yield from (f"- **missing**: {markdown_text(line)}" for line in report.conditions)
    yield from (f"- {markdown_text(line)}" for line in report.remarks)
    if report.additive:
        yield ""
        yield f"{len(report.additive)} changes break nobody."
    if any(one.blocks and one.acknowledged is None for one in report.changes):
        yield ""
        first, *lines = _door(report)
        yield first
        yield ""
        yield "```"
        yield from (line.strip() for line in lines)
        yield "```"


def as_github(report: GateReport) -> Iterator[str]:
    """Workflow commands, which GitHub shows at the files of the pull request."""
    for problem in report.problems:
        yield workflow_command("error", str(problem))
    for one in report.changes:
        level = "error" if one.blocks else "warning" if one.change.is_breaking else "notice"
        way_out = f" ({one.change.hint})" if one.change.hint and one.blocks else ""
        text = f"{one.dataset}: {one.change.change_type} {one.change.field_name}{_mark(one)}: {one.change.description}"
        yield workflow_command(level, text + way_out, one.path)
    yield from (workflow_command("error", line) for line in report.conditions)
