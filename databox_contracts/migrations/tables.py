"""One table while a migration changes it: what the contract says of it, and what the database would then have.

Only what a database knows is changed: columns, types, nulls, keys, and checks. Everything else that the contract says
stays as it is, so that it is no difference afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field as attribute, replace
from typing import Any

from databox_contracts.datatypes import DataType
from databox_contracts.evolution.changes import ChangeType, Difference
from databox_contracts.evolution.renaming import HINT
from databox_contracts.migrations.checks import SAME_PROMISE
from databox_contracts.model import Dataset, Field
from databox_contracts.rules import Enum, Expression, ForeignKey, PrimaryKey, Required, Rule, Unique

Key = PrimaryKey | Unique | ForeignKey


@dataclass(eq=False)
class TableState:
    """A table: its names as parts, its state as a dataset, and the dataset of the contract that it is held against.

    `origins` is what each field was called before the migration; a new one is not in it. `named` are the constraints
    that the migration itself names. `checks` are those that are neither a list of values nor a bound.
    `moved` is the name that the table has now, where that is not the contract's.
    """

    names: list[tuple[str, ...]]
    dataset: Dataset
    promised: Dataset | None = None
    origins: dict[str, str] = attribute(default_factory=dict)
    named: dict[str, list[tuple[str, Rule]]] = attribute(default_factory=dict)
    checks: list[str] = attribute(default_factory=list)
    moved: str | None = None

    @classmethod
    def of(cls, dataset: Dataset, names: list[tuple[str, ...]]) -> TableState:
        """The table as the contract has it."""
        return cls(names, dataset, dataset, {field.name: field.name for field in dataset.fields})

    def field(self, name: str) -> Field:
        """The field of that name, which has to be there."""
        return next(field for field in self.dataset.fields if field.name == name)

    def _set(self, name: str, new: Field) -> None:
        fields = tuple(new if field.name == name else field for field in self.dataset.fields)
        self.dataset = self.dataset.model_copy(update={"fields": fields})

    def _set_rules(self, rules: Sequence[Rule]) -> None:
        self.dataset = self.dataset.model_copy(update={"rules": tuple(rules)})

    def _promised(self, column: str) -> Field | None:
        """The contract's field of that column."""
        fields = self.promised.fields if self.promised is not None else ()
        exact = [field for field in fields if field.column == column]
        found = exact or [field for field in fields if field.column.casefold() == column.casefold()]
        return found[0] if found else None

    def _redeclared(self, promised: Field, declared: Field, *, in_key: bool) -> Field:
        """The contract's field as the declaration would have it: its type, and whether it may be null.

        `in_key` says that it is part of the declared primary key; a part of the contract's is never null either.
        """
        field = with_type(promised, declared)
        rules = self.promised.rules if self.promised is not None else ()
        keyed = in_key or any(isinstance(rule, PrimaryKey) and promised.name in rule.fields for rule in rules)
        if declared.required and not field.required and not keyed:
            return field.model_copy(update={"rules": (*field.rules, Required())})
        if not declared.required and not in_key:
            kept = tuple(rule for rule in field.rules if not isinstance(rule, Required))
            return field.model_copy(update={"rules": kept})
        return field

    # --- columns ------------------------------------------------------------------------------------------------------

    def add(self, declared: Field) -> None:
        """A new column; one that the contract has keeps what only the contract says of it."""
        promised = self._promised(declared.name)
        if promised is not None:
            declared = self._redeclared(promised, declared, in_key=False)
            self.origins[declared.name] = declared.name
        self.dataset = self.dataset.model_copy(update={"fields": (*self.dataset.fields, declared)})

    def drop(self, name: str) -> None:
        """The column is gone, and with it the keys that it is part of."""
        self.origins.pop(name, None)
        fields = tuple(field for field in self.dataset.fields if field.name != name)
        rules = tuple(rule for rule in self.dataset.rules if not (isinstance(rule, Key) and name in rule.fields))
        self.dataset = self.dataset.model_copy(update={"fields": fields, "rules": rules})

    def rename(self, name: str, new: str) -> None:
        """The column has another name; a name of the contract's takes over what the contract says of it."""
        field = self.field(name)
        promised = self._promised(new)
        origin = self.origins.pop(name, None)
        if field.column_name is not None and promised is None:
            # The contract's own name of the field has nothing to do with the table.
            self._set(name, field.model_copy(update={"column_name": new}))
            if origin is not None:
                self.origins[name] = origin
            return
        if promised is not None and promised.name != origin:
            renamed = self._redeclared(promised, field, in_key=self.in_key(name))
        elif promised is not None:
            renamed = field.model_copy(update={"name": promised.name, "custom": promised.custom, "column_name": None})
        else:
            custom = {**field.custom, HINT: origin} if origin is not None else field.custom
            renamed = field.model_copy(update={"name": new, "custom": custom})
        self._set(name, renamed)
        if origin is not None:
            self.origins[renamed.name] = origin
        self._set_rules([self._as_written(_with_name(rule, name, renamed.name)) for rule in self.dataset.rules])

    def _as_written(self, rule: Rule) -> Rule:
        """The contract's own key of those fields: after columns changed places the order of its parts is the same."""
        written = self.promised.rules if self.promised is not None else ()
        return next(
            (
                one
                for one in written
                if isinstance(one, Key) and isinstance(rule, Key) and set(one.fields) == set(rule.fields)
                if type(one) is type(rule) and not isinstance(one, ForeignKey)
            ),
            rule,
        )

    def retype(self, name: str, declared: Field) -> None:
        """The column has the declared type, and the values that this lists."""
        self._set(name, with_type(self.field(name), declared))

    def require(self, name: str, required: bool) -> None:
        """Whether the column may hold nulls from now on."""
        field = self.field(name)
        if required and not field.required and not self.in_key(name):
            self._set(name, field.model_copy(update={"rules": (*field.rules, Required())}))
        elif not required:
            rules = tuple(rule for rule in field.rules if not isinstance(rule, Required))
            self._set(name, field.model_copy(update={"rules": rules}))

    def declare(self, columns: Sequence[Field], key: Sequence[str]) -> None:
        """The table has exactly these columns, the names in `key` being its primary key."""
        assert self.promised is not None
        fields: list[Field] = []
        self.origins = {}
        for declared in columns:
            promised = self._promised(declared.name)
            if promised is None:
                fields.append(declared)
                continue
            fields.append(self._redeclared(promised, declared, in_key=declared.name in key))
            self.origins[promised.name] = promised.name
        gone = [field.name for field in self.promised.fields if field.name not in self.origins]
        self.dataset = self.promised.model_copy(update={"fields": tuple(fields)})
        rules = [rule for rule in self.dataset.rules if not (isinstance(rule, Key) and set(rule.fields) & set(gone))]
        self._set_rules(rules)

    def unsaid(self, declared: Sequence[Key]) -> list[str]:
        """The contract's keys that are not among the declared ones."""
        return [
            f"{key.kind.replace('_', ' ')} ({', '.join(key.fields)})"
            for key in self.keys()
            if not any(_promises(one, key) or _same_key(one, key) for one in declared)
        ]

    # --- constraints --------------------------------------------------------------------------------------------------

    def keys(self) -> Iterator[Key]:
        """Every key with the names of its fields, wherever the contract says it."""
        for field in self.dataset.fields:
            for rule in field.rules:
                if isinstance(rule, Unique | ForeignKey) and not rule.fields:
                    yield replace(rule, fields=(field.name,))
        yield from (rule for rule in self.dataset.rules if isinstance(rule, Key))

    def in_key(self, name: str) -> bool:
        """Whether the field is part of the primary key."""
        return any(isinstance(rule, PrimaryKey) and name in rule.fields for rule in self.dataset.rules)

    def add_key(self, key: Key) -> None:
        """The key is there from now on; one that the contract promises already changes nothing."""
        if any(_promises(had, key) for had in self.keys()):
            return
        if isinstance(key, PrimaryKey) and len(key.fields) == 1:
            field = self.field(key.fields[0])
            if field.required and any(isinstance(had, Unique) and had.fields == key.fields for had in self.keys()):
                return
        kept = [
            rule for rule in self.dataset.rules if not (isinstance(key, PrimaryKey) and isinstance(rule, PrimaryKey))
        ]
        self._set_rules([*kept, key])

    def drop_key(self, key: Key) -> None:
        """The key is gone, also where the contract promises it."""
        self._set_rules([rule for rule in self.dataset.rules if not (isinstance(rule, Key) and _same_key(rule, key))])
        for field in self.dataset.fields:
            kept = tuple(
                rule
                for rule in field.rules
                if not (
                    isinstance(rule, Unique | ForeignKey)
                    and not rule.fields
                    and _same_key(replace(rule, fields=(field.name,)), key)
                )
            )
            if len(kept) != len(field.rules):
                self._set(field.name, field.model_copy(update={"rules": kept}))

    def add_rule(self, name: str, rule: Rule) -> None:
        """A list of values or a bound, in the place of one that the contract has."""
        field = self.field(name)
        if isinstance(rule, Required):
            self.require(name, True)
            return
        self._set(name, field.model_copy(update={"rules": (*_without(field.rules, rule), rule)}))

    def drop_rule(self, name: str, rule: Rule) -> None:
        """The column has no such rule any more."""
        field = next((field for field in self.dataset.fields if field.name == name), None)
        if field is not None:
            self._set(name, field.model_copy(update={"rules": _without(field.rules, rule)}))

    def add_check(self, sql: str) -> None:
        """A condition that is neither a list of values nor a bound; one that the contract has changes nothing."""
        known = [rule.sql for rule in self.dataset.rules if isinstance(rule, Expression)]
        if sql not in known and sql not in self.checks:
            self.checks.append(sql)

    # --- what the comparison cannot see -------------------------------------------------------------------------------

    def further_differences(self) -> Iterator[Difference]:
        """Columns that changed places, so that each has a name the contract knows, and checks that are not rules."""
        names = {field.name for field in self.dataset.fields}
        promised = {field.name for field in self.promised.fields} if self.promised is not None else set()
        for name, origin in self.origins.items():
            if name != origin and name in promised and origin in names:
                needed = {"old_required": True, "new_required": True}
                kind = ChangeType.FIELD_RENAMED
                yield Difference(kind, self.dataset.name, origin, old=origin, new=name, **needed)  # type: ignore[arg-type]
        for sql in self.checks:
            yield Difference(ChangeType.CONSTRAINT_ADDED, self.dataset.name, subject="check", new=sql)

    def takeovers(self) -> Iterator[tuple[str, str]]:
        """The fields of the contract that hold what another one held, which is gone itself."""
        names = {field.name for field in self.dataset.fields}
        promised = {field.name for field in self.promised.fields} if self.promised is not None else set()
        for name, origin in self.origins.items():
            if name != origin and name in promised and origin not in names:
                yield name, origin


