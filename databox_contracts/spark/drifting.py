"""Sampling a table that is in use: does what was written lately still keep the contract, and look as it used to?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from databox_contracts.baselines import BaselineStore
from databox_contracts.drift import DriftFinding, DriftReport, DriftThresholds, Sampled, with_sightings
from databox_contracts.drift_comparison import compare_field
from databox_contracts.errors import BaselineError, DataboxError
from databox_contracts.model import Contract
from databox_contracts.plan import Plan, build_plan
from databox_contracts.profiles import Baseline, FieldProfile
from databox_contracts.results import CheckResult, Status, Verdict
from databox_contracts.rules import Severity
from databox_contracts.spark.counting import positional
from databox_contracts.spark.drift_holding import Batch, copy_drifted
from databox_contracts.spark.drift_profile import Leaf, Profiled, leaves_of, profile
from databox_contracts.spark.drift_rules import first_places, for_sample, kind_of, of_whole_plan
from databox_contracts.spark.failures import SPARK_ERRORS, unreadable
from databox_contracts.spark.given import Given
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.newest_rows import Recent
from databox_contracts.spark.reasons import FREE_NAMES, no_room_for_reasons
from databox_contracts.spark.recent import sample_frame, sample_path, sample_place, sample_table
from databox_contracts.spark.tables import TablePlace
from databox_contracts.spark.timeliness import as_instant


def sample_drift(
    source: SparkSession | DataFrame,
    contract: Contract,
    dataset: str | None = None,
    *,
    store: BaselineStore,
    place: TablePlace | None = None,
    path: str | Path | None = None,
    table: str | None = None,
    format: str | None = None,
    options: Mapping[str, str] | None = None,
    rows: int = 100_000,
    files: int = 32,
    thresholds: DriftThresholds | None = None,
    ignore: Sequence[str] = (),
    update_baseline: bool = False,
    quarantine: str | Path | None = None,
    samples: int = 5,
    as_of: datetime | None = None,
    timestamp_field: str | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> DriftReport:
    """Hold recent rows of a table against its contract, and their profile against the dataset's baseline.

    The table is a DataFrame, or with a session one of `place`, `path` (of that `format`, read with those `options`) and
    `table` in the catalog. At most `rows` rows of at most `files` of its newest files are read, so that the cost does
    not grow with the table; `report.sampled.how` says how they were taken. Rules about a whole table (row count, keys,
    references, queries, statistics) are skipped in the verdict, with that reason. Distributions of keys, of columns
    that the sample was chosen by, and of the fields in `ignore` are not compared.

    The first sampling pins its profile as the baseline, unless an error was found in it. A baseline then stays until
    one is accepted with `update_baseline=True`: were it to follow the data, no slow drift would ever be seen. With
    `quarantine`, a directory, the sample's rows that break an error rule or have a value that the baseline does not
    have are copied there; the table is not changed. `as_of` is the time of the sampling, that of `clock` if not given.

    A schema that is not the contract's is a finding of severity error; `report.raise_for_drift()` raises it. Raises
    `UnreadableTableError`, `BaselineError`, `UnknownDatasetError`, and `DataboxError` for arguments that contradict.
    """
    given = [name for name, value in (("place", place), ("path", path), ("table", table)) if value is not None]
    if len(given) != (0 if isinstance(source, DataFrame) else 1):
        raise DataboxError(
            f"sample_drift was given {' and '.join(given) or 'no table'}",
            hint="Give it a DataFrame alone, or a session and one of place, path and table.",
        )
    if rows < 1 or files < 1:
        raise DataboxError(f"a sample of {rows} rows of {files} files", hint="Ask for at least one of each.")
    plan = build_plan(contract, contract.dataset(dataset))
    if quarantine is not None and place is not None and Path(quarantine).absolute() == place.quarantine.absolute():
        raise DataboxError(
            f"{quarantine} holds rows that were not published, and drifted rows stay in the table",
            hint="Name another directory for copies of drifted rows.",
        )
    recent = _recent(source, place, path, table, format, options, rows, files)
    no_room = no_room_for_reasons(recent.schema.names) if quarantine is not None else None
    if no_room is not None:
        raise DataboxError(f"rows of {plan.dataset.name} cannot be copied: {no_room}", hint=FREE_NAMES)
    moment = as_instant(as_of or clock()).astimezone(UTC)
    sampling = _Sampling(
        recent=recent,
        plan=plan,
        store=store,
        limits=thresholds or DriftThresholds(),
        ignore=frozenset(ignore),
        at=moment,
        given=Given.at(moment, timestamp_field),
        samples=samples,
    )
    try:
        return sampling.run(update_baseline=update_baseline, quarantine=quarantine)
    except SPARK_ERRORS as error:
        # A file may be damaged, or be gone by now.
        raise unreadable(str(path or table or (place.link if place else "the DataFrame")), error) from error


def _recent(
    source: Any,
    place: TablePlace | None,
    path: str | Path | None,
    table: str | None,
    format: str | None,
    options: Mapping[str, str] | None,
    rows: int,
    files: int,
) -> Recent:
    if place is not None:
        return sample_place(source, place, rows=rows, files=files)
    if path is not None:
        return sample_path(source, str(path), rows=rows, files=files, format=format, options=options)
    if table is not None:
        return sample_table(source, table, rows=rows, files=files)
    return sample_frame(source, rows=rows, files=files)


_NO_BASELINE: Final = "none"


@dataclass(frozen=True, slots=True)
class _Sampling:
    recent: Recent
    plan: Plan
    store: BaselineStore
    limits: DriftThresholds
    ignore: frozenset[str]
    at: datetime
    given: Given
    samples: int

    def run(self, *, update_baseline: bool, quarantine: str | Path | None) -> DriftReport:
        # Every pass is over the same rows, whatever becomes of the files.
        kept = self.recent.df.persist()
        try:
            return replace(self, recent=replace(self.recent, df=kept))._report(update_baseline, quarantine)
        finally:
            kept.unpersist()

    def _report(self, update_baseline: bool, quarantine: str | Path | None) -> DriftReport:
        verdict = self._verdict()
        located = Verification(
            self.recent.located, for_sample(self.plan), untyped=self.recent.untyped, given=self.given
        )
        leaves = self._leaves(located)
        self._check_ignored(leaves)
        pinned = self._pinned(leaves, update_baseline)
        place = located.view[positional(len(self.recent.schema.fields))]
        found = profile(
            located.view, leaves, place, pinned, rows=verdict.row_count, most_values=self.limits.most_values
        )
        broken = self._of_verdict(verdict, located, place)
        drifted, notes = self._compared(found, pinned)
        findings = (*broken, *drifted)
        baseline, stored, said = self._keep(found, findings, pinned, update_baseline)
        reference = pinned or baseline
        keyed = reference.id if reference is not None else _NO_BASELINE
        at = self.at.isoformat()
        contract, name = self.plan.contract, self.plan.dataset.name
        seen = self.store.see(keyed, contract.id, name, [one.key for one in findings], at=at) if findings else {}
        copied = 0
        if quarantine is not None:
            batch = Batch(Path(quarantine), self.plan, keyed, self.at)
            reasons = self._reasons(located, leaves, found, drifted)
            copied = copy_drifted(located.view, self.recent.schema.names, reasons, batch)
        return DriftReport(
            contract=contract.id,
            version=contract.version,
            dataset=name,
            as_of=at,
            verdict=verdict,
            sampled=self._sampled(verdict.row_count),
            findings=with_sightings(findings, seen),
            baseline=pinned.id if pinned is not None else None,
            baseline_taken_at=pinned.taken_at if pinned is not None else None,
            stored=stored,
            notes=(*said, *notes),
            quarantine=str(Batch(Path(quarantine), self.plan, keyed, self.at).path) if copied and quarantine else None,
            quarantined=copied,
        )

    # --- the rules ----------------------------------------------------------------------------------------------------

    def _verdict(self) -> Verdict:
        """All rules of the plan, those about a whole table skipped."""
        verification = Verification(
            self.recent.rows, for_sample(self.plan), untyped=self.recent.untyped, given=self.given
        )
        return of_whole_plan(verification.verdict(samples=self.samples), self.plan, complete=self.recent.complete)

    def _of_verdict(self, verdict: Verdict, located: Verification, place: Column) -> list[DriftFinding]:
        failed = [one for one in verdict.results if one.status in (Status.FAILED, Status.NOT_EVALUATED)]
        counted = {one.check.id: one for one in located.counted}
        broken = {one.id: counted[one.id].violating(located.view) for one in failed if one.id in counted}
        places = first_places(located.view, broken, place)
        return [self._of_result(one, verdict.row_count, places.get(one.id)) for one in failed]

    def _of_result(self, result: CheckResult, rows: int, place: str | None) -> DriftFinding:
        evaluated = result.status is Status.FAILED
        kind = kind_of(result)
        count = result.failed_count
        return DriftFinding(
            kind=kind if evaluated else "not_evaluated",
            field=result.field,
            severity=result.severity if evaluated else Severity.ERROR,
            rule=result.id,
            message=f"{result.id}: {result.message}",
            count=count,
            share=count / rows if count is not None and rows else None,
            observed=result.observed,
            expected=result.threshold,
            place=self._shown(place) or self._newest_place,
        )

    # --- the profile --------------------------------------------------------------------------------------------------

    def _leaves(self, located: Verification) -> list[Leaf]:
        schema = StructType(located.schema.fields[:-1])
        return leaves_of(schema, self.plan, located.view, case_sensitive=located.case_sensitive)

    def _check_ignored(self, leaves: Sequence[Leaf]) -> None:
        unknown = sorted(self.ignore - {leaf.name for leaf in leaves})
        if unknown:
            known = ", ".join(leaf.name for leaf in leaves)
            raise DataboxError(f"there is no field {unknown[0]!r} to ignore", hint=f"The table has {known}.")

    def _pinned(self, leaves: Sequence[Leaf], update_baseline: bool) -> Baseline | None:
        """The baseline, without the values of fields that are masked by now; nor are these kept any longer."""
        contract, name = self.plan.contract, self.plan.dataset.name
        try:
            pinned = self.store.get(contract.id, name)
        except BaselineError:
            if not update_baseline:
                raise
            return None
        masked = [leaf.name for leaf in leaves if leaf.masked]
        hidden = pinned.masking(masked) if pinned is not None else None
        if pinned is not None and hidden is not None and hidden != pinned:
            self.store.forget_values(contract.id, name, masked)
            return self.store.put(hidden, replacing=pinned).masking(masked)
        return pinned

    def _compared(self, found: Profiled, pinned: Baseline | None) -> tuple[list[DriftFinding], list[str]]:
        findings: list[DriftFinding] = []
        notes: list[str] = []
        if self.recent.mixed:
            notes.append("the newest files differ in their schema: only those like the newest one were sampled")
        if pinned is None:
            return findings, notes
        passed_over = self._passed_over()
        for now in found.fields:
            then = pinned.field(now.field)
            if then is None:
                notes.append(f"{now.field} is not in the baseline, which knows it from now on")
                continue
            if now.field in passed_over:
                then, now = (_rates_only(one) for one in (then, now))
                notes.append(f"{now.field}: its values are not compared, {passed_over[now.field]}")
            for one in compare_field(now, then, self.limits, found.places.get(now.field, {})):
                if isinstance(one, str):
                    notes.append(one)
                else:
                    findings.append(replace(one, place=self._shown(one.place) or self._newest_place))
        known = {one.field for one in found.fields}
        notes += [
            f"{one.field} is in the baseline and no more in the table"
            for one in pinned.fields
            if one.field not in known
        ]
        return findings, notes

    def _passed_over(self) -> dict[str, str]:
        """Fields whose values are new in every sample, and why."""
        called = {field.column.lower(): field.name for field in self.plan.dataset.fields}
        found = dict.fromkeys(
            (called.get(one.lower(), one) for one in self.recent.chosen_by), "it is partitioned by it"
        )
        for check in self.plan.keys:
            if len(check.key_names) == 1:
                found[check.key_names[0]] = "it is a key"
        return found | dict.fromkeys(sorted(self.ignore), "as asked")

    def _keep(
        self, found: Profiled, findings: Sequence[DriftFinding], pinned: Baseline | None, update: bool
    ) -> tuple[Baseline | None, bool, list[str]]:
        """What is pinned afterwards, whether that is new, and what there is to say about it."""
        fresh = Baseline(
            contract=self.plan.contract.id,
            contract_version=self.plan.contract.version,
            dataset=self.plan.dataset.name,
            taken_at=self.at.isoformat(),
            rows=found.rows,
            how=self.recent.how,
            fields=found.own,
        )
        if update:
            return self._put(fresh, pinned), True, ["this sample is the baseline from now on, as asked"]
        if pinned is not None:
            grown = pinned.knowing(found.own)
            return (self._put(grown, pinned) if grown != pinned else pinned), False, []
        if not found.rows:
            return None, False, ["no baseline yet, and none was stored: the sample has no rows"]
        if any(one.severity is Severity.ERROR for one in findings):
            said = "no baseline yet, and none was stored: correct what was found, or accept it with update_baseline"
            return None, False, [said]
        kept = self._put(fresh, None)
        if kept != fresh:
            return kept, False, ["no baseline yet, and another sampling stored one meanwhile"]
        return kept, True, ["no baseline yet: this sample is the baseline from now on"]

    def _put(self, baseline: Baseline, replacing: Baseline | None) -> Baseline:
        return self.store.put(baseline, replacing=replacing)

    # --- places -------------------------------------------------------------------------------------------------------

    def _sampled(self, rows: int) -> Sampled:
        recent = self.recent
        return Sampled(
            how=recent.how,
            rows=rows,
            files=tuple(shown for one in recent.files if (shown := self._shown(one)) is not None),
            newest=recent.complete,
            place=self._newest_place,
            file_bytes=recent.file_bytes,
            file_rows=recent.file_rows,
        )

    @property
    def _newest_place(self) -> str | None:
        return self._shown(self.recent.files[0]) if self.recent.files else None

    def _shown(self, place: str | None) -> str | None:
        """A place without the values of masked columns that the table is partitioned by."""
        if place is None:
            return None
        return "/".join(self._part(part) for part in place.split("/"))

    def _part(self, part: str) -> str:
        name, equals, _ = part.partition("=")
        if not equals:
            return part
        pii_class = self.plan.contract.governance.pii_class
        field = next((one for one in self.plan.dataset.fields if one.column.lower() == name.lower()), None)
        return f"{name}=…" if field is None or field.conceals(pii_class) else part

    # --- copies -------------------------------------------------------------------------------------------------------

    def _reasons(
        self, located: Verification, leaves: Sequence[Leaf], found: Profiled, drifted: Sequence[DriftFinding]
    ) -> dict[str, Column]:
        reasons: dict[str, Column] = {}
        for counted in located.held_by():
            reasons[counted.check.id] = counted.violating(located.view)
        by_name = {leaf.name: leaf for leaf in leaves}
        new: dict[str, list[str]] = {}
        for one in drifted:
            if one.kind == "new_value" and one.field is not None and one.value is not None:
                new.setdefault(one.field, []).append(one.value)
        for field, values in new.items():
            among = by_name[field].among([found.texts[field][value] for value in values])
            if among is not None:
                reasons[f"{self.plan.dataset.name}.{field}.new_value"] = among
        return reasons


def _rates_only(one: FieldProfile) -> FieldProfile:
    return replace(one, distinct=None, values=None, quantiles={}, edges=(), high=None, bins=())
