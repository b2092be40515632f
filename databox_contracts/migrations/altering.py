"""What each clause of ALTER TABLE does to a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlglot import exp

from databox_contracts.migrations.declaring import Declarations
from databox_contracts.migrations.naming import names_of, parts_of
from databox_contracts.migrations.statements import MYSQL_FAMILY, Statement
from databox_contracts.migrations.tables import Key, TableState, keeps
from databox_contracts.model import Field
from databox_contracts.rules import PrimaryKey

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


class Alterations(Declarations):
    """The clauses that change the tables."""

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
