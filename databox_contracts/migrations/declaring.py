"""What a CREATE TABLE and the constraints of a migration say of a contract's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from sqlglot import exp

from databox_contracts.datatypes import Family
from databox_contracts.errors import ContractError
from databox_contracts.migrations.checks import read_check
from databox_contracts.migrations.creating import Reader, Table, reference
from databox_contracts.migrations.naming import Names, names_of
from databox_contracts.migrations.statements import Statement
from databox_contracts.migrations.tables import Key, TableState
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import Expression, ForeignKey, PrimaryKey, Required, Rule, Unique

_ZONELESS: Final = ("postgres", "redshift", "duckdb", "materialize", "trino", "presto", "athena", "oracle", "tsql")
"""The dialects whose plain timestamp has no zone."""

T = TypeVar("T")


class Declarations:
    """The tables so far, and what is declared of their columns and keys.

    `touched` are the tables that a statement was about, `remarks` what has to be said of the statements.
    """

    def __init__(self, contract: Contract, tables: list[TableState], dialect: str, source: str) -> None:
        self.contract = contract
        self.tables = tables
        self.dialect = dialect
        self.source = source
        self.touched: list[TableState] = []
        self.remarks: dict[str, None] = {}
        self.reader = Reader(dialect, source)
        self._names = Names(dialect)

    def cannot_follow(self, statement: Statement, why: str, hint: str = "") -> ContractError:
        """The error that names the statement, its place and the way out."""
        raise NotImplementedError

    def note(self, statement: Statement, text: str) -> None:
        """Say something of a statement, once."""
        self.remarks[f"{self.source}:{statement.position.line}: {text}"] = None

    # --- which table, which column ------------------------------------------------------------------------------------

    def state_of(self, table: exp.Expr, statement: Statement) -> TableState | None:
        """The table of that name, None where there is none that is known."""
        named = [(name, state) for state in self.tables for name in state.names]
        return self._only(self._names.find_table(table, named), table.name, statement)

    def contracted(self, table: exp.Expr, statement: Statement) -> Dataset | None:
        """The dataset of the contract that has that table."""
        named = [(name, dataset) for dataset in self.contract.datasets for name in names_of(dataset)]
        return self._only(self._names.find_table(table, named), table.name, statement)

    def column(self, state: TableState, identifier: exp.Expr, statement: Statement) -> str | None:
        """The name of the field of that column, None where the contract has none."""
        parts = identifier.parts if isinstance(identifier, exp.Column | exp.Dot) else [identifier]
        if len(parts) != 1:
            raise self.cannot_follow(statement, "it is about a part of a column", "compare the contracts: diff OLD NEW")
        found = self._names.find(parts[0], [(field.column, field) for field in state.dataset.fields])
        field = self._only(found, parts[0].name, statement)
        if field is None and state.promised is not None:
            self.note(statement, f"the contract has no column {parts[0].name!r} in {state.dataset.name!r}")
        return field.name if field is not None else None

    def _only(self, found: Sequence[T], name: str, statement: Statement) -> T | None:
        if len(found) > 1:
            raise self.cannot_follow(statement, f"{name!r} may mean several of the contract", "write its whole name")
        return found[0] if found else None

    def claim(self, target: Dataset, state: TableState | None) -> TableState:
        """The table that takes the place of a contracted one from now on."""
        for other in self.tables:
            if other.promised is target:
                other.promised = None
        if state is None:
            state = TableState(names_of(target), target)
            self.tables.append(state)
        state.promised, state.names = target, names_of(target)
        return state

    def untracked(self, table: exp.Expr, state: TableState | None, statement: Statement) -> None:
        """A table nobody promised, whose columns are not known."""
        if state is not None:
            self.tables.remove(state)
        self.note(statement, f"the table {table.name!r} is not contracted")

    # --- declarations -------------------------------------------------------------------------------------------------

    def fill(self, state: TableState, schema: exp.Expr, statement: Statement) -> None:
        """The table has the columns and constraints of a CREATE TABLE."""
        entries = [one for one in schema.expressions if isinstance(one, exp.ColumnDef)]
        others = [one for one in schema.expressions if not isinstance(one, exp.ColumnDef)]
        scratch = Table(state.dataset.name, state.dataset.name, statement.position)
        for entry in entries:
            self.reader.column(entry, scratch)
        listed = [_bare_names(key) for one in others for key in [one.find(exp.PrimaryKey)] if key is not None]
        key = [name for rule in scratch.rules if isinstance(rule, PrimaryKey) for name in rule.fields]
        lower = {name.casefold() for name in [*key, *(name for names in listed for name in names)]}
        fields = [self._plain(field) for field in scratch.fields.values()]
        if state.promised is None:
            state.dataset = Dataset(name=state.dataset.name, fields=tuple(fields))
            state.origins, state.checks = {}, []
        else:
            state.declare(fields, [field.name for field in fields if field.name.casefold() in lower])
            state.checks = []
        promised = list(state.keys())
        before = len(promised)
        declared: list[Key] = []
        for entry in entries:
            declared += self._of_column(state, entry, scratch, statement)
        for other in others:
            declared += [rule for _, rule in self.constraint(state, other, statement) if isinstance(rule, Key)]
        unsaid = state.unsaid(declared) if state.promised is not None and before else []
        if unsaid:
            self.note(statement, f"the table does not say the contract's {', '.join(unsaid)}, which is no change")

    def _plain(self, field: Field) -> Field:
        """A declared column without what is told apart, and with the zone that its dialect means."""
        rules = tuple(rule for rule in field.rules if not isinstance(rule, Unique))
        type_ = field.type
        if type_ is not None and type_.family is Family.TIMESTAMP and type_.zone is None and self.dialect in _ZONELESS:
            type_ = replace(type_, zone=False)
        return Field(
            name=field.name,
            type=type_,
            rules=rules,
            fields=field.fields,
            item=field.item,
            key=field.key,
            value=field.value,
        )

    def _of_column(self, state: TableState, entry: exp.ColumnDef, scratch: Table, statement: Statement) -> list[Key]:
        """The keys and checks that stand at a column."""
        name = self.column(state, entry.this, statement)
        assert name is not None
        found: list[Key] = []
        for constraint in entry.args.get("constraints") or ():
            label = constraint.this.name if constraint.args.get("this") is not None else None
            kind = constraint.kind
            if isinstance(kind, exp.PrimaryKeyColumnConstraint):
                found.append(PrimaryKey(fields=(name,)))
            elif isinstance(kind, exp.UniqueColumnConstraint):
                found.append(Unique(fields=(name,)))
            elif isinstance(kind, exp.Reference):
                found.append(reference(kind, (name,), statement.position))
            elif isinstance(kind, exp.CheckColumnConstraint):
                self._checked(state, kind, label, statement)
                continue
            else:
                continue
            self._keyed(state, found[-1], label)
        return found

    def _keyed(self, state: TableState, key: Key, label: str | None) -> None:
        state.add_key(key)
        if label is not None:
            state.named.setdefault(label.casefold(), []).append(("", key))

    def declared(self, entry: exp.ColumnDef, statement: Statement) -> tuple[Field, Table]:
        """A column that is declared on its own, and the keys it declares."""
        if not isinstance(entry.this, exp.Identifier):
            raise self.cannot_follow(statement, "it is about a part of a column", "compare the contracts: diff OLD NEW")
        scratch = Table("", "", statement.position)
        self.reader.column(entry, scratch)
        field = self._plain(next(iter(scratch.fields.values())))
        if any(isinstance(rule, PrimaryKey) for rule in scratch.rules) and not field.required:
            field = field.model_copy(update={"rules": (*field.rules, Required())})
        return field, scratch

    # --- constraints --------------------------------------------------------------------------------------------------

    def constraint(self, state: TableState, entry: exp.Expr, statement: Statement) -> list[tuple[str, Rule]]:
        """A constraint of the table, under the name it has."""
        label = entry.this.name or None if isinstance(entry, exp.Constraint) else None
        found: list[tuple[str, Rule]] = []
        for one in entry.expressions if isinstance(entry, exp.Constraint) else [entry]:
            match one:
                case exp.PrimaryKey():
                    made: Rule | None = self._key_of(state, PrimaryKey, one.expressions, statement)
                case exp.PrimaryKeyColumnConstraint() if entry.find(*_CLUSTERED) is not None:
                    made = self._key_of(state, PrimaryKey, _clustered(entry), statement)
                case exp.ClusteredColumnConstraint() | exp.NonClusteredColumnConstraint():
                    continue
                case exp.UniqueColumnConstraint() if entry.find(*_CLUSTERED) is not None:
                    made = self._key_of(state, Unique, _clustered(entry), statement)
                case exp.UniqueColumnConstraint():
                    named = one.this if isinstance(one.this, exp.Schema) else one
                    label = label or (named.this.name if isinstance(named.this, exp.Identifier) else None)
                    made = self._key_of(state, Unique, named.expressions, statement)
                case exp.ForeignKey():
                    made = self._foreign_key(state, one, statement)
                case exp.CheckColumnConstraint():
                    self._checked(state, one, label, statement)
                    continue
                case exp.IndexColumnConstraint() | exp.ExcludeColumnConstraint():
                    self.note(statement, f"{one.sql(dialect=self.dialect)[:40]!r} is not compared")
                    continue
                case _:
                    raise self.cannot_follow(
                        statement, f"the constraint {one.sql(dialect=self.dialect)[:40]!r} is new to it"
                    )
            if made is not None and isinstance(made, Key):
                self._keyed(state, made, label)
                found.append(("", made))
                if isinstance(made, PrimaryKey):
                    for name in made.fields:
                        # What is part of a primary key is never null.
                        state.require(name, True)
        return found

    def _key_of(
        self, state: TableState, kind: type[PrimaryKey] | type[Unique], listed: Sequence[exp.Expr], statement: Statement
    ) -> Rule | None:
        if not listed:
            raise self.cannot_follow(statement, "it names no columns of the key")
        names = [self.column(state, _column_of(one), statement) for one in listed]
        known = tuple(name for name in names if name is not None)
        return kind(fields=known) if len(known) == len(names) and known else None

    def _foreign_key(self, state: TableState, entry: exp.Expr, statement: Statement) -> ForeignKey | None:
        names = [self.column(state, one, statement) for one in entry.expressions]
        known = tuple(name for name in names if name is not None)
        if len(known) != len(names):
            return None
        return reference(entry.args["reference"], known, statement.position)

    def _checked(self, state: TableState, entry: exp.Expr, label: str | None, statement: Statement) -> None:
        found = read_check(entry.this)
        named = state.named.setdefault(label.casefold(), []) if label is not None else []
        if found is None:
            sql = entry.this.sql(dialect="spark")
            state.add_check(sql)
            named.append(("", Expression(sql=sql)))
            return
        for identifier, rule in found:
            name = self.column(state, identifier, statement)
            if name is not None:
                state.add_rule(name, rule)
                named.append((name, rule))

    def unique_index(self, statement: Statement, index: exp.Expr) -> None:
        """A unique index is a key, unless it is over expressions or over some of the rows."""
        table = index.args.get("table")
        state = self.state_of(table, statement) if table is not None else None
        if state is None or table is None:
            return
        self.touched.append(state)
        parameters = index.args["params"]
        columns = [_column_of(one) for one in parameters.args.get("columns") or ()]
        if parameters.args.get("where") is not None or not all(
            isinstance(one, exp.Column | exp.Identifier) for one in columns
        ):
            self.note(statement, "a unique index over an expression or over some of the rows is not compared")
            return
        key = self._key_of(state, Unique, columns, statement)
        if isinstance(key, Unique):
            self._keyed(state, key, index.name or None)

    def drop_index(self, statement: Statement, tree: exp.Drop) -> None:
        """An index is gone; a key only where the migration itself made the index."""
        for one in tree.args.get("tables") or [tree.this]:
            self._drop_named_index(one.name if one is not None else "", statement, self.tables)

    def _drop_named_index(self, name: str, statement: Statement, tables: Sequence[TableState]) -> None:
        owner = next((state for state in tables if name.casefold() in state.named), None)
        if owner is not None:
            self._drop_named(owner, name)
        else:
            self.note(statement, f"if the index {name!r} is unique, the contract's key is no longer enforced")

    def _drop_named(self, state: TableState, name: str) -> None:
        for column, rule in state.named.pop(name.casefold()):
            if isinstance(rule, Key):
                state.drop_key(rule)
            elif isinstance(rule, Expression):
                state.checks = [sql for sql in state.checks if sql != rule.sql]
            else:
                state.drop_rule(column, rule)


def _column_of(one: exp.Expr) -> exp.Expr:
    """The column that a list of a key names, without its order."""
    inner = one.this if isinstance(one, exp.Ordered) else one
    return inner.this if isinstance(inner, exp.Column) and len(inner.parts) == 1 else inner


# How T-SQL says in which order the rows are kept, with the columns of the key.
_CLUSTERED: Final = (exp.ClusteredColumnConstraint, exp.NonClusteredColumnConstraint)


def _clustered(entry: exp.Expr) -> list[exp.Expr]:
    found = entry.find(*_CLUSTERED)
    return list(found.this) if found is not None and isinstance(found.this, list) else []


def _bare_names(key: exp.Expr) -> list[str]:
    return [_column_of(one).name for one in key.expressions]
