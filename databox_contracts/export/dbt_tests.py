"""Rules as tests and constraints of dbt: its own four, and where those do not say it, three of `dbt_utils`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field as attribute
from decimal import Decimal
from typing import Any, Final, TypeAlias

from databox_contracts import rules
from databox_contracts.datatypes import Family
from databox_contracts.export.dbt_text import data_type, identifier, inert, is_plain_name, literal, sql_text
from databox_contracts.export.losses import Place
from databox_contracts.rules import Operator, Rule, Severity, Unit

__all__ = ["Constraint", "Model", "Said", "Test", "say"]


@dataclass(frozen=True)
class Model:
    """What a rule has to know of its model: the columns by the contract's names, and the other models of the contract.

    `enforced` says whether dbt holds the model to types, without which it takes no constraints. `models` are names of
    models and places of columns by the name of a dataset.
    """

    name: str
    columns: Mapping[str, Place]
    dialect: str
    enforced: bool
    models: Mapping[str, tuple[str, Mapping[str, Place]]] = attribute(default_factory=dict)

    def column(self, name: str) -> str:
        """The column as SQL names it."""
        return identifier(self.columns[name].field.column, self.dialect)  # type: ignore[union-attr]


@dataclass(frozen=True)
class Test:
    """A test of a column (its name in the contract), or of the model where that is None. Texts are inert."""

    name: str
    column: str | None = None
    arguments: Mapping[str, Any] = attribute(default_factory=dict)
    config: Mapping[str, Any] = attribute(default_factory=dict)


@dataclass(frozen=True)
class Constraint:
    """A constraint of a column, or of the model where that is None. Texts are inert."""

    type: str
    column: str | None = None
    facts: Mapping[str, Any] = attribute(default_factory=dict)


@dataclass(frozen=True)
class Said:
    """What becomes of a rule."""

    tests: tuple[Test, ...] = ()
    constraints: tuple[Constraint, ...] = ()


def say(rule: Rule, place: Place, model: Model) -> Said | str:
    """The rule in dbt's words, or why there are none."""
    if place.depth:
        return "dbt tests whole columns"
    sayer = _SAYERS.get(type(rule))
    if sayer is None:
        return _REASONS.get(rule.kind, "neither dbt nor dbt_utils has a test of it")
    said = sayer(rule, place, model)
    if isinstance(said, str):
        return said
    # A constraint stops the model, and a warning must not.
    kept = said.constraints if model.enforced and rule.severity is Severity.ERROR else ()
    return Said(said.tests, kept) if said.tests or kept else "dbt takes constraints only where it knows every type"


_REASONS: Final = {
    "pattern": "dbt has no test of regular expressions",
    "format": "dbt has no test of formats",
    "row_count": "dbt has no test of a number of rows",
    "freshness": "dbt knows the freshness of sources, not of models",
    "query": "dbt keeps queries in files of their own",
    "not_enforced": "dbt has no place for what is only written down",
}

_Sayer: TypeAlias = Callable[[Any, Place, Model], Said | str]

# --- one column -------------------------------------------------------------------------------------------------------


def _required(rule: rules.Required, place: Place, model: Model) -> Said:
    return Said((Test("not_null", place.name),), (Constraint("not_null", place.name),))


def _enum(rule: rules.Enum, place: Place, model: Model) -> Said | str:
    return _accepted(rule.values, place, model)


def _invalid(rule: rules.InvalidCount, place: Place, model: Model) -> Said | str:
    if rule.pattern is not None or rule.valid_values is None or not rule.threshold.allows_none:
        return "dbt has no test of regular expressions, nor limits of values that are not valid"
    return _accepted(rule.valid_values, place, model)


def _accepted(values: Iterable[Any], place: Place, model: Model) -> Said | str:
    if place.masked:
        return "its values must not be shown"
    if place.field is None:
        return "dbt tests the values of columns"
    # A null satisfies the rule, and the test as well.
    known = [value for value in values if value is not None]
    if not known:
        return _true("is null", place.name)
    if all(isinstance(value, str) for value in known):
        texts = [inert(literal(value, model.dialect)[1:-1]) for value in known]
        return Said((Test("accepted_values", place.name, {"values": texts}),))
    if all(isinstance(value, bool) for value in known) or all(_is_number(value) for value in known):
        return Said((Test("accepted_values", place.name, {"values": known, "quote": False}),))
    return "dbt compares values of one type"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _true(expression: str, column: str | None = None) -> Said:
    return Said((Test("dbt_utils.expression_is_true", column, {"expression": inert(expression)}),))


