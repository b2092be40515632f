"""What one pass over the rows answers: how many rows break a rule, and other aggregates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import StringType

from databox_contracts.plan import Check
from databox_contracts.results import CheckResult
from databox_contracts.rules import InvalidCount, Latency, Pattern, Statistic
from databox_contracts.spark.predicates import Test, violating, violating_values
from databox_contracts.spark.sampling import draw, shown_as
from databox_contracts.spark.schema import Location


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

    def offending(self, view: DataFrame, *, drawn: bool = False) -> Column | None:
        """The row's offending values as an array of JSON texts; None for a rule about nulls, which has none to show.

        With `drawn`, they are those that `draw` chooses.
        """
        if about_nulls(self.check):
            return None
        chosen = draw(self.location.type)
        test = (lambda value: self.test(value) & chosen(value)) if drawn else self.test
        return violating_values(self.column(view), self.location.steps, test, shown_as(self.location.type))

    @property
    def may_fail(self) -> bool:
        """Whether a single row can end the job: Java's expressions may run out of stack."""
        return self._pattern is not None

    @property
    def may_end_a_write(self) -> bool:
        """Whether that is so likely that rows are not to be written and judged at once.

        An expression without a repeated group needs no stack, and one of plain parts is refused by nobody.
        """
        return self._pattern is not None and _UNSURE.search(self._pattern) is not None

    @property
    def _pattern(self) -> str | None:
        rule = self.check.rule
        return rule.pattern if isinstance(rule, Pattern | InvalidCount) else None


@dataclass(frozen=True, slots=True)
class Condition:
    """A check of a condition in SQL, as text over the view; `values` is None where there is no value to show."""

    check: Check
    text: str
    values: str | None = None

    def violating(self, view: DataFrame) -> Column:
        """As `Counted.violating`."""
        return F.expr(self.text)

    def offending(self, view: DataFrame, *, drawn: bool = False) -> Column | None:
        """As `Counted.offending`."""
        if self.values is None:
            return None
        values = F.expr(self.values)
        return F.filter(values, draw(StringType())) if drawn else values

    @property
    def may_fail(self) -> bool:
        """It is somebody else's SQL."""
        return True

    @property
    def may_end_a_write(self) -> bool:
        """As `Counted.may_end_a_write`."""
        return True


RowCheck: TypeAlias = Counted | Condition

_UNSURE: Final = re.compile(r"\)[*+{]|\(\?|\\[pPk]|\{\d{5}")


@dataclass(frozen=True, slots=True)
class Measured:
    """A check of aggregates: what has to be aggregated, and the result that follows from it.

    `locations` are the columns that it looks at.
    """

    check: Check
    columns: tuple[Column, ...]
    answer: Callable[[Sequence[Any]], CheckResult]
    locations: tuple[Location, ...] = ()

    @property
    def location(self) -> Location | None:
        """The one column that it is about, None where it is about several."""
        return self.locations[0] if len(self.locations) == 1 else None

    @property
    def is_light(self) -> bool:
        """Whether the aggregates are single numbers, and keep no values of the column meanwhile."""
        rule = self.check.rule
        return not (isinstance(rule, Latency) or (isinstance(rule, Statistic) and rule.quantile is not None))

    @property
    def reads(self) -> frozenset[str]:
        """The columns of the view that it looks at."""
        return frozenset(positional(location.column) for location in self.locations)


def positional(at: int) -> str:
    """The name of the column at that position in a verification's view."""
    return f"c{at}"


def about_nulls(check: Check) -> bool:
    """Whether the rule is about values that are not there."""
    return check.rule.kind in ("required", "null_count", "missing_count")
