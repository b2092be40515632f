"""The tables that check results and failures show: rules, what was discarded, and partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from databox_contracts.check_reports import RULES_COLUMNS, sentence
from databox_contracts.results import Status

if TYPE_CHECKING:
    from databox_contracts.spark.modes import Discarded
    from databox_contracts.spark.per_partition import PartitionOutcome

_RULES_TABLE: Final = dg.TableSchema(
    columns=[dg.TableColumn(name, type_, description=about) for name, type_, about in RULES_COLUMNS]
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
        "violated": "; ".join(map(sentence, violated or ())),
    }


def rules_table(records: Iterable[dict[str, Any]]) -> dg.TableMetadataValue:
    """One line per rule, with its counts and samples."""
    return dg.MetadataValue.table(records=[dg.TableRecord(record) for record in records], schema=_RULES_TABLE)