def with_type(field: Field, declared: Field) -> Field:
    """The field with the declared type, where that does not keep what the contract says of it; inside it as well."""
    if field.type is None or declared.type is None:
        return field
    updates: dict[str, Any] = {}
    if not keeps(field.type, declared.type):
        updates["type"] = declared.type
    if field.type.family is not declared.type.family:
        parts = {name: getattr(declared, name) for name in ("fields", "item", "key", "value")}
        return _with_values(field.model_copy(update={**updates, **parts}), declared)
    if field.fields and declared.fields:
        known = {part.name.casefold(): part for part in field.fields}
        updates["fields"] = tuple(
            with_type(known[part.name.casefold()], part) if part.name.casefold() in known else part
            for part in declared.fields
        )
    for name in ("item", "key", "value"):
        had, has = getattr(field, name), getattr(declared, name)
        if had is not None and has is not None:
            updates[name] = with_type(had, has)
    return _with_values(field.model_copy(update=updates), declared)


def _with_values(field: Field, declared: Field) -> Field:
    """The field with the list of values that the declaration has."""
    rules = field.rules
    for rule in declared.rules:
        if isinstance(rule, Enum):
            rules = (*_without(rules, rule), rule)
    return field.model_copy(update={"rules": rules})


def keeps(promised: DataType, declared: DataType) -> bool:
    """Whether a column of the declared type is what the contract promises, with a length where that says one."""
    return promised.accepts(declared) and (promised.length is None or promised.length == declared.length)


def _without(rules: Sequence[Rule], other: Rule) -> tuple[Rule, ...]:
    same = next((kinds for kinds in SAME_PROMISE if isinstance(other, kinds)), (type(other),))
    return tuple(rule for rule in rules if not isinstance(rule, same))


def _with_name(rule: Rule, old: str, new: str) -> Rule:
    if not isinstance(rule, Key) or old not in rule.fields:
        return rule
    return replace(rule, fields=tuple(new if name == old else name for name in rule.fields))


def _promises(had: Key, key: Key) -> bool:
    """Whether the one key says what the other one does, so that nothing is new."""
    if isinstance(key, Unique):
        return isinstance(had, Unique | PrimaryKey) and set(had.fields) == set(key.fields)
    return _same_key(had, key)


def _same_key(one: Key, other: Key) -> bool:
    if isinstance(one, ForeignKey) and isinstance(other, ForeignKey):
        tables = {reference.to.rpartition(".")[2].casefold() for reference in (one, other)}
        columns = one.to_fields == other.to_fields or not one.to_fields or not other.to_fields
        return one.fields == other.fields and len(tables) == 1 and columns
    return type(one) is type(other) and set(one.fields) == set(other.fields)
