"""Every rule as a sentence that people read. The rule says what it means; nothing is left out but hidden values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.datatypes import DataType
from databox_contracts.export.page import Code, Line, Span, joined, plain_text
from databox_contracts.model import Field
from databox_contracts.rules import Operator, Rule, Severity, Threshold, Unit

HIDDEN: Final = "not shown"
"""What stands in the place of values that may not be shown."""


def rule_line(rule: Rule, *, masked: bool = False) -> Line:
    """What the rule promises, and what its author says beside it. With `masked`, values are counted and not shown.

    A severity below error, a dimension that the author chose, and that this version does not check the rule stand in
    brackets at the end.
    """
    name: Line = (rule.name, ": ") if rule.name else ()
    said = rule.description.strip()
    # What is not enforced has no sentence but its author's.
    description: Line = (f" {said}",) if said and not isinstance(rule, rules.NotEnforced) else ()
    notes = [str(rule.severity)] if rule.severity is not Severity.ERROR else []
    notes += [str(rule.dimension)] if rule.dimension is not None else []
    notes += [rule.unenforced] if rule.unenforced is not None else []
    after: Line = (f" ({'; '.join(notes)})",) if notes else ()
    return _merged((*name, *SENTENCES[type(rule)](rule, masked), *description, *after))


def rule_text(rule: Rule, *, masked: bool = False) -> str:
    """As `rule_line`, without marks."""
    return plain_text(rule_line(rule, masked=masked))


def is_plain(rule: Rule) -> bool:
    """Whether there is nothing to say of the rule beside its promise."""
    return (rule.name, rule.severity, rule.dimension, rule.description.strip()) == (None, Severity.ERROR, None, "")


def _merged(line: Line) -> Line:
    found: list[Span] = []
    for span in line:
        if found and isinstance(span, str) and isinstance(found[-1], str):
            found[-1] += span
        else:
            found.append(span)
    return tuple(found)


# --- values, numbers, lengths of time and types -----------------------------------------------------------------------


def value_text(value: Any) -> str:
    """A value as it is told from others: text in quotes, numbers bare; mappings and lists as JSON."""
    match value:
        case Decimal():
            return format(value, "f") if value.is_finite() else str(value)
        case None | bool() | int() | float() | str():
            return json.dumps(value, ensure_ascii=False)
        case Mapping() | list() | tuple():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return str(value)


def values_line(values: Iterable[Any]) -> Line:
    """The values one after another."""
    return joined(Code(value_text(value)) for value in values)


def _values(values: Sequence[Any], masked: bool) -> Line:
    count = f"{len(values)} value{'' if len(values) == 1 else 's'}"
    return (f"{count}, {HIDDEN}",) if masked else values_line(values)


_SECONDS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def duration(seconds: float) -> str:
    """A length of time in days, hours, minutes and seconds; the seconds may have a fraction."""
    rest, words = Decimal(str(seconds)), []
    for unit, length in _SECONDS:
        count = rest // length if length > 1 else rest
        rest -= count * length
        if count:
            words.append(f"{count.normalize():f} {unit}{'' if count == 1 else 's'}")
    return " ".join(words) or "0 seconds"


_LIMITS: Final = {
    Operator.MUST_BE: "exactly {low}",
    Operator.MUST_NOT_BE: "anything but {low}",
    Operator.GREATER_THAN: "more than {low}",
    Operator.GREATER_OR_EQUAL: "at least {low}",
    Operator.LESS_THAN: "less than {low}",
    Operator.LESS_OR_EQUAL: "at most {low}",
    Operator.BETWEEN: "between {low} and {high}",
    Operator.NOT_BETWEEN: "less than {low} or more than {high}",
}


def threshold_words(threshold: Threshold) -> str:
    """What the number may be, such as "at most 5" or "less than 5 %"."""
    unit = " %" if threshold.unit is Unit.PERCENT else ""
    high = value_text(threshold.high) + unit if threshold.high is not None else ""
    return _LIMITS[threshold.operator].format(low=value_text(threshold.value) + unit, high=high)


def type_words(field: Field) -> str:
    """The declared type; of an object only that it is one, since its fields are told apart."""
    if field.item is not None:
        return f"array of {type_words(field.item)}"
    if field.key is not None and field.value is not None:
        return f"map of {type_words(field.key)} to {type_words(field.value)}"
    if field.type is None:
        return "object" if field.fields else "any type"
    return str(field.type) if field.type.fields is None or not field.fields else str(field.type.family)


# --- one sentence for each kind of rule -------------------------------------------------------------------------------

Sentence = Callable[[Any, bool], Line]


def _fixed(text: str) -> Sentence:
    return lambda rule, masked: (text,)


def _with(before: str, attribute: str, after: str = ".") -> Sentence:
    """The sentence around one attribute of the rule."""

    def sentence(rule: Any, masked: bool) -> Line:
        value = getattr(rule, attribute)
        return (before, Code(value if isinstance(value, str) else value_text(value)), after)

    return sentence


def _type(rule: rules.HasType, masked: bool) -> Line:
    type_: DataType = rule.type
    return ("Has the type ", Code(str(type_)), ".")


def _enum(rule: rules.Enum, masked: bool) -> Line:
    if not rule.values:
        return ("No value is allowed but null.",)
    return ("Is one of: ", *_values(rule.values, masked), ".")


def _counted(what: str) -> Sentence:
    """A number of rows, or percent of them, held against the rule's threshold."""

    def sentence(rule: Any, masked: bool) -> Line:
        return (f"{what}: {_of_rows(rule.threshold)}.",)

    return sentence


