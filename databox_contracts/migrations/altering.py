"""What each clause of ALTER TABLE does to a table, and what a CREATE TABLE says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from sqlglot import exp

from databox_contracts.datatypes import Family
from databox_contracts.errors import ContractError
from databox_contracts.migrations.checks import read_check
from databox_contracts.migrations.creating import Reader, Table, reference
from databox_contracts.migrations.naming import Names, names_of, parts_of
from databox_contracts.migrations.statements import MYSQL_FAMILY, Statement
from databox_contracts.migrations.tables import Key, TableState, keeps
from databox_contracts.model import Contract, Dataset, Field
from databox_contracts.rules import Expression, ForeignKey, PrimaryKey, Required, Rule, Unique

_ZONELESS: Final = ("postgres", "redshift", "duckdb", "materialize", "trino", "presto", "athena", "oracle", "tsql")
"""The dialects whose plain timestamp has no zone."""

_NULLABLE_UNLESS_SAID: Final = ("tsql", *MYSQL_FAMILY)
"""The dialects in which another type of a column allows nulls again, unless it says NOT NULL."""

_SAME_COLUMNS: Final = (
    exp.AlterSet,
    exp.AddPartition,
    exp.DropPartition,
    exp.AlterSortKey,
    exp.AlterDistStyle,
    exp.ClusterProperty,
    exp.RenameIndex,
)
"""Clauses that concern how a table is stored."""

_OPTIONS: Final = (
    exp.EngineProperty,
    exp.AlgorithmProperty,
    exp.LockProperty,
    exp.AutoIncrementProperty,
    exp.CollateProperty,
    exp.CharacterSetProperty,
    exp.RowFormatProperty,
    exp.SchemaCommentProperty,
)
"""Options of a table that have nothing to do with its columns."""


T = TypeVar("T")


class Alterations:
    """The tables so far, and the clauses that change them.

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

    # --- clauses ------------------------------------------------------------------------------------------------------

    def alter(self, state: TableState, statement: Statement, tree: exp.Alter, actions: Sequence[exp.Expr]) -> None:
        """Follow every clause of an ALTER TABLE."""
        options = list(tree.args.get("options") or ())
        to = next((one.this for one in options if isinstance(one, exp.ToTableProperty)), None)
        others = [one for one in options if not isinstance(one, (*_OPTIONS, exp.ToTableProperty))]
        if others or (to is not None and not isinstance(actions[-1], exp.AlterRename)):
            raise self.cannot_follow(statement, "it has options that are not known")
        if not actions and not options:
            raise self.cannot_follow(statement, "it has no clause that is known")
        for action in actions:
            if to is not None and action is actions[-1]:
                # RENAME a TO b, without the word COLUMN.
                self._rename_column(state, action.this.this, to.this, statement)
                continue
            clause = next((handle for kind, handle in _CLAUSES if isinstance(action, kind)), None)
            if clause is not None:
                clause(self, state, action, statement)
            elif not isinstance(action, _SAME_COLUMNS):
                raise self.cannot_follow(
                    statement, f"the clause {action.sql(dialect=self.dialect)[:40]!r} is not known"
                )

    def _add_column(self, state: TableState, entry: exp.ColumnDef, statement: Statement) -> None:
        field, scratch = self.declared(entry, statement)
        found = self._names.find(entry.this, [(one.column, one) for one in state.dataset.fields])
        had = self._only(found, entry.name, statement)
        if had is not None and entry.args.get("exists"):
            # Nobody can tell whether the column was there; the contract says so.
            self.note(statement, f"the contract has the column {entry.name!r} already")
            return
        if had is not None:
            if had.name not in state.origins:
                raise self.cannot_follow(statement, f"the column {entry.name!r} is there already", "add it once")
            self.note(statement, f"the contract has the column {entry.name!r} already; it is compared with it")
            state.retype(had.name, field)
            state.require(had.name, field.required or state.in_key(had.name))
        else:
            state.add(field)
        self._of_column(state, entry, scratch, statement)

    def _add_columns(self, state: TableState, action: exp.Expr, statement: Statement) -> None:
        for entry in action.expressions:
            if not isinstance(entry, exp.ColumnDef):
                raise self.cannot_follow(statement, "it adds something that is no column")
            self._add_column(state, entry, statement)

    def _drop_part(self, state: TableState, action: exp.Drop, statement: Statement) -> None:
        kind = str(action.args.get("kind") or "").upper()
        dropped = [one for one in action.args.get("tables") or [action.this] if one is not None]
        if not dropped:
            raise self.cannot_follow(statement, "it does not say what it drops")
        for one in dropped:
            if kind in ("COLUMN", "COLUMNS"):
                for column in one.expressions if isinstance(one, exp.Schema) else [one]:
                    name = self.column(state, column, statement)
                    if name is not None:
                        state.drop(name)
            elif kind in ("CONSTRAINT", "FOREIGN KEY", "CHECK"):
                self._drop_constraint(state, one.name, statement)
            elif kind in ("INDEX", "KEY"):
                self._drop_named_index(one.name, statement, [state])
            else:
                raise self.cannot_follow(statement, f"what dropping a {kind.lower()} does is not known")

    def _drop_constraint(self, state: TableState, name: str, statement: Statement) -> None:
        if name.casefold() in state.named:
            self._drop_named(state, name)
            return
        if state.promised is None:
            return
        said = [("", rule) for rule in state.dataset.rules if rule.name and rule.name.casefold() == name.casefold()]
        said += [
            (field.name, rule)
            for field in state.dataset.fields
            for rule in field.rules
            if rule.name and rule.name.casefold() == name.casefold()
        ]
        if not said:
            raise self.cannot_follow(
                statement,
                f"nobody can tell what the constraint {name!r} is",
                "give a rule of the contract that name, or compare the contracts themselves: diff OLD NEW",
            )
        for field, rule in said:
            if isinstance(rule, Key):
                state.drop_key(rule if rule.fields else type(rule)(fields=(field,)))  # type: ignore[call-arg]
            elif field:
                state.drop_rule(field, rule)
            else:
                kept = tuple(one for one in state.dataset.rules if one is not rule)
                state.dataset = state.dataset.model_copy(update={"rules": kept})

    def _drop_primary_key(self, state: TableState, action: exp.Expr, statement: Statement) -> None:
        keys = [rule for rule in state.dataset.rules if isinstance(rule, PrimaryKey)]
        if not keys:
            self.note(statement, "the contract has no primary key that could be dropped")
        for key in keys:
            for name in key.fields:
                # Its columns stay without nulls.
                state.drop_key(key)
                state.require(name, True)

    def _rename_column(self, state: TableState, old: exp.Expr, new: exp.Expr, statement: Statement) -> None:
        name = self.column(state, old, statement)
        to = new.parts[0] if isinstance(new, exp.Column) else new
        there = self._names.find(to, [(field.column, field) for field in state.dataset.fields])
        if name is None:
            if state.promised is not None and not there:
                promised = self._names.find(to, [(field.column, field) for field in state.promised.fields])
                if promised:
                    raise self.cannot_follow(
                        statement, f"the type of {old.name!r} is not known", "make it in this file"
                    )
            return
        if any(field.name != name for field in there):
            raise self.cannot_follow(statement, f"the column {to.name!r} is there already", "drop it first")
        state.rename(name, to.name)

    def _renamed(self, state: TableState, action: exp.Expr, statement: Statement) -> None:
        self._rename_column(state, action.this, action.args["to"], statement)

    def _rename_table(self, state: TableState, action: exp.Expr, statement: Statement) -> None:
        table = action.this
        target = self.contracted(table, statement)
        there = self.state_of(table, statement)
        if there is not None and there is not state:
            raise self.cannot_follow(statement, f"the table {table.name!r} is there already", "drop or rename it first")
        parts = [part.name for part in parts_of(table)]
        elsewhere = target is state.promised and target is not None and self._is_elsewhere(statement.tree.this, table)
        if target is None or target is state.promised:
            outer = max((name[:-1] for name in state.names), key=len) if len(parts) == 1 else ()
            state.names = [(*outer, *parts)]
            if state.promised is not None:
                state.moved = None if target is state.promised and not elsewhere else ".".join(state.names[0])
                if target is not None and not elsewhere:
                    state.names = names_of(target)
            return
        columns, keys = state.dataset.fields, list(state.keys())
        checks = state.checks
        self.claim(target, state)
        key = [name for one in keys if isinstance(one, PrimaryKey) for name in one.fields]
        state.declare([self._plain(one) for one in columns], key)
        state.checks = checks
        state.moved = None
        for one in keys:
            state.add_key(one)

    @staticmethod
    def _is_elsewhere(old: exp.Expr, new: exp.Expr) -> bool:
        """Whether the new name puts the table into another schema than the statement found it in."""
        outside = [[part.name.casefold() for part in parts_of(table)[:-1]] for table in (old, new)]
        return bool(outside[1]) and outside[0][-len(outside[1]) :] != outside[1]

    def _alter_column(self, state: TableState, action: exp.Expr, statement: Statement) -> None:
        name = self.column(state, action.this, statement)
        if name is None:
            return
        kind, allow_null = action.args.get("dtype"), action.args.get("allow_null")
        if kind is not None:
            column = exp.ColumnDef(this=exp.to_identifier(action.this.name), kind=kind)
            self._retype(state, name, self.declared(column, statement)[0], statement)
            if allow_null is None and self.dialect in _NULLABLE_UNLESS_SAID:
                allow_null = True
        if allow_null is not None:
            state.require(name, not allow_null)
        if action.args.get("rename_to") is not None:
            self._rename_column(state, action.this, action.args["rename_to"], statement)

    def _modify_column(self, state: TableState, action: exp.Expr, statement: Statement) -> None:
        """MySQL's MODIFY and CHANGE say the whole column again."""
        entry = action.this
        old = action.args.get("rename_from")
        name = self.column(state, old if old is not None else entry.this, statement)
        if name is None:
            return
        field, scratch = self.declared(entry, statement)
        self._retype(state, name, field, statement)
        if field.required or self.dialect in _NULLABLE_UNLESS_SAID:
            state.require(name, field.required or state.in_key(name))
        if old is not None and old.name != entry.name:
            self._rename_column(state, old, entry.this, statement)
        self._of_column(state, entry, scratch, statement)

    def _retype(self, state: TableState, name: str, declared: Field, statement: Statement) -> None:
        promised = state.field(name).type
        state.retype(name, declared)
        if promised is not None and declared.type is not None and keeps(promised, declared.type):
            place = f"{state.dataset.name}.{name}"
            self.note(statement, f"{place}: {declared.type} keeps what the contract promises, {promised}")

    def _add_constraints(self, state: TableState, action: exp.Expr, statement: Statement) -> None:
        for one in action.expressions:
            self.constraint(state, one, statement)

    def _replace_columns(self, state: TableState, action: exp.Expr, statement: Statement) -> None:
        self.fill(state, action, statement)


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


_CLAUSES: Final[tuple[tuple[type[exp.Expr], Callable[..., None]], ...]] = (
    (exp.ColumnDef, Alterations._add_column),
    (exp.Schema, Alterations._add_columns),
    (exp.Drop, Alterations._drop_part),
    (exp.DropPrimaryKey, Alterations._drop_primary_key),
    (exp.RenameColumn, Alterations._renamed),
    (exp.AlterRename, Alterations._rename_table),
    (exp.AlterColumn, Alterations._alter_column),
    (exp.ModifyColumn, Alterations._modify_column),
    (exp.AddConstraint, Alterations._add_constraints),
    (exp.ReplaceColumns, Alterations._replace_columns),
)
