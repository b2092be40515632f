"""Write once to a staging place, audit what was staged, and only then swap it in."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from databox_contracts.errors import ContractViolationError, PublicationError
from databox_contracts.model import Contract
from databox_contracts.plan import Plan, build_plan
from databox_contracts.results import Status, Verdict
from databox_contracts.spark.given import Given
from databox_contracts.spark.holding import Held, hold_back, write_flagged
from databox_contracts.spark.stores import Mode, Place, open_store
from databox_contracts.spark.verification import Verification
from databox_contracts.spark.versions import Staged
from databox_contracts.spark.writing import write_parquet

OnViolation: TypeAlias = Literal["fail", "quarantine", "warn"]


@dataclass(frozen=True, slots=True)
class Publication:
    """What became of the rows of one publish: `rows_in` is the sum of the other four counts.

    `version` is the one readers see now; it is the previous one, or None, where nothing was `published`.
    `rows_rejected` are all rows of a publish that failed. `quarantine` is the place of the held rows, None where none
    are. `on_violation` is what was done about violations: "warn" where the contract's grace period is not over.
    """

    verdict: Verdict
    place: Place
    on_violation: OnViolation
    published: bool
    version: str | None
    rows_in: int
    rows_published: int = 0
    rows_quarantined: int = 0
    rows_rejected: int = 0
    rows_discarded: int = 0
    quarantine: Path | None = None


def publish(
    df: DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    place: Place,
    mode: Mode = "overwrite",
    on_violation: OnViolation = "fail",
    run_id: str | None = None,
    samples: int = 5,
    as_of: datetime | None = None,
    timestamp_field: str | None = None,
    references: Mapping[str, DataFrame] | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Publication:
    """Publish a DataFrame as the table's next version, if it keeps its contract.

    The DataFrame is executed exactly once. `place` is a directory (`TablePlace`), a table of Spark's catalog
    (`CatalogPlace`), a Delta table (`DeltaPlace`) or an Iceberg table (`IcebergPlace`). With `mode="append"`, which
    Delta and Iceberg tables have, rules are held against the rows that are added, keys against the whole table.

    With `on_violation="quarantine"` the rows that break an error rule are held back and the rest is judged again; with
    "warn" everything is published. `run_id` marks held rows, so that a retry of the run replaces them. `as_of` and
    `timestamp_field` are those of `verify`, `as_of` the clock's if not given. Raises `ContractViolationError`, with
    `publication` and `verdict`, when nothing is published for a violation; `PublicationError` when the place cannot be
    published to. In both cases the table stays as it was.
    """
    if on_violation not in get_args(OnViolation):
        raise PublicationError(
            str(place), f"on_violation is {on_violation!r}", hint=f"Use one of {', '.join(get_args(OnViolation))}."
        )
    plan = build_plan(contract, contract.dataset(dataset))
    if contract.enforcement.only_warns(clock().date()):
        on_violation = "warn"
    given = Given.at(as_of or clock(), timestamp_field, references)
    attempt = _Attempt(df, plan, place, mode, on_violation, run_id or secrets.token_hex(8), samples, clock, given)
    try:
        return attempt.run()
    except OSError as error:
        raise PublicationError(str(place), f"the file system says {error.strerror or error}") from error


class _Attempt:
    def __init__(
        self,
        df: DataFrame,
        plan: Plan,
        place: Place,
        mode: Mode,
        on_violation: OnViolation,
        run_id: str,
        samples: int,
        clock: Callable[[], datetime],
        given: Given,
    ) -> None:
        self.df = df
        self.plan = plan
        self.place = place
        self.on_violation = on_violation
        self.run_id = run_id
        self.samples = samples
        self.clock = clock
        self.given = given
        self.mode = mode
        self.store = open_store(place, df.sparkSession, mode, clock)

    def run(self) -> Publication:
        unwritable = _unwritable(self.df.schema) or self.store.unwritable(self.df.schema)
        if unwritable is not None:
            self._refuse_unwritable(unwritable)
        self.store.check(self.df.schema)
        with self.store.stage() as staged:
            if self.on_violation == "quarantine":
                return self._publish_with_quarantine(staged)
            write_parquet(self.df, staged.data)
            verdict = self._judge(self._staged_rows(staged.data))
            if not verdict.passed and self.on_violation == "fail":
                raise self._rejection(verdict, verdict.row_count)
            return self._commit(staged, verdict, rows_published=verdict.row_count, held=None)

    def _publish_with_quarantine(self, staged: Staged) -> Publication:
        candidate = write_flagged(self.df, self.plan, staged, self.given)
        verdict = self._judge(candidate.all_rows())
        if any(result.stops for result in verdict.with_status(Status.NOT_EVALUATED)):
            # Nobody knows which rows such a rule would hold.
            raise self._rejection(verdict, verdict.row_count)
        held = (
            hold_back(candidate, self.plan, staged, verdict, run_id=self.run_id, at=self.clock(), given=self.given)
            if not verdict.passed
            else None
        )
        if held is None or held.rows == 0:
            if not verdict.passed:
                raise self._rejection(verdict, verdict.row_count)
            return self._commit(staged, verdict, rows_published=verdict.row_count, held=None)
        remaining = self._judge(candidate.kept_rows())
        if not remaining.passed:
            raise self._rejection(remaining, verdict.row_count, after=held.rows)
        if remaining.row_count + held.rows != verdict.row_count:
            raise PublicationError(
                str(self.place),
                f"{verdict.row_count} rows came in, {remaining.row_count} would be published and {held.rows} held",
                hint="Nothing was published. Please report this as a bug.",
            )
        return self._commit(staged, verdict, rows_published=remaining.row_count, held=held)

    def _judge(self, rows: DataFrame) -> Verdict:
        verdict = Verification(rows, self.plan, given=self.given).verdict(samples=self.samples)
        return self._with_keys_of_all(verdict, rows) if self.mode == "append" and self.plan.keys else verdict

    def _with_keys_of_all(self, verdict: Verdict, rows: DataFrame) -> Verdict:
        """A verdict of rows to append, its keys held against the table as it would be."""
        published = self.store.published_rows()
        if published is None:
            return verdict
        keys = replace(self.plan, checks=self.plan.keys)
        # By name: an appended column may stand elsewhere.
        together = Verification(published.unionByName(rows), keys, given=self.given).verdict(samples=self.samples)
        of_all = {result.id: result for result in together.results}
        return replace(verdict, results=tuple(of_all.get(result.id, result) for result in verdict.results))

    def _staged_rows(self, path: Path) -> DataFrame:
        return self.df.sparkSession.read.schema(self.df.schema).parquet(str(path))

    def _commit(self, staged: Staged, verdict: Verdict, *, rows_published: int, held: Held | None) -> Publication:
        rows_held = held.rows if held is not None else 0
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
            },
            self.df.schema,
        )
        return Publication(
            verdict=verdict,
            place=self.place,
            on_violation=self.on_violation,
            published=True,
            version=self.store.version_of(staged),
            rows_in=verdict.row_count,
            rows_published=rows_published,
            rows_quarantined=rows_held,
            quarantine=batch,
        )

    def _rejection(self, verdict: Verdict, rows_in: int, *, after: int = 0) -> ContractViolationError:
        publication = Publication(
            verdict=verdict,
            place=self.place,
            on_violation=self.on_violation,
            published=False,
            version=self.store.current_version(),
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

    def _refuse_unwritable(self, reason: str) -> None:
        self.store.check(None)
        verdict = self._judge(self.df)
        if not verdict.passed:
            raise self._rejection(verdict, verdict.row_count)
        raise PublicationError(
            str(self.place), reason, hint=f"Give the table columns that {self.store.format} can hold."
        )


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
