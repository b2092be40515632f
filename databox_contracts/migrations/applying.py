"""What each statement of a migration does to the tables of a contract.

A statement about a table that is not contracted, or about nothing that a schema consists of, is read over and, where
that may surprise, said. What may change a contracted table in a way that is not understood is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlglot import exp

from databox_contracts.errors import ContractError
from databox_contracts.migrations.altering import Alterations
from databox_contracts.migrations.naming import names_of, parts_of
from databox_contracts.migrations.statements import MYSQL_FAMILY, Statement, statements
from databox_contracts.migrations.tables import TableState
from databox_contracts.model import Contract, Dataset

_SAME_SCHEMA: Final = (
    exp.Set,
    exp.Use,
    exp.Insert,
    exp.Update,
    exp.Delete,
    exp.Merge,
    exp.TruncateTable,
    exp.Copy,
    exp.Grant,
    exp.Revoke,
    exp.Transaction,
    exp.Commit,
    exp.Rollback,
    exp.Analyze,
    exp.Refresh,
    exp.Describe,
    exp.Show,
    exp.Pragma,
    exp.Semicolon,
    exp.Comment,
)
"""Statements after which every table has the columns it had."""

_SAME_SCHEMA_TEXTS: Final = re.compile(
    r"(START\s+TRANSACTION|SAVEPOINT\s|RELEASE\s+SAVEPOINT\s|(UN)?LOCK\s+TABLES?\b|VACUUM\b|PRINT\b)", re.IGNORECASE
)
"""The same, where sqlglot sees a name or an opaque command."""

_OTHER_OBJECTS: Final = ("INDEX", "SEQUENCE", "FUNCTION", "PROCEDURE", "TRIGGER", "EXTENSION")
"""Kinds of objects whose making, changing and dropping leaves every table's columns as they are."""

_HARMLESS_FUNCTIONS: Final = ("setval", "set_config", "pg_sleep", "nextval", "currval")

_RENAME_TABLE: Final = re.compile(r"RENAME\s+TABLES?\s+(.*)", re.IGNORECASE | re.DOTALL)

_UNNAMED_CHECK: Final = re.compile(r"\bADD\s+CHECK\s*\(", re.IGNORECASE)

_WAY_OUT: Final = "put it into a file of its own and compare the contracts themselves: databox-contracts diff OLD NEW"


