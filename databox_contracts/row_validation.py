"""Rows held against a contract without Spark: dicts, and whatever turns into one, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field as attribute
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from databox_contracts.annotations import MAY_BE_ABSENT, PYTHON
from databox_contracts.datatypes import DataType, Family
from databox_contracts.errors import DataboxError
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.row_rules import is_judged, keeps
from databox_contracts.rules import HasType, Required, Rule, Severity


class ValidationError(DataboxError):
    """One thing that is wrong with a row; a value of it, not the row, and never in the text.

    `field_name` is the dotted path with indices, `rule` what is broken (missing, type, required, undeclared, or a
    rule's kind), `expected` and `received` are in words, `value` is the value itself, None for a field whose values
    must not be shown. `row` counts from 0 where several rows were validated.
    """

    def __init__(
        self,
        message: str,
        *,
        field_name: str,
        rule: str,
        expected: str = "",
        received: str = "",
        value: Any = None,
        row: int | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        super().__init__(message if row is None else f"row {row}: {message}")
        self.field_name = field_name
        self.rule = rule
        self.expected = expected
        self.received = received
        self.value = value
        self.row = row
        self.severity = severity


@dataclass
class ValidationResult:
    """What a validation found, in the order of rows and fields.

    `not_checked` names the rules of the contract that no single row can answer, or that only Spark runs.
    """

    errors: list[ValidationError] = attribute(default_factory=list)
    warnings: list[ValidationError] = attribute(default_factory=list)
    not_checked: list[str] = attribute(default_factory=list)

    @property
    def is_valid(self) -> bool:
        """Whether there is no error; warnings do not count."""
        return not self.errors

    def __bool__(self) -> bool:
        return self.is_valid

    def summary(self) -> str:
        """The outcome in a line, and each error and warning in one of its own."""
        counts = f"{_counted(len(self.errors), 'error')}, {_counted(len(self.warnings), 'warning')}"
        lines = [f"{'valid' if self.is_valid else 'not valid'}: {counts}"]
        lines += [f"  error: {error}" for error in self.errors]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        if self.not_checked:
            lines.append(f"  not checked on single rows: {', '.join(self.not_checked)}")
        return "\n".join(lines)

    def raise_if_invalid(self) -> None:
        """Raises the first error, if there is one."""
        if self.errors:
            raise self.errors[0]


def validate_rows(rows: Iterable[Any], contract: Contract, dataset: Dataset) -> ValidationResult:
    """All rows against one dataset of a contract; each finding names its row."""
    validator = _Validator(contract.governance.pii_class)
    for number, row in enumerate(rows):
        validator.row(row, dataset, number)
    return validator.finished(dataset)


def validate_row(row: Any, contract: Contract, dataset: Dataset) -> ValidationResult:
    """One row against one dataset of a contract."""
    validator = _Validator(contract.governance.pii_class)
    validator.row(row, dataset, None)
    return validator.finished(dataset)


def is_row(value: Any) -> bool:
    """Whether a value is one row rather than many: a mapping, a model's instance or a Spark row."""
    return _as_mapping(value) is not None


class _Validator:
    def __init__(self, pii_class: str | None) -> None:
        self.result = ValidationResult()
        self._pii_class = pii_class
        self._row: int | None = None

    def row(self, row: Any, dataset: Dataset, number: int | None) -> None:
        self._row = number
        found = _as_mapping(row)
        if found is None:
            self._wrong("a row", "", "type", "a mapping", row, masked=True)
        else:
            self._fields(found, dataset.fields, "", hidden=False)

    def finished(self, dataset: Dataset) -> ValidationResult:
        kinds = dict.fromkeys([*_unjudged(dataset.fields), *(rule.kind for rule in dataset.rules)])
        self.result.not_checked.extend(kinds)
        return self.result

    def _fields(self, row: Mapping[Any, Any], fields: tuple[Field, ...], path: str, *, hidden: bool) -> None:
        for field in fields:
            place = f"{path}.{field.name}" if path else field.name
            if field.column in row:
                self._value(row[field.column], field, place, hidden=hidden)
            elif not field.custom.get(PYTHON, {}).get(MAY_BE_ABSENT):
                expected = str(field.type) if field.type is not None else "a value"
                self._add(f"the field {place!r} is missing", place, "missing", expected, "nothing", None)
        declared = {field.column for field in fields}
        for name in row:
            if name not in declared:
                place = f"{path}.{name}" if path else str(name)
                self._add(
                    f"the field {place!r} is not declared",
                    place,
                    "undeclared",
                    "no such field",
                    _kind(row[name]),
                    None,
                    Severity.WARNING,
                )

    def _value(self, value: Any, field: Field, place: str, *, hidden: bool) -> None:
        hidden = hidden or field.conceals(self._pii_class)
        masked = hidden or any(_hides(part, self._pii_class) for part in field.parts)
        if value is None:
            for rule in field.rules:
                if isinstance(rule, Required):
                    self._broken(rule, place, "a value", None, masked=masked)
            return
        if field.type is not None and not has_type(value, field.type):
            self._wrong(f"the field {place!r}", place, HasType.kind, str(field.type), value, masked=masked)
            return
        for rule in field.rules:
            if is_judged(rule) and not keeps(rule, value):
                self._broken(rule, place, rule.kind, value, masked=masked)
        self._parts(value, field, place, hidden=hidden)

    def _parts(self, value: Any, field: Field, place: str, *, hidden: bool) -> None:
        mapping = _as_mapping(value)
        if field.fields and mapping is not None:
            self._fields(mapping, field.fields, place, hidden=hidden)
        elif field.item is not None and isinstance(value, list | tuple | set | frozenset):
            # A set has no order of its own: its items are named in that of their texts.
            items = value if isinstance(value, list | tuple) else sorted(value, key=repr)
            for at, item in enumerate(items):
                self._value(item, field.item, f"{place}[{at}]", hidden=hidden)
        elif mapping is not None:
            for at, (key, inner) in enumerate(mapping.items()):
                # The key is a value too, and may not be shown.
                if field.key is not None:
                    self._value(key, field.key, f"{place}.key[{at}]", hidden=hidden)
                if field.value is not None:
                    self._value(inner, field.value, f"{place}.value[{at}]", hidden=hidden)

    def _wrong(self, what: str, place: str, rule: str, expected: str, value: Any, *, masked: bool) -> None:
        self._add(
            f"{what} must be {_article(expected)}, not {_kind(value)}",
            place,
            rule,
            expected,
            _kind(value),
            None if masked else value,
        )

    def _broken(self, rule: Rule, place: str, expected: str, value: Any, *, masked: bool) -> None:
        shown = None if masked else value
        message = _SINGULAR.get(rule.kind, "does not keep the rule {rule.kind}").format(rule=rule)
        self._add(f"the field {place!r} {message}", place, rule.kind, expected, _kind(value), shown, rule.severity)

    def _add(
        self,
        message: str,
        place: str,
        rule: str,
        expected: str,
        received: str,
        value: Any,
        severity: Severity = Severity.ERROR,
    ) -> None:
        error = ValidationError(
            message,
            field_name=place,
            rule=rule,
            expected=expected,
            received=received,
            value=value,
            row=self._row,
            severity=severity,
        )
        (self.result.errors if severity is Severity.ERROR else self.result.warnings).append(error)


_SINGULAR: Final = {
    "required": "is null",
    "enum": "is none of the {rule.allowed} allowed values",
    "pattern": "does not match {rule.pattern}",
    "format": "is not of the format {rule.format}",
    "minimum": "is below {rule.limit}",
    "maximum": "is above {rule.limit}",
    "exclusive_minimum": "is not above {rule.limit}",
    "exclusive_maximum": "is not below {rule.limit}",
    "multiple_of": "is not a multiple of {rule.divisor}",
    "min_length": "is shorter than {rule.length} characters",
    "max_length": "is longer than {rule.length} characters",
    "min_items": "has fewer than {rule.count} items",
    "max_items": "has more than {rule.count} items",
    "unique_items": "repeats an item",
}


# --- types ------------------------------------------------------------------------------------------------------------


def has_type(value: Any, type_: DataType) -> bool:
    """Whether a Python value, not None, can be a value of a column of that type.

    An int is a number as it is; a bool is no number, a datetime no date, and a text is nothing but a text. What an
    array, map or object holds is judged part by part.
    """
    match type_.family:
        case Family.STRING:
            return isinstance(value, str | UUID) and (type_.length is None or len(str(value)) <= type_.length)
        case Family.INTEGER:
            most = 2 ** (type_.bits - 1) if type_.bits is not None else None
            return _is_integer(value) and (most is None or -most <= value < most)
        case Family.NUMBER:
            return _is_integer(value) or isinstance(value, float) or (type_.bits is None and isinstance(value, Decimal))
        case Family.DECIMAL:
            return (_is_integer(value) or isinstance(value, Decimal)) and _fits(Decimal(value), type_)
        case Family.DATE:
            return isinstance(value, date) and not isinstance(value, datetime)
        case Family.TIMESTAMP:
            return isinstance(value, datetime) and (type_.zone is None or type_.zone is (value.tzinfo is not None))
        case Family.ARRAY:
            return isinstance(value, list | tuple | set | frozenset)
        case Family.MAP | Family.OBJECT:
            return _as_mapping(value) is not None
        case Family.VARIANT:
            return True
        case family:
            return isinstance(value, _PLAIN[family])


_PLAIN: Final[dict[Family, type | tuple[type, ...]]] = {
    Family.BOOLEAN: bool,
    Family.TIME: time,
    Family.BINARY: (bytes, bytearray),
}


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _fits(value: Decimal, type_: DataType) -> bool:
    if type_.precision is None:
        return True
    if not value.is_finite():
        return False
    scale = type_.scale or 0
    exponent = value.normalize().as_tuple().exponent
    fraction = max(0, -exponent) if isinstance(exponent, int) else 0
    return fraction <= scale and (value == 0 or value.adjusted() + 1 <= type_.precision - scale)


def _as_mapping(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, Mapping):
        return value
    for turn in ("asDict", "model_dump"):
        if not isinstance(value, type) and callable(getattr(value, turn, None)):
            found: Mapping[Any, Any] = getattr(value, turn)()
            return found
    return None


def _unjudged(fields: tuple[Field, ...]) -> Iterator[str]:
    for field in fields:
        yield from (rule.kind for rule in field.rules if not is_judged(rule))
        yield from _unjudged(field.parts)


def _hides(part: Field, pii_class: str | None) -> bool:
    return part.conceals(pii_class) or any(_hides(inner, pii_class) for inner in part.parts)


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _article(expected: str) -> str:
    return expected if expected.startswith("a ") else f"{'an' if expected[:1] in 'aeio' else 'a'} {expected}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
