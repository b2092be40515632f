"""The checks of Soda contracts, of both generations, as rules of ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.errors import Level
from databox_contracts.formats.odcs_sql import why_not_a_number
from databox_contracts.formats.reading import Section, nearest
from databox_contracts.formats.soda_former import FORMER_CHECKS, STATISTICS
from databox_contracts.formats.soda_limits import THRESHOLD_KEYS, Limits, allows_none
from databox_contracts.formats.soda_sql import count_of, count_where, opposite, quoted, read_condition, read_query
from databox_contracts.formats.soda_subjects import MISSING_KEYS, VALIDITY_KEYS, Check, Subject, needs_column
from databox_contracts.formats.soda_values import read_invalid, read_missing
from databox_contracts.model import Mode, SchemaModes
from databox_contracts.rules import Operator, Rule, Threshold, Unit

_DOCUMENTATION: Final = ("attributes", "qualifier", "metric")
_FILTERS: Final = ("filter", "filter_sql", "filter_sql_expression")
_SOME_ROWS: Final = Threshold(Operator.GREATER_THAN, 0)
_SECONDS: Final = {"minute": 60, "hour": 3600, "day": 86400}


def read_checks(section: Section, subject: Subject) -> None:
    """Adds the rules of all `checks` below the section to their column or table."""
    for entry in section.sections("checks"):
        if "type" in entry.data:
            _first_generation(entry, subject)
        else:
            _second_generation(entry, subject)


def _second_generation(entry: Section, subject: Subject) -> None:
    if not entry.data:
        entry.error("a check has no type", "write `- missing:` or another type of check")
    for kind in entry.data:
        if entry.raw(kind) is not None and not isinstance(entry.data[kind], dict):
            entry.section(kind)
            continue
        section = Section(entry.report, (*entry.path, kind), entry.data[kind] or {}, entry.field)
        # A check may have nothing behind its name, so it stands where its name does.
        place = entry.report.document.key_position(section.path)
        _read(kind, Check(section, subject, _facts(section) | {"position": place}), entry)


def _first_generation(entry: Section, subject: Subject) -> None:
    written = entry.needed("type", "a check")
    if written is None:
        return
    kind, unit, argument = FORMER_CHECKS.get(written, (written, None, None))
    _read(kind, Check(entry, subject, _facts(entry), unit, argument), entry)


def _facts(section: Section) -> dict[str, Any]:
    name = section.text("name") if section.data else None
    return {"name": name, "position": section.position}


def _read(kind: str, check: Check, entry: Section) -> None:
    reader = _READERS.get(kind)
    section, subject = check.section, check.subject
    if reader is None:
        _unknown(kind, check, entry)
        return
    if any("${" in text for text in _texts(section.data)):
        found: list[Rule] = [check.unenforced("a check with a variable, which only Soda fills in")]
        section.carried(*section.data)
    elif (written := _filter(check)) is not None:
        found = list(_filtered(kind, check, written))
    else:
        found = list(reader(check))
    subject.lossy |= section.data.get("attributes") is not None or not _is_usual(section, kind, subject)
    subject.lossy |= any(type(rule) not in _EXACT for rule in found)
    for rule in found:
        of_table = subject.column is None or rule.scope in (rules.Scope.QUERY, rules.Scope.REFERENCE)
        of_table |= isinstance(rule, rules.RowCount | rules.Freshness | rules.Expression)
        (subject.table.rules if of_table else subject.rules).append(rule)
    section.carried(*_DOCUMENTATION)
    section.close(dict.fromkeys(THRESHOLD_KEYS, "this check has no threshold"))


def _is_usual(section: Section, kind: str, subject: Subject) -> bool:
    """Whether the check's qualifier says no more than the count of its kind, which tells it from those before it."""
    subject.counts[kind] = count = subject.counts.get(kind, 0) + 1
    return section.data.get("qualifier") in (None, usual_qualifier(count))


def usual_qualifier(count: int) -> str | None:
    """What tells a check from those of its kind before it, of which it is the `count`th; the first needs nothing."""
    return str(count) if count > 1 else None


def _unknown(kind: str, check: Check, entry: Section) -> None:
    known = (*_READERS, *FORMER_CHECKS) if "type" in entry.data else tuple(_READERS)
    near = nearest(kind, known)
    steps = ("type",) if "type" in entry.data else ()
    if near:
        section = check.section
        message, hint, place = f"unknown type of check {kind!r}", f"did you mean {near!r}?", check.facts["position"]
        section.report.add(Level.ERROR, (*section.path, *steps), message, hint, field=section.field, position=place)
    else:
        rule = check.unenforced(f"the check {kind!r}, which is Soda's own", *steps)
        (check.subject.rules if check.subject.column is not None else check.subject.table.rules).append(rule)
        check.subject.lossy = True
    check.section.carried(*check.section.data)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)


# --- filters ----------------------------------------------------------------------------------------------------------


