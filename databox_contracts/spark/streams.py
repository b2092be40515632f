"""Contracts on Structured Streaming: every micro-batch is held to the contract as a table would be."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, get_args

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from databox_contracts.errors import DataboxError, PublicationError, StreamStoppedError
from databox_contracts.model import Contract, Mode
from databox_contracts.plan import Plan, build_plan
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import HasType
from databox_contracts.schema_modes import ModesGiven, effective_modes, is_incomplete
from databox_contracts.spark.failures import SPARK_ERRORS, in_words
from databox_contracts.spark.given import Given
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.modes import Applied
from databox_contracts.spark.modes_refusal import new_table, refusal
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.publication import OnViolation
from databox_contracts.spark.reasons import FREE_NAMES, no_room_for_reasons
from databox_contracts.spark.schema import type_text
from databox_contracts.spark.stream_batches import Batches
from databox_contracts.spark.stream_columns import Growth, StreamModes
from databox_contracts.spark.stream_journal import HOME, StreamJournal
from databox_contracts.spark.stream_reports import BatchReport
from databox_contracts.spark.stream_rules import event_time, stopping
from databox_contracts.spark.stream_sinks import FunctionSink, Sink, TableSink
from databox_contracts.spark.tables import TablePlace, read_published

__all__ = ["BatchReport", "ContractStream", "enforce_stream"]


def enforce_stream(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    checkpoint: Path | str,
    place: TablePlace | None = None,
    foreach_batch: Callable[[DataFrame, int], None] | None = None,
    quarantine: Path | str | None = None,
    on_violation: OnViolation = "quarantine",
    watermark: timedelta | None = None,
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
    samples: int = 5,
    timestamp_field: str | None = None,
    references: Mapping[str, DataFrame] | None = None,
    schema_modes: ModesGiven = None,
    on_batch: Callable[[BatchReport], None] | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> ContractStream:
    """Start a query that lets the rows of a stream go on which keep the contract, and holds the others.

    Each micro-batch is written once and judged with the rules and verdicts of `verify`. Rows that break an error rule
    of their own, or repeat a key, are held with the reasons (`on_violation="quarantine"`); "fail" stops the query with
    a `ContractViolationError` before anything of the batch is published; "warn" lets all rows go on. Rules about the
    whole table (row count, statistics, freshness, latency, queries, counts with a threshold) are judged for each batch
    and reported, and neither hold a row nor stop the query.

    A key may occur once in the stream: a row whose key an earlier batch had is held, and so are all rows of a key that
    one batch repeats. The keys are kept in the checkpoint: all of them, or with a `watermark` those that a row can meet
    whose time is not further behind the newest one of the batches before than that delay. Rows later than that are
    judged and counted as late. The time is that of `timestamp_field`, else the dataset's only required timestamp.

    Valid rows go to the table `place`, which gets one version with each batch (`read_published` opens it), held rows
    beside it, both in one step: a restart loses and repeats nothing. Or they go to `foreach_batch(valid, number)` and
    held rows to the directory `quarantine`; after a kill the function may be called again with the number and the rows
    of the last batch. `checkpoint` is a directory on a file system that this process shares with Spark; the reports of
    the batches are kept there. `trigger` are the arguments of Spark's `trigger`, such as `{"availableNow": True}`.

    `schema_modes` (a word, or a mapping from some of `tables`, `columns` and `data_type`) goes before the contract's
    own, and is applied to each batch as `publish` applies it: before its rules are judged, and counted in its report.
    A stream's columns are the same as long as it runs. After a restart with others, or where the table had others, the
    table takes new undeclared and variant columns, and is null in those that it alone has, if their mode is `evolve`;
    other differences stop the stream before it publishes anything. `foreach_batch` gets all columns that there are.
    `tables` is asked as long as there is no table: under `freeze` the stream does not start, under `discard_row` and
    `discard_value` the rows of its batches are discarded. A contract that leaves columns or types open takes those of
    the stream for a new table and for a function, and then those that the table has.

    Over Spark Connect the batches, and all functions given here, run in the server's Python on the server's machine;
    `references` cannot be given there.

    Raises `ContractViolationError` where the stream's columns already break the contract (`DataValidationError` where
    they break a frozen schema), `PublicationError` for places that cannot be used, `DataboxError` for modes that there
    are not.
    """
    _check_arguments(df, checkpoint, place, foreach_batch, quarantine, on_violation, references)
    home = Path(checkpoint).absolute()
    plan = build_plan(contract, contract.dataset(dataset))
    modes = effective_modes(contract, plan.dataset, run=schema_modes)
    growth = Growth(plan, modes, str(df.sparkSession.conf.get("spark.sql.caseSensitive")) == "true")
    table = TableSink(place, clock, growth) if place is not None else None
    first_load = table is None or table.is_new()
    incomplete = not first_load and place is not None and is_incomplete(plan.dataset)
    known = read_published(df.sparkSession, place).schema if incomplete and place is not None else None
    applying = StreamModes(plan, modes, known, first_load)
    only_warns = on_violation == "warn" or contract.enforcement.only_warns(clock().date())
    applied = applying.apply(df)
    if table is not None and first_load and modes.tables is Mode.FREEZE:
        applied = applied.refusing(new_table(plan.dataset, Mode.FREEZE), _IS_NEW)
    given = replace(Given.at(clock(), timestamp_field, references), applied=applied)
    _check_columns(applied.df, plan, "warn" if only_warns else on_violation, given)
    no_room = no_room_for_reasons(applied.df.columns) if on_violation == "quarantine" else None
    if no_room is not None:
        raise PublicationError(str(place.link if place is not None else checkpoint), no_room, hint=FREE_NAMES)
    if watermark is not None:
        _check_watermark(applied.df, plan, watermark, timestamp_field)
    if table is not None:
        table.check(df.sparkSession, applied.df)
    journal = StreamJournal(home)
    stream = journal.open(_identity(applied.df, plan, place, watermark))
    sink: Sink = (
        table
        if table is not None
        else FunctionSink(
            foreach_batch or _nowhere,
            Path(quarantine).absolute() if quarantine is not None else None,
            stream,
            home / HOME / "work",
        )
    )
    batches = Batches(
        plan=plan,
        sink=sink,
        checkpoint=home,
        stream=stream,
        on_violation=on_violation,
        samples=samples,
        watermark=watermark,
        timestamp_field=timestamp_field,
        references=references,
        clock=clock,
        on_batch=on_batch,
        modes=applying,
    )
    handler = _Handler(batches)
    logging.getLogger("py4j.clientserver").addFilter(_is_not_ours)
    writer = df.writeStream.foreachBatch(handler).option("checkpointLocation", str(home))
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    try:
        query = writer.start()
    except SPARK_ERRORS as error:
        hint = _SERVERS_PYTHON if _is_remote(df) else None
        raise StreamStoppedError(query_name or str(home), in_words(error), hint=hint) from error
    return ContractStream(query, journal, handler.failures)


class ContractStream:
    """A running stream: Spark's query, and what its batches said. What Spark's query has, this has too."""

    def __init__(self, query: StreamingQuery, journal: StreamJournal, failures: list[DataboxError]) -> None:
        self.query = query
        self._journal = journal
        self._failures = failures

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802
        """As Spark's. Raises the `ContractViolationError` or other error of ours that ended it."""
        try:
            return self.query.awaitTermination(timeout)  # type: ignore[arg-type]
        except StreamingQueryException as error:
            reason = self._reason(error)
        # Outside, since Spark's own error quotes a traceback of ours and perhaps a row.
        raise reason

    def processAllAvailable(self) -> None:  # noqa: N802
        """As Spark's. Raises as `awaitTermination`."""
        try:
            self.query.processAllAvailable()
            return
        except StreamingQueryException as error:
            reason = self._reason(error)
        raise reason

    def stop(self) -> None:
        """End the query; a batch that is not complete is done again by the next start."""
        self.query.stop()

    def reports(self) -> list[BatchReport]:
        """The reports of the batches that are complete, those before a restart too, the last 1000 of them."""
        return self._journal.reports()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.query, name)

    def _reason(self, error: StreamingQueryException) -> DataboxError:
        if self._failures:
            return self._failures[-1]
        said = self._journal.failure()
        name = self.query.name or str(self.query.id)
        return StreamStoppedError(name, said if said is not None else in_words(error))


