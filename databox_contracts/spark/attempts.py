"""One publish from its DataFrame to its table: staged, audited, split where rows are held, committed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from databox_contracts.errors import ContractViolationError, PublicationError, UnreadableTableError
from databox_contracts.model import Mode, SchemaModes
from databox_contracts.plan import Plan
from databox_contracts.results import Status, Verdict
from databox_contracts.rules import Undeclared
from databox_contracts.schema_modes import is_incomplete
from databox_contracts.spark.fingerprints import Fingerprint
from databox_contracts.spark.footers import data_files, read_statistics
from databox_contracts.spark.given import Given
from databox_contracts.spark.holding import Held, hold_back, write_flagged
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.known import Known
from databox_contracts.spark.modes import Applied, Counts, Discarded, apply_modes
from databox_contracts.spark.modes_refusal import new_table, refusal
from databox_contracts.spark.partitioning import Partitioning
from databox_contracts.spark.per_partition import PartitionOutcome, outcomes_of
from databox_contracts.spark.progress import Steps
from databox_contracts.spark.publications import OnViolation, Publication
from databox_contracts.spark.reasons import FREE_NAMES, no_room_for_reasons
from databox_contracts.spark.replacing import Replacement, Request
from databox_contracts.spark.staging import Staged
from databox_contracts.spark.stores import Place, open_store, read_published
from databox_contracts.spark.table_files import Layout, column, count_rows
from databox_contracts.spark.writing import write_table

WRITING: Final = "writing rows"
"""The step of a publish before those of its verification, as its progress names it."""
_IS_NEW: Final = "the table is new, which its tables mode does not allow"


class Attempt:
    """Everything that one publish knows; `run` is called once."""

    def __init__(
        self,
        df: DataFrame,
        plan: Plan,
        place: Place,
        on_violation: OnViolation,
        run_id: str,
        samples: int,
        clock: Callable[[], datetime],
        given: Given,
        request: Request,
        modes: SchemaModes,
    ) -> None:
        self.df = df
        self.plan = plan
        self.place = place
        self.on_violation = on_violation
        self.run_id = run_id
        self.samples = samples
        self.clock = clock
        self.given = given
        self.modes = modes
        self.applied: Applied | None = None
        self.judged: DataFrame | None = None
        self.outcomes: tuple[PartitionOutcome, ...] = ()
        self.store = open_store(place, df.sparkSession, request.mode, clock)
        self.request = request
        self.layout = Layout(self.store.file_format, df.schema, request.partition_by)
        self.replacement = Replacement(request, str(place), Partitioning())

    def run(self) -> Publication:
        """Publish, or raise what `publish` says."""
        first_load = self.store.is_new()
        refused = first_load and self.modes.tables is Mode.FREEZE and self.on_violation != "warn"
        if refused or (first_load and self.modes.tables in (Mode.DISCARD_ROW, Mode.DISCARD_VALUE)):
            return self._leave_out(refused=refused)
        counts = self._apply_modes(first_load=first_load)
        self.layout = Layout(self.store.file_format, self.df.schema, self.request.partition_by)
        unwritable = _unwritable(self.df.schema)
        if unwritable is not None:
            self._refuse_unwritable(unwritable, "Give the table columns that Parquet can hold.")
        unwritable = self.store.unwritable(self.df.schema)
        if unwritable is not None:
            self._refuse_unwritable(unwritable, f"Give the table columns that {self.store.format} can hold.")
        self.layout.partitioning(self.replacement.path)
        unwritable = self.layout.unwritable()
        if unwritable is not None:
            self._refuse_unwritable(unwritable, "Give the table other columns, or its place another format.")
        no_room = no_room_for_reasons(self.df.columns) if self.on_violation == "quarantine" else None
        if no_room is not None:
            raise PublicationError(str(self.place), no_room, hint=FREE_NAMES)
        self.store.check(self.df.schema)
        with self.store.stage() as staged:
            self._prepare(staged)
            if self.on_violation == "quarantine":
                return self._publish_with_quarantine(staged, counts)
            fingerprint = Fingerprint(self.layout)
            with self._writing():
                write_table(fingerprint.of(self.df), staged.data, self.layout)
            self._take(counts())
            self._require_nothing_lost(fingerprint.lost())
            self._see_what_stays(staged.data)
            rows = self._staged_rows(staged.data)
            self._require_nothing_lost(fingerprint.changed(rows))
            known = Known(read_statistics(data_files(staged.data), self.layout.schema))
            verdict = self._judge(rows, known, staged.data)
            if not verdict.passed and self.on_violation == "fail":
                raise self._rejection(verdict, verdict.row_count)
            return self._commit(staged, verdict, rows_published=verdict.row_count, held=None)

    def _prepare(self, staged: Staged) -> None:
        """Look at the table that is there, and bring the rows to its columns where they are to be among its rows."""
        path = self.replacement.path
        self.layout, base, published = self.store.begin(staged, self.request, self.layout)
        if base is not None:
            self.df = self.df.select(*(column(name) for name in base.layout.schema.names))
        partitioning = self.layout.partitioning(path)
        if not partitioning.columns and (self.request.mode == "overwrite_partitions" or self.request.partitions):
            raise PublicationError(path, "the table has no partitions", hint="Name their columns in partition_by.")
        partitions = self.request.partitions
        self.replacement = Replacement(
            self.request,
            path,
            partitioning,
            wanted=partitioning.wanted(partitions, path) if partitions is not None else None,
            base=base,
            published=published,
            masked=any(hides(self.plan, name) for name in partitioning.names),
        )

    def _publish_with_quarantine(self, staged: Staged, counts: Callable[[], Applied]) -> Publication:
        fingerprint = Fingerprint(self.layout)
        with self._writing():
            candidate = write_flagged(self.df, self.plan, staged, self.given, self.layout, fingerprint)
        self._take(counts())
        self._require_nothing_lost(fingerprint.lost())
        self._see_what_stays(candidate.kept, candidate.flagged)
        self._require_nothing_lost(fingerprint.changed(candidate.all_rows()))
        known = candidate.known(self.plan, self.given, samples=self.samples)
        verdict = self._judge(candidate.all_rows(), known, candidate.kept, candidate.flagged)
        if any(result.stops for result in verdict.with_status(Status.NOT_EVALUATED)):
            # Nobody knows which rows such a rule would hold.
            raise self._rejection(verdict, verdict.row_count)
        held = (
            hold_back(
                candidate,
                self.plan,
                staged,
                verdict,
                run_id=self.run_id,
                at=self.clock(),
                given=self.given,
                replacement=self.replacement,
            )
            if not verdict.passed
            else None
        )
        if held is None or held.rows == 0:
            if not verdict.passed:
                raise self._rejection(verdict, verdict.row_count)
            return self._commit(staged, verdict, rows_published=verdict.row_count, held=None)
        outcomes = self.outcomes
        remaining = self._judge(candidate.kept_rows(), candidate.known_of_kept(verdict), candidate.kept)
        if not remaining.passed:
            raise self._rejection(remaining, verdict.row_count, after=held.rows)
        # What is told is about the rows that came in.
        self.outcomes = outcomes
        if remaining.row_count + held.rows != verdict.row_count:
            raise PublicationError(
                str(self.place),
                f"{verdict.row_count} rows came in, {remaining.row_count} would be published and {held.rows} held",
                hint="Nothing was published. Please report this as a bug.",
            )
        return self._commit(staged, verdict, rows_published=remaining.row_count, held=held)

    def _writing(self) -> AbstractContextManager[None]:
        """Around the write, which takes as long as the rows take to be computed: how long nobody knows."""
        return Steps(self.given.progress, [WRITING]).step(WRITING)

    def _see_what_stays(self, *written: Path) -> None:
        """Now that the rows are written, it is known which rows of the table are left beside them."""
        self.replacement = self.replacement.with_written(*written)
        self.given = replace(self.given, beside=self.replacement.staying())

    def _apply_modes(self, *, first_load: bool) -> Callable[[], Applied]:
        """Put what the schema modes make of the table in its place; the counts are known once it is written."""
        contract, dataset, known = self.plan.contract, self.plan.dataset, None
        # The types of a table that was found there may be guesses.
        if self.store.current_version() is not None and is_incomplete(dataset):
            # What cannot be read tells nothing, and is refused in words where it is to be replaced.
            with suppress(UnreadableTableError):
                known = read_published(self.df.sparkSession, self.place).schema
        applied = apply_modes(self.df, contract, dataset, self.modes, known=known, first_load=first_load)
        if first_load and self.modes.tables is Mode.FREEZE:
            applied = applied.refusing(new_table(dataset, Mode.FREEZE), _IS_NEW)
        self._take(applied)
        self.df, counts = applied.observed()
        return counts

    def _take(self, applied: Applied) -> None:
        self.applied = applied
        self.given = replace(self.given, applied=applied)

    def _discarded(self, rows: int) -> Counts:
        """What was discarded before `rows` were staged, if that is all that came in."""
        counts = self.applied.counts if self.applied is not None else None
        if counts is None:
            return Counts(rows)
        if counts.rows_in - counts.rows_discarded != rows:
            raise PublicationError(
                str(self.place),
                f"{counts.rows_in} rows came in, {counts.rows_discarded} were discarded and {rows} written",
                hint="Nothing was published. Please report this as a bug.",
            )
        return counts

    def _leave_out(self, *, refused: bool) -> Publication:
        """A table that is not there yet and must not be made: its rows are counted, no more."""
        self.store.check(None)
        rows = self.df.count()
        plan, message = self.plan, _IS_NEW if refused else f"{_IS_NEW}, and its rows are discarded"
        results = tuple(
            check.result(
                Status.FAILED if refused and isinstance(check.rule, Undeclared) else Status.SKIPPED, message=message
            )
            for check in plan.checks
        )
        verdict = Verdict(
            contract=plan.contract.id,
            version=plan.contract.version,
            dataset=plan.dataset.name,
            row_count=rows if refused else 0,
            results=results,
        )
        if refused:
            applied = apply_modes(self.df, plan.contract, plan.dataset, self.modes)
            self._take(applied.refusing(new_table(plan.dataset, Mode.FREEZE), _IS_NEW))
            raise self._rejection(verdict, rows)
        return Publication(
            verdict=verdict,
            place=self.place,
            on_violation=self.on_violation,
            published=False,
            version=None,
            rows_in=rows,
            rows_discarded=rows,
            discarded=(Discarded("tables", self.modes.tables, plan.dataset.table_name, "rows", rows),),
        )

    def _judge(self, rows: DataFrame, known: Known, *directories: Path) -> Verdict:
        """The verdict on the rows of those directories, all of which this publish wrote."""
        self.judged = rows

        def verify(judged: DataFrame, plan: Plan) -> Verdict:
            # With those of other versions beside them, nothing is known of the rows.
            return self._verify(judged, plan, known if judged is rows else None)

        verdict = self.replacement.judge(rows, self.plan, lambda: self._count(*directories), verify)
        wanted = self.replacement.wanted or ()
        if len(wanted) > 1:
            counts, partitioning = self._count(*directories), self.replacement.partitioning
            self.outcomes = outcomes_of(rows, self.plan, verdict, partitioning, wanted, counts, verify)
        return verdict

    def _verify(self, rows: DataFrame, plan: Plan, known: Known | None = None) -> Verdict:
        return Verification(rows, plan, given=self.given, known=known).verdict(samples=self.samples)

    def _count(self, *directories: Path) -> dict[str, int]:
        """The number of rows by partition directory."""
        found: dict[str, int] = {}
        for directory in directories:
            if directory.is_dir():
                for inside, rows in count_rows(self.df.sparkSession, self.layout, directory).items():
                    found[inside] = found.get(inside, 0) + rows
        return found

    def _staged_rows(self, path: Path) -> DataFrame:
        return self.layout.read(self.df.sparkSession, path)

    def _require_nothing_lost(self, reason: str | None) -> None:
        if reason is not None:
            raise PublicationError(
                self.replacement.path,
                reason,
                hint="Nothing was published. Replace such values, or give the table another format or partitions.",
            )

    def _commit(self, staged: Staged, verdict: Verdict, *, rows_published: int, held: Held | None) -> Publication:
        rows_held = held.rows if held is not None else 0
        counts = self._discarded(verdict.row_count)
        new = self._count(staged.data) if self.layout.partition_by else {"": rows_published}
        rows = self.replacement.rows_after(new)
        if self.replacement.base is not None:
            self.replacement.base.link_into(staged.data, self.replacement.stays)
        batch = self.store.commit(
            staged,
            {
                "contract": self.plan.contract.id,
                "contract_version": self.plan.contract.version,
                "dataset": self.plan.dataset.name,
                "run_id": self.run_id,
                "passed": verdict.passed,
                "on_violation": self.on_violation,
                "rows_in": counts.rows_in,
                "rows_published": rows_published,
                "rows_quarantined": rows_held,
                **({"rows_discarded": counts.rows_discarded} if counts.fields else {}),
                "published_at": self.clock().isoformat(),
                "mode": self.request.mode,
                "replaced": self.replacement.replaced,
            },
            self.layout.schema,
            table={**self.layout.facts(), "rows": rows, "table_rows": sum(rows.values())},
            stays=self.replacement.stays,
        )
        return Publication(
            verdict=verdict,
            place=self.place,
            on_violation=self.on_violation,
            published=True,
            version=self.store.version_of(staged),
            rows_in=counts.rows_in,
            rows_published=rows_published,
            rows_quarantined=rows_held,
            rows_discarded=counts.rows_discarded,
            quarantine=batch,
            table_rows=sum(rows.values()) if self.replacement.published is None else None,
            elements_discarded=counts.elements_discarded,
            values_discarded=counts.values_discarded,
            discarded=counts.discarded,
            partitions=self.outcomes,
        )

    def _rejection(self, verdict: Verdict, rows_staged: int, *, after: int = 0) -> ContractViolationError:
        rows_in = self._discarded(rows_staged).rows_in
        publication = Publication(
            verdict=verdict,
            place=self.place,
            on_violation=self.on_violation,
            published=False,
            version=self.store.current_version(),
            rows_in=rows_in,
            rows_rejected=rows_in,
            partitions=self.outcomes,
        )
        held = f"; {after} rows would have been held, and the rest still breaks it" if after else ""
        stays = (
            f"version {publication.version} stays readable" if publication.version else "there is no earlier version"
        )
        return refusal(
            self.plan.contract,
            self.plan.dataset,
            self.applied,
            verdict,
            self.judged,
            message=f"{verdict.summary()}{held}. Nothing was published, {stays}.",
            publication=publication,
        )

    def _refuse_unwritable(self, reason: str, hint: str) -> None:
        self.store.check(None)
        if self.applied is not None:
            self._take(self.applied.counted())
            self.df = self.applied.df
        self.judged = self.df
        verdict = self._verify(self.df, self.plan)
        if not verdict.passed:
            raise self._rejection(verdict, verdict.row_count)
        raise PublicationError(str(self.place), reason, hint=hint)


def _unwritable(schema: StructType) -> str | None:
    """Why Parquet cannot hold the columns, None if it can."""
    if not schema.fields:
        return "the table has no columns"
    seen: dict[str, str] = {}
    for field in schema.fields:
        if field.name.lower() in seen:
            return f"the columns {seen[field.name.lower()]} and {field.name} differ in case alone, or not at all"
        seen[field.name.lower()] = field.name
        if field.dataType.typeName() in ("void", "interval") or "interval" in field.dataType.simpleString():
            return f"the column {field.name} is of type {field.dataType.simpleString()}"
    return None


def hides(plan: Plan, name: str) -> bool:
    """Whether the values of a column must not be shown."""
    own = [check for check in plan.checks if check.path and str(check.path[0]).casefold() == name.casefold()]
    return any(check.masked for check in own) if own else plan.contract.governance.pii_class is not None
