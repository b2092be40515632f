"""One frozen class per rule: what is promised, and nothing about how it is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field as attribute
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, Final, TypeAlias

from databox_contracts.datatypes import DataType
from databox_contracts.errors import Position
from databox_contracts.text_formats import FORMATS

Number: TypeAlias = int | float | Decimal
Scalar: TypeAlias = str | bool | int | float | Decimal | None


class Severity(StrEnum):
    """What a violation does: an error stops the table, a warning and an info are shown."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Dimension(StrEnum):
    """The seven data-quality dimensions of the Open Data Contract Standard."""

    ACCURACY = "accuracy"
    COMPLETENESS = "completeness"
    CONFORMITY = "conformity"
    CONSISTENCY = "consistency"
    COVERAGE = "coverage"
    TIMELINESS = "timeliness"
    UNIQUENESS = "uniqueness"


class Scope(StrEnum):
    """What has to be looked at to judge a rule."""

    SCHEMA = "schema"
    ROW = "row"
    AGGREGATE = "aggregate"
    KEY = "key"
    REFERENCE = "reference"
    QUERY = "query"
    NONE = "none"


class Operator(StrEnum):
    """The comparison operators of the Open Data Contract Standard."""

    MUST_BE = "mustBe"
    MUST_NOT_BE = "mustNotBe"
    GREATER_THAN = "mustBeGreaterThan"
    GREATER_OR_EQUAL = "mustBeGreaterOrEqualTo"
    LESS_THAN = "mustBeLessThan"
    LESS_OR_EQUAL = "mustBeLessOrEqualTo"
    BETWEEN = "mustBeBetween"
    NOT_BETWEEN = "mustNotBeBetween"


class Unit(StrEnum):
    """What a threshold on a count is measured in."""

    ROWS = "rows"
    PERCENT = "percent"


_WORDS: Final = {
    Operator.MUST_BE: "=",
    Operator.MUST_NOT_BE: "!=",
    Operator.GREATER_THAN: ">",
    Operator.GREATER_OR_EQUAL: ">=",
    Operator.LESS_THAN: "<",
    Operator.LESS_OR_EQUAL: "<=",
}


@dataclass(frozen=True, slots=True)
class Threshold:
    """What an observed number is held against; `high` only for the two range operators, both bounds included."""

    operator: Operator
    value: Number
    high: Number | None = None
    unit: Unit = Unit.ROWS

    def holds(self, observed: Number) -> bool:
        """Whether `observed`, in this threshold's unit, is as promised."""
        seen, value = Decimal(str(observed)), Decimal(str(self.value))
        high = Decimal(str(self.high)) if self.high is not None else value
        match self.operator:
            case Operator.MUST_BE:
                return seen == value
            case Operator.MUST_NOT_BE:
                return seen != value
            case Operator.GREATER_THAN:
                return seen > value
            case Operator.GREATER_OR_EQUAL:
                return seen >= value
            case Operator.LESS_THAN:
                return seen < value
            case Operator.LESS_OR_EQUAL:
                return seen <= value
            case Operator.BETWEEN:
                return value <= seen <= high
            case Operator.NOT_BETWEEN:
                return not value <= seen <= high

    @property
    def allows_none(self) -> bool:
        """Whether the only count that holds is zero, so that each violating row is one too many."""
        match self.operator:
            case Operator.MUST_BE | Operator.LESS_OR_EQUAL:
                return self.value == 0
            case Operator.LESS_THAN:
                return 0 < self.value <= 1 and self.unit is Unit.ROWS
            case Operator.BETWEEN:
                return self.value <= 0 and self.high == 0
            case _:
                return False

    def __str__(self) -> str:
        unit = "%" if self.unit is Unit.PERCENT else ""
        match self.operator:
            case Operator.BETWEEN:
                return f"between {self.value}{unit} and {self.high}{unit}"
            case Operator.NOT_BETWEEN:
                return f"not between {self.value}{unit} and {self.high}{unit}"
            case operator:
                return f"{_WORDS[operator]} {self.value}{unit}"


KNOWN_FORMATS: Final = tuple(FORMATS)
"""The formats that are evaluated."""

