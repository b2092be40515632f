"""SodaCL: a check of one line, such as `invalid_count(status) = 0` with its options, as rules of ours.

What SodaCL says and no rule of ours does (filters, anomaly detection, comparisons with other scans) becomes a rule that
verdicts show as skipped, with a warning in the document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.formats.durations import DurationError, parse_duration
from databox_contracts.formats.odcs_sql import why_not_a_number
from databox_contracts.formats.reading import Section, described, nearest
from databox_contracts.formats.soda_sql import count_of, count_where, read_condition, read_query
from databox_contracts.formats.sodacl_check import Check, SodaRule, Table
from databox_contracts.formats.sodacl_thresholds import ThresholdError, negated, parse_thresholds
from databox_contracts.formats.sodacl_valid import VALIDITY, read_listed
from databox_contracts.rules import NO_ROWS, Rule, Severity, Threshold, Unit

__all__ = ["MOST_CHARACTERS", "SodaRule", "Table", "parse_check", "read_checks"]

MOST_CHARACTERS: Final = 2_000


def read_checks(section: Section, key: str, table: Table) -> Iterator[SodaRule]:
    """The rules of a list of checks, in order; `section.data[key]` is the list, of texts and of mappings."""
    for at, item in enumerate(section.listed(key)):
        if isinstance(item, str):
            yield from parse_check(item, None, table, holder=section, steps=(key, at))
        elif isinstance(item, dict) and len(item) == 1:
            entry = Section(section.report, (*section.path, key, at), item, section.field)
            (text,) = item
            options = entry.section(text)
            if options is None and item[text] is not None:
                continue
            yield from parse_check(text, options, table, holder=entry, steps=(text,))
        else:
            section.error(
                f"a check must be a text, or a text with options, not {described(item)}",
                "write `- row_count > 0`",
                key,
                at,
            )


def parse_check(
    text: str, options: Section | None, table: Table, *, holder: Section, steps: tuple[str | int, ...]
) -> Iterator[SodaRule]:
    """The rules of one check; none where it is wrong, which is an error at `steps` below `holder`.

    `options` are the entries indented below the check (`name`, `valid values`, `fail`, ...).
    """
    check = Check(text=" ".join(text.split()), options=options, table=table, holder=holder, steps=steps)
    if len(text) > MOST_CHARACTERS:
        check.error("the check is too long", f"keep it within {MOST_CHARACTERS} characters")
        return
    found = list(_of_check(check))
    if options is not None:
        options.carried(*_DOCUMENTATION)
        options.close()
    yield from found


# --- one check --------------------------------------------------------------------------------------------------------

_DOCUMENTATION: Final = ("attributes", "identity", "samples limit", "samples columns", "title")
_METRIC: Final = re.compile(r"([a-z][a-z0-9_]*)\s*(?:\(([^()]*)\))?\s*(.*)", re.IGNORECASE | re.DOTALL)
_REFERENCE: Final = re.compile(
    r"values in \(?\s*([^()]+?)\s*\)? must exist in ([^\s()]+)\s*\(?\s*([^()]+?)\s*\)?", re.IGNORECASE
)
_FRESHNESS: Final = re.compile(r"freshness\s*(?:\(\s*([^()\s]+)\s*\)|using\s+(\S+))\s*(<=?)\s*(.+)", re.IGNORECASE)

# Beginnings of checks that compare with what only Soda's own history, other scans or other sources know.
_FOREIGN: Final = (
    "anomaly detection",
    "anomaly score",
    "automated monitoring",
    "change ",
    "discover ",
    "distribution_difference",
    "freshness",
    "group by",
    "group evolution",
    "profile ",
    "reconciliation",
    "schema",
)


def _of_check(check: Check) -> Iterator[SodaRule]:
    if check.options is not None and "filter" in check.options:
        check.options.text("filter")
        check.options.carried(*check.options.data)
        yield check.skipped("it has a filter, and rules here are about all rows")
        return
    if match := _REFERENCE.fullmatch(check.text):
        yield from _reference(check, *match.groups())
        return
    if match := _FRESHNESS.fullmatch(check.text):
        yield from _freshness(check, match[1] or match[2], match[4])
        return
    if check.text.lower() == "failed rows" and check.options is not None:
        yield from _failed_rows(check, check.options)
        return
    match = _METRIC.fullmatch(check.text)
    name = match[1].lower() if match else ""
    reader = _METRICS.get(name)
    if match is not None and reader is not None:
        if re.match(r"(?:same as|for)\b", match[3], re.IGNORECASE):
            yield from _foreign(check)
            return
        for threshold, severity in _thresholds(check, match[3], percent=name.endswith("_percent")):
            facts = check.facts() | ({"severity": severity} if severity is not Severity.ERROR else {})
            yield from reader(check, name, match[2], threshold, facts)
    elif check.text.lower().startswith(_FOREIGN) or _own_metric(check, name):
        yield from _foreign(check)
    else:
        near = nearest(name, (*_METRICS, "freshness")) if name else None
        hint = f"did you mean {near!r}?" if near else f"known are {', '.join(_METRICS)} and freshness"
        check.error("this is no check that is known", hint)


def _foreign(check: Check) -> Iterator[SodaRule]:
    if check.options is not None:
        check.options.carried(*check.options.data)
    yield check.skipped("it is Soda's own")


def _own_metric(check: Check, name: str) -> bool:
    """Whether the options define the metric that the check names."""
    return check.options is not None and any(f"{name} {kind}" in check.options.data for kind in ("expression", "query"))


# --- thresholds -------------------------------------------------------------------------------------------------------


def _thresholds(check: Check, written: str, *, percent: bool) -> Iterator[tuple[Threshold, Severity]]:
    """What must hold: the text behind the metric, or what `fail` and `warn` say must not."""
    unit = Unit.PERCENT if percent else Unit.ROWS
    options = check.options
    try:
        if written:
            yield from ((threshold, Severity.ERROR) for threshold in parse_thresholds(written, unit))
            return
        conditions = [(key, severity) for key, severity in _ALERTS if options is not None and key in options]
        if not conditions or options is None:
            check.error("it says no threshold", "write one, such as `= 0`, `< 5%` or `between 1 and 10`")
        for key, severity in conditions:
            condition = options.text(key) if options is not None else None
            if condition is not None:
                broken = parse_thresholds(re.sub(r"^when\s+", "", condition.strip()), unit)
                if len(broken) != 1:
                    raise ThresholdError(condition, "its open bounds cannot be turned round")
                yield negated(broken[0]), severity
    except ThresholdError as error:
        check.error(error.message, error.hint or "correct it")


_ALERTS: Final = (("fail", Severity.ERROR), ("warn", Severity.WARNING))


# --- metrics ----------------------------------------------------------------------------------------------------------


def _row_count(
    check: Check, name: str, argument: str | None, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[SodaRule]:
    if argument:
        check.error("row_count is about the whole table", "write `row_count` alone")
    elif threshold.unit is Unit.PERCENT:
        check.error("row_count has no percentage", "leave the % out")
    else:
        yield SodaRule(None, rules.RowCount(threshold=threshold, **facts))


def _one_column(check: Check, argument: str | None) -> str | None:
    if not argument or not argument.strip() or "," in argument:
        check.error("it is about one column", "name it in brackets, such as `missing_count(id) = 0`")
        return None
    return check.column(argument)


def _missing(
    check: Check, name: str, argument: str | None, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[SodaRule]:
    column = _one_column(check, argument)
    if column is None:
        return
    options = check.options
    if options is not None and any(key in options for key in ("missing regex", "missing format")):
        yield check.skipped("what counts as missing is said by a pattern", column)
    elif options is not None and "missing values" in options:
        values = read_listed(options, "missing values", check.table.logical.get(column))
        # Soda counts nulls in any case.
        listed = (None, *(value for value in values if value is not None))
        yield SodaRule(column, rules.MissingCount(missing_values=listed, threshold=threshold, **facts))
    else:
        yield SodaRule(column, rules.NullCount(threshold=threshold, **facts))


def _invalid(
    check: Check, name: str, argument: str | None, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[SodaRule]:
    column = _one_column(check, argument)
    if column is None:
        return
    options = check.options
    given = [key for key in VALIDITY if options is not None and key in options]
    if options is None or not given:
        check.error("it does not say what is valid", "add `valid values: [...]` or `valid regex: ...` below it")
        return
    for key in given:
        for rule in VALIDITY[key](check, options, key, column, threshold, facts):
            yield rule if isinstance(rule, SodaRule) else SodaRule(column, rule)


def _duplicates(
    check: Check, name: str, argument: str | None, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[SodaRule]:
    names = [part for part in (argument or "").split(",") if part.strip()]
    if not names:
        check.error("it names no column", "write `duplicate_count(id) = 0`")
        return
    columns = [check.column(part) for part in names]
    known = tuple(column for column in columns if column is not None)
    if len(known) < len(columns):
        return
    if len(known) == 1:
        yield SodaRule(known[0], rules.DuplicateCount(threshold=threshold, **facts))
    else:
        yield SodaRule(None, rules.DuplicateCount(fields=known, threshold=threshold, **facts))


def _statistic(
    check: Check, name: str, argument: str | None, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[SodaRule]:
    column = _one_column(check, argument)
    if column is not None:
        yield SodaRule(column, rules.Statistic(statistic=_STATISTICS[name], threshold=threshold, **facts))


def _percentile(
    check: Check, name: str, argument: str | None, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[SodaRule]:
    written, _, share = (argument or "").partition(",")
    if not re.fullmatch(r"\s*(?:0?\.\d{1,9}|[01](?:\.0*)?)\s*", share):
        check.error("it needs a column and a share between 0 and 1", "write `percentile(size, 0.95) < 100`")
        return
    column = check.column(written)
    if column is not None:
        quantile = float(share)
        yield SodaRule(column, rules.Statistic(statistic="quantile", quantile=quantile, threshold=threshold, **facts))


def _extreme_length(
    check: Check, name: str, argument: str | None, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[SodaRule]:
    """`min_length(x) >= 3` is said of every value; other thresholds on lengths are about the table's extreme."""
    column = _one_column(check, argument)
    if column is None:
        return
    kind, operator, step = _LENGTHS[name]
    length = threshold.value
    whole = isinstance(length, int) and length >= 0
    if whole and threshold.operator is operator:
        yield SodaRule(column, kind(length=length, **facts))
    elif whole and threshold.operator is step[0]:
        yield SodaRule(column, kind(length=max(int(length) + step[1], 0), **facts))
    else:
        yield check.skipped("only a shortest and a longest length are rules here", column)


