"""The newest files of a table, and their rows as a bounded DataFrame that knows where each is from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.types import StringType, StructField, StructType

from databox_contracts.errors import UnreadableTableError
from databox_contracts.spark.counting import positional
from databox_contracts.spark.failures import SPARK_ERRORS, conditions, unreadable
from databox_contracts.spark.newest import DataFile, is_time_like, newest_writes, partition_values
from databox_contracts.spark.row_groups import Footer, footer_of, last_groups, read_last, shares

PLACE: Final = "place"
_OWN_NAME: Final = "_databox_place_of_row"
_ENOUGH: Final = 64 * 2**20
"""Bytes of files that do not tell how many rows they have."""


@dataclass(frozen=True, slots=True)
class Recent:
    """The sampled rows under positional names, the place of each as the last column, and what they are.

    `files` are the paths below the table's root. `complete` says that the newest write is in it with all of its rows.
    `chosen_by` are the columns that the sample was chosen by, whose values are therefore always new.
    """

    df: DataFrame
    schema: StructType
    how: str
    files: tuple[str, ...] = ()
    complete: bool = False
    untyped: bool = False
    chosen_by: tuple[str, ...] = ()
    file_bytes: int | None = None
    file_rows: int | None = None
    mixed: bool = False

    @property
    def rows(self) -> DataFrame:
        """The rows under their own names."""
        width = len(self.schema.fields)
        return self.df.select(*(positional(at) for at in range(width))).toDF(*self.schema.names)

    @property
    def located(self) -> DataFrame:
        """The same with the place as the last column."""
        return self.df.toDF(*self.schema.names, _OWN_NAME)


@dataclass(frozen=True, slots=True)
class Choice:
    """The newest files, with their footers where these could be read, and what there is of the rest of their writes."""

    root: str
    files: tuple[DataFile, ...]
    footers: tuple[Footer, ...]
    newest: int
    whole: bool

    def shown(self, file: DataFile) -> str:
        """A file's place, by its path below the root."""
        return file.path[len(self.root) :].lstrip("/")

    @property
    def rows(self) -> int:
        """How many rows they have, as far as that is known."""
        return sum(one.rows for one in self.footers)

    @property
    def chosen_by(self) -> tuple[str, ...]:
        """The partition columns that tell a time."""
        levels: dict[str, list[str]] = {}
        for file in self.files:
            for name, value in partition_values(file.path, self.root).items():
                levels.setdefault(name, []).append(f"{name}={value}")
        return tuple(name for name, values in levels.items() if is_time_like(values))

    @property
    def facts(self) -> dict[str, Any]:
        """What a sample of them has in any case."""
        return {"files": tuple(self.shown(one) for one in self.files), "chosen_by": self.chosen_by}


def choose(batches: Iterator[list[DataFile]], root: str, rows: int, most: int, *, parquet: bool, shown: str) -> Choice:
    """The newest files of batches of equal age, until they have so many rows where `parquet` footers tell that.

    Raises `UnreadableTableError`, which names the table as `shown`, for a file that is not readable.
    """
    files: list[DataFile] = []
    footers: list[Footer] = []
    newest, whole = 0, False
    for written, all_of_it in newest_writes(batches, most=most):
        if not files:
            newest, whole = len(written), all_of_it
        files += written
        if parquet:
            footers += [_footer(one, shown) for one in written]
        enough = sum(one.rows for one in footers) >= rows if parquet else sum(one.size for one in files) >= _ENOUGH
        if enough:
            break
    return Choice(root, tuple(files), tuple(footers), newest, whole)


def _footer(file: DataFile, shown: str) -> Footer:
    try:
        return footer_of(file.path)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableTableError(
            shown, f"{file.name} is damaged or of another format", hint="Check the path, its format and the file."
        ) from error


# --- reading ----------------------------------------------------------------------------------------------------------


def of_parquet(spark: Any, choice: Choice, path: str, rows: int) -> Recent:
    """Recent rows of local Parquet files. Raises `UnreadableTableError`."""
    schemas = [one.schema for one in choice.footers]
    alike = all(schema.equals(schemas[0]) for schema in schemas)
    reader = spark.read.option("basePath", choice.root).option("mergeSchema", str(not alike).lower())
    try:
        df = reader.parquet(*(one.path for one in choice.files))
        df.schema  # noqa: B018
    except SPARK_ERRORS as error:
        if alike or not any("MERGE" in name for name in conditions(error)):
            raise unreadable(path, error) from error
        # Of files that do not go together, those like the newest: they are what the table is becoming.
        return replace(of_parquet(spark, _alike(choice), path, rows), mixed=True)
    inside = {name for one in choice.files for name in partition_values(one.path, choice.root)}
    exact = alike and all(one.exact for one in choice.footers) and not inside & set(schemas[0].names)
    if choice.rows > rows and exact and int(spark.version.split(".")[0]) >= 4:
        return _of_row_groups(spark, choice, df.schema, rows)
    located = df.select("*", below(F.col("_metadata.file_path"), choice.root))
    return limited(as_positional(located), df.schema, choice, rows)