def _filter(check: Check) -> str | None:
    own = [text for key in _FILTERS if (text := check.section.text(key)) is not None]
    conditions = [*([check.subject.table.filter] if check.subject.table.filter is not None else []), *own]
    return (
        " AND ".join(f"({text.strip()})" for text in conditions)
        if len(conditions) > 1
        else next(iter(conditions), None)
    )


def _filtered(kind: str, check: Check, written: str) -> Iterator[Rule]:
    """A check of some rows only: where no value may be missing that is `required_when`; for others we have no rule."""
    if kind == "schema":
        yield from _READERS[kind](check)
        return
    condition = read_condition(written, check.subject.table.columns)
    if condition is not None and why_not_a_number(count_where(f"({condition})", check.subject.table.name)) is not None:
        condition = None
    held = allows_none(check.limits()) if kind == "missing" else None
    if held is not None and condition is not None and not any(key in check.section.data for key in MISSING_KEYS):
        yield rules.RequiredWhen(condition=condition, **check.sql(held))
        return
    check.section.carried(*check.section.data)
    yield check.unenforced("a check of some of the rows only", *[key for key in _FILTERS if key in check.section.data])


# --- duplicates --------------------------------------------------------------------------------------


def _duplicate(check: Check) -> Iterator[Rule]:
    section, subject = check.section, check.subject
    fields = section.texts("columns")
    limits = check.limits()
    if subject.column is not None and fields:
        section.warning("a check of several columns stands at one of them", "move it to the dataset's checks")
    if subject.column is None and not fields:
        section.error("a duplicate check of a dataset has no columns", "write `columns: [...]`")
        return
    for at, name in enumerate(fields):
        if name not in subject.table.columns:
            near = nearest(name, subject.table.columns)
            section.warning(
                f"{name!r} is no column of the contract",
                f"did you mean {near!r}?" if near else "declare it",
                "columns",
                at,
            )
    configured = [key for key in (*MISSING_KEYS, *VALIDITY_KEYS) if section.raw(key) is not None]
    if limits.unsayable is not None or configured:
        yield check.unenforced(limits.unsayable or f"duplicates among valid values only ({', '.join(configured)})")
        return
    held = allows_none(limits)
    if held is not None:
        yield rules.Unique(fields=fields, **check.sql(held))
        return
    for each in limits.held:
        yield rules.DuplicateCount(fields=fields, threshold=each.threshold, **check.sql(each))


# --- the table --------------------------------------------------------------------------------------------------------


def _row_count(check: Check) -> Iterator[Rule]:
    limits = check.limits(_SOME_ROWS)
    if any(held.threshold.unit is Unit.PERCENT for held in limits.held):
        check.section.error("a row count has no percentage", "leave `metric: percent` out")
        return
    yield from _judged(check, limits, rules.RowCount)


def _judged(check: Check, limits: Limits, make: Callable[..., Rule], **facts: Any) -> Iterator[Rule]:
    if limits.unsayable is not None:
        yield check.unenforced(limits.unsayable)
    for held in limits.held:
        yield make(threshold=held.threshold, **facts, **check.sql(held))


_OF_SCHEMA: Final = ("type", "allow_extra_columns", "allow_other_column_order")


def _schema(check: Check) -> Iterator[Rule]:
    section = check.section
    extra = section.flag("allow_extra_columns")
    check.subject.table.modes = SchemaModes(columns=Mode.EVOLVE if extra else Mode.FREEZE)
    section.carried("threshold")
    any_order = section.flag("allow_other_column_order")
    if not any_order:
        section.note("the order of the columns is not enforced", "write `allow_other_column_order: true`")
    check.subject.lossy |= bool(extra) or not any_order or any(key not in _OF_SCHEMA for key in section.data)
    return iter(())


def _freshness(check: Check) -> Iterator[Rule]:
    section = check.section
    column = section.text("column") or check.subject.column
    nested = section.data.get("threshold")
    holder = section.section("threshold") if isinstance(nested, dict) and "unit" in nested else section
    unit = (holder.text("unit") if holder is not None else None) or check.argument or "hour"
    if unit not in _SECONDS and holder is not None:
        holder.error(f"unknown unit {unit!r}", f"use one of {', '.join(_SECONDS)}", "unit")
        unit = "hour"
    limits = check.limits(None)
    if section.text("now_variable") is not None:
        yield check.unenforced("a freshness check against a variable of Soda", "now_variable")
        return
    for held in limits.held:
        if held.threshold.operator in (Operator.LESS_THAN, Operator.LESS_OR_EQUAL):
            # Whether the limit itself is fresh is not told apart.
            check.subject.lossy |= held.threshold.operator is Operator.LESS_THAN
            seconds = float(held.threshold.value) * _SECONDS[unit]
            yield rules.Freshness(seconds=seconds, element=column, **check.sql(held))
        else:
            yield check.unenforced(f"an age that is {held.threshold} {unit}s")
    if limits.unsayable is not None:
        yield check.unenforced(limits.unsayable)


