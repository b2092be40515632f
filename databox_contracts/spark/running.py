"""Running what has to be counted: one job over a narrow table, concurrent ones over the columns of a wide one.

A rule that ends its job on a row is found by halving: the others are counted all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import pyspark
from pyspark import inheritable_thread_target
from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from databox_contracts.spark.counting import Condition, Measured, RowCheck, positional
from databox_contracts.spark.failures import SPARK_ERRORS, in_words, unlogged

WIDE: Final = 60
"""Rules about more columns than these are counted in chunks."""
COLUMNS: Final = 25
"""A chunk takes columns until it has so many, or"""
MEASURES: Final = 60
"""so many aggregates; columns that one rule compares stay together whatever their number."""
CHUNKS: Final = 40
"""With more chunks than these they are larger instead."""
FILTERED_COLUMNS: Final = 8
FILTERED_RULES: Final = 20
"""One query that filters rows, for samples, is about so many columns and rules."""
AT_ONCE: Final = 4
"""So many chunks are counted at a time."""

Countable: TypeAlias = RowCheck | Measured
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of rows, the aggregates of each check by its id, and why the others could not be counted."""

    rows: int
    found: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


def run_counts(
    view: DataFrame,
    chunks: Sequence[Sequence[Countable]],
    *,
    part_done: Callable[[], None] = lambda: None,
) -> Counts:
    """Count for all checks of all chunks, each chunk in a job of its own. Errors of Spark pass through.

    Each chunk counts the rows. Where they do not see the same number, the table is not the same each time it is read,
    and everything is counted again in one job.
    """
    with unlogged():
        if len(chunks) == 1:
            return _guarded(view, chunks[0])
        found = _at_once(view, chunks, part_done)
        if len({one.rows for one in found}) > 1:
            return _guarded(view, [check for chunk in chunks for check in chunk])
    return Counts(
        found[0].rows,
        {id_: values for one in found for id_, values in one.found.items()},
        {id_: reason for one in found for id_, reason in one.refused.items()},
    )


