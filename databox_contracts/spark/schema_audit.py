"""Does a published table have the schema that its contract says: columns, types, and nulls only where allowed?"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from databox_contracts.model import Contract, Mode, SchemaModes
from databox_contracts.plan import Check, Plan, build_plan
from databox_contracts.results import Verdict
from databox_contracts.rules import MaxLength, Required, Scope
from databox_contracts.schema_modes import ModesGiven, effective_modes
from databox_contracts.spark.given import Given
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.modes import apply_modes
from databox_contracts.spark.progress import OnProgress


def audit_schema(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    untyped: bool = False,
    ours: bool = False,
    schema_modes: ModesGiven = None,
    progress: OnProgress | None = None,
) -> Verdict:
    """The verdict of the rules about the schema alone: present, type, undeclared, required, and the length of texts.

    Files have no columns that are never null, so that nulls are counted: in one pass over the columns that have to have
    none. `untyped` is as with `verify`. A table of `ours` was published under this contract: where that leaves columns
    or types open, those that it has are known. `schema_modes` goes before the contract's own: columns and types that
    they let evolve are no difference; what they discard would not be in the table. Raises `UnknownDatasetError`; errors
    of Spark pass through.
    """
    chosen = contract.dataset(dataset)
    plan = build_plan(contract, chosen)
    modes = as_found(effective_modes(contract, chosen, run=schema_modes))
    applied = apply_modes(df, contract, chosen, modes, known=df.schema if ours else None).counted()
    given = Given.at(None, None, None, progress)
    verification = Verification(
        applied.df,
        _of_schema(plan),
        untyped=untyped,
        given=replace(given, applied=replace(applied, only_looking=True)),
    )
    return verification.verdict(samples=0)


def as_found(modes: SchemaModes) -> SchemaModes:
    """The modes that a table is judged by which is only looked at: what they would discard should not be in it."""
    return SchemaModes(
        tables=Mode.EVOLVE,
        columns=Mode.EVOLVE if modes.columns is Mode.EVOLVE else Mode.FREEZE,
        data_type=Mode.EVOLVE if modes.data_type is Mode.EVOLVE else Mode.FREEZE,
    )


def _of_schema(plan: Plan) -> Plan:
    return replace(plan, checks=tuple(check for check in plan.checks if _is_of_schema(check)))


def _is_of_schema(check: Check) -> bool:
    if check.rule.scope is Scope.SCHEMA or isinstance(check.rule, Required):
        return True
    # The length is a part of the type where that is spelt `varchar(20)`.
    length = check.type.length if check.type is not None else None
    return isinstance(check.rule, MaxLength) and length is not None and check.rule.length == length
