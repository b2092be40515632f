"""SQL data definition -> the datasets it would leave: columns with types, keys, checks, comments.

What only concerns how a table is stored (indexes, engines, collations, generated values) promises nothing about its
rows and is read over. What would change the schema in a way that is not understood is an error, never left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field as attribute
from typing import Any, Final

from sqlglot import exp

from databox_contracts.datatypes import DataType, Family, parse_type
from databox_contracts.errors import ContractError, Position, UnknownTypeError
from databox_contracts.migrations.statements import Statement, chosen_dialect, statements
from databox_contracts.model import Dataset, Field
from databox_contracts.rules import Enum, Expression, ForeignKey, PrimaryKey, Required, Rule, Unique

SOURCE: Final = "<sql>"

# Kinds of objects whose making and dropping leaves every table's columns as they are.
_NO_TABLES: Final = ("INDEX", "SCHEMA", "DATABASE", "SEQUENCE", "VIEW", "FUNCTION", "PROCEDURE", "TRIGGER", "EXTENSION")
_HARMLESS: Final = (exp.Set, exp.Use, exp.Insert, exp.Grant, exp.Transaction, exp.Commit, exp.Select, exp.Semicolon)
_ONLY_TABLES: Final = "it understands CREATE TABLE, DROP TABLE and COMMENT ON"


def datasets_of(sql: str, dialect: str | None = None, *, source: str = SOURCE) -> tuple[Dataset, ...]:
    """The tables that the statements leave, in the order in which they were made.

    `dialect` is a name sqlglot knows, Spark's if None; `source` is what errors call the text. Raises `ContractError`
    with the line for what is not valid SQL, changes a schema in a way that is not understood, or leaves no table, and
    `DataboxError` for an unknown dialect.
    """
    chosen = chosen_dialect(dialect)
    reader = Reader(chosen, source)
    for statement in statements(sql, chosen, source):
        reader.apply(statement)
    if not reader.tables:
        raise ContractError(
            "no statement creates a table", hint="write CREATE TABLE name (column type, ...)", source=source
        )
    return reader.datasets()


@dataclass
class Table:
    """A table under construction; its fields are found by their names in small letters."""

    name: str
    qualified: str
    position: Position
    fields: dict[str, Field] = attribute(default_factory=dict)
    rules: list[Rule] = attribute(default_factory=list)
    description: str = ""


class Reader:
    """The tables so far; each statement changes them."""

    def __init__(self, dialect: str, source: str) -> None:
        self.dialect = dialect
        self.source = source
        self.tables: dict[str, Table] = {}
        self.enums: dict[str, tuple[str, ...]] = {}

    def error(self, message: str, position: Position | None, hint: str | None = None, **facts: Any) -> ContractError:
        return ContractError(message, hint=hint, source=self.source, position=position, **facts)

    def apply(self, statement: Statement) -> None:
        """Change the tables as the statement does. Raises `ContractError` for one that is not understood."""
        tree, position = statement.tree, statement.position
        kind = str(tree.args.get("kind") or "").upper() if isinstance(tree, exp.Create | exp.Drop | exp.Comment) else ""
        other = isinstance(tree, exp.Create | exp.Drop) and kind in _NO_TABLES and not tree.args.get("unique")
        if isinstance(tree, exp.Create) and kind == "TABLE":
            self._create(tree, position)
        elif isinstance(tree, exp.Drop) and kind == "TABLE":
            self._drop(tree, position)
        elif isinstance(tree, exp.Create) and kind == "TYPE" and isinstance(tree.expression, exp.DataType):
            self.type_made(tree, position)
        elif isinstance(tree, exp.Comment):
            self._comment(tree, kind, position)
        elif not other and not isinstance(tree, _HARMLESS):
            shown = " ".join(tree.sql(dialect=self.dialect).split()[:2])
            raise self.error(f"the statement {shown[:40]!r} is not understood", position, _ONLY_TABLES)

    def type_made(self, tree: exp.Create, position: Position) -> None:
        """Remember the values of an enum. Raises `ContractError` for any other type."""
        made = tree.expression
        if not isinstance(made, exp.DataType) or not made.is_type("enum"):
            raise self.error(f"the type {tree.this.name!r} is not understood", position, "it understands AS ENUM (...)")
        self.enums[tree.this.name.casefold()] = tuple(one.name for one in made.expressions)

    def datasets(self) -> tuple[Dataset, ...]:
        """The tables as datasets; of two that only their schemas tell apart, both go by their whole names."""
        return tuple(
            Dataset(
                name=self._dataset_name(table),
                physical_name=table.qualified if table.qualified != table.name else None,
                fields=tuple(table.fields.values()),
                rules=tuple(self._complete(rule) for rule in table.rules),
                description=table.description,
                position=table.position,
            )
            for table in self.tables.values()
        )

    def _complete(self, rule: Rule) -> Rule:
        """A reference by the name of the dataset; one that names no columns is to its primary key."""
        if not isinstance(rule, ForeignKey):
            return rule
        other = self.tables.get(rule.to) or next((one for one in self.tables.values() if one.name == rule.to), None)
        key = next((one for one in other.rules if isinstance(one, PrimaryKey)), None) if other is not None else None
        if not rule.to_fields and key is None:
            raise self.error(
                f"a foreign key refers to {rule.to!r} without columns, and no primary key of it is known",
                rule.position,
                f"write REFERENCES {rule.to} (column)",
            )
        to_fields = rule.to_fields or (key.fields if key is not None else ())
        to = self._dataset_name(other) if other is not None else rule.to
        return ForeignKey(fields=rule.fields, to=to, to_fields=to_fields, position=rule.position)

    def _dataset_name(self, table: Table) -> str:
        """The table's own name, or its whole one where another schema has one of the same."""
        same = [one for one in self.tables.values() if one.name == table.name]
        return table.name if len(same) == 1 else table.qualified

    # --- tables -------------------------------------------------------------------------------------------------------

    def _create(self, tree: exp.Create, position: Position) -> None:
        schema = tree.this
        if not isinstance(schema, exp.Schema):
            shown = schema.name if isinstance(schema, exp.Table) else "it"
            raise self.error(
                f"the table {shown!r} is created without a list of columns", position, "write its columns and types"
            )
        name, qualified = _names(schema.this)
        if qualified in self.tables and tree.args.get("exists"):
            return
        if qualified in self.tables and not tree.args.get("replace"):
            raise self.error(f"the table {qualified!r} is created twice", position, "remove one of the statements")
        table = Table(name, qualified, position)
        for entry in schema.expressions:
            if isinstance(entry, exp.ColumnDef):
                self.column(entry, table)
        for entry in schema.expressions:
            if not isinstance(entry, exp.ColumnDef):
                self._constraint(entry, table)
        self._properties(tree, table)
        self.tables[qualified] = table

    def _drop(self, tree: exp.Expr, position: Position) -> None:
        for table in tree.args.get("tables") or [tree.this]:
            qualified = _names(table)[1]
            if self.tables.pop(qualified, None) is None and not tree.args.get("exists"):
                raise self.error(f"the table {qualified!r} is dropped and was not created", position, "create it first")

    def _comment(self, tree: exp.Comment, kind: str, position: Position) -> None:
        text = tree.expression.name if isinstance(tree.expression, exp.Literal) else ""
        if kind == "TABLE":
            table = self._known(_names(tree.this)[1], position)
            table.description = text
        elif kind == "COLUMN":
            column = tree.this
            table = self._known(".".join(part.name for part in column.parts[:-1]), position)
            self._update(table, column.name, position, description=text)

    def _known(self, qualified: str, position: Position) -> Table:
        table = self.tables.get(qualified)
        if table is None:
            raise self.error(f"there is no table {qualified!r} to comment on", position, "create it first")
        return table

    def _properties(self, tree: exp.Create, table: Table) -> None:
        properties = tree.args.get("properties")
        for one in properties.expressions if properties is not None else ():
            if isinstance(one, exp.SchemaCommentProperty):
                table.description = one.this.name
            elif isinstance(one, exp.PartitionedByProperty):
                self._partitions(one.this, table)

    def _partitions(self, by: exp.Expr, table: Table) -> None:
        for at, entry in enumerate(by.expressions, start=1):
            if isinstance(entry, exp.ColumnDef) and entry.args.get("kind") is not None:
                # Hive lists the columns of the partition apart.
                self.column(entry, table)
            name = entry.name
            if isinstance(entry, exp.ColumnDef | exp.Identifier | exp.Column) and name.casefold() in table.fields:
                self._update(table, name, table.position, partition_position=at)

    # --- columns ------------------------------------------------------------------------------------------------------

    def column(self, entry: exp.ColumnDef, table: Table) -> None:
        """Add the column, and what it says of its values, to the table."""
        position = _position(entry.this, table.position)
        name = entry.name
        if name.casefold() in table.fields:
            raise self.error(
                f"the column {name!r} of {table.qualified!r} stands twice", position, "rename one", field=name
            )
        kind = entry.args.get("kind")
        type_, rules = self.type_of(kind, name, position)
        field = Field(name=name, type=type_, rules=tuple(rules), position=position).completed()
        field = _with_nested(field, kind)
        table.fields[name.casefold()] = field
        for constraint in entry.args.get("constraints") or ():
            self._column_constraint(constraint.kind, table, name, position)

    def type_of(self, kind: Any, name: str, position: Position) -> tuple[DataType, list[Rule]]:
        """The type of a column, and the list of values that it stands for."""
        if not isinstance(kind, exp.DataType):
            raise self.error(f"the column {name!r} has no type", position, "give it one", field=name)
        values = [one.name for one in kind.expressions if isinstance(one, exp.Literal) and one.is_string]
        if kind.this.value.startswith("ENUM") and values:
            return DataType(Family.STRING), [Enum(values=tuple(values), position=position)]
        spelling = kind.sql(dialect=self.dialect)
        if spelling.strip('"').casefold() in self.enums:
            return DataType(Family.STRING), [Enum(values=self.enums[spelling.strip('"').casefold()], position=position)]
        try:
            return parse_type(spelling, self.dialect), []
        except UnknownTypeError as error:
            raise self.error(
                f"the column {name!r} has the unknown type {spelling[:60]!r}", position, error.hint, field=name
            ) from None

    def _column_constraint(self, kind: Any, table: Table, name: str, position: Position) -> None:
        match kind:
            case exp.NotNullColumnConstraint() if not kind.args.get("allow_null"):
                self._add(table, name, Required(position=position))
            case exp.PrimaryKeyColumnConstraint():
                self._key(table, (name,), position)
            case exp.UniqueColumnConstraint():
                self._add(table, name, Unique(position=position))
            case exp.CommentColumnConstraint():
                self._update(table, name, position, description=kind.this.name)
            case exp.DefaultColumnConstraint():
                default = _literal(kind.this)
                if default is not None:
                    self._update(table, name, position, default=default)
            case exp.CheckColumnConstraint():
                table.rules.append(self._check(kind, position))
            case exp.Reference():
                table.rules.append(reference(kind, (name,), position))

    # --- constraints --------------------------------------------------------------------------------------------------

    def _constraint(self, entry: exp.Expr, table: Table) -> None:
        named = isinstance(entry, exp.Constraint)
        position = _position(entry.this, table.position) if named else _first_position(entry, table.position)
        for one in entry.expressions if named else (entry,):
            read = next((reads for kind, reads in _CONSTRAINTS if isinstance(one, kind)), None)
            if read is not None:
                read(self, one, table, position)
            elif not isinstance(one, exp.IndexColumnConstraint):
                raise self.error(
                    f"{one.sql(dialect=self.dialect)[:40]!r} in the table {table.qualified!r} is not understood",
                    position,
                    "write columns, PRIMARY KEY, UNIQUE, FOREIGN KEY and CHECK",
                )

    def _primary_key(self, entry: exp.Expr, table: Table, position: Position) -> None:
        self._key(table, self._columns(entry.expressions, table, position), position)

    def _unique(self, entry: exp.Expr, table: Table, position: Position) -> None:
        listed = entry.this.expressions if isinstance(entry.this, exp.Schema) else entry.expressions
        names = self._columns(listed, table, position)
        if len(names) == 1:
            self._add(table, names[0], Unique(position=position))
        else:
            table.rules.append(Unique(fields=names, position=position))

    def _foreign_key(self, entry: exp.Expr, table: Table, position: Position) -> None:
        names = self._columns(entry.expressions, table, position)
        table.rules.append(reference(entry.args["reference"], names, position))

    def _checked(self, entry: exp.Expr, table: Table, position: Position) -> None:
        table.rules.append(self._check(entry, position))

    def _check(self, entry: exp.Expr, position: Position) -> Rule:
        return Expression(sql=entry.this.sql(dialect="spark"), position=position)

    def _key(self, table: Table, names: tuple[str, ...], position: Position) -> None:
        if any(isinstance(rule, PrimaryKey) for rule in table.rules):
            raise self.error(f"the table {table.qualified!r} has two primary keys", position, "remove one")
        table.rules.insert(0, PrimaryKey(fields=names, position=position))

    def _columns(self, listed: list[exp.Expr], table: Table, position: Position) -> tuple[str, ...]:
        names = []
        for one in listed:
            name = one.this.name if isinstance(one, exp.Ordered) else one.name
            if name.casefold() not in table.fields:
                raise self.error(
                    f"a constraint of {table.qualified!r} names {name!r}, which is no column of it",
                    position,
                    f"its columns: {', '.join(field.name for field in table.fields.values())}",
                )
            names.append(table.fields[name.casefold()].name)
        return tuple(names)

    def _add(self, table: Table, name: str, rule: Rule) -> None:
        field = table.fields[name.casefold()]
        if not any(type(one) is type(rule) for one in field.rules):
            table.fields[name.casefold()] = field.model_copy(update={"rules": (*field.rules, rule)})

    def _update(self, table: Table, name: str, position: Position, **facts: Any) -> None:
        field = table.fields.get(name.casefold())
        if field is None:
            raise self.error(f"the table {table.qualified!r} has no column {name!r}", position, "correct the name")
        table.fields[name.casefold()] = field.model_copy(update=facts)