def _unknown_statistic(
    check: Check, name: str, argument: str | None, threshold: Threshold, facts: dict[str, Any]
) -> Iterator[SodaRule]:
    yield check.skipped(f"{name} is no statistic of ours", _one_column(check, argument))


_Metric = Callable[[Check, str, "str | None", Threshold, "dict[str, Any]"], Iterator[SodaRule]]

_STATISTICS: Final = {
    "avg": "avg",
    "max": "max",
    "min": "min",
    "stddev": "stddev",
    "stddev_samp": "stddev",
    "sum": "sum",
}

# The rule, the operator that says just that of every value, and the one that says it of the next whole number.
_LENGTHS: Final[dict[str, tuple[Any, rules.Operator, tuple[rules.Operator, int]]]] = {
    "min_length": (rules.MinLength, rules.Operator.GREATER_OR_EQUAL, (rules.Operator.GREATER_THAN, 1)),
    "max_length": (rules.MaxLength, rules.Operator.LESS_OR_EQUAL, (rules.Operator.LESS_THAN, -1)),
}

_METRICS: Final[dict[str, _Metric]] = {
    "row_count": _row_count,
    "missing_count": _missing,
    "missing_percent": _missing,
    "invalid_count": _invalid,
    "invalid_percent": _invalid,
    "duplicate_count": _duplicates,
    "duplicate_percent": _duplicates,
    **dict.fromkeys(_STATISTICS, _statistic),
    "percentile": _percentile,
    **dict.fromkeys(_LENGTHS, _extreme_length),
    **dict.fromkeys(("avg_length", "stddev_pop", "variance", "var_pop", "var_samp"), _unknown_statistic),
}


