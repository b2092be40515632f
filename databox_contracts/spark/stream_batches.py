"""One micro-batch: written once, judged as any table is, split by its verdict and handed on."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, functions as F

from databox_contracts.errors import PublicationError
from databox_contracts.plan import Check, Plan
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Scope, Severity
from databox_contracts.spark import outcomes
from databox_contracts.spark.counting import positional
from databox_contracts.spark.given import Given
from databox_contracts.spark.holding import keys_without_match
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.modes import Applied, Counts, Discarded
from databox_contracts.spark.modes_refusal import refusal
from databox_contracts.spark.predicates import NotEvaluableError
from databox_contracts.spark.reasons import REASON, KeysToHold, Stamp, rows_in, with_reasons
from databox_contracts.spark.staging import Staged
from databox_contracts.spark.stream_columns import StreamModes
from databox_contracts.spark.stream_journal import Progress, StreamJournal
from databox_contracts.spark.stream_keys import Clock, SeenKeys
from databox_contracts.spark.stream_reports import BatchReport
from databox_contracts.spark.stream_rules import about_the_table, event_time, stopping
from databox_contracts.spark.stream_sinks import Sink
from databox_contracts.spark.writing import write_parquet

_ADAPTIVE: Final = "spark.sql.adaptive.enabled"


@dataclass(frozen=True, slots=True)
class Batches:
    """What a stream does with each of its batches; it is called by Spark, perhaps in another process."""

    plan: Plan
    sink: Sink
    checkpoint: Path
    stream: str
    on_violation: str
    samples: int
    watermark: timedelta | None
    timestamp_field: str | None
    references: Mapping[str, DataFrame] | None
    clock: Callable[[], datetime]
    on_batch: Callable[[BatchReport], None] | None
    modes: StreamModes

    def process(self, df: DataFrame, batch: int) -> BatchReport:
        """Judge one batch and hand it on, or find that this was done before a restart.

        Raises `ContractViolationError` with the batch's report as `publication` where the stream has to stop.
        """
        journal = StreamJournal(self.checkpoint)
        progress = journal.progress()
        if progress is not None and progress.batch > batch:
            raise PublicationError(
                str(self.checkpoint),
                f"Spark comes with batch {batch}, and batch {progress.batch} is published",
                hint="Do not run two streams on one checkpoint.",
            )
        if progress is not None and progress.batch == batch and self.sink.has(progress, self.clock()):
            journal.finish(progress)
            report = replace(journal.report(batch), replayed=True)
        else:
            newest = None
            if progress is not None:
                newest = progress.newest_before if progress.batch == batch else progress.newest
            shutil.rmtree(journal.home / "work", ignore_errors=True)
            with self.sink.stage() as staged:
                report = _Batch(self, journal, df, batch, newest, staged).run()
        if self.on_batch is not None:
            self.on_batch(report)
        return report

    def state(self, check: Check) -> SeenKeys:
        """The keys of that check."""
        return SeenKeys(check, StreamJournal(self.checkpoint).home / "keys" / check.id)


class _Batch:
    def __init__(
        self, of: Batches, journal: StreamJournal, df: DataFrame, batch: int, newest_before: int | None, staged: Staged
    ) -> None:
        self.of = of
        self.journal = journal
        self.df = df
        self.batch = batch
        self.newest_before = newest_before
        self.staged = staged
        self.at = of.clock()
        self.given = Given.at(self.at, of.timestamp_field, of.references)
        grace = of.plan.contract.enforcement.only_warns(self.at.date())
        self.on_violation = "warn" if grace else of.on_violation
        self.works: dict[str, Path] = {}
        self.repeated: list[KeysToHold] = []
        self.newest = newest_before
        self.late = 0
        self.applied: Applied | None = None

    def run(self) -> BatchReport:
        if self.of.modes.leaves_out and self.of.sink.is_new():
            return self._leave_out()
        arrived = self.staged.directory / "arrived"
        rows = self._write(arrived)
        with _adaptive(rows.sparkSession):
            verdict = self._judge(rows)
            self._stop_for(verdict, rows)
            broken = self._broken(verdict)
            if self.on_violation == "quarantine" and broken:
                self._split(rows, broken)
            else:
                os.rename(arrived, self.staged.data)
        return self._hand_on(verdict)

    def _write(self, arrived: Path) -> DataFrame:
        """What the schema modes make of the batch, its discards counted by the write itself."""
        self.df, applied = self.of.modes.apply(self.df).observed()
        # Written first: a micro-batch may be another one each time that it is computed.
        write_parquet(self.df, arrived)
        self.applied = applied()
        self.given = replace(self.given, applied=self.applied)
        return self._read(arrived)

    def _read(self, path: Path) -> DataFrame:
        return self.df.sparkSession.read.schema(self.df.schema).parquet(str(path))

    def _leave_out(self) -> BatchReport:
        """A batch for a table that is not there yet and must not be made: its rows are counted, no more."""
        plan, rows = self.of.plan, self.df.count()
        message = "the table is new, which its tables mode does not allow, and its rows are discarded"
        report = BatchReport(
            batch=self.batch,
            verdict=Verdict(
                contract=plan.contract.id,
                version=plan.contract.version,
                dataset=plan.dataset.name,
                row_count=0,
                results=tuple(check.result(Status.SKIPPED, message=message) for check in plan.checks),
            ),
            on_violation=self.on_violation,
            rows_in=rows,
            rows_discarded=rows,
            discarded=(Discarded("tables", self.of.modes.modes.tables, plan.dataset.table_name, "rows", rows),),
        )
        progress = Progress(self.batch, None, None, self.newest_before, self.newest_before)
        self.journal.intend(progress, report)
        self.journal.finish(progress)
        return report

    def _discarded(self, rows: int) -> Counts:
        """What was discarded before `rows` were written, if that is all that came in."""
        counts = self.applied.counts if self.applied is not None else None
        if counts is None:
            return Counts(rows)
        if counts.rows_in - counts.rows_discarded != rows:
            raise PublicationError(
                str(self.of.checkpoint),
                f"{counts.rows_in} rows came in batch {self.batch}, {counts.rows_discarded} were discarded and {rows}"
                " written",
                hint="Nothing of it was published. Please report this as a bug.",
            )
        return counts

    # --- judging ------------------------------------------------------------------------------------------------------

    def _judge(self, rows: DataFrame) -> Verdict:
        plan = self.of.plan
        without_keys = replace(plan, checks=tuple(one for one in plan.checks if one.rule.scope is not Scope.KEY))
        verification = Verification(rows, without_keys, given=self.given)
        verdict = verification.verdict(samples=self.of.samples)
        clock = self._clock(rows, verification)
        answers = {result.id: result for result in verdict.results}
        for check in plan.keys:
            answers[check.id] = self._key_result(check, verification, verdict.row_count, clock)
        return replace(verdict, results=tuple(answers[check.id] for check in plan.checks))

    def _key_result(self, check: Check, verification: Verification, rows: int, clock: Clock | None) -> CheckResult:
        work = self.journal.home / "work" / check.id
        try:
            judging = self.of.state(check).judge(verification, rows, self.batch, clock, work)
        except NotEvaluableError as reason:
            return outcomes.not_evaluated(check, str(reason))
        self.works[check.id] = work
        found = judging.collisions(self.of.samples)
        if found.path is not None and check.severity is Severity.ERROR and not about_the_table(check):
            self.repeated.append(KeysToHold(check, found.path))
        return found.result

    def _clock(self, rows: DataFrame, verification: Verification) -> Clock | None:
        if self.of.watermark is None:
            return None
        _, time = event_time(rows, self.of.plan, self.of.timestamp_field, case_sensitive=verification.case_sensitive)
        watermark = Clock(time, self.of.watermark, self.newest_before).watermark
        late = F.count_if(time < F.lit(watermark)) if watermark is not None else F.lit(0)
        newest, self.late = verification.view.agg(F.max(time), late).collect()[0]
        self.newest = max((one for one in (newest, self.newest_before) if one is not None), default=None)
        # A row without a time is as old as the newest of its batch: it must be forgotten some day.
        known = F.coalesce(time, F.lit(self.newest)) if self.newest is not None else time
        return Clock(known, self.of.watermark, self.newest_before)

    def _stop_for(self, verdict: Verdict, rows: DataFrame) -> None:
        """Raise where nothing of the batch may go on."""
        if stopping(self.of.plan, verdict.results, self.on_violation):
            rows_in = self._discarded(verdict.row_count).rows_in
            rejected = BatchReport(
                batch=self.batch,
                verdict=verdict,
                on_violation=self.on_violation,
                rows_in=rows_in,
                rows_rejected=rows_in,
                rows_late=self.late,
            )
            message = f"batch {self.batch}: {verdict.summary()}. Nothing of the batch was published."
            plan = self.of.plan
            raise refusal(
                plan.contract, plan.dataset, self.applied, verdict, rows, message=message, publication=rejected
            )

    def _broken(self, verdict: Verdict) -> list[CheckResult]:
        """The results for which rows have to be held."""
        checks = {check.id: check for check in self.of.plan.checks}
        return [result for result in verdict.results if result.stops and not about_the_table(checks[result.id])]

    # --- handing on ---------------------------------------------------------------------------------------------------

    def _split(self, rows: DataFrame, broken: Sequence[CheckResult]) -> None:
        stamp = Stamp(self.of.plan, self._run_id, self.at, self.given)
        orphaned = keys_without_match(rows, stamp, self.staged, {result.id for result in broken})
        marked = with_reasons(rows, stamp, [*self.repeated, *orphaned]).drop(positional(len(rows.columns)))
        stamp.write(marked.where(F.size("reasons") > 0), rows.columns, self.staged.held)
        write_parquet(marked.where(F.size("reasons") == 0).drop("reasons").toDF(*rows.columns), self.staged.data)
        held = _reasons_in(self.staged.held)
        for result in broken:
            missed = (result.failed_count or 0) - held[result.id]
            if missed > 0:
                raise PublicationError(
                    str(self.of.checkpoint),
                    f"batch {self.batch}: {missed} rows that break {result.id} would not be held",
                    hint="Nothing of it was published. Please report this as a bug.",
                )

    @property
    def _run_id(self) -> str:
        return f"{self.of.stream}-{self.batch}"

    def _hand_on(self, verdict: Verdict) -> BatchReport:
        published, held = rows_in(self.staged.data), rows_in(self.staged.held)
        if not held:
            shutil.rmtree(self.staged.held, ignore_errors=True)
        if published + held != verdict.row_count:
            raise PublicationError(
                str(self.of.checkpoint),
                f"{verdict.row_count} rows came in batch {self.batch}, {published} are valid and {held} held",
                hint="Nothing of it was published. Please report this as a bug.",
            )
        counts = self._discarded(verdict.row_count)
        valid = self._read(self.staged.data)
        self.of.sink.prepare(valid, self.staged)
        for check_id, work in self.works.items():
            check = next(one for one in self.of.plan.keys if one.id == check_id)
            self.of.state(check).keep(self.batch, work)
        before, version = self.of.sink.current(), self.of.sink.version(self.staged)
        report = BatchReport(
            batch=self.batch,
            verdict=verdict,
            on_violation=self.on_violation,
            rows_in=counts.rows_in,
            rows_published=published,
            rows_quarantined=held,
            rows_discarded=counts.rows_discarded,
            rows_late=self.late,
            version=version,
            quarantine=self.of.sink.held_in(self.staged, self.batch) if held else None,
            elements_discarded=counts.elements_discarded,
            values_discarded=counts.values_discarded,
            discarded=counts.discarded,
        )
        progress = Progress(self.batch, version, before, self.newest_before, self.newest)
        self.journal.intend(progress, report)
        self.of.sink.commit(self.staged, valid, self.batch, self._facts(report))
        self.journal.finish(progress)
        return report

    def _facts(self, report: BatchReport) -> dict[str, object]:
        return {
            "contract": self.of.plan.contract.id,
            "contract_version": self.of.plan.contract.version,
            "dataset": self.of.plan.dataset.name,
            "run_id": self._run_id,
            "stream": self.of.stream,
            "batch": self.batch,
            "passed": report.verdict.passed,
            "on_violation": self.on_violation,
            "rows_in": report.rows_in,
            "rows_published": report.rows_published,
            "rows_quarantined": report.rows_quarantined,
            **({"rows_discarded": report.rows_discarded} if report.discarded else {}),
            "published_at": self.at.isoformat(),
        }


@contextmanager
def _adaptive(spark: SparkSession) -> Iterator[None]:
    """Streams run without adaptive execution, which small tables need: else a shuffle has its full number of tasks."""
    before = spark.conf.get(_ADAPTIVE)
    spark.conf.set(_ADAPTIVE, "true")
    try:
        yield
    finally:
        spark.conf.set(_ADAPTIVE, str(before))


def _reasons_in(path: Path) -> Counter[str]:
    """How many held rows there are for each rule; read without Spark, a part of a file at a time."""
    found: Counter[str] = Counter()
    for file in sorted(path.glob("*.parquet")):
        for part in pq.ParquetFile(file).iter_batches(columns=[REASON]):
            for reasons in part.column(0).to_pylist():
                found.update(reasons)
    return found