class Migration(Alterations):
    """The tables of a contract while the statements change them."""

    def run(self, sql: str) -> None:
        """Follow every statement. Raises `ContractError`, with its place, for one that cannot be followed."""
        self.count = 0
        for statement in statements(sql, self.dialect, self.source):
            self.count += 1
            self.apply(statement)

    def cannot_follow(self, statement: Statement, why: str, hint: str = _WAY_OUT) -> ContractError:
        """The error that names the statement, its place and the way out."""
        return ContractError(
            f"cannot follow {statement.shown!r}: {why}", hint=hint, source=self.source, position=statement.position
        )

    def apply(self, statement: Statement) -> None:
        """Change the tables as one statement does."""
        tree = statement.tree
        handler = next((handle for kind, handle in _HANDLERS if isinstance(tree, kind)), None)
        if handler is not None:
            handler(self, statement, tree)
        elif not isinstance(tree, _SAME_SCHEMA) and not _SAME_SCHEMA_TEXTS.match(statement.text):
            raise self.cannot_follow(statement, "what it does to the schema is not known")

    # --- tables -------------------------------------------------------------------------------------------------------

    def _create(self, statement: Statement, tree: exp.Create) -> None:
        kind = str(tree.args.get("kind") or "").upper()
        if kind == "TYPE" and isinstance(tree.expression, exp.DataType):
            self.reader.type_made(tree, statement.position)
        elif kind == "INDEX":
            if tree.args.get("unique"):
                self.unique_index(statement, tree.this)
        elif kind in ("TABLE", "VIEW"):
            self._create_table(statement, tree, kind)
        elif kind not in (*_OTHER_OBJECTS, "SCHEMA", "DATABASE"):
            raise self.cannot_follow(statement, "what it makes is not known")

    def _create_table(self, statement: Statement, tree: exp.Create, kind: str) -> None:
        schema = tree.this if isinstance(tree.this, exp.Schema) else None
        table = schema.this if schema is not None else tree.this
        target = self.contracted(table, statement)
        made = self.state_of(table, statement)
        properties = tree.args["properties"].expressions if tree.args.get("properties") is not None else ()
        if any(isinstance(one, exp.TemporaryProperty) for one in properties):
            if target is not None:
                raise self.cannot_follow(statement, f"a temporary table hides {target.name!r}", "name it otherwise")
            return
        if made is not None and tree.args.get("exists") and made in self.touched:
            return
        if made is not None and made in self.touched and not tree.args.get("replace"):
            raise self.cannot_follow(statement, "the table is there already", "drop it first, or leave this out")
        described = schema is not None and kind == "TABLE" and not any(isinstance(one, _COPIES) for one in properties)
        if not described or schema is None:
            if target is not None:
                raise self.cannot_follow(
                    statement, f"its columns are not written out, and {target.name!r} is contracted"
                )
            self.untracked(table, made, statement)
            return
        if target is None and made is None:
            made = TableState([tuple(part.name for part in parts_of(table))], Dataset(name=table.name))
            self.tables.append(made)
            self.note(statement, f"the table {table.name!r} is not contracted")
        elif target is not None:
            made = self.claim(target, made)
        assert made is not None
        self.touched.append(made)
        for one in properties:
            if isinstance(one, exp.PartitionedByProperty):
                # Hive lists the columns of the partition apart.
                apart = [column for column in one.this.expressions if isinstance(column, exp.ColumnDef)]
                schema.set(
                    "expressions", [*schema.expressions, *(column for column in apart if column.kind is not None)]
                )
        self.fill(made, schema, statement)

    def _drop(self, statement: Statement, tree: exp.Drop) -> None:
        kind = str(tree.args.get("kind") or "").upper()
        if kind in ("TABLE", "VIEW"):
            for table in tree.args.get("tables") or [tree.this]:
                if table is None or not table.name:
                    raise self.cannot_follow(statement, "it does not say what it drops")
                state = self.state_of(table, statement)
                if state is not None:
                    self.tables.remove(state)
                    self.touched.append(state)
                elif kind == "TABLE":
                    self.note(statement, f"the table {table.name!r} is not contracted")
        elif kind == "INDEX":
            self.drop_index(statement, tree)
        elif kind == "TYPE" and tree.args.get("cascade"):
            raise self.cannot_follow(statement, "it drops every column of the type", "drop the columns themselves")
        elif kind not in (*_OTHER_OBJECTS, "TYPE"):
            raise self.cannot_follow(statement, "it may drop contracted tables", "drop the tables themselves")

    def _alter(self, statement: Statement, tree: exp.Alter) -> None:
        kind = str(tree.args.get("kind") or "").upper()
        if kind in _OTHER_OBJECTS:
            return
        if kind not in ("TABLE", "VIEW"):
            raise self.cannot_follow(statement, f"what altering a {kind.lower()} does is not known")
        state = self.state_of(tree.this, statement)
        actions = tree.args.get("actions") or []
        if state is None:
            self._alter_unknown(statement, tree, actions)
            return
        self.touched.append(state)
        self.alter(state, statement, tree, actions)

    def _alter_unknown(self, statement: Statement, tree: exp.Alter, actions: Sequence[exp.Expr]) -> None:
        gone = self.contracted(tree.this, statement)
        if gone is not None:
            raise self.cannot_follow(statement, f"the table of {gone.name!r} is not there any more")
        for action in actions:
            renamed = action.this if isinstance(action, exp.AlterRename) else None
            if renamed is not None and not tree.args.get("options"):
                target = self.contracted(renamed, statement)
                if target is not None:
                    raise self.cannot_follow(
                        statement, f"the columns of {tree.this.name!r}, which becomes {target.name!r}, are not known"
                    )
            if isinstance(action, exp.SwapTable) and self.contracted(action.this, statement) is not None:
                raise self.cannot_follow(statement, f"the columns of {tree.this.name!r} are not known")
        self.note(statement, f"the table {tree.this.name!r} is not contracted")

    # --- other ways to say it -----------------------------------------------------------------------------------------

    def _select(self, statement: Statement, tree: exp.Select) -> None:
        into = tree.args.get("into")
        if into is not None:
            target = self.contracted(into.this, statement)
            if target is not None:
                raise self.cannot_follow(
                    statement, f"its columns are not written out, and {target.name!r} is contracted"
                )
            return
        for called in tree.find_all(exp.Anonymous):
            if called.name.lower() not in _HARMLESS_FUNCTIONS:
                raise self.cannot_follow(statement, f"nobody can tell what the function {called.name} does")

    def _command(self, statement: Statement, tree: exp.Command) -> None:
        renamed = _RENAME_TABLE.match(statement.text)
        if renamed is not None and self.dialect in MYSQL_FAMILY:
            for one in renamed[1].split(","):
                self.apply_text(statement, "ALTER TABLE " + re.sub(r"\sTO\s", " RENAME TO ", one, flags=re.IGNORECASE))
        elif _UNNAMED_CHECK.search(statement.text) is not None:
            # sqlglot knows only those that have a name.
            self.apply_text(statement, _UNNAMED_CHECK.sub('ADD CONSTRAINT "" CHECK (', statement.text))
        elif not _SAME_SCHEMA_TEXTS.match(statement.text):
            raise self.cannot_follow(statement, "what it does to the schema is not known", _hint(statement))

    def _execute(self, statement: Statement, tree: exp.Expr) -> None:
        given = [one.name if isinstance(one, exp.Literal) and one.is_string else None for one in tree.expressions]
        if tree.this.name.lower() != "sp_rename" or len(given) not in (2, 3) or None in given:
            raise self.cannot_follow(statement, "nobody can tell what a procedure does")
        old, new, what = str(given[0]), str(given[1]), str(given[2] if len(given) == 3 else "OBJECT").upper()
        place, _, column = old.rpartition(".")
        if what == "OBJECT":
            self.apply_text(statement, f"ALTER TABLE {old} RENAME TO [{new}]")
        elif what == "COLUMN" and place:
            self.apply_text(statement, f"ALTER TABLE {place} RENAME COLUMN {column} TO [{new}]")
        elif what != "INDEX":
            raise self.cannot_follow(statement, f"what it renames, {what.lower()!r}, is not known")

    def apply_text(self, statement: Statement, text: str) -> None:
        """Follow a statement that says the same in other words."""
        for one in statements(text, self.dialect, self.source):
            self.apply(Statement(one.tree, statement.text, statement.position))


def _hint(statement: Statement) -> str:
    several = len(re.findall(r"(?im)^\s*(?:alter|create|drop)\s", statement.text)) > 1
    return "end each statement with a semicolon" if several else _WAY_OUT


# What takes its columns from another table.
_COPIES: Final = (exp.LikeProperty, exp.InheritsProperty, exp.PartitionedOfProperty)

_HANDLERS: Final[tuple[tuple[type[exp.Expr], Callable[..., Any]], ...]] = (
    (exp.Create, Migration._create),
    (exp.Drop, Migration._drop),
    (exp.Alter, Migration._alter),
    (exp.Select, Migration._select),
    (exp.Command, Migration._command),
    (exp.Execute, Migration._execute),
)


def start(contract: Contract) -> list[TableState]:
    """The tables of the contract as they are."""
    return [TableState.of(dataset, names_of(dataset)) for dataset in contract.datasets]