# --- checks with a form of their own ----------------------------------------------------------------------------------


def _freshness(check: Check, written: str, limit: str) -> Iterator[SodaRule]:
    column = check.column(written)
    if column is None:
        return
    try:
        seconds = parse_duration(limit)
    except DurationError as error:
        check.error(error.message, error.hint or "correct it")
        return
    yield SodaRule(None, rules.Freshness(seconds=seconds, element=column, **check.facts()))


def _reference(check: Check, here: str, to: str, there: str) -> Iterator[SodaRule]:
    columns = [check.column(part) for part in here.split(",")]
    targets = tuple(part.strip().strip('"`') for part in there.split(","))
    if len(columns) != len(targets):
        check.error("it names not as many columns there as here", "name one for each")
    elif None not in columns:
        known = tuple(column for column in columns if column is not None)
        yield SodaRule(None, rules.ForeignKey(fields=known, to=to, to_fields=targets, **check.facts()))


def _failed_rows(check: Check, options: Section) -> Iterator[SodaRule]:
    condition, query = options.text("fail condition"), options.text("fail query")
    table, columns = check.table.name, check.table.logical
    if condition is not None and condition.strip():
        failing = read_condition(condition, columns)
        reason = "a condition that is not Spark SQL" if failing is None else None
        reason = reason or why_not_a_number(count_where(f"({failing})", table))
        rule: Rule = rules.Expression(sql=f"NOT ({failing})", **check.facts())
        yield check.skipped(reason) if reason else SodaRule(None, rule)
    elif query is not None and query.strip():
        failed = read_query(query.strip().rstrip(";"), columns, table)
        counting = count_of(failed) if failed is not None else None
        # What cannot be read at all is told in the same words as a query of ODCS.
        reason = why_not_a_number(counting or query) or (None if counting else "a query that does not only read")
        rule = rules.Query(sql=counting or "", threshold=NO_ROWS, **check.facts())
        yield check.skipped(reason) if reason else SodaRule(None, rule)
    else:
        check.error("it says no condition", "write `fail condition: ...` or `fail query: ...` below it")
