"""Write once to a staging place, audit what was staged, and only then swap it in."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from databox_contracts.errors import ContractViolationError, PublicationError
from databox_contracts.model import Contract
from databox_contracts.plan import Plan, build_plan
from databox_contracts.results import Status, Verdict
from databox_contracts.spark.fingerprints import Fingerprint
from databox_contracts.spark.given import Given
from databox_contracts.spark.holding import Held, hold_back, write_flagged
from databox_contracts.spark.linking import open_base, own_partitions
from databox_contracts.spark.partitioning import Partitioning
from databox_contracts.spark.replacing import PublishMode, PublishScope, Replacement, Request
from databox_contracts.spark.table_files import Layout, column, count_rows
from databox_contracts.spark.tables import TablePlace
from databox_contracts.spark.verification import Verification
from databox_contracts.spark.versions import Staged, VersionStore
from databox_contracts.spark.writing import write_table

OnViolation: TypeAlias = Literal["fail", "quarantine", "warn"]


@dataclass(frozen=True, slots=True)
class Publication:
    """What became of the rows of one publish: `rows_in` is the sum of the other four counts.

    `version` is the one readers see now; it is the previous one, or None, where nothing was `published`.
    `rows_rejected` are all rows of a publish that failed. `quarantine` is the place of the held rows, None where none
    are. `on_violation` is what was done about violations: "warn" where the contract's grace period is not over.
    `table_rows` is how many rows the published version has, those that were there before included.
    """

    verdict: Verdict
    place: TablePlace
    on_violation: OnViolation
    published: bool
    version: str | None
    rows_in: int
    rows_published: int = 0
    rows_quarantined: int = 0
    rows_rejected: int = 0
    rows_discarded: int = 0
    quarantine: Path | None = None
    table_rows: int = 0


def publish(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    place: TablePlace,
    on_violation: OnViolation = "fail",
    run_id: str | None = None,
    samples: int = 5,
    as_of: datetime | None = None,
    timestamp_field: str | None = None,
    references: Mapping[str, DataFrame] | None = None,
    mode: PublishMode = "overwrite",
    partition_by: Sequence[str] = (),
    partitions: Sequence[Mapping[str, Any]] | None = None,
    scope: PublishScope = "partition",
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Publication:
    """Publish a DataFrame as the table's next version, if it keeps its contract.

    The DataFrame is executed exactly once. With `on_violation="quarantine"` the rows that break an error rule are held
    back and the rest is judged again; with "warn" everything is published. `run_id` marks held rows, so that a retry of
    the run replaces them. `as_of` and `timestamp_field` are those of `verify`, `as_of` the clock's if not given.

    `partition_by` names the columns that make directories, outermost first; "append" and "overwrite_partitions" keep
    the table's own if none are named. "append" adds the rows. "overwrite_partitions" replaces the partitions that rows
    come in for and those that `partitions` names (`[{"day": "2024-01-01"}]`): a named one without rows becomes empty,
    and a row of one that is not named is an error. Keys and row counts are then judged over each partition that is
    written to, with the rows an append adds to, and over the whole table where there are no partitions or `scope` is
    "table". All other rules are judged over the rows that come in.

    Raises `ContractViolationError`, with `publication` and `verdict`, when nothing is published for a violation;
    `PublicationError` when the place cannot be published to. In both cases the table stays as it was.
    """
    if on_violation not in get_args(OnViolation):
        raise PublicationError(
            str(place.link), f"on_violation is {on_violation!r}", hint=f"Use one of {', '.join(get_args(OnViolation))}."
        )
    names = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    request = Request(mode, names, partitions, scope)
    request.check(str(place.link))
    plan = build_plan(contract, contract.dataset(dataset))
    if contract.enforcement.only_warns(clock().date()):
        on_violation = "warn"
    given = Given.at(as_of or clock(), timestamp_field, references)
    attempt = _Attempt(df, plan, place, on_violation, run_id or secrets.token_hex(8), samples, clock, given, request)
    try:
        return attempt.run()
    except OSError as error:
        raise PublicationError(str(place.link), f"the file system says {error.strerror or error}") from error


class _Attempt:
    def __init__(
        self,
        df: DataFrame,
        plan: Plan,
        place: TablePlace,
        on_violation: OnViolation,
        run_id: str,
        samples: int,
        clock: Callable[[], datetime],
        given: Given,
        request: Request,
    ) -> None:
        self.df = df
        self.plan = plan
        self.place = place
        self.on_violation = on_violation
        self.run_id = run_id
        self.samples = samples
        self.clock = clock
        self.given = given
        self.store = VersionStore(place, now=clock)
        self.request = request
        self.layout = Layout(place.format, df.schema, request.partition_by)
        self.replacement = Replacement(request, str(place.link), Partitioning())

    def run(self) -> Publication:
        unwritable = _unwritable(self.df.schema)
        if unwritable is not None:
            self._refuse_unwritable(unwritable, "Give the table columns that Parquet can hold.")
        self.layout.partitioning(self.replacement.path)
        unwritable = self.layout.unwritable()
        if unwritable is not None:
            self._refuse_unwritable(unwritable, "Give the table other columns, or its place another format.")
        with self.store.stage() as staged:
            self._prepare(staged)
            if self.on_violation == "quarantine":
                return self._publish_with_quarantine(staged)
            fingerprint = Fingerprint(self.layout)
            write_table(fingerprint.of(self.df), staged.data, self.layout)
            self._require_nothing_lost(fingerprint.lost())
            self.replacement = self.replacement.with_written(staged.data)
            rows = self._staged_rows(staged.data)
            self._require_nothing_lost(fingerprint.changed(rows))
            verdict = self._judge(rows, staged.data)
            if not verdict.passed and self.on_violation == "fail":
                raise self._rejection(verdict, verdict.row_count)
            return self._commit(staged, verdict, rows_published=verdict.row_count, held=None)

    def _prepare(self, staged: Staged) -> None:
        """Look at the table that is there, and bring the rows to its columns where they are to be among its rows."""
        path, spark = self.replacement.path, self.df.sparkSession
        base = None
        if self.request.mode != "overwrite":
            partition_by = self.request.partition_by or own_partitions(self.store, staged)
            self.layout = replace(self.layout, partition_by=partition_by)
            self.layout.partitioning(path)
            base = open_base(spark, self.store, staged, self.layout)
        if base is not None:
            self.layout = base.layout
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
            masked=any(_hides(self.plan, name) for name in partitioning.names),
        )

    def _publish_with_quarantine(self, staged: Staged) -> Publication:
        fingerprint = Fingerprint(self.layout)
        candidate = write_flagged(self.df, self.plan, staged, self.given, self.layout, fingerprint)
        self._require_nothing_lost(fingerprint.lost())
        self.replacement = self.replacement.with_written(candidate.kept, candidate.flagged)
        self._require_nothing_lost(fingerprint.changed(candidate.all_rows()))
        verdict = self._judge(candidate.all_rows(), candidate.kept, candidate.flagged)
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
        remaining = self._judge(candidate.kept_rows(), candidate.kept)
        if not remaining.passed:
            raise self._rejection(remaining, verdict.row_count, after=held.rows)
        if remaining.row_count + held.rows != verdict.row_count:
            raise PublicationError(
                str(self.place.link),
                f"{verdict.row_count} rows came in, {remaining.row_count} would be published and {held.rows} held",
                hint="Nothing was published. Please report this as a bug.",
            )
        return self._commit(staged, verdict, rows_published=remaining.row_count, held=held)

    def _judge(self, rows: DataFrame, *directories: Path) -> Verdict:
        """The verdict on the rows of those directories, all of which this publish wrote."""
        return self.replacement.judge(rows, self.plan, lambda: self._count(*directories), self._verify)

    def _verify(self, rows: DataFrame, plan: Plan) -> Verdict:
        return Verification(rows, plan, given=self.given).verdict(samples=self.samples)

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
                "rows_in": verdict.row_count,
                "rows_published": rows_published,
                "rows_quarantined": rows_held,
                "published_at": self.clock().isoformat(),
                "mode": self.request.mode,
                "replaced": self.replacement.replaced,
            },
            table={**self.layout.facts(), "rows": rows, "table_rows": sum(rows.values())},
        )
        return Publication(
            verdict=verdict,
            place=self.place,
            on_violation=self.on_violation,
            published=True,
            version=staged.version,
            rows_in=verdict.row_count,
            rows_published=rows_published,
            rows_quarantined=rows_held,
            quarantine=batch,
            table_rows=sum(rows.values()),
        )

    def _rejection(self, verdict: Verdict, rows_in: int, *, after: int = 0) -> ContractViolationError:
        publication = Publication(
            verdict=verdict,
            place=self.place,
            on_violation=self.on_violation,
            published=False,
            version=self.place.current_version(),
            rows_in=rows_in,
            rows_rejected=rows_in,
        )
        held = f"; {after} rows would have been held, and the rest still breaks it" if after else ""
        stays = (
            f"version {publication.version} stays readable" if publication.version else "there is no earlier version"
        )
        return ContractViolationError(
            verdict, message=f"{verdict.summary()}{held}. Nothing was published, {stays}.", publication=publication
        )

    def _refuse_unwritable(self, reason: str, hint: str) -> None:
        self.place.ensure_inside_root()
        verdict = self._verify(self.df, self.plan)
        if not verdict.passed:
            raise self._rejection(verdict, verdict.row_count)
        raise PublicationError(str(self.place.link), reason, hint=hint)


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


def _hides(plan: Plan, name: str) -> bool:
    """Whether the values of a column must not be shown."""
    own = [check for check in plan.checks if check.path and str(check.path[0]).casefold() == name.casefold()]
    return any(check.masked for check in own) if own else plan.contract.governance.pii_class is not None