_CONSTRAINTS: Final[tuple[tuple[type[exp.Expr], Callable[..., None]], ...]] = (
    (exp.PrimaryKey, Reader._primary_key),
    (exp.UniqueColumnConstraint, Reader._unique),
    (exp.ForeignKey, Reader._foreign_key),
    (exp.CheckColumnConstraint, Reader._checked),
)


def _with_nested(field: Field, kind: Any) -> Field:
    """The field with what its type says of parts inside, beside their types: what is never null, and comments."""
    if not isinstance(kind, exp.DataType) or kind.find(exp.ColumnConstraint) is None:
        return field
    updates: dict[str, Any] = {}
    if field.fields:
        updates["fields"] = tuple(
            _with_constraints(part, one) for part, one in zip(field.fields, kind.expressions, strict=True)
        )
    parts = ("item",) if field.item is not None else ("key", "value")
    for name, one in zip(parts, kind.expressions, strict=False):
        part = getattr(field, name)
        if part is not None:
            updates[name] = _with_nested(part, one)
    return field.model_copy(update=updates)


def _with_constraints(field: Field, column: Any) -> Field:
    for constraint in column.args.get("constraints") or ():
        match constraint.kind:
            case exp.NotNullColumnConstraint() if not constraint.kind.args.get("allow_null"):
                field = field.model_copy(update={"rules": (*field.rules, Required(position=field.position))})
            case exp.CommentColumnConstraint():
                field = field.model_copy(update={"description": constraint.kind.this.name})
    return _with_nested(field, column.args.get("kind"))