def _range(bound: str, *, inclusive: bool) -> _Sayer:
    def sayer(rule: Any, place: Place, model: Model) -> Said | str:
        limit = rule.limit
        if isinstance(limit, str):
            type_ = data_type(place, model.dialect)
            if type_ is None:
                return "the contract does not say which type its bound is of"
            limit = inert(f"cast({literal(limit, model.dialect)} as {type_})")
        arguments = {bound: limit, **({} if inclusive else {"inclusive": False})}
        return Said((Test("dbt_utils.accepted_range", place.name, arguments),))

    return sayer


def _multiple(rule: rules.MultipleOf, place: Place, model: Model) -> Said | str:
    from sqlglot import exp

    family = place.field.type.family if place.field is not None and place.field.type is not None else None
    if family not in (Family.INTEGER, Family.DECIMAL) or rule.divisor == 0:
        return "a remainder is exact for integers and decimals only"
    remainder = exp.Mod(this=_column(place), expression=exp.Literal.number(format(Decimal(str(rule.divisor)), "f")))
    return _true(sql_text(exp.EQ(this=remainder, expression=exp.Literal.number(0)), model.dialect))


def _length(operator: str) -> _Sayer:
    def sayer(rule: Any, place: Place, model: Model) -> Said:
        from sqlglot import exp

        length = sql_text(exp.Length(this=_column(place)), model.dialect)
        return _true(f"{length} {operator} {rule.length}")

    return sayer


def _column(place: Place) -> Any:
    from sqlglot import exp

    name = place.field.column if place.field is not None else place.name
    return exp.column(exp.to_identifier(name, quoted=not is_plain_name(name)))


def _nulls(rule: rules.NullCount, place: Place, model: Model) -> Said | str:
    if rule.threshold.allows_none:
        return Said((Test("not_null", place.name),))
    most = _at_most(rule.threshold)
    if most is None:
        return "dbt has tests of at most so many rows"
    return Said((Test("not_null", place.name, config={"error_if": most, "warn_if": most}),))


def _at_most(threshold: rules.Threshold) -> str | None:
    """What dbt calls a failure, compared with the number of rows that a test finds."""
    if threshold.unit is not Unit.ROWS:
        return None
    signs = {Operator.LESS_OR_EQUAL: ">", Operator.LESS_THAN: ">="}
    sign = signs.get(threshold.operator)
    return f"{sign} {threshold.value}" if sign is not None and isinstance(threshold.value, int) else None


def _required_when(rule: rules.RequiredWhen, place: Place, model: Model) -> Said | str:
    if "\\" in rule.condition:
        return "dbt reads backslashes in conditions otherwise"
    return Said((Test("not_null", place.name, config={"where": inert(rule.condition)}),))


def _expression(rule: rules.Expression, place: Place, model: Model) -> Said:
    said = _true(rule.sql)
    constraints = (Constraint("check", facts={"expression": inert(rule.sql)}),) if _is_of_one_row(rule.sql) else ()
    return Said(said.tests, constraints)


def _is_of_one_row(sql: str) -> bool:
    """Whether tables take the condition as a check: it asks for this row alone, and not for the time."""
    import sqlglot
    from sqlglot import exp

    try:
        parsed = sqlglot.parse_one(sql, dialect="spark")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return False
    never = (exp.Query, exp.AggFunc, exp.Window, exp.CurrentDate, exp.CurrentTimestamp, exp.Anonymous)
    return parsed.find(*never) is None


# --- keys -------------------------------------------------------------------------------------------------------------


def _names(rule: Any, place: Place, model: Model) -> tuple[str, ...] | str:
    """The columns of a key, by the contract's names, or why it cannot be said."""
    names = rule.fields or ((place.name,) if place.field is not None else ())
    missing = [name for name in names if name not in model.columns]
    if missing or not names:
        return "dbt tests whole columns that the contract declares"
    return tuple(names)


