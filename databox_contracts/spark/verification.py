"""Judging a DataFrame: the schema from the schema, all counts from one pass, keys from one more over their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import DataType as SparkType, StringType, StructField, StructType

from databox_contracts.errors import ContractViolationError
from databox_contracts.model import Contract, Mode, SchemaModes
from databox_contracts.plan import Check, Plan, build_plan
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import HasType, NotEnforced, Present, RowCount, Scope, Severity, Undeclared
from databox_contracts.spark import outcomes
from databox_contracts.spark.casting import cast_text, loses, spark_type_of
from databox_contracts.spark.keys import find_duplicates
from databox_contracts.spark.predicates import NotEvaluableError, Test, violating, violation
from databox_contracts.spark.sampling import sample_violations
from databox_contracts.spark.schema import Location, Missing, locate, to_data_type, type_text, undeclared_columns

_SETTINGS = {
    "time_zone": "spark.sql.session.timeZone",
    "ansi": "spark.sql.ansi.enabled",
    "case_sensitive": "spark.sql.caseSensitive",
}


def verify(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    samples: int = 5,
    untyped: bool = False,
) -> Verdict:
    """Hold a table against its contract.

    One Spark job counts for all row and aggregate rules, each key takes one more over its own columns, and only when
    something failed one more pass collects up to `samples` distinct values for each failed rule. With `untyped`, text
    columns (CSV) are cast as the contract says, and a text that is no value of its type violates `type`. Raises
    `UnknownDatasetError`; errors of Spark itself pass through.
    """
    plan = build_plan(contract, contract.dataset(dataset))
    return Verification(df, plan, untyped=untyped).verdict(samples=samples)


def enforce(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    samples: int = 5,
) -> DataFrame:
    """The same DataFrame if it keeps the contract; raises `ContractViolationError` with the verdict if not."""
    verdict = verify(df, contract, dataset, samples=samples)
    if not verdict.passed:
        raise ContractViolationError(verdict)
    return df


@dataclass(frozen=True, slots=True)
class Counted:
    """A check that counts rows, ready to run: the column and steps to look at and the test that finds a violation."""

    check: Check
    location: Location
    test: Test
    name: str | None = None

    def column(self, view: DataFrame) -> Column:
        """The column of the view that the test looks at, or into."""
        return view[self.name or positional(self.location.column)]

    def violating(self, view: DataFrame) -> Column:
        """Whether a row of the view violates the rule; never null."""
        return violating(self.column(view), self.location.steps, self.test)


class Verification:
    """One table held against one plan.

    The table is looked at through `view`, whose columns are named by position: whatever the table's own names are
    (dots, quotes, keywords, two of one name), they cannot be mistaken in an expression.
    """

    def __init__(self, df: DataFrame, plan: Plan, *, untyped: bool = False) -> None:
        self.plan = plan
        self.schema = df.schema
        self.settings = _settings(df)
        self.case_sensitive = self.settings["case_sensitive"] == "true"
        self.view = df.toDF(*(positional(at) for at in range(len(self.schema.fields))))
        self._texts: dict[int, SparkType] = {}
        if untyped:
            self._cast_texts()
        self.counted: list[Counted] = []
        self._answers: dict[str, CheckResult] = {}
        for check in plan.checks:
            self._prepare(check)

    def verdict(self, *, samples: int = 5) -> Verdict:
        """Run what is left to run. Errors of Spark pass through."""
        rows, counts = self._count()
        for counted in self.counted:
            self._answer(outcomes.counted(counted.check, counts[counted.check.id], rows))
        for check in self.plan.of(Scope.AGGREGATE):
            if isinstance(check.rule, RowCount):
                self._answer(outcomes.row_count(check, rows))
        for check in self.plan.keys:
            if check.id not in self._answers:
                self._answer(self._key_result(check, rows, samples))
        self._add_samples(samples)
        return Verdict(
            contract=self.plan.contract.id,
            version=self.plan.contract.version,
            dataset=self.plan.dataset.name,
            row_count=rows,
            results=tuple(self._answers[check.id] for check in self.plan.checks),
            settings=self.settings,
        )

    def held_by(self) -> list[Counted]:
        """The checks whose every violating row is one too many: error rules that allow no such row."""
        return [
            c for c in self.counted if outcomes.threshold_of(c.check).allows_none and c.check.severity is Severity.ERROR
        ]

    def key_columns(self, check: Check) -> list[Column]:
        """The parts of a key as columns of the view. Raises `NotEvaluableError` for a part that is not there."""
        columns = []
        for name, path in zip(check.key_names, check.keys, strict=True):
            found = locate(self.schema, path, case_sensitive=self.case_sensitive)
            if isinstance(found, Missing):
                raise NotEvaluableError(found.reason)
            column = self.view[positional(found.column)]
            for step in found.steps:
                if not isinstance(step, str):
                    raise NotEvaluableError(f"{name} is inside an array or a map, which is no part of a row's key")
                column = column.getField(step)
            columns.append(column)
        return columns

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
            self._answer(check.result(Status.SKIPPED, message=f"not enforced: {rule.reason}"))
        elif rule.scope is Scope.SCHEMA:
            answer = self._schema_result(check)
            if answer is not None:
                self._answer(answer)
        elif isinstance(rule, RowCount) or rule.scope is Scope.KEY:
            return
        elif rule.unenforced is not None:
            # Said wherever results are shown; failing every table for what no table could pass would help nobody.
            self._answer(check.result(Status.SKIPPED, message=rule.unenforced))
        elif not check.path:
            self._answer(outcomes.not_evaluated(check, f"a {rule.kind} rule is about one field"))
        else:
            found = locate(self.schema, check.path, case_sensitive=self.case_sensitive)
            if isinstance(found, Missing):
                self._answer(outcomes.not_evaluated(check, found.reason))
                return
            try:
                self.counted.append(Counted(check, found, self._test(check, found.type)))
            except NotEvaluableError as reason:
                self._answer(outcomes.not_evaluated(check, str(reason)))

    def _test(self, check: Check, actual: SparkType) -> Test:
        had, promised = to_data_type(actual), check.type
        comparable = promised is None or (had is not None and (had.family is promised.family or promised.accepts(had)))
        if not comparable and not _about_nulls(check):
            raise NotEvaluableError(f"it is promised for {promised}, and the column is {type_text(actual)}")
        return violation(check.rule, actual)

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
                return check.result(Status.FAILED, observed=text, threshold=str(promised), message=message)
            if found.column in self._texts and not found.steps:
                self.counted.append(self._lossless(check, found))
                return None
            return check.result(Status.PASSED, observed=str(had), threshold=str(promised))
        return check.result(Status.PASSED)

    def _lossless(self, check: Check, found: Location) -> Counted:
        """The type check of a column that was text: no row's text may be more than the type can hold."""
        target = self._texts[found.column]
        text = Location(found.column, (), StringType())
        return Counted(check, text, lambda value: loses(value, target), name=_text_of(found.column))

    def _undeclared_result(self, check: Check) -> CheckResult:
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

    # --- running ------------------------------------------------------------------------------------------------------

    def _count(self) -> tuple[int, dict[str, int]]:
        measures = [F.count(F.lit(1)), *(F.count_if(counted.violating(self.view)) for counted in self.counted)]
        row = self.view.agg(*(measure.alias(f"m{at}") for at, measure in enumerate(measures))).collect()[0]
        return int(row[0]), {c.check.id: int(row[at]) for at, c in enumerate(self.counted, start=1)}

    def _key_result(self, check: Check, rows: int, samples: int) -> CheckResult:
        try:
            columns = self.key_columns(check)
            found = find_duplicates(self.view, columns, samples=0 if check.masked else samples)
        except NotEvaluableError as reason:
            return outcomes.not_evaluated(check, str(reason))
        return outcomes.repeated(check, found.surplus_rows, found.keys, found.samples, rows)

    def _add_samples(self, samples: int) -> None:
        failed = [
            counted
            for counted in self.counted
            if self._answers[counted.check.id].status is Status.FAILED
            and not counted.check.masked
            and not _about_nulls(counted.check)
        ]
        if not failed or samples <= 0:
            return
        found = sample_violations(self.view, [(c.column(self.view), c.location, c.test) for c in failed], samples)
        for counted, values in zip(failed, found, strict=True):
            self._answer(replace(self._answers[counted.check.id], samples=values))

    def _answer(self, result: CheckResult) -> None:
        self._answers[result.id] = result


def positional(at: int) -> str:
    """The name of the column at that position in a verification's view."""
    return f"c{at}"


def _text_of(at: int) -> str:
    return f"t{at}"


def _settings(df: DataFrame) -> Mapping[str, str]:
    conf = df.sparkSession.conf
    return {name: str(conf.get(key)) for name, key in _SETTINGS.items()}


def _about_nulls(check: Check) -> bool:
    return check.rule.kind in ("required", "null_count", "missing_count")
