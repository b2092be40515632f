"""A dataset's fields as the column schema that Dagster shows."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import Final

import dagster as dg

from databox_contracts.dagster.wording import rule_text, type_text
from databox_contracts.model import Dataset, Field
from databox_contracts.plan import Check, Plan
from databox_contracts.rules import HasType, Present, PrimaryKey, Required, Undeclared, Unique

_SHOWN_BY_THE_SCHEMA: Final = (Present, HasType)
_SHOWN_AS_FLAGS: Final = (Required, Unique)


def table_schema(plan: Plan) -> dg.TableSchema:
    """One column per top-level field, in order, under its name in the table; what is inside shows in type and rules."""
    by_column: dict[str, list[Check]] = defaultdict(list)
    for check in plan.checks:
        if check.path:
            by_column[str(check.path[0])].append(check)
    keys = {rule.fields for rule in plan.dataset.rules if isinstance(rule, PrimaryKey | Unique)}
    return dg.TableSchema(
        columns=[_column(field, by_column[field.column], keys) for field in plan.dataset.fields],
        constraints=dg.TableConstraints(other=_about_the_table(plan)),
    )


def _column(field: Field, checks: list[Check], keys: set[tuple[str, ...]]) -> dg.TableColumn:
    own = [check.rule for check in checks if len(check.path) == 1]
    return dg.TableColumn(
        name=field.column,
        type=type_text(field),
        description=field.description or field.business_name,
        constraints=_constraints(
            not any(isinstance(rule, Required) for rule in own),
            field.unique or (field.name,) in keys,
            tuple(text for check in checks if (text := _constraint(field, check)) is not None),
        ),
        tags=_column_tags(field),
    )


@lru_cache(maxsize=4096)
def _constraints(nullable: bool, unique: bool, other: tuple[str, ...]) -> dg.TableColumnConstraints:
    """Many columns have none, or the same few."""
    return dg.TableColumnConstraints(nullable=nullable, unique=unique, other=list(other))


def _constraint(field: Field, check: Check) -> str | None:
    """The rule as a text, with the place inside the column; None for what schema and flags already say."""
    if isinstance(check.rule, _SHOWN_BY_THE_SCHEMA):
        return None
    if len(check.path) > 1:
        inside = (check.field or "").removeprefix(f"{field.name}.")
        return f"{inside}: {rule_text(check.rule)}"
    if isinstance(check.rule, _SHOWN_AS_FLAGS):
        return None
    return rule_text(check.rule)


def _column_tags(field: Field) -> dict[str, str]:
    tags = dict.fromkeys(field.tags, "")
    if field.pii:
        tags["pii"] = "true"
    if field.classification:
        tags["classification"] = field.classification
    if field.deprecated:
        tags["deprecated"] = "true"
    return tags


def _about_the_table(plan: Plan) -> list[str]:
    return [
        rule_text(check.rule)
        for check in plan.checks
        if not check.path and not isinstance(check.rule, Undeclared) and not _shown_as_flag(plan.dataset, check)
    ]


def _shown_as_flag(dataset: Dataset, check: Check) -> bool:
    return (
        isinstance(check.rule, Unique)
        and len(check.rule.fields) == 1
        and check.rule.fields[0] in {field.name for field in dataset.fields}
    )
