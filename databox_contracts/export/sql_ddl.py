"""Tables in SQL: `CREATE TABLE` for every dataset, in any dialect that sqlglot writes.

A contract's texts are anybody's: every name is a quoted identifier and every other text a literal, written by sqlglot
from its tree and never put together here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field as attribute
from typing import Any, Final

from databox_contracts import rules
from databox_contracts.export.losses import Loss, Place, Words, columns, losses, unsaid
from databox_contracts.export.row_promises import VALUE_RULES, row_promises
from databox_contracts.export.sql_checks import NoCheckError, condition
from databox_contracts.export.sql_dialects import Abilities, Comments, abilities, chosen_dialect
from databox_contracts.export.sql_types import column_type, type_doubts
from databox_contracts.export.targets import Exported, Target
from databox_contracts.model import Dataset
from databox_contracts.rules import Rule, Severity

_MOST_NAMES: Final = 3

# What SingleStore's writer says of a type that is named as SingleStore names it.
_NOT_MEANT: Final = ("DATATYPE does not support kind", "Data type USER-DEFINED is not supported")


def export_sql(target: Target) -> Exported:
    """The tables, each after those it refers to where there is such an order, then the comments that stand apart.

    The dialect is the target's, else that of the contract's servers, else Spark's. What a rule about a number of rows
    asks of every row is a constraint as well; of a rule that is no error none is made. Raises `DataboxError` for a
    dialect that is not known.
    """
    dialect = chosen_dialect(target.dialect, [server.type for server in target.contract.servers])
    tables = _Tables(target, dialect, abilities(dialect))
    statements, unsupported = _written([*tables.statements()], dialect)
    words = Words(
        dialect,
        rules=tables.kinds(),
        field=("description",) if tables.able.comments is not Comments.NONE else (),
        dataset=("description",) if tables.able.comments is not Comments.NONE else (),
    )
    lost = losses(target, words, judge=tables.judge(words), attributes=_attribute, more=tables.lost)
    said = (f"{dialect}: {message}" for message in dict.fromkeys(unsupported))
    return Exported("".join(f"{statement};\n" for statement in statements), (*lost, *said))


def _written(trees: list[Any], dialect: str) -> tuple[list[str], list[str]]:
    """The texts of the statements, and what sqlglot says it cannot write."""
    from sqlglot import Dialect, ErrorLevel

    texts: list[str] = []
    unsupported: list[str] = []
    for tree in trees:
        generator = Dialect.get_or_raise(dialect).generator(
            identify=True, pretty=True, unsupported_level=ErrorLevel.IGNORE
        )
        texts.append(generator.generate(tree))
        unsupported.extend(one for one in generator.unsupported_messages if not one.startswith(_NOT_MEANT))
    return texts, unsupported


def _attribute(name: str, place: Place) -> str | None:
    return "only tables and columns have comments" if place.field is not None and place.depth > 0 else None


@dataclass
class _Tables:
    """Makes the statements, and keeps which rules are in them and why others are not."""

    target: Target
    dialect: str
    able: Abilities
    lost: list[Loss] = attribute(default_factory=list)
    _notes: dict[tuple[str, str, int], str | None] = attribute(default_factory=dict)

    def statements(self) -> Iterator[Any]:
        """The trees of all statements in order."""
        later: list[Any] = []
        made: list[str] = []
        declared = [dataset for dataset in self.target.datasets if dataset.fields]
        for dataset in self.target.datasets:
            if not dataset.fields:
                self.lost.append(Loss("the table", Place(dataset, None, dataset.name), "the contract names no columns"))
        for dataset in declared:
            made.append(dataset.name)
            yield self._create(dataset, made, later)
        yield from later
        if self.able.comments is Comments.STATEMENT:
            for dataset in declared:
                yield from self._comments(dataset)

    # --- a table ------------------------------------------------------------------------------------------------------

    def _create(self, dataset: Dataset, made: list[str], later: list[Any]) -> Any:
        from sqlglot import exp

        found = columns(self.target.contract, dataset)
        keyed = _keyed(dataset)
        for place in found:
            for what, reason in type_doubts(place, self.dialect, self.able, in_key=place.name in keyed):
                self.lost.append(Loss(what, place, reason))
        parts: list[Any] = [self._column(place, in_key=place.name in keyed) for place in found]
        for place in found:
            parts.extend(self._checks(place))
        parts.extend(self._keys(dataset, {place.name: place for place in found}))
        parts.extend(self._references(dataset, found, made, later))
        options = self._table_comment(dataset)
        return exp.Create(
            this=exp.Schema(this=_table(dataset), expressions=parts),
            kind="TABLE",
            properties=exp.Properties(expressions=options) if options else None,
        )

    def _column(self, place: Place, *, in_key: bool) -> Any:
        from sqlglot import exp

        assert place.field is not None
        type_ = column_type(place, self.dialect, self.able, in_key=in_key)
        constraints: list[Any] = []
        never_null = place.required
        for rule in place.rules:
            promises = list(map(type, row_promises(rule)))
            if rules.Required in promises:
                never_null = True
                if not self.able.not_null:
                    self._note(place, rule, f"{self.dialect} has no required columns")
                elif len(promises) == 1:
                    self._note(place, rule, None)
        if never_null and self.able.not_null:
            constraints.append(exp.NotNullColumnConstraint())
        if self.dialect == "clickhouse":
            # It says of the type whether there are nulls.
            type_.set("nullable", not never_null and not type_.args.get("nested"))
        unique = [rule for rule in place.rules if rule.kind == "unique" and not getattr(rule, "fields", ())]
        if self.able.unique and any(rule.severity is Severity.ERROR for rule in unique):
            constraints.append(exp.UniqueColumnConstraint())
        text = place.field.description.strip()
        if text and self.able.comments is Comments.INLINE:
            constraints.append(exp.CommentColumnConstraint(this=exp.Literal.string(text)))
        if text and self.able.comments is Comments.OPTIONS:
            constraints.append(exp.Properties(expressions=[_option(text)]))
        return exp.ColumnDef(
            this=exp.to_identifier(place.field.column, quoted=True),
            kind=type_,
            constraints=[exp.ColumnConstraint(kind=constraint) for constraint in constraints],
        )

    def _checks(self, place: Place) -> Iterator[Any]:
        from sqlglot import exp

        assert place.field is not None
        length = place.field.type.length if place.field.type is not None else None
        said = any(isinstance(rule, rules.MaxLength) and rule.length <= (length or 0) for rule in place.rules)
        of_type = () if length is None or said or self.able.lengths else (rules.MaxLength(length=length),)
        for rule in (*of_type, *place.rules):
            if self.able.lengths and length is not None and isinstance(rule, rules.MaxLength) and length <= rule.length:
                # The type says it.
                self._note(place, rule, None)
                continue
            promises = [promise for promise in row_promises(rule) if not isinstance(promise, rules.Required)]
            if not promises or not self.able.checks:
                continue
            try:
                found = [condition(one, place.field.column, place.field.type, self.dialect) for one in promises]
            except NoCheckError as error:
                self._note(place, rule, str(error))
                continue
            self._note(place, rule, None)
            yield from (exp.CheckColumnConstraint(this=one) for one in found)

    def _keys(self, dataset: Dataset, found: dict[str, Place]) -> Iterator[Any]:
        from sqlglot import exp

        whole = Place(dataset, None, dataset.name)
        options = [self.able.informational] if self.able.informational else None
        for rule in dataset.rules:
            match rule:
                case rules.PrimaryKey(severity=Severity.ERROR) if self.able.primary_key:
                    named = self._named(whole, rule, found)
                    if named:
                        yield exp.PrimaryKey(expressions=named, options=options)
                case rules.Unique(severity=Severity.ERROR) if self.able.unique:
                    named = self._named(whole, rule, found)
                    if named:
                        yield exp.UniqueColumnConstraint(this=exp.Schema(expressions=named))

    def _named(self, place: Place, rule: Any, found: dict[str, Place]) -> list[Any]:
        """The columns of a key; none, and the reason noted, where a part of it is no column."""
        inside = [name for name in rule.fields if name not in found]
        self._note(place, rule, "a key of a table is made of columns" if inside or not rule.fields else None)
        return [] if inside else _identifiers([_column_name(found[name]) for name in rule.fields])

    # --- references ---------------------------------------------------------------------------------------------------

    def _references(
        self, dataset: Dataset, found: tuple[Place, ...], made: list[str], later: list[Any]
    ) -> Iterator[Any]:
        from sqlglot import exp

        if not self.able.references:
            return
        whole = Place(dataset, None, dataset.name)
        for place in (*found, whole):
            for rule in place.rules:
                if not isinstance(rule, rules.ForeignKey) or rule.severity is not Severity.ERROR:
                    continue
                names = rule.fields or ((place.name,) if place.field is not None else ())
                other = next((one for one in self.target.datasets if one.name == rule.to), None)
                reason = self._unreferable(names, other, rule, found)
                self._note(place, rule, reason)
                if reason is not None or other is None:
                    continue
                known = {one.name: one for one in found}
                key = self._foreign_key(other, rule, [_column_name(known[name]) for name in names])
                # Only SQLite takes a reference to what is not there yet.
                if other.name in made or self.dialect == "sqlite":
                    yield key
                else:
                    later.append(
                        exp.Alter(this=_table(dataset), kind="TABLE", actions=[exp.AddConstraint(expressions=[key])])
                    )

    def _unreferable(
        self, names: tuple[str, ...], other: Dataset | None, rule: rules.ForeignKey, found: tuple[Place, ...]
    ) -> str | None:
        if other is None:
            return "it refers to a table that is not among these"
        if any(name not in {place.name for place in found} for name in names):
            return "a key of a table is made of columns"
        theirs = {place.name: place for place in columns(self.target.contract, other)}
        if any(name not in theirs for name in rule.to_fields):
            return "a key of a table is made of columns"
        if not _is_key(other, rule.to_fields, self.able):
            return "what it refers to is declared as no key"
        return None

    def _foreign_key(self, other: Dataset, rule: rules.ForeignKey, names: list[str]) -> Any:
        from sqlglot import exp

        theirs = {place.name: place for place in columns(self.target.contract, other)}
        there = _identifiers([_column_name(theirs[name]) for name in rule.to_fields])
        return exp.ForeignKey(
            expressions=_identifiers(names),
            reference=exp.Reference(this=exp.Schema(this=_table(other), expressions=there)),
            options=[self.able.informational] if self.able.informational else None,
        )

    # --- comments -----------------------------------------------------------------------------------------------------

    def _table_comment(self, dataset: Dataset) -> list[Any]:
        from sqlglot import exp

        text = dataset.description.strip()
        if text and self.able.comments is Comments.INLINE:
            return [exp.SchemaCommentProperty(this=exp.Literal.string(text))]
        return [_option(text)] if text and self.able.comments is Comments.OPTIONS else []

    def _comments(self, dataset: Dataset) -> Iterator[Any]:
        from sqlglot import exp

        table = _table(dataset)
        if dataset.description.strip():
            text = exp.Literal.string(dataset.description.strip())
            yield exp.Comment(this=table, kind="TABLE", expression=text)
        for field in dataset.fields:
            if field.description.strip():
                column = exp.Column(
                    this=exp.to_identifier(field.column, quoted=True),
                    table=table.this.copy(),
                    db=table.args.get("db"),
                    catalog=table.args.get("catalog"),
                )
                text = exp.Literal.string(field.description.strip())
                yield exp.Comment(this=column, kind="COLUMN", expression=text)

    # --- what is lost -------------------------------------------------------------------------------------------------

    def _note(self, place: Place, rule: Rule, reason: str | None) -> None:
        """Keeps why the rule is not said there, or that it is; what a part of it lacks, it lacks."""
        key = _key(place, rule)
        self._notes[key] = self._notes.get(key) or reason

    def kinds(self) -> tuple[str, ...]:
        """The kinds of rules that the dialect can say of some column."""
        able = self.able
        found = {
            "required": able.not_null,
            "unique": able.unique,
            "primary_key": able.primary_key,
            "foreign_key": able.references,
            "null_count": able.not_null,
            "missing_count": able.checks,
            "invalid_count": able.checks,
            **dict.fromkeys(VALUE_RULES, able.checks),
        }
        return tuple(kind for kind, is_able in found.items() if is_able)

    def judge(self, words: Words) -> Any:
        """Why a rule is not in the statements, None where it is."""

        def judged(rule: Rule, place: Place) -> str | None:
            if _key(place, rule) in self._notes:
                return self._notes[_key(place, rule)]
            reason = unsaid(rule, words)
            if reason is None and place.depth > 0:
                return "a constraint is one of columns"
            if reason is None and not (rule.kind == "unique" and place.field is not None):
                return "SQL has no limits of a number of rows"
            return reason

        return judged


def _key(place: Place, rule: Rule) -> tuple[str, str, int]:
    # Two fields may have the same rule, and a name may be a field's and the dataset's.
    name = place.name if place.field is not None else ""
    return place.dataset.name, name, id(rule)


def _keyed(dataset: Dataset) -> set[str]:
    """The dotted names of the fields of all keys that are written."""
    found: set[str] = set()
    for rule in dataset.rules:
        if isinstance(rule, rules.PrimaryKey | rules.Unique | rules.ForeignKey):
            found.update(rule.fields)
    for field in dataset.fields:
        if any(isinstance(rule, rules.Unique | rules.ForeignKey) for rule in field.rules):
            found.add(field.name)
    return found


def _is_key(dataset: Dataset, names: tuple[str, ...], able: Abilities) -> bool:
    """Whether the fields are a key of the table that the dialect declares."""
    for rule in dataset.rules:
        written = able.primary_key if isinstance(rule, rules.PrimaryKey) else able.unique
        is_key = isinstance(rule, rules.PrimaryKey | rules.Unique) and rule.severity is Severity.ERROR
        if written and is_key and set(getattr(rule, "fields", ())) == set(names):
            return True
    return (
        able.unique
        and len(names) == 1
        and any(
            field.name == names[0] and rule.kind == "unique" and rule.severity is Severity.ERROR
            for field in dataset.fields
            for rule in field.rules
        )
    )


def _table(dataset: Dataset) -> Any:
    """The table's name; a physical one with dots in it names schema and catalog too."""
    from sqlglot import exp

    steps = dataset.physical_name.split(".") if dataset.physical_name is not None else [dataset.name]
    if len(steps) > _MOST_NAMES or not all(steps):
        steps = [dataset.table_name]
    named = [exp.to_identifier(step, quoted=True) for step in reversed(steps)]
    return exp.Table(**dict(zip(("this", "db", "catalog"), named, strict=False)))


def _column_name(place: Place) -> str:
    return place.field.column if place.field is not None else place.name


def _identifiers(names: list[str]) -> list[Any]:
    from sqlglot import exp

    return [exp.to_identifier(name, quoted=True) for name in names]


def _option(text: str) -> Any:
    from sqlglot import exp

    return exp.Property(this=exp.Var(this="description"), value=exp.Literal.string(text))