def _of_rows(threshold: Threshold) -> str:
    if threshold.allows_none:
        return "none"
    words = threshold_words(threshold)
    return f"{words} of the rows" if threshold.unit is Unit.PERCENT else words


def _missing(rule: rules.MissingCount, masked: bool) -> Line:
    meant: Line = (" (", *_values(rule.missing_values, masked), ")") if rule.missing_values else ()
    return ("Missing values", *meant, f": {_of_rows(rule.threshold)}.")


def _invalid(rule: rules.InvalidCount, masked: bool) -> Line:
    valid: list[Span] = []
    if rule.valid_values is not None:
        valid += ["one of: ", *_values(rule.valid_values, masked)] if rule.valid_values else ["no value at all"]
    if rule.pattern is not None:
        valid += [*([" and "] if valid else []), "text that matches ", Code(rule.pattern)]
    meant: Line = (" (valid is ", *valid, ")") if valid else ()
    return ("Values that are not valid", *meant, f": {_of_rows(rule.threshold)}.")


def _key(rule: Any) -> Line:
    return joined(Code(name) for name in rule.fields)


def _unique(rule: rules.Unique, masked: bool) -> Line:
    return ("No two rows have the same ", *_key(rule), ".") if rule.fields else ("No two rows have the same value.",)


def _primary_key(rule: rules.PrimaryKey, masked: bool) -> Line:
    return ("Each row is identified by ", *_key(rule), ".")


def _duplicates(rule: rules.DuplicateCount, masked: bool) -> Line:
    what: Line = ("Rows that repeat ", *_key(rule)) if rule.fields else ("Rows that repeat a value",)
    return (*what, f": {_of_rows(rule.threshold)}.")


def _completeness(rule: rules.Completeness, masked: bool) -> Line:
    found: list[Span] = ["Of the "]
    if isinstance(rule.expected, int):
        found.append(f"{rule.expected} rows expected")
    elif rule.expected is not None:
        found += ["rows expected by ", Code(rule.expected)]
    else:
        found.append("rows expected")
    found += [f" in each {rule.period}"] if rule.period else []
    found.append(f", {threshold_words(rule.threshold)} have arrived")
    if rule.percent_of_periods is not None:
        found.append(f"; that holds for {value_text(rule.percent_of_periods)} % of the periods")
    return (*found, ".")


def _statistic(rule: rules.Statistic, masked: bool) -> Line:
    which: Line = (Code(rule.statistic),)
    if rule.quantile is not None:
        which = (*which, f" at {value_text(rule.quantile)}")
    return ("The statistic ", *which, f" is {threshold_words(rule.threshold)}.")


