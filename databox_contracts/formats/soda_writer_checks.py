"""Rules as checks of Soda contracts: for each kind of rule, the check that comes nearest, and what that is read as.

What no check says gives None: parts of nested fields, service levels, other engines' rules and prose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.formats.odcs_values import NUMERIC
from databox_contracts.formats.soda_sql import count_of, literal, opposite, quoted, read_condition, read_query
from databox_contracts.formats.soda_values import NAMED_EXPRESSIONS, NAMED_FORMATS, PLAIN_NAME
from databox_contracts.formats.soda_writer_words import Said
from databox_contracts.rules import NO_ROWS, Rule, Severity, Threshold


@dataclass(frozen=True)
class Place:
    """Where a rule stands: the table, and the column where it is one's.

    `table` and `column` are the names that the warehouse has, `kind` is the logical type that the column's values are
    read as. `contract` and `qualified` name the contract and, in Soda's way, its dataset. `columns` has the warehouse's
    name for each of the contract's, dotted through objects; `names` are the columns of the table.
    """

    contract: str
    qualified: str
    table: str
    columns: Mapping[str, str]
    names: tuple[str, ...]
    column: str | None = None
    kind: str | None = None

    def named(self, dotted: str) -> str:
        """The warehouse's name for a field."""
        return self.columns.get(dotted, dotted)


def check_of(rule: Rule, place: Place) -> Said | None:
    """The check that says the rule at its place, as near as a check can; None where none does."""
    say = _CHECKS.get(type(rule))
    # Soda knows two levels, and a variable anywhere makes a check one that only Soda can read.
    severity = rule.severity if rule.severity is Severity.ERROR else Severity.WARNING
    name = rule.name if rule.name is not None and "${" not in rule.name else None
    return say(rule, {"name": name, "severity": severity}, place) if say is not None else None


# --- values -----------------------------------------------------------------------------------------------------------


def _required(rule: rules.Required, facts: dict[str, Any], place: Place) -> Said:
    return Said("missing", (rules.Required(**facts),))


def _null_count(rule: rules.NullCount, facts: dict[str, Any], place: Place) -> Said:
    if rule.threshold.allows_none:
        return Said("missing", (rules.Required(**facts),))
    return Said("missing", (rules.NullCount(threshold=rule.threshold, **facts),), limits=(rule.threshold,))


def _missing_count(rule: rules.MissingCount, facts: dict[str, Any], place: Place) -> Said | None:
    others = tuple(value for value in rule.missing_values if value is not None)
    if None not in rule.missing_values:
        # To Soda, null is missing whatever else is.
        return None
    if not others:
        return _null_count(rules.NullCount(threshold=rule.threshold), facts, place)
    counted = rules.MissingCount(missing_values=(None, *others), threshold=rule.threshold, **facts)
    return Said("missing", (counted,), {"missing_values": others}, _limits(rule.threshold))


def _limits(threshold: Threshold) -> tuple[Threshold, ...]:
    return () if threshold == NO_ROWS else (threshold,)


def _required_when(rule: rules.RequiredWhen, facts: dict[str, Any], place: Place) -> Said:
    return Said("missing", (rules.RequiredWhen(condition=rule.condition, **facts),), {"filter": rule.condition})


def _enum(rule: rules.Enum, facts: dict[str, Any], place: Place) -> Said:
    return Said("invalid", (rules.Enum(values=rule.values, **facts),), {"valid_values": rule.values})


def _pattern(rule: rules.Pattern, facts: dict[str, Any], place: Place) -> Said:
    return Said("invalid", (rules.Pattern(pattern=rule.pattern, **facts),), _expression(rule.pattern))


def _expression(pattern: str, name: str = PLAIN_NAME) -> dict[str, Any]:
    return {"valid_format": {"regex": pattern, "name": name}}


def _format(rule: rules.Format, facts: dict[str, Any], place: Place) -> Said | None:
    name = next((name for name, format_ in NAMED_FORMATS.items() if format_ == rule.format), None)
    if name is None:
        return None
    pattern = NAMED_EXPRESSIONS.get(name)
    body = _expression(pattern, name) if pattern is not None else {"valid_format": name}
    return Said("invalid", (rules.Format(format=rule.format, **facts),), body)