def reference(entry: exp.Expr, names: tuple[str, ...], position: Position) -> ForeignKey:
    """The foreign key of a REFERENCES clause, from the columns of those names."""
    target = entry.this
    table = target.this if isinstance(target, exp.Schema) else target
    to_fields = tuple(one.name for one in target.expressions) if isinstance(target, exp.Schema) else ()
    return ForeignKey(fields=names, to=_names(table)[1], to_fields=to_fields, position=position)


def _names(table: exp.Expr) -> tuple[str, str]:
    """A table's own name, and the one with its schema and catalog."""
    parts = [table.args.get(part) for part in ("catalog", "db", "this")]
    return table.name, ".".join(part.name for part in parts if part is not None and part.name)


def _position(named: Any, otherwise: Position) -> Position:
    """Where an identifier stands in its statement, counted from the statement's own first line."""
    meta = named.meta if isinstance(named, exp.Expr) else {}
    if "line" not in meta:
        return otherwise
    return Position(otherwise.line + int(meta["line"]) - 1, max(int(meta["col"]) - (meta["end"] - meta["start"]), 1))


def _first_position(entry: exp.Expr, otherwise: Position) -> Position:
    named = next((one for one in entry.find_all(exp.Identifier) if "line" in one.meta), None)
    return _position(named, otherwise)


def _literal(value: Any) -> str | int | float | bool | None:
    """A default that is written out; an expression is none."""
    if isinstance(value, exp.Boolean):
        return bool(value.this)
    if isinstance(value, exp.Neg):
        number = _literal(value.this)
        return -number if isinstance(number, int | float) and not isinstance(number, bool) else None
    if not isinstance(value, exp.Literal):
        return None
    if value.is_string:
        return str(value.this)
    try:
        return int(value.this)
    except ValueError:
        return float(value.this)