@dataclass
class _Handler:
    """What Spark calls with each batch."""

    batches: Batches
    failures: list[DataboxError] = field(default_factory=list)

    def __call__(self, df: DataFrame, batch: int) -> None:
        try:
            self.batches.process(df, batch)
        except DataboxError as error:
            self._fail(error)
            raise
        except OSError as error:
            failure = PublicationError(str(self.batches.checkpoint), f"the file system says {error.strerror or error}")
            self._fail(failure)
            raise failure from error
        except SPARK_ERRORS as error:
            # Spark's own text quotes rows.
            stopped = StreamStoppedError(self.batches.stream, f"batch {batch} failed: {in_words(error)}")
            self._fail(stopped)
            raise stopped from None
        except Exception as error:
            stopped = StreamStoppedError(
                self.batches.stream, f"a function given to it raised {type(error).__name__} on batch {batch}"
            )
            self._fail(stopped)
            raise stopped from error

    def _fail(self, error: DataboxError) -> None:
        self.failures.append(error)
        StreamJournal(self.batches.checkpoint).fail(str(error))


def _is_not_ours(record: logging.LogRecord) -> bool:
    """py4j logs with its traceback what a batch raises; an error of ours reaches the user by `awaitTermination`."""
    return not (record.exc_info and isinstance(record.exc_info[1], DataboxError))


