"""Row rules back into constraints: conditions in SQL that `sections_conditions` understands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.datatypes import DataType
from databox_contracts.errors import Level
from databox_contracts.formats.bounds import contradictions
from databox_contracts.formats.odcs_rules import KINDS, mapping_of
from databox_contracts.formats.odcs_types import logical_name
from databox_contracts.formats.remarks import remarks
from databox_contracts.formats.sections_conditions import Mistake, understood
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.patterns import PatternError, to_java
from databox_contracts.rules import Rule, Severity

_ORDER: Final = {kind: at for at, kind in enumerate(KINDS.values())}
_UUID: Final = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def sayable(found: Iterable[Rule]) -> list[Rule]:
    """The rules that the form may have words for, in the order of `rules.py`.

    It has none for a severity: a promise that only warns would become one that stops the table, so it is left out. A
    count that allows no row at all is the same promise as the rule of each row.
    """
    strict = [rule for rule in found if rule.severity is Severity.ERROR]
    said: list[Rule] = []
    for rule in strict:
        if type(rule) not in _COUNTS:
            said.append(rule)
            continue
        promises = [mapping_of(other) for other in (*strict, *said)]
        said.extend(each for each in _of_each_row(rule) if mapping_of(each) not in promises)
    return sorted(said, key=lambda rule: _ORDER[type(rule)])


_COUNTS: Final = (rules.NullCount, rules.MissingCount, rules.DuplicateCount, rules.InvalidCount)


def _of_each_row(rule: Rule) -> Iterator[Rule]:
    match rule:
        case rules.NullCount() if rule.threshold.allows_none:
            yield rules.Required()
        case rules.MissingCount(missing_values=(None,)) if rule.threshold.allows_none:
            yield rules.Required()
        case rules.DuplicateCount() if rule.threshold.allows_none:
            yield rules.Unique(fields=rule.fields)
        case rules.InvalidCount() if rule.threshold.allows_none:
            if rule.valid_values is not None:
                yield rules.Enum(values=rule.valid_values)
            if rule.pattern is not None:
                yield rules.Pattern(pattern=rule.pattern)


@dataclass(frozen=True)
class Subject:
    """What constraints are about: a field on its path from the table's column down through objects, or the table.

    `columns` are what they may name. `table` is the dataset without its rules. Inside an array or a map (`nested`) only
    what is simple can be said.
    """

    table: Dataset
    columns: tuple[str, ...]
    path: tuple[str, ...] = ()
    type: DataType | None = None
    nested: bool = False

    @property
    def logical(self) -> str | None:
        """The logical type, which decides what a condition means."""
        return logical_name(None, self.type)

    def may_promise(self, found: Sequence[Rule]) -> bool:
        """Whether a document that makes those promises has no error: they fit the type, and leave some value."""
        if not self.path:
            dataset = self.table.model_copy(update={"rules": tuple(found)})
        else:
            field = Field(name=_PROBE, type=self.type, rules=tuple(found))
            named = self.table.fields if any(type(rule) in _NAMING for rule in found) else ()
            dataset = self.table.model_copy(update={"fields": (*named, field)})
        contract = Contract(id="-", version="1.0.0", datasets=(dataset,))
        if any(finding.level is Level.ERROR for finding in remarks(contract, "-")):
            return False
        return not any(contradictions(found, self.logical))


_PROBE: Final = "-"
_NAMING: Final = (rules.Expression, rules.RequiredWhen)


def constraints(found: Iterable[Rule], subject: Subject, beside: Sequence[Rule] = ()) -> list[str]:
    """The conditions that say those of the rules which SQL can say of one row.

    `beside` are the rules of the field that are said elsewhere. One that no document may promise, since it does not fit
    the type or leaves no value, is left out.
    """
    said = [(text, meaning) for rule in found for text, meaning in _first_said(rule, subject)]
    everything = [*beside, *(rule for _, meaning in said for rule in meaning)]
    if not said or subject.may_promise(everything):
        return [text for text, _ in said]
    texts: list[str] = []
    accepted = list(beside)
    for text, meaning in said:
        if subject.may_promise([*accepted, *meaning]):
            texts.append(text)
            accepted.extend(meaning)
    return texts


def _first_said(rule: Rule, subject: Subject) -> Iterator[tuple[str, list[Rule]]]:
    """The first text that is understood, with what it means."""
    for text in _candidates(rule, subject.path):
        meaning = understood(
            text,
            field=".".join(subject.path) or None,
            logical=subject.logical,
            columns=subject.columns,
            only_simple=subject.nested,
        )
        if not isinstance(meaning, Mistake):
            yield text, meaning
            return


def _candidates(rule: Rule, path: Sequence[str]) -> Iterator[str]:
    """The text with the field's name as it is, then in quotes: a name may be a word of SQL."""
    make = _TEXTS.get(type(rule))
    if make is None or (not path and not isinstance(rule, rules.Expression)):
        return
    quoted = ["`" + part.replace("`", "``") + "`" for part in path]
    plain = [part if re.fullmatch(r"[A-Za-z_]\w*", part) else other for part, other in zip(path, quoted, strict=True)]
    for names in (plain, quoted):
        text = make(rule, ".".join(names))
        if text is not None:
            yield text


def _literal(value: Any) -> str | None:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case int() | float() | Decimal():
            exact = Decimal(str(value))
            return format(exact.normalize(), "f") if exact.is_finite() and abs(exact.adjusted()) <= 300 else None
    return None


def _comparison(operator: str, fact: str, left: str = "{}") -> Callable[[Any, str], str | None]:
    def text(rule: Any, name: str) -> str | None:
        limit = _literal(getattr(rule, fact))
        return f"{left.format(name)} {operator} {limit}" if limit is not None else None

    return text


def _enum(rule: rules.Enum, name: str) -> str | None:
    # A null is allowed anyway, and in a list of SQL it would allow everything.
    values = [_literal(value) for value in rule.values if value is not None]
    known = [value for value in values if value is not None]
    return f"{name} IN ({', '.join(known)})" if known and len(known) == len(values) else None


def _pattern(pattern: str, name: str) -> str | None:
    try:
        return f"{name} RLIKE {_literal(to_java(pattern))}"
    except PatternError:
        return None


def _multiple(rule: rules.MultipleOf, name: str) -> str | None:
    divisor = _literal(rule.divisor)
    return f"{name} % {divisor} = 0" if divisor is not None else None


_TEXTS: Final[dict[type[Rule], Callable[[Any, str], str | None]]] = {
    rules.Required: lambda rule, name: f"{name} IS NOT NULL",
    rules.Enum: _enum,
    rules.Pattern: lambda rule, name: _pattern(rule.pattern, name),
    rules.Format: lambda rule, name: _pattern(_UUID, name) if rule.format == "uuid" else None,
    rules.Minimum: _comparison(">=", "limit"),
    rules.Maximum: _comparison("<=", "limit"),
    rules.ExclusiveMinimum: _comparison(">", "limit"),
    rules.ExclusiveMaximum: _comparison("<", "limit"),
    rules.MultipleOf: _multiple,
    rules.MinLength: _comparison(">=", "length", "length({})"),
    rules.MaxLength: _comparison("<=", "length", "length({})"),
    rules.MinItems: _comparison(">=", "count", "size({})"),
    rules.MaxItems: _comparison("<=", "count", "size({})"),
    rules.UniqueItems: lambda rule, name: f"size(array_distinct({name})) = size({name})",
    rules.Expression: lambda rule, name: rule.sql.strip(),
    rules.RequiredWhen: lambda rule, name: f"NOT ({rule.condition}) OR {name} IS NOT NULL",
}