def _bound(key: str, fact: str) -> Callable[[Any, dict[str, Any], Place], Said]:
    def say(rule: Any, facts: dict[str, Any], place: Place) -> Said:
        value = getattr(rule, fact)
        return Said("invalid", (type(rule)(**{fact: value}, **facts),), {key: value})

    return say


def _invalid_count(rule: rules.InvalidCount, facts: dict[str, Any], place: Place) -> Said:
    values, pattern = rule.valid_values, rule.pattern
    body = {"valid_values": values} if values is not None else {}
    body |= _expression(pattern) if pattern is not None else {}
    if not rule.threshold.allows_none:
        counted = rules.InvalidCount(valid_values=values, pattern=pattern, threshold=rule.threshold, **facts)
        return Said("invalid", (counted,), body, (rule.threshold,))
    of_each: list[Rule] = [] if values is None else [rules.Enum(values=values, **facts)]
    of_each += [] if pattern is None else [rules.Pattern(pattern=pattern, **facts)]
    return Said("invalid", tuple(of_each) or (rule,), body)


def _beyond(operator: str) -> Callable[[Any, dict[str, Any], Place], Said | None]:
    def say(rule: Any, facts: dict[str, Any], place: Place) -> Said | None:
        """Soda's bounds are among the valid values, so one that is not is a condition."""
        if place.column is None or (isinstance(rule.limit, str) and place.kind not in _LITERALS):
            return None
        limit = rule.limit if not isinstance(rule.limit, str) else f"{_LITERALS[place.kind]} {literal(rule.limit)}"
        return _failing(f"{quoted(place.column)} {operator} {limit}", facts)

    return say


_LITERALS: Final[dict[str | None, str]] = {"date": "DATE", "timestamp": "TIMESTAMP"}


def _multiple_of(rule: rules.MultipleOf, facts: dict[str, Any], place: Place) -> Said | None:
    # The remainder of a fraction is not exact in every warehouse.
    if place.column is None or place.kind not in NUMERIC or not isinstance(rule.divisor, int):
        return None
    return _failing(f"{quoted(place.column)} % {rule.divisor} <> 0", facts)


def _failing(condition: str, facts: dict[str, Any]) -> Said:
    return Said("failed_rows", (rules.Expression(sql=opposite(condition), **facts),), {"expression": condition})


# --- keys -------------------------------------------------------------------------------------------------------------


def _unique(rule: rules.Unique | rules.PrimaryKey, facts: dict[str, Any], place: Place) -> Said:
    fields = tuple(place.named(name) for name in rule.fields)
    return Said("duplicate", (rules.Unique(fields=fields, **facts),), {"columns": fields} if fields else {})


def _duplicate_count(rule: rules.DuplicateCount, facts: dict[str, Any], place: Place) -> Said:
    if rule.threshold.allows_none:
        return _unique(rules.Unique(fields=rule.fields), facts, place)
    fields = tuple(place.named(name) for name in rule.fields)
    counted = rules.DuplicateCount(fields=fields, threshold=rule.threshold, **facts)
    return Said("duplicate", (counted,), {"columns": fields} if fields else {}, (rule.threshold,))


def _foreign_key(rule: rules.ForeignKey, facts: dict[str, Any], place: Place) -> Said | None:
    if place.column is None or len(rule.to_fields) != 1:
        return None
    dataset, (column,) = _referred(rule.to, place), rule.to_fields
    to = f"{dataset}.{dataset.rsplit('/', 1)[-1]}"
    key = rules.ForeignKey(fields=(place.column,), to=to, to_fields=(column,), **facts)
    return Said("invalid", (key,), {"valid_reference_data": {"dataset": dataset, "column": column}})


def _referred(to: str, place: Place) -> str:
    """The qualified name of the dataset that a key refers to."""
    for at, mark in enumerate(to):
        if mark == "." and to[:at].rsplit("/", 1)[-1] == to[at + 1 :]:
            return to[:at]
    contract, _, name = to.rpartition(".")
    if contract in ("", place.contract):
        # A dataset of this contract is the next table of the same schema.
        return "/".join([*place.qualified.split("/")[:-1], name])
    return f"{contract}/{name}"


# --- the table --------------------------------------------------------------------------------------------------------


