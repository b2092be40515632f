"""Remarks about SQL in rules: columns that the contract does not declare. Without SQL nothing is parsed or imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from databox_contracts.errors import Finding, Level
from databox_contracts.formats.outline import Outline, Placed
from databox_contracts.formats.remarks_names import way_out
from databox_contracts.model import Dataset, Mode
from databox_contracts.rules import Expression, Query, RequiredWhen

_KINDS: Final = (Expression, RequiredWhen, Query)


def unknown_columns(outline: Outline) -> Iterator[Finding]:
    """An error for a condition on a row over columns that are not declared, a warning for a query over them.

    It is a warning too where further columns are welcome, for then the table may have them.
    """
    for placed in outline.rules:
        rule = placed.rule
        if not isinstance(rule, _KINDS):
            continue
        if isinstance(rule, Query):
            yield from _query(outline, placed, rule.sql)
        else:
            yield from _condition(outline, placed, rule.sql if isinstance(rule, Expression) else rule.condition)


def _condition(outline: Outline, placed: Placed, sql: str) -> Iterator[Finding]:
    from databox_contracts.formats.sql_columns import columns_of_condition

    found, mistake = columns_of_condition(sql)
    if mistake is not None:
        hint = "write a condition of Spark SQL over the columns of one row, such as `amount > 0`"
        yield outline.finding(Level.ERROR, f"the condition {sql[:60]!r} {mistake}", hint, placed.position, placed.name)
        return
    names = outline.names(placed.dataset)
    level = Level.WARNING if _takes_more(placed.dataset) else Level.ERROR
    for name in dict.fromkeys(found):
        if name not in names and not _beside(outline, placed, name):
            message = f"the condition {sql[:60]!r} names {name[:60]!r}, which is no field of {placed.dataset.name!r}"
            yield outline.finding(level, message, way_out(name, names.declared), placed.position, placed.name)


def _takes_more(dataset: Dataset) -> bool:
    return dataset.modes is not None and dataset.modes.columns is Mode.EVOLVE


def _beside(outline: Outline, placed: Placed, name: str) -> bool:
    """Whether a rule of a nested field names it from where it stands."""
    around = (placed.name or "").split(".")[:-1]
    return any(".".join((*around[:end], name)) in outline.names(placed.dataset) for end in range(len(around), 0, -1))


def _query(outline: Outline, placed: Placed, sql: str) -> Iterator[Finding]:
    from databox_contracts.formats.sql_columns import columns_of_query

    tables: dict[str, Dataset] = {}
    for dataset in outline.contract.datasets:
        for name in (dataset.physical_name, dataset.name):
            if name is not None:
                tables[name.casefold()] = dataset
    for own, name in columns_of_query(sql, placed.dataset.name, tables):
        about = tables[own.casefold()]
        names = outline.names(about)
        if name not in names:
            message = f"the query names {name[:60]!r}, which is no field of {about.name!r}"
            yield outline.finding(Level.WARNING, message, way_out(name, names.declared), placed.position, placed.name)