def _alike(choice: Choice) -> Choice:
    like = [at for at, one in enumerate(choice.footers) if one.schema.equals(choice.footers[0].schema)]
    return Choice(
        choice.root,
        tuple(choice.files[at] for at in like),
        tuple(choice.footers[at] for at in like),
        newest=sum(at < choice.newest for at in like),
        whole=choice.whole and like[: choice.newest] == list(range(choice.newest)),
    )


def below(uri: Column, root: str) -> Column:
    """The place of a row by what Spark calls its file: the path below the root, as the file system has it."""
    # A plus stands for itself in a path.
    path = F.regexp_replace(F.url_decode(F.replace(uri, F.lit("+"), F.lit("%2B"))), "^file:/+", "/")
    return F.substring(path, len(root.rstrip("/")) + 2, 10_000).alias(PLACE)


def limited(found: DataFrame, schema: StructType, choice: Choice, rows: int) -> Recent:
    """So many rows of files that are read by Spark; `found` has their places as its last column."""
    known = bool(choice.footers)
    all_fit = known and choice.rows <= rows
    # One task that stops early; a limit over many would take what comes first.
    df = found if all_fit else found.coalesce(1).limit(rows)
    how = f"all rows of {_files(choice)}" if all_fit else f"at most the first {rows} rows of {_files(choice)}"
    first = choice.footers[: choice.newest]
    return Recent(
        df,
        schema,
        how,
        complete=all_fit and choice.whole and len(first) == choice.newest,
        file_bytes=sum(sum(one.group_bytes) for one in choice.footers) if known else None,
        file_rows=choice.rows if known else None,
        **choice.facts,
    )


def _of_row_groups(spark: Any, choice: Choice, schema: StructType, rows: int) -> Recent:
    """Read here and given to Spark: Spark itself reads a file from its beginning, or all of it."""
    data = [field for field in schema.fields if field.name in set(choice.footers[0].schema.names)]
    columns = [field.name for field in schema.fields if field.name not in set(choice.footers[0].schema.names)]
    taken = shares(choice.footers, rows)
    tables: list[pa.Table] = []
    opened = [last_groups(footer, count) for footer, count in zip(choice.footers, taken, strict=True)]
    for file, footer, count in zip(choice.files, choice.footers, taken, strict=True):
        table = read_last(footer, count).select([field.name for field in data]).replace_schema_metadata(None)
        values = {name.lower(): value for name, value in partition_values(file.path, choice.root).items()}
        for text in (*(values.get(name.lower()) for name in columns), choice.shown(file)):
            table = table.append_column(
                f"x{table.num_columns}", pa.array([text], pa.string()).take([0] * table.num_rows)
            )
        tables.append(table)
    whole = pa.concat_tables(tables)
    names = [*(f"d{at}" for at in range(len(data))), *(f"p{at}" for at in range(len(columns))), PLACE]
    types = [*(field.dataType for field in data), *(StringType() for _ in columns), StringType()]
    given = StructType([StructField(name, type_) for name, type_ in zip(names, types, strict=True)])
    df = spark.createDataFrame(whole.rename_columns(names), schema=given)
    of_data = {field.name: F.col(f"d{at}") for at, field in enumerate(data)}
    of_path = {name: F.col(f"p{at}") for at, name in enumerate(columns)}
    chosen = [
        (of_data[field.name] if field.name in of_data else of_path[field.name].cast(field.dataType)).alias(
            positional(at)
        )
        for at, field in enumerate(schema.fields)
    ]
    return Recent(
        df.select(*chosen, F.col(PLACE)),
        schema,
        f"{whole.num_rows} rows of the last row groups of {_files(choice)}",
        file_bytes=sum(
            footer.group_bytes[at] for footer, groups in zip(choice.footers, opened, strict=True) for at in groups
        ),
        file_rows=sum(
            footer.groups[at] for footer, groups in zip(choice.footers, opened, strict=True) for at in groups
        ),
        **choice.facts,
    )


def as_positional(df: DataFrame) -> DataFrame:
    """Columns by position, the last one being the place."""
    return df.toDF(*(positional(at) for at in range(len(df.columns) - 1)), PLACE)


def _files(choice: Choice) -> str:
    return f"the {len(choice.files)} newest files" if len(choice.files) > 1 else "the newest file"