def _aggregate(check: Check) -> Iterator[Rule]:
    if not needs_column(check):
        return
    section = check.section
    function = check.argument or section.needed("function", "an aggregate check")
    limits = check.limits(None)
    if function is None:
        return
    name = function.strip().lower().replace("_", "")
    configured = [key for key in (*MISSING_KEYS, *VALIDITY_KEYS) if section.raw(key) is not None]
    if configured:
        yield check.unenforced(f"an aggregate of valid values only ({', '.join(configured)})")
    elif name in STATISTICS:
        yield from _judged(check, limits, rules.Statistic, statistic=name)
    elif name in _LENGTHS and limits.held and all(held.threshold.operator in _LENGTHS[name] for held in limits.held):
        for held in limits.held:
            make, whole = _LENGTHS[name][held.threshold.operator]
            length = whole(held.threshold.value)
            check.subject.lossy = True
            if length < 0 and make is rules.MaxLength:
                yield check.unenforced(f"a text of {length} characters")
            else:
                yield make(length=max(length, 0), **check.sql(held))
    elif limits.held or limits.unsayable:
        yield check.unenforced(f"the aggregate {function!r} of a column")


# The longest text is at most so long when every text is; the limit need not be a whole number.
_LENGTHS: Final[dict[str, dict[Operator, tuple[Callable[..., Rule], Callable[[rules.Number], int]]]]] = {
    "maxlength": {
        Operator.LESS_OR_EQUAL: (rules.MaxLength, math.floor),
        Operator.LESS_THAN: (rules.MaxLength, lambda limit: math.ceil(limit) - 1),
    },
    "minlength": {
        Operator.GREATER_OR_EQUAL: (rules.MinLength, math.ceil),
        Operator.GREATER_THAN: (rules.MinLength, lambda limit: math.floor(limit) + 1),
    },
}


def _failed_rows(check: Check) -> Iterator[Rule]:
    section, table = check.section, check.subject.table
    expression = section.text("expression")
    query = section.text("query") or section.text("keys_query") or section.text("failed_rows_sql_query")
    section.carried("key_column_mapping")
    limits = check.limits()
    if (expression is None) is (query is None):
        section.error("a failed_rows check has an expression or a query", "give it one of the two")
        return
    if any(held.threshold.unit is Unit.PERCENT for held in limits.held) or "rows_tested_query" in section:
        yield check.unenforced("failed rows in percent")
        return
    held = allows_none(limits)
    if expression is not None:
        condition = read_condition(expression, table.columns)
        if condition is None:
            section.error("the expression is not SQL that can be read", "write a condition of Spark SQL", "expression")
        elif held is not None and (reason := why_not_a_number(count_where(f"({condition})", table.name))) is not None:
            yield check.unenforced(reason)
        elif held is not None:
            yield rules.Expression(sql=opposite(condition), **check.sql(held))
        else:
            yield from _queried(check, limits, count_where(condition, table.name))
        return
    read = read_query(query or "", table.columns, table.name)
    yield from _queried(check, limits, read and count_of(read))


def _metric(check: Check) -> Iterator[Rule]:
    section, table = check.section, check.subject.table
    texts = [section.text(key) for key in ("expression", "metric_sql_expression", "metric_expression_sql")]
    expression = next((text for text in texts if text is not None), None)
    texts = [section.text(key) for key in ("query", "sql", "query_sql", "metric_query_sql")]
    query = next((text for text in texts if text is not None), None)
    limits = check.limits(None)
    if (expression is None) is (query is None):
        section.error("a metric check has an expression or a query", "give it one of the two")
        return
    if expression is not None:
        condition = read_condition(expression, table.columns)
        yield from _queried(check, limits, condition and f"SELECT {condition} FROM {quoted(table.name)}")
    else:
        yield from _queried(check, limits, read_query(query or "", table.columns, table.name))


def _queried(check: Check, limits: Limits, sql: str | None) -> Iterator[Rule]:
    if sql is None:
        check.section.error("this is not SQL that can be read and only reads", "write it in Spark SQL")
        return
    if (reason := why_not_a_number(sql)) is not None:
        yield check.unenforced(reason)
        return
    yield from _judged(check, limits, rules.Query, sql=sql)


_READERS: Final[dict[str, Callable[[Check], Iterator[Rule]]]] = {
    "missing": read_missing,
    "invalid": read_invalid,
    "duplicate": _duplicate,
    "row_count": _row_count,
    "schema": _schema,
    "freshness": _freshness,
    "aggregate": _aggregate,
    "failed_rows": _failed_rows,
    "metric": _metric,
}
"""The types of check of the second generation."""

_EXACT: Final = (
    rules.Required,
    rules.NullCount,
    rules.MissingCount,
    rules.InvalidCount,
    rules.Enum,
    rules.Pattern,
    rules.Format,
    rules.Minimum,
    rules.Maximum,
    rules.MinLength,
    rules.MaxLength,
    rules.Unique,
    rules.DuplicateCount,
    rules.RowCount,
    rules.Freshness,
    rules.Statistic,
)
"""The rules that say all their check did."""
