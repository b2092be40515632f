"""Held rows judged by the rules that are about rows: those that keep them are added to the table, the rest is kept."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType, TimestampType

from databox_contracts.errors import ContractViolationError, PublicationError, UnreadableTableError
from databox_contracts.model import SchemaModes
from databox_contracts.plan import Check, Plan
from databox_contracts.results import Status, Verdict
from databox_contracts.rules import ForeignKey, RowCount, Scope
from databox_contracts.schema_modes import is_incomplete
from databox_contracts.spark.attempts import hides
from databox_contracts.spark.fingerprints import Fingerprint
from databox_contracts.spark.given import Given
from databox_contracts.spark.holding import MOST_GENERATIONS, keys_that_repeat, keys_without_match
from databox_contracts.spark.judging import Verification
from databox_contracts.spark.linking import Beside, difference
from databox_contracts.spark.modes import apply_modes
from databox_contracts.spark.outcomes import threshold_of
from databox_contracts.spark.partitioning import Partitioning
from databox_contracts.spark.quarantine_batches import HeldBatch
from databox_contracts.spark.reasons import (
    CONTRACT_ID,
    CONTRACT_VERSION,
    REASON,
    RUN_ID,
    STAMP,
    TIMESTAMP,
    KeysToHold,
    Stamp,
    rows_in,
    with_reasons,
)
from databox_contracts.spark.references import given_table, own_dataset
from databox_contracts.spark.replacing import PublishScope, Replacement, Request
from databox_contracts.spark.staging import Staged
from databox_contracts.spark.stores import Store
from databox_contracts.spark.table_files import column, count_rows
from databox_contracts.spark.writing import write_parquet, write_table

_FILE: Final = "_databox file"
_REASONS: Final = "_databox reasons"
"""Beside the columns of held rows while they are looked at: the batch they are of, and what they break now."""
_STAMP_TYPES: Final = (ArrayType(StringType()), TimestampType(), StringType(), StringType(), StringType())


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one batch: all rows, those that keep the contract now, and those that stay with other reasons than before."""

    rows: int
    released: int
    changed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of all batches, by their directories' names, and of the table."""

    counts: Mapping[str, Counts]
    verdict: Verdict
    version: str
    table_rows: int