def _nowhere(valid: DataFrame, batch: int) -> None:
    """Take nothing."""


_WAYS: Final = "Give either `place`, a table, or `foreach_batch`, a function."


def _check_arguments(
    df: DataFrame,
    checkpoint: Path | str,
    place: TablePlace | None,
    foreach_batch: Callable[[DataFrame, int], None] | None,
    quarantine: Path | str | None,
    on_violation: str,
    references: Mapping[str, DataFrame] | None,
) -> None:
    def refuse(reason: str, hint: str) -> None:
        raise PublicationError(str(place.link if place is not None else checkpoint), reason, hint=hint)

    if not df.isStreaming:
        refuse("the DataFrame is no stream", "Read it with spark.readStream, or publish it with `publish`.")
    if (place is None) == (foreach_batch is None):
        refuse("the stream needs one place to go to", _WAYS)
    if on_violation not in get_args(OnViolation):
        refuse(f"on_violation is {on_violation!r}", f"Use one of {', '.join(get_args(OnViolation))}.")
    if references and _is_remote(df):
        refuse("over Spark Connect a stream cannot look at other tables", "Use a classic session for `references`.")
    if place is not None and quarantine is not None:
        refuse("held rows of a table go beside it", "Leave out `quarantine`.")
    if foreach_batch is not None and on_violation == "quarantine" and quarantine is None:
        refuse("there is no place for held rows", "Give `quarantine`, a directory.")
    if ":/" in str(checkpoint):
        refuse("the checkpoint is no local path", "Name a directory that this process and Spark share.")


_SERVERS_PYTHON: Final = "Over Spark Connect the server runs the batches in its own Python, which needs this package."


def _is_remote(df: DataFrame) -> bool:
    return type(df).__module__.startswith("pyspark.sql.connect.")


_IS_NEW: Final = "the table is new, which its tables mode does not allow"


def _check_columns(df: DataFrame, plan: Plan, on_violation: str, given: Given) -> None:
    """What is known without a row: a missing column stops the stream before it starts."""
    verification = Verification(df, plan, given=given)
    answers = {**_frozen_types(plan, given.applied), **verification.answers}
    results = tuple(answers[check.id] for check in plan.checks if check.id in answers)
    known = stopping(plan, results, on_violation)
    if known:
        verdict = Verdict(
            contract=plan.contract.id,
            version=plan.contract.version,
            dataset=plan.dataset.name,
            row_count=0,
            results=results,
            settings=verification.settings,
        )
        message = f"{verdict.summary()}. The stream was not started."
        raise refusal(plan.contract, plan.dataset, given.applied, verdict, None, message=message)


def _frozen_types(plan: Plan, applied: Applied | None) -> dict[str, CheckResult]:
    """The types that a frozen schema refuses for the column, whatever is in it; a table's rows would be counted."""
    found: dict[str, CheckResult] = {}
    for cause in applied.frozen if applied is not None else ():
        for check in plan.checks:
            if applied is not None and isinstance(check.rule, HasType) and check.path == cause.path:
                was, promised = applied.originals.get(check.path), check.rule.type
                message = f"{check.field} is {was}; the contract promises {promised}"
                found[check.id] = check.result(Status.FAILED, observed=was, threshold=str(promised), message=message)
    return found


def _check_watermark(df: DataFrame, plan: Plan, watermark: timedelta, timestamp_field: str | None) -> None:
    sensitive = str(df.sparkSession.conf.get("spark.sql.caseSensitive")) == "true"
    try:
        event_time(df, plan, timestamp_field, case_sensitive=sensitive)
    except NotEvaluableError as reason:
        raise DataboxError(
            f"{plan.contract.id}: the watermark has no field to look at: {reason}", hint="Give `timestamp_field`."
        ) from None
    if watermark < timedelta(0):
        raise DataboxError(f"{plan.contract.id}: the watermark is {watermark}", hint="Give a delay of 0 or more.")


def _identity(
    df: DataFrame, plan: Plan, place: TablePlace | None, watermark: timedelta | None
) -> dict[str, str | list[str] | None]:
    """What must be the same after a restart: the keys that are remembered, and the place that has the rows."""
    types = {column.name: type_text(column.dataType) for column in df.schema.fields}
    return {
        "contract": plan.contract.id,
        "dataset": plan.dataset.name,
        "place": str(place.link.absolute()) if place is not None else None,
        "watermark": str(watermark) if watermark is not None else None,
        "keys": [
            f"{check.id}({', '.join(f'{name} {types.get(str(path[0]))}' for name, path in pairs)})"
            for check in plan.keys
            for pairs in [list(zip(check.key_names, check.keys, strict=True))]
        ],
    }
