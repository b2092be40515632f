"""A table and a plan made ready: what the schema answers is answered, and everything else is turned into columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType as SparkType

from databox_contracts import rules
from databox_contracts.plan import Check, Path, Plan
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import NotEnforced, Scope, Severity
from databox_contracts.spark import outcomes
from databox_contracts.spark.collations import by_code_points, without_collations
from databox_contracts.spark.counting import Condition, Counted, Measured, RowCheck, about_nulls, positional
from databox_contracts.spark.failures import SPARK_ERRORS, in_words, unlogged
from databox_contracts.spark.given import Given
from databox_contracts.spark.inside import exploded, is_inside
from databox_contracts.spark.known import Known
from databox_contracts.spark.predicates import NotEvaluableError, Test, violation
from databox_contracts.spark.references import Matching
from databox_contracts.spark.rule_kinds import PREPARING
from databox_contracts.spark.schema import to_data_type, type_text
from databox_contracts.spark.schema_results import schema_result
from databox_contracts.spark.table_view import TableView

_UNANSWERED: Final = {
    Status.SKIPPED: "nothing was read: it is not enforced",
    Status.NOT_EVALUATED: "nothing: it could not be evaluated",
}


class Preparation(TableView):
    """One table made ready for one plan. `answers` are the results that are known without a row."""

    def __init__(
        self,
        df: DataFrame,
        plan: Plan,
        *,
        untyped: bool = False,
        given: Given | None = None,
        known: Known | None = None,
    ) -> None:
        super().__init__(df, plan, untyped=untyped)
        self.given = given or Given.at()
        # What is known is known of the texts, and not of the values that they are cast to.
        self.known = known if known is not None and not self.texts else Known()
        self.counted: list[RowCheck] = []
        self.measured: list[Measured] = []
        self.exploded: dict[tuple[Path, ...], tuple[DataFrame, list[Measured]]] = {}
        self.matchings: list[Matching] = []
        self.late: dict[str, Callable[[int], CheckResult]] = {}
        self.misfits: list[Counted] = []
        self.answers: dict[str, CheckResult] = {}
        for check in plan.checks:
            self._prepare(check)
        self._leave_out_unknown()

    def held_by(self) -> list[RowCheck]:
        """The checks whose every violating row is one too many: error rules that allow no such row."""
        return [
            c for c in self.counted if outcomes.threshold_of(c.check).allows_none and c.check.severity is Severity.ERROR
        ]

    def answer(self, result: CheckResult, how: str = "") -> None:
        """Take a result, in place of an earlier one of the same check, and `how` it was come by."""
        self.answers[result.id] = replace(result, how=_UNANSWERED.get(result.status, how))

    def measure(
        self,
        check: Check,
        paths: tuple[Path, ...],
        columns: Callable[..., tuple[Column, ...]],
        answer: Callable[[Sequence[Any]], CheckResult],
    ) -> None:
        """Aggregate over the values at the paths: in the one pass, inside an array or a map in a query of their own.

        `columns` is given each value and its type in turn.
        """
        found = [self.locate(path) for path in paths]
        if not any(is_inside(path) for path in paths):
            values = [self.single(path, str(path[-1]))[0] for path in paths]
            given = [part for value, one in zip(values, found, strict=True) for part in (value, one.type)]
            self.measured.append(Measured(check, columns(*given), answer, tuple(found)))
            return
        rows, values = exploded(self.view, [(positional(one.column), one.steps) for one in found])
        given = [part for value, one in zip(values, found, strict=True) for part in (value, one.type)]
        rows, measured = self.exploded.setdefault(paths, (rows, []))
        measured.append(Measured(check, columns(*given), answer))

    # --- preparing ----------------------------------------------------------------------------------------------------

    def _prepare(self, check: Check) -> None:
        rule = check.rule
        if isinstance(rule, NotEnforced):
            self.answer(check.result(Status.SKIPPED, message=f"not enforced: {rule.reason}"))
        elif rule.scope is Scope.SCHEMA:
            answer = schema_result(self, check)
            if answer is not None:
                self.answer(answer, "the table's schema")
        elif rule.unenforced is not None:
            # Said wherever results are shown; failing every table for what no table could pass would help nobody.
            self.answer(check.result(Status.SKIPPED, message=rule.unenforced))
        elif not (isinstance(rule, rules.RowCount) or rule.scope in (Scope.KEY, Scope.QUERY)):
            try:
                PREPARING.get(type(rule), Preparation._count_rows)(self, check, rule)
            except NotEvaluableError as reason:
                self.answer(outcomes.not_evaluated(check, str(reason)))

    def _count_rows(self, check: Check, rule: Any) -> None:
        if not check.path:
            raise NotEvaluableError(f"a {rule.kind} rule is about one field")
        found = self.locate(check.path)
        self.counted.append(Counted(check, found, self._test(check, found.type)))

    def _test(self, check: Check, actual: SparkType) -> Test:
        had, promised = to_data_type(actual), check.type
        comparable = promised is None or (had is not None and (had.family is promised.family or promised.accepts(had)))
        if not comparable and not about_nulls(check):
            raise NotEvaluableError(f"it is promised for {promised}, and the column is {type_text(actual)}")
        plain = violation(check.rule, without_collations(actual))
        return lambda value: plain(by_code_points(value, actual))

    def _leave_out_unknown(self) -> None:
        """Conditions that Spark does not take are not evaluated; each is asked for alone only where one is refused."""
        conditions = [counted for counted in self.counted if isinstance(counted, Condition)]
        if conditions and self._refused(conditions) is not None:
            for condition in conditions:
                reason = self._refused([condition])
                if reason is not None:
                    self.counted.remove(condition)
                    self.answer(outcomes.not_evaluated(condition.check, f"its SQL cannot be run: {reason}"))

    def _refused(self, conditions: list[Condition]) -> str | None:
        try:
            with unlogged():
                # Where a condition stands, no aggregate, window or generator may.
                _ = self.view.where(reduce(and_, (one.violating(self.view) for one in conditions))).schema
        except SPARK_ERRORS as error:
            return in_words(error)
        return None