def _primary_key(rule: rules.PrimaryKey, place: Place, model: Model) -> Said | str:
    names = _names(rule, place, model)
    if isinstance(names, str):
        return names
    unique = _together(names, model, nulls=False)
    required = [Said((Test("not_null", name),), (Constraint("not_null", name),)) for name in names]
    key = Constraint("primary_key", names[0]) if len(names) == 1 else _of_model("primary_key", names, model)
    tests = (*unique, *(test for said in required for test in said.tests))
    return Said(tests, (*(one for said in required for one in said.constraints), key))


def _unique(rule: rules.Unique, place: Place, model: Model) -> Said | str:
    names = _names(rule, place, model)
    if isinstance(names, str):
        return names
    key = Constraint("unique", names[0]) if len(names) == 1 else _of_model("unique", names, model)
    return Said(_together(names, model, nulls=True), (key,))


def _duplicates(rule: rules.DuplicateCount, place: Place, model: Model) -> Said | str:
    names = _names(rule, place, model)
    if isinstance(names, str):
        return names
    if not rule.threshold.allows_none:
        # It counts the keys that are repeated, the rule the rows beyond the first of each.
        return "dbt counts repeated keys otherwise"
    return Said(_together(names, model, nulls=True))


def _together(names: tuple[str, ...], model: Model, *, nulls: bool) -> tuple[Test, ...]:
    if len(names) == 1:
        return (Test("unique", names[0]),)
    arguments = {"combination_of_columns": [inert(model.column(name)) for name in names]}
    # A key with a null part is not compared, and the test would compare it.
    nullable = [name for name in names if nulls and not model.columns[name].required]
    where = " and ".join(f"{model.column(name)} is not null" for name in nullable)
    config = {"where": inert(where)} if where else {}
    return (Test("dbt_utils.unique_combination_of_columns", None, arguments, config),)


def _of_model(type_: str, names: tuple[str, ...], model: Model) -> Constraint:
    return Constraint(type_, facts={"columns": [_own(model.columns, name) for name in names]})


def _own(columns: Mapping[str, Place], name: str) -> str:
    return inert(columns[name].field.column)  # type: ignore[union-attr]


def _foreign_key(rule: rules.ForeignKey, place: Place, model: Model) -> Said | str:
    names = _names(rule, place, model)
    if isinstance(names, str):
        return names
    other = model.models.get(rule.to)
    if other is None:
        return "dbt refers to models, and the contract says nothing of the other's"
    there, columns = other
    if len(rule.to_fields) != len(names) or any(name not in columns for name in rule.to_fields):
        return "dbt refers to columns that the contract declares"
    to = f"ref('{there}')"
    to_columns = [
        inert(identifier(columns[name].field.column, model.dialect))  # type: ignore[union-attr]
        for name in rule.to_fields
    ]
    if len(names) == 1:
        relationships = Test("relationships", names[0], {"to": to, "field": to_columns[0]})
        return Said((relationships,), (Constraint("foreign_key", names[0], {"to": to, "to_columns": to_columns}),))
    key = _of_model("foreign_key", names, model)
    return Said((), (Constraint(key.type, None, {**key.facts, "to": to, "to_columns": to_columns}),))


_SAYERS: Final[Mapping[type[Rule], _Sayer]] = {
    rules.Required: _required,
    rules.Enum: _enum,
    rules.Minimum: _range("min_value", inclusive=True),
    rules.Maximum: _range("max_value", inclusive=True),
    rules.ExclusiveMinimum: _range("min_value", inclusive=False),
    rules.ExclusiveMaximum: _range("max_value", inclusive=False),
    rules.MultipleOf: _multiple,
    rules.MinLength: _length(">="),
    rules.MaxLength: _length("<="),
    rules.NullCount: _nulls,
    rules.InvalidCount: _invalid,
    rules.Unique: _unique,
    rules.PrimaryKey: _primary_key,
    rules.DuplicateCount: _duplicates,
    rules.Expression: _expression,
    rules.RequiredWhen: _required_when,
    rules.ForeignKey: _foreign_key,
}
"""The kinds of rules that dbt has words for."""
