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
from databox_contracts.rules import Format, InvalidCount, Pattern
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

    def violating(self, view: DataFrame, *, one_in: int = 1) -> Column:
        """Whether a row of the view violates the rule, with one of the values that `draw` chooses; never null."""
        return violating(self.column(view), self.location.steps, self._test(one_in))

    def offending(self, view: DataFrame, *, one_in: int = 1) -> Column | None:
        """The row's offending values as an array of JSON texts; None for a rule about nulls, which has none to show.

        They are those that `draw` chooses.
        """
        if about_nulls(self.check):
            return None
        steps, shown = self.location.steps, shown_as(self.location.type)
        return violating_values(self.column(view), steps, self._test(one_in), shown)

    def _test(self, one_in: int) -> Test:
        chosen = draw(self.location.type, one_in)
        # A hash costs less than most tests: it goes first.
        return self.test if chosen is None else lambda value: chosen(value) & self.test(value)

    @property
    def is_costly(self) -> bool:
        """Whether the test of a value takes longer than reading it."""
        return isinstance(self.check.rule, Pattern | InvalidCount | Format)

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

    def violating(self, view: DataFrame, *, one_in: int = 1) -> Column:
        """As `Counted.violating`, with whatever values."""
        return F.expr(self.text)

    def offending(self, view: DataFrame, *, one_in: int = 1) -> Column | None:
        """As `Counted.offending`."""
        if self.values is None:
            return None
        values = F.expr(self.values)
        chosen = draw(StringType(), one_in)
        return values if chosen is None else F.filter(values, chosen)

    @property
    def is_costly(self) -> bool:
        """As `Counted.is_costly`."""
        return False

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
    def reads(self) -> frozenset[str]:
        """The columns of the view that it looks at."""
        return frozenset(positional(location.column) for location in self.locations)


def positional(at: int) -> str:
    """The name of the column at that position in a verification's view."""
    return f"c{at}"


def about_nulls(check: Check) -> bool:
    """Whether the rule is about values that are not there."""
    return check.rule.kind in ("required", "null_count", "missing_count")
