"""The tables that check results and failures show: rules, what was discarded, and partitions."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from databox_contracts.results import CheckResult, Status, Verdict

if TYPE_CHECKING:
    from databox_contracts.spark.modes import Discarded
    from databox_contracts.spark.per_partition import PartitionOutcome

_RULES_TABLE: Final = dg.TableSchema(
    columns=[
        dg.TableColumn("rule", "string", description="Its id in the contract."),
        dg.TableColumn("field", "string"),
        dg.TableColumn("status", "string"),
        dg.TableColumn("severity", "string"),
        dg.TableColumn("failed_rows", "int"),
        dg.TableColumn("failed_percent", "float", description="Of all rows."),
        dg.TableColumn("observed", "string"),
        dg.TableColumn("promised", "string"),
        dg.TableColumn("message", "string"),
        dg.TableColumn("samples", "string", description="Up to five values; none of a field that must not be shown."),
    ]
)


_DISCARDED_TABLE: Final = dg.TableSchema(
    columns=[
        dg.TableColumn("field", "string"),
        dg.TableColumn("entity", "string", description="What its mode is about: tables, columns or data_type."),
        dg.TableColumn("mode", "string"),
        dg.TableColumn("unit", "string", description="Rows, elements of an array, values, or values kept in variants."),
        dg.TableColumn("count", "int"),
    ]
)

_PARTITIONS_TABLE: Final = dg.TableSchema(
    columns=[
        dg.TableColumn("partition", "string"),
        dg.TableColumn("rows", "int"),
        dg.TableColumn("status", "string", description="Whether the partition keeps these rules by itself."),
        dg.TableColumn("violated", "string", description="The rules that it breaks."),
    ]
)


def discarded_table(discarded: Iterable[Discarded]) -> dg.TableMetadataValue:
    """One line per field of which something was discarded."""
    records = [
        dg.TableRecord(
            {"field": one.field, "entity": one.entity, "mode": str(one.mode), "unit": one.unit, "count": one.count}
        )
        for one in discarded
    ]
    return dg.MetadataValue.table(records=records, schema=_DISCARDED_TABLE)


def partitions_table(outcomes: Iterable[PartitionOutcome], ids: Collection[str]) -> dg.TableMetadataValue:
    """One line per partition of a run over several; of the rules only those of `ids`."""
    return dg.MetadataValue.table(
        records=[dg.TableRecord(_partition(outcome, ids)) for outcome in outcomes], schema=_PARTITIONS_TABLE
    )


def _partition(outcome: PartitionOutcome, ids: Collection[str]) -> dict[str, str | int | float | bool | None]:
    violated = None if outcome.violated is None else [result for result in outcome.violated if result.id in ids]
    if violated is None:
        status = "not told apart"
    elif any(result.status is Status.NOT_EVALUATED for result in violated):
        status = str(Status.NOT_EVALUATED)
    else:
        status = str(Status.FAILED if violated else Status.PASSED)
    return {
        "partition": outcome.partition,
        "rows": outcome.row_count,
        "status": status,
        "violated": "; ".join(f"{result.id}: {result.message or result.status}" for result in violated or ()),
    }


def rules_table(verdict: Verdict, results: Sequence[CheckResult]) -> dg.TableMetadataValue:
    """One line per rule, with its counts and samples."""
    # What needs attention comes first; within that, the order of declaration.
    ordered = sorted(results, key=lambda result: (not result.stops, result.status is Status.PASSED))
    return dg.MetadataValue.table(
        records=[dg.TableRecord(_record(result, verdict.row_count)) for result in ordered], schema=_RULES_TABLE
    )


def _record(result: CheckResult, rows: int) -> dict[str, str | int | float | bool | None]:
    failed = result.failed_count
    return {
        "rule": result.id,
        "field": result.field,
        "status": str(result.status),
        "severity": str(result.severity),
        "failed_rows": failed,
        "failed_percent": round(100 * failed / rows, 4) if failed is not None and rows else None,
        "observed": _text(result.observed),
        "promised": _text(result.threshold),
        "message": result.message,
        "samples": "; ".join(_value(sample) for sample in result.samples),
    }


def _text(value: Any) -> str | None:
    return None if value is None else value if isinstance(value, str) else _value(value)


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
