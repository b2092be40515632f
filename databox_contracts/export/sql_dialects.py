"""What the SQL dialects can say in a table's definition, one row each, and which names they go by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field as attribute, replace
from enum import Enum
from typing import Final

from databox_contracts.datatypes import Family
from databox_contracts.errors import DataboxError
from databox_contracts.formats.odcs_types import server_dialect

USUAL: Final = "spark"
"""The dialect of a contract whose servers say none: the pipeline runs on Spark."""


class Comments(Enum):
    """How a column is described."""

    NONE = "none"
    INLINE = "inline"
    STATEMENT = "statement"
    OPTIONS = "options"


_NESTED: Final = (Family.ARRAY, Family.MAP, Family.OBJECT)


@dataclass(frozen=True)
class Abilities:
    """What a dialect has. A row that is not here gets the defaults, which every database understands.

    `nested` are the families it has types for, `document` is the type of what it has none for. `types` are its own
    names where sqlglot's are not what holds the values. `key_text` says that a text in a key needs a length, `lengths`
    that the length of a text's type is one. `informational` stands after keys that the database does not check and
    wants to be told so.
    """

    not_null: bool = True
    primary_key: bool = False
    unique: bool = False
    references: bool = False
    checks: bool = False
    comments: Comments = Comments.NONE
    nested: tuple[Family, ...] = ()
    document: str = "TEXT"
    types: dict[Family, str] = attribute(default_factory=dict)
    key_text: bool = False
    lengths: bool = True
    informational: str | None = None


_LAKE: Final = Abilities(
    not_null=False, comments=Comments.INLINE, nested=_NESTED, types={Family.TIME: "STRING", Family.VARIANT: "STRING"}
)
_KEYED: Final = Abilities(primary_key=True, unique=True, references=True)

_ABILITIES: Final[dict[str, Abilities]] = {
    "athena": _LAKE,
    "bigquery": Abilities(
        primary_key=True,
        references=True,
        comments=Comments.OPTIONS,
        nested=(Family.ARRAY, Family.OBJECT),
        document="JSON",
        types={Family.VARIANT: "JSON"},
        informational="NOT ENFORCED",
    ),
    "clickhouse": Abilities(
        lengths=False,
        checks=True,
        comments=Comments.INLINE,
        nested=_NESTED,
        document="String",
        # DateTime has no fractions of a second and ends in 2106.
        types={
            Family.TIMESTAMP: "DateTime64(6)",
            Family.DATE: "Date32",
            Family.TIME: "String",
            Family.VARIANT: "String",
            Family.BINARY: "String",
        },
    ),
    "databricks": Abilities(
        primary_key=True,
        references=True,
        comments=Comments.INLINE,
        nested=_NESTED,
        types={Family.TIME: "STRING"},
    ),
    "doris": Abilities(
        comments=Comments.INLINE,
        nested=_NESTED,
        types={Family.TIME: "STRING", Family.VARIANT: "JSON", Family.BINARY: "STRING"},
    ),
    "dremio": Abilities(
        not_null=False, nested=_NESTED, types={Family.VARIANT: "VARCHAR", Family.TIMESTAMP: "TIMESTAMP"}
    ),
    "drill": Abilities(
        not_null=False, nested=_NESTED, types={Family.VARIANT: "VARCHAR", Family.TIMESTAMP: "TIMESTAMP"}
    ),
    "duckdb": replace(
        _KEYED,
        lengths=False,
        checks=True,
        comments=Comments.STATEMENT,
        nested=_NESTED,
        types={Family.VARIANT: "JSON"},
    ),
    "dune": Abilities(comments=Comments.INLINE, nested=_NESTED, types={Family.VARIANT: "JSON"}),
    "exasol": Abilities(
        primary_key=True,
        references=True,
        document="LONG VARCHAR",
        types={
            Family.VARIANT: "LONG VARCHAR",
            Family.BINARY: "LONG VARCHAR",
            Family.TIME: "VARCHAR(15)",
        },
    ),
    "fabric": Abilities(
        document="VARCHAR(MAX)", types={Family.VARIANT: "VARCHAR(MAX)", Family.BINARY: "VARBINARY(MAX)"}
    ),
    "hive": _LAKE,
    "materialize": Abilities(comments=Comments.STATEMENT, document="JSONB", types={Family.VARIANT: "JSONB"}),
    "mysql": replace(
        _KEYED,
        checks=True,
        comments=Comments.INLINE,
        document="JSON",
        types={Family.VARIANT: "JSON", Family.BINARY: "LONGBLOB", Family.TIME: "TIME(6)"},
        key_text=True,
    ),
    "oracle": replace(
        _KEYED,
        checks=True,
        comments=Comments.STATEMENT,
        document="CLOB",
        types={Family.VARIANT: "CLOB", Family.TIME: "VARCHAR2(15)"},
        key_text=True,
    ),
    "postgres": replace(
        _KEYED,
        checks=True,
        comments=Comments.STATEMENT,
        nested=(Family.ARRAY,),
        document="JSONB",
        types={Family.VARIANT: "JSONB"},
    ),
    "presto": Abilities(comments=Comments.INLINE, nested=_NESTED, types={Family.VARIANT: "JSON"}),
    "redshift": replace(_KEYED, comments=Comments.STATEMENT, document="SUPER", types={Family.VARIANT: "SUPER"}),
    "risingwave": Abilities(
        not_null=False,
        primary_key=True,
        comments=Comments.STATEMENT,
        nested=(Family.ARRAY,),
        document="JSONB",
        types={Family.VARIANT: "JSONB"},
    ),
    "singlestore": Abilities(
        primary_key=True,
        comments=Comments.INLINE,
        document="JSON",
        types={
            Family.VARIANT: "JSON",
            Family.BINARY: "LONGBLOB",
            Family.TIME: "TIME(6)",
            Family.TIMESTAMP: "DATETIME(6)",
        },
        key_text=True,
    ),
    "snowflake": replace(_KEYED, comments=Comments.INLINE, document="VARIANT"),
    "spark": Abilities(comments=Comments.INLINE, nested=_NESTED, types={Family.TIME: "TIME(6)"}),
    "spark2": _LAKE,
    "sqlite": replace(_KEYED, lengths=False, checks=True, types={Family.VARIANT: "TEXT"}),
    "starrocks": Abilities(
        comments=Comments.INLINE, nested=_NESTED, types={Family.TIME: "STRING", Family.VARIANT: "JSON"}
    ),
    "teradata": replace(
        _KEYED,
        checks=True,
        document="JSON",
        types={Family.VARIANT: "JSON", Family.BINARY: "BLOB", Family.BOOLEAN: "BYTEINT"},
        key_text=True,
    ),
    "trino": Abilities(comments=Comments.INLINE, nested=_NESTED, types={Family.VARIANT: "JSON"}),
    "tsql": replace(
        _KEYED,
        checks=True,
        document="NVARCHAR(MAX)",
        types={Family.VARIANT: "NVARCHAR(MAX)", Family.BINARY: "VARBINARY(MAX)"},
        key_text=True,
    ),
}

# Languages of questions: they make no tables.
_NO_TABLES: Final = ("dax", "druid", "prql", "solr", "tableau")


def known_dialects() -> tuple[str, ...]:
    """The dialects of sqlglot that make tables, in the order of their names."""
    from sqlglot import Dialect

    return tuple(sorted(name for name in Dialect.classes if name and name not in _NO_TABLES))


def chosen_dialect(named: str | None, server_types: Iterable[str]) -> str:
    """The dialect of that name, or of that server (`postgresql`); without one that of the contract's servers.

    Raises `DataboxError` for one that makes no tables or that nobody knows; it lists those there are.
    """
    if named is None:
        return server_dialect(server_types) or USUAL
    known = known_dialects()
    plain = named.strip().lower()
    found = plain if plain in known else server_dialect([plain])
    if found is None:
        problem = "makes no tables" if plain in _NO_TABLES else "is no SQL dialect that is known here"
        raise DataboxError(f"{named[:60]!r} {problem}", hint=f"use one of: {', '.join(known)}")
    return found


def abilities(dialect: str) -> Abilities:
    """What the dialect can say."""
    return _ABILITIES.get(dialect, Abilities())