class Releasing:
    """One replay of some batches against one version of the table."""

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        path: str,
        scope: PublishScope,
        run_id: str,
        samples: int,
        clock: Callable[[], datetime],
        given: Given,
        store: Store,
        staged: Staged,
        batches: Sequence[HeldBatch],
        modes: SchemaModes,
    ) -> None:
        self.spark = spark
        self.plan = plan
        self.path = path
        self.scope = scope
        self.run_id = run_id
        self.samples = samples
        self.clock = clock
        self.given = given
        self.batches = {batch.path.name: batch for batch in batches}
        self.modes = modes
        self.store = store
        self.staged = staged
        self.replacement = Replacement(Request("append", scope=scope), path, Partitioning())
        about_rows = [check for check in plan.checks if _is_about_rows(check)]
        self.about_rows = {check.id for check in about_rows}
        self.to_itself = [
            check.id
            for check in about_rows
            if isinstance(check.rule, ForeignKey)
            and given_table(check.rule.to, plan.contract, given.references) is None
            and own_dataset(check.rule.to, plan.contract) is plan.dataset
        ]

    def run(self) -> Outcome:
        """Raises `ContractViolationError` or `PublicationError` where nothing is released, and nothing changed."""
        base, staged = self._open(), self.staged
        for batch in self.batches.values():
            self._require_columns(batch)
        held = self._held_rows()
        self._apply_modes(held)
        verdict = self._judge(self._own(held), self._rules_about_rows())
        if any(result.stops for result in verdict.with_status(Status.NOT_EVALUATED)):
            # Nobody knows which rows such a rule would hold.
            raise self._refusal(verdict)
        marked = self._mark(held, verdict)
        counts = self._count(marked)
        released = sum(one.released for one in counts.values())
        replaced = {name: one for name, one in counts.items() if one.released or one.changed}
        facts = self._write_rest(marked, replaced) if replaced else {}
        if released:
            rows = self._release(marked, released, facts)
            return Outcome(counts, verdict, self.store.version_of(staged), rows)
        if replaced:
            self.store.replace_batches(staged, facts)
        return Outcome(counts, verdict, str(self.store.current_version()), sum(base.rows.values()))

    # --- the table and the rows ---------------------------------------------------------------------------------------

    def _require_columns(self, batch: HeldBatch) -> None:
        schema = batch.schema()
        reason = "its files do not say so" if schema is None else difference(self.layout.schema, schema)
        if reason is not None:
            raise PublicationError(
                self.path,
                f"batch {batch.name} has other columns than the table: {reason}",
                hint="Name the batches that are to be replayed, without this one.",
            )

    def _open(self) -> Beside:
        base = self.store.open(self.staged)
        if base is None:
            raise UnreadableTableError(self.path, "nothing was published there yet")
        self.layout = base.layout
        partitioning = self.layout.partitioning(self.path)
        self.replacement = Replacement(
            Request("append", scope=self.scope),
            self.path,
            partitioning,
            base=base,
            masked=any(hides(self.plan, name) for name in partitioning.names),
            # Where the rows go is known when they are written; until then every partition is looked at.
            written=tuple(partitioning.at(inside) for inside in base.rows if inside) if partitioning.columns else (),
        )
        return base

    def _held_rows(self) -> DataFrame:
        stamp = [StructField(name, type_) for name, type_ in zip(STAMP, _STAMP_TYPES, strict=True)]
        schema = StructType([*self.layout.schema.fields, *stamp])
        return self.spark.read.schema(schema).parquet(*(str(batch.path) for batch in self.batches.values()))

    def _own(self, rows: DataFrame) -> DataFrame:
        return rows.select(*(column(name) for name in self.layout.schema.names))

    def _apply_modes(self, held: DataFrame) -> None:
        contract, dataset, rows = self.plan.contract, self.plan.dataset, self._own(held)
        known = self.layout.schema if is_incomplete(dataset) else None
        applied = apply_modes(rows, contract, dataset, self.modes, known=known)
        if applied.df is not rows:
            raise PublicationError(
                self.path,
                "the schema modes would change held rows, and not those that are in the table",
                hint="Name the modes that the table was published with, or publish all of it under these first.",
            )
        self.given = replace(self.given, applied=applied)

    # --- judging ------------------------------------------------------------------------------------------------------

    def _rules_about_rows(self) -> Plan:
        return replace(self.plan, checks=tuple(check for check in self.plan.checks if check.id in self.about_rows))

    def _judge(self, rows: DataFrame, plan: Plan, *, counts: Mapping[str, int] | None = None) -> Verdict:
        given = self._given(rows)

        def verify(judged: DataFrame, part: Plan) -> Verdict:
            return Verification(judged, part, given=given).verdict(samples=self.samples)

        return self.replacement.judge(rows, plan, lambda: counts or {}, verify)

    def _given(self, rows: DataFrame) -> Given:
        """What a foreign key into the table itself may find there: published rows, and those."""
        if not self.to_itself:
            return self.given
        known = self._with_the_table(rows)
        return replace(self.given, references={**self.given.references, self.plan.dataset.name: known})

    def _with_the_table(self, rows: DataFrame) -> DataFrame:
        base = self.replacement.base
        return rows.unionByName(base.read(base.rows)) if base is not None and base.rows else rows

    def _mark(self, held: DataFrame, verdict: Verdict) -> DataFrame:
        """The held rows with all rules that each breaks now, written down: more than one query asks for them."""
        rows = self._own(held)
        stamp = Stamp(self.plan, self.run_id, self.clock(), self._given(rows), "parquet", self.replacement)
        failed = {result.id for result in verdict.with_status(Status.FAILED)}
        staged = self.staged
        keys = keys_that_repeat(rows, stamp, staged, verdict)
        keys += keys_without_match(rows, stamp, staged, failed)
        for generation in range(MOST_GENERATIONS):
            marked = self._marked(held, stamp, keys, staged.directory / f"marked_{generation}")
            if not self.to_itself:
                break
            released = self._own(marked.where(F.size(column(_REASONS)) == 0))
            orphaned = keys_without_match(released, replace(stamp, given=self._given(released)), staged, self.to_itself)
            if not orphaned:
                break
            _add(orphaned, keys)
        return marked

    def _marked(self, held: DataFrame, stamp: Stamp, keys: Sequence[KeysToHold], path: Path) -> DataFrame:
        marked = with_reasons(held, stamp, keys).toDF(*held.columns, _FILE, _REASONS)
        batch = F.regexp_extract(column(_FILE), "/(batch=[^/]+)/[^/]+$", 1)
        marked = marked.withColumn(_FILE, batch)
        write_parquet(marked, path)
        return self.spark.read.schema(marked.schema).parquet(str(path))

    def _count(self, marked: DataFrame) -> dict[str, Counts]:
        stays = F.size(column(_REASONS)) > 0
        now = (column(_REASONS), F.lit(self.plan.contract.id), F.lit(self.plan.contract.version))
        same = F.lit(True)
        for name, value in zip((REASON, CONTRACT_ID, CONTRACT_VERSION), now, strict=True):
            same = same & column(name).eqNullSafe(value)
        counted = marked.groupBy(column(_FILE)).agg(F.count(F.lit(1)), F.count_if(~stays), F.count_if(stays & ~same))
        found = {name: Counts(*map(int, counts)) for name, *counts in counted.collect()}
        for name, batch in self.batches.items():
            found.setdefault(name, Counts(0, 0, 0))
            self._require_conserved(batch.rows, found[name].rows, f"batch {batch.name} has")
        return {name: found[name] for name in self.batches}

    # --- releasing ----------------------------------------------------------------------------------------------------

    def _write_rest(self, marked: DataFrame, replaced: Mapping[str, Counts]) -> dict[str, dict[str, Any] | None]:
        """Write what stays of the batches that change, a directory for each, and say what its manifest is to be."""
        staged = self.staged
        staged.rest.mkdir()
        at = {name: number for number, name in enumerate(replaced)}
        left = {name: one.rows - one.released for name, one in replaced.items()}
        if any(left.values()):
            mark = f"batch_{secrets.token_hex(4)}"
            numbered = F.create_map(*(F.lit(part) for pair in at.items() for part in pair))[column(_FILE)]
            stays = marked.where((F.size(column(_REASONS)) > 0) & column(_FILE).isin(*at))
            rest = stays.select(
                *(column(name) for name in self.layout.schema.names),
                column(_REASONS).alias(REASON),
                column(TIMESTAMP),
                F.lit(self.plan.contract.id).alias(CONTRACT_ID),
                F.lit(self.plan.contract.version).alias(CONTRACT_VERSION),
                column(RUN_ID),
                numbered.alias(mark),
            )
            write_parquet(rest, staged.rest, partition=mark)
            for name, number in at.items():
                if left[name]:
                    os.rename(staged.rest / f"{mark}={number}", staged.rest / name)
        facts: dict[str, dict[str, Any] | None] = {}
        for name, rows in left.items():
            written = rows_in(staged.rest / name)
            self._require_conserved(rows, written, f"of batch {self.batches[name].name} there are")
            facts[name] = self._facts_of_rest(self.batches[name], replaced[name]) if rows else None
        return facts

    def _facts_of_rest(self, batch: HeldBatch, counts: Counts) -> dict[str, Any]:
        once = {"version": self.plan.contract.version, "released": counts.released, "at": self.clock().isoformat()}
        return {
            **batch.facts,
            "contract_version": self.plan.contract.version,
            "rows_quarantined": counts.rows - counts.released,
            "replays": [*batch.facts.get("replays", ()), {"run_id": self.run_id, **once}],
        }

    def _release(self, marked: DataFrame, released: int, replayed: Mapping[str, Mapping[str, Any] | None]) -> int:
        """Publish the rows that keep the contract now beside those that are there; returns how many there are then."""
        base, staged = self.replacement.base, self.staged
        assert base is not None
        fingerprint = Fingerprint(self.layout)
        rows = self._own(marked.where(F.size(column(_REASONS)) == 0))
        write_table(fingerprint.of(rows), staged.data, self.layout)
        self._require_nothing_lost(fingerprint.lost())
        self.replacement = self.replacement.with_written(staged.data)
        rows = self.layout.read(self.spark, staged.data)
        self._require_nothing_lost(fingerprint.changed(rows))
        new = count_rows(self.spark, self.layout, staged.data)
        self._require_conserved(released, sum(new.values()), "to be released are")
        verdict = self._judge_the_table(rows, new)
        if not verdict.passed:
            raise self._refusal(verdict)
        after = self.replacement.rows_after(new)
        base.link_into(staged.data, self.replacement.stays)
        self.store.commit(
            staged,
            {
                "contract": self.plan.contract.id,
                "contract_version": self.plan.contract.version,
                "dataset": self.plan.dataset.name,
                "run_id": self.run_id,
                "passed": verdict.passed,
                "on_violation": "quarantine",
                "rows_in": released,
                "rows_published": released,
                "rows_quarantined": 0,
                "published_at": self.clock().isoformat(),
                "mode": "append",
                "replaced": [],
                "replayed": [self.batches[name].name for name in replayed],
            },
            self.layout.schema,
            table={**self.layout.facts(), "rows": after, "table_rows": sum(after.values())},
            stays=self.replacement.stays,
            replayed=replayed,
        )
        return sum(after.values())

    def _judge_the_table(self, rows: DataFrame, new: Mapping[str, int]) -> Verdict:
        """The verdict on the rows to be released, and on the table with them by the rules that belong to no row."""
        apart = {check.id for check in self.plan.checks if isinstance(check.rule, RowCount)} | self.about_rows
        on_rows = replace(self.plan, checks=tuple(check for check in self.plan.checks if check.id in apart))
        on_table = replace(self.plan, checks=tuple(check for check in self.plan.checks if check.id not in apart))
        verdict = self._judge(rows, on_rows, counts=new)
        answers = {result.id: result for result in verdict.results}
        if on_table.checks:
            everything = Verification(self._with_the_table(rows), on_table, given=self.given)
            answers |= {result.id: result for result in everything.verdict(samples=self.samples).results}
        return replace(verdict, results=tuple(answers[check.id] for check in self.plan.checks))

    def _refusal(self, verdict: Verdict) -> ContractViolationError:
        return ContractViolationError(
            verdict, message=f"{verdict.summary()}. Nothing was released, all held rows stay as they were."
        )

    def _require_nothing_lost(self, reason: str | None) -> None:
        if reason is not None:
            raise PublicationError(self.path, reason, hint="Nothing was released.")

    def _require_conserved(self, expected: int, found: int, what: str) -> None:
        if expected != found:
            raise PublicationError(
                self.path,
                f"{what} {expected} rows, and {found} were found",
                hint="Nothing was released. Please report this as a bug.",
            )


def _add(found: Sequence[KeysToHold], keys: list[KeysToHold]) -> None:
    """Add keys to hold to those that there are. None is among them, since no row of theirs was left to be asked for."""
    known = {one.check.id: one for one in keys}
    for one in found:
        if one.check.id not in known:
            keys.append(one)
            continue
        for file in sorted(one.path.glob("part-*")):
            os.rename(file, known[one.check.id].path / file.name)


def _is_about_rows(check: Check) -> bool:
    """Whether each row keeps the rule or breaks it, whatever else is in the table."""
    if not threshold_of(check).allows_none:
        return False
    return check.rule.scope in (Scope.SCHEMA, Scope.ROW, Scope.KEY, Scope.NONE) or isinstance(check.rule, ForeignKey)