def _row_count(rule: rules.RowCount, facts: dict[str, Any], place: Place) -> Said:
    return Said("row_count", (rules.RowCount(threshold=rule.threshold, **facts),), limits=(rule.threshold,))


_UNITS: Final = {"day": 86_400, "hour": 3_600, "minute": 60}


def _freshness(rule: rules.Freshness, facts: dict[str, Any], place: Place) -> Said:
    unit = next((name for name, seconds in _UNITS.items() if rule.seconds and rule.seconds % seconds == 0), "minute")
    age = rule.seconds / _UNITS[unit]
    limit = Threshold(rules.Operator.LESS_OR_EQUAL, int(age) if age == int(age) else age)
    element = place.named(rule.element) if rule.element is not None else None
    fresh = rules.Freshness(seconds=rule.seconds, element=element, **facts)
    return Said("freshness", (fresh,), {"column": element} if element is not None else {}, (limit,), unit)


def _statistic(rule: rules.Statistic, facts: dict[str, Any], place: Place) -> Said | None:
    if place.column is None:
        return None
    if rule.statistic == "quantile" and rule.quantile is not None:
        return _metric(f"PERCENTILE({quoted(place.column)}, {rule.quantile})", rule.threshold, facts, place)
    counted = rules.Statistic(statistic=rule.statistic, threshold=rule.threshold, **facts)
    return Said("aggregate", (counted,), {"function": rule.statistic}, (rule.threshold,))


def _metric(expression: str, threshold: Threshold, facts: dict[str, Any], place: Place) -> Said:
    sql = f"SELECT {expression} FROM {quoted(place.table)}"
    query = rules.Query(sql=sql, threshold=threshold, **facts)
    return Said("metric", (query,), {"expression": expression}, (threshold,))


def _condition(rule: rules.Expression, facts: dict[str, Any], place: Place) -> Said | None:
    condition = read_condition(opposite(rule.sql), place.names)
    return _failing(condition, facts) if condition is not None else None


def _query(rule: rules.Query, facts: dict[str, Any], place: Place) -> Said | None:
    names = {name: quoted(place.table) for name in ("table", "object", "schema", "model")}
    if place.column is not None:
        names |= dict.fromkeys(("column", "property", "field"), quoted(place.column))
    text = _PLACEHOLDER.sub(lambda found: names.get(found[1], found[0]), rule.sql)
    sql = read_query(text, place.names, place.table)
    if sql is None:
        return None
    means = (rules.Query(sql=sql, threshold=rule.threshold, **facts),)
    rows = _ROWS.fullmatch(sql)
    if rows is not None and rule.threshold == NO_ROWS and count_of(rows[1]) == sql:
        return Said("failed_rows", means, {"query": rows[1]})
    return Said("metric", means, {"query": sql}, (rule.threshold,))


_PLACEHOLDER: Final = re.compile(r"\$?\{\s*(\w+)\s*\}")
_ROWS: Final = re.compile(r"SELECT COUNT\(\*\) FROM \((.*)\) AS failed_rows", re.DOTALL)

_CHECKS: Final[Mapping[type[Rule], Callable[[Any, dict[str, Any], Place], Said | None]]] = {
    rules.Required: _required,
    rules.NullCount: _null_count,
    rules.MissingCount: _missing_count,
    rules.RequiredWhen: _required_when,
    rules.Enum: _enum,
    rules.Pattern: _pattern,
    rules.Format: _format,
    rules.Minimum: _bound("valid_min", "limit"),
    rules.Maximum: _bound("valid_max", "limit"),
    rules.ExclusiveMinimum: _beyond("<="),
    rules.ExclusiveMaximum: _beyond(">="),
    rules.MultipleOf: _multiple_of,
    rules.MinLength: _bound("valid_min_length", "length"),
    rules.MaxLength: _bound("valid_max_length", "length"),
    rules.InvalidCount: _invalid_count,
    rules.Unique: _unique,
    rules.PrimaryKey: _unique,
    rules.DuplicateCount: _duplicate_count,
    rules.ForeignKey: _foreign_key,
    rules.RowCount: _row_count,
    rules.Freshness: _freshness,
    rules.Statistic: _statistic,
    rules.Expression: _condition,
    rules.Query: _query,
}
"""The check for each kind of rule, of those that there is one for."""
