"""A drift report as Dagster shows it: one check result with a table of what drifted."""

from __future__ import annotations

import json
from typing import Any, Final

import dagster as dg

from databox_contracts.dagster.contracted_tables import ContractedTable
from databox_contracts.dagster.watching import table_facts
from databox_contracts.drift import DriftFinding, DriftReport
from databox_contracts.rules import Severity

MOST_NAMED: Final = 5
"""A description names so many findings; the table has all."""

_DRIFT_TABLE: Final = dg.TableSchema(
    columns=[
        dg.TableColumn("field", "string"),
        dg.TableColumn("what", "string", description="What kind of drift it is."),
        dg.TableColumn("severity", "string"),
        dg.TableColumn("rule", "string", description="The rule's id in the contract, where one is broken."),
        dg.TableColumn("baseline", "string", description="What the baseline, or the contract, has."),
        dg.TableColumn("now", "string", description="What the sample has."),
        dg.TableColumn("value", "string", description="New or gone; none of a field that must not be shown."),
        dg.TableColumn("rows", "int", description="Of the sample."),
        dg.TableColumn("percent", "float", description="Of the sample's rows."),
        dg.TableColumn("since", "string", description="The first sampling that saw it."),
        dg.TableColumn("samplings", "int", description="How many have seen it."),
        dg.TableColumn("place", "string", description="The partition or file that shows it first."),
        dg.TableColumn("message", "string"),
    ]
)


def drift_result(table: ContractedTable, check_name: str, report: DriftReport, **facts: Any) -> dg.AssetCheckResult:
    """The result of a sampling: it passes where nothing drifted, and is an error where a finding is one."""
    errors = any(one.severity is Severity.ERROR for one in report.findings)
    return dg.AssetCheckResult(
        asset_key=table.key,
        check_name=check_name,
        passed=not report.drifted,
        severity=dg.AssetCheckSeverity.ERROR if errors or not report.drifted else dg.AssetCheckSeverity.WARN,
        description=_description(report),
        metadata={
            **table_facts(table),
            "rows_sampled": report.sampled.rows,
            "sampled": report.sampled.how,
            "baseline": report.baseline or "none yet",
            **({"baseline_taken_at": report.baseline_taken_at} if report.baseline_taken_at is not None else {}),
            "baseline_stored": report.stored,
            "findings": len(report.findings),
            **({"drift": _drift_table(report)} if report.drifted else {}),
            **({"notes": dg.MetadataValue.json(list(report.notes))} if report.notes else {}),
            **_copied(report),
            **facts,
        },
    )


def _description(report: DriftReport) -> str:
    if not report.drifted:
        rows = report.sampled.rows
        seen = f"no drift in {rows} sampled row{'' if rows == 1 else 's'}"
        return f"{seen}; {report.notes[0]}" if report.baseline is None and report.notes else seen
    named = [one.message for one in report.findings[:MOST_NAMED]]
    left = len(report.findings) - len(named)
    return "; ".join([*named, *([f"and {left} more"] if left else [])])


def _drift_table(report: DriftReport) -> dg.TableMetadataValue:
    ordered = sorted(report.findings, key=lambda one: one.severity is not Severity.ERROR)
    return dg.MetadataValue.table([dg.TableRecord(_record(one)) for one in ordered], schema=_DRIFT_TABLE)


def _record(one: DriftFinding) -> dict[str, str | int | float | bool | None]:
    return {
        "field": one.field,
        "what": one.kind,
        "severity": str(one.severity),
        "rule": one.rule,
        "baseline": _text(one.expected),
        "now": _text(one.observed),
        "value": one.value,
        "rows": one.count,
        "percent": round(100 * one.share, 4) if one.share is not None else None,
        "since": one.first_seen,
        "samplings": one.seen.times if one.seen is not None else None,
        "place": one.place,
        "message": one.message,
    }


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return f"{value:.6g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False, default=str)


def _copied(report: DriftReport) -> dict[str, Any]:
    if report.quarantine is None:
        return {}
    return {"rows_copied": report.quarantined, "quarantine": dg.MetadataValue.path(report.quarantine)}
