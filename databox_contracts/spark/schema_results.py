"""What a table's schema answers: columns that are there, their types, and what the contract does not declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import NullType, StringType

from databox_contracts.model import Mode, SchemaModes
from databox_contracts.plan import Check
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import HasType, Present, Undeclared
from databox_contracts.spark import outcomes
from databox_contracts.spark.casting import cast_target, loses, loses_value
from databox_contracts.spark.counting import Counted, Measured
from databox_contracts.spark.schema import Location, Missing, locate, to_data_type, type_text, undeclared_columns
from databox_contracts.spark.table_view import text_of

if TYPE_CHECKING:
    from databox_contracts.spark.preparing import Preparation


def schema_result(prepared: Preparation, check: Check) -> CheckResult | None:
    """The result of a check that the schema answers; None where rows have to be counted first."""
    if isinstance(check.rule, Undeclared):
        return _undeclared_result(prepared, check)
    found = locate(prepared.schema, check.path, case_sensitive=prepared.case_sensitive)
    if isinstance(found, Missing):
        if isinstance(check.rule, Present):
            return check.result(Status.FAILED, message=f"{found.reason}; the contract promises {check.field}")
        return outcomes.not_evaluated(check, found.reason)
    if isinstance(check.rule, HasType):
        had, promised = to_data_type(found.type), check.rule.type
        if had is None or not promised.accepts(had):
            text = type_text(found.type)
            message = f"{check.field} is {text}; the contract promises {promised}"
            if _count_misfits(prepared, check, found, message):
                return None
            return check.result(Status.FAILED, observed=text, threshold=str(promised), message=message)
        if found.column in prepared.texts and not found.steps:
            prepared.counted.append(_lossless(prepared, check, found))
            return None
        done = prepared.given.applied.type_message(check.path) if prepared.given.applied is not None else ""
        return check.result(Status.PASSED, observed=str(had), threshold=str(promised), message=done)
    return check.result(Status.PASSED)


def _count_misfits(prepared: Preparation, check: Check, found: Location, message: str) -> bool:
    """Count the rows of a column of another type whose values could not be read as the promised one, if any can.

    Whatever the count, the check fails, for the column; the count says what to look for.
    """
    assert isinstance(check.rule, HasType)
    actual, promised = found.type, check.rule.type
    target = cast_target(actual, promised)
    if target is None or isinstance(actual, NullType):
        return False
    counted = Counted(check, found, lambda value: loses_value(value, actual, target))
    prepared.misfits.append(counted)

    def answer(counts: Sequence[Any]) -> CheckResult:
        count = int(counts[0])
        rows = f"{count} row{' has' if count == 1 else 's have'} a value that is none" if count else ""
        return check.result(
            Status.FAILED,
            failed_count=count,
            observed=type_text(actual),
            threshold=str(promised),
            message=f"{message}; {rows or 'every value could be read as one, so a cast is all it takes'}",
        )

    prepared.measured.append(Measured(check, (F.count_if(counted.violating(prepared.view)),), answer, (found,)))
    return True


def _lossless(prepared: Preparation, check: Check, found: Location) -> Counted:
    """The type check of a column that was text: no row's text may be more than the type can hold."""
    target = prepared.texts[found.column]
    text = Location(found.column, (), StringType())
    return Counted(check, text, lambda value: loses(value, target), name=text_of(found.column))


def _undeclared_result(prepared: Preparation, check: Check) -> CheckResult:
    if prepared.given.applied is not None:
        return prepared.given.applied.undeclared_result(check)
    modes = prepared.plan.dataset.modes or SchemaModes()
    extra = undeclared_columns(prepared.schema, prepared.plan.dataset.fields, case_sensitive=prepared.case_sensitive)
    if not extra:
        return check.result(Status.PASSED, observed=[])
    named = ", ".join(extra)
    if modes.columns is Mode.EVOLVE:
        return check.result(Status.PASSED, observed=extra, message=f"not declared, and allowed: {named}")
    if modes.columns is not Mode.FREEZE:
        return outcomes.not_evaluated(
            check, f"the columns mode {modes.columns} is not applied yet, and there is {named}"
        )
    verb = "is" if len(extra) == 1 else "are"
    message = f"{named} {verb} in the table and not in the contract"
    return check.result(Status.FAILED, observed=extra, message=message)
