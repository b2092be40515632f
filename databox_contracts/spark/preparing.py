"""A table and a plan made ready: what the schema answers is answered, and everything else is turned into columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import DataType as SparkType, NullType, StringType, StructField, StructType

from databox_contracts import rules
from databox_contracts.model import Field, Mode, SchemaModes
from databox_contracts.plan import Check, Hop, Path, Plan
from databox_contracts.results import CheckResult, Status
from databox_contracts.rules import HasType, NotEnforced, Present, Rule, Scope, Severity, Undeclared
from databox_contracts.spark import outcomes
from databox_contracts.spark.aggregates import statistic, statistic_columns
from databox_contracts.spark.casting import cast_target, cast_text, loses, loses_value, spark_type_of
from databox_contracts.spark.completeness import against_number, against_table, judged, periods_of, reference_clock
from databox_contracts.spark.counting import Condition, Counted, Measured, RowCheck, about_nulls, positional
from databox_contracts.spark.expressions import (
    Leaf,
    Place,
    all_violating,
    any_violating,
    as_json_text,
    is_false,
    is_null_where,
)
from databox_contracts.spark.failures import SPARK_ERRORS, in_words, unlogged
from databox_contracts.spark.given import Given
from databox_contracts.spark.inside import exploded, is_inside, values_at
from databox_contracts.spark.known import Known
from databox_contracts.spark.predicates import NotEvaluableError, Test, violation
from databox_contracts.spark.references import Matching, given_table, matching, not_given, own_dataset
from databox_contracts.spark.sampling import LONGEST
from databox_contracts.spark.schema import Location, Missing, locate, to_data_type, type_text, undeclared_columns
from databox_contracts.spark.sql_safety import quoted
from databox_contracts.spark.timeliness import (
    arrived,
    clock_path,
    delay,
    fresh,
    micros,
    path_of,
    percentile_of,
    too_old,
)

_UNANSWERED: Final = {
    Status.SKIPPED: "nothing was read: it is not enforced",
    Status.NOT_EVALUATED: "nothing: it could not be evaluated",
}
_SETTINGS: Final = {
    "time_zone": "spark.sql.session.timeZone",
    "ansi": "spark.sql.ansi.enabled",
    "case_sensitive": "spark.sql.caseSensitive",
}


class Preparation:
    """One table made ready for one plan.

    The table is looked at through `view`, whose columns are named by position: whatever the table's own names are
    (dots, quotes, keywords, two of one name), they cannot be mistaken in an expression. `answers` are the results that
    are known without a row.
    """

    def __init__(
        self,
        df: DataFrame,
        plan: Plan,
        *,
        untyped: bool = False,
        given: Given | None = None,
        known: Known | None = None,
    ) -> None:
        self.plan = plan
        self.given = given or Given.at()
        self.schema = df.schema
        self.names = df.columns
        self.settings = _settings(df)
        self.case_sensitive = self.settings["case_sensitive"] == "true"
        self.view = df.toDF(*(positional(at) for at in range(len(self.schema.fields))))
        self._texts: dict[int, SparkType] = {}
        if untyped:
            self._cast_texts()
        # What is known is known of the texts, and not of the values that they are cast to.
        self.known = known if known is not None and not self._texts else Known()
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

    @property
    def table(self) -> DataFrame:
        """The table under its own names, texts cast as the contract says."""
        return self.view.select(*(positional(at) for at in range(len(self.names)))).toDF(*self.names)

    def held_by(self) -> list[RowCheck]:
        """The checks whose every violating row is one too many: error rules that allow no such row."""
        return [
            c for c in self.counted if outcomes.threshold_of(c.check).allows_none and c.check.severity is Severity.ERROR
        ]

    def key_columns(self, check: Check) -> list[Column]:
        """The parts of a key as columns of the view. Raises `NotEvaluableError` for a part that is not there."""
        return [self._single(path, name)[0] for name, path in zip(check.key_names, check.keys, strict=True)]

    def answer(self, result: CheckResult, how: str = "") -> None:
        """Take a result, in place of an earlier one of the same check, and `how` it was come by."""
        self.answers[result.id] = replace(result, how=_UNANSWERED.get(result.status, how))

    # --- finding columns ----------------------------------------------------------------------------------------------

    def _locate(self, path: Path) -> Location:
        found = locate(self.schema, path, case_sensitive=self.case_sensitive)
        if isinstance(found, Missing):
            raise NotEvaluableError(found.reason)
        return found

    def _single(self, path: Path, name: str) -> tuple[Column, SparkType]:
        """A column that has one value in each row, and its type."""
        found = self._locate(path)
        column = self.view[positional(found.column)]
        for step in found.steps:
            if not isinstance(step, str):
                raise NotEvaluableError(f"{name} is inside an array or a map, which is no part of a row's key")
            column = column.getField(step)
        return column, found.type

    def key_values(self, check: Check) -> Column | None:
        """The values of a key that is inside an array or a map, as one array; None for other keys.

        Raises `NotEvaluableError` for one that is not there.
        """
        if len(check.keys) != 1 or not is_inside(check.keys[0]):
            return None
        found = self._locate(check.keys[0])
        return values_at(self.view[positional(found.column)], found.steps)

    def key_items(self, check: Check) -> DataFrame | None:
        """As `key_values`, each value a row of the column `k0`."""
        values = self.key_values(check)
        return self.view.select(F.explode(values).alias("k0")) if values is not None else None

    def _measure(
        self,
        check: Check,
        paths: tuple[Path, ...],
        columns: Callable[..., tuple[Column, ...]],
        answer: Callable[[Sequence[Any]], CheckResult],
    ) -> None:
        """Aggregate over the values at the paths: in the one pass, inside an array or a map in a query of their own.

        `columns` is given each value and its type in turn.
        """
        found = [self._locate(path) for path in paths]
        if not any(is_inside(path) for path in paths):
            values = [self._single(path, str(path[-1]))[0] for path in paths]
            given = [part for value, one in zip(values, found, strict=True) for part in (value, one.type)]
            self.measured.append(Measured(check, columns(*given), answer, tuple(found)))
            return
        rows, values = exploded(self.view, [(positional(one.column), one.steps) for one in found])
        given = [part for value, one in zip(values, found, strict=True) for part in (value, one.type)]
        rows, measured = self.exploded.setdefault(paths, (rows, []))
        measured.append(Measured(check, columns(*given), answer))

    def _conceals(self, path: Path) -> bool:
        pii_class, level = self.plan.contract.governance.pii_class, self.plan.dataset.fields
        field: Field | None = None
        for step in path:
            if isinstance(step, Hop):
                field = getattr(field, step.value, None)
            else:
                field = next((one for one in level if one.column == step), None)
            if field is None:
                return pii_class is not None
            if field.conceals(pii_class):
                return True
            level = field.fields
        return False

    # --- preparing ----------------------------------------------------------------------------------------------------

    def _cast_texts(self) -> None:
        """Give text columns their declared types; the text itself stays beside, for what the cast loses."""
        casts: dict[str, Column] = {}
        fields = list(self.schema.fields)
        for field in self.plan.dataset.fields:
            found = locate(self.schema, (field.column,), case_sensitive=self.case_sensitive)
            target = spark_type_of(field.type) if field.type is not None else None
            if isinstance(found, Missing) or target is None or not isinstance(found.type, StringType):
                continue
            text = self.view[positional(found.column)]
            casts[_text_of(found.column)] = text
            casts[positional(found.column)] = cast_text(text, target)
            fields[found.column] = StructField(fields[found.column].name, target)
            self._texts[found.column] = target
        if casts:
            self.view = self.view.withColumns(casts)
            self.schema = StructType(fields)

    def _prepare(self, check: Check) -> None:
        rule = check.rule
        if isinstance(rule, NotEnforced):
            self.answer(check.result(Status.SKIPPED, message=f"not enforced: {rule.reason}"))
        elif rule.scope is Scope.SCHEMA:
            answer = self._schema_result(check)
            if answer is not None:
                self.answer(answer, "the table's schema")
        elif rule.unenforced is not None:
            # Said wherever results are shown; failing every table for what no table could pass would help nobody.
            self.answer(check.result(Status.SKIPPED, message=rule.unenforced))
        elif not (isinstance(rule, rules.RowCount) or rule.scope in (Scope.KEY, Scope.QUERY)):
            try:
                _PREPARING.get(type(rule), Preparation._count_rows)(self, check, rule)
            except NotEvaluableError as reason:
                self.answer(outcomes.not_evaluated(check, str(reason)))

    def _count_rows(self, check: Check, rule: Any) -> None:
        if not check.path:
            raise NotEvaluableError(f"a {rule.kind} rule is about one field")
        found = self._locate(check.path)
        self.counted.append(Counted(check, found, self._test(check, found.type)))

    def _test(self, check: Check, actual: SparkType) -> Test:
        had, promised = to_data_type(actual), check.type
        comparable = promised is None or (had is not None and (had.family is promised.family or promised.accepts(had)))
        if not comparable and not about_nulls(check):
            raise NotEvaluableError(f"it is promised for {promised}, and the column is {type_text(actual)}")
        return violation(check.rule, actual)

    def _expression(self, check: Check, rule: rules.Expression) -> None:
        self._condition(check, is_false(rule.sql, self.given.as_of), shows=True)

    def _required_when(self, check: Check, rule: rules.RequiredWhen) -> None:
        if not check.path:
            raise NotEvaluableError("a required_when rule is about one field")
        self._condition(check, is_null_where(rule.condition, self.given.as_of), shows=False)

    def _condition(self, check: Check, test: Leaf, *, shows: bool) -> None:
        found = self._locate(check.path) if check.path else None
        place = Place(
            schema=self.schema,
            fields=self.plan.dataset.fields,
            path=check.path,
            steps=found.steps if found is not None else (),
            column=found.column if found is not None else None,
            table=tuple(n for n in (self.plan.dataset.name, self.plan.dataset.physical_name) if n is not None),
            case_sensitive=self.case_sensitive,
            called=positional,
        )
        values = all_violating(place, test, as_json_text(found.type, LONGEST)) if found is not None and shows else None
        self.counted.append(Condition(check, any_violating(place, test), values))

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

    def _statistic(self, check: Check, rule: rules.Statistic) -> None:
        if not check.path:
            raise NotEvaluableError("a statistic rule is about one field")

        def columns(value: Column, actual: SparkType) -> tuple[Column, ...]:
            return statistic_columns(rule, value, actual)

        self._measure(check, (check.path,), columns, lambda found: statistic(check, *found, masked=check.masked))

    def _freshness(self, check: Check, rule: rules.Freshness) -> None:
        path = clock_path(check, self.plan.dataset, self.given.timestamp_field)
        masked, as_of = check.masked or self._conceals(path), self.given.as_of

        def newest(value: Column, actual: SparkType) -> tuple[Column, ...]:
            return (F.max(micros(actual)(value)),)

        self._measure(check, (path,), newest, lambda found: fresh(check, found[0], as_of, masked=masked))

    def _latency(self, check: Check, rule: rules.Latency) -> None:
        if not 0 <= rule.percentile <= 100:
            raise NotEvaluableError(f"{rule.percentile} is no percentile")
        event_path = clock_path(check, self.plan.dataset, self.given.timestamp_field)
        arrival_path = path_of(self.plan.dataset, rule.arrival_field or "")
        masked = check.masked or self._conceals(event_path) or self._conceals(arrival_path)

        def longest(*both: Any) -> tuple[Column, ...]:
            return (percentile_of(delay(*both), rule.percentile),)

        self._measure(check, (event_path, arrival_path), longest, lambda took: arrived(check, took[0], masked=masked))

    def _retention(self, check: Check, rule: rules.Retention) -> None:
        path = clock_path(check, self.plan.dataset, self.given.timestamp_field)
        found = self._locate(path)
        hidden = replace(check, masked=check.masked or self._conceals(path))
        self.counted.append(Counted(hidden, found, too_old(rule, found.type, self.given.as_of)))

    def _foreign_key(self, check: Check, rule: rules.ForeignKey) -> None:
        reference = given_table(rule.to, self.plan.contract, self.given.references)
        itself = reference is None and own_dataset(rule.to, self.plan.contract) is self.plan.dataset
        if reference is None and not itself:
            raise not_given(rule.to)
        values = self.key_values(check)
        inside = values is not None
        if values is not None:
            own = [(values, self._locate(check.keys[0]).type)]
        else:
            own = [self._single(path, name) for name, path in zip(check.key_names, check.keys, strict=True)]
        if not own:
            raise NotEvaluableError("it names no field")
        self.matchings.append(
            matching(
                check,
                self.plan,
                own,
                reference if reference is not None else self.table,
                inside=inside,
                itself=itself,
                case_sensitive=self.case_sensitive,
            )
        )

    def _completeness(self, check: Check, rule: rules.Completeness) -> None:
        periods = periods_of(rule)
        path = clock_path(check, self.plan.dataset, self.given.timestamp_field)
        clock, actual = self._single(path, ".".join(map(str, path)))
        arrived = self.view.select(periods.number(micros(actual)(clock)).alias("period"))
        arrived = arrived.where("period is not null")
        masked = check.masked or self._conceals(path)
        expected = rule.expected
        if isinstance(expected, int):

            def by_number(samples: int) -> CheckResult:
                counts = against_number(arrived, expected, periods, self.given.as_of)
                return judged(check, counts, periods, masked=masked, samples=samples)

            self.late[check.id] = by_number
            return
        assert expected is not None
        reference = given_table(expected, self.plan.contract, self.given.references)
        if reference is None:
            raise not_given(expected)
        time = reference_clock(str(path[-1]), reference.schema)
        its = periods.number(micros(reference.schema[time].dataType)(F.col(quoted(time)))).alias("period")
        counts = against_table(arrived, reference.select(its))
        self.late[check.id] = lambda samples: judged(check, counts, periods, masked=masked, samples=samples)

    # --- what the schema answers --------------------------------------------------------------------------------------

    def _schema_result(self, check: Check) -> CheckResult | None:
        if isinstance(check.rule, Undeclared):
            return self._undeclared_result(check)
        found = locate(self.schema, check.path, case_sensitive=self.case_sensitive)
        if isinstance(found, Missing):
            if isinstance(check.rule, Present):
                return check.result(Status.FAILED, message=f"{found.reason}; the contract promises {check.field}")
            return outcomes.not_evaluated(check, found.reason)
        if isinstance(check.rule, HasType):
            had, promised = to_data_type(found.type), check.rule.type
            if had is None or not promised.accepts(had):
                text = type_text(found.type)
                message = f"{check.field} is {text}; the contract promises {promised}"
                if self._count_misfits(check, found, message):
                    return None
                return check.result(Status.FAILED, observed=text, threshold=str(promised), message=message)
            if found.column in self._texts and not found.steps:
                self.counted.append(self._lossless(check, found))
                return None
            done = self.given.applied.type_message(check.path) if self.given.applied is not None else ""
            return check.result(Status.PASSED, observed=str(had), threshold=str(promised), message=done)
        return check.result(Status.PASSED)

    def _count_misfits(self, check: Check, found: Location, message: str) -> bool:
        """Count the rows of a column of another type whose values could not be read as the promised one, if any can.

        Whatever the count, the check fails, for the column; the count says what to look for.
        """
        assert isinstance(check.rule, HasType)
        actual, promised = found.type, check.rule.type
        target = cast_target(actual, promised)
        if target is None or isinstance(actual, NullType):
            return False
        counted = Counted(check, found, lambda value: loses_value(value, actual, target))
        self.misfits.append(counted)

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

        self.measured.append(Measured(check, (F.count_if(counted.violating(self.view)),), answer, (found,)))
        return True

    def _lossless(self, check: Check, found: Location) -> Counted:
        """The type check of a column that was text: no row's text may be more than the type can hold."""
        target = self._texts[found.column]
        text = Location(found.column, (), StringType())
        return Counted(check, text, lambda value: loses(value, target), name=_text_of(found.column))

    def _undeclared_result(self, check: Check) -> CheckResult:
        if self.given.applied is not None:
            return self.given.applied.undeclared_result(check)
        modes = self.plan.dataset.modes or SchemaModes()
        extra = undeclared_columns(self.schema, self.plan.dataset.fields, case_sensitive=self.case_sensitive)
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


_PREPARING: Final[dict[type[Rule], Callable[[Preparation, Check, Any], None]]] = {
    rules.Expression: Preparation._expression,
    rules.RequiredWhen: Preparation._required_when,
    rules.Statistic: Preparation._statistic,
    rules.Freshness: Preparation._freshness,
    rules.Latency: Preparation._latency,
    rules.Retention: Preparation._retention,
    rules.ForeignKey: Preparation._foreign_key,
    rules.Completeness: Preparation._completeness,
}
"""The kinds of rules that are not the test of one value; all others are."""


def _text_of(at: int) -> str:
    return f"t{at}"


def _settings(df: DataFrame) -> Mapping[str, str]:
    conf = df.sparkSession.conf
    return {name: str(conf.get(key)) for name, key in _SETTINGS.items()}