def _by(element: str | None) -> Line:
    return (" by ", Code(element)) if element is not None else ()


def _freshness(rule: rules.Freshness, masked: bool) -> Line:
    return (f"The newest row is at most {duration(rule.seconds)} old", *_by(rule.element), ".")


def _retention(rule: rules.Retention, masked: bool) -> Line:
    return (f"No row is older than {duration(rule.seconds)}", *_by(rule.element), ".")


def _latency(rule: rules.Latency, masked: bool) -> Line:
    places = ((" from ", rule.element), (" to ", rule.arrival_field))
    named = tuple(span for word, name in places if name is not None for span in (word, Code(name)))
    share = "Every row arrives" if rule.percentile == 100 else f"{value_text(rule.percentile)} % of the rows arrive"
    return (f"{share} within {duration(rule.seconds)} of the event", *((", measured", *named) if named else ()), ".")


def _foreign_key(rule: rules.ForeignKey, masked: bool) -> Line:
    own: Line = _key(rule) if rule.fields else ("The value",)
    there = joined(Code(name) for name in rule.to_fields)
    verb = " are found together in " if len(rule.fields) > 1 else " is found in "
    return (*own, verb, Code(rule.to), *((" (", *there, ")") if there else ()), ".")


def _query(rule: rules.Query, masked: bool) -> Line:
    return ("The query ", Code(rule.sql), f" gives {threshold_words(rule.threshold)}.")


def _not_enforced(rule: rules.NotEnforced, masked: bool) -> Line:
    promise = rule.description.strip() or ("" if rule.name else "A promise")
    stop = "" if promise.endswith((".", "!", "?")) or not promise else "."
    reason = rule.reason.strip()
    beginning = "" if reason.lower().startswith("not enforced") else "Not enforced: "
    said: Line = (f"{promise}{stop} {beginning}{reason}{'' if reason.endswith('.') else '.'}".strip(),)
    written = [Code(value_text(value)) for value in rule.custom.values() if value]
    return (*said, " As written: ", *joined(written), ".") if written and not masked else said


SENTENCES: Final[Mapping[type[Rule], Sentence]] = {
    rules.Present: _fixed("The table has this column."),
    rules.HasType: _type,
    rules.Undeclared: _fixed("The table has no column that is not declared here."),
    rules.Required: _fixed("Always has a value."),
    rules.Enum: _enum,
    rules.Pattern: _with("Contains a match of ", "pattern"),
    rules.Format: _with("Has the format ", "format"),
    rules.Minimum: _with("Is at least ", "limit"),
    rules.Maximum: _with("Is at most ", "limit"),
    rules.ExclusiveMinimum: _with("Is greater than ", "limit"),
    rules.ExclusiveMaximum: _with("Is less than ", "limit"),
    rules.MultipleOf: _with("Is a multiple of ", "divisor"),
    rules.MinLength: _with("Has at least ", "length", " characters."),
    rules.MaxLength: _with("Has at most ", "length", " characters."),
    rules.MinItems: _with("Has at least ", "count", " items."),
    rules.MaxItems: _with("Has at most ", "count", " items."),
    rules.UniqueItems: _fixed("No two items are equal."),
    rules.NullCount: _counted("Nulls"),
    rules.MissingCount: _missing,
    rules.InvalidCount: _invalid,
    rules.RowCount: lambda rule, masked: (f"Rows in the table: {_of_rows(rule.threshold)}.",),
    rules.Unique: _unique,
    rules.PrimaryKey: _primary_key,
    rules.DuplicateCount: _duplicates,
    rules.Expression: _with("Holds for every row: ", "sql"),
    rules.RequiredWhen: _with("Always has a value where ", "condition"),
    rules.Completeness: _completeness,
    rules.Statistic: _statistic,
    rules.Freshness: _freshness,
    rules.Latency: _latency,
    rules.Retention: _retention,
    rules.ForeignKey: _foreign_key,
    rules.Query: _query,
    rules.NotEnforced: _not_enforced,
}
"""The sentence of every kind of rule; its second argument says that values must not be shown."""