NO_ROWS: Final = Threshold(Operator.MUST_BE, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One promise about a field or a dataset.

    `name` is the author's own id or title for it, `position` where it stands in the contract file. A rule says what
    must hold; a null satisfies every row rule except `Required`. `custom` is what the document says beside the promise,
    by dialect (`$odcs`), so that writing it again loses nothing; two rules that differ only there are equal.
    `evaluated` is false for a kind of rule that this version only carries: its results are `skipped`.
    """

    kind: ClassVar[str]
    scope: ClassVar[Scope]
    usual_dimension: ClassVar[Dimension]
    evaluated: ClassVar[bool] = True
    breach: ClassVar[str] = "do not keep the promise"

    name: str | None = None
    severity: Severity = Severity.ERROR
    dimension: Dimension | None = None
    description: str = ""
    position: Position | None = None
    custom: Mapping[str, Any] = attribute(default_factory=dict, compare=False, repr=False)

    @property
    def unenforced(self) -> str | None:
        """The sentence for a rule that this version only carries, None for one that it evaluates."""
        return None if self.evaluated else f"not enforced: this version does not evaluate {self.kind} rules"

    @property
    def broken(self) -> str:
        """What is wrong with the rows that break it, to follow "3 of 10 rows"; it quotes the rule, never a value."""
        return self.breach.format(rule=self)


# --- schema -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Present(Rule):
    """The declared field is a column of the table."""

    kind = "present"
    scope = Scope.SCHEMA
    usual_dimension = Dimension.CONFORMITY


@dataclass(frozen=True, slots=True, kw_only=True)
class HasType(Rule):
    """The column is of the declared type; width, precision and scale count where the contract names them."""

    kind = "type"
    scope = Scope.SCHEMA
    usual_dimension = Dimension.CONFORMITY
    breach = "cannot be read as {rule.type}"

    type: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Undeclared(Rule):
    """The table has no column that the contract does not declare."""

    kind = "undeclared"
    scope = Scope.SCHEMA
    usual_dimension = Dimension.CONFORMITY


# --- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Required(Rule):
    """The value is not null. Inside an object that is null itself there is nothing to require."""

    kind = "required"
    scope = Scope.ROW
    usual_dimension = Dimension.COMPLETENESS
    breach = "are null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enum(Rule):
    """The value is one of a list; an empty list allows nothing but null."""

    kind = "enum"
    scope = Scope.ROW
    usual_dimension = Dimension.CONFORMITY
    breach = "are none of the {rule.allowed} allowed values"

    values: tuple[Scalar, ...]

    @property
    def allowed(self) -> int:
        """How many values there are to choose from."""
        return len(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern(Rule):
    """The text contains a match of the regular expression (ECMA-262: a search, unless anchored)."""

    kind = "pattern"
    scope = Scope.ROW
    usual_dimension = Dimension.CONFORMITY
    breach = "do not match {rule.pattern}"

    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Rule):
    """The text has a named format, such as uuid or email."""

    kind = "format"
    scope = Scope.ROW
    usual_dimension = Dimension.CONFORMITY
    breach = "are not of the format {rule.format}"

    format: str

    @property
    def unenforced(self) -> str | None:
        """The sentence for a format that this version does not know."""
        known = self.format in KNOWN_FORMATS
        return None if known else f"not enforced: this version does not evaluate the format {self.format!r}"


Limit: TypeAlias = int | float | Decimal | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum(Rule):
    """The value is at least the limit; the limit of a date or timestamp is its ISO 8601 text."""

    kind = "minimum"
    scope = Scope.ROW
    usual_dimension = Dimension.ACCURACY
    breach = "are below {rule.limit}"

    limit: Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Maximum(Rule):
    """The value is at most the limit. NaN fails every bound."""

    kind = "maximum"
    scope = Scope.ROW
    usual_dimension = Dimension.ACCURACY
    breach = "are above {rule.limit}"

    limit: Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusiveMinimum(Rule):
    """The value is greater than the limit."""

    kind = "exclusive_minimum"
    scope = Scope.ROW
    usual_dimension = Dimension.ACCURACY
    breach = "are not above {rule.limit}"

    limit: Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusiveMaximum(Rule):
    """The value is less than the limit."""

    kind = "exclusive_maximum"
    scope = Scope.ROW
    usual_dimension = Dimension.ACCURACY
    breach = "are not below {rule.limit}"

    limit: Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleOf(Rule):
    """The number is a whole multiple of the divisor."""

    kind = "multiple_of"
    scope = Scope.ROW
    usual_dimension = Dimension.ACCURACY
    breach = "are not a multiple of {rule.divisor}"

    divisor: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class MinLength(Rule):
    """The text has at least so many characters."""

    kind = "min_length"
    scope = Scope.ROW
    usual_dimension = Dimension.CONFORMITY
    breach = "are shorter than {rule.length} characters"

    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxLength(Rule):
    """The text has at most so many characters."""

    kind = "max_length"
    scope = Scope.ROW
    usual_dimension = Dimension.CONFORMITY
    breach = "are longer than {rule.length} characters"

    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MinItems(Rule):
    """The array has at least so many items."""

    kind = "min_items"
    scope = Scope.ROW
    usual_dimension = Dimension.CONFORMITY
    breach = "have fewer than {rule.count} items"

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxItems(Rule):
    """The array has at most so many items."""

    kind = "max_items"
    scope = Scope.ROW
    usual_dimension = Dimension.CONFORMITY
    breach = "have more than {rule.count} items"

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueItems(Rule):
    """No two items of the array are equal."""

    kind = "unique_items"
    scope = Scope.ROW
    usual_dimension = Dimension.UNIQUENESS
    breach = "repeat an item"


# --- counts of rows, held against a threshold -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NullCount(Rule):
    """So many values, or percent of the rows, are null."""

    kind = "null_count"
    scope = Scope.AGGREGATE
    usual_dimension = Dimension.COMPLETENESS
    breach = "are null"

    threshold: Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingCount(Rule):
    """So many values stand for nothing: they are in `missing_values`, in which None is null."""

    kind = "missing_count"
    scope = Scope.AGGREGATE
    usual_dimension = Dimension.COMPLETENESS
    breach = "are missing"

    missing_values: tuple[Scalar, ...]
    threshold: Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidCount(Rule):
    """So many values are not valid: neither null, nor among `valid_values`, nor matching `pattern`, where given."""

    kind = "invalid_count"
    scope = Scope.AGGREGATE
    usual_dimension = Dimension.CONFORMITY
    breach = "are not valid"

    valid_values: tuple[Scalar, ...] | None = None
    pattern: str | None = None
    threshold: Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCount(Rule):
    """The table has so many rows."""

    kind = "row_count"
    scope = Scope.AGGREGATE
    usual_dimension = Dimension.COVERAGE

    threshold: Threshold


# --- keys -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique(Rule):
    """No two rows share the key, a key with a null part not being compared. `fields` is empty for the rule's own field.

    The field names are the contract's, dotted for a field of an object.
    """

    kind = "unique"
    scope = Scope.KEY
    usual_dimension = Dimension.UNIQUENESS
    breach = "repeat a key"

    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryKey(Rule):
    """The fields identify the row: unique together, and none of them null (which is a `Required` of its own)."""

    kind = "primary_key"
    scope = Scope.KEY
    usual_dimension = Dimension.UNIQUENESS
    breach = "repeat a key"

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateCount(Rule):
    """So many rows, or percent of them, repeat a key: those beyond the first of each."""

    kind = "duplicate_count"
    scope = Scope.KEY
    usual_dimension = Dimension.UNIQUENESS
    breach = "repeat a key"

    fields: tuple[str, ...] = ()
    threshold: Threshold


# --- rules over rows, aggregates, other tables and queries ------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression(Rule):
    """The SQL condition is not false for the row; where it is null, the row keeps the promise."""

    kind = "expression"
    scope = Scope.ROW
    usual_dimension = Dimension.ACCURACY
    breach = "break the condition"

    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredWhen(Rule):
    """The value is not null wherever the SQL condition is true."""

    kind = "required_when"
    scope = Scope.ROW
    usual_dimension = Dimension.COMPLETENESS
    breach = "are null where the condition requires a value"

    condition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness(Rule):
    """So many percent of the rows arrived, each period for itself; `expected` names the reference or the number."""

    kind = "completeness"
    scope = Scope.REFERENCE
    usual_dimension = Dimension.COVERAGE

    threshold: Threshold
    period: str | None = None
    expected: str | int | None = None
    percent_of_periods: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic(Rule):
    """A statistic (avg, sum, min, max, stddev, quantile) of the column is within the threshold."""

    kind = "statistic"
    scope = Scope.AGGREGATE
    usual_dimension = Dimension.ACCURACY

    statistic: str
    threshold: Threshold
    quantile: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness(Rule):
    """The newest timestamp is at most so many seconds old; an empty table is not fresh."""

    kind = "freshness"
    scope = Scope.AGGREGATE
    usual_dimension = Dimension.TIMELINESS

    seconds: float
    element: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(Rule):
    """That percentile of the time from event to arrival is at most so many seconds; the 100th is the longest time.

    `element` is the field of the event's time, `arrival_field` that of the arrival.
    """

    kind = "latency"
    scope = Scope.AGGREGATE
    usual_dimension = Dimension.TIMELINESS

    percentile: float
    seconds: float
    element: str | None = None
    arrival_field: str | None = None

    @property
    def unenforced(self) -> str | None:
        """The sentence for a promise that no row can show, since it names no time of arrival."""
        return None if self.arrival_field is not None else "not enforced: it names no field of a row's arrival"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention(Rule):
    """No row is older than so many seconds."""

    kind = "retention"
    scope = Scope.AGGREGATE
    usual_dimension = Dimension.TIMELINESS
    breach = "are older than they may be kept"

    seconds: float
    element: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey(Rule):
    """Every key that is not null is one of another dataset's; `to` is `contract.dataset` or a dataset of this one.

    `fields` is empty for the rule's own field.
    """

    kind = "foreign_key"
    scope = Scope.REFERENCE
    usual_dimension = Dimension.CONSISTENCY
    breach = "refer to nothing in {rule.to}"

    fields: tuple[str, ...]
    to: str
    to_fields: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Rule):
    """A read-only SQL query returns a number within the threshold."""

    kind = "query"
    scope = Scope.QUERY
    usual_dimension = Dimension.ACCURACY

    sql: str
    threshold: Threshold


# --- what is written down but not evaluated ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NotEnforced(Rule):
    """A promise that this version does not evaluate, such as prose or another engine's check; always reported."""

    kind = "not_enforced"
    scope = Scope.NONE
    usual_dimension = Dimension.CONFORMITY

    reason: str