def chunked(checks: Sequence[Countable], *, wide: int = WIDE) -> list[list[Countable]]:
    """The checks in chunks that share no column; in a single one where they are about at most `wide` columns."""
    groups = _connected(checks)
    width = sum(len(group.columns) for group in groups)
    if width <= wide:
        return [list(checks)]
    most_columns = max(COLUMNS, width // CHUNKS)
    most_measures = max(MEASURES, sum(map(_size, checks)) // CHUNKS)
    chunks: list[list[Countable]] = []
    columns = measures = 0
    for group in groups:
        needed = sum(_size(check) for check in group.checks)
        if not chunks or columns + len(group.columns) > most_columns or measures + needed > most_measures:
            chunks.append([])
            columns = measures = 0
        chunks[-1].extend(group.checks)
        columns += len(group.columns)
        measures += needed
    return chunks


def in_small_parts(checks: Sequence[RowCheck]) -> list[list[RowCheck]]:
    """The checks in order, in parts that Spark's planner takes as conditions of a filter.

    From a filter over renamed columns it derives others, twice as many for each column: at 20 it runs out of memory.
    """
    parts: list[list[RowCheck]] = []
    columns: frozenset[str] = frozenset()
    for check in checks:
        columns |= columns_of(check)
        if not parts or len(columns) > FILTERED_COLUMNS or len(parts[-1]) >= FILTERED_RULES:
            parts.append([])
            columns = columns_of(check)
        parts[-1].append(check)
    return parts


# --- which checks belong together -------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Group:
    columns: set[str]
    checks: list[Countable]


def _connected(checks: Sequence[Countable]) -> list[_Group]:
    """The checks grouped so that no two groups look at the same column, in the order of each group's first check."""
    groups: list[_Group] = []
    home: dict[str, _Group] = {}
    for check in checks:
        reads = columns_of(check)
        # What looks at no column can be counted anywhere.
        touched = list(dict.fromkeys(home[name] for name in sorted(reads) if name in home))
        if not touched:
            groups.append(_Group(set(), []))
            touched = groups[-1:]
        joined = touched[0] if len(touched) == 1 else min(touched, key=groups.index)
        for other in touched:
            if other is not joined:
                joined.columns |= other.columns
                joined.checks += other.checks
                groups.remove(other)
        joined.columns |= reads
        joined.checks.append(check)
        home.update(dict.fromkeys(joined.columns, joined))
    return groups


_NAME: Final = re.compile(r"\bc[0-9]+\b")


def columns_of(check: Countable) -> frozenset[str]:
    """The columns of the view that a check looks at, by their positional names.

    More than those for a condition in SQL that has such a name in a text; it is only counted with more others then.
    """
    if isinstance(check, Condition):
        return frozenset(_NAME.findall(check.text))
    if isinstance(check, Measured):
        return check.reads
    return frozenset({positional(check.location.column)})


def _size(check: Countable) -> int:
    return len(check.columns) if isinstance(check, Measured) else 1


# --- running them -----------------------------------------------------------------------------------------------------


def _at_once(view: DataFrame, chunks: Sequence[Sequence[Countable]], part_done: Callable[[], None]) -> list[Counts]:
    """The counts of each chunk, in order; the error of the first chunk that has one."""
    guarded = inheriting(view.sparkSession, _guarded)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="counting") as pool:
        jobs = [pool.submit(guarded, view, chunk) for chunk in chunks]
        try:
            for job in as_completed(jobs):
                job.result()
                part_done()
        except BaseException:
            for job in jobs:
                job.cancel()
            raise
        return [job.result() for job in jobs]


def inheriting(session: SparkSession, work: Callable[..., T]) -> Callable[..., T]:
    """The same for another thread, with this thread's tags and properties of jobs, where PySpark can pass them on."""
    if int(pyspark.__version__.split(".")[0]) < 4:
        return work
    # Without a Java thread for each of Python's it gives the session back.
    wrap: Any = inheritable_thread_target(session)
    wrapped: Callable[..., T] = wrap(work) if callable(wrap) else work
    return wrapped


def _guarded(view: DataFrame, checks: Sequence[Countable]) -> Counts:
    """All of it in one job, unless a rule ends it."""
    safe = [check for check in checks if isinstance(check, Measured) or not check.may_fail]
    suspects = [check for check in checks if not isinstance(check, Measured) and check.may_fail]
    try:
        return _aggregate(view, checks)
    except SPARK_ERRORS:
        if not suspects:
            raise
    counted = _aggregate(view, safe)
    found = dict(counted.found)
    refused: dict[str, str] = {}
    for part in _apart(view, suspects):
        found |= part.found
        refused |= part.refused
    return Counts(counted.rows, found, refused)


def _apart(view: DataFrame, suspects: Sequence[RowCheck]) -> Iterator[Counts]:
    """In ever smaller parts where one fails, so that each rule that does is alone in the end."""
    try:
        yield _aggregate(view, suspects)
    except SPARK_ERRORS as error:
        if len(suspects) == 1:
            yield Counts(0, {}, {suspects[0].check.id: in_words(error)})
            return
        half = len(suspects) // 2
        yield from _apart(view, suspects[:half])
        yield from _apart(view, suspects[half:])


def _aggregate(view: DataFrame, checks: Sequence[Countable]) -> Counts:
    columns = [_columns(check, view) for check in checks]
    measures = [F.count(F.lit(1)), *(column for group in columns for column in group)]
    row = view.agg(*(measure.alias(f"m{at}") for at, measure in enumerate(measures))).collect()[0]
    found: dict[str, Sequence[Any]] = {}
    at = 1
    for check, group in zip(checks, columns, strict=True):
        found[check.check.id] = row[at : at + len(group)]
        at += len(group)
    return Counts(int(row[0]), found)


def _columns(check: Countable, view: DataFrame) -> tuple[Column, ...]:
    return check.columns if isinstance(check, Measured) else (F.count_if(check.violating(view)),)
